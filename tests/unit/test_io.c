#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "tests/fault.h"

static int set_up(void **state)
{
    static char dir[64];
    (void)snprintf(dir, sizeof dir, "/tmp/pipetune-io-XXXXXX");
    *state = mkdtemp(dir);
    return *state ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static int tear_down(void **state)
{
    return nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static size_t files_in(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    size_t n = 0;
    for (struct dirent *f; (f = readdir(d));)
        n += f->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

/* --- paths ------------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *path, *want;
} absolutes[] = {
    { "/", "/" },           { "/a/b", "/a/b" },         { "//a///b/", "/a/b" }, { "/a/./b/.", "/a/b" },
    { "/a/../b", "/b" },    { "/../../a", "/a" },       { "/a/..", "/" },       { "/a/b/../../..", "/" },
    { "/a/...", "/a/..." }, { "/.hidden", "/.hidden" }, { "/a b/c", "/a b/c" },
};

static void test_absolute_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(absolutes); i++) {
        AUTO_FREE char *got = io_absolute(absolutes[i].path);
        if (!got || strcmp(got, absolutes[i].want) != 0)
            fail_msg("'%s': got %s, want %s", absolutes[i].path, got ? got : "nothing", absolutes[i].want);
    }
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    AUTO_FREE char *here = io_absolute(".");
    AUTO_FREE char *below = io_absolute("x/../y");
    assert_string_equal(here, cwd);
    assert_string_equal(below + strlen(cwd), "/y");
}

static void test_an_absolute_path_is_whole_or_none(void **state)
{
    (void)state;
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        AUTO_FREE char *got = io_absolute("/a/b/../c");
        struck = fault_disarm();
        if (got)
            assert_string_equal(got, "/a/c");
        assert_int_equal(got == NULL, struck);
    }
}

static const struct {
    const char *path, *dir;
} dirs[] = { { "a/b", "a" }, { "a", "." }, { "/a", "/" }, { "/a/b/c", "/a/b" }, { "", "." }, { "/", "/" } };

static void test_folders_and_joins(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        AUTO_FREE char *got = io_dirname(dirs[i].path);
        if (!got || strcmp(got, dirs[i].dir) != 0)
            fail_msg("'%s': got %s, want %s", dirs[i].path, got ? got : "nothing", dirs[i].dir);
    }
    AUTO_FREE char *a = io_join("dir", "name");
    AUTO_FREE char *b = io_join("dir/", "name");
    AUTO_FREE char *c = io_join("dir", "/name");
    assert_string_equal(a, "dir/name");
    assert_string_equal(b, "dir/name");
    assert_string_equal(c, "/name");
}

static void test_folders_are_made_with_their_parents(void **state)
{
    struct err e;
    AUTO_FREE char *deep = io_join(*state, "a/b//c");
    AUTO_FREE char *file = io_join(*state, "file");
    AUTO_FREE char *below_file = io_join(*state, "file/x");
    assert_int_equal(io_mkdirs(deep, &e), 0);
    assert_true(io_is_dir(deep) && io_exists(deep));
    assert_int_equal(io_mkdirs(deep, &e), 0);
    assert_int_equal(io_write_atomic(file, "", 0, 0600, &e), 0);
    assert_true(io_exists(file) && !io_is_dir(file));
    assert_int_equal(io_mkdirs(file, &e), -ENOTDIR);
    assert_int_equal(io_mkdirs(below_file, &e), -ENOTDIR);
    assert_non_null(strstr(e.text, below_file));
}

/* --- whole files -------------------------------------------------------------------------------------------------------- */

static void test_reading(void **state)
{
    struct err e;
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_BUF struct buf little = BUF_INIT;
    AUTO_FREE char *path = io_join(*state, "f");
    char big[40000];
    memset(big, 'x', sizeof big);
    buf_puts(&b, "before ");
    assert_int_equal(io_read_file(&b, path, 10, &e), -ENOENT);
    assert_int_equal(io_write_atomic(path, big, sizeof big, 0600, &e), 0);
    assert_int_equal(io_read_file(&b, path, sizeof big, &e), 0);
    assert_int_equal(b.len, 7 + sizeof big);
    assert_int_equal(strncmp(b.data, "before xx", 9), 0);
    assert_int_equal(io_read_file(&little, path, sizeof big - 1, &e), -EFBIG);
    assert_non_null(strstr(e.text, path));
    assert_int_equal(io_read_file(&little, *state, 10, &e), -EISDIR);
}

static void test_reading_under_faults(void **state)
{
    struct err e;
    AUTO_FREE char *path = io_join(*state, "f");
    assert_int_equal(io_write_atomic(path, "0123456789", 10, 0600, &e), 0);
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        AUTO_BUF struct buf b = BUF_INIT;
        fault_arm(FAULT_OPEN | FAULT_ALLOC, nth);
        rc = io_read_file(&b, path, 100, &e);
        bool struck = fault_disarm();
        assert_int_equal(rc < 0, struck);
    }
}

/* "old", "new", or what else is in it. */
static char *content(const char *path)
{
    struct buf b = BUF_INIT;
    assert_int_equal(io_read_file(&b, path, 1000, NULL), 0);
    return buf_take(&b);
}

static void test_writing_is_all_or_nothing_whatever_fails(void **state)
{
    struct err e;
    AUTO_FREE char *path = io_join(*state, "f");
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        assert_int_equal(io_write_atomic(path, "old", 3, 0640, &e), 0);
        fault_arm(FAULT_OPEN | FAULT_WRITE | FAULT_FSYNC | FAULT_RENAME | FAULT_ALLOC, nth);
        rc = io_write_atomic(path, "new", 3, 0640, &e);
        bool struck = fault_disarm();
        assert_int_equal(rc < 0, struck);
        AUTO_FREE char *got = content(path);
        if (strcmp(got, "new") != 0 && (rc == 0 || strcmp(got, "old") != 0))
            fail_msg("call %u failed with %d, and the file holds '%s'", nth, rc, got);
        assert_int_equal(files_in(*state), 1); /* nothing temporary stays */
    }
}

static void test_writing_where_there_is_no_folder(void **state)
{
    struct err e;
    AUTO_FREE char *path = io_join(*state, "no/f");
    assert_int_equal(io_write_atomic(path, "x", 1, 0600, &e), -ENOENT);
    assert_non_null(strstr(e.text, path));
}

static void test_write_all_goes_on_after_a_part(void **state)
{
    (void)state;
    int fds[2], how = -1;
    static char big[200000], back[200000]; /* more than a pipe holds */
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i % 251);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fds[0]);
        _exit(io_write_all(fds[1], big, sizeof big) == 0 ? 0 : 1);
    }
    (void)close(fds[1]);
    size_t got = 0;
    for (ssize_t n; (n = read(fds[0], back + got, sizeof back - got)) > 0;)
        got += (size_t)n;
    (void)close(fds[0]);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    assert_int_equal(got, sizeof big);
    assert_memory_equal(big, back, sizeof big);
    assert_int_equal(io_write_all(-1, "x", 1), -EBADF);
    assert_int_equal(io_write_all(-1, "", 0), 0);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_absolute_paths),
        ROW(test_an_absolute_path_is_whole_or_none),
        ROW(test_folders_and_joins),
        ROW(test_folders_are_made_with_their_parents),
        ROW(test_reading),
        ROW(test_reading_under_faults),
        ROW(test_writing_is_all_or_nothing_whatever_fails),
        ROW(test_writing_where_there_is_no_folder),
        ROW(test_write_all_goes_on_after_a_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
