/* The policy `paper`, as it was published, for live runs: a job of a class met first trains its first epoch under the start
 * setting and then one epoch under each of the others, and keeps the one whose epoch was shortest; a job of a class met before
 * gets its class's best after its first epoch. Pure; takes and gives what core/tuner.h does.
 *
 * It changes hot settings only: a cold one needs a launch, and one launch per probe would lose what probing is to gain. It
 * measures whole epochs and never wakes; it probes beside other trials too, for it knows no lease. An epoch in which something
 * broke is measured again. A class is met once one of its trials has settled or has come to its end. */
#ifndef CORE_PAPER_H
#define CORE_PAPER_H

#include "core/tuner.h"

struct paper;

/* Copies space. NULL: memory. */
struct paper *paper_new(const struct tuner_space *space, const struct tuner_cfg *cfg);
void paper_free(struct paper *p);

/* Always the start setting, narrowed to what the trial may have. */
int paper_launch(struct paper *p, const struct tuner_ask *ask, struct tuner_setting *out, char reason[TUNER_REASON_MAX],
                 struct err *e);

/* Takes one event; *out is overwritten. -EPROTO: impossible in this state; -ENOMEM. */
int paper_step(struct paper *p, const struct tuner_event *ev, struct tuner_actions *out, struct err *e);

bool paper_current(const struct paper *p, int trial, struct tuner_setting *out); /* false: no such trial */
bool paper_settled(const struct paper *p, int trial);

#endif
