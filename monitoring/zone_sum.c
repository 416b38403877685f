#include "monitoring/zone_sum.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/meter_util.h"

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e9;
}

void zone_sum_init(struct zone_sum *s, double max_w)
{
    memset(s, 0, sizeof *s);
    s->max_w = max_w;
    s->twins_known = true;
}

int zone_sum_zone(struct zone_sum *s, const struct zone_counter *c)
{
    if (s->n == ZONE_SUM_MAX)
        return -E2BIG;
    for (int i = 0; i < s->n; i++)
        if (c->twins >= 0 && s->v[i].of.twins == c->twins)
            s->twins_known = false;
    s->v[s->n++] = (struct zone_state){ .of = *c };
    return 0;
}

void zone_sum_restart(struct zone_sum *s)
{
    s->begun = false;
    s->usual_s = 0;
}

/* All that follows is counted from these counts on. */
static void begin(struct zone_sum *s, int64_t now_ns, double skew_s, const uint64_t *counts)
{
    for (int i = 0; i < s->n; i++) {
        struct zone_state *z = &s->v[i];
        z->last = counts[i];
        z->moved_ns = now_ns;
        z->pending_j = z->rounds_j = z->run_j = 0;
    }
    s->begun = true;
    s->from_ns = s->read_ns = s->run_ns = now_ns;
    s->run_skew_s = skew_s;
    s->run_reads = 0;
}

/* --- one zone --- */

struct gain {
    double j, rounds_j;
};

/* 0, or -1 and why. What a zone that stood still takes at once was taken in all the time since it moved, which its reading will cover; one
 * that may rest has readings of that time already. */
static int zone_gain(const struct zone_sum *s, const struct zone_state *z, uint64_t count, int64_t now_ns, bool late,
                     struct gain *out, char why[METER_WHY_MAX])
{
    double s_of = seconds(z->of.rests ? s->read_ns : z->moved_ns, now_ns), range_j = (double)z->of.range * z->of.unit_j;
    bool back = count < z->last;
    if (back && (late || z->last > z->of.range)) {
        (void)snprintf(why, METER_WHY_MAX, "the counter of %s went back", z->of.name);
        return -1;
    }
    uint64_t counts = back ? z->of.range - z->last + count : count - z->last;
    struct gain g = { .j = (double)counts * z->of.unit_j };
    if (g.j > s->max_w * (s_of + 5 * ZONE_SUM_RENEWED_S)) {
        (void)snprintf(why, METER_WHY_MAX, "%s would have taken %.0f W, more than %.0f W", z->of.name, g.j / s_of,
                       s->max_w);
        return -1;
    }
    if (z->of.range > 0 && g.j + range_j <= s->max_w * s_of)
        g.rounds_j = floor((s->max_w * s_of - g.j) / range_j) * range_j;
    if (g.rounds_j > 0 && late) {
        (void)snprintf(why, METER_WHY_MAX, "the counter of %s may have gone round unseen in %.0f s", z->of.name, s_of);
        return -1;
    }
    *out = g;
    return 0;
}

static void advance(struct zone_state *z, uint64_t count, int64_t now_ns, const struct gain *g)
{
    if (count != z->last)
        z->moved_ns = now_ns;
    z->last = count;
    z->pending_j += g->j;
    z->run_j += g->j;
    z->rounds_j += g->rounds_j;
}

/* --- twins --- */

static bool are_twins(const struct zone_state *a, const struct zone_state *b)
{
    return a->of.twins >= 0 && a->of.twins == b->of.twins;
}

/* Further apart than one counter read twice can be: at both ends of the run it was read within the skew, and renewed or not yet. The
 * power of such a moment may be twice the mean. */
static bool apart(const struct zone_state *a, const struct zone_state *b, double run_s, double skew_s)
{
    double watts = fmax(a->run_j, b->run_j) / run_s;
    double slack = 2 * watts * (skew_s + 2 * ZONE_SUM_RENEWED_S) + 2 * (a->of.step_j + b->of.step_j);
    return fabs(a->run_j - b->run_j) > slack;
}

