/* `pipetune run` on clusters of several shapes, over a master's page that this test serves and a fake spark-submit that grants what
 * such workers have: what is launched, what is told, what is not asked for again, and what a launch says it waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/lease.h"
#include "base/own.h"
#include "tests/integration/harness.h"
#include "tests/integration/sink.h"

#define STORE "pipetune.db"
#define TRIALS "SELECT number, state FROM trials ORDER BY number"
#define OUTCOMES "SELECT outcome FROM attempts ORDER BY id"
#define NO_PAGE "http://127.0.0.1:1/json/"
#define ONE_POINT "{ \"batch_size\": [64], \"learning_rate\": [0.1] }"
#define TWO_POINTS "{ \"batch_size\": [64], \"learning_rate\": [0.1, 0.05] }"

/* What workers have: "CORES:GIB", behind it D where one is dead, B where others have all of it, F1 where one core of it is free; and the
 * applications that run. */
static void write_page_with(struct buf *out, const char *workers, const char *apps)
{
    AUTO_BUF struct buf body = BUF_INIT;
    int cores, gb, n = 0;
    buf_puts(&body, "{\"url\":\"spark://127.0.0.1:7077\",\"workers\":[");
    for (const char *w = workers; w && sscanf(w, "%d:%d", &cores, &gb) == 2;
         w = strchr(w, ',') ? strchr(w, ',') + 1 : NULL) {
        bool dead = w[strcspn(w, "D,")] == 'D', busy = w[strcspn(w, "B,")] == 'B';
        const char *some = w + strcspn(w, "F,");
        int is_free = busy ? 0 : *some == 'F' ? some[1] - '0' : cores;
        buf_printf(
            &body,
            "%s{\"id\":\"worker-%d\",\"cores\":%d,\"coresused\":0,\"coresfree\":%d,\"memory\":%d,\"memoryused\":0,"
            "\"memoryfree\":%d,\"state\":\"%s\"}",
            n ? "," : "", n, cores, is_free, gb * 1024, busy ? 0 : gb * 1024, dead ? "DEAD" : "ALIVE");
        n++;
    }
    buf_printf(&body, "],\"activeapps\":[%s],\"status\":\"ALIVE\"}", apps);
    buf_printf(out, "HTTP/1.1 200 OK\r\nContent-Type: text/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
               body.len, buf_text(&body));
}

static void write_page(struct buf *out, const char *workers)
{
    write_page_with(out, workers, "");
}

struct cluster {
    struct sink *sink;
    struct buf page;
    char url[64];
};

static void cluster_open(struct cluster *c, const char *workers)
{
    *c = (struct cluster){ .sink = sink_new(), .page = BUF_INIT };
    write_page(&c->page, workers);
    sink_answer(c->sink, buf_text(&c->page));
    (void)snprintf(c->url, sizeof c->url, "http://127.0.0.1:%d/json/", sink_port(c->sink));
    (void)setenv("FAKE_WORKERS", workers, 1);
}

static void cluster_close(struct cluster *c)
{
    sink_free(c->sink);
    buf_done(&c->page);
    (void)unsetenv("FAKE_WORKERS");
}

/* One epoch on a cluster whose executors have 1 GiB; `more` goes into the BigDL file. */
static void write_study(const struct world *w, const char *more, const char *system, const char *hyper)
{
    AUTO_BUF struct buf app = BUF_INIT;
    AUTO_BUF struct buf config = BUF_INIT;
    buf_printf(&app,
               "{ \"master\": \"spark://127.0.0.1:7077\", \"executor_memory\": \"1g\", \"conf\": \"app.py\"%s,\n"
               "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"], \"learning_rate\": "
               "[\"--learning-rate\", \"{}\"],\n"
               "    \"epochs\": [\"--epochs\", \"{}\"], \"checkpoint\": [\"--checkpoint\", \"{}\"], \"seed\": "
               "[\"--seed\", \"{}\"],\n"
               "    \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }\n",
               more);
    buf_printf(&config,
               "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 1 },\n"
               "  \"spark\": { \"grant_seconds\": 2 }, \"systemParameters\": %s, \"hyperParameters\": %s }\n",
               system, hyper);
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json", buf_text(&app));
    harness_write(w->dir, "c.conf", buf_text(&config));
    (void)setenv("FAKE_EPOCH_MS", "50", 1);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
}

static void expect(const char *name, struct harness_output o, int code, const char *told)
{
    if (o.code != code || (told && !strstr(o.err, told) && !strstr(o.out, told)))
        fail_msg("%s: exit %d, want %d; said '%s' and '%s', want '%s'", name, o.code, code, o.out, o.err,
                 told ? told : "");
    harness_output_done(&o);
}

/* "--executor-cores 1" and the like, of an attempt's argv. */
static void expect_option(const char *name, const char *option, const char *want)
{
    char sql[256];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT b.value FROM attempts x, json_each(x.argv) a, json_each(x.argv) b"
        " WHERE a.value = '%s' AND b.id = (SELECT min(id) FROM json_each(x.argv) c WHERE c.id > a.id) ORDER BY x.id",
        option);
    harness_expect_rows(name, STORE, sql, want);
}

