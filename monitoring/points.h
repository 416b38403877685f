/* What PipeTune writes to InfluxDB, as lines (monitoring/line): measurements, tags and fields in one place. Pure. Times are realtime; precision
 * is nanoseconds. Tags that are NULL or empty, and fields that are NAN, are left out; a point without a field is none, nor is one whose time
 * no stamp can say, or whose line would be longer than LINE_BYTES_MAX. Values, from_ms, to_ms, t_ms and dt_ms are floats in the shortest
 * digits that read back, so that what is read from the database is what was measured; stamps are made of these, to the nanosecond.
 *
 *   pipetune_energy     tags host, meter, node, study, user     fields value (J, W or s), error, from_ms, to_ms, state, why (where there is one)
 *                       time: to_ms; 1 ns later if `first`, 2 if `discarded`, 3 if `failed`: two points of one time would be merged, and an
 *                       interval may have a value and a moment at its end none. `node` is the node's number within the study; kind of
 *                       the value: by the meter
 *   pipetune_profile    tags host, node, scope, study, trial, user   a field per feature that was measured, by its name (monitoring/features),
 *                       `NAME:ratio` beside one that was multiplexed; dt_ms, t_ms. What was not measured is no field
 *   pipetune_epoch      tags host, study, trial, user           accuracy, loss, metric, seconds, records, iterations, learning_rate, epoch (integer)
 *   pipetune_iteration  tags host, study, trial, user           loss, learning_rate, seconds, records, epoch (integer), iteration (integer), and any
 *                       metric of the application by its name, the first of a name, unless it is one of these
 *   pipetune_trial      tags host, study, trial, user           at each launch and at its end: state, attempt (integer), epochs (integer), begin_ms or end_ms,
 *                       seconds, accuracy, loss, metric, reason, and every hyperparameter
 *   pipetune_setting    tags host, study, trial, user           what is in force from then on: every knob
 *   pipetune_decision   tags host, study, trial, user           kind, reason, setting (JSON), t_s (since the study's begin)
 *                       A hyperparameter or a knob that is a number is the float NAME, any other the text `NAME:text`, whatever it is called in
 *                       other studies: a field's type never changes. One that is called as a field of the line's own is `hyper.NAME`
 *   pipetune_self       tags host                               of the writer itself
 *                                                       fields as in struct points_self: cpu_s and rss_bytes floats, the rest integers; `spooled`
 *                                                       and spool_bytes are what waits in the store, by the names it had before
 *   pdu_power/node_utilization, pcm_power/node_utilization      tag nodename (host), field value: W of an outlet; J of an interval */
#ifndef MONITORING_POINTS_H
#define MONITORING_POINTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "monitoring/meter.h"
#include "monitoring/reading.h"

/* Who writes, and of what. */
struct points_tags {
    const char *host, *user, *study; /* study NULL: none */
    int trial;                       /* 0: none */
};

/* Each appends whole lines; returns how many, -ENOMEM (and then none). `node` is a number within the study, `host` the name of the machine
 * that it is about. */
int points_energy(
    struct buf *out, const struct points_tags *t, const char *host, int node, const struct meter_ops *meter,
    const struct meter_reading *r); /* and pdu_power/…, pcm_power/… where the meter is one of these and has a value */

int points_profile(struct buf *out, const struct points_tags *t, const char *host, int node, const char *scope,
                   double t_ms, double dt_ms, const struct reading *v, size_t n);

struct points_epoch {
    int epoch;
    double accuracy, loss, metric, seconds, records, iterations, learning_rate;
    int64_t end_ms;
};
int points_epoch(struct buf *out, const struct points_tags *t, const struct points_epoch *ep);

struct points_metric {
    const char *name;
    double value;
};
struct points_iteration {
    int epoch;
    int64_t iteration; /* within the trial */
    double loss, learning_rate, seconds, records;
    double end_ms;
    const struct points_metric *more;
    size_t n_more;
};
int points_iteration(struct buf *out, const struct points_tags *t, const struct points_iteration *it);

struct points_value {
    const char *name;
    double number;    /* NAN: it is none */
    const char *text; /* then */
};

struct points_trial {
    const char *state, *reason; /* reason NULL: none */
    int attempt, epochs;
    double begin_ms, end_ms; /* one of them; the other NAN */
    double seconds, accuracy, loss, metric;
    const struct points_value *hyper;
    size_t n_hyper;
};
int points_trial(struct buf *out, const struct points_tags *t, const struct points_trial *trial);

int points_setting(struct buf *out, const struct points_tags *t, double t_ms, const struct points_value *knobs,
                   size_t n);

struct points_decision {
    const char *kind, *reason, *setting; /* the last two may be NULL */
    double t_s, t_ms;
};
int points_decision(struct buf *out, const struct points_tags *t, const struct points_decision *d);

struct points_self {
    uint64_t samples, missed, produced, stored, spooled, quarantined, dropped, retries, spool_bytes;
    double cpu_s, rss_bytes;
};
int points_self(struct buf *out, const char *host, const struct points_self *s, int64_t t_ms);

#endif
