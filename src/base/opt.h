/* Options as table rows: one row feeds the command line, a section of the config file, --help and the manual page. */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/strv.h"

enum opt_type {
    OPT_FLAG,   /* bool; on the command line it takes no value, and --no-NAME clears it */
    OPT_INT,    /* int64_t */
    OPT_REAL,   /* double */
    OPT_TEXT,   /* char *, owned by the target */
    OPT_CHOICE, /* char *, owned by the target, one of `choices` */
};

struct opt_row {
    const char
        *section; /* of the config file; "" = top level; "places.slurm" = one in another; NULL = command line only */
    const char *
        key; /* "max_trials"; the option is --max-trials, "bigdlConf" is --bigdl-conf; of the section "budget", "seconds" is --budget-seconds, of "places.slurm", "time" is --slurm-time */
    enum opt_type type;
    size_t offset;      /* of the field in the target */
    const char *preset; /* the default, as text; NULL: zero, or no text */
    double min, max;    /* OPT_INT, OPT_REAL: inclusive */
    const char *const *
        choices; /* ends with NULL; of an OPT_INT: one word for `min`, which is no number then; of an OPT_REAL: one for NAN; of an OPT_TEXT: words that mean something */
    const char *arg; /* what --help calls the value: "N", "FILE", "SECONDS" */
    const char *help;
};

struct opt_set {
    const struct opt_row *rows;
    size_t n;
    void *target;
};

/* Those of a table of rows; `into` may be NULL where only the rows are asked for. */
#define OPT_SET(table, into)                                                                                           \
    ((struct opt_set){ .rows = (table), .n = sizeof(table) / sizeof((table)[0]), .target = (into) })

/* Fills every field with its preset (texts are allocated). -ENOMEM. */
int opt_presets(const struct opt_set *set, struct err *e);

/* Frees the texts. */
void opt_done(const struct opt_set *set);

/* The option's name without the dashes. Returns `out`. */
const char *opt_name(const struct opt_row *row, char out[64]);

/* Reads argv[1…] into the sets; words that are no options go to `words` (NULL: a word is an error). "--" ends the options.
 * -EINVAL: unknown option ("did you mean"), missing or bad value. */
int opt_parse(int argc, char *const *argv, const struct opt_set *sets, size_t n_sets, struct strv *words,
              struct err *e);

/* Reads the scalar members of doc's `section` ("" = top level); members named in `others` (NULL-terminated) are left to
 * the caller. -EINVAL: unknown key ("did you mean"), wrong type, out of bounds; with file, line, key. */
int opt_read_section(const struct opt_set *set, const struct json_doc *doc, const char *section,
                     const char *const *others, struct err *e);

/* Adds every row that has a section to `root` as {"section":{"key":value}}. -ENOMEM. */
int opt_to_json(const struct opt_set *set, json_t *root);

/* "  --max-trials N     help (default 20)", one line per row. */
void opt_help(struct buf *b, const struct opt_set *set);

#endif
