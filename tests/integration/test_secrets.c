/* Secrets of a config are given to the application, and stand nowhere else: not in the store, nor in what is shown, nor in a command that
 * anyone may list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "tests/integration/harness.h"

#define KEY "k3y-of-the-bucket"
#define PASSWORD "hunter2-of-the-base"
#define PIN "pin-9876"
#define PROPERTY "spark.hadoop.fs.s3a.secret.key"

static const char *const secrets[] = { KEY, PASSWORD, PIN };

#define BIGDL_FILE                                                                                                     \
    "{ \"master\": \"local[*]\", \"driver_memory\": \"2g\", \"conf\": \"app.py\",\n"                                   \
    "  \"properties_file\": \"base.properties\", \"session\": %s,\n"                                                   \
    "  \"extras\": { \"dbPassword\": \"%s\", \"pinCode\": \"" PIN "\" },\n"                                            \
    "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"], \"learning_rate\": [\"--learning-rate\", "         \
    "\"{}\"],\n    \"epochs\": [\"--epochs\", \"{}\"] } }\n"

static bool in_session;

static void write_config(const struct world *w, const char *key, const char *password)
{
    AUTO_FREE char *config = NULL, *app = NULL;
    assert_true(asprintf(&config,
                         "{ \"bigdlConf\": \"app.json\",\n"
                         "  \"study\": { \"name\": \"s\", \"epochs\": 1, \"secrets\": [\"pin*\"] },\n"
                         "  \"systemParameters\": { \"cores\": [1], \"" PROPERTY "\": [%s] },\n"
                         "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1] } }\n",
                         key) > 0);
    assert_true(asprintf(&app, BIGDL_FILE, in_session ? "true" : "false", password) > 0);
    harness_write(w->dir, "c.conf", config);
    harness_write(w->dir, "app.json", app);
}

/* It notes what it is called with, and what it reads, and is the fake then, which does not know these two options: FILTER unset, it says so. */
static void put_submit(const struct world *w)
{
    AUTO_FREE char *fake = harness_program("tests/integration/fake-spark-submit");
    AUTO_FREE char *script = NULL;
    assert_true(
        asprintf(&script,
                 "#!/bin/sh\nprintf '%%s\\n' \"$@\" >\"$PIPETUNE_WORLD/argv\"\n"
                 "for f in \"$PIPETUNE_WORLD\"/pipetune.d/s/*/properties; do stat -c %%a \"$f\"; cat \"$f\"; done "
                 ">\"$PIPETUNE_WORLD/seen\"\n"
                 "[ \"$FILTER\" ] && for a; do shift; [ \"$skip\" ] && { skip=; continue; }\n"
                 "case $a in --dbPassword|--pinCode) skip=1 ;; *) set -- \"$@\" \"$a\" ;; esac; done\n"
                 "exec '%s' \"$@\"\n",
                 fake) > 0);
    (void)unlink("spark/bin/spark-submit");
    world_script(w, "spark/bin/spark-submit", script);
    (void)setenv("FILTER", "1", 1);
}

static int set_up(void **state)
{
    if (world_open(state) < 0)
        return -1;
    struct world *w = *state;
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "base.properties", "spark.base true");
    write_config(w, "\"" KEY "\"", PASSWORD);
    put_submit(w);
    return 0;
}

static void expect_exit(const char *name, struct harness_output o, int code)
{
    if (o.code != code)
        fail_msg("%s: got exit %d, want %d\n%s%s", name, o.code, code, o.out, o.err);
    harness_output_done(&o);
}

static void expect_none(const char *name, const char *text, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        if (memmem(text, len, secrets[i], strlen(secrets[i])))
            fail_msg("%s holds '%s'", name, secrets[i]);
}

static int look_into(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at, (void)st;
    AUTO_BUF struct buf b = BUF_INIT;
    if (kind != FTW_F)
        return 0;
    assert_int_equal(io_read_file(&b, path, 64 << 20, NULL), 0);
    expect_none(path, b.data ? b.data : "", b.len);
    return 0;
}

