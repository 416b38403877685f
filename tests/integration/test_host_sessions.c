/* Warm sessions on other hosts: real helpers with homes, leases, sockets and names of their own, behind what plays ssh, and a Spark that is none.
 * Links break, drivers, sessions and hosts die; a session serves on, and nothing that was paid for is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "tests/integration/harness.h"

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

/* Becomes the helper "on" the host, unless that is dead: the file dead-HOST says so. One that is called old knows no sessions. */
#define SSH                                                                                                            \
    "#!/bin/sh\n"                                                                                                      \
    "while [ \"$1\" != -- ]; do shift; done\n"                                                                         \
    "if [ -e $W/dead-$2 ]; then echo \"ssh: connect to host $2 port 22: No route to host\" >&2; exit 255; fi\n"        \
    "echo $$ >$W/helper-$2\n"                                                                                          \
    "export HOME=$W/home-$2 PIPETUNE_MACHINE=$2 PIPETUNE_LEASES=$PIPETUNE_LEASES-$2 XDG_RUNTIME_DIR=$W/run-$2\n"       \
    "[ -e $HOME ] || mkdir $HOME $XDG_RUNTIME_DIR; cd /\n"                                                             \
    "if [ $2 = old ]; then \"$3\" \"$4\" | sed -u 's/\"sessions\":true,//'; else exec \"$3\" \"$4\"; fi\n"

static int open_hosts(void **state)
{
    if (world_open(state) < 0)
        return -1;
    const struct world *w = *state;
    AUTO_FREE char *ssh = harness_path(w->dir, "ssh");
    AUTO_FREE char *count = harness_path(w->dir, "count");
    (void)unsetenv("XDG_STATE_HOME");
    (void)setenv("W", w->dir, 1), (void)setenv("PIPETUNE_SSH", ssh, 1), (void)setenv("XDG_RUNTIME_DIR", w->dir, 1);
    (void)setenv("PIPETUNE_NODES_SPEED", "20", 1), (void)setenv("PIPETUNE_REST_MS", "1000", 1);
    (void)setenv("FAKE_COUNT_FILE", count, 1), (void)unsetenv("FAKE_FAIL");
    world_script(w, "ssh", SSH);
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "bigdl.json",
                  "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\", \"session\": true,\n"
                  "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"],\n"
                  "    \"learning_rate\": [\"--learning-rate\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"],\n"
                  "    \"checkpoint\": [\"--checkpoint\", \"{}\"], \"seed\": [\"--seed\", \"{}\"],\n"
                  "    \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }\n");
    return 0;
}

/* A study of so many trials of three epochs on these hosts, one on each at a time, and not here. */
static void write_study(const struct world *w, const char *hosts, int trials, const char *more)
{
    char text[1024], rates[128] = "";
    double gb = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1 << 30);
    for (int i = 1; i <= trials; i++)
        (void)snprintf(rates + strlen(rates), sizeof rates - strlen(rates), "%s0.%d", i > 1 ? ", " : "", i);
    (void)snprintf(text, sizeof text,
                   "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"s\", \"epochs\": 3, \"parallel\": %d }, "
                   "\"nodes\": [%s],\n"
                   "  \"places\": { \"local\": \"no\" %s }, \"monitoring\": { \"scope\": \"none\" },\n"
                   "  \"systemParameters\": { \"cores\": [4096], \"memory\": [%.1f] },\n"
                   "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [%s] } }\n",
                   strchr(hosts, ',') ? 2 : 1, hosts, more, 0.6 * gb, rates); /* no two fit on one */
    harness_write(w->dir, "s.conf", text);
}

static size_t count_of(const struct world *w, const char *word)
{
    AUTO_FREE char *text = harness_read(w->dir, "count");
    return text ? harness_count(text, word) : 0;
}

static void expect_finished(const struct world *w, int code, int trials)
{
    AUTO_FREE char *err = harness_read(w->dir, "err");
    AUTO_FREE char *out = harness_read(w->dir, "out");
    char want[16];
    if (code != 0)
        fail_msg("run: exit %d: %s%s", code, out ? out : "", err ? err : "");
    (void)snprintf(want, sizeof want, "%d", trials);
    harness_expect_rows("finished trials", "pipetune.db", "SELECT count(*) FROM trials WHERE state = 'finished'", want);
    harness_expect_rows("no epoch is there twice", "pipetune.db",
                        "SELECT count(*) - 3 * (SELECT count(*) FROM trials) FROM epochs", "0");
    harness_expect_rows("no failure was counted", "pipetune.db",
                        "SELECT count(*) FROM attempts WHERE outcome IN ('failed', 'killed')", "0");
    harness_expect_rows("no accuracy is missing", "pipetune.db", "SELECT count(*) FROM epochs WHERE accuracy IS NULL",
                        "0");
}

