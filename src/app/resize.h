/* CPUs of the parts of a launch that are changed while they run, by their cluster: what each is to have, was granted and has, and what that comes to.
 * Whoever asks the cluster (live/resizer) is told here whom to ask for what, and when to tell which answer: what is in force is heard,
 * never what was asked for. Pure.
 *
 *     asked ──> under way ──> in force
 *                  ├────────> deferred    (there is no room now: waited for, then taken back)
 *                  └────────> infeasible  (there will never be: taken back)                                                        */
#ifndef APP_RESIZE_H
#define APP_RESIZE_H

#include "app/cluster.h"

enum {
    RESIZE_DEFER_MS = 20000, /* so long room is waited for that is not there now */
    RESIZE_LATE_MS = 60000,  /* so long what is under way, or a cluster that does not answer */
};

enum resize_at { RESIZE_IN_FORCE, RESIZE_UNDER_WAY, RESIZE_DEFERRED, RESIZE_INFEASIBLE };

/* A part that runs. CPUs are in thousandths. */
struct resize_part {
    char name[CLUSTER_NAME_MAX];
    char container[CLUSTER_NAME_MAX];
    int64_t wanted, has; /* -1: not told */
    bool limited;        /* it has a limit, and not a share alone */
    enum resize_at at;
    int restarts;
    char why[CLUSTER_WHY_MAX]; /* of what is not in force; "": not told */
};

struct resize_view { /* zeroed: empty */
    struct resize_part *parts;
    size_t n, cap;
};
void resize_view_done(struct resize_view *v);
struct resize_part *resize_add(struct resize_view *v); /* one more, zeroed; NULL: memory, or too many */

/* How a cluster is asked; a row's (app/cluster.h). */
struct cluster_resize {
    /* Does it resize at all? */
    bool (*can)(const struct cluster_asked *a, struct cluster_request *out);
    bool (*says_so)(int status, const char *text, size_t len);

    /* The parts of a launch that run. `read`: -EINVAL: not such an answer; -EACCES, -EPROTO: refused; -ENOMEM. */
    bool (*ask)(const struct cluster_asked *a, const char *tag, struct cluster_request *out);
    int (*read)(struct resize_view *out, int status, const char *text, size_t len, struct err *e);

    /* Asks for one of them to have so much. `answer`: 0; -EAGAIN: it is gone, or changed meanwhile; -ENOTSUP: nothing is resized there; -EACCES:
     * it is refused, and says why. */
    bool (*change)(const struct cluster_asked *a, const struct resize_part *p, int64_t milli,
                   struct cluster_request *out);
    int (*answer)(int status, const char *text, size_t len, struct err *e);
};

/* What part `i` is to have so that all have `cores` together. */
int64_t resize_share(const struct resize_view *v, int cores);

enum resize_verdict { RESIZE_WAITS, RESIZE_DONE, RESIZE_INSTEAD };

/* `waited_ms` after it was asked for. RESIZE_DONE: it is in force; RESIZE_INSTEAD: it is not, for the reason why[], and each part is to
 * be asked for what it has, so that nothing is held for it. *out_cores: what is in force, rounded; 0: nothing runs. */
enum resize_verdict resize_judge(const struct resize_view *v, int cores, int64_t waited_ms, int *out_cores,
                                 char why[CLUSTER_WHY_MAX]);

/* Has a part come anew, by the count of restarts? */
bool resize_restarted(const struct resize_view *before, const struct resize_view *now);

#endif
