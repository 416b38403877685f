/* What came of an experiment: as text, as JSON, and as a folder of files. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/experiment_parts.h"
#include "view/table.h"

/* --- for people --- */

static const char *job_name(const struct experiment_result *r, size_t job)
{
    return job == EXPERIMENT_ALL ? "all" : r->x.jobs[job].name;
}

static struct experiment_mean mean_of(const struct experiment_result *r, size_t policy, size_t job,
                                      enum experiment_figure f)
{
    return experiment_mean_of(r->rows, r->n * r->x.n_policies, policy, job, f);
}

/* Three digits, and all of those before the point: "225", "57.3". */
static const char *short_digits(double x, char out[32])
{
    (void)snprintf(out, 32, isfinite(x) && fabs(x) >= 100 ? "%.0f" : "%.3g", x);
    return isfinite(x) ? out : "-";
}

/* "225 ± 57.3"; the mean alone where there is one row. */
static void mean_cell(struct table *t, struct experiment_mean m)
{
    char mean[32], half[32];
    bool alike = m.half < fabs(m.mean) * 1e-6; /* but for rounding */
    if (isfinite(m.half))
        table_cellf(t, "%s ± %s", short_digits(m.mean, mean), short_digits(alike ? 0 : m.half, half));
    else
        table_cell(t, short_digits(m.mean, mean));
}

static void put_row(struct table *t, const struct experiment_result *r, size_t policy, size_t job)
{
    struct experiment_mean response = mean_of(r, policy, job, EXPERIMENT_RESPONSE);
    double first = mean_of(r, 0, job, EXPERIMENT_RESPONSE).mean;
    table_cell(t, job_name(r, job));
    table_cell(t, r->x.policies[policy]->name);
    table_cellf(t, "%zu", response.n);
    for (int f = 0; f < EXPERIMENT_FIGURES; f++)
        mean_cell(t, mean_of(r, policy, job, (enum experiment_figure)f));
    if (isfinite(response.mean) && first > 0)
        table_cellf(t, "%.3f", response.mean / first);
    else
        table_cell(t, "-");
}

static void put_means(struct buf *b, const struct experiment_result *r, size_t width)
{
    char over[64];
    const char *heads[] = {
        "!job", "!policy", "!>n", "!>queue", "!>tuning", ">training", "!>response", ">J", over, NULL
    };
    struct table t;
    (void)snprintf(over, sizeof over, "!>/ %s", r->x.policies[0]->name);
    table_init(&t, heads);
    for (size_t job = 0; job < r->x.n_jobs; job++)
        for (size_t p = 0; p < r->x.n_policies; p++)
            put_row(&t, r, p, job);
    for (size_t p = 0; p < r->x.n_policies && r->x.n_jobs > 1; p++)
        put_row(&t, r, p, EXPERIMENT_ALL);
    table_put(&t, b, width);
    table_done(&t);
}

static void put_trials(struct buf *b, const struct experiment_result *r, size_t width)
{
    static const char *const heads[] = { "policy",  "job",     "!>trial", ">batch",    ">learning rate",
                                         ">epochs", "!>error", "!>time",  ">energy J", NULL };
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < r->trials.n; i++) {
        const struct experiment_trial *one = &r->trials.v[i];
        const struct experiment_row *row = &r->rows[one->row];
        table_cell(&t, r->x.policies[row->policy]->name);
        table_cell(&t, r->x.jobs[row->job].name);
        table_cellf(&t, "%d", one->number);
        table_number(&t, one->batch);
        table_number(&t, one->lr);
        table_cellf(&t, "%d", one->epochs);
        table_number(&t, one->error);
        table_seconds(&t, one->seconds);
        table_number(&t, one->joules);
    }
    buf_putc(b, '\n');
    table_put(&t, b, width);
    table_done(&t);
}

static void put_what(struct buf *b, const struct experiment_result *r)
{
    char time[32];
    buf_printf(b, "%s%s: ", r->file, r->simulated ? ", simulated over recorded runs" : "");
    if (r->x.offline)
        buf_printf(b, "a study of each of %zu jobs\n", r->x.n_jobs);
    else
        buf_printf(b, "%zu arrivals at load %g of %s a study, seed %lld\n", r->n, r->x.load,
                   table_duration(r->service_s, time), (long long)r->x.seed);
}

