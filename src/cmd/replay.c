/* Policies over recorded traces. What is computed is core/replay's and core/online's; here files become rows, and results
 * become JSON or tables. */
#include <dirent.h>
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
#include "cmd/table.h"
#include "core/online.h"
#include "core/replay.h"
#include "core/timeline_csv.h"
#include "store/trace.h"

enum { JOB_COLUMNS = 4, POLICIES_MAX = TABLE_MAX_COLUMNS - JOB_COLUMNS, NAME_SIZE = 256 };

#define TEXT_MAX ((size_t)1 << 28)

struct options {
    char *policy, *start, *probe;
    int64_t epochs, repeat;
    bool lenient, json;
};

static const char *const start_choices[] = { "first", "last", NULL };
static const char *const probe_choices[] = { "mean", "recorded", NULL };

static const struct opt_row replay_rows[] = {
    { NULL, "policy", OPT_TEXT, offsetof(struct options, policy), NULL, 0, 0, NULL, "P,…",
      "offline: which policies (default: all)" },
    { NULL, "epochs", OPT_INT, offsetof(struct options, epochs), "10", 1, 100000, NULL, "N",
      "offline: epochs of each trial" },
    { NULL, "repeat", OPT_INT, offsetof(struct options, repeat), "1", 1, 100000, NULL, "N",
      "offline: trials of each workload and batch" },
    { NULL, "default", OPT_CHOICE, offsetof(struct options, start), "first", 0, 0, start_choices, "WHICH",
      "offline: the feasible setting that a job starts from" },
    { NULL, "probe", OPT_CHOICE, offsetof(struct options, probe), "mean", 0, 0, probe_choices, "WHICH",
      "offline: what an epoch that probes takes" },
    { NULL, "lenient", OPT_FLAG, offsetof(struct options, lenient), NULL, 0, 0, NULL, NULL,
      "leave broken rows out, and say which" },
    { NULL, "json", OPT_FLAG, offsetof(struct options, json), NULL, 0, 0, NULL, NULL, "print JSON" },
};

static struct opt_set replay_opts(struct options *o)
{
    return (struct opt_set){ .rows = replay_rows, .n = ARRAY_LEN(replay_rows), .target = o };
}

void cmd_replay_options(struct buf *b)
{
    struct opt_set set = replay_opts(NULL);
    opt_help(b, &set);
}

/* --- reading --- */

static bool ends_with(const char *text, const char *end)
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
    csv_faults_put(f, lenient ? "pipetune: left out: " : "pipetune: ", name, &lines);
    fputs(buf_text(&lines), stderr);
    if (lenient)
        return 0;
    return err_set(e, -EINVAL, "'%s' has %zu broken rows: mend them, or use the rest with --lenient", name, f->n);
}

static int read_timeline_csv(struct timeline *out, const char *path, bool lenient, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct csv_faults faults = { 0 };
    int rc = io_read_file(&text, path, TEXT_MAX, e);
    if (rc < 0)
        return rc;
    rc = timeline_csv_parse(out, buf_text(&text), text.len, &faults);
    rc = rc < 0 ? err_sys(e, rc, "cannot read '%s'", path) : judge(&faults, path, lenient, e);
    csv_faults_done(&faults);
    return rc;
}

static int read_trace(struct timeline *out, const char *path, struct err *e)
{
    struct trace t = { 0 };
    int rc = trace_read(&t, path, e);
    if (rc == 0)
        rc = trace_to_timeline(out, &t, e);
    trace_done(&t);
    if (rc == -EPROTO && e) /* a file that is no trace is the user's to change, not the machine's */
        e->code = rc = -EINVAL;
    return rc;
}

/* By its first bytes, so that a trace may have any name; by its name, so that a broken one is called a broken trace. */
static bool is_hdf5(const char *path)
{
    char head[4] = "";
    AUTO_FCLOSE FILE *f = fopen(path, "re");
    bool signature = f && fread(head, 1, sizeof head, f) == sizeof head && memcmp(head, "\x89HDF", 4) == 0;
    return signature || ends_with(path, ".h5") || ends_with(path, ".hdf5");
}

