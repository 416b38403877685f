#include <errno.h>
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

#include "base/io.h"
#include "base/own.h"
#include "monitoring/credential.h"
#include "tests/fault.h"

struct place {
    char dir[64], file[96];
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/pipetune-credential-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->file, sizeof p->file, "%s/secret", p->dir);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    (void)unlink(p->file);
    (void)rmdir(p->dir);
    free(p);
    return 0;
}

static int read_back(const struct place *p, const char *text, size_t len, mode_t mode, struct credential *c,
                     struct err *e)
{
    assert_int_equal(io_write_atomic(p->file, text, len, 0600, e), 0);
    assert_int_equal(chmod(p->file, mode), 0);
    return credential_read(c, p->file, e);
}

static const struct {
    const char *name, *text, *user, *password, *token;
} good[] = {
    { "user and password", "me:hunter2\n", "me", "hunter2", NULL },
    { "a password with a colon", "me:a:b\r\n", "me", "a:b", NULL },
    { "an empty password", "me:", "me", "", NULL },
    { "a token", "abc==  \n", NULL, NULL, "abc==" },
};

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void credentials_are_read(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct credential c = { 0 };
        struct err e = { 0 };
        int rc = read_back(*state, good[i].text, strlen(good[i].text), 0600, &c, &e);
        if (rc != 0 || !same(c.user, good[i].user) || !same(c.password, good[i].password) ||
            !same(c.token, good[i].token))
            fail_msg("%s: got %d %s", good[i].name, rc, e.text);
        credential_done(&c);
    }
}

static void a_file_that_others_may_read_is_refused_with_the_fix(void **state)
{
    struct place *p = *state;
    static const mode_t modes[] = { 0644, 0640, 0604, 0620, 0601, 0700 };
    char fix[128];
    (void)snprintf(fix, sizeof fix, "run: chmod 600 %s", p->file);
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct credential c = { 0 };
        struct err e = { 0 };
        assert_int_equal(read_back(p, "me:hunter2", 10, modes[i], &c, &e), -EACCES);
        assert_non_null(strstr(e.text, fix));
        assert_null(strstr(e.text, "hunter2"));
        assert_null(c.user);
    }
    struct credential c = { 0 };
    struct err e = { 0 };
    assert_int_equal(read_back(p, "me:hunter2", 10, 0400, &c, &e), 0);
    credential_done(&c);
}

static const struct {
    const char *name, *text;
    size_t len;
} bad[] = {
    { "nothing", "", 0 },   { "blanks", " \n\n", 3 },     { "two lines", "a:b\nc:d\n", 8 },
    { "a NUL", "a\0b", 3 }, { "an escape", "a\033b", 3 },
};

static void what_is_no_credential_is_refused_without_repeating_it(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct credential c = { 0 };
        struct err e = { 0 };
        if (read_back(*state, bad[i].text, bad[i].len, 0600, &c, &e) != -EINVAL)
            fail_msg("%s was taken", bad[i].name);
        assert_null(strstr(e.text, "c:d"));
    }
    AUTO_BUF struct buf long_one = BUF_INIT;
    for (int i = 0; i <= CREDENTIAL_MAX; i++)
        buf_putc(&long_one, 'x');
    struct credential c = { 0 };
    struct err e = { 0 };
    assert_int_equal(read_back(*state, long_one.data, long_one.len, 0600, &c, &e), -EINVAL);
}

static void what_is_no_file_is_refused(void **state)
{
    struct place *p = *state;
    struct credential c = { 0 };
    struct err e = { 0 };
    assert_int_equal(credential_read(&c, p->file, &e), -ENOENT);
    assert_int_equal(credential_read(&c, p->dir, &e), -EACCES);
    assert_int_equal(mkfifo(p->file, 0600), 0);
    assert_int_equal(credential_read(&c, p->file, &e), -EACCES); /* and it did not wait for a writer */
}

static void without_memory_nothing_is_read(void **state)
{
    struct credential c = { 0 };
    struct err e = { 0 };
    assert_int_equal(read_back(*state, "me:hunter2", 10, 0600, &c, &e), 0);
    credential_done(&c);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 16);
        fault_arm(FAULT_ALLOC | FAULT_OPEN, nth);
        rc = credential_read(&c, ((struct place *)*state)->file, &e);
        (void)fault_disarm();
    }
    assert_string_equal(c.password, "hunter2");
    credential_done(&c);
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(credentials_are_read),
        ROW(a_file_that_others_may_read_is_refused_with_the_fix),
        ROW(what_is_no_credential_is_refused_without_repeating_it),
        ROW(what_is_no_file_is_refused),
        ROW(without_memory_nothing_is_read),
    };
    return cmocka_run_group_tests_name("credential", tests, NULL, NULL);
}
