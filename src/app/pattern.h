/* Progress by regular expressions (PCRE2): what a program that knows nothing of us prints of itself. Pure.
 *
 * Named groups say what is found: `epoch` (`epoch0` where they are counted from 0), `step`, `epochs`, `records`, `seconds`; `name` and `value` (and `of`, which comes before the
 * name: "of-name") are a metric whose name is printed, too; any other name is that of a metric. A pattern is looked for again behind
 * each place where it was found, so that it finds all `name=value` of a line.
 *
 * No line can hold anybody up: each match has limits, and a pattern that exceeds them is not used any more. */
#ifndef APP_PATTERN_H
#define APP_PATTERN_H

#include "app/report.h"
#include "base/err.h"

enum {
    PATTERNS_MAX = 32,       /* in one list */
    PATTERN_TEXT_MAX = 4096, /* bytes of one */
    PATTERN_LINE_MAX = 8192, /* of a line, so much is looked at */
    PATTERN_LITERAL_MAX = 64,
};

struct patterns;

/* Compiles them, in their order. -EINVAL: which one is wrong, where, and why; -ENOMEM. */
int patterns_new(struct patterns **out, const char *const *texts, size_t n, struct err *e);
void patterns_free(struct patterns *p); /* NULL is fine */

/* The ready-made list of this name ("keras"): its texts, NULL when there is none. */
const char *const *patterns_named(const char *name, size_t *n);

/* The names there are, for "did you mean"; NULL behind the last. */
const char *patterns_name(size_t i);

struct pattern_found {
    int64_t epoch, step, epochs; /* as printed; -1: not */
    double records, seconds;     /* NAN: not printed */
    size_t n_values;
    struct report_value values[REPORT_VALUES_MAX];
};

/* One line without its newline, any bytes: 1 and *out, or 0. What the first pattern finds of a name stays. A value that is no number is
 * left out; one with something behind it that belongs to the sentence (",", ";", ")", "%") is one. */
int patterns_match(struct patterns *p, const char *line, size_t len, struct pattern_found *out);

/* A pattern that was too slow is told once: its text, or NULL. */
const char *patterns_dropped(struct patterns *p);

/* A text that every line with this pattern holds, the longest there is: for who chooses lines without knowing expressions. False: none
 * is known, and any line may match. */
bool pattern_literal(const char *pattern, char out[PATTERN_LITERAL_MAX]);

#endif
