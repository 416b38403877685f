/* What a launch prints, over a fake spark-submit that prints far more than its log may take: bounded on disk, and no epoch is lost by
 * it, whether a driver looks on or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "tests/integration/harness.h"

#define STORE "pipetune.db"
#define EPOCHS                                                                                                         \
    "SELECT t.number, e.epoch, round(e.accuracy, 4), e.records, e.iterations FROM epochs e JOIN trials t ON t.id = "   \
    "e.trial ORDER BY 1, 2"

enum { MB = 1 << 20, SLACK = 256 << 10 };

static void write_study(const struct world *w, bool sessions)
{
    AUTO_FREE char *app = NULL;
    assert_true(asprintf(&app,
                         "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\"%s,\n"
                         "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"],\n"
                         "    \"learning_rate\": [\"--learning-rate\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"],\n"
                         "    \"checkpoint\": [\"--checkpoint\", \"{}\"],\n"
                         "    \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }\n",
                         sessions ? ", \"session\": true" : "") > 0);
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json", app);
    harness_write(w->dir, "c.conf",
                  "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 3, \"log_mb\": 1 },\n"
                  "  \"systemParameters\": { \"cores\": [1] },\n"
                  "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1, 0.05, 0.02] } }\n");
}

static int set_up(void **state)
{
    if (world_open(state) < 0)
        return -1;
    world_point_at(*state, "FAKE_COUNT_FILE", "count");
    world_point_at(*state, "XDG_RUNTIME_DIR", "empty");
    (void)setenv("FAKE_EPOCH_MS", "100", 1);
    return 0;
}

static bool nothing_left(void *world)
{
    return world_processes(world, 0) == 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    bool ended = harness_wait(nothing_left, w, HARNESS_MS);
    (void)unsetenv("XDG_RUNTIME_DIR");
    (void)world_close(state);
    return ended ? 0 : -1;
}

static void expect_exit(struct harness_output o, int code)
{
    if (o.code != code)
        fail_msg("got exit %d, want %d\n%s%s", o.code, code, o.out, o.err);
    harness_output_done(&o);
}

/* Everything that is not the store's in the study's folder, on disk. */
static size_t disk_use(const char *dir)
{
    size_t sum = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        AUTO_FREE char *path = harness_path(dir, e->d_name);
        struct stat st;
        assert_int_equal(lstat(path, &st), 0);
        sum += S_ISDIR(st.st_mode) ? disk_use(path) : (size_t)st.st_blocks * 512;
    }
    (void)closedir(d);
    return sum;
}

/* All trials' epochs, as they are when nothing is printed but what is needed. */
static char *quiet_epochs(const struct world *w)
{
    (void)unsetenv("FAKE_FAIL");
    expect_exit(RUN(w, "run", "c.conf", "--store", "quiet.db"), 0);
    return harness_ask("quiet.db", EPOCHS);
}

static void expect_epochs(const struct world *w)
{
    AUTO_FREE char *want = quiet_epochs(w);
    assert_int_equal(harness_count(want, "|"), 3 * 3 * 4);
    harness_expect_rows("epochs", STORE, EPOCHS, want);
    harness_expect_rows("attempts", STORE, "SELECT outcome, count(*) FROM attempts GROUP BY 1", "finished|3");
}

/* Its own lines and no one else's, the newest last: `show --log` names it. */
static void expect_own_log(const struct world *w, const char *trial)
{
    struct harness_output o = RUN(w, "show", "s", trial, "--log");
    assert_int_equal(o.code, 0);
    o.out[strcspn(o.out, "\n")] = '\0';
    char folder[64];
    (void)snprintf(folder, sizeof folder, "/pipetune.d/s/%s/log", trial);
    assert_non_null(strstr(o.out, folder));
    AUTO_FREE char *log = harness_read("", o.out);
    harness_output_done(&o);
    assert_non_null(log);
    const char *newest = strstr(log, "[Epoch 3 ");
    if (!newest || !strstr(newest, "Top1Accuracy"))
        fail_msg("trial %s: its newest lines are not in its log", trial);
    char other[64];
    for (int i = 1; i <= 3; i++) {
        (void)snprintf(other, sizeof other, "-t%d-1 end", i);
        assert_int_equal(harness_count(log, other),
                         (size_t)(i == trial[0] - '0' && harness_count(log, "PIPETUNE trial") > 0));
    }
}

static void no_epoch_is_lost_beyond_the_cap(struct world *w, bool sessions)
{
    write_study(w, sessions);
    (void)setenv("FAKE_FAIL", "huge-log", 1);
    (void)setenv("FAKE_HUGE_MB", "6", 1);
    expect_exit(RUN(w, "run", "c.conf", "--parallel", "1"), 0);
    size_t used = disk_use("pipetune.d/s");
    if (used < MB || used > 3 * (MB + SLACK) + SLACK)
        fail_msg("%zu bytes on disk", used);
    for (char trial[2] = "1"; trial[0] <= '3'; trial[0]++)
        expect_own_log(w, trial);
    expect_epochs(w);
}

static void test_a_submission_beyond_its_cap(void **state)
{
    no_epoch_is_lost_beyond_the_cap(*state, false);
}

static void test_a_session_of_many_trials_beyond_its_cap(void **state)
{
    no_epoch_is_lost_beyond_the_cap(*state, true);
    harness_expect_rows("in a session", STORE, "SELECT DISTINCT session FROM attempts", "1");
}

static bool has_printed_much(void *arg)
{
    (void)arg;
    return harness_wait_file(".", "pipetune.d/s/1/log.1", 0);
}

