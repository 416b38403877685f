/* What the next epochs are worth. A trial, or a point, may be taken to any later step: of these that counts which brings the most expected improvement
 * for its price. All in logarithms: most improvements are too small for anything else. */
#include <errno.h>
#include <math.h>

#include "core/rng.h"
#include "search/thaw_state.h"

#define MARGIN 0.3 /* normed: what is better by less is not looked for, or all goes into small gains that are certain */

/* log of the expected part of a normal value that lies below `best`. */
static double log_improvement(double mean, double var, double best)
{
    double sd = sqrt(fmax(var, 1e-12)), z = (best - mean) / sd;
    if (z > -6) {
        double density = exp(-0.5 * z * z) * 0.3989422804014327;
        return log(sd * (density + z * 0.5 * erfc(-z * M_SQRT1_2)));
    }
    return log(sd) - 0.5 * z * z - 0.9189385332046727 -
           2 * log(-z); /* its series, where the difference would be nothing */
}

/* Whether trials can run may hang on other hyperparameters than how well they do: all count alike. */
static double close_to(const struct thaw *t, const struct unit_point *a, const struct unit_point *b)
{
    double sum = 0, reach = 0.15 * 0.15 * (double)t->places.n;
    for (size_t i = 0; i < t->places.n; i++) {
        double d = fmin(1, fabs(a->u[i] - b->u[i]));
        sum += d * d;
    }
    return exp(-0.5 * sum / reach);
}

/* That a point can be trained, from those that are near and could, or could not. */
static double log_feasible(const struct thaw *t, const struct unit_point *at)
{
    double good = 0.5, bad = 0;
    for (size_t i = 0; i < t->n_trials && t->n_bad > 0; i++) {
        const struct thaw_trial *o = &t->trials[i];
        if (o->bad)
            bad += close_to(t, at, &o->place);
        else if (o->epoch > 0)
            good += close_to(t, at, &o->place);
    }
    return 2 * log(good / (good + bad));
}

/* From step `from` on, `epoch` epochs being paid; starting or resuming costs `start` epochs besides. */
static double entry_worth(const struct thaw *t, size_t entry, int from, int epoch, double start)
{
    const struct thaw_field *f = &t->field;
    const double *mean = f->mean + entry * (size_t)t->times.n, *var = f->var + entry * (size_t)t->times.n;
    double most = -INFINITY;
    for (int s = t->stepwise ? from : t->times.n - 1; s < t->times.n; s++) {
        double price = log(t->step_epoch[s] - epoch + start) + f->entries[entry].log_price;
        most = fmax(most, log_improvement(mean[s], var[s], t->best - MARGIN) - price);
    }
    return most;
}

/* What a start takes, in epochs, as it was measured; where it was not, the first epoch of a trial took longer by so much. */
static double start_epochs(const struct thaw *t)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < t->n_trials; i++) {
        const struct thaw_trial *o = &t->trials[i];
        double later = (o->cost - o->cost_1) / (o->epoch - o->epoch_1);
        double start = o->start > 0 ? o->start / later : o->epoch_1 == 1 ? o->cost_1 / later - 1 : (double)NAN;
        if (o->epoch > o->epoch_1 && later > 0 && isfinite(later) && !isnan(start)) {
            sum += fmin(5, fmax(0, start));
            n++;
        }
    }
    return n > 0 ? sum / n : 0;
}

static double trial_worth(const struct thaw *t, uint64_t id, double start)
{
    const struct thaw_trial *tr = &t->trials[id];
    if (tr->entry < 0 || tr->step >= t->times.n)
        return -INFINITY;
    return entry_worth(t, (size_t)tr->entry, tr->step, tr->epoch, start);
}

double thaw_worth(const struct thaw *t, uint64_t id)
{
    return id < t->n_trials ? trial_worth(t, id, 0) : -INFINITY;
}

double thaw_best_paused(const struct thaw *t, uint64_t *out_id)
{
    double most = -INFINITY, start = start_epochs(t);
    for (size_t i = 0; i < t->n_trials; i++) {
        if (t->trials[i].being != THAW_PAUSED)
            continue;
        double worth = trial_worth(t, i, start);
        if (worth > most) {
            most = worth;
            *out_id = i;
        }
    }
    return most;
}

