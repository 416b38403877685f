#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/tune_replay.h"
#include "tests/fault.h"

/* queue, tuning, response, training; energies */
#define ROW(job_, q, t, r, tr, te, tre)                                                                                \
    {                                                                                                                  \
        .load = "0.5", .job = job_, .cores = 4, .queue_s = q, .tuning_s = t, .response_s = r, .training_s = tr,        \
        .tuning_j = te, .training_j = tre                                                                              \
    }

/* The queue of V1, by hand:
 *   a  arrives 0 - 0 = 0,      new: served 100, starts 0,   ends 100, response 100
 *   b  arrives 100 - 60 = 40,  new: served 50,  starts 100, ends 150, response 110
 *   a  arrives 150 - 70 = 80,  met: served 90 - 70 = 20, starts 150, ends 170, response 90
 *   a  arrives 250 - 10 = 240, met: served 40 - 10 = 30, starts 240, ends 270, response 30 */
static struct tune_online_row v1_rows[] = {
    ROW("a", 0, 100, 100, 40, 1000, 10),
    ROW("b", 60, 50, 110, 80, 500, 20),
    ROW("a", 70, 100, 170, 90, 1000, 30),
    ROW("a", 10, 100, 110, 40, 1000, 40),
};
static const double v1_responses[] = { 100, 110, 90, 30 };

/* V2 knows b alone, and no energy of the training. */
static struct tune_online_row v2_rows[] = { ROW("b", 0, 30, 35, 12, 300, NAN) };

static struct tune_online table_of(struct tune_online_row *rows, size_t n)
{
    return (struct tune_online){ rows, n, n };
}

static void expect(const char *what, double got, double want)
{
    bool none = isnan(got) && isnan(want);
    if (!none && !(fabs(got - want) < 1e-9))
        fail_msg("%s: got %.17g, want %.17g", what, got, want);
}

static void expect_figures(const char *what, const struct tune_replay_figures *got, struct tune_replay_figures want)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s response", what);
    expect(name, got->response_s, want.response_s);
    (void)snprintf(name, sizeof name, "%s tuning", what);
    expect(name, got->tuning_s, want.tuning_s);
    (void)snprintf(name, sizeof name, "%s training", what);
    expect(name, got->training_s, want.training_s);
    (void)snprintf(name, sizeof name, "%s energy", what);
    expect(name, got->energy_j, want.energy_j);
}

static void test_queue_serves_in_order(void **state)
{
    (void)state;
    struct tune_online rows = table_of(v1_rows, ARRAY_LEN(v1_rows));
    const size_t jobs[] = { 0, 1, 0, 0 };
    bool met[4] = { false };
    double got[4];
    tune_replay_fcfs(got, &rows, jobs, met);
    for (size_t i = 0; i < 4; i++)
        expect("response", got[i], v1_responses[i]);
}

/* b's queue was not recorded: when it arrived is unknown, and so is when the server is free again. */
static void test_queue_does_not_guess(void **state)
{
    (void)state;
    struct tune_online_row rows[] = { v1_rows[0], v1_rows[1], v1_rows[3] };
    rows[1].queue_s = NAN;
    struct tune_online table = table_of(rows, 3);
    const size_t jobs[] = { 0, 1, 0 };
    bool met[3] = { false };
    double got[3];
    tune_replay_fcfs(got, &table, jobs, met);
    expect("before", got[0], 100);
    expect("the gap", got[1], NAN);
    expect("after", got[2], NAN);
}

static void test_means_per_job_and_of_all(void **state)
{
    (void)state;
    struct tune_online v1 = table_of(v1_rows, ARRAY_LEN(v1_rows)), v2 = table_of(v2_rows, ARRAY_LEN(v2_rows));
    struct tune_replay_result r = { 0 };
    struct err e;
    assert_int_equal(tune_replay(&r, &v1, &v2, &e), 0);
    assert_int_equal(r.n, 3);
    const struct tune_replay_job *a = &r.jobs[0], *b = &r.jobs[1], *all = &r.jobs[2];
    assert_string_equal(a->name, "a");
    assert_string_equal(b->name, "b");
    assert_string_equal(all->name, "all");
    /* a: rows 1, 3, 4: (100 + 170 + 110) / 3, 100, (40 + 90 + 40) / 3; V2 has none */
    expect_figures("a v1", &a->v1, (struct tune_replay_figures){ 380.0 / 3, 100, 170.0 / 3, 1000 });
    expect_figures("a v2", &a->v2, (struct tune_replay_figures){ NAN, NAN, NAN, NAN });
    expect_figures("a pipetune", &a->pipetune, (struct tune_replay_figures){ 170.0 / 3, NAN, 170.0 / 3, 80.0 / 3 });
    expect("a queue", a->fcfs_v1_s, 220.0 / 3); /* 100, 90, 30 */
    expect("a queue on v2", a->fcfs_v2_s, NAN);
    expect_figures("b v2", &b->v2, (struct tune_replay_figures){ 35, 30, 12, 300 });
    expect_figures("b on v2", &b->pipetune_on_v2, (struct tune_replay_figures){ 12, NAN, 12, NAN });
    expect("b queue", b->fcfs_v1_s, 110);
    expect("b queue on v2", b->fcfs_v2_s, 30); /* new: served 30 at once */
    /* all four rows: 490 / 4, 350 / 4, 250 / 4, 3500 / 4; 330 / 4 in the queue */
    expect_figures("all v1", &all->v1, (struct tune_replay_figures){ 122.5, 87.5, 62.5, 875 });
    expect_figures("all pipetune", &all->pipetune, (struct tune_replay_figures){ 62.5, NAN, 62.5, 25 });
    expect("all queue", all->fcfs_v1_s, 82.5);
    tune_replay_result_done(&r);
}

