/* One replay: what the command line said, and what replay.c and its parts need. */
#ifndef CMD_REPLAY_PARTS_H
#define CMD_REPLAY_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/strv.h"
#include "core/csv.h"
#include "core/curves.h"

#define REPLAY_TEXT_MAX ((size_t)1 << 28) /* bytes of a CSV file */

struct replay_args {
    char *policy, *start, *probe, *store;
    char *algorithm, *stop, *at, *cost, *learn_from, *metrics;
    int64_t epochs, repeat, workers, repeats, seed;
    double budget;
    bool lenient, json;
};

/* replay.c */
bool replay_ends_with(const char *text, const char *end);

/* By its first bytes, so that a trace may have any name; by its name, so that a broken one is called a broken trace. */
bool replay_is_trace(const char *path);

/* The rows of a CSV file, by one of the parsers in core. Each broken one is reported; that is an error unless the rest was asked for. */
typedef int replay_parse_fn(void *rows, const char *text, size_t len, struct csv_faults *faults);
int replay_read_csv(void *rows, replay_parse_fn *parse, const char *path, bool lenient, struct err *e);

/* A trace, or a timeline in CSV, as one that holds at least a run. */
struct timeline;
int replay_read_timeline(struct timeline *out, const char *path, bool lenient, struct err *e);

/* json_object_set_new() that tells failure once: -ENOMEM when the value or the key was refused. */
int replay_set(json_t *object, const char *key, json_t *value);

/* Takes `j`; NULL or rc < 0: there was no memory for it. Returns the exit code. */
int replay_print_json(json_t *j, int rc, struct err *e);

/* replay_online.c: a folder of tuning runs, and one of queues. They return the exit code. */
int replay_tunings(const struct replay_args *o, const char *dir, struct err *e);
int replay_online(const struct replay_args *o, const char *dir, struct err *e);

/* replay_decisions.c: a study of the store, or a trace. Returns the exit code: 1 when a decision differs. */
int replay_decisions(const struct replay_args *o, const char *what, struct err *e);

/* replay_search.c: a table of curves. Returns the exit code. */
int replay_search(const struct replay_args *o, const char *path, struct err *e);

/* What an option lists: "a,b" as its words; none is empty. And a table of curves. */
int replay_split(struct strv *out, const char *list, const char *option, struct err *e);
int replay_read_curves(struct curves *out, const char *path, struct err *e);

/* replay_forecast.c: a table of curves. Returns the exit code. */
int replay_forecast(const struct replay_args *o, const char *path, struct err *e);

#endif
