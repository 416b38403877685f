#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "base/strv.h"
#include "cmd/export.h"
#include "core/csv.h"
#include "core/timeline_csv.h"
#include "core/tune_csv.h"
#include "store/export.h"
#include "store/series.h"
#include "view/joules.h"
#include "view/put.h"
#include "view/words.h"

struct csvs {
    struct store *store;
    struct view *view;
    const char *dir;
    struct trace trace; /* the study's runs; loaded once */
    struct joules energy;
    int trial; /* the number of the one under way */
    struct err *e;
};

/* --- what each file holds --- */

static int put_trials(struct buf *b, struct csvs *x)
{
    return put_report_csv(b, x->view, x->e);
}

static int put_epochs(struct buf *b, struct csvs *x)
{
    buf_puts(b, "trial,attempt,epoch,accuracy,loss,metric,seconds,records,iterations,learning_rate,end_unix_s\n");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < x->view->n; i++) {
        struct view_trial *t = &x->view->trials[i];
        rc = view_epochs(x->view, t, x->e);
        for (size_t k = 0; k < t->n_epochs; k++) {
            const struct store_epoch *r = &t->epochs[k];
            bool steps = r->iterations > 0; /* else none were told */
            const double figures[] = { r->accuracy,
                                       r->loss,
                                       r->metric,
                                       r->seconds,
                                       steps ? r->records : (double)NAN,
                                       steps ? (double)r->iterations : (double)NAN,
                                       r->learning_rate,
                                       r->end_ms ? (double)r->end_ms / 1000 : (double)NAN };
            buf_printf(b, "%d,%d,%d", t->row.number, r->attempt, r->epoch);
            for (size_t c = 0; c < ARRAY_LEN(figures); c++)
                csv_put_next(b, figures[c]);
            buf_putc(b, '\n');
        }
    }
    return rc;
}

struct values {
    struct buf *b;
    const struct csvs *x;
    bool steps; /* those of steps, else of epochs */
};

static int put_value(void *ctx, const struct store_value *r)
{
    const struct values *v = ctx;
    if ((r->step > 0) != v->steps)
        return 0;
    buf_printf(v->b, "%d,%d,%d,", v->x->trial, r->attempt, r->epoch);
    if (v->steps)
        buf_printf(v->b, "%lld,", (long long)r->step);
    csv_put_text(v->b, r->name);
    csv_put_next(v->b, r->value);
    csv_put_next(v->b, r->at_ms ? (double)r->at_ms / 1000 : (double)NAN);
    buf_putc(v->b, '\n');
    return v->b->failed ? -ENOMEM : 0;
}

static int put_series(struct buf *b, struct csvs *x, bool steps)
{
    struct values v = { b, x, steps };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < x->view->n; i++) {
        x->trial = x->view->trials[i].row.number;
        rc = store_series(x->store, x->view->trials[i].row.id, put_value, &v, x->e);
    }
    return rc;
}

static int put_metrics(struct buf *b, struct csvs *x)
{
    buf_puts(b, "trial,attempt,epoch,metric,value,unix_s\n");
    return put_series(b, x, false);
}

static int put_iterations(struct buf *b, struct csvs *x)
{
    buf_puts(b, "trial,attempt,epoch,iteration,metric,value,unix_s\n");
    return put_series(b, x, true);
}

static int put_energy(struct buf *b, struct csvs *x)
{
    joules_put_csv(b, &x->energy);
    return 0;
}

/* --- settings in force, from the study's runs --- */

static void add_knobs(struct strv *knobs, const char *setting)
{
    AUTO_JSON json_t *object = words_object(setting);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (i < knobs->n && strcmp(knobs->v[i], key) != 0)
            i++;
        if (i == knobs->n)
            strv_add(knobs, key);
    }
}

static void put_knobs(struct buf *b, const struct strv *knobs, const char *setting)
{
    AUTO_JSON json_t *object = words_object(setting);
    for (size_t i = 0; i < knobs->n; i++) {
        const json_t *value = json_object_get(object, knobs->v[i]);
        buf_putc(b, ',');
        if (json_is_number(value))
            csv_put_number(b, json_number_value(value));
        else
            csv_put_text(b, json_string_value(value));
    }
    buf_putc(b, '\n');
}

static void put_when(struct buf *b, const json_t *who, double epoch, const struct trace_epoch *at)
{
    csv_put_number(b, json_number_value(json_object_get(who, "trial")));
    csv_put_next(b, json_number_value(json_object_get(who, "attempt")));
    csv_put_next(b, epoch);
    csv_put_next(b, at->start_s);
    csv_put_next(b, at->duration_s);
    csv_put_next(b, at->records);
}

