/* A study, its trials or its decisions. Rows are printed as they are read: a study may have 100,000 trials. Only the
 * table for people is held, because its columns are as wide as their widest cell. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/suggest.h"
#include "cmd/cmd.h"
#include "cmd/show.h"
#include "cmd/table.h"
#include "live/study.h"

enum { FLUSH_AT = 65536 };

struct show_options {
    char *store;
    bool decisions, log, json;
};

static const struct opt_row show_rows[] = {
    { NULL, "store", OPT_TEXT, offsetof(struct show_options, store), NULL, 0, 0, NULL, "FILE",
      "the store (default $PIPETUNE_STORE, else ./pipetune.db)" },
    { NULL, "decisions", OPT_FLAG, offsetof(struct show_options, decisions), NULL, 0, 0, NULL, NULL,
      "what was decided, when and why" },
    { NULL, "log", OPT_FLAG, offsetof(struct show_options, log), NULL, 0, 0, NULL, NULL,
      "print the path of the trial's log" },
    { NULL, "json", OPT_FLAG, offsetof(struct show_options, json), NULL, 0, 0, NULL, NULL, "print JSON" },
};

static struct opt_set show_opts(struct show_options *o)
{
    return (struct opt_set){ .rows = show_rows, .n = ARRAY_LEN(show_rows), .target = o };
}

void cmd_show_options(struct buf *b)
{
    struct opt_set set = show_opts(NULL);
    opt_help(b, &set);
}

struct look {
    struct store *store;
    struct store_study study;
    const char *dir;             /* the study's */
    json_t *config, *provenance; /* NULL: cannot be read */
    pid_t driver;                /* 0: none */
    int trials, done, failed, best_trial;
    double best_accuracy, seconds;
    int trial; /* the one that was asked for, 0: all */
    struct buf out;
    size_t printed; /* rows so far */
    struct table table;
    json_t *hyper, *system; /* keys that have a column each; NULL: one column for all */
    struct err *e;
};

/* -EPIPE, unexplained: the reader has seen enough. */
static int flush(struct look *l)
{
    (void)fflush(stdout); /* whatever went through stdio comes first */
    int rc = l->out.failed ? -ENOMEM : io_write_all(STDOUT_FILENO, l->out.data, l->out.len);
    buf_clear(&l->out);
    return rc < 0 && rc != -EPIPE ? err_sys(l->e, rc, "cannot print") : rc;
}

static int flush_when_full(struct look *l)
{
    return l->out.len < FLUSH_AT && !l->out.failed ? 0 : flush(l);
}

/* --- pieces of both kinds of output --- */

/* Text from logs and programs: one line, and no commands to the terminal. */
static void put_plain(struct buf *b, const char *text)
{
    for (; text && *text; text++)
        buf_putc(b, (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text);
}

static void put_scalar(struct buf *b, const json_t *j)
{
    char num[NUM_TEXT_MAX];
    if (json_is_string(j))
        put_plain(b, json_string_value(j));
    else if (json_is_real(j))
        buf_puts(b, num_print(json_real_value(j), num));
    else
        json_put(b, j, JSON_STYLE_COMPACT);
}

/* "batch_size 1024, learning_rate 0.1" */
static void put_members(struct buf *b, const json_t *object)
{
    const char *key, *sep = "";
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        buf_printf(b, "%s%s ", sep, key);
        put_scalar(b, value);
        sep = ", ";
    }
}

/* "2 [16]": what it gets, and what was asked for where that is another value. */
static void put_effective(struct buf *b, const json_t *effective, const json_t *requested)
{
    put_scalar(b, effective);
    if (!requested || json_equal(effective, requested))
        return;
    AUTO_BUF struct buf got = BUF_INIT;
    AUTO_BUF struct buf want = BUF_INIT;
    put_scalar(&got, effective);
    put_scalar(&want, requested);
    if (strcmp(buf_text(&got), buf_text(&want)) != 0)
        buf_printf(b, " [%s]", buf_text(&want));
}

static void put_system(struct buf *b, const json_t *effective, const json_t *requested)
{
    const char *key, *sep = "";
    json_t *value;
    json_object_foreach((json_t *)effective, key, value)
    {
        buf_printf(b, "%s%s ", sep, key);
        put_effective(b, value, json_object_get(requested, key));
        sep = ", ";
    }
}

