/* Whatever is killed, and whenever: the study is finished by running it again, every trial once, every attempt accounted.
 * PIPETUNE_CRASH_SEED repeats a run's random kills, PIPETUNE_CRASH_KEEP leaves the folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/strv.h"
#include "core/rng.h"
#include "store/store.h"
#include "tests/integration/failpoints.h"
#include "tests/integration/harness.h"

enum {
    LEAVE_MS = 2000, /* for a trial to run, in a driver that may die before */
    TRIALS = 3,
    EPOCHS = 3,
    KILLS = 200,
    LANES = 4,           /* studies at once: most of a study is waiting */
    KILLS_PER_STUDY = 7, /* at most; the rest of the study is then left in peace */
    ATTEMPTS_MAX = 64,   /* of one trial, in any of these tests */
    LINES_MAX = 4096,
};

struct lab { /* what all studies share */
    char *dir, *program, *config;
    double accuracy[TRIALS][EPOCHS]; /* of a study that nothing disturbed */
    int64_t whole_ms;                /* how long that one took */
};

struct series { /* one study, over all the runs that it takes */
    const struct lab *lab;
    char *dir;
    const char *what; /* for failures */
    int64_t begun_ms;
};

/* --- running ------------------------------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct series series_begin(const struct lab *l, const char *what)
{
    static unsigned number;
    char name[32];
    (void)snprintf(name, sizeof name, "study-%u", ++number);
    struct series s = { .lab = l, .dir = harness_path(l->dir, name), .what = what, .begun_ms = now_ms() };
    assert_int_equal(mkdir(s.dir, 0777), 0);
    return s;
}

static void series_done(struct series *s)
{
    if (getenv("PIPETUNE_CRASH_KEEP"))
        free(s->dir);
    else
        harness_remove(s->dir);
    s->dir = NULL;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* A driver over this study, its output appended to DIR/out. `words` may be NULL. */
static pid_t start(const struct series *s, const char *const *words)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    strv_add(&argv, s->lab->program);
    strv_add(&argv, "run");
    strv_add(&argv, "--config");
    strv_add(&argv, s->lab->config);
    for (; words && *words; words++)
        strv_add(&argv, *words);
    assert_false(argv.failed);
    harness_set_path("PIPETUNE_STORE", s->dir, "pipetune.db");
    harness_set_path("FAKE_COUNT_FILE", s->dir, "count");
    AUTO_FREE char *path = harness_path(s->dir, "out");
    AUTO_CLOSE int out = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    assert_true(out >= 0);
    return harness_spawn(argv.v, out, out);
}

static void fail_with_output(const struct series *s, const char *text)
{
    AUTO_FREE char *out = harness_read(s->dir, "out");
    fail_msg("%s (%s): %s; the drivers said:\n%s", s->what, s->dir, text, out ? out : "");
}

/* Fails the test unless the driver ends so. */
static void expect_end(const struct series *s, pid_t pid, int want)
{
    char text[96];
    int code = harness_exit_code(pid, HARNESS_MS);
    (void)snprintf(text, sizeof text, "a driver ended with %d instead of %d", code, want);
    if (code != want)
        fail_with_output(s, text);
}

static void run_to_the_end(const struct series *s, const char *const *words)
{
    expect_end(s, start(s, words), 0);
}

/* It may have ended by itself just before: then with 0. */
static void kill_driver(const struct series *s, pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    int code = harness_exit_code(pid, HARNESS_MS);
    if (code != 0 && code != 128 + SIGKILL)
        fail_with_output(s, "the driver failed");
}

struct text_wait {
    const struct series *s;
    const char *file, *text;
};

static bool file_says(void *arg)
{
    const struct text_wait *w = arg;
    AUTO_FREE char *got = harness_read(w->s->dir, w->file);
    return got && strstr(got, w->text);
}

static void wait_for_text(const struct series *s, const char *file, const char *text)
{
    struct text_wait w = { s, file, text };
    if (!harness_wait(file_says, &w, HARNESS_MS))
        fail_with_output(s, text);
}

/* --- what the store and the counting say ----------------------------------------------------------------------------- */

struct trial_facts {
    struct store_trial row;
    struct store_attempt attempts[ATTEMPTS_MAX];
    size_t n_attempts;
    struct store_epoch epochs[EPOCHS];
    size_t n_epochs;
};

struct count_line { /* one line of FAKE_COUNT_FILE */
    char tag[80];
    bool trained; /* else: started */
    int epoch;    /* trained: which; started: the first */
    int trial;    /* index into facts.trials */
};

