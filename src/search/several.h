/* Several objectives: between what is told and the algorithms and stop rules, which know one number of which less is better.
 *
 * What was told of a trial are its figures, one for each goal. Seconds and joules are counted as those of a whole training, at what its epochs so far
 * have cost, so that trials of different lengths compare; at equal epochs that is the same as what was spent. The one number is an augmented
 * Chebyshev distance to the best of each figure, with equal weights, as far as it is known then. It says in which order trials go on; that
 * one is stopped or paused at all takes another one that was better at the same epoch in every figure (several_may_end). Pure. */
#ifndef SEARCH_SEVERAL_H
#define SEARCH_SEVERAL_H

#include "search/search.h"

struct several;

int several_new(struct several **out, const struct search_cfg *cfg); /* copies the goals; -ENOMEM */
void several_free(struct several *s);

/* Notes it; *out is the same with the one number as its value (NAN: a figure is absent, or was never told). -ENOMEM, nothing is noted. */
int several_tell(struct several *s, const struct told *t, struct told *out);

/* Was another trial better there, by a margin in each metric, and no dearer? NULL: there is one objective, and the rule alone decides. */
bool several_may_end(const struct several *s, const struct told *t);
/* "after 3 epochs: trial 4 was better there: accuracy 0.91 (0.87), seconds 12 (30)" */
void several_explain(const struct several *s, const struct told *t, char why[SEARCH_WHY_MAX]);

/* The trials 0 … n-1, best first: those that could be trained and have all figures by their fronts (search/front.h), then the others by id.
 * Returns how many the former are. `order` has n. */
size_t several_order(struct several *s, size_t n, size_t *order);

/* The newest figures of a trial, normed: 0 the best there is, 1 the worst of the front. False: some are not known, or it is of no use. */
bool several_figures(const struct several *s, uint64_t id, double out[GOALS_MAX]);
double several_distance(const double *figures, const double *weights, size_t n); /* the one number, by any weights */

bool several_is_bad(const struct several *s, uint64_t id); /* it could not be trained, or is not admitted */
size_t several_goals(const struct several *s);

void several_save(const struct several *s, struct buf *out);
int several_restore(struct several *s, struct unpack *from);

#endif
