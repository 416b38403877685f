/* Conditions as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "core/expr.h"

static const char *const names[] = {
    "batch_size", "cores", "optimizer", "learning-rate", "momentum", "nothing", "tag"
};
static const struct expr_value values[] = { { .number = 64 },
                                            { .number = 4 },
                                            { .text = "sgd" },
                                            { .number = 0.1 },
                                            { .number = 0.9 },
                                            { .number = NAN },
                                            { .text = "good\nused in Brest", .is_list = true } };

static struct expr_value read_name(void *ctx, size_t name)
{
    (void)ctx;
    return values[name];
}

static void test_what_holds(void **state)
{
    static const struct {
        const char *text;
        bool holds;
    } cases[] = {
        { "batch_size % cores == 0", true },
        { "batch_size % (cores + 1) == 0", false },
        { "optimizer == 'sgd'", true },
        { "optimizer == \"adam\" || momentum > 0", true },
        { "optimizer == 'adam' or momentum > 1", false },
        { "!(optimizer == 'adam')", true },
        { "not optimizer == 'adam' and cores >= 4", false }, /* not (optimizer) == 'adam': a text is no truth */
        { "not (optimizer == 'adam') and cores >= 4", true },
        { "optimizer != 'adam'", true },
        { "optimizer < 3", false },
        { "optimizer != 3", true },
        { "`learning-rate` * batch_size <= 6.4 + 1e-9", true },
        { "2 + 3 * 4 == 14", true },
        { "2 - 3 - 4 == -5", true },
        { "8 / 4 / 2 == 1", true },
        { "-2 < 1 && 1 > -2", true },
        { "min(cores, 8) == 4 && max(cores, 8) == 8", true },
        { "abs(-3) + floor(2.5) == 5 && sqrt(log(1)) == 0", true },
        { "nothing == nothing", false },
        { "nothing >= 0 || nothing < 0", false },
        { "1 / 0 > 5", true },
        { "0 / 0 == 0", false },
        { "cores", true },
        { "0", false },
        { "'text'", false },
        { "1 < 2 == 1", true },
        { "cores = 4 and optimizer='sgd'", true },
        { "cores=5 or not cores= 4", false },
        { "cores<=4 and cores>=4 and cores!=5", true },
        { "optimizer ~ 'G'", true }, /* a part, whatever its case */
        { "optimizer ~ 'adam'", false },
        { "optimizer ~ ''", true },
        { "cores ~ '4'", false },
        { "tag = 'good'", true },
        { "'good' = tag", true },
        { "tag = 'used in Brest' and tag = 'good'", true },
        { "tag = 'goo' or tag = 'good\nused in Brest'", false },
        { "tag != 'good'", false },
        { "tag != 'bad'", true },
        { "tag ~ 'brest'", true },
        { "tag ~ 'd\nu'", false },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct expr *x = NULL;
        struct err e = { 0 };
        if (expr_parse(&x, cases[i].text, names, ARRAY_LEN(names), &e) < 0)
            fail_msg("%s: %s", cases[i].text, e.text);
        if (expr_holds(x, read_name, NULL) != cases[i].holds)
            fail_msg("'%s' must be %s", cases[i].text, cases[i].holds ? "true" : "false");
        expr_free(x);
    }
}

static void test_what_is_wrong_is_told(void **state)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        { "", "a value is missing at its end" },
        { "batch_sise == 1", "did you mean 'batch_size'?" },
        { "cores ==", "a value is missing at its end" },
        { "(cores == 1", "a ')' is missing" },
        { "cores == 1)", "there is something more at ')'" },
        { "optimizer == 'sgd", "a text has no end at ''sgd'" },
        { "`cores == 1", "a name has no end" },
        { "1x == 1", "there is no number at '1x == 1'" },
        { "min(1) == 1", "a ',' is missing at ') == 1'" },
        { "min(1, 2 == 1", "a ')' is missing" },
        { "cores =", "a value is missing at its end" },
        { "cores => 1", "a value is missing at '> 1'" },
        { "1 ++", "a value is missing" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct expr *x = NULL;
        struct err e = { 0 };
        assert_int_equal(expr_parse(&x, cases[i].text, names, ARRAY_LEN(names), &e), -EINVAL);
        if (!strstr(e.text, cases[i].told))
            fail_msg("'%s': told '%s', want '%s'", cases[i].text, e.text, cases[i].told);
    }
}

