/* The Pareto set of a study, from a store that is filled here. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "tests/fault.h"
#include "view/pareto.h"

#define TEXT(literal) ((char *)(uintptr_t)(literal))
#define SEVERAL "{\"study\": {\"metric\": \"accuracy\", \"metrics\": [\"accuracy\", \"seconds\"]}}"

struct fix {
    char dir[64], path[96];
    struct store *s;
    struct store_study study;
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-pareto-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)fault_disarm();
    store_study_done(&f->study);
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static void add_study(struct fix *f, const char *config)
{
    struct store_study row = { .name = TEXT("s"), .state = TEXT("running"), .config = TEXT(config), .maximise = true };
    int64_t id = 0;
    assert_ok(f, store_study_add(f->s, &row, &id, &f->e));
    assert_ok(f, store_study_find(f->s, "s", &f->study, &f->e));
}

static void add_figure(struct fix *f, int64_t trial, const char *name, double value)
{
    struct store_result r = { .trial = trial, .name = TEXT(name), .value = value };
    assert_ok(f, store_result_put(f->s, &r, &f->e));
}

static void add_trial(struct fix *f, int number, const char *state, double accuracy, double seconds,
                      const char *violates)
{
    struct store_trial t = { .study = f->study.id, .number = number, .metric = accuracy, .seconds = seconds };
    t.state = TEXT(state);
    t.hyper = TEXT("{}");
    t.violates = TEXT(violates);
    assert_ok(f, store_trial_add(f->s, &t, &f->e));
    add_figure(f, t.id, "accuracy", accuracy);
    if (!isnan(seconds))
        add_figure(f, t.id, "seconds", seconds);
}

static void expect_set(struct fix *f, const char *want)
{
    struct pareto p = { .n = 0 };
    assert_ok(f, pareto_load(&p, f->s, &f->study, &f->e));
    AUTO_BUF struct buf numbers = BUF_INIT;
    pareto_put_numbers(&p, &numbers);
    assert_string_equal(buf_text(&numbers), want);
    pareto_done(&p);
}

static void test_the_set_is_of_what_finished_and_counts(void **state)
{
    struct fix *f = *state;
    add_study(f, SEVERAL);
    expect_set(f, "-");
    add_trial(f, 1, "stopped", 0.99, 1, NULL); /* nothing is finished yet: it is all there is */
    add_trial(f, 2, "running", 0.99, 1, NULL);
    expect_set(f, "1");
    add_trial(f, 3, "finished", 0.9, 50, NULL);
    add_trial(f, 4, "finished", 0.8, 20, NULL);
    add_trial(f, 5, "finished", 0.7, 30, NULL);                            /* 4 is better in both */
    add_trial(f, 6, "finished", 0.95, 10, "accuracy < 0.9 does not hold"); /* no best, whatever it came to */
    add_trial(f, 7, "finished", 0.95, NAN, NULL);                          /* nothing is known of its seconds */
    expect_set(f, "3, 4");
}

static void test_figures_are_told_as_they_are(void **state)
{
    struct fix *f = *state;
    struct pareto p = { .n = 0 };
    add_study(f, SEVERAL);
    add_trial(f, 1, "finished", 0.9, NAN, NULL);
    assert_ok(f, pareto_load(&p, f->s, &f->study, &f->e));
    AUTO_JSON json_t *figures = pareto_figures_json(&p, 1);
    AUTO_JSON json_t *goals = pareto_goals_json(&p);
    AUTO_JSON json_t *set = pareto_json(&p);
    assert_true(json_number_value(json_object_get(figures, "accuracy")) == 0.9);
    assert_true(json_is_null(json_object_get(figures, "seconds"))); /* absent is not 0 */
    assert_string_equal(json_string_value(json_object_get(json_array_get(goals, 1), "direction")), "min");
    assert_int_equal(json_array_size(set), 0);
    pareto_done(&p);
}

static void test_a_study_of_one_objective_has_none(void **state)
{
    struct fix *f = *state;
    struct pareto p = { .n = 0 };
    add_study(f, "{\"study\": {\"metric\": \"accuracy\"}}");
    add_trial(f, 1, "finished", 0.9, 3, NULL);
    assert_ok(f, pareto_load(&p, f->s, &f->study, &f->e));
    AUTO_JSON json_t *set = pareto_json(&p);
    AUTO_JSON json_t *figures = pareto_figures_json(&p, 1);
    assert_true(json_is_null(set) && json_is_null(figures));
    pareto_done(&p);
}

/* The best is one that keeps the constraints. */
static int take_best(void *ctx, const struct store_summary *r)
{
    int *best = ctx;
    *best = r->best_trial;
    return 0;
}

static void test_the_best_keeps_the_constraints(void **state)
{
    struct fix *f = *state;
    int best = -1;
    add_study(f, SEVERAL);
    add_trial(f, 1, "finished", 0.95, 10, "seconds < 5 does not hold");
    assert_ok(f, store_list(f->s, take_best, &best, &f->e));
    assert_int_equal(best, 0);
    add_trial(f, 2, "finished", 0.8, 4, NULL);
    assert_ok(f, store_list(f->s, take_best, &best, &f->e));
    assert_int_equal(best, 2);
}

static void test_memory_that_runs_out_leaves_nothing(void **state)
{
    struct fix *f = *state;
    add_study(f, SEVERAL);
    add_trial(f, 1, "finished", 0.9, 50, NULL);
    add_trial(f, 2, "finished", 0.8, 20, NULL);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct pareto p = { .n = 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = pareto_load(&p, f->s, &f->study, &f->e);
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
        assert_true(rc == 0 ? p.n_front == 2 : p.v == NULL);
        pareto_done(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_set_is_of_what_finished_and_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_figures_are_told_as_they_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_study_of_one_objective_has_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_best_keeps_the_constraints, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_that_runs_out_leaves_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
