#include "live/aims.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/own.h"
#include "live/energy.h"
#include "live/study.h"
#include "store/running.h"

/* When an attempt ran. */
struct stretch {
    int64_t from_ms, to_ms;
};

struct counting {
    struct study *s;
    struct stretch *v;
    size_t n, cap;
    int slots; /* of the trial whose attempts these are */
    struct err *e;
};

static bool has_budget(const struct aim *a)
{
    return a->seconds > 0 || a->joules > 0 || a->epochs > 0 || a->launches > 0 || a->price > 0;
}

static void close_study(struct study *s)
{
    s->sched.closed = s->aims.why[0] != '\0';
}

/* --- what earlier drivers have spent --- */

static int count_epoch(void *ctx, const struct store_epoch *row)
{
    struct counting *c = ctx;
    (void)row;
    c->s->aims.spent.epochs++;
    return 0;
}

/* One that still runs is counted until now: from then on all time is. */
static int count_attempt(void *ctx, const struct store_attempt *row)
{
    struct counting *c = ctx;
    struct stretch *grown = array_more(c->v, c->n, &c->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    c->v = grown;
    int64_t end = row->ended_ms > 0 ? row->ended_ms : running_now_ms(row);
    c->v[c->n++] = (struct stretch){ row->started_ms, end };
    c->s->aims.spent.launches++;
    c->s->aims.spent.core_seconds +=
        (double)(end - row->started_ms) / 1000 * (row->cores > 0 ? row->cores : (double)c->slots);
    return 0;
}

static int count_trial(void *ctx, const struct store_trial *row)
{
    struct counting *c = ctx;
    struct aims *a = &c->s->aims;
    c->slots = row->slots;
    a->reached = (!row->violates && aim_is_reached(&a->aim, row->metric, a->why)) || a->reached;
    int rc = store_epochs(c->s->store, row->id, count_epoch, c, c->e);
    return rc < 0 ? rc : store_attempts(c->s->store, row->id, count_attempt, c, c->e);
}

static int by_begin(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return (x->from_ms > y->from_ms) - (x->from_ms < y->from_ms);
}

/* Seconds in which any of them ran. */
static double union_s(struct stretch *v, size_t n)
{
    int64_t sum = 0, until = INT64_MIN;
    if (n > 0)
        qsort(v, n, sizeof *v, by_begin);
    for (size_t i = 0; i < n; i++) {
        int64_t from = v[i].from_ms > until ? v[i].from_ms : until;
        if (v[i].to_ms > from)
            sum += v[i].to_ms - from;
        until = v[i].to_ms > until ? v[i].to_ms : until;
    }
    return (double)sum / 1000;
}

int aims_open(struct study *s, struct err *e)
{
    const struct config *c = &s->plan->cfg;
    struct counting counting = { .s = s, .e = e };
    const struct expense no_more = { 0 };
    s->aims = (struct aims){ .aim = { .target = c->target,
                                      .maximise = config_maximise(c),
                                      .seconds = c->budget_seconds,
                                      .joules = c->budget_joules,
                                      .epochs = c->budget_epochs,
                                      .launches = c->budget_launches,
                                      .price = c->budget_price,
                                      .per_core_hour = c->price_per_core_hour,
                                      .per_kwh = c->price_per_kwh },
                             .opened_ms = clock_boot_ms(),
                             .counted_ms = clock_boot_ms() };
    if (!has_budget(&s->aims.aim) && isnan(s->aims.aim.target))
        return 0;
    int rc = store_trials(s->store, s->id, 0, count_trial, &counting, e);
    if (rc == -ENOMEM)
        rc = err_sys(e, rc, "study '%s'", s->name);
    s->aims.spent.seconds = union_s(counting.v, counting.n);
    free(counting.v);
    if (rc == 0 && !s->aims.why[0])
        (void)aim_is_spent(&s->aims.aim, &s->aims.spent, &no_more, s->aims.why);
    close_study(s);
    return rc;
}

/* --- what this one spends --- */

/* NAN: nothing is measured. */
static double joules_of_all(const struct study *s)
{
    double sum = NAN;
    for (int i = 1; s->energy && i <= s->sched.made; i++) {
        double j = energy_trial_j(s->energy, i);
        sum = isnan(j) ? sum : isnan(sum) ? j : sum + j;
    }
    return sum;
}

/* CPUs that a trial has in force: as they were read back, else as it was launched. */
static double cores_of(const struct study_trial *t)
{
    int n = 1;
    for (const char *p = t->cpus; p && (p = strchr(p, ',')); p++)
        n++;
    return t->cores > 0 ? t->cores : t->cpus ? n : t->row.slots;
}

static double cores_in_force(const struct study *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_open; i++) {
        const struct store_attempt *a = s->open_trials[i]->attempt;
        sum += a && a->pid > 0 ? cores_of(s->open_trials[i]) : 0;
    }
    return sum;
}

