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
#include "monitoring/snmp_secret.h"
#include "tests/fault.h"

struct place {
    char dir[64], file[96];
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/pipetune-snmp-secret-XXXXXX");
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

static void write_file(const struct place *p, const char *text, mode_t mode)
{
    struct err e = { 0 };
    assert_int_equal(io_write_atomic(p->file, text, strlen(text), 0600, &e), 0);
    assert_int_equal(chmod(p->file, mode), 0);
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static const struct {
    const char *name;
    int version;
    const char *text, *community, *user, *auth, *privacy;
} good[] = {
    { "without a file it is the usual community", 2, NULL, "public", NULL, NULL, NULL },
    { "a community", 2, "rack-7\n", "rack-7", NULL, NULL, NULL },
    { "a community with colons", 2, "rack:7:b", "rack:7:b", NULL, NULL, NULL },
    { "a user and a password", 3, "meter:authpass", NULL, "meter", "authpass", NULL },
    { "a user and two passwords", 3, "meter:authpass:privpass\n", NULL, "meter", "authpass", "privpass" },
};

static void secrets_are_what_the_version_needs(void **state)
{
    struct place *p = *state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct snmp_secret s = { 0 };
        struct err e = { 0 };
        if (good[i].text)
            write_file(p, good[i].text, 0600);
        int rc = snmp_secret_read(&s, good[i].version, good[i].text ? p->file : NULL, &e);
        if (rc != 0 || !same(s.community, good[i].community) || !same(s.user, good[i].user) ||
            !same(s.auth, good[i].auth) || !same(s.privacy, good[i].privacy))
            fail_msg("%s: got %d %s", good[i].name, rc, e.text);
        snmp_secret_done(&s);
        assert_null(s.community);
        assert_null(s.auth);
    }
}

static const struct {
    const char *name;
    int version;
    const char *text;
    mode_t mode;
    int want;
    const char *says;
} bad[] = {
    { "version 1", 1, "public", 0600, -EINVAL, "2 or 3" },
    { "version 3 without a file", 3, NULL, 0, -EINVAL, "credential_file" },
    { "version 3 with a community", 3, "hunter2-public", 0600, -EINVAL, "USER:PASSWORD" },
    { "version 3 without a user", 3, ":hunter2-pass", 0600, -EINVAL, "USER:PASSWORD" },
    { "three passwords", 3, "meter:hunter2-a:hunter2-b:hunter2-c", 0600, -EINVAL, "USER:PASSWORD" },
    { "a short password", 3, "meter:hunter2", 0600, -EINVAL, "8 characters" },
    { "a short second password", 3, "meter:hunter2-long:hunter2", 0600, -EINVAL, "8 characters" },
    { "an empty second password", 3, "meter:hunter2-long:", 0600, -EINVAL, "8 characters" },
    { "a file that others may read", 2, "hunter2", 0644, -EACCES, "chmod 600" },
    { "an empty file", 2, "", 0600, -EINVAL, "one line" },
};

static void what_does_not_do_is_refused_and_not_shown(void **state)
{
    struct place *p = *state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct snmp_secret s = { 0 };
        struct err e = { 0 };
        if (bad[i].text)
            write_file(p, bad[i].text, bad[i].mode);
        int rc = snmp_secret_read(&s, bad[i].version, bad[i].text ? p->file : NULL, &e);
        if (rc != bad[i].want || !strstr(e.text, bad[i].says) || strstr(e.text, "hunter2") || s.community || s.auth)
            fail_msg("%s: got %d '%s'", bad[i].name, rc, e.text);
    }
}

static void secrets_survive_any_failure(void **state)
{
    struct place *p = *state;
    for (int version = 2; version <= 3; version++) {
        int rc = -EIO;
        write_file(p, version == 2 ? "rack:7" : "meter:authpass:privpass", 0600);
        for (unsigned nth = 1; rc < 0; nth++) {
            assert_true(nth < 32);
            struct snmp_secret s = { 0 };
            struct err e = { 0 };
            fault_arm(FAULT_ALLOC | FAULT_OPEN, nth);
            rc = snmp_secret_read(&s, version, p->file, &e);
            fault_disarm();
            assert_int_equal(rc < 0, s.community == NULL && s.user == NULL);
            assert_true(rc == 0 || e.code == rc);
            snmp_secret_done(&s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(secrets_are_what_the_version_needs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_do_is_refused_and_not_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(secrets_survive_any_failure, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
