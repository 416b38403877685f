/* The heat map's cells from samples, and the pictures of it: nothing absent becomes a 0. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "tests/fault.h"
#include "view/heat.h"
#include "view/svg.h"

#define AUTO_HEAT __attribute__((cleanup(heat_done)))

enum { ROWS = 4, COLS = 2 };
static const char *const names[ROWS] = { "cycles", "rss", "L1<loads>", "nothing" };
static const char *const cols[COLS] = { "start-up", "epoch \"1\"" };

static bool second_is_gauge(size_t row)
{
    return row == 1;
}

static struct heat make(void)
{
    struct heat h = { 0 };
    assert_int_equal(heat_init(&h, names, second_is_gauge, ROWS, COLS), 0);
    return h;
}

static struct reading ok(double value)
{
    return (struct reading){ value, 1, READING_OK };
}

static struct reading not(enum reading_state why)
{
    return (struct reading){ NAN, 0, (uint8_t)why };
}

static void expect_real(const char *what, double got, double want)
{
    if (isnan(got) != isnan(want) || fabs(got - want) > 1e-9)
        fail_msg("%s: got %g, want %g", what, got, want);
}

static void test_counts_become_rates_and_gauges_means(void **state)
{
    (void)state;
    AUTO_HEAT struct heat h = make();
    const struct reading first[ROWS] = { ok(100), ok(10), not(READING_UNSUPPORTED), not(READING_ABSENT) };
    const struct reading second[ROWS] = { ok(500), ok(40), not(READING_DENIED), not(READING_ABSENT) };
    heat_add(&h, 0, 1, 1, first);
    heat_add(&h, 0, 2, 1, second);
    expect_real("rate", heat_rate(&h, 0, 0), 200); /* 600 in 3 s */
    expect_real("mean", heat_rate(&h, 1, 0), 30);  /* 10 for 1 s, 40 for 2 s */
    expect_real("unsupported", heat_rate(&h, 2, 0), NAN);
    expect_real("the other column", heat_rate(&h, 0, 1), NAN);
    assert_true(heat_has(&h, 0) && heat_has(&h, 1) && !heat_has(&h, 2) && !heat_has(&h, 3));
    assert_int_equal(heat_why(&h, 2), READING_UNSUPPORTED); /* the first reason */
    assert_int_equal(heat_why(&h, 3), READING_ABSENT);
}

static void test_an_interval_is_divided_among_the_columns_it_lies_in(void **state)
{
    (void)state;
    AUTO_HEAT struct heat h = make();
    const struct reading r[ROWS] = { ok(100), ok(8), not(READING_ABSENT), not(READING_ABSENT) };
    heat_add(&h, 0, 1, 0.25, r);
    heat_add(&h, 1, 1, 0.75, r);
    heat_add(&h, 1, 1, 0, r); /* not in it at all */
    for (size_t col = 0; col < COLS; col++) {
        expect_real("rate", heat_rate(&h, 0, col), 100);
        expect_real("mean", heat_rate(&h, 1, col), 8);
    }
    expect_real("time", h.cells[1].seconds, 0.75);
    expect_real("count", h.cells[1].sum, 75);
}

static void test_what_was_not_measured_takes_no_part_in_a_rate(void **state)
{
    (void)state;
    AUTO_HEAT struct heat h = make();
    struct reading r[ROWS] = { ok(100), ok(8), ok(0), not(READING_ABSENT) };
    heat_add(&h, 0, 1, 1, r);
    r[0] = not(READING_NOT_COUNTED);
    heat_add(&h, 0, 1, 1, r);
    expect_real("rate", heat_rate(&h, 0, 0), 100);
    expect_real("measured 0", heat_rate(&h, 2, 0), 0);
    r[0] = (struct reading){ 300, 0.5F, READING_MULTIPLEXED };
    heat_add(&h, 0, 1, 1, r);
    expect_real("rate with scaled", heat_rate(&h, 0, 0), 200);
    expect_real("counted", h.cells[0].counted, 1.5);
}

