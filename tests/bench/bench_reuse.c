/* bench_reuse [--synthetic] [TRACE…]: how well profiles tell jobs apart, class keys hidden, in windows of 3 s at 1 Hz. Prints
 * confusion matrices as comments, and lines `name value unit [goal]`; of synthetic samples the names end in _counters (58 counters,
 * multiplexed) and _vm (software events and /proc alone), of traces in nothing.
 *   windows              that there were
 *   reuse_recognised     % of the windows of known jobs that are known, as that job. Of each class that has several runs the even ones
 *                        are learnt from and the odd ones looked at; of one run the even windows
 *   reuse_same_class     % that are, and the class with that batch size
 *   reuse_false_known    % of the windows of a job left out of training that are taken for known; each job in turn
 *   reuse_missed         % of the windows of known jobs that are unknown: a search that need not have been
 *   verdict_time         of one verdict, microseconds of CPU */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "clustering/model.h"
#include "cmd/model_profiles.h"
#include "tests/bench/gen_profiles.h"

enum { JOBS_MAX = 64, FIRST_SEED = 11, SEEDS = 5 }; /* the model's constants were chosen on seeds 1 to 5 */

struct tally {
    size_t windows, n[MODEL_REFUSED + 1], right,
        same_class; /* windows by decision; known as the right job, and class */
    double cpu_s;
    char job[JOBS_MAX][64];
    size_t n_jobs;
    size_t matrix[JOBS_MAX]
                 [JOBS_MAX + MODEL_REFUSED + 1]; /* of the windows looked at: as which job, or which decision */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_reuse: %s\n", what);
    exit(1);
}

static size_t job_index(struct tally *t, const char *name, size_t len)
{
    for (size_t i = 0; i < t->n_jobs; i++)
        if (strlen(t->job[i]) == len && strncmp(t->job[i], name, len) == 0)
            return i;
    if (t->n_jobs == JOBS_MAX || len >= sizeof t->job[0])
        die("too many jobs, or too long a name");
    memcpy(t->job[t->n_jobs], name, len);
    return t->n_jobs++;
}

/* --- which windows are learnt from --- */

struct split {
    const struct model_profiles *p;
    bool *learnt;
};

static size_t runs_of_class(const struct model_profiles *p, size_t class_at)
{
    size_t n = 0, last = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++) {
        n += p->list[i].class_at == class_at && p->list[i].run != last;
        last = p->list[i].class_at == class_at ? p->list[i].run : last;
    }
    return n;
}

/* Of windows in the order of runs: the number of its run, or its own, among those of its class. */
static void split_halves(struct split *s)
{
    for (size_t c = 0; c < s->p->keys.n; c++) {
        bool by_run = runs_of_class(s->p, c) > 1;
        size_t run = SIZE_MAX, number = SIZE_MAX;
        for (size_t i = 0; i < s->p->n; i++) {
            if (s->p->list[i].class_at != c)
                continue;
            number += !by_run || s->p->list[i].run != run;
            run = s->p->list[i].run;
            s->learnt[i] = number % 2 == 0;
        }
    }
}

static void train(struct model *m, const struct split *s)
{
    struct err e;
    struct model_sample *all = model_profiles_samples(s->p);
    size_t n = 0;
    for (size_t i = 0; all && i < s->p->n; i++)
        if (s->learnt[i])
            all[n++] = all[i];
    model_init(m);
    if (!all || model_train(m, &s->p->space, all, n, 1, &e) < 0)
        die(all ? e.text : "no memory");
    free(all);
}

/* --- looking --- */

static const char *job_of(const struct model_profiles *p, const char *key)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->keys.v[p->list[i].class_at], key) == 0)
            return p->list[i].job;
    return "?";
}

static void look(struct tally *t, const struct model *m, const struct model_profiles *p, const struct model_window *w)
{
    struct profile view = { 0 };
    struct model_verdict v;
    struct err e;
    clock_t begin = clock();
    if (model_view(&view, m, &p->space, &w->profile, &e) < 0)
        die(e.text);
    model_verdict(&v, m, &view);
    t->cpu_s += (double)(clock() - begin) / CLOCKS_PER_SEC;
    profile_done(&view);
    size_t job = job_index(t, w->job, strlen(w->job)), as = JOBS_MAX + v.decision;
    t->windows++;
    t->n[v.decision]++;
    if (v.decision == MODEL_KNOWN) {
        const struct model_class *c = model_class_of_cluster(m, v.near[0].cluster);
        const char *key = c ? c->key : "?", *name = job_of(p, key);
        as = job_index(t, name, strlen(name));
        t->right += as == job;
        t->same_class += strcmp(key, p->keys.v[w->class_at]) == 0;
    }
    t->matrix[job][as]++;
}

static void look_at_halves(struct tally *t, const struct model_profiles *p)
{
    struct split s = { p, calloc(p->n + 1, sizeof *s.learnt) };
    struct model m;
    if (!s.learnt)
        die("no memory");
    split_halves(&s);
    train(&m, &s);
    for (size_t i = 0; i < p->n; i++)
        if (!s.learnt[i])
            look(t, &m, p, &p->list[i]);
    printf("# %zu windows, %zu classes, %zu clusters, %zu features\n", p->n, p->keys.n, m.n_clusters, m.n);
    model_done(&m);
    free(s.learnt);
}

