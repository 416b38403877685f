#include "search/several.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "search/front.h"

#define MARGIN 0.05 /* of what a metric ranged over at that epoch: it may still change places by so much */
#define AUGMENT                                                                                                        \
    0.05 /* of the sum of all distances, beside the greatest: so that what is worse in one of them alone counts less */

_Static_assert((int)GOALS_MAX == (int)FRONT_MAX, "what can be wanted can be compared");

/* Small is good in each figure. */
struct mark {
    uint64_t id;
    int epoch;
    double f[GOALS_MAX];
};

struct trial {
    uint64_t bad;  /* 1: it could not be trained, or is not admitted */
    size_t newest; /* mark + 1; 0: none */
};

struct several {
    struct goals goals;
    int epochs;
    struct mark *marks;
    size_t n_marks, cap_marks;
    struct trial *trials; /* by id */
    size_t n, cap;
    double low[GOALS_MAX], high[GOALS_MAX]; /* of the newest figures: the best of all, the worst of the front */
    size_t *ids, *ranks;                    /* room for all trials, */
    double *points, *work;                  /* and for their figures */
    size_t room;
};

int several_new(struct several **out, const struct search_cfg *cfg)
{
    struct several *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->goals = *cfg->goals;
    s->epochs = cfg->epochs;
    *out = s;
    return 0;
}

void several_free(struct several *s)
{
    if (!s)
        return;
    free(s->marks);
    free(s->trials);
    free(s->ids);
    free(s->ranks);
    free(s->points);
    free(s->work);
    free(s);
}

/* --- room --- */

static int room_for_trials(struct several *s, size_t n)
{
    size_t m = s->goals.n, room = n + n / 2 + 16;
    if (n <= s->room)
        return 0;
    size_t *ids = realloc(s->ids, room * sizeof *ids);
    s->ids = ids ? ids : s->ids;
    size_t *ranks = realloc(s->ranks, room * sizeof *ranks);
    s->ranks = ranks ? ranks : s->ranks;
    double *points = realloc(s->points, room * m * sizeof *points);
    s->points = points ? points : s->points;
    double *work = realloc(s->work, front_work(room, m) * sizeof *work);
    s->work = work ? work : s->work;
    if (!ids || !ranks || !points || !work)
        return -ENOMEM;
    s->room = room;
    return 0;
}

/* For one mark, and for all trials up to this one. */
static int make_room(struct several *s, uint64_t id)
{
    struct mark *marks = array_more(s->marks, s->n_marks, &s->cap_marks, sizeof *marks);
    if (!marks)
        return -ENOMEM;
    s->marks = marks;
    while (s->n <= id) {
        struct trial *trials = array_more(s->trials, s->n, &s->cap, sizeof *trials);
        if (!trials)
            return -ENOMEM;
        s->trials = trials;
        s->trials[s->n++] = (struct trial){ .newest = 0 };
    }
    return room_for_trials(s, s->n);
}

/* --- what is told --- */

static double metric_told(const struct told *t, const struct goal *g, bool first)
{
    for (size_t i = 0; i < t->n_metrics; i++)
        if (strcasecmp(t->metrics[i].name, g->name) == 0)
            return t->metrics[i].value;
    return first ? t->value : (double)NAN;
}

static double figure_told(const struct several *s, const struct told *t, const struct goal *g)
{
    double whole = (double)s->epochs / t->epoch;
    switch (g->kind) {
    case GOAL_SECONDS: return t->seconds > 0 ? t->seconds * whole : (double)NAN;
    case GOAL_JOULES: return t->joules > 0 ? t->joules * whole : (double)NAN;
    case GOAL_METRIC: break;
    }
    double x = metric_told(t, g, g == goals_first_told(&s->goals));
    return g->maximise ? -x : x;
}

static const struct mark *newest_of(const struct several *s, uint64_t id)
{
    return id < s->n && s->trials[id].newest ? &s->marks[s->trials[id].newest - 1] : NULL;
}

static bool is_whole(const struct several *s, const struct mark *m)
{
    for (size_t k = 0; k < s->goals.n; k++)
        if (!isfinite(m->f[k]))
            return false;
    return true;
}

/* The newest figures that count. */
static const struct mark *standing_of(const struct several *s, uint64_t id)
{
    const struct mark *m = newest_of(s, id);
    return m && is_whole(s, m) && !s->trials[id].bad ? m : NULL;
}

