/* What is taken away: trees without following links, checkpoints that newer ones have replaced, rows of the store. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "live/tidy.h"
#include "store/samples.h"
#include "store/tidy.h"
#include "tests/cells.h"
#include "tests/fault.h"

#define TEXT(literal) ((char *)(uintptr_t)(literal))

struct fix {
    char dir[64], path[96], checkpoints[96];
    struct store *s;
    struct store_trial trial;
    int64_t study;
    struct err e;
};

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%d: %s", rc, e->text);
}

static void put_file(const struct fix *f, const char *name, const char *text)
{
    char path[256];
    struct err e = { 0 };
    (void)snprintf(path, sizeof path, "%s/%s", f->dir, name);
    check(io_write_atomic(path, text, strlen(text), 0600, &e), &e);
}

static void put_dir(const struct fix *f, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", f->dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static bool is_there(const struct fix *f, const char *name)
{
    char path[256];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/%s", f->dir, name);
    return lstat(path, &st) == 0;
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-tidy-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/p.db", f->dir);
    (void)snprintf(f->checkpoints, sizeof f->checkpoints, "%s/c", f->dir);
    check(store_open(&f->s, f->path, STORE_WRITE, &f->e), &f->e);
    struct store_study row = { .name = TEXT("s"), .state = TEXT("finished"), .config = TEXT("{}") };
    check(store_study_add(f->s, &row, &f->study, &f->e), &f->e);
    f->trial = (struct store_trial){
        .study = f->study, .number = 1, .state = TEXT("finished"), .hyper = TEXT("{}"), .metric = 0.5, .seconds = 1
    };
    check(store_trial_add(f->s, &f->trial, &f->e), &f->e);
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    struct tidy t = { 0 };
    (void)fault_disarm();
    store_close(f->s);
    (void)tidy_remove(&t, f->dir, NULL);
    free(f);
    return 0;
}

/* Epochs of 10 iterations, of these metrics, each with a checkpoint. */
static void put_epochs(struct fix *f, const double *metrics, int n)
{
    put_dir(f, "c");
    put_dir(f, "c/20260101_000000");
    for (int i = 1; i <= n; i++) {
        char name[64];
        struct store_epoch ep = {
            .trial = f->trial.id, .epoch = i, .attempt = 1, .iterations = 10, .metric = metrics[i - 1], .seconds = 1
        };
        check(store_epoch_put(f->s, &ep, &f->e), &f->e);
        (void)snprintf(name, sizeof name, "c/20260101_000000/model.%d", 10 * i + 1);
        put_file(f, name, "model");
        (void)snprintf(name, sizeof name, "c/20260101_000000/optimMethod-S.%d", 10 * i + 1);
        put_file(f, name, "state");
    }
}

/* Which of the epochs have a model and a state. */
static const char *kept(const struct fix *f, int n, char out[16])
{
    size_t len = 0;
    for (int i = 1; i <= n; i++) {
        char model[64], state[64];
        (void)snprintf(model, sizeof model, "c/20260101_000000/model.%d", 10 * i + 1);
        (void)snprintf(state, sizeof state, "c/20260101_000000/optimMethod-S.%d", 10 * i + 1);
        assert_int_equal(is_there(f, model), is_there(f, state));
        if (is_there(f, model))
            out[len++] = (char)('0' + i);
    }
    out[len] = '\0';
    return out;
}

static const struct {
    const char *name, *state, *keep, *want;
    bool maximise;
} cases[] = {
    { "the best and the last", "finished", "best", "25", true },
    { "the least is the best", "finished", "best", "35", false },
    { "a failed trial", "failed", "best", "25", true },
    { "all", "finished", "all", "12345", true },
    { "none", "finished", "none", "", true },
    { "the two newest and the best of one that runs", "running", "best", "245", true },
    { "the two newest of one that runs", "running", "none", "45", true },
    { "all of one that runs", "running", "all", "12345", true },
};

