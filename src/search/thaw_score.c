/* Scores: values as the normal process takes them, less is better. A value's score is the normal quantile of its rank at its step, where those that
 * never came that far count as worse; and in part it is by how far values lie apart. So a score says how good a trial is among all; it does not
 * drift as losses fall; and curves that are flat for long and then fall are as good as others. */
#include <math.h>
#include <stdlib.h>

#include "search/thaw_state.h"

#define BY_RANK 0.25 /* the rest is by distance */
#define BEYOND 0.3   /* by so much is better, or worse, what is beyond all that were known */
enum { DISTANCES_MIN = 3 };

static int by_value(const void *a, const void *b)
{
    const struct thaw_scored *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static double normal_quantile(double p)
{
    double low = -9, high = 9;
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        if (0.5 * erfc(-middle * M_SQRT1_2) < p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static size_t collect(const struct thaw *t, int step, struct thaw_scored *v)
{
    size_t n = 0;
    for (size_t i = 0; i < t->built_log; i++)
        if (t->log[i].step == step)
            v[n++] = (struct thaw_scored){ .value = t->log[i].value, .at = i };
    qsort(v, n, sizeof *v, by_value);
    return n;
}

/* Scores by rank, moved to where distances would put them. */
static void mix_distances(const struct thaw *t, struct thaw_scored *v, size_t n)
{
    double score = 0, place = 0, scores = 0, places = 0, count = (double)n;
    for (size_t i = 0; i < n; i++) {
        score += v[i].score / count;
        place += thaw_warped(&t->warp, v[i].value) / count;
    }
    for (size_t i = 0; i < n; i++) {
        double x = thaw_warped(&t->warp, v[i].value) - place;
        scores += (v[i].score - score) * (v[i].score - score);
        places += x * x;
    }
    if (n < DISTANCES_MIN || !(scores > 0) || !(places > 1e-9))
        return;
    for (size_t i = 0; i < n; i++) {
        double apart = score + sqrt(scores / places) * (thaw_warped(&t->warp, v[i].value) - place);
        v[i].score = BY_RANK * v[i].score + (1 - BY_RANK) * apart;
    }
}

/* What is equal has equal scores. */
static void note_scores(struct thaw *t, const struct thaw_scored *v, size_t n)
{
    for (size_t from = 0, to = 0; from < n; from = to) {
        double sum = 0;
        for (; to < n && v[to].value == v[from].value; to++)
            sum += v[to].score;
        for (size_t i = from; i < to; i++)
            t->log[v[i].at].score = sum / (double)(to - from);
    }
}

void thaw_score_log(struct thaw *t, struct thaw_scored *v)
{
    size_t all = 0;
    for (int step = 0; step < t->times.n; step++) {
        size_t n = collect(t, step, v);
        all = n > all ? n : all;
        for (size_t i = 0; i < n; i++)
            v[i].score = normal_quantile(((double)i + 0.5) / (double)all);
        mix_distances(t, v, n);
        note_scores(t, v, n);
    }
}

/* The nearest values of the same step, as of the newest build. */
static const struct thaw_log *nearest(const struct thaw *t, const struct thaw_log *of, bool worse)
{
    const struct thaw_log *best = NULL;
    for (size_t i = 0; i < t->built_log; i++) {
        const struct thaw_log *l = &t->log[i];
        if (l->step != of->step || (worse ? l->value < of->value : l->value > of->value))
            continue;
        if (!best || (worse ? l->value <= best->value : l->value >= best->value))
            best = l;
    }
    return best;
}

/* Of the same trial before; NAN: there is none. */
static double score_before(const struct thaw *t, size_t at)
{
    double score = NAN;
    for (size_t i = 0; i < at; i++)
        if (t->log[i].trial == t->log[at].trial && t->log[i].step < t->log[at].step)
            score = t->log[i].score;
    return score;
}

double thaw_score_later(const struct thaw *t, size_t at)
{
    const struct thaw_log *l = &t->log[at], *better = nearest(t, l, false), *worse = nearest(t, l, true);
    double before = score_before(t, at);
    if (better && worse) {
        double gap = worse->value - better->value;
        double part = gap > 1e-12 && isfinite(gap) ? (l->value - better->value) / gap : 0.5;
        return better->score + (worse->score - better->score) * (0.25 + 0.5 * part);
    }
    if (worse)
        return worse->score - BEYOND;
    if (better)
        return isnan(before) ? better->score + BEYOND : fmax(better->score + BEYOND / 3, before);
    return isnan(before) ? 0 : before;
}

double thaw_unscored(const struct thaw *t, double score)
{
    const struct thaw_log *low = NULL, *high = NULL;
    for (size_t i = 0; i < t->n_log; i++) {
        const struct thaw_log *l = &t->log[i];
        if (l->step != t->times.n - 1 || !isfinite(l->value))
            continue;
        if (l->score <= score && (!low || l->score > low->score))
            low = l;
        if (l->score >= score && (!high || l->score < high->score))
            high = l;
    }
    if (!low || !high)
        return NAN;
    double gap = high->score - low->score;
    return gap > 0 ? low->value + (high->value - low->value) * (score - low->score) / gap : low->value;
}
