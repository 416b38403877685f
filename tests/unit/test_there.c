/* live/there: paths as another host has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "live/there.h"
#include "tests/fault.h"

static int make(struct there *t)
{
    static const char *const pairs[][2] = { { "/opt/spark", "/usr/lib/spark" },
                                            { "/opt", "/other" },
                                            { "/home/me/train.py", "/r/TAG/work/train.py" } };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(pairs); i++)
        rc = there_add(t, pairs[i][0], pairs[i][1], NULL);
    return rc;
}

static void test_paths_in_words_are_those_of_the_host(void **state)
{
    static const char *const cases[][2] = {
        { "/opt/spark/bin/spark-submit", "/usr/lib/spark/bin/spark-submit" },
        { "/opt/spark", "/usr/lib/spark" },
        { "/opt/sparkling/x", "/other/sparkling/x" },
        { "/optical", "/optical" },
        { "not/opt/spark", "not/opt/spark" },
        { "-Dlog4j2.configurationFile=file:/opt/a b", "-Dlog4j2.configurationFile=file:/other/a b" },
        { "/opt/a.jar,/opt/spark/b.jar", "/other/a.jar,/usr/lib/spark/b.jar" },
        { "spark.driver.extraClassPath=/opt/a.jar:/opt/b.jar",
          "spark.driver.extraClassPath=/other/a.jar:/other/b.jar" },
        { "/home/me/train.py", "/r/TAG/work/train.py" },
        { "/home/me/train.pyc", "/home/me/train.pyc" },
        { "", "" },
        { "--lr=0.1", "--lr=0.1" },
    };
    (void)state;
    struct there t = { 0 };
    assert_int_equal(make(&t), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        there_put(&t, cases[i][0], &b);
        if (strcmp(buf_text(&b), cases[i][1]) != 0)
            fail_msg("%s: got %s, want %s", cases[i][0], buf_text(&b), cases[i][1]);
    }
    there_done(&t);
}

static void test_all_words_of_steps_are_moved_or_none(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct there t = { 0 };
        struct err e = { 0 };
        struct app_steps steps = { .argv = { STRV_INIT, STRV_INIT }, .n = 1 };
        strv_add(&steps.argv[0], "/opt/spark/bin/spark-submit");
        strv_add(&steps.argv[0], "x");
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = make(&t);
        rc = rc == 0 ? there_steps(&t, &steps, &e) : rc;
        fault_disarm();
        assert_int_equal(steps.argv[0].n, 2);
        assert_string_equal(steps.argv[0].v[0],
                            rc == 0 ? "/usr/lib/spark/bin/spark-submit" : "/opt/spark/bin/spark-submit");
        there_done(&t);
        app_steps_done(&steps);
    }
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_paths_in_words_are_those_of_the_host),
                                        cmocka_unit_test(test_all_words_of_steps_are_moved_or_none) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
