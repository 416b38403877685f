/* The queue: studies that were submitted, shared CPUs, what is asked of them while they run; and that servers and drivers may be killed at any
 * moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "core/rng.h"
#include "live/study.h"
#include "serve/server.h"
#include "tests/integration/failpoints.h"
#include "tests/integration/harness.h"

enum { KILLS = 100, STUDIES = 10, POINT_STUDIES = 10, TRIALS = 4, LONG_MS = 60000 };

#define STORE "pipetune.db"

/* Counts its start, and its end; each epoch takes PACE seconds. Where the file hold-STUDY-LR is, it waits for that to go. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "for word; do case $last in --lr) lr=$word;; --study) study=$word;; --epochs) epochs=$word;; esac; last=$word; "   \
    "done\n"                                                                                                           \
    "echo \"begun $study $lr\" >>count\n"                                                                              \
    "[ \"$FAILS\" = \"$lr\" ] && [ ! -e mended ] && exit 7\n"                                                          \
    "while [ -e hold-$study-$lr ]; do sleep 0.02; done\n"                                                              \
    "epoch=0; while [ $epoch -lt $epochs ]; do\n"                                                                      \
    "  epoch=$((epoch + 1)); sleep $PACE; echo \"epoch $epoch: accuracy 0.$epoch\"\n"                                  \
    "done; echo \"ended $study $lr\" >>count\n"

static int open_plain(void **state)
{
    if (world_open(state) < 0)
        return -1;
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME", "FAILS" };
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    (void)setenv("PACE", "0.02", 1);
    world_script(*state, "train.sh", TRAIN);
    return 0;
}

static void write_study(const struct world *w, const char *name, const char *rates, const char *more)
{
    AUTO_BUF struct buf text = BUF_INIT;
    char file[64];
    buf_printf(
        &text,
        "{ \"command\": [\"./train.sh\", \"--study\", \"%s\"], \"progress\": [\"epoch (?<epoch>\\\\d+): accuracy "
        "(?<accuracy>\\\\S+)\"],\n \"env\": { \"PACE\": \"$PACE\" },\n"
        "  \"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"] } }\n",
        name);
    (void)snprintf(file, sizeof file, "%s.json", name);
    harness_write(w->dir, file, buf_text(&text));
    buf_clear(&text);
    buf_printf(&text,
               "{ \"application\": \"%s\", \"study\": { \"name\": \"%s\", \"epochs\": 2, \"retries\": 0%s },\n"
               "  \"systemParameters\": { \"cores\": [1] }, \"hyperParameters\": { \"lr\": [%s] } }\n",
               file, name, more, rates);
    (void)snprintf(file, sizeof file, "%s.conf", name);
    harness_write(w->dir, file, buf_text(&text));
}

static void expect(const char *what, struct harness_output o, int code, const char *text)
{
    const char *said = code ? o.err : o.out;
    if (o.code != code || !strstr(said, text))
        fail_msg("%s: got exit %d, %s%s; want %d, '%s'", what, o.code, o.out, o.err, code, text);
    harness_output_done(&o);
}

/* --- waiting for what the store says ------------------------------------------------------------------------------------- */

struct fact {
    const char *sql, *want;
};

static bool is_so(void *arg)
{
    const struct fact *f = arg;
    AUTO_FREE char *got = harness_ask(STORE, f->sql);
    return strcmp(got, f->want) == 0;
}

static void wait_rows(const char *sql, const char *want)
{
    struct fact f = { sql, want };
    if (harness_wait(is_so, &f, LONG_MS))
        return;
    AUTO_FREE char *got = harness_ask(STORE, sql);
    AUTO_FREE char *queue =
        harness_ask(STORE, "SELECT study, state, share, most, grain, to_go, starts, exit_code, reason FROM queue");
    fail_msg("%s: got '%s', want '%s'; the queue: %s", sql, got, want, queue);
}

static bool no_server(void *arg)
{
    (void)arg;
    AUTO_FREE char *path = study_store_path(NULL);
    return server_of(path) == 0;
}

