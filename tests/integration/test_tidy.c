/* What is kept of studies, and what is taken away: checkpoints, `rm`, `gc`, `best`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "tests/integration/harness.h"

#define STORE "pipetune.db"
#define CONFIG(more)                                                                                                   \
    "{ \"bigdlConf\": \"app.json\",\n  \"study\": { \"name\": \"s\", \"epochs\": 5 " more " },\n" WORLD_HYPER " }\n"

static int set_up(void **state)
{
    if (world_open(state) < 0)
        return -1;
    struct world *w = *state;
    harness_write(w->dir, "app.json", WORLD_BIGDL WORLD_ARGUMENTS);
    harness_write(w->dir, "c.conf", CONFIG(""));
    (void)setenv("FAKE_EPOCH_MS", "100", 1);
    return 0;
}

static size_t count_of(const char *pattern)
{
    glob_t found;
    size_t n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return n;
}

static void expect_code(const struct harness_output *o, int code)
{
    if (o->code != code)
        fail_msg("exit %d, not %d: %s%s", o->code, code, o->out, o->err);
}

static void expect(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("no '%s' in: %s", what, text);
}

static void run_study(const struct world *w)
{
    struct harness_output o = RUN(w, "run", "c.conf");
    expect_code(&o, 0);
    harness_output_done(&o);
}

static void in_the_store(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(STORE, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#define MODELS(trial) "pipetune.d/s/" trial "/checkpoint/*/model.*"
#define STATES(trial) "pipetune.d/s/" trial "/checkpoint/*/optimMethod-*"

static void a_finished_trial_keeps_its_best_and_its_last_checkpoint(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *config;
        size_t least, most;
    } cases[] = { { CONFIG(""), 1, 2 },
                  { CONFIG(", \"keep\": \"all\""), 5, 5 },
                  { CONFIG(", \"keep\": \"none\""), 0, 0 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        harness_write(w->dir, "c.conf", cases[i].config);
        run_study(w);
        size_t models = count_of(MODELS("1")), states = count_of(STATES("1"));
        if (models < cases[i].least || models > cases[i].most || states != models)
            fail_msg("case %zu: %zu models, %zu states", i, models, states);
        struct harness_output o = RUN(w, "rm", "s", "--yes");
        expect_code(&o, 0);
        harness_output_done(&o);
    }
}

static bool has_epochs(void *sql)
{
    AUTO_FREE char *got = count_of("pipetune.d/s/1/heard") > 0 ? harness_ask(STORE, sql) : NULL;
    return got && strcmp(got, "1") == 0;
}

/* Kills the driver as soon as that holds. */
static void kill_when(pid_t driver, const char *sql)
{
    if (!harness_wait(has_epochs, (void *)(uintptr_t)sql, HARNESS_MS))
        fail_msg("never: %s", sql);
    assert_int_equal(kill(driver, SIGKILL), 0);
    assert_int_equal(harness_exit_code(driver, HARNESS_MS), 128 + SIGKILL);
}

static void a_trial_that_was_met_again_keeps_no_more(void **state)
{
    struct world *w = *state;
    (void)setenv("FAKE_EPOCH_MS", "500", 1);
    kill_when(START(w, -1, "run", "c.conf", "--max-trials", "1"), "SELECT count(*) > 0 FROM epochs");
    run_study(w);
    harness_expect_rows("it was met", STORE, "SELECT max(number) FROM attempts", "1");
    size_t models = count_of(MODELS("1"));
    if (models < 1 || models > 2)
        fail_msg("%zu models", models);
}

