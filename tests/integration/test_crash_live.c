/* Whatever is killed while trials share warm sessions and are packed beside each other: driver, session, launcher, helper, application.
 * The study is finished by running it again, every trial once; what runs on without us has all its CPUs; and every decision is derived
 * again as it was stored. PIPETUNE_CRASH_SEED repeats the random kills, PIPETUNE_CRASH_KEEP leaves the folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "base/strv.h"
#include "core/rng.h"
#include "tests/integration/failpoints.h"
#include "tests/integration/harness.h"

enum {
    TRIALS = 3,
    EPOCHS = 3,
    WORKERS =
        4, /* of kills, at once: a study mostly waits. The even ones' applications serve sessions, the odd ones' do not */
    ALL_WORKERS = 6,       /* the last two look at CPUs */
    STRIKES = 100,         /* by all workers */
    STRIKES_PER_STUDY = 4, /* at most; the rest of the study is then left in peace */
    BACK_MS = 5000,        /* within which what is left alone has all its CPUs */
};

struct lab { /* of one worker */
    char *dir, *program, *config;
    bool serves;
    char *result; /* of a study that nothing disturbed */
};

struct series { /* one study, over all the runs that it takes */
    const struct lab *lab;
    char *dir, *store;
    const char *what; /* for failures */
    bool cut;         /* launchers or applications were struck, too: a trial may have begun several times */
};

static size_t worker;

/* --- running ------------------------------------------------------------------------------------------------------------ */

static struct series series_begin(const struct lab *l, const char *what)
{
    static unsigned number;
    char name[32];
    (void)snprintf(name, sizeof name, "study-%u", ++number);
    struct series s = { .lab = l, .dir = harness_path(l->dir, name), .what = what };
    s.store = harness_path(s.dir, "pipetune.db");
    assert_int_equal(mkdir(s.dir, 0777), 0);
    return s;
}

static void series_done(struct series *s)
{
    if (!getenv("PIPETUNE_CRASH_KEEP"))
        harness_remove(MOVE_PTR(s->dir));
    free(s->dir);
    free(s->store);
}

static void fail_with_output(const struct series *s, const char *text)
{
    AUTO_FREE char *out = harness_read(s->dir, "out");
    fail_msg("%s (%s): %s; the drivers said:\n%s", s->what, s->dir, text, out ? out : "");
}

#define HOLDS(s, what)                                                                                                 \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            fail_with_output(s, "does not hold: " #what);                                                              \
    } while (0)

/* For whoever has only the log. */
static void tell_what_runs(const struct series *s)
{
    pid_t pids[16];
    size_t n = world_find(s->dir, "", pids, ARRAY_LEN(pids));
    for (size_t i = 0; i < n; i++) {
        char path[64];
        AUTO_BUF struct buf words = BUF_INIT;
        (void)snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pids[i]);
        (void)io_read_file(&words, path, 1 << 20, NULL); /* it may have ended meanwhile */
        for (size_t c = 0; c < words.len; c++)
            words.data[c] = words.data[c] ? words.data[c] : ' ';
        print_message("%ld %.*s\n", (long)pids[i], (int)words.len, words.len ? words.data : "");
    }
}

/* A driver over this study, its output appended to DIR/out. */
static pid_t start(const struct series *s)
{
    char run[] = "run", option[] = "--config";
    char *argv[] = { s->lab->program, run, option, s->lab->config, NULL };
    (void)setenv("PIPETUNE_WORLD", s->dir, 1); /* marks all that is started from here */
    (void)setenv("PIPETUNE_STORE", s->store, 1);
    harness_set_path("FAKE_COUNT_FILE", s->dir, "count");
    AUTO_FREE char *path = harness_path(s->dir, "out");
    AUTO_CLOSE int out = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    assert_true(out >= 0);
    return harness_spawn(argv, out, out);
}

static void set_pace(const char *epoch_ms)
{
    assert_int_equal(setenv("FAKE_EPOCH_MS", epoch_ms, 1), 0);
}

