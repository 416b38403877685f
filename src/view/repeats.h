/* What a study learnt from earlier ones and how much of it held; and which points held up when they were trained again. */
#ifndef VIEW_REPEATS_H
#define VIEW_REPEATS_H

#include "base/buf.h"
#include "base/json.h"
#include "view/view.h"

/* Points that were trained again: [{"trial","n","mean","sd","first","rank","rank_before"}]; nothing, and [], where there is none. -ENOMEM. */
int repeats_put(struct buf *b, const struct view *v, struct err *e);
int repeats_json(json_t **out, const struct view *v, struct err *e);

/* What was learnt: {"studies":[],"trials","trust"}; nothing, and null, where the study learns from none. -ENOMEM, and what the store says. */
int repeats_put_learnt(struct buf *b, struct view *v, struct err *e);
int repeats_learnt_json(json_t **out, struct view *v, struct err *e);

#endif