void aims_tick(struct study *s)
{
    int64_t now = clock_boot_ms();
    if (s->aims.aim.price > 0)
        s->aims.spent.core_seconds += (double)(now - s->aims.counted_ms) / 1000 * cores_in_force(s);
    s->aims.counted_ms = now;
}

static struct expense spent_now(struct study *s)
{
    const struct aim *a = &s->aims.aim;
    bool joules = a->joules > 0 || (a->price > 0 && a->per_kwh > 0);
    aims_tick(s);
    struct expense now = s->aims.spent;
    now.seconds += (double)(clock_boot_ms() - s->aims.opened_ms) / 1000;
    now.joules = joules ? joules_of_all(s) : (double)NAN;
    return now;
}

void aims_launched(struct study *s)
{
    struct aim launches = { .target = NAN, .launches = s->aims.aim.launches };
    const struct expense no_more = { 0 };
    s->aims.spent.launches++;
    if (!s->aims.why[0])
        s->aims.by_launches = aim_is_spent(&launches, &s->aims.spent, &no_more, s->aims.why);
    close_study(s);
}

void aims_not_launched(struct study *s)
{
    s->aims.spent.launches--;
    if (s->aims.by_launches)
        s->aims.why[0] = '\0';
    s->aims.by_launches = false;
    close_study(s);
}

/* One more of each that runs, at what this trial's have cost so far. */
static struct expense next_epoch(const struct study *s, const struct told *told)
{
    size_t running = sched_running(&s->sched);
    double n = told->epoch > 0 ? told->epoch : 1;
    double seconds = isnan(told->seconds) ? 0 : told->seconds / n;
    return (struct expense){ .seconds = seconds,
                             .core_seconds = seconds * cores_in_force(s),
                             .joules = told->joules / n * (double)running,
                             .epochs = (int64_t)running };
}

void aims_trained(struct study *s)
{
    s->aims.spent.epochs++;
}

/* Launches that are used up end nothing that runs. */
static bool is_enough(struct study *s, const struct told *told, char why[AIM_WHY_MAX])
{
    struct aims *a = &s->aims;
    struct aim running = a->aim;
    struct expense now = spent_now(s), next = next_epoch(s, told);
    running.launches = 0;
    if (a->reached)
        (void)snprintf(why, AIM_WHY_MAX, "%s", a->why);
    a->reached = a->reached || aim_is_reached(&running, told->value, why);
    return a->reached || aim_is_spent(&running, &now, &next, why);
}

int aims_told(struct study *s, const struct store_trial *t, const struct told *told, struct search_answer *out,
              struct err *e)
{
    struct aims *a = &s->aims;
    char why[AIM_WHY_MAX];
    if (told->kind != TOLD_EPOCH || (!has_budget(&a->aim) && isnan(a->aim.target)))
        return 0;
    if (!is_enough(s, told, why))
        return 0;
    out->verdict = SEARCH_STOP;
    (void)snprintf(out->why, sizeof out->why, "%s", why);
    if (a->why[0])
        return 0;
    (void)snprintf(a->why, sizeof a->why, "%s", why);
    close_study(s);
    return study_decide(s, t->number, "close", NULL, e, "the study ends: %s", why);
}
