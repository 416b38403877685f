#include "store/import.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "bigdl/log_runs.h"
#include "core/timeline_csv.h"
#include "core/tune_csv.h"
#include "monitoring/event_names.h"
#include "monitoring/perf_stat.h"
#include "store/curves_trace.h"

#define AUTO_FAULTS __attribute__((cleanup(csv_faults_done)))

static int no_memory(const struct import_text *in, struct err *e)
{
    return err_sys(e, -ENOMEM, "cannot import '%s'", in->name);
}

/* Broken rows are an error, unless the rest is to be used and there is one. */
static int judge(const struct import_text *in, const struct csv_faults *f, size_t got, struct buf *notes, struct err *e)
{
    csv_faults_put(f, in->lenient ? "left out: " : "", in->name, notes);
    if (f->n > 0 && !in->lenient)
        return csv_faults_err(f, in->name, e);
    if (got == 0)
        return err_set(e, -EINVAL, "'%s' holds no row%s", in->name, f->n ? " that can be used" : "");
    return (int)(f->n < INT32_MAX ? f->n : INT32_MAX);
}

/* "dir/name.csv" -> "name". NULL: memory. */
static char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return trace_name(base, dot && dot != base ? (size_t)(dot - base) : strlen(base));
}

/* --- JSON objects of named figures --- */

struct figure {
    const char *key;
    double value; /* NAN: left out */
};

static char *figures_text(const struct figure *f, size_t n)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_putc(&b, '{');
    for (size_t i = 0; i < n; i++)
        if (isfinite(f[i].value)) {
            buf_printf(&b, "%s\"%s\":", b.len > 1 ? "," : "", f[i].key);
            num_put(&b, f[i].value);
        }
    buf_putc(&b, '}');
    return buf_take(&b);
}

#define FIGURES(...)                                                                                                   \
    figures_text((const struct figure[]){ __VA_ARGS__ },                                                               \
                 sizeof((const struct figure[]){ __VA_ARGS__ }) / sizeof(struct figure))

/* Takes the texts; one of them NULL is memory that ran out, and they are freed with the trace. */
static int fill_texts(struct trace_run *r, char *model, char *system, char *hyper, char *results)
{
    r->model = model;
    r->dataset = strdup("");
    r->system = system;
    r->hyper = hyper;
    r->results = results;
    return model && r->dataset && system && hyper && results ? 0 : -ENOMEM;
}

static int one_epoch(struct trace_run *r, double duration_s, double energy_j)
{
    r->epochs = malloc(sizeof *r->epochs);
    if (!r->epochs)
        return -ENOMEM;
    r->epochs[0] = trace_no_epoch();
    r->epochs[0].duration_s = duration_s;
    r->epochs[0].energy_j = energy_j;
    r->n_epochs = 1;
    return 0;
}

/* --- timeline --- */

static void note_holes(const struct timeline *t, const char *name, struct buf *notes)
{
    size_t count[RUN_RUNNING + 1] = { 0 };
    for (size_t i = 0; i < t->n; i++)
        count[t->runs[i].status]++;
    if (count[RUN_COMPLETE] < t->n)
        buf_printf(notes,
                   "note: '%s': no policy can settle where a run is partial (%zu), failed (%zu) or not ended (%zu)\n",
                   name, count[RUN_PARTIAL], count[RUN_FAILED], count[RUN_RUNNING]);
}

static int import_timeline(struct trace *out, const struct import_text *in, struct buf *notes, struct err *e)
{
    AUTO_FAULTS struct csv_faults faults = { 0 };
    struct timeline t = { 0 };
    if (timeline_csv_parse(&t, in->text, in->len, &faults) < 0)
        return no_memory(in, e);
    int rc = judge(in, &faults, t.n, notes, e);
    if (rc >= 0) {
        note_holes(&t, in->name, notes);
        int added = trace_add_timeline(out, &t, e);
        rc = added < 0 ? added : rc;
    }
    timeline_done(&t);
    return rc;
}

/* --- tune-offline, tune-online: a row says one training as a whole, so the run's one entry in `epochs` is the training --- */

