#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "search/curves_front.h"
#include "search/search_replay.h"
#include "tests/fault.h"

#define HEAD "{\"format\":\"curves\",\"metric\":\"loss\",\"direction\":\"min\",\"epochs\":3}\n"
#define LINE(x, values, seconds) "{\"hyper\":{\"x\":" #x "},\"values\":" values ",\"seconds\":" seconds "}\n"

/* In the order of `grid`: they come to 4, 2, 1 and 3, so the median is 2.5. */
static const char table[] = HEAD LINE(1, "[6,5,4]", "[1,1,1]") LINE(2, "[9,2,null]", "[2,2,2]")
    LINE(3, "[5,3,1]", "[10,10,10]") LINE(4, "[3,4,5]", "[1,1,1]");

enum { MARKS = 5 };

static struct curves parsed(const char *text)
{
    struct curves c = { 0 };
    struct err e = { 0 };
    if (curves_parse(&c, "t", text, strlen(text), &e) < 0)
        fail_msg("%s", e.text);
    return c;
}

static const struct {
    const char *name;
    int workers;
    double budget;
    bool seconds;
    double at[MARKS], best[MARKS];
    uint64_t epochs;
} cases[] = {
    { "one worker trains one after the other", 1, 12, false, { 1, 2, 5, 8, 12 }, { 6, 5, 2, 2, 1 }, 12 },
    { "nothing is trained beyond the budget", 1, 4, false, { 1, 2, 3, 4 }, { 6, 5, 4, 4 }, 4 },
    { "two take turns, the older first", 2, 12, false, { 1, 2, 4, 7, 12 }, { 6, 6, 2, 2, 1 }, 12 },
    { "before the first epoch ends the worst counts", 1, 12, false, { 0.5, 1 }, { 9, 6 }, 12 },
    { "seconds are a cost, too", 1, 100, true, { 0.5, 1, 3, 7, 39 }, { 9, 6, 4, 2, 1 }, 12 },
    { "a slow trial does not hold the others up", 4, 15, true, { 2, 4, 8, 12, 15 }, { 3, 3, 3, 2, 2 }, 9 },
};

static void test_replays_of_a_grid(void **state)
{
    (void)state;
    struct curves c = parsed(table);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double regret[MARKS] = { 0 }, best[MARKS] = { 0 };
        struct search_replay_cfg cfg = { .algorithm = "grid",
                                         .stop = "none",
                                         .search = { .min_epochs = 1, .can_pause = true },
                                         .workers = cases[i].workers,
                                         .budget = cases[i].budget,
                                         .seconds = cases[i].seconds,
                                         .at = cases[i].at };
        while (cfg.n_at < MARKS && cases[i].at[cfg.n_at] > 0)
            cfg.n_at++;
        struct search_replay_result r = { .regret = regret, .best = best };
        assert_int_equal(search_replay(&c, &cfg, &r, NULL), 0);
        for (size_t k = 0; k < cfg.n_at; k++) {
            if (best[k] != cases[i].best[k])
                fail_msg("%s: got %g at %g", cases[i].name, best[k], cfg.at[k]);
            assert_true(fabs(regret[k] - (best[k] - 1) / 1.5) < 1e-12);
        }
        if (r.epochs != cases[i].epochs)
            fail_msg("%s: %d epochs", cases[i].name, (int)r.epochs);
    }
    curves_done(&c);
}

/* Of values that no trial would have live, no rule is told: what diverged is told as the worst there is, so that halving ends it. */
static void test_what_diverged_is_told_as_the_worst(void **state)
{
    (void)state;
    struct curves c = parsed(HEAD LINE(1, "[6,5,4]", "[1,1,1]") LINE(2, "[null,null,null]", "[1,1,1]"));
    double at = 6, regret = 0, best = 0;
    struct search_replay_cfg cfg = { .algorithm = "points",
                                     .stop = "halving",
                                     .search = { .min_epochs = 1, .can_pause = true },
                                     .workers = 1,
                                     .budget = 100,
                                     .at = &at,
                                     .n_at = 1 };
    struct search_replay_result r = { .regret = &regret, .best = &best };
    assert_int_equal(search_replay(&c, &cfg, &r, NULL), 0);
    assert_int_equal(r.epochs, 4);
    assert_true(best == 4);
    curves_done(&c);
}

