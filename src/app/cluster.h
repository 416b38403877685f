/* Clusters as places of trials: a row of functions for each kind of master. A row says which masters are of its kind, what a cluster of
 * it is asked to learn what is free there and how our applications fare, how its answers are read, how an application is ended, and
 * what whoever launches is told for it. Pure: the requests are made by live/cluster, on a worker, with the token and the CA of its files.
 *
 * A *look* is a round of requests, each of which may depend on what the ones before were answered; what they tell together is a view.
 * An application is known by the tag of its launch, where the cluster keeps tags or labels, else by the id that the log told.
 *
 * A new kind is a file with its row, the row's name in cluster_rows[] (bigdl/cluster.c, as of kinds of applications), and its cases in tests/unit/test_cluster_row.c. */
#ifndef APP_CLUSTER_H
#define APP_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/app.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strv.h"
#include "core/layout.h"

enum {
    CLUSTER_TAG_MAX = 64,
    CLUSTER_NAME_MAX = 128,
    CLUSTER_WHY_MAX = 256,
    CLUSTER_WORKERS_MAX = 10000,
    CLUSTER_APPS_MAX = 4096
};

/* A launch of ours, by what the cluster may know of it. Borrowed. */
struct cluster_key {
    const char *tag; /* of the launch, "pt-…" */
    const char *id;  /* as the log told; NULL: not yet, or never */
};

/* --- what a cluster told --- */

struct cluster_worker {
    char host[CLUSTER_NAME_MAX];
    int cores, free_cores; /* all of it, and what nobody has */
    double memory_gb, free_gb;
    int64_t free_milli; /* the cores in thousandths, where CPUs are counted so */
};

enum cluster_state { CLUSTER_WAITS, CLUSTER_RUNS, CLUSTER_OVER };

/* An application of ours: those that were asked for. */
struct cluster_app {
    char tag[CLUSTER_TAG_MAX + 1]; /* of its launch, as it stands in the key */
    char id[CLUSTER_NAME_MAX];
    enum cluster_state state;
    int parts, cores;          /* that it has now, without what it takes beside its parts; -1: not told */
    int kills;                 /* of its parts, for want of memory; -1: not told */
    char why[CLUSTER_WHY_MAX]; /* what the cluster says of why it has not what it asked for; "": nothing */
};

/* An executor of ours. */
struct cluster_part {
    char tag[CLUSTER_TAG_MAX + 1];
    char name[CLUSTER_NAME_MAX], host[CLUSTER_NAME_MAX];
    int cores;
};

struct cluster_view { /* zeroed: empty */
    struct cluster_worker *workers;
    size_t n_workers, cap_workers;
    struct cluster_app *apps;
    size_t n_apps, cap_apps;
    struct cluster_part *parts;
    size_t n_parts, cap_parts;
    bool limited; /* a quota or a queue leaves us no more than this, whatever the workers have */
    int left_cores;
    double left_gb;
    char limit[CLUSTER_NAME_MAX]; /* its name */
    struct layout_takes takes;    /* what a part takes of a worker for its heap */
    struct layout_ask beside;     /* what an application takes beside its parts, as it is taken; no parts: nothing */
    struct buf
        next; /* the last answer was a page of a list, and by this the next one is asked for; empty: it was the last */
};
void cluster_view_done(struct cluster_view *v);

/* One more, zeroed; NULL: memory, or more than there may be. */
struct cluster_worker *cluster_add_worker(struct cluster_view *v);
struct cluster_app *cluster_add_app(struct cluster_view *v);
struct cluster_part *cluster_add_part(struct cluster_view *v);

/* --- what it is asked --- */

struct cluster_asked {
    const char *base;  /* address of its page or API, without a slash at its end */
    const char *space; /* namespace or queue; NULL: the kind has none, or the default one */
    const char *user;  /* as whom, where nobody is asked to prove it */
    const char *part;  /* the text of the template that parts of a launch are made from; NULL: none */
    const struct cluster_key *keys;
    size_t n_keys;
};

