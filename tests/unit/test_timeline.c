#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/timeline.h"
#include "tests/bench/gen_timeline.h"
#include "tests/fault.h"

struct given {
    const char *model;
    double batch;
    int cores;
    double memory_gb;
    enum timeline_status status;
    double startup_s;
    double durations[4]; /* up to the first 0 */
};

static void add(struct timeline *t, const struct given *g)
{
    struct timeline_run *r = timeline_add(t);
    assert_non_null(r);
    r->model = strdup(g->model);
    r->dataset = strdup("d");
    r->cores = g->cores;
    r->memory_gb = g->memory_gb;
    r->batch = g->batch;
    r->status = g->status;
    r->startup_s = g->startup_s;
    r->epochs = calloc(ARRAY_LEN(g->durations), sizeof *r->epochs);
    assert_non_null(r->epochs);
    for (size_t i = 0; i < ARRAY_LEN(g->durations) && g->durations[i] != 0; i++)
        r->epochs[r->n_epochs++].duration_s = g->durations[i];
}

/* Two workloads, not in the order of their names; settings and batches in disorder. */
static const struct given given[] = {
    { "z", 64, 4, 8, RUN_COMPLETE, 10, { 30, 20, 22 } }, { "a", 8, 1, 1, RUN_COMPLETE, 99, { 5 } },
    { "z", 32, 8, 4, RUN_COMPLETE, 12, { 9, 8 } },       { "z", 64, 2, 8, RUN_FAILED, NAN, { 0 } },
    { "z", 64, 4, 4, RUN_PARTIAL, 14, { 40 } },          { "z", 64, 4, 8, RUN_COMPLETE, 16, { 1, 1, 1 } },
    { "z", 64, 16, 8, RUN_FAILED, NAN, { 0 } },          { "z", 64, 16, 8, RUN_COMPLETE, 18, { 7, NAN, 5 } },
    { "a", NAN, 1, NAN, RUN_COMPLETE, NAN, { 6, 3 } },   { "a", NAN, 1, NAN, RUN_COMPLETE, NAN, { 1, 1 } },
    { "a", 4, 1, 1, RUN_RUNNING, 1, { 6, 3 } },          { "a", 4, 2, 1, RUN_COMPLETE, NAN, { NAN, 3 } },
    { "a", 4, 2, 2, RUN_COMPLETE, NAN, { 0 } },
};

static const struct {
    const char *name;
    size_t job;
    const char *model;
    double batch, startup_s;
    size_t n_cells, cell;
    int cores;
    double memory_gb;
    bool feasible;
    double first_s, steady_s;
} cells[] = {
    { "the first workload of the file, its least batch", 0, "z", 32, 14, 1, 0, 8, 4, true, 9, 8 },
    { "the least cores come first; a failed run is infeasible", 1, "z", 64, 14, 4, 0, 2, 8, false, NAN, NAN },
    { "then the least memory; a partial run is infeasible", 1, "z", 64, 14, 4, 1, 4, 4, false, NAN, NAN },
    { "of several complete runs the first counts", 1, "z", 64, 14, 4, 2, 4, 8, true, 30, 21 },
    { "a complete run counts after a failed one; holes are left out of the mean", 1, "z", 64, 14, 4, 3, 16, 8, true, 7,
      5 },
    { "a run that goes on is infeasible", 2, "a", 4, 50, 3, 0, 1, 1, false, NAN, NAN },
    { "without its first epoch a complete run is of no use", 2, "a", 4, 50, 3, 1, 2, 1, false, NAN, NAN },
    { "nor without any", 2, "a", 4, 50, 3, 2, 2, 2, false, NAN, NAN },
    { "one epoch is steady too", 3, "a", 8, 50, 1, 0, 1, 1, true, 5, 5 },
    { "an unknown batch and memory are one, and last", 4, "a", NAN, 50, 1, 0, 1, NAN, true, 6, 3 },
};

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

static void test_runs_are_gathered(void **state)
{
    (void)state;
    struct timeline t = { 0 };
    struct timeline_jobs jobs;
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        add(&t, &given[i]);
    assert_int_equal(timeline_gather(&jobs, &t), 0);
    assert_int_equal(jobs.n, 5);
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        const struct timeline_job *j = &jobs.jobs[cells[i].job];
        const struct timeline_cell *c = &j->cells[cells[i].cell];
        if (strcmp(j->model, cells[i].model) != 0 || !same(j->batch, cells[i].batch) ||
            j->n_cells != cells[i].n_cells || !same(j->startup_s, cells[i].startup_s))
            fail_msg("%s: got %s, batch %g, %zu cells, start-up %g", cells[i].name, j->model, j->batch, j->n_cells,
                     j->startup_s);
        if (c->cores != cells[i].cores || !same(c->memory_gb, cells[i].memory_gb) || c->feasible != cells[i].feasible ||
            !same(c->first_s, cells[i].first_s) || !same(c->steady_s, cells[i].steady_s))
            fail_msg("%s: got (%d, %g) %d, %g and %g", cells[i].name, c->cores, c->memory_gb, c->feasible, c->first_s,
                     c->steady_s);
        assert_int_equal(c->n_epochs > 0, c->feasible);
    }
    timeline_jobs_done(&jobs);
    timeline_done(&t);
}

