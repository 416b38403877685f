/* Policies over recorded traces. What is computed is core/replay's; here files become jobs, and results become JSON or tables.
 * Folders of CSV are replay_online.c's, decisions replay_decisions.c's, searches replay_search.c's, forecasts
 * replay_forecast.c's. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "base/suggest.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/replay_parts.h"
#include "core/replay.h"
#include "core/timeline_csv.h"
#include "store/trace.h"
#include "view/table.h"

enum { JOB_COLUMNS = 4, POLICIES_MAX = TABLE_MAX_COLUMNS - JOB_COLUMNS };

static const char *const start_choices[] = { "first", "last", NULL };
static const char *const probe_choices[] = { "mean", "recorded", NULL };
static const char *const cost_choices[] = { "epochs", "seconds", NULL };

static const struct opt_row replay_rows[] = {
    { NULL, "policy", OPT_TEXT, offsetof(struct replay_args, policy), NULL, 0, 0, NULL, "P,…",
      "offline: which policies (default: all)" },
    { NULL, "epochs", OPT_INT, offsetof(struct replay_args, epochs), "10", 1, 100000, NULL, "N",
      "offline: epochs of each trial" },
    { NULL, "repeat", OPT_INT, offsetof(struct replay_args, repeat), "1", 1, 100000, NULL, "N",
      "offline: trials of each workload and batch" },
    { NULL, "default", OPT_CHOICE, offsetof(struct replay_args, start), "first", 0, 0, start_choices, "WHICH",
      "offline: the feasible setting that a job starts from" },
    { NULL, "probe", OPT_CHOICE, offsetof(struct replay_args, probe), "mean", 0, 0, probe_choices, "WHICH",
      "offline: what an epoch that probes takes" },
    { NULL, "lenient", OPT_FLAG, offsetof(struct replay_args, lenient), NULL, 0, 0, NULL, NULL,
      "leave broken rows out, and say which" },
    { NULL, "store", OPT_TEXT, offsetof(struct replay_args, store), NULL, 0, 0, NULL, "FILE",
      "decisions: the store (default $PIPETUNE_STORE, else ./pipetune.db)" },
    { NULL, "algorithm", OPT_TEXT, offsetof(struct replay_args, algorithm), "random", 0, 0, NULL, "A,…",
      "search: what proposes" },
    { NULL, "stop", OPT_TEXT, offsetof(struct replay_args, stop), "none", 0, 0, NULL, "S,…",
      "search: stop rules, each with each of these" },
    { NULL, "budget", OPT_REAL, offsetof(struct replay_args, budget), "1000", 1, 1e12, NULL, "N",
      "search: epochs that are trained in all, or seconds" },
    { NULL, "cost", OPT_CHOICE, offsetof(struct replay_args, cost), "epochs", 0, 0, cost_choices, "WHICH",
      "search: what the budget counts" },
    { NULL, "metrics", OPT_TEXT, offsetof(struct replay_args, metrics), NULL, 0, 0, NULL, "NAME,…",
      "search: of metric, seconds and joules those that are wanted together; tells the hypervolume, too" },
    { NULL, "workers", OPT_INT, offsetof(struct replay_args, workers), "1", 1, 256, NULL, "W",
      "search: trials at once" },
    { NULL, "repeats", OPT_INT, offsetof(struct replay_args, repeats), "1", 1, 100000, NULL, "N",
      "search: seeds, of which the mean is told" },
    { NULL, "learn_from", OPT_TEXT, offsetof(struct replay_args, learn_from), NULL, 0, 0, NULL, "TABLE,…",
      "search: earlier studies to learn from: the same search is played over these tables first, with other seeds" },
    { NULL, "seed", OPT_INT, offsetof(struct replay_args, seed), "1", 0, 1e15, NULL, "S", "search: the first one" },
    { NULL, "at", OPT_TEXT, offsetof(struct replay_args, at), NULL, 0, 0, NULL, "N,…",
      "search: how much is spent when the result is looked at (default 50,100,200,500,1000); "
      "forecast: shares of the epochs that are known (default 0.1,0.2,0.4)" },
    LOOK_JSON_ROW(struct replay_args),
};

void cmd_replay_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(replay_rows, NULL));
}

/* --- reading --- */

