/* What trials of earlier studies teach a search: their best points, which are proposed early, between the search's own proposals, as long as
 * they hold up. A point holds up as far as it beats the trials that the search proposed by itself, at equal epochs; that, over all of them, is the
 * *trust*. Where it is gone the search is left alone, so an earlier study about something else costs a few proposals at most, each as good as one
 * at random. The best point of all trains on, whatever the stop rule says, to the epoch at which it was best, as long as it comes to what it came to
 * then: so the same job again has its best back at once, though its curve may look like others for long. Goes around any algorithm that can be given a point. Pure; the state is bytes, and holds the points themselves: the earlier study may
 * be removed. */
#ifndef SEARCH_PRIOR_H
#define SEARCH_PRIOR_H

#include "search/search.h"

enum {
    PRIOR_POINTS = 5,       /* that are proposed at most */
    PRIOR_STUDIES_MAX = 32, /* that may be learnt from at once */
};
#define PRIOR_NONE ((size_t)-1)

struct prior;

int prior_new(struct prior **out, const struct space *sp, const struct search_cfg *cfg); /* keeps sp; -ENOMEM */
void prior_free(struct prior *p);

/* A trial of an earlier study, its hyperparameters by name. */
struct prior_trial {
    const char *name;     /* "earlier/3", for people */
    const json_t *hyper;  /* {"lr": 0.1, …} */
    const double *values; /* after each epoch; NAN: none */
    size_t n;             /* 0: it failed */
};

/* What became of the trials of one study. */
struct prior_taken {
    size_t common;  /* hyperparameters that both have */
    size_t usable;  /* trials that are points of this space */
    size_t outside; /* … that are not: a value is none that it can have here */
    size_t points;  /* that will be proposed, if they hold up */
    char
        missing[SPACE_NAME_MAX]; /* one of the hyperparameters that it did not have, and that are drawn at random; "" */
};

/* Takes the best of them; of several studies the best of each come first. Of listed points the nearest counts. What has no value, or lies outside, is
 * left out. 0, -ENOMEM: nothing was taken. */
int prior_learn(struct prior *p, const struct prior_trial *trials, size_t n, struct prior_taken *out);

/* Is a new trial to be one of these points? Its index; PRIOR_NONE: no. And the next one, where that was proposed before. */
size_t prior_due(const struct prior *p);
size_t prior_after(const struct prior *p, size_t at);
const struct point *prior_point(const struct prior *p, size_t at);
const char *prior_name(const struct prior *p, size_t at);

/* The new trial, whose ids count up from 0: of that point, or PRIOR_NONE. prior_make_room() comes before; -ENOMEM. */
int prior_make_room(struct prior *p);
void prior_asked(struct prior *p, size_t at);
/* True: the trial is to train on, whatever a stop rule thinks. Told again it says the same. */
bool prior_tell(struct prior *p, const struct told *t);

/* 0: what was learnt is worth nothing here; 1: all that it said held. NAN: nothing to tell by yet. */
double prior_trust(const struct prior *p);
size_t prior_proposed(const struct prior *p); /* of its points */
size_t prior_points(const struct prior *p);

void prior_save(const struct prior *p, struct buf *out);
int prior_restore(struct prior *p, struct unpack *from); /* into one that is new; 0, -EPROTO, -ENOMEM */

#endif