static void test_secrets_are_given_and_not_kept(void **state)
{
    struct world *w = *state;
    static const char *const files[] = { "pipetune.db", "pipetune.db-wal" };
    expect_exit("a study", RUN(w, "run", "c.conf"), 0);
    AUTO_FREE char *argv = harness_read(w->dir, "argv");
    assert_non_null(strstr(argv, "--dbPassword\n" PASSWORD "\n"));
    assert_non_null(strstr(argv, "--pinCode\n" PIN "\n"));
    assert_non_null(strstr(argv, "pipetune.d/s/1/properties\n"));
    assert_null(strstr(argv, KEY));
    AUTO_FREE char *seen = harness_read(w->dir, "seen");
    assert_int_equal(strncmp(seen, "600\n", 4), 0);
    assert_non_null(strstr(seen, "spark.base true\n"));
    assert_non_null(strstr(seen, PROPERTY "=" KEY "\n"));
    assert_int_equal(nftw("pipetune.d", look_into, 8, FTW_PHYS), 0);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        if (io_exists(files[i]))
            assert_int_equal(io_read_file(&b, files[i], 64 << 20, NULL), 0);
        expect_none(files[i], b.data ? b.data : "", b.len);
    }
    harness_expect_rows("a mark in its place", "pipetune.db",
                        "SELECT config ->> '$.bigdl.extras.dbPassword', config ->> '$.bigdl.extras.pinCode', "
                        "length(config ->> '$.secrets.\"bigdl.extras.dbPassword\"') FROM studies",
                        "***|***|32");
}

static void test_a_session_leaves_none(void **state)
{
    struct world *w = *state;
    in_session = true;
    write_config(w, "\"" KEY "\"", PASSWORD);
    in_session = false;
    expect_exit("a study", RUN(w, "run", "c.conf"), 0);
    AUTO_FREE char *argv = harness_read(w->dir, "argv");
    AUTO_FREE char *seen = harness_read(w->dir, "seen");
    assert_non_null(strstr(argv, "pipetune.d/s/session-1/properties\n"));
    assert_non_null(strstr(seen, PROPERTY "=" KEY "\n"));
    assert_int_equal(nftw("pipetune.d", look_into, 8, FTW_PHYS), 0);
    assert_false(io_exists("pipetune.d/s/session-1/heard"));
}

static bool is_over(void *world)
{
    return world_trials(world) == 0;
}

/* Its driver is killed, and the trial ends by itself: nobody was there to take them away. */
static void test_what_a_killed_driver_left_goes_with_the_next_command(void **state)
{
    static const char *const next[][3] = { { "gc" }, { "run", "c.conf" } };
    struct world *w = *state;
    (void)setenv("FAKE_EPOCH_MS", "1500", 1);
    for (size_t i = 0; i < ARRAY_LEN(next); i++) {
        (void)unlink("argv");
        pid_t pid = START(w, -1, "run", "c.conf");
        assert_true(harness_wait_file(w->dir, "argv", HARNESS_MS));
        assert_int_equal(kill(pid, SIGKILL), 0);
        (void)harness_exit_code(pid, HARNESS_MS);
        harness_write(w->dir, "pipetune.d/s/1/properties.1.tmp", KEY);
        expect_exit("while it runs", RUN(w, "gc"), 0);
        assert_true(io_exists("pipetune.d/s/1/properties"));
        assert_true(harness_wait(is_over, w, HARNESS_MS));
        expect_exit(next[i][0], world_run(w, next[i]), 0);
        assert_int_equal(nftw("pipetune.d", look_into, 8, FTW_PHYS), 0);
        expect_exit("it goes on", RUN(w, "run", "c.conf"), 0);
        harness_expect_rows("one attempt", "pipetune.db", "SELECT count(*), group_concat(state) FROM attempts",
                            "1|ended");
        expect_exit("away", RUN(w, "rm", "s", "--yes"), 0);
    }
}

static void test_what_is_shown_has_marks(void **state)
{
    struct world *w = *state;
    static const char *const looks[][6] = {
        { "run", "c.conf", "--dry-run" },
        { "show", "s" },
        { "show", "s", "1" },
        { "show", "s", "1", "--json" },
        { "show", "s", "--json" },
        { "report", "s", "--json" },
        { "report", "s", "--csv" },
        { "report", "s", "--html", "-" },
        { "show", "s", "--decisions" },
        { "model", "ls" },
    };
    expect_exit("a study", RUN(w, "run", "c.conf"), 0);
    for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
        struct harness_output o = world_run(w, looks[i]);
        expect_none(looks[i][0], o.out, strlen(o.out));
        expect_none(looks[i][0], o.err, strlen(o.err));
        assert_int_equal(o.code, 0);
        harness_output_done(&o);
    }
    struct harness_output o = RUN(w, "run", "c.conf", "--dry-run");
    assert_non_null(strstr(o.out, PROPERTY "=***"));
    assert_non_null(strstr(o.out, "--dbPassword '***' --pinCode '***'"));
    harness_output_done(&o);
    o = RUN(w, "show", "s", "--json");
    assert_non_null(strstr(o.out, "***"));
    assert_null(strstr(o.out, "\"salt\""));
    harness_output_done(&o);
}