static const struct {
    const char *name, *workers, *app, *system;
    const char *policy;
    const char *cores, *each; /* of the launches */
    const char *told;         /* NULL: nothing is checked */
    const char *trials;
} shapes[] = {
    { "one worker of four", "4:8", "", "{ \"cores\": [\"4\", \"2\"] }", "pipetune", "4", "4", NULL, "1|finished" },
    { "two workers of one", "1:2,1:2", "", "{ \"cores\": [\"2\", \"1\"] }", "pipetune", "2", "1", NULL, "1|finished" },
    { "two workers of one, settings that never change", "1:2,1:2", "", "{ \"cores\": [\"2\", \"1\"] }", "v1", "2", "1",
      NULL, "1|finished" },
    { "three workers of two", "2:4,2:4,2:4", "", "{ \"cores\": [\"4\", \"2\"] }", "pipetune", "4", "2", NULL,
      "1|finished" },
    { "uneven workers", "3:4,1:4", "", "{ \"cores\": [\"4\"] }", "pipetune", "4", "1", NULL, "1|finished" },
    { "more cores than there are", "1:2,1:2", "", "{ \"cores\": [\"16\", \"8\"] }", "pipetune", "2", "1", NULL,
      "1|finished" },
    { "a dead worker", "4:8D,1:2,1:2", "", "{ \"cores\": [\"4\", \"2\"] }", "pipetune", "2", "1", NULL, "1|finished" },
    { "no knob at all", "1:2,1:2", "", "{}", "pipetune", "2", "1", NULL, "1|finished" },
    { "the file grants two", "1:2,1:2,1:2,1:2", ", \"total_executor_cores\": 2", "{}", "pipetune", "2", "1", NULL,
      "1|finished" },
    { "the file bounds each executor", "4:8", ", \"executor_cores\": 2", "{ \"cores\": [\"4\"] }", "pipetune", "4", "2",
      NULL, "1|finished" },
    { "memory that lets one executor on each", "4:3,4:3", "", "{ \"cores\": [\"8\"], \"memory\": [\"2\"] }", "pipetune",
      "8", "4", NULL, "1|finished" },
    { "memory that no worker has", "2:2,2:2", "", "{ \"cores\": [\"2\"], \"memory\": [\"8\", \"2\"] }", "pipetune", "2",
      "2", "memory: 8 GiB is more than the 2 GiB there are", "1|finished" },
    { "memory that no worker has, and nothing else", "2:2,2:2", "", "{ \"cores\": [\"2\"], \"memory\": [\"8\"] }",
      "pipetune", "", "", "memory 8 GiB is more than the 2 GiB there are", "1|infeasible" },
    { "executors that do not divide the cores", "1:2,1:2", "", "{ \"cores\": [\"1\"], \"executors\": [\"1\", \"2\"] }",
      "pipetune", "1", "1", "executors 2 cannot be had here: not tried", "1|finished" },
    { "executors of the user's, the first for which there is no worker", "1:2,1:2", "",
      "{ \"cores\": [\"2\", \"1\"], \"executors\": [\"1\", \"2\"] }", "v1", "2", "1",
      "executors 1 with cores 2 cannot be had here", "1|finished" },
    { "executors fixed by the user", "4:8", "", "{ \"cores\": [\"4\"], \"executors\": [\"2\"] }", "pipetune", "4", "2",
      NULL, "1|finished" },
};

static void test_each_shape_runs_what_it_has(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct cluster c;
        cluster_open(&c, shapes[i].workers);
        write_study(w, shapes[i].app, shapes[i].system, ONE_POINT);
        (void)unlink(STORE);
        bool runs = strstr(shapes[i].trials, "finished") != NULL;
        expect(shapes[i].name, RUN(w, "run", "c.conf", "--master-ui", c.url, "--policy", shapes[i].policy),
               runs ? 0 : 1, shapes[i].told);
        harness_expect_rows(shapes[i].name, STORE, TRIALS, shapes[i].trials);
        expect_option(shapes[i].name, "--total-executor-cores", shapes[i].cores);
        expect_option(shapes[i].name, "--executor-cores", shapes[i].each);
        harness_remove(harness_path(w->dir, "pipetune.d"));
        cluster_close(&c);
    }
}

static void test_a_dry_run_tells_by_what_is_known(void **state)
{
    struct world *w = *state;
    struct cluster c;
    write_study(w, "", "{ \"cores\": [\"1\"], \"executors\": [\"1\", \"2\"] }", TWO_POINTS);
    expect("without a cluster", RUN(w, "run", "c.conf", "--dry-run", "--master-ui", NO_PAGE), 0,
           "executors 2 cannot be had here: not tried");
    write_study(w, "", "{ \"cores\": [\"2\", \"1\"] }", ONE_POINT);
    expect("without a cluster", RUN(w, "run", "c.conf", "--dry-run", "--master-ui", NO_PAGE), 0,
           "--total-executor-cores 2 --executor-cores 2");
    cluster_open(&c, "1:2,1:2");
    expect("with one", RUN(w, "run", "c.conf", "--dry-run", "--master-ui", c.url), 0,
           "--total-executor-cores 2 --executor-cores 1");
    cluster_close(&c);
    write_study(w, "", "{ \"cores\": [\"1\"], \"executors\": [\"2\"] }", ONE_POINT);
    expect("nowhere", RUN(w, "run", "c.conf", "--dry-run", "--master-ui", NO_PAGE), 2, "systemParameters");
    assert_int_equal(access(STORE, F_OK), -1);
}