static void test_no_rows_are_no_figures(void **state)
{
    (void)state;
    struct tune_online none = { 0 };
    struct tune_replay_result r = { 0 };
    struct err e;
    assert_int_equal(tune_replay(&r, &none, &none, &e), 0);
    assert_int_equal(r.n, 1);
    expect("response", r.jobs[0].v1.response_s, NAN);
    expect("queue", r.jobs[0].fcfs_v2_s, NAN);
    tune_replay_result_done(&r);
}

static void test_memory_may_run_out(void **state)
{
    (void)state;
    struct tune_online v1 = table_of(v1_rows, ARRAY_LEN(v1_rows)), v2 = table_of(v2_rows, ARRAY_LEN(v2_rows));
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct tune_replay_result r = { 0 };
        struct err e;
        assert_true(nth < 32);
        fault_arm(FAULT_ALLOC, nth);
        rc = tune_replay(&r, &v1, &v2, &e);
        (void)fault_disarm();
        assert_int_equal(r.n, rc < 0 ? 0 : 3);
        tune_replay_result_done(&r);
    }
}

/* --- offline --- */

static const struct {
    const char *file, *job, *cores, *version;
} names[] = {
    { "TuneV1_lenet_8.csv", "lenet", "8", "v1" },
    { "lenet_mnist_16_v2.csv", "lenet_mnist", "16", "v2" },
    { "TuneV2Offline_lenet_4.csv", "lenet", "4", "v2" },
    { "TuneV1_jacobi_20_8.csv", "jacobi_20", "8", "v1" }, /* the last number is the cores */
    { "TuneV1Lenet_8.csv", "Lenet", "8", "v1" }, /* what stands behind the version, when nothing else is a job */
    { "TuneV2_8.csv", "-", "8", "v2" },
    { "lenet.csv", "lenet", "-", "-" },
    { "8.csv", "-", "8", "-" },
    { "V1_8", "-", "8", "v1" },
    { "vgg16_v1x_2.csv", "vgg16_v1x", "2", "-" },
    { "v1_v2_4.csv", "v2", "4", "v1" }, /* the first is the version */
    { "__a__3__.csv", "a", "3", "-" },
    { ".csv", ".csv", "-", "-" },
    { "", "-", "-", "-" },
};

static void test_names_say_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct tune_name n;
        tune_name_parse(&n, names[i].file);
        if (strcmp(n.job, names[i].job) != 0 || strcmp(n.cores, names[i].cores) != 0 ||
            strcmp(n.version, names[i].version) != 0)
            fail_msg("%s: got %s, %s, %s", names[i].file, n.job, n.cores, n.version);
    }
}

static void test_names_sort_by_number(void **state)
{
    (void)state;
    struct tune_name a, b;
    tune_name_parse(&a, "lenet_8_v2.csv");
    tune_name_parse(&b, "lenet_16_v1.csv");
    assert_true(tune_name_compare(&a, &b) < 0 && tune_name_compare(&b, &a) > 0 && tune_name_compare(&a, &a) == 0);
}

static void test_sums_and_the_best(void **state)
{
    (void)state;
    struct tune_offline_row rows[] = {
        { .error = NAN, .error_resp = 9, .training_s = 100, .energy_j = 5 },
        { .error = 0.2, .error_resp = 7, .training_s = 50, .energy_j = 6 },
        { .error = 0.1, .error_resp = 8, .training_s = 30, .energy_j = 7 },
        { .error = 0.1, .error_resp = NAN, .training_s = 20, .energy_j = 8 },
    };
    struct tune_offline table = { rows, 4, 4 };
    struct tune_sum s;
    tune_sum_of(&s, &table);
    assert_int_equal(s.trials, 4);
    expect("time", s.time_s, 200);
    expect("energy", s.energy_j, 26);
    assert_ptr_equal(s.best_error, &rows[2]); /* the earlier of equals */
    assert_ptr_equal(s.best_error_resp, &rows[1]);
    rows[3].energy_j = NAN;
    tune_sum_of(&s, &table);
    expect("energy that a row lacks", s.energy_j, NAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_serves_in_order),    cmocka_unit_test(test_queue_does_not_guess),
        cmocka_unit_test(test_means_per_job_and_of_all), cmocka_unit_test(test_no_rows_are_no_figures),
        cmocka_unit_test(test_memory_may_run_out),       cmocka_unit_test(test_names_say_what_they_say),
        cmocka_unit_test(test_names_sort_by_number),     cmocka_unit_test(test_sums_and_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