/* "accuracy 0.9914", "loss -" */
static void put_figure(struct buf *b, const char *name, double x)
{
    if (isfinite(x))
        buf_printf(b, "%s %.4f", name, x);
    else
        buf_printf(b, "%s -", name);
}

static void put_when(struct buf *b, int64_t ms)
{
    char text[32] = "?";
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    if (localtime_r(&at, &tm))
        (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    buf_puts(b, text);
}

/* A stored object; an empty one where there is none. New reference. */
static json_t *object_of(const char *text)
{
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    if (json_is_object(j))
        return j;
    json_decref(j);
    return json_object();
}

static const char *trial_state(const struct look *l, const struct store_trial *t)
{
    bool left = strcmp(t->state, "running") == 0 && l->driver == 0;
    return left ? "interrupted" : t->state;
}

static const char *study_state(const struct look *l)
{
    bool left = strcmp(l->study.state, "running") == 0 && l->driver == 0;
    return left ? "interrupted" : l->study.state;
}

static int running_seconds(void *ctx, const struct store_attempt *a)
{
    double *seconds = ctx;
    if (strcmp(a->state, "running") == 0)
        *seconds += (double)(study_now_ms() - a->started_ms) / 1000.0;
    return 0;
}

/* A trial's time is summed up when an attempt ends; the one under way is added here. */
static double seconds_of(const struct look *l, const struct store_trial *t)
{
    double seconds = t->seconds;
    if (strcmp(t->state, "running") == 0 && l->driver != 0)
        (void)store_attempts(l->store, t->id, running_seconds, &seconds, NULL); /* then it is the time without it */
    return seconds;
}

/* --- JSON --- */

static json_t *number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *time_or_null(int64_t ms)
{
    return ms ? json_integer(ms) : json_null();
}

static int add_epoch_json(void *ctx, const struct store_epoch *r)
{
    json_t *one =
        json_pack("{s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:I, s:o, s:o}", "accuracy", number_or_null(r->accuracy), "loss",
                  number_or_null(r->loss), "seconds", number_or_null(r->seconds), "epoch", r->epoch, "attempt",
                  r->attempt, "metric", number_or_null(r->metric), "records", number_or_null(r->records), "iterations",
                  (json_int_t)r->iterations, "learning_rate", number_or_null(r->learning_rate), "end_ms",
                  time_or_null(r->end_ms));
    return json_array_append_new(ctx, one) < 0 ? -ENOMEM : 0;
}

struct attempts_json {
    json_t *list;
    bool command; /* too long for a list of all trials */
};

static int add_attempt_json(void *ctx, const struct store_attempt *r)
{
    const struct attempts_json *a = ctx;
    double seconds = r->ended_ms ? (double)(r->ended_ms - r->started_ms) / 1000.0 : NAN;
    json_t *one = json_pack("{s:i, s:s, s:s?, s:o, s:s?, s:s?, s:i, s:o, s:o, s:o, s:s?, s:s?}", "attempt", r->number,
                            "state", r->state, "outcome", r->outcome, "exit_code",
                            r->exit_code < 0 ? json_null() : json_integer(r->exit_code), "cause", r->cause,
                            "resumed_from", r->resumed_from, "first_epoch", r->first_epoch, "seconds",
                            number_or_null(seconds), "started_ms", time_or_null(r->started_ms), "ended_ms",
                            time_or_null(r->ended_ms), "app_id", r->app_id, "launch", r->launch);
    if (one && a->command && r->argv) {
        json_t *argv = json_loads(r->argv, 0, NULL);
        (void)json_object_set_new(one, "command", argv ? argv : json_null()); /* without it the rest still holds */
    }
    return json_array_append_new(a->list, one) < 0 ? -ENOMEM : 0;
}

static json_t *trial_json(struct look *l, const struct store_trial *t, json_t *epochs, json_t *attempts)
{
    json_t *energy =
        json_pack("{s:n, s:s, s:n}", "j", "source", "absent", "coverage"); /* nothing measures joules yet */
    return json_pack("{s:i, s:s, s:i, s:o, s:{s:o, s:o}, s:O, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:s?, s:O}",
                     "trial", t->number, "state", trial_state(l, t), "attempts", t->attempts, "hyper",
                     object_of(t->hyper), "system", "requested", object_of(t->requested), "effective",
                     object_of(t->effective), "epochs", epochs, "accuracy", number_or_null(t->accuracy), "seconds",
                     number_or_null(seconds_of(l, t)), "energy", energy, "loss", number_or_null(t->loss), "metric",
                     number_or_null(t->metric), "budget", t->epochs, "slots", t->slots, "failures", t->failures,
                     "copy_of", t->copy_of ? json_integer(t->copy_of) : json_null(), "reason", t->reason,
                     "attempt_list", attempts);
}

static int print_trial_json(void *ctx, const struct store_trial *t)
{
    struct look *l = ctx;
    AUTO_JSON json_t *epochs = json_array();
    AUTO_JSON json_t *attempts = json_array();
    struct attempts_json a = { .list = attempts, .command = l->trial != 0 };
    int rc = epochs && attempts ? store_epochs(l->store, t->id, add_epoch_json, epochs, l->e) : -ENOMEM;
    if (rc == 0 && t->attempts > 0)
        rc = store_attempts(l->store, t->id, add_attempt_json, &a, l->e);
    AUTO_JSON json_t *j = rc == 0 ? trial_json(l, t, epochs, attempts) : NULL;
    if (!j)
        return rc == 0 || rc == -ENOMEM ? err_sys(l->e, -ENOMEM, "trial %d", t->number) : rc;
    buf_puts(&l->out, l->printed++ ? ",\n    " : "\n    ");
    json_put(&l->out, j, JSON_STYLE_COMPACT);
    return flush_when_full(l);
}

static const char *config_text(const struct look *l, const char *section, const char *key)
{
    const json_t *in = *section ? json_object_get(l->config, section) : l->config;
    return json_string_value(json_object_get(in, key));
}

static const char *metric_of(const struct look *l)
{
    const char *metric = config_text(l, "study", "metric");
    return metric ? metric : "accuracy";
}

static json_t *header_json(const struct look *l)
{
    json_t *best = l->best_trial
                       ? json_pack("{s:i, s:o}", "trial", l->best_trial, "accuracy", number_or_null(l->best_accuracy))
                       : json_null();
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:i, s:i, s:o, s:I, s:o, s:I, s:s?, s:O?, s:O?}", "study",
                     l->study.name, "state", study_state(l), "metric", metric_of(l), "direction",
                     l->study.maximise ? "max" : "min", "best", best, "done", l->done, "failed", l->failed, "seconds",
                     number_or_null(l->seconds), "created_ms", (json_int_t)l->study.created_ms, "ended_ms",
                     time_or_null(l->study.ended_ms), "seed", (json_int_t)l->study.seed, "space_hash",
                     l->study.space_hash, "config", l->config, "provenance", l->provenance);
}