bool replay_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Reports each broken row; that is an error unless the rest was asked for. */
static int judge(const struct csv_faults *f, const char *name, bool lenient, struct err *e)
{
    AUTO_BUF struct buf lines = BUF_INIT;
    if (f->n == 0)
        return 0;
    csv_faults_put(f, lenient ? "left out: " : "", name, &lines);
    cmd_say_lines(&lines);
    return lenient ? 0 : csv_faults_err(f, name, e);
}

int replay_read_csv(void *rows, replay_parse_fn *parse, const char *path, bool lenient, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct csv_faults faults = { 0 };
    int rc = io_read_file(&text, path, REPLAY_TEXT_MAX, e);
    if (rc < 0)
        return rc;
    rc = parse(rows, buf_text(&text), text.len, &faults);
    rc = rc < 0 ? err_sys(e, rc, "cannot read '%s'", path) : judge(&faults, path, lenient, e);
    csv_faults_done(&faults);
    return rc;
}

static int parse_timeline(void *out, const char *text, size_t len, struct csv_faults *faults)
{
    return timeline_csv_parse(out, text, len, faults);
}

static int read_trace(struct timeline *out, const char *path, struct err *e)
{
    struct trace t = { 0 };
    int rc = trace_read(&t, path, e);
    if (rc == 0)
        rc = trace_to_timeline(out, &t, e);
    if (rc > 0)
        cmd_say("'%s': %d of %zu runs left out: they were cut short, or did not begin under one setting", path, rc,
                t.n);
    trace_done(&t);
    if (rc == -EPROTO && e) /* a file that is no trace is the user's to change, not the machine's */
        e->code = rc = -EINVAL;
    return rc;
}

bool replay_is_trace(const char *path)
{
    char head[4] = "";
    AUTO_FCLOSE FILE *f = fopen(path, "re");
    bool signature = f && fread(head, 1, sizeof head, f) == sizeof head && memcmp(head, "\x89HDF", 4) == 0;
    return signature || replay_ends_with(path, ".h5") || replay_ends_with(path, ".hdf5");
}

int replay_read_timeline(struct timeline *out, const char *path, bool lenient, struct err *e)
{
    int rc = replay_is_trace(path) ? read_trace(out, path, e) : replay_read_csv(out, parse_timeline, path, lenient, e);
    if (rc < 0)
        return rc;
    if (out->n == 0)
        return err_set(e, -EINVAL, "'%s' holds no run: nothing to replay", path);
    return 0;
}

/* --- printing --- */

int replay_set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

int replay_print_json(json_t *j, int rc, struct err *e)
{
    if (rc == 0 && j)
        return cmd_print_json(j);
    json_decref(j);
    return (void)err_sys(e, -ENOMEM, "cannot print"), cmd_fail(e);
}

static void ratio_cell(struct table *t, double x, double over)
{
    if (isfinite(x) && over > 0)
        table_cellf(t, "%.3f", x / over);
    else
        table_cell(t, "-");
}

/* --- replay offline, of a timeline --- */

struct offline {
    struct replay_options o;
    const struct replay_policy *policies[POLICIES_MAX];
    size_t n;
    struct timeline timeline;
    struct timeline_jobs jobs;
    struct replay_outcome *outcomes; /* jobs.n of each policy, then those of the oracle */
};

static const struct replay_policy *find_policy(const char *name, size_t len)
{
    for (const struct replay_policy *p = replay_policies; p->name; p++)
        if (strlen(p->name) == len && memcmp(p->name, name, len) == 0)
            return p;
    return NULL;
}

