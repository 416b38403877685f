#include "search/search_replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/own.h"
#include "core/sched.h"
#include "search/curves_front.h"

/* A trial, by its id. */
struct played {
    struct point point;
    int epoch; /* so many are complete */
    bool running;
    struct curve_epoch next; /* while it runs: what comes of the epoch under way, */
    double ends_at;          /* when */
    double seconds, joules;
};

struct player {
    const struct curve_source *from;
    const struct search_replay_cfg *cfg;
    struct search_replay_result *out;
    struct search search;
    struct sched sched;
    struct played *v;
    size_t n, cap;
    double now, spent, best; /* best: of the epochs so far; NAN: there was none */
    size_t marks;            /* of cfg->at, so many are passed */
    bool reached;            /* the target */
    struct err *e;
};

/* Trials are counted from 1 by the scheduler. */
static int number_of(uint64_t id)
{
    return (int)id + 1;
}

static double cost_of(const struct player *p, const struct played *t)
{
    return p->cfg->seconds ? t->next.seconds : 1;
}

/* --- what it came to --- */

static void pass_mark(struct player *p)
{
    double best = isnan(p->best) ? p->from->worst : p->best;
    double range = p->from->scale.median - p->from->scale.best; /* its sign is the direction's */
    p->out->best[p->marks] += best;
    p->out->regret[p->marks] += range != 0 ? (best - p->from->scale.best) / range : (double)NAN;
    if (p->from->volume)
        p->out->hypervolume[p->marks] += p->from->volume(p->from->ctx);
    p->marks++;
}

static void count_epoch(struct player *p, const struct played *t, double value)
{
    double cost = cost_of(p, t);
    while (p->marks < p->cfg->n_at && p->cfg->at[p->marks] < p->spent + cost)
        pass_mark(p);
    p->spent += cost;
    p->out->epochs++;
    p->best = p->from->maximise ? fmax(p->best, value) : fmin(p->best, value);
    bool reaches = p->from->maximise ? p->best >= p->cfg->target : p->best <= p->cfg->target;
    if (reaches && !p->reached)
        p->out->to_target += p->spent;
    p->reached = p->reached || reaches;
}

/* --- trials --- */

static int begin_epoch(struct player *p, struct played *t)
{
    int rc = p->from->epoch(p->from->ctx, &t->point, t->epoch + 1, &t->next, p->e);
    if (rc == 0)
        t->ends_at = p->now + cost_of(p, t);
    return rc;
}

static int start(struct player *p, int number)
{
    struct played *t = &p->v[number - 1];
    sched_started(&p->sched, number);
    t->running = true;
    return begin_epoch(p, t);
}

static int add(struct player *p, const struct proposal *of)
{
    struct played *grown = array_more(p->v, p->n, &p->cap, sizeof *grown);
    struct sched_trial t = { .number = number_of(of->id), .state = TRIAL_WAITING };
    if (!grown)
        return -ENOMEM;
    p->v = grown;
    p->v[p->n++] = (struct played){ .point = of->point };
    p->out->trials++;
    return sched_add(&p->sched, &t);
}

static int ask(struct player *p)
{
    struct proposal of;
    int rc = search_ask(&p->search, sched_may_add(&p->sched), &of);
    if (rc == -ENOMEM)
        return rc;
    sched_asked(&p->sched, rc);
    if (rc != 1)
        return 0;
    p->out->decisions++;
    if (!of.again)
        return add(p, &of);
    sched_resume(&p->sched, number_of(of.id));
    return 0;
}

static int start_all(struct player *p)
{
    for (;;) {
        int trial, rc = 0;
        switch (sched_next(&p->sched, NULL, NULL, &trial)) {
        case SCHED_START: rc = start(p, trial); break;
        case SCHED_ASK: rc = ask(p); break;
        case SCHED_WAIT:
        case SCHED_END: return 0;
        }
        if (rc < 0)
            return rc;
    }
}

/* Seconds that the budget does not count are no price. */
static bool is_told(const struct player *p)
{
    const struct goals *g = p->cfg->search.goals;
    return p->cfg->seconds || (g && goals_have(g, GOAL_SECONDS));
}