static int show_json(struct look *l)
{
    AUTO_JSON json_t *header = header_json(l);
    if (!header)
        return err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    buf_puts(&l->out, "{");
    const char *key;
    json_t *value;
    json_object_foreach(header, key, value)
    {
        buf_puts(&l->out, "\n  ");
        json_put_string(&l->out, key);
        buf_puts(&l->out, ": ");
        json_put(&l->out, value, JSON_STYLE_COMPACT);
        buf_putc(&l->out, ',');
    }
    buf_puts(&l->out, "\n  \"trials\": [");
    int rc = store_trials(l->store, l->study.id, l->trial, print_trial_json, l, l->e);
    buf_puts(&l->out, "\n  ]\n}\n");
    return rc < 0 ? rc : flush(l);
}

/* --- the study, for people --- */

static void put_software(const struct look *l, struct buf *b)
{
    static const struct {
        const char *before, *key;
    } parts[] = { { "pipetune ", "pipetune" }, { ", Spark ", "spark" }, { ", Java ", "java" }, { ", on ", "host" } };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const json_t *value = json_object_get(l->provenance, parts[i].key);
        if (!value || json_is_null(value))
            continue;
        buf_puts(b, parts[i].before);
        put_scalar(b, value);
    }
    const char *config = json_string_value(json_object_get(l->provenance, "config_file"));
    buf_puts(b, config ? "; config " : "");
    put_plain(b, config);
    buf_putc(b, '\n');
}

