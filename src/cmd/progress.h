/* What `run` shows while it works: a table that grows, with a live part on a terminal; plain lines elsewhere. */
#ifndef CMD_PROGRESS_H
#define CMD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/remaining.h"
#include "live/driver.h"

enum { PROGRESS_RUNNING_MAX = 32 };

struct progress {
    FILE *out;
    const char *study;  /* its name, borrowed */
    const char *metric; /* the study's, where that is neither accuracy nor loss; NULL. Borrowed */
    bool live;          /* a terminal: redraw */
    size_t drawn;       /* lines of the live part that stand on the screen */
    int64_t begun_ms, drawn_ms;
    uint64_t total; /* trials to come in all; 0: not known */
    int ended, finished;
    bool whole;                   /* each trial is trained to its end */
    struct remaining_trials took; /* of those that finished */
    double budget_s;              /* 0: without end */
    int64_t budget_epochs, epochs_done;
    int64_t epochs;                       /* of a trial */
    double epoch_s[REMAINING_EPOCHS_MAX]; /* the newest, in no order */
    size_t n_epochs;                      /* of all that told their seconds */
    int best_trial;
    double best; /* metric of the best trial, NAN: none */
    double best_accuracy;
    bool maximise;
    struct progress_row {
        int trial, attempt; /* attempt 0: it is yet to begin */
        char hyper[160];
        int epochs, epoch; /* budget; the one under way */
        double part;       /* of the epoch under way, 0…1 */
        double accuracy, throughput;
        char foretold[96]; /* "": not yet */
        double cores;      /* CPUs in force; 0 or NAN: not known */
        int64_t since_ms;
        struct wait wait;
        int64_t waits_ms; /* since when for this; 0: it has been told */
        bool fresh;       /* heard of since the last look */
    } running[PROGRESS_RUNNING_MAX];
    size_t n_running;
};

/* `out` NULL: shows nothing. */
void progress_init(struct progress *p, FILE *out, const struct study *s);

/* A driver_options.watch; ctx is the struct progress. */
void progress_news(void *ctx, const struct driver_news *n);

/* Takes the live part off the screen. */
void progress_end(struct progress *p);

#endif
