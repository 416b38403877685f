#include "app/fold.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void fold_init(struct fold *f, const char *metric, uint64_t offset)
{
    *f = (struct fold){ .safe_offset = offset, .last_end = offset, .throughput = NAN, .since_ms = -1 };
    (void)snprintf(f->metric, sizeof f->metric, "%s", metric);
}

static void begin_epoch(struct fold *f, int epoch, int64_t start_ms, int64_t stamp_ms)
{
    f->open = true;
    f->pending = false;
    f->now = (struct fold_epoch){
        .epoch = epoch,
        .train_loss = NAN,
        .accuracy = NAN,
        .loss = NAN,
        .metric = NAN,
        .learning_rate = NAN,
        .seconds = NAN,
        .start_ms = start_ms,
        .end_ms = stamp_ms,
    };
}

/* When a step or an epoch began that ended now. */
static int64_t start_of(const struct fold *f, const struct app_report *r)
{
    if (!isfinite(r->seconds))
        return f->since_ms;
    return r->stamp_ms < 0 ? -1 : r->stamp_ms - (int64_t)(r->seconds * 1000.0 + 0.5);
}

/* Whatever was complained of, training went on. */
static void forget_causes(struct fold *f)
{
    f->died.cause = f->error.cause = f->hint.cause = NULL;
}

/* Gives `now` out; `safe` is where the lines that are in it end. */
static int give(struct fold *f, uint64_t safe, struct fold_epoch *out)
{
    *out = f->now;
    if (isnan(out->seconds) && out->start_ms >= 0 && out->end_ms >= out->start_ms)
        out->seconds = (double)(out->end_ms - out->start_ms) / 1000.0;
    f->safe_offset = safe;
    f->last_epoch = out->epoch;
    f->since_ms = out->end_ms;
    f->open = f->pending = false;
    forget_causes(f);
    return 1;
}

/* Of which epoch a report is that does not say so. */
static int epoch_of(const struct fold *f, const struct app_report *r)
{
    if (r->epoch > 0)
        return r->epoch;
    return f->open && !f->pending ? f->now.epoch : f->last_epoch + 1;
}

static int on_step(struct fold *f, const struct app_report *r, struct fold_epoch *out)
{
    int gave = f->pending ? give(f, f->last_end, out) : 0;
    int epoch = epoch_of(f, r);
    int64_t step = r->step > 0 ? r->step : f->iteration + 1;
    /* A recovery goes back to a snapshot: what was counted since is trained again. */
    if (!f->open || epoch != f->now.epoch || step <= f->now.last_iteration)
        begin_epoch(f, epoch, start_of(f, r), r->stamp_ms);
    f->guessed = r->epoch == 0;
    forget_causes(f);
    f->now.iterations++;
    f->now.last_iteration = step;
    f->now.records += r->records;
    f->now.train_loss = r->loss;
    f->has_loss |= !isnan(r->loss);
    f->now.learning_rate = r->learning_rate;
    f->granted = true;
    f->iteration = step;
    f->records_done = r->records_done;
    f->records_all = r->records_all;
    f->throughput = r->seconds > 0 ? r->records / r->seconds : NAN;
    f->pending = r->closes_epoch;
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
        if (strncmp(f->reported[i], name, REPORT_NAME_MAX - 1) == 0)
            return;
    if (f->n_reported < FOLD_REPORTED_MAX)
        (void)snprintf(f->reported[f->n_reported++], REPORT_NAME_MAX, "%s", name); /* a cut name still tells */
}

static void keep_value(struct fold_epoch *to, const char *name, double value)
{
    size_t i = 0;
    while (i < to->n_values && strncmp(to->values[i].name, name, REPORT_NAME_MAX - 1) != 0)
        i++;
    if (i == REPORT_VALUES_MAX)
        return;
    if (i == to->n_values)
        (void)snprintf(to->values[to->n_values++].name, REPORT_NAME_MAX, "%s", name);
    to->values[i].value = value;
}

void fold_tell(struct fold *f, struct fold_epoch *x, const char *name, double value)
{
    note_reported(f, name);
    if (!x)
        return;
    keep_value(x, name, value);
    bool top1 = strcmp(name, "Top1Accuracy") == 0;
    if (top1 || (isnan(x->accuracy) && strcasestr(name, "accuracy")))
        x->accuracy = value;
    if (strcasecmp(name, "loss") == 0)
        x->loss = value;
    if (strcasecmp(name, f->metric) == 0)
        x->metric = value;
    if (strcasecmp(f->metric, "accuracy") == 0)
        x->metric = x->accuracy;
}

static void on_value(struct fold *f, const char *name, double value)
{
    fold_tell(f, f->open ? &f->now : NULL, name, value);
}

static double known(double told, double before)
{
    return isnan(told) ? before : told;
}

/* Is the study's metric among what was told of the epoch? Else a later report may bring it. */
static bool tells_metric(const struct fold *f)
{
    for (size_t i = 0; i < f->now.n_values; i++)
        if (is_metric(f, f->now.values[i].name))
            return true;
    return strcasecmp(f->metric, "loss") == 0 && !isnan(f->now.train_loss);
}

