#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/decimal.h"

static const struct {
    const char *name, *text, *points;
    double value, step; /* step 0: refused */
} rows[] = {
    { "a whole number steps by one", "41", ".", 41, 1 },
    { "each decimal is a tenth of the one before", "41.25", ".", 41.25, 0.01 },
    { "a zero at the end is a digit, too", "41.0", ".", 41, 0.1 },
    { "a sign may be there", "-3.5", ".", -3.5, 0.1 },
    { "either sign", "+7", ".", 7, 1 },
    { "digits before the point may be missing", ".5", ".", 0.5, 0.1 },
    { "digits behind it, too", "5.", ".", 5, 1 },
    { "an exponent moves the step", "1.2e+03", ".", 1200, 100 },
    { "in either case and sign", "12E-1", ".", 1.2, 0.1 },
    { "blanks around it are none of it", " \t41.5 ", ".", 41.5, 0.1 },
    { "a comma where it is allowed", "41,5", ",.", 41.5, 0.1 },
    { "a comma where it is not", "41,5", ".", 0, 0 },
    { "grouped digits are refused", "1.234,5", ",.", 0, 0 },
    { "nothing is no number", "", ".", 0, 0 },
    { "blanks are no number", "   ", ".", 0, 0 },
    { "a point alone is no number", ".", ".", 0, 0 },
    { "nor is a sign", "-", ".", 0, 0 },
    { "two signs are one too many", "--1", ".", 0, 0 },
    { "nan is a name", "nan", ".", 0, 0 },
    { "inf is one, too", "inf", ".", 0, 0 },
    { "hexadecimal is refused", "0x10", ".", 0, 0 },
    { "a unit is not part of a number", "41.5 W", ".", 0, 0 },
    { "an exponent needs digits", "1e", ".", 0, 0 },
    { "what no double holds is refused", "1e999", ".", 0, 0 },
    { "so is a step that none holds", "0e641", ".", 0, 0 },
    { "or that vanishes", "0e-641", ".", 0, 0 },
    { "so is an exponent beyond reason", "1e99999", ".", 0, 0 },
    { "so are more digits than instruments have", "11111111111111111111111111111111111111111", ".", 0, 0 },
};

static void numbers_have_a_value_and_a_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double x = -1, step = 0;
        bool read = decimal_read(rows[i].text, strlen(rows[i].text), rows[i].points, &x, &step);
        if (read != (rows[i].step != 0) || (read && x != rows[i].value) || (!read && (x != -1 || step != 0)))
            fail_msg("%s: '%s' gave %d, %g", rows[i].name, rows[i].text, read, x);
        if (read && (step > rows[i].step * 1.0001 || step < rows[i].step * 0.9999))
            fail_msg("%s: '%s' has a step of %g, want %g", rows[i].name, rows[i].text, step, rows[i].step);
    }
}

static void only_the_given_length_is_read(void **state)
{
    (void)state;
    double x, step;
    assert_true(decimal_read("12345", 2, ".", &x, &step));
    assert_true(x == 12);
    assert_false(decimal_read("1\0002", 3, ".", &x, &step));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_a_value_and_a_step),
        cmocka_unit_test(only_the_given_length_is_read),
    };
    return cmocka_run_group_tests_name("decimal", tests, NULL, NULL);
}
