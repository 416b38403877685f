/* What became of the settings of a study's trials: the decisions, the time under each setting, what profiles said, and what the last setting
 * saved against the first of its class. Read once, then gone on with: decisions and the tuner's log only grow. */
#ifndef VIEW_STORY_H
#define VIEW_STORY_H

#include "base/json.h"
#include "base/strv.h"
#include "store/store.h"
#include "store/trace_windows.h"

struct story_step {
    double t_s;
    char *kind, *setting, *reason; /* owned; setting NULL: none */
};

/* Time spent under one setting. */
struct story_tried {
    double cores, memory_gb, seconds, records;
};

/* Of one trial. */
struct story {
    int64_t trial;             /* its id */
    int class;                 /* index into stories.classes, -1: not known */
    struct story_tried *tried; /* in the order they came up; the first is the one it was launched with */
    size_t n_tried, cap_tried;
    struct story_step *steps;
    size_t n_steps, cap_steps;
    int settled;                             /* index of the step, -1: none */
    double saved_s, saved_core_s;            /* against its class's first setting, estimated; NAN: not known */
    double against_cores, against_memory_gb; /* that setting */
    json_t *verdicts;                        /* [{"epoch","setting","verdict"}]; NULL: none */
};

struct stories {
    struct story *v; /* of trials by number: the first is trial 1's */
    size_t n, cap;
    struct strv classes;          /* keys, in the order they came up */
    struct trace_windows windows; /* under which setting each trained, as the tuner's log tells */
    int64_t decided, logged;      /* read so far */
};

/* From a zeroed one on, and again for what has come since. -ENOMEM, and what the store says; what was read until then is kept. */
int stories_read(struct stories *s, struct store *store, int64_t study, struct err *e);
void stories_done(struct stories *s);

/* What is not told of a trial without a story, too. */
const struct story *stories_of(const struct stories *s, int trial);

/* The tuner's log of a study, into `windows`, from behind *seq on; of each trial that starts, or starts again, `started` hears the key of its
 * class. -ENOMEM; what `started` says, and a read of the store. */
int story_read_log(struct store *s, int64_t study, int64_t *seq, struct trace_windows *windows,
                   int (*started)(void *ctx, int trial, const char *key), void *ctx, struct err *e);

#endif