static int unknown_policy(const char *name, size_t len, struct err *e)
{
    const char *names[POLICIES_MAX];
    char word[64];
    size_t n = 0;
    for (const struct replay_policy *p = replay_policies; p->name && n < POLICIES_MAX; p++)
        names[n++] = p->name;
    (void)snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), name);
    const char *near = suggest_nearest(word, names, n);
    if (near)
        return err_set(e, -EINVAL, "unknown policy '%s': did you mean '%s'?", word, near);
    AUTO_BUF struct buf all = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
    return err_set(e, -EINVAL, "unknown policy '%s': there are %s", word, buf_text(&all));
}

static bool is_chosen(const struct offline *r, const struct replay_policy *p)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->policies[i] == p)
            return true;
    return false;
}

/* "paper,pipetune" in that order; NULL: all. */
static int choose_policies(struct offline *r, const char *list, struct err *e)
{
    if (!list) {
        for (const struct replay_policy *p = replay_policies; p->name && r->n < POLICIES_MAX; p++)
            r->policies[r->n++] = p;
        return 0;
    }
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t len = strcspn(at, ",");
        const struct replay_policy *p = find_policy(at, len);
        if (!p)
            return unknown_policy(at, len, e);
        if (!is_chosen(r, p) && r->n < POLICIES_MAX)
            r->policies[r->n++] = p;
    }
    return 0;
}

static struct replay_outcome *outcomes_of(const struct offline *r, size_t policy)
{
    return r->outcomes + policy * r->jobs.n;
}

static int run_policies(struct offline *r, struct err *e)
{
    r->outcomes = calloc((r->n + 1) * r->jobs.n, sizeof *r->outcomes);
    int rc = r->outcomes ? 0 : err_sys(e, -ENOMEM, "cannot replay %zu jobs", r->jobs.n);
    for (size_t i = 0; rc == 0 && i < r->n; i++)
        rc = r->policies[i]->run(&r->jobs, &r->o, outcomes_of(r, i), e);
    if (rc == 0)
        rc = find_policy("oracle", 6)->run(&r->jobs, &r->o, outcomes_of(r, r->n), e);
    return rc;
}

static bool same_workload(const struct timeline_job *a, const struct timeline_job *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->dataset, b->dataset) == 0;
}

/* Over the jobs that have a feasible setting; NAN: none has. `of` NULL: all workloads. */
static double total_s(const struct offline *r, size_t policy, const struct timeline_job *of)
{
    const struct replay_outcome *o = outcomes_of(r, policy);
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->jobs.n; i++) {
        if (isnan(o[i].time_s) || (of && !same_workload(of, &r->jobs.jobs[i])))
            continue;
        sum += o[i].time_s;
        n++;
    }
    return n ? sum : (double)NAN;
}

static json_t *totals_json(const struct offline *r, const struct timeline_job *of)
{
    json_t *j = json_object();
    for (size_t p = 0; j && p < r->n; p++)
        if (replay_set(j, r->policies[p]->name, json_num(total_s(r, p, of))) < 0) {
            json_decref(j);
            return NULL;
        }
    return j;
}

static int put_totals(const struct offline *r, json_t *totals)
{
    int rc = replay_set(totals, "ALL", totals_json(r, NULL));
    for (size_t i = 0; rc == 0 && i < r->jobs.n; i++) {
        const struct timeline_job *job = &r->jobs.jobs[i];
        if (i > 0 && same_workload(job, job - 1))
            continue;
        AUTO_BUF struct buf key = BUF_INIT;
        buf_printf(&key, "%s/%s", job->model, job->dataset);
        rc = key.failed ? -ENOMEM : replay_set(totals, buf_text(&key), totals_json(r, job));
    }
    return rc;
}

static json_t *setting_json(int cores, double memory_gb)
{
    return cores ? json_pack("[i, o]", cores, json_num(memory_gb)) : json_null();
}

