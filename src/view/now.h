/* What a running trial is at: the newest rows of the store, and what its log has gained since. The driver may be writing both, so nothing here locks
 * or changes anything; what cannot be had is not known. */
#ifndef VIEW_NOW_H
#define VIEW_NOW_H

#include "app/wait.h"
#include "view/view.h"

struct now {
    bool runs;               /* else all below is absent */
    int epoch;               /* under way; 0: none is */
    double part, throughput; /* of it, 0…1; records per second; NAN: not known */
    double cores;            /* CPUs in force; NAN: not known */
    double seconds;          /* of the attempt */
    struct wait wait;        /* before its first step */
};

/* -ENOMEM. */
int now_of(const struct view *v, const struct view_trial *t, struct now *out, struct err *e);
void now_put(struct buf *b, const struct store_trial *t, const struct now *n);
json_t *now_json(const struct now *n); /* null when it does not run; new reference */

/* What its launches printed, whether or not it is there; of a view with a folder. NULL: memory. */
char *now_log_path(const struct view *v, int trial);

#endif
