/* All that a policy's machine was told, as text: what rebuilds it after a crash, and what `replay decisions` re-derives every
 * decision from. Pure.
 *
 * One line per entry; numbers are printed so that they read back exactly; a key is a JSON string literal. First words:
 *   H  the head: version 2, policy, window_s probe_budget tie_margin noise_floor, n_hot, cores…, n_cold, memory…, other…,
 *      memory_entered (version 1: without the last two, when all cold settings were taken for memory); a later head begins again with a new machine (there is another choice of settings now)
 *   L  a launch that was asked for: struct tuner_ask
 *   s i e a f l b t d x r v  the events of enum tuner_event_kind in that order, with only the fields that the kind uses */
#ifndef CORE_TUNER_LOG_H
#define CORE_TUNER_LOG_H

#include "base/buf.h"
#include "core/policy.h"

void tuner_log_head(struct buf *out, const struct policy *p, const struct tuner_space *space,
                    const struct tuner_cfg *cfg);
void tuner_log_ask(struct buf *out, const struct tuner_ask *ask);
void tuner_log_event(struct buf *out, const struct tuner_event *ev);

/* Feeds a log, in as many pieces as it comes in (each of whole lines), to a machine made from its head. */
struct tuner_replay {
    const struct policy *policy;
    void *machine;
    struct tuner_space space;
    struct tuner_cfg cfg;
    size_t lines; /* so far, for errors */
};

#define TUNER_LOG_SETTING "setting" /* the kind of the answer to an ask */

/* What it decides is handed out: the actions that are decisions by their names, and the answer to an ask. Non-zero ends the replay and is
 * returned as it is. */
typedef int tuner_replay_sink(void *ctx, const struct tuner_replay *r, const char *kind, int trial,
                              struct tuner_setting setting, const char *reason);

/* From a zeroed tuner_replay on; `sink` NULL: nobody is told. -EINVAL: a line that is none (names it); -ENOMEM; what the machine
 * says. Afterwards `machine` may be taken over: set it to NULL. */
int tuner_replay_feed(struct tuner_replay *r, const char *text, size_t len, tuner_replay_sink *sink, void *ctx,
                      struct err *e);
void tuner_replay_done(struct tuner_replay *r);

/* The keys of a launch that was asked for, out of one line without its end: 1, and they are appended (an absent family is nothing).
 * 0: the line is none of those; -ENOMEM. */
int tuner_log_class(const char *line, int *out_trial, struct buf *class, struct buf *family);

/* "apply", "settle", "learn", "relaunch", "confirm", "weaken": the kind of a stored decision; "wake" and "profile" are none. */
const char *tuner_action_name(enum tuner_action_kind k);

/* Is it a decision, to be stored with its reason? Else it only asks for an event. */
bool tuner_is_decision(enum tuner_action_kind k);

/* Is it the kind of a decision that a policy's machine took: the name of such an action, or TUNER_LOG_SETTING? */
bool tuner_log_is_kind(const char *kind);

#endif
