/* What earlier studies taught, as this study's policy counts it, and back: which class a profile is of, what is known of it, and
 * what a trial adds to that. Settings are JSON texts in the model, and pairs of indices here. */
#ifndef LIVE_REUSE_H
#define LIVE_REUSE_H

#include "clustering/model.h"
#include "core/knowledge.h"
#include "live/profiles.h"
#include "live/study.h"

struct reuse;

/* The model "default" of the study's store. One that cannot be read is left alone: *out is NULL then, and `why` says it. */
int reuse_open(struct reuse **out, struct study *s, const struct profile_space *space, char why[512], struct err *e);
void reuse_close(struct reuse *r); /* NULL is fine, here and below */

/* All that is known of a class, as EV_RECALL events in the order that the tuner wants. A setting that this study cannot choose is
 * passed over; where others were compared with it, they are compared with each other. */
int reuse_recall(const struct reuse *r, const char *class_key,
                 int (*each)(void *ctx, const struct tuner_event *ev, struct err *e), void *ctx, struct err *e);

/* Does the model know which setting is best for this class? */
bool reuse_knows(const struct reuse *r, const char *class_key);

/* What a profile says: *out, and the key of the class that it is of (borrowed until the next change; NULL: of none). Where it is as
 * like a job of the class `own` as the verdict asks for, that one it is, whatever else may be nearer. Where neither hardware
 * events nor looks at the code (monitoring/code) were compared, no other job is taken for known, but for ambiguous: what the
 * kernel counts tells how a job runs on its runtime, and two networks may do that alike (make bench-reuse). -ENOMEM. */
int reuse_verdict(const struct reuse *r, const struct profile *p, const char *own, struct model_verdict *out,
                  const char **out_class, struct err *e);

/* --- what a trial adds, inside the caller's transaction --- */

/* A recalled class held, or did not. */
int reuse_confirm(struct reuse *r, int trial, const char *class_key, bool holds, struct err *e);

/* One of its windows. Kept until reuse_learn(). */
int reuse_note(struct reuse *r, int trial, const struct profile *p, struct err *e);

/* The trial has finished: its profiles, and what was measured of its class (NULL: nothing new). */
int reuse_learn(struct reuse *r, const struct study_trial *t, const char *class_key, const char *family_key,
                const struct class_entry *known, struct err *e);

#endif
