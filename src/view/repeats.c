#include "view/repeats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "core/sched.h"
#include "search/prior.h"
#include "view/table.h"

/* --- points that were trained again ------------------------------------------------------------------------------------ */

/* One point: the finished trainings of it, and how it stood before. */
struct repeated {
    int trial;               /* the original */
    double before, mean, sd; /* before: the original's; sd: of one training, n - 1; NAN: there is but one */
    bool finished;           /* the original is */
    double *v;
    size_t n, cap;
    size_t rank, rank_before; /* among these points, from 1 */
};

struct gathering {
    const struct view *of;
    struct repeated *v;
    size_t n, cap;
};

static void gathering_done(struct gathering *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->v[i].v);
    free(g->v);
}

static struct repeated *find(const struct gathering *g, int trial)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].trial == trial)
            return &g->v[i];
    return NULL;
}

static int note_repeat(struct gathering *g, const struct store_trial *t)
{
    if (t->repeat_of == 0 || find(g, t->repeat_of))
        return 0;
    struct repeated *grown = array_more(g->v, g->n, &g->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    g->v = grown;
    g->v[g->n++] = (struct repeated){ .trial = t->repeat_of, .before = NAN };
    return 0;
}

static int note_value(struct gathering *g, const struct store_trial *t)
{
    bool finished = strcmp(t->state, trial_state_name(TRIAL_FINISHED)) == 0 && !isnan(t->metric);
    struct repeated *r = find(g, t->repeat_of ? t->repeat_of : t->number);
    if (r && t->number == r->trial) {
        r->before = t->metric;
        r->finished = finished;
    }
    double *grown = r && finished ? array_more(r->v, r->n, &r->cap, sizeof *grown) : NULL;
    if (!grown)
        return r && finished ? -ENOMEM : 0;
    r->v = grown;
    r->v[r->n++] = t->metric;
    return 0;
}

static void reckon(struct repeated *r)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < r->n; i++)
        sum += r->v[i];
    r->mean = r->n > 0 ? sum / (double)r->n : (double)NAN;
    for (size_t i = 0; i < r->n; i++)
        squares += (r->v[i] - r->mean) * (r->v[i] - r->mean);
    r->sd = r->n > 1 ? sqrt(squares / (double)(r->n - 1)) : (double)NAN;
}

static bool is_before(double a, double b, int trial_a, int trial_b, bool maximise)
{
    if (isnan(a) || isnan(b) || a == b)
        return isnan(a) == isnan(b) ? trial_a < trial_b : isnan(b);
    return maximise ? a > b : a < b;
}

static void rank_all(struct gathering *g)
{
    bool up = g->of->study.maximise;
    for (size_t i = 0; i < g->n; i++) {
        struct repeated *a = &g->v[i];
        a->rank = a->rank_before = 1;
        for (size_t k = 0; k < g->n; k++) {
            const struct repeated *b = &g->v[k];
            a->rank += k != i && is_before(b->mean, a->mean, b->trial, a->trial, up);
            bool was =
                b->finished != a->finished ? b->finished : is_before(b->before, a->before, b->trial, a->trial, up);
            a->rank_before += k != i && was;
        }
    }
}

static int gather(struct gathering *g, const struct view *v, struct err *e)
{
    int rc = 0;
    *g = (struct gathering){ .of = v };
    for (size_t i = 0; rc == 0 && i < v->n; i++)
        rc = note_repeat(g, &v->trials[i].row);
    for (size_t i = 0; rc == 0 && i < v->n && g->n > 0; i++)
        rc = note_value(g, &v->trials[i].row);
    for (size_t i = 0; rc == 0 && i < g->n; i++)
        reckon(&g->v[i]);
    rank_all(g);
    return view_explain(rc, e, v->study.name);
}

static const struct repeated *of_rank(const struct gathering *g, size_t rank)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].rank == rank)
            return &g->v[i];
    return NULL;
}

static void put_repeated(struct buf *b, const char *study, const struct repeated *r)
{
    char mean[NUM_TEXT_MAX], sd[NUM_TEXT_MAX];
    buf_printf(b, "  %s/%d: ", study, r->trial);
    if (r->n == 0)
        buf_puts(b, "no training of it has finished\n");
    else
        buf_printf(b, "%s ± %s of %zu; it was number %zu and %s\n", table_digits(r->mean, mean),
                   r->n > 1 ? table_digits(r->sd, sd) : "-", r->n, r->rank_before,
                   r->rank == r->rank_before  ? "stays there"
                   : r->rank < r->rank_before ? "has moved up"
                                              : "has fallen back");
}

int repeats_put(struct buf *b, const struct view *v, struct err *e)
{
    struct gathering g;
    int rc = gather(&g, v, e);
    if (rc == 0 && g.n > 0)
        buf_puts(b, "\ntrained again with other seeds, the best first, mean ± standard deviation:\n");
    for (size_t rank = 1; rc == 0 && rank <= g.n; rank++)
        put_repeated(b, v->study.name, of_rank(&g, rank));
    gathering_done(&g);
    return rc;
}

