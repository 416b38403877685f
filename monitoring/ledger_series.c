#include "monitoring/ledger_series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "monitoring/ledger.h"

enum { GIVES_WAY = 20 }; /* an overlap of up to one part in so many is clocks, more is another reader */

void ledger_series_done(struct ledger_series *s)
{
    free(s->v);
    *s = (struct ledger_series){ .kind = s->kind };
}

/* The first that ends after t; n: none does. */
static size_t first_after(struct ledger_series *s, double t)
{
    for (size_t i = s->hint; i < s->n && i <= s->hint + 1; i++)
        if (s->v[i].to_ms > t && (i == 0 || s->v[i - 1].to_ms <= t))
            return s->hint = i;
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->v[mid].to_ms > t)
            high = mid;
        else
            low = mid + 1;
    }
    return s->hint = low;
}

/* --- holes --- */

/* A step between two points is usual where it is no longer than LEDGER_GAP times a median of steps nearby: of those before it, of those behind
 * it, or of both and itself. So a change of the interval is none, and a hole on either side of a few steps makes no other one usual. */
enum {
    STEPS = LEDGER_NEAR, /* on either side */
    STEPS_MIN = 2,       /* of which a side has a say of its own */
};
static const double JITTER = 1.02; /* what is called a hole never hangs on a clock's */

struct steps {
    size_t n, long_enough;
};

/* Of steps i to end - 1, how many have at_least. */
static struct steps steps_of(const struct ledger_series *s, size_t i, size_t end, double at_least_ms)
{
    struct steps x = { .n = end - i };
    for (; i < end; i++)
        x.long_enough += s->v[i + 1].from_ms - s->v[i].from_ms >= at_least_ms;
    return x;
}

/* Is their (lower) median long enough? */
static bool mostly(const struct steps *x)
{
    return x->long_enough > x->n / 2;
}

static bool is_hole(const struct ledger_series *s, size_t i)
{
    double at_least_ms = (s->v[i + 1].from_ms - s->v[i].from_ms) / (LEDGER_GAP * JITTER);
    size_t last = s->n - 1; /* there are as many steps */
    struct steps before = steps_of(s, i > STEPS ? i - STEPS : 0, i, at_least_ms);
    if (before.n >= STEPS_MIN && mostly(&before))
        return false;
    struct steps after = steps_of(s, i + 1, i + 1 + STEPS < last ? i + 1 + STEPS : last, at_least_ms);
    struct steps all = { before.n + 1 + after.n, before.long_enough + 1 + after.long_enough };
    return !(after.n >= STEPS_MIN && mostly(&after)) && !mostly(&all);
}

bool ledger_series_final(const struct ledger_series *s, size_t i)
{
    return s->kind == LEDGER_SPANS || i + 1 + STEPS < s->n;
}

/* --- adding --- */

/* Where it belongs by its beginning; what is behind begins no earlier. */
static size_t place_of(const struct ledger_series *s, double from)
{
    size_t low = 0, high = s->n;
    if (s->n == 0 || s->v[s->n - 1].from_ms < from)
        return s->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->v[mid].from_ms >= from)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Is there room for it at i, perhaps with edges that give way? */
static bool fits(const struct ledger_series *s, size_t i, struct ledger_span *x)
{
    double from = x->from_ms, to = x->to_ms;
    if (s->kind != LEDGER_SPANS)
        return i == s->n || s->v[i].from_ms > to;
    if (i > 0)
        from = fmax(from, s->v[i - 1].to_ms);
    if (i < s->n)
        to = fmin(to, s->v[i].from_ms);
    double length = x->to_ms - x->from_ms;
    if (!(to > from) || length - (to - from) > length / GIVES_WAY)
        return false;
    x->from_ms = from;
    x->to_ms = to;
    return true;
}

