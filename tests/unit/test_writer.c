/* Transactions handed over by the loop: in order, together where they come together, undone together, before others' writes, and with
 * what rides along. */
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
#include "live/writer.h"
#include "tests/fault.h"

struct fix {
    char dir[64], path[96];
    uv_loop_t loop;
    struct store *s;
    struct writer *w;
    int64_t study;
    struct buf heard; /* what happened, a word each */
    int over;         /* calls back */
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
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-writer-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    char name[] = "s";
    struct store_study row = { .name = name, .state = name, .config = name };
    assert_ok(f, store_study_add(f->s, &row, &f->study, &f->e));
    assert_ok(f, writer_open(&f->w, &f->loop, f->s, &f->e));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    store_set_rider(f->s, NULL, NULL);
    writer_close(f->w);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    buf_done(&f->heard);
    free(f);
    return 0;
}

static int put_text(struct fix *f, struct store *s, const char *text, struct err *e)
{
    buf_printf(&f->heard, "%s ", text);
    return store_tuner_log_add(s, f->study, text, e);
}

static int first(void *ctx, struct store *s, struct err *e)
{
    return put_text(ctx, s, "first", e);
}

static int second(void *ctx, struct store *s, struct err *e)
{
    return put_text(ctx, s, "second", e);
}

static int fails(void *ctx, struct store *s, struct err *e)
{
    (void)ctx, (void)s;
    return err_set(e, -EINVAL, "it fails");
}

static int by_itself(void *ctx, const char *text)
{
    struct fix *f = ctx;
    buf_printf(&f->heard, "[%s] ", text);
    return 0;
}

/* What a connection of its own sees. */
static void look(struct fix *f)
{
    struct store *other = NULL;
    assert_ok(f, store_open(&other, f->path, STORE_READ, &f->e));
    assert_ok(f, store_tuner_log(other, f->study, by_itself, f, &f->e));
    store_close(other);
}

static void done(void *ctx, int rc, const struct err *e)
{
    struct fix *f = ctx;
    f->over++;
    buf_printf(&f->heard, "%s ", rc < 0 ? e->text : "done");
    look(f);
}

static void run_until_over(struct fix *f, int n)
{
    while (f->over < n)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
}

static void put(struct fix *f, int (*rows)(void *ctx, struct store *s, struct err *e))
{
    assert_ok(f, writer_put(f->w, f->s, (struct write){ .rows = rows, .done = done, .ctx = f }, &f->e));
}

static void writes_are_committed_before_they_come_back_and_in_order(void **state)
{
    struct fix *f = *state;
    put(f, first);
    run_until_over(f, 1);
    put(f, second);
    run_until_over(f, 2);
    assert_string_equal(buf_text(&f->heard), "first done [first] second done [first] [second] ");
}

static void what_comes_together_is_one_transaction(void **state)
{
    struct fix *f = *state;
    put(f, first);
    put(f, second);
    assert_string_equal(buf_text(&f->heard), ""); /* never from within */
    run_until_over(f, 2);
    assert_string_equal(buf_text(&f->heard), "first second done [first] [second] done [first] [second] ");
}

static void after_a_failure_nothing_is_written_any_more(void **state)
{
    struct fix *f = *state;
    put(f, first);
    put(f, fails);
    run_until_over(f, 2);
    put(f, second);
    run_until_over(f, 3);
    assert_string_equal(buf_text(&f->heard), "first it fails it fails it fails ");
    assert_int_equal(store_tuner_log_add(f->s, f->study, "other", &f->e), -EINVAL);
    assert_string_equal(f->e.text, "it fails");
    put(f, second); /* and this one is never called back */
}

static void a_failure_that_nobody_was_told_of_yet_ends_the_writes_of_others(void **state)
{
    struct fix *f = *state;
    put(f, fails);
    assert_int_equal(store_begin(f->s, &f->e), -EINVAL);
    run_until_over(f, 1);
    assert_string_equal(buf_text(&f->heard), "it fails ");
}

static void a_write_of_others_comes_after_what_was_handed_over(void **state)
{
    struct fix *f = *state;
    put(f, first);
    assert_ok(f, store_tuner_log_add(f->s, f->study, "other", &f->e));
    put(f, second);
    assert_ok(f, store_begin(f->s, &f->e));
    put(f, first); /* from within a transaction of others: not before its end */
    assert_ok(f, store_tuner_log_add(f->s, f->study, "third", &f->e));
    assert_ok(f, store_commit(f->s, &f->e));
    look(f);
    run_until_over(f, 3);
    assert_non_null(strstr(buf_text(&f->heard), "first second [first] [other] [second] [third] done "));
    buf_clear(&f->heard);
    look(f);
    assert_string_equal(buf_text(&f->heard), "[first] [other] [second] [third] [first] ");
}

static void after_a_failure_of_others_nothing_is_written_either(void **state)
{
    struct fix *f = *state;
    assert_ok(f, store_begin(f->s, &f->e));
    put(f, first);
    store_rollback(f->s);
    run_until_over(f, 1);
    assert_string_equal(buf_text(&f->heard), "nothing is written after a transaction that failed ");
    assert_int_equal(store_begin(f->s, &f->e), -ECANCELED);
}