/* What it began from has been replaced by what it trained since: the driver that meets it again lets it go on. */
static void a_run_goes_on_without_what_it_began_from(void **state)
{
    struct world *w = *state;
    long pid = 0;
    world_point_at(w, "XDG_RUNTIME_DIR", "empty");
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json",
                  "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\", \"session\": true,\n"
                  "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"],\n"
                  "    \"learning_rate\": [\"--learning-rate\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"],\n"
                  "    \"checkpoint\": [\"--checkpoint\", \"{}\"],\n"
                  "    \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }\n");
    harness_write(w->dir, "c.conf", CONFIG(", \"keep\": \"none\", \"parallel\": 1"));
    (void)setenv("FAKE_EPOCH_MS", "500", 1);
    pid_t driver = START(w, -1, "run", "c.conf", "--max-trials", "1", "--epochs", "8");
    assert_true(harness_wait(has_epochs, (void *)(uintptr_t) "SELECT count(*) > 1 FROM epochs", HARNESS_MS));
    AUTO_FREE char *note = harness_read(w->dir, "pipetune.d/s/session-1/pid");
    assert_true(note && sscanf(note, "%*s %ld", &pid) == 1);
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
    kill_when(driver, "SELECT count(*) > 3 FROM epochs WHERE attempt = 2");
    AUTO_FREE char *from = harness_ask(STORE, "SELECT resumed_from FROM attempts WHERE number = 2");
    assert_true(from && *from == '/' && access(from, F_OK) < 0);
    struct harness_output o = RUN(w, "run", "c.conf", "--max-trials", "1", "--epochs", "8");
    expect_code(&o, 0);
    harness_output_done(&o);
    harness_expect_rows("attempts", STORE, "SELECT outcome FROM attempts ORDER BY number", "killed finished");
}

static void best_tells_the_trial_and_its_checkpoint(void **state)
{
    struct world *w = *state;
    run_study(w);
    struct harness_output o = RUN(w, "best", "s");
    expect_code(&o, 0);
    expect(o.out, "s/");
    expect(o.out, "learning_rate 0.1");
    harness_output_done(&o);
    o = RUN(w, "best", "s", "--json");
    expect(o.out, "\"checkpoint\": \"/");
    harness_output_done(&o);
    o = RUN(w, "best", "s", "--checkpoint");
    expect_code(&o, 0);
    o.out[strcspn(o.out, "\n")] = '\0';
    assert_int_equal(access(o.out, R_OK), 0);
    harness_output_done(&o);
    o = RUN(w, "rm", "s/1", "s/2", "--yes");
    expect_code(&o, 0);
    harness_output_done(&o);
    o = RUN(w, "best", "s");
    expect_code(&o, 1);
    expect(o.err, "no trial of study 's' is finished");
    harness_output_done(&o);
    o = RUN(w, "best", "s", "--store", "none.db");
    expect_code(&o, 3);
    harness_output_done(&o);
    o = RUN(w, "best", "s/1");
    expect_code(&o, 2);
    expect(o.err, "'s/1' is a trial");
    harness_output_done(&o);
}

/* Its number is not given to another, and it is not trained again. */
static void a_removed_trial_stays_removed(void **state)
{
    struct world *w = *state;
    run_study(w);
    assert_int_equal(symlink("../../../c.conf", "pipetune.d/s/1/link"), 0);
    assert_int_equal(symlink("../../../spark", "pipetune.d/s/1/folder"), 0);
    struct harness_output o = RUN(w, "rm", "s/1", "--yes");
    expect_code(&o, 0);
    expect(o.out, "s/1 removed");
    harness_output_done(&o);
    assert_int_equal(access("pipetune.d/s/1", F_OK), -1);
    assert_int_equal(access("c.conf", F_OK), 0); /* no link was followed */
    assert_int_equal(access("spark/bin/spark-submit", F_OK), 0);
    assert_int_equal(count_of("pipetune.d/s/.gone*"), 0);
    run_study(w);
    harness_expect_rows("trials", STORE, "SELECT number, state, reason FROM trials ORDER BY number",
                        "1|failed|removed 2|finished|(null)");
    harness_expect_rows("attempts", STORE, "SELECT count(*) FROM attempts", "1");
    harness_expect_rows("epochs", STORE, "SELECT count(*) FROM epochs", "5");
    o = RUN(w, "show", "s");
    expect_code(&o, 0);
    harness_output_done(&o);
    o = RUN(w, "retry", "s"); /* unless it is named */
    expect(o.out, "no trial of study s has failed");
    harness_output_done(&o);
}

