/* Opening a delivery gives back whatever fails, and the account's words. What it delivers is in tests/integration/test_deliver.c. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "live/deliver.h"
#include "tests/fault.h"

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void ignore_note(void *ctx, const char *text)
{
    (void)ctx, (void)text;
}

static const struct deliver_ops ops = { .note = ignore_note };

static void open_until_it_succeeds(const char *url, unsigned kinds)
{
    char dir[] = "/tmp/test_deliver.XXXXXX";
    assert_non_null(mkdtemp(dir));
    const struct deliver_cfg cfg = { .url = url };
    char path[64];
    (void)snprintf(path, sizeof path, "%s/lines.db", dir);
    int rc = -1;
    for (unsigned nth = 1; rc < 0; nth++) {
        uv_loop_t loop;
        struct deliver *d = NULL;
        struct deliver_place place = { .study = 0 };
        struct err e = { 0 };
        assert_true(nth < 100);
        assert_int_equal(uv_loop_init(&loop), 0);
        assert_int_equal(store_open(&place.store, path, STORE_WRITE, &e), 0);
        fault_arm(kinds, nth);
        rc = writer_open(&place.writer, &loop, place.store, &e);
        if (rc == 0)
            rc = deliver_open(&d, &loop, &cfg, &place, &ops, NULL, &e);
        bool struck = fault_disarm();
        if (rc < 0 && (!struck || !e.text[0] || d))
            fail_msg("call %u: %d, '%s'", nth, rc, e.text);
        deliver_free(d);
        writer_close(place.writer);
        store_close(place.store);
        assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
        assert_int_equal(uv_loop_close(&loop), 0);
    }
    assert_int_equal(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_whatever_fails_an_opening_leaves_nothing_behind(void **state)
{
    (void)state;
    open_until_it_succeeds("http://127.0.0.1:1", FAULT_ALLOC);
    open_until_it_succeeds("udp://127.0.0.1:1", FAULT_ALLOC);
}

static const struct {
    const char *name;
    struct deliver_counts counts;
    const char *want;
    bool complete;
} rows[] = {
    { "nothing", { 0 }, "produced 0 = stored 0 + waiting 0 + quarantined 0 + dropped 0", true },
    { "a bit of each",
      { .produced = 21, .stored = 11, .waiting = 7, .quarantined = 2, .dropped = 1 },
      "produced 21 = stored 11 + waiting 7 + quarantined 2 + dropped 1",
      false },
    { "all but what the server rejected",
      { .produced = 3, .stored = 1, .quarantined = 2 },
      "produced 3 = stored 1 + waiting 0 + quarantined 2 + dropped 0",
      false },
    { "with an earlier run's",
      { .produced = 3, .stored = 3, .found = 2 },
      "produced 3 = stored 3 + waiting 0 + quarantined 0 + dropped 0; 2 of them are of an earlier run",
      true },
};

static void test_the_account_adds_up_in_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[256], cut[20];
        deliver_account(&rows[i].counts, text, sizeof text);
        if (strcmp(text, rows[i].want) != 0)
            fail_msg("%s: got '%s'", rows[i].name, text);
        deliver_account(&rows[i].counts, cut, sizeof cut);
        assert_int_equal(strlen(cut), sizeof cut - 1);
        if (deliver_complete(&rows[i].counts) != rows[i].complete)
            fail_msg("%s: is %scomplete", rows[i].name, rows[i].complete ? "not " : "");
    }
}

static void test_freeing_nothing_is_fine(void **state)
{
    (void)state;
    deliver_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whatever_fails_an_opening_leaves_nothing_behind),
        cmocka_unit_test(test_the_account_adds_up_in_words),
        cmocka_unit_test(test_freeing_nothing_is_fine),
    };
    return cmocka_run_group_tests_name("deliver", tests, NULL, NULL);
}