static void compare_twins(struct zone_sum *s, double skew_s)
{
    double run_s = seconds(s->run_ns, s->read_ns);
    bool all_differ = true;
    for (int i = 1; i < s->n; i++) {
        for (int k = 0; k < i; k++) {
            struct zone_state *z = &s->v[i];
            if (!are_twins(z, &s->v[k]))
                continue;
            if (apart(z, &s->v[k], run_s, s->run_skew_s + skew_s))
                z->differs |= 1ULL << k;
            all_differ = all_differ && z->differs >> k & 1;
        }
    }
    if (all_differ || (s->run_reads >= ZONE_SUM_TWIN_READS && run_s >= ZONE_SUM_TWIN_S))
        s->twins_known = true;
}

bool zone_sum_counts(const struct zone_sum *s, int zone)
{
    for (int k = 0; k < zone; k++)
        if (are_twins(&s->v[zone], &s->v[k]) && !(s->v[zone].differs >> k & 1))
            return false;
    return true;
}

/* --- all together --- */

static void discard(struct zone_sum *s, int64_t now_ns, double skew_s, const uint64_t *counts, const char *why,
                    struct meter_reading *out)
{
    meter_reading_set(out, METER_DISCARDED, s->from_ns, now_ns);
    (void)snprintf(out->why, sizeof out->why, "%s", why);
    begin(s, now_ns, skew_s, counts);
}

/* The first zone that stands still though it never rests; NULL: none. */
static const struct zone_state *standing(const struct zone_sum *s)
{
    for (int i = 0; i < s->n; i++)
        if (!s->v[i].of.rests && seconds(s->v[i].moved_ns, s->read_ns) >= ZONE_SUM_REST_S)
            return &s->v[i];
    return NULL;
}

static void hand_out(struct zone_sum *s, struct meter_reading *out)
{
    double lag = fmin(1, ZONE_SUM_RENEWED_S / seconds(s->from_ns, s->read_ns));
    meter_reading_set(out, METER_OK, s->from_ns, s->read_ns);
    out->value = out->error = 0;
    for (int i = 0; i < s->n; i++) {
        struct zone_state *z = &s->v[i];
        if (zone_sum_counts(s, i)) {
            out->value += z->pending_j;
            out->error += z->pending_j * lag + 2 * z->of.step_j + z->rounds_j;
        }
        z->pending_j = z->rounds_j = 0;
    }
    s->from_ns = s->read_ns;
}

/* All zones' gains are trusted. */
static void account(struct zone_sum *s, double skew_s, struct meter_reading *out)
{
    const struct zone_state *still = standing(s);
    compare_twins(s, skew_s);
    if (!s->twins_known) {
        meter_reading_set(out, METER_FIRST, s->read_ns, s->read_ns);
    } else if (still) {
        meter_reading_set(out, METER_DISCARDED, s->from_ns, s->read_ns);
        (void)snprintf(out->why, sizeof out->why, "the counter of %s stands still", still->of.name);
    } else {
        hand_out(s, out);
    }
}

void zone_sum_read(struct zone_sum *s, int64_t now_ns, double skew_s, const uint64_t *counts, struct meter_reading *out)
{
    struct gain gains[ZONE_SUM_MAX];
    char why[METER_WHY_MAX];
    if (!s->begun) {
        begin(s, now_ns, skew_s, counts);
        meter_reading_set(out, METER_FIRST, now_ns, now_ns);
        return;
    }
    double interval_s = seconds(s->read_ns, now_ns);
    if (interval_s <= 0) {
        discard(s, now_ns, skew_s, counts, "the clock did not go forward", out);
        return;
    }
    bool late = s->usual_s > 0 && interval_s > ZONE_SUM_LATE * s->usual_s;
    s->usual_s = interval_s;
    for (int i = 0; i < s->n; i++) {
        if (zone_gain(s, &s->v[i], counts[i], now_ns, late, &gains[i], why) == 0)
            continue;
        discard(s, now_ns, skew_s, counts, why, out);
        return;
    }
    for (int i = 0; i < s->n; i++)
        advance(&s->v[i], counts[i], now_ns, &gains[i]);
    s->read_ns = now_ns;
    s->run_reads++;
    account(s, skew_s, out);
}

void zone_sum_failed(const struct zone_sum *s, int64_t now_ns, struct meter_reading *out)
{
    meter_reading_set(out, METER_FAILED, s->begun ? s->from_ns : now_ns, now_ns);
}
