/* A trial whose best value so far is worse than the median of what the others had come to by the same epoch is stopped. It compares trials at equal
 * epochs alone, so the order in which they run matters little; and it needs no rungs, so it stops where the difference shows. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "search/search.h"
#include "search/several.h"

enum { OTHERS_MIN = 3 }; /* fewer say little of what is usual */

struct mark {
    uint64_t id;
    int epoch;
    double best; /* of its values up to this epoch */
};

struct median {
    int epochs, min_epochs;
    bool maximise;
    const struct several *several;
    struct mark *marks;
    size_t n, cap;
    double *values; /* room for those of one epoch: as many as there are marks */
    size_t cap_values;
};

static int median_init(void *state, const struct search_cfg *cfg, struct err *e)
{
    (void)e; /* it goes with everything */
    struct median *m = state;
    *m = (struct median){
        .epochs = cfg->epochs, .min_epochs = cfg->min_epochs, .maximise = cfg->maximise, .several = cfg->several
    };
    return 0;
}

static bool is_better(const struct median *m, double a, double b)
{
    return m->maximise ? a > b : a < b;
}

/* The mark of this epoch, with the trial's best up to it; an epoch that is told again replaces what was told of it. */
static double put_mark(struct median *m, const struct told *t)
{
    struct mark *at = NULL;
    double best = t->value;
    for (size_t i = 0; i < m->n; i++) {
        struct mark *k = &m->marks[i];
        if (k->id != t->id)
            continue;
        if (k->epoch == t->epoch)
            at = k;
        else if (k->epoch < t->epoch && is_better(m, k->best, best))
            best = k->best;
    }
    if (!at)
        at = &m->marks[m->n++];
    *at = (struct mark){ t->id, t->epoch, best };
    return best;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the others at that epoch; *out_n is how many. */
static double median_of_others(struct median *m, const struct told *t, size_t *out_n)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (m->marks[i].id != t->id && m->marks[i].epoch == t->epoch)
            m->values[n++] = m->marks[i].best;
    *out_n = n;
    if (n == 0)
        return NAN;
    qsort(m->values, n, sizeof *m->values, by_value);
    return (m->values[(n - 1) / 2] + m->values[n / 2]) / 2;
}

static int make_room(struct median *m)
{
    struct mark *marks = array_more(m->marks, m->n, &m->cap, sizeof *marks);
    if (!marks)
        return -ENOMEM;
    m->marks = marks;
    double *values = array_more(m->values, m->n, &m->cap_values, sizeof *values);
    if (!values)
        return -ENOMEM;
    m->values = values;
    return 0;
}

static int median_tell(void *state, const struct told *t, struct search_answer *out)
{
    struct median *m = state;
    if (t->kind != TOLD_EPOCH || isnan(t->value))
        return 0;
    if (make_room(m) < 0)
        return -ENOMEM;
    size_t others = 0;
    double best = put_mark(m, t), middle = median_of_others(m, t, &others);
    if (t->epoch < m->min_epochs || t->epoch >= m->epochs || others < OTHERS_MIN || t->held ||
        !is_better(m, middle, best) || !several_may_end(m->several, t))
        return 0;
    out->verdict = SEARCH_STOP;
    (void)snprintf(out->why, sizeof out->why, "after %d epoch%s: %.4g, the median of %zu others was %.4g there",
                   t->epoch, t->epoch == 1 ? "" : "s", best, others, middle);
    return 0;
}

static void median_save(const void *state, struct buf *out)
{
    const struct median *m = state;
    pack_u64(out, m->n);
    for (size_t i = 0; i < m->n; i++) {
        pack_u64(out, m->marks[i].id);
        pack_u64(out, (uint64_t)m->marks[i].epoch);
        pack_f64(out, m->marks[i].best);
    }
}

static int median_restore(void *state, struct unpack *from)
{
    struct median *m = state;
    for (size_t n = unpack_count(from, 24); n > 0; n--) {
        if (make_room(m) < 0)
            return -ENOMEM;
        struct mark k = { .id = unpack_u64(from) };
        uint64_t epoch = unpack_u64(from);
        k.best = unpack_f64(from);
        if (epoch == 0 || epoch > (uint64_t)m->epochs || isnan(k.best))
            return -EPROTO;
        k.epoch = (int)epoch;
        m->marks[m->n++] = k;
    }
    return 0;
}

static void median_done(void *state)
{
    struct median *m = state;
    free(m->marks);
    free(m->values);
}

const struct stop_ops stop_median = {
    .name = "median",
    .help = "stops a trial that is worse than the median of the others at the same epoch",
    .version = 1,
    .state_size = sizeof(struct median),
    .init = median_init,
    .tell = median_tell,
    .save = median_save,
    .restore = median_restore,
    .done = median_done,
};
