#include "monitoring/points.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"
#include "monitoring/features.h"
#include "monitoring/line.h"

enum { NUMBER_MAX = 16, NAME_MAX_BYTES = 80 };

/* Nanoseconds of a time in ms, to the last digit that a double has. False: it is no time that a stamp can be. */
static bool stamp_of(double ms, int64_t *ns)
{
    if (!(fabs(ms) < 9e12))
        return false;
    double whole = floor(ms);
    *ns = (int64_t)whole * 1000000 + llround((ms - whole) * 1e6);
    return true;
}

/* A line that is longer than any may be is none. */
static int end_line(struct line *l, int64_t ns)
{
    int rc = line_end(l, ns);
    return rc == -EFBIG ? 0 : rc;
}

static const char *number(char out[NUMBER_MAX], int n)
{
    (void)snprintf(out, NUMBER_MAX, "%d", n);
    return out;
}

static const char *trial_number(char out[NUMBER_MAX], int trial)
{
    return trial ? number(out, trial) : NULL;
}

/* What a device or a log said, with a question mark for every byte that is no UTF-8, which readers of lines refuse. */
static void put_text(struct line *l, const char *key, const char *text)
{
    char out[METER_WHY_MAX];
    size_t n = 0, more;
    const unsigned char *p = (const unsigned char *)text, *end = p + strnlen(text, METER_WHY_MAX);
    for (; p < end; p += more ? more : 1) {
        more = utf8_len(p, end);
        if (n + (more ? more : 1) >= sizeof out)
            break;
        memcpy(out + n, more ? (const char *)p : "?", more ? more : 1);
        n += more ? more : 1;
    }
    out[n] = '\0';
    line_text(l, key, n > 0 ? out : NULL);
}

/* --- energy --- */

static int energy_line(struct buf *out, const struct points_tags *t, const char *host, int node,
                       const struct meter_ops *meter, const struct meter_reading *r, int64_t ns)
{
    char node_text[NUMBER_MAX];
    struct line l = line_begin(out, "pipetune_energy", LINE_NS);
    line_tag(&l, "host", host);
    line_tag(&l, "meter", meter->name);
    line_tag(&l, "node", number(node_text, node));
    line_tag(&l, "study", t->study);
    line_tag(&l, "user", t->user);
    line_float(&l, "value", r->value);
    line_float(&l, "error", r->error);
    line_float(&l, "from_ms", r->from_ms);
    line_float(&l, "to_ms", r->to_ms);
    line_text(&l, "state", meter_state_name(r->state));
    put_text(&l, "why", r->why);
    return end_line(&l, ns);
}

/* The measurements that stood in the database before, with their own tag. */
static int node_utilization(struct buf *out, const char *host, const struct meter_ops *meter, double value, int64_t ns)
{
    static const char *const names[][2] = { { "pdu", "pdu_power/node_utilization" },
                                            { "pcm", "pcm_power/node_utilization" } };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(meter->name, names[i][0]) == 0) {
            struct line l = line_begin(out, names[i][1], LINE_NS);
            line_tag(&l, "nodename", host);
            line_float(&l, "value", value);
            return end_line(&l, ns);
        }
    return 0;
}

int points_energy(struct buf *out, const struct points_tags *t, const char *host, int node,
                  const struct meter_ops *meter, const struct meter_reading *r)
{
    int64_t ns;
    if (!stamp_of(r->to_ms, &ns))
        return 0;
    ns += r->state; /* times in ms are hundreds of nanoseconds apart: it meets no other reading's */
    size_t before = out->len;
    int n = energy_line(out, t, host, node, meter, r, ns);
    int more = n >= 0 && r->state == METER_OK ? node_utilization(out, host, meter, r->value, ns) : 0;
    if (n >= 0 && more >= 0)
        return n + more;
    buf_cut(out, before);
    return -ENOMEM;
}

/* --- profiles --- */

/* NAME:what */
static const char *beside(char out[NAME_MAX_BYTES], const char *name, const char *what)
{
    (void)snprintf(out, NAME_MAX_BYTES, "%s:%s", name, what);
    return out;
}

static void put_reading(struct line *l, const char *name, const struct reading *r)
{
    char key[NAME_MAX_BYTES];
    if (r->state == READING_OK || r->state == READING_MULTIPLEXED)
        line_float(l, name, r->value);
    if (r->state == READING_MULTIPLEXED)
        line_float(l, beside(key, name, "ratio"), (double)r->ratio);
}

int points_profile(struct buf *out, const struct points_tags *t, const char *host, int node, const char *scope,
                   double t_ms, double dt_ms, const struct reading *v, size_t n)
{
    char node_text[NUMBER_MAX], trial_text[NUMBER_MAX];
    int64_t ns;
    if (!stamp_of(t_ms, &ns))
        return 0;
    struct line l = line_begin(out, "pipetune_profile", LINE_NS);
    line_tag(&l, "host", host);
    line_tag(&l, "node", number(node_text, node));
    line_tag(&l, "scope", scope);
    line_tag(&l, "study", t->study);
    line_tag(&l, "trial", trial_number(trial_text, t->trial));
    line_tag(&l, "user", t->user);
    for (size_t i = 0; i < n && i < FEATURES; i++)
        put_reading(&l, feature_names[i], &v[i]);
    line_float(&l, "dt_ms", dt_ms);
    line_float(&l, "t_ms", t_ms);
    return end_line(&l, ns);
}

/* --- training --- */

static struct line begin_training(struct buf *out, const char *measurement, const struct points_tags *t)
{
    char trial_text[NUMBER_MAX];
    struct line l = line_begin(out, measurement, LINE_NS);
    line_tag(&l, "host", t->host);
    line_tag(&l, "study", t->study);
    line_tag(&l, "trial", trial_number(trial_text, t->trial));
    line_tag(&l, "user", t->user);
    return l;
}

