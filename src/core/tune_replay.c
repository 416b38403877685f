#include "core/tune_replay.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

/* --- names of jobs as numbers --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All names of both files, sorted, each once. Returns how many. */
static size_t list_names(const char **names, const struct tune_online *v1, const struct tune_online *v2)
{
    size_t all = 0, n = 0;
    for (size_t i = 0; i < v1->n; i++)
        names[all++] = v1->rows[i].job;
    for (size_t i = 0; i < v2->n; i++)
        names[all++] = v2->rows[i].job;
    if (all > 0)
        qsort(names, all, sizeof *names, by_name);
    for (size_t i = 0; i < all; i++)
        if (n == 0 || strcmp(names[n - 1], names[i]) != 0)
            names[n++] = names[i];
    return n;
}

static void number_jobs(size_t *out, const struct tune_online *rows, const char *const *names, size_t n)
{
    for (size_t i = 0; i < rows->n; i++) {
        const char *name = rows->rows[i].job;
        out[i] = (size_t)((const char *const *)bsearch(&name, names, n, sizeof *names, by_name) - names);
    }
}

/* --- the queue --- */

void tune_replay_fcfs(double *out, const struct tune_online *rows, const size_t *jobs, bool *met)
{
    double tuned_s = 0, previous_end = -INFINITY;
    for (size_t i = 0; i < rows->n; i++) {
        const struct tune_online_row *r = &rows->rows[i];
        double arrival = tuned_s - r->queue_s;
        double service = met[jobs[i]] ? r->training_s - r->queue_s : r->tuning_s;
        double start = isnan(previous_end) || previous_end > arrival ? previous_end : arrival;
        previous_end = start + service;
        out[i] = previous_end - arrival;
        tuned_s += r->tuning_s;
        met[jobs[i]] = true;
    }
}

/* --- means --- */

/* Sums over the rows of one job while they are read; afterwards, means. */
struct sums {
    size_t n;
    struct tune_replay_figures tuned, trained; /* v1 or v2; pipetune on it */
    double fcfs_s;
};

static void add(struct sums *s, const struct tune_online_row *r, double fcfs_s)
{
    s->n++;
    s->tuned.response_s += r->response_s;
    s->tuned.tuning_s += r->tuning_s;
    s->tuned.training_s += r->training_s;
    s->tuned.energy_j += r->tuning_j;
    s->trained.training_s += r->training_s;
    s->trained.energy_j += r->training_j;
    s->fcfs_s += fcfs_s;
}

/* Without a row, 0/0 is the NAN that it should be. */
static void make_means(struct sums *s)
{
    double n = (double)s->n;
    s->tuned.response_s /= n;
    s->tuned.tuning_s /= n;
    s->tuned.training_s /= n;
    s->tuned.energy_j /= n;
    s->trained.training_s /= n;
    s->trained.energy_j /= n;
    s->trained.response_s = s->trained.training_s;
    s->trained.tuning_s = NAN;
    s->fcfs_s /= n;
}

/* sums[0…n-1] of the jobs, sums[n] of all. */
static int sum_version(struct sums *sums, size_t n, const struct tune_online *rows, const char *const *names)
{
    size_t room = rows->n + 1; /* calloc(0) may be NULL */
    AUTO_FREE size_t *jobs = calloc(room, sizeof *jobs);
    AUTO_FREE double *fcfs_s = calloc(room, sizeof *fcfs_s);
    AUTO_FREE bool *met = calloc(n + 1, sizeof *met);
    if (!jobs || !fcfs_s || !met)
        return -ENOMEM;
    number_jobs(jobs, rows, names, n);
    tune_replay_fcfs(fcfs_s, rows, jobs, met);
    for (size_t i = 0; i < rows->n; i++) {
        add(&sums[jobs[i]], &rows->rows[i], fcfs_s[i]);
        add(&sums[n], &rows->rows[i], fcfs_s[i]);
    }
    for (size_t i = 0; i <= n; i++)
        make_means(&sums[i]);
    return 0;
}

static struct tune_replay_job job_of(const char *name, const struct sums *v1, const struct sums *v2)
{
    return (struct tune_replay_job){
        .name = name,
        .v1 = v1->tuned,
        .v2 = v2->tuned,
        .pipetune = v1->trained,
        .pipetune_on_v2 = v2->trained,
        .fcfs_v1_s = v1->fcfs_s,
        .fcfs_v2_s = v2->fcfs_s,
    };
}

int tune_replay(struct tune_replay_result *out, const struct tune_online *v1, const struct tune_online *v2,
                struct err *e)
{
    AUTO_FREE const char **names = calloc(v1->n + v2->n + 1, sizeof *names);
    size_t n = names ? list_names(names, v1, v2) : 0;
    AUTO_FREE struct sums *of_v1 = calloc(n + 1, sizeof *of_v1);
    AUTO_FREE struct sums *of_v2 = calloc(n + 1, sizeof *of_v2);
    AUTO_FREE struct tune_replay_job *jobs = calloc(n + 1, sizeof *jobs);
    if (!names || !of_v1 || !of_v2 || !jobs || sum_version(of_v1, n, v1, names) < 0 ||
        sum_version(of_v2, n, v2, names) < 0)
        return err_sys(e, -ENOMEM, "cannot replay %zu rows", v1->n + v2->n);
    for (size_t i = 0; i <= n; i++)
        jobs[i] = job_of(i < n ? names[i] : "all", &of_v1[i], &of_v2[i]);
    *out = (struct tune_replay_result){ MOVE_PTR(jobs), n + 1 };
    return 0;
}