double thaw_best_fresh(const struct thaw *t, struct point *out)
{
    double most = -INFINITY, start = start_epochs(t);
    for (size_t i = 0; i < t->field.n_entries; i++) {
        const struct thaw_entry *e = &t->field.entries[i];
        if (e->trial >= 0)
            continue;
        double worth = entry_worth(t, i, 0, 0, start);
        if (worth > most)
            worth += log_feasible(t, &e->place);
        if (worth > most) {
            most = worth;
            *out = e->point;
        }
    }
    return most;
}

double thaw_usual_fresh(const struct thaw *t)
{
    double sum = 0, n = 0, start = start_epochs(t);
    for (size_t i = 0; i < t->field.n_entries; i++) {
        if (t->field.entries[i].trial >= 0)
            continue;
        sum += exp(entry_worth(t, i, 0, 0, start));
        n++;
    }
    return n > 0 ? log(sum / n) : -INFINITY;
}

/* How many came to the step, and how many of these were better than the trial. */
static size_t rank_at(const struct thaw *t, uint64_t id, int step, size_t *out_better)
{
    size_t n = 0;
    double value = NAN;
    for (size_t i = 0; i < t->n_log; i++)
        if (t->log[i].step == step && t->log[i].trial == id)
            value = t->log[i].value;
    *out_better = 0;
    for (size_t i = 0; i < t->n_log; i++) {
        const struct thaw_log *l = &t->log[i];
        if (l->step != step)
            continue;
        n++;
        *out_better += l->value < value || (l->value == value && l->trial < id);
    }
    return n;
}

int thaw_next_by_rank(const struct thaw *t, uint64_t *out_id)
{
    for (int step = t->times.n - 1; step > 0; step--) {
        double ratio = (double)t->step_epoch[step] / t->step_epoch[step - 1];
        for (size_t i = 0; i < t->n_trials; i++) {
            const struct thaw_trial *tr = &t->trials[i];
            size_t better;
            if (tr->being != THAW_PAUSED || tr->step != step)
                continue;
            size_t n = rank_at(t, i, step - 1, &better);
            if ((double)better + 1 > (double)n / ratio)
                continue;
            *out_id = i;
            return t->step_epoch[step] - tr->epoch;
        }
    }
    return 0;
}

uint64_t thaw_epochs(const struct thaw *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n_trials; i++)
        n += (uint64_t)t->trials[i].epoch;
    return n;
}

double thaw_chance(const struct thaw *t, uint64_t id)
{
    const struct thaw_trial *tr = &t->trials[id];
    double most = 0, trifle = 0.02;
    if (tr->entry < 0)
        return 0;
    for (int s = tr->step; s < t->times.n; s++) {
        size_t c = (size_t)tr->entry * (size_t)t->times.n + (size_t)s;
        double z = (t->best - trifle - t->field.mean[c]) / sqrt(fmax(t->field.var[c], 1e-12));
        most = fmax(most, 0.5 * erfc(-z * M_SQRT1_2));
    }
    return most;
}

int thaw_suppose(struct thaw *t, uint64_t but)
{
    if (t->builds == 0)
        return 0;
    if (thaw_field_reserve(t, 0, t->field.n_rows + thaw_running(t)) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_trials && t->field.n_supposed < THAW_SUPPOSED_MAX; i++) {
        const struct thaw_trial *tr = &t->trials[i];
        if (tr->being == THAW_RUNS && i != but && tr->step < t->times.n)
            thaw_field_suppose(t, i, t->stepwise ? tr->step : t->times.n - 1);
    }
    return 0;
}

void thaw_unsuppose(struct thaw *t)
{
    thaw_field_unsuppose(t);
}

int thaw_draw(struct thaw *t, struct point *out)
{
    return thaw_draw_new(t, out) ? 1 : -ENODATA;
}

struct thaw_view thaw_view(const struct thaw *t, uint64_t id)
{
    const struct thaw_trial *tr = &t->trials[id];
    double sign = t->cfg.maximise ? -1 : 1, best = INFINITY;
    for (size_t i = 0; i < t->n_log; i++)
        best = fmin(best, t->log[i].value);
    for (size_t i = 0; i < t->n_trials; i++)
        best = fmin(best, t->trials[i].value);
    struct thaw_view v = { .epoch = tr->epoch, .value = sign * tr->value, .best = sign * best, .expected = NAN };
    if (tr->entry >= 0) {
        size_t last = (size_t)(tr->entry + 1) * (size_t)t->times.n - 1;
        v.expected = sign * thaw_unwarped(&t->warp, t->field.mean[last]);
    }
    return v;
}