static bool is_seen_before(const struct model_profiles *p, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(p->list[i].job, p->list[at].job) == 0)
            return true;
    return false;
}

static void leave_one_out(struct tally *t, const struct model_profiles *p)
{
    struct split s = { p, calloc(p->n + 1, sizeof *s.learnt) };
    if (!s.learnt)
        die("no memory");
    for (size_t j = 0; j < p->n; j++) {
        struct model m;
        if (is_seen_before(p, j))
            continue;
        size_t others = 0;
        for (size_t i = 0; i < p->n; i++)
            others += s.learnt[i] = strcmp(p->list[i].job, p->list[j].job) != 0;
        if (others == 0)
            break;
        train(&m, &s);
        for (size_t i = 0; i < p->n; i++)
            if (!s.learnt[i])
                look(t, &m, p, &p->list[i]);
        model_done(&m);
    }
    free(s.learnt);
}

/* --- printing --- */

static void print_matrix(const struct tally *t, const char *what)
{
    printf("# %s: rows are the jobs, columns what they are taken for\n# %-16s", what, "");
    for (size_t j = 0; j < t->n_jobs; j++)
        printf(" %9.9s", t->job[j]);
    for (int d = MODEL_AMBIGUOUS; d <= MODEL_REFUSED; d++)
        printf(" %9s", model_decision_name((enum model_decision)d));
    for (size_t i = 0; i < t->n_jobs; i++) {
        printf("\n# %-16.16s", t->job[i]);
        for (size_t j = 0; j < t->n_jobs; j++)
            printf(" %9zu", t->matrix[i][j]);
        for (int d = MODEL_AMBIGUOUS; d <= MODEL_REFUSED; d++)
            printf(" %9zu", t->matrix[i][JOBS_MAX + d]);
    }
    printf("\n");
}

static void put(const char *name, const char *suffix, double value, const char *unit, const char *goal)
{
    printf("%s%s %.4g %s%s%s\n", name, suffix, value, unit, *goal ? " " : "", goal);
}

static double percent(size_t part, size_t of)
{
    return of ? 100 * (double)part / (double)of : (double)NAN;
}

static void print_figures(const struct tally *known, const struct tally *left_out, const char *suffix)
{
    put("windows", suffix, (double)(known->windows + left_out->windows), "1", "");
    put("reuse_recognised", suffix, percent(known->right, known->windows), "%", ">=95");
    put("reuse_same_class", suffix, percent(known->same_class, known->windows), "%", "");
    put("reuse_missed", suffix, percent(known->n[MODEL_UNKNOWN] + known->n[MODEL_REFUSED], known->windows), "%", "");
    put("reuse_false_known", suffix, percent(left_out->n[MODEL_KNOWN], left_out->windows), "%", "<=2");
    put("verdict_time", suffix, 1e6 * known->cpu_s / (double)(known->windows ? known->windows : 1), "us", "");
}

static void look_at_traces(const struct trace *traces, size_t n, struct tally *known, struct tally *left_out)
{
    struct model_profiles p;
    struct err e;
    if (model_profiles_init(&p, traces, n, &e) < 0)
        die(e.text);
    look_at_halves(known, &p);
    leave_one_out(left_out, &p);
    model_profiles_done(&p);
}

static void bench_synthetic(bool counters, const char *suffix)
{
    static struct tally known, left_out;
    memset(&known, 0, sizeof known);
    memset(&left_out, 0, sizeof left_out);
    for (unsigned seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
        struct trace t = { 0 };
        const struct gen_profiles g = { .jobs = 8,
                                        .batches = 3,
                                        .runs = 2,
                                        .epochs = 3,
                                        .epoch_s = 20,
                                        .counters = counters,
                                        .ratio = 0.08,
                                        .seed = seed };
        if (gen_profiles(&t, &g) < 0)
            die("no memory");
        look_at_traces(&t, 1, &known, &left_out);
        trace_done(&t);
    }
    print_matrix(&known, "known jobs");
    print_matrix(&left_out, "jobs left out");
    print_figures(&known, &left_out, suffix);
}

static void bench_traces(char *const *names, size_t n)
{
    static struct tally known, left_out;
    struct err e;
    struct trace *traces = calloc(n, sizeof *traces);
    for (size_t i = 0; traces && i < n; i++)
        if (trace_read(&traces[i], names[i], &e) < 0)
            die(e.text);
    if (!traces)
        die("no memory");
    look_at_traces(traces, n, &known, &left_out);
    if (known.windows > 0) {
        print_matrix(&known, "known jobs");
        print_matrix(&left_out, "jobs left out");
        print_figures(&known, &left_out, "");
    } else {
        printf("# the traces have no samples to make windows of\n");
    }
    for (size_t i = 0; i < n; i++)
        trace_done(&traces[i]);
    free(traces);
}

int main(int argc, char **argv)
{
    int first = 1;
    if (argc > 1 && strcmp(argv[1], "--synthetic") == 0) {
        bench_synthetic(true, "_counters");
        bench_synthetic(false, "_vm");
        first = 2;
    }
    if (argc > first)
        bench_traces(argv + first, (size_t)(argc - first));
    return 0;
}
