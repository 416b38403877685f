#include "bigdl/fold.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void fold_init(struct fold *f, const char *metric, uint64_t offset)
{
    *f = (struct fold){ .safe_offset = offset, .last_end = offset, .throughput = NAN };
    (void)snprintf(f->metric, sizeof f->metric, "%s", metric);
}

static void begin_epoch(struct fold *f, const struct log_event *ev)
{
    f->open = true;
    f->pending = false;
    f->now = (struct fold_epoch){
        .epoch = ev->epoch,
        .train_loss = NAN,
        .accuracy = NAN,
        .loss = NAN,
        .metric = NAN,
        .learning_rate = NAN,
        .seconds = NAN,
        .start_ms = ev->stamp_ms,
        .end_ms = ev->stamp_ms,
    };
    if (ev->stamp_ms >= 0 && isfinite(ev->seconds))
        f->now.start_ms -= (int64_t)(ev->seconds * 1000.0 + 0.5);
}

/* Whatever was complained of, training went on. */
static void forget_causes(struct fold *f)
{
    f->died.cause = f->error.cause = f->hint.cause = CAUSE_NONE;
}

/* Gives `now` out; `safe` is where the lines that are in it end. */
static int give(struct fold *f, uint64_t safe, struct fold_epoch *out)
{
    *out = f->now;
    if (out->start_ms >= 0 && out->end_ms >= out->start_ms)
        out->seconds = (double)(out->end_ms - out->start_ms) / 1000.0;
    f->safe_offset = safe;
    f->open = f->pending = false;
    forget_causes(f);
    return 1;
}

static int on_iteration(struct fold *f, const struct log_event *ev, struct fold_epoch *out)
{
    int gave = f->pending ? give(f, f->last_end, out) : 0;
    /* A recovery goes back to a snapshot: what was counted since is trained again. */
    if (!f->open || ev->epoch != f->now.epoch || ev->iteration <= f->now.last_iteration)
        begin_epoch(f, ev);
    forget_causes(f);
    f->now.iterations++;
    f->now.last_iteration = ev->iteration;
    f->now.records += ev->records;
    f->now.train_loss = ev->loss;
    f->now.learning_rate = ev->learning_rate;
    f->granted = true;
    f->iteration = ev->iteration;
    f->records_done = ev->records_done;
    f->records_all = ev->records_all;
    f->throughput = ev->seconds > 0 ? ev->records / ev->seconds : NAN;
    f->pending = ev->closes_epoch; /* LocalOptimizer has no line of its own for that */
    return gave;
}

static bool is_metric(const struct fold *f, const char *name)
{
    bool accuracy = strcasecmp(f->metric, "accuracy") == 0 && strcasestr(name, "accuracy");
    return accuracy || strcasecmp(f->metric, name) == 0;
}

static void note_reported(struct fold *f, const char *name)
{
    f->has_metric |= is_metric(f, name);
    for (int i = 0; i < f->n_reported; i++)
        if (strncmp(f->reported[i], name, FOLD_NAME_MAX - 1) == 0)
            return;
    if (f->n_reported < FOLD_REPORTED_MAX)
        (void)snprintf(f->reported[f->n_reported++], FOLD_NAME_MAX, "%s", name); /* a cut name still tells */
}

static void on_metric(struct fold *f, const struct log_event *ev)
{
    note_reported(f, ev->text);
    if (!f->open)
        return;
    bool top1 = strcmp(ev->text, "Top1Accuracy") == 0;
    if (top1 || (isnan(f->now.accuracy) && strcasestr(ev->text, "accuracy")))
        f->now.accuracy = ev->value;
    if (strcasecmp(ev->text, "loss") == 0)
        f->now.loss = ev->value;
    if (strcasecmp(ev->text, f->metric) == 0)
        f->now.metric = ev->value;
    if (strcasecmp(f->metric, "accuracy") == 0)
        f->now.metric = f->now.accuracy;
}

/* One that is granted may be told to have registered, too. */
static void on_granted(struct fold *f, const struct log_event *ev)
{
    int room = INT_MAX - f->cores;
    if (ev->cores == 0 && f->cores > 0)
        return;
    f->executors += f->executors < INT_MAX;
    f->cores += ev->cores < room ? ev->cores : room;
}

static void see(struct fold_seen *to, const struct log_event *ev, uint64_t end)
{
    if (to->cause != CAUSE_NONE && to->cause < ev->cause)
        return;
    to->end = end;
    if (to->cause == ev->cause)
        return;
    to->cause = ev->cause;
    memcpy(to->text, ev->text, sizeof to->text);
}

static void on_cause(struct fold *f, const struct log_event *ev, uint64_t end)
{
    if (log_cause_explained(ev->cause) != CAUSE_NONE)
        see(&f->hint, ev, end);
    if (ev->level == LEVEL_ERROR)
        see(&f->error, ev, end);
    if (ev->level != LEVEL_NONE)
        return;
    if (ev->anew) /* what was said before it was lived through */
        f->died.cause = CAUSE_NONE;
    see(&f->died, ev, end);
}

/* A trace of many causes is long; a line that is further from the end than this is not of its last trace. */
enum { NEAR_END = 128 * 1024 };

static bool is_near(const struct fold_seen *s, uint64_t end)
{
    return s->cause != CAUSE_NONE && end - s->end <= NEAR_END;
}

/* That something failed, but not what. */
static bool is_vague(const struct fold_seen *s)
{
    return s->cause >= CAUSE_TASK_FAILED;
}

const struct fold_seen *fold_cause(const struct fold *f, uint64_t end)
{
    const struct fold_seen *died = is_near(&f->died, end) ? &f->died : NULL;
    const struct fold_seen *error = is_near(&f->error, end) ? &f->error : NULL;
    const struct fold_seen *why = died && (!is_vague(died) || !error || is_vague(error)) ? died : error;
    bool explained = why && is_near(&f->hint, end) && log_cause_explained(f->hint.cause) == why->cause;
    return explained ? &f->hint : why;
}

int fold_event(struct fold *f, const struct log_event *ev, uint64_t end, struct fold_epoch *out)
{
    int gave = 0;
    switch (ev->kind) {
    case LOG_APP_ID:
        f->connected = true;
        (void)snprintf(f->app_id, sizeof f->app_id, "%s", ev->text);
        break;
    case LOG_GRANTED: on_granted(f, ev); break;
    case LOG_DATA: f->data = true; break;
    case LOG_ITERATION: gave = on_iteration(f, ev, out); break;
    case LOG_EPOCH_END: f->pending = f->open; break;
    case LOG_METRIC: on_metric(f, ev); break;
    case LOG_CHECKPOINT: break;
    case LOG_RECOVERY:
        f->recoveries++;
        f->open = f->pending = false; /* what no checkpoint holds is trained again */
        break;
    case LOG_MARK: break;
    case LOG_LOST:
    case LOG_PAUSE: break;
    case LOG_CAUSE: on_cause(f, ev, end); break;
    }
    bool trains = ev->kind != LOG_CAUSE && ev->kind != LOG_LOST && ev->kind != LOG_PAUSE;
    if (f->open && ev->stamp_ms >= 0 && trains)
        f->now.end_ms = ev->stamp_ms;
    f->last_end = end;
    if (ev->kind == LOG_CHECKPOINT && f->pending)
        gave = give(f, end, out);
    return gave;
}

int fold_end(struct fold *f, struct fold_epoch *out)
{
    return f->pending ? give(f, f->last_end, out) : 0;
}