struct facts {
    struct trial_facts trials[TRIALS];
    size_t n;
    struct count_line lines[LINES_MAX];
    size_t n_lines;
};

static int take_trial(void *ctx, const struct store_trial *row)
{
    struct facts *f = ctx;
    assert_true(f->n < TRIALS);
    return store_trial_copy(&f->trials[f->n++].row, row);
}

static int take_attempt(void *ctx, const struct store_attempt *row)
{
    struct trial_facts *t = ctx;
    assert_true(t->n_attempts < ATTEMPTS_MAX);
    return store_attempt_copy(&t->attempts[t->n_attempts++], row);
}

static int take_epoch(void *ctx, const struct store_epoch *row)
{
    struct trial_facts *t = ctx;
    assert_true(t->n_epochs < EPOCHS);
    t->epochs[t->n_epochs++] = *row;
    return 0;
}

static void read_store(const struct series *s, struct facts *f)
{
    struct err e = { 0 };
    struct store *store = NULL;
    struct store_study study = { 0 };
    AUTO_FREE char *path = harness_path(s->dir, "pipetune.db");
    int rc = store_open(&store, path, STORE_READ, &e);
    if (rc == 0)
        rc = store_study_find(store, "crash", &study, &e);
    if (rc == 1)
        rc = store_trials(store, study.id, 0, take_trial, f, &e);
    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        rc = store_attempts(store, f->trials[i].row.id, take_attempt, &f->trials[i], &e);
        if (rc == 0)
            rc = store_epochs(store, f->trials[i].row.id, take_epoch, &f->trials[i], &e);
    }
    store_study_done(&study);
    store_close(store);
    if (rc < 0)
        fail_with_output(s, e.text);
}

static const struct store_attempt *attempt_of(const struct facts *f, const char *tag, int *out_trial)
{
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->trials[i].n_attempts; k++)
            if (strcmp(f->trials[i].attempts[k].launch, tag) == 0) {
                *out_trial = (int)i;
                return &f->trials[i].attempts[k];
            }
    return NULL;
}

static void read_count_line(const struct series *s, struct facts *f, const char *text)
{
    struct count_line l = { .trained = strncmp(text, "trained ", 8) == 0 };
    int epochs, pid;
    assert_true(f->n_lines < LINES_MAX);
    if (l.trained)
        assert_int_equal(sscanf(text, "trained %79s %d", l.tag, &l.epoch), 2);
    else
        assert_int_equal(sscanf(text, "%79s %d %d %d", l.tag, &epochs, &l.epoch, &pid), 4);
    const struct store_attempt *a = attempt_of(f, l.tag, &l.trial);
    if (!a)
        fail_with_output(s, "something was started that the store knows nothing of");
    else if (!l.trained && l.epoch != a->first_epoch)
        fail_with_output(s, "an attempt began at another epoch than the stored one");
    f->lines[f->n_lines++] = l;
}

static struct facts *read_facts(const struct series *s)
{
    struct facts *f = calloc(1, sizeof *f);
    assert_non_null(f);
    read_store(s, f);
    AUTO_FREE char *text = harness_read(s->dir, "count");
    char *save = NULL;
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save))
        read_count_line(s, f, line);
    return f;
}

static void facts_free(struct facts *f)
{
    for (size_t i = 0; i < f->n; i++) {
        store_trial_done(&f->trials[i].row);
        for (size_t k = 0; k < f->trials[i].n_attempts; k++)
            store_attempt_done(&f->trials[i].attempts[k]);
    }
    free(f);
}

/* --- what must hold of every study that was run to its end ------------------------------------------------------------- */

enum strictness {
    TRIALS_RAN_THROUGH, /* only drivers were killed: no trial was ever disturbed */
    TRIALS_WERE_CUT,    /* launchers or applications too: a trial may have begun several times */
};

/* A row that holds of a finished study, and what is said when it does not. */
#define HOLDS(s, what)                                                                                                 \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            fail_with_output(s, "does not hold: " #what);                                                              \
    } while (0)

static void check_epochs(const struct series *s, const struct trial_facts *t, size_t index)
{
    HOLDS(s, t->n_epochs == EPOCHS);
    for (size_t k = 0; k < t->n_epochs; k++) {
        HOLDS(s, t->epochs[k].epoch == (int)k + 1);
        HOLDS(s, t->epochs[k].attempt >= 1 && (size_t)t->epochs[k].attempt <= t->n_attempts);
        HOLDS(s, t->epochs[k].accuracy == s->lab->accuracy[index][k]);
    }
    HOLDS(s, t->row.accuracy == s->lab->accuracy[index][EPOCHS - 1]);
}