void tune_replay_result_done(struct tune_replay_result *r)
{
    if (!r)
        return;
    free(r->jobs);
    *r = (struct tune_replay_result){ 0 };
}

/* --- offline: what a file's name says --- */

static bool is_number(const char *piece, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isdigit((unsigned char)piece[i]))
            return false;
    return len > 0;
}

/* "V1", "v2", "TuneV1", "TuneV2Offline": where the digits are, and how many; 0: it is no version. */
static size_t version_digits(const char *piece, size_t len, size_t *out_at)
{
    size_t at = len > 4 && strncmp(piece, "Tune", 4) == 0 ? 4 : 0, n = 0;
    if (at >= len || tolower((unsigned char)piece[at]) != 'v')
        return 0;
    at++;
    while (at + n < len && isdigit((unsigned char)piece[at + n]))
        n++;
    if (at == 1 && n < len - at) /* "v1x" alone may be a job's name */
        return 0;
    *out_at = at;
    return n;
}

static void set_text(char *to, size_t size, const char *text, size_t len)
{
    (void)snprintf(to, size, "%.*s", (int)(len < size ? len : size - 1), text);
}

static void add_to_job(struct tune_name *out, const char *text, size_t len)
{
    size_t have = strlen(out->job);
    if (len > 0 && have + 1 < sizeof out->job)
        (void)snprintf(out->job + have, sizeof out->job - have, "%s%.*s", have ? "_" : "", (int)len, text);
}

static void read_piece(struct tune_name *out, char behind[TUNE_JOB_MAX], const char *piece, size_t len)
{
    size_t at = 0, digits = version_digits(piece, len, &at);
    if (digits > 0 && !*out->version) {
        (void)snprintf(out->version, sizeof out->version, "v%.*s", digits < 8 ? (int)digits : 8, piece + at);
        set_text(behind, TUNE_JOB_MAX, piece + at + digits, len - at - digits);
    } else if (is_number(piece, len)) {
        if (*out->cores)
            add_to_job(out, out->cores, strlen(out->cores)); /* only the last number is the cores */
        set_text(out->cores, sizeof out->cores, piece, len);
    } else {
        add_to_job(out, piece, len);
    }
}

void tune_name_parse(struct tune_name *out, const char *file)
{
    size_t len = strlen(file);
    if (len > 4 && strcmp(file + len - 4, ".csv") == 0)
        len -= 4;
    *out = (struct tune_name){ 0 };
    char behind[TUNE_JOB_MAX] =
        ""; /* the version: "Offline" of "TuneV1Offline_lenet_8", but "Lenet" of "TuneV1Lenet_8" */
    for (size_t at = 0; at <= len;) {
        size_t n = 0;
        while (at + n < len && file[at + n] != '_')
            n++;
        read_piece(out, behind, file + at, n);
        at += n + 1;
    }
    if (!*out->job)
        memcpy(out->job, behind, sizeof out->job);
    if (!*out->job)
        set_text(out->job, sizeof out->job, "-", 1);
    if (!*out->cores)
        set_text(out->cores, sizeof out->cores, "-", 1);
    if (!*out->version)
        set_text(out->version, sizeof out->version, "-", 1);
}

int tune_name_compare(const struct tune_name *a, const struct tune_name *b)
{
    int by_job = strcmp(a->job, b->job);
    unsigned long long x = strtoull(a->cores, NULL, 10), y = strtoull(b->cores, NULL, 10);
    if (by_job != 0)
        return by_job;
    if (x != y)
        return x < y ? -1 : 1;
    int by_cores = strcmp(a->cores, b->cores);
    return by_cores != 0 ? by_cores : strcmp(a->version, b->version);
}

/* --- offline: sums --- */

/* NAN is less than nothing, so a row that lacks the figure is never the best. */
static bool better(double x, double best)
{
    return !isnan(x) && (isnan(best) || x < best);
}

void tune_sum_of(struct tune_sum *out, const struct tune_offline *rows)
{
    *out = (struct tune_sum){ .trials = rows->n };
    for (size_t i = 0; i < rows->n; i++) {
        const struct tune_offline_row *r = &rows->rows[i];
        out->time_s += r->training_s;
        out->energy_j += r->energy_j;
        if (better(r->error, out->best_error ? out->best_error->error : (double)NAN))
            out->best_error = r;
        if (better(r->error_resp, out->best_error_resp ? out->best_error_resp->error_resp : (double)NAN))
            out->best_error_resp = r;
    }
}