/* Whatever is paused, gone on with and stopped: every epoch of every trial is trained once at most, and nothing is left that could be. */
static void test_no_epoch_is_paid_twice(void **state)
{
    (void)state;
    struct curves c = parsed(table);
    for (uint64_t seed = 0; seed < 200; seed++) {
        double at = 1000, regret = 0, best = 0;
        struct search_replay_cfg cfg = { .algorithm = "random",
                                         .stop = "shuffle",
                                         .search = { .min_epochs = 1, .can_pause = seed % 2, .seed = seed },
                                         .workers = 1 + (int)(seed % 3),
                                         .budget = 1000,
                                         .at = &at,
                                         .n_at = 1 };
        struct search_replay_result r = { .regret = &regret, .best = &best };
        assert_int_equal(search_replay(&c, &cfg, &r, NULL), 0);
        assert_int_equal(r.trials, 4);
        assert_true(r.epochs >= 4 && r.epochs <= 12);
    }
    curves_done(&c);
}

/* Of the whole front that is 0 (4 in 3 s), 2 (1 in 30 s) and, beaten by none, 1 (2 in 6 s); 3 is dominated by 0. */
static void test_what_was_found_is_a_share_of_the_front(void **state)
{
    (void)state;
    struct curves c = parsed(HEAD LINE(1, "[6,5,4]", "[1,1,1]") LINE(2, "[9,2,2]", "[2,2,2]")
                                 LINE(3, "[5,3,1]", "[10,10,10]") LINE(4, "[3,4,5]", "[1,1,1.5]"));
    static const char *const names[] = { "metric", "seconds" };
    struct goals goals;
    double at[] = { 2, 3, 6, 9, 12 }, regret[MARKS] = { 0 }, best[MARKS] = { 0 }, got[MARKS] = { 0 };
    assert_int_equal(curves_goals(&c, names, 2, &goals, NULL), 0);
    struct search_replay_cfg cfg = { .algorithm = "grid",
                                     .stop = "none",
                                     .search = { .min_epochs = 1, .goals = &goals },
                                     .workers = 1,
                                     .budget = 12,
                                     .at = at,
                                     .n_at = MARKS };
    struct search_replay_result r = { .regret = regret, .best = best, .hypervolume = got };
    assert_int_equal(search_replay(&c, &cfg, &r, NULL), 0);
    /* the reference: 4.3 and 32.7 */
    double first = 0.3 * 29.7, second = first + 2.0 * 26.7, third = second + 1.0 * 2.7;
    const double want[MARKS] = { 0, first / third, second / third, 1, 1 };
    for (size_t i = 0; i < MARKS; i++)
        if (fabs(got[i] - want[i]) > 1e-9)
            fail_msg("after %g epochs: got %.12g, want %.12g", at[i], got[i], want[i]);
    curves_done(&c);
}

static void test_a_table_without_a_figure_is_told(void **state)
{
    (void)state;
    struct curves c = parsed(table);
    struct goals goals;
    struct err e = { 0 };
    static const char *const joules[] = { "metric", "joules" };
    static const char *const other[] = { "accuracy" };
    assert_int_equal(curves_goals(&c, joules, 2, &goals, &e), -EINVAL);
    assert_non_null(strstr(e.text, "no 'joules'"));
    assert_int_equal(curves_goals(&c, other, 1, &goals, &e), -EINVAL);
    assert_non_null(strstr(e.text, "no metric 'accuracy': it has 'loss'"));
    curves_done(&c);
}

static void test_faults_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *text, *algorithm, *want;
        bool seconds;
    } faults[] = {
        { HEAD "{\"hyper\":{\"x\":1},\"values\":[1,2,3]}\n{\"hyper\":{\"x\":2},\"values\":[1,2]}", "grid",
          "1 of 2 curves are cut short", false },
        { HEAD "{\"hyper\":{\"x\":1},\"values\":[1,2,3]}", "grid", "1 of 1 curves have no 'seconds'", true },
        { table, "gird", "did you mean 'grid'", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct curves c = parsed(faults[i].text);
        struct search_replay_cfg cfg = {
            .algorithm = faults[i].algorithm, .workers = 1, .budget = 9, .seconds = faults[i].seconds
        };
        struct search_replay_result r = { 0 };
        struct err e = { 0 };
        assert_int_equal(search_replay(&c, &cfg, &r, &e), -EINVAL);
        assert_non_null(strstr(e.text, faults[i].want));
        curves_done(&c);
    }
}