int points_epoch(struct buf *out, const struct points_tags *t, const struct points_epoch *ep)
{
    int64_t ns;
    if (!stamp_of((double)ep->end_ms, &ns))
        return 0;
    struct line l = begin_training(out, "pipetune_epoch", t);
    line_float(&l, "accuracy", ep->accuracy);
    line_float(&l, "loss", ep->loss);
    line_float(&l, "metric", ep->metric);
    line_float(&l, "seconds", ep->seconds);
    line_float(&l, "records", ep->records);
    line_float(&l, "iterations", ep->iterations);
    line_float(&l, "learning_rate", ep->learning_rate);
    line_int(&l, "epoch", ep->epoch);
    return end_line(&l, ns);
}

/* A hyperparameter or a knob: the type of each field is told by its key. */
static void put_given(struct line *l, const char *const *own, const struct points_value *v)
{
    char key[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
    bool taken = false;
    for (; own && *own; own++)
        taken |= strcmp(*own, v->name) == 0;
    (void)snprintf(name, sizeof name, "%s%s", taken ? "hyper." : "", v->name);
    if (!isnan(v->number))
        line_float(l, name, v->number);
    else if (v->text)
        put_text(l, beside(key, name, "text"), v->text);
}

int points_trial(struct buf *out, const struct points_tags *t, const struct points_trial *trial)
{
    static const char *const own[] = { "state",   "reason", "attempt", "epochs",   "begin_ms", "end_ms",
                                       "seconds", "loss",   "metric",  "accuracy", NULL };
    int64_t ns;
    if (!stamp_of(isnan(trial->end_ms) ? trial->begin_ms : trial->end_ms, &ns))
        return 0;
    struct line l = begin_training(out, "pipetune_trial", t);
    line_text(&l, "state", trial->state);
    if (trial->reason)
        put_text(&l, "reason", trial->reason);
    line_int(&l, "attempt", trial->attempt);
    line_int(&l, "epochs", trial->epochs);
    line_float(&l, "begin_ms", trial->begin_ms);
    line_float(&l, "end_ms", trial->end_ms);
    line_float(&l, "seconds", trial->seconds);
    line_float(&l, "accuracy", trial->accuracy);
    line_float(&l, "loss", trial->loss);
    line_float(&l, "metric", trial->metric);
    for (size_t i = 0; i < trial->n_hyper; i++)
        put_given(&l, own, &trial->hyper[i]);
    return end_line(&l, ns);
}

int points_setting(struct buf *out, const struct points_tags *t, double t_ms, const struct points_value *knobs,
                   size_t n)
{
    int64_t ns;
    if (!stamp_of(t_ms, &ns))
        return 0;
    struct line l = begin_training(out, "pipetune_setting", t);
    for (size_t i = 0; i < n; i++)
        put_given(&l, NULL, &knobs[i]);
    return end_line(&l, ns);
}

int points_decision(struct buf *out, const struct points_tags *t, const struct points_decision *d)
{
    int64_t ns;
    if (!stamp_of(d->t_ms, &ns))
        return 0;
    struct line l = begin_training(out, "pipetune_decision", t);
    line_text(&l, "kind", d->kind);
    if (d->reason)
        put_text(&l, "reason", d->reason);
    if (d->setting)
        put_text(&l, "setting", d->setting);
    line_float(&l, "t_s", d->t_s);
    return end_line(&l, ns);
}

/* Is its key one of the line's own, or an earlier metric's? A key that comes twice spoils the line. */
static bool is_taken(const struct points_metric *all, size_t i)
{
    static const char *const own[] = { "epoch", "iteration", "learning_rate", "loss", "records", "seconds" };
    for (size_t k = 0; k < ARRAY_LEN(own); k++)
        if (strcmp(all[i].name, own[k]) == 0)
            return true;
    for (size_t k = 0; k < i; k++)
        if (strcmp(all[i].name, all[k].name) == 0)
            return true;
    return false;
}

int points_iteration(struct buf *out, const struct points_tags *t, const struct points_iteration *it)
{
    int64_t ns;
    if (!stamp_of(it->end_ms, &ns))
        return 0;
    struct line l = begin_training(out, "pipetune_iteration", t);
    line_float(&l, "loss", it->loss);
    line_float(&l, "learning_rate", it->learning_rate);
    line_float(&l, "seconds", it->seconds);
    line_float(&l, "records", it->records);
    line_int(&l, "epoch", it->epoch);
    line_int(&l, "iteration", it->iteration);
    for (size_t i = 0; i < it->n_more; i++)
        if (!is_taken(it->more, i))
            line_float(&l, it->more[i].name, it->more[i].value);
    return end_line(&l, ns);
}

/* --- ourselves --- */

int points_self(struct buf *out, const char *host, const struct points_self *s, int64_t t_ms)
{
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        { "samples", s->samples }, { "missed", s->missed },   { "produced", s->produced },
        { "stored", s->stored },   { "spooled", s->spooled }, { "quarantined", s->quarantined },
        { "dropped", s->dropped }, { "retries", s->retries }, { "spool_bytes", s->spool_bytes },
    };
    int64_t ns;
    if (!stamp_of((double)t_ms, &ns))
        return 0;
    struct line l = line_begin(out, "pipetune_self", LINE_NS);
    line_tag(&l, "host", host);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        line_int(&l, counts[i].key, (int64_t)counts[i].value);
    line_float(&l, "cpu_s", s->cpu_s);
    line_float(&l, "rss_bytes", s->rss_bytes);
    return end_line(&l, ns);
}