static void test_few_checkpoints_are_kept(void **state)
{
    static const double metrics[] = { 0.5, 0.9, 0.1, 0.7, 0.8 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fix *f = *state;
        struct tidy dry = { .dry = true }, t = { 0 };
        char got[16];
        put_epochs(f, metrics, 5);
        f->trial.state = TEXT(cases[i].state);
        enum tidy_keep keep = tidy_keep_find(cases[i].keep);
        check(tidy_checkpoints(&dry, f->s, &f->trial, cases[i].maximise, keep, f->checkpoints, &f->e), &f->e);
        assert_string_equal(kept(f, 5, got), "12345");
        check(tidy_checkpoints(&t, f->s, &f->trial, cases[i].maximise, keep, f->checkpoints, &f->e), &f->e);
        if (strcmp(kept(f, 5, got), cases[i].want) != 0 || dry.bytes != t.bytes)
            fail_msg("%s: kept %s, not %s", cases[i].name, got, cases[i].want);
        check(tidy_remove(&t, f->checkpoints, &f->e), &f->e);
    }
}

/* The newest has no state yet, or an empty one: it counts as none, and what was there before it stays. */
static void test_what_is_not_whole_replaces_nothing(void **state)
{
    struct fix *f = *state;
    struct tidy t = { 0 };
    put_epochs(f, (const double[]){ 0.9, 0.5, 0.6 }, 3);
    put_file(f, "c/20260101_000000/model.41", "model");
    put_file(f, "c/20260101_000000/model.51", "model");
    put_file(f, "c/20260101_000000/optimMethod-S.51", "");
    f->trial.state = TEXT("running");
    check(tidy_checkpoints(&t, f->s, &f->trial, true, TIDY_NONE, f->checkpoints, &f->e), &f->e);
    assert_true(is_there(f, "c/20260101_000000/model.41") && is_there(f, "c/20260101_000000/model.51"));
    assert_true(is_there(f, "c/20260101_000000/model.31") && is_there(f, "c/20260101_000000/model.21"));
    assert_false(is_there(f, "c/20260101_000000/model.11"));
}

/* A kill between its two files leaves one of them. */
static void test_halves_that_are_older_than_a_whole_one_go(void **state)
{
    static const struct {
        const char *name, *state, *keep;
        bool old, new;
    } rows[] = { { "of a trial that is over", "finished", "best", false, true },
                 { "of one that goes on later", "interrupted", "best", false, true },
                 { "of one whose checkpoints all go", "finished", "none", false, true },
                 { "of one that runs", "running", "best", true, true },
                 { "of one that keeps all", "finished", "all", true, true } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fix *f = *state;
        struct tidy dry = { .dry = true }, t = { 0 };
        put_epochs(f, (const double[]){ 0.9, 0.5, 0.6 }, 3);
        put_file(f, "c/20260101_000000/model.12", "model");
        put_file(f, "c/20260101_000000/optimMethod-S.13", "state");
        put_file(f, "c/20260101_000000/model.41", "model");
        f->trial.state = TEXT(rows[i].state);
        enum tidy_keep keep = tidy_keep_find(rows[i].keep);
        check(tidy_checkpoints(&dry, f->s, &f->trial, true, keep, f->checkpoints, &f->e), &f->e);
        assert_true(is_there(f, "c/20260101_000000/model.12"));
        check(tidy_checkpoints(&t, f->s, &f->trial, true, keep, f->checkpoints, &f->e), &f->e);
        if (is_there(f, "c/20260101_000000/model.12") != rows[i].old ||
            is_there(f, "c/20260101_000000/optimMethod-S.13") != rows[i].old ||
            is_there(f, "c/20260101_000000/model.41") != rows[i].new || dry.bytes != t.bytes)
            fail_msg("%s", rows[i].name);
        check(tidy_remove(&t, f->checkpoints, &f->e), &f->e);
    }
}

