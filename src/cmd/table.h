/* A text table for people: columns as wide as their content, numbers to the right. */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include <stddef.h>

#include "base/buf.h"

enum { TABLE_MAX_COLUMNS = 16 };

struct table {
    size_t columns;
    char **cells; /* row after row, the heads first */
    size_t n, cap;
    unsigned right; /* bit i: column i is aligned to the right */
    int failed;
};

/* `heads` ends with NULL; one that begins with '>' is aligned to the right (the sign is not shown). */
void table_init(struct table *t, const char *const *heads);
void table_done(struct table *t);

/* The next cell, row by row. */
void table_cell(struct table *t, const char *text);
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends the table, heads underlined; `cut` > 0: no line is longer than that. */
void table_put(const struct table *t, struct buf *b, size_t cut);

/* "0.9914", "-" when it is NAN. Digits after the point at most. */
void table_number(struct table *t, double x, int digits);

/* "1 h 03 m", "2 m 05 s", "12.3 s"; "-" when it is NAN. */
void table_seconds(struct table *t, double s);
const char *table_duration(double s, char out[32]);

#endif
