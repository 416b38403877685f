/* node/log and its files, whatever fails: what was written before stays, what matters is heard whole, and the disk stays bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "node/args.h"
#include "node/log.h"
#include "tests/fault.h"

enum { CAP = 400 << 10, LINES = 20000 };

static int make_folder(void **state)
{
    const char *base = getenv("TMPDIR");
    char *dir = NULL;
    if (asprintf(&dir, "%s/pipetune-log-XXXXXX", base && *base ? base : "/tmp") < 0 || !mkdtemp(dir))
        return -1;
    *state = dir;
    return 0;
}

static int remove_folder(void **state)
{
    char *command[] = { (char[]){ "/bin/rm" }, (char[]){ "-rf" }, (char[]){ "--" }, *state, NULL };
    pid_t pid = fork();
    if (pid == 0) {
        (void)execv(command[0], command);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
    free(*state);
    return 0;
}

static struct args args_in(const char *dir)
{
    struct args o = { .dir = dir, .log_cap = CAP };
    assert_true(needles_add(&o.keep, "kept"));
    return o;
}

/* One that has opened; a fault on the way leaves nothing open, and says so. */
static void open_whatever_fails(struct log *g, const struct args *o)
{
    struct err e = { 0 };
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        *g = LOG_CLOSED;
        fault_arm(FAULT_ALLOC | FAULT_OPEN | FAULT_WRITE, nth);
        rc = log_open(g, o, &e);
        (void)fault_disarm();
        if (rc == 0)
            break;
        assert_true(rc == -ENOMEM || rc == -EMFILE || rc == -ENOSPC);
        assert_true(e.text[0] != '\0');
        log_done(g);
    }
}

static size_t size_of(const char *dir, const char *name)
{
    AUTO_FREE char *path = io_join(dir, name);
    struct stat st;
    return path && stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

static void flush_all(struct log *g)
{
    for (int tries = 0; log_busy(g); tries++) { /* the disk is full once */
        assert_true(tries < 4);
        log_flush(g);
    }
}

/* LINES lines, every second of them kept, in pieces of any length. */
static void put_lines(struct log *g, struct buf *kept)
{
    AUTO_BUF struct buf text = BUF_INIT;
    for (int i = 0; i < LINES; i++) {
        char line[64];
        int n = snprintf(line, sizeof line, "line %d is %s\n", i, i % 2 ? "kept" : "chatter that fills the log");
        buf_put(&text, line, (size_t)n);
        if (i % 2)
            buf_put(kept, line, (size_t)n);
    }
    for (size_t at = 0, n; at < text.len; at += n) {
        n = 1 + (at * 7919) % LOG_CHUNK;
        n = n < text.len - at ? n : text.len - at;
        log_take(g, text.data + at, n);
        flush_all(g);
    }
    log_take_end(g);
    flush_all(g);
}

static void assert_kept(const char *dir, const struct buf *kept)
{
    AUTO_FREE char *path = io_join(dir, "heard");
    AUTO_BUF struct buf heard = BUF_INIT, got = BUF_INIT;
    assert_int_equal(io_read_file(&heard, path, 1 << 26, NULL), 0);
    for (const char *p = buf_text(&heard); *p; p = strchr(p, '\n') + 1) {
        size_t n = strcspn(p, "\n") + 1;
        if (memmem(p, n, "kept", 4))
            buf_put(&got, p, n);
    }
    assert_string_equal(buf_text(&got), buf_text(kept));
}

static void each_line_is_heard_once_whatever_fails(void **state)
{
    for (unsigned nth = 1;; nth++) {
        AUTO_FREE char *dir = NULL;
        assert_true(asprintf(&dir, "%s/%u", (const char *)*state, nth) > 0);
        assert_int_equal(mkdir(dir, 0700), 0);
        struct args o = args_in(dir);
        struct log g;
        open_whatever_fails(&g, &o);
        AUTO_BUF struct buf kept = BUF_INIT;
        fault_arm(FAULT_WRITE | FAULT_RENAME | FAULT_OPEN, nth);
        put_lines(&g, &kept);
        bool struck = fault_disarm();
        assert_int_equal(g.lost, 0);
        assert_int_equal(log_size(&g), size_of(dir, "log"));
        assert_true(size_of(dir, "log") + size_of(dir, "log.1") <= CAP + 2 * LOG_CHUNK);
        log_done(&g);
        assert_kept(dir, &kept);
        if (!struck)
            break;
        assert_true(nth < 400);
    }
}

/* A link in the way is not followed: what it points at is not ours to write to. */
static void a_link_is_not_followed(void **state)
{
    const char *dir = *state;
    AUTO_FREE char *target = io_join(dir, "other"), *link = io_join(dir, "heard");
    assert_int_equal(io_write_atomic(target, "x", 1, 0600, NULL), 0);
    assert_int_equal(symlink(target, link), 0);
    struct args o = args_in(dir);
    struct log g = LOG_CLOSED;
    struct err e = { 0 };
    assert_int_equal(log_open(&g, &o, &e), -EPERM);
    assert_non_null(strstr(e.text, "/heard'"));
    log_done(&g);
    assert_int_equal(size_of(dir, "other"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_line_is_heard_once_whatever_fails, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_link_is_not_followed, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
