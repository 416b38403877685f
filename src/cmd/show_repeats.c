/* What a study learnt from earlier ones and how much of it held; and which points held up when they were trained again. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "cmd/look.h"
#include "cmd/show_parts.h"
#include "core/sched.h"
#include "search/prior.h"

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
    struct show *l;
    struct repeated *v;
    size_t n, cap;
};

static void gathering_done(struct gathering *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->v[i].v);
    free(g->v);
}

static int note_repeat(void *ctx, const struct store_trial *t)
{
    struct gathering *g = ctx;
    size_t i = 0;
    if (t->repeat_of == 0)
        return 0;
    while (i < g->n && g->v[i].trial != t->repeat_of)
        i++;
    if (i < g->n)
        return 0;
    struct repeated *grown = array_more(g->v, g->n, &g->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    g->v = grown;
    g->v[g->n++] = (struct repeated){ .trial = t->repeat_of, .before = NAN };
    return 0;
}

static int note_value(void *ctx, const struct store_trial *t)
{
    struct gathering *g = ctx;
    bool finished = strcmp(t->state, trial_state_name(TRIAL_FINISHED)) == 0 && !isnan(t->metric);
    for (size_t i = 0; i < g->n; i++) {
        struct repeated *r = &g->v[i];
        if (t->number == r->trial) {
            r->before = t->metric;
            r->finished = finished;
        }
        if (!finished || (t->number != r->trial && t->repeat_of != r->trial))
            continue;
        double *grown = array_more(r->v, r->n, &r->cap, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        r->v = grown;
        r->v[r->n++] = t->metric;
    }
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
    bool up = g->l->study.maximise;
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

static int gather(struct gathering *g)
{
    struct show *l = g->l;
    int rc = store_trials(l->store, l->study.id, 0, note_repeat, g, l->e);
    if (rc == 0 && g->n > 0)
        rc = store_trials(l->store, l->study.id, 0, note_value, g, l->e);
    for (size_t i = 0; rc == 0 && i < g->n; i++)
        reckon(&g->v[i]);
    rank_all(g);
    return rc == -ENOMEM ? err_sys(l->e, rc, "study '%s'", l->study.name) : rc;
}

static const struct repeated *of_rank(const struct gathering *g, size_t rank)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].rank == rank)
            return &g->v[i];
    return NULL;
}

static void put_repeated(struct show *l, const struct repeated *r)
{
    char mean[NUM_TEXT_MAX], sd[NUM_TEXT_MAX];
    buf_printf(&l->out, "  %s/%d: ", l->study.name, r->trial);
    if (r->n == 0)
        buf_puts(&l->out, "no training of it has finished\n");
    else
        buf_printf(&l->out, "%s ± %s of %zu; it was number %zu and %s\n", table_digits(r->mean, mean),
                   r->n > 1 ? table_digits(r->sd, sd) : "-", r->n, r->rank_before,
                   r->rank == r->rank_before  ? "stays there"
                   : r->rank < r->rank_before ? "has moved up"
                                              : "has fallen back");
}

int show_repeats_text(struct show *l)
{
    struct gathering g = { .l = l };
    int rc = gather(&g);
    if (rc == 0 && g.n > 0)
        buf_puts(&l->out, "\ntrained again with other seeds, the best first, mean ± standard deviation:\n");
    for (size_t rank = 1; rc == 0 && rank <= g.n; rank++)
        put_repeated(l, of_rank(&g, rank));
    gathering_done(&g);
    return rc;
}

int show_repeats_json(struct show *l, json_t **out)
{
    struct gathering g = { .l = l };
    AUTO_JSON json_t *list = json_array();
    int rc = gather(&g);
    for (size_t rank = 1; rc == 0 && rank <= g.n; rank++) {
        const struct repeated *r = of_rank(&g, rank);
        json_t *one = json_pack("{s:i, s:i, s:o, s:o, s:o, s:i, s:i}", "trial", r->trial, "n", (int)r->n, "mean",
                                json_num(r->mean), "sd", json_num(r->sd), "first", json_num(r->before), "rank",
                                (int)r->rank, "rank_before", (int)r->rank_before);
        if (json_array_append_new(list, one) < 0)
            rc = err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    }
    gathering_done(&g);
    if (rc == 0)
        *out = MOVE_PTR(list);
    return rc;
}

/* --- what was learnt from earlier studies ------------------------------------------------------------------------------ */