/* Of trials nothing, and of sessions nothing. */
static void expect_nothing_left(const struct world *w, const char *host)
{
    AUTO_FREE char *root = NULL, *folder = NULL;
    struct stat st;
    assert_true(asprintf(&root, "%s/home-%s/.local/state/pipetune", w->dir, host) > 0);
    assert_true(asprintf(&folder, "run-%s/pipetune/*", host) > 0);
    if (stat(root, &st) < 0 || st.st_nlink != 3) /* files/ alone */
        fail_msg("something is left in %s", root);
    glob_t found;
    if (glob(folder, 0, NULL, &found) == 0)
        fail_msg("%zu sockets are left: %s", found.gl_pathc, found.gl_pathv[0]);
}

static bool is_there(void *file)
{
    return access(file, F_OK) == 0;
}

static void wait_for_file(const char *file)
{
    if (!harness_wait(is_there, (void *)file, HARNESS_MS))
        fail_msg("waited in vain for %s", file);
}

static bool is_asked(void *sql)
{
    AUTO_FREE char *rows = access("count", F_OK) == 0 ? harness_ask("pipetune.db", sql) : NULL;
    return rows && strcmp(rows, "1") == 0;
}

static void wait_for_rows(const char *sql)
{
    if (!harness_wait(is_asked, (void *)sql, HARNESS_MS))
        fail_msg("waited in vain for %s", sql);
}

#define BOTH_TRAIN "SELECT count(DISTINCT trial) = 2 FROM epochs"

/* Each epoch has two steps, and a file is named after the step that is next. */
static void expect_last_checkpoint(const char *folder)
{
    AUTO_FREE char *pattern = NULL;
    glob_t found;
    assert_true(asprintf(&pattern, "%s/*/model.7", folder) > 0);
    if (glob(pattern, 0, NULL, &found) != 0)
        fail_msg("%s is not there", pattern);
    globfree(&found);
}

/* --- serving ------------------------------------------------------------------------------------------------------------ */

static void a_session_serves_trial_after_trial_there(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 6, "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    if (o.code != 0)
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    expect_finished(w, o.code, 6);
    assert_int_equal(count_of(w, "session "), 2);
    harness_expect_rows("where they were served", "pipetune.db",
                        "SELECT count(*), count(DISTINCT place || session), min(session) > 0 FROM attempts", "6|2|1");
    AUTO_FREE char *log = harness_read(w->dir, "pipetune.d/s/1/log");
    if (!log || harness_count(log, "PIPETUNE trial") != 2)
        fail_msg("its log: %s", log ? log : "");
    AUTO_OUTPUT struct harness_output shown = RUN(w, "show", "s/1", "--json");
    AUTO_FREE char *place = harness_ask("pipetune.db", "SELECT place FROM attempts ORDER BY trial LIMIT 1");
    AUTO_FREE char *says = NULL;
    assert_true(asprintf(&says, "\"place\": \"%s\"", place) > 0);
    if (!strstr(shown.out, says))
        fail_msg("show: %s", shown.out);
    for (int i = 1; i <= 6; i++) {
        char last[64];
        (void)snprintf(last, sizeof last, "pipetune.d/s/%d/checkpoint", i);
        expect_last_checkpoint(last);
    }
    expect_nothing_left(w, "a"), expect_nothing_left(w, "b");
}

/* Of an older version. */
static void a_helper_without_sessions_is_given_submissions(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"old\"", 2, "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(w, o.code, 2);
    harness_expect_rows("sessions", "pipetune.db", "SELECT max(session) FROM attempts", "0");
    assert_int_equal(count_of(w, "session "), 0);
}

/* --- what dies ---------------------------------------------------------------------------------------------------------- */

static void a_killed_driver_meets_sessions_again(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 4, "");
    (void)setenv("FAKE_EPOCH_MS", "300", 1);
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_for_rows(BOTH_TRAIN);
    (void)kill(driver, SIGKILL);
    (void)harness_exit_code(driver, HARNESS_MS);
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    if (o.code != 0)
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    expect_finished(w, o.code, 4);
    harness_expect_rows("attempts", "pipetune.db", "SELECT count(*), max(number) FROM attempts", "4|1");
    assert_int_equal(count_of(w, "session "), 2); /* which serve the rest */
    assert_int_equal(count_of(w, "trained "), 12);
    expect_nothing_left(w, "a"), expect_nothing_left(w, "b");
}

