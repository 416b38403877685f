/* The Pareto set of a page: its trials, and a picture of the first two objectives. */
#ifndef VIEW_FRONT_H
#define VIEW_FRONT_H

#include "view/view.h"

void front_put(struct buf *b, const struct view *v); /* after view_pareto(); nothing of one objective */

#endif