static int put_settings(struct buf *b, struct csvs *x)
{
    AUTO_STRV struct strv knobs = STRV_INIT;
    for (size_t i = 0; i < x->trace.n; i++)
        add_knobs(&knobs, x->trace.runs[i].system);
    buf_puts(b, "trial,attempt,epoch,start_s,seconds,records");
    for (size_t i = 0; i < knobs.n; i++) {
        buf_puts(b, ",");
        csv_put_text(b, knobs.v[i]);
    }
    buf_putc(b, '\n');
    for (size_t i = 0; i < x->trace.n; i++) {
        const struct trace_run *r = &x->trace.runs[i];
        const struct trace_epoch all = trace_no_epoch(); /* for the whole run, which the tuner left alone */
        AUTO_JSON json_t *who = words_object(r->results);
        for (size_t k = 0; k < r->n_windows; k++) {
            put_when(b, who, r->windows[k].epoch, &r->windows[k].at);
            put_knobs(b, &knobs, r->windows[k].setting);
        }
        if (r->n_windows == 0) {
            put_when(b, who, NAN, &all);
            put_knobs(b, &knobs, r->system);
        }
    }
    return knobs.failed ? err_sys(x->e, -ENOMEM, "cannot write settings") : 0;
}

/* --- forms that replays read --- */

struct started {
    int attempt;
    int64_t ms;
};

static int find_start(void *ctx, const struct store_attempt *a)
{
    struct started *s = ctx;
    s->ms = a->number == s->attempt ? a->started_ms : s->ms;
    return 0;
}

static int put_run(struct buf *b, struct csvs *x, struct trace_run *r)
{
    AUTO_JSON json_t *who = words_object(r->results);
    const struct view_trial *t = view_trial(x->view, (int)json_integer_value(json_object_get(who, "trial")));
    struct started at = { .attempt = (int)json_integer_value(json_object_get(who, "attempt")) };
    struct timeline line = { 0 };
    const struct trace one = { .features = x->trace.features, .runs = r, .n = 1 };
    char log[48], nothing[] = "none";
    int rc = t ? store_attempts(x->store, t->row.id, find_start, &at, x->e) : 0;
    if (rc == 0)
        rc = trace_to_timeline(&line, &one, x->e);
    for (size_t i = 0; rc >= 0 && i < line.n; i++) {
        struct timeline_run run = line.runs[i]; /* a view of it, with names where it has none */
        (void)snprintf(log, sizeof log, "%d/%d", t ? t->row.number : 0, at.attempt);
        run.log = log;
        run.model = *run.model ? run.model : x->view->study.name;
        run.dataset = *run.dataset ? run.dataset : nothing;
        timeline_csv_put(b, &run, (double)at.ms / 1000);
    }
    timeline_done(&line);
    return rc < 0 ? rc : 0;
}

static int put_timeline(struct buf *b, struct csvs *x)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < x->trace.n; i++)
        rc = put_run(b, x, &x->trace.runs[i]);
    return rc;
}

static const struct {
    const char *name;
    int (*put)(struct buf *b, struct csvs *x);
} files[] = {
    { "trials", put_trials },         { "epochs", put_epochs },     { "metrics", put_metrics },
    { "iterations", put_iterations }, { "settings", put_settings }, { "energy", put_energy },
    { "timeline", put_timeline },
};

/* --- the study as a job of a queue --- */

static double key_number(const char *object_text, const char *begin)
{
    AUTO_JSON json_t *object = words_object(object_text);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (strncmp(key, begin, strlen(begin)) == 0 && json_is_number(value))
            return json_number_value(value);
    }
    return NAN;
}

static int first_start(void *ctx, const struct store_attempt *a)
{
    int64_t *first = ctx;
    *first = a->started_ms && (*first == 0 || a->started_ms < *first) ? a->started_ms : *first;
    return 0;
}

/* 0: it is no such job: it has not ended, or lacks what every job has. */
static int job_of(struct tune_online_row *out, struct csvs *x, struct err *e)
{
    struct view *r = x->view;
    const struct view_trial *best = view_trial(r, r->totals.best_trial);
    struct ledger_figure trained = energy_figure_absent;
    int64_t first = 0;
    if (!best || !r->study.ended_ms)
        return 0;
    int rc = view_trial_energy(r, best, &trained, e);
    double cores = key_number(best->row.effective, "cores");
    *out = (struct tune_online_row){ .load = "1",
                                     .cores = isnan(cores) ? best->row.slots : (int)cores,
                                     .epochs = best->row.epochs,
                                     .lr = key_number(best->row.hyper, "learning_rate"),
                                     .batch = key_number(best->row.hyper, "batch"),
                                     .error = 1 - best->row.accuracy,
                                     .training_s = best->seconds,
                                     .objective = best->row.metric,
                                     .response_s = (double)(r->study.ended_ms - r->study.created_ms) / 1000,
                                     .tuning_j = r->energy_of.j,
                                     .training_j = trained.j };
    (void)snprintf(out->job, sizeof out->job, "%s", r->study.name);
    for (size_t i = 0; rc == 0 && i < r->n; i++)
        rc = store_attempts(x->store, r->trials[i].row.id, first_start, &first, e);
    out->queue_s = (double)(first - r->study.created_ms) / 1000;
    out->tuning_s = out->response_s - out->queue_s;
    return rc < 0 ? rc : out->lr > 0 && out->batch > 0 && out->cores > 0 && first > 0;
}

