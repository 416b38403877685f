/* Energy counters of several zones, read together, become readings of their sum. Pure.
 *
 * An interval begins with the counts that were trusted last and ends with those just read. So:
 * - ok: the next interval begins where this one ended.
 * - failed: the counters go on, so the next interval begins where the failed one did, and its energy is in it.
 * - discarded, as a zone took more than it can, went back, or may have gone round unseen: what happened is not known; the next interval
 *   begins with the counts just read.
 * - discarded, as a zone stood still that never rests (a counter that is renewed more seldom than it is read, or never): the
 *   next interval begins where this one did.
 * An ok reading may so reach back over readings without a value, never over one with a value.
 *
 * A count below the one before has gone round at the zone's own range. That is believed when the power it makes is; not where the
 * interval is more than ZONE_SUM_LATE times the one before (a suspended machine's counters begin at 0). Read so
 * seldom that a zone at its greatest power could go round once more, a count cannot tell how often it did: late, it is discarded; else
 * the error holds the rounds that are possible.
 *
 * Twins are zones that may be one counter shown twice (dies of a package). Two are different from the first time on that their sums
 * are further apart than reading one counter twice can be; until then only the first one counts. Before this is known, which needs
 * ZONE_SUM_TWIN_READS intervals and ZONE_SUM_TWIN_S seconds at most, readings say "first", and the first one with a
 * value has all the energy since the beginning: nothing is counted twice, and nothing is lost. */
#ifndef MONITORING_ZONE_SUM_H
#define MONITORING_ZONE_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "monitoring/meter.h"

enum { ZONE_SUM_MAX = 64, ZONE_SUM_LATE = 3, ZONE_SUM_TWIN_READS = 3 };

#define ZONE_SUM_TWIN_S 1.0
#define ZONE_SUM_RENEWED_S 0.001 /* counters are renewed about so often, at moments that nobody tells */
#define ZONE_SUM_REST_S 0.1      /* a package that took nothing for so long stands still */

struct zone_counter {
    const char *name; /* kept */
    double unit_j;    /* of one count */
    double step_j;    /* its hardware's smallest step */
    uint64_t range;   /* the greatest count; 0: it never goes round, or nobody knows where */
    int twins;        /* the same number: may be one counter; -1: surely not */
    bool rests;       /* may stand still: memory, where some machines show a counter that is always 0 */
};

struct zone_state {
    struct zone_counter of;
    uint64_t last;    /* count at the last read */
    int64_t moved_ns; /* since when it is that */
    double pending_j; /* since from_ns */
    double rounds_j;  /* of what it may have gone round unseen since then */
    double run_j;     /* since run_ns */
    uint64_t differs; /* a bit for each zone before it: another counter for sure */
};

struct zone_sum {
    struct zone_state v[ZONE_SUM_MAX];
    int n;
    double max_w;
    bool begun, twins_known;
    int64_t from_ns, read_ns;
    double usual_s; /* the last interval's length; 0: none yet */
    int64_t run_ns; /* since when all intervals were trusted */
    int run_reads;
    double run_skew_s; /* how long the read at run_ns took */
};

/* No zone yet. */
void zone_sum_init(struct zone_sum *s, double max_w);

/* -E2BIG */
int zone_sum_zone(struct zone_sum *s, const struct zone_counter *c);

/* Forgets all counts: they begin anew. */
void zone_sum_restart(struct zone_sum *s);

/* All counts, in the order of the zones, read from now_ns on for skew_s. */
void zone_sum_read(struct zone_sum *s, int64_t now_ns, double skew_s, const uint64_t *counts,
                   struct meter_reading *out);

/* They could not be read. The caller writes why. */
void zone_sum_failed(const struct zone_sum *s, int64_t now_ns, struct meter_reading *out);

/* Does this zone count, by what is known of its twins? */
bool zone_sum_counts(const struct zone_sum *s, int zone);

#endif