static int read_timeline(struct timeline *out, const char *path, bool lenient, struct err *e)
{
    int rc = is_hdf5(path) ? read_trace(out, path, e) : read_timeline_csv(out, path, lenient, e);
    if (rc < 0)
        return rc;
    if (out->n == 0)
        return err_set(e, -EINVAL, "'%s' holds no run: nothing to replay", path);
    return 0;
}

typedef int parse_fn(void *rows, const char *text, size_t len, struct csv_faults *faults);

static int parse_offline(void *rows, const char *text, size_t len, struct csv_faults *faults)
{
    return tune_offline_parse(rows, text, len, faults);
}

static int parse_online(void *rows, const char *text, size_t len, struct csv_faults *faults)
{
    return tune_online_parse(rows, text, len, faults);
}

static int read_rows(void *rows, parse_fn *parse, const char *dir, const char *name, bool lenient, struct err *e)
{
    AUTO_FREE char *path = io_join(dir, name);
    AUTO_BUF struct buf text = BUF_INIT;
    struct csv_faults faults = { 0 };
    int rc = path ? io_read_file(&text, path, TEXT_MAX, e) : err_sys(e, -ENOMEM, "cannot read '%s'", name);
    if (rc < 0)
        return rc;
    rc = parse(rows, buf_text(&text), text.len, &faults);
    rc = rc < 0 ? err_sys(e, rc, "cannot read '%s'", path) : judge(&faults, path, lenient, e);
    csv_faults_done(&faults);
    return rc;
}

/* Names become keys of JSON, and cells of tables. */
static int is_csv(const struct dirent *d)
{
    return d->d_name[0] != '.' && ends_with(d->d_name, ".csv") && csv_is_name(d->d_name);
}

static void free_names(struct dirent **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

/* The *.csv of a folder, by name. Returns how many. */
static int list_csv(struct dirent ***out, const char *dir, struct err *e)
{
    int n = scandir(dir, out, is_csv, alphasort);
    return n < 0 ? err_sys(e, -errno, "cannot read folder '%s'", dir) : n;
}

/* --- printing --- */

/* json_object_set_new() that tells failure once: -ENOMEM when the value or the key was refused. */
static int set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

static int print_json(json_t *j, int rc, struct err *e)
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
        if (set(j, r->policies[p]->name, look_number(total_s(r, p, of))) < 0) {
            json_decref(j);
            return NULL;
        }
    return j;
}

static int put_totals(const struct offline *r, json_t *totals)
{
    int rc = set(totals, "ALL", totals_json(r, NULL));
    for (size_t i = 0; rc == 0 && i < r->jobs.n; i++) {
        const struct timeline_job *job = &r->jobs.jobs[i];
        if (i > 0 && same_workload(job, job - 1))
            continue;
        AUTO_BUF struct buf key = BUF_INIT;
        buf_printf(&key, "%s/%s", job->model, job->dataset);
        rc = key.failed ? -ENOMEM : set(totals, buf_text(&key), totals_json(r, job));
    }
    return rc;
}

static json_t *setting_json(int cores, double memory_gb)
{
    return cores ? json_pack("[i, o]", cores, look_number(memory_gb)) : json_null();
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
        if (set(time, name, look_number(o->time_s)) < 0 || set(choice, name, setting_json(o->cores, o->memory_gb)) < 0)
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
        rc = key.failed ? -ENOMEM : set(jobs, buf_text(&key), job_json(r, i));
    }
    return rc;
}