/* Any point has a curve here: 3, 2, 1 times how far it is from 2. */
static int trained(void *ctx, const struct point *of, int epoch, struct curve_epoch *out, struct err *e)
{
    int *left = ctx;
    if ((*left)-- == 0)
        return err_set(e, -EPROTO, "nobody trains");
    *out = (struct curve_epoch){ (4 - epoch) * fabs(of->x[0] - 2), NAN, NAN };
    return 0;
}

static int search_open(const char *algorithm, int epochs_there_are, double *best, struct search_replay_result *r,
                       struct err *e)
{
    static const char text[] = "{\"hyperParameters\":{\"x\":{\"min\":0,\"max\":10.5}}}";
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space space = { 0 };
    double at[] = { 30, 300 };
    assert_int_equal(json_doc_parse(&doc, "t", text, strlen(text), e), 0);
    assert_int_equal(space_parse(&space, &doc, e), 0);
    struct curve_source from = { .space = &space,
                                 .metric = "loss",
                                 .epochs = 3,
                                 .worst = 30,
                                 .scale = { 0, 10 },
                                 .epoch = trained,
                                 .ctx = &epochs_there_are };
    struct search_replay_cfg cfg = { .algorithm = algorithm,
                                     .stop = "halving",
                                     .search = { .min_epochs = 1, .can_pause = true, .seed = 7 },
                                     .workers = 2,
                                     .budget = 300,
                                     .at = at,
                                     .n_at = 2 };
    double regret[2] = { 0 };
    *r = (struct search_replay_result){ .regret = regret, .best = best };
    int rc = search_replay_from(&from, &cfg, r, e);
    if (rc == 0 && (fabs(regret[0] - best[0] / 10) > 1e-12 || fabs(regret[1] - best[1] / 10) > 1e-12))
        fail_msg("regret %g and %g of %g and %g", regret[0], regret[1], best[0], best[1]);
    space_done(&space);
    return rc;
}

static void test_curves_may_come_from_anywhere(void **state)
{
    (void)state;
    double best[2] = { 0 };
    struct search_replay_result r;
    struct err e = { 0 };
    assert_int_equal(search_open("tpe", 1000, best, &r, &e), 0);
    assert_int_equal(r.epochs, 300);
    assert_true(best[1] < best[0] && best[1] < 0.05);
}

static void test_a_source_that_fails_ends_the_replay(void **state)
{
    (void)state;
    for (int there_are = 0; there_are < 40; there_are++) {
        double best[2] = { 0 };
        struct search_replay_result r;
        struct err e = { 0 };
        assert_int_equal(search_open("random", there_are, best, &r, &e), -EPROTO);
        assert_string_equal(e.text, "nobody trains");
    }
}

static void test_it_survives_memory_running_out(void **state)
{
    (void)state;
    struct curves c = parsed(table);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct search_replay_cfg cfg = {
            .algorithm = "random", .stop = "median", .search = { .min_epochs = 1 }, .workers = 2, .budget = 12
        };
        struct search_replay_result r = { 0 };
        struct err e = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = search_replay(&c, &cfg, &r, &e);
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
    }
    curves_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replays_of_a_grid),
        cmocka_unit_test(test_what_diverged_is_told_as_the_worst),
        cmocka_unit_test(test_no_epoch_is_paid_twice),
        cmocka_unit_test(test_what_was_found_is_a_share_of_the_front),
        cmocka_unit_test(test_a_table_without_a_figure_is_told),
        cmocka_unit_test(test_faults_are_explained),
        cmocka_unit_test(test_curves_may_come_from_anywhere),
        cmocka_unit_test(test_a_source_that_fails_ends_the_replay),
        cmocka_unit_test(test_it_survives_memory_running_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