static void check_one_attempt(const struct series *s, const struct trial_facts *t, size_t k)
{
    const struct store_attempt *a = &t->attempts[k];
    pid_t *pids = NULL;
    size_t n = 0;
    HOLDS(s, a->number == (int)k + 1);
    HOLDS(s, strcmp(a->state, "ended") == 0);
    HOLDS(s, a->outcome && (strcmp(a->outcome, "finished") == 0) == (k + 1 == t->n_attempts));
    HOLDS(s, a->ended_ms >= a->started_ms);
    HOLDS(s, k == 0 || a->started_ms >= t->attempts[k - 1].ended_ms);
    HOLDS(s, proc_tagged(a->launch, &pids, &n) == 0 && n == 0);
    free(pids);
}

static void check_attempts(const struct series *s, const struct trial_facts *t)
{
    double sum = 0;
    HOLDS(s, t->n_attempts >= 1);
    for (size_t k = 0; k < t->n_attempts; k++) {
        check_one_attempt(s, t, k);
        sum += (double)(t->attempts[k].ended_ms - t->attempts[k].started_ms) / 1000.0;
    }
    HOLDS(s, fabs(sum - t->row.seconds) < 1e-6);
    HOLDS(s, t->row.seconds > 0 && t->row.seconds * 1000 < (double)(now_ms() - s->begun_ms));
}

static size_t lines_of(const struct facts *f, const char *tag, bool trained, int epoch)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_lines; i++)
        n += f->lines[i].trained == trained && strcmp(f->lines[i].tag, tag) == 0 &&
             (!trained || f->lines[i].epoch == epoch);
    return n;
}

/* The lines of one trial are in the order of time: once the next attempt has begun, nothing comes of an earlier one, and
 * of the last attempt comes all that the trial's result is made of. */
static void check_order(const struct series *s, const struct facts *f, size_t index)
{
    const struct trial_facts *t = &f->trials[index];
    const char *now = "";
    for (size_t i = 0; i < f->n_lines; i++) {
        if (f->lines[i].trial != (int)index)
            continue;
        HOLDS(s, f->lines[i].trained == (strcmp(f->lines[i].tag, now) == 0));
        now = f->lines[i].tag;
    }
    HOLDS(s, strcmp(now, t->attempts[t->n_attempts - 1].launch) == 0);
    for (size_t k = 0; k < t->n_epochs; k++) {
        const char *tag = t->attempts[t->epochs[k].attempt - 1].launch;
        HOLDS(s, lines_of(f, tag, true, (int)k + 1) == 1);
    }
}

static void check_starts(const struct series *s, const struct facts *f, size_t index, enum strictness how)
{
    const struct trial_facts *t = &f->trials[index];
    size_t starts = 0, trained = 0;
    for (size_t k = 0; k < t->n_attempts; k++) {
        size_t n = lines_of(f, t->attempts[k].launch, false, 0);
        HOLDS(s, n <= 1);
        starts += n;
        for (int epoch = 1; epoch <= EPOCHS; epoch++)
            trained += lines_of(f, t->attempts[k].launch, true, epoch);
        HOLDS(s, n == 1 || strcmp(t->attempts[k].outcome, "finished") != 0);
    }
    if (how == TRIALS_RAN_THROUGH) {
        HOLDS(s, starts == 1);
        HOLDS(s, trained == EPOCHS);
    }
}

static void check_study(const struct series *s, enum strictness how)
{
    struct facts *f = read_facts(s);
    HOLDS(s, f->n == TRIALS);
    for (size_t i = 0; i < f->n; i++) {
        HOLDS(s, f->trials[i].row.number == (int)i + 1);
        HOLDS(s, strcmp(f->trials[i].row.state, "finished") == 0);
        check_epochs(s, &f->trials[i], i);
        check_attempts(s, &f->trials[i]);
        check_order(s, f, i);
        check_starts(s, f, i, how);
    }
    facts_free(f);
}

static void finish(struct series *s, const char *const *words, enum strictness how)
{
    run_to_the_end(s, words);
    check_study(s, how);
    series_done(s);
}

/* --- set-up ----------------------------------------------------------------------------------------------------------- */

static const char study[] = "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"crash\", \"epochs\": 3 },\n"
                            "  \"systemParameters\": { \"cores\": [\"1\"] },\n"
                            "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1, 0.05, 0.02] } }\n";

static void set_pace(const char *epoch_ms)
{
    assert_int_equal(setenv("FAKE_EPOCH_MS", epoch_ms, 1), 0);
}

