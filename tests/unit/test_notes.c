/* What people say of studies and trials, in the store. */
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
#include "store/notes.h"
#include "store/tidy.h"
#include "tests/fault.h"

struct fix {
    char dir[64], path[96];
    struct store *s;
    int64_t study;
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
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-notes-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    char name[] = "demo", run[] = "running", config[] = "{}";
    struct store_study row = { .name = name, .state = run, .config = config };
    assert_ok(f, store_study_add(f->s, &row, &f->study, &f->e));
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)fault_disarm();
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static int put_one(void *ctx, const struct store_note *r)
{
    buf_printf(ctx, "%d %s;", r->trial, r->text);
    return 0;
}

static void assert_notes(struct fix *f, int trial, const char *want)
{
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_notes(f->s, f->study, trial, put_one, &got, &f->e));
    assert_string_equal(buf_text(&got), want);
}

static int say(struct fix *f, int trial, int64_t at_ms, const char *text)
{
    return store_note_put(f->s, &(struct store_note){ f->study, trial, at_ms, text }, &f->e);
}

static void say_three(struct fix *f)
{
    assert_ok(f, say(f, 2, 20, "before lunch"));
    assert_ok(f, say(f, 2, 10, "good"));
    assert_ok(f, say(f, 0, 30, "for the talk"));
}

static void test_notes_come_by_trial_and_by_when_they_were_said(void **state)
{
    say_three(*state);
    assert_notes(*state, -1, "0 for the talk;2 good;2 before lunch;");
    assert_notes(*state, 2, "2 good;2 before lunch;");
    assert_notes(*state, 0, "0 for the talk;");
    assert_notes(*state, 1, "");
}

static void test_what_was_said_is_kept_once(void **state)
{
    say_three(*state);
    assert_ok((struct fix *)*state, say(*state, 2, 99, "good"));
    assert_notes(*state, 2, "2 good;2 before lunch;");
}

static void test_what_is_forgotten_is_gone_and_counted(void **state)
{
    static const struct {
        int trial;
        const char *text;
        int gone;
        const char *left;
    } cases[] = { { 2, "good", 1, "0 for the talk;2 before lunch;" },
                  { 2, "bad", 0, "0 for the talk;2 before lunch;" },
                  { 0, NULL, 1, "2 before lunch;" },
                  { 1, NULL, 0, "2 before lunch;" } };
    struct fix *f = *state;
    say_three(f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int n = -1;
        assert_ok(f, store_note_forget(f->s, f->study, cases[i].trial, cases[i].text, &n, &f->e));
        assert_int_equal(n, cases[i].gone);
        assert_notes(f, -1, cases[i].left);
    }
}

static void test_notes_go_with_their_study_and_need_one(void **state)
{
    struct fix *f = *state;
    say_three(f);
    assert_ok(f, store_study_remove(f->s, f->study, &f->e));
    assert_notes(f, -1, "");
    assert_int_equal(say(f, 1, 1, "late"), -ENOENT);
}

static void test_a_note_is_there_or_not_whatever_fails(void **state)
{
    struct fix *f = *state;
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        fault_arm(FAULT_WRITE | FAULT_ALLOC, nth);
        rc = say(f, 1, 1, "said");
        (void)fault_disarm();
        assert_notes(f, 1, rc < 0 ? "" : "1 said;");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_notes_come_by_trial_and_by_when_they_were_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_said_is_kept_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_forgotten_is_gone_and_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_notes_go_with_their_study_and_need_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_note_is_there_or_not_whatever_fails, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