static void test_shares_of_an_interval(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double end_s, length_s, from_s, to_s, want;
    } cases[] = {
        { "within", 5, 1, 0, 10, 1 },
        { "before", 5, 1, 6, 10, 0 },
        { "after", 5, 1, 0, 4, 0 },
        { "half of it", 5, 1, 4.5, 10, 0.5 },
        { "a column within", 5, 4, 2, 3, 0.25 },
        { "no length", 5, 0, 0, 10, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_real(cases[i].name, heat_share(cases[i].end_s, cases[i].length_s, cases[i].from_s, cases[i].to_s),
                    cases[i].want);
}

static void test_rows_are_normalised_each_by_itself(void **state)
{
    (void)state;
    AUTO_HEAT struct heat h = make();
    const struct reading first[ROWS] = { ok(1e9), ok(4), ok(0), ok(7) };
    const struct reading second[ROWS] = { ok(5e8), ok(1), ok(0), not(READING_NOT_COUNTED) };
    heat_add(&h, 0, 1, 1, first);
    heat_add(&h, 1, 1, 1, second);
    static const double want[ROWS][COLS] = { { 1, 0.5 }, { 1, 0.25 }, { 0, 0 }, { 1, NAN } };
    for (size_t row = 0; row < ROWS; row++)
        for (size_t col = 0; col < COLS; col++)
            expect_real(names[row], heat_level(&h, row, col), want[row][col]);
}

static void test_no_memory_is_told(void **state)
{
    (void)state;
    struct heat h = { 0 };
    fault_arm(FAULT_ALLOC, 1);
    int rc = heat_init(&h, names, second_is_gauge, ROWS, COLS);
    fault_disarm();
    assert_true(rc < 0 && !h.cells);
    heat_done(&h);
    heat_done(NULL);
}

/* --- pictures --- */

static void expect_part(const struct buf *b, const char *part, bool there)
{
    if ((strstr(buf_text(b), part) != NULL) != there)
        fail_msg("%s '%s' in: %s", there ? "no" : "there is", part, buf_text(b));
}

static void test_what_html_would_take_for_its_own_is_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "a plain text – é", "a plain text – é" },
        { "<script>alert('x & \"y\"')</script>",
          "&lt;script&gt;alert(&#39;x &amp; &quot;y&quot;&#39;)&lt;/script&gt;" },
        { "&amp;", "&amp;amp;" },
        { "line\nand\ttab", "line\nand\ttab" },
        { "bell\a and \x7f", "bell  and  " },
        { "cut \xC3", "cut \xEF\xBF\xBD" },
        { "overlong \xC0\xAF", "overlong \xEF\xBF\xBD\xEF\xBF\xBD" },
        { "", "" },
        { NULL, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        svg_escape(&b, cases[i].text);
        assert_string_equal(buf_text(&b), cases[i].want);
    }
}

static void test_an_absent_cell_is_hatched_and_says_why(void **state)
{
    (void)state;
    AUTO_HEAT struct heat h = make();
    AUTO_BUF struct buf b = BUF_INIT;
    const struct reading first[ROWS] = { ok(1e9), ok(4), ok(0), not(READING_UNSUPPORTED) };
    const struct reading second[ROWS] = { not(READING_NO_FD), not(READING_ABSENT), ok(0), not(READING_UNSUPPORTED) };
    heat_add(&h, 0, 1, 1, first);
    heat_add(&h, 1, 1, 1, second);
    assert_true(svg_heat(&b, &h, cols));
    expect_part(&b, "class=\"cell\" fill-opacity=\"1.000\"><title>cycles, start-up: 1e+09 per second</title>", true);
    expect_part(&b, "class=\"absent\"><title>cycles, epoch &quot;1&quot;: absent, no_fd</title>", true);
    expect_part(&b, "class=\"absent\"><title>rss, epoch &quot;1&quot;: absent, nobody sampled it</title>", true);
    expect_part(&b, "L1&lt;loads&gt;, start-up: 0 per second", true); /* measured: it is 0 */
    expect_part(&b, "L1<loads>", false);
    expect_part(&b, ">nothing</text>", false); /* it was measured nowhere */
    assert_int_equal(strncmp(buf_text(&b), "<svg ", 5), 0);
}

static void test_a_scaled_cell_says_how_much_was_counted(void **state)
{
    (void)state;
    AUTO_HEAT struct heat h = make();
    AUTO_BUF struct buf b = BUF_INIT;
    const struct reading r[ROWS] = { { 100, 0.4F, READING_MULTIPLEXED }, ok(4), ok(0), ok(0) };
    heat_add(&h, 0, 1, 1, r);
    assert_true(svg_heat(&b, &h, cols));
    expect_part(&b, "cycles, start-up: 100 per second (counted 40 % of the time, scaled)", true);
    expect_part(&b, "rss, start-up: 4 on average</title>", true);
}

