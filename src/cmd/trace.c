/* `trace import | info | export`: recorded runs in, and out again. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "base/suggest.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "core/csv.h"
#include "live/study.h"
#include "store/curves_study.h"
#include "store/curves_trace.h"
#include "store/import.h"
#include "store/trace.h"
#include "store/trace_h5.h"
#include "view/table.h"

#define TEXT_MAX ((size_t)1 << 28) /* of a file to import */
#define AUTO_TRACE __attribute__((cleanup(trace_done)))

enum { FORMATS_MAX = 16 };

struct options {
    char *format, *out, *store;
    bool lenient, json;
};

static const char *const format_names[] = { "timeline",  "tune-offline", "tune-online", "perf-stat", "curves",
                                            "bigdl-log", "csv",          "json",        NULL };

static const struct opt_row trace_rows[] = {
    { NULL, "format", OPT_TEXT, offsetof(struct options, format), NULL, 0, 0, format_names, "F",
      "import: what the file is; export: csv (the default), json or curves" },
    { NULL, "out", OPT_TEXT, offsetof(struct options, out), NULL, 0, 0, NULL, "FILE",
      "import, export: what to write, also -o FILE; an old file is replaced" },
    { NULL, "lenient", OPT_FLAG, offsetof(struct options, lenient), NULL, 0, 0, NULL, NULL,
      "import: leave broken rows out, and say which" },
    { NULL, "json", OPT_FLAG, offsetof(struct options, json), NULL, 0, 0, NULL, NULL, "info: print JSON" },
    { NULL, "store", OPT_TEXT, offsetof(struct options, store), NULL, 0, 0, NULL, "FILE",
      "export of a study: the store (default $PIPETUNE_STORE, else ./pipetune.db)" },
};

void cmd_trace_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(trace_rows, NULL));
}

/* --- import --- */

static int find_format(const struct import_format **out, const char *name, struct err *e)
{
    const char *names[FORMATS_MAX];
    size_t n = 0;
    AUTO_BUF struct buf all = BUF_INIT;
    for (const struct import_format *f = import_formats; f->name && n < FORMATS_MAX; f++) {
        buf_printf(&all, "%s%s", n ? ", " : "", f->name);
        names[n++] = f->name;
    }
    if (!name)
        return err_set(e, -EINVAL, "import needs --format: one of %s", buf_text(&all));
    *out = import_find(name);
    if (*out)
        return 0;
    const char *near = suggest_nearest(name, names, n);
    if (near)
        return err_set(e, -EINVAL, "unknown format '%s': did you mean '%s'?", name, near);
    return err_set(e, -EINVAL, "unknown format '%s': it is one of %s", name, buf_text(&all));
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int import_file(struct trace *t, const struct import_format *format, const char *in, bool lenient, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT, notes = BUF_INIT;
    int rc = io_read_file(&text, in, TEXT_MAX, e);
    if (rc < 0)
        return rc;
    rc = format->run(t, &(struct import_text){ in, buf_text(&text), text.len, lenient }, &notes, e);
    if (rc >= 0 && t->features.n == 0 && trace_default_features(t) < 0)
        rc = err_sys(e, -ENOMEM, "cannot import '%s'", in);
    cmd_say_lines(&notes);
    return rc < 0 ? rc : 0;
}

static int say_imported(const struct trace *t, const char *out)
{
    size_t count[RUN_RUNNING + 1] = { 0 }, epochs = 0, intervals = 0;
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < t->n; i++) {
        count[t->runs[i].status]++;
        epochs += t->runs[i].n_epochs;
        intervals += t->runs[i].samples.n;
    }
    buf_printf(&b, "%s: %zu run%s (%zu complete, %zu partial, %zu failed, %zu running), %zu epochs, %zu intervals\n",
               out, t->n, t->n == 1 ? "" : "s", count[RUN_COMPLETE], count[RUN_PARTIAL], count[RUN_FAILED],
               count[RUN_RUNNING], epochs, intervals);
    return cmd_print(&b);
}

