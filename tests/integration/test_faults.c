/* Every nth call that can fail is made to fail in turn (tests/faults_preload.c), first in the driver, then in its launcher:
 * the run ends in time, with 0 or with one line that says why, and running again finishes the study, every trial once.
 * PIPETUNE_FAULTS_KEEP leaves the folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "store/store.h"
#include "tests/integration/harness.h"

enum { EPOCHS = 2, ATTEMPTS_MAX = 16 };

#if defined(__SANITIZE_ADDRESS__)
#define ASAN true
#else
#define ASAN false
#endif

static const struct fault {
    const char *program, *kind;
    const char *error; /* "" the kind's own */
    unsigned each;     /* so many one by one, */
    unsigned step;     /* then every so many */
    unsigned least;    /* how many calls there must be for the row to mean anything */
} faults[] = {
    { "pipetune", "malloc", "", 160, 37, 1000 }, { "pipetune", "write", "", 20, 1, 1 },
    { "pipetune", "pwrite", "", 30, 5, 30 },     { "pipetune", "pwrite", ":EIO", 2, 11, 30 },
    { "pipetune", "pread", "", 20, 3, 5 },       { "pipetune", "fsync", "", 20, 1, 5 },
    { "pipetune", "open", "", 20, 1, 3 },        { "pipetune", "open", ":ENOSPC", 20, 1, 3 },
    { "pipetune", "openr", "", 30, 23, 10 },     { "pipetune", "ftruncate", "", 20, 1, 1 },
    { "pipetune", "mkdir", "", 20, 1, 3 },       { "pipetune", "mmap", "", 20, 1, 1 },
    { "pipetune", "unlink", "", 20, 1, 1 },      { "pipetune", "pipe", "", 20, 1, 2 },
    { "pipetune", "fork", "", 20, 1, 2 },        { "pipetune-node", "malloc", "", 100, 1, 20 },
    { "pipetune-node", "write", "", 4, 5, 5 },   { "pipetune-node", "fsync", "", 20, 1, 2 },
    { "pipetune-node", "rename", "", 20, 1, 2 }, { "pipetune-node", "open", "", 20, 1, 3 },
    { "pipetune-node", "openr", "", 20, 31, 5 }, { "pipetune-node", "pipe", "", 20, 1, 2 },
    { "pipetune-node", "fork", "", 20, 1, 1 },
};

struct lab {
    char *dir, *program, *config, *preload;
};

struct run { /* one case: a folder, and what to call it */
    const struct lab *lab;
    char *dir;
    char what[96];
};

/* --- running ------------------------------------------------------------------------------------------------------- */

static struct harness_output run_driver(const struct run *r)
{
    char word[] = "run", option[] = "--config";
    char *argv[] = { r->lab->program, word, option, r->lab->config, NULL };
    harness_set_path("PIPETUNE_STORE", r->dir, "pipetune.db");
    harness_set_path("FAKE_COUNT_FILE", r->dir, "count");
    return harness_run(argv, HARNESS_MS);
}

static struct harness_output run_with_fault(const struct run *r, const struct fault *f, unsigned nth)
{
    char plan[64];
    (void)snprintf(plan, sizeof plan, "%s:%u%s", f->kind, nth, f->error);
    (void)setenv("PIPETUNE_FAULT", plan, 1);
    (void)setenv("PIPETUNE_FAULT_PROGRAM", f->program, 1);
    (void)setenv("LD_PRELOAD", r->lab->preload, 1);
    harness_set_path("PIPETUNE_FAULT_COUNT", r->dir, "struck");
    struct harness_output o = run_driver(r);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("PIPETUNE_FAULT");
    return o;
}

static bool is_there(const struct run *r, const char *name)
{
    AUTO_FREE char *text = harness_read(r->dir, name);
    return text != NULL;
}

/* Exit 0, or one line of stderr that says why not. */
static void check_ending(const struct run *r, const struct harness_output *o)
{
    bool fine = o->code == 0 || (o->code <= 3 && strncmp(o->err, "pipetune: ", 10) == 0 && strlen(o->err) > 20 &&
                                 harness_count(o->err, "\n") == 1);
    if (!fine)
        fail_msg("%s (%s): exit %d, stderr '%s', stdout '%s'", r->what, r->dir, o->code, o->err, o->out);
}

