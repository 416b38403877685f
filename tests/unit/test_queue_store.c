/* The queue in the store: who writes what, and that nobody overwrites what others wrote. */
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

#include "base/buf.h"
#include "base/own.h"
#include "store/queue.h"
#include "store/tidy.h"
#include "tests/fault.h"

struct fix {
    char dir[64], path[96];
    struct store *s, *other;
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-queue-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    assert_ok(f, store_open(&f->other, f->path, STORE_WRITE, &f->e));
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)fault_disarm();
    store_close(f->s);
    store_close(f->other);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static struct store_queued row_of(const char *name, int priority)
{
    return (struct store_queued){ .study = (char *)(uintptr_t)name,
                                  .state = (char *)(uintptr_t)QUEUED,
                                  .priority = priority,
                                  .here = true,
                                  .submitted_ms = 7,
                                  .most = -1,
                                  .grain = -1,
                                  .to_go = -1,
                                  .exit_code = -1,
                                  .folder = (char *)(uintptr_t) "/f",
                                  .argv = (char *)(uintptr_t) "[]",
                                  .env = (char *)(uintptr_t) "{}" };
}

static int64_t submit(struct fix *f, const char *name, int priority)
{
    struct store_queued row = row_of(name, priority);
    assert_ok(f, store_queue_add(f->s, &row, &f->e));
    return row.id;
}

static int put_line(void *ctx, const struct store_queued *r)
{
    buf_printf(ctx, "%s %s %d %d/%d/%d/%d %s;", r->study, r->state, r->priority, r->share, r->most, r->grain, r->to_go,
               r->reason ? r->reason : "-");
    return 0;
}

static void assert_queue(struct fix *f, const char *want)
{
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_queue(f->other, NULL, put_line, &got, &f->e));
    assert_string_equal(buf_text(&got), want);
}

static void test_the_queue_comes_back_in_the_order_of_submission(void **state)
{
    struct fix *f = *state;
    assert_queue(f, "");
    submit(f, "b", 0);
    submit(f, "a", 5);
    assert_queue(f, "b queued 0 0/-1/-1/-1 -;a queued 5 0/-1/-1/-1 -;");
}

static void test_a_study_is_in_the_queue_once(void **state)
{
    struct fix *f = *state;
    int64_t id = submit(f, "a", 0);
    submit(f, "b", 0);
    struct store_queued row = row_of("a", 1);
    assert_int_equal(store_queue_add(f->s, &row, &f->e), -EEXIST);
    assert_int_equal(store_queue_turn(f->s, id, "queued running", QUEUE_DONE, &f->e), 1);
    assert_ok(f, store_queue_add(f->s, &row, &f->e)); /* behind the others */
    assert_queue(f, "b queued 0 0/-1/-1/-1 -;a queued 1 0/-1/-1/-1 -;");
}

static void test_each_writes_its_own_alone(void **state)
{
    struct fix *f = *state;
    int64_t id = submit(f, "a", 0);
    struct store_queued row = { 0 };
    assert_int_equal(store_queue_find(f->s, "a", &row, &f->e), 1);
    assert_int_equal(store_queue_turn(f->other, id, QUEUED, QUEUE_STOPPING, &f->e), 1);
    assert_ok(f, store_queue_put_use(f->other, id, 4, 2, 9, &f->e));
    assert_ok(f, store_queue_put_share(f->s, id, 3, &f->e));
    free(row.reason);
    row.reason = strdup("why");
    assert_ok(f, store_queue_put(f->s, &row, &f->e)); /* as it was read before */
    store_queued_done(&row);
    assert_queue(f, "a stopping 0 3/4/2/9 why;");
}