static void test_nothing_measured_is_no_picture(void **state)
{
    (void)state;
    AUTO_HEAT struct heat h = make();
    AUTO_BUF struct buf b = BUF_INIT;
    const struct reading r[ROWS] = { not(READING_DENIED), not(READING_DENIED), not(READING_DENIED),
                                     not(READING_DENIED) };
    assert_false(svg_heat(&b, &h, cols));
    heat_add(&h, 0, 1, 1, r);
    assert_false(svg_heat(&b, &h, cols));
    assert_int_equal(b.len, 0);
}

/* 300 is the highest end, of an interval: it is at the axis's top. A bar of which a part is absent is none. */
static void test_bars_stand_on_each_other(void **state)
{
    (void)state;
    static const char *const groups[] = { "a<b", "c" }, *const series[] = { "v1", "ours" };
    static const struct svg_bar bars[] = {
        { { 100, 150 }, 50 }, { { 0, 75 }, NAN }, { { NAN, 75 }, 10 }, { { 20, 30 }, 80 }
    };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_true(svg_bars(&b, &(struct svg_bars){ "s", groups, series, 2, 2, { "waits", "works" }, bars }));
    expect_part(&b, "<title>a&lt;b, v1: waits 100, works 150</title>", true);
    expect_part(&b, "<title>c, v1", false);
    expect_part(&b, ">300</text>", true);
    expect_part(&b, "y=\"75.0\" width=\"41.4\" height=\"123.0\"/>", true); /* 150 of 300 over 246 units */
    expect_part(&b, "class=\"whisker\" d=\"M208.0 34.0V116.0\"", true);
    expect_part(&b, "a<b", false);
    buf_clear(&b);
    assert_false(svg_bars(&b, &(struct svg_bars){ "s", groups, series, 1, 1, { "waits", "works" }, &bars[2] }));
    assert_int_equal(b.len, 0);
}

static void test_a_line_is_interrupted_where_a_figure_is_absent(void **state)
{
    (void)state;
    static const double x[] = { 1, 2, 3, 4 }, y[] = { 0.5, NAN, 0.7, 0.9 }, none[] = { NAN, NAN, NAN, NAN };
    const struct svg_line lines[] = { { "trial <1>", x, y, 4, true, NULL, NULL },
                                      { "trial 2", x, none, 4, false, NULL, NULL } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_true(svg_chart(&b, "epoch", "accuracy", lines, 2));
    expect_part(&b, "<title>trial &lt;1&gt;</title>", true);
    const char *path = strstr(strstr(buf_text(&b), "line strong"), " d=\"");
    assert_non_null(path);
    size_t moves = 0, drawn = 0;
    for (const char *p = path + 4; *p != '"'; p++) {
        moves += *p == 'M';
        drawn += *p == 'L';
    }
    assert_true(moves == 2 && drawn == 1);
    AUTO_BUF struct buf empty = BUF_INIT;
    assert_false(svg_chart(&empty, "epoch", "accuracy", lines + 1, 1));
    assert_false(svg_chart(&empty, "epoch", "accuracy", NULL, 0));
    assert_int_equal(empty.len, 0);
}

static void test_a_single_point_is_a_chart(void **state)
{
    (void)state;
    static const double x[] = { 1 }, y[] = { 0 };
    const struct svg_line line = { "trial 1", x, y, 1, true, NULL, NULL };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_true(svg_chart(&b, "epoch", "accuracy", &line, 1));
    expect_part(&b, "nan", false);
    expect_part(&b, "inf", false);
    expect_part(&b, "<circle", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_become_rates_and_gauges_means),
        cmocka_unit_test(test_an_interval_is_divided_among_the_columns_it_lies_in),
        cmocka_unit_test(test_what_was_not_measured_takes_no_part_in_a_rate),
        cmocka_unit_test(test_shares_of_an_interval),
        cmocka_unit_test(test_rows_are_normalised_each_by_itself),
        cmocka_unit_test(test_no_memory_is_told),
        cmocka_unit_test(test_what_html_would_take_for_its_own_is_escaped),
        cmocka_unit_test(test_an_absent_cell_is_hatched_and_says_why),
        cmocka_unit_test(test_a_scaled_cell_says_how_much_was_counted),
        cmocka_unit_test(test_nothing_measured_is_no_picture),
        cmocka_unit_test(test_bars_stand_on_each_other),
        cmocka_unit_test(test_a_line_is_interrupted_where_a_figure_is_absent),
        cmocka_unit_test(test_a_single_point_is_a_chart),
    };
    return cmocka_run_group_tests_name("heat", tests, NULL, NULL);
}