static void put_failed(struct buf *b, const struct experiment_result *r)
{
    size_t failed = 0, interrupted = 0;
    for (size_t i = 0; i < r->n * r->x.n_policies; i++) {
        failed += r->rows[i].failed;
        interrupted += r->rows[i].interruptions > 0;
    }
    if (failed)
        buf_printf(b, "\n%zu of %zu studies had no trial that finished: they are in no mean\n", failed,
                   r->n * r->x.n_policies);
    if (interrupted)
        buf_printf(b, "\n%zu of %zu studies were interrupted and gone on with: what that cost is in their times\n",
                   interrupted, r->n * r->x.n_policies);
}

void experiment_print(const struct experiment_result *r, struct buf *b, size_t width)
{
    put_what(b, r);
    buf_puts(b, "means of n studies in seconds, ± half of the 90 % interval; the last column is the response over the "
                "first policy's\n\n");
    put_means(b, r, width);
    if (r->x.offline)
        put_trials(b, r, width);
    put_failed(b, r);
}

/* --- JSON --- */

static json_t *mean_json(struct experiment_mean m)
{
    return json_pack("{s:o, s:o, s:I}", "mean", json_num(m.mean), "half", json_num(m.half), "n", (json_int_t)m.n);
}

static json_t *figures_json(const struct experiment_result *r, size_t policy, size_t job)
{
    json_t *all = json_object();
    for (int f = 0; all && f < EXPERIMENT_FIGURES; f++)
        if (json_object_set_new(all, experiment_figure_names[f],
                                mean_json(mean_of(r, policy, job, (enum experiment_figure)f))) < 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

static json_t *policies_json(const struct experiment_result *r)
{
    json_t *all = json_object();
    for (size_t p = 0; all && p < r->x.n_policies; p++) {
        json_t *one = json_object();
        int rc = json_object_set_new(all, r->x.policies[p]->name, one);
        for (size_t job = 0; rc == 0 && job <= r->x.n_jobs; job++) {
            size_t which = job < r->x.n_jobs ? job : EXPERIMENT_ALL;
            rc = json_object_set_new(one, job_name(r, which), figures_json(r, p, which));
        }
        if (rc < 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static json_t *study_json(const struct experiment_result *r, const struct experiment_row *row)
{
    json_t *one = json_pack(
        "{s:s, s:s, s:i, s:o, s:o, s:o, s:b, s:i, s:i, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:s?}", "policy",
        r->x.policies[row->policy]->name, "job", r->x.jobs[row->job].name, "number", row->number, "arrived_s",
        json_num(row->arrived_s), "started_s", json_num(row->started_s), "ended_s", json_num(row->ended_s), "failed",
        row->failed, "interruptions", row->interruptions, "trials", row->trials, "error", json_num(row->error), "lr",
        json_num(row->lr), "batch", json_num(row->batch), "epochs", row->epochs, "cores", row->cores, "training_j",
        json_num(row->training_j), "coverage", json_num(row->coverage), "source", row->source);
    for (int f = 0; one && f < EXPERIMENT_FIGURES; f++)
        if (json_object_set_new(one, experiment_figure_names[f],
                                json_num(experiment_row_figure(row, (enum experiment_figure)f))) < 0) {
            json_decref(one);
            return NULL;
        }
    return one;
}

static json_t *trial_json(const struct experiment_result *r, const struct experiment_trial *t)
{
    const struct experiment_row *row = &r->rows[t->row];
    return json_pack("{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "policy", r->x.policies[row->policy]->name, "job",
                     r->x.jobs[row->job].name, "trial", t->number, "epochs", t->epochs, "batch", json_num(t->batch),
                     "lr", json_num(t->lr), "error", json_num(t->error), "seconds", json_num(t->seconds), "energy_j",
                     json_num(t->joules));
}

static json_t *arrivals_json(const struct experiment_result *r)
{
    if (r->x.offline)
        return json_null();
    return json_pack("{s:s, s:o, s:I, s:I, s:o}", "process", r->x.process, "load", json_num(r->x.load), "count",
                     (json_int_t)r->x.count, "seed", (json_int_t)r->x.seed, "service_s", json_num(r->service_s));
}

json_t *experiment_json(const struct experiment_result *r)
{
    json_t *studies = json_array(), *trials = json_array();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->n * r->x.n_policies; i++)
        rc = json_array_append_new(studies, study_json(r, &r->rows[i]));
    for (size_t i = 0; rc == 0 && i < r->trials.n; i++)
        rc = json_array_append_new(trials, trial_json(r, &r->trials.v[i]));
    json_t *all = json_pack("{s:o, s:b, s:i, s:o, s:o, s:o, s:o}", "experiment", json_bytes(r->file), "simulated",
                            r->simulated, "cores", r->cores, "arrivals", arrivals_json(r), "policies", policies_json(r),
                            "studies", studies, "trials", trials);
    if (rc == 0)
        return all;
    json_decref(all);
    return NULL;
}

/* --- files --- */

static int write_file(const char *folder, const char *name, const struct buf *b, struct err *e)
{
    AUTO_FREE char *path = io_join(folder, name);
    if (b->failed || !path)
        return err_sys(e, -ENOMEM, "cannot write '%s'", name);
    return io_write_atomic(path, b->data, b->len, 0644, e);
}

/* What `replay online` reads of V1 and V2; other policies lie beside them under names of their own. */
static void online_name(char out[160], const struct experiment_result *r, size_t policy)
{
    const char *name = r->x.policies[policy]->name;
    char as[32], load[NUM_TEXT_MAX];
    (void)snprintf(as, sizeof as, "%s", name);
    as[0] = (char)(as[0] >= 'a' && as[0] <= 'z' ? as[0] - 'a' + 'A' : as[0]);
    (void)snprintf(out, 160, "Tune%sLoad_%s_%d.csv", as, num_print(r->x.load, load), r->cores);
}

static int write_online(const struct experiment_result *r, const char *folder, size_t policy, struct err *e)
{
    char name[160];
    AUTO_BUF struct buf b = BUF_INIT;
    size_t left_out = experiment_put_online_csv(&b, &r->x, r->rows + policy * r->n, r->n, policy);
    online_name(name, r, policy);
    if (left_out)
        cmd_say("%s: %zu of %zu studies left out: they failed, or have no learning rate or batch", name, left_out,
                r->n);
    return write_file(folder, name, &b, e);
}

static int write_offline(const struct experiment_result *r, const char *folder, size_t row, struct err *e)
{
    char name[160];
    AUTO_BUF struct buf b = BUF_INIT;
    const struct experiment_row *of = &r->rows[row];
    const char *policy = r->x.policies[of->policy]->name;
    size_t left_out = experiment_put_offline_csv(&b, r->trials.v, r->trials.n, row);
    if (left_out)
        cmd_say("job '%s': %zu trials left out of its CSV: they have no learning rate or batch",
                r->x.jobs[of->job].name, left_out);
    bool version = policy[0] == 'v'; /* "TuneV1_…": what the reader knows as one; others are part of the job's name */
    (void)snprintf(name, sizeof name, "%s%s_%s_%d.csv", version ? "TuneV" : "", version ? policy + 1 : policy,
                   r->x.jobs[of->job].name, r->cores);
    return write_file(folder, name, &b, e);
}

static int write_csvs(const struct experiment_result *r, const char *folder, struct err *e)
{
    AUTO_FREE char *csv = io_join(folder, "csv");
    int rc = csv ? io_mkdirs(csv, e) : err_sys(e, -ENOMEM, "cannot write '%s'", folder);
    for (size_t p = 0; rc == 0 && p < r->x.n_policies && !r->x.offline; p++)
        rc = write_online(r, csv, p, e);
    for (size_t i = 0; rc == 0 && i < r->n * r->x.n_policies && r->x.offline; i++)
        rc = write_offline(r, csv, i, e);
    return rc;
}

int experiment_write(const struct experiment_result *r, const char *folder, struct err *e)
{
    AUTO_BUF struct buf html = BUF_INIT, json = BUF_INIT, picture = BUF_INIT;
    AUTO_JSON json_t *j = experiment_json(r);
    if (!j)
        return err_sys(e, -ENOMEM, "cannot write '%s'", folder);
    json_put(&json, j, JSON_STYLE_INDENT);
    buf_putc(&json, '\n');
    experiment_put_html(&html, r);
    experiment_put_picture(&picture, r);
    int rc = write_csvs(r, folder, e);
    if (rc == 0)
        rc = write_file(folder, "report.json", &json, e);
    if (rc == 0)
        rc = write_file(folder, "response.svg", &picture, e);
    if (rc == 0)
        rc = write_file(folder, "report.html", &html, e);
    return rc;
}