static int trace_import(const struct options *o, const char *in, struct err *e)
{
    AUTO_TRACE struct trace t = { 0 };
    const struct import_format *format = NULL;
    int rc = find_format(&format, o->format, e);
    if (rc == 0 && !o->out)
        rc = err_set(e, -EINVAL, "import needs -o OUT.h5: where the trace goes");
    if (rc == 0 && is_same_file(in, o->out))
        rc = err_set(e, -EINVAL, "'%s' would be replaced by its own trace: choose another -o", in);
    if (rc == 0)
        rc = import_file(&t, format, in, o->lenient, e);
    if (rc == 0)
        rc = trace_write(&t, o->out, e);
    return rc < 0 ? cmd_fail(e) : say_imported(&t, o->out);
}

/* --- info --- */

static int read_trace(struct trace *t, const char *path, struct err *e)
{
    int rc = trace_read(t, path, e);
    if (rc == -EPROTO) /* a file that is no trace is the user's to change, not the machine's */
        e->code = rc = -EINVAL;
    return rc;
}

static double column_of(const struct trace_epoch *e, size_t c)
{
    double x;
    memcpy(&x, (const char *)e + trace_columns[c].offset, sizeof x);
    return x;
}

static void put_columns(json_t *to, const struct trace_epoch *e)
{
    for (size_t c = 0; c < TRACE_COLUMNS; c++)
        (void)json_object_set_new(to, trace_columns[c].name,
                                  json_num(column_of(e, c))); /* one missing is seen in the test */
}

static json_t *epochs_json(const struct trace_run *r)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < r->n_epochs; i++) {
        json_t *one = json_object();
        if (one)
            put_columns(one, &r->epochs[i]);
        if (json_array_append_new(list, one) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *object_json(const char *text)
{
    return json_loads(text ? text : "{}", 0, NULL);
}

static json_t *run_json(const struct trace_run *r)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:s, s:o, s:o}", "model", r->model, "dataset", r->dataset, "system",
                     object_json(r->system), "hyper", object_json(r->hyper), "status", timeline_status_name(r->status),
                     "startup_s", json_num(r->startup_s), "epochs", epochs_json(r));
}

struct sample_counts {
    size_t intervals, events, not_counted, not_supported;
};

static int count_samples(struct sample_counts *out, const struct trace *t)
{
    AUTO_FREE bool *seen = calloc(t->features.n + 1, sizeof *seen);
    if (!seen)
        return -ENOMEM;
    *out = (struct sample_counts){ 0 };
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_samples *s = &t->runs[i].samples;
        out->intervals += s->n;
        for (size_t c = 0; c < s->n * t->features.n; c++) {
            seen[c % t->features.n] |= s->state[c] != TRACE_ABSENT;
            out->not_counted += s->state[c] == TRACE_NOT_COUNTED;
            out->not_supported += s->state[c] == TRACE_UNSUPPORTED;
        }
    }
    for (size_t f = 0; f < t->features.n; f++)
        out->events += seen[f];
    return 0;
}

static json_t *tuner_json(const struct trace_tuner *t)
{
    if (!t->policy)
        return json_null();
    return json_pack("{s:s, s:s, s:I, s:I}", "study", t->study, "policy", t->policy, "entries", (json_int_t)t->log.n,
                     "decisions", (json_int_t)t->n_decisions);
}

static json_t *info_json(const struct trace *t, const struct sample_counts *n)
{
    json_t *runs = json_array();
    for (size_t i = 0; runs && i < t->n; i++) {
        if (json_array_append_new(runs, run_json(&t->runs[i])) < 0) {
            json_decref(runs);
            return NULL;
        }
    }
    return json_pack("{s:o, s:{s:I, s:I, s:I, s:I}, s:o}", "runs", runs, "samples", "intervals",
                     (json_int_t)n->intervals, "events", (json_int_t)n->events, "not_counted",
                     (json_int_t)n->not_counted, "not_supported", (json_int_t)n->not_supported, "tuner",
                     tuner_json(&t->tuner));
}

/* Of those that are known: an epoch that another attempt trained is a row without figures. */
static double mean_seconds(const struct trace_run *r)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n_epochs; i++) {
        if (isfinite(r->epochs[i].duration_s)) {
            sum += r->epochs[i].duration_s;
            n++;
        }
    }
    return n ? sum / (double)n : (double)NAN;
}