static int add_offline(struct trace *out, const char *model, const struct tune_offline_row *row)
{
    struct trace_run *r = trace_add(out);
    if (!r)
        return -ENOMEM;
    r->status = RUN_COMPLETE;
    int rc = fill_texts(r, strdup(model), strdup("{}"),
                        FIGURES({ "learning_rate", row->lr }, { "epochs", row->epochs }, { "batch_size", row->batch }),
                        FIGURES({ "error", row->error }, { "error_resp", row->error_resp },
                                { "training_s", row->training_s }, { "energy_j", row->energy_j }));
    return rc < 0 ? rc : one_epoch(r, row->training_s, row->energy_j);
}

static int add_offline_rows(struct trace *out, const struct import_text *in, const struct tune_offline *rows)
{
    AUTO_FREE char *model = base_name(in->name);
    int rc = model ? 0 : -ENOMEM;
    for (size_t i = 0; i < rows->n && rc == 0; i++)
        rc = add_offline(out, model, &rows->rows[i]);
    return rc;
}

static int import_tune_offline(struct trace *out, const struct import_text *in, struct buf *notes, struct err *e)
{
    AUTO_FAULTS struct csv_faults faults = { 0 };
    struct tune_offline rows = { 0 };
    if (tune_offline_parse(&rows, in->text, in->len, &faults) < 0)
        return no_memory(in, e);
    int rc = judge(in, &faults, rows.n, notes, e);
    if (rc >= 0 && add_offline_rows(out, in, &rows) < 0)
        rc = no_memory(in, e);
    tune_offline_done(&rows);
    return rc;
}

static char *online_results(const struct tune_online_row *row)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_FREE char *figures =
        FIGURES({ "queue_s", row->queue_s }, { "tuning_s", row->tuning_s }, { "response_s", row->response_s },
                { "error", row->error }, { "training_s", row->training_s }, { "objective", row->objective },
                { "tuning_j", row->tuning_j }, { "training_j", row->training_j });
    if (!figures)
        return NULL;
    buf_puts(&b, "{\"load\":");
    json_put_string(&b, csv_is_name(row->load) ? row->load : "?");
    buf_printf(&b, "%s%s", strcmp(figures, "{}") == 0 ? "" : ",", figures + 1);
    return buf_take(&b);
}

static int add_online(struct trace *out, const struct tune_online_row *row)
{
    struct trace_run *r = trace_add(out);
    if (!r)
        return -ENOMEM;
    r->status = RUN_COMPLETE;
    int rc = fill_texts(r, strdup(csv_is_name(row->job) ? row->job : "?"), FIGURES({ "cores", row->cores }),
                        FIGURES({ "learning_rate", row->lr }, { "batch_size", row->batch }, { "epochs", row->epochs }),
                        online_results(row));
    return rc < 0 ? rc : one_epoch(r, row->training_s, row->training_j);
}

static int add_online_rows(struct trace *out, const struct tune_online *rows)
{
    int rc = 0;
    for (size_t i = 0; i < rows->n && rc == 0; i++)
        rc = add_online(out, &rows->rows[i]);
    return rc;
}

static int import_tune_online(struct trace *out, const struct import_text *in, struct buf *notes, struct err *e)
{
    AUTO_FAULTS struct csv_faults faults = { 0 };
    struct tune_online rows = { 0 };
    if (tune_online_parse(&rows, in->text, in->len, &faults) < 0)
        return no_memory(in, e);
    int rc = judge(in, &faults, rows.n, notes, e);
    if (rc >= 0 && add_online_rows(out, &rows) < 0)
        rc = no_memory(in, e);
    tune_online_done(&rows);
    return rc;
}

/* --- perf-stat: one run of samples --- */

static enum trace_state state_of(enum perf_stat_state s)
{
    switch (s) {
    case PERF_STAT_OK: return TRACE_OK;
    case PERF_STAT_MULTIPLEXED: return TRACE_MULTIPLEXED;
    case PERF_STAT_NOT_COUNTED: return TRACE_NOT_COUNTED;
    case PERF_STAT_NOT_SUPPORTED: return TRACE_UNSUPPORTED;
    }
    return TRACE_ABSENT;
}

