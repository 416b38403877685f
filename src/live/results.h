/* What trials come to, by the names that `study.metrics` and `study.constraints` have: kept with each epoch, and judged. Where neither names more than
 * one metric, nothing here does anything. */
#ifndef LIVE_RESULTS_H
#define LIVE_RESULTS_H

#include "live/study.h"

/* An epoch was told, in the caller's transaction: keeps its figures. *out says stop where it breaks a constraint for good. */
int results_told(struct study *s, const struct store_trial *t, const struct told *told, struct search_answer *out,
                 struct err *e);

/* A trial is over, and what it trained stands: keeps what it took in all, and sets t->row.violates, which the caller stores. */
int results_judge(struct study *s, struct study_trial *t, struct err *e);

/* The figures of a trial that took another's result, as they are stored. */
struct results_copied {
    struct told_metric metrics[GOALS_MAX];
    size_t n;
    double seconds, joules;
};
int results_copied(struct study *s, const struct store_trial *t, struct results_copied *out, struct err *e);

/* The names that an application has to tell, besides the study's metric: calls for each until that returns false. */
void results_each_name(const struct plan *p, bool (*name)(void *ctx, const char *name), void *ctx);

#endif
