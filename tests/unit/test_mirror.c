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
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "live/mirror.h"
#include "tests/fault.h"

static char dir[64];

static int set_up(void **state)
{
    (void)snprintf(dir, sizeof dir, "/tmp/pipetune-mirror-XXXXXX");
    *state = mkdtemp(dir);
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    beneath_empty(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return rmdir(dir);
}

static void expect_text(const char *name, const char *want)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_FREE char *path = io_join(dir, name);
    int rc = io_read_file(&b, path, 1 << 20, NULL);
    if (rc < 0 || strcmp(buf_text(&b), want) != 0)
        fail_msg("%s: %d '%s', want '%s'", name, rc, buf_text(&b), want);
}

static void test_bytes_come_where_they_were(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct mirror m = MIRROR_CLOSED;
    uint64_t from = 1;
    assert_int_equal(mirror_open(&m, dir, 1, &from, &e), 0);
    assert_int_equal(from, 0);
    assert_int_equal(mirror_take(&m, 0, "one\n", 4, &e), 0);
    mirror_done(&m);
    assert_int_equal(mirror_open(&m, dir, 1, &from, &e), 0); /* another driver */
    assert_int_equal(from, 4);
    assert_int_equal(mirror_take(&m, 4, "two\n", 4, &e), 0);
    assert_int_equal(mirror_take(&m, 8, NULL, 0, &e), 0);
    mirror_done(&m);
    expect_text("heard", "one\ntwo\n");
    expect_text("log", "one\ntwo\n");
}

static void test_a_log_is_bounded_and_so_is_what_is_heard(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct mirror m = MIRROR_CLOSED;
    uint64_t from, at = 0;
    static char line[1 << 16];
    memset(line, 'x', sizeof line);
    assert_int_equal(mirror_open(&m, dir, 1, &from, &e), 0);
    for (int i = 0; i < 20; i++, at += sizeof line)
        assert_int_equal(mirror_take(&m, at, line, sizeof line, &e), 0);
    struct stat st;
    AUTO_FREE char *log = io_join(dir, "log");
    AUTO_FREE char *before = io_join(dir, "log.1");
    assert_int_equal(stat(log, &st), 0);
    assert_true(st.st_size < 1 << 20);
    assert_int_equal(stat(before, &st), 0);
    assert_true(st.st_size <= 1 << 20);
    assert_int_equal(mirror_take(&m, (uint64_t)MIRROR_HEARD_MAX, "x", 1, &e), -EFBIG);
    m.accounted = 1;
    assert_int_equal(mirror_take(&m, (uint64_t)MIRROR_HEARD_MAX, "x", 1, &e), 0);
    mirror_done(&m);
}

static void test_a_note_is_on_our_clock(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct mirror m = MIRROR_CLOSED;
    uint64_t from;
    assert_int_equal(mirror_open(&m, dir, 1, &from, &e), 0);
    assert_int_equal(mirror_end(&m, "attempt=1 launch=T kind=exited code=0 boot_ms=5", -1, &e), 0);
    expect_text("exit", "attempt=1 launch=T kind=exited code=0\n");
    int64_t now = clock_boot_ms();
    assert_int_equal(mirror_end(&m, "attempt=1 boot_ms=5\nforged", 1000, &e), 0);
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_FREE char *path = io_join(dir, "exit");
    assert_int_equal(io_read_file(&b, path, 1000, NULL), 0);
    long long ms = 0;
    assert_int_equal(sscanf(buf_text(&b), "attempt=1 boot_ms=%lld\n", &ms), 1);
    assert_true(ms >= now - 1000 && ms < now + 60000);
    mirror_done(&m);
}

static void test_what_fails_is_told(void **state)
{
    (void)state;
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        struct err e = { 0 };
        struct mirror m = MIRROR_CLOSED;
        uint64_t from;
        assert_true(nth < 32);
        fault_arm(FAULT_ALLOC | FAULT_WRITE | FAULT_OPEN | FAULT_RENAME, nth);
        int rc = mirror_open(&m, dir, 1, &from, &e);
        if (rc == 0)
            rc = mirror_take(&m, from, "one\n", 4, &e);
        if (rc == 0)
            rc = mirror_end(&m, "attempt=1", -1, &e);
        mirror_done(&m);
        struck = fault_disarm();
        assert_true(rc == 0 || (struck && e.text[0]));
    }
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_bytes_come_where_they_were),
        ROW(test_a_log_is_bounded_and_so_is_what_is_heard),
        ROW(test_a_note_is_on_our_clock),
        ROW(test_what_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