/* Settings that were recorded and that no run of came to its end. */
static json_t *infeasible_json(const struct timeline_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < job->n_cells; i++) {
        const struct timeline_cell *c = &job->cells[i];
        if (!c->feasible && json_array_append_new(list, setting_json(c->cores, c->memory_gb)) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *job_json(const struct offline *r, size_t job)
{
    AUTO_JSON json_t *time = json_object();
    AUTO_JSON json_t *choice = json_object();
    for (size_t p = 0; p < r->n; p++) {
        const struct replay_outcome *o = &outcomes_of(r, p)[job];
        const char *name = r->policies[p]->name;
        if (replay_set(time, name, json_num(o->time_s)) < 0 ||
            replay_set(choice, name, setting_json(o->cores, o->memory_gb)) < 0)
            return NULL;
    }
    return json_pack("{s:O, s:O, s:o}", "time", time, "choice", choice, "infeasible",
                     infeasible_json(&r->jobs.jobs[job]));
}

static int put_jobs(const struct offline *r, json_t *jobs)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->jobs.n; i++) {
        const struct timeline_job *job = &r->jobs.jobs[i];
        AUTO_BUF struct buf key = BUF_INIT;
        char batch[NUM_TEXT_MAX];
        buf_printf(&key, "%s/%s/%s", job->model, job->dataset, num_print(job->batch, batch));
        rc = key.failed ? -ENOMEM : replay_set(jobs, buf_text(&key), job_json(r, i));
    }
    return rc;
}

static int print_offline_json(const struct offline *r, struct err *e)
{
    json_t *totals = json_object(), *jobs = json_object();
    int rc = put_totals(r, totals);
    if (rc == 0)
        rc = put_jobs(r, jobs);
    return replay_print_json(json_pack("{s:o, s:o}", "total", totals, "per_batch", jobs), rc, e);
}

static void put_policy_table(const struct offline *r, struct buf *b)
{
    static const char *const heads[] = { "policy", ">time", ">over oracle", "what it does", NULL };
    struct table t;
    table_init(&t, heads);
    for (size_t p = 0; p < r->n; p++) {
        table_cell(&t, r->policies[p]->name);
        table_seconds(&t, total_s(r, p, NULL));
        ratio_cell(&t, total_s(r, p, NULL), total_s(r, r->n, NULL));
        table_cell(&t, r->policies[p]->help);
    }
    table_put(&t, b, 0);
    table_done(&t);
}

/* "8, 4": cores and GB; "8" where no memory was recorded. */
static void put_setting(struct buf *b, int cores, double memory_gb)
{
    buf_printf(b, "%d", cores);
    if (isfinite(memory_gb))
        buf_printf(b, ", %g", memory_gb);
}

static void put_job_row(const struct offline *r, size_t i, struct table *t)
{
    const struct timeline_job *job = &r->jobs.jobs[i];
    const struct replay_outcome *best = &outcomes_of(r, r->n)[i];
    table_cellf(t, "%s/%s", job->model, job->dataset);
    table_number(t, job->batch);
    table_seconds(t, best->time_s);
    AUTO_BUF struct buf setting = BUF_INIT;
    put_setting(&setting, best->cores, best->memory_gb);
    table_cell(t, best->cores ? buf_text(&setting) : isfinite(job->startup_s) ? "none feasible" : "no start-up");
    for (size_t p = 0; p < r->n; p++)
        ratio_cell(t, outcomes_of(r, p)[i].time_s, best->time_s);
}

static void put_job_table(const struct offline *r, struct buf *b)
{
    const char *heads[TABLE_MAX_COLUMNS + 1] = { "workload", ">batch", ">oracle's time", "at cores, GB" };
    char names[POLICIES_MAX][32];
    struct table t;
    for (size_t p = 0; p < r->n; p++) {
        (void)snprintf(names[p], sizeof names[p], ">%s", r->policies[p]->name);
        heads[JOB_COLUMNS + p] = names[p];
    }
    table_init(&t, heads);
    for (size_t i = 0; i < r->jobs.n; i++)
        put_job_row(r, i, &t);
    table_put(&t, b, 0);
    table_done(&t);
}