static void learn_reference(struct lab *l)
{
    struct series s = series_begin(l, "undisturbed");
    run_to_the_end(&s, NULL);
    l->whole_ms = now_ms() - s.begun_ms;
    struct facts *f = read_facts(&s);
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->trials[i].n_epochs; k++)
            l->accuracy[i][k] = f->trials[i].epochs[k].accuracy;
    facts_free(f);
    check_study(&s, TRIALS_RAN_THROUGH);
    series_done(&s);
}

static int set_up(void **state)
{
    struct lab *l = calloc(1, sizeof *l);
    if (!l)
        return -1;
    l->dir = harness_dir();
    l->program = harness_program("pipetune");
    l->config = harness_path(l->dir, "study.json");
    harness_lab(l->dir, "");
    harness_write(l->dir, "study.json", study);
    (void)setenv("FAKE_ITERATIONS", "5", 1);
    (void)setenv("FAKE_START_MS", "10", 1);
    set_pace("60");
    *state = l;
    learn_reference(l);
    return 0;
}

static int tear_down(void **state)
{
    struct lab *l = *state;
    if (!getenv("PIPETUNE_CRASH_KEEP"))
        harness_remove(MOVE_PTR(l->dir));
    free(l->dir);
    free(l->program);
    free(l->config);
    free(l);
    return 0;
}

/* --- the driver, at random moments -------------------------------------------------------------------------------------- */

struct lane {
    struct series s;
    bool open; /* s is under way */
    pid_t pid; /* 0: the next driver is still to start */
    int kills_left;
    int64_t ran_ms;  /* up to now, in all runs */
    int64_t from_ms; /* this run's begin, or when the next one is to begin */
    int64_t kill_ms; /* when to kill; 0: not any more */
};

struct killing {
    const struct lab *l;
    struct rng rng;
    int kills, studies;
    struct lane lanes[LANES];
};

/* From now on, up to what is left of the study, or to what starting again takes. */
static int64_t draw_kill(struct killing *k, const struct lane *n)
{
    int64_t left = k->l->whole_ms - n->ran_ms;
    if (left < k->l->whole_ms / 8)
        left = k->l->whole_ms / 8;
    return now_ms() + (int64_t)rng_below(&k->rng, (uint64_t)left + 1);
}

static void lane_start(struct killing *k, struct lane *n)
{
    n->from_ms = now_ms();
    n->pid = start(&n->s, rng_below(&k->rng, 2) ? WORDS("--parallel", "2") : NULL);
    n->kill_ms = n->kills_left > 0 ? draw_kill(k, n) : 0;
}

static void lane_open(struct killing *k, struct lane *n)
{
    *n = (struct lane){ .s = series_begin(k->l, "random kills"), .open = true };
    n->kills_left = 1 + (int)rng_below(&k->rng, KILLS_PER_STUDY);
    k->studies++;
    lane_start(k, n);
}

static void lane_kill(struct killing *k, struct lane *n)
{
    kill_driver(&n->s, n->pid);
    n->pid = 0;
    k->kills++;
    n->kills_left--;
    n->ran_ms += now_ms() - n->from_ms;
    /* Half of the drivers come back at once, the others find that the trial went on without them. */
    n->from_ms = now_ms() + (int64_t)(rng_below(&k->rng, 2) ? rng_below(&k->rng, 200) : 0);
}

/* True when the driver has ended by itself: the study is finished. */
static bool lane_ended(struct lane *n)
{
    int how = 0;
    if (waitpid(n->pid, &how, WNOHANG) != n->pid) {
        if (now_ms() - n->from_ms > HARNESS_MS) {
            kill_driver(&n->s, n->pid);
            fail_with_output(&n->s, "the driver does not end");
        }
        return false;
    }
    n->pid = 0;
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        fail_with_output(&n->s, "the driver failed");
    return true;
}

static void lane_step(struct killing *k, struct lane *n)
{
    if (!n->open) {
        if (k->kills < KILLS)
            lane_open(k, n);
    } else if (n->pid == 0) {
        if (now_ms() >= n->from_ms)
            lane_start(k, n);
    } else if (lane_ended(n)) {
        check_study(&n->s, TRIALS_RAN_THROUGH);
        series_done(&n->s);
        n->open = false;
    } else if (n->kill_ms && now_ms() >= n->kill_ms) {
        lane_kill(k, n);
    }
}

static bool any_open(const struct killing *k)
{
    bool any = false;
    for (size_t i = 0; i < LANES; i++)
        any |= k->lanes[i].open;
    return any;
}

