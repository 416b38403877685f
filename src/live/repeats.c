#include "live/repeats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "live/study.h"

/* A trial that could be repeated, or is a repeat. */
struct candidate {
    int number, repeat_of, repeat;
    bool finished;
    double metric;
    char *hyper, *requested;
};

struct candidates {
    struct candidate *v;
    size_t n, cap;
};

static void candidates_done(struct candidates *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].hyper);
        free(c->v[i].requested);
    }
    free(c->v);
}

static int collect(void *ctx, const struct store_trial *row)
{
    struct candidates *c = ctx;
    enum trial_state state = (enum trial_state)trial_state_parse(row->state);
    bool trained = state == TRIAL_FINISHED || state == TRIAL_STOPPED || state == TRIAL_PAUSED;
    if (row->repeat_of == 0 && (!trained || row->copy_of || row->violates || isnan(row->metric)))
        return 0;
    struct candidate *grown = array_more(c->v, c->n, &c->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    c->v = grown;
    c->v[c->n] = (struct candidate){ .number = row->number,
                                     .repeat_of = row->repeat_of,
                                     .repeat = row->repeat,
                                     .finished = state == TRIAL_FINISHED,
                                     .metric = row->metric,
                                     .hyper = strdup(row->hyper),
                                     .requested = strdup(row->requested ? row->requested : "{}") };
    const struct candidate *one = &c->v[c->n++];
    return one->hyper && one->requested ? 0 : -ENOMEM;
}

/* As the best trial of a study is chosen: the finished ones first; of equals the first. */
static bool is_better(const struct candidate *a, const struct candidate *b, bool maximise)
{
    if (a->finished != b->finished)
        return a->finished;
    return maximise ? a->metric > b->metric : a->metric < b->metric;
}

/* The best that is none of the first `n` of `chosen`; NULL: there is none. */
static const struct candidate *next_best(const struct candidates *c, bool maximise,
                                         const struct candidate *const *chosen, size_t n)
{
    const struct candidate *best = NULL;
    for (size_t i = 0; i < c->n; i++) {
        bool taken = c->v[i].repeat_of != 0;
        for (size_t k = 0; k < n; k++)
            taken |= chosen[k] == &c->v[i];
        if (!taken && (!best || is_better(&c->v[i], best, maximise)))
            best = &c->v[i];
    }
    return best;
}

static bool is_there(const struct candidates *c, int of, int time)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].repeat_of == of && c->v[i].repeat == time)
            return true;
    return false;
}

static int add(struct repeats *r, size_t *cap, const struct candidate *of, int time)
{
    struct repeat *grown = array_more(r->v, r->n, cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    r->v = grown;
    struct repeat *one = &r->v[r->n++];
    *one = (struct repeat){ of->number, time, strdup(of->hyper), strdup(of->requested) };
    return one->hyper && one->requested ? 0 : -ENOMEM;
}

/* Each point once more before one is trained twice more, so that what a budget cuts short is even. What was not trained to its end counts for
 * nothing beside repeats that are, so it is trained once more often. */
static int plan_all(struct repeats *r, const struct candidates *c, const struct config *cfg)
{
    enum { BEST_MAX = 100 };
    const struct candidate *chosen[BEST_MAX];
    size_t n = 0, cap = 0;
    bool maximise = config_maximise(cfg);
    while (n < (size_t)cfg->repeat_best && (chosen[n] = next_best(c, maximise, chosen, n)))
        n++;
    int rc = 0;
    for (int time = 1; rc == 0 && time <= cfg->repeats; time++)
        for (size_t i = 0; rc == 0 && i < n; i++)
            if (time < cfg->repeats + !chosen[i]->finished && !is_there(c, chosen[i]->number, time))
                rc = add(r, &cap, chosen[i], time);
    return rc;
}

int repeats_plan(struct study *s, struct err *e)
{
    struct candidates c = { 0 };
    const struct config *cfg = &s->plan->cfg;
    if (cfg->repeats <= 1 || s->repeats.planned || s->sched.closed || s->sched.stopping)
        return 0;
    int rc = store_trials(s->reader ? s->reader : s->store, s->id, 0, collect, &c, e);
    if (rc == 0)
        rc = plan_all(&s->repeats, &c, cfg);
    candidates_done(&c);
    if (rc < 0)
        return err_sys(e, rc, "repeats of study '%s'", s->name);
    s->repeats.planned = 1;
    s->sched.extra = (int)s->repeats.n;
    return s->sched.extra;
}

void repeats_done(struct repeats *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].hyper);
        free(r->v[i].requested);
    }
    free(r->v);
    *r = (struct repeats){ 0 };
}

int64_t repeats_seed(const struct study *s, const struct store_trial *t)
{
    return s->plan->cfg.seed + t->repeat;
}

int repeats_check(const struct plan *p, struct err *e)
{
    const struct app_argument *seed = app_file_argument(&p->app.file, "seed");
    if (p->cfg.repeats <= 1 || seed)
        return 0;
    if (p->app.kind->tells || p->app.file.session)
        return 1;
    return err_set(e, -EINVAL,
                   "study.repeats needs applications that take a seed, or all repeats are alike: '%s' has none in "
                   "'arguments', such as \"seed\": [\"--seed\", \"{}\"]",
                   p->app_doc.name);
}