static void test_nothing_is_no_job(void **state)
{
    (void)state;
    struct timeline t = { 0 };
    struct timeline_jobs jobs;
    assert_int_equal(timeline_gather(&jobs, &t), 0);
    assert_int_equal(jobs.n, 0);
    timeline_jobs_done(&jobs);
    timeline_jobs_done(NULL);
    timeline_done(&t);
    timeline_done(NULL);
    assert_non_null(timeline_add(&t)); /* a run that nobody filled in */
    assert_int_equal(timeline_gather(&jobs, &t), 0);
    assert_int_equal(jobs.n, 1);
    assert_false(jobs.jobs[0].cells[0].feasible);
    timeline_jobs_done(&jobs);
    timeline_done(&t);
}

static void test_status_names_read_back(void **state)
{
    (void)state;
    for (int i = RUN_COMPLETE; i <= RUN_RUNNING; i++)
        assert_int_equal(timeline_status_parse(timeline_status_name((enum timeline_status)i)), i);
    assert_int_equal(timeline_status_parse("lost"), -EINVAL);
    assert_string_equal(timeline_status_name((enum timeline_status)77), "?");
}

static void test_gather_whatever_allocation_fails(void **state)
{
    (void)state;
    struct timeline t = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        add(&t, &given[i]);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct timeline_jobs jobs = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = timeline_gather(&jobs, &t);
        fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && jobs.n == 0));
        timeline_jobs_done(&jobs);
    }
    timeline_done(&t);
}

/* --- the generator, whose timelines feed the tests and benches of replays --- */

static void test_the_generator_repeats_itself(void **state)
{
    (void)state;
    AUTO_BUF struct buf a = BUF_INIT, b = BUF_INIT, c = BUF_INIT;
    gen_timeline_csv(&a, 7);
    gen_timeline_csv(&b, 7);
    gen_timeline_csv(&c, 8);
    assert_string_equal(buf_text(&a), buf_text(&b));
    assert_string_not_equal(buf_text(&a), buf_text(&c));
    buf_clear(&a);
    buf_clear(&b);
    gen_timeline_cluster_csv(&a, 7);
    gen_timeline_cluster_csv(&b, 7);
    assert_string_equal(buf_text(&a), buf_text(&b));
}

struct census {
    size_t jobs, cells, feasible, hopeless, statuses[RUN_RUNNING + 1];
    size_t best_first, best_last, best_between, tied;
    double worst, least_startup, most_startup;
};

static void count_job(struct census *n, const struct timeline_job *j)
{
    size_t best = SIZE_MAX, first = SIZE_MAX, last = 0;
    double slowest = 0, second = INFINITY;
    for (size_t i = 0; i < j->n_cells; i++) {
        if (!j->cells[i].feasible)
            continue;
        n->feasible++;
        assert_true(j->cells[i].first_s >= 0 && j->cells[i].steady_s > 0 && j->cells[i].n_epochs >= 2);
        first = first == SIZE_MAX ? i : first;
        last = i;
        slowest = fmax(slowest, j->cells[i].steady_s);
        if (best == SIZE_MAX || j->cells[i].steady_s < j->cells[best].steady_s)
            best = i;
    }
    n->cells += j->n_cells;
    n->hopeless += best == SIZE_MAX;
    if (best == SIZE_MAX || first == last)
        return;
    for (size_t i = 0; i < j->n_cells; i++)
        if (i != best && j->cells[i].feasible)
            second = fmin(second, j->cells[i].steady_s);
    n->tied += second < 1.01 * j->cells[best].steady_s;
    n->worst = fmax(n->worst, slowest / j->cells[best].steady_s);
    *(best == first ? &n->best_first : best == last ? &n->best_last : &n->best_between) += 1;
}