#define QUEUE "SELECT study, state FROM queue ORDER BY id"

static void wait_over(void)
{
    wait_rows("SELECT count(*) FROM queue WHERE state NOT IN ('done', 'stopped')", "0");
    assert_true(harness_wait(no_server, NULL, LONG_MS)); /* it ends by itself */
}

static char *counted(const struct world *w)
{
    char *text = harness_read(w->dir, "count");
    return text ? text : strdup("");
}

static bool has_begun(void *arg)
{
    const char *const *x = arg;
    AUTO_FREE char *text = harness_read(x[0], "count");
    return text && strstr(text, x[1]);
}

static void wait_counted(const struct world *w, const char *line)
{
    const char *x[] = { w->dir, line };
    if (!harness_wait(has_begun, x, LONG_MS))
        fail_msg("never counted: %s", line);
}

/* --- submitting ------------------------------------------------------------------------------------------------------------ */

static void a_study_that_is_submitted_is_run_to_its_end(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", "");
    expect("submit", RUN(w, "submit", "a.conf"), 0, "study a is in the queue");
    expect("attach", RUN(w, "attach", "a"), 0, "best: a/1");
    wait_over();
    harness_expect_rows("queue", STORE, "SELECT study, state, exit_code FROM queue", "a|done|0");
    harness_expect_rows("study", STORE, "SELECT state FROM studies", "finished");
    expect("again", RUN(w, "attach", "a"), 0, "best: a/1");
}

static void what_run_refuses_is_not_submitted(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1", "");
    write_study(w, "bad", "0.1", ", \"epoch\": 3");
    struct harness_output run = RUN(w, "run", "bad.conf");
    expect("bad", RUN(w, "submit", "bad.conf"), 2, run.err);
    harness_output_done(&run);
    run = RUN(w, "run", "nowhere.conf");
    expect("nowhere", RUN(w, "submit", "nowhere.conf"), 2, run.err);
    harness_output_done(&run);
    expect("time", RUN(w, "submit", "a.conf", "--at", "soon"), 2, "'soon' is no time");
    expect("words", RUN(w, "submit", "a.conf", "--detach"), 2, "are for 'run'");
    expect("option", RUN(w, "submit", "a.conf", "--priorty", "3"), 2, "priorty");
    expect("nothing was submitted", RUN(w, "ls"), 0, "no study in");
    expect("changed", RUN(w, "run", "a.conf"), 0, "best: a/1");
    expect("changed", RUN(w, "submit", "a.conf", "--epochs", "9"), 2, "these keys differ: study.epochs");
    assert_true(no_server(NULL));
}

static void a_study_is_in_the_queue_once(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1", "");
    expect("submit", RUN(w, "submit", "a.conf", "--at", "+1h"), 0, "not before");
    expect("again", RUN(w, "submit", "a.conf"), 2, "in the queue already");
    expect("it waits", RUN(w, "ls"), 0, "queued");
    expect("it waits", RUN(w, "ls", "--json"), 0, "\"state\": \"queued\"");
    expect("stop", RUN(w, "stop", "a"), 0, "taken out of the queue");
    expect("stop", RUN(w, "stop", "a"), 2, "no study 'a'");
    wait_over();
    expect("anew", RUN(w, "submit", "a.conf"), 0, "in the queue");
    wait_over();
    harness_expect_rows("queue", STORE, QUEUE, "a|done");
}