struct cluster_request { /* zeroed: none */
    const char *method;  /* "GET" */
    struct buf url;      /* the whole */
    const char *type;    /* of the body; NULL: there is none */
    struct buf body;
};
void cluster_request_done(struct cluster_request *r);

struct cluster_row {
    const char *name;   /* "standalone" */
    const char *begins; /* what its masters begin with: "spark://" */
    bool whole;         /* … and that is all of it */
    const char *what;   /* is asked, for people: "the master" */

    /* --- where: what of it is needed --- */
    const char *folder_env,
        *file; /* a file that names its address: "HADOOP_CONF_DIR", "yarn-site.xml"; NULL: the master itself does */
    const char *token_file,
        *ca_file; /* where they lie unless somebody says otherwise; NULL: none is wanted by default */
    const char *space_env, *space_file,
        *space; /* what names our namespace or queue, and what it is else; NULL: there are none; of a queue `space` alone */
    struct {
        const char *space, *token_file, *ca_file, *part_file;
    } properties; /* of the application that say otherwise (app_kind's find_property); NULL: none */
    /* Appends its addresses, those of several masters in their order. `text`: of that file; NULL: there is none. -EINVAL says what is wanted. */
    int (*bases)(const char *master, const char *text, struct strv *out, struct err *e);

    /* --- a look --- */
    void (*begin)(struct cluster_view *v); /* what holds as long as nothing else is told; NULL: nothing */
    /* The i-th request; false: that were all. Where the last answer left a `next`, it is that page of the same i. */
    bool (*ask)(const struct cluster_asked *a, const struct cluster_view *v, size_t i, struct cluster_request *out);
    /* Its answer, with its status. -EINVAL: not one of such a cluster; -EACCES: we may not ask; -ENODEV: it has no worker; -ENOMEM. */
    int (*answer)(struct cluster_view *v, const struct cluster_asked *a, size_t i, int status, const char *text,
                  size_t len, struct err *e);

    /* Ends the application, whoever started it. False: that cannot be asked for. */
    bool (*end)(const struct cluster_asked *a, const struct cluster_app *app, struct cluster_request *out);

    /* --- a launch --- */
    /* Appends what is told to it: how many executors of how many cores, and how the application is found again. */
    void (*submit)(const struct app_launch *l, int cores_each, struct strv *out);

    /* --- while it runs --- */
    const struct cluster_resize
        *resize; /* CPUs of parts can be changed (app/resize.h); NULL: by helpers on the nodes alone */
};

/* By an answer's status: 0; -EACCES, with what may be done; -EPROTO. */
int cluster_status(int status, struct err *e);

/* So much more is left to us at most; `name` is told where it is the least. */
void cluster_limit(struct cluster_view *v, const char *name, int cores, double gb);

/* A number of an answer as cores and as GiB of so many MiB: none is less than nothing, or more than a machine has. */
int cluster_cores(const json_t *o, const char *key);
double cluster_mib(const json_t *o, const char *key);

/* Appends what stands for itself in a URL's query, the rest as %XX. */
void cluster_put_query(struct buf *out, const char *text);

/* --- what follows of it --- */

/* A launch that was asked of the cluster; what of it a view shows counts as taken there, the rest is promised. */
struct cluster_launch {
    struct cluster_key key;
    struct layout_ask ask;
    bool granted; /* it has said so itself: nothing is promised any more */
};

/* What one more launch can have now, or (`all`) could if nobody had anything. */
void cluster_room(const struct cluster_view *v, const struct cluster_launch *launches, size_t n, bool all,
                  struct layout_room *out);

/* NULL: the view does not show it. */
const struct cluster_app *cluster_app_of(const struct cluster_view *v, const char *tag);

/* "2 of its 4 cores are free, at most 1 on a worker, with 3.5 GiB" */
void cluster_put_free(const struct cluster_view *v, char out[CLUSTER_WHY_MAX]);

/* Why a launch has not got what it asked for, in words. */
void cluster_why(const struct cluster_view *v, const struct cluster_launch *l, char out[CLUSTER_WHY_MAX]);

#endif