static int print_offline_json(const struct offline *r, struct err *e)
{
    json_t *totals = json_object(), *jobs = json_object();
    int rc = put_totals(r, totals);
    if (rc == 0)
        rc = put_jobs(r, jobs);
    return print_json(json_pack("{s:o, s:o}", "total", totals, "per_batch", jobs), rc, e);
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
    table_number(t, job->batch, 6);
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

static int replay_timeline(const struct options *o, const char *path, struct err *e)
{
    struct offline r = {
        .o = { .epochs = (int)o->epochs,
               .repeat = (int)o->repeat,
               .start = strcmp(o->start, "last") == 0 ? REPLAY_LAST : REPLAY_FIRST,
               .probe = strcmp(o->probe, "recorded") == 0 ? REPLAY_RECORDED : REPLAY_MEAN },
    };
    int rc = choose_policies(&r, o->policy, e);
    if (rc == 0)
        rc = read_timeline(&r.timeline, path, o->lenient, e);
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

/* --- replay offline, of a folder of tuning runs --- */

struct tuning { /* one job, cores and version: maybe several files */
    struct tune_name name;
    struct tune_offline rows;
    struct tune_sum sum;
};

struct tunings {
    struct tuning *v; /* sorted by name */
    size_t n;
};

static int by_tune_name(const void *a, const void *b)
{
    return tune_name_compare(&((const struct tuning *)a)->name, &((const struct tuning *)b)->name);
}

static struct tuning *tuning_of(struct tunings *t, const char *file)
{
    struct tune_name name;
    tune_name_parse(&name, file);
    for (size_t i = 0; i < t->n; i++)
        if (tune_name_compare(&t->v[i].name, &name) == 0)
            return &t->v[i];
    t->v[t->n].name = name;
    return &t->v[t->n++];
}

static int read_tunings(struct tunings *t, const char *dir, bool lenient, struct err *e)
{
    struct dirent **names = NULL;
    int n = list_csv(&names, dir, e);
    if (n < 0)
        return n;
    t->v = calloc((size_t)n + 1, sizeof *t->v);
    int rc = t->v ? 0 : err_sys(e, -ENOMEM, "cannot read '%s'", dir);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = read_rows(&tuning_of(t, names[i]->d_name)->rows, parse_offline, dir, names[i]->d_name, lenient, e);
    free_names(names, n);
    if (rc == 0 && t->n == 0)
        rc = err_set(e, -EINVAL, "'%s' holds no .csv of tuning runs", dir);
    for (size_t i = 0; rc == 0 && i < t->n; i++)
        tune_sum_of(&t->v[i].sum, &t->v[i].rows);
    if (rc == 0)
        qsort(t->v, t->n, sizeof *t->v, by_tune_name);
    return rc;
}

static void tunings_done(struct tunings *t)
{
    for (size_t i = 0; i < t->n; i++)
        tune_offline_done(&t->v[i].rows);
    free(t->v);
}

static json_t *tune_row_json(const struct tune_offline_row *r)
{
    if (!r)
        return json_null();
    return json_pack("{s:f, s:i, s:f, s:o, s:o, s:o, s:o}", "lr", r->lr, "epochs", r->epochs, "batch", r->batch,
                     "error", look_number(r->error), "error_resp", look_number(r->error_resp), "training_s",
                     look_number(r->training_s), "energy_j", look_number(r->energy_j));
}

static json_t *tuning_json(const struct tuning *t)
{
    return json_pack("{s:I, s:o, s:o, s:{s:o, s:o}}", "trials", (json_int_t)t->sum.trials, "time_s",
                     look_number(t->sum.time_s), "energy_j", look_number(t->sum.energy_j), "best", "error",
                     tune_row_json(t->sum.best_error), "error_resp", tune_row_json(t->sum.best_error_resp));
}

/* The member, made when it is not there; borrowed. NULL: memory. */
static json_t *member(json_t *object, const char *key)
{
    json_t *at = json_object_get(object, key);
    if (!at && json_object_set_new(object, key, json_object()) == 0)
        at = json_object_get(object, key);
    return at;
}

static int print_tunings_json(const struct tunings *t, struct err *e)
{
    json_t *all = json_object();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        const struct tune_name *n = &t->v[i].name;
        rc = set(member(member(all, n->job), n->cores), n->version, tuning_json(&t->v[i]));
    }
    return print_json(all, rc, e);
}

static void best_cell(struct table *t, const struct tune_offline_row *r, double figure)
{
    if (r)
        table_cellf(t, "%g (lr %g, batch %g, %d epochs)", figure, r->lr, r->batch, r->epochs);
    else
        table_cell(t, "-");
}

static int print_tunings(const struct tunings *t)
{
    static const char *const heads[] = { "job",       ">cores",      "version",          ">trials", ">time",
                                         ">energy J", "least error", "least error_resp", NULL };
    AUTO_BUF struct buf b = BUF_INIT;
    struct table table;
    table_init(&table, heads);
    for (size_t i = 0; i < t->n; i++) {
        const struct tuning *one = &t->v[i];
        const struct tune_sum *s = &one->sum;
        table_cell(&table, one->name.job);
        table_cell(&table, one->name.cores);
        table_cell(&table, one->name.version);
        table_cellf(&table, "%zu", s->trials);
        table_seconds(&table, s->time_s);
        table_number(&table, s->energy_j, 1);
        best_cell(&table, s->best_error, s->best_error ? s->best_error->error : 0);
        best_cell(&table, s->best_error_resp, s->best_error_resp ? s->best_error_resp->error_resp : 0);
    }
    table_put(&table, &b, 0);
    table_done(&table);
    return cmd_print(&b);
}

static int replay_tunings(const struct options *o, const char *dir, struct err *e)
{
    struct tunings t = { 0 };
    int rc = read_tunings(&t, dir, o->lenient, e);
    int code = rc < 0 ? cmd_fail(e) : o->json ? print_tunings_json(&t, e) : print_tunings(&t);
    tunings_done(&t);
    return code;
}

static int replay_offline(const struct options *o, const char *path, struct err *e)
{
    return io_is_dir(path) ? replay_tunings(o, path, e) : replay_timeline(o, path, e);
}

/* --- replay online --- */

struct queue { /* one load and core number */
    char load[NAME_SIZE], cores[NAME_SIZE];
    struct tune_online v1, v2;
    struct online_result result;
};

struct queues {
    struct queue *v;
    size_t n;
};

/* "TuneV1Load_<load>_<cores>.csv"; the load may hold a '_'. Returns 1 or 2, 0: it is none of these. */
static int parse_queue_name(struct queue *out, const char *file)
{
    int version = strncmp(file, "TuneV1Load_", 11) == 0 ? 1 : strncmp(file, "TuneV2Load_", 11) == 0 ? 2 : 0;
    if (version == 0 || !ends_with(file, ".csv"))
        return 0;
    const char *load = file + 11, *line = strrchr(file, '_');
    if (line <= load)
        return 0;
    size_t cores_len = strlen(line + 1) - 4;
    if (cores_len == 0 || strspn(line + 1, "0123456789") != cores_len)
        return 0;
    (void)snprintf(out->load, sizeof out->load, "%.*s", (int)(line - load), load);
    (void)snprintf(out->cores, sizeof out->cores, "%.*s", (int)cores_len, line + 1);
    return version;
}

/* Numbers by size, then as text. */
static int compare_numbers(const char *a, const char *b)
{
    double x = strtod(a, NULL), y = strtod(b, NULL);
    return x < y ? -1 : x > y ? 1 : strcmp(a, b);
}

static int by_load_and_cores(const void *x, const void *y)
{
    const struct queue *a = x, *b = y;
    int order = compare_numbers(a->load, b->load);
    return order != 0 ? order : compare_numbers(a->cores, b->cores);
}

static struct queue *queue_of(struct queues *q, const struct queue *name)
{
    for (size_t i = 0; i < q->n; i++)
        if (by_load_and_cores(&q->v[i], name) == 0)
            return &q->v[i];
    q->v[q->n] = *name;
    return &q->v[q->n++];
}

static int read_queue(struct queues *q, const char *dir, const char *file, bool lenient, struct err *e)
{
    struct queue name = { 0 };
    int version = parse_queue_name(&name, file);
    if (version == 0)
        return 0;
    struct queue *at = queue_of(q, &name);
    return read_rows(version == 1 ? &at->v1 : &at->v2, parse_online, dir, file, lenient, e);
}

static int read_queues(struct queues *q, const char *dir, bool lenient, struct err *e)
{
    struct dirent **names = NULL;
    int n = list_csv(&names, dir, e);
    if (n < 0)
        return n;
    q->v = calloc((size_t)n + 1, sizeof *q->v);
    int rc = q->v ? 0 : err_sys(e, -ENOMEM, "cannot read '%s'", dir);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = read_queue(q, dir, names[i]->d_name, lenient, e);
    free_names(names, n);
    if (rc == 0 && q->n == 0)
        rc = err_set(e, -EINVAL, "'%s' holds no TuneV1Load_LOAD_CORES.csv or TuneV2Load_LOAD_CORES.csv", dir);
    if (rc == 0)
        qsort(q->v, q->n, sizeof *q->v, by_load_and_cores);
    for (size_t i = 0; rc == 0 && i < q->n; i++)
        rc = online_replay(&q->v[i].result, &q->v[i].v1, &q->v[i].v2, e);
    return rc;
}

static void queues_done(struct queues *q)
{
    for (size_t i = 0; i < q->n; i++) {
        tune_online_done(&q->v[i].v1);
        tune_online_done(&q->v[i].v2);
        online_result_done(&q->v[i].result);
    }
    free(q->v);
}

static json_t *figures_json(const struct online_figures *f)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "response_s", look_number(f->response_s), "tuning_s",
                     look_number(f->tuning_s), "training_s", look_number(f->training_s), "energy_j",
                     look_number(f->energy_j));
}