static void test_a_state_is_left_for_another_only_from_those_that_are_named(void **state)
{
    struct fix *f = *state;
    int64_t id = submit(f, "a", 0);
    static const struct {
        const char *from, *to;
        int want;
    } turns[] = {
        { "running", QUEUE_DONE, 0 },
        { "queue", QUEUE_DONE, 0 },
        { "queued", QUEUE_RUNNING, 1 },
        { "queued", QUEUE_DONE, 0 },
        { "queued running", QUEUE_STOPPING, 1 },
        { "stopping draining", QUEUE_DONE, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(turns); i++)
        assert_int_equal(store_queue_turn(f->s, id, turns[i].from, turns[i].to, &f->e), turns[i].want);
}

static void test_states_are_told_apart(void **state)
{
    (void)state;
    assert_true(store_queue_is_over(QUEUE_DONE) && store_queue_is_over(QUEUE_STOPPED));
    assert_false(store_queue_is_over(QUEUED) || store_queue_is_over(QUEUE_DRAINING));
    assert_true(store_queue_runs(QUEUE_RUNNING) && store_queue_runs(QUEUE_STOPPING) && store_queue_runs(QUEUE_LEAVING));
    assert_false(store_queue_runs(QUEUED) || store_queue_runs(QUEUE_DONE));
}

static int put_request(void *ctx, const struct store_request *r)
{
    buf_printf(ctx, "%s/%d %s %s;", r->study, r->trial, r->kind, r->text ? r->text : "-");
    return 0;
}

static void test_requests_wait_until_they_are_answered(void **state)
{
    struct fix *f = *state;
    char a[] = "a", b[] = "b", stop[] = "stop", add[] = "add", waiting[] = "waiting", text[] = "{}";
    struct store_request one = { .study = a, .trial = 3, .kind = stop, .state = waiting, .asked_ms = 5 };
    struct store_request two = { .study = a, .kind = add, .text = text, .state = waiting, .asked_ms = 6 };
    struct store_request other = { .study = b, .kind = add, .text = text, .state = waiting, .asked_ms = 6 };
    assert_ok(f, store_request_add(f->s, &one, &f->e));
    assert_ok(f, store_request_add(f->s, &other, &f->e));
    assert_ok(f, store_request_add(f->s, &two, &f->e));
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_requests(f->other, "a", put_request, &got, &f->e));
    assert_string_equal(buf_text(&got), "a/3 stop -;a/0 add {};");
    assert_ok(f, store_request_answer(f->other, one.id, false, "it is over", &f->e));
    buf_clear(&got);
    assert_ok(f, store_requests(f->s, "a", put_request, &got, &f->e));
    assert_string_equal(buf_text(&got), "a/0 add {};");
    struct store_request found = { 0 };
    assert_int_equal(store_request_find(f->s, one.id, &found, &f->e), 1);
    assert_string_equal(found.state, "refused");
    assert_string_equal(found.answer, "it is over");
    store_request_done(&found);
    assert_int_equal(store_request_find(f->s, 99, &found, &f->e), 0);
}

static void test_a_change_by_others_is_seen(void **state)
{
    struct fix *f = *state;
    int64_t before = 0, after = 0;
    assert_ok(f, store_changes(f->s, &before, &f->e));
    assert_ok(f, store_changes(f->s, &after, &f->e));
    assert_int_equal(before, after);
    struct store_queued row = row_of("a", 0);
    assert_ok(f, store_queue_add(f->other, &row, &f->e));
    assert_ok(f, store_changes(f->s, &after, &f->e));
    assert_int_not_equal(before, after);
}

static void test_a_study_that_is_removed_leaves_the_queue(void **state)
{
    struct fix *f = *state;
    char name[] = "a", running[] = "running", config[] = "{}", stop[] = "stop", waiting[] = "waiting";
    struct store_study study = { .name = name, .state = running, .config = config };
    struct store_request one = { .study = name, .kind = stop, .state = waiting };
    int64_t id;
    submit(f, "a", 0);
    submit(f, "b", 0);
    assert_ok(f, store_study_add(f->s, &study, &id, &f->e));
    assert_ok(f, store_request_add(f->s, &one, &f->e));
    assert_ok(f, store_study_remove(f->s, id, &f->e));
    assert_queue(f, "b queued 0 0/-1/-1/-1 -;");
    assert_int_equal(store_request_find(f->s, one.id, &one, &f->e), 0);
}

static void test_whatever_fails_it_is_in_the_queue_whole_or_not_at_all(void **state)
{
    struct fix *f = *state;
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct store_queued row = row_of("a", 1), found = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = store_queue_add(f->s, &row, &f->e);
        (void)fault_disarm();
        assert_int_equal(store_queue_find(f->other, "a", &found, &f->e), rc == 0);
        if (rc == 0)
            assert_string_equal(found.env, "{}");
        store_queued_done(&found);
    }
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_queue_comes_back_in_the_order_of_submission),
        TEST(test_a_study_is_in_the_queue_once),
        TEST(test_each_writes_its_own_alone),
        TEST(test_a_state_is_left_for_another_only_from_those_that_are_named),
        cmocka_unit_test(test_states_are_told_apart),
        TEST(test_requests_wait_until_they_are_answered),
        TEST(test_a_change_by_others_is_seen),
        TEST(test_a_study_that_is_removed_leaves_the_queue),
        TEST(test_whatever_fails_it_is_in_the_queue_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