static void a_driver_has_what_the_study_was_submitted_with(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1", "");
    world_dir(w, "else");
    world_script(w, "else/train.sh", "#!/bin/sh\necho \"$PACE $PWD\" >../seen\necho 'epoch 1: accuracy 0.5'\n");
    assert_int_equal(rename("a.conf", "else/a.conf"), 0);
    assert_int_equal(rename("a.json", "else/a.json"), 0);
    AUTO_FREE char *path = study_store_path(NULL);
    write_study(w, "b", "0.1", "");
    expect("a server", RUN(w, "submit", "b.conf"), 0, "in the queue"); /* with another PACE, in another folder */
    assert_int_equal(chdir("else"), 0);
    (void)setenv("PACE", "0.0375", 1);
    expect("submit", RUN(w, "submit", "a.conf", "--store", path, "--epochs", "1", "--priority=3"), 0, "in the queue");
    assert_int_equal(chdir(".."), 0);
    wait_over();
    AUTO_FREE char *seen = harness_read(w->dir, "seen");
    assert_non_null(seen);
    assert_non_null(strstr(seen, "0.0375 "));
    assert_non_null(strstr(seen, "/else"));
    harness_expect_rows("queue", STORE, "SELECT study, priority, exit_code FROM queue ORDER BY id", "b|0|0 a|3|0");
}

static void what_ended_badly_says_why(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1", ", \"metric\": \"f1\"");
    expect("submit", RUN(w, "submit", "a.conf"), 0, "in the queue");
    wait_over();
    harness_expect_rows("queue", STORE, "SELECT exit_code, reason LIKE '%f1%' FROM queue", "2|1");
}

/* --- in the background ------------------------------------------------------------------------------------------------------ */

static void a_detached_study_is_driven_to_its_end(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", "");
    harness_write(w->dir, "hold-a-0.2", "");
    expect("detach", RUN(w, "run", "a.conf", "--detach"), 0, "is run in the background by process");
    wait_counted(w, "begun a 0.2");
    expect("ls", RUN(w, "ls"), 0, "in the background");
    expect("twice", RUN(w, "run", "a.conf", "--detach"), 3, "is run by another driver");
    expect("bad", RUN(w, "run", "a.conf", "--detach", "--epochs", "7"), 2, "these keys differ");
    assert_int_equal(unlink("hold-a-0.2"), 0);
    expect("attach", RUN(w, "attach", "a"), 0, "best: a/1");
    wait_rows("SELECT state FROM studies", "finished");
    expect("over", RUN(w, "run", "a.conf", "--detach"), 0, "study a");
}

static void a_study_in_the_background_can_be_stopped(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", "");
    harness_write(w->dir, "hold-a-0.1", "");
    expect("detach", RUN(w, "run", "a.conf", "--detach"), 0, "in the background");
    wait_counted(w, "begun a 0.1");
    expect("stop", RUN(w, "stop", "a"), 0, "are being ended");
    wait_rows("SELECT state, outcome FROM attempts", "ended|interrupted");
    assert_int_equal(unlink("hold-a-0.1"), 0);
    expect("nothing", RUN(w, "stop", "nothing"), 2, "no study 'nothing'");
    expect("submit", RUN(w, "submit", "a.conf"), 0, "in the queue");
    wait_over();
    harness_expect_rows("it went on", STORE, "SELECT state FROM studies", "finished");
}

static void a_study_of_the_queue_can_be_stopped(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", "");
    harness_write(w->dir, "hold-a-0.1", "");
    expect("submit", RUN(w, "submit", "a.conf"), 0, "in the queue");
    wait_counted(w, "begun a 0.1");
    wait_rows("SELECT count(*) FROM attempts WHERE state = 'running' AND pid > 0", "1");
    expect("ls", RUN(w, "ls"), 0, "in the background");
    expect("stop", RUN(w, "stop", "a"), 0, "are being ended");
    wait_over();
    harness_expect_rows("queue", STORE, QUEUE, "a|stopped");
    harness_expect_rows("attempts", STORE, "SELECT DISTINCT state FROM attempts", "ended");
}

static void a_study_that_is_run_by_hand_when_its_turn_comes_follows_the_queue(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", "");
    harness_write(w->dir, "hold-a-0.1", "");
    pid_t pid = START(w, -1, "run", "a.conf");
    wait_counted(w, "begun a 0.1");
    wait_rows("SELECT count(*) FROM attempts WHERE state = 'running'", "1");
    expect("submit", RUN(w, "submit", "a.conf"), 0, "in the queue");
    wait_rows("SELECT pid > 0 FROM queue WHERE state = 'running'", "1");
    expect("stop", RUN(w, "stop", "a"), 0, "are being ended");
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    wait_over();
    harness_expect_rows("queue", STORE, QUEUE, "a|stopped");
}

