#include "core/experiment.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/own.h"
#include "base/suggest.h"
#include "core/csv.h"
#include "core/rng.h"
#include "core/stats.h"

/* --- the file --- */

static const char *const processes[] = { "poisson", NULL };
static const char *const measured[] = { "measured", NULL };

#define FIELD(member) offsetof(struct experiment, member)
/* clang-format off */
static const struct opt_row file_rows[] = {
    { "", "trace", OPT_TEXT, FIELD(trace), NULL, 0, 0, NULL, "FILE", "recorded runs, for a simulation" },
    { "arrivals", "process", OPT_CHOICE, FIELD(process), "poisson", 0, 0, processes, "NAME", "when studies arrive" },
    { "arrivals", "load", OPT_REAL, FIELD(load), "0.95", 0.001, 100, NULL, "X", "the studies' time under the first policy, over the time they arrive in" },
    { "arrivals", "count", OPT_INT, FIELD(count), "9", 1, EXPERIMENT_COUNT_MAX, NULL, "N", "how many studies" },
    { "arrivals", "seed", OPT_INT, FIELD(seed), "1", 0, 1e15, NULL, "S", "which arrivals" },
    { "arrivals", "service_s", OPT_REAL, FIELD(service_s), "measured", 1e-6, 1e9, measured, "S", "a study's mean seconds under the first policy" },
};
/* clang-format on */

static const char *const file_keys[] = { "jobs", "arrivals", "policies", NULL };
static const char *const job_keys[] = { "config", "weight", "name", "workload" };

static struct opt_set rows_into(struct experiment *x)
{
    return OPT_SET(file_rows, x);
}

static bool is_job_name(const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len >= EXPERIMENT_NAME_MAX || name[0] == '.' || name[0] == '-' || strcmp(name, "all") == 0)
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
            return false;
    return true;
}

/* "dir/lenet-small.conf" is lenet-small. */
static void name_of_config(char out[EXPERIMENT_NAME_MAX], const char *config)
{
    const char *base = strrchr(config, '/');
    base = base ? base + 1 : config;
    const char *dot = strrchr(base, '.');
    (void)snprintf(out, EXPERIMENT_NAME_MAX, "%.*s", (int)(dot && dot > base ? (size_t)(dot - base) : strlen(base)),
                   base);
}

static int check_job_keys(const struct json_doc *doc, const char *path, const json_t *job, struct err *e)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)job, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(job_keys); i++)
            known |= strcmp(key, job_keys[i]) == 0;
        if (known)
            continue;
        char at[128];
        (void)snprintf(at, sizeof at, "%s/%.60s", path, key);
        const char *near = suggest_nearest(key, job_keys, ARRAY_LEN(job_keys));
        if (near)
            return json_doc_err(doc, at, e, -EINVAL, "is not known: did you mean '%s'?", near);
        return json_doc_err(doc, at, e, -EINVAL, "is not known: a job has config, weight, name, workload");
    }
    return 0;
}

/* A member that is a text; NULL where there is none. */
static int read_text(char **out, const struct json_doc *doc, const char *path, const json_t *job, const char *key,
                     struct err *e)
{
    const json_t *value = json_object_get(job, key);
    char at[128];
    (void)snprintf(at, sizeof at, "%s/%s", path, key);
    if (!value)
        return 0;
    if (!json_is_string(value) || !*json_string_value(value))
        return json_doc_err(doc, at, e, -EINVAL, "must be a string");
    *out = strdup(json_string_value(value));
    return *out ? 0 : err_sys(e, -ENOMEM, "cannot read '%s'", doc->name);
}

static int read_name(struct experiment_job *to, const struct json_doc *doc, const char *path, const char *name,
                     struct err *e)
{
    if (name)
        (void)snprintf(to->name, sizeof to->name, "%s", name);
    else
        name_of_config(to->name, to->config);
    if (is_job_name(name ? name : to->name))
        return 0;
    return json_doc_err(doc, path, e, -EINVAL,
                        "needs a 'name' of 1 to %d letters, digits, '.', '-', '_', other than 'all'; '%.60s' is none",
                        EXPERIMENT_NAME_MAX - 1, name ? name : to->name);
}

static int read_weight(double *out, const struct json_doc *doc, const char *path, const json_t *value, struct err *e)
{
    char at[128];
    (void)snprintf(at, sizeof at, "%s/weight", path);
    *out = value ? json_number_value(value) : 1;
    if (value && (!json_is_number(value) || !(*out > 0) || *out > 1e9))
        return json_doc_err(doc, at, e, -EINVAL, "must be a number above 0: how often the job arrives");
    return 0;
}

