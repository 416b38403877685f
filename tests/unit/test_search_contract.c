/* What every search owes the driver, run over every row of `searches` and several spaces. */
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
#include "core/rng.h"
#include "search/search.h"
#include "tests/fault.h"

static const struct {
    const char *name, *text;
} spaces[] = {
    { "lists", "{\"batch_size\": [1024, 512, 32], \"lr\": [0.1, 0.01], \"opt\": [\"sgd\", \"adam\"]}" },
    { "one point", "{\"x\": [1]}" },
    { "a list and a range", "{\"x\": [3, 1], \"y\": {\"range\": [0.1, 0.6, 0.1]}}" },
    { "a range of 10^9", "{\"x\": {\"range\": [0, 1000000000]}}" },
    { "more than 2^64 points",
      "{\"a\": {\"range\": [0, 10000000000]}, \"b\": {\"range\": [0, 10000000000]}, \"c\": [1, 2]}" },
    { "whole numbers", "{\"x\": {\"min\": -3, \"max\": 5}, \"y\": [1, 2]}" },
    { "whole numbers on a log scale", "{\"x\": {\"min\": 1, \"max\": 500, \"scale\": \"log\"}}" },
    { "a list and whole numbers on a log scale",
      "{\"y\": [1, 2, 3], \"x\": {\"min\": 10, \"max\": 90, \"scale\": \"log\"}}" },
    { "a real number", "{\"x\": {\"min\": 0.5, \"max\": 0.75}, \"y\": [1, 2]}" },
    { "a real number on a log scale", "{\"x\": {\"min\": 1e-6, \"max\": 1, \"scale\": \"log\"}}" },
    { "real numbers as far as they go", "{\"x\": {\"min\": -1e308, \"max\": 1e308}}" },
};

enum { N_ASKED = 400 };

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

/* What a trial is worth: some number, the same for the same point; every third trial fails when `fail` says so. */
static double worth(const struct proposal *p, bool fail)
{
    return fail && p->id % 3 == 0 ? NAN : cos(p->point.x[0]);
}

/* Asks and tells until `n` proposals were made or the search ends. */
static size_t drive(struct search *s, struct proposal *out, size_t n, bool fail)
{
    for (size_t i = 0; i < n; i++) {
        int rc = search_ask(s, &out[i]);
        if (rc == -ENODATA)
            return i;
        assert_int_equal(rc, 1);
        struct told t = { .id = out[i].id, .epoch = out[i].epochs, .value = worth(&out[i], fail), .done = true };
        search_tell(s, &t);
    }
    return n;
}

static void assert_in_bounds(const char *what, const struct space *sp, const struct point *p)
{
    for (size_t i = 0; i < SPACE_MAX_DIMS; i++) {
        const struct dim *d = &sp->dims[i];
        double x = p->x[i];
        bool ok = x == 0;
        if (i < sp->n_dims && (d->kind == DIM_LIST || d->kind == DIM_RANGE))
            ok = x >= 0 && x < (double)d->n && x == floor(x);
        else if (i < sp->n_dims)
            ok = x >= d->min && x <= d->max && (d->kind == DIM_REAL || x == floor(x));
        if (!ok)
            fail_msg("%s: dimension %zu is %g", what, i, x);
    }
}

static bool equal(const struct proposal *a, const struct proposal *b)
{
    return a->id == b->id && a->epochs == b->epochs && memcmp(&a->point, &b->point, sizeof a->point) == 0;
}

static void check_contract(const struct search_ops *ops, const char *what, const struct space *sp)
{
    static struct proposal first[N_ASKED];
    static struct proposal again[N_ASKED];
    struct search_cfg cfg = { .seed = 42, .epochs = 3, .maximise = true };
    for (int fail = 0; fail <= 1; fail++) {
        struct search s = { 0 };
        struct search t = { 0 };
        assert_int_equal(search_new(&s, ops->name, sp, &cfg, NULL), 0);
        assert_int_equal(search_new(&t, ops->name, sp, &cfg, NULL), 0);
        size_t n = drive(&s, first, N_ASKED, fail);
        /* the same seed, told the same, in two goes: what a resumed study does */
        size_t half = drive(&t, again, n / 2, fail);
        half += drive(&t, again + half, N_ASKED - half, fail);
        assert_int_equal(n, half);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++) {
            if (!equal(&first[i], &again[i]))
                fail_msg("%s %s: proposal %zu differs the second time", ops->name, what, i);
            assert_int_equal(first[i].id, i);
            assert_true(first[i].epochs >= 1 && first[i].epochs <= cfg.epochs);
            assert_in_bounds(what, sp, &first[i].point);
            for (size_t k = 0; k < i; k++)
                if (memcmp(&first[i].point, &first[k].point, sizeof first[i].point) == 0)
                    fail_msg("%s %s: proposals %zu and %zu are one point", ops->name, what, k, i);
        }
        if (n < N_ASKED) { /* a search of a finite space may end only when it has proposed all, and stays ended */
            assert_int_equal(n, space_size(sp));
            assert_int_equal(search_ask(&s, &first[0]), -ENODATA);
        }
        search_done(&s);
        search_done(&t);
    }
}

