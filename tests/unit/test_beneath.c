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

#include "base/beneath.h"
#include "base/own.h"

static char dir[64];

static int set_up(void **state)
{
    (void)snprintf(dir, sizeof dir, "/tmp/pipetune-beneath-XXXXXX");
    *state = mkdtemp(dir);
    return *state ? 0 : -1;
}

static int open_dir(void)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static int tear_down(void **state)
{
    (void)state;
    beneath_empty(open_dir());
    return rmdir(dir);
}

static void test_names_of_strangers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool good;
    } cases[] = {
        { "a", true },          { "a/b.c", true },  { ".hidden/..x", true }, { "with blank", true }, { "", false },
        { "/a", false },        { "a/", false },    { "a//b", false },       { ".", false },         { "..", false },
        { "a/../../b", false }, { "a/./b", false }, { "a\nb", false },       { "a\x7f", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (beneath_is_name(cases[i].name) != cases[i].good)
            fail_msg("'%s': want %d", cases[i].name, cases[i].good);
    char deep[3 * BENEATH_PARTS_MAX], part[300];
    for (size_t i = 0; i < BENEATH_PARTS_MAX; i++)
        memcpy(deep + 2 * i, "a/", 2);
    deep[2 * BENEATH_PARTS_MAX - 1] = '\0';
    assert_true(beneath_is_name(deep));
    memcpy(deep + 2 * BENEATH_PARTS_MAX - 1, "/b", 3);
    assert_false(beneath_is_name(deep));
    memset(part, 'x', sizeof part), part[256] = '\0';
    assert_false(beneath_is_name(part));
    part[255] = '\0';
    assert_true(beneath_is_name(part));
}

static void test_files_are_made_and_found_below(void **state)
{
    (void)state;
    AUTO_CLOSE int at = open_dir();
    assert_int_equal(beneath_open(at, "a/b/c", O_RDONLY), -ENOENT);
    assert_int_equal(beneath_mkdirs(at, "a/b/c"), 0);
    AUTO_CLOSE int fd = beneath_open(at, "a/b/c", O_WRONLY | O_CREAT | O_EXCL);
    assert_true(fd >= 0);
    struct stat st;
    assert_int_equal(fstatat(at, "a/b/c", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(fstatat(at, "a/b", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(beneath_open(at, "a/b/c", O_WRONLY | O_CREAT | O_EXCL), -EEXIST);
    assert_int_equal(beneath_mkdirs(at, "a/b/c/d"), -ENOTDIR);
}

static void test_no_link_is_followed(void **state)
{
    (void)state;
    AUTO_CLOSE int at = open_dir();
    assert_int_equal(symlinkat("/etc", at, "etc"), 0);
    assert_int_equal(symlinkat("/etc/passwd", at, "passwd"), 0);
    assert_int_equal(beneath_open(at, "passwd", O_RDONLY), -ELOOP);
    int rc = beneath_open(at, "etc/passwd", O_RDONLY);
    assert_true(rc == -ELOOP || rc == -ENOTDIR);
    assert_int_equal(beneath_open(at, "../etc/passwd", O_RDONLY), -EINVAL);
    rc = beneath_mkdirs(at, "etc/x/y");
    assert_true(rc == -ELOOP || rc == -ENOTDIR);
    assert_int_equal(beneath_open(at, "passwd", O_WRONLY | O_CREAT), -ELOOP);
    assert_int_equal(access("/etc/x", F_OK), -1);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_strangers),
        ROW(test_files_are_made_and_found_below),
        ROW(test_no_link_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