/* Nobody says what the workers are: what they do not grant is found out once, for all trials of the study, now and later. */
static const struct {
    const char *name, *app, *policy;
} refusals[] = {
    { "submissions", "", "pipetune" },
    { "a session", ", \"session\": true", "pipetune" },
    { "settings that never change", "", "v1" },
};

static void test_what_was_not_granted_is_not_asked_for_again(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        const char *name = refusals[i].name;
        bool warm = *refusals[i].app;
        (void)setenv("FAKE_WORKERS", "1:2,1:2", 1);
        (void)unlink(STORE);
        write_study(w, refusals[i].app, "{ \"cores\": [\"2\", \"1\"] }", TWO_POINTS);
        expect(name, RUN(w, "run", "c.conf", "--master-ui", NO_PAGE, "--policy", refusals[i].policy), 0,
               "no executor was granted in 2 s");
        harness_expect_rows(name, STORE, TRIALS, "1|finished 2|finished");
        harness_expect_rows(name, STORE, OUTCOMES, warm ? "finished finished" : "refused_setting finished finished");
        harness_expect_rows(name, STORE, "SELECT count(*) FROM decisions WHERE kind = 'refused'", "1");
        if (!warm)
            expect_option(name, "--executor-cores", "2 1 1");
        harness_remove(harness_path(w->dir, "pipetune.d"));
    }
    (void)unsetenv("FAKE_WORKERS");
}

static void test_a_later_driver_knows_what_was_not_granted(void **state)
{
    struct world *w = *state;
    (void)setenv("FAKE_WORKERS", "1:2,1:2", 1);
    write_study(w, "", "{ \"cores\": [\"2\", \"1\"] }", TWO_POINTS);
    expect("first", RUN(w, "run", "c.conf", "--master-ui", NO_PAGE, "--max-trials", "1"), 0, "no executor was granted");
    expect("second", RUN(w, "run", "c.conf", "--master-ui", NO_PAGE, "--max-trials", "2"), 0, NULL);
    harness_expect_rows("outcomes", STORE, OUTCOMES, "refused_setting finished finished");
    (void)unsetenv("FAKE_WORKERS");
}

/* Nothing of the study can be had: each trial says so, and only the first has waited. */
static void test_what_cannot_be_had_at_all_is_infeasible_at_once(void **state)
{
    struct world *w = *state;
    (void)setenv("FAKE_WORKERS", "1:2", 1);
    write_study(w, "", "{ \"cores\": [\"2\"] }", TWO_POINTS);
    expect("study", RUN(w, "run", "c.conf", "--master-ui", NO_PAGE), 1, "1 of 2 cores were granted in 2 s");
    harness_expect_rows("trials", STORE, TRIALS, "1|infeasible 2|infeasible");
    harness_expect_rows("attempts", STORE, OUTCOMES, "refused_setting infeasible");
    expect_option("attempts", "--executor-cores", "2 1");
    (void)unsetenv("FAKE_WORKERS");
}

/* What another one has taken, or what a trial of ours that was left running holds. */
static void test_a_study_that_is_gone_on_with_has_what_it_had(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "2:4");
    write_study(w, "", "{ \"cores\": [\"2\", \"1\"] }", TWO_POINTS);
    (void)setenv("FAKE_EPOCH_MS", "2500", 1);
    LEAVE(w, "run", "c.conf", "--master-ui", c.url);
    buf_clear(&c.page);
    write_page(&c.page, "2:4");
    char *free_cores = strstr(c.page.data, "\"coresfree\":2");
    assert_non_null(free_cores);
    free_cores[strlen("\"coresfree\":")] = '1';
    sink_answer(c.sink, buf_text(&c.page));
    (void)setenv("FAKE_EPOCH_MS", "50", 1);
    expect("gone on with", RUN(w, "run", "c.conf", "--master-ui", c.url), 0, NULL);
    expect_option("both", "--total-executor-cores", "2 1"); /* what is left of it */
    cluster_close(&c);
}

/* … and its application has begun. */
static bool holds(void *sql)
{
    AUTO_FREE char *heard = harness_read("pipetune.d/s/1", "heard");
    AUTO_FREE char *got = heard && *heard ? harness_ask(STORE, sql) : NULL;
    return got && strcmp(got, "1") == 0;
}

static void end_when(pid_t driver, const char *sql, int sig, int code)
{
    if (!harness_wait(holds, (void *)(uintptr_t)sql, HARNESS_MS))
        fail_msg("never: %s", sql);
    assert_int_equal(kill(driver, sig), 0);
    assert_int_equal(harness_exit_code(driver, HARNESS_MS), code);
}

