/* Searches over recorded curves: `replay search`. What is computed is src/search/search_replay's. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/gzip.h"
#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/replay_parts.h"
#include "search/curves_front.h"
#include "search/search_replay.h"
#include "store/curves_trace.h"
#include "view/table.h"

enum { NAMES_MAX = 32, MARKS_MAX = 100 };

/* An algorithm and a stop rule, over all repeats. */
struct pair {
    char *name; /* "tpe+halving" */
    double regret[MARKS_MAX], best[MARKS_MAX], hypervolume[MARKS_MAX];
    double decision_ms, trials, epochs;
    double to_earlier,
        to_earlier_alone; /* what it took to reach the best of the earlier studies, with what these teach and without */
    double trust, learnt;
};

/* The trials that an earlier study made. */
struct earlier {
    const struct curves *curves;
    struct search_replay_earlier trials;
    size_t cap;
    double best;
};

struct searches_played {
    const struct replay_args *o;
    struct curves curves, learnt_from[NAMES_MAX];
    size_t n_learnt_from;
    struct strv algorithms, stops;
    struct goals goals; /* none: the metric alone */
    double at[MARKS_MAX];
    size_t n_at;
    struct pair *pairs;
    size_t n;
};

/* --- what is asked for --- */

int replay_split(struct strv *out, const char *list, const char *what, struct err *e)
{
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        AUTO_FREE char *word = strndup(at, strcspn(at, ","));
        if (word && !*word)
            return err_set(e, -EINVAL, "'--%s %s' has an empty name", what, list);
        strv_take(out, MOVE_PTR(word));
    }
    if (out->failed)
        return err_sys(e, -ENOMEM, "--%s", what);
    return out->n <= NAMES_MAX ? 0 : err_set(e, -EINVAL, "--%s: more than %d names", what, NAMES_MAX);
}

/* Ascending, up to the budget; it is one of them where none is. */
static int read_marks(struct searches_played *p, struct err *e)
{
    AUTO_STRV struct strv words = STRV_INIT;
    int rc = replay_split(&words, p->o->at ? p->o->at : "50,100,200,500,1000", "at", e);
    for (size_t i = 0; rc == 0 && i < words.n; i++) {
        double x;
        if (!csv_real(words.v[i], 0, 1e12, &x) || (p->n_at > 0 && x <= p->at[p->n_at - 1]))
            return err_set(e, -EINVAL, "'--at %s' must be ascending numbers, as 50,100,200", p->o->at);
        if (x > p->o->budget && p->o->at)
            return err_set(e, -EINVAL, "'--at %s' goes beyond '--budget %g'", p->o->at, p->o->budget);
        if (x <= p->o->budget)
            p->at[p->n_at++] = x;
    }
    if (rc == 0 && p->n_at == 0)
        p->at[p->n_at++] = p->o->budget;
    return rc;
}

static int read_goals(struct searches_played *p, struct err *e)
{
    AUTO_STRV struct strv words = STRV_INIT;
    int rc = replay_split(&words, p->o->metrics, "metrics", e);
    return rc < 0 ? rc : curves_goals(&p->curves, (const char *const *)words.v, words.n, &p->goals, e);
}

static int read_trace(struct curves *out, const char *path, struct err *e)
{
    struct trace t = { 0 };
    int rc = trace_read(&t, path, e);
    if (rc == 0)
        rc = curves_of_trace(out, &t, path, e);
    trace_done(&t);
    if (rc == -EPROTO && e) /* a file that is no trace is the user's to change, not the machine's */
        e->code = rc = -EINVAL;
    return rc;
}

static int read_lines(struct curves *out, const char *path, struct err *e)
{
    AUTO_BUF struct buf file = BUF_INIT, unpacked = BUF_INIT;
    int rc = io_read_file(&file, path, REPLAY_TEXT_MAX, e);
    if (rc < 0)
        return rc;
    if (!gzip_is(file.data, file.len))
        return curves_parse(out, path, buf_text(&file), file.len, e);
    rc = gzip_unpack(&unpacked, path, file.data, file.len, REPLAY_TEXT_MAX, e);
    return rc < 0 ? rc : curves_parse(out, path, buf_text(&unpacked), unpacked.len, e);
}

int replay_read_curves(struct curves *out, const char *path, struct err *e)
{
    int rc = (replay_is_trace(path) ? read_trace : read_lines)(out, path, e);
    if (rc == 0 && out->repeats > 0)
        cmd_say("'%s': %zu configurations left out: they are there twice", path, out->repeats);
    return rc;
}

/* --- playing --- */

static double cpu_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* --- earlier studies --- */

static void earlier_done(struct earlier *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < v[i].trials.n; k++)
            json_decref((json_t *)v[i].trials.v[k].hyper);
        free(v[i].trials.v);
    }
}

