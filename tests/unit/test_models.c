/* Models in the store: of two writers none loses what the other wrote. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "store/models.h"
#include "tests/fault.h"

struct fix {
    char dir[64];
    char path[96];
    struct store *a, *b; /* two connections to the same store */
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-models-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->a, f->path, STORE_WRITE, &f->e));
    assert_ok(f, store_open(&f->b, f->path, STORE_WRITE, &f->e));
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)fault_disarm();
    store_close(f->a);
    store_close(f->b);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

/* "text vVERSION", or "none". */
static void assert_model(struct fix *f, struct store *s, const char *name, const char *want)
{
    AUTO_FREE char *json = NULL;
    int64_t version = 0;
    int rc = store_model_get(s, name, &json, &version, &f->e);
    assert_ok(f, rc);
    char got[128] = "none";
    if (rc == 1)
        (void)snprintf(got, sizeof got, "%s v%d", json, (int)version);
    assert_string_equal(got, want);
}

static void test_a_model_comes_back_with_its_version(void **state)
{
    struct fix *f = *state;
    int64_t version = 0;
    assert_model(f, f->a, "m", "none");
    assert_ok(f, store_model_put(f->a, "m", "{\"k\":1}", 0, &version, &f->e));
    assert_int_equal(version, 1);
    assert_model(f, f->a, "m", "{\"k\":1} v1");
    assert_ok(f, store_model_put(f->a, "m", "{\"k\":2}", 1, &version, &f->e));
    assert_int_equal(version, 2);
    assert_model(f, f->b, "m", "{\"k\":2} v2");
    assert_model(f, f->b, "M", "none");
}

static void test_who_read_an_older_version_is_sent_back(void **state)
{
    struct fix *f = *state;
    int64_t version = 77;
    assert_ok(f, store_model_put(f->a, "m", "first", 0, NULL, &f->e));
    assert_int_equal(store_model_put(f->b, "m", "also first", 0, &version, &f->e), -EAGAIN);
    assert_non_null(strstr(f->e.text, "model 'm' is there already"));
    assert_ok(f, store_model_put(f->b, "m", "of b", 1, NULL, &f->e));
    assert_int_equal(store_model_put(f->a, "m", "of a", 1, &version, &f->e), -EAGAIN);
    assert_non_null(strstr(f->e.text, "changed by somebody else after version 1"));
    assert_int_equal(store_model_put(f->a, "m", "of a", 3, &version, &f->e), -EAGAIN); /* nobody ever had that one */
    assert_int_equal(store_model_put(f->a, "n", "of a", 1, &version, &f->e), -EAGAIN);
    assert_int_equal(version, 77);
    assert_model(f, f->a, "m", "of b v2");
    assert_model(f, f->a, "n", "none");
}

static void test_a_transaction_goes_on_after_a_version_that_moved(void **state)
{
    struct fix *f = *state;
    assert_ok(f, store_model_put(f->a, "m", "first", 0, NULL, &f->e));
    assert_ok(f, store_begin(f->a, &f->e));
    assert_ok(f, store_model_put(f->a, "n", "kept", 0, NULL, &f->e));
    assert_int_equal(store_model_put(f->a, "m", "late", 0, NULL, &f->e), -EAGAIN);
    assert_ok(f, store_model_put(f->a, "m", "second", 1, NULL, &f->e));
    assert_ok(f, store_commit(f->a, &f->e));
    assert_model(f, f->b, "n", "kept v1");
    assert_model(f, f->b, "m", "second v2");
}

static void test_texts_that_are_missing_are_refused(void **state)
{
    struct fix *f = *state;
    assert_int_equal(store_model_put(f->a, NULL, "{}", 0, NULL, &f->e), -EINVAL);
    assert_int_equal(store_model_put(f->a, "m", NULL, 0, NULL, &f->e), -EINVAL);
    assert_model(f, f->a, "m", "none");
}

static int put_name(void *ctx, const char *name, int64_t version)
{
    buf_printf(ctx, "%s v%d\n", name, (int)version);
    return 0;
}