static size_t mark_at(const struct several *s, uint64_t id, int epoch)
{
    size_t i = 0;
    while (i < s->n_marks && (s->marks[i].id != id || s->marks[i].epoch != epoch))
        i++;
    return i;
}

/* A figure that is not told any more, as of metrics when a trial ends, stays as it was. */
static void put_mark(struct several *s, const struct told *t)
{
    const struct mark *before = newest_of(s, t->id);
    struct mark m = { .id = t->id, .epoch = t->epoch };
    for (size_t k = 0; k < s->goals.n; k++) {
        m.f[k] = figure_told(s, t, &s->goals.v[k]);
        if (isnan(m.f[k]) && before)
            m.f[k] = before->f[k];
    }
    size_t at = mark_at(s, t->id, t->epoch);
    s->n_marks += at == s->n_marks;
    s->marks[at] = m;
    s->trials[t->id].newest = at + 1;
}

/* The figures of all that count, one row each; their ids are in s->ids. */
static size_t gather(struct several *s, size_t n)
{
    size_t kept = 0, m = s->goals.n;
    for (size_t i = 0; i < n; i++) {
        const struct mark *at = standing_of(s, i);
        if (!at)
            continue;
        s->ids[kept] = i;
        memcpy(s->points + kept++ * m, at->f, m * sizeof *s->points);
    }
    return kept;
}

static void set_bounds(struct several *s)
{
    size_t m = s->goals.n, n = gather(s, s->n);
    front_ranks(s->points, n, m, s->ranks, s->work);
    for (size_t k = 0; k < m; k++) {
        double low = INFINITY, high = -INFINITY, all = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            double x = s->points[i * m + k];
            low = fmin(low, x);
            all = fmax(all, x);
            high = s->ranks[i] == 0 ? fmax(high, x) : high;
        }
        s->low[k] = low;
        s->high[k] = high > low ? high : all; /* one is best in all: then by how far the others lie */
    }
}

bool several_figures(const struct several *s, uint64_t id, double out[GOALS_MAX])
{
    const struct mark *m = standing_of(s, id);
    for (size_t k = 0; m && k < s->goals.n; k++) {
        double range = s->high[k] > s->low[k] ? s->high[k] - s->low[k] : 1;
        out[k] = (m->f[k] - s->low[k]) / range;
    }
    return m;
}

double several_distance(const double *figures, const double *weights, size_t n)
{
    double most = -INFINITY, sum = 0;
    for (size_t k = 0; k < n; k++) {
        double z = weights[k] * figures[k];
        most = fmax(most, z);
        sum += z;
    }
    return most + AUGMENT * sum;
}

int several_tell(struct several *s, const struct told *t, struct told *out)
{
    static const double equal[GOALS_MAX] = { 1, 1, 1, 1 };
    double figures[GOALS_MAX];
    if (make_room(s, t->id) < 0)
        return -ENOMEM;
    struct trial *tr = &s->trials[t->id];
    bool trained = t->kind == TOLD_EPOCH || t->kind == TOLD_FINISHED || t->kind == TOLD_STOPPED;
    if (trained && t->epoch > 0)
        put_mark(s, t);
    tr->bad |= t->kind == TOLD_FAILED || t->kind == TOLD_INFEASIBLE;
    set_bounds(s);
    *out = *t;
    bool known = trained && several_figures(s, t->id, figures);
    out->value = known ? several_distance(figures, equal, s->goals.n) : (double)NAN;
    return 0;
}

/* --- ending at an epoch --- */

/* By how much a figure must be better there: a cost is what it is. */
static void set_margins(const struct several *s, int epoch, double margin[GOALS_MAX])
{
    for (size_t k = 0; k < s->goals.n; k++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < s->n_marks; i++)
            if (s->marks[i].epoch == epoch && isfinite(s->marks[i].f[k])) {
                low = fmin(low, s->marks[i].f[k]);
                high = fmax(high, s->marks[i].f[k]);
            }
        margin[k] = s->goals.v[k].kind == GOAL_METRIC && high > low ? MARGIN * (high - low) : 0;
    }
}

static bool is_beaten(const struct several *s, const struct mark *by, const struct mark *m, const double *margin)
{
    bool better = false;
    for (size_t k = 0; k < s->goals.n; k++) {
        double f = m->f[k] - margin[k];
        if (isnan(m->f[k]) || !(by->f[k] <= f))
            return false;
        better |= by->f[k] < m->f[k];
    }
    return better;
}

