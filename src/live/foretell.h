/* What a trial will be launched with as long as nothing has been learnt: the policy's own answer, asked without a study. */
#ifndef LIVE_FORETELL_H
#define LIVE_FORETELL_H

#include "live/plan.h"

/* The setting of the first launch of a trial of this point, in a study of `trials`. -ERANGE when nothing divides the batch; -ENOMEM. */
int foretell_setting(const struct plan *p, const struct point *pt, uint64_t trials, struct setting *out, struct err *e);

#endif
