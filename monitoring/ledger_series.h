/* What one meter read of one node, or one trial's CPU time on it, in the order of time. Appending and reading on are O(1), finding a moment is
 * O(log n). Inside of monitoring/ledger. */
#ifndef MONITORING_LEDGER_SERIES_H
#define MONITORING_LEDGER_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ledger_series_kind {
    LEDGER_SPANS,   /* each holds for the time from one moment to another: J, s */
    LEDGER_POINTS,  /* each holds at a moment, and two of them make an interval: W */
    LEDGER_MOMENTS, /* only that there was something */
};

enum { LEDGER_NEAR = 5 }; /* steps from point to point on either side of one, which tell whether it is a hole */

struct ledger_span {
    double from_ms, to_ms; /* the same of points and moments */
    double value, error;
};

struct ledger_series {
    enum ledger_series_kind kind;
    struct ledger_span *v; /* no two overlap, or are at one moment */
    size_t n, cap;
    size_t hint;       /* where the last search ended */
    uint64_t inserted; /* how often something came that was not the latest */
    double peak_w;     /* the highest power that was read: of spans, their mean */
};

/* The state before the first add() is all zeros but the kind. */
void ledger_series_done(struct ledger_series *s);

/* 0 also where it is passed over: it overlaps what is there by more than a twentieth of its own length, or has no length, or moments that are
 * no numbers. What overlaps less gives way at its edges, and keeps its value. -ENOMEM: as it was. */
int ledger_series_add(struct ledger_series *s, double from_ms, double to_ms, double value, double error);

/* How many moments after from_ms, up to and with to_ms. */
size_t ledger_series_count(struct ledger_series *s, double from_ms, double to_ms);

/* What the spans say of a time; those that its edges cut, by their share of it. */
struct ledger_sum {
    double value, covered_ms;
};
struct ledger_sum ledger_series_sum(struct ledger_series *s, double from_ms, double to_ms);

/* Joules of an interval: of a span, or between two points. */
struct ledger_piece {
    double from_ms, to_ms;
    double j, error_j;             /* NAN: the meter's error is not known */
    double cut_from_ms, cut_to_ms; /* what of it is within the walk's window */
};

/* Interval i; 1: here it is, 0: two points are too far apart for those nearby, -ENODATA: there is no such interval. */
int ledger_series_piece(struct ledger_series *s, size_t i, struct ledger_piece *out);

/* What comes behind the latest changes no more whether interval i is one. */
bool ledger_series_final(const struct ledger_series *s, size_t i);

/* All intervals that lie within a window, or partly. */
struct ledger_walk {
    struct ledger_series *s;
    size_t i;
    double from_ms, to_ms;
};
struct ledger_walk ledger_walk_begin(struct ledger_series *s, double from_ms, double to_ms);
bool ledger_walk_next(struct ledger_walk *w, struct ledger_piece *out);

#endif