static void test_every_search_keeps_the_contract(void **state)
{
    (void)state;
    for (size_t i = 0; searches[i]; i++) {
        for (size_t k = 0; k < ARRAY_LEN(spaces); k++) {
            struct space sp = parsed(spaces[k].text);
            struct search_cfg cfg = { .epochs = 1 };
            struct search s = { 0 };
            struct err e = { 0 };
            int rc = search_new(&s, searches[i]->name, &sp, &cfg, &e);
            search_done(&s);
            if (rc == 0)
                check_contract(searches[i], spaces[k].name, &sp);
            else if (rc != -EINVAL || !e.text[0] || space_is_listed(&sp)) /* a list must be fine for any search */
                fail_msg("%s %s: got %d %s", searches[i]->name, spaces[k].name, rc, e.text);
            space_done(&sp);
        }
    }
}

static void test_every_finite_space_is_used_up(void **state)
{
    (void)state;
    for (size_t i = 0; searches[i]; i++) {
        struct space sp = parsed("{\"x\": {\"range\": [0, 50]}, \"y\": {\"range\": [0, 40]}, \"z\": [1, 2, 3]}");
        struct search_cfg cfg = { .seed = 1, .epochs = 1 };
        struct search s = { 0 };
        assert_int_equal(search_new(&s, searches[i]->name, &sp, &cfg, NULL), 0);
        static bool seen[50][40][3];
        memset(seen, 0, sizeof seen);
        struct proposal p;
        size_t n = 0;
        for (; drive(&s, &p, 1, false) == 1; n++) {
            bool *was = &seen[(int)p.point.x[0]][(int)p.point.x[1]][(int)p.point.x[2]];
            assert_false(*was);
            *was = true;
        }
        assert_int_equal(n, 6000);
        search_done(&s);
        space_done(&sp);
    }
}

static void test_random_uses_up_a_log_scale(void **state)
{
    (void)state;
    struct space sp = parsed("{\"x\": {\"min\": 1, \"max\": 100000, \"scale\": \"log\"}}");
    struct search_cfg cfg = { .seed = 1, .epochs = 1 };
    struct search s = { 0 };
    assert_int_equal(search_new(&s, "random", &sp, &cfg, NULL), 0);
    static bool seen[100001];
    struct proposal p;
    size_t n = 0;
    size_t small = 0; /* among the first 1000: evenly on a log scale, 3 of 5 are up to 1000, but for repeats */
    for (; search_ask(&s, &p) == 1; n++) {
        assert_false(seen[(int)p.point.x[0]]);
        seen[(int)p.point.x[0]] = true;
        small += n < 1000 && p.point.x[0] <= 1000;
    }
    assert_int_equal(n, 100000);
    assert_true(small > 300);
    search_done(&s);
    space_done(&sp);
}

static void test_random_draws_evenly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double middle; /* half of the draws are below */
    } even[] = {
        { "{\"x\": {\"min\": 10.0, \"max\": 20}}", 15 },
        { "{\"x\": {\"min\": 1e-6, \"max\": 1, \"scale\": \"log\"}}", 1e-3 },
        { "{\"x\": {\"min\": 0, \"max\": 999999}}", 500000 },
        { "{\"x\": {\"min\": 1000000, \"max\": 999999999999, \"scale\": \"log\"}}",
          1e9 }, /* so high that repeats are rare */
        { "{\"x\": {\"range\": [0, 1000000000]}}", 5e8 },
    };
    for (size_t i = 0; i < ARRAY_LEN(even); i++) {
        struct space sp = parsed(even[i].text);
        struct search_cfg cfg = { .seed = 9, .epochs = 1 };
        struct search s = { 0 };
        assert_int_equal(search_new(&s, "random", &sp, &cfg, NULL), 0);
        int below = 0;
        for (int k = 0; k < 4000; k++) {
            struct proposal p;
            assert_int_equal(search_ask(&s, &p), 1);
            below += p.point.x[0] < even[i].middle;
        }
        if (below < 1850 || below > 2150)
            fail_msg("%s: %d of 4000 below the middle, want about 2000", even[i].text, below);
        search_done(&s);
        space_done(&sp);
    }
}