static void test_a_secret_that_changed_is_named_and_not_told(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *key, *password, *names;
    } changes[] = {
        { "\"" KEY "\"", "hunter3", "secrets.bigdl.extras.dbPassword" },
        { "\"another\"", PASSWORD, "secrets.systemParameters." PROPERTY },
    };
    expect_exit("a study", RUN(w, "run", "c.conf"), 0);
    expect_exit("the same", RUN(w, "run", "c.conf"), 0);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        write_config(w, changes[i].key, changes[i].password);
        struct harness_output o = RUN(w, "run", "c.conf");
        if (o.code != 2 || !strstr(o.err, changes[i].names) || strstr(o.err, "hunter3") || strstr(o.err, "another'"))
            fail_msg("exit %d: %s", o.code, o.err);
        expect_none("the error", o.err, strlen(o.err));
        harness_output_done(&o);
    }
}

/* Earlier versions stored them as they were: such a study goes on, and loses them. */
static void test_a_study_that_has_them_loses_them(void **state)
{
    struct world *w = *state;
    expect_exit("a study", RUN(w, "run", "c.conf"), 0);
    free(harness_ask("pipetune.db",
                     "UPDATE studies SET config = json_remove(json_set(config, '$.bigdl.extras.dbPassword', '" PASSWORD
                     "', '$.bigdl.extras.pinCode', '" PIN "', '$.systemParameters.\"" PROPERTY "\"[0]', '" KEY
                     "'), '$.secrets')"));
    expect_exit("it goes on", RUN(w, "run", "c.conf"), 0);
    AUTO_FREE char *config = harness_ask("pipetune.db", "SELECT config FROM studies");
    expect_none("its config", config, strlen(config));
}

/* The fake, like argparse, repeats words that it does not know. */
static void test_a_cause_does_not_repeat_them(void **state)
{
    struct world *w = *state;
    (void)unsetenv("FILTER");
    struct harness_output o = RUN(w, "run", "c.conf");
    assert_int_equal(o.code, 3);
    assert_non_null(strstr(o.out, "--dbPassword ***"));
    expect_none("what is printed", o.out, strlen(o.out));
    expect_none("what is said", o.err, strlen(o.err));
    harness_output_done(&o);
    AUTO_FREE char *causes = harness_ask("pipetune.db", "SELECT cause FROM attempts");
    AUTO_FREE char *told = harness_ask("pipetune.db", "SELECT reason FROM decisions");
    expect_none("causes", causes, strlen(causes));
    expect_none("decisions", told, strlen(told));
}

/* Told with a mark or not, it is the same failure, and a third attempt brings nothing. */
static void test_failures_that_name_one_are_alike(void **state)
{
    struct world *w = *state;
    (void)unlink("spark/bin/spark-submit");
    world_script(w, "spark/bin/spark-submit", "#!/bin/sh\necho 'ValueError: not " PASSWORD "' >&2\nexit 1\n");
    expect_exit("a study", RUN(w, "run", "c.conf"), 1);
    harness_expect_rows("attempts", "pipetune.db", "SELECT count(*) FROM attempts", "2");
}

static void test_a_secret_is_not_tuned(void **state)
{
    struct world *w = *state;
    write_config(w, "\"one\", \"two\"", PASSWORD);
    struct harness_output o = RUN(w, "run", "c.conf");
    if (o.code != 2 || !strstr(o.err, "is a secret") || strstr(o.err, "two\""))
        fail_msg("exit %d: %s", o.code, o.err);
    harness_output_done(&o);
    assert_false(io_exists("pipetune.db"));
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_secrets_are_given_and_not_kept),
        ROW(test_a_session_leaves_none),
        ROW(test_what_a_killed_driver_left_goes_with_the_next_command),
        ROW(test_what_is_shown_has_marks),
        ROW(test_a_secret_that_changed_is_named_and_not_told),
        ROW(test_a_study_that_has_them_loses_them),
        ROW(test_a_cause_does_not_repeat_them),
        ROW(test_failures_that_name_one_are_alike),
        ROW(test_a_secret_is_not_tuned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
