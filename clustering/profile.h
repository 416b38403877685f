/* Profiles: what a window of samples says of a job, as one number per feature that does not depend on how long the window was nor,
 * as far as may be, on how many CPUs the job had. Pure; features are given by name and kind, readings as plain arrays.
 *
 * A count becomes a rate over its normaliser: so much per million instructions, per CPU-second or per second. Sums of both run over
 * the same intervals, those in which both were measured. Then log1p of it, so that equal factors are equal differences. A gauge is
 * the log1p of its mean. Times are taken in milliseconds, so that log1p tells small shares apart.
 *
 * Masked, and thus left out of every comparison, is a feature
 *  - whose normaliser was not measured: rates over different things cannot be compared;
 *  - that was measured in less than PROFILE_MIN_COVER of the window's time;
 *  - whose counter ran in less than PROFILE_MIN_RATIO of the time that it was to count: below that a value is a guess. */
#ifndef CLUSTERING_PROFILE_H
#define CLUSTERING_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PROFILE_MIN_COVER 0.5
#define PROFILE_MIN_RATIO 0.02

enum { PROFILE_FEATURES_MAX = 4096 };

enum profile_kind { PROFILE_COUNT /* a delta over the interval */, PROFILE_GAUGE };

enum profile_norm {
    PROFILE_PER_INSTRUCTION,
    PROFILE_PER_CPU_TIME,
    PROFILE_PER_WORK_TIME, /* CPU time without what the JVM compiled and collected */
    PROFILE_PER_SECOND,
    PROFILE_AS_IS,
    PROFILE_NORMS
};

struct profile_feature {
    const char *name; /* borrowed */
    enum profile_kind kind;
    enum profile_norm norm;
    double unit; /* what a value or rate is multiplied by before log1p */
};

struct profile_space {
    struct profile_feature *features;
    size_t n;
    int instructions, cpu_time, compile_time, collect_time; /* places of the normalisers; -1: there is none */
};

/* Keeps the names, which must live as long. Normalisers follow from the names: `proc/cpu-time` is taken per second; everything below
 * `proc/`, `log/` and `code/`, and perf's software events per second of work, which is CPU time without the JVM's own (`jvm/…`: it compiles for
 * minutes, less and less, whatever it runs), or per CPU-second where no such features are given, as are instructions and `jvm/`
 * itself; the other counts, of the hardware, per million instructions. -EINVAL: no feature or too many, a name twice; -ENOMEM. */
int profile_space_init(struct profile_space *out, const char *const *names, const enum profile_kind *kinds, size_t n,
                       struct err *e);
void profile_space_done(struct profile_space *s);

/* "instructions", "cpu-time", "work-time", "seconds", "none". */
const char *profile_norm_name(enum profile_norm norm);
/* -1: there is no such normaliser. */
int profile_norm_find(const char *name);

/* --- a window's sums --- */

struct profile_sum {
    size_t n;
    double dt_s;  /* of all intervals together */
    double *part; /* private: PROFILE_PARTS per feature */
};

/* -ENOMEM. */
int profile_sum_init(struct profile_sum *out, const struct profile_space *s, struct err *e);
void profile_sum_clear(struct profile_sum *sum); /* the next window */
void profile_sum_done(struct profile_sum *sum);

/* One interval of dt_s seconds on one node; the arrays have one cell per feature. States are those that samples are stored with:
 * 0 ok, 1 multiplexed (value already scaled by 1 / ratio); any other: not measured. A value that is none (NaN, negative) counts as
 * not measured. An interval without length adds nothing. */
void profile_sum_add(struct profile_sum *sum, const struct profile_space *s, const double *value, const float *ratio,
                     const uint8_t *state, double dt_s);

/* --- profiles --- */

struct profile {
    size_t n;
    double *x;     /* 0 where it is masked */
    uint8_t *mask; /* 1: measured */
    size_t beyond; /* of a profile in a model's order: what else was measured, that the model does not have */
};

/* All masked. -ENOMEM. */
int profile_init(struct profile *out, size_t n, struct err *e);
void profile_done(struct profile *p);

/* -ENODATA: no interval was added; -ENOMEM. */
int profile_make(struct profile *out, const struct profile_space *s, const struct profile_sum *sum, struct err *e);

/* How many features it has measured, those beyond included. */
size_t profile_measured(const struct profile *p);

#endif