/* --- what is asked while it runs ---------------------------------------------------------------------------------------------- */

static void a_trial_is_stopped_a_point_added_and_a_failed_one_tried_again(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2, 0.3", ", \"max_trials\": 2, \"parallel\": 1");
    (void)setenv("FAILS", "0.1", 1);
    harness_write(w->dir, "hold-a-0.2", "");
    expect("submit", RUN(w, "submit", "a.conf"), 0, "in the queue");
    wait_rows("SELECT state FROM queue", "running");
    wait_counted(w, "begun a 0.2");
    wait_rows("SELECT number FROM trials WHERE state = 'running'", "2");
    expect("no point", RUN(w, "add", "a", "lr=0.7"), 2, "no point of study 'a'");
    expect("no value", RUN(w, "add", "a", "lr"), 2, "say NAME=VALUE");
    expect("over", RUN(w, "stop", "a/1"), 2, "a/1 is failed");
    harness_write(w->dir, "mended", "");
    expect("retry", RUN(w, "retry", "a/1"), 0, "to be tried again: a/1; its driver does it");
    expect("stop", RUN(w, "stop", "a/2"), 0, "its attempt is ended");
    wait_rows("SELECT state FROM trials ORDER BY number", "finished stopped");
    wait_over();
    expect("add", RUN(w, "add", "a", "lr=0.3"), 0, "in the queue again");
    wait_over();
    harness_expect_rows("added", STORE, "SELECT number, state, added FROM trials ORDER BY number",
                        "1|finished|0 2|stopped|0 3|finished|1");
    harness_expect_rows("answered", STORE, "SELECT kind, state, answer FROM requests ORDER BY id",
                        "retry|done|1 to be tried again stop|done|its attempt is ended add|done|trial 3");
    harness_expect_rows("study", STORE, "SELECT state FROM studies", "finished");
}

static void what_waits_is_stopped_without_having_run(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", ", \"parallel\": 1");
    harness_write(w->dir, "hold-a-0.1", "");
    pid_t pid = START(w, -1, "run", "a.conf");
    wait_counted(w, "begun a 0.1");
    expect("add", RUN(w, "add", "a", "lr=0.2"), 0, "added to study a: trial 2");
    expect("stop", RUN(w, "stop", "a/2"), 0, "stopped");
    assert_int_equal(unlink("hold-a-0.1"), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    harness_expect_rows("trials", STORE, "SELECT number, state, added FROM trials ORDER BY number",
                        "1|finished|0 2|stopped|1 3|finished|0");
}

static void what_nobody_runs_is_asked_of_the_next_driver(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", ", \"max_trials\": 1");
    (void)setenv("FAILS", "0.1", 1);
    expect("run", RUN(w, "run", "a.conf"), 1, "");
    expect("add", RUN(w, "add", "a", "lr=0.2"), 0, "the next 'pipetune run'");
    harness_write(w->dir, "mended", "");
    expect("retry", RUN(w, "retry", "a"), 0, "to be tried again: a/1; 'pipetune run'");
    expect("run", RUN(w, "run", "a.conf"), 0, "best: a/1");
    harness_expect_rows("trials", STORE, "SELECT number, state, added FROM trials ORDER BY number",
                        "1|finished|0 2|finished|1");
}

/* --- shares ----------------------------------------------------------------------------------------------------------------- */

