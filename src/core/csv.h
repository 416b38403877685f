/* Rows of a CSV text, and the faults that a reader finds in them. Pure.
 *
 * One row is one line: fields between commas, spaces around them dropped, a field in double quotes may hold commas ("" is
 * one quote). LF or CRLF; blank lines are skipped; a byte order mark at the beginning too. */
#ifndef CORE_CSV_H
#define CORE_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { CSV_FIELDS_MAX = 32, CSV_FAULTS_SHOWN = 20 };

struct csv {
    char *field[CSV_FIELDS_MAX]; /* of the current row; valid until csv_done */
    size_t n;                    /* how many; 0: the row cannot be read (a NUL byte, an open quote, too many fields) */
    size_t line;                 /* its number, from 1 */
    /* private */
    char *text, *next, *end;
};

/* Copies the text. -ENOMEM. */
int csv_init(struct csv *c, const char *text, size_t len);
void csv_done(struct csv *c);
bool csv_next(struct csv *c); /* false: there are no more rows */

/* The whole field, or false: *out is untouched. Numbers are finite and decimal. */
bool csv_real(const char *field, double min, double max, double *out);
bool csv_int(const char *field, int min, int max, int *out);

/* Can it be a name: UTF-8 without control characters? The empty one can. */
bool csv_is_name(const char *field);

/* --- writing --- */

/* A cell of text, in quotes where RFC 4180 wants them. One that a spreadsheet would run (= + - @ at its beginning) or take for a
 * number, as 01 and +1 are, gets an apostrophe before it; what is not fit to be seen becomes what utf8_put_plain() makes of it.
 * NULL is empty. */
void csv_put_text(struct buf *b, const char *text);

/* A cell of a number; empty when it is not finite. */
void csv_put_number(struct buf *b, double x);
void csv_put_next(struct buf *b, double x); /* after a comma */

/* --- what is wrong with a text, line by line; any line-wise parser may use it --- */

struct csv_fault {
    size_t line;
    const char *column, *what; /* static: "unix_s", "is no number" */
};

struct csv_faults {
    struct csv_fault *faults;
    size_t n, cap;
    bool failed; /* memory ran out: some are missing */
};

void csv_faults_done(struct csv_faults *f);
void csv_fault_add(struct csv_faults *f, size_t line, const char *column, const char *what);
void csv_faults_sort(struct csv_faults *f); /* by line */

/* Appends "PREFIX'name' line 7: unix_s is no number" lines: the first CSV_FAULTS_SHOWN, then how many more there are. */
void csv_faults_put(const struct csv_faults *f, const char *prefix, const char *name, struct buf *b);

/* -EINVAL, and how many there are in *e; there is one at least. */
int csv_faults_err(const struct csv_faults *f, const char *name, struct err *e);

#endif