static void drivers_killed_at_random_moments_lose_nothing(void **state)
{
    const char *given = getenv("PIPETUNE_CRASH_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    struct killing k = { .l = *state, .rng = rng_seeded(seed) };
    print_message("seed %" PRIu64 "\n", seed);
    set_pace("60");
    while (k.kills < KILLS || any_open(&k)) {
        for (size_t i = 0; i < LANES; i++)
            lane_step(&k, &k.lanes[i]);
        (void)poll(NULL, 0, 1);
    }
    print_message("%d drivers killed over %d studies\n", k.kills, k.studies);
}

/* --- at each failpoint ---------------------------------------------------------------------------------------------------- */

static bool named[ARRAY_LEN(failpoints)]; /* found in the sources */

static void note_failpoint(const char *path, const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(failpoints); i++)
        if (strlen(failpoints[i].name) == len && strncmp(failpoints[i].name, name, len) == 0) {
            named[i] = true;
            return;
        }
    fail_msg("%s: failpoint \"%.*s\" is missing in the table of this test", path, (int)len, name);
}

static int look_for_failpoints(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    static const char call[] = "failpoint(\"";
    (void)st, (void)where;
    size_t len = strlen(path);
    if (kind != FTW_F || len < 2 || strcmp(path + len - 2, ".c") != 0)
        return 0;
    AUTO_FREE char *text = harness_read(".", path);
    for (const char *at = text; at && (at = strstr(at, call));) {
        at += sizeof call - 1;
        note_failpoint(path, at, strcspn(at, "\""));
    }
    return 0;
}

static void every_failpoint_is_in_the_table(void **state)
{
    static const char *const dirs[] = { "src", "bigdl", "clustering", "monitoring" };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        (void)nftw(dirs[i], look_for_failpoints, 16, FTW_PHYS); /* a folder that is not there has none */
    for (size_t i = 0; i < ARRAY_LEN(failpoints); i++)
        if (!named[i])
            fail_msg("failpoint \"%s\" is nowhere in the sources", failpoints[i].name);
}

static pid_t start_with(const struct series *s, const char *name, const char *value, const char *const *words)
{
    (void)setenv(name, value, 1);
    pid_t pid = start(s, words);
    (void)unsetenv(name);
    return pid;
}

/* False: the run has fewer than `nth` passes. */
static bool driver_dies_at(const struct lab *l, const char *name, unsigned nth)
{
    char point[64];
    (void)snprintf(point, sizeof point, "%s:%u", name, nth);
    struct series s = series_begin(l, point);
    pid_t pid = start_with(&s, "PIPETUNE_FAILPOINT", point, NULL);
    int code = harness_exit_code(pid, HARNESS_MS);
    if (code != 0 && code != 128 + SIGKILL)
        fail_with_output(&s, "the driver failed");
    finish(&s, NULL, TRIALS_RAN_THROUGH);
    return code != 0;
}

static void drivers_killed_at_each_failpoint_lose_nothing(void **state)
{
    set_pace("8");
    for (size_t i = 0; i < ARRAY_LEN(failpoints); i++)
        for (unsigned nth = 1; failpoints[i].of == OF_DRIVER && nth <= failpoints[i].most; nth += nth < 8 ? 1 : 4)
            if (!driver_dies_at(*state, failpoints[i].name, nth) && nth < 3 && failpoints[i].most >= nth)
                fail_msg("failpoint \"%s\" was not passed %u times", failpoints[i].name, nth);
}

/* Whatever becomes of the first run: its first launchers are killed at that point, fewer than make a trial lost, since the driver starts
 * them faster than we see it. */
static bool first_is_over(void *arg)
{
    struct text_wait w = { arg, "out", "is over" };
    return file_says(&w);
}

struct run_watch {
    const struct series *s;
    pid_t pid;
    bool ended;
};

static bool over_or_ended(void *arg)
{
    struct run_watch *w = arg;
    w->ended = w->ended || waitpid(w->pid, NULL, WNOHANG) == w->pid;
    return w->ended || first_is_over((void *)(uintptr_t)w->s);
}

static void launcher_dies_at(const struct lab *l, const char *point)
{
    const char *const *many = WORDS("--retries", "100");
    struct series s = series_begin(l, point);
    harness_set_path("PIPETUNE_FAILPOINT_FEW", s.dir, "struck");
    struct run_watch w = { .s = &s, .pid = start_with(&s, "PIPETUNE_FAILPOINT", point, many) };
    (void)unsetenv("PIPETUNE_FAILPOINT_FEW");
    assert_true(harness_wait(over_or_ended, &w, HARNESS_MS));
    if (!w.ended) {
        (void)kill(w.pid, SIGKILL);
        (void)harness_exit_code(w.pid, HARNESS_MS); /* it may have ended meanwhile */
    }
    finish(&s, many, TRIALS_WERE_CUT);
}