static void what_was_handed_over_is_committed_at_the_end(void **state)
{
    struct fix *f = *state;
    put(f, first);
    writer_close(MOVE_PTR(f->w));
    assert_int_equal(f->over, 0); /* nobody is there to be called back */
    look(f);
    assert_string_equal(buf_text(&f->heard), "first [first] ");
}

/* --- what rides along --- */

static bool mount(void *ctx)
{
    struct fix *f = ctx;
    buf_puts(&f->heard, "mount ");
    return true;
}

static int ride(void *ctx, struct store *s, struct err *e)
{
    struct fix *f = ctx;
    return store_tuner_log_add(s, f->study, "rider", e);
}

static int falls(void *ctx, struct store *s, struct err *e)
{
    (void)ctx, (void)s;
    return err_set(e, -ENOSPC, "it falls");
}

static void off(void *ctx, int rc, const struct err *why)
{
    struct fix *f = ctx;
    buf_printf(&f->heard, "off:%s ", rc < 0 ? why->text : "ok");
    f->over++;
}

static const struct store_rider rider = { mount, ride, off }, faller = { mount, falls, off };

static void a_rider_goes_with_every_transaction_and_alone_if_wanted(void **state)
{
    struct fix *f = *state;
    store_set_rider(f->s, &rider, f);
    put(f, first);
    run_until_over(f, 2);
    assert_string_equal(buf_text(&f->heard), "first mount off:ok done [first] [rider] ");
    buf_clear(&f->heard);
    writer_want(f->w);
    writer_want(f->w);
    run_until_over(f, 3);
    assert_string_equal(buf_text(&f->heard), "mount off:ok ");
    buf_clear(&f->heard);
    assert_ok(f, store_tuner_log_add(f->s, f->study, "other", &f->e));
    look(f);
    assert_string_equal(buf_text(&f->heard), "mount off:ok [first] [rider] [rider] [other] [rider] ");
}

static void a_rider_that_falls_takes_the_transaction_with_it(void **state)
{
    struct fix *f = *state;
    store_set_rider(f->s, &faller, f);
    put(f, first);
    run_until_over(f, 2);
    assert_string_equal(buf_text(&f->heard), "first mount off:it falls it falls ");
    buf_clear(&f->heard);
    assert_int_equal(store_tuner_log_add(f->s, f->study, "other", &f->e), -ENOSPC);
    assert_string_equal(f->e.text, "it falls");
    assert_string_equal(buf_text(&f->heard), "");
}

static void a_rider_that_falls_alone_may_try_again(void **state)
{
    struct fix *f = *state;
    store_set_rider(f->s, &faller, f);
    writer_want(f->w);
    run_until_over(f, 1);
    store_set_rider(f->s, &rider, f);
    put(f, first);
    run_until_over(f, 3);
    assert_string_equal(buf_text(&f->heard), "mount off:it falls first mount off:ok done [first] [rider] ");
}

static void put_third(void *ctx, int rc, const struct err *e)
{
    done(ctx, rc, e);
    put(ctx, second);
}

static void who_ends_is_called_back_without_the_loop(void **state)
{
    struct fix *f = *state;
    assert_ok(f, writer_put(f->w, f->s, (struct write){ .rows = first, .done = put_third, .ctx = f }, &f->e));
    writer_finish(f->w);
    assert_string_equal(buf_text(&f->heard), "first done [first] second done [first] [second] ");
    put(f, fails);
    put(f, first);
    buf_clear(&f->heard);
    writer_finish(f->w);
    assert_string_equal(buf_text(&f->heard), "it fails [first] [second] it fails [first] [second] ");
}

static void without_a_writer_it_is_written_at_once(void **state)
{
    struct fix *f = *state;
    const struct write good = { .rows = first, .done = done, .ctx = f },
                       bad = { .rows = fails, .done = done, .ctx = f };
    assert_ok(f, writer_put(NULL, f->s, good, &f->e));
    assert_ok(f, writer_put(NULL, f->s, bad, &f->e));
    assert_string_equal(buf_text(&f->heard), "first done [first] it fails [first] ");
}

static void without_memory_nothing_is_handed_over(void **state)
{
    struct fix *f = *state;
    fault_arm(FAULT_ALLOC, 1);
    assert_int_equal(writer_put(f->w, f->s, (struct write){ .rows = first, .ctx = f }, &f->e), -ENOMEM);
    assert_true(fault_disarm());
    writer_close(NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(writes_are_committed_before_they_come_back_and_in_order),
        T(what_comes_together_is_one_transaction),
        T(after_a_failure_nothing_is_written_any_more),
        T(a_failure_that_nobody_was_told_of_yet_ends_the_writes_of_others),
        T(a_write_of_others_comes_after_what_was_handed_over),
        T(after_a_failure_of_others_nothing_is_written_either),
        T(what_was_handed_over_is_committed_at_the_end),
        T(a_rider_goes_with_every_transaction_and_alone_if_wanted),
        T(a_rider_that_falls_takes_the_transaction_with_it),
        T(a_rider_that_falls_alone_may_try_again),
        T(who_ends_is_called_back_without_the_loop),
        T(without_a_writer_it_is_written_at_once),
        T(without_memory_nothing_is_handed_over),
    };
    return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