struct learning {
    struct show *l;
    struct prior *prior; /* that only looks on: it knows which trials were of earlier points, not where these lie */
    uint64_t id;         /* of the trial that is read */
    size_t points, trials;
};

static int tell_epoch(void *ctx, const struct store_epoch *row)
{
    const struct learning *k = ctx;
    (void)prior_tell(k->prior,
                     &(struct told){ .id = k->id, .kind = TOLD_EPOCH, .epoch = row->epoch, .value = row->metric });
    return 0;
}

static int tell_trial(void *ctx, const struct store_trial *t)
{
    struct learning *k = ctx;
    if (t->repeat_of)
        return 0;
    if (prior_make_room(k->prior) < 0)
        return err_sys(k->l->e, -ENOMEM, "study '%s'", k->l->study.name);
    k->id = k->trials++;
    k->points += t->learnt_from != NULL;
    prior_asked(k->prior, t->learnt_from ? 0 : PRIOR_NONE);
    int rc = store_epochs(k->l->store, t->id, tell_epoch, k, k->l->e);
    bool failed = strcmp(t->state, trial_state_name(TRIAL_FAILED)) == 0 ||
                  strcmp(t->state, trial_state_name(TRIAL_INFEASIBLE)) == 0;
    if (rc == 0 && failed)
        (void)prior_tell(k->prior, &(struct told){ .id = k->id, .kind = TOLD_FAILED, .epoch = 1, .value = NAN });
    return rc;
}

/* 1: *out_trust is by the trials so far, as the search reckons it; 0: the study learns from none. */
static int trust_of(struct show *l, struct learning *k, double *out_trust)
{
    static const struct space none; /* where the points lie does not matter here */
    const json_t *epochs = json_object_get(json_object_get(l->config, "study"), "epochs");
    struct search_cfg cfg = { .epochs = (int)json_integer_value(epochs), .maximise = l->study.maximise };
    *k = (struct learning){ .l = l };
    if (!show_config_text(l, "search", "learn_from"))
        return 0;
    if (prior_new(&k->prior, &none, &cfg) < 0)
        return err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    int rc = store_trials(l->store, l->study.id, 0, tell_trial, k, l->e);
    *out_trust = prior_trust(k->prior);
    prior_free(k->prior);
    return rc < 0 ? rc : 1;
}

int show_learnt_text(struct show *l)
{
    struct learning k;
    double trust = NAN;
    int rc = trust_of(l, &k, &trust);
    if (rc != 1)
        return rc;
    AUTO_BUF struct buf line = BUF_INIT;
    buf_printf(&line, "learnt from %s: %zu of %zu trials are points from there; ",
               show_config_text(l, "search", "learn_from"), k.points, k.trials);
    if (isnan(trust))
        buf_puts(&line, "how far these hold up cannot be told yet");
    else if (trust == 0)
        buf_puts(&line, "they are no better than the others at equal epochs, and not trusted");
    else
        buf_printf(&line, "they beat %.0f %% of the others at equal epochs, which is trust %.2f", 50 + 50 * trust,
                   trust);
    buf_putc(&l->out, '\n');
    table_put_wrapped(&l->out, buf_text(&line), 2, 0);
    l->out.failed |= line.failed;
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

int show_learnt_json(struct show *l, json_t **out)
{
    struct learning k;
    double trust = NAN;
    int rc = trust_of(l, &k, &trust);
    if (rc < 0)
        return rc;
    *out = rc == 0 ? json_null()
                   : json_pack("{s:o, s:I, s:o}", "studies", names_of(show_config_text(l, "search", "learn_from")),
                               "trials", (json_int_t)k.points, "trust", json_num(trust));
    return *out ? 0 : err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
}