static void put_infeasible(const struct offline *r, struct buf *b)
{
    for (size_t i = 0; i < r->jobs.n; i++) {
        const struct timeline_job *job = &r->jobs.jobs[i];
        for (size_t c = 0; c < job->n_cells; c++) {
            if (job->cells[c].feasible)
                continue;
            buf_printf(b, "infeasible: %s/%s batch %g at ", job->model, job->dataset, job->batch);
            put_setting(b, job->cells[c].cores, job->cells[c].memory_gb);
            buf_putc(b, '\n');
        }
    }
}

static int print_offline(const struct offline *r)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%zu workloads and batches, %d trials of %d epochs each\n\n", r->jobs.n, r->o.repeat, r->o.epochs);
    put_policy_table(r, &b);
    buf_puts(&b, "\ntime over the oracle's, by workload and batch\n\n");
    put_job_table(r, &b);
    put_infeasible(r, &b);
    return cmd_print(&b);
}

static int replay_timeline(const struct replay_args *o, const char *path, struct err *e)
{
    struct offline r = {
        .o = { .epochs = (int)o->epochs,
               .repeat = (int)o->repeat,
               .start = strcmp(o->start, "last") == 0 ? REPLAY_LAST : REPLAY_FIRST,
               .probe = strcmp(o->probe, "recorded") == 0 ? REPLAY_RECORDED : REPLAY_MEAN },
    };
    int rc = choose_policies(&r, o->policy, e);
    if (rc == 0)
        rc = replay_read_timeline(&r.timeline, path, o->lenient, e);
    if (rc == 0 && (rc = timeline_gather(&r.jobs, &r.timeline)) < 0)
        rc = err_sys(e, rc, "cannot replay '%s'", path);
    if (rc == 0)
        rc = run_policies(&r, e);
    int code = rc < 0 ? cmd_fail(e) : o->json ? print_offline_json(&r, e) : print_offline(&r);
    free(r.outcomes);
    timeline_jobs_done(&r.jobs);
    timeline_done(&r.timeline);
    return code;
}

static int replay_offline(const struct replay_args *o, const char *path, struct err *e)
{
    return io_is_dir(path) ? replay_tunings(o, path, e) : replay_timeline(o, path, e);
}

/* --- */

static const struct mode {
    const char *name;
    int (*run)(const struct replay_args *o, const char *what, struct err *e); /* returns the exit code */
    const char *what;
} modes[] = {
    { "offline", replay_offline, "a trace (.h5), a timeline (.csv), or a folder of tuning runs" },
    { "online", replay_online, "a folder of TuneV1Load_LOAD_CORES.csv and TuneV2Load_LOAD_CORES.csv" },
    { "decisions", replay_decisions, "a study, or a trace (.h5) that holds a tuner's log" },
    { "search", replay_search, "a table of curves (JSON lines, also gzipped, or .h5)" },
    { "forecast", replay_forecast, "a table of curves (JSON lines, also gzipped, or .h5)" },
};

static int run_mode(const struct replay_args *o, const struct strv *words, struct err *e)
{
    const char *word = words->n > 0 ? words->v[0] : "";
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (strcmp(word, modes[i].name) != 0)
            continue;
        if (words->n == 2)
            return modes[i].run(o, words->v[1], e);
        return (void)err_set(e, -EINVAL, "replay what? 'pipetune replay %s' needs %s", word, modes[i].what),
               cmd_fail(e);
    }
    (void)err_set(e, -EINVAL,
                  "'%s' cannot be replayed: say 'offline TRACE', 'online DIR', 'decisions STUDY', 'search TABLE' "
                  "or 'forecast TABLE'",
                  word);
    return cmd_fail(e);
}

int cmd_replay(int argc, char **argv)
{
    struct replay_args o = { 0 };
    struct opt_set opts = OPT_SET(replay_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e = { 0 };
    int code;
    if (opt_presets(&opts, &e) < 0)
        code = cmd_fail(&e);
    else if (!cmd_options("replay", argc, argv, &opts, 1, &words, 2, &code))
        code = run_mode(&o, &words, &e);
    opt_done(&opts);
    return code;
}