/* Files of checkpoint n, in a folder of that name. */
static void put_checkpoint(const struct fix *f, const char *folder, int n)
{
    char name[64];
    (void)snprintf(name, sizeof name, "c/%s/model.%d", folder, n);
    put_file(f, name, "model");
    (void)snprintf(name, sizeof name, "c/%s/optimMethod-S.%d", folder, n);
    put_file(f, name, "state");
}

/* Those that an application writes within an epoch are newer, and no attempt goes on from them. */
static void test_what_a_trial_can_go_on_from_is_kept(void **state)
{
    struct fix *f = *state;
    struct tidy t = { 0 };
    char got[16];
    put_epochs(f, (const double[]){ 0.9, 0.5, 0.6 }, 3);
    for (int n = 34; n <= 40; n += 3)
        put_checkpoint(f, "20260101_000000", n);
    f->trial.state = TEXT("interrupted");
    check(tidy_checkpoints(&t, f->s, &f->trial, true, TIDY_NONE, f->checkpoints, &f->e), &f->e);
    assert_string_equal(kept(f, 3, got), "23");
    assert_true(is_there(f, "c/20260101_000000/model.40") && is_there(f, "c/20260101_000000/model.37"));
    assert_false(is_there(f, "c/20260101_000000/model.34"));
}

/* No attempt could go on from any, and the trial was begun anew. */
static void test_a_checkpoint_that_failed_replaces_none(void **state)
{
    struct fix *f = *state;
    struct tidy t = { 0 };
    put_epochs(f, (const double[]){ 0.5, 0.6, 0.9 }, 3);
    for (int n = 1; n <= 3; n++) {
        char from[160];
        (void)snprintf(from, sizeof from, "%s/20260101_000000/model.%d", f->checkpoints, 10 * n + 1);
        struct store_attempt row = { .trial = f->trial.id,
                                     .number = n,
                                     .state = TEXT("ended"),
                                     .launch = TEXT("tag"),
                                     .boot_id = TEXT("boot"),
                                     .argv = TEXT("[]"),
                                     .setting = TEXT("{}"),
                                     .outcome = TEXT("unusable_checkpoint"),
                                     .resumed_from = from };
        check(store_attempt_add(f->s, &row, &f->e), &f->e);
        check(store_attempt_update(f->s, &row, &f->e), &f->e);
    }
    put_dir(f, "c/20260102_000000");
    put_checkpoint(f, "20260102_000000", 11);
    f->trial.state = TEXT("running");
    check(tidy_checkpoints(&t, f->s, &f->trial, true, TIDY_NONE, f->checkpoints, &f->e), &f->e);
    assert_true(is_there(f, "c/20260102_000000/model.11"));
    assert_false(is_there(f, "c/20260101_000000/model.11"));
}

static void test_a_link_is_removed_and_not_followed(void **state)
{
    struct fix *f = *state;
    struct tidy t = { 0 };
    char tree[128], link[160];
    put_dir(f, "outside");
    put_file(f, "outside/kept", "kept");
    put_dir(f, "tree");
    put_dir(f, "tree/below");
    put_file(f, "tree/below/file", "gone");
    (void)snprintf(tree, sizeof tree, "%s/tree", f->dir);
    (void)snprintf(link, sizeof link, "%s/below/link", tree);
    assert_int_equal(symlink("../../outside", link), 0);
    check(tidy_remove(&t, tree, &f->e), &f->e);
    assert_false(is_there(f, "tree"));
    assert_true(is_there(f, "outside/kept"));
    (void)snprintf(link, sizeof link, "%s/link", f->dir);
    assert_int_equal(symlink("outside", link), 0);
    check(tidy_remove(&t, link, &f->e), &f->e); /* the link itself */
    assert_false(is_there(f, "link"));
    assert_true(is_there(f, "outside/kept") && t.bytes > 0);
    check(tidy_remove(&t, tree, &f->e), &f->e); /* what is not there is removed */
}