int repeats_json(json_t **out, const struct view *v, struct err *e)
{
    struct gathering g;
    int rc = gather(&g, v, e);
    *out = rc == 0 ? json_array() : NULL;
    for (size_t rank = 1; rc == 0 && rank <= g.n; rank++) {
        const struct repeated *r = of_rank(&g, rank);
        (void)json_array_append_new(*out, json_pack("{s:i, s:i, s:o, s:o, s:o, s:i, s:i}", "trial", r->trial, "n",
                                                    (int)r->n, "mean", json_num(r->mean), "sd", json_num(r->sd),
                                                    "first", json_num(r->before), "rank", (int)r->rank, "rank_before",
                                                    (int)r->rank_before));
    }
    gathering_done(&g);
    return rc;
}

/* --- what was learnt from earlier studies ------------------------------------------------------------------------------ */

struct learning {
    struct prior *prior; /* that only looks on: it knows which trials were of earlier points, not where these lie */
    size_t points, trials;
};

static void tell_epochs(const struct learning *k, uint64_t id, const struct view_trial *t)
{
    for (size_t i = 0; i < t->n_epochs; i++)
        (void)prior_tell(
            k->prior,
            &(struct told){ .id = id, .kind = TOLD_EPOCH, .epoch = t->epochs[i].epoch, .value = t->epochs[i].metric });
}

static int tell_trial(struct learning *k, const struct view *v, struct view_trial *t, struct err *e)
{
    if (t->row.repeat_of)
        return 0;
    if (prior_make_room(k->prior) < 0)
        return -ENOMEM;
    uint64_t id = k->trials++;
    k->points += t->row.learnt_from != NULL;
    prior_asked(k->prior, t->row.learnt_from ? 0 : PRIOR_NONE);
    int rc = view_epochs(v, t, e);
    tell_epochs(k, id, t);
    bool failed = strcmp(t->row.state, trial_state_name(TRIAL_FAILED)) == 0 ||
                  strcmp(t->row.state, trial_state_name(TRIAL_INFEASIBLE)) == 0;
    if (rc == 0 && failed)
        (void)prior_tell(k->prior, &(struct told){ .id = id, .kind = TOLD_FAILED, .epoch = 1, .value = NAN });
    return rc;
}

/* 1: *out_trust is by the trials so far, as the search reckons it; 0: the study learns from none. */
static int trust_of(struct view *v, struct learning *k, double *out_trust, struct err *e)
{
    static const struct space none; /* where the points lie does not matter here */
    const json_t *epochs = json_object_get(json_object_get(v->config, "study"), "epochs");
    struct search_cfg cfg = { .epochs = (int)json_integer_value(epochs), .maximise = v->study.maximise };
    *k = (struct learning){ 0 };
    if (!view_config(v, "search", "learn_from"))
        return 0;
    int rc = prior_new(&k->prior, &none, &cfg);
    for (size_t i = 0; rc == 0 && i < v->n; i++)
        rc = tell_trial(k, v, &v->trials[i], e);
    if (rc == 0)
        *out_trust = prior_trust(k->prior);
    prior_free(k->prior);
    return rc < 0 ? view_explain(rc, e, v->study.name) : 1;
}

int repeats_put_learnt(struct buf *b, struct view *v, struct err *e)
{
    struct learning k;
    double trust = NAN;
    int rc = trust_of(v, &k, &trust, e);
    if (rc != 1)
        return rc;
    AUTO_BUF struct buf line = BUF_INIT;
    buf_printf(&line, "learnt from %s: %zu of %zu trials are points from there; ",
               view_config(v, "search", "learn_from"), k.points, k.trials);
    if (isnan(trust))
        buf_puts(&line, "how far these hold up cannot be told yet");
    else if (trust == 0)
        buf_puts(&line, "they are no better than the others at equal epochs, and not trusted");
    else
        buf_printf(&line, "they beat %.0f %% of the others at equal epochs, which is trust %.2f", 50 + 50 * trust,
                   trust);
    buf_putc(b, '\n');
    table_put_wrapped(b, buf_text(&line), 2, 0);
    b->failed |= line.failed;
    return 0;
}

static json_t *names_of(const char *list)
{
    json_t *names = json_array();
    for (const char *at = list; names && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        at += strspn(at, " ");
        (void)json_array_append_new(names, json_stringn(at, strcspn(at, ", ")));
    }
    return names;
}

int repeats_learnt_json(json_t **out, struct view *v, struct err *e)
{
    struct learning k;
    double trust = NAN;
    int rc = trust_of(v, &k, &trust, e);
    if (rc < 0)
        return rc;
    *out = rc == 0 ? json_null()
                   : json_pack("{s:o, s:I, s:o}", "studies", names_of(view_config(v, "search", "learn_from")), "trials",
                               (json_int_t)k.points, "trust", json_num(trust));
    return 0;
}
