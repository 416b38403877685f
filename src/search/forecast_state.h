/* The inside of a forecast, which its parts share: forecast.c norms values and answers, forecast_ways.c foretells them. */
#ifndef SEARCH_FORECAST_STATE_H
#define SEARCH_FORECAST_STATE_H

#include "search/forecast.h"

struct norm {
    double sign, begin, scale; /* sign * value: less is better */
};

/* The finished curves as they were at an epoch, and which of them are alike by what became of them in the end. */
struct view {
    int from;
    struct families *families; /* of the last epoch */
    struct forest *forest;     /* NULL: too few have finished */
};

enum { BY_FAMILIES, BY_ALIKE, BY_LAST, N_WAYS };

/* One epoch seen from another: what was learnt about that. */
struct link {
    int from, to;
    struct families *families;
    double *changes; /* of the finished curves, from one to the other */
    size_t *order;   /* of these, the least first */
    double weight[N_WAYS];
    double low, high; /* an interval's ends, in units of what the ways say of their spread on that side */
};

struct forecast {
    int epochs;
    bool maximise;
    struct norm norm; /* scale 0: nothing has finished */
    size_t n_dims;
    struct unit_point *places; /* of each curve */
    double *values;            /* `n` curves of `epochs` normed values, without gaps */
    size_t n;
    struct view *views;
    size_t n_views, cap_views;
    struct link *links;
    size_t n_links, cap_links;
};

/* A curve of which the first epochs are known: normed values without gaps. */
struct begun {
    const double *x;
    const struct unit_point *at; /* NULL: not known */
};

/* The normed value after `to` of a curve that is known up to `from`, which is less. 0, -ENOMEM. */
int forecast_say(struct forecast *f, const struct begun *b, int from, int to, struct foretold *out);

/* What was learnt to say it. */
void forecast_ways_done(struct forecast *f);

#endif