/* An epoch that is told of as a whole may have had steps or not. 1 when that gives the one before it out, which only waited for its values:
 * then this one is still to be given, by the next report or at the end. */
static int on_whole_epoch(struct fold *f, const struct app_report *r, uint64_t end, struct fold_epoch *out)
{
    int epoch = epoch_of(f, r);
    if (epoch <= f->last_epoch) /* told once more, by another way */
        return 0;
    int gave = f->pending && epoch != f->now.epoch ? give(f, f->last_end, out) : 0;
    if (f->open && f->guessed)
        f->now.epoch = epoch;
    if (!f->open || epoch != f->now.epoch)
        begin_epoch(f, epoch, start_of(f, r), r->stamp_ms);
    f->granted = true;
    f->now.end_ms = r->stamp_ms >= 0 ? r->stamp_ms : f->now.end_ms;
    f->now.seconds = r->seconds;
    f->now.records = r->records > 0 ? r->records : f->now.records;
    f->now.train_loss = known(r->loss, f->now.train_loss);
    f->now.learning_rate = known(r->learning_rate, f->now.learning_rate);
    for (size_t i = 0; i < r->n_values; i++)
        on_value(f, r->values[i].name, r->values[i].value);
    f->pending = true;
    return gave ? 1 : tells_metric(f) ? give(f, end, out) : 0;
}

/* One that is granted may be told to have registered, too. */
static void on_granted(struct fold *f, const struct app_report *ev)
{
    int room = INT_MAX - f->cores;
    if (ev->cores == 0 && f->cores > 0)
        return;
    f->parts += f->parts < INT_MAX;
    f->cores += ev->cores < room ? ev->cores : room;
}

static void see(struct fold_seen *to, const struct app_report *r, uint64_t end)
{
    if (to->cause && to->cause < r->cause) /* rows of one table, the most telling first */
        return;
    to->end = end;
    if (to->cause == r->cause)
        return;
    to->cause = r->cause;
    memcpy(to->text, r->text, sizeof to->text);
}

static void on_cause(struct fold *f, const struct app_report *ev, uint64_t end)
{
    if (ev->cause->explains)
        see(&f->hint, ev, end);
    if (ev->level == LEVEL_ERROR)
        see(&f->error, ev, end);
    if (ev->level != LEVEL_NONE)
        return;
    if (ev->anew) /* what was said before it was lived through */
        f->died.cause = NULL;
    see(&f->died, ev, end);
}

/* A trace of many causes is long; a line that is further from the end than this is not of its last trace. */
enum { NEAR_END = 128 * 1024 };

static bool is_near(const struct fold_seen *s, uint64_t end)
{
    return s->cause && end - s->end <= NEAR_END;
}

static bool is_vague(const struct fold_seen *s)
{
    return s->cause->traits & CAUSE_IS_VAGUE;
}

const struct fold_seen *fold_cause(const struct fold *f, uint64_t end)
{
    const struct fold_seen *died = is_near(&f->died, end) ? &f->died : NULL;
    const struct fold_seen *error = is_near(&f->error, end) ? &f->error : NULL;
    const struct fold_seen *why = died && (!is_vague(died) || !error || is_vague(error)) ? died : error;
    bool explained = why && is_near(&f->hint, end) && f->hint.cause->explains == why->cause;
    return explained ? &f->hint : why;
}

/* Does it tell how far the training is? */
static bool trains(enum report_kind kind)
{
    return kind != REPORT_CAUSE && kind != REPORT_LOST && kind != REPORT_PAUSE;
}

int fold_report(struct fold *f, const struct app_report *ev, uint64_t end, struct fold_epoch *out)
{
    int gave = 0;
    switch (ev->kind) {
    case REPORT_READY:
        f->connected = true;
        (void)snprintf(f->app_id, sizeof f->app_id, "%s", ev->text);
        break;
    case REPORT_GRANTED: on_granted(f, ev); break;
    case REPORT_DATA: f->data = true; break;
    case REPORT_STEP: gave = on_step(f, ev, out); break;
    case REPORT_EPOCH:
        if (ev->whole)
            gave = on_whole_epoch(f, ev, end, out);
        else
            f->pending = f->open;
        break;
    case REPORT_VALUE: on_value(f, ev->text, ev->value); break;
    case REPORT_RECOVERY:
        f->recoveries++;
        f->open = f->pending = false; /* what no checkpoint holds is trained again */
        break;
    case REPORT_CAUSE: on_cause(f, ev, end); break;
    case REPORT_LOST: f->starved += ev->cause && ev->cause->traits & CAUSE_IS_MEMORY && f->starved < INT_MAX; break;
    case REPORT_CHECKPOINT:
    case REPORT_MARK:
    case REPORT_PAUSE: break;
    }
    if (ev->stamp_ms >= 0 && trains(ev->kind))
        *(f->open ? &f->now.end_ms : &f->since_ms) = ev->stamp_ms;
    f->last_end = end;
    if (ev->kind == REPORT_CHECKPOINT && f->pending)
        gave = give(f, end, out);
    return gave;
}

int fold_end(struct fold *f, struct fold_epoch *out)
{
    return f->pending ? give(f, f->last_end, out) : 0;
}