static void test_what_is_too_deep_or_too_long_is_refused(void **state)
{
    char text[8192] = "";
    struct expr *x = NULL;
    struct err e = { 0 };
    (void)state;
    memset(text, '(', 5000);
    assert_int_equal(expr_parse(&x, text, names, 1, &e), -EINVAL);
    memset(text, '-', 5000);
    assert_int_equal(expr_parse(&x, text, names, 1, &e), -EINVAL);
    text[0] = '\0';
    for (int i = 0; i < 2000; i++)
        memcpy(text + 2 * i, i ? "+1" : " 1", 3);
    assert_int_equal(expr_parse(&x, text, names, 1, &e), -EINVAL);
}

static void test_it_tells_which_names_it_uses(void **state)
{
    struct expr *x = NULL;
    struct err e = { 0 };
    (void)state;
    assert_int_equal(expr_parse(&x, "batch_size % cores == 0", names, ARRAY_LEN(names), &e), 0);
    assert_true(expr_uses(x, 0) && expr_uses(x, 1) && !expr_uses(x, 2));
    expr_free(x);
}

static void test_names_may_be_known_later(void **state)
{
    (void)state;
    AUTO_STRV struct strv others = STRV_INIT;
    struct expr *x = NULL;
    assert_int_equal(expr_parse_open(&x, "seconds < cores and `top-5` > seconds", names, 6, &others, NULL), 0);
    assert_int_equal(others.n, 2);
    assert_string_equal(others.v[0], "seconds");
    assert_string_equal(others.v[1], "top-5");
    assert_true(expr_uses(x, 1) && expr_uses(x, 6) && expr_uses(x, 7));
    expr_free(x);
}

/* `batch_size` stays, `cores` rises, `momentum` falls, `nothing` varies. */
static void test_what_only_falls(void **state)
{
    static const enum expr_trend trends[] = { EXPR_STAYS, EXPR_RISES, EXPR_STAYS, EXPR_STAYS, EXPR_FALLS, EXPR_VARIES };
    static const struct {
        const char *text;
        bool falls;
    } cases[] = {
        { "cores <= 5", true },
        { "cores > 5", false },
        { "5 > cores", true },
        { "not cores >= batch_size", true }, /* (not cores) >= … */
        { "not (cores >= batch_size)", true },
        { "cores * 2 - 3 < batch_size", true },
        { "cores * -2 < batch_size", false },
        { "-2 * cores > 0 - batch_size", false }, /* it does; only numbers as they are written are looked at */
        { "cores / 2 < 5", true },
        { "2 / cores > 5", false }, /* it does, but a quotient by what moves may do anything */
        { "cores * batch_size < 5", false },
        { "max(cores, 3) < 5 and min(cores, 9) < 7", true },
        { "cores < 5 or momentum > 3", true },
        { "cores < 5 and momentum < 3", false },
        { "cores + momentum < 5", false },
        { "abs(cores) < 5", false },
        { "sqrt(cores) < 5 && floor(cores) < 9", true },
        { "nothing < 5", false },
        { "cores == 5", false },
        { "batch_size == 5", true },
        { "cores % 5 < 3", false },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct expr *x = NULL;
        assert_int_equal(expr_parse(&x, cases[i].text, names, 6, NULL), 0);
        if (expr_only_falls(x, trends) != cases[i].falls)
            fail_msg("%s: got %d", cases[i].text, !cases[i].falls);
        expr_free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_may_be_known_later),
        cmocka_unit_test(test_what_only_falls),
        cmocka_unit_test(test_what_holds),
        cmocka_unit_test(test_what_is_wrong_is_told),
        cmocka_unit_test(test_what_is_too_deep_or_too_long_is_refused),
        cmocka_unit_test(test_it_tells_which_names_it_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
