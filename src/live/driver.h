/* The driver: one loop that starts trials, reads their logs, and stores every step before it acts on it. */
#ifndef LIVE_DRIVER_H
#define LIVE_DRIVER_H

#include "app/fold.h"
#include "live/deliver.h"
#include "live/grant.h"
#include "live/study.h"
#include "store/outlook.h"

enum news_kind {
    NEWS_LAUNCH,   /* an attempt was started (or found still running: `adopted`) */
    NEWS_COPY,     /* a trial took the result of a finished one; text says which */
    NEWS_EPOCH,    /* an epoch is complete */
    NEWS_ENDED,    /* an attempt is over; trial->state says what became of the trial, text why (may be NULL) */
    NEWS_NOTE,     /* text */
    NEWS_TICK,     /* time to redraw */
    NEWS_FORETOLD, /* what the trial is foretold to come to, by its newest epoch */
};

struct driver_news {
    enum news_kind kind;
    const struct store_trial *trial; /* NULL: of the study */
    int attempt;                     /* 0: it is yet to begin */
    bool adopted;
    const struct store_epoch *epoch; /* NEWS_EPOCH */
    const struct fold *fold;         /* NEWS_TICK: how far the trial is; NULL while it starts */
    double cores;                    /* NEWS_TICK: CPUs in force, NAN: not known */
    struct wait wait;                /* NEWS_TICK: for what the trial waits */
    const char *text;
    const struct outlook_told *foretold; /* NEWS_FORETOLD */
};

struct driver_options {
    bool queued;                                           /* the queue says which CPUs it has, and when to end */
    bool foretells;                                        /* the watcher wants forecasts: a worker reckons them */
    void (*watch)(void *ctx, const struct driver_news *n); /* prints; never blocks for long */
    void *ctx;
};

enum driver_end {
    DRIVER_DONE,        /* nothing is left to run */
    DRIVER_INTERRUPTED, /* SIGINT or SIGTERM; the trials were ended and can be continued */
    DRIVER_LEFT,        /* SIGHUP, or as the queue wants: the trials run on */
    DRIVER_ENVIRONMENT, /* no trial can run here; `why` */
    DRIVER_CONFIG,      /* the study's metric is not reported; `why` */
};

struct driver_result {
    enum driver_end end;
    char why[512];
    double launch_to_end_s;         /* from the first launch of this run; NAN: nothing was launched */
    bool server_away;               /* MLflow's, where one is named, was not there when it was asked last */
    struct deliver_counts delivery; /* to InfluxDB; produced 0: there was nothing, or nowhere, to send */
};

/* Runs until nothing is left to do. Negative when the store or the loop failed: what runs goes on and can be found again. */
int driver_run(struct study *s, const struct driver_options *o, struct driver_result *out, struct err *e);

#endif