static void put_header(struct look *l)
{
    struct buf *b = &l->out;
    char time[32];
    const char *search = config_text(l, "search", "algorithm");
    buf_printf(b, "study %s: %s", l->study.name, study_state(l));
    if (strcmp(study_state(l), "interrupted") == 0)
        buf_puts(b, " ('pipetune run' with its config goes on with it)");
    if (l->driver)
        buf_printf(b, ", driver pid %ld", (long)l->driver);
    buf_printf(b, "\n%d trial%s, %d done, %d failed, %s of trials; begun ", l->trials, l->trials == 1 ? "" : "s",
               l->done, l->failed, table_duration(l->seconds, time));
    put_when(b, l->study.created_ms);
    buf_puts(b, l->study.ended_ms ? ", ended " : "");
    if (l->study.ended_ms)
        put_when(b, l->study.ended_ms);
    buf_printf(b, "\nmetric %s (%s is better), search %s, seed %lld\n", metric_of(l),
               l->study.maximise ? "greater" : "less", search ? search : "by default", (long long)l->study.seed);
    put_software(l, b);
    buf_putc(b, '\n');
}

static int last_epoch(void *ctx, const struct store_epoch *r)
{
    int *last = ctx;
    *last = r->epoch > *last ? r->epoch : *last;
    return 0;
}

/* The heads: hyperparameters and knobs get a column each as long as there is room for them. */
static int begin_table(struct look *l, const json_t *hyper, const json_t *system)
{
    static const char *const after[] = { ">epochs", ">accuracy", ">loss", ">time", ">attempts", "reason" };
    enum { OTHERS = 2 + ARRAY_LEN(after) };
    bool fits = json_object_size(hyper) + json_object_size(system) <= TABLE_MAX_COLUMNS - OTHERS;
    AUTO_STRV struct strv heads = STRV_INIT;
    const char *key;
    json_t *value;
    strv_add(&heads, ">trial");
    strv_add(&heads, "state");
    if (fits) {
        json_object_foreach((json_t *)hyper, key, value) strv_addf(&heads, ">%s", key);
        json_object_foreach((json_t *)system, key, value) strv_addf(&heads, ">%s", key);
        l->hyper = json_incref((json_t *)hyper);
        l->system = json_incref((json_t *)system);
    } else {
        strv_add(&heads, "hyperparameters");
        strv_add(&heads, "system");
    }
    for (size_t i = 0; i < ARRAY_LEN(after); i++)
        strv_add(&heads, after[i]);
    if (heads.failed)
        return err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    table_init(&l->table, (const char *const *)heads.v);
    return 0;
}

static void cell_of(struct table *t, const struct buf *b)
{
    table_cell(t, b->len ? buf_text(b) : "-");
    t->failed |= b->failed;
}

static void add_settings(struct look *l, const json_t *hyper, const json_t *effective, const json_t *requested)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const char *key;
    json_t *value;
    if (!l->hyper) {
        put_members(&b, hyper);
        cell_of(&l->table, &b);
        buf_clear(&b);
        put_system(&b, effective, requested);
        cell_of(&l->table, &b);
        return;
    }
    json_object_foreach(l->hyper, key, value)
    {
        buf_clear(&b);
        if (json_object_get(hyper, key))
            put_scalar(&b, json_object_get(hyper, key));
        cell_of(&l->table, &b);
    }
    json_object_foreach(l->system, key, value)
    {
        buf_clear(&b);
        if (json_object_get(effective, key))
            put_effective(&b, json_object_get(effective, key), json_object_get(requested, key));
        cell_of(&l->table, &b);
    }
}