static json_t *online_job_json(const struct online_job *j)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:{s:o, s:o}}", "v1", figures_json(&j->v1), "v2", figures_json(&j->v2),
                     "pipetune", figures_json(&j->pipetune), "pipetune_on_v2", figures_json(&j->pipetune_on_v2), "fcfs",
                     "v1", look_number(j->fcfs_v1_s), "v2", look_number(j->fcfs_v2_s));
}

static int print_queues_json(const struct queues *q, struct err *e)
{
    json_t *all = json_object();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < q->n; i++) {
        json_t *at = member(member(all, q->v[i].load), q->v[i].cores);
        const struct online_result *r = &q->v[i].result;
        for (size_t k = 0; rc == 0 && k < r->n; k++)
            rc = set(at, r->jobs[k].name, online_job_json(&r->jobs[k]));
    }
    return print_json(all, rc, e);
}

static void put_online_row(struct table *t, const struct queue *q, const struct online_job *j)
{
    table_cell(t, q->load);
    table_cell(t, q->cores);
    table_cell(t, j->name);
    table_seconds(t, j->v1.response_s);
    table_seconds(t, j->v2.response_s);
    table_seconds(t, j->pipetune.response_s);
    table_seconds(t, j->pipetune_on_v2.response_s);
    table_seconds(t, j->fcfs_v1_s);
    table_seconds(t, j->fcfs_v2_s);
}