static bool is_over(void *pid)
{
    siginfo_t info = { 0 };
    return waitid(P_PID, (id_t) * (pid_t *)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0;
}

static int exit_code(const struct series *s, pid_t driver)
{
    if (!harness_wait(is_over, &driver, HARNESS_MS)) {
        tell_what_runs(s);
        (void)kill(driver, SIGKILL);
        (void)harness_exit_code(driver, HARNESS_MS);
        fail_with_output(s, "the driver does not end");
    }
    return harness_exit_code(driver, HARNESS_MS);
}

/* It may have ended by itself just before: then with 0. */
static void kill_driver(const struct series *s, pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    int code = exit_code(s, pid);
    if (code != 0 && code != 128 + SIGKILL)
        fail_with_output(s, "the driver failed");
}

static int cpus_of(pid_t pid)
{
    cpu_set_t set;
    return sched_getaffinity(pid, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/* --- what must hold of every study that was run to its end ---------------------------------------------------------------- */

static char *ask(const struct series *s, const char *sql)
{
    return harness_ask(s->store, sql);
}

static size_t number(const struct series *s, const char *sql)
{
    AUTO_FREE char *text = ask(s, sql);
    return (size_t)strtoul(text, NULL, 10);
}

#define RESULT "SELECT t.number, e.epoch, e.accuracy FROM epochs e JOIN trials t ON t.id = e.trial ORDER BY 1, 2"
#define ID "CASE WHEN a.session > 0 THEN a.launch || '-t' || t.number || '-' || a.number ELSE a.launch END"

static void check_store(const struct series *s)
{
    HOLDS(s, number(s, "SELECT count(*) FROM trials WHERE state = 'finished'") == TRIALS);
    HOLDS(s, number(s, "SELECT count(*) FROM trials") == TRIALS);
    HOLDS(s, number(s, "SELECT count(*) FROM attempts WHERE state <> 'ended' OR outcome IS NULL") == 0);
    HOLDS(s, number(s, "SELECT count(*) FROM attempts WHERE outcome = 'finished'") == TRIALS);
    HOLDS(s, number(s, "SELECT count(*) FROM attempts a WHERE outcome = 'finished' AND number < "
                       "(SELECT max(number) FROM attempts b WHERE b.trial = a.trial)") == 0);
    AUTO_FREE char *result = ask(s, RESULT);
    if (s->lab->result && strcmp(result, s->lab->result) != 0)
        fail_with_output(s, "other epochs or another accuracy than undisturbed");
}

/* Lines of FAKE_COUNT_FILE that begin so. */
static size_t lines_with(const char *count, const char *begin)
{
    size_t n = 0;
    for (const char *l = count; l && *l; l = strchr(l, '\n') ? strchr(l, '\n') + 1 : NULL)
        n += strncmp(l, begin, strlen(begin)) == 0;
    return n;
}

/* The epochs that count were trained by the attempt that they are stored for, once. */
static void check_trained(const struct series *s, const char *count)
{
    AUTO_FREE char *rows =
        ask(s, "SELECT 'trained ' || " ID " || ' ' || e.epoch || ';' FROM epochs e JOIN trials t ON t.id = "
               "e.trial JOIN attempts a ON a.trial = t.id AND a.number = e.attempt");
    char *save = NULL;
    for (char *row = strtok_r(rows, ";", &save); row; row = strtok_r(NULL, ";", &save)) {
        AUTO_FREE char *line = NULL;
        assert_true(asprintf(&line, "%s\n", row + strspn(row, " ")) > 0);
        if (line[0] != '\n' && lines_with(count, line) != 1)
            fail_with_output(s, line);
    }
}

/* No attempt begins twice; and none of a trial begins after the one that finished it. */
static void check_starts(const struct series *s, const char *count)
{
    AUTO_FREE char *rows = ask(s, "SELECT t.number, a.outcome, " ID " FROM attempts a JOIN trials t ON t.id = a.trial "
                                  "ORDER BY t.number, a.number");
    size_t known = 0;
    long before = -1;
    int of = 0;
    char *save = NULL;
    for (char *row = strtok_r(rows, " ", &save); row; row = strtok_r(NULL, " ", &save)) {
        char outcome[32], tag[96], id[100];
        int trial;
        assert_int_equal(sscanf(row, "%d|%31[^|]|%95s", &trial, outcome, tag), 3);
        (void)snprintf(id, sizeof id, "%s ", tag);
        size_t n = lines_with(count, id);
        known += n;
        HOLDS(s, n <= 1);
        HOLDS(s, n == 1 || strcmp(outcome, "finished") != 0);
        const char *at = n ? strstr(count, id) : NULL;
        before = trial == of ? before : -1;
        of = trial;
        HOLDS(s, !at || at - count > before);
        before = at ? at - count : before;
    }
    HOLDS(s, known == lines_with(count, "pt-")); /* nothing was started that the store knows nothing of */
}

static bool nothing_left(void *dir)
{
    pid_t pid;
    return world_find(dir, "", &pid, 1) == 0;
}

static void check_nothing_left(const struct series *s)
{
    if (harness_wait(nothing_left, s->dir, HARNESS_MS)) /* on a busy machine the end itself takes a while */
        return;
    tell_what_runs(s);
    fail_with_output(s, "processes are left");
}

static void check_decisions(const struct series *s)
{
    char replay[] = "replay", decisions[] = "decisions", name[] = "crash";
    char *argv[] = { s->lab->program, replay, decisions, name, NULL };
    (void)setenv("PIPETUNE_STORE", s->store, 1);
    struct harness_output o = harness_run(argv, HARNESS_MS);
    if (o.code != 0)
        fail_with_output(s, o.out);
    harness_output_done(&o);
}

/* Trials that an earlier driver left count, too. */
static void check_packing(const struct series *s)
{
    AUTO_FREE char *rows =
        ask(s, "SELECT kind, trial FROM decisions WHERE kind IN ('launch', 'end', 'again') ORDER BY seq");
    bool runs[TRIALS + 1] = { false };
    char *save = NULL;
    for (char *row = strtok_r(rows, " ", &save); row; row = strtok_r(NULL, " ", &save)) {
        char kind[16];
        int trial, now = 0;
        assert_int_equal(sscanf(row, "%15[a-z]|%d", kind, &trial), 2);
        HOLDS(s, trial >= 1 && trial <= TRIALS);
        runs[trial] = strcmp(kind, "launch") == 0;
        for (int i = 1; i <= TRIALS; i++)
            now += runs[i];
        HOLDS(s, now <= (cpus_of(0) > 1 ? cpus_of(0) : 1));
    }
}

static void check_study(const struct series *s)
{
    check_packing(s);
    check_store(s);
    AUTO_FREE char *count = harness_read(s->dir, "count");
    HOLDS(s, count != NULL);
    check_trained(s, count);
    check_starts(s, count);
    if (!s->cut) { /* only those were struck who do no work: nothing was done twice */
        HOLDS(s, lines_with(count, "pt-") == TRIALS);
        HOLDS(s, lines_with(count, "trained ") == (size_t)TRIALS * EPOCHS);
    }
    check_nothing_left(s);
    check_decisions(s);
}

static void run_to_the_end(const struct series *s)
{
    int code = exit_code(s, start(s));
    if (code != 0)
        fail_with_output(s, "the last driver failed");
}

static void finish(struct series *s)
{
    run_to_the_end(s);
    check_study(s);
    series_done(s);
}

/* --- set-up --------------------------------------------------------------------------------------------------------------- */

/* One core of two each: trials settle at once, and two run beside each other. */
static const char study[] =
    "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"crash\", \"epochs\": 3, \"retries\": 100 },\n"
    "  \"systemParameters\": { \"cores\": [1] }, \"tuning\": { \"window_seconds\": 0.1 },\n"
    "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1, 0.05, 0.02] } }\n";

static int set_up(void **state)
{
    struct lab *l = calloc(1, sizeof *l);
    if (!l)
        return -1;
    l->dir = harness_dir();
    l->program = harness_program("pipetune");
    l->config = harness_path(l->dir, "study.json");
    l->serves = worker % 2 == 0;
    harness_lab(l->dir, l->serves ? "\n  \"session\": true," : "");
    harness_write(l->dir, "study.json", study);
    (void)setenv("FAKE_ITERATIONS", "5", 1);
    (void)setenv("FAKE_START_MS", "10", 1);
    (void)setenv("XDG_RUNTIME_DIR", l->dir, 1); /* sockets, too */
    /* A process that looks for leaks has a helper that looks like itself: were that one struck, it would spin for ever. Other tests
     * look for leaks in the same programs. */
    (void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    set_pace("60");
    struct series s = series_begin(l, "undisturbed");
    run_to_the_end(&s);
    check_study(&s);
    l->result = ask(&s, RESULT);
    series_done(&s);
    *state = l;
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
    free(l->result);
    free(l);
    return 0;
}

/* --- at random moments ---------------------------------------------------------------------------------------------------- */

enum target { DRIVER, HELPER, DRIVER_AND_HELPER, LAUNCHER, APPLICATION, TARGETS };

static bool kill_one(const struct series *s, const char *word, struct rng *rng)
{
    pid_t pids[16];
    size_t n = world_find(s->dir, word, pids, ARRAY_LEN(pids));
    return n > 0 && kill(pids[rng_below(rng, n)], SIGKILL) == 0; /* it may have ended since */
}

/* The driver that goes on: the one that was struck, or another. */
static pid_t strike(struct series *s, pid_t pid, enum target at, struct rng *rng)
{
    static const char *const words[] = {
        [HELPER] = "serve", [DRIVER_AND_HELPER] = "serve", [LAUNCHER] = "--control", [APPLICATION] = "spark-submit"
    };
    if (at != DRIVER)
        (void)kill_one(s, words[at], rng);
    s->cut |= at == LAUNCHER || at == APPLICATION;
    if (at != DRIVER && at != DRIVER_AND_HELPER)
        return pid;
    kill_driver(s, pid);
    if (rng_below(rng, 2)) /* the others find that the trials went on without them */
        (void)poll(NULL, 0, (int)rng_below(rng, 300));
    return start(s);
}

/* A launcher that is killed before it is ready cannot be had here: the driver says so, and the same command goes on. */
enum { CANNOT_START = 3 };

static void check_end(struct series *s, int code)
{
    bool told = code == CANNOT_START && s->cut;
    if (code != 0 && !told)
        fail_with_output(s, "the driver failed");
    if (told)
        run_to_the_end(s);
}

static bool has_ended(struct series *s, pid_t pid)
{
    int how = 0;
    if (waitpid(pid, &how, WNOHANG) != pid)
        return false;
    check_end(s, WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how));
    return true;
}

/* How many strikes there were. */
static int strike_one_study(const struct lab *l, struct rng *rng, bool applications_too)
{
    struct series s = series_begin(l, applications_too ? "random kills of all" : "random kills of ours");
    int planned = 1 + (int)rng_below(rng, STRIKES_PER_STUDY), done = 0;
    pid_t pid = start(&s);
    bool ended = false;
    while (!ended && done < planned) {
        (void)poll(NULL, 0, 20 + (int)rng_below(rng, 500));
        ended = has_ended(&s, pid);
        if (ended)
            break;
        pid = strike(&s, pid, (enum target)rng_below(rng, applications_too ? TARGETS : LAUNCHER), rng);
        done++;
    }
    if (!ended)
        check_end(&s, exit_code(&s, pid));
    check_study(&s);
    series_done(&s);
    return done;
}

static void kills_at_random_moments_lose_nothing(void **state)
{
    const char *given = getenv("PIPETUNE_CRASH_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * WORKERS + worker;
    struct rng rng = rng_seeded(seed);
    int struck = 0, studies = 0;
    print_message("seed %" PRIu64 "\n", seed);
    set_pace("60");
    for (; struck < STRIKES / WORKERS; studies++)
        struck += strike_one_study(*state, &rng, studies % 2 == 1);
    print_message("%d strikes over %d studies\n", struck, studies);
}

/* --- at each failpoint ------------------------------------------------------------------------------------------------------ */

static pid_t start_with(const struct series *s, const char *name, const char *value)
{
    (void)setenv(name, value, 1);
    pid_t pid = start(s);
    (void)unsetenv(name);
    return pid;
}

/* The first driver, or every helper of it, is killed at the nth pass. */
static void dies_at(const struct lab *l, const struct failpoint_row *f, unsigned nth)
{
    char point[64];
    (void)snprintf(point, sizeof point, "%s:%u", f->name, nth);
    struct series s = series_begin(l, point);
    int code = exit_code(&s, start_with(&s, "PIPETUNE_FAILPOINT", point));
    if (code != 0 && code != 128 + SIGKILL)
        fail_with_output(&s, "the driver failed");
    if (code == 0 && f->of == OF_SESSIONS)
        fail_with_output(&s, "the failpoint was not passed");
    if (f->of == OF_HELPER)
        HOLDS(&s, code == 0);
    finish(&s);
}

static void drivers_and_helpers_killed_at_each_failpoint_lose_nothing(void **state)
{
    const struct lab *l = *state;
    set_pace("20");
    size_t turn = 0;
    for (size_t i = 0; i < ARRAY_LEN(failpoints); i++) {
        const struct failpoint_row *f = &failpoints[i];
        if (f->of == OF_LAUNCHER || (f->of == OF_SESSIONS && !l->serves))
            continue;
        for (unsigned nth = 1; nth <= f->most; nth += nth < 3 ? 1 : 6)
            if (turn++ % 2 == worker / 2) /* shared by the two workers of a kind */
                dies_at(l, f, nth);
    }
}

struct run_watch {
    const struct series *s;
    pid_t pid;
    bool ended;
};

/* Its retries are many, and used up fast where every launcher dies. */
static bool over_or_ended(void *arg)
{
    struct run_watch *w = arg;
    AUTO_FREE char *out = harness_read(w->s->dir, "out");
    w->ended = w->ended || waitpid(w->pid, NULL, WNOHANG) == w->pid;
    return w->ended || (out && strstr(out, "is over"));
}

/* Every launcher of the first run dies there. */
static void launcher_dies_at(const struct lab *l, const char *point)
{
    struct series s = series_begin(l, point);
    s.cut = true;
    struct run_watch w = { .s = &s, .pid = start_with(&s, "PIPETUNE_FAILPOINT", point) };
    (void)harness_wait(over_or_ended, &w, HARNESS_MS);
    if (!w.ended) {
        (void)kill(w.pid, SIGKILL);
        (void)harness_exit_code(w.pid, HARNESS_MS); /* it may have ended meanwhile */
    }
    finish(&s);
}

static void launchers_killed_at_each_failpoint_lose_nothing(void **state)
{
    set_pace("20");
    size_t turn = 0;
    for (size_t i = 0; i < ARRAY_LEN(failpoints); i++)
        if (failpoints[i].of == OF_LAUNCHER && turn++ % 2 == worker / 2)
            launcher_dies_at(*state, failpoints[i].name);
}

/* --- CPUs come back --------------------------------------------------------------------------------------------------------- */

/* How many of the study's applications are held to fewer CPUs than there are. */
static size_t narrowed(const struct series *s, size_t *out_all)
{
    pid_t pids[16];
    size_t n = world_find(s->dir, "app.py", pids, ARRAY_LEN(pids)), held = 0;
    *out_all = 0;
    for (size_t i = 0; i < n; i++) {
        char link[64], program[4096] = "";
        (void)snprintf(link, sizeof link, "/proc/%ld/exe", (long)pids[i]);
        (void)!readlink(link, program, sizeof program - 1);
        if (!strstr(program, "fake-spark-submit")) /* the launcher's arguments name it, too */
            continue;
        ++*out_all;
        held += cpus_of(pids[i]) < cpus_of(0);
    }
    return held;
}

static bool two_are_narrowed(void *series)
{
    size_t all;
    return narrowed(series, &all) == 2;
}

static bool none_is_narrowed(void *series)
{
    size_t all;
    return narrowed(series, &all) == 0 && all > 0;
}

static pid_t start_and_narrow(struct series *s)
{
    pid_t pid = start(s);
    if (!harness_wait(two_are_narrowed, s, HARNESS_MS))
        fail_with_output(s, "no two packed trials");
    return pid;
}

static void need_two_cpus(void)
{
    if (cpus_of(0) >= 2)
        return;
    print_message("SKIP needs two CPUs\n");
    skip();
}

static void what_runs_on_without_driver_and_helper_has_all_its_cpus(void **state)
{
    static const char *const first[] = { "driver", "helper" };
    need_two_cpus();
    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        struct rng rng = rng_seeded(i);
        struct series s = series_begin(*state, first[i]);
        set_pace("3000");
        pid_t pid = start_and_narrow(&s);
        if (i == 0)
            kill_driver(&s, pid);
        (void)kill_one(&s, "serve", &rng); /* helper or watchdog: the other one gives back */
        if (i == 1)
            kill_driver(&s, pid);
        if (!harness_wait(none_is_narrowed, &s, BACK_MS))
            fail_with_output(&s, "still held to fewer CPUs");
        set_pace("20");
        finish(&s);
    }
}

/* A driver that is held up renews no lease; when it comes back it narrows again. */
static void what_runs_on_while_the_driver_is_held_up_has_all_its_cpus(void **state)
{
    need_two_cpus();
    struct series s = series_begin(*state, "held up");
    set_pace("3000");
    (void)setenv("PIPETUNE_LEASE_MS", "1500", 1);
    (void)setenv("PIPETUNE_NODES_SPEED", "20", 1); /* renewed each 250 ms */
    pid_t pid = start_and_narrow(&s);
    (void)unsetenv("PIPETUNE_LEASE_MS");
    (void)unsetenv("PIPETUNE_NODES_SPEED");
    assert_int_equal(kill(pid, SIGSTOP), 0);
    if (!harness_wait(none_is_narrowed, &s, BACK_MS))
        fail_with_output(&s, "still held to fewer CPUs");
    assert_int_equal(kill(pid, SIGCONT), 0);
    int code = exit_code(&s, pid);
    if (code != 0)
        fail_with_output(&s, "the driver failed");
    check_study(&s);
    series_done(&s);
}

static int run_kills(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_at_random_moments_lose_nothing),
        cmocka_unit_test(drivers_and_helpers_killed_at_each_failpoint_lose_nothing),
        cmocka_unit_test(launchers_killed_at_each_failpoint_lose_nothing),
    };
    return cmocka_run_group_tests_name("live crashes", tests, set_up, tear_down);
}

static int run_cpus(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_on_without_driver_and_helper_has_all_its_cpus),
        cmocka_unit_test(what_runs_on_while_the_driver_is_held_up_has_all_its_cpus),
    };
    return cmocka_run_group_tests_name("CPUs", tests, set_up, tear_down);
}

int main(void)
{
    pid_t pids[ALL_WORKERS];
    int failed = 0;
    for (worker = 0; worker < ALL_WORKERS; worker++) {
        pids[worker] = fork();
        if (pids[worker] == 0)
            return worker < WORKERS ? run_kills() : run_cpus();
    }
    for (size_t i = 0; i < ALL_WORKERS; i++) {
        int how = 0;
        if (pids[i] < 0 || waitpid(pids[i], &how, 0) != pids[i] || !WIFEXITED(how) || WEXITSTATUS(how) != 0)
            failed = 1;
    }
    return failed;
}
