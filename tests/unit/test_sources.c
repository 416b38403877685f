/* Files of applications in the store, by content. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "store/sources.h"
#include "store/tidy.h"
#include "tests/fault.h"

struct fix {
    char dir[64], path[96];
    struct store *s;
    int64_t study, other;
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

#define TEXT(literal) ((char *)(uintptr_t)(literal))

static int64_t add_study(struct fix *f, const char *name)
{
    int64_t id = 0;
    struct store_study row = { .name = TEXT(name), .state = TEXT("running"), .config = TEXT("{}") };
    assert_ok(f, store_study_add(f->s, &row, &id, &f->e));
    return id;
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-sources-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    f->study = add_study(f, "a");
    f->other = add_study(f, "b");
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)fault_disarm();
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static int add(struct fix *f, int64_t study, const char *name, const char *sum, const char *bytes)
{
    const struct store_source row = { study, name, "/where/it/was", sum, 0755, bytes, bytes ? strlen(bytes) : 0 };
    return store_source_add(f->s, &row, &f->e);
}

static int put_one(void *ctx, const struct store_source *r)
{
    buf_printf(ctx, "%s %s %o ", r->name, r->sha256, (unsigned)r->mode);
    if (r->bytes)
        buf_printf(ctx, "'%.*s';", (int)r->len, (const char *)r->bytes);
    else
        buf_puts(ctx, "not kept;");
    return 0;
}

static void assert_sources(struct fix *f, int64_t study, const char *want)
{
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_sources(f->s, study, put_one, &got, &f->e));
    assert_string_equal(buf_text(&got), want);
}

static void test_files_come_back_by_name(void **state)
{
    struct fix *f = *state;
    assert_ok(f, add(f, f->study, "train.py", "11", "import model"));
    assert_ok(f, add(f, f->study, "empty.py", "00", ""));
    assert_ok(f, add(f, f->study, "big.jar", "22", NULL));
    assert_sources(f, f->study, "big.jar 22 755 not kept;empty.py 00 755 '';train.py 11 755 'import model';");
    assert_sources(f, f->other, "");
    assert_int_equal(add(f, f->study, "train.py", "33", "x"), -EEXIST);
    assert_int_equal(add(f, 99, "train.py", "33", "x"), -ENOENT);
}

static void test_a_content_stays_as_long_as_a_study_has_it(void **state)
{
    struct fix *f = *state;
    assert_ok(f, add(f, f->study, "train.py", "11", "same"));
    assert_ok(f, add(f, f->other, "other.py", "11", "same"));
    assert_ok(f, store_study_remove(f->s, f->study, &f->e));
    assert_sources(f, f->other, "other.py 11 755 'same';");
    assert_ok(f, store_study_remove(f->s, f->other, &f->e));
    int64_t again = add_study(f, "c");
    assert_ok(f, add(f, again, "train.py", "11", NULL)); /* what was kept is gone */
    assert_sources(f, again, "train.py 11 755 not kept;");
}

static void test_a_file_is_there_or_not_whatever_fails(void **state)
{
    struct fix *f = *state;
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        fault_arm(FAULT_WRITE | FAULT_ALLOC, nth);
        rc = add(f, f->study, "train.py", "11", "bytes");
        (void)fault_disarm();
        assert_sources(f, f->study, rc < 0 ? "" : "train.py 11 755 'bytes';");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files_come_back_by_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_content_stays_as_long_as_a_study_has_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_is_there_or_not_whatever_fails, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
