/* A text table for people, that fits the terminal:
 *
 *     the same in all rows: epochs 2/2, memory 2        what need not be read row by row stands above, once
 *
 *     trial   accuracy  state     batch_size
 *     ------  --------  --------  ----------
 *     demo/1    0.8974  finished        1024            numbers to the right, columns as wide as their content
 *     demo/2         -  failed           512
 *       java heap space                                 a note stands below its row
 *
 * Where that is too wide, a last column of text is broken within itself; where even that does not do, each row is a block: its first cell (a number with its head), then "head value" for the others, as many on
 * a line as fit. */
#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { TABLE_MAX_COLUMNS = 128 };

struct table {
    size_t columns;
    char **cells; /* row after row, the heads first */
    size_t n, cap;
    bool right[TABLE_MAX_COLUMNS]; /* aligned to the right */
    bool stays[TABLE_MAX_COLUMNS]; /* a column whatever is in it */
    struct table_note {
        size_t row; /* from 1: the heads are row 0 */
        char *text;
    } * notes; /* by row */
    size_t n_notes, cap_notes;
    int failed;
};

/* `heads` ends with NULL; one that begins with '>' is aligned to the right, one with '!' (before it) is a column even if all rows have
 * the same in it, as the first one is (the signs are not shown). */
void table_init(struct table *t, const char *const *heads);
void table_done(struct table *t);

/* The next cell, row by row. */
void table_cell(struct table *t, const char *text);
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A line below the row whose cells were put last, or one more. NULL and "" put none. */
void table_note(struct table *t, const char *text);

/* Its values differ, though they may read alike with the digits that a table has. */
void table_differs(struct table *t, size_t column);

/* Appends it. No line is wider than `width`; 0: than table_width(). */
void table_put(const struct table *t, struct buf *b, size_t width);

/* Columns of what stdout is: $COLUMNS, else the terminal's, else 100. */
size_t table_width(void);

/* Appends the text as lines that are no wider (0: as above), broken at blanks where there are any; all but the first begin with so many
 * blanks. What stands in the buffer's last line already counts. */
void table_put_wrapped(struct buf *b, const char *text, size_t indent, size_t width);

/* Appends the lines, each as it is where it fits, else as above; 2 blanks. */
void table_put_lines(struct buf *b, const char *text, size_t width);

/* Four significant digits, and all of those before the point: "0.9914", "60416", "-" when it is NAN. */
void table_number(struct table *t, double x);
const char *table_digits(double x, char out[32]);

/* "1 h 03 m", "2 m 05 s", "12.3 s"; "-" when it is NAN. */
void table_seconds(struct table *t, double s);
const char *table_duration(double s, char out[32]);

#endif
