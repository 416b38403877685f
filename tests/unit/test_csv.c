#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/csv.h"
#include "tests/fault.h"

/* Each row as "LINE:field|field;", a row that cannot be read as "LINE:;". */
static const struct {
    const char *name, *text, *want;
} rows[] = {
    { "fields between commas", "a,b,c\nd,e,f\n", "1:a|b|c;2:d|e|f;" },
    { "the last line needs no newline", "a,b", "1:a|b;" },
    { "CRLF", "a,b\r\nc\r\n", "1:a|b;2:c;" },
    { "blank lines count and are no rows", "\n \t\na\n\n", "3:a;" },
    { "a byte order mark",
      "\xEF\xBB\xBF"
      "a,b",
      "1:a|b;" },
    { "spaces around fields", " a , b\t,c ", "1:a|b|c;" },
    { "empty fields", ",,", "1:||;" },
    { "quotes hold commas", "\"a,b\",c", "1:a,b|c;" },
    { "two quotes are one", "\"a\"\"b\",\"\"", "1:a\"b|;" },
    { "spaces within quotes stay", "\" a \"", "1: a ;" },
    { "a quote that is not closed", "\"a,b\nc", "1:;2:c;" },
    { "text behind a quote", "\"a\"b,c", "1:;" },
    { "nothing", "", "" },
};

static void test_rows_are_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf got = BUF_INIT;
        struct csv c;
        assert_int_equal(csv_init(&c, rows[i].text, strlen(rows[i].text)), 0);
        while (csv_next(&c)) {
            buf_printf(&got, "%zu:", c.line);
            for (size_t k = 0; k < c.n; k++)
                buf_printf(&got, "%s%s", k ? "|" : "", c.field[k]);
            buf_putc(&got, ';');
        }
        csv_done(&c);
        if (strcmp(buf_text(&got), rows[i].want) != 0)
            fail_msg("%s: got %s, want %s", rows[i].name, buf_text(&got), rows[i].want);
    }
}

static void test_what_cannot_be_read_has_no_fields(void **state)
{
    (void)state;
    struct csv c;
    char many[2 * CSV_FIELDS_MAX + 1];
    memset(many, ',', sizeof many);
    many[CSV_FIELDS_MAX] = '\n';
    assert_int_equal(csv_init(&c, many, CSV_FIELDS_MAX + 1), 0);
    assert_true(csv_next(&c));
    assert_int_equal(c.n, 0);
    csv_done(&c);
    assert_int_equal(csv_init(&c, "a\0b,c\nd", 7), 0);
    assert_true(csv_next(&c));
    assert_int_equal(c.n, 0);
    assert_true(csv_next(&c));
    assert_int_equal(c.n, 1);
    assert_false(csv_next(&c));
    csv_done(&c);
    csv_done(NULL);
}

static void test_numbers_are_whole_fields(void **state)
{
    (void)state;
    double x = 7;
    int n = 7;
    assert_true(csv_real("-1.5e2", -1000, 0, &x) && x == -150);
    static const char *const none[] = { "", "x", "1x", "1 2", "nan", "inf", "0x10", "1e999", "-", "1,5" };
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (csv_real(none[i], -1e300, 1e300, &x) || csv_int(none[i], -100, 100, &n))
            fail_msg("'%s' is a number", none[i]);
    assert_false(csv_real("5", 6, 9, &x) || csv_int("1.5", 0, 9, &n) || csv_int("10", 0, 9, &n));
    assert_true(x == -150 && n == 7);
    assert_true(csv_int("9", 0, 9, &n) && n == 9);
}

static void test_names_are_utf8_without_controls(void **state)
{
    (void)state;
    assert_true(csv_is_name("") && csv_is_name("lenet 5") && csv_is_name("caf\xC3\xA9"));
    assert_false(csv_is_name("a\tb") || csv_is_name("\x7F") || csv_is_name("\xC3") || csv_is_name("\xFF"));
}

static const struct {
    const char *name, *text, *want;
} cells[] = {
    { "a text", "lenet 5", "lenet 5" },
    { "nothing", "", "" },
    { "a comma", "a,b", "\"a,b\"" },
    { "a quote", "a\"b", "\"a\"\"b\"" },
    { "a line end", "a\nb", "\"a\nb\"" },
    { "a formula", "=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\"" },
    { "other beginnings of formulas", "+a", "'+a" },
    { "a dash", "-a", "'-a" },
    { "an at sign", "@SUM(a)", "'@SUM(a)" },
    { "a tabulator, which is skipped", "\t=a", "'\t=a" },
    { "a carriage return", "\r=a", "' =a" },
    { "a blank", " =a", "' =a" },
    { "wide signs", "\uFF1Da", "'\uFF1Da" },
    { "a text that looks like a number", "01", "'01" },
    { "one with a sign", "+1", "'+1" },
    { "one with an exponent", "1e5", "'1e5" },
    { "one that is none", "1.2.3", "1.2.3" },
    { "what steers a terminal", "a\xC2\x9B", "a " },
};

static void test_cells_of_text_stay_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        csv_put_text(&b, cells[i].text);
        if (strcmp(buf_text(&b), cells[i].want) != 0)
            fail_msg("%s: got %s, want %s", cells[i].name, buf_text(&b), cells[i].want);
    }
}

static void test_cells_of_numbers_are_numbers(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    csv_put_number(&b, -0.5);
    csv_put_number(&b, NAN); /* absent: an empty cell */
    csv_put_number(&b, 0.9914);
    assert_string_equal(buf_text(&b), "-0.50.9914");
}

static void test_faults_come_by_line_and_not_all(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    struct csv_faults f = { 0 };
    for (size_t line = 30; line > 0; line--)
        csv_fault_add(&f, line, "epoch", "is odd");
    csv_faults_sort(&f);
    csv_faults_put(&f, "note: ", "f.csv", &b);
    const char *first = "note: 'f.csv' line 1: epoch is odd\nnote: 'f.csv' line 2: ";
    assert_memory_equal(buf_text(&b), first, strlen(first));
    assert_null(strstr(buf_text(&b), "line 21"));
    assert_non_null(strstr(buf_text(&b), "note: 'f.csv': and 10 more like these\n"));
    csv_faults_done(&f);
    csv_faults_done(NULL);
}

static void test_a_fault_that_is_lost_is_told(void **state)
{
    (void)state;
    struct csv_faults f = { 0 };
    struct csv c;
    fault_arm(FAULT_ALLOC, 1);
    csv_fault_add(&f, 1, "a", "b");
    fault_disarm();
    assert_true(f.failed && f.n == 0);
    fault_arm(FAULT_ALLOC, 1);
    assert_int_equal(csv_init(&c, "a", 1), -ENOMEM);
    fault_disarm();
    csv_faults_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_split),
        cmocka_unit_test(test_what_cannot_be_read_has_no_fields),
        cmocka_unit_test(test_numbers_are_whole_fields),
        cmocka_unit_test(test_cells_of_text_stay_text),
        cmocka_unit_test(test_cells_of_numbers_are_numbers),
        cmocka_unit_test(test_names_are_utf8_without_controls),
        cmocka_unit_test(test_faults_come_by_line_and_not_all),
        cmocka_unit_test(test_a_fault_that_is_lost_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