static void a_removed_study_is_gone(void **state)
{
    struct world *w = *state;
    run_study(w);
    struct harness_output o = RUN(w, "rm", "s"); /* nobody can be asked */
    expect_code(&o, 2);
    expect(o.err, "--yes");
    harness_output_done(&o);
    harness_expect_rows("studies", STORE, "SELECT count(*) FROM studies", "1");
    o = RUN(w, "rm", "t", "--yes");
    expect_code(&o, 2);
    expect(o.err, "no study 't'");
    harness_output_done(&o);
    o = RUN(w, "rm", "t", "s", "--force");
    expect_code(&o, 0);
    harness_output_done(&o);
    harness_expect_rows(
        "all", STORE,
        "SELECT (SELECT count(*) FROM studies) + (SELECT count(*) FROM trials) + (SELECT count(*) FROM attempts)"
        " + (SELECT count(*) FROM epochs) + (SELECT count(*) FROM tells) + (SELECT count(*) FROM samples)",
        "0");
    assert_int_equal(access("pipetune.d/s", F_OK), -1);
    run_study(w); /* and may be begun anew */
}

static void a_study_that_runs_is_not_removed(void **state)
{
    struct world *w = *state;
    char pid_text[32];
    (void)setenv("FAKE_EPOCH_MS", "3000", 1);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    pid_t pid = START(w, -1, "run", "c.conf");
    assert_true(harness_wait_file(w->dir, "count", 30000)); /* it trains: the launcher goes on without its driver */
    struct harness_output o = RUN(w, "rm", "s", "--yes");
    expect_code(&o, 3);
    (void)snprintf(pid_text, sizeof pid_text, "pid %ld", (long)pid);
    expect(o.err, pid_text);
    harness_output_done(&o);
    assert_int_equal(kill(pid, SIGKILL), 0); /* its trial runs on */
    (void)harness_exit_code(pid, HARNESS_MS);
    o = RUN(w, "rm", "s", "--yes");
    expect_code(&o, 3);
    expect(o.err, "'s/1' still runs");
    harness_output_done(&o);
    o = RUN(w, "rm", "s/1", "--yes");
    expect_code(&o, 3);
    expect(o.err, "not over");
    harness_output_done(&o);
    o = RUN(w, "gc");
    expect_code(&o, 0);
    harness_output_done(&o);
    assert_int_equal(access("pipetune.d/s/1/log", F_OK), 0);
    harness_expect_rows("studies", STORE, "SELECT count(*) FROM studies", "1");
}

static void gc_frees_what_nobody_needs(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "c.conf", CONFIG(", \"keep\": \"all\""));
    run_study(w);
    world_dir(w, "pipetune.d/orphan");
    world_dir(w, "pipetune.d/orphan/1");
    harness_write(w->dir, "pipetune.d/orphan/1/log", "much");
    assert_int_equal(symlink("../../c.conf", "pipetune.d/orphan/link"), 0);
    in_the_store("UPDATE studies SET config = json_set(config, '$.study.keep', 'best')");
    struct harness_output o = RUN(w, "gc", "--dry-run");
    expect_code(&o, 0);
    expect(o.out, "would free");
    harness_output_done(&o);
    assert_int_equal(access("pipetune.d/orphan/1/log", F_OK), 0);
    assert_int_equal(count_of(MODELS("1")), 5);
    o = RUN(w, "gc");
    expect_code(&o, 0);
    expect(o.out, "freed");
    harness_output_done(&o);
    assert_int_equal(access("pipetune.d/orphan", F_OK), -1);
    assert_int_equal(access("c.conf", F_OK), 0);
    assert_true(count_of(MODELS("1")) <= 2 && count_of(MODELS("1")) > 0);
    harness_expect_rows("values", STORE, "SELECT count(*) FROM samples WHERE value IS NOT NULL", "0");
    harness_expect_rows("what stays", STORE, "SELECT count(*) FROM trials WHERE state = 'finished'", "2");
    o = RUN(w, "report", "s", "--json");
    expect_code(&o, 0);
    harness_output_done(&o);
    o = RUN(w, "energy", "s");
    assert_true(o.code == 0 || o.code == 1);
    harness_output_done(&o);
}