static int version_of(const struct view *v)
{
    const char *policy = json_string_value(json_object_get(json_object_get(v->config, "tuning"), "policy"));
    return policy && strcmp(policy, "v1") == 0 ? 1 : policy && strcmp(policy, "v2") == 0 ? 2 : 0;
}

/* The rows of other studies in the file stay. */
static int put_others(struct buf *b, const char *path, const struct tune_online_row *job, struct err *e)
{
    enum { FILE_MAX = 64 << 20 };
    AUTO_BUF struct buf text = BUF_INIT;
    struct tune_online rows = { 0 };
    struct csv_faults faults = { 0 };
    int rc = io_exists(path) ? io_read_file(&text, path, FILE_MAX, e) : 0;
    if (rc == 0 && tune_online_parse(&rows, buf_text(&text), text.len, &faults) < 0)
        rc = err_sys(e, -ENOMEM, "cannot read '%s'", path);
    if (rc == 0 && faults.n > 0)
        rc = csv_faults_err(&faults, path, e);
    for (size_t i = 0; rc == 0 && i < rows.n; i++)
        if (strcmp(rows.rows[i].job, job->job) != 0)
            tune_online_put(b, &rows.rows[i]);
    csv_faults_done(&faults);
    tune_online_done(&rows);
    return rc;
}

static int write_job(struct csvs *x)
{
    struct tune_online_row job;
    int version = version_of(x->view), rc = version ? job_of(&job, x, x->e) : 0;
    if (rc <= 0)
        return rc;
    AUTO_BUF struct buf name = BUF_INIT;
    AUTO_BUF struct buf rows = BUF_INIT;
    buf_printf(&name, "TuneV%dLoad_%s_%d.csv", version, job.load, job.cores);
    AUTO_FREE char *path = io_join(x->dir, buf_text(&name));
    rc = path ? put_others(&rows, path, &job, x->e) : -ENOMEM;
    if (rc == 0)
        tune_online_put(&rows, &job);
    if (rc == 0 && rows.failed)
        rc = -ENOMEM;
    if (rc == -ENOMEM)
        return err_sys(x->e, rc, "cannot export study '%s'", job.job);
    return rc < 0 ? rc : io_write_atomic(path, rows.data, rows.len, 0666, x->e);
}

/* --- all of it --- */

static int write_file(struct csvs *x, size_t i)
{
    AUTO_BUF struct buf name = BUF_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    buf_printf(&name, "%s.%s.csv", x->view->study.name, files[i].name);
    AUTO_FREE char *path = io_join(x->dir, buf_text(&name));
    int rc = files[i].put(&text, x);
    if (rc == 0 && (!path || name.failed || text.failed))
        rc = -ENOMEM;
    if (rc < 0)
        return view_explain(rc, x->e, x->view->study.name);
    return io_write_atomic(path, buf_text(&text), text.len, 0666, x->e);
}

static int write_all(struct csvs *x)
{
    const struct store_study *study = &x->view->study;
    int rc = io_mkdirs(x->dir, x->e);
    if (rc == 0)
        rc = export_study(&x->trace, x->store, study, x->e);
    if (rc == 0)
        rc = energy_load(&x->energy.load, x->store, study, x->e);
    if (rc == 0)
        rc = joules_reckon(&x->energy, x->store, study, NULL, NULL, x->e);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(files); i++)
        rc = write_file(x, i);
    if (rc == 0)
        rc = write_job(x);
    joules_done(&x->energy);
    trace_done(&x->trace);
    return rc;
}

int export_csv(struct store *s, const char *study, const char *study_dir, pid_t driver, const char *dir, struct err *e)
{
    struct view v;
    struct csvs x = { .store = s, .view = &v, .dir = dir, .energy = { .study = study, .from = "store" }, .e = e };
    int rc = view_open(&v, s, study, study_dir, driver, e);
    if (rc == 0)
        rc = view_energy(&v, e);
    if (rc == 0)
        rc = write_all(&x);
    view_done(&v);
    return rc;
}