static int read_job(struct experiment *x, const struct json_doc *doc, const char *path, const json_t *job,
                    struct err *e)
{
    struct experiment_job *to = &x->jobs[x->n_jobs++]; /* experiment_done() frees what is there */
    AUTO_FREE char *name = NULL;
    if (!json_is_object(job))
        return json_doc_err(doc, path, e, -EINVAL, "must be an object: {\"config\": \"FILE\", \"weight\": 1}");
    int rc = check_job_keys(doc, path, job, e);
    if (rc == 0)
        rc = read_text(&to->config, doc, path, job, "config", e);
    if (rc == 0 && !to->config)
        rc = json_doc_err(doc, path, e, -EINVAL, "needs a 'config': the file of its study");
    if (rc == 0)
        rc = read_text(&to->workload, doc, path, job, "workload", e);
    if (rc == 0)
        rc = read_text(&name, doc, path, job, "name", e);
    if (rc == 0)
        rc = read_name(to, doc, path, name, e);
    return rc == 0 ? read_weight(&to->weight, doc, path, json_object_get(job, "weight"), e) : rc;
}

static int read_jobs(struct experiment *x, const struct json_doc *doc, struct err *e)
{
    const json_t *jobs = json_object_get(doc->root, "jobs");
    if (!json_is_array(jobs) || json_array_size(jobs) == 0 || json_array_size(jobs) > EXPERIMENT_JOBS_MAX)
        return json_doc_err(doc, "jobs", e, -EINVAL, "must be a list of 1 to %d jobs: [{\"config\": \"FILE\"}, …]",
                            EXPERIMENT_JOBS_MAX);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(jobs); i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "jobs/%zu", i);
        rc = read_job(x, doc, path, json_array_get(jobs, i), e);
        for (size_t k = 0; rc == 0 && k < i; k++)
            if (strcmp(x->jobs[k].name, x->jobs[i].name) == 0)
                rc = json_doc_err(doc, path, e, -EINVAL, "is called '%s', as another job is: give it another 'name'",
                                  x->jobs[i].name);
    }
    return rc;
}

static int add_policy(struct experiment *x, const struct json_doc *doc, const char *path, const char *name,
                      struct err *e)
{
    const struct policy *p = name ? policy_find(name) : NULL;
    if (!p) {
        size_t n = 0;
        while (policy_names[n])
            n++;
        const char *near = name ? suggest_nearest(name, policy_names, n) : NULL;
        if (near)
            return json_doc_err(doc, path, e, -EINVAL, "is no policy: did you mean '%s'?", near);
        return json_doc_err(doc, path, e, -EINVAL, "is no policy: there are v1, v2, paper, pipetune");
    }
    for (size_t i = 0; i < x->n_policies; i++)
        if (x->policies[i] == p)
            return json_doc_err(doc, path, e, -EINVAL, "is there twice: '%s'", name);
    x->policies[x->n_policies++] = p;
    return 0;
}

static int read_policies(struct experiment *x, const struct json_doc *doc, struct err *e)
{
    const json_t *list = json_object_get(doc->root, "policies");
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > EXPERIMENT_POLICIES_MAX)
        return json_doc_err(doc, "policies", e, -EINVAL, "must be a list of policies: [\"v1\", \"v2\", \"pipetune\"]");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "policies/%zu", i);
        rc = add_policy(x, doc, path, json_string_value(json_array_get(list, i)), e);
    }
    return rc;
}

int experiment_parse(struct experiment *out, const struct json_doc *doc, struct err *e)
{
    struct experiment x = { 0 };
    struct opt_set rows = rows_into(&x);
    if (!json_is_object(doc->root))
        return err_set(e, -EINVAL, "'%s' is no experiment: it must be an object with 'jobs' and 'policies'", doc->name);
    x.offline = json_object_get(doc->root, "arrivals") == NULL;
    int rc = opt_presets(&rows, e);
    if (rc == 0)
        rc = opt_read_section(&rows, doc, "", file_keys, e);
    if (rc == 0)
        rc = opt_read_section(&rows, doc, "arrivals", NULL, e);
    if (rc == 0)
        rc = read_jobs(&x, doc, e);
    if (rc == 0)
        rc = read_policies(&x, doc, e);
    if (rc < 0)
        experiment_done(&x);
    else
        *out = x;
    return rc;
}

void experiment_done(struct experiment *x)
{
    if (!x)
        return;
    struct opt_set rows = rows_into(x);
    opt_done(&rows);
    for (size_t i = 0; i < x->n_jobs; i++) {
        free(x->jobs[i].config);
        free(x->jobs[i].workload);
    }
    *x = (struct experiment){ 0 };
}

/* --- arrivals --- */

size_t experiment_studies(const struct experiment *x)
{
    return x->offline ? x->n_jobs : (size_t)x->count;
}

static size_t draw_job(const struct experiment *x, struct rng *r)
{
    double all = 0;
    for (size_t i = 0; i < x->n_jobs; i++)
        all += x->jobs[i].weight;
    double at = rng_unit(r) * all;
    size_t job = 0;
    while (job + 1 < x->n_jobs && at >= x->jobs[job].weight)
        at -= x->jobs[job++].weight;
    return job;
}

/* Each arrival draws twice whatever comes of it, so that jobs and gaps don't depend on each other. */
void experiment_arrive(struct experiment_arrival *out, const struct experiment *x, double service_s)
{
    struct rng r = rng_seeded((uint64_t)x->seed);
    double at_s = 0;
    for (size_t i = 0; i < experiment_studies(x); i++) {
        double gap = -log(1 - rng_unit(&r)); /* 0 <= unit < 1 */
        size_t job = draw_job(x, &r);
        if (x->offline) {
            out[i] = (struct experiment_arrival){ .at_s = 0, .job = i };
            continue;
        }
        at_s += i > 0 ? gap * service_s / x->load : 0;
        out[i] = (struct experiment_arrival){ .at_s = at_s, .job = job };
    }
}