static void launchers_killed_at_each_failpoint_lose_nothing(void **state)
{
    set_pace("8");
    for (size_t i = 0; i < ARRAY_LEN(failpoints); i++)
        if (failpoints[i].of == OF_LAUNCHER)
            launcher_dies_at(*state, failpoints[i].name);
}

/* Not tried for ever: only a launch that a dead driver left behind is nobody's fault. */
static void a_launcher_that_always_dies_is_given_up(void **state)
{
    struct series s = series_begin(*state, "node-go, always");
    expect_end(&s, start_with(&s, "PIPETUNE_FAILPOINT", "node-go", NULL), 1);
    struct facts *f = read_facts(&s);
    HOLDS(&s, f->n == TRIALS && f->n_lines == 0);
    for (size_t i = 0; i < f->n; i++)
        HOLDS(&s, strcmp(f->trials[i].row.state, "failed") == 0);
    facts_free(f);
    series_done(&s);
}

/* --- in the middle of the store's own work ------------------------------------------------------------------------------ */

/* False: there are fewer such calls. A driver that leaves makes the store's checkpoint come while a trial runs. */
static bool driver_dies_in(const struct lab *l, const char *fault, const char *path, bool leaves)
{
    AUTO_FREE char *so = harness_program("tests/faults.so");
    struct series s = series_begin(l, fault);
    (void)setenv("LD_PRELOAD", so, 1);
    (void)setenv("PIPETUNE_FAULT_PATH", path, 1);
    pid_t pid = start_with(&s, "PIPETUNE_FAULT", fault, NULL);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("PIPETUNE_FAULT_PATH");
    AUTO_FREE char *store = harness_path(s.dir, "pipetune.db");
    if (leaves && harness_wait(harness_trial_runs, store, LEAVE_MS)) /* else it has died before */
        (void)kill(pid, SIGHUP);
    int code = harness_exit_code(pid, HARNESS_MS);
    code = code == 130 && leaves ? 0 : code;
    if (code != 0 && code != 128 + SIGKILL)
        fail_with_output(&s, "the driver failed");
    finish(&s, NULL, TRIALS_RAN_THROUGH);
    return code != 0;
}

static void drivers_killed_inside_the_store_lose_nothing(void **state)
{
    static const struct {
        const char *kind, *path;
        unsigned step, least; /* how often it must happen for the case to mean anything */
    } cases[] = {
        { "pwrite", "pipetune.db", 1, 3 },      /* the checkpoint: pages go to the main file */
        { "pwrite", "pipetune.db-wal", 17, 3 }, /* transactions */
        { "fsync", "pipetune.db", 1, 2 },
        { "fsync", "pipetune.db-wal", 3, 2 },
    };
    set_pace("8");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned struck = 0;
        for (unsigned nth = 1;; nth += cases[i].step, struck++) {
            char fault[64];
            (void)snprintf(fault, sizeof fault, "%s:%u:kill", cases[i].kind, nth);
            if (!driver_dies_in(*state, fault, cases[i].path, i == 0))
                break;
        }
        if (struck < cases[i].least)
            fail_msg("%s of %s struck %u times only", cases[i].kind, cases[i].path, struck);
    }
}

/* --- launchers and applications ---------------------------------------------------------------------------------------- */

/* The launcher of trial 1, from the trial's pid file. */
static pid_t launcher_of_first(const struct series *s)
{
    long pid = 0;
    AUTO_FREE char *text = harness_read(s->dir, "pipetune.d/crash/1/pid");
    assert_non_null(text);
    assert_int_equal(sscanf(text, "%*s %ld", &pid), 1);
    return (pid_t)pid;
}

static void kill_launcher(const struct series *s)
{
    assert_int_equal(kill(launcher_of_first(s), SIGKILL), 0);
}

static void kill_session(const struct series *s)
{
    assert_true(proc_kill_session(launcher_of_first(s), SIGKILL) > 0);
}

static void kill_application(const struct series *s)
{
    long pid = 0;
    AUTO_FREE char *text = harness_read(s->dir, "count");
    assert_non_null(text);
    assert_int_equal(sscanf(text, "%*s %*d %*d %ld", &pid), 1);
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
}