/* The first that beats it there; NULL: none does, or it is one itself that has not told all. */
static const struct mark *beaten_by(const struct several *s, const struct told *t)
{
    double margin[GOALS_MAX];
    size_t at = mark_at(s, t->id, t->epoch);
    if (at == s->n_marks || !is_whole(s, &s->marks[at]))
        return NULL;
    set_margins(s, t->epoch, margin);
    for (size_t i = 0; i < s->n_marks; i++) {
        const struct mark *o = &s->marks[i];
        if (o->epoch == t->epoch && o->id != t->id && !s->trials[o->id].bad && is_whole(s, o) &&
            is_beaten(s, o, &s->marks[at], margin))
            return o;
    }
    return NULL;
}

bool several_may_end(const struct several *s, const struct told *t)
{
    return !s || beaten_by(s, t);
}

void several_explain(const struct several *s, const struct told *t, char why[SEARCH_WHY_MAX])
{
    const struct mark *by = beaten_by(s, t);
    if (!by)
        return;
    const struct mark *m = &s->marks[mark_at(s, t->id, t->epoch)];
    int len = snprintf(why, SEARCH_WHY_MAX, "after %d epoch%s trial %llu was better:", t->epoch,
                       t->epoch == 1 ? "" : "s", (unsigned long long)by->id + 1);
    for (size_t k = 0; k < s->goals.n && len < SEARCH_WHY_MAX; k++) {
        const struct goal *g = &s->goals.v[k];
        double part = g->kind == GOAL_METRIC ? (g->maximise ? -1 : 1) : (double)t->epoch / s->epochs;
        len += snprintf(why + len, (size_t)(SEARCH_WHY_MAX - len), "%s %s %.4g, not %.4g", k ? "," : "", g->name,
                        part * by->f[k], part * m->f[k]);
    }
}

/* --- what algorithms ask --- */

size_t several_order(struct several *s, size_t n, size_t *order)
{
    size_t told = n < s->n ? n : s->n, kept = gather(s, told), at = kept;
    if (kept > 0)
        front_order(s->points, kept, s->goals.n, order, s->ranks, s->work);
    for (size_t i = 0; i < kept; i++)
        order[i] = s->ids[order[i]];
    for (size_t i = 0; i < n; i++)
        if (!standing_of(s, i))
            order[at++] = i;
    return kept;
}

bool several_is_bad(const struct several *s, uint64_t id)
{
    return id < s->n && s->trials[id].bad;
}

size_t several_goals(const struct several *s)
{
    return s->goals.n;
}

/* --- its state --- */

void several_save(const struct several *s, struct buf *out)
{
    pack_u64(out, s->n);
    for (size_t i = 0; i < s->n; i++) {
        pack_u64(out, s->trials[i].bad);
        pack_u64(out, s->trials[i].newest);
    }
    pack_u64(out, s->n_marks);
    for (size_t i = 0; i < s->n_marks; i++) {
        pack_u64(out, s->marks[i].id);
        pack_u64(out, (uint64_t)s->marks[i].epoch);
        for (size_t k = 0; k < s->goals.n; k++)
            pack_f64(out, s->marks[i].f[k]);
    }
}

static int restore_marks(struct several *s, struct unpack *from)
{
    for (size_t n = unpack_count(from, 24); n > 0; n--) {
        struct mark *marks = array_more(s->marks, s->n_marks, &s->cap_marks, sizeof *marks);
        if (!marks)
            return -ENOMEM;
        s->marks = marks;
        struct mark m = { .id = unpack_u64(from) };
        uint64_t epoch = unpack_u64(from);
        for (size_t k = 0; k < s->goals.n; k++)
            m.f[k] = unpack_f64(from);
        if (m.id >= s->n || epoch == 0 || epoch > (uint64_t)s->epochs)
            return -EPROTO;
        m.epoch = (int)epoch;
        s->marks[s->n_marks++] = m;
    }
    return from->bad ? -EPROTO : 0;
}

int several_restore(struct several *s, struct unpack *from)
{
    size_t n = unpack_count(from, 16);
    if (n > 0 && make_room(s, n - 1) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        s->trials[i].bad = unpack_u64(from);
        s->trials[i].newest = unpack_u64(from);
    }
    int rc = restore_marks(s, from);
    for (size_t i = 0; i < n && rc == 0; i++) {
        size_t newest = s->trials[i].newest;
        if (s->trials[i].bad > 1 || newest > s->n_marks || (newest > 0 && s->marks[newest - 1].id != i))
            rc = -EPROTO;
    }
    if (rc == 0 && n > 0)
        set_bounds(s);
    return rc;
}
