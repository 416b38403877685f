#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "serve/plot.h"

#define EVIL "<script>\"'&"

static size_t count(const struct buf *b, const char *what)
{
    size_t n = 0;
    for (const char *at = buf_text(b); (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* No text of others is markup, no style is within, no number is none. */
static void check_svg(const struct buf *b)
{
    assert_int_equal(count(b, "<script"), 0);
    assert_int_equal(count(b, "style="), 0);
    assert_int_equal(count(b, "nan"), 0);
    assert_int_equal(count(b, "inf"), 0);
    assert_int_equal(count(b, "<svg"), count(b, "</svg>"));
}

static void test_lines_have_gaps_and_a_legend(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 3, 4 }, y[] = { 1, NAN, 3, 4 }, flat[] = { 2, 2, 2, 2 }, none[] = { NAN, NAN, NAN, NAN };
    const struct plot_line lines[] = { { EVIL, x, y, 4 }, { "flat", x, flat, 4 }, { "none", x, none, 4 } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_true(plot_lines(&b, EVIL, EVIL, lines, 3));
    check_svg(&b);
    assert_int_equal(count(&b, "<li>"), 3);
    buf_clear(&b);
    assert_false(plot_lines(&b, "x", "y", &lines[2], 1));
    assert_false(plot_lines(&b, "x", "y", NULL, 0));
    assert_int_equal(b.len, 0);
    assert_true(plot_lines(&b, "x", "y", &lines[1], 1));
    check_svg(&b);
}

static void test_points_over_words_and_orders_of_magnitude(void **state)
{
    (void)state;
    static const char *const words[] = { "adam", EVIL };
    const struct plot_axis numbers = { "rate", true, NULL, 0 }, names = { EVIL, false, words, 2 },
                           y = { "accuracy", false, NULL, 0 };
    const struct plot_point points[] = { { 0.001, 0.5, EVIL, "/trial/a%22/1", false },
                                         { 0, 0.5, "not on a logarithm", NULL, false },
                                         { 0.1, NAN, "absent", NULL, false },
                                         { 1, 0.7, NULL, NULL, true } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_true(plot_points(&b, &numbers, &y, points, 4));
    check_svg(&b);
    assert_int_equal(count(&b, "<circle"), 2);
    buf_clear(&b);
    assert_true(plot_points(&b, &names, &y, points, 4));
    check_svg(&b);
    buf_clear(&b);
    assert_false(plot_points(&b, &numbers, &y, points + 1, 2));
    assert_int_equal(b.len, 0);
}

static void test_parallel_coordinates(void **state)
{
    (void)state;
    static const char *const words[] = { "a", "b" };
    const struct plot_axis axes[] = { { EVIL, false, NULL, 0 }, { "w", false, words, 2 }, { "m", false, NULL, 0 } };
    const double one[] = { 1, 0, 0.5 }, two[] = { 2, NAN, 0.7 }, none[] = { NAN, NAN, NAN };
    const struct plot_row rows[] = { { one, EVIL, true }, { two, NULL, false }, { none, NULL, false } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_true(plot_parallel(&b, axes, 3, rows, 3));
    check_svg(&b);
    buf_clear(&b);
    assert_false(plot_parallel(&b, axes, 1, rows, 3));
    assert_false(plot_parallel(&b, &axes[2], 1, NULL, 0));
    assert_int_equal(b.len, 0);
}

static void test_numbers_of_any_size(void **state)
{
    (void)state;
    const double x[] = { -1e308, 1e308, 0 }, y[] = { 1e-320, 1e308, 1 };
    const struct plot_line line = { "wide", x, y, 3 };
    const struct plot_axis logs = { "x", true, NULL, 0 }, plain = { "y", false, NULL, 0 };
    const struct plot_point points[] = { { 1e-320, -1e308, NULL, NULL, false }, { 1e308, 1e308, NULL, NULL, true } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_true(plot_lines(&b, "x", "y", &line, 1));
    assert_true(plot_points(&b, &logs, &plain, points, 2));
    check_svg(&b);
}

static void test_lanes(void **state)
{
    (void)state;
    static const char *const lanes[] = { "1 running", EVIL };
    const struct plot_bar bars[] = { { 0, 0, 10, 0, EVIL, EVIL },
                                     { 1, 5, 5, 9, "x", NULL },
                                     { 1, NAN, 9, 1, NULL, NULL } };
    const struct plot_mark marks[] = { { 0, 3, EVIL }, { 1, NAN, "absent" } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_true(plot_lanes(&b, "time", lanes, 2, bars, 3, marks, 2));
    check_svg(&b);
    assert_int_equal(count(&b, "<rect"), 2);
    assert_int_equal(count(&b, "class=\"mark\""), 1);
    buf_clear(&b);
    assert_false(plot_lanes(&b, "time", lanes, 2, NULL, 0, marks, 1));
    assert_int_equal(b.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_have_gaps_and_a_legend),
        cmocka_unit_test(test_points_over_words_and_orders_of_magnitude),
        cmocka_unit_test(test_parallel_coordinates),
        cmocka_unit_test(test_numbers_of_any_size),
        cmocka_unit_test(test_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