static const struct {
    const char *name;
    void (*strike)(const struct series *s);
    bool driver_too; /* killed just before */
} ends[] = {
    { "the launcher is killed", kill_launcher, false },
    { "the session is killed", kill_session, false },
    { "the application is killed", kill_application, false },
    { "driver and launcher are killed", kill_launcher, true },
    { "driver and session are killed", kill_session, true },
    { "driver and application are killed", kill_application, true },
};

/* After epoch 2's checkpoint, within the third: the next attempt trains that one alone. */
static void check_went_on(const struct series *s)
{
    struct facts *f = read_facts(s);
    const struct trial_facts *t = &f->trials[0];
    HOLDS(s, t->n_attempts == 2);
    HOLDS(s, t->attempts[1].first_epoch == EPOCHS && t->attempts[1].resumed_from);
    HOLDS(s, strcmp(t->attempts[0].outcome, "killed") == 0);
    HOLDS(s, t->row.failures == 0 && t->row.kills == 0); /* an epoch was completed since */
    facts_free(f);
}

static void trials_killed_in_the_middle_go_on_from_their_checkpoint(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct series s = series_begin(*state, ends[i].name);
        set_pace("300");
        pid_t pid = start(&s, NULL);
        wait_for_text(&s, "out", "crash/1: epoch 2 of 3");
        set_pace("8");
        if (ends[i].driver_too)
            kill_driver(&s, pid);
        ends[i].strike(&s);
        expect_end(&s, ends[i].driver_too ? start(&s, NULL) : pid, 0);
        check_study(&s, TRIALS_WERE_CUT);
        check_went_on(&s);
        series_done(&s);
    }
}

/* Nothing is wrong with a checkpoint just because the attempt that went on from it was killed. */
static void a_kill_does_not_spoil_the_checkpoint(void **state)
{
    struct series s = series_begin(*state, "killed twice");
    set_pace("300");
    pid_t pid = start(&s, NULL);
    wait_for_text(&s, "out", "crash/1: epoch 2 of 3");
    kill_launcher(&s);
    wait_for_text(&s, "out", "crash/1: attempt 2 started");
    kill_session(&s);
    wait_for_text(&s, "out", "crash/1: attempt 3 started");
    kill_driver(&s, pid);
    set_pace("8");
    run_to_the_end(&s, NULL);
    check_study(&s, TRIALS_WERE_CUT);
    struct facts *f = read_facts(&s);
    const struct trial_facts *t = &f->trials[0];
    HOLDS(&s, t->n_attempts == 3);
    HOLDS(&s, t->attempts[1].first_epoch == EPOCHS && t->attempts[2].first_epoch == EPOCHS);
    HOLDS(&s, strcmp(t->attempts[1].resumed_from, t->attempts[2].resumed_from) == 0);
    HOLDS(&s, t->row.failures == 0);
    facts_free(f);
    series_done(&s);
}

/* --- torn checkpoints ---------------------------------------------------------------------------------------------------- */

enum damage { DAMAGE_CUT, DAMAGE_EMPTY, DAMAGE_REMOVE, DAMAGE_GARBAGE };

struct tearing {
    const char *part;    /* what the file's name begins with */
    const char *numbers; /* the checkpoints to damage, by the end of their names: ".11" */
    enum damage how;
    unsigned damaged;
};

static struct tearing tearing; /* nftw() carries no context */

static void damage_file(const char *path, off_t size, enum damage how)
{
    if (how == DAMAGE_REMOVE) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    if (how == DAMAGE_GARBAGE)
        harness_write("/", path, "\x01\x02 no checkpoint at all\n");
    else
        assert_int_equal(truncate(path, how == DAMAGE_EMPTY ? 0 : size / 2), 0);
}

static int tear(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    const char *name = path + where->base, *dot = strrchr(name, '.');
    if (kind != FTW_F || strncmp(name, tearing.part, strlen(tearing.part)) != 0 || !dot)
        return 0;
    const char *listed = strstr(tearing.numbers, dot);
    if (listed && (listed[strlen(dot)] == '\0' || listed[strlen(dot)] == ' ')) {
        damage_file(path, st->st_size, tearing.how);
        tearing.damaged++;
    }
    return 0;
}

