/* Learning curves of many configurations of one job: what a search can be tried on without training anything. Pure.
 *
 * JSON lines. First
 *   {"format":"curves","metric":"loss","direction":"min","epochs":50,"hyper":{"lr":{"min":1e-8,"max":10,"scale":"log"},…}}
 * with "hyper" as a config's "hyperParameters", then a line of each configuration:
 *   {"hyper":{"lr":0.1,…},"values":[…],"seconds":[…],"joules":[…]}
 * The last two may be absent. null in "values": it diverged, and that is the worst there is from there on. */
#ifndef CORE_CURVES_H
#define CORE_CURVES_H

#include "core/space.h"

struct curve {
    double *values;           /* one for each of its epochs; NAN: diverged, and so are all behind it */
    double *seconds, *joules; /* the same of what each epoch took; NULL: not known */
    int n;                    /* 1 to the table's epochs: shorter when it was not trained to the end */
};

struct curves {
    char *metric;
    bool maximise;
    int epochs;
    struct space space; /* its points are those of the curves, in their order; bounds hold them all */
    struct curve *v;
    size_t n;
    size_t repeats; /* that were left out: the hyperparameters of an earlier line */
    double worst;   /* value that the table holds; NAN: all diverged at once */
};

/* -EINVAL names file and line; -ENOMEM. *out is untouched on failure. */
int curves_parse(struct curves *out, const char *name, const char *text, size_t len, struct err *e);
void curves_done(struct curves *c);

/* The value of an epoch, 1 … n, as it counts: of what diverged the worst one that the table holds. */
double curves_value(const struct curves *c, const struct curve *of, int epoch);

/* What regret is measured by: the best value there is, and the median of what each configuration comes to. */
struct curves_scale {
    double best, median;
};
int curves_scale(const struct curves *c, struct curves_scale *out); /* -ENOMEM */

/* The dimensions of the space as a config writes them; new reference, NULL: memory. */
json_t *curves_hyper(const struct curves *c);

/* Appends lines: the first one, `hyper` as the config has it (NULL: the lines say it), and one of a configuration. */
void curves_put_head(struct buf *b, const char *metric, bool maximise, int epochs, const json_t *hyper);
void curves_put(struct buf *b, const json_t *hyper, const struct curve *c);

#endif