static int add_trial_row(void *ctx, const struct store_trial *t)
{
    struct look *l = ctx;
    AUTO_JSON json_t *hyper = object_of(t->hyper);
    AUTO_JSON json_t *requested = object_of(t->requested);
    AUTO_JSON json_t *effective = object_of(t->effective);
    int done = strcmp(t->state, "finished") == 0 ? t->epochs : 0;
    int rc = done || t->attempts == 0 ? 0 : store_epochs(l->store, t->id, last_epoch, &done, l->e);
    if (rc == 0 && l->printed++ == 0)
        rc = begin_table(l, hyper, effective);
    if (rc < 0)
        return rc;
    struct table *to = &l->table;
    table_cellf(to, "%d", t->number);
    table_cell(to, trial_state(l, t));
    add_settings(l, hyper, effective, requested);
    table_cellf(to, "%d/%d", done, t->epochs);
    table_number(to, t->accuracy, 4);
    table_number(to, t->loss, 4);
    table_seconds(to, seconds_of(l, t));
    table_cellf(to, "%d", t->attempts);
    if (t->copy_of)
        table_cellf(to, "same as trial %d", t->copy_of);
    else
        table_cell(to, t->reason);
    return 0;
}

static int put_best(void *ctx, const struct store_trial *t)
{
    struct look *l = ctx;
    AUTO_JSON json_t *hyper = object_of(t->hyper);
    AUTO_JSON json_t *effective = object_of(t->effective);
    buf_printf(&l->out, "\nbest: trial %d, ", t->number);
    put_figure(&l->out, "accuracy", t->accuracy);
    if (strcmp(metric_of(l), "accuracy") != 0) {
        buf_puts(&l->out, ", ");
        put_figure(&l->out, metric_of(l), t->metric);
    }
    buf_puts(&l->out, "; ");
    put_members(&l->out, hyper);
    buf_puts(&l->out, json_object_size(effective) ? "; " : "");
    put_members(&l->out, effective);
    buf_putc(&l->out, '\n');
    return 0;
}