static int tell(struct player *p, const struct played *t, enum told_kind kind, struct search_answer *out)
{
    struct told_metric metric = { p->from->metric, t->next.value };
    struct told told = { .id = (uint64_t)(t - p->v),
                         .kind = kind,
                         .epoch = t->epoch,
                         .value = t->next.value,
                         .metrics = &metric,
                         .n_metrics = 1,
                         .seconds = is_told(p) ? t->seconds : (double)NAN,
                         .joules = t->joules };
    int rc = search_tell(&p->search, &told, out);
    if (rc == 0 && out->wake)
        sched_woken(&p->sched);
    return rc;
}

static int end(struct player *p, struct played *t, enum outcome outcome)
{
    struct search_answer none;
    t->running = false;
    int rc = 0;
    if (outcome == OUTCOME_FINISHED && p->from->finished)
        p->from->finished(p->from->ctx, &t->point);
    if (outcome != OUTCOME_PAUSED)
        rc = tell(p, t, outcome == OUTCOME_FINISHED ? TOLD_FINISHED : TOLD_STOPPED, &none);
    (void)sched_ended(&p->sched, number_of((uint64_t)(t - p->v)), outcome);
    return rc;
}

static int complete_epoch(struct player *p, struct played *t)
{
    struct search_answer answer;
    p->now = t->ends_at;
    count_epoch(p, t, t->next.value);
    t->seconds += t->next.seconds;
    t->joules += t->next.joules;
    t->epoch++;
    p->out->decisions++;
    int rc = tell(p, t, TOLD_EPOCH, &answer);
    if (rc < 0)
        return rc;
    if (t->epoch == p->from->epochs)
        return end(p, t, OUTCOME_FINISHED);
    if (answer.verdict != SEARCH_GO_ON)
        return end(p, t, answer.verdict == SEARCH_PAUSE ? OUTCOME_PAUSED : OUTCOME_STOPPED);
    return begin_epoch(p, t);
}

/* The first whose epoch ends; of equals the oldest. NULL: none runs. */
static struct played *next_end(const struct player *p)
{
    struct played *first = NULL;
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].running && (!first || p->v[i].ends_at < first->ends_at))
            first = &p->v[i];
    return first;
}

static int play(struct player *p)
{
    for (;;) {
        int rc = start_all(p);
        struct played *t = next_end(p);
        if (rc < 0 || !t || p->spent + cost_of(p, t) > p->cfg->budget)
            return rc;
        rc = complete_epoch(p, t);
        if (rc < 0)
            return rc;
    }
}

/* --- earlier studies --- */

static int learn(struct player *p)
{
    const struct search_replay_cfg *cfg = p->cfg;
    struct prior *prior;
    if (cfg->n_earlier == 0)
        return 0;
    int rc = prior_new(&prior, p->from->space, &p->search.cfg);
    for (size_t i = 0; rc == 0 && i < cfg->n_earlier; i++) {
        struct prior_taken taken;
        rc = prior_learn(prior, cfg->earlier[i].v, cfg->earlier[i].n, &taken);
        if (rc == 0 && taken.common == 0)
            rc = err_set(p->e, -EINVAL, "the earlier table has no hyperparameter that this one has, too");
    }
    if (rc == -ENOMEM)
        rc = err_sys(p->e, rc, "replay of a search");
    if (rc == 0)
        rc = search_learn(&p->search, prior, p->e);
    if (rc < 0)
        prior_free(prior);
    return rc;
}

static int hand_out(const struct player *p)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && p->cfg->each && i < p->n; i++)
        rc = p->cfg->each(p->cfg->ctx, &p->v[i].point, p->v[i].epoch);
    return rc;
}

static void sum_up(struct player *p)
{
    while (p->marks < p->cfg->n_at)
        pass_mark(p); /* what there is at the end stays */
    p->out->to_target += p->reached ? 0 : p->cfg->budget;
    double trust = p->search.prior ? prior_trust(p->search.prior) : (double)NAN;
    p->out->trust += isnan(trust) ? 0 : trust;
    p->out->learnt += p->search.prior ? prior_proposed(p->search.prior) : 0;
}

