/* The inside that the files of `thaw` share. */
#ifndef SEARCH_THAW_STATE_H
#define SEARCH_THAW_STATE_H

#include "search/thaw.h"
#include "search/thaw_gp.h"

enum {
    THAW_ROWS_MAX = 400,    /* values that the process is conditioned on */
    THAW_ROWS_KEPT = 260,   /* of more, those that say most, when it is built anew */
    THAW_SUPPOSED_MAX = 64, /* running trials, besides */
    THAW_POOL = 400,        /* points that could be new */
    THAW_TRIALS_MAX = 250,  /* trials that may be gone on with, the best */
};

enum thaw_being { THAW_RUNS, THAW_PAUSED, THAW_OVER };

struct thaw_trial {
    struct point point;
    struct unit_point place;
    enum thaw_being being;
    bool bad;      /* it could not be trained */
    int epoch;     /* told of */
    int step;      /* the next one that nothing is known of */
    double value;  /* the newest; less is better */
    int epoch_1;   /* the first that was told, */
    double cost_1; /* what it had cost by then, */
    double cost;   /* and by now; NAN: not known */
    double start;  /* seconds that its newest start took; NAN: not known */
    long entry;    /* of the field; -1: none */
};

/* What was told of steps, in that order; less is better. */
struct thaw_log {
    uint64_t trial;
    int step;
    double value;
    double score; /* what the process takes it for, once it is built */
};

/* A trial or a point that could be one: a column for each step. */
struct thaw_entry {
    struct point point;
    struct unit_point place;
    long trial; /* -1: none yet */
    double log_price;
};

/* How values are normed: reference and scale. */
struct thaw_warp {
    double begin, scale;
};

struct thaw_field {
    struct thaw_row rows[THAW_ROWS_MAX + THAW_SUPPOSED_MAX];
    size_t n_rows, n_supposed;
    double *low; /* the factor's rows, THAW_ROWS_MAX + THAW_SUPPOSED_MAX apart */
    double *v[THAW_ROWS_MAX + THAW_SUPPOSED_MAX];
    double solved[THAW_ROWS_MAX + THAW_SUPPOSED_MAX];
    double *mean, *var, *var_kept; /* of columns */
    size_t cols, cap_cols;
    size_t n_ready; /* rows of v that have been allocated */
    struct thaw_entry *entries;
    size_t n_entries, cap_entries;
};

struct thaw {
    const struct space *space;
    struct search_cfg cfg;
    bool stepwise;
    struct places places;
    struct thaw_times times;
    int step_epoch[THAW_STEPS_MAX];

    struct thaw_trial *trials;
    size_t n_trials, cap_trials;
    size_t n_bad;
    struct thaw_log *log;
    size_t n_log, cap_log;

    /* As of when it was built anew: what follows is a function of these, of the trials and of the log. */
    uint64_t builds;
    size_t built_log, built_trials;
    struct thaw_hyper hyper;

    struct thaw_warp warp;
    struct thaw_steps steps;
    struct thaw_field field;
    double fit_work[THAW_FIT_MAX * THAW_FIT_MAX];
};

/* thaw_warp.c */
struct thaw_warp thaw_warp_of(const struct thaw_log *log, size_t n, double *work);
double thaw_warped(const struct thaw_warp *w, double value);

/* thaw_score.c: how good a value is among all trials, whichever of them came that far. `work` has room for built_log of them. */
struct thaw_scored {
    double value, score;
    size_t at;
};
void thaw_score_log(struct thaw *t, struct thaw_scored *work); /* all up to the newest build */
double thaw_score_later(const struct thaw *t, size_t at);      /* of a value that was told since */
double thaw_unscored(const struct thaw *t, double score); /* after the last epoch; NAN: beyond all that are known */

/* thaw_pool.c: points that could be new. */
bool thaw_is_used(const struct thaw *t, const struct point *p, size_t n_trials);
bool thaw_draw_new(const struct thaw *t, struct point *out);           /* one that is not used */
size_t thaw_pool(const struct thaw *t, struct point *out, size_t max); /* as of the newest build; 0: nothing is left */

/* thaw_field.c. Nothing here allocates but field_reserve(), by which nothing changes. */
int thaw_field_reserve(struct thaw *t, size_t entries, size_t rows);
void thaw_field_clear(struct thaw *t);
void thaw_field_entry(struct thaw *t, const struct thaw_entry *e); /* one more, foretold from the rows that there are */
void thaw_field_row(struct thaw *t, const struct thaw_row *row);
void thaw_field_suppose(struct thaw *t, uint64_t trial, int step);
void thaw_field_unsuppose(struct thaw *t);
void thaw_field_done(struct thaw_field *f);

/* thaw_build.c: `grown`: the hyperparameters are fitted anew; else all is made again as it was. Needs `work` of n_log + 1 numbers. */
void thaw_build(struct thaw *t, bool grown, void *work);
size_t thaw_build_work(const struct thaw *t);                                                    /* bytes */
double thaw_close(const struct thaw *t, const struct unit_point *a, const struct unit_point *b); /* 1: the same point */

/* thaw.c: what a restored state implies. -ENOMEM. */
int thaw_build_again(struct thaw *t);

#endif
