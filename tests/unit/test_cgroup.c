/* Cgroups with a limit of memory: what the kernel's texts say, and where one is made, in folders of the test's own. */
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
#include <sys/file.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "node/cgroup.h"
#include "tests/fake_sysfs.h"
#include "tests/fault.h"

static char *root; /* /sys/fs/cgroup, and /proc in it */

static int set_up(void **state)
{
    (void)state;
    root = fake_sysfs_make(FAKE_VM);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_sysfs_remove(root);
    return 0;
}

static void test_the_hierarchy_that_counts_memory_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        { "unified alone", "0::/user.slice/a.scope\n", "/user.slice/a.scope unified" },
        { "its own", "9:name=systemd:/x\n4:memory:/jobs/7\n1:cpu:/\n0::/\n", "/jobs/7" },
        { "with others", "4:cpu,memory,pids:/jobs/7\n0::/y\n", "/jobs/7" },
        { "it comes later", "0::/y\n4:memory:/jobs/7\n", "/jobs/7" },
        { "names that only look so", "4:memory2:/a\n3:hugememory:/b\n0::/y", "/y unified" },
        { "a path with a colon", "0::/a:memory:/b\n", "/a:memory:/b unified" },
        { "a name in the path", "3:cpu:/memory\n", "none" },
        { "nothing", "", "none" },
        { "half a line", "0:", "none" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t len = 0;
        bool unified = false;
        char got[128];
        const char *path = cgroup_of(cases[i].text, &len, &unified);
        (void)snprintf(got, sizeof got, "%.*s%s", path ? (int)len : 4, path ? path : "none", unified ? " unified" : "");
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, got, cases[i].want);
    }
}

static void test_kills_are_counted_or_not_known(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        int want; /* -1: not known */
    } cases[] = {
        { "v1", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3 },
        { "v2", "low 0\nhigh 0\nmax 17\noom 2\noom_kill 2\noom_group_kill 0\n", 2 },
        { "none yet", "oom_kill 0\n", 0 },
        { "an older kernel", "oom_kill_disable 0\nunder_oom 0\n", -1 },
        { "no number", "oom_kill x\n", -1 },
        { "nothing", "", -1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t n = 0;
        int got = cgroup_kills_of(cases[i].text, &n) ? (int)n : -1;
        if (got != cases[i].want)
            fail_msg("%s: got %d, want %d", cases[i].name, got, cases[i].want);
    }
}

static void expect_text(const char *path, const char *want)
{
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *whole = io_join(root, path);
    if (io_read_file(&text, whole, 4096, NULL) < 0 || strcmp(buf_text(&text), want) != 0)
        fail_msg("%s: got '%s', want '%s'", path, buf_text(&text), want);
}

/* The kernel would make these with the folder. */
static void put_v1(const char *folder)
{
    static const char *const names[] = { "cgroup.procs", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes" };
    char path[256];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        fake_sysfs_write(root, path, "");
    }
    (void)snprintf(path, sizeof path, "%s/memory.oom_control", folder);
    fake_sysfs_write(root, path, "oom_kill 5\n");
}

static void put_v2(const char *folder)
{
    static const char *const names[] = { "cgroup.procs", "memory.max", "memory.swap.max" };
    char path[256];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        fake_sysfs_write(root, path, "");
    }
}

static int open_one(struct cgroup *c, struct err *e)
{
    AUTO_FREE char *proc = io_join(root, "proc");
    *c = CGROUP_NONE;
    return cgroup_open(c, proc, root, "t1", 1000000, e);
}

static void test_one_is_made_in_the_own(void **state)
{
    (void)state;
    struct cgroup c;
    struct err e = { 0 };
    uint64_t n = 0;
    fake_sysfs_write(root, "proc/self/cgroup", "4:memory:/jobs\n0::/\n");
    put_v1("memory/jobs/pipetune-t1");
    fake_sysfs_write(root, "memory/jobs/other/x", "");
    if (open_one(&c, &e) < 0)
        fail_msg("%s", e.text);
    expect_text("memory/jobs/pipetune-t1/cgroup.procs", "0\n");
    expect_text("memory/jobs/pipetune-t1/memory.limit_in_bytes", "1000000");
    expect_text("memory/jobs/pipetune-t1/memory.memsw.limit_in_bytes", "1000000");
    assert_true(cgroup_kills(&c, &n));
    assert_int_equal(n, 5);
    cgroup_close(&c);
    assert_false(cgroup_kills(&c, &n));
}