/* --- what must hold in the end ----------------------------------------------------------------------------------------- */

struct facts {
    struct store_trial trial;
    struct store_attempt attempts[ATTEMPTS_MAX];
    size_t n_trials, n_attempts, n_epochs;
};

static int take_trial(void *ctx, const struct store_trial *row)
{
    struct facts *f = ctx;
    return f->n_trials++ ? 0 : store_trial_copy(&f->trial, row);
}

static int take_attempt(void *ctx, const struct store_attempt *row)
{
    struct facts *f = ctx;
    assert_true(f->n_attempts < ATTEMPTS_MAX);
    return store_attempt_copy(&f->attempts[f->n_attempts++], row);
}

static int take_epoch(void *ctx, const struct store_epoch *row)
{
    struct facts *f = ctx;
    (void)row;
    f->n_epochs++;
    return 0;
}

static struct facts read_facts(const struct run *r)
{
    struct err e = { 0 };
    struct store *s = NULL;
    struct store_study study = { 0 };
    struct facts f = { 0 };
    AUTO_FREE char *path = harness_path(r->dir, "pipetune.db");
    int rc = store_open(&s, path, STORE_READ, &e);
    if (rc == 0)
        rc = store_study_find(s, "faults", &study, &e);
    if (rc == 1)
        rc = store_trials(s, study.id, 0, take_trial, &f, &e);
    if (rc == 0 && f.n_trials)
        rc = store_attempts(s, f.trial.id, take_attempt, &f, &e);
    if (rc == 0 && f.n_trials)
        rc = store_epochs(s, f.trial.id, take_epoch, &f, &e);
    store_study_done(&study);
    store_close(s);
    if (rc < 0)
        fail_msg("%s (%s): %s", r->what, r->dir, e.text);
    return f;
}

#define HOLDS(r, what_holds)                                                                                           \
    do {                                                                                                               \
        if (!(what_holds))                                                                                             \
            fail_msg("%s (%s): does not hold: " #what_holds, (r)->what, (r)->dir);                                     \
    } while (0)

static void check_attempt(const struct run *r, const struct facts *f, size_t k, const char *count)
{
    const struct store_attempt *a = &f->attempts[k];
    pid_t *pids = NULL;
    size_t n = 0;
    char started[96];
    (void)snprintf(started, sizeof started, "%s %d %d ", a->launch, EPOCHS, a->first_epoch);
    HOLDS(r, strcmp(a->state, "ended") == 0);
    HOLDS(r, (strcmp(a->outcome, "finished") == 0) == (k + 1 == f->n_attempts));
    HOLDS(r, harness_count(count, started) <= 1);
    HOLDS(r, proc_tagged(a->launch, &pids, &n) == 0 && n == 0);
    free(pids);
}

/* Every start that was counted is one of an attempt's. */
static void check_study(const struct run *r)
{
    struct facts f = read_facts(r);
    AUTO_FREE char *count = harness_read(r->dir, "count");
    HOLDS(r, count != NULL);
    HOLDS(r, f.n_trials == 1 && strcmp(f.trial.state, "finished") == 0);
    HOLDS(r, f.n_epochs == EPOCHS);
    size_t starts = 0;
    for (size_t k = 0; k < f.n_attempts; k++) {
        char started[96];
        (void)snprintf(started, sizeof started, "\n%s ", f.attempts[k].launch);
        starts += harness_count(count, started) + (strncmp(count, started + 1, strlen(started + 1)) == 0);
        check_attempt(r, &f, k, count);
    }
    HOLDS(r, starts + harness_count(count, "trained ") == harness_count(count, "\n"));
    store_trial_done(&f.trial);
    for (size_t k = 0; k < f.n_attempts; k++)
        store_attempt_done(&f.attempts[k]);
}

/* --- the cases ----------------------------------------------------------------------------------------------------------- */

/* False: there are fewer calls than that. */
static bool survives(const struct lab *l, const struct fault *f, unsigned nth)
{
    struct run r = { .lab = l };
    (void)snprintf(r.what, sizeof r.what, "%s %u%s of %s", f->kind, nth, f->error, f->program);
    char name[96];
    (void)snprintf(name, sizeof name, "%s-%s-%u%s", f->program, f->kind, nth, f->error);
    r.dir = harness_path(l->dir, name);
    assert_int_equal(mkdir(r.dir, 0777), 0);
    struct harness_output o = run_with_fault(&r, f, nth);
    bool struck = is_there(&r, "struck");
    check_ending(&r, &o);
    if (!struck && o.code != 0)
        fail_msg("%s (%s): exit %d without a fault: %s", r.what, r.dir, o.code, o.err);
    harness_output_done(&o);
    if (struck) {
        o = run_driver(&r);
        if (o.code != 0)
            fail_msg("%s (%s): the run after it: exit %d, '%s'", r.what, r.dir, o.code, o.err);
        harness_output_done(&o);
    }
    check_study(&r);
    if (getenv("PIPETUNE_FAULTS_KEEP"))
        free(r.dir);
    else
        harness_remove(r.dir);
    return struck;
}

static void step_through(const struct lab *l, const struct fault *f, unsigned from, unsigned stride)
{
    unsigned nth = from, last = 0;
    while (survives(l, f, nth)) {
        last = nth;
        nth += nth < f->each ? stride : f->step * stride;
    }
    if (last + f->step * stride < f->least)
        fail_msg("%s of %s: %u calls only", f->kind, f->program, last);
}

/* Memory is asked for so often that both halves of the test share it: one the odd calls, the other the even ones. */
static bool is_shared(const struct fault *f)
{
    return strcmp(f->kind, "malloc") == 0 && strcmp(f->program, "pipetune") == 0;
}

static bool is_memory(const struct fault *f)
{
    return strcmp(f->kind, "malloc") == 0;
}

static void step_through_half(const struct lab *l, size_t half)
{
    size_t turn = 0;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        if (ASAN && is_memory(&faults[i])) {
            if (half == 0)
                print_message("%s: memory is AddressSanitizer's here, and not made to fail\n", faults[i].program);
        } else if (is_shared(&faults[i]))
            step_through(l, &faults[i], (unsigned)half + 1, 2);
        else if (turn++ % 2 == half)
            step_through(l, &faults[i], 1, 1);
    }
}

