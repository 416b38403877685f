#include "app/progress.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/pattern.h"
#include "app/tell.h"
#include "base/own.h"

struct progress {
    struct patterns *patterns;
    char (*needles)[PATTERN_LITERAL_MAX]; /* owned */
    size_t n_needles;
    bool all;
};

/* Texts of CPython, of C++'s and C's libraries, of CUDA's users, and of env(1), which starts the command. */
enum { CAUSE_START, CAUSE_OPTION, CAUSE_MODULE, CAUSE_DATA, CAUSE_MEMORY, CAUSE_DISK, CAUSE_RIGHTS, CAUSE_ANY, CAUSES };

static const struct cause causes[CAUSES] = {
    [CAUSE_START] = { "command_missing",
                      VERDICT_ENVIRONMENT,
                      "check 'command' and 'folder' in the application file",
                      { "env: '", "env: \xe2\x80\x98", "env: cannot change directory", "can't open file '" },
                      .unless = NULL },
    [CAUSE_OPTION] = { "unknown_option",
                       VERDICT_ENVIRONMENT,
                       "check 'command', 'extras' and 'arguments' in the application file",
                       { "error: unrecognized arguments", "error: argument -",
                         "error: the following arguments are required", "unrecognized option", "invalid option --" },
                       .unless = NULL },
    [CAUSE_MODULE] = { "module_missing",
                       VERDICT_ENVIRONMENT,
                       "install it, or name another Python in 'command'",
                       { "ModuleNotFoundError", "ImportError: ", "No module named " },
                       .unless = NULL },
    [CAUSE_DATA] = { "data_missing",
                     VERDICT_ENVIRONMENT,
                     "check the paths in the application file",
                     { "FileNotFoundError" },
                     .unless = NULL },
    [CAUSE_MEMORY] = { "out_of_memory",
                       VERDICT_INFEASIBLE,
                       "raise memory, or make the model or its batch smaller",
                       { "MemoryError", "std::bad_alloc", "Cannot allocate memory", "CUDA out of memory",
                         "OutOfMemoryError", "Unable to allocate " },
                       NULL,
                       .traits = CAUSE_IS_MEMORY },
    [CAUSE_DISK] = { "disk_full",
                     VERDICT_ENVIRONMENT,
                     "free some space",
                     { "No space left on device", "Disk quota exceeded" },
                     .unless = NULL },
    [CAUSE_RIGHTS] = { "permission",
                       VERDICT_ENVIRONMENT,
                       "check who owns the folder that the line names",
                       { "PermissionError", "Permission denied", "Read-only file system" },
                       .unless = NULL },
    [CAUSE_ANY] = { "exception",
                    VERDICT_FAILED,
                    NULL,
                    { "Traceback (most recent call last)" },
                    NULL,
                    .traits = CAUSE_IS_VAGUE | CAUSE_IS_ANY },
};

static const struct cause_words cause_words = { .rows = causes, .n = CAUSES, .exception = &causes[CAUSE_ANY] };

/* --- making one ------------------------------------------------------------------------------------------------------- */

void progress_free(struct progress *p)
{
    if (!p)
        return;
    patterns_free(p->patterns);
    free(p->needles);
    free(p);
}

int progress_new(struct progress **out, const char *const *patterns, size_t n, struct err *e)
{
    struct progress *p = calloc(1, sizeof *p);
    if (!p || !(p->needles = calloc(n + 1, sizeof *p->needles))) {
        free(p);
        return err_sys(e, -ENOMEM, "cannot prepare the patterns");
    }
    int rc = patterns_new(&p->patterns, patterns, n, e);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        bool known = pattern_literal(patterns[i], p->needles[p->n_needles]);
        p->n_needles += known;
        p->all |= !known;
    }
    if (rc < 0)
        progress_free(p);
    else
        *out = p;
    return rc;
}

const char *progress_needle(const struct progress *p, size_t i)
{
    return i < p->n_needles ? p->needles[i] : NULL;
}

bool progress_hears_all(const struct progress *p)
{
    return p->all;
}

static const char *dropped(const void *ctx)
{
    const struct progress *p = ctx;
    return patterns_dropped(p->patterns);
}

/* --- lines ------------------------------------------------------------------------------------------------------------ */

int64_t progress_stamp(struct cur *line)
{
    enum { DIGITS_MIN = 12, DIGITS_MAX = 16 };
    int64_t ms = 0;
    const char *p = line->p;
    while (p < line->end && p - line->p < DIGITS_MAX && *p >= '0' && *p <= '9')
        ms = ms * 10 + (*p++ - '0');
    if (p - line->p < DIGITS_MIN || p == line->end || *p != ' ')
        return -1;
    line->p = p + 1;
    return ms;
}

static int read_told(const struct cur *c, struct app_report *out)
{
    AUTO_FREE char *line = strndup(c->p, (size_t)(c->end - c->p));           /* reading changes it */
    return line && tell_read(line, (size_t)(c->end - c->p), out, NULL) == 1; /* the launcher has refused what is none */
}

static void put_figures(const struct pattern_found *f, struct app_report *out)
{
    out->step = f->step > 0 ? f->step : 0;
    out->records = isnan(f->records) ? 0 : f->records;
    out->seconds = f->seconds;
    out->n_values = f->n_values;
    memcpy(out->values, f->values, f->n_values * sizeof *f->values);
    for (size_t i = 0; i < f->n_values; i++) {
        if (strcmp(f->values[i].name, "loss") == 0)
            out->loss = f->values[i].value;
        if (strcmp(f->values[i].name, "learning_rate") == 0)
            out->learning_rate = f->values[i].value;
    }
}

/* An epoch that is only named is that of the lines behind it. */
static int read_found(struct line_place *place, const struct pattern_found *f, struct app_report *out)
{
    int epoch = f->epoch > 0 && f->epoch < INT_MAX ? (int)f->epoch : 0;
    if (epoch > 0)
        place->epoch = epoch;
    if (f->step <= 0 && f->n_values == 0)
        return 0;
    app_report_begin(out, f->step > 0 ? REPORT_STEP : REPORT_EPOCH);
    out->whole = out->kind == REPORT_EPOCH;
    out->epoch = place->epoch;
    put_figures(f, out);
    return 1;
}

static int read_cause(struct line_place *place, const struct cur *c, struct app_report *out)
{
    struct cause_hits hits = cause_find(&cause_words, c);
    app_report_begin(out, REPORT_CAUSE);
    return cause_read(&cause_words, place, c, c, &hits, out);
}

static int parse(const void *ctx, struct line_place *place, const char *line, size_t len, struct app_report *out)
{
    const struct progress *p = ctx;
    struct cur c = { line, line + len };
    struct pattern_found found;
    int rc;
    if (len > 0 && line[len - 1] == '\r')
        c.end--;
    int64_t stamp_ms = progress_stamp(&c);
    size_t mark = strlen(TELL_MARK), left = (size_t)(c.end - c.p);
    if (left > mark && memcmp(c.p, TELL_MARK, mark) == 0) {
        c.p += mark;
        rc = read_told(&c, out);
    } else if (patterns_match(p->patterns, c.p, left, &found)) {
        rc = read_found(place, &found, out);
    } else {
        rc = read_cause(place, &c, out);
    }
    if (rc == 1)
        out->stamp_ms = stamp_ms;
    return rc;
}

struct line_reader progress_reader(const struct progress *p)
{
    return (struct line_reader){ parse, p, dropped };
}