static void test_the_unified_one_is_made_where_memory_is_handed_on(void **state)
{
    (void)state;
    struct cgroup c;
    struct err e = { 0 };
    uint64_t n = 0;
    fake_sysfs_write(root, "proc/self/cgroup", "0::/user/app/me.scope\n");
    fake_sysfs_write(root, "user/app/me.scope/cgroup.subtree_control", "\n");
    fake_sysfs_write(root, "user/app/me.scope/cgroup.controllers", "memory\n");
    fake_sysfs_write(root, "user/app/cgroup.subtree_control", "cpu memory pids\n");
    put_v2("user/app/pipetune-t1");
    if (open_one(&c, &e) < 0)
        fail_msg("%s", e.text);
    expect_text("user/app/pipetune-t1/memory.max", "1000000");
    expect_text("user/app/pipetune-t1/memory.swap.max", "0");
    expect_text("user/app/cgroup.subtree_control", "cpu memory pids\n");
    assert_false(cgroup_kills(&c, &n)); /* there is no memory.events */
    cgroup_close(&c);

    fake_sysfs_write(root, "user/app/cgroup.subtree_control", "");
    fake_sysfs_write(root, "user/app/cgroup.controllers", "memory pids\n");
    if (open_one(&c, &e) < 0)
        fail_msg("%s", e.text);
    expect_text("user/app/cgroup.subtree_control", "+memory");
    cgroup_close(&c);
}

static void test_why_there_is_none_is_told(void **state)
{
    (void)state;
    struct cgroup c;
    struct err e = { 0 };
    fake_sysfs_write(root, "proc/self/cgroup", "3:cpu:/\n");
    assert_int_equal(open_one(&c, &e), -ENOENT);
    assert_string_equal(e.text, "no cgroup hierarchy counts memory here");
    fake_sysfs_write(root, "proc/self/cgroup", "0::/user/me.scope\n");
    fake_sysfs_write(root, "user/me.scope/cgroup.controllers", "cpu\n");
    assert_int_equal(open_one(&c, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/user/me.scope' has no memory controller to hand on"));
    fake_sysfs_write(root, "proc/self/cgroup", "4:memory:/nowhere\n");
    assert_int_equal(open_one(&c, &e), -ENOENT);
    assert_non_null(strstr(e.text, "cannot make the cgroup '"));
    assert_int_equal(c.fd, -1);
    fake_sysfs_write(root, "memory/nowhere/pipetune-t1/memory.limit_in_bytes", "");
    assert_int_equal(open_one(&c, &e), -ENOENT); /* no cgroup.procs */
    assert_non_null(strstr(e.text, "cannot go into the cgroup '"));
}

static void test_what_killed_launchers_left_is_removed(void **state)
{
    (void)state;
    struct cgroup c;
    struct err e = { 0 };
    fake_sysfs_write(root, "proc/self/cgroup", "4:memory:/jobs\n");
    put_v1("memory/jobs/pipetune-t1");
    AUTO_FREE char *left = io_join(root, "memory/jobs/pipetune-left");
    AUTO_FREE char *held = io_join(root, "memory/jobs/pipetune-held");
    AUTO_FREE char *others = io_join(root, "memory/jobs/others");
    assert_int_equal(io_mkdirs(left, NULL) | io_mkdirs(held, NULL) | io_mkdirs(others, NULL), 0);
    AUTO_CLOSE int fd = open(held, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    if (open_one(&c, &e) < 0)
        fail_msg("%s", e.text);
    assert_false(io_exists(left));
    assert_true(io_exists(held));
    assert_true(io_exists(others));
    cgroup_close(&c);
}

static void test_nothing_stays_open_whatever_fails(void **state)
{
    (void)state;
    struct err e = { 0 };
    fake_sysfs_write(root, "proc/self/cgroup", "4:memory:/jobs\n");
    put_v1("memory/jobs/pipetune-t1");
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct cgroup c;
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC | FAULT_WRITE | FAULT_OPEN | FAULT_FORK, nth);
        rc = open_one(&c, &e);
        fault_disarm();
        assert_true(rc == 0 || (c.fd == -1 && e.text[0]));
        cgroup_close(&c);
    }
}

#define CGROUP_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_hierarchy_that_counts_memory_is_found),
        cmocka_unit_test(test_kills_are_counted_or_not_known),
        CGROUP_TEST(test_one_is_made_in_the_own),
        CGROUP_TEST(test_the_unified_one_is_made_where_memory_is_handed_on),
        CGROUP_TEST(test_why_there_is_none_is_told),
        CGROUP_TEST(test_what_killed_launchers_left_is_removed),
        CGROUP_TEST(test_nothing_stays_open_whatever_fails),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
