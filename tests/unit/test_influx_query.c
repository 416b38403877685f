/* What needs no server: texts in queries, and preparing to ask. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/influx_query.h"
#include "tests/fault.h"

static void a_text_is_one_text_whatever_is_in_it(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = { { "demo", "'demo'" },
                 { "", "''" },
                 { "it's", "'it\\'s'" },
                 { "' OR time > 0 --", "'\\' OR time > 0 --'" },
                 { "a\\", "'a\\\\'" },
                 { "a\\' OR 1", "'a\\\\\\' OR 1'" },
                 { "two\nlines", "'two\\nlines'" },
                 { "\"quoted\"", "'\"quoted\"'" } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        influx_query_put_text(&b, rows[i].text);
        assert_string_equal(buf_text(&b), rows[i].want);
    }
}

static void what_is_no_server_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *url, *database, *text;
    } rows[] = { { "ftp://h", "d", "http://" },
                 { "http://me:secret@h", "d", "credential file" },
                 { "http://h/?db=x", "d", "credential file" },
                 { "http://h", NULL, "needs a database" },
                 { "http://h", "", "needs a database" } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct influx_query *x = NULL;
        struct influx_query_cfg cfg = { .url = rows[i].url, .database = rows[i].database };
        struct err e = { 0 };
        assert_int_equal(influx_query_new(&x, &cfg, &e), -EINVAL);
        if (!strstr(e.text, rows[i].text) || strstr(e.text, "secret") || x)
            fail_msg("%s: %s", rows[i].url, e.text);
    }
}

static void memory_that_runs_out_leaves_nothing_behind(void **state)
{
    (void)state;
    char user[] = "me", password[] = "hunter2";
    struct credential c = { .user = user, .password = password };
    struct influx_query_cfg cfg = {
        .url = "http://127.0.0.1:1/", .database = "d", .retention = "week", .credential = &c, .ca_file = "/x"
    };
    int rc = -ENOMEM;
    unsigned nth = 1;
    for (; rc < 0; nth++) {
        struct influx_query *x = NULL;
        struct err e = { 0 };
        assert_true(nth < 64); /* it must succeed in the end */
        fault_arm(FAULT_ALLOC, nth);
        rc = influx_query_new(&x, &cfg, &e);
        (void)fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && !x));
        influx_query_free(x);
    }
    assert_true(nth > 5); /* there were calls to fail */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_one_text_whatever_is_in_it),
        cmocka_unit_test(what_is_no_server_is_refused),
        cmocka_unit_test(memory_that_runs_out_leaves_nothing_behind),
    };
    return cmocka_run_group_tests_name("influx_query", tests, NULL, NULL);
}
