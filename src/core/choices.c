#include "core/choices.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

/* Combinations are counted with one digit per knob, the first one slowest: in the order of their digits they are sorted. */
enum { AXIS_MAX = TUNER_MAX_HOT > TUNER_MAX_COLD ? TUNER_MAX_HOT : TUNER_MAX_COLD };

/* What one knob can be. */
struct axis {
    size_t knob;
    struct value v[AXIS_MAX];
    int n, start; /* v[start] is the start's */
};

struct axes {
    struct axis a[SPACE_MAX_KNOBS];
    int n;
};

struct digits {
    int d[SPACE_MAX_KNOBS];
};

/* --- one knob --- */

static int too_many(const struct knob *k, int max, struct err *e)
{
    return err_set(e, -E2BIG, "'systemParameters.%s' has too many values: at most %d settings can be tried", k->name,
                   max);
}

static int find_value(const struct axis *a, const struct value *v)
{
    int i = 0;
    while (i < a->n && !value_equal(&a->v[i], v))
        i++;
    return i;
}

/* Each value once. */
static bool add_value(struct axis *a, const struct value *v, int max)
{
    if (find_value(a, v) < a->n)
        return true;
    if (a->n == max)
        return false;
    a->v[a->n++] = *v;
    return true;
}

static int by_number(const void *x, const void *y)
{
    const struct value *a = x, *b = y;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int fill_axis(struct axis *a, const struct space *s, const struct offer *offer, const struct setting *start,
                     int max, struct err *e)
{
    const struct knob *k = &s->knobs[a->knob];
    bool ok = true;
    for (size_t i = 0; ok && i < k->n; i++) {
        struct setting at = *start; /* with this knob changed: what the offer makes of it is the value */
        const struct offer memory = { .memory_gb =
                                          offer->memory_gb }; /* what lies with other knobs is left out later */
        char why[SETTING_WHY_MAX];
        at.v[a->knob] = k->values[i];
        at = setting_effective(s, &at, offer);
        if (k->kind->id != KNOB_MEMORY || !setting_infeasible(s, &at, &memory, why))
            ok = add_value(a, &at.v[a->knob], max);
    }
    if (!ok || !add_value(a, &start->v[a->knob], max)) /* the user's own value may be none of the candidates */
        return too_many(k, max, e);
    if (k->kind->hot || k->kind->id == KNOB_MEMORY) /* ascending wherever it is changed */
        qsort(a->v, (size_t)a->n, sizeof a->v[0], by_number);
    a->start = find_value(a, &start->v[a->knob]);
    return 0;
}

/* The knobs of one temperature; cores and memory count slowest. */
static int fill_axes(struct axes *x, bool hot, const struct space *s, const struct offer *offer,
                     const struct setting *start, int max, struct err *e)
{
    for (int first = 1; first >= 0; first--) {
        for (size_t i = 0; i < s->n_knobs; i++) {
            const struct knob_kind *kind = s->knobs[i].kind;
            bool leads = kind->id == KNOB_CORES || kind->id == KNOB_MEMORY;
            if (knob_is_hot(&s->knobs[i]) != hot || leads != (first == 1))
                continue;
            struct axis *a = &x->a[x->n++];
            a->knob = i;
            int rc = fill_axis(a, s, offer, start, max, e);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

/* --- their combinations --- */

static int by_digits(const void *x, const void *y)
{
    const struct digits *a = x, *b = y;
    for (int i = 0; i < SPACE_MAX_KNOBS; i++)
        if (a->d[i] != b->d[i])
            return a->d[i] < b->d[i] ? -1 : 1;
    return 0;
}

static struct digits start_digits(const struct axes *x)
{
    struct digits at = { 0 };
    for (int i = 0; i < x->n; i++)
        at.d[i] = x->a[i].start;
    return at;
}

static int differences(const struct axes *x, const struct digits *at)
{
    int n = 0;
    for (int i = 0; i < x->n; i++)
        n += at->d[i] != x->a[i].start;
    return n;
}

/* False: that was the last one. */
static bool count_up(const struct axes *x, struct digits *at)
{
    for (int i = x->n - 1; i >= 0; i--) {
        if (++at->d[i] < x->a[i].n)
            return true;
        at->d[i] = 0;
    }
    return false;
}

/* The start and what differs from it in one knob; the others from the cheapest up while there is room. Never counts through more
 * combinations than fit. */
static int combine(const struct axes *x, struct digits *out, int max, const struct space *s, struct err *e)
{
    int n = 0;
    const struct digits start = start_digits(x);
    out[n++] = start;
    for (int i = 0; i < x->n; i++)
        for (int v = 0; v < x->a[i].n; v++) {
            if (v == start.d[i])
                continue;
            if (n == max)
                return too_many(&s->knobs[x->a[i].knob], max, e);
            out[n] = start;
            out[n++].d[i] = v;
        }
    struct digits at = { 0 };
    bool more = x->n > 0;
    for (; more && n < max; more = count_up(x, &at))
        if (differences(x, &at) > 1)
            out[n++] = at;
    qsort(out, (size_t)n, sizeof out[0], by_digits);
    return n;
}

/* Writes the combinations over copies of the start. Returns how many; *at is the start's. */
static int make(struct setting *out, int max, int *at, bool hot, const struct space *s, const struct offer *offer,
                const struct setting *start, struct err *e)
{
    AUTO_FREE struct axes *x = calloc(1, sizeof *x);
    struct digits digits[AXIS_MAX];
    if (!x)
        return err_sys(e, -ENOMEM, "system parameters");
    int rc = fill_axes(x, hot, s, offer, start, max, e);
    int n = rc < 0 ? rc : combine(x, digits, max, s, e), kept = 0;
    for (int i = 0; i < n; i++) {
        char why[SETTING_WHY_MAX];
        struct setting *to = &out[kept];
        *to = *start;
        for (int a = 0; a < x->n; a++)
            to->v[x->a[a].knob] = x->a[a].v[digits[i].d[a]];
        bool is_start = differences(x, &digits[i]) == 0;
        if (is_start)
            *at = kept;
        kept += is_start || hot || !setting_infeasible(s, to, offer, why);
    }
    return n < 0 ? n : kept;
}

int choices_make(struct choices *out, const struct space *s, const struct offer *offer, const struct setting *start,
                 struct err *e)
{
    AUTO_FREE struct choices *c = calloc(1, sizeof *c); /* large, and *out is untouched on failure */
    if (!c)
        return err_sys(e, -ENOMEM, "system parameters");
    struct setting from = setting_effective(s, start, offer);
    c->n_hot = make(c->hot, TUNER_MAX_HOT, &c->start.hot, true, s, offer, &from, e);
    if (c->n_hot < 0)
        return c->n_hot;
    c->n_cold = make(c->cold, TUNER_MAX_COLD, &c->start.cold, false, s, offer, &from, e);
    if (c->n_cold < 0)
        return c->n_cold;
    *out = *c;
    return 0;
}

/* --- what they are --- */

static bool alike_but_memory(const struct space *s, const struct setting *a, const struct setting *b)
{
    for (size_t i = 0; i < s->n_knobs; i++) {
        const struct knob_kind *kind = s->knobs[i].kind;
        if (!knob_is_hot(&s->knobs[i]) && kind->id != KNOB_MEMORY && !value_equal(&a->v[i], &b->v[i]))
            return false;
    }
    return true;
}

struct tuner_space choices_tuner_space(const struct choices *c, const struct space *s)
{
    struct tuner_space t = { .n_hot = c->n_hot, .n_cold = c->n_cold };
    for (int i = 0; i < c->n_hot; i++) /* where cores are no knob all settings have as many: only ratios count */
        t.cores[i] = setting_number(s, &c->hot[i], KNOB_CORES, 1);
    for (int i = 0; i < c->n_cold; i++) {
        t.memory[i] = setting_number(s, &c->cold[i], KNOB_MEMORY, 0);
        while (!alike_but_memory(s, &c->cold[t.other[i]], &c->cold[i]))
            t.other[i]++;
    }
    return t;
}

struct setting choices_setting(const struct choices *c, const struct space *s, struct tuner_setting at)
{
    assert(at.hot >= 0 && at.hot < c->n_hot && at.cold >= 0 && at.cold < c->n_cold);
    struct setting set = c->cold[at.cold];
    for (size_t i = 0; i < s->n_knobs; i++)
        if (knob_is_hot(&s->knobs[i]))
            set.v[i] = c->hot[at.hot].v[i];
    return set;
}

/* Do two hot settings differ in their cores at most? */
static bool are_alike(const struct space *s, const struct setting *a, const struct setting *b)
{
    bool alike = true;
    for (size_t i = 0; i < s->n_knobs; i++)
        alike &= !knob_is_hot(&s->knobs[i]) || s->knobs[i].kind->id == KNOB_CORES || value_equal(&a->v[i], &b->v[i]);
    return alike;
}

struct tuner_setting choices_with(const struct choices *c, const struct space *s, struct tuner_setting at, double cores)
{
    int best = -1;
    for (int h = 0; h < c->n_hot; h++) { /* ascending by cores */
        double has = setting_number(s, &c->hot[h], KNOB_CORES, NAN);
        if (are_alike(s, &c->hot[h], &c->hot[at.hot]) && (best < 0 || has <= cores))
            best = h;
    }
    bool asked = setting_number(s, &c->hot[at.hot], KNOB_CORES, cores) == cores;
    return asked || best < 0 ? at : (struct tuner_setting){ best, at.cold };
}

int choices_more_memory(const struct choices *c, const struct space *s, int cold)
{
    const struct tuner_space t = choices_tuner_space(c, s);
    return tuner_space_step(&t, cold, 1);
}

int choices_hot_within(const struct choices *c, const struct space *s, double cores)
{
    int n = 1;
    while (n < c->n_hot && setting_number(s, &c->hot[n], KNOB_CORES, 0) <= cores)
        n++;
    return n;
}