static const struct torn_case {
    const char *name;
    struct tearing tearing;
    int begins_at; /* the epoch at which the trial's last attempt begins */
} torn_cases[] = {
    /* 5 iterations an epoch: the checkpoint after epoch 1 is .6, after epoch 2 .11 */
    { "a whole checkpoint", { "nothing", "", DAMAGE_CUT, 0 }, 3 },
    { "the newest model is cut", { "model", ".11", DAMAGE_CUT, 0 }, 2 },
    { "the newest model is empty", { "model", ".11", DAMAGE_EMPTY, 0 }, 2 },
    { "the newest model is missing", { "model", ".11", DAMAGE_REMOVE, 0 }, 2 },
    { "the newest model is garbage", { "model", ".11", DAMAGE_GARBAGE, 0 }, 2 },
    { "the newest state is cut", { "optimMethod", ".11", DAMAGE_CUT, 0 }, 2 },
    { "the newest state is empty", { "optimMethod", ".11", DAMAGE_EMPTY, 0 }, 2 },
    { "the newest state is missing", { "optimMethod", ".11", DAMAGE_REMOVE, 0 }, 2 },
    { "the newest state is garbage", { "optimMethod", ".11", DAMAGE_GARBAGE, 0 }, 2 },
    { "every model is cut", { "model", ".6 .11", DAMAGE_CUT, 0 }, 1 },
    { "every state is missing", { "optimMethod", ".6 .11", DAMAGE_REMOVE, 0 }, 1 },
};

static void check_torn(const struct series *s, int begins_at)
{
    struct facts *f = read_facts(s);
    const struct trial_facts *t = &f->trials[0];
    HOLDS(s, t->attempts[t->n_attempts - 1].first_epoch == begins_at);
    HOLDS(s, t->row.failures == 0);
    HOLDS(s, t->n_attempts <= 4);
    facts_free(f);
}

static void run_torn(const struct lab *l, const struct torn_case *c)
{
    struct series s = series_begin(l, c->name);
    set_pace("1000"); /* the third epoch is to be cut, however busy the machine is */
    pid_t pid = start(&s, NULL);
    wait_for_text(&s, "out", "crash/1: epoch 2 of 3");
    assert_int_equal(kill(pid, SIGINT), 0);
    expect_end(&s, pid, 130);
    AUTO_FREE char *dir = harness_path(s.dir, "pipetune.d/crash/1/checkpoint");
    tearing = c->tearing;
    (void)nftw(dir, tear, 16, FTW_PHYS);
    HOLDS(&s, tearing.damaged == (unsigned)(*c->tearing.numbers ? harness_count(c->tearing.numbers, ".") : 0));
    set_pace("8");
    run_to_the_end(&s, NULL);
    check_study(&s, TRIALS_WERE_CUT);
    check_torn(&s, c->begins_at);
    series_done(&s);
}

static void a_torn_checkpoint_is_stepped_over(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(torn_cases); i++)
        run_torn(*state, &torn_cases[i]);
}

/* --- and when all is over ------------------------------------------------------------------------------------------------ */

static void a_finished_study_starts_nothing(void **state)
{
    struct series s = series_begin(*state, "finished");
    set_pace("8");
    run_to_the_end(&s, NULL);
    AUTO_FREE char *before = harness_read(s.dir, "count");
    finish(&(struct series){ .lab = s.lab, .dir = strdup(s.dir), .what = s.what, .begun_ms = s.begun_ms }, NULL,
           TRIALS_RAN_THROUGH);
    assert_non_null(before);
    free(s.dir);
}

/* Two halves beside each other, each in a folder of its own: both mostly wait. */
static int run_killed_at_points(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failpoint_is_in_the_table),
        cmocka_unit_test(a_finished_study_starts_nothing),
        cmocka_unit_test(drivers_killed_at_each_failpoint_lose_nothing),
        cmocka_unit_test(launchers_killed_at_each_failpoint_lose_nothing),
        cmocka_unit_test(a_launcher_that_always_dies_is_given_up),
        cmocka_unit_test(drivers_killed_inside_the_store_lose_nothing),
    };
    return cmocka_run_group_tests_name("crash at points", tests, set_up, tear_down);
}

static int run_killed_in_training(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trials_killed_in_the_middle_go_on_from_their_checkpoint),
        cmocka_unit_test(a_kill_does_not_spoil_the_checkpoint),
        cmocka_unit_test(a_torn_checkpoint_is_stepped_over),
        cmocka_unit_test(drivers_killed_at_random_moments_lose_nothing),
    };
    return cmocka_run_group_tests_name("crash in training", tests, set_up, tear_down);
}

int main(void)
{
    pid_t half = fork();
    if (half == 0)
        return run_killed_at_points();
    int failed = run_killed_in_training();
    int how = 0;
    if (half < 0 || waitpid(half, &how, 0) != half || !WIFEXITED(how))
        return 1;
    return failed || WEXITSTATUS(how);
}