static int keep_trial(void *ctx, const struct point *at, int epochs)
{
    struct earlier *to = ctx;
    const struct curves *c = to->curves;
    const double *values = c->v[space_index(&c->space, at)].values;
    struct prior_trial *grown = array_more(to->trials.v, to->trials.n, &to->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    to->trials.v = grown;
    json_t *hyper = space_point_json(&c->space, at);
    if (!hyper)
        return -ENOMEM;
    to->trials.v[to->trials.n++] = (struct prior_trial){ "earlier", hyper, values, (size_t)epochs };
    for (int i = 0; i < epochs; i++)
        to->best = c->maximise ? fmax(to->best, values[i]) : fmin(to->best, values[i]);
    return 0;
}

/* The same search over each table to learn from. */
static int play_earlier(const struct searches_played *p, const struct search_replay_cfg *as, struct earlier *out,
                        struct err *e)
{
    enum { OTHER_SEED = 1000 };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n_learnt_from; i++) {
        struct search_replay_cfg cfg = *as;
        struct search_replay_result ignored = { 0 };
        out[i] = (struct earlier){ .curves = &p->learnt_from[i], .best = NAN };
        cfg.search.seed += OTHER_SEED * (i + 1);
        cfg.n_at = 0;
        cfg.each = keep_trial;
        cfg.ctx = &out[i];
        rc = search_replay(&p->learnt_from[i], &cfg, &ignored, e);
    }
    return rc;
}

static int play_learning(const struct searches_played *p, const struct search_replay_cfg *cfg, struct pair *pair,
                         struct search_replay_result *sum, struct err *e)
{
    struct earlier earlier[NAMES_MAX] = { { .best = NAN } };
    struct search_replay_earlier trials[NAMES_MAX];
    struct search_replay_result alone = { 0 };
    struct search_replay_cfg without = *cfg, with = *cfg;
    int rc = play_earlier(p, cfg, earlier, e);
    for (size_t i = 0; i < p->n_learnt_from; i++)
        trials[i] = earlier[i].trials;
    with.target = without.target = earlier[0].best;
    with.earlier = trials;
    with.n_earlier = p->n_learnt_from;
    without.n_at = 0;
    if (rc == 0)
        rc = search_replay(&p->curves, &without, &alone, e);
    if (rc == 0)
        rc = search_replay(&p->curves, &with, sum, e);
    pair->to_earlier_alone += alone.to_target;
    earlier_done(earlier, p->n_learnt_from);
    return rc;
}

static int play_pair(struct searches_played *p, struct pair *pair, const char *algorithm, const char *stop,
                     struct err *e)
{
    struct search_replay_cfg cfg = {
        .algorithm = algorithm,
        .stop = stop,
        .search = { .min_epochs = 1, .can_pause = true, .goals = p->goals.n > 1 ? &p->goals : NULL },
        .workers = (int)p->o->workers,
        .budget = p->o->budget,
        .seconds = strcmp(p->o->cost, "seconds") == 0,
        .at = p->at,
        .n_at = p->n_at,
        .target = NAN
    };
    struct search_replay_result sum = { .regret = pair->regret, .best = pair->best, .hypervolume = pair->hypervolume };
    double n = (double)p->o->repeats, begun = cpu_ms();
    int rc = 0;
    for (int64_t i = 0; rc == 0 && i < p->o->repeats; i++) {
        cfg.search.seed = (uint64_t)(p->o->seed + i);
        rc = p->n_learnt_from ? play_learning(p, &cfg, pair, &sum, e) : search_replay(&p->curves, &cfg, &sum, e);
    }
    pair->decision_ms = (cpu_ms() - begun) / (double)(sum.decisions ? sum.decisions : 1);
    pair->trials = (double)sum.trials / n;
    pair->epochs = (double)sum.epochs / n;
    pair->to_earlier = sum.to_target / n;
    pair->to_earlier_alone /= n;
    pair->trust = sum.trust / n;
    pair->learnt = (double)sum.learnt / n;
    for (size_t i = 0; i < p->n_at; i++) {
        pair->regret[i] /= n;
        pair->best[i] /= n;
        pair->hypervolume[i] /= n;
    }
    return rc;
}

