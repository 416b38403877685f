#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "serve/prometheus.h"

static const struct {
    const char *name, *label;
    double value;
    const char *want;
} cases[] = {
    { "a plain one", "demo", 1.5, "m{study=\"demo\"} 1.5\n" },
    { "quotes and backslashes are escaped", "a\"b\\c", 2, "m{study=\"a\\\"b\\\\c\"} 2\n" },
    { "an end of line is none", "a\nm 1", 2, "m{study=\"a m 1\"} 2\n" },
    { "what commands terminals is not there", "a\x1b[31m", 2, "m{study=\"a [31m\"} 2\n" },
    { "absent is no line", "demo", NAN, "" },
    { "nor is infinite", "demo", INFINITY, "" },
    { "0 is a value", "demo", 0, "m{study=\"demo\"} 0\n" },
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        prometheus_line(&b, "m", (const char *const[]){ "study", cases[i].label, NULL }, cases[i].value);
        if (strcmp(buf_text(&b), cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, buf_text(&b), cases[i].want);
    }
    AUTO_BUF struct buf b = BUF_INIT;
    prometheus_line(&b, "m", NULL, 1);
    prometheus_line(&b, "m", (const char *const[]){ "a", "1", "b", "2", NULL }, 1);
    assert_string_equal(buf_text(&b), "m 1\nm{a=\"1\",b=\"2\"} 1\n");
}

static void test_without_a_store_there_are_figures_of_the_machine(void **state)
{
    (void)state;
    struct prometheus p = { .n = 0 };
    AUTO_BUF struct buf b = BUF_INIT;
    struct err e;
    assert_int_equal(prometheus_put(&p, &b, NULL, "/nowhere", &e), 0);
    assert_non_null(strstr(buf_text(&b), "pipetune_studies{state=\"running\"} 0"));
    assert_non_null(strstr(buf_text(&b), "# TYPE pipetune_energy_joules_total counter\n"));
    assert_null(strstr(buf_text(&b), "pipetune_energy_joules_total{"));
    prometheus_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_without_a_store_there_are_figures_of_the_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