/* The place of each event among the features; those that are none of the 58 are added. NULL: memory. */
static size_t *place_events(struct trace *out, const struct perf_stat *p)
{
    size_t *places = calloc(p->events.n + 1, sizeof *places);
    for (size_t i = 0; places && i < p->events.n; i++) {
        size_t at = 0;
        while (at < out->features.n && strcmp(out->features.v[at], p->events.v[i]) != 0)
            at++;
        if (at == out->features.n)
            strv_add(&out->features, p->events.v[i]);
        places[i] = at;
    }
    if (out->features.failed) {
        free(places);
        return NULL;
    }
    return places;
}

static int fill_samples(struct trace_samples *s, const struct perf_stat *p, const size_t *places, size_t features)
{
    if (trace_samples_init(s, p->n_intervals, features) < 0)
        return -ENOMEM;
    memcpy(s->t_ns, p->t_ns, p->n_intervals * sizeof *s->t_ns);
    for (size_t i = 0; i < p->n_cells; i++) {
        const struct perf_stat_cell *c = &p->cells[i];
        size_t cell = c->interval * features + places[c->event];
        s->value[cell] = c->value;
        s->state[cell] = (uint8_t)state_of(c->state);
        s->ratio[cell] = (float)c->ratio;
    }
    return 0;
}

/* {"units":{"cpu-clock":"msec"}}: a plain count has none. */
static char *units_text(const struct perf_stat *p)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const char *separator = "";
    buf_puts(&b, "{\"units\":{");
    for (size_t i = 0; i < p->events.n; i++) {
        if (!*p->units.v[i])
            continue;
        buf_puts(&b, separator);
        json_put_string(&b, p->events.v[i]);
        buf_putc(&b, ':');
        json_put_string(&b, p->units.v[i]);
        separator = ",";
    }
    buf_puts(&b, "}}");
    return buf_take(&b);
}

static int add_perf(struct trace *out, const struct import_text *in, const struct perf_stat *p)
{
    if (out->features.n == 0 && trace_default_features(out) < 0)
        return -ENOMEM;
    AUTO_FREE size_t *places = place_events(out, p);
    struct trace_run *r = places ? trace_add(out) : NULL;
    if (!r)
        return -ENOMEM;
    r->status = RUN_COMPLETE;
    int rc = fill_texts(r, base_name(in->name), strdup("{}"), strdup("{}"), units_text(p));
    return rc < 0 ? rc : fill_samples(&r->samples, p, places, out->features.n);
}

static void note_perf(const struct perf_stat *p, const char *name, struct buf *notes)
{
    if (p->other_lines)
        buf_printf(notes, "note: '%s': %zu lines are no rows of perf stat -I, and were passed over\n", name,
                   p->other_lines);
    if (p->cut)
        buf_printf(notes, "note: '%s': the text ends within a row, which was left out\n", name);
}

static int import_perf_stat(struct trace *out, const struct import_text *in, struct buf *notes, struct err *e)
{
    AUTO_FAULTS struct csv_faults faults = { 0 };
    struct perf_stat p = { 0 };
    if (perf_stat_parse(&p, in->text, in->len, &faults) < 0)
        return no_memory(in, e);
    int rc = judge(in, &faults, p.n_cells, notes, e);
    if (rc >= 0 && p.n_intervals > TRACE_CELLS_MAX / (p.events.n + EVENT_NAMES))
        rc = err_set(e, -EINVAL, "'%s' is too long for one trace: %zu intervals of %zu events", in->name, p.n_intervals,
                     p.events.n);
    if (rc >= 0) {
        note_perf(&p, in->name, notes);
        rc = add_perf(out, in, &p) < 0 ? no_memory(in, e) : rc;
    }
    perf_stat_done(&p);
    return rc;
}

/* --- logs --- */

static enum timeline_status status_of(enum log_run_end end)
{
    switch (end) {
    case LOG_RUN_WHOLE: return RUN_COMPLETE;
    case LOG_RUN_CUT: return RUN_PARTIAL;
    case LOG_RUN_FAILED: return RUN_FAILED;
    case LOG_RUN_RUNNING: return RUN_RUNNING;
    }
    return RUN_FAILED;
}