int search_replay_from(const struct curve_source *from, const struct search_replay_cfg *cfg,
                       struct search_replay_result *out, struct err *e)
{
    struct player p = { .from = from, .cfg = cfg, .out = out, .best = NAN, .e = e };
    struct search_cfg search = cfg->search;
    search.epochs = from->epochs;
    search.maximise = from->maximise;
    p.sched = (struct sched){ .parallel = cfg->workers, .max_trials = search.max_trials };
    int rc = search_new(&p.search, cfg->algorithm, cfg->stop, from->space, &search, e);
    if (rc < 0)
        return rc;
    rc = learn(&p);
    if (rc == 0)
        rc = play(&p);
    if (rc == 0)
        rc = hand_out(&p);
    if (rc == 0)
        sum_up(&p);
    search_done(&p.search);
    sched_done(&p.sched);
    free(p.v);
    return rc == -ENOMEM ? err_sys(e, rc, "replay of a search") : rc;
}

/* --- a table as the source --- */

struct listed {
    const struct curves *curves;
    struct curves_front front; /* of several objectives; so is what follows */
    bool *finished;            /* by configuration */
};

static void listed_finished(void *ctx, const struct point *of)
{
    struct listed *l = ctx;
    l->finished[space_index(&l->curves->space, of)] = true;
}

static double listed_volume(void *ctx)
{
    const struct listed *l = ctx;
    return curves_front_share(&l->front, l->finished);
}

static int begin_front(struct listed *l, const struct goals *goals, struct curve_source *from)
{
    l->finished = calloc(l->curves->n, sizeof *l->finished);
    int rc = l->finished ? curves_front_init(&l->front, l->curves, goals) : -ENOMEM;
    from->finished = listed_finished;
    from->volume = listed_volume;
    return rc;
}

static int listed_epoch(void *ctx, const struct point *of, int epoch, struct curve_epoch *out, struct err *e)
{
    (void)e; /* it is there: every curve was looked at, and the space has no other point */
    const struct curves *c = ((const struct listed *)ctx)->curves;
    const struct curve *curve = &c->v[space_index(&c->space, of)];
    *out = (struct curve_epoch){ .value = curves_value(c, curve, epoch),
                                 .seconds = curve->seconds ? curve->seconds[epoch - 1] : (double)NAN,
                                 .joules = curve->joules ? curve->joules[epoch - 1] : (double)NAN };
    return 0;
}

static int check(const struct curves *c, const struct search_replay_cfg *cfg, struct err *e)
{
    size_t cut = 0, unpriced = 0;
    for (size_t i = 0; i < c->n; i++) {
        cut += c->v[i].n < c->epochs;
        unpriced += !c->v[i].seconds;
    }
    if (cut > 0)
        return err_set(e, -EINVAL, "%zu of %zu curves are cut short: a search may want all %d epochs of any", cut, c->n,
                       c->epochs);
    if (cfg->seconds && unpriced > 0)
        return err_set(e, -EINVAL, "%zu of %zu curves have no 'seconds': they cannot be the cost", unpriced, c->n);
    return 0;
}

int search_replay(const struct curves *c, const struct search_replay_cfg *cfg, struct search_replay_result *out,
                  struct err *e)
{
    struct listed listed = { .curves = c };
    struct curve_source from = { .space = &c->space,
                                 .metric = c->metric,
                                 .maximise = c->maximise,
                                 .epochs = c->epochs,
                                 .worst = c->worst,
                                 .epoch = listed_epoch,
                                 .ctx = &listed };
    int rc = check(c, cfg, e);
    if (rc < 0)
        return rc;
    rc = curves_scale(c, &from.scale);
    if (rc == 0 && cfg->search.goals)
        rc = begin_front(&listed, cfg->search.goals, &from);
    rc = rc < 0 ? err_sys(e, rc, "replay of a search") : search_replay_from(&from, cfg, out, e);
    curves_front_done(&listed.front);
    free(listed.finished);
    return rc;
}
