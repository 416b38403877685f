#include "bigdl/log_runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "bigdl/log.h"

struct reader {
    struct log_runs out;
    struct fold fold;
    int recoveries; /* of the fold, when the newest epoch was added */
    double rate;    /* of the first iteration since; NAN: none yet */
};

static struct log_run *add_run(struct log_runs *r)
{
    struct log_run *more = array_more(r->runs, r->n, &r->cap, sizeof *more);
    if (!more)
        return NULL;
    r->runs = more;
    struct log_run *run = &r->runs[r->n++];
    *run = (struct log_run){ .batch = NAN, .learning_rate = NAN };
    return run;
}

/* The run that the epoch belongs to: the newest, cut back to where a recovery went, or a new one. NULL: memory. */
static struct log_run *run_of(struct reader *z, const struct fold_epoch *epoch)
{
    struct log_run *run = &z->out.runs[z->out.n - 1];
    int recovered = z->fold.recoveries - z->recoveries;
    z->recoveries = z->fold.recoveries;
    if (run->n_epochs == 0 || epoch->epoch > run->epochs[run->n_epochs - 1].epoch || recovered) {
        while (run->n_epochs && run->epochs[run->n_epochs - 1].epoch >= epoch->epoch)
            run->n_epochs--;
        run->recoveries += recovered;
        return run;
    }
    return add_run(&z->out);
}

/* What is known of a run from one of its epochs, which need not be finished. */
static void know_run(struct reader *z, struct log_run *run, const struct fold_epoch *epoch)
{
    if (isnan(run->learning_rate))
        run->learning_rate = z->rate; /* that of the epoch is its last, decayed one */
    z->rate = NAN;
    if (isnan(run->batch) && epoch->iterations > 0)
        run->batch = epoch->records / (double)epoch->iterations;
}

static int add_epoch(struct reader *z, const struct fold_epoch *epoch)
{
    struct log_run *run = run_of(z, epoch);
    if (!run)
        return -ENOMEM;
    struct fold_epoch *more = array_more(run->epochs, run->n_epochs, &run->cap, sizeof *more);
    if (!more)
        return -ENOMEM;
    run->epochs = more;
    run->epochs[run->n_epochs++] = *epoch;
    know_run(z, run, epoch);
    return 0;
}

static int on_event(void *ctx, const struct app_report *ev, uint64_t end)
{
    struct reader *z = ctx;
    struct fold_epoch epoch;
    int rc = fold_report(&z->fold, ev, end, &epoch) ? add_epoch(z, &epoch) : 0;
    if (ev->kind == REPORT_STEP && isnan(z->rate))
        z->rate = ev->learning_rate;
    return rc;
}

/* Only the last run can have ended otherwise: the log goes on behind the others. */
static int end_last(struct reader *z, uint64_t end)
{
    struct fold_epoch epoch;
    int rc = fold_end(&z->fold, &epoch) ? add_epoch(z, &epoch) : 0;
    struct log_run *run = &z->out.runs[z->out.n - 1];
    const struct fold_seen *why = fold_cause(&z->fold, end);
    run->cause = why ? why->cause : NULL;
    if (z->fold.open)
        know_run(z, run, &z->fold.now);
    if (run->n_epochs == 0)
        run->end = run->cause ? LOG_RUN_FAILED : LOG_RUN_RUNNING;
    else if (z->fold.open)
        run->end = run->cause ? LOG_RUN_CUT : LOG_RUN_RUNNING;
    return rc;
}

int log_runs_parse(struct log_runs *out, const char *text, size_t len)
{
    struct reader z = { .rate = NAN };
    struct lines stream;
    fold_init(&z.fold, "accuracy", 0);
    lines_init(&stream, &log_reader, 0);
    int rc = add_run(&z.out) ? 0 : -ENOMEM;
    if (rc == 0 && len > 0)
        rc = lines_feed(&stream, text, len, on_event, &z);
    if (rc == 0)
        rc = lines_end(&stream, on_event, &z);
    if (rc == 0)
        rc = end_last(&z, len);
    lines_done(&stream);
    if (rc < 0)
        log_runs_done(&z.out);
    else
        *out = z.out;
    return rc;
}

void log_runs_done(struct log_runs *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        free(r->runs[i].epochs);
    free(r->runs);
    *r = (struct log_runs){ 0 };
}
