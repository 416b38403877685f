#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "tests/fault.h"

enum { SOMEBODY = 65534 };

static char dir[64];

static int set_up(void **state)
{
    (void)snprintf(dir, sizeof dir, "/tmp/pipetune-ours-XXXXXX");
    *state = mkdtemp(dir);
    return *state ? chdir(dir) : -1;
}

static int tear_down(void **state)
{
    static const char *const made[] = { "file", "link", "pipe", "folder/file" };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        (void)unlink(made[i]);
    (void)rmdir("folder");
    (void)rmdir("other");
    return chdir("/") < 0 ? -1 : rmdir(dir);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 0777;
}

static void expect(const char *name, int rc, const struct err *e, int want, const char *word)
{
    if (rc != want || (want < 0 && !strstr(e->text, word)))
        fail_msg("%s: got %d '%s', want %d '%s'", name, rc, e->text, want, word);
}

static void test_a_folder_is_made_or_tightened(void **state)
{
    (void)state;
    struct err e = { 0 };
    mode_t was = umask(0);
    assert_int_equal(ours_dir("folder", &e), 0);
    (void)umask(was);
    assert_int_equal(mode_of("folder"), 0700);
    assert_int_equal(chmod("folder", 0777), 0);
    assert_int_equal(ours_dir("folder", &e), 0);
    assert_int_equal(mode_of("folder"), 0700);
    assert_true(ours_is_dir("folder") && !ours_is_file("folder"));
    expect("one that must be there", ours_dir_check("none", &e), &e, -ENOENT, "'none'");
}

static void test_what_is_no_folder_is_refused(void **state)
{
    (void)state;
    struct err e = { 0 };
    AUTO_CLOSE int fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(mkdir("other", 0700), 0);
    assert_int_equal(symlink("other", "link"), 0);
    expect("a file", ours_dir("file", &e), &e, -EPERM, "'file'");
    expect("a link", ours_dir("link", &e), &e, -EPERM, "'link'");
    assert_false(ours_is_dir("link") || ours_is_dir("file"));
}

static void test_a_file_is_made_or_tightened(void **state)
{
    (void)state;
    struct err e = { 0 };
    mode_t was = umask(0);
    int fd = ours_open("file", O_RDWR | O_CREAT, &e);
    (void)umask(was);
    assert_true(fd >= 0);
    assert_int_equal(mode_of("file"), 0600);
    assert_int_equal(io_write_all(fd, "text", 4), 0);
    (void)close(fd);
    assert_int_equal(chmod("file", 0666), 0);
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(ours_read(&b, "file", 4, &e), 0);
    assert_string_equal(buf_text(&b), "text");
    assert_int_equal(mode_of("file"), 0600);
    expect("too long", ours_read(&b, "file", 3, &e), &e, -EFBIG, "'file'");
    expect("none", ours_open("none", O_RDONLY, &e), &e, -ENOENT, "'none'");
}

static void test_what_is_no_file_is_refused(void **state)
{
    (void)state;
    struct err e = { 0 };
    static const int flags[] = { O_RDONLY, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_APPEND };
    assert_int_equal(symlink("nowhere", "link"), 0);
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        expect("a link", ours_open("link", flags[i], &e), &e, -EPERM, "'link'");
        expect("a folder", ours_open("folder", flags[i], &e), &e, -EPERM, "'folder'");
        expect("a pipe", ours_open("pipe", flags[i], &e), &e, -EPERM, "'pipe'"); /* and it does not hang */
    }
    assert_int_equal(access("nowhere", F_OK), -1);
    assert_false(ours_is_file("link") || ours_is_file("pipe"));
}

static void test_what_is_another_users_is_refused(void **state)
{
    (void)state;
    struct err e = { 0 };
    if (geteuid() != 0)
        skip();
    int fd = ours_open("file", O_RDWR | O_CREAT, &e);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(ours_dir("folder", &e), 0);
    assert_int_equal(chown("file", SOMEBODY, (gid_t)-1) | chown("folder", SOMEBODY, (gid_t)-1), 0);
    expect("a file", ours_open("file", O_RDONLY, &e), &e, -EPERM, "belongs to user 65534");
    expect("a folder", ours_dir("folder", &e), &e, -EPERM, "belongs to user 65534");
    assert_false(ours_is_file("file") || ours_is_dir("folder"));
    /* Seen from there, root's is another's, whether it can be opened or not. */
    assert_int_equal(chown("file", 0, (gid_t)-1) | chown("folder", 0, (gid_t)-1) | chmod(dir, 0755), 0);
    assert_int_equal(seteuid(SOMEBODY), 0);
    int rc = ours_dir("folder", &e);
    int of_file = ours_open("file", O_RDONLY, NULL);
    assert_int_equal(seteuid(0), 0);
    expect("root's", rc, &e, -EPERM, "belongs to user 0");
    assert_true(of_file < 0);
}

static void test_calls_that_fail(void **state)
{
    (void)state;
    struct err e = { 0 };
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        assert_true(nth < 16);
        AUTO_BUF struct buf b = BUF_INIT;
        fault_arm(FAULT_OPEN | FAULT_ALLOC, nth);
        int rc = ours_dir("folder", &e);
        int fd = rc == 0 ? ours_open("file", O_RDWR | O_CREAT, &e) : rc;
        rc = fd < 0 ? fd : ours_read(&b, "file", 10, &e);
        struck = fault_disarm();
        assert_true(rc == 0 || (struck && e.text[0]));
        if (fd >= 0)
            (void)close(fd);
    }
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_a_folder_is_made_or_tightened),    ROW(test_what_is_no_folder_is_refused),
        ROW(test_a_file_is_made_or_tightened),      ROW(test_what_is_no_file_is_refused),
        ROW(test_what_is_another_users_is_refused), ROW(test_calls_that_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
