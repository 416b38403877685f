#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"
#include "search/forecast_replay.h"

static struct curves parsed(const struct buf *b)
{
    struct curves c = { 0 };
    struct err e = { 0 };
    if (curves_parse(&c, "t.jsonl", buf_text(b), b->len, &e) < 0)
        fail_msg("%s", e.text);
    return c;
}

/* Some fall by what x says, some diverge. */
static void draw_table(struct buf *b, const char *direction, double sign, int n)
{
    struct rng r = rng_seeded(9);
    buf_printf(b, "{\"format\":\"curves\",\"metric\":\"m\",\"direction\":\"%s\",\"epochs\":30}\n", direction);
    for (int i = 0; i < n; i++) {
        double x = rng_unit(&r);
        buf_printf(b, "{\"hyper\":{\"x\":%.6f},\"values\":[", x);
        for (int t = 1; t <= 30; t++)
            if (i % 11 == 5 && t > 12)
                buf_printf(b, "%snull", t > 1 ? "," : "");
            else
                buf_printf(b, "%s%.6f", t > 1 ? "," : "",
                           sign * (2 - 1.5 * x * (1 - exp(-t / 12.0)) + 0.02 * rng_normal(&r)));
        buf_printf(b, "]}\n");
    }
}

static struct forecast_quality quality(const char *direction, double sign, double share)
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct forecast_quality q = { 0 };
    struct err e = { 0 };
    draw_table(&b, direction, sign, 150);
    struct curves c = parsed(&b);
    assert_int_equal(forecast_replay(&c, share, &q, &e), 0);
    curves_done(&c);
    return q;
}

static void test_intervals_hold_and_errors_are_below_the_last_values(void **state)
{
    (void)state;
    struct forecast_quality q = quality("min", 1, 0.2);
    assert_int_equal(q.n, 150);
    if (q.coverage < 0.7 || q.coverage > 0.9 || q.error > 0.7 * q.last_value_error || !(q.width > 0))
        fail_msg("held %g, missed %g of %g", q.coverage, q.error, q.last_value_error);
}

static void test_the_direction_makes_no_difference(void **state)
{
    (void)state;
    struct forecast_quality down = quality("min", 1, 0.1), up = quality("max", -1, 0.1);
    assert_true(fabs(down.last_value_error - up.last_value_error) < 1e-9);
    /* what grows and stays within 0 and 1 may be a share, and is hoped for otherwise: these don't */
    assert_true(fabs(down.error - up.error) < 1e-9 && down.coverage == up.coverage);
}

static void test_what_cannot_be_foretold_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *says;
    } cases[] = {
        { "{\"hyper\":{\"x\":1},\"values\":[1,1]}\n{\"hyper\":{\"x\":2},\"values\":[1,1]}\n", "come to the same" },
        { "{\"hyper\":{\"x\":1},\"values\":[1]}\n{\"hyper\":{\"x\":2},\"values\":[2]}\n", "none of 2 curves" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        struct forecast_quality q;
        struct err e = { 0 };
        buf_printf(&b, "{\"format\":\"curves\",\"metric\":\"m\",\"direction\":\"min\",\"epochs\":2}\n%s",
                   cases[i].lines);
        struct curves c = parsed(&b);
        assert_int_equal(forecast_replay(&c, 0.5, &q, &e), -EINVAL);
        assert_non_null(strstr(e.text, cases[i].says));
        curves_done(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals_hold_and_errors_are_below_the_last_values),
        cmocka_unit_test(test_the_direction_makes_no_difference),
        cmocka_unit_test(test_what_cannot_be_foretold_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