/* Milliseconds within a span in which fewer than two trials ran. */
static double idle_ms(int64_t from, int64_t to)
{
    char sql[640];
    (void)snprintf(
        sql, sizeof sql,
        "WITH ends AS (SELECT started_ms AS t, 1 AS d FROM attempts UNION ALL SELECT ended_ms, -1 FROM attempts"
        " UNION ALL SELECT %lld, 0 UNION ALL SELECT %lld, 0),"
        " runs AS (SELECT t, sum(d) OVER (ORDER BY t, d) AS n, lead(t) OVER (ORDER BY t, d) AS next FROM ends)"
        " SELECT coalesce(sum((next - t) * (2 - n)), 0) FROM runs WHERE n < 2 AND t >= %lld AND next <= %lld",
        (long long)from, (long long)to, (long long)from, (long long)to);
    AUTO_FREE char *got = harness_ask(STORE, sql);
    return strtod(got, NULL);
}

static int64_t number(const char *sql)
{
    AUTO_FREE char *got = harness_ask(STORE, sql);
    return strtoll(got, NULL, 10);
}

/* The one of higher priority has both CPUs while it has trials for them, and no CPU is idle while any trial waits. */
static void a_higher_priority_has_what_it_can_use(void **state)
{
    struct world *w = *state;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    (void)setenv("PACE", "0.35", 1);
    write_study(w, "low", "0.1, 0.2, 0.3, 0.4, 0.5, 0.6", ", \"parallel\": 2");
    write_study(w, "high", "0.1, 0.2, 0.3, 0.4, 0.5", ", \"parallel\": 2");
    expect("low", RUN(w, "submit", "low.conf", "--policy", "v1"), 0, "in the queue");
    wait_rows(
        "SELECT count(*) FROM trials t JOIN studies s ON s.id = t.study WHERE s.name = 'low' AND t.state = 'running'",
        "2");
    expect("high", RUN(w, "submit", "high.conf", "--policy", "v1", "--priority", "5"), 0, "in the queue");
    wait_over();
    harness_expect_rows("all", STORE, "SELECT count(*), max(number) FROM attempts WHERE outcome = 'finished'", "11|1");
#define OF(name)                                                                                                       \
    "(SELECT a.started_ms, a.ended_ms FROM attempts a JOIN trials t ON t.id = a.trial JOIN studies s ON s.id = "       \
    "t.study WHERE s.name = '" name "')"
    harness_expect_rows("none of the low ones begins while two of the high ones run or wait", STORE,
                        "SELECT count(*) FROM " OF("low") " WHERE started_ms BETWEEN (SELECT min(started_ms) FROM " OF(
                            "high") ")"
                                    " AND (SELECT started_ms FROM " OF("high") " ORDER BY started_ms DESC LIMIT 1)",
                        "0");
    int64_t from = number("SELECT min(started_ms) FROM attempts WHERE (SELECT count(*) FROM attempts b WHERE "
                          "b.started_ms < attempts.started_ms) = 1");
    int64_t to = number("SELECT max(started_ms) FROM attempts");
    double idle = idle_ms(from, to), all = 2 * (double)(to - from);
    print_message("idle %.0f of %.0f ms, %.1f %%\n", idle, all, 100 * idle / all);
    assert_true(idle < 0.35 * all); /* what drivers and launchers take between trials of 0.7 s, on a busy machine */
}

static void equals_have_a_cpu_each(void **state)
{
    struct world *w = *state;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    (void)setenv("PACE", "0.2", 1);
    write_study(w, "a", "0.1, 0.2, 0.3, 0.4, 0.5, 0.6", "");
    write_study(w, "b", "0.1, 0.2, 0.3, 0.4, 0.5, 0.6", "");
    expect("a", RUN(w, "submit", "a.conf"), 0, "in the queue");
    expect("b", RUN(w, "submit", "b.conf"), 0, "in the queue");
    wait_rows("SELECT count(*) FROM queue WHERE share = 1 AND most > 0", "2");
    wait_over();
    harness_expect_rows("both ended", STORE, "SELECT count(*) FROM trials WHERE state = 'finished'", "12");
    /* Each had a trial whenever the other had one, but for what is at the edges. */
    int64_t apart =
        number("SELECT abs((SELECT max(ended_ms) FROM " OF("a") ") - (SELECT max(ended_ms) FROM " OF("b") "))");
    int64_t whole = number("SELECT max(ended_ms) - min(started_ms) FROM attempts");
    if (apart > whole / 2)
        fail_msg("one ended %lld of %lld ms before the other", (long long)apart, (long long)whole);
}