/* 0: not a terminal, lines may be as long as they want. */
static size_t terminal_columns(void)
{
    struct winsize w;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static int show_study(struct look *l)
{
    put_header(l);
    int rc = store_trials(l->store, l->study.id, 0, add_trial_row, l, l->e);
    if (rc == 0 && l->table.failed)
        rc = err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    if (rc < 0)
        return rc;
    if (l->printed > 0)
        table_put(&l->table, &l->out, terminal_columns());
    else
        buf_puts(&l->out, "no trial yet\n");
    if (l->best_trial)
        rc = store_trials(l->store, l->study.id, l->best_trial, put_best, l, l->e);
    else if (l->printed > 0)
        buf_puts(&l->out, "\nbest: none, no trial is finished\n");
    return rc < 0 ? rc : flush(l);
}

/* --- one trial, for people --- */

static int add_epoch_row(void *ctx, const struct store_epoch *r)
{
    struct table *t = ctx;
    table_cellf(t, "%d", r->epoch);
    table_number(t, r->accuracy, 4);
    table_number(t, r->loss, 4);
    table_seconds(t, r->seconds);
    table_cellf(t, "%lld", (long long)r->iterations);
    table_number(t, r->seconds > 0 ? r->records / r->seconds : NAN, 0);
    table_number(t, r->learning_rate, 8);
    table_cellf(t, "%d", r->attempt);
    return 0;
}

static int put_epochs(struct look *l, const struct store_trial *t)
{
    static const char *const heads[] = { ">epoch",     ">accuracy",      ">loss",    ">time", ">iterations",
                                         ">records/s", ">learning rate", ">attempt", NULL };
    struct table table;
    table_init(&table, heads);
    int rc = store_epochs(l->store, t->id, add_epoch_row, &table, l->e);
    if (rc == 0 && table.n > table.columns) {
        buf_putc(&l->out, '\n');
        table_put(&table, &l->out, 0);
    }
    l->out.failed |= table.failed != 0;
    table_done(&table);
    return rc;
}

struct attempt_rows {
    struct table table;
    char *argv; /* of the newest */
};

static bool runs_on(const struct store_attempt *r)
{
    return strcmp(r->state, "running") == 0 && r->boot_id &&
           proc_is((pid_t)r->pid, (uint64_t)r->start_ticks, r->boot_id);
}

static int add_attempt_row(void *ctx, const struct store_attempt *r)
{
    struct attempt_rows *a = ctx;
    struct table *t = &a->table;
    AUTO_BUF struct buf when = BUF_INIT;
    put_when(&when, r->started_ms);
    int64_t end = r->ended_ms ? r->ended_ms : runs_on(r) ? study_now_ms() : 0;
    table_cellf(t, "%d", r->number);
    table_cell(t, r->outcome ? r->outcome : r->state);
    table_cellf(t, "%d", r->first_epoch);
    table_cell(t, r->started_ms ? buf_text(&when) : "-");
    table_seconds(t, end && r->started_ms ? (double)(end - r->started_ms) / 1000.0 : NAN);
    if (r->exit_code >= 0)
        table_cellf(t, "%d", r->exit_code);
    else
        table_cell(t, "-");
    if (!r->cause && runs_on(r))
        table_cellf(t, "runs, pid %lld", (long long)r->pid);
    else
        table_cell(t, r->cause);
    free(a->argv);
    a->argv = r->argv ? strdup(r->argv) : NULL;
    return r->argv && !a->argv ? -ENOMEM : 0;
}

static void put_command(struct buf *b, const char *argv_text)
{
    AUTO_JSON json_t *argv = argv_text ? json_loads(argv_text, 0, NULL) : NULL;
    if (!json_is_array(argv))
        return;
    buf_puts(b, "\ncommand: ");
    for (size_t i = 0; i < json_array_size(argv); i++) {
        const char *word = json_string_value(json_array_get(argv, i));
        buf_puts(b, i ? " " : "");
        buf_put_shell(b, word ? word : "");
    }
    buf_putc(b, '\n');
}

static int put_attempts(struct look *l, const struct store_trial *t)
{
    static const char *const heads[] = { ">attempt", "outcome", ">from epoch", "started",
                                         ">time",    ">exit",   "cause",       NULL };
    struct attempt_rows a = { 0 };
    table_init(&a.table, heads);
    int rc = store_attempts(l->store, t->id, add_attempt_row, &a, l->e);
    if (rc == -ENOMEM)
        (void)err_sys(l->e, rc, "trial %d", t->number);
    if (rc == 0 && a.table.n > a.table.columns) {
        buf_putc(&l->out, '\n');
        table_put(&a.table, &l->out, 0);
        put_command(&l->out, a.argv);
    }
    l->out.failed |= a.table.failed != 0;
    table_done(&a.table);
    free(a.argv);
    return rc;
}

static char *log_path(const struct look *l, int trial)
{
    char *path = NULL;
    return asprintf(&path, "%s/%d/log", l->dir, trial) < 0 ? NULL : path;
}

static void put_trial_head(struct look *l, const struct store_trial *t)
{
    struct buf *b = &l->out;
    AUTO_JSON json_t *hyper = object_of(t->hyper);
    AUTO_JSON json_t *requested = object_of(t->requested);
    AUTO_JSON json_t *effective = object_of(t->effective);
    char time[32];
    buf_printf(b, "trial %d of study %s: %s", t->number, l->study.name, trial_state(l, t));
    if (t->copy_of)
        buf_printf(b, ", with the result of trial %d, whose settings are the same", t->copy_of);
    if (t->reason) {
        buf_puts(b, "\nreason: ");
        put_plain(b, t->reason);
    }
    buf_puts(b, "\nhyperparameters: ");
    put_members(b, hyper);
    buf_puts(b, "\nsystem: ");
    put_system(b, effective, requested);
    buf_printf(b, "%sslots %d\n", json_object_size(effective) ? ", " : "", t->slots);
    put_figure(b, "accuracy", t->accuracy);
    buf_puts(b, ", ");
    put_figure(b, "loss", t->loss);
    buf_printf(b, ", %s, %d epochs to train, %d attempt%s\n", table_duration(seconds_of(l, t), time), t->epochs,
               t->attempts, t->attempts == 1 ? "" : "s");
}

static int put_trial(void *ctx, const struct store_trial *t)
{
    struct look *l = ctx;
    l->printed++;
    put_trial_head(l, t);
    int rc = put_epochs(l, t);
    if (rc == 0)
        rc = put_attempts(l, t);
    AUTO_FREE char *log = log_path(l, t->number);
    if (rc == 0 && log && io_exists(log))
        buf_printf(&l->out, "log: %s\n", log);
    return rc;
}

static int show_trial(struct look *l)
{
    int rc = store_trials(l->store, l->study.id, l->trial, put_trial, l, l->e);
    return rc < 0 ? rc : flush(l);
}

static int show_log(struct look *l, bool json)
{
    AUTO_FREE char *log = log_path(l, l->trial);
    if (!log)
        return err_sys(l->e, -ENOMEM, "trial %d", l->trial);
    if (!io_exists(log))
        return err_set(l->e, -ENOENT, "trial %d has no log: '%s' is not there; see 'pipetune show %s %d'", l->trial,
                       log, l->study.name, l->trial);
    if (!json) {
        buf_printf(&l->out, "%s\n", log);
        return flush(l);
    }
    buf_puts(&l->out, "{\"log\": ");
    json_put_string(&l->out, log);
    buf_puts(&l->out, "}\n");
    return flush(l);
}

/* --- decisions --- */

static int print_decision_json(void *ctx, const struct store_decision *d)
{
    struct look *l = ctx;
    json_t *setting = d->setting ? json_loads(d->setting, 0, NULL) : NULL;
    AUTO_JSON json_t *j = json_pack("{s:I, s:o, s:o, s:s, s:o, s:s?}", "seq", (json_int_t)d->seq, "trial",
                                    d->trial ? json_integer(d->trial) : json_null(), "t_s", number_or_null(d->t_s),
                                    "kind", d->kind, "setting", setting ? setting : json_null(), "reason", d->reason);
    if (!j)
        return err_sys(l->e, -ENOMEM, "decision %lld", (long long)d->seq);
    buf_puts(&l->out, l->printed++ ? ",\n  " : "\n  ");
    json_put(&l->out, j, JSON_STYLE_COMPACT);
    return flush_when_full(l);
}

static int print_decision(void *ctx, const struct store_decision *d)
{
    struct look *l = ctx;
    struct buf *b = &l->out;
    AUTO_JSON json_t *setting = object_of(d->setting);
    char time[32], who[24] = "study";
    if (d->trial)
        (void)snprintf(who, sizeof who, "trial %d", d->trial);
    buf_printf(b, "%11s  %-9s  %-10s ", table_duration(d->t_s, time), who, d->kind);
    put_plain(b, d->reason);
    if (json_object_size(setting)) {
        buf_puts(b, "  (");
        put_members(b, setting);
        buf_putc(b, ')');
    }
    buf_putc(b, '\n');
    l->printed++;
    return flush_when_full(l);
}

static int show_decisions(struct look *l, bool json)
{
    buf_puts(&l->out, json ? "[" : "");
    int rc = store_decisions(l->store, l->study.id, l->trial, json ? print_decision_json : print_decision, l, l->e);
    if (json)
        buf_puts(&l->out, l->printed ? "\n]\n" : "]\n");
    else if (l->printed == 0)
        buf_puts(&l->out, "nothing was decided yet\n");
    return rc < 0 ? rc : flush(l);
}

/* --- finding it --- */

static int collect_name(void *ctx, const struct store_summary *r)
{
    strv_add(ctx, r->name);
    return 0;
}

static int unknown_study(struct look *l, const char *name)
{
    AUTO_STRV struct strv names = STRV_INIT;
    int rc = store_list(l->store, collect_name, &names, l->e);
    if (rc < 0)
        return rc;
    const char *near = suggest_nearest(name, (const char *const *)names.v, names.n);
    if (near)
        return err_set(l->e, -EINVAL, "no study '%s': did you mean '%s'?", name, near);
    AUTO_BUF struct buf list = BUF_INIT;
    enum { NAMED = 8 };
    for (size_t i = 0; i < names.n && i < NAMED; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", names.v[i]);
    if (names.n == 0)
        return err_set(l->e, -EINVAL, "no study '%s': the store has none yet", name);
    return err_set(l->e, -EINVAL, "no study '%s': there %s %s%s", name, names.n == 1 ? "is" : "are", buf_text(&list),
                   names.n > NAMED ? ", …; see 'pipetune ls'" : "");
}

static int take_summary(void *ctx, const struct store_summary *r)
{
    struct look *l = ctx;
    if (strcmp(r->name, l->study.name) != 0)
        return 0;
    l->trials = r->trials;
    l->done = r->done;
    l->failed = r->failed;
    l->best_trial = r->best_trial;
    l->best_accuracy = r->best_accuracy;
    l->seconds = r->seconds;
    return 1;
}

static int check_trial(struct look *l, const char *word)
{
    char *end;
    long n = strtol(word, &end, 10);
    if (end == word || *end || n < 1)
        return err_set(l->e, -EINVAL, "trial '%s': must be a number from 1", word);
    if (n > INT_MAX || n > l->trials)
        return err_set(l->e, -EINVAL, "study '%s' has no trial %ld: it has %d", l->study.name, n, l->trials);
    l->trial = (int)n;
    return 0;
}

/* `driver`: who holds the study's lock, 0 when nobody does. */
static int find_study(struct look *l, struct store *store, const char *name, const char *dir, pid_t driver)
{
    l->store = store;
    l->dir = dir;
    l->driver = driver;
    int rc = store_study_find(store, name, &l->study, l->e);
    if (rc <= 0)
        return rc < 0 ? rc : unknown_study(l, name);
    l->config = l->study.config ? json_loads(l->study.config, 0, NULL) : NULL;
    l->provenance = l->study.provenance ? json_loads(l->study.provenance, 0, NULL) : NULL;
    rc = store_list(store, take_summary, l, l->e);
    return rc < 0 ? rc : 0;
}

static void look_done(struct look *l)
{
    store_study_done(&l->study);
    json_decref(l->config);
    json_decref(l->provenance);
    json_decref(l->hyper);
    json_decref(l->system);
    table_done(&l->table);
    buf_done(&l->out);
}

/* Called by the driver itself, which is about to let go of the study: asking for the lock's owner would not see its own
 * lock, and closing the lock's file would drop it. */
static int show_own(struct store *s, const char *name, const char *dir, int (*print)(struct look *l), struct err *e)
{
    struct look l = { .e = e };
    int rc = find_study(&l, s, name, dir, 0);
    if (rc == 0)
        rc = print(&l);
    look_done(&l);
    return rc == -EPIPE ? 0 : rc;
}

int show_study_json(struct store *s, const char *name, const char *dir, struct err *e)
{
    return show_own(s, name, dir, show_json, e);
}

int show_study_text(struct store *s, const char *name, const char *dir, struct err *e)
{
    return show_own(s, name, dir, show_study, e);
}

static int show(struct look *l, const struct show_options *o, const struct strv *words)
{
    if (words->n > 1) {
        int rc = check_trial(l, words->v[1]);
        if (rc < 0)
            return rc;
    }
    if (o->log)
        return show_log(l, o->json);
    if (o->decisions)
        return show_decisions(l, o->json);
    if (o->json)
        return show_json(l);
    return l->trial ? show_trial(l) : show_study(l);
}

static int open_and_show(const struct show_options *o, const struct strv *words, struct err *e)
{
    if (words->n == 0)
        return err_set(e, -EINVAL, "which study? 'pipetune ls' lists them, 'pipetune show STUDY' shows one");
    if (o->log && words->n < 2)
        return err_set(e, -EINVAL, "option '--log' needs a trial: pipetune show %s TRIAL --log", words->v[0]);
    AUTO_FREE char *path = study_store_path(o->store);
    AUTO_FREE char *dir = path ? study_dir(path, words->v[0]) : NULL;
    if (!dir)
        return err_sys(e, -ENOMEM, "study '%s'", words->v[0]);
    struct look l = { .e = e };
    struct store *store = NULL;
    int rc = store_open(&store, path, STORE_READ, e);
    if (rc == 0)
        rc = find_study(&l, store, words->v[0], dir, study_driver(dir));
    if (rc == 0)
        rc = show(&l, o, words);
    look_done(&l);
    store_close(store);
    return rc;
}

int cmd_show(int argc, char **argv)
{
    struct show_options o = { 0 };
    struct opt_set set = show_opts(&o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (!cmd_options("show", argc, argv, &set, 1, &words, 2, &code)) {
        struct err e = { 0 };
        int rc = open_and_show(&o, &words, &e);
        code = rc == 0 || rc == -EPIPE ? CMD_OK : cmd_fail(&e);
    }
    opt_done(&set);
    return code;
}
