/* Folders of recorded tuning runs, and of the queues they made. What is computed is core/tune_replay's; here files become rows, and
 * results become JSON or tables. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/replay_parts.h"
#include "core/tune_replay.h"
#include "view/table.h"

enum { NAME_SIZE = 256 };

/* --- reading --- */

static int parse_offline(void *rows, const char *text, size_t len, struct csv_faults *faults)
{
    return tune_offline_parse(rows, text, len, faults);
}

static int parse_online(void *rows, const char *text, size_t len, struct csv_faults *faults)
{
    return tune_online_parse(rows, text, len, faults);
}

static int read_rows(void *rows, replay_parse_fn *parse, const char *dir, const char *name, bool lenient, struct err *e)
{
    AUTO_FREE char *path = io_join(dir, name);
    return path ? replay_read_csv(rows, parse, path, lenient, e) : err_sys(e, -ENOMEM, "cannot read '%s'", name);
}

/* Names become keys of JSON, and cells of tables. */
static int is_csv(const struct dirent *d)
{
    return d->d_name[0] != '.' && replay_ends_with(d->d_name, ".csv") && csv_is_name(d->d_name);
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
                     "error", json_num(r->error), "error_resp", json_num(r->error_resp), "training_s",
                     json_num(r->training_s), "energy_j", json_num(r->energy_j));
}

static json_t *tuning_json(const struct tuning *t)
{
    return json_pack("{s:I, s:o, s:o, s:{s:o, s:o}}", "trials", (json_int_t)t->sum.trials, "time_s",
                     json_num(t->sum.time_s), "energy_j", json_num(t->sum.energy_j), "best", "error",
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
        rc = replay_set(member(member(all, n->job), n->cores), n->version, tuning_json(&t->v[i]));
    }
    return replay_print_json(all, rc, e);
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
        table_number(&table, s->energy_j);
        best_cell(&table, s->best_error, s->best_error ? s->best_error->error : 0);
        best_cell(&table, s->best_error_resp, s->best_error_resp ? s->best_error_resp->error_resp : 0);
    }
    table_put(&table, &b, 0);
    table_done(&table);
    return cmd_print(&b);
}

int replay_tunings(const struct replay_args *o, const char *dir, struct err *e)
{
    struct tunings t = { 0 };
    int rc = read_tunings(&t, dir, o->lenient, e);
    int code = rc < 0 ? cmd_fail(e) : o->json ? print_tunings_json(&t, e) : print_tunings(&t);
    tunings_done(&t);
    return code;
}

/* --- replay online --- */

struct queue { /* one load and core number */
    char load[NAME_SIZE], cores[NAME_SIZE];
    struct tune_online v1, v2;
    struct tune_replay_result result;
};

struct queues {
    struct queue *v;
    size_t n;
};

/* "TuneV1Load_<load>_<cores>.csv"; the load may hold a '_'. Returns 1 or 2, 0: it is none of these. */
static int parse_queue_name(struct queue *out, const char *file)
{
    int version = strncmp(file, "TuneV1Load_", 11) == 0 ? 1 : strncmp(file, "TuneV2Load_", 11) == 0 ? 2 : 0;
    if (version == 0 || !replay_ends_with(file, ".csv"))
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
        rc = tune_replay(&q->v[i].result, &q->v[i].v1, &q->v[i].v2, e);
    return rc;
}

static void queues_done(struct queues *q)
{
    for (size_t i = 0; i < q->n; i++) {
        tune_online_done(&q->v[i].v1);
        tune_online_done(&q->v[i].v2);
        tune_replay_result_done(&q->v[i].result);
    }
    free(q->v);
}

static json_t *figures_json(const struct tune_replay_figures *f)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "response_s", json_num(f->response_s), "tuning_s", json_num(f->tuning_s),
                     "training_s", json_num(f->training_s), "energy_j", json_num(f->energy_j));
}

static json_t *online_job_json(const struct tune_replay_job *j)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:{s:o, s:o}}", "v1", figures_json(&j->v1), "v2", figures_json(&j->v2),
                     "pipetune", figures_json(&j->pipetune), "pipetune_on_v2", figures_json(&j->pipetune_on_v2), "fcfs",
                     "v1", json_num(j->fcfs_v1_s), "v2", json_num(j->fcfs_v2_s));
}

static int print_queues_json(const struct queues *q, struct err *e)
{
    json_t *all = json_object();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < q->n; i++) {
        json_t *at = member(member(all, q->v[i].load), q->v[i].cores);
        const struct tune_replay_result *r = &q->v[i].result;
        for (size_t k = 0; rc == 0 && k < r->n; k++)
            rc = replay_set(at, r->jobs[k].name, online_job_json(&r->jobs[k]));
    }
    return replay_print_json(all, rc, e);
}

static void put_online_row(struct table *t, const struct queue *q, const struct tune_replay_job *j)
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

int replay_online(const struct replay_args *o, const char *dir, struct err *e)
{
    struct queues q = { 0 };
    int rc = read_queues(&q, dir, o->lenient, e);
    int code = rc < 0 ? cmd_fail(e) : o->json ? print_queues_json(&q, e) : print_queues(&q);
    queues_done(&q);
    return code;
}
