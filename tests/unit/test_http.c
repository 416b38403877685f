/* What is sent to a server, and to whom a token is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/http.h"

static void test_a_token_is_never_sent_in_the_clear(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT;
    struct err e = { 0 };
    int status = 0;
    const struct http_ask ask = {
        .method = "GET", .url = "http://127.0.0.1:1/", .token = "hunter2", .max = 100, .timeout_ms = 100
    };
    assert_int_equal(http_ask(&out, &status, &ask, &e), -EACCES);
    assert_null(strstr(e.text, "hunter2"));
    assert_non_null(strstr(e.text, "use https"));
}

static void test_nobody_answers(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT;
    struct err e = { 0 };
    int status = 0;
    const struct http_ask ask = { .method = "PUT",
                                  .url = "http://127.0.0.1:1/",
                                  .type = "application/json",
                                  .body = "{}",
                                  .body_len = 2,
                                  .max = 100,
                                  .timeout_ms = 1000 };
    assert_int_equal(http_ask(&out, &status, &ask, &e), -EHOSTUNREACH);
    assert_non_null(strstr(e.text, "'http://127.0.0.1:1/'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_is_never_sent_in_the_clear),
        cmocka_unit_test(test_nobody_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
