/* How the system parameters of a live run are chosen: one row per policy. Pure. */
#ifndef CORE_POLICY_H
#define CORE_POLICY_H

#include "core/tuner.h"

struct policy {
    const char *name, *help;
    bool joins_search; /* the knobs are dimensions of the search, and a trial's worth is its accuracy over time */
    bool wide;         /* trials are launched with the most slots that divide the batch, and narrowed while they run */
    bool by_windows;   /* it measures in windows of steps, which span no epoch's end */
    bool shares;       /* trials may share warm sessions and be packed beside each other */
    /* Its machine, as in core/tuner.h; all NULL where a setting never changes. */
    void *(*create)(const struct tuner_space *space, const struct tuner_cfg *cfg);
    void (*destroy)(void *machine); /* NULL is fine */
    int (*launch)(void *machine, const struct tuner_ask *ask, struct tuner_setting *out, char reason[TUNER_REASON_MAX],
                  struct err *e);
    int (*step)(void *machine, const struct tuner_event *ev, struct tuner_actions *out, struct err *e);
    bool (*current)(const void *machine, int trial, struct tuner_setting *out);
    bool (*settled)(const void *machine, int trial);
    const struct knowledge *(*knowledge)(const void *machine); /* as tuner_knowledge(); NULL where there is none */
};

extern const struct policy policies[];   /* v1, v2, paper, pipetune; ends with a row without a name */
extern const char *const policy_names[]; /* for the option's row; ends with NULL */

const struct policy *policy_find(const char *name); /* NULL: none of that name */

#endif
