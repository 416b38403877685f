/* The text of `perf stat -I`, plain or separated (-x), as cells of (interval, event). Pure.
 *
 *     #           time             counts unit events
 *          1.000106442           1,003.01 msec cpu-clock          #    1.003 CPUs utilized
 *          1.000106442          1,234,567      branches           #   67.333 M/sec          (57.14%)
 *          1.000106442      <not counted>      LLC-loads                                     (0.00%)
 *          1.000106442    <not supported>      node-loads
 *
 *     1.000106442,1234567,,branches,571400000,57.14,67.333,M/sec
 *
 * The percentage at the end is the time that the counter ran; what follows `#` is perf's comment and no part of the event.
 * Counts may be grouped as any locale does, rows per CPU, core, socket or node are added up, an event's own commas (between
 * slashes) don't separate. A line without a time stamp is no row (perf's notes, the program's own output). */
#ifndef MONITORING_PERF_STAT_H
#define MONITORING_PERF_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"
#include "core/csv.h"

enum { PERF_STAT_EVENTS_MAX = 2048 };

enum perf_stat_state { PERF_STAT_OK, PERF_STAT_MULTIPLEXED, PERF_STAT_NOT_COUNTED, PERF_STAT_NOT_SUPPORTED };

struct perf_stat_cell {
    size_t interval, event; /* indices of t_ns and events */
    enum perf_stat_state state;
    double value; /* in the event's unit, already scaled by perf; NAN unless ok or multiplexed */
    double ratio; /* running / enabled, 0…1 */
};

struct perf_stat {
    struct strv events; /* distinct names, as they come */
    struct strv units;  /* of each: "msec"; "" for a plain count */
    int64_t *t_ns;      /* of each interval, since perf began */
    size_t n_intervals, intervals_cap;
    struct perf_stat_cell *cells; /* at most one for each (interval, event) */
    size_t n_cells, cells_cap;
    size_t other_lines; /* that are neither rows nor perf's comments */
    bool cut;           /* the text ended within a row, which was left out */
};

/* Fills *out (to be freed by perf_stat_done), and adds a fault for each row that has a time stamp and cannot be read. A last
 * line without a newline counts as whole when nothing can be missing: an event that is known, its percentage there when the
 * event had one before. -ENOMEM: *out is untouched. */
int perf_stat_parse(struct perf_stat *out, const char *text, size_t len, struct csv_faults *faults);

void perf_stat_done(struct perf_stat *p);

#endif
