/* What the contract of every search does not say: that it finds what it looks for, and that it learns from trials that were trained unequally far. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"
#include "search/search.h"
#include "search/unit_space.h"
#include "tests/fault.h"

enum { SEEDS = 20, TRIALS = 60 };

static struct space parsed(const char *hyper)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "{\"hyperParameters\": %s}", hyper);
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space s = { 0 };
    struct err e = { 0 };
    if (json_doc_parse(&doc, "t.conf", buf_text(&b), b.len, &e) < 0 || space_parse(&s, &doc, &e) < 0)
        fail_msg("%s: %s", hyper, e.text);
    return s;
}

/* How far a point is from the one in the middle that is sought; 0.3 more for each wrong choice. */
static double distance(const struct space *sp, const struct point *p)
{
    struct unit_point u = unit_of(sp, p);
    double sum = 0;
    for (size_t d = 0; d < sp->n_dims; d++)
        sum += unit_choices(&sp->dims[d]) ? 0.3 * (u.u[d] != 1) : fabs(u.u[d] - 0.6);
    return sum;
}

/* The mean of the best after TRIALS trials, `at_once` of which run beside each other. */
static double mean_best(const char *search, const struct space *sp, int at_once, bool maximise)
{
    double sum = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct search_cfg cfg = { .seed = seed, .epochs = 5, .min_epochs = 1, .maximise = maximise };
        struct search s = { 0 };
        struct search_answer a;
        struct proposal p[TRIALS];
        double best = INFINITY;
        assert_int_equal(search_new(&s, search, NULL, sp, &cfg, NULL), 0);
        for (int i = 0; i < TRIALS + at_once; i++) {
            if (i < TRIALS && search_ask(&s, true, &p[i]) != 1)
                break;
            if (i < at_once)
                continue;
            double d = distance(sp, &p[i - at_once].point);
            best = fmin(best, d);
            struct told t = { .id = p[i - at_once].id, .kind = TOLD_FINISHED, .epoch = 5, .value = maximise ? -d : d };
            assert_int_equal(search_tell(&s, &t, &a), 0);
        }
        sum += best;
        search_done(&s);
    }
    return sum / SEEDS;
}

static void test_it_comes_nearer_than_chance(void **state)
{
    (void)state;
    static const struct {
        const char *hyper;
        double share; /* of what random comes to */
    } cases[] = {
        { "{\"a\": {\"min\": 0.0, \"max\": 1}, \"b\": {\"min\": 1e-6, \"max\": 1, \"scale\": \"log\"}, \"c\": "
          "{\"min\": "
          "1, \"max\": 1000}}",
          0.5 },
        { "{\"a\": {\"range\": [0, 100]}, \"b\": {\"range\": [0, 100]}, \"c\": [\"x\", \"y\", \"z\"]}", 0.5 },
        { "{\"a\": {\"min\": 0.0, \"max\": 1}, \"b\": [\"x\", \"y\", \"z\", \"u\", \"v\"], \"c\": [\"x\", \"y\", "
          "\"z\", \"u\", \"v\"], \"d\": [1, 2, 3, 4, 5, 6]}",
          0.6 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct space sp = parsed(cases[i].hyper);
        double chance = mean_best("random", &sp, 0, false);
        for (int at_once = 0; at_once <= 4; at_once += 4) {
            double ours = mean_best("tpe", &sp, at_once, at_once > 0);
            if (ours > cases[i].share * chance)
                fail_msg("%s, %d beside each other: %g, and chance has %g", cases[i].hyper, at_once, ours, chance);
        }
        space_done(&sp);
    }
}

/* Trials that are told an epoch alone, small values near 0.6; and a few near 0 that were trained on and have the smallest values of all. */
static void test_trials_are_compared_where_both_came_to(void **state)
{
    (void)state;
    struct space sp = parsed("{\"a\": {\"min\": 0.0, \"max\": 1}}");
    double sum = 0;
    int n = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct search_cfg cfg = { .seed = seed, .epochs = 5, .min_epochs = 1 };
        struct search s = { 0 };
        struct search_answer a;
        struct proposal p;
        assert_int_equal(search_new(&s, "tpe", NULL, &sp, &cfg, NULL), 0);
        for (int i = 0; i < 50; i++) {
            assert_int_equal(search_ask(&s, true, &p), 1);
            double x = p.point.x[0];
            struct told t = { .id = p.id, .kind = TOLD_EPOCH, .epoch = 1, .value = 10 + fabs(x - 0.6) };
            assert_int_equal(search_tell(&s, &t, &a), 0);
            if (x < 0.2)
                for (t.epoch = 2; t.epoch <= 4; t.epoch++) {
                    t.value = 5;
                    assert_int_equal(search_tell(&s, &t, &a), 0);
                }
            if (i >= 25) {
                sum += fabs(x - 0.6);
                n++;
            }
        }
        search_done(&s);
    }
    assert_true(sum / n < 0.15); /* chance: 0.26 */
    space_done(&sp);
}

static void test_a_range_of_two_numbers_is_no_end(void **state)
{
    (void)state;
    struct space sp = parsed("{\"a\": {\"min\": 1.0, \"max\": 1.0000000000000002}}");
    struct search_cfg cfg = { .epochs = 1, .min_epochs = 1 };
    struct search s = { 0 };
    struct proposal p;
    assert_int_equal(search_new(&s, "tpe", NULL, &sp, &cfg, NULL), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(search_ask(&s, true, &p), 1);
    search_done(&s);
    space_done(&sp);
}

static void test_units_go_there_and_back(void **state)
{
    (void)state;
    struct space sp =
        parsed("{\"a\": {\"min\": 0.001, \"max\": 10, \"scale\": \"log\"}, \"b\": {\"min\": -3, \"max\": 9}, "
               "\"c\": [\"x\", \"y\"], \"d\": [512, 64, 8], \"e\": [3, 1, 2], \"f\": [7], "
               "\"g\": {\"range\": [0, 1, 0.25]}, \"h\": {\"min\": -1e308, \"max\": 1e308}}");
    static const uint64_t choices[] = { 0, 0, 2, 0, 3, 0, 0, 0 };
    for (size_t d = 0; d < sp.n_dims; d++)
        assert_int_equal(unit_choices(&sp.dims[d]), choices[d]);
    struct point middle = { .x = { 0.1, 3, 1, 1, 2, 0, 1, 0 } };
    struct unit_point u = unit_of(&sp, &middle);
    static const double want[] = { 0.5, 0.5, 1, 0.5, 2, 0.5, 1.0 / 3, 0.5 };
    for (size_t d = 0; d < sp.n_dims; d++)
        assert_true(fabs(u.u[d] - want[d]) < 1e-12);
    struct rng r = rng_seeded(1);
    for (int i = 0; i < 1000; i++) {
        u = unit_draw(&sp, &r);
        struct point p = unit_to_point(&sp, &u);
        struct unit_point again = unit_of(&sp, &p);
        struct point back = unit_to_point(&sp, &again);
        for (size_t d = 0; d < sp.n_dims; d++) {
            assert_true(fabs(back.x[d] - p.x[d]) <= 1e-12 * fmax(1, fabs(p.x[d])));
            assert_true(again.u[d] >= 0 && again.u[d] <= (choices[d] ? (double)choices[d] - 1 : 1));
        }
    }
    space_done(&sp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_comes_nearer_than_chance),
        cmocka_unit_test(test_trials_are_compared_where_both_came_to),
        cmocka_unit_test(test_a_range_of_two_numbers_is_no_end),
        cmocka_unit_test(test_units_go_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
