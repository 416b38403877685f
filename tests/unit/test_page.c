/* The page's server within this process: it begins and ends whatever fails, and follows a store without one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "serve/feed.h"
#include "serve/page.h"
#include "tests/fault.h"

static const struct page_options plain = { "/nowhere/x.db", "127.0.0.1:0", NULL };

static void test_it_begins_and_ends_whatever_fails(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct page *p = NULL;
        struct err e = { 0 };
        assert_true(nth < 200);
        fault_arm(FAULT_ALLOC, nth);
        rc = page_start(&p, &plain, &e);
        fault_disarm();
        assert_true(rc == 0 ? p != NULL : !p && *e.text);
        page_stop(p);
    }
}

static void test_two_do_not_listen_in_one_place(void **state)
{
    (void)state;
    struct page *one = NULL, *two = NULL;
    struct err e = { 0 };
    assert_int_equal(page_start(&one, &plain, &e), 0);
    char where[64];
    (void)snprintf(where, sizeof where, "%s", page_address(one));
    struct page_options same = { "/nowhere/x.db", where, NULL };
    assert_true(page_start(&two, &same, &e) < 0);
    assert_null(two);
    assert_non_null(strstr(e.text, "--listen"));
    page_stop(one);
    assert_int_equal(page_start(&two, &same, &e), 0);
    page_stop(two);
}

static void test_who_follows_a_store_that_is_not_there_is_told_nothing(void **state)
{
    (void)state;
    struct feed feed = { .store_path = "/nowhere/x.db" };
    struct http_request q = { .last_event = NULL };
    AUTO_BUF struct buf out = BUF_INIT;
    assert_int_equal(http_pairs_parse(&q.query, "study=demo&trial=1"), 0);
    void *f = feed_open(&feed, &q);
    assert_non_null(f);
    assert_false(feed_begin(&feed));
    assert_int_equal(feed_beat(&feed, f, true, &out), 0);
    assert_string_equal(buf_text(&out), "retry: 2000\n\n");
    buf_clear(&out);
    assert_int_equal(feed_beat(&feed, f, true, &out), 0);
    assert_int_equal(out.len, 0);
    feed_close(f);
    http_pairs_done(&q.query);
    feed_done(&feed);
}

static void test_a_follower_is_had_whole_or_not_at_all(void **state)
{
    (void)state;
    struct feed feed = { .store_path = "/nowhere/x.db" };
    struct http_request q = { .last_event = NULL };
    void *f = NULL;
    assert_int_equal(http_pairs_parse(&q.query, "study=demo&trial=1&after=1.2.3.4.5-6"), 0);
    for (unsigned nth = 1; nth < 20; nth++) {
        fault_arm(FAULT_ALLOC, nth);
        f = feed_open(&feed, &q);
        bool struck = fault_disarm();
        if (f)
            feed_close(f);
        if (!struck)
            break;
    }
    assert_non_null(f);
    http_pairs_done(&q.query);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_begins_and_ends_whatever_fails),
        cmocka_unit_test(test_two_do_not_listen_in_one_place),
        cmocka_unit_test(test_who_follows_a_store_that_is_not_there_is_told_nothing),
        cmocka_unit_test(test_a_follower_is_had_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
