#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "cmd/table.h"
#include "tests/fault.h"

static void expect(const char *name, const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        fail_msg("%s: got\n%s\nwant\n%s", name, got, want);
}

static const struct {
    const char *name;
    const char *heads[5], *cells[9];
    size_t cut;
    const char *want;
} cases[] = {
    { "columns are as wide as their content",
      { "study", ">trials" },
      { "a-long-name", "4", "b", "1200" },
      0,
      "study        trials\n-----------  ------\na-long-name       4\nb              1200\n" },
    { "no blanks stand at the end of a line",
      { "a", "b" },
      { "x", "longer", "y", "z" },
      0,
      "a  b\n-  ------\nx  longer\ny  z\n" },
    { "a wide letter is two columns",
      { "a", "b" },
      { "試験", "1", "abc", "2" },
      0,
      "a     b\n----  -\n試験  1\nabc   2\n" },
    { "nothing turns the order of what stands beside it", { "a" }, { "x\u202ey\xC2\x9B" }, 0, "a\n----\nx\uFFFDy\n" },
    { "letters count, not bytes", { "a", "b" }, { "é…", "1", "abc", "2" }, 0, "a    b\n---  -\né…   1\nabc  2\n" },
    { "a long line is cut and says so", { "a", "b" }, { "x", "0123456789" }, 8, "a  b\n-  ----…\nx  0123…\n" },
    { "a line that just fits is whole", { "a" }, { "01234567" }, 8, "a\n--------\n01234567\n" },
    { "a letter is never cut in two", { "a" }, { "éééé" }, 3, "a\n--…\néé…\n" },
    { "nothing in a cell commands the terminal", { "a" }, { "x\n\033[31my" }, 0, "a\n--------\nx  [31my\n" },
    { "no rows are the heads alone", { "a", ">b" }, { NULL }, 0, "a  b\n-  -\n" },
    { "a row that is not full is left out", { "a", "b" }, { "1", "2", "3" }, 0, "a  b\n-  -\n1  2\n" },
};

static void test_table_prints(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct table t;
        AUTO_BUF struct buf b = BUF_INIT;
        table_init(&t, cases[i].heads);
        for (size_t c = 0; cases[i].cells[c]; c++)
            table_cell(&t, cases[i].cells[c]);
        table_put(&t, &b, cases[i].cut);
        assert_false(b.failed);
        expect(cases[i].name, buf_text(&b), cases[i].want);
        table_done(&t);
    }
}

static const struct {
    const char *name;
    double x;
    int digits;
    const char *want;
} numbers[] = {
    { "digits at most", 0.991449, 4, "0.9914" },
    { "zeros at the end go", 0.5, 4, "0.5" },
    { "a whole number has no point", 3, 4, "3" },
    { "no digits wanted", 1200.4, 0, "1200" },
    { "zeros of a whole number stay", 100, 0, "100" },
    { "absent", NAN, 4, "-" },
    { "infinite", INFINITY, 4, "-" },
    { "less than nothing", -0.25, 2, "-0.25" },
};

static void test_table_prints_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        static const char *const heads[] = { "x", NULL };
        struct table t;
        table_init(&t, heads);
        table_number(&t, numbers[i].x, numbers[i].digits);
        assert_int_equal(t.n, 2);
        expect(numbers[i].name, t.cells[1], numbers[i].want);
        table_done(&t);
    }
}

static const struct {
    double s;
    const char *want;
} durations[] = {
    { 0, "0.0 s" },           { 12.34, "12.3 s" },    { 59.94, "59.9 s" },  { 59.96, "1 m 00 s" },
    { 125, "2 m 05 s" },      { 3599.6, "1 h 00 m" }, { 3780, "1 h 03 m" }, { 7199, "2 h 00 m" },
    { 360000, "100 h 00 m" }, { NAN, "-" },           { INFINITY, "-" },
};

static void test_table_prints_durations(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
        char text[32];
        expect("duration", table_duration(durations[i].s, text), durations[i].want);
    }
}

static void test_table_survives_a_lack_of_memory(void **state)
{
    (void)state;
    static const char *const heads[] = { "a", ">b", NULL };
    bool failed = true;
    for (unsigned nth = 1; failed; nth++) {
        assert_true(nth < 500); /* it must succeed in the end */
        struct table t;
        AUTO_BUF struct buf b = BUF_INIT;
        fault_arm(FAULT_ALLOC, nth);
        table_init(&t, heads);
        for (int i = 0; i < 100; i++)
            table_cell(&t, "text");
        table_put(&t, &b, 0);
        (void)fault_disarm();
        failed = b.failed;
        assert_int_equal(failed, t.failed || b.failed);
        table_done(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_prints),
        cmocka_unit_test(test_table_prints_numbers),
        cmocka_unit_test(test_table_prints_durations),
        cmocka_unit_test(test_table_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