/* Old enough that it is nobody's who has just made it. */
static void leave_socket(const char *path)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    const struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
}

static void gc_takes_what_launches_have_left(void **state)
{
    struct world *w = *state;
    run_study(w);
    (void)setenv("XDG_RUNTIME_DIR", w->dir, 1);
    assert_int_equal(mkdir("pipetune", 0700), 0);
    leave_socket("pipetune/pt-0123456789abcdef-0-1.sock");
    assert_int_equal(mkdir("pipetune.d/s/session-1", 0700), 0);
    harness_write(w->dir, "pipetune.d/s/session-1/heard", "much");
    harness_write(w->dir, "pipetune.d/s/1/heard", "much");
    harness_write(w->dir, "pipetune.d/s/2/heard", "much");
    in_the_store("UPDATE attempts SET state = 'running' WHERE trial = (SELECT id FROM trials WHERE number = 2)");
    struct harness_output o = RUN(w, "gc", "--dry-run");
    expect_code(&o, 0);
    harness_output_done(&o);
    assert_int_equal(access("pipetune.d/s/1/heard", F_OK), 0);
    assert_int_equal(access("pipetune/pt-0123456789abcdef-0-1.sock", F_OK), 0);
    o = RUN(w, "gc");
    (void)unsetenv("XDG_RUNTIME_DIR");
    expect_code(&o, 0);
    harness_output_done(&o);
    assert_int_equal(access("pipetune.d/s/session-1/heard", F_OK), -1);
    assert_int_equal(access("pipetune.d/s/1/heard", F_OK), -1);
    assert_int_equal(access("pipetune.d/s/2/heard", F_OK), 0); /* the next driver reads it */
    assert_int_equal(access("pipetune/pt-0123456789abcdef-0-1.sock", F_OK), -1);
}

/* Folders lie beside stores, so that those of several in one place lie together. */
static void gc_leaves_what_another_store_knows(void **state)
{
    struct world *w = *state;
    static const char *const spoilt[] = { "PRAGMA user_version = 99", "PRAGMA user_version = 1" };
    run_study(w);
    world_dir(w, "pipetune.d/orphan");
    harness_write(w->dir, "c.conf",
                  "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"o\" },\n" WORLD_HYPER " }\n");
    struct harness_output o = RUN(w, "run", "c.conf", "--store", "other.db");
    expect_code(&o, 0);
    harness_output_done(&o);
    o = RUN(w, "gc", "--store", "other.db");
    expect_code(&o, 0);
    harness_output_done(&o);
    assert_int_equal(access("pipetune.d/s/1/log", F_OK), 0);
    assert_int_equal(access("pipetune.d/orphan", F_OK), -1);
    for (size_t i = 0; i < ARRAY_LEN(spoilt); i++) {
        in_the_store(spoilt[i]);
        o = RUN(w, "gc", "--store", "other.db");
        expect_code(&o, 0);
        harness_output_done(&o);
        assert_int_equal(access("pipetune.d/s/1/log", F_OK), 0);
    }
    assert_int_equal(unlink(STORE), 0);
    o = RUN(w, "gc", "--store", "other.db");
    expect_code(&o, 0);
    harness_output_done(&o);
    assert_int_equal(access("pipetune.d/s", F_OK), -1);
    assert_int_equal(access("pipetune.d/o/1/log", F_OK), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_finished_trial_keeps_its_best_and_its_last_checkpoint),
        CASE(a_trial_that_was_met_again_keeps_no_more),
        CASE(a_run_goes_on_without_what_it_began_from),
        CASE(best_tells_the_trial_and_its_checkpoint),
        CASE(a_removed_trial_stays_removed),
        CASE(a_removed_study_is_gone),
        CASE(a_study_that_runs_is_not_removed),
        CASE(gc_frees_what_nobody_needs),
        CASE(gc_takes_what_launches_have_left),
        CASE(gc_leaves_what_another_store_knows),
    };
    return cmocka_run_group_tests_name("tidy", tests, NULL, NULL);
}
