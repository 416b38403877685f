/* What a study's trials are judged by where that is more than one figure: `study.metrics`. Pure. */
#ifndef CORE_GOALS_H
#define CORE_GOALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "core/space.h"

enum { GOALS_MAX = 4 };

enum goal_kind {
    GOAL_METRIC,  /* told by the application, by its name */
    GOAL_SECONDS, /* of the trial, its start-ups included */
    GOAL_JOULES,
};

extern const char goal_seconds[], goal_joules[]; /* their names: "seconds", "energy_j" */

struct goal {
    char name[SPACE_NAME_MAX];
    enum goal_kind kind;
    bool directed; /* `maximise` was said; else it goes by the name */
    bool maximise;
};

struct goals {
    struct goal v[GOALS_MAX];
    size_t n;
};

/* "metrics" of "study": a name, or a list of names and of objects with "metric" and perhaps "direction". n is 0 where there is none. One of
 * them is told by the application; no two are the same. -EINVAL. */
int goals_read(struct goals *out, const struct json_doc *doc, struct err *e);

/* Of a metric whose direction is left open: a loss or an error is made small. Seconds and joules of a trial are, always. */
bool goal_maximises(const char *metric);

/* Does its name tell? What else there is, is made large, but nobody can tell whether that is meant. */
bool goal_is_plain(const char *metric);

bool goals_have(const struct goals *g, enum goal_kind kind);

/* The first one that the application tells: what a target is of, and curves are drawn of. There is one where n > 0. */
const struct goal *goals_first_told(const struct goals *g);

#endif
