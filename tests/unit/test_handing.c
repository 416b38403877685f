/* Opening what hands a study on: all of it, or nothing. */
#include <errno.h>
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
#include "live/handing.h"
#include "store/store.h"
#include "tests/fault.h"

struct fix {
    char dir[64], path[96], lock[96];
    struct err e;
};

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    struct store *s = NULL;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-handing-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    (void)snprintf(f->lock, sizeof f->lock, "%s/handing.lock", f->dir);
    if (store_open(&s, f->path, STORE_WRITE, &f->e) < 0)
        return -1;
    store_close(s);
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)fault_disarm();
    (void)unlink(f->lock);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static int open_one(struct fix *f, struct handing **out)
{
    const struct handing_cfg cfg = { .url = "http://127.0.0.1:1" };
    return handing_open(out, &cfg, f->path, "demo", f->dir, NULL, NULL, &f->e);
}

static void test_it_is_open_or_not_whatever_fails(void **state)
{
    struct fix *f = *state;
    struct handing *h = NULL;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 200);
        fault_arm(FAULT_ALLOC | FAULT_OPEN, nth);
        rc = open_one(f, &h);
        (void)fault_disarm();
        assert_true(rc == 0 || (!h && *f->e.text));
    }
    handing_free(h);
}

static void test_one_at_a_time_hands_a_study_on(void **state)
{
    struct fix *f = *state;
    struct handing *first = NULL, *second = NULL;
    assert_int_equal(open_one(f, &first), 0);
    assert_int_equal(open_one(f, &second), -EBUSY);
    assert_non_null(strstr(f->e.text, "'demo' is being handed on by another process"));
    handing_free(first);
    assert_int_equal(open_one(f, &second), 0);
    handing_free(second);
}

static void test_a_server_that_is_not_there_is_for_later(void **state)
{
    struct fix *f = *state;
    struct handing *h = NULL;
    struct store *s = NULL;
    struct store_study row = { .name = (char *)(uintptr_t) "demo",
                               .state = (char *)(uintptr_t) "running",
                               .config = (char *)(uintptr_t) "{}" };
    int64_t id;
    assert_int_equal(open_one(f, &h), 0);
    assert_int_equal(handing_round(h, &f->e), -EINVAL); /* there is no such study yet */
    assert_int_equal(store_open(&s, f->path, STORE_WRITE, &f->e), 0);
    assert_int_equal(store_study_add(s, &row, &id, &f->e), 0);
    store_close(s);
    assert_int_equal(handing_round(h, &f->e), -EAGAIN);
    assert_non_null(strstr(f->e.text, "MLflow: "));
    struct handing_counts c = handing_counts(h);
    assert_true(c.requests == 1 && c.runs == 0 && c.values == 0);
    handing_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_is_open_or_not_whatever_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_at_a_time_hands_a_study_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_server_that_is_not_there_is_for_later, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
