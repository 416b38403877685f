#include "view/pareto.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/own.h"
#include "base/strv.h"
#include "search/front.h"

struct loading {
    struct pareto *p;
    struct store *store;
    bool finished; /* are there any? Then no other one counts */
    struct err *e;
};

/* --- reading --- */

static int read_goals(struct goals *out, const struct store_study *study, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = study->config ? json_doc_parse(&doc, study->name, study->config, strlen(study->config), e) : 0;
    if (rc == 0 && study->config)
        rc = goals_read(out, &doc, e);
    if (rc < 0 || out->n < 2)
        *out = (struct goals){ .n = 0 };
    return rc == -ENOMEM ? rc : 0; /* what cannot be read has none */
}

static int take_figure(void *ctx, const struct store_result *row)
{
    const struct loading *l = ctx;
    struct pareto_trial *t = &l->p->v[l->p->n - 1];
    for (size_t i = 0; i < l->p->goals.n; i++)
        if (strcasecmp(l->p->goals.v[i].name, row->name) == 0)
            t->figures[i] = row->value;
    return 0;
}

static bool is_over(const struct store_trial *row)
{
    return strcmp(row->state, "paused") == 0 || strcmp(row->state, "stopped") == 0;
}

static int add_trial(void *ctx, const struct store_trial *row)
{
    struct loading *l = ctx;
    struct pareto *p = l->p;
    struct pareto_trial *grown = array_more(p->v, p->n, &p->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    p->v = grown;
    struct pareto_trial *t = &p->v[p->n++];
    *t = (struct pareto_trial){ .number = row->number };
    for (size_t i = 0; i < p->goals.n; i++)
        t->figures[i] = NAN;
    int rc = store_results(l->store, row->id, take_figure, l, l->e);
    bool finished = strcmp(row->state, "finished") == 0;
    t->counts = rc == 0 && (finished || is_over(row)) && !row->violates;
    for (size_t i = 0; i < p->goals.n; i++)
        t->counts &= isfinite(t->figures[i]) != 0;
    if (finished && t->counts && !l->finished) {
        for (size_t i = 0; i + 1 < p->n; i++)
            p->v[i].counts = false;
        l->finished = true;
    }
    t->counts &= finished || !l->finished;
    return rc;
}

/* --- the set --- */

static int find_front(struct pareto *p)
{
    size_t m = p->goals.n, n = 0;
    AUTO_FREE double *points = calloc(p->n * m + 1, sizeof *points);
    AUTO_FREE double *work = calloc(front_work(p->n, m) + 1, sizeof *work);
    AUTO_FREE size_t *ranks = calloc(p->n + 1, sizeof *ranks);
    if (!points || !work || !ranks)
        return -ENOMEM;
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < m && p->v[i].counts; k++)
            points[n * m + k] = p->goals.v[k].maximise ? -p->v[i].figures[k] : p->v[i].figures[k];
        n += p->v[i].counts;
    }
    front_ranks(points, n, m, ranks, work);
    n = 0;
    for (size_t i = 0; i < p->n; i++) {
        p->v[i].front = p->v[i].counts && ranks[n] == 0;
        n += p->v[i].counts;
        p->n_front += p->v[i].front;
    }
    return 0;
}

int pareto_load(struct pareto *out, struct store *s, const struct store_study *study, struct err *e)
{
    struct pareto p = { .n = 0 };
    struct loading l = { .p = &p, .store = s, .e = e };
    int rc = read_goals(&p.goals, study, e);
    if (rc == 0 && p.goals.n > 0)
        rc = store_trials(s, study->id, 0, add_trial, &l, e);
    if (rc == 0 && p.goals.n > 0)
        rc = find_front(&p);
    if (rc < 0) {
        pareto_done(&p);
        return rc == -ENOMEM ? err_sys(e, rc, "study '%s'", study->name) : rc;
    }
    *out = p;
    return 0;
}

void pareto_done(struct pareto *p)
{
    free(p->v);
    *p = (struct pareto){ .n = 0 };
}

/* They are numbered from 1, without gaps unless somebody else wrote the store. */
const struct pareto_trial *pareto_trial(const struct pareto *p, int number)
{
    if (number >= 1 && (size_t)number <= p->n && p->v[number - 1].number == number)
        return &p->v[number - 1];
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].number == number)
            return &p->v[i];
    return NULL;
}

/* --- JSON --- */

json_t *pareto_json(const struct pareto *p)
{
    json_t *list = p->goals.n > 0 ? json_array() : json_null();
    for (size_t i = 0; list && i < p->n; i++)
        if (p->v[i].front && json_array_append_new(list, json_integer(p->v[i].number)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

json_t *pareto_figures_json(const struct pareto *p, int number)
{
    const struct pareto_trial *t = pareto_trial(p, number);
    json_t *j = t ? json_object() : json_null();
    for (size_t i = 0; t && j && i < p->goals.n; i++)
        if (json_object_set_new(j, p->goals.v[i].name, json_num(t->figures[i])) < 0) {
            json_decref(j);
            return NULL;
        }
    return j;
}

json_t *pareto_goals_json(const struct pareto *p)
{
    json_t *list = p->goals.n > 0 ? json_array() : json_null();
    for (size_t i = 0; list && i < p->goals.n; i++) {
        const struct goal *g = &p->goals.v[i];
        if (json_array_append_new(
                list, json_pack("{s:s, s:s}", "metric", g->name, "direction", g->maximise ? "max" : "min")) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* --- for people --- */

void pareto_put_numbers(const struct pareto *p, struct buf *out)
{
    const char *sep = "";
    for (size_t i = 0; i < p->n; i++) {
        if (!p->v[i].front)
            continue;
        buf_printf(out, "%s%d", sep, p->v[i].number);
        sep = ", ";
    }
    if (!*sep)
        buf_puts(out, "-");
}

static void put_cell(struct table *t, const struct goal *g, double x)
{
    if (g->kind == GOAL_SECONDS)
        table_seconds(t, x);
    else
        table_number(t, x);
}

void pareto_put(const struct pareto *p, const char *study, struct buf *out)
{
    AUTO_STRV struct strv heads = STRV_INIT;
    struct table table;
    if (p->goals.n == 0)
        return;
    buf_printf(out, "\nPareto set: %zu of %zu trial%s, which no other one beats in all of these\n", p->n_front, p->n,
               p->n == 1 ? "" : "s");
    strv_add(&heads, "trial");
    for (size_t i = 0; i < p->goals.n; i++) {
        const struct goal *g = &p->goals.v[i];
        const char *name = g->kind == GOAL_SECONDS ? "time" : g->kind == GOAL_JOULES ? "energy, J" : g->name;
        strv_addf(&heads, "!>%s (%s)", name, g->maximise ? "max" : "min");
    }
    out->failed |= heads.failed;
    if (heads.failed || p->n_front == 0)
        return;
    table_init(&table, (const char *const *)heads.v);
    for (size_t i = 0; i < p->n; i++) {
        if (!p->v[i].front)
            continue;
        table_cellf(&table, "%s/%d", study, p->v[i].number);
        for (size_t k = 0; k < p->goals.n; k++)
            put_cell(&table, &p->goals.v[k], p->v[i].figures[k]);
    }
    table_put(&table, out, 0);
    out->failed |= table.failed;
    table_done(&table);
}