double experiment_mean_service(const struct experiment *x, const double *seconds_of_jobs)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < x->n_jobs; i++) {
        sum += x->jobs[i].weight * seconds_of_jobs[i];
        weights += x->jobs[i].weight;
    }
    return sum / weights;
}

/* --- figures --- */

const char *const experiment_figure_names[EXPERIMENT_FIGURES] = {
    [EXPERIMENT_QUEUE] = "queue_s",       [EXPERIMENT_TUNING] = "tuning_s", [EXPERIMENT_TRAINING] = "training_s",
    [EXPERIMENT_RESPONSE] = "response_s", [EXPERIMENT_JOULES] = "energy_j",
};

double experiment_row_figure(const struct experiment_row *r, enum experiment_figure f)
{
    switch (f) {
    case EXPERIMENT_QUEUE: return r->started_s - r->arrived_s;
    case EXPERIMENT_TUNING: return r->ended_s - r->started_s;
    case EXPERIMENT_TRAINING: return r->training_s;
    case EXPERIMENT_RESPONSE: return r->ended_s - r->arrived_s;
    case EXPERIMENT_JOULES: return r->tuning_j;
    default: return NAN;
    }
}

/* Means and squares as they come (Welford): rows may be many, and no array of figures is needed. */
struct experiment_mean experiment_mean_of(const struct experiment_row *rows, size_t n, size_t policy, size_t job,
                                          enum experiment_figure f)
{
    struct experiment_mean m = { .n = 0, .mean = 0, .half = NAN };
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        double x = experiment_row_figure(&rows[i], f);
        bool counts = rows[i].policy == policy && (job == EXPERIMENT_ALL || rows[i].job == job) && !rows[i].failed;
        if (!counts || !isfinite(x))
            continue;
        double off = x - m.mean;
        m.mean += off / (double)++m.n;
        squares += off * (x - m.mean);
    }
    if (m.n == 0)
        m.mean = NAN;
    if (m.n > 1)
        m.half = stats_t90(m.n - 1) * sqrt(squares / (double)(m.n - 1) / (double)m.n);
    return m;
}

/* --- as CSV --- */

static void put_load(struct buf *b, const struct experiment *x)
{
    num_put(b, x->offline ? 0 : x->load);
}

static bool fits_a_row(double lr, double batch, int epochs)
{
    return lr > 0 && batch > 0 && epochs > 0;
}

size_t experiment_put_online_csv(struct buf *b, const struct experiment *x, const struct experiment_row *rows, size_t n,
                                 size_t policy)
{
    size_t left_out = 0;
    buf_puts(b, "load,job,cores,lr,batch,epochs,queue_s,tuning_s,response_s,error,training_s,objective,tuning_j,"
                "training_j\n");
    for (size_t i = 0; i < n; i++) {
        const struct experiment_row *r = &rows[i];
        if (r->policy != policy)
            continue;
        if (r->failed || r->cores < 1 || !fits_a_row(r->lr, r->batch, r->epochs)) {
            left_out++;
            continue;
        }
        double queue_s = experiment_row_figure(r, EXPERIMENT_QUEUE);
        put_load(b, x);
        buf_printf(b, ",%s,%d", x->jobs[r->job].name, r->cores);
        csv_put_next(b, r->lr);
        csv_put_next(b, r->batch);
        csv_put_next(b, r->epochs);
        csv_put_next(b, queue_s);
        csv_put_next(b, experiment_row_figure(r, EXPERIMENT_TUNING));
        csv_put_next(b, experiment_row_figure(r, EXPERIMENT_RESPONSE));
        csv_put_next(b, r->error);
        csv_put_next(b, queue_s + r->training_s);
        csv_put_next(b, NAN); /* what it was judged by is the error */
        csv_put_next(b, r->tuning_j);
        csv_put_next(b, r->training_j);
        buf_putc(b, '\n');
    }
    return left_out;
}

size_t experiment_put_offline_csv(struct buf *b, const struct experiment_trial *trials, size_t n, size_t row)
{
    size_t left_out = 0;
    buf_puts(b, "lr,epochs,batch,error,error_resp,training_s,energy_uj\n");
    for (size_t i = 0; i < n; i++) {
        const struct experiment_trial *t = &trials[i];
        if (t->row != row)
            continue;
        if (!fits_a_row(t->lr, t->batch, t->epochs)) {
            left_out++;
            continue;
        }
        num_put(b, t->lr);
        csv_put_next(b, t->epochs);
        csv_put_next(b, t->batch);
        csv_put_next(b, t->error);
        csv_put_next(b, NAN);
        csv_put_next(b, t->seconds);
        csv_put_next(b, t->joules * 1e6);
        buf_putc(b, '\n');
    }
    return left_out;
}