static int print_info(const struct trace *t, const struct sample_counts *n)
{
    static const char *const heads[] = { ">run",   "model",    "dataset", "system",     "hyper",
                                         "status", ">startup", ">epochs", ">one epoch", NULL };
    AUTO_BUF struct buf b = BUF_INIT;
    struct table table;
    table_init(&table, heads);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_run *r = &t->runs[i];
        table_cellf(&table, "%zu", i);
        table_cell(&table, *r->model ? r->model : "-");
        table_cell(&table, *r->dataset ? r->dataset : "-");
        table_cell(&table, r->system);
        table_cell(&table, r->hyper);
        table_cell(&table, timeline_status_name(r->status));
        table_seconds(&table, r->startup_s);
        table_cellf(&table, "%zu", r->n_epochs);
        table_seconds(&table, mean_seconds(r));
    }
    table_put(&table, &b, 0);
    table_done(&table);
    if (n->intervals)
        buf_printf(&b, "\nsamples: %zu intervals, %zu events; %zu cells not counted, %zu not supported\n", n->intervals,
                   n->events, n->not_counted, n->not_supported);
    if (t->tuner.policy)
        buf_printf(&b, "\ntuner: study '%s', policy '%s': it was told %zu things, and %zu decisions were noted\n",
                   t->tuner.study, t->tuner.policy, t->tuner.log.n, t->tuner.n_decisions);
    return cmd_print(&b);
}

static int trace_info(const struct options *o, const char *path, struct err *e)
{
    AUTO_TRACE struct trace t = { 0 };
    struct sample_counts n = { 0 };
    int rc = read_trace(&t, path, e);
    if (rc == 0 && count_samples(&n, &t) < 0)
        rc = err_sys(e, -ENOMEM, "cannot show '%s'", path);
    if (rc < 0)
        return cmd_fail(e);
    return o->json ? cmd_print_json(info_json(&t, &n)) : print_info(&t, &n);
}

/* --- export --- */

static void put_csv_head(struct buf *b, size_t run, const struct trace_run *r)
{
    buf_printf(b, "%zu,", run);
    const char *texts[] = { r->model, r->dataset, r->system, r->hyper };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        csv_put_text(b, texts[i]);
        buf_putc(b, ',');
    }
    buf_puts(b, timeline_status_name(r->status));
    csv_put_next(b, r->startup_s);
}

/* One row for each epoch; a run without any has one row with empty columns, so that it is not lost. */
static void put_csv(struct buf *b, const struct trace *t)
{
    buf_puts(b, "run,model,dataset,system,hyper,status,startup_s,epoch");
    for (size_t c = 0; c < TRACE_COLUMNS; c++)
        buf_printf(b, ",%s", trace_columns[c].name);
    buf_putc(b, '\n');
    struct trace_epoch none = trace_no_epoch();
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_run *r = &t->runs[i];
        for (size_t k = 0; k < r->n_epochs || k == 0; k++) {
            put_csv_head(b, i, r);
            csv_put_next(b, r->n_epochs ? (double)(k + 1) : (double)NAN);
            for (size_t c = 0; c < TRACE_COLUMNS; c++)
                csv_put_next(b, column_of(r->n_epochs ? &r->epochs[k] : &none, c));
            buf_putc(b, '\n');
        }
    }
}