/* The later driver waits no longer than the first would have. */
static void test_a_later_driver_waits_for_executors_too(void **state)
{
    struct world *w = *state;
    (void)setenv("FAKE_WORKERS", "1:2,1:2", 1);
    write_study(w, "", "{ \"cores\": [\"2\", \"1\"] }", ONE_POINT);
#define LONGER "run", "c.conf", "--master-ui", NO_PAGE, "--grant-seconds", "3"
    end_when(START(w, -1, LONGER), "SELECT state = 'running' FROM attempts", SIGKILL, 128 + SIGKILL);
    free(harness_ask(STORE, "UPDATE attempts SET app_id = 'app-1'")); /* as with what was read back of its CPUs */
    expect("later", RUN(w, LONGER), 0, "no executor was granted in 3 s");
    harness_expect_rows("outcomes", STORE, OUTCOMES, "refused_setting finished");
    (void)unsetenv("FAKE_WORKERS");
}

/* What it had when it was interrupted is no result of a trial that cannot be gone on with. */
static void test_a_trial_that_is_given_up_tells_no_result(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "2:4");
    write_study(w, "", "{ \"cores\": [\"2\"], \"memory\": [\"3\"] }", ONE_POINT);
    (void)setenv("FAKE_EPOCH_MS", "1000", 1);
#define TWO_EPOCHS "run", "c.conf", "--master-ui", c.url, "--epochs", "2"
    end_when(START(w, -1, TWO_EPOCHS), "SELECT count(*) FROM epochs", SIGINT, 130);
    buf_clear(&c.page);
    write_page(&c.page, "2:2");
    sink_answer(c.sink, buf_text(&c.page));
    expect("given up", RUN(w, TWO_EPOCHS), 1, "memory 3 GiB is more than the 2 GiB there are");
    harness_expect_rows("trials", STORE, TRIALS, "1|infeasible");
    harness_expect_rows("told", STORE, "SELECT count(*), count(value) FROM tells WHERE done = 1", "1|0");
    cluster_close(&c);
}

/* --- trials beside each other ------------------------------------------------------------------------------------------- */

/* Attempts that ran while the N-th began, itself among them. */
#define AT_ONCE                                                                                                        \
    "SELECT max((SELECT count(*) FROM attempts b WHERE b.started_ms <= a.started_ms AND b.ended_ms > a.started_ms))"   \
    " FROM attempts a"
#define MANY_POINTS "{ \"batch_size\": [64], \"learning_rate\": [0.1, 0.05, 0.02, 0.01] }"

static const struct {
    const char *name, *workers, *system, *parallel, *policy, *at_once;
} packings[] = {
    { "as many as there is room for", "1:2,2:4", "{ \"cores\": [\"1\"] }", "auto", "pipetune", "3" },
    { "settings that never change, too", "1:2,2:4", "{ \"cores\": [\"1\"] }", "auto", "v1", "3" },
    { "no more than the user says", "1:2,2:4", "{ \"cores\": [\"1\"] }", "2", "pipetune", "2" },
    { "memory is what there is least of", "4:3", "{ \"cores\": [\"1\"], \"memory\": [\"1.5\"] }", "auto", "pipetune",
      "2" },
    { "a worker's cores are no other one's", "1:2,2:4", "{ \"cores\": [\"2\"], \"executors\": [\"1\"] }", "auto",
      "pipetune", "1" },
};

static void test_trials_are_packed(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(packings); i++) {
        struct cluster c;
        cluster_open(&c, packings[i].workers);
        write_study(w, "", packings[i].system, MANY_POINTS);
        (void)setenv("FAKE_EPOCH_MS", "1500", 1);
        (void)unlink(STORE);
        expect(packings[i].name,
               RUN(w, "run", "c.conf", "--master-ui", c.url, "--parallel", packings[i].parallel, "--policy",
                   packings[i].policy),
               0, NULL);
        harness_expect_rows(packings[i].name, STORE, "SELECT count(*), min(state), max(state) FROM trials",
                            "4|finished|finished");
        harness_expect_rows(packings[i].name, STORE, AT_ONCE, packings[i].at_once);
        harness_expect_rows(packings[i].name, STORE, "SELECT count(*) FROM attempts", "4");
        harness_remove(harness_path(w->dir, "pipetune.d"));
        cluster_close(&c);
    }
}

static bool told(void *text)
{
    AUTO_FREE char *out = harness_read(".", "out");
    return out && strstr(out, text);
}

static void expect_told(const char *text)
{
    if (!harness_wait(told, (void *)(uintptr_t)text, HARNESS_MS)) {
        AUTO_FREE char *out = harness_read(".", "out");
        fail_msg("said '%s', want '%s'", out ? out : "", text);
    }
}

/* Its words are in the file `out`. */
static pid_t start_told(struct world *w, const char *url)
{
    AUTO_CLOSE int out = open("out", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return START(w, out, "run", "c.conf", "--master-ui", url, "--store", STORE);
}

static void answer_with(struct cluster *c, const char *workers, const char *apps)
{
    sink_answer(c->sink, NULL);
    buf_clear(&c->page);
    write_page_with(&c->page, workers, apps);
    sink_answer(c->sink, buf_text(&c->page));
}

/* While others have all of it nothing is started. */
static void test_a_cluster_that_others_have_is_waited_for(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "2:4B");
    write_study(w, "", "{ \"cores\": [\"2\"] }", ONE_POINT);
    pid_t pid = start_told(w, c.url);
    expect_told("waits for room on the cluster: 0 of its 2 cores are free");
    harness_expect_rows("attempts", STORE, "SELECT count(*) FROM attempts", "0");
    answer_with(&c, "2:4", "");
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    harness_expect_rows("trials", STORE, TRIALS, "1|finished");
    cluster_close(&c);
}