int ledger_series_add(struct ledger_series *s, double from_ms, double to_ms, double value, double error)
{
    struct ledger_span x = { from_ms, to_ms, value, error };
    if (!isfinite(from_ms) || !isfinite(to_ms) || from_ms > to_ms || (s->kind == LEDGER_SPANS && from_ms == to_ms))
        return 0;
    size_t i = place_of(s, from_ms);
    if (!fits(s, i, &x))
        return 0;
    struct ledger_span *v = array_more(s->v, s->n, &s->cap, sizeof *v);
    if (!v)
        return -ENOMEM;
    s->v = v;
    memmove(&v[i + 1], &v[i], (s->n - i) * sizeof *v);
    s->inserted += i < s->n++;
    v[i] = x;
    s->peak_w = fmax(s->peak_w, s->kind == LEDGER_SPANS ? value / (x.to_ms - x.from_ms) * 1000 : value);
    return 0;
}

/* --- asking --- */

size_t ledger_series_count(struct ledger_series *s, double from_ms, double to_ms)
{
    return from_ms < to_ms ? first_after(s, to_ms) - first_after(s, from_ms) : 0;
}

struct ledger_sum ledger_series_sum(struct ledger_series *s, double from_ms, double to_ms)
{
    struct ledger_sum sum = { 0 };
    if (s->n == 0 || s->v[0].from_ms >= to_ms || s->v[s->n - 1].to_ms <= from_ms)
        return sum;
    for (size_t i = first_after(s, from_ms); i < s->n && s->v[i].from_ms < to_ms; i++) {
        const struct ledger_span *x = &s->v[i];
        double length = fmin(x->to_ms, to_ms) - fmax(x->from_ms, from_ms);
        sum.value += x->value * (length / (x->to_ms - x->from_ms));
        sum.covered_ms += length;
    }
    sum.covered_ms = fmin(sum.covered_ms, to_ms - from_ms); /* no more than there is, by rounding */
    return sum;
}

static int between_points(const struct ledger_series *s, size_t i, struct ledger_piece *out)
{
    const struct ledger_span *a = &s->v[i], *b = a + 1;
    double ms = b->from_ms - a->from_ms;
    if (is_hole(s, i))
        return 0;
    /* A power that only rises or only falls from one reading to the next stays between them. */
    double off_w = fabs(b->value - a->value) / 2 + (a->error > b->error ? a->error : b->error);
    if (isnan(a->error))
        off_w = NAN;
    *out = (struct ledger_piece){ .from_ms = a->from_ms,
                                  .to_ms = b->from_ms,
                                  .j = (a->value + b->value) / 2 * ms / 1000,
                                  .error_j = off_w * ms / 1000 };
    return 1;
}

int ledger_series_piece(struct ledger_series *s, size_t i, struct ledger_piece *out)
{
    if (i + (s->kind == LEDGER_POINTS) >= s->n)
        return -ENODATA;
    if (s->kind == LEDGER_POINTS)
        return between_points(s, i, out);
    const struct ledger_span *x = &s->v[i];
    *out = (struct ledger_piece){ .from_ms = x->from_ms, .to_ms = x->to_ms, .j = x->value, .error_j = x->error };
    return 1;
}

struct ledger_walk ledger_walk_begin(struct ledger_series *s, double from_ms, double to_ms)
{
    size_t i = first_after(s, from_ms);
    return (struct ledger_walk){
        .s = s, .i = i > 0 && s->kind == LEDGER_POINTS ? i - 1 : i, .from_ms = from_ms, .to_ms = to_ms
    };
}

bool ledger_walk_next(struct ledger_walk *w, struct ledger_piece *out)
{
    for (;;) {
        int rc = ledger_series_piece(w->s, w->i, out);
        if (rc < 0)
            return false;
        w->i++;
        if (rc == 0)
            continue;
        out->cut_from_ms = fmax(out->from_ms, w->from_ms);
        out->cut_to_ms = fmin(out->to_ms, w->to_ms);
        if (out->from_ms >= w->to_ms)
            return false;
        if (out->cut_from_ms < out->cut_to_ms)
            return true;
    }
}
