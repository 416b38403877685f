/* One experiment: what the command line said, what came of it, and what experiment.c and its parts share. */
#ifndef CMD_EXPERIMENT_PARTS_H
#define CMD_EXPERIMENT_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "core/experiment.h"

struct experiment_args {
    char *trace, *folder;
    bool simulate, skip_idle, json;
};

/* Trials of studies, as they are gathered. */
struct experiment_trials {
    struct experiment_trial *v;
    size_t n, cap;
};

struct experiment_result {
    struct experiment x;
    const char *file; /* borrowed */
    bool simulated;
    double service_s;
    int cores;                           /* of this machine, or the most that were recorded */
    struct experiment_arrival *arrivals; /* n */
    size_t n;                            /* studies of each policy */
    struct experiment_row *rows;         /* n of each policy, one policy after the other */
    struct experiment_trials trials;
};

void experiment_result_done(struct experiment_result *r);

/* Rows and arrivals for n studies of each policy; rows are zeroed. -ENOMEM. */
int experiment_result_room(struct experiment_result *r, struct err *e);

/* Adds a trial; ctx is the struct experiment_trials. -ENOMEM. */
int experiment_keep_trial(void *ctx, const struct experiment_trial *t);

/* A job's config: as it is written, else beside the experiment's file. NULL: memory. Free it. */
char *experiment_config(const struct experiment_result *r, size_t job);

/* "learning_rate" and "batch_size" of a trial's hyperparameters, whatever their spelling; NAN: there is none. */
void experiment_read_hyper(const json_t *hyper, double *out_lr, double *out_batch);

/* experiment_simulate.c: over the trace. */
int experiment_play(struct experiment_result *r, const char *trace, struct err *e);

/* experiment_live.c: trained, in the folder; `file` is the experiment as it is written. -EINTR: interrupted, it can be gone on with. */
int experiment_train(struct experiment_result *r, const json_t *file, const char *folder, bool skip_idle,
                     struct err *e);

/* experiment_report.c: `folder` gets report.html, report.json, response.svg and csv/. experiment_print() is for people, in lines that are no
 * wider than `width`; 0: than the terminal. */
int experiment_write(const struct experiment_result *r, const char *folder, struct err *e);
void experiment_print(const struct experiment_result *r, struct buf *b, size_t width);
json_t *experiment_json(const struct experiment_result *r); /* NULL: memory */

/* experiment_html.c */
void experiment_put_html(struct buf *b, const struct experiment_result *r);
void experiment_put_picture(struct buf *b, const struct experiment_result *r); /* a file of its own */

#endif