/* What was free when it was launched others have taken before it came. */
static void test_what_was_crowded_out_is_placed_again(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "2:4");
    (void)setenv("FAKE_WORKERS", "1:4", 1);
    write_study(w, "", "{ \"cores\": [\"2\"], \"executors\": [\"2\"] }", ONE_POINT);
    pid_t pid = start_told(w, c.url);
    expect_told("s/1: attempt 1 started");
    answer_with(&c, "2:4B", "");
    expect_told("it is placed again");
    harness_expect_rows("attempts", STORE, "SELECT outcome, cause FROM attempts",
                        "interrupted|1 of 2 cores were granted in 2 s: 0 of its 2 cores are free; it is placed again");
    harness_expect_rows("refusals", STORE, "SELECT count(*) FROM decisions WHERE kind = 'refused'", "0");
    (void)setenv("FAKE_WORKERS", "2:4", 1);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    answer_with(&c, "2:4", "");
    expect("again", RUN(w, "run", "c.conf", "--master-ui", c.url), 0, NULL);
    harness_expect_rows("trials", STORE, TRIALS, "1|finished");
    cluster_close(&c);
}

/* A cluster that does not answer any more starts nothing; what runs goes on. */
static void test_a_master_that_goes_away_is_waited_for(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "1:4");
    write_study(w, "", "{ \"cores\": [\"1\"] }", TWO_POINTS);
    (void)setenv("FAKE_EPOCH_MS", "3000", 1);
    pid_t pid = start_told(w, c.url);
    expect_told("s/1: attempt 1 started");
    sink_answer(c.sink, SINK_BUSY);
    expect_told("s/1: finished");
    expect_told("the master cannot be asked what is free: 'http://127.0.0.1:");
    harness_expect_rows("attempts", STORE, "SELECT count(*) FROM attempts", "1");
    answer_with(&c, "1:4", "");
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    expect_told("the master can be asked again");
    harness_expect_rows("trials", STORE, TRIALS, "1|finished 2|finished");
    cluster_close(&c);
}

static bool has_ended(void *store)
{
    if (access("pipetune.d/s/1/exit", F_OK) != 0)
        return false;
    AUTO_FREE char *got =
        harness_ask(store, "SELECT count(*) FROM attempts WHERE app_id IS NOT NULL AND state = 'ended'");
    return got && strcmp(got, "1") == 0;
}

/* The cluster still has the application of a launch that is over. */
static void test_what_is_left_there_is_ended(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "1:4");
    write_study(w, "", "{ \"cores\": [\"1\"] }", TWO_POINTS);
    (void)setenv("FAKE_EPOCH_MS", "9000", 1);
    pid_t pid = start_told(w, c.url);
    assert_true(harness_wait(has_ended, (void *)(uintptr_t)STORE, HARNESS_MS));
    AUTO_FREE char *id = harness_ask(STORE, "SELECT app_id FROM attempts WHERE trial = 1");
    AUTO_FREE char *apps = NULL;
    assert_true(asprintf(&apps, "{\"id\":\"%s\",\"cores\":1,\"state\":\"RUNNING\"}", id) > 0);
    answer_with(&c, "1:4", apps);
    expect_told("of a launch that is over: it was told to end it");
    assert_int_equal(kill(pid, SIGINT), 0);
    (void)harness_exit_code(pid, HARNESS_MS);
    cluster_close(&c);
}

/* YARN replaces for ever what it has killed. */
static void test_executors_that_are_killed_for_their_memory_end_the_trial(void **state)
{
    struct world *w = *state;
    write_study(w, "", "{ \"cores\": [\"2\"] }", ONE_POINT);
    (void)setenv("FAKE_FAIL", "starve", 1);
    expect("starved", RUN(w, "run", "c.conf", "--master-ui", NO_PAGE, "--policy", "v1"), 1,
           "out_of_memory: its cluster killed 3 of its executors for exceeding their memory; raise memory");
    harness_expect_rows("trials", STORE, TRIALS, "1|infeasible");
    harness_expect_rows("attempts", STORE, "SELECT count(*) FROM attempts", "1");
    (void)unsetenv("FAKE_FAIL");
}

/* --- warm sessions ------------------------------------------------------------------------------------------------------ */

#define SESSION ", \"session\": true"

/* Its launcher has noted how it ended. */
static void expect_session_ended(const char *number)
{
    AUTO_FREE char *dir = NULL;
    assert_true(asprintf(&dir, "pipetune.d/s/session-%s", number) > 0);
    if (!harness_wait_file(dir, "exit", HARNESS_MS))
        fail_msg("session %s has not ended", number);
}

/* What a session's log tells of how the master knows it. */
struct id_of {
    const char *dir;
    char *id;
};