static json_t *windows_json(const struct trace_run *r)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < r->n_windows; i++) {
        const char *text = r->windows[i].setting;
        json_t *setting = json_loads(text, 0, NULL);
        json_t *one = json_pack("{s:i, s:o}", "epoch", r->windows[i].epoch, "setting",
                                setting ? setting : json_string(text)); /* not JSON: as it stands */
        if (one)
            put_columns(one, &r->windows[i].at);
        if (json_array_append_new(list, one) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static void put_state(struct buf *b, const struct trace_samples *s, size_t cell)
{
    static const char *const names[] = {
        [TRACE_OK] = "\"ok\"",
        [TRACE_MULTIPLEXED] = "\"multiplexed\"",
        [TRACE_NOT_COUNTED] = "\"not_counted\"",
        [TRACE_UNSUPPORTED] = "\"unsupported\"",
        [TRACE_DENIED] = "\"denied\"",
        [TRACE_NO_FD] = "\"no_fd\"",
    };
    buf_puts(b, s->state[cell] < ARRAY_LEN(names) ? names[s->state[cell]] : "null");
}

static void put_value(struct buf *b, const struct trace_samples *s, size_t cell)
{
    num_put(b, s->value[cell]);
}

static void put_ratio(struct buf *b, const struct trace_samples *s, size_t cell)
{
    num_put(b, (double)s->ratio[cell]);
}

static void put_matrix(struct buf *b, const char *key, const struct trace_samples *s, size_t features,
                       void (*put)(struct buf *, const struct trace_samples *, size_t cell))
{
    buf_printf(b, ",\"%s\":[", key);
    for (size_t i = 0; i < s->n; i++) {
        buf_puts(b, i ? ",[" : "[");
        for (size_t f = 0; f < features; f++) {
            if (f)
                buf_putc(b, ',');
            put(b, s, i * features + f);
        }
        buf_putc(b, ']');
    }
    buf_putc(b, ']');
}

/* By hand: a week of samples as a tree of JSON values would take gigabytes. */
static void put_samples(struct buf *b, const struct trace_samples *s, size_t features)
{
    buf_puts(b, "{\"t_ns\":[");
    for (size_t i = 0; i < s->n; i++)
        buf_printf(b, "%s%lld", i ? "," : "", (long long)s->t_ns[i]);
    buf_puts(b, "],\"node\":[");
    for (size_t i = 0; i < s->n; i++)
        buf_printf(b, "%s%d", i ? "," : "", (int)s->node[i]);
    buf_putc(b, ']');
    put_matrix(b, "value", s, features, put_value);
    put_matrix(b, "state", s, features, put_state);
    put_matrix(b, "ratio", s, features, put_ratio);
    buf_putc(b, '}');
}

static void put_run(struct buf *b, const struct trace *t, const struct trace_run *r)
{
    AUTO_JSON json_t *run = run_json(r);
    if (!run || json_object_set_new(run, "results", object_json(r->results)) < 0 ||
        json_object_set_new(run, "windows", windows_json(r)) < 0) {
        b->failed = true;
        return;
    }
    json_put(b, run, JSON_STYLE_COMPACT);
    if (r->samples.n == 0 || b->failed)
        return;
    b->len--; /* the closing brace: one member more */
    buf_puts(b, ",\"samples\":");
    put_samples(b, &r->samples, t->features.n);
    buf_putc(b, '}');
}

static json_t *decision_json(const struct trace_decision *d)
{
    json_t *setting = json_loads(d->setting, 0, NULL);
    return json_pack("{s:I, s:i, s:o, s:s, s:o, s:s}", "seq", (json_int_t)d->seq, "trial", d->trial, "t_s",
                     json_num(d->t_s), "kind", d->kind, "setting", setting ? setting : json_null(), "reason",
                     d->reason);
}

static void put_tuner(struct buf *b, const struct trace_tuner *t)
{
    buf_puts(b, "{\"study\":");
    json_put_string(b, t->study);
    buf_puts(b, ",\"policy\":");
    json_put_string(b, t->policy);
    buf_puts(b, ",\"log\":[");
    for (size_t i = 0; i < t->log.n; i++) {
        buf_puts(b, i ? ",\n" : "\n");
        json_put_string(b, t->log.v[i]);
    }
    buf_puts(b, "],\"decisions\":[");
    for (size_t i = 0; i < t->n_decisions; i++) {
        AUTO_JSON json_t *d = decision_json(&t->decisions[i]);
        b->failed |= !d;
        buf_puts(b, i ? ",\n" : "\n");
        json_put(b, d, JSON_STYLE_COMPACT);
    }
    buf_puts(b, "]}");
}

static void put_json(struct buf *b, const struct trace *t)
{
    buf_puts(b, "{\"features\":[");
    for (size_t i = 0; i < t->features.n; i++) {
        if (i)
            buf_putc(b, ',');
        json_put_string(b, t->features.v[i]);
    }
    buf_puts(b, "],\"runs\":[");
    for (size_t i = 0; i < t->n; i++) {
        buf_puts(b, i ? ",\n" : "\n");
        put_run(b, t, &t->runs[i]);
    }
    buf_putc(b, ']');
    if (t->tuner.policy) {
        buf_puts(b, ",\n\"tuner\":");
        put_tuner(b, &t->tuner);
    }
    buf_puts(b, "}\n");
}

/* The table as lines, of a trace that holds one. */
static int put_curves(struct buf *b, const struct trace *t, const char *path, struct err *e)
{
    struct curves c = { 0 };
    int rc = curves_of_trace(&c, t, path, e);
    if (rc < 0)
        return rc;
    AUTO_JSON json_t *hyper = curves_hyper(&c);
    curves_put_head(b, c.metric, c.maximise, c.epochs, hyper);
    for (size_t i = 0; i < c.n; i++) {
        struct point p = space_point_at(&c.space, i);
        AUTO_JSON json_t *point = space_point_json(&c.space, &p);
        curves_put(b, point, &c.v[i]);
    }
    curves_done(&c);
    return 0;
}

static int write_text(const struct buf *b, const char *path, struct err *e)
{
    if (b->failed)
        return err_sys(e, -ENOMEM, "cannot export the trace");
    return io_write_atomic(path, buf_text(b), b->len, 0666, e);
}

static int export_trace(struct buf *b, const char *format, const char *path, struct err *e)
{
    AUTO_TRACE struct trace t = { 0 };
    int rc = read_trace(&t, path, e);
    if (rc < 0)
        return rc;
    if (strcmp(format, "curves") == 0)
        return put_curves(b, &t, path, e);
    (strcmp(format, "json") == 0 ? put_json : put_csv)(b, &t);
    return 0;
}

static int export_study_curves(struct buf *b, const struct options *o, const char *name, struct err *e)
{
    AUTO_FREE char *path = study_store_path(o->store);
    struct store *store = NULL;
    struct store_study study = { 0 };
    int rc = path ? store_open(&store, path, STORE_READ, e) : err_sys(e, -ENOMEM, "study '%s'", name);
    if (rc == 0)
        rc = view_find(store, name, &study, e);
    if (rc == 0)
        rc = curves_put_study(b, store, &study, e);
    if (rc == 0)
        rc = err_set(e, -EINVAL, "study '%s' has no trial that completed an epoch", name);
    store_study_done(&study);
    store_close(store);
    return rc < 0 ? rc : 0;
}

static int trace_export(const struct options *o, const char *what, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const char *format = o->format ? o->format : "csv";
    bool curves = strcmp(format, "curves") == 0;
    int rc = 0;
    if (!curves && strcmp(format, "csv") != 0 && strcmp(format, "json") != 0)
        rc = err_set(e, -EINVAL, "unknown format '%s': export knows csv, json and curves", format);
    if (rc == 0 && o->out && is_same_file(what, o->out))
        rc = err_set(e, -EINVAL, "'%s' would be replaced by its own export: choose another -o", what);
    if (rc == 0)
        rc = curves && !io_exists(what) ? export_study_curves(&b, o, what, e) : export_trace(&b, format, what, e);
    if (rc < 0)
        return cmd_fail(e);
    if (!o->out)
        return strcmp(format, "json") == 0 ? cmd_print_as_json(&b) : cmd_print(&b);
    return write_text(&b, o->out, e) < 0 ? cmd_fail(e) : CMD_OK;
}

/* --- */

static const struct verb {
    const char *name;
    int (*run)(const struct options *o, const char *file, struct err *e); /* returns the exit code */
    const char *usage;
} verbs[] = {
    { "import", trace_import, "--format F IN -o OUT.h5 [--lenient]" },
    { "info", trace_info, "FILE [--json]" },
    { "export", trace_export, "FILE | STUDY [--format csv|json|curves] [-o OUT]" },
};

static int run_verb(const struct options *o, const struct strv *words, struct err *e)
{
    const char *word = words->n > 0 ? words->v[0] : "";
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (strcmp(word, verbs[i].name) != 0)
            continue;
        if (words->n == 2)
            return verbs[i].run(o, words->v[1], e);
        (void)err_set(e, -EINVAL, "no file given: pipetune trace %s %s", word, verbs[i].usage);
        return cmd_fail(e);
    }
    (void)err_set(e, -EINVAL, "no verb '%s': say 'trace import', 'trace info' or 'trace export'", word);
    return cmd_fail(e);
}

int cmd_trace(int argc, char **argv)
{
    struct options o = { 0 };
    struct opt_set opts = OPT_SET(trace_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e = { 0 };
    int code;
    cmd_lengthen_out(argc, argv);
    if (opt_presets(&opts, &e) < 0)
        code = cmd_fail(&e);
    else if (!cmd_options("trace", argc, argv, &opts, 1, &words, 2, &code))
        code = run_verb(&o, &words, &e);
    opt_done(&opts);
    return code;
}
