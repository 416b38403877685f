/* A heat map of what was sampled: features by columns (the start-up and the epochs of a trial, or classes of jobs). Pure.
 *
 * A cell is a rate per second (of one node, when there are several), or the mean of a gauge, over the time in which the feature was
 * measured. Where it never was, the cell knows why: absent is not 0. */
#ifndef VIEW_HEAT_H
#define VIEW_HEAT_H

#include <stdbool.h>
#include <stddef.h>

#include "monitoring/reading.h"

struct heat_cell {
    double sum;     /* of counts; of a gauge times seconds */
    double seconds; /* in which it was measured */
    double counted; /* of these, the counter ran for so many */
    enum reading_state
        why; /* the first reason for which it was not measured, READING_ABSENT: nobody looked, or it always was */
};

struct heat {
    size_t rows, cols;
    const char *const *names; /* of the rows; borrowed */
    bool (*gauge)(size_t row);
    struct heat_cell *cells; /* row after row */
};

/* -ENOMEM. From a zeroed or initialised one heat_done() frees. */
int heat_init(struct heat *h, const char *const *names, bool (*gauge)(size_t row), size_t rows, size_t cols);
void heat_done(struct heat *h);

/* Adds the share (0…1) of an interval that lies in this column: `readings` has one cell per row. */
void heat_add(struct heat *h, size_t col, double dt_s, double share, const struct reading *readings);

/* The share of the interval (end - length, end] that lies between these two; 0…1. */
double heat_share(double end_s, double length_s, double from_s, double to_s);

/* NAN: absent. */
double heat_rate(const struct heat *h, size_t row, size_t col);

/* The rate as a share of the greatest one in its row, 0…1; 0 where all are 0. NAN: absent. */
double heat_level(const struct heat *h, size_t row, size_t col);

/* Was it measured in any column? */
bool heat_has(const struct heat *h, size_t row);

/* Why it was measured nowhere: as heat_cell.why, over the row. */
enum reading_state heat_why(const struct heat *h, size_t row);

#endif
