#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "node/house.h"
#include "tests/fault.h"

static void test_memory_is_read_or_absent(void **state)
{
    (void)state;
    static const char text[] = "MemTotal:       24683988 kB\nMemTotalX: 1 kB\nMemAvailable: -5 kB\nMemFree:\nLast: 7";
    static const struct {
        const char *row;
        long want;
    } rows[] = { { "MemTotal", 24683988 }, { "MemAvailable", -1 }, { "MemFree", -1 }, { "Last", 7 }, { "Mem", -1 } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (house_memory_kb(text, rows[i].row) != rows[i].want)
            fail_msg("%s: got %ld", rows[i].row, house_memory_kb(text, rows[i].row));
    assert_int_equal(house_memory_kb("", "MemTotal"), -1);
}

/* Launches T1 (over), T2 (its lock is held), a file and a link of others. */
struct place {
    char dir[64];
    int lock;
};

static char *path_in(const struct place *p, const char *name)
{
    char *path = io_join(p->dir, name);
    assert_non_null(path);
    return path;
}

static void make(const struct place *p, const char *name, bool is_dir)
{
    AUTO_FREE char *path = path_in(p, name);
    struct err e;
    assert_int_equal(is_dir ? mkdir(path, 0700) : io_write_atomic(path, "x", 1, 0600, &e), 0);
}

static int enter(void **state)
{
    static struct place p;
    (void)snprintf(p.dir, sizeof p.dir, "/tmp/pipetune-house-XXXXXX");
    if (!mkdtemp(p.dir))
        return -1;
    (void)setenv("XDG_STATE_HOME", p.dir, 1);
    *state = &p;
    return 0;
}

static int leave(void **state)
{
    const struct place *p = *state;
    (void)unsetenv("XDG_STATE_HOME");
    return rmdir(p->dir);
}

static void remove_at(const struct place *p, const char *name)
{
    AUTO_FREE char *path = path_in(p, name);
    assert_int_equal(remove(path), 0);
}

static bool is_at(const struct place *p, const char *name)
{
    struct stat st;
    AUTO_FREE char *path = path_in(p, name);
    return lstat(path, &st) == 0;
}

static void test_what_is_over_goes_and_all_else_stays(void **state)
{
    struct place *p = *state;
    struct launches l = { 0 };
    struct err e = { 0 };
    AUTO_BUF struct buf none = BUF_INIT, clean = BUF_INIT, again = BUF_INIT;
    assert_int_equal(house_look(&l, &none, &e), 0);
    assert_non_null(strstr(buf_text(&none), ",\"running\":\"\",\"n_running\":0,\"over\":0"));
    assert_false(is_at(p, "pipetune")); /* a look makes nothing */
    static const char *const dirs[] = { "pipetune",    "pipetune/T1",    "pipetune/T1/work",
                                        "pipetune/T2", "pipetune/files", "theirs" };
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        make(p, dirs[i], true);
    make(p, "theirs/file", false);
    make(p, "pipetune/T2/lock", false);
    make(p, "pipetune/files/0123", false); /* what a launch may need */
    make(p, "pipetune/not a tag", false);
    AUTO_FREE char *theirs = path_in(p, "theirs"), *link = path_in(p, "pipetune/T3"),
                   *inner = path_in(p, "pipetune/T1/work/l");
    assert_int_equal(symlink(theirs, link) | symlink(theirs, inner), 0);
    AUTO_FREE char *lock = path_in(p, "pipetune/T2/lock");
    int fd = open(lock, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);

    assert_int_equal(house_clean(&l, &clean, &e), 0);
    assert_string_equal(buf_text(&clean),
                        ",\"removed\":1,\"kept\":0,\"root\":false,\"running\":\"T2\",\"n_running\":1");
    assert_false(is_at(p, "pipetune/T1"));
    assert_true(is_at(p, "pipetune/T2/lock") && is_at(p, "pipetune/files/0123") && is_at(p, "pipetune/T3") &&
                is_at(p, "theirs/file"));
    assert_true(is_at(p, "pipetune/not a tag"));

    (void)close(fd);
    remove_at(p, "pipetune/T3");
    remove_at(p, "pipetune/not a tag");
    assert_int_equal(house_clean(&l, &again, &e), 0);
    assert_non_null(strstr(buf_text(&again), ",\"removed\":1,\"kept\":0,\"root\":true"));
    assert_false(is_at(p, "pipetune"));
    remove_at(p, "theirs/file");
    remove_at(p, "theirs");
    launches_done(&l);
}

static void test_no_memory_is_told(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct launches l = { 0 };
        struct err e = { 0 };
        AUTO_BUF struct buf b = BUF_INIT;
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = house_look(&l, &b, &e);
        fault_disarm();
        rc = rc == 0 && b.failed ? -ENOMEM : rc;
        launches_done(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_read_or_absent),
        cmocka_unit_test_setup_teardown(test_what_is_over_goes_and_all_else_stays, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_memory_is_told, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
