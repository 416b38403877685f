#include "view/energy_figure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

const struct ledger_figure energy_figure_absent = {
    .j = NAN, .error_j = NAN, .coverage = NAN, .idle_w = NAN, .source = LEDGER_ABSENT
};

/* --- sums of figures of one meter --- */

struct sum {
    struct ledger_figure f;
    double known_ms, absent_ms, covered_ms; /* of the windows that have a figure; that have none; that was read */
};

static void sum_begin(struct sum *s)
{
    *s = (struct sum){ .f = energy_figure_absent };
    s->f.j = s->f.error_j = s->f.idle_w = 0;
}

static void sum_add(struct sum *s, const struct ledger_figure *f, double ms)
{
    s->f.intervals += f->intervals;
    s->f.discarded += f->discarded;
    if (!isfinite(f->j)) {
        s->absent_ms += ms;
        return;
    }
    s->f.j += f->j;
    s->f.error_j += f->error_j;
    s->f.idle_w = isnan(f->idle_w) || f->idle_w > s->f.idle_w ? f->idle_w : s->f.idle_w;
    s->f.source = f->source;
    s->f.meter = f->meter;
    s->known_ms += ms;
    s->covered_ms += isfinite(f->coverage) ? f->coverage * ms : 0;
}

/* What is not known might have gone on as the rest did. */
static void sum_end(const struct sum *s, struct ledger_figure *out)
{
    if (s->f.source == LEDGER_ABSENT) {
        uint64_t discarded = s->f.discarded;
        *out = energy_figure_absent;
        out->discarded = discarded;
        return;
    }
    *out = s->f;
    if (s->known_ms > 0)
        out->error_j += s->f.j * s->absent_ms / s->known_ms;
    double all_ms = s->known_ms + s->absent_ms;
    out->coverage = all_ms > 0 ? s->covered_ms / all_ms : (double)NAN;
}

/* --- trials and epochs --- */

static double trial_ms(const struct energy_load_trial *t)
{
    double ms = 0;
    for (size_t i = 0; i < t->n_attempts; i++)
        ms += t->attempts[i].to_ms - t->attempts[i].from_ms;
    return ms;
}

static int of_window(const struct energy_load *l, int trial, const struct meter_ops *meter,
                     const struct energy_load_span *at, struct ledger_figure *out)
{
    *out = energy_figure_absent;
    return at->to_ms > at->from_ms ? ledger_of_trial(l->ledger, trial, meter, at->from_ms, at->to_ms, out) : 0;
}

static int of_attempts(const struct energy_load *l, const struct energy_load_trial *t, const struct meter_ops *meter,
                       struct ledger_figure *out)
{
    struct sum s;
    int rc = 0;
    sum_begin(&s);
    for (size_t i = 0; rc == 0 && i < t->n_attempts; i++) {
        const struct energy_load_span *at = &t->attempts[i];
        struct ledger_figure f;
        rc = of_window(l, t->number, meter, at, &f);
        if (rc == 0)
            sum_add(&s, &f, at->to_ms - at->from_ms);
    }
    if (rc == 0)
        sum_end(&s, out);
    return rc;
}

int energy_figure_trial(const struct energy_load *l, const struct energy_load_trial *t, const struct meter_ops *meter,
                        struct ledger_figure *out)
{
    if (meter)
        return of_attempts(l, t, meter, out);
    int rc = 0;
    *out = energy_figure_absent;
    for (size_t i = 0; rc == 0 && !isfinite(out->j) && i < l->n_meters; i++)
        rc = of_attempts(l, t, l->meters[i], out);
    return rc;
}

int energy_figure_epoch(const struct energy_load *l, const struct energy_load_trial *t,
                        const struct energy_load_epoch *ep, const struct meter_ops *meter, struct ledger_figure *out)
{
    if (meter)
        return of_window(l, t->number, meter, &ep->at, out);
    int rc = 0;
    *out = energy_figure_absent;
    for (size_t i = 0; rc == 0 && !isfinite(out->j) && i < l->n_meters; i++)
        rc = of_window(l, t->number, l->meters[i], &ep->at, out);
    return rc;
}

int energy_figure_number(const struct energy_load *l, int trial, struct ledger_figure *out)
{
    const struct energy_load_trial *t = energy_load_find(l, trial);
    if (t)
        return energy_figure_trial(l, t, NULL, out);
    *out = energy_figure_absent;
    return 0;
}

/* --- the study --- */

