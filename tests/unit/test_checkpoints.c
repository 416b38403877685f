/* Checkpoints that a trial told of: stored in the transaction that comes next, the two newest known, the files of the others gone when that is
 * committed. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "live/checkpoints.h"
#include "tests/fault.h"

struct fix {
    char dir[64], path[96];
    struct store *s;
    int64_t trial;
    struct checkpoints c;
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
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-told-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    char name[] = "s", hyper[] = "{}", waiting[] = "waiting", tag[] = "tag", running[] = "running";
    struct store_study study = { .name = name, .state = name, .config = name };
    struct store_trial trial = { .number = 1, .state = waiting, .epochs = 9, .hyper = hyper };
    assert_ok(f, store_study_add(f->s, &study, &trial.study, &f->e));
    assert_ok(f, store_trial_add(f->s, &trial, &f->e));
    f->trial = trial.id;
    struct store_attempt attempt = { .trial = trial.id, .state = running, .launch = tag };
    assert_ok(f, store_attempt_add(f->s, &attempt, &f->e));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    checkpoints_done(&f->c);
    store_close(f->s);
    for (const char *name = "abcde"; *name; name++) {
        char path[96];
        (void)snprintf(path, sizeof path, "%s/%c", f->dir, *name);
        (void)unlink(path);
    }
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

/* The file is written, and told of. */
static void tell(struct fix *f, int epoch, char name)
{
    char path[96];
    (void)snprintf(path, sizeof path, "%s/%c", f->dir, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(checkpoints_add(&f->c, epoch, path), 0);
}

static void put(struct fix *f)
{
    assert_ok(f, store_begin(f->s, &f->e));
    assert_ok(f, checkpoints_put(&f->c, f->s, f->trial, 1, &f->e));
    assert_ok(f, store_commit(f->s, &f->e));
}

static int put_row(void *ctx, const struct store_checkpoint *row)
{
    buf_printf(ctx, "%d%c ", row->epoch, row->path[strlen(row->path) - 1]);
    return 0;
}

/* Epochs and names in the store, and the files that there are. */
static void expect(struct fix *f, const char *want)
{
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_checkpoints(f->s, f->trial, put_row, &got, &f->e));
    buf_puts(&got, "of ");
    for (const char *name = "abcde"; *name; name++) {
        char path[96];
        struct stat st;
        (void)snprintf(path, sizeof path, "%s/%c", f->dir, *name);
        if (stat(path, &st) == 0)
            buf_putc(&got, *name);
    }
    assert_string_equal(buf_text(&got), want);
}

static void files_go_when_newer_ones_are_committed(void **state)
{
    struct fix *f = *state;
    tell(f, 1, 'a');
    tell(f, 2, 'b');
    tell(f, 3, 'c');
    put(f);
    expect(f, "3c 2b of abc");
    checkpoints_stored(&f->c, f->dir);
    expect(f, "3c 2b of bc");
    checkpoints_stored(&f->c, f->dir); /* nothing was put */
    expect(f, "3c 2b of bc");
}

static void what_is_told_meanwhile_goes_into_the_next_transaction(void **state)
{
    struct fix *f = *state;
    tell(f, 1, 'a');
    put(f);
    tell(f, 2, 'b');
    checkpoints_stored(&f->c, f->dir);
    expect(f, "1a of ab");
    assert_int_equal(f->c.n, 1);
    put(f);
    checkpoints_stored(&f->c, f->dir);
    expect(f, "2b 1a of ab");
    assert_int_equal(f->c.n, 0);
}

static void a_file_that_is_written_again_stays(void **state)
{
    struct fix *f = *state;
    tell(f, 1, 'a');
    tell(f, 2, 'a');
    tell(f, 3, 'b');
    put(f);
    checkpoints_stored(&f->c, f->dir);
    expect(f, "3b 2a of ab");
    tell(f, 4, 'c');
    put(f);
    tell(f, 5, 'a'); /* before that is committed */
    checkpoints_stored(&f->c, f->dir);
    expect(f, "4c 3b of abc");
}

static void a_file_that_is_written_again_in_the_same_transaction_stays(void **state)
{
    struct fix *f = *state;
    for (int epoch = 1; epoch <= 4; epoch++)
        tell(f, epoch, "abca"[epoch - 1]);
    put(f);
    checkpoints_stored(&f->c, f->dir);
    expect(f, "4a 3c of ac");
}

static void a_file_elsewhere_stays(void **state)
{
    struct fix *f = *state;
    tell(f, 1, 'a');
    tell(f, 2, 'b');
    tell(f, 3, 'c');
    put(f);
    checkpoints_stored(&f->c, "/tmp/pipetune-told-elsewhere");
    expect(f, "3c 2b of abc");
}

static void without_memory_nothing_is_added(void **state)
{
    struct fix *f = *state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 8);
        fault_arm(FAULT_ALLOC, nth);
        rc = checkpoints_add(&f->c, 1, "/c");
        (void)fault_disarm();
        assert_int_equal(f->c.n, rc == 0);
    }
    checkpoints_done(NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(files_go_when_newer_ones_are_committed),
        T(what_is_told_meanwhile_goes_into_the_next_transaction),
        T(a_file_that_is_written_again_stays),
        T(a_file_that_is_written_again_in_the_same_transaction_stays),
        T(a_file_elsewhere_stays),
        T(without_memory_nothing_is_added),
    };
    return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