/* One that nobody asked the queue about has all CPUs, and gives none. */
static void what_others_do_not_give_is_used_beside_them(void **state)
{
    struct world *w = *state;
    if (sysconf(_SC_NPROCESSORS_ONLN) != 2)
        skip();
    write_study(w, "other", "0.1, 0.2", ", \"parallel\": 2");
    write_study(w, "a", "0.1", "");
    harness_write(w->dir, "hold-other-0.1", "");
    harness_write(w->dir, "hold-other-0.2", "");
    pid_t pid = START(w, -1, "run", "other.conf", "--policy", "v1");
    wait_counted(w, "begun other 0.1");
    wait_counted(w, "begun other 0.2");
    (void)setenv("PIPETUNE_ASK_MS", "300", 1);
    expect("a", RUN(w, "submit", "a.conf"), 0, "in the queue");
    wait_over();
    assert_int_equal(unlink("hold-other-0.1") + unlink("hold-other-0.2"), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    harness_expect_rows("both", STORE, "SELECT state FROM studies", "finished finished");
}

/* --- ends of the server --------------------------------------------------------------------------------------------------------- */

static pid_t serve(const struct world *w)
{
    return START(w, -1, "serve", "--listen", "none", "--once", "--cpus", "1");
}

static bool has_server(void *arg)
{
    (void)arg;
    return !no_server(NULL);
}

static void one_server_works_a_queue(void **state)
{
    struct world *w = *state;
    pid_t pid = START(w, -1, "serve", "--listen", "none");
    assert_true(harness_wait(has_server, NULL, HARNESS_MS));
    expect("another", RUN(w, "serve", "--listen", "none"), 3, "is worked by process");
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
}

static void a_server_that_is_ended_drains_and_the_next_goes_on(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", ", \"parallel\": 1");
    write_study(w, "b", "0.1", "");
    harness_write(w->dir, "hold-a-0.1", "");
    pid_t pid = START(w, -1, "serve", "--listen", "none", "--cpus", "1");
    assert_true(harness_wait(has_server, NULL, HARNESS_MS));
    expect("a", RUN(w, "submit", "a.conf"), 0, "in the queue");
    expect("b", RUN(w, "submit", "b.conf"), 0, "in the queue");
    wait_counted(w, "begun a 0.1");
    wait_rows("SELECT count(*) FROM attempts WHERE state = 'running'", "1");
    assert_int_equal(kill(pid, SIGTERM), 0);
    wait_rows("SELECT state FROM queue ORDER BY id", "draining queued");
    assert_int_equal(unlink("hold-a-0.1"), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    harness_expect_rows("drained", STORE, "SELECT number, state FROM trials ORDER BY number LIMIT 1", "1|finished");
    harness_expect_rows("drained", STORE, "SELECT count(*) FROM attempts", "1");
    harness_expect_rows("they wait", STORE, QUEUE, "a|queued b|queued");
    assert_int_equal(harness_exit_code(serve(w), LONG_MS), 0);
    harness_expect_rows("it went on", STORE, "SELECT name, state FROM studies ORDER BY id", "a|finished b|finished");
    harness_expect_rows("once each", STORE, "SELECT count(*), max(number) FROM attempts", "3|1");
}

static void a_server_that_is_ended_twice_leaves_trials_running(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", ", \"parallel\": 1");
    harness_write(w->dir, "hold-a-0.1", "");
    pid_t pid = START(w, -1, "serve", "--listen", "none");
    assert_true(harness_wait(has_server, NULL, HARNESS_MS));
    expect("a", RUN(w, "submit", "a.conf"), 0, "in the queue");
    wait_counted(w, "begun a 0.1");
    wait_rows("SELECT count(*) FROM attempts WHERE state = 'running'", "1");
    assert_int_equal(kill(pid, SIGTERM), 0);
    wait_rows("SELECT state FROM queue", "draining");
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    harness_expect_rows("it runs on", STORE, "SELECT state FROM attempts", "running");
    harness_expect_rows("it waits", STORE, QUEUE, "a|queued");
    assert_int_equal(unlink("hold-a-0.1"), 0);
    assert_int_equal(harness_exit_code(serve(w), LONG_MS), 0);
    harness_expect_rows("adopted", STORE, "SELECT number, outcome FROM attempts", "1|finished 1|finished");
}