static int fill_log_epochs(struct trace_run *r, const struct log_run *from)
{
    r->epochs = calloc(from->n_epochs + 1, sizeof *r->epochs);
    if (!r->epochs)
        return -ENOMEM;
    r->n_epochs = from->n_epochs;
    for (size_t i = 0; i < r->n_epochs; i++) {
        const struct fold_epoch *ep = &from->epochs[i];
        bool stamped = ep->start_ms >= 0 && from->epochs[0].start_ms >= 0;
        r->epochs[i] = (struct trace_epoch){
            .start_s = stamped ? (double)(ep->start_ms - from->epochs[0].start_ms) / 1000.0 : (double)NAN,
            .duration_s = ep->seconds,
            .loss = isfinite(ep->loss) ? ep->loss : ep->train_loss,
            .accuracy = ep->accuracy,
            .energy_j = NAN,
            .iterations = (double)ep->iterations,
            .records = ep->records,
        };
    }
    return 0;
}

/* A log tells neither what was submitted when, nor the setting. */
static int add_log_run(struct trace *out, const char *model, const struct log_run *from)
{
    AUTO_BUF struct buf results = BUF_INIT;
    buf_printf(&results, "{\"recoveries\":%d,\"cause\":\"%s\"}", from->recoveries, cause_name(from->cause));
    struct trace_run *r = trace_add(out);
    if (!r)
        return -ENOMEM;
    r->status = status_of(from->end);
    int rc = fill_texts(r, strdup(model), strdup("{}"),
                        FIGURES({ "batch_size", from->batch }, { "learning_rate", from->learning_rate }),
                        buf_take(&results));
    return rc < 0 ? rc : fill_log_epochs(r, from);
}

static int import_log(struct trace *out, const struct import_text *in, struct buf *notes, struct err *e)
{
    (void)notes; /* a log has no broken rows: what is no event is somebody's message */
    struct log_runs runs = { 0 };
    if (log_runs_parse(&runs, in->text, in->len) < 0)
        return no_memory(in, e);
    bool nothing = runs.n == 1 && isnan(runs.runs[0].batch) && !runs.runs[0].cause;
    AUTO_FREE char *model = base_name(in->name);
    int rc = model ? 0 : -ENOMEM;
    for (size_t i = 0; i < runs.n && rc == 0 && !nothing; i++)
        rc = add_log_run(out, model, &runs.runs[i]);
    log_runs_done(&runs);
    if (rc == 0 && nothing)
        return err_set(e, -EINVAL, "'%s' holds no training and no failure that is known", in->name);
    return rc < 0 ? no_memory(in, e) : 0;
}

/* --- the table --- */

static int import_curves(struct trace *out, const struct import_text *in, struct buf *notes, struct err *e)
{
    struct curves c = { 0 };
    int rc = curves_parse(&c, in->name, in->text, in->len, e);
    if (rc < 0)
        return rc;
    if (c.repeats > 0)
        buf_printf(notes, "'%s': %zu configurations left out: they are there twice\n", in->name, c.repeats);
    if (curves_to_trace(out, &c) < 0)
        rc = err_sys(e, -ENOMEM, "cannot import '%s'", in->name);
    curves_done(&c);
    return rc;
}

const struct import_format import_formats[] = {
    { "timeline", "CSV model,dataset,cores,memory_gb,batch,log,epoch,unix_s, no header", import_timeline },
    { "tune-offline", "CSV lr,epochs,batch,error,error_resp,training_s,energy_uj", import_tune_offline },
    { "tune-online", "CSV load,job,cores,lr,batch,epochs,queue_s,tuning_s,response_s,error,training_s,objective",
      import_tune_online },
    { "perf-stat", "text of perf stat -I, plain or -x", import_perf_stat },
    { "curves", "JSON lines: learning curves of many configurations, for replay search", import_curves },
    { "bigdl-log", "a driver's log of BigDL 0.x or 2.x", import_log },
    { NULL, NULL, NULL },
};

const struct import_format *import_find(const char *name)
{
    for (const struct import_format *f = import_formats; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}