static bool tells_id(void *arg)
{
    static const char mark[] = "app ID ";
    struct id_of *a = arg;
    AUTO_FREE char *heard = harness_read(a->dir, "heard");
    const char *at = heard ? strstr(heard, mark) : NULL;
    size_t len = at ? strcspn(at, "\n") : 0;
    if (!at || at[len] != '\n')
        return false;
    a->id = strndup(at + strlen(mark), len - strlen(mark));
    return true;
}

/* Free it. */
static char *app_of_session(const char *number)
{
    AUTO_FREE char *dir = NULL;
    assert_true(asprintf(&dir, "pipetune.d/s/session-%s", number) > 0);
    struct id_of a = { .dir = dir };
    if (!harness_wait(tells_id, &a, HARNESS_MS))
        fail_msg("session %s tells no id", number);
    return a.id;
}

static void expect_sessions(const char *name, const struct world *w, size_t want)
{
    AUTO_FREE char *count = harness_read(w->dir, "count");
    size_t got = harness_count(count ? count : "", "session pt-");
    if (got != want)
        fail_msg("%s: %zu sessions were started, want %zu:\n%s", name, got, want, count ? count : "");
}

/* The room that its own session was to have is not others'. */
static void test_a_session_that_is_not_granted_what_is_free_is_refused(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "2:4");
    (void)setenv("FAKE_WORKERS", "1:4", 1);
    write_study(w, SESSION, "{ \"cores\": [\"2\"], \"executors\": [\"2\"] }", ONE_POINT);
    expect("refused", RUN(w, "run", "c.conf", "--master-ui", c.url), 1, "1 of 2 cores were granted in 2 s");
    harness_expect_rows("trials", STORE, TRIALS, "1|infeasible");
    cluster_close(&c);
}

/* Others took what one of two was to have: when they are gone two run beside each other again. */
static void test_one_that_was_crowded_out_is_no_bound_on_trials_at_once(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "1:4,1:4");
    write_study(w, SESSION, "{ \"cores\": [\"1\"] }", TWO_POINTS);
    (void)setenv("FAKE_FAIL", "session-waits-1", 1);
    (void)setenv("FAKE_EPOCH_MS", "15000", 1);
    pid_t pid = start_told(w, c.url);
    AUTO_FREE char *first = app_of_session("1");
    AUTO_FREE char *second = app_of_session("2");
    AUTO_FREE char *waiting = NULL, *running = NULL; /* whichever of them has what it asked for */
#define BOTH(state)                                                                                                    \
    "{\"id\":\"%s\",\"cores\":%d,\"state\":\"" state "\"},{\"id\":\"%s\",\"cores\":%d,\"state\":\"" state "\"}"
    assert_true(asprintf(&waiting, BOTH("WAITING"), first, 0, second, 0) > 0);
    assert_true(asprintf(&running, BOTH("RUNNING"), first, 1, second, 1) > 0);
    answer_with(&c, "1:4B,1:4B", waiting);
    expect_told("its session had no room: the master has it waiting; 0 of its 2 cores are free; it is placed again");
    answer_with(&c, "1:4B,1:4", running);
    assert_true(harness_wait_file("pipetune.d/s/session-3", "pid", HARNESS_MS));
    harness_expect_rows("meanwhile", STORE, "SELECT count(*) FROM trials WHERE state = 'finished'", "0");
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    cluster_close(&c);
}

/* Nobody knows on which worker it lies: what is free and what it has may be one piece. */
static void test_an_idle_session_goes_for_what_fits_nowhere_else(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "3:4");
    write_study(w, SESSION, "{ \"cores\": [\"3\", \"2\"], \"executors\": [\"1\"] }",
                "{ \"batch_size\": [64, 63], \"learning_rate\": [0.1] }");
    (void)setenv("FAKE_EPOCH_MS", "2000", 1);
    pid_t pid = start_told(w, c.url);
    expect_told("s/1: attempt 1 started");
    answer_with(&c, "3:4F1", "");
    expect_session_ended("1");
    answer_with(&c, "3:4", "");
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    harness_expect_rows("trials", STORE, "SELECT number, state, slots FROM trials ORDER BY number",
                        "1|finished|2 2|finished|3");
    cluster_close(&c);
}

static bool any_session_ended(void *unused)
{
    (void)unused;
    return access("pipetune.d/s/session-1/exit", F_OK) == 0 || access("pipetune.d/s/session-2/exit", F_OK) == 0;
}

/* One of two trials is paused: others may wait for what its session has, while the other one trains on. */
static void test_a_session_does_not_stay_idle_for_long(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "1:4,1:4");
    write_study(w, SESSION, "{ \"cores\": [\"1\"] }", TWO_POINTS);
    (void)setenv("FAKE_EPOCH_MS", "2000", 1);
    pid_t pid = START(w, -1, "run", "c.conf", "--master-ui", c.url, "--store", STORE, "--stop", "halving", "--epochs",
                      "9", "--eta", "9");
    assert_true(harness_wait(any_session_ended, NULL, HARNESS_MS));
    harness_expect_rows("meanwhile", STORE, "SELECT state FROM trials ORDER BY state", "paused running");
    assert_int_equal(kill(pid, SIGINT), 0);
    (void)harness_exit_code(pid, HARNESS_MS);
    cluster_close(&c);
}

