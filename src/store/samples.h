/* What was sampled while trials ran, and the profiles made of it. As in store.h: each call is its own transaction unless it stands
 * between store_begin() and store_commit(), texts of a walk live as long as the callback, NAN is stored as NULL. */
#ifndef STORE_SAMPLES_H
#define STORE_SAMPLES_H

#include <stdint.h>

#include "base/err.h"
#include "monitoring/features.h"
#include "monitoring/reading.h"
#include "store/store.h"

/* --- samples: what one node's helper counted of one launch in one interval --- */
struct store_sample {
    double t_ms;       /* the interval's end, realtime of the driver's clock, with its fraction */
    double dt_ms;      /* its true length */
    int node;          /* 0: the driver's own machine, else the place in the config's list of nodes, from 1 */
    const char *scope; /* "system", "process" or "cgroup": what was in fact counted */
    /* FEATURES of them; the names of the features are kept with the study, and those that another version had are found by them. NULL in a
     * row that was read: it was thinned (store_samples_thin()), or it cannot be read, for the reason `why`. */
    const struct reading *v;
    double cpu_s; /* proc/cpu-time, which outlives the others; NAN: not measured. Read alone, written as `v` has it */
    const char *why; /* NULL: it was read. Read alone */
};

/* Two samples may have the same time. Samples come one per second, node and trial: group many of them by store_begin() and
 * store_commit(), which costs one fsync. -ENOENT no such trial, -EINVAL a text is NULL, and what store_begin() lists. */
int store_sample_add(struct store *s, int64_t trial, const struct store_sample *row, struct err *e);

/* By their time, then node, then the order in which they were added. */
int store_samples(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_sample *r), void *ctx,
                  struct err *e);

/* --- profiles: numbered 1, 2, … within their trial --- */
struct store_profile {
    int64_t seq;
    int epoch;                 /* in which the window ended; 0: not known */
    double t_from_ms, t_to_ms; /* the window, as the samples' times */
    const char *setting;       /* JSON object text: the setting in force; NULL: not known */
    const char *vector;        /* JSON text */
    const char *verdict;       /* JSON text; NULL: nobody was asked */
};

/* Sets seq. -ENOENT no such trial, -EINVAL no vector, and what store_begin() lists. */
int store_profile_add(struct store *s, int64_t trial, struct store_profile *row, struct err *e);

/* In the order of their numbers. */
int store_profiles(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_profile *r), void *ctx,
                   struct err *e);

#endif
