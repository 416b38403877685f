/* What the next epochs are worth: the improvement that is expected of the trial, or the point, at its last epoch, for the price of its next step alone, as
 * it may be left there. All in logarithms: most improvements are too small for anything else. */
#include <errno.h>
#include <math.h>

#include "core/rng.h"
#include "search/thaw_state.h"

#define HASTE                                                                                                          \
    0.3 /* how much cheap steps are preferred to dear ones, beyond what each step's share of the epochs makes of it */
enum { BY_RANK_EVERY = 2 };

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

/* That a point can be trained, from those that are near and could, or could not. */
static double log_feasible(const struct thaw *t, const struct unit_point *at)
{
    double good = 0.5, bad = 0;
    for (size_t i = 0; i < t->n_trials && t->n_bad > 0; i++) {
        const struct thaw_trial *o = &t->trials[i];
        if (o->bad)
            bad += thaw_close(t, at, &o->place);
        else if (o->epoch > 0)
            good += thaw_close(t, at, &o->place);
    }
    return 2 * log(good / (good + bad));
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

/* What all entries are asked with. */
struct asked {
    double aim;   /* the best score at the last epoch: of those that came there, and as it is expected of others */
    double start; /* epochs that starting or resuming costs */
};

/* What does not keep a constraint is as good as it told, and no aim. */
static bool counts(const struct thaw *t, uint64_t trial)
{
    return !(t->cfg.constrained && t->trials[trial].bad);
}

static struct asked asked(const struct thaw *t)
{
    struct asked a = { .aim = INFINITY, .start = start_epochs(t) };
    double worst = -INFINITY;
    for (size_t i = 0; i < t->n_trials; i++)
        if (t->trials[i].entry >= 0 && t->trials[i].epoch > 0 && t->trials[i].being != THAW_OVER && counts(t, i))
            a.aim = fmin(a.aim, t->field.mean[(size_t)(t->trials[i].entry + 1) * (size_t)t->times.n - 1]);
    for (size_t i = 0; i < t->n_log; i++) {
        worst = fmax(worst, t->log[i].score);
        if (counts(t, t->log[i].trial) && (a.aim == INFINITY || t->log[i].step == t->times.n - 1))
            a.aim = fmin(a.aim, t->log[i].score);
    }
    if (a.aim == INFINITY && worst > -INFINITY) /* nothing counts: any that does is better */
        a.aim = worst;
    return a;
}

static double entry_worth(const struct thaw *t, const struct asked *a, size_t entry, int step, int epoch)
{
    size_t last = (entry + 1) * (size_t)t->times.n - 1;
    int until = t->stepwise ? t->step_epoch[step] : t->cfg.epochs;
    double price = log(until - epoch + a->start) + t->field.entries[entry].log_price;
    return log_improvement(t->field.mean[last], t->field.var[last], a->aim) - price;
}

static double trial_worth(const struct thaw *t, const struct asked *a, uint64_t id)
{
    const struct thaw_trial *tr = &t->trials[id];
    if (tr->entry < 0 || tr->step >= t->times.n)
        return -INFINITY;
    return entry_worth(t, a, (size_t)tr->entry, tr->step, tr->epoch);
}

double thaw_worth(const struct thaw *t, uint64_t id)
{
    struct asked a = asked(t);
    a.start = 0;
    return id < t->n_trials ? trial_worth(t, &a, id) : -INFINITY;
}

double thaw_best_paused(const struct thaw *t, uint64_t *out_id)
{
    double most = -INFINITY;
    struct asked a = asked(t);
    for (size_t i = 0; i < t->n_trials; i++) {
        if (t->trials[i].being != THAW_PAUSED)
            continue;
        double worth = trial_worth(t, &a, i);
        if (worth > most) {
            most = worth;
            *out_id = i;
        }
    }
    return most;
}

double thaw_best_fresh(const struct thaw *t, struct point *out)
{
    double most = -INFINITY;
    struct asked a = asked(t);
    for (size_t i = 0; i < t->field.n_entries; i++) {
        const struct thaw_entry *e = &t->field.entries[i];
        if (e->trial >= 0)
            continue;
        double worth = entry_worth(t, &a, i, 0, 0);
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
    double sum = 0, n = 0;
    struct asked a = asked(t);
    for (size_t i = 0; i < t->field.n_entries; i++) {
        if (t->field.entries[i].trial >= 0)
            continue;
        sum += exp(entry_worth(t, &a, i, 0, 0));
        n++;
    }
    return n > 0 ? log(sum / n) : -INFINITY;
}

/* --- which step next ---------------------------------------------------------------------------------------------------- */

/* Of each step: the epochs that all trials spent on it, those to come of them that run included; and who is to go there next. */
struct stage {
    double spent, worth;
    uint64_t id;
};

static double length_of(const struct thaw *t, int step)
{
    return t->step_epoch[step] - (step > 0 ? t->step_epoch[step - 1] : 0);
}

static void count_trial(const struct thaw *t, struct stage *stages, const struct thaw_trial *tr)
{
    for (int s = 0; s < tr->step + (tr->being == THAW_RUNS) && s < t->times.n; s++)
        stages[s].spent += length_of(t, s);
}

/* The steps are taken by turns: one by what is expected, one by rank alone, as curves may do what nothing foretold. */
static bool is_by_rank(const struct thaw *t)
{
    size_t taken = 0;
    for (size_t i = 0; i < t->n_trials; i++)
        taken += t->trials[i].step > 1 ? (size_t)t->trials[i].step - 1 : 0;
    return taken % BY_RANK_EVERY == 0;
}

static void set_stages(const struct thaw *t, struct stage *stages, bool by_rank)
{
    struct asked a = asked(t);
    for (int s = 0; s < t->times.n; s++)
        stages[s] = (struct stage){ .worth = -INFINITY };
    for (size_t i = 0; i < t->n_trials; i++) {
        const struct thaw_trial *tr = &t->trials[i];
        count_trial(t, stages, tr);
        if (tr->being != THAW_PAUSED || tr->step >= t->times.n)
            continue;
        struct stage *stage = &stages[tr->step];
        double worth = by_rank ? -tr->value : trial_worth(t, &a, i);
        if (worth > stage->worth) {
            stage->worth = worth;
            stage->id = i;
        }
    }
}

bool thaw_choose(const struct thaw *t, double fresh, uint64_t *out_id)
{
    struct stage stages[THAW_STEPS_MAX];
    bool by_rank = is_by_rank(t);
    double most = -INFINITY;
    *out_id = THAW_NO_ID;
    set_stages(t, stages, by_rank);
    stages[0].worth = fresh;
    stages[0].id = THAW_NO_ID;
    for (int s = 0; s < t->times.n; s++) {
        const struct stage *stage = &stages[s];
        double length = length_of(t, s), worth = -log(stage->spent + length);
        if (stage->worth == -INFINITY)
            continue;
        worth += by_rank ? 0 : stage->worth + (1 - HASTE) * log(length);
        if (worth > most) {
            most = worth;
            *out_id = stage->id;
        }
    }
    return most > -INFINITY;
}

double thaw_chance(const struct thaw *t, uint64_t id)
{
    const struct thaw_trial *tr = &t->trials[id];
    const double trifle = 0.02;
    if (tr->entry < 0)
        return 0;
    size_t last = (size_t)(tr->entry + 1) * (size_t)t->times.n - 1;
    double z = (asked(t).aim - trifle - t->field.mean[last]) / sqrt(fmax(t->field.var[last], 1e-12));
    return 0.5 * erfc(-z * M_SQRT1_2);
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
        v.expected = sign * thaw_unscored(t, t->field.mean[last]);
    }
    return v;
}
