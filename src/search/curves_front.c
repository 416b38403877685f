#include "search/curves_front.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/front.h"

static bool all_have(const struct curves *c, enum goal_kind kind)
{
    for (size_t i = 0; i < c->n; i++)
        if (kind == GOAL_SECONDS ? !c->v[i].seconds : kind == GOAL_JOULES && !c->v[i].joules)
            return false;
    return true;
}

int curves_goals(const struct curves *c, const char *const *names, size_t n, struct goals *out, struct err *e)
{
    struct goals g = { .n = 0 };
    for (size_t i = 0; i < n; i++) {
        bool joules = strcmp(names[i], "joules") == 0 || strcmp(names[i], goal_joules) == 0;
        enum goal_kind kind = joules ? GOAL_JOULES : strcmp(names[i], goal_seconds) == 0 ? GOAL_SECONDS : GOAL_METRIC;
        if (kind == GOAL_METRIC && strcmp(names[i], "metric") != 0 && strcmp(names[i], c->metric) != 0)
            return err_set(e, -EINVAL, "the table has no metric '%s': it has '%s', seconds and joules", names[i],
                           c->metric);
        if (!all_have(c, kind))
            return err_set(e, -EINVAL, "the table has no '%s' for some of its curves", names[i]);
        if (g.n == GOALS_MAX)
            return err_set(e, -EINVAL, "more than %d metrics", GOALS_MAX);
        struct goal *to = &g.v[g.n++];
        *to = (struct goal){ .kind = kind, .directed = true, .maximise = kind == GOAL_METRIC && c->maximise };
        (void)snprintf(to->name, sizeof to->name, "%s", kind == GOAL_METRIC ? c->metric : names[i]);
    }
    *out = g;
    return 0;
}

static double sum_of(const double *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    return sum;
}

static double figure(const struct curves *c, const struct curve *of, const struct goal *g)
{
    if (g->kind != GOAL_METRIC)
        return sum_of(g->kind == GOAL_SECONDS ? of->seconds : of->joules, of->n);
    double x = curves_value(c, of, of->n);
    return g->maximise ? -x : x;
}

/* Beyond the worst of the front, by a tenth of what it ranges over. */
static void set_ref(struct curves_front *f, const size_t *ranks)
{
    for (size_t k = 0; k < f->m; k++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < f->n; i++) {
            low = fmin(low, f->figures[i * f->m + k]);
            high = ranks[i] == 0 ? fmax(high, f->figures[i * f->m + k]) : high;
        }
        f->ref[k] = high + (high > low ? 0.1 * (high - low) : 1);
    }
}

int curves_front_init(struct curves_front *out, const struct curves *c, const struct goals *g)
{
    struct curves_front f = { .n = c->n, .m = g->n };
    size_t *ranks = calloc(c->n, sizeof *ranks);
    f.figures = calloc(c->n * g->n, sizeof *f.figures);
    f.chosen = calloc(c->n * g->n, sizeof *f.chosen);
    f.work = calloc(front_work(c->n, g->n), sizeof *f.work);
    if (!ranks || !f.figures || !f.chosen || !f.work) {
        free(ranks);
        curves_front_done(&f);
        return -ENOMEM;
    }
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < g->n; k++)
            f.figures[i * g->n + k] = figure(c, &c->v[i], &g->v[k]);
    front_ranks(f.figures, f.n, f.m, ranks, f.work);
    set_ref(&f, ranks);
    free(ranks);
    f.all = front_volume(f.figures, f.n, f.m, f.ref, f.work);
    *out = f;
    return 0;
}

void curves_front_done(struct curves_front *f)
{
    free(f->figures);
    free(f->chosen);
    free(f->work);
    *f = (struct curves_front){ .n = 0 };
}

double curves_front_share(const struct curves_front *f, const bool *counts)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->n; i++)
        if (counts[i])
            memcpy(f->chosen + f->m * kept++, f->figures + i * f->m, f->m * sizeof *f->chosen);
    return front_volume(f->chosen, kept, f->m, f->ref, f->work) / f->all;
}
