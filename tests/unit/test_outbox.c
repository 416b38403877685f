/* Lines in the store on their way to a server: in, out, what is rejected, what there is no room for, and whose they are. */
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
#include "store/outbox.h"
#include "store/tidy.h"
#include "tests/fault.h"

struct fix {
    char dir[64], path[96];
    struct store *s;
    struct outbox box;
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
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-outbox-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    assert_ok(f, outbox_open(&f->box, f->s, 0, &f->e));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static int run_round(struct fix *f, struct outbox_round *r)
{
    struct outbox after;
    int rc = store_begin(f->s, &f->e);
    if (rc == 0)
        rc = outbox_run(&f->box, f->s, r, &after, &f->e);
    if (rc == 0)
        rc = store_commit(f->s, &f->e);
    store_rollback(f->s);
    if (rc == 0)
        f->box = after;
    return rc;
}

static void put(struct fix *f, const char *text)
{
    struct outbox_round r = { .text = text, .len = strlen(text) };
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        r.lines++;
    assert_ok(f, run_round(f, &r));
}

static void expect(struct fix *f, struct outbox_take t, const char *text, int64_t to)
{
    struct outbox_round r = { .takes = &t, .n_takes = 1 };
    assert_ok(f, run_round(f, &r));
    assert_string_equal(buf_text(&t.text), text);
    assert_int_equal(t.got_to, to);
    buf_done(&t.text);
}

static void finish(struct fix *f, struct outbox_end x)
{
    struct outbox_round r = { .ends = &x, .n_ends = 1 };
    assert_ok(f, run_round(f, &r));
}

/* What it says of itself is what is there. */
static void expect_counts(struct fix *f, uint64_t waiting, uint64_t bytes)
{
    struct outbox again;
    assert_ok(f, outbox_open(&again, f->s, f->box.base >> 40, &f->e));
    assert_int_equal(again.waiting, waiting);
    assert_int_equal(again.bytes, bytes);
    assert_int_equal(f->box.waiting, waiting);
    assert_int_equal(f->box.bytes, bytes);
    assert_int_equal(again.rejected_bytes, f->box.rejected_bytes);
}

static void lines_come_out_in_their_order(void **state)
{
    struct fix *f = *state;
    put(f, "a v=1 1\nb v=2 2\n");
    put(f, "c v=3 3\n");
    expect(f, (struct outbox_take){ .to = 3, .lines = 10, .bytes = 100 }, "a v=1 1\nb v=2 2\nc v=3 3\n", 3);
    expect(f, (struct outbox_take){ .to = 3, .lines = 2, .bytes = 100 }, "a v=1 1\nb v=2 2\n", 2);
    expect(f, (struct outbox_take){ .after = 1, .to = 3, .lines = 10, .bytes = 10 }, "b v=2 2\n", 2);
    expect(f, (struct outbox_take){ .after = 1, .to = 3, .lines = 10, .bytes = 1 }, "b v=2 2\n", 2); /* one always */
    expect(f, (struct outbox_take){ .to = 1000, .lines = 10, .bytes = 100 }, "a v=1 1\nb v=2 2\nc v=3 3\n", 1000);
    expect(f, (struct outbox_take){ .after = 3, .to = 5, .lines = 10, .bytes = 100 }, "", 5);
    expect_counts(f, 3, 24);
}

static void what_is_delivered_is_gone_and_what_is_rejected_stays_with_the_reason(void **state)
{
    struct fix *f = *state;
    put(f, "a v=1 1\nb v=2 2\nc v=3 3\nd v=4 4\n");
    finish(f, (struct outbox_end){ .after = 0, .to = 1, .lines = 1, .bytes = 8 });
    finish(f, (struct outbox_end){ .after = 1, .to = 2, .lines = 1, .bytes = 8, .reason = "no line" });
    expect(f, (struct outbox_take){ .to = 4, .lines = 10, .bytes = 100 }, "c v=3 3\nd v=4 4\n", 4);
    expect_counts(f, 2, 16);
    assert_int_equal(f->box.rejected_bytes, 8);
    struct outbox again;
    assert_ok(f, outbox_open(&again, f->s, 0, &f->e));
    assert_int_equal(again.before, 2); /* nothing below is looked at again */
    assert_int_equal(again.top, 4);
    finish(f, (struct outbox_end){ .after = 2, .to = 4, .lines = 2, .bytes = 16 });
    assert_ok(f, outbox_open(&again, f->s, 0, &f->e));
    assert_int_equal(again.before, again.top);
}

static void a_round_that_is_not_committed_changes_nothing(void **state)
{
    struct fix *f = *state;
    put(f, "a v=1 1\n");
    struct outbox after;
    struct outbox_end x = { .to = 1, .lines = 1, .bytes = 8 };
    struct outbox_round r = { .text = "b v=2 2\n", .len = 8, .lines = 1, .ends = &x, .n_ends = 1 };
    assert_ok(f, store_begin(f->s, &f->e));
    assert_ok(f, outbox_run(&f->box, f->s, &r, &after, &f->e));
    assert_int_equal(after.waiting, 1);
    store_rollback(f->s);
    expect_counts(f, 1, 8);
    assert_ok(f, run_round(f, &r)); /* the same again */
    expect_counts(f, 1, 8);
    expect(f, (struct outbox_take){ .to = 2, .lines = 10, .bytes = 100 }, "b v=2 2\n", 2);
}

static void beyond_its_room_the_oldest_go_that_nobody_is_sending(void **state)
{
    struct fix *f = *state;
    f->box.room_bytes = 64;
    f->box.room_rejected = 8;
    put(f, "a v=1 1\nb v=2 2\nc v=3 3\nd v=4 4\ne v=5 5\nf v=6 6\ng v=7 7\nh v=8 8\n");
    struct outbox_round r = { .text = "i v=9 9\n", .len = 8, .lines = 1, .spare_from = 2 };
    assert_ok(f, run_round(f, &r));
    assert_int_equal(r.dropped, 2); /* one, and a little more */
    expect(f, (struct outbox_take){ .to = 9, .lines = 4, .bytes = 100 }, "a v=1 1\nb v=2 2\ne v=5 5\nf v=6 6\n", 6);
    expect_counts(f, 7, 56);
    struct outbox_end rejected[] = { { .to = 1, .lines = 1, .bytes = 8, .reason = "no" },
                                     { .after = 1, .to = 2, .lines = 1, .bytes = 8, .reason = "no" } };
    r = (struct outbox_round){ .ends = rejected, .n_ends = 2 };
    assert_ok(f, run_round(f, &r));
    assert_int_equal(r.dropped_rejected, 1);
    assert_int_equal(f->box.rejected_bytes, 8);
    expect_counts(f, 5, 40);
}

static int64_t add_study(struct fix *f, const char *name)
{
    struct store_study row = { 0 };
    row.name = row.state = row.config = (char *)(uintptr_t)name;
    int64_t study = 0;
    assert_ok(f, store_study_add(f->s, &row, &study, &f->e));
    return study;
}

static void studies_do_not_see_each_others_lines_and_take_theirs_along(void **state)
{
    struct fix *f = *state;
    int64_t one = add_study(f, "one"), two = add_study(f, "two");
    put(f, "monitor v=0 0\n");
    struct outbox monitors = f->box;
    assert_ok(f, outbox_open(&f->box, f->s, one, &f->e));
    put(f, "one v=1 1\n");
    assert_ok(f, outbox_open(&f->box, f->s, two, &f->e));
    put(f, "two v=2 2\ntwo v=3 3\n");
    expect(f, (struct outbox_take){ .after = f->box.base, .to = f->box.top, .lines = 9, .bytes = 99 },
           "two v=2 2\ntwo v=3 3\n", f->box.top);
    assert_ok(f, store_study_remove(f->s, two, &f->e));
    assert_ok(f, outbox_open(&f->box, f->s, two, &f->e));
    expect_counts(f, 0, 0);
    assert_ok(f, outbox_open(&f->box, f->s, one, &f->e));
    expect_counts(f, 1, 10);
    f->box = monitors;
    expect_counts(f, 1, 14);
}

static void without_memory_a_round_fails_as_a_whole(void **state)
{
    struct fix *f = *state;
    int rc = -1;
    put(f, "a v=1 1\n");
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        struct outbox_take t = { .to = 2, .lines = 9, .bytes = 99 };
        struct outbox_round r = { .text = "b v=2 2\n", .len = 8, .lines = 1, .takes = &t, .n_takes = 1 };
        fault_arm(FAULT_ALLOC, nth);
        rc = run_round(f, &r);
        (void)fault_disarm();
        buf_done(&t.text);
        expect_counts(f, rc < 0 ? 1 : 2, rc < 0 ? 8 : 16);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lines_come_out_in_their_order),
        T(what_is_delivered_is_gone_and_what_is_rejected_stays_with_the_reason),
        T(a_round_that_is_not_committed_changes_nothing),
        T(beyond_its_room_the_oldest_go_that_nobody_is_sending),
        T(studies_do_not_see_each_others_lines_and_take_theirs_along),
        T(without_memory_a_round_fails_as_a_whole),
    };
    return cmocka_run_group_tests_name("outbox", tests, NULL, NULL);
}
