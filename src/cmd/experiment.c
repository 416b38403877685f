/* `experiment FILE`: studies of several jobs as they arrive, under several policies; simulated over a trace, or trained. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/io.h"
#include "base/own.h"
#include "base/suggest.h"
#include "cmd/cmd.h"
#include "cmd/experiment_parts.h"
#include "core/space.h"

#define FILE_MAX ((size_t)1 << 20)

#define FIELD(member) offsetof(struct experiment_args, member)
/* clang-format off */
static const struct opt_row experiment_rows[] = {
    { NULL, "simulate", OPT_FLAG, FIELD(simulate), NULL, 0, 0, NULL, NULL, "over a recorded trace, in seconds; nothing is trained" },
    { NULL, "trace", OPT_TEXT, FIELD(trace), NULL, 0, 0, NULL, "FILE", "that trace (.h5) or timeline (.csv); default: the file's 'trace'" },
    { NULL, "folder", OPT_TEXT, FIELD(folder), NULL, 0, 0, NULL, "DIR", "what comes of it: report.html, report.json, response.svg, csv/ (default: NAME.experiment; simulated, simulated/ in it)" },
    { NULL, "skip_idle", OPT_FLAG, FIELD(skip_idle), NULL, 0, 0, NULL, NULL, "do not wait for arrivals while nothing runs: the clock jumps, and the figures are the same" },
    { NULL, "json", OPT_FLAG, FIELD(json), NULL, 0, 0, NULL, NULL, "print the report as JSON" },
};
/* clang-format on */

void cmd_experiment_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(experiment_rows, NULL));
}

/* --- what the parts share --- */

void experiment_result_done(struct experiment_result *r)
{
    experiment_done(&r->x);
    free(r->arrivals);
    free(r->rows);
    free(r->trials.v);
}

int experiment_result_room(struct experiment_result *r, struct err *e)
{
    r->n = experiment_studies(&r->x);
    r->arrivals = calloc(r->n, sizeof *r->arrivals);
    r->rows = calloc(r->n * r->x.n_policies, sizeof *r->rows);
    return r->arrivals && r->rows ? 0 : err_sys(e, -ENOMEM, "experiment of %zu studies", r->n);
}

int experiment_keep_trial(void *ctx, const struct experiment_trial *t)
{
    struct experiment_trials *all = ctx;
    struct experiment_trial *grown = array_more(all->v, all->n, &all->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    all->v = grown;
    all->v[all->n++] = *t;
    return 0;
}

char *experiment_config(const struct experiment_result *r, size_t job)
{
    const char *path = r->x.jobs[job].config;
    AUTO_FREE char *dir = io_dirname(r->file);
    AUTO_FREE char *beside = dir ? io_join(dir, path) : NULL;
    if (!beside)
        return NULL;
    return strdup(!io_exists(path) && io_exists(beside) ? beside : path);
}

static bool is_rate(const char *name)
{
    return suggest_same(name, "learning_rate") || suggest_same(name, "lr");
}

static double number_of(const json_t *value)
{
    double x = value && json_is_string(value) ? strtod(json_string_value(value), NULL) : json_number_value(value);
    return x > 0 ? x : (double)NAN;
}

void experiment_read_hyper(const json_t *hyper, double *out_lr, double *out_batch)
{
    const char *key;
    json_t *value;
    *out_lr = *out_batch = NAN;
    json_object_foreach((json_t *)hyper, key, value)
    {
        if (is_rate(key))
            *out_lr = number_of(value);
        else if (space_is_batch(key) && isnan(*out_batch))
            *out_batch = number_of(value);
    }
}

/* --- the command --- */

static int read_file(struct json_doc *out, const char *file, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = io_read_file(&text, file, FILE_MAX, e);
    return rc == 0 ? json_doc_parse(out, file, buf_text(&text), text.len, e) : rc;
}

/* "dir/lenet.json" has its folder where it is run: lenet.experiment. */
static char *folder_of(const struct experiment_args *o, const char *file)
{
    AUTO_BUF struct buf path = BUF_INIT;
    const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file, *dot = strrchr(base, '.');
    if (o->folder)
        return strdup(o->folder);
    buf_put(&path, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
    buf_puts(&path, o->simulate ? ".experiment/simulated" : ".experiment");
    return buf_take(&path);
}

/* What the file names is looked for where configs look: in the working directory, else beside the file. */
static char *trace_of(const struct experiment_args *o, const struct experiment_result *r)
{
    if (o->trace || !r->x.trace)
        return o->trace ? strdup(o->trace) : NULL;
    AUTO_FREE char *dir = io_dirname(r->file);
    AUTO_FREE char *beside = dir ? io_join(dir, r->x.trace) : NULL;
    return strdup(beside && !io_exists(r->x.trace) && io_exists(beside) ? beside : r->x.trace);
}

static int simulate(struct experiment_result *r, const struct experiment_args *o, struct err *e)
{
    AUTO_FREE char *trace = trace_of(o, r);
    if (!trace)
        return err_set(e, -EINVAL, "a simulation needs recorded runs: --trace FILE, or 'trace' in '%s'", r->file);
    return experiment_play(r, trace, e);
}

static int print_result(const struct experiment_result *r, const struct experiment_args *o, const char *folder)
{
    if (o->json)
        return cmd_print_json(experiment_json(r));
    AUTO_BUF struct buf b = BUF_INIT;
    experiment_print(r, &b, 0);
    buf_printf(&b, "\nreport, JSON and CSVs: %s/\n", folder);
    return cmd_print(&b);
}

static int run(const struct experiment_args *o, const char *file, struct err *e)
{
    struct experiment_result r = { .file = file };
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    AUTO_FREE char *folder = folder_of(o, file);
    int rc = folder ? read_file(&doc, file, e) : err_sys(e, -ENOMEM, "cannot read '%s'", file);
    if (rc == 0)
        rc = experiment_parse(&r.x, &doc, e);
    if (rc == 0)
        rc = o->simulate ? simulate(&r, o, e) : experiment_train(&r, doc.root, folder, o->skip_idle, e);
    if (rc == 0)
        rc = experiment_write(&r, folder, e);
    int code = rc < 0 ? cmd_fail(e) : print_result(&r, o, folder);
    experiment_result_done(&r);
    return rc == -EINTR ? CMD_INTERRUPTED : code;
}

int cmd_experiment(int argc, char **argv)
{
    struct experiment_args o = { 0 };
    struct opt_set set = OPT_SET(experiment_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e = { 0 };
    int code;
    if (!cmd_options("experiment", argc, argv, &set, 1, &words, 1, &code)) {
        if (words.n == 1)
            code = run(&o, words.v[0], &e);
        else
            code = (err_set(&e, -EINVAL, "no experiment: pipetune experiment FILE"), cmd_fail(&e));
    }
    opt_done(&set);
    return code;
}
