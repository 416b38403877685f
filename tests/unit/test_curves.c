#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/curves.h"
#include "tests/fault.h"

#define HEAD                                                                                                           \
    "{\"format\":\"curves\",\"metric\":\"loss\",\"direction\":\"min\",\"epochs\":3,"                                   \
    "\"hyper\":{\"lr\":{\"min\":0.001,\"max\":1,\"scale\":\"log\"},\"n\":{\"min\":1,\"max\":4}}}\n"

static const char table[] = HEAD "{\"hyper\":{\"lr\":0.1,\"n\":2},\"values\":[3,2,1.5],\"seconds\":[1,2,2]}\n"
                                 "\n"
                                 "{\"hyper\":{\"lr\":0.0009,\"n\":1},\"values\":[4,null,2],\"joules\":[5,5,6]}\n"
                                 "{\"hyper\":{\"lr\":0.1,\"n\":2},\"values\":[9,9,9]}\n"
                                 "{\"hyper\":{\"n\":3,\"lr\":1},\"values\":[2.5]}";

static int parse(struct curves *out, const char *text, struct err *e)
{
    return curves_parse(out, "t.jsonl", text, strlen(text), e);
}

static struct curves parsed(const char *text)
{
    struct curves c = { 0 };
    struct err e = { 0 };
    if (parse(&c, text, &e) < 0)
        fail_msg("%s", e.text);
    return c;
}

static void test_lines_become_curves(void **state)
{
    (void)state;
    struct curves c = parsed(table);
    assert_string_equal(c.metric, "loss");
    assert_false(c.maximise);
    assert_int_equal(c.epochs, 3);
    assert_int_equal(c.n, 3);
    assert_int_equal(c.repeats, 1);
    assert_true(c.v[0].n == 3 && c.v[0].values[2] == 1.5 && c.v[0].seconds[1] == 2 && !c.v[0].joules);
    assert_true(isnan(c.v[1].values[2]) && c.v[1].joules[2] == 6);
    assert_true(curves_value(&c, &c.v[1], 1) == 4 && curves_value(&c, &c.v[1], 3) == 4); /* the worst there is */
    assert_int_equal(c.v[2].n, 1);
    assert_int_equal(space_size(&c.space), 3);
    struct point p = space_point_at(&c.space, 1);
    assert_true(p.x[0] == 0.0009 && p.x[1] == 1 && c.space.dims[0].min == 0.0009);
    curves_done(&c);
}

static void test_the_scale_of_regret(void **state)
{
    (void)state;
    struct curves c = parsed(table);
    struct curves_scale s;
    assert_int_equal(curves_scale(&c, &s), 0); /* they come to 1.5, 4 and 2.5 */
    assert_true(s.best == 1.5 && s.median == 2.5);
    c.maximise = true;
    assert_int_equal(curves_scale(&c, &s), 0); /* 3, 4, 2.5 */
    assert_true(s.best == 4 && s.median == 3);
    curves_done(&c);
}

static void test_what_is_written_reads_back(void **state)
{
    (void)state;
    struct curves c = parsed(table);
    AUTO_BUF struct buf b = BUF_INIT, again = BUF_INIT;
    for (int pass = 0; pass < 2; pass++) {
        struct buf *to = pass ? &again : &b;
        curves_put_head(to, c.metric, c.maximise, c.epochs, NULL);
        for (size_t i = 0; i < c.n; i++) {
            struct point p = space_point_at(&c.space, i);
            AUTO_JSON json_t *hyper = space_point_json(&c.space, &p);
            curves_put(to, hyper, &c.v[i]);
        }
        curves_done(&c);
        c = parsed(buf_text(to));
    }
    assert_string_equal(buf_text(&b), buf_text(&again));
    assert_non_null(strstr(buf_text(&b), "\"values\":[4,null,null],\"joules\":[5,5,6]}"));
    curves_done(&c);
}

static void test_faults_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } faults[] = {
        { "", "'t.jsonl' holds no curve" },
        { HEAD, "'t.jsonl' holds no curve" },
        { "{\"lr\": 3}", "line 1: curves begin with {\"format\":\"curves\"" },
        { "[]", "line 1: each line is a JSON object" },
        { HEAD "x", "line 2: each line is a JSON object: " },
        { "{\"format\":\"curves\",\"metric\":\"loss\",\"direction\":\"up\",\"epochs\":3}", "'direction' must be" },
        { "{\"format\":\"curves\",\"metric\":\"loss\",\"direction\":\"max\",\"epochs\":0}", "'epochs' must be" },
        { HEAD "\n{\"hyper\":{\"lr\":1,\"n\":1},\"values\":[]}", "line 3: 'values' must be a list of 1 to 3" },
        { HEAD "{\"hyper\":{\"lr\":1,\"n\":1},\"values\":[\"a\"]}", "'values' must hold numbers or null" },
        { HEAD "{\"hyper\":{\"lr\":1,\"n\":1},\"values\":[1,2],\"seconds\":[1]}", "'seconds' must be a list of 2" },
        { HEAD "{\"hyper\":{\"lr\":1,\"n\":1},\"values\":[1],\"joules\":[-1]}",
          "'joules' must hold numbers that are not" },
        { HEAD "{\"values\":[1]}", "line 2: 'hyper' must be an object" },
        { HEAD "{\"hyper\":{\"lr\":1},\"values\":[1]}", "configuration 1 has a hyperparameter that" },
    };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct curves c = { 0 };
        struct err e = { 0 };
        assert_int_equal(parse(&c, faults[i].text, &e), -EINVAL);
        if (!strstr(e.text, faults[i].want))
            fail_msg("got \"%s\", want \"%s\"", e.text, faults[i].want);
        assert_null(c.v);
    }
}

static void test_it_survives_memory_running_out(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct curves c = { 0 };
        struct err e = { 0 };
        assert_true(nth < 200);
        fault_arm(FAULT_ALLOC, nth);
        rc = parse(&c, table, &e);
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
        curves_done(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_become_curves),
        cmocka_unit_test(test_the_scale_of_regret),
        cmocka_unit_test(test_what_is_written_reads_back),
        cmocka_unit_test(test_faults_are_explained),
        cmocka_unit_test(test_it_survives_memory_running_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