static void test_another_seed_is_another_order(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(spaces); k++) {
        struct space sp = parsed(spaces[k].text);
        bool differs = space_size(&sp) == 1;
        for (uint64_t seed = 1; seed < 20 && !differs; seed++) {
            struct search a = { 0 };
            struct search b = { 0 };
            struct proposal pa, pb;
            assert_int_equal(search_new(&a, "random", &sp, &(struct search_cfg){ .seed = 0, .epochs = 1 }, NULL), 0);
            assert_int_equal(search_new(&b, "random", &sp, &(struct search_cfg){ .seed = seed, .epochs = 1 }, NULL), 0);
            assert_int_equal(search_ask(&a, &pa), 1);
            assert_int_equal(search_ask(&b, &pb), 1);
            differs = !equal(&pa, &pb);
            search_done(&a);
            search_done(&b);
        }
        if (!differs)
            fail_msg("%s: every seed begins alike", spaces[k].name);
        space_done(&sp);
    }
}

static void test_grid_goes_in_the_order_written(void **state)
{
    (void)state;
    static const double want[][2] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 1, 0 }, { 1, 1 }, { 1, 2 } };
    struct space sp = parsed("{\"x\": [8, 2], \"y\": {\"range\": [0, 3]}}");
    struct search s = { 0 };
    assert_int_equal(search_new(&s, "grid", &sp, &(struct search_cfg){ .epochs = 5 }, NULL), 0);
    struct proposal p;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(search_ask(&s, &p), 1);
        assert_int_equal(p.id, i);
        assert_int_equal(p.epochs, 5);
        assert_true(p.point.x[0] == want[i][0] && p.point.x[1] == want[i][1]);
    }
    assert_int_equal(search_ask(&s, &p), -ENODATA);
    search_done(&s);
    space_done(&sp);
}

static void test_searches_are_chosen_by_name_or_space(void **state)
{
    (void)state;
    struct space listed = parsed("{\"x\": [1]}");
    struct space real = parsed("{\"x\": {\"min\": 0.5, \"max\": 1}}");
    struct search_cfg cfg = { .epochs = 1 };
    struct search s = { 0 };
    struct err e = { 0 };
    assert_int_equal(search_new(&s, NULL, &listed, &cfg, &e), 0);
    assert_string_equal(s.ops->name, "grid");
    search_done(&s);
    assert_int_equal(search_new(&s, NULL, &real, &cfg, &e), 0);
    assert_string_equal(s.ops->name, "random");
    search_done(&s);
    search_done(&s);
    search_done(NULL);
    assert_int_equal(search_new(&s, "grid", &real, &cfg, &e), -EINVAL);
    assert_non_null(strstr(e.text, "'x' has 'min' and 'max'"));
    assert_int_equal(search_new(&s, "gird", &real, &cfg, &e), -EINVAL);
    assert_non_null(strstr(e.text, "did you mean 'grid'"));
    assert_int_equal(search_new(&s, "simulated", &real, &cfg, &e), -EINVAL);
    assert_non_null(strstr(e.text, "there are: grid, random"));
    assert_null(s.ops);
    space_done(&listed);
    space_done(&real);
}

/* However many allocations fail on the way, a search proposes what it proposes without failures. */
static void test_a_search_survives_memory_running_out(void **state)
{
    (void)state;
    struct search_cfg cfg = { .seed = 5, .epochs = 1 };
    for (size_t i = 0; searches[i]; i++) {
        for (size_t k = 0; k < ARRAY_LEN(spaces); k++) {
            struct space sp = parsed(spaces[k].text);
            struct search calm = { 0 };
            if (search_new(&calm, searches[i]->name, &sp, &cfg, NULL) < 0) {
                space_done(&sp);
                continue;
            }
            struct search s = { 0 };
            struct err e = { 0 };
            int rc = -ENOMEM;
            for (unsigned nth = 1; rc < 0; nth++) {
                assert_true(nth < 64);
                fault_arm(FAULT_ALLOC, nth);
                rc = search_new(&s, searches[i]->name, &sp, &cfg, &e);
                fault_disarm();
                assert_true(rc == 0 || rc == -ENOMEM);
            }
            for (int n = 0; n < 300; n++) {
                struct proposal want, got;
                int end = search_ask(&calm, &want);
                fault_arm(FAULT_ALLOC, 1);
                rc = search_ask(&s, &got);
                fault_disarm();
                if (rc == -ENOMEM)
                    rc = search_ask(&s, &got);
                assert_int_equal(rc, end);
                if (end == -ENODATA)
                    break;
                assert_true(equal(&want, &got));
            }
            search_done(&s);
            search_done(&calm);
            space_done(&sp);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_search_keeps_the_contract),
        cmocka_unit_test(test_every_finite_space_is_used_up),
        cmocka_unit_test(test_random_uses_up_a_log_scale),
        cmocka_unit_test(test_random_draws_evenly),
        cmocka_unit_test(test_another_seed_is_another_order),
        cmocka_unit_test(test_grid_goes_in_the_order_written),
        cmocka_unit_test(test_searches_are_chosen_by_name_or_space),
        cmocka_unit_test(test_a_search_survives_memory_running_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
