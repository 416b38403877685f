/* What trials told over their epochs as charts of a page: one for each figure, a line per trial; the study's metric first. */
#ifndef VIEW_CHARTS_H
#define VIEW_CHARTS_H

#include "view/view.h"

int charts_put(struct buf *b, struct view *v, struct err *e); /* -ENOMEM, and what the store says */

#endif
