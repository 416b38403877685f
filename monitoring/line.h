/* Line protocol, InfluxDB's text form of points: written, and read strictly. Pure.
 *
 *     measurement[,tag=value]* field=value[,field=value]* [timestamp]\n
 *
 * Names and tag values escape comma, equals sign and space by a backslash; string fields escape the quote and the backslash.
 * A float is "41.5", an integer "41i", a boolean "true", a string "\"text\"". */
#ifndef MONITORING_LINE_H
#define MONITORING_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    LINE_BYTES_MAX = 65536, /* of one line, its newline included */
    LINE_TAGS_MAX = 32,     /* of one line that is read */
    LINE_FIELDS_MAX = 256,
};

/* What the numbers of time stamps count; the coarsest that is true makes the smallest lines. */
enum line_precision { LINE_NS, LINE_US, LINE_MS, LINE_S };

/* Nanoseconds since 1970 as a time stamp of `p`, rounded down. */
int64_t line_stamp(int64_t ns, enum line_precision p);

/* --- writing: line_begin(), tags, then fields, line_end(). What the protocol cannot say is made sayable rather than refused:
 * control characters become spaces; a backslash in a name or a tag, which servers read in different ways, becomes a slash; a name that
 * begins with '_' or is "time", which are the server's own, is written "x_…". An empty name is "x". --- */

struct line {
    struct buf *to; /* borrowed until line_end() */
    size_t start;
    enum line_precision precision;
    bool fields; /* one has been written */
};

struct line line_begin(struct buf *to, const char *measurement, enum line_precision p);

/* All tags come before the first field, by keys in bytewise order if the server is to be spared sorting. One that is NULL or empty
 * is left out. */
void line_tag(struct line *l, const char *key, const char *value);

/* Always a float ("12.0"), so that a whole number never fixes a field's type; NaN and infinities are left out. */
void line_float(struct line *l, const char *key, double value);
void line_int(struct line *l, const char *key, int64_t value);
void line_bool(struct line *l, const char *key, bool value);
void line_text(struct line *l, const char *key, const char *value); /* NULL: left out */

/* Ends the line with a time stamp. 1: there is a line more in the buffer. 0: it had no field, and is gone. -EFBIG: longer than
 * LINE_BYTES_MAX, and gone. -ENOMEM: the buffer had failed. */
int line_end(struct line *l, int64_t ns);

/* --- reading --- */

enum line_kind { LINE_FLOAT, LINE_INT, LINE_BOOL, LINE_TEXT };

struct line_tag {
    const char *key, *value;
};

struct line_field {
    const char *key;
    enum line_kind kind;
    double real;
    int64_t whole;
    bool truth;
    const char *text;
};

struct line_point {
    const char *measurement;
    struct line_tag tags[LINE_TAGS_MAX];
    struct line_field fields[LINE_FIELDS_MAX];
    size_t n_tags, n_fields;
    bool stamped;
    int64_t stamp; /* as written */
};

/* Reads one line without its newline; text[len] must be NUL. Unescapes in place: `out` points into `text`. Strict: UTF-8, no
 * control character, no name or tag value that is empty or reserved, no key twice, at least one field, numbers that fit, one space
 * between the parts. Unsigned integers ("1u"), which 1.x has not, are none. -EINVAL says what is wrong and where; `out` is then
 * of no use. */
int line_parse(struct line_point *out, char *text, size_t len, struct err *e);

/* Writes a point that was read, with the n tags of `more` (their keys win over the point's own). `ns` is its time stamp. As
 * line_end(). */
int line_put_point(struct buf *to, const struct line_point *pt, const struct line_tag *more, size_t n, int64_t ns,
                   enum line_precision p);

#endif