static int play_all(struct searches_played *p, struct err *e)
{
    p->pairs = calloc(p->algorithms.n * p->stops.n, sizeof *p->pairs);
    if (!p->pairs)
        return err_sys(e, -ENOMEM, "replay of searches");
    for (size_t i = 0; i < p->algorithms.n; i++) {
        for (size_t k = 0; k < p->stops.n; k++) {
            struct pair *pair = &p->pairs[p->n++];
            if (asprintf(&pair->name, "%s+%s", p->algorithms.v[i], p->stops.v[k]) < 0) {
                pair->name = NULL;
                return err_sys(e, -ENOMEM, "replay of searches");
            }
            int rc = play_pair(p, pair, p->algorithms.v[i], p->stops.v[k], e);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

/* --- printing --- */

static json_t *by_mark(const struct searches_played *p, const double *values)
{
    json_t *j = json_object();
    for (size_t i = 0; j && i < p->n_at; i++) {
        char mark[NUM_TEXT_MAX];
        if (replay_set(j, num_print(p->at[i], mark), json_num(values[i])) < 0) {
            json_decref(j);
            return NULL;
        }
    }
    return j;
}

/* {"to_earlier","to_earlier_alone","trust","proposals"}, or nothing. */
static json_t *learnt_json(const struct searches_played *p, const struct pair *x)
{
    if (p->n_learnt_from == 0)
        return json_object();
    return json_pack("{s:{s:o, s:o, s:o, s:o}}", "learnt", "to_earlier", json_num(x->to_earlier), "to_earlier_alone",
                     json_num(x->to_earlier_alone), "trust", json_num(x->trust), "proposals", json_num(x->learnt));
}

static int print_json(const struct searches_played *p, struct err *e)
{
    json_t *all = json_object();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n; i++) {
        const struct pair *x = &p->pairs[i];
        AUTO_JSON json_t *learnt = learnt_json(p, x);
        json_t *volume = p->goals.n > 1 ? by_mark(p, x->hypervolume) : NULL; /* NULL: no such key */
        json_t *j = json_pack("{s:o, s:o*, s:o, s:o, s:o, s:o}", "regret", by_mark(p, x->regret), "hypervolume", volume,
                              "best", by_mark(p, x->best), "decision_ms", json_num(x->decision_ms), "trials",
                              json_num(x->trials), "epochs", json_num(x->epochs));
        rc = !learnt || json_object_update(j, learnt) < 0 ? -ENOMEM : 0;
        rc = replay_set(all, x->name, rc == 0 ? j : (json_decref(j), NULL));
    }
    return replay_print_json(all, rc, e);
}

static int print_table(const struct searches_played *p)
{
    const char *heads[MARKS_MAX + 5] = { "search" };
    char marks[MARKS_MAX][NUM_TEXT_MAX + 1];
    struct table t;
    size_t n = 1;
    for (size_t i = 0; i < p->n_at; i++, n++) {
        marks[i][0] = '>';
        heads[n] = marks[i];
        num_print(p->at[i], marks[i] + 1);
    }
    heads[n++] = ">trials";
    heads[n++] = ">epochs";
    heads[n++] = ">ms a decision";
    table_init(&t, heads);
    for (size_t i = 0; i < p->n; i++) {
        const struct pair *x = &p->pairs[i];
        table_cell(&t, x->name);
        for (size_t k = 0; k < p->n_at; k++)
            table_cellf(&t, "%.4f", p->goals.n > 1 ? x->hypervolume[k] : x->regret[k]);
        table_cellf(&t, "%.0f", x->trials);
        table_cellf(&t, "%.0f", x->epochs);
        table_cellf(&t, "%.3f", x->decision_ms);
    }
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%zu configurations of %d epochs; mean %s after so many %s, of %lld repeat%s\n\n", p->curves.n,
               p->curves.epochs, p->goals.n > 1 ? "hypervolume" : "regret", p->o->cost, (long long)p->o->repeats,
               p->o->repeats == 1 ? "" : "s");
    table_put(&t, &b, 0);
    table_done(&t);
    return cmd_print(&b);
}

static int read_learnt_from(struct searches_played *p, struct err *e)
{
    AUTO_STRV struct strv paths = STRV_INIT;
    int rc = p->o->learn_from ? replay_split(&paths, p->o->learn_from, "learn-from", e) : 0;
    for (size_t i = 0; rc == 0 && i < paths.n; i++) {
        rc = replay_read_curves(&p->learnt_from[i], paths.v[i], e);
        p->n_learnt_from += rc == 0;
    }
    return rc;
}

int replay_search(const struct replay_args *o, const char *path, struct err *e)
{
    struct searches_played p = { .o = o };
    int rc = replay_split(&p.algorithms, o->algorithm, "algorithm", e);
    if (rc == 0)
        rc = replay_split(&p.stops, o->stop, "stop", e);
    if (rc == 0)
        rc = read_marks(&p, e);
    if (rc == 0)
        rc = replay_read_curves(&p.curves, path, e);
    if (rc == 0 && o->metrics)
        rc = read_goals(&p, e);
    if (rc == 0)
        rc = read_learnt_from(&p, e);
    if (rc == 0)
        rc = play_all(&p, e);
    int code = rc < 0 ? cmd_fail(e) : o->json ? print_json(&p, e) : print_table(&p);
    for (size_t i = 0; i < p.n; i++)
        free(p.pairs[i].name);
    free(p.pairs);
    strv_done(&p.algorithms);
    strv_done(&p.stops);
    curves_done(&p.curves);
    for (size_t i = 0; i < p.n_learnt_from; i++)
        curves_done(&p.learnt_from[i]);
    return code;
}