/* What was granted is there, whoever answers. */
static void test_a_session_serves_while_the_master_is_away(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "1:4");
    write_study(w, SESSION, "{ \"cores\": [\"1\"] }", MANY_POINTS);
    (void)setenv("FAKE_EPOCH_MS", "3000", 1);
    pid_t pid = start_told(w, c.url);
    expect_told("s/1: attempt 1 started");
    sink_answer(c.sink, SINK_BUSY);
    expect_told("the master cannot be asked what is free: 'http://127.0.0.1:");
    expect_told("s/4: finished");
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    expect_sessions("away", w, 1);
    cluster_close(&c);
}

/* Beside each other, or one after the other: the trials of one come first then. */
static void test_two_kinds_of_sessions_are_started_once_each(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name, *workers;
    } rooms[] = { { "room for both", "3:4,5:4" }, { "room for one", "3:4" } };
    for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
        struct cluster c;
        cluster_open(&c, rooms[i].workers);
        write_study(w, SESSION, "{ \"cores\": [\"3\", \"2\"], \"executors\": [\"1\"] }",
                    "{ \"learning_rate\": [0.1, 0.05], \"batch_size\": [64, 63] }");
        (void)setenv("FAKE_SESSION_MS", "500", 1); /* what the master calls it is read meanwhile */
        (void)unlink(STORE), (void)unlink("count");
        expect(rooms[i].name, RUN(w, "run", "c.conf", "--master-ui", c.url, "--parallel", "1"), 0, NULL);
        expect_sessions(rooms[i].name, w, 2);
        harness_remove(harness_path(w->dir, "pipetune.d"));
        cluster_close(&c);
    }
}

/* It never got a trial, and nobody knows what it was launched with: it holds what the new one's need. */
static void test_a_session_that_a_killed_driver_was_starting_is_ended(void **state)
{
    struct world *w = *state;
    struct cluster c;
    cluster_open(&c, "1:4");
    write_study(w, SESSION, "{ \"cores\": [\"1\"] }", ONE_POINT);
    (void)setenv("FAKE_SESSION_MS", "600000", 1);
#define PATIENT "run", "c.conf", "--master-ui", c.url, "--store", STORE, "--grant-seconds", "600"
    pid_t pid = START(w, -1, PATIENT);
    free(app_of_session("1")); /* it has begun */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 128 + SIGKILL);
    answer_with(&c, "1:4B", "");
    (void)unsetenv("FAKE_SESSION_MS");
    pid = START(w, -1, PATIENT);
    expect_session_ended("1");
    answer_with(&c, "1:4", "");
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    harness_expect_rows("trials", STORE, TRIALS, "1|finished");
    cluster_close(&c);
}

/* --- CPUs of the workers ------------------------------------------------------------------------------------------------ */