static void a_driver_may_be_killed_at_any_point(void **state)
{
    const struct world *w = *state;
    static const char *const points[] = {
        "session-spawned:1",       "session-launcher-ready:1", "session-go-sent:1",   "launcher-ready:1",
        "attempt-before-commit:1", "attempt-committed:2",      "run-sent:1",          "run-sent:2",
        "epoch-before-commit:1",   "epoch-committed:2",        "end-before-commit:1", "end-committed:1"
    };
    write_study(w, "\"a\", \"b\"", 3, "");
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        (void)setenv("PIPETUNE_FAILPOINT", points[i], 1);
        AUTO_OUTPUT struct harness_output cut_off = RUN(w, "run", "s.conf");
        (void)unsetenv("PIPETUNE_FAILPOINT");
        AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
        if (cut_off.code != 128 + SIGKILL || o.code != 0)
            fail_msg("%s: exit %d, then %d: %s%s", points[i], cut_off.code, o.code, o.out, o.err);
        expect_finished(w, o.code, 3);
        if (count_of(w, "trained ") != 9)
            fail_msg("%s: %zu epochs were trained: %s", points[i], count_of(w, "trained "), o.out);
        (void)unlink("count"), (void)unlink("pipetune.db");
    }
}

static void an_interrupted_study_leaves_no_session_there(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 2, "");
    (void)setenv("FAKE_EPOCH_MS", "300", 1);
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_for_rows(BOTH_TRAIN);
    wait_for_file("pipetune.d/s/1/checkpoint"), wait_for_file("pipetune.d/s/2/checkpoint");
    (void)kill(driver, SIGINT);
    assert_int_equal(harness_exit_code(driver, HARNESS_MS), 130);
    assert_int_equal(world_trials(w), 0);
    expect_nothing_left(w, "a"), expect_nothing_left(w, "b");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(w, o.code, 2);
}

/* Its helper is gone, and another one cannot be reached. */
static void cut(const struct world *w, const char *host)
{
    char file[64];
    (void)snprintf(file, sizeof file, "dead-%s", host);
    harness_write(w->dir, file, "");
    (void)snprintf(file, sizeof file, "helper-%s", host);
    AUTO_FREE char *pid = harness_read(w->dir, file);
    assert_non_null(pid);
    (void)kill((pid_t)strtol(pid, NULL, 10), SIGKILL);
}

static bool has_trained_all(void *w)
{
    return count_of(w, "trained ") >= 6;
}

/* Both trials end while nobody hears of one of them; its session serves on when it is heard again. It is older by then than one may be that has
 * never said hello. */
static void a_session_serves_on_after_its_link_was_down(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 4, "");
    (void)setenv("FAKE_EPOCH_MS", "1500", 1), (void)setenv("FAKE_SESSION_MS", "500", 1);
    pid_t driver = START(w, -1, "run", "s.conf", "--grant-seconds", "3");
    wait_for_rows(BOTH_TRAIN);
    wait_for_rows("SELECT count(*) = 2 FROM epochs WHERE epoch = 2");
    cut(w, "a");
    (void)unsetenv("FAKE_SESSION_MS");
    assert_true(harness_wait(has_trained_all, (void *)w, HARNESS_MS));
    assert_int_equal(unlink("dead-a"), 0);
    expect_finished(w, harness_exit_code(driver, HARNESS_MS), 4);
    harness_expect_rows("attempts", "pipetune.db", "SELECT count(*), max(number) FROM attempts", "4|1");
    harness_expect_rows("CPUs in force are known", "pipetune.db", "SELECT count(*) FROM attempts WHERE cores > 0", "4");
    assert_int_equal(count_of(w, "session "), 2);
    assert_int_equal(count_of(w, "trained "), 12);
    expect_nothing_left(w, "a"), expect_nothing_left(w, "b");
}

static void a_link_may_break_again_and_again(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\"", 6, "");
    (void)setenv("FAKE_EPOCH_MS", "50", 1);
    pid_t driver = START(w, -1, "run", "s.conf");
    for (int i = 1; i <= 12; i++) {
        char sql[96];
        (void)snprintf(sql, sizeof sql, "SELECT count(*) >= %d FROM epochs", i);
        wait_for_rows(sql);
        AUTO_FREE char *pid = harness_read(w->dir, "helper-a");
        (void)kill((pid_t)strtol(pid, NULL, 10), SIGKILL);
    }
    expect_finished(w, harness_exit_code(driver, HARNESS_MS), 6);
    harness_expect_rows("attempts", "pipetune.db", "SELECT count(*), max(number) FROM attempts", "6|1");
    assert_int_equal(count_of(w, "session "), 1);
    assert_int_equal(count_of(w, "trained "), 18);
}

