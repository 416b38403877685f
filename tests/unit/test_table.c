#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "tests/fault.h"
#include "view/table.h"

static void expect(const char *name, const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        fail_msg("%s: got\n%s\nwant\n%s", name, got, want);
}

static const struct {
    const char *name;
    const char *heads[6], *cells[17]; /* one that begins with '#' is a note */
    size_t width;
    const char *want;
} cases[] = {
    { "columns are as wide as their content",
      { "study", ">trials" },
      { "a-long-name", "4", "b", "1200" },
      80,
      "study        trials\n-----------  ------\na-long-name       4\nb              1200\n" },
    { "no blanks stand at the end of a line",
      { "a", "b" },
      { "x", "longer", "y", "z" },
      80,
      "a  b\n-  ------\nx  longer\ny  z\n" },
    { "letters count, not bytes", { "a", "b" }, { "é…", "1", "abc", "2" }, 80, "a    b\n---  -\né…   1\nabc  2\n" },
    { "a wide letter is two columns",
      { "a", "b" },
      { "試験", "1", "abc", "2" },
      80,
      "a     b\n----  -\n試験  1\nabc   2\n" },
    { "nothing in a cell commands the terminal", { "a" }, { "x\n\033[31my" }, 80, "a\n--------\nx  [31my\n" },
    { "nothing turns the order of what stands beside it", { "a" }, { "x\u202ey\xC2\x9B" }, 80, "a\n----\nx\uFFFDy\n" },
    { "no rows are the heads alone", { "a", ">b" }, { NULL }, 80, "a  b\n-  -\n" },
    { "a row that is not full is left out", { "a", "b" }, { "1", "2", "3" }, 80, "a  b\n-  -\n1  2\n" },
    { "what is the same in all rows stands above",
      { "a", "b", "!c", "d" },
      { "1", "x", "z", "y", "2", "x", "z", "y" },
      80,
      "the same in all rows:  b x  d y\n\na  c\n-  -\n1  z\n2  z\n" },
    { "one row is not the same as others", { "a", "b" }, { "1", "x" }, 80, "a  b\n-  -\n1  x\n" },
    { "a column without anything is left out", { "a", "b" }, { "1", "", "2", "" }, 80, "a\n-\n1\n2\n" },
    { "a note stands below its row",
      { "a", "b" },
      { "1", "x", "#a reason", "2", "y" },
      80,
      "a  b\n-  -\n1  x\n  a reason\n2  y\n" },
    { "a long note is broken at its blanks",
      { "a" },
      { "1", "#some long words" },
      12,
      "a\n-\n1\n  some long\n  words\n" },
    { "a word that no line has room for is cut, and nothing is lost",
      { "a" },
      { "1", "#0123456789" },
      8,
      "a\n-\n1\n  012345\n  6789\n" },
    { "a table that just fits is one", { "a", "b" }, { "12", "3456" }, 8, "a   b\n--  ----\n12  3456\n" },
    { "a row that is too wide is a block",
      { "trial", ">accuracy", "state" },
      { "demo/1", "0.9", "finished", "#why", "demo/2", "", "failed" },
      21,
      "demo/1  accuracy 0.9\n  state finished\n  why\ndemo/2  state failed\n" },
    { "a value that no line has room for", { "a", "name" }, { "1", "0123456789" }, 8, "1  name\n  012345\n  6789\n" },
    { "a last column of text is broken within itself",
      { "policy", ">time", "what it does" },
      { "first", "31 m", "always the first feasible setting", "last", "24 m", "the last" },
      40,
      "policy  time  what it does\n------  ----  --------------------------\nfirst   31 m  always the first feasible\n"
      "              setting\nlast    24 m  the last\n" },
    { "wide letters in a block", { "a", "b" }, { "試験", "試験試験" }, 8, "試験  b\n  試験試\n  験\n" },
    { "what is above is broken, too",
      { "a", "bbbb", "cccc" },
      { "1", "x", "y", "2", "x", "y" },
      20,
      "the same in all\n  rows:  bbbb x\n  cccc y\n\na\n-\n1\n2\n" },
};

static void test_table_prints(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct table t;
        AUTO_BUF struct buf b = BUF_INIT;
        table_init(&t, cases[i].heads);
        for (size_t c = 0; cases[i].cells[c]; c++)
            if (*cases[i].cells[c] == '#')
                table_note(&t, cases[i].cells[c] + 1);
            else
                table_cell(&t, cases[i].cells[c]);
        table_put(&t, &b, cases[i].width);
        assert_false(b.failed);
        expect(cases[i].name, buf_text(&b), cases[i].want);
        table_done(&t);
    }
}

static void test_values_that_read_alike_may_differ(void **state)
{
    (void)state;
    static const char *const heads[] = { "a", ">rate", NULL };
    struct table t;
    AUTO_BUF struct buf b = BUF_INIT;
    table_init(&t, heads);
    table_cell(&t, "1");
    table_number(&t, 0.100001);
    table_cell(&t, "2");
    table_number(&t, 0.100002);
    table_differs(&t, 1);
    table_put(&t, &b, 80);
    expect("alike", buf_text(&b), "a  rate\n-  ----\n1   0.1\n2   0.1\n");
    table_done(&t);
}

static const struct {
    const char *columns;
    size_t want;
} terminals[] = { { "60", 60 }, { "5", 20 }, { "x", 100 }, { "", 100 }, { NULL, 100 } };

static void test_the_width_is_given_or_100(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(terminals); i++) {
        if (terminals[i].columns)
            (void)setenv("COLUMNS", terminals[i].columns, 1);
        else
            (void)unsetenv("COLUMNS");
        if (!isatty(STDOUT_FILENO) || terminals[i].want != 100)
            assert_int_equal(table_width(), terminals[i].want);
    }
}

static const struct {
    const char *name;
    double x;
    const char *want;
} numbers[] = {
    { "four digits", 0.991449, "0.9914" },
    { "zeros at the end go", 0.5, "0.5" },
    { "a whole number has no point", 3, "3" },
    { "all digits before the point", 60416.4, "60416" },
    { "zeros of a whole number stay", 100, "100" },
    { "digits behind the point", 12.3456, "12.35" },
    { "a small one", 0.00012345, "0.0001234" },
    { "a very small one", 1.23456e-7, "1.235e-07" },
    { "a very great one", 1.23456e20, "1.235e+20" },
    { "nothing", 0, "0" },
    { "rounded up to the next power", 9.99996, "10" },
    { "absent", NAN, "-" },
    { "infinite", INFINITY, "-" },
    { "less than nothing", -0.25, "-0.25" },
};

static void test_table_prints_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        static const char *const heads[] = { "x", NULL };
        struct table t;
        table_init(&t, heads);
        table_number(&t, numbers[i].x);
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
        for (int i = 0; i < 100; i++) {
            table_cell(&t, "text");
            if (i % 2)
                table_note(&t, "note");
        }
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
        cmocka_unit_test(test_values_that_read_alike_may_differ),
        cmocka_unit_test(test_the_width_is_given_or_100),
        cmocka_unit_test(test_table_prints_numbers),
        cmocka_unit_test(test_table_prints_durations),
        cmocka_unit_test(test_table_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