/* The driver is killed while the first trial prints; whoever comes next finds every epoch. */
static void goes_on_without_a_driver(struct world *w, bool sessions)
{
    write_study(w, sessions);
    (void)setenv("FAKE_FAIL", "huge-log", 1);
    (void)setenv("FAKE_HUGE_MB", "6", 1);
    (void)setenv("FAKE_EPOCH_MS", "600", 1);
    pid_t driver = START(w, -1, "run", "c.conf", "--parallel", "1");
    assert_true(harness_wait(has_printed_much, NULL, HARNESS_MS));
    assert_int_equal(kill(driver, SIGKILL), 0);
    assert_int_equal(harness_exit_code(driver, HARNESS_MS), 128 + SIGKILL);
    struct timespec rest = { .tv_sec = 2 };
    (void)nanosleep(&rest, NULL); /* the trial trains to its end, or nearly */
    expect_exit(RUN(w, "run", "c.conf", "--parallel", "1"), 0);
    assert_true(disk_use("pipetune.d/s") < 3 * (MB + SLACK) + SLACK);
    (void)setenv("FAKE_EPOCH_MS", "100", 1);
    expect_epochs(w);
}

static void test_a_submission_without_a_driver(void **state)
{
    goes_on_without_a_driver(*state, false);
}

static void test_a_session_without_a_driver(void **state)
{
    goes_on_without_a_driver(*state, true);
}

/* Lines that nobody listens to, printed beyond the cap, are a sign of life; silence is none. */
static void test_chatter_is_a_sign_of_life(void **state)
{
    struct world *w = *state;
    for (int sessions = 0; sessions < 2; sessions++) {
        write_study(w, sessions);
        const char *name = sessions ? "sessions" : "submissions";
        (void)setenv("FAKE_HUGE_MB", "2", 1);
        (void)setenv("FAKE_FAIL", "huge-log,mumble", 1);
        expect_exit(
            RUN(w, "run", "c.conf", "--name", name, "--max-trials", "1", "--epochs", "1", "--stall-seconds", "2"), 0);
        (void)setenv("FAKE_FAIL", "huge-log,stall", 1);
        struct harness_output o = RUN(w, "run", "c.conf", "--name", sessions ? "b" : "a", "--max-trials", "1",
                                      "--epochs", "1", "--stall-seconds", "2", "--retries", "0");
        if (o.code != 1 || harness_count(o.out, "no line for 2 s") == 0)
            fail_msg("%s: got exit %d\n%s%s", name, o.code, o.out, o.err);
        harness_output_done(&o);
    }
}

/* What it died of stands near the end of what it printed. */
static void test_a_cause_beyond_the_cap(void **state)
{
    struct world *w = *state;
    for (int sessions = 0; sessions < 2; sessions++) {
        write_study(w, sessions);
        (void)setenv("FAKE_FAIL", "huge-log,oom", 1);
        (void)setenv("FAKE_HUGE_MB", "6", 1);
        struct harness_output o =
            RUN(w, "run", "c.conf", "--name", sessions ? "b" : "a", "--max-trials", "1", "--retries", "0");
        if (harness_count(o.out, "out_of_memory: ") == 0)
            fail_msg("sessions %d: got exit %d\n%s%s", sessions, o.code, o.out, o.err);
        harness_output_done(&o);
    }
}

static bool is_punched(void *arg)
{
    struct stat st;
    (void)arg;
    return stat("pipetune.d/s/1/heard", &st) == 0 && st.st_size > (9 << 19) && st.st_blocks * 512 < st.st_size / 2;
}

static bool has_struck(void *arg)
{
    (void)arg;
    return harness_wait_file(".", "struck", 0);
}

/* Of a long training only what is not accounted stays; what cannot be punched out goes in the end. */
static void test_what_is_accounted_leaves_the_disk(void **state)
{
    struct world *w = *state;
    write_study(w, false);
    AUTO_FREE char *preload = harness_program("tests/faults.so");
    (void)setenv("FAKE_ITERATIONS", "8000", 1); /* two megabytes an epoch */
    (void)setenv("FAKE_FAIL", "mumble", 1);
    (void)setenv("FAKE_MUMBLE_MS", "1500", 1);
    (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1); /* what is preloaded comes before its runtime */
    for (int fails = 0; fails < 2; fails++) {
        (void)unlink(STORE);
        world_point_at(w, "PIPETUNE_FAULT_COUNT", "struck");
        (void)setenv("PIPETUNE_FAULT", "fallocate:1", 1);
        (void)setenv("PIPETUNE_FAULT_PROGRAM", "pipetune", 1);
        if (fails)
            (void)setenv("LD_PRELOAD", preload, 1);
        pid_t driver = START(w, -1, "run", "c.conf", "--max-trials", "1");
        (void)unsetenv("LD_PRELOAD");
        assert_true(harness_wait(fails ? has_struck : is_punched, NULL, HARNESS_MS));
        assert_int_equal(harness_exit_code(driver, HARNESS_MS), 0);
        assert_false(harness_wait_file(".", "pipetune.d/s/1/heard", 0));
        harness_expect_rows("steps", STORE, "SELECT sum(iterations) FROM epochs", "24000");
    }
    (void)unsetenv("PIPETUNE_FAULT");
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_a_submission_beyond_its_cap),       ROW(test_a_session_of_many_trials_beyond_its_cap),
        ROW(test_a_submission_without_a_driver),     ROW(test_a_session_without_a_driver),
        ROW(test_chatter_is_a_sign_of_life),         ROW(test_a_cause_beyond_the_cap),
        ROW(test_what_is_accounted_leaves_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
