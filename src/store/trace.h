/* Traces: recorded runs in an HDF5 file, for replays and for people's own tools.
 *
 *     /meta                    attribute version = 1
 *     /meta/features           F strings (UTF-8): the 58 events in their order, then everything else that was sampled
 *     /runs/0, /runs/1, …      attributes model, dataset, system, hyper, status, startup_s; `results` where a source gives
 *                              figures that have no other place; system, hyper and results are JSON objects as text
 *     /runs/<n>/epochs         table (compound, f64): start_s duration_s loss accuracy energy_j iterations records
 *     /runs/<n>/windows        optional table: epoch (i32), setting (JSON text), then the columns of `epochs`
 *     /runs/<n>/samples/       optional: t_ns i64 [n], node u16 [n], value f64 [n][F], state u8 [n][F], ratio f32 [n][F]
 *     /tuner                   optional: attributes study, policy
 *     /tuner/log               strings: all that the policy was told, one line of core/tuner_log.h each
 *     /tuner/decisions         table: seq (i64), trial (i32, 0: the study), t_s (f64), kind, setting, reason (strings; setting
 *                              as JSON, empty: none)
 *
 * A number that was not recorded is NaN. start_s counts from the submission, or from epoch 1 when that is not known. Row k - 1 of
 * `epochs` is epoch k. A window is a stretch of training steps under one setting, within one epoch. */
#ifndef STORE_TRACE_H
#define STORE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strv.h"
#include "core/timeline.h"

/* What reading accepts; a file beyond these is refused. */
enum {
    TRACE_RUNS_MAX = 100000,
    TRACE_ROWS_MAX = 4000000, /* of all tables together */
    TRACE_FEATURES_MAX = 4096,
    TRACE_CELLS_MAX = 1 << 26, /* n × F of all runs together */
    TRACE_TEXT_MAX = 65536,    /* of one string */
    TRACE_FILE_MAX = 1 << 30,  /* bytes */
};

enum trace_state { /* of a sample; numbers are stored */
                   TRACE_OK,
                   TRACE_MULTIPLEXED, /* scaled by 1 / ratio */
                   TRACE_NOT_COUNTED,
                   TRACE_UNSUPPORTED,
                   TRACE_DENIED,
                   TRACE_NO_FD,
                   TRACE_ABSENT = 255, /* nobody sampled this feature in this interval */
};

struct trace_epoch {
    double start_s, duration_s, loss, accuracy, energy_j, iterations, records;
};

struct trace_window {
    int epoch;
    char *setting; /* owned; JSON */
    struct trace_epoch at;
};

struct trace_samples { /* row-major, F = the trace's features.n */
    size_t n;
    int64_t *t_ns;
    uint16_t *node;
    double *value; /* NaN unless ok or multiplexed */
    uint8_t *state;
    float *ratio; /* running / enabled, 0…1 */
};

struct trace_run {
    char *model, *dataset;          /* owned; never NULL in a trace that was read */
    char *system, *hyper, *results; /* owned; JSON objects; NULL: {} */
    enum timeline_status status;
    double startup_s;
    struct trace_epoch *epochs;
    size_t n_epochs;
    struct trace_window *windows;
    size_t n_windows;
    struct trace_samples samples;
};

struct trace_decision {
    int64_t seq;
    int trial;                     /* number, 0: the study */
    double t_s;                    /* since the study was created */
    char *kind, *setting, *reason; /* owned; "" where there is none */
};

/* What the policy of a study was told, and all that was decided in it: what `replay decisions` needs. */
struct trace_tuner {
    char *policy, *study; /* owned; NULL: the trace has nothing of this */
    struct strv log;      /* lines without their ends */
    struct trace_decision *decisions;
    size_t n_decisions;
};

struct trace {
    struct strv features;
    struct trace_run *runs;
    size_t n, cap;
    struct trace_tuner tuner;
};

void trace_done(struct trace *t);

/* Adds an empty run (zeroed, startup_s NaN) and returns it; NULL: memory. Valid until the next add. */
struct trace_run *trace_add(struct trace *t);

/* An epoch or window of which nothing is known. */
struct trace_epoch trace_no_epoch(void);

/* The 58 events as the features of an empty trace; whoever samples more adds it behind. -ENOMEM. */
int trace_default_features(struct trace *t);

/* Allocates n samples, every cell absent, with the trace's features. -ENOMEM. */
int trace_samples_init(struct trace_samples *s, size_t n, size_t features);

/* Text as a name that a trace can hold: what is no UTF-8 or not printable becomes '_'. NULL: memory. */
char *trace_name(const char *text, size_t len);

/* Appends the timeline's runs to the trace. -ENOMEM. */
int trace_add_timeline(struct trace *t, const struct timeline *from, struct err *e);

/* Appends the trace's runs to the timeline: cores and memory come from `system`, batch from the first key of `hyper` that begins
 * with "batch", log from `results`. What is missing is 0 or NaN.
 *
 * In a timeline an epoch stands for one setting. The setting of a run may have changed while it trained; `system` is the one that
 * it ended with. So where a run has windows, an epoch of it counts only when it has some, their settings have no value that
 * differs from `system`'s, and they hold nine tenths of the epoch's records; the others' durations become NaN.
 *
 * Left out are runs that say nothing of a setting: complete ones whose epoch 1 does not count (it was trained under several
 * settings, or by another attempt), and recorded attempts (`results` has an "outcome") that were cut short or still run: to
 * be interrupted is not to be infeasible. Returns how many; -ENOMEM; -EPROTO: a JSON text that is none. */
int trace_to_timeline(struct timeline *out, const struct trace *t, struct err *e);

/* Writes a new file or replaces the old one, atomically. -errno, -EIO for what HDF5 says. */
int trace_write(const struct trace *t, const char *path, struct err *e);

/* Reads a file, whoever wrote it. A child process with limits on memory and time does it and hands the result over: HDF5 can break
 * the memory of whoever reads a damaged file. Blocks: not for the loop. *out is untouched on failure.
 * -EPROTO: no trace, damaged, or beyond the limits; -errno of opening it; -ENOMEM. */
int trace_read(struct trace *out, const char *path, struct err *e);

/* The same in this process: for files that one has just written, and for the child. */
int trace_read_here(struct trace *out, const char *path, struct err *e);

#endif