static int stop_at_once(void *ctx, const char *name, int64_t version)
{
    (void)ctx, (void)name, (void)version;
    return -ECANCELED;
}

static void test_the_list_is_sorted(void **state)
{
    struct fix *f = *state;
    static const char *const names[] = { "b", "a", "B" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_ok(f, store_model_put(f->a, names[i], "{}", 0, NULL, &f->e));
    assert_ok(f, store_model_put(f->a, "a", "{}", 1, NULL, &f->e));
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_models(f->b, put_name, &got, &f->e));
    assert_string_equal(buf_text(&got), "B v1\na v2\nb v1\n");
    assert_int_equal(store_models(f->b, stop_at_once, NULL, &f->e), -ECANCELED);
}

/* Adds one to the number that the model is, again and again. */
static int count_up(const char *path, int times)
{
    struct store *s = NULL;
    struct err e;
    int rc = store_open(&s, path, STORE_WRITE, &e);
    while (rc == 0 && times > 0) {
        AUTO_FREE char *json = NULL;
        int64_t version = 0;
        rc = store_model_get(s, "m", &json, &version, &e);
        if (rc < 0)
            break;
        char next[32];
        (void)snprintf(next, sizeof next, "%ld", 1 + (json ? strtol(json, NULL, 10) : 0));
        rc = store_model_put(s, "m", next, version, NULL, &e);
        times -= rc == 0;
        rc = rc == -EAGAIN ? 0 : rc;
    }
    store_close(s);
    return rc;
}

static void test_writers_at_once_lose_nothing(void **state)
{
    enum { WRITERS = 3, TIMES = 20 };
    struct fix *f = *state;
    store_close(MOVE_PTR(f->a)); /* a connection is not carried through fork() */
    store_close(MOVE_PTR(f->b));
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(count_up(f->path, TIMES) < 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_ok(f, store_open(&f->a, f->path, STORE_READ, &f->e));
    assert_model(f, f->a, "m", "60 v60");
}

/* A third connection, so that no statement is ready yet. */
static int scenario(struct fix *f)
{
    struct store *s = NULL;
    int rc = store_open(&s, f->path, STORE_WRITE, &f->e);
    static const char *const names[] = { "m", "n" }; /* "n" is new until the first time that nothing fails before */
    for (size_t i = 0; rc >= 0 && i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *json = NULL;
        int64_t version = 0;
        rc = store_model_get(s, names[i], &json, &version, &f->e);
        if (rc >= 0)
            rc = store_model_put(s, names[i], "{}", version, NULL, &f->e);
    }
    AUTO_BUF struct buf got = BUF_INIT;
    if (rc == 0)
        rc = store_models(s, put_name, &got, &f->e);
    store_close(s);
    return rc;
}

static void test_memory_that_runs_out_is_told_and_loses_nothing(void **state)
{
    struct fix *f = *state;
    assert_ok(f, store_model_put(f->a, "m", "{}", 0, NULL, &f->e));
    bool hit = true;
    unsigned nth = 1;
    for (; hit; nth++) {
        assert_true(nth < 200);
        fault_arm(FAULT_ALLOC, nth);
        int rc = scenario(f);
        hit = fault_disarm();
        if (rc != 0 && rc != -ENOMEM)
            fail_msg("allocation %u: got %d: %s", nth, rc, f->e.text);
        AUTO_FREE char *json = NULL;
        int64_t version = 0;
        assert_int_equal(store_model_get(f->a, "m", &json, &version, &f->e), 1);
        assert_string_equal(json, "{}");
    }
    assert_true(nth > 5); /* there were calls to fail */
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_a_model_comes_back_with_its_version),
        T(test_who_read_an_older_version_is_sent_back),
        T(test_a_transaction_goes_on_after_a_version_that_moved),
        T(test_texts_that_are_missing_are_refused),
        T(test_the_list_is_sorted),
        T(test_writers_at_once_lose_nothing),
        T(test_memory_that_runs_out_is_told_and_loses_nothing),
    };
    return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