static int print_queues(const struct queues *q)
{
    static const char *const heads[] = { ">load",     ">cores",       "job",          ">v1",          ">v2",
                                         ">pipetune", ">same, on v2", ">queue of v1", ">queue of v2", NULL };
    AUTO_BUF struct buf b = BUF_INIT;
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < q->n; i++)
        for (size_t k = 0; k < q->v[i].result.n; k++)
            put_online_row(&t, &q->v[i], &q->v[i].result.jobs[k]);
    buf_puts(&b, "mean response\n\n");
    table_put(&t, &b, 0);
    table_done(&t);
    return cmd_print(&b);
}

static int replay_online(const struct options *o, const char *dir, struct err *e)
{
    struct queues q = { 0 };
    int rc = read_queues(&q, dir, o->lenient, e);
    int code = rc < 0 ? cmd_fail(e) : o->json ? print_queues_json(&q, e) : print_queues(&q);
    queues_done(&q);
    return code;
}

/* --- */

static int replay_decisions(const struct options *o, const char *what, struct err *e)
{
    (void)o;
    (void)err_set(e, -EINVAL, "cannot replay the decisions of '%s': not in this version, which does not tune live yet",
                  what);
    return cmd_fail(e);
}

static const struct mode {
    const char *name;
    int (*run)(const struct options *o, const char *what, struct err *e); /* returns the exit code */
    const char *what;
} modes[] = {
    { "offline", replay_offline, "a trace (.h5), a timeline (.csv), or a folder of tuning runs" },
    { "online", replay_online, "a folder of TuneV1Load_LOAD_CORES.csv and TuneV2Load_LOAD_CORES.csv" },
    { "decisions", replay_decisions, "a study or a trace" },
};

static int run_mode(const struct options *o, const struct strv *words, struct err *e)
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
    (void)err_set(e, -EINVAL, "'%s' cannot be replayed: say 'offline TRACE', 'online DIR' or 'decisions STUDY'", word);
    return cmd_fail(e);
}

int cmd_replay(int argc, char **argv)
{
    struct options o = { 0 };
    struct opt_set opts = replay_opts(&o);
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