static void test_a_folder_whose_lock_is_held_is_in_use(void **state)
{
    struct fix *f = *state;
    put_dir(f, "study");
    put_dir(f, "study/1");
    put_dir(f, "study/session-2");
    put_file(f, "study/1/lock", "");
    put_file(f, "study/session-2/lock", "");
    char dir[128], lock[160];
    (void)snprintf(dir, sizeof dir, "%s/study", f->dir);
    (void)snprintf(lock, sizeof lock, "%s/session-2/lock", dir);
    assert_null(tidy_in_use_below(dir));
    AUTO_CLOSE int fd = open(lock, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    AUTO_FREE char *busy = tidy_in_use_below(dir);
    assert_string_equal(busy, "session-2");
}

static int count_samples(void *ctx, const struct store_sample *r)
{
    int *n = ctx;
    n[0]++;
    n[1] += r->v != NULL;
    n[2] += r->cpu_s == 0.25;
    n[3] += r->why != NULL;
    return 0;
}

static void test_thinned_samples_keep_their_cpu_time(void **state)
{
    struct fix *f = *state;
    struct reading v[FEATURES];
    int n[4] = { 0 };
    int64_t bytes = 0;
    memcpy(v, cells_of("1 2"), sizeof v);
    v[FEATURE_PROC_CPU_TIME] = (struct reading){ 0.25, 1, READING_OK };
    struct store_sample row = { .t_ms = 5, .dt_ms = 1, .scope = "process", .v = v };
    check(store_sample_add(f->s, f->trial.id, &row, &f->e), &f->e);
    check(store_samples_thick(f->s, f->study, &bytes, &f->e), &f->e);
    assert_true(bytes > 27);
    check(store_samples_thin(f->s, f->study, &f->e), &f->e);
    check(store_vacuum(f->s, &f->e), &f->e);
    check(store_samples_thick(f->s, f->study, &bytes, &f->e), &f->e);
    assert_int_equal(bytes, 0);
    check(store_samples(f->s, f->trial.id, count_samples, n, &f->e), &f->e);
    assert_true(n[0] == 1 && n[1] == 0 && n[2] == 1 && n[3] == 0);
}

static void test_memory_that_runs_out_leaves_whole_checkpoints(void **state)
{
    struct fix *f = *state;
    bool hit = true;
    unsigned nth = 1;
    char got[16];
    put_epochs(f, (const double[]){ 0.9, 0.5, 0.6 }, 3);
    for (; hit; nth++) {
        struct tidy t = { 0 };
        struct err e = { 0 };
        assert_true(nth < 500);
        fault_arm(FAULT_ALLOC, nth);
        int rc = tidy_checkpoints(&t, f->s, &f->trial, true, TIDY_BEST, f->checkpoints, &e);
        hit = fault_disarm();
        if (rc < 0 && (rc != -ENOMEM || !e.text[0]))
            fail_msg("allocation %u: %d %s", nth, rc, e.text);
        assert_true(is_there(f, "c/20260101_000000/model.11") && is_there(f, "c/20260101_000000/model.31"));
    }
    assert_string_equal(kept(f, 3, got), "13");
    assert_true(nth > 5); /* there were calls to fail */
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_few_checkpoints_are_kept),
        T(test_what_is_not_whole_replaces_nothing),
        T(test_halves_that_are_older_than_a_whole_one_go),
        T(test_what_a_trial_can_go_on_from_is_kept),
        T(test_a_checkpoint_that_failed_replaces_none),
        T(test_a_link_is_removed_and_not_followed),
        T(test_a_folder_whose_lock_is_held_is_in_use),
        T(test_thinned_samples_keep_their_cpu_time),
        T(test_memory_that_runs_out_leaves_whole_checkpoints),
    };
    return cmocka_run_group_tests_name("tidy", tests, NULL, NULL);
}