static size_t occurrences(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* Executors that there are, on two cores of this machine. */
static void run_executors(struct world *w, size_t shared)
{
    AUTO_FREE char *executor = harness_program("tests/integration/fake-tagged");
    char want[128];
    (void)snprintf(want, sizeof want, "shares its CPUs with process %ld of user %ld", (long)getpid(), (long)geteuid());
    write_study(w, "", "{ \"cores\": [\"2\", \"1\"] }", ONE_POINT);
    (void)setenv("FAKE_EXECUTOR", executor, 1);
    (void)setenv("FAKE_EPOCH_MS", "3000", 1), (void)setenv("FAKE_ITERATIONS", "30", 1);
    struct harness_output o = RUN(w, "run", "c.conf", "--master-ui", NO_PAGE);
    (void)unsetenv("FAKE_EXECUTOR");
    if (o.code != 0 || occurrences(o.out, want) != shared)
        fail_msg("exit %d; said '%s' and '%s', want %zu times '%s'", o.code, o.out, o.err, shared, want);
    harness_output_done(&o);
}

static void test_executors_on_cpus_of_others_are_told_once(void **state)
{
    struct world *w = *state;
    cpu_set_t machine;
    assert_int_equal(sched_getaffinity(0, sizeof machine, &machine), 0);
    if (CPU_COUNT(&machine) < 2) {
        print_message("SKIP needs two CPUs\n");
        skip();
    }
    run_executors(w, 0);
    (void)unlink(STORE);
    harness_remove(harness_path(w->dir, "pipetune.d"));
    struct leases *ours = leases_of_cpus();
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        assert_true(!CPU_ISSET(cpu, &machine) || leases_hold(ours, (int)cpu));
    run_executors(w, 1);
    leases_free(ours);
}

/* --- what is waited for ------------------------------------------------------------------------------------------------ */

static bool says_so(void *text)
{
    AUTO_FREE char *out = harness_read(".", "out");
    return out && strstr(out, text);
}

static const struct {
    const char *name, *app, *variable, *value, *say;
    const char *shown; /* NULL: a session comes up, of which the store knows nothing yet */
} waits[] = {
    { "executors", "", "FAKE_WORKERS", "1:2", "s/1: waiting for executors: 1 of 2 cores granted\n",
      "now: waiting for executors: 1 of 2 cores granted" },
    { "executors of a session", ", \"session\": true", "FAKE_WORKERS", "1:2",
      "s/1: waiting for executors: 1 of 2 cores granted\n", NULL },
    { "Spark", "", "FAKE_START_MS", "60000", "s/1: starting Spark\n", "now: starting Spark" },
    { "Spark of a session", ", \"session\": true", "FAKE_START_MS", "60000", "s/1: starting Spark\n", NULL },
    { "a session", ", \"session\": true", "FAKE_SESSION_MS", "60000", "s/1: the session is coming up\n", NULL },
    { "data", "", "FAKE_EPOCH_MS", "600000", "s/1: reading the data\n", "now: reading the data" },
    { "data in a session", ", \"session\": true", "FAKE_EPOCH_MS", "600000", "s/1: reading the data\n",
      "now: reading the data" },
};

static void test_a_wait_says_what_for(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        write_study(w, waits[i].app, "{ \"cores\": [\"2\"], \"executors\": [\"2\"] }", ONE_POINT);
        (void)unsetenv("FAKE_EPOCH_MS");
        (void)setenv(waits[i].variable, waits[i].value, 1);
        (void)unlink(STORE), (void)unlink("out");
        AUTO_CLOSE int out = open("out", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        pid_t pid = START(w, out, "run", "c.conf", "--master-ui", NO_PAGE, "--grant-seconds", "60");
        if (!harness_wait(says_so, (void *)(uintptr_t)waits[i].say, HARNESS_MS)) {
            AUTO_FREE char *said = harness_read(".", "out");
            fail_msg("%s: said '%s', want '%s'", waits[i].name, said, waits[i].say);
        }
        if (waits[i].shown) {
            struct harness_output o = RUN(w, "show", "s/1");
            if (o.code != 0 || !strstr(o.out, waits[i].shown))
                fail_msg("%s: shown '%s', want '%s'", waits[i].name, o.out, waits[i].shown);
            harness_output_done(&o);
        }
        assert_int_equal(kill(pid, SIGINT), 0);
        assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
        AUTO_FREE char *said = harness_read(".", "out");
        assert_int_equal(harness_count(said, waits[i].say), 1);
        (void)unsetenv(waits[i].variable);
        harness_remove(harness_path(w->dir, "pipetune.d"));
    }
}

/* All that a terminal was written goes to `all`, until `text` is among it; false: it does not come. */
static bool terminal_shows(int master, struct buf *all, const char *text)
{
    char chunk[4096];
    ssize_t n;
    struct pollfd p = { .fd = master, .events = POLLIN };
    while (!strstr(buf_text(all), text)) {
        if (poll(&p, 1, HARNESS_MS) != 1 || (n = read(master, chunk, sizeof chunk)) <= 0)
            return false;
        buf_put(all, chunk, (size_t)n);
    }
    return true;
}

static void test_a_terminal_shows_it_at_once(void **state)
{
    struct world *w = *state;
    int master, slave;
    AUTO_BUF struct buf all = BUF_INIT;
    struct winsize size = { .ws_row = 24, .ws_col = 100 };
    write_study(w, ", \"session\": true", "{ \"cores\": [\"2\"], \"executors\": [\"2\"] }", ONE_POINT);
    (void)setenv("FAKE_WORKERS", "1:2", 1);
    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    pid_t pid = START(w, slave, "run", "c.conf", "--master-ui", NO_PAGE, "--grant-seconds", "60");
    (void)close(slave);
    assert_true(terminal_shows(master, &all, "  s/1  starting Spark"));
    assert_true(terminal_shows(master, &all, "  s/1  waiting for executors: 1 of 2 cores granted"));
    assert_int_equal(kill(pid, SIGINT), 0);
    (void)terminal_shows(master, &all, "\1"); /* what is written still, to its end */
    (void)close(master);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    (void)unsetenv("FAKE_WORKERS");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_shape_runs_what_it_has),
        TEST(test_a_dry_run_tells_by_what_is_known),
        TEST(test_what_was_not_granted_is_not_asked_for_again),
        TEST(test_a_later_driver_knows_what_was_not_granted),
        TEST(test_a_later_driver_waits_for_executors_too),
        TEST(test_a_trial_that_is_given_up_tells_no_result),
        TEST(test_what_cannot_be_had_at_all_is_infeasible_at_once),
        TEST(test_a_study_that_is_gone_on_with_has_what_it_had),
        TEST(test_trials_are_packed),
        TEST(test_a_cluster_that_others_have_is_waited_for),
        TEST(test_what_was_crowded_out_is_placed_again),
        TEST(test_a_master_that_goes_away_is_waited_for),
        TEST(test_what_is_left_there_is_ended),
        TEST(test_executors_that_are_killed_for_their_memory_end_the_trial),
        TEST(test_a_session_that_is_not_granted_what_is_free_is_refused),
        TEST(test_one_that_was_crowded_out_is_no_bound_on_trials_at_once),
        TEST(test_an_idle_session_goes_for_what_fits_nowhere_else),
        TEST(test_a_session_does_not_stay_idle_for_long),
        TEST(test_a_session_serves_while_the_master_is_away),
        TEST(test_two_kinds_of_sessions_are_started_once_each),
        TEST(test_a_session_that_a_killed_driver_was_starting_is_ended),
        TEST(test_executors_on_cpus_of_others_are_told_once),
        TEST(test_a_wait_says_what_for),
        TEST(test_a_terminal_shows_it_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
