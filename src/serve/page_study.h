/* The parts of a study's page. */
#ifndef SERVE_PAGE_STUDY_H
#define SERVE_PAGE_STUDY_H

#include "serve/page_parts.h"

/* Which trials a picture shows: all, or the best, those that run, and some of the others, evenly. Numbers are indexes into the view's. */
struct page_pick {
    size_t *v;      /* owned */
    size_t n, best; /* the first `best` of them are the best ones, in order */
    size_t of;      /* how many there were to pick from */
};
int page_pick(struct page_pick *out, const struct view *v, size_t best, size_t most,
              bool (*fits)(const struct view_trial *t));
void page_pick_done(struct page_pick *p);

bool page_has_metric(const struct view_trial *t);
bool page_has_epochs(const struct view_trial *t);

/* The better first, those without a figure last; equal ones by number. */
int page_compare_metric(const struct view *v, const struct view_trial *a, const struct view_trial *b);

/* page_curves.c: the metric, or another figure, of trials over epochs, with what is foretold. */
int page_put_curves(struct buf *b, struct view *v, const char *figure, struct err *e);

/* page_points.c: hyperparameters against the metric, importance, the Pareto set. */
int page_put_points(struct buf *b, struct view *v, struct err *e);

/* page_lanes.c: which setting was in force when, and what was decided. */
int page_put_lanes(struct buf *b, struct view *v, struct err *e);

#endif