/* Each trial was begun, and ended, once. */
static void expect_once(const struct world *w, int studies)
{
    AUTO_FREE char *text = counted(w);
    for (int i = 1; i <= studies; i++)
        for (int k = 1; k <= TRIALS; k++) {
            char begun[48], ended[48];
            (void)snprintf(begun, sizeof begun, "begun s%d 0.%d\n", i, k);
            (void)snprintf(ended, sizeof ended, "ended s%d 0.%d\n", i, k);
            if (harness_count(text, begun) != 1 || harness_count(text, ended) != 1)
                fail_msg("s%d, lr 0.%d: begun %zu times, ended %zu times", i, k, harness_count(text, begun),
                         harness_count(text, ended));
        }
}

/* In the order of submission, one after the other. */
static void expect_order(int studies)
{
    AUTO_BUF struct buf want = BUF_INIT;
    for (int i = 1; i <= studies; i++)
        buf_printf(&want, "%ss%d|finished", i > 1 ? " " : "", i);
    harness_expect_rows("the order of beginning", STORE, "SELECT name, state FROM studies ORDER BY id",
                        buf_text(&want));
    harness_expect_rows(
        "none began before the one before had ended", STORE,
        "SELECT count(*) FROM attempts a JOIN trials t ON t.id = a.trial JOIN trials u ON u.study < t.study"
        " JOIN attempts b ON b.trial = u.id WHERE a.started_ms < b.ended_ms",
        "0");
}

static void submit_many(const struct world *w, int studies)
{
    for (int i = 1; i <= studies; i++) {
        char name[16], file[24];
        (void)snprintf(name, sizeof name, "s%d", i);
        (void)snprintf(file, sizeof file, "s%d.conf", i);
        write_study(w, name, "0.1, 0.2, 0.3, 0.4", "");
        expect(name, RUN(w, "submit", file), 0, "in the queue");
    }
}

static pid_t driver_of_one(void)
{
    AUTO_FREE char *got = harness_ask(STORE, "SELECT pid FROM queue WHERE state = 'running' AND pid > 0 LIMIT 1");
    return (pid_t)strtol(got, NULL, 10);
}

/* Both, and some drivers: what runs goes on, nothing is run twice, and the order stays. */
static void servers_killed_at_any_moment_lose_nothing(void **state)
{
    struct world *w = *state;
    struct rng rng = rng_seeded(11);
    (void)setenv("PACE", "0.12", 1);
    pid_t pid = START(w, -1, "serve", "--listen", "none", "--cpus", "1");
    assert_true(harness_wait(has_server, NULL, HARNESS_MS));
    submit_many(w, STUDIES);
    int kills = 0, drivers = 0;
    for (; kills < KILLS; kills++) {
        (void)poll(NULL, 0, (int)rng_below(&rng, 180));
        pid_t driver = kills % 9 == 8 ? driver_of_one() : 0;
        assert_int_equal(kill(pid, SIGKILL), 0);
        (void)harness_exit_code(pid, HARNESS_MS);
        drivers += driver > 0 && kill(driver, SIGKILL) == 0;
        pid = serve(w);
        struct fact over = { "SELECT count(*) FROM queue WHERE state NOT IN ('done', 'stopped')", "0" };
        if (is_so(&over))
            break;
    }
    assert_int_equal(harness_exit_code(pid, 2 * LONG_MS), 0);
    print_message("%d servers and %d drivers were killed\n", kills, drivers);
    expect_once(w, STUDIES);
    expect_order(STUDIES);
    harness_expect_rows("queue", STORE, "SELECT count(*) FROM queue WHERE state = 'done' AND exit_code = 0", "10");
    assert_true(kills > KILLS / 2);
}