static void test_the_generator_varies_widely(void **state)
{
    (void)state;
    struct census n = { .least_startup = INFINITY };
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct timeline t;
        struct timeline_jobs jobs;
        assert_int_equal(gen_timeline(&t, seed), 0);
        assert_int_equal(timeline_gather(&jobs, &t), 0);
        for (size_t i = 0; i < t.n; i++)
            n.statuses[t.runs[i].status]++;
        for (size_t i = 0; i < jobs.n; i++) {
            count_job(&n, &jobs.jobs[i]);
            n.least_startup = fmin(n.least_startup, jobs.jobs[i].startup_s);
            n.most_startup = fmax(n.most_startup, jobs.jobs[i].startup_s);
        }
        n.jobs += jobs.n;
        timeline_jobs_done(&jobs);
        timeline_done(&t);
    }
    print_message(
        "%zu jobs, %zu cells (%zu feasible), %zu hopeless; runs %zu/%zu/%zu/%zu; best first %zu, last %zu, between "
        "%zu, tied %zu; worst %.1f; start-up %.0f to %.0f s\n",
        n.jobs, n.cells, n.feasible, n.hopeless, n.statuses[0], n.statuses[1], n.statuses[2], n.statuses[3],
        n.best_first, n.best_last, n.best_between, n.tied, n.worst, n.least_startup, n.most_startup);
    assert_true(n.jobs > 500 && n.feasible > n.cells / 2 && n.feasible < n.cells && n.hopeless < n.jobs / 20);
    for (size_t i = 0; i < ARRAY_LEN(n.statuses); i++)
        assert_true(n.statuses[i] > 10);
    assert_true(n.best_first > n.jobs / 10 && n.best_last > n.jobs / 10 && n.best_between > n.jobs / 10);
    assert_true(n.tied > n.jobs / 20 && n.worst > 10 && n.worst < 20);
    assert_true(n.least_startup < 60 && n.most_startup > 600);
}

/* --- the kind that looks like recordings of a cluster --- */

struct likeness {
    size_t small, few_best,
        far; /* jobs of the smallest batch; those that few cores are best for, those by more than 2 x */
    size_t steps, near, starved, lost; /* to the next larger memory: within 5 %; much quicker; from none at all */
    double least_startup, most_startup, most_by_few, most_starved;
};

static const struct timeline_cell *cell_of(const struct timeline_job *j, int cores, double memory_gb)
{
    for (size_t i = 0; i < j->n_cells; i++)
        if (j->cells[i].cores == cores && j->cells[i].memory_gb == memory_gb)
            return &j->cells[i];
    return NULL;
}

static void look_at_memory(struct likeness *n, const struct timeline_job *j)
{
    for (size_t i = 0; i + 1 < j->n_cells; i++) {
        const struct timeline_cell *less = &j->cells[i], *more = &j->cells[i + 1];
        if (less->cores != more->cores || !more->feasible)
            continue;
        double gain = less->feasible ? less->steady_s / more->steady_s : NAN;
        n->steps++;
        n->near += fabs(gain - 1) < 0.05;
        n->starved += gain > 1.2;
        n->lost += !less->feasible;
        n->most_starved = fmax(n->most_starved, gain);
    }
}

/* In the largest memory. */
static void look_at_cores(struct likeness *n, const struct timeline_job *j)
{
    const struct timeline_cell *last = &j->cells[j->n_cells - 1];
    const struct timeline_cell *first = cell_of(j, j->cells[0].cores, last->memory_gb);
    if (!first->feasible || !last->feasible)
        return;
    n->small++;
    n->few_best += first->steady_s < last->steady_s;
    double by = last->steady_s / first->steady_s;
    if (by < 2.2)
        n->most_by_few = fmax(n->most_by_few, by);
    else
        n->far++; /* many cores lack memory */
}

static void test_the_cluster_looks_like_recordings(void **state)
{
    (void)state;
    struct likeness n = { .least_startup = INFINITY };
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct timeline t;
        struct timeline_jobs jobs;
        assert_int_equal(gen_timeline_cluster(&t, seed), 0);
        assert_int_equal(timeline_gather(&jobs, &t), 0);
        for (size_t i = 0; i < jobs.n; i++) {
            const struct timeline_job *j = &jobs.jobs[i];
            look_at_memory(&n, j);
            if (i == 0 || strcmp(j->model, jobs.jobs[i - 1].model) != 0) /* batches ascend */
                look_at_cores(&n, j);
            n.least_startup = fmin(n.least_startup, j->startup_s);
            n.most_startup = fmax(n.most_startup, j->startup_s);
        }
        timeline_jobs_done(&jobs);
        timeline_done(&t);
    }
    print_message(
        "small batches %zu, few cores best %zu, by %.2f at most; memory: %zu steps, %zu near, %zu starved, by %.1f at "
        "most, %zu from nothing; start-up %.0f to %.0f s\n",
        n.small, n.few_best, n.most_by_few, n.steps, n.near, n.starved, n.most_starved, n.lost, n.least_startup,
        n.most_startup);
    assert_true(n.few_best > n.small / 2 && n.few_best < n.small && n.most_by_few > 1.7 && n.far < n.small / 20);
    assert_true(n.near > n.steps / 2 && n.lost > n.steps / 20 && n.starved > n.steps / 50);
    assert_true(n.most_starved > 8 && n.most_starved < 16);
    assert_true(n.least_startup > 4 && n.least_startup < 30 && n.most_startup > 700 && n.most_startup < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_are_gathered),
        cmocka_unit_test(test_nothing_is_no_job),
        cmocka_unit_test(test_status_names_read_back),
        cmocka_unit_test(test_gather_whatever_allocation_fails),
        cmocka_unit_test(test_the_generator_repeats_itself),
        cmocka_unit_test(test_the_generator_varies_widely),
        cmocka_unit_test(test_the_cluster_looks_like_recordings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