/* `out_whole`: every trial has a figure. */
static int of_trials(const struct energy_load *l, const struct meter_ops *meter, struct ledger_figure *out,
                     bool *out_whole)
{
    struct sum s;
    int rc = 0;
    sum_begin(&s);
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        struct ledger_figure f;
        rc = of_attempts(l, &l->trials[i], meter, &f);
        if (rc == 0)
            sum_add(&s, &f, trial_ms(&l->trials[i]));
    }
    if (rc < 0)
        return rc;
    *out_whole = s.absent_ms == 0;
    sum_end(&s, out);
    return 0;
}

int energy_figure_study(const struct energy_load *l, const struct meter_ops *meter, struct ledger_figure *out)
{
    bool whole = false;
    int rc = 0;
    *out = energy_figure_absent;
    if (meter)
        return of_trials(l, meter, out, &whole);
    for (size_t i = 0; rc == 0 && !whole && i < l->n_meters; i++) {
        struct ledger_figure f;
        rc = of_trials(l, l->meters[i], &f, &whole);
        if (rc == 0 && isfinite(f.j) && (whole || !isfinite(out->j)))
            *out = f;
    }
    return rc;
}

int energy_figure_stored(struct store *s, const struct store_study *study, struct ledger_figure *out, struct err *e)
{
    struct energy_load l = { 0 };
    int rc = energy_load(&l, s, study, e);
    *out = energy_figure_absent;
    if (rc == 0 && l.n_meters > 0 && energy_figure_study(&l, NULL, out) < 0)
        rc = err_sys(e, -ENOMEM, "study '%s'", study->name);
    energy_load_done(&l);
    return rc;
}

/* --- telling --- */

bool energy_figure_same_source(const struct ledger_figure *a, const struct ledger_figure *b)
{
    return isfinite(a->j) && isfinite(b->j) && a->meter == b->meter && a->source == b->source;
}

bool energy_figure_alike(const struct ledger_figure *a, const struct ledger_figure *b)
{
    return energy_figure_same_source(a, b) && energy_figure_with_idle(a) == energy_figure_with_idle(b);
}

bool energy_figure_with_idle(const struct ledger_figure *f)
{
    return isfinite(f->j) && isnan(f->idle_w);
}

bool energy_figure_thin(const struct ledger_figure *f)
{
    return isfinite(f->j) && !(f->coverage >= ENERGY_COVERED);
}

int energy_figure_percent(const struct ledger_figure *f)
{
    double percent = 100 * f->coverage, limit = 100 * ENERGY_COVERED;
    if (energy_figure_thin(f))
        return (int)fmin(round(percent), limit - 1);
    return percent > 100 - 1e-6 ? 100 : (int)fmin(round(percent), 99);
}

const char *energy_figure_source(const struct ledger_figure *f, char out[64])
{
    if (f->source == LEDGER_ABSENT || !f->meter)
        (void)snprintf(out, 64, "%s", ledger_source_name(LEDGER_ABSENT));
    else
        (void)snprintf(out, 64, "%s (%s)", ledger_source_name(f->source), f->meter->name);
    return out;
}

const char *energy_figure_joules(double j, char out[32])
{
    static const struct {
        double of;
        const char *unit;
    } units[] = { { 1e9, "GJ" }, { 1e6, "MJ" }, { 1e3, "kJ" }, { 1, "J" } };
    if (!isfinite(j)) {
        (void)snprintf(out, 32, "-");
        return out;
    }
    size_t i = 0;
    while (units[i].of > 1 && fabs(j) < units[i].of)
        i++;
    double x = j / units[i].of;
    (void)snprintf(out, 32, "%.*f %s", fabs(x) >= 99.95 ? 0 : fabs(x) >= 9.995 ? 1 : 2, x, units[i].unit);
    return out;
}

void energy_figure_put(struct buf *b, const struct ledger_figure *f)
{
    char joules[32], source[64];
    if (!isfinite(f->j)) {
        buf_puts(b, energy_figure_source(&energy_figure_absent, source));
        return;
    }
    buf_printf(b, "%s %s", energy_figure_joules(f->j, joules), energy_figure_source(f, source));
    if (energy_figure_with_idle(f))
        buf_puts(b, ENERGY_IDLE_INCLUDED);
    if (energy_figure_thin(f))
        buf_printf(b, ", %d %% covered", isfinite(f->coverage) ? energy_figure_percent(f) : 0);
}

json_t *energy_figure_json(const struct ledger_figure *f)
{
    char source[64];
    return json_pack("{s:o, s:s, s:o}", "j", json_num(f->j), "source", energy_figure_source(f, source), "coverage",
                     json_num(f->coverage));
}
