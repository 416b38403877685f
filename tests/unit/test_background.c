/* Drivers in the background: this test program stands in for one. */
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "base/proc.h"
#include "live/background.h"
#include "tests/fault.h"

struct fix {
    char dir[64], log[96];
};

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-background-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->log, sizeof f->log, "%s/driver.log", f->dir);
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)unlink(f->log);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

/* What the program does when it is the driver: its words, its folder, a variable, its session. */
static int be_driver(int argc, char **argv)
{
    char folder[128] = "";
    const char *one = getenv("ONE"), *path = getenv("PATH");
    (void)!getcwd(folder, sizeof folder);
    printf("%d words, %s; in %s; %s, %s; %s\n", argc, argv[2], folder, one ? one : "-", path ? "a path" : "no path",
           getsid(0) == getpid() ? "its own session" : "no session");
    (void)fflush(stdout);
    fprintf(stderr, "pipetune: done\n\n");
    return 5;
}

static int start(struct fix *f, struct background *b, const char *folder, struct err *e)
{
    AUTO_JSON json_t *words = json_pack("[s, s]", "driver", "some word");
    AUTO_JSON json_t *env = json_pack("{s:s, s:n}", "ONE", "1", "PATH");
    return background_start(b, words, folder, env, f->log, e);
}

static int code_of(const struct background *b)
{
    int status = 0;
    assert_int_equal(waitpid(b->pid, &status, 0), b->pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_it_begins_when_it_is_let_go(void **state)
{
    struct fix *f = *state;
    struct background b;
    struct err e;
    uint64_t ticks = 0;
    AUTO_BUF struct buf log = BUF_INIT, want = BUF_INIT;
    assert_int_equal(start(f, &b, f->dir, &e), 0);
    assert_int_equal(proc_start_ticks(b.pid, &ticks), 0);
    assert_int_equal(ticks, b.start_ticks);
    assert_int_equal(io_read_file(&log, f->log, 4096, NULL), 0);
    assert_int_equal(log.len, 0);
    assert_int_equal(background_go(&b), 0);
    assert_int_equal(code_of(&b), 5);
    assert_int_equal(io_read_file(&log, f->log, 4096, NULL), 0);
    buf_printf(&want, "3 words, some word; in %s; 1, no path; its own session\npipetune: done\n\n", f->dir);
    AUTO_FREE char *last = background_last(f->log);
    assert_string_equal(last, "done");
    assert_string_equal(buf_text(&log), buf_text(&want));
}

static void test_without_a_go_it_was_never_there(void **state)
{
    struct fix *f = *state;
    struct background b;
    struct err e;
    struct stat st;
    assert_int_equal(start(f, &b, f->dir, &e), 0);
    background_drop(&b);
    assert_int_equal(code_of(&b), 0);
    assert_int_equal(stat(f->log, &st), 0);
    assert_int_equal(st.st_size, 0);
}

static void test_a_folder_that_is_gone_is_told(void **state)
{
    struct fix *f = *state;
    struct background b;
    struct err e;
    assert_int_equal(start(f, &b, "/nowhere/at/all", &e), -ENOENT);
    assert_non_null(strstr(e.text, "'/nowhere/at/all'"));
    assert_null(background_last(f->log));
}

static size_t open_files(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_whatever_fails_nothing_is_left(void **state)
{
    struct fix *f = *state;
    size_t before = open_files();
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct background b = { .go_fd = -1 };
        struct err e = { 0 };
        AUTO_JSON json_t *words = json_pack("[s, s]", "driver", "some word");
        assert_true(nth < 200);
        fault_arm(FAULT_ALLOC | FAULT_OPEN | FAULT_FORK, nth);
        rc = background_start(&b, words, f->dir, NULL, f->log, &e);
        (void)fault_disarm();
        if (rc == 0) {
            background_drop(&b);
            assert_int_equal(code_of(&b), 0);
        } else {
            assert_true(e.text[0]);
            assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child */
        }
        assert_int_equal(open_files(), before);
    }
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_it_begins_when_it_is_let_go),
        TEST(test_without_a_go_it_was_never_there),
        TEST(test_a_folder_that_is_gone_is_told),
        TEST(test_whatever_fails_nothing_is_left),
    };
    if (argc > 2 && strcmp(argv[1], "driver") == 0)
        return be_driver(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