static void every_second_fault_is_survived(void **state)
{
    step_through_half(*state, 0);
}

static void the_other_faults_are_survived(void **state)
{
    step_through_half(*state, 1);
}

/* --- set-up ------------------------------------------------------------------------------------------------------------- */

static const char study[] = "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"faults\", \"epochs\": 2 },\n"
                            "  \"systemParameters\": { \"cores\": [\"1\"] },\n"
                            "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1] } }\n";

static int set_up(void **state)
{
    struct lab *l = calloc(1, sizeof *l);
    if (!l)
        return -1;
    l->dir = harness_dir();
    l->program = harness_program("pipetune");
    l->preload = harness_program("tests/faults.so");
    l->config = harness_path(l->dir, "study.json");
    harness_lab(l->dir, "");
    harness_write(l->dir, "study.json", study);
    (void)setenv("FAKE_EPOCH_MS", "5", 1);
    (void)setenv("FAKE_ITERATIONS", "2", 1);
    (void)setenv("FAKE_START_MS", "0", 1);
    *state = l;
    return 0;
}

static int tear_down(void **state)
{
    struct lab *l = *state;
    if (!getenv("PIPETUNE_FAULTS_KEEP"))
        harness_remove(MOVE_PTR(l->dir));
    free(l->dir);
    free(l->program);
    free(l->preload);
    free(l->config);
    free(l);
    return 0;
}

static int run_half(CMUnitTestFunction test, const char *name)
{
    const struct CMUnitTest tests[] = { { name, test, NULL, NULL, NULL } };
    return cmocka_run_group_tests_name("faults", tests, set_up, tear_down);
}

/* Two at a time: a run mostly waits. */
int main(void)
{
    pid_t half = fork();
    if (half == 0)
        return run_half(every_second_fault_is_survived, "every_second_fault_is_survived");
    int failed = run_half(the_other_faults_are_survived, "the_other_faults_are_survived");
    int how = 0;
    if (half < 0 || waitpid(half, &how, 0) != half || !WIFEXITED(how))
        return 1;
    return failed || WEXITSTATUS(how);
}