/* False: it has come to its end before. */
static bool server_dies_at(const struct world *w, const char *name, unsigned nth)
{
    char point[64];
    (void)snprintf(point, sizeof point, "%s:%u", name, nth);
    (void)setenv("PIPETUNE_FAILPOINT", point, 1);
    pid_t pid = serve(w);
    (void)unsetenv("PIPETUNE_FAILPOINT");
    int code = harness_exit_code(pid, LONG_MS);
    assert_true(code == 0 || code == 128 + SIGKILL);
    return code != 0;
}

static void servers_killed_at_each_point_lose_nothing(void **state)
{
    struct world *w = *state;
    int lock = -1;
    pid_t holder;
    struct err e;
    world_dir(w, "pipetune.d");
    assert_int_equal(study_lock_file(&lock, "pipetune.d/queue-" STORE ".lock", &holder, &e),
                     0); /* so that none is started */
    submit_many(w, POINT_STUDIES);
    (void)close(lock);
    int died = 0;
    for (size_t i = 0; i < ARRAY_LEN(failpoints); i++)
        for (unsigned nth = 1; failpoints[i].of == OF_SERVER && nth <= failpoints[i].most; nth++)
            died += server_dies_at(w, failpoints[i].name, nth);
    assert_int_equal(harness_exit_code(serve(w), LONG_MS), 0);
    print_message("%d servers died\n", died);
    assert_true(died >= 8);
    expect_once(w, POINT_STUDIES);
    expect_order(POINT_STUDIES);
    harness_expect_rows("no attempt was needed twice", STORE, "SELECT max(number) FROM attempts", "1");
}

static void a_driver_that_is_killed_is_started_again(void **state)
{
    struct world *w = *state;
    write_study(w, "a", "0.1, 0.2", "");
    harness_write(w->dir, "hold-a-0.1", "");
    expect("submit", RUN(w, "submit", "a.conf"), 0, "in the queue");
    wait_counted(w, "begun a 0.1");
    wait_rows("SELECT count(*) > 0 FROM attempts WHERE state = 'running'", "1");
    pid_t driver = driver_of_one();
    assert_int_equal(kill(driver, SIGKILL), 0);
    wait_rows("SELECT starts FROM queue", "2");
    assert_int_equal(unlink("hold-a-0.1"), 0);
    wait_over();
    harness_expect_rows("queue", STORE, QUEUE, "a|done");
    harness_expect_rows("once", STORE, "SELECT max(number) FROM attempts", "1");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_plain, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_study_that_is_submitted_is_run_to_its_end),
        TEST(what_run_refuses_is_not_submitted),
        TEST(a_study_is_in_the_queue_once),
        TEST(a_driver_has_what_the_study_was_submitted_with),
        TEST(what_ended_badly_says_why),
        TEST(a_detached_study_is_driven_to_its_end),
        TEST(a_study_in_the_background_can_be_stopped),
        TEST(a_study_of_the_queue_can_be_stopped),
        TEST(a_study_that_is_run_by_hand_when_its_turn_comes_follows_the_queue),
        TEST(a_trial_is_stopped_a_point_added_and_a_failed_one_tried_again),
        TEST(what_waits_is_stopped_without_having_run),
        TEST(what_nobody_runs_is_asked_of_the_next_driver),
        TEST(a_higher_priority_has_what_it_can_use),
        TEST(equals_have_a_cpu_each),
        TEST(what_others_do_not_give_is_used_beside_them),
        TEST(one_server_works_a_queue),
        TEST(a_server_that_is_ended_drains_and_the_next_goes_on),
        TEST(a_server_that_is_ended_twice_leaves_trials_running),
        TEST(servers_killed_at_each_point_lose_nothing),
        TEST(a_driver_that_is_killed_is_started_again),
        TEST(servers_killed_at_any_moment_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