/* With all that runs there. */
static void kill_host(const struct world *w, const char *host)
{
    pid_t pids[64];
    char mark[64], file[64], text[8192];
    cut(w, host);
    (void)snprintf(mark, sizeof mark, "PIPETUNE_MACHINE=%s", host);
    size_t n = world_find(w->dir, "", pids, ARRAY_LEN(pids));
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(file, sizeof file, "/proc/%ld/environ", (long)pids[i]);
        FILE *f = fopen(file, "r");
        size_t len = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f)
            (void)fclose(f);
        if (len && memmem(text, len, mark, strlen(mark) + 1))
            (void)kill(pids[i], SIGKILL);
    }
}

/* The first checkpoint of the trial that runs on it. */
static bool has_fetched_of_a(void *unused)
{
    (void)unused;
    AUTO_FREE char *trial =
        access("count", F_OK) < 0
            ? NULL
            : harness_ask("pipetune.db", "SELECT t.number FROM trials t JOIN attempts a ON a.trial = t.id "
                                         "WHERE a.place = 'a' AND a.state = 'running'");
    AUTO_FREE char *pattern = NULL;
    glob_t found = { 0 };
    assert_true(asprintf(&pattern, "pipetune.d/s/%s/checkpoint/*/model.3", trial ? trial : "0") > 0);
    bool is = glob(pattern, 0, NULL, &found) == 0;
    globfree(&found);
    return is;
}

static void what_a_lost_host_had_goes_on_elsewhere(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 4, ", \"lost_seconds\": 1");
    (void)setenv("FAKE_EPOCH_MS", "1000", 1);
    pid_t driver = START(w, -1, "run", "s.conf");
    if (!harness_wait(has_fetched_of_a, NULL, HARNESS_MS))
        fail_msg("no checkpoint came");
    kill_host(w, "a");
    expect_finished(w, harness_exit_code(driver, HARNESS_MS), 4);
    harness_expect_rows("the lost one goes on from its checkpoint", "pipetune.db",
                        "SELECT number, place, outcome, first_epoch > 1 FROM attempts WHERE trial ="
                        " (SELECT trial FROM attempts WHERE place = 'a') ORDER BY 1",
                        "1|a|interrupted|0 2|b|finished|1");
    assert_int_equal(count_of(w, "session "), 2);
    expect_nothing_left(w, "b");
}

static void a_session_that_dies_is_replaced_there(void **state)
{
    const struct world *w = *state;
    long pid = 0;
    write_study(w, "\"a\"", 3, "");
    (void)setenv("FAKE_EPOCH_MS", "1000", 1);
    pid_t driver = START(w, -1, "run", "s.conf");
    if (!harness_wait(has_fetched_of_a, NULL, HARNESS_MS))
        fail_msg("no checkpoint came");
    AUTO_FREE char *count = harness_read(w->dir, "count");
    assert_int_equal(sscanf(count, "session %*s %ld", &pid), 1);
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
    assert_int_equal(harness_exit_code(driver, HARNESS_MS), 0);
    harness_expect_rows("finished trials", "pipetune.db", "SELECT count(*) FROM trials WHERE state = 'finished'", "3");
    harness_expect_rows("its trial went on in another session, from its checkpoint", "pipetune.db",
                        "SELECT number, session, first_epoch > 1 FROM attempts WHERE trial ="
                        " (SELECT trial FROM attempts WHERE number = 2) ORDER BY 1",
                        "1|1|0 2|2|1");
    assert_int_equal(count_of(w, "session "), 2);
    expect_nothing_left(w, "a");
}

/* Of the host's sessions alone nothing more is expected. */
static void sessions_that_never_come_up_are_done_without(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\"", 2, "");
    (void)setenv("FAKE_FAIL", "session-unborn-9", 1);
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    (void)unsetenv("FAKE_FAIL");
    if (o.code != 0 || !strstr(o.out, "a warm session could not be had on host 'a'"))
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    expect_finished(w, o.code, 2);
    harness_expect_rows("sessions", "pipetune.db", "SELECT max(session) FROM attempts", "0");
}

#define HOSTS_TEST(f) cmocka_unit_test_setup_teardown(f, open_hosts, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTS_TEST(a_session_serves_trial_after_trial_there),
        HOSTS_TEST(a_helper_without_sessions_is_given_submissions),
        HOSTS_TEST(a_killed_driver_meets_sessions_again),
        HOSTS_TEST(a_driver_may_be_killed_at_any_point),
        HOSTS_TEST(an_interrupted_study_leaves_no_session_there),
        HOSTS_TEST(a_session_serves_on_after_its_link_was_down),
        HOSTS_TEST(a_link_may_break_again_and_again),
        HOSTS_TEST(what_a_lost_host_had_goes_on_elsewhere),
        HOSTS_TEST(a_session_that_dies_is_replaced_there),
        HOSTS_TEST(sessions_that_never_come_up_are_done_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
