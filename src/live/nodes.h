/* The machines that a study's processes run on, each with a `pipetune-node serve`: a child here, over ssh elsewhere. They bring together
 * what launches are to have and what their processes have (core/desired), and measure them. */
#ifndef LIVE_NODES_H
#define LIVE_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "app/app.h"
#include "base/err.h"
#include "core/desired.h"
#include "monitoring/features.h"
#include "monitoring/meter.h"
#include "monitoring/reading.h"

enum { NODES_WHO_MAX = 160 };

/* One entry of the config's "nodes". */
struct node_cfg {
    char *host;       /* NULL: this machine */
    char *user, *key; /* NULL: ssh's choice */
    int port;         /* 0: ssh's choice */
    char *address;    /* by which processes on other machines reach those there; NULL: host */
    struct strv env;  /* NAME=VALUE, of what is launched there */
};

struct nodes;
struct node_peer;
struct node_words;

/* What was measured on one node. */
struct nodes_sample {
    size_t node;        /* 0: this machine */
    double t_ms, dt_ms; /* when the interval ended, since 1970 by our clock (the node's, less its offset); its length */
    int missed;         /* intervals that were lost before this one */
    const char *scope;  /* what the hardware events counted: "system", "process" or "cgroup" */
    struct reading v[FEATURES]; /* of the features that both sides know */
};

/* Which meters of its own each node reads. */
struct nodes_metering {
    const char *meters;   /* names of local ones with commas between ("cpu,rapl"), at most METER_NAMES_MAX bytes */
    int interval_ms;      /* 100 to 60000; 0: none any more, whatever the rest says */
    double idle_w, cpu_w; /* for the meter "estimate"; 0: not given */
    double max_w;         /* of a zone, beyond which an interval is implausible; 0: as the meters have it */
};

/* What a meter of one node read. */
struct nodes_reading {
    size_t node;            /* 0: this machine */
    const char *meter;      /* its name: one that was asked for */
    struct meter_reading r; /* its times by our clock, not in order where the node's was set back; no name of a node */
};

/* Called from the loop; never from within a call below, all of which may be called from within these. Nothing is called after
 * nodes_close(). */
struct nodes_ops {
    /* Every node has brought about what was asked for by nodes_apply(), or is lost, or has not answered in 5 s. `why` is NULL, or tells in
     * one line why what was wanted is not (wholly) in force. That there are fewer CPUs than wanted, or no process yet, is no such reason:
     * `have` says it. A node that was left out before is none either: its note was told. An answer that comes later is told by
     * `changed`. `want` has no CPUs, and is valid during the call. */
    void (*applied)(void *ctx, const struct desired_want *want, const struct desired_have *have, const char *why);
    /* A process of a launch came or went, or others use its CPUs or do no more, and what was wanted has been brought into force again; or the node that had it is lost. */
    void (*changed)(void *ctx, const char *tag, const struct desired_have *have);
    /* A sample has come. Its texts live as long as the call. It comes at once, not from the loop's next round. */
    void (*sampled)(void *ctx, const char *tag, const struct nodes_sample *s);
    /* A meter was read, well or not. As `sampled`, it comes at once. NULL: nobody meters. */
    void (*metered)(void *ctx, const struct nodes_reading *r);
    /* One line for the user: a node was lost, speaks another version, … Told once per node and reason. */
    void (*note)(void *ctx, const char *text);
};

/* Starts the helper of this machine and one over ssh for each configured node (which may be none), and returns at once; hello
 * is exchanged behind the caller's back, and what is asked for before it is sent after it. A node that cannot be had is told
 * by `note` and left out from then on: it never stops a study. The helper of this machine is started again when it dies, five
 * times, 10 s apart, and asked for what is wanted. `helper` is the path of pipetune-node here; elsewhere it is called by that
 * path too. PIPETUNE_SSH names another ssh. Keeps `loop`, `ops` and `ctx`; SIGPIPE must be ignored.
 * -EINVAL: a host, user or path with forbidden characters; -ENOMEM. */
int nodes_open(struct nodes **out, uv_loop_t *loop, const struct node_cfg *cfg, size_t n, const char *helper,
               const struct app_workers *workers, const struct nodes_ops *ops, void *ctx, struct err *e);

/* Lets the helpers give back every mask and limit that they changed, and end. Handles are closed by the loop. NULL is fine. */
void nodes_close(struct nodes *n);

/* The launch is to have this, in place of what was asked for before; helpers that are started again are asked again. `applied` comes
 * once for it, unless it is replaced first, nodes_close() comes first, or this fails. -EINVAL: no tag, no cores, no slots; -ENOMEM. */
int nodes_apply(struct nodes *n, const struct desired_want *want, struct err *e);

/* Measures the processes that carry the tag, on every node, from now on until nodes_release() or an interval of 0; helpers that
 * are started again are asked again. -EINVAL: no tag; -ENOMEM. */
int nodes_sample(struct nodes *n, const char *tag, const struct desired_sampling *how, struct err *e);

/* Reads these meters on every node from now on, in place of those asked for before; helpers that are started again are asked again.
 * A meter that a node has not, or that cannot be opened there, is told by `note`, once per node and meter. Of two helpers
 * of one machine one is left out, as always. -EINVAL: no names, or no such interval. */
int nodes_meter(struct nodes *n, const struct nodes_metering *how, struct err *e);

/* The launch is over, or is to have its CPUs back. What was not told yet ends with `applied` and a reason. `n` NULL: no matter. */
void nodes_release(struct nodes *n, const char *tag);

/* Who launches on other nodes (live/remote), and who carries files there and back (live/courier). Called as `sampled` is. Stamps of what
 * the second asks have NODES_FILES_STAMP set, those of the first have not. */
enum nodes_listener { NODES_LAUNCHES, NODES_FILES, NODES_LISTENERS };
#define NODES_FILES_STAMP (UINT64_C(1) << 63)
struct nodes_launching {
    void (*there)(void *ctx, size_t node); /* its helper may be asked; what it was asked before is forgotten */
    void (*away)(void *ctx, size_t node, bool lost); /* not now; `lost`: never again */
    void (*answered)(void *ctx, size_t node, uint64_t stamp, const struct node_words *w);
    void (*launched)(void *ctx, size_t node, const struct node_words *w); /* an event; NULL: not of interest */
};
void nodes_launching(struct nodes *n, enum nodes_listener who, const struct nodes_launching *ops, void *ctx);

/* The helper of a node, which is `kept` for as long as launches are there: one that ends is started again. NULL: there is no such node. */
struct node_peer *nodes_peer(struct nodes *n, size_t node);

/* Do others use CPUs that the launch has on any node, as the helpers said last? Who, and where. */
bool nodes_is_shared(const struct nodes *n, const char *tag, char who[NODES_WHO_MAX]);

/* The CPUs of a node that its helper may give out, physical cores first; 0 before its hello. */
int nodes_cpus(const struct nodes *n, size_t node, const int **out);

/* Of the machine; 0: not known. */
double nodes_memory_gb(const struct nodes *n, size_t node);

/* Is the helper of this machine left out, or not there now? */
bool nodes_local_is_gone(const struct nodes *n);

/* Seconds by which a node's clock is ahead of ours, NAN when not known: node 0 is this machine, the configured ones follow. */
double nodes_clock_offset_s(const struct nodes *n, size_t node);

#endif
