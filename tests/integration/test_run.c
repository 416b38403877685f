/* `pipetune run` from end to end over a fake spark-submit: what it does, stores, prints and leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "base/strv.h"
#include "tests/integration/harness.h"

#define CONFIG(more)                                                                                                   \
    "{ \"bigdlConf\": \"app.json\",\n  \"study\": { \"name\": \"s\", \"epochs\": 1 },\n" more WORLD_HYPER " }\n"

static size_t of_this_world(const struct world *w)
{
    return world_processes(w, 0);
}

/* --- what the fake wrote of itself: "TAG EPOCHS FIRST-EPOCH PID" at each start, "trained TAG EPOCH" ------------------- */

static size_t starts(const struct world *w)
{
    AUTO_FREE char *text = harness_read(w->dir, "count");
    return text ? harness_count(text, "\npt-") + (strncmp(text, "pt-", 3) == 0) : 0;
}

static size_t trained(const struct world *w)
{
    AUTO_FREE char *text = harness_read(w->dir, "count");
    return text ? harness_count(text, "trained ") : 0;
}

/* The greatest first epoch of all starts. */
static int last_first_epoch(const struct world *w)
{
    AUTO_FREE char *text = harness_read(w->dir, "count");
    int most = 0, epochs, first;
    char *save = NULL;
    for (char *l = text ? strtok_r(text, "\n", &save) : NULL; l; l = strtok_r(NULL, "\n", &save))
        if (sscanf(l, "pt-%*s %d %d", &epochs, &first) == 2 && first > most)
            most = first;
    return most;
}

struct number {
    const struct world *w;
    size_t (*of)(const struct world *w);
    size_t at_least;
};

static bool reached(void *arg)
{
    const struct number *n = arg;
    return n->of(n->w) >= n->at_least;
}

static void wait_for(const struct world *w, size_t (*of)(const struct world *w), size_t at_least)
{
    struct number n = { w, of, at_least };
    if (!harness_wait(reached, &n, HARNESS_MS))
        fail_msg("got %zu, want %zu", of(w), at_least);
}

static bool nothing_left(void *arg)
{
    return world_processes(arg, 0) == 0;
}

/* --- running ---------------------------------------------------------------------------------------------------------- */

static void expect_exit(const char *name, struct harness_output o, int code)
{
    if (o.code != code)
        fail_msg("%s: got exit %d, want %d\n%s%s", name, o.code, code, o.out, o.err);
    harness_output_done(&o);
}

static void expect_error(const char *name, struct harness_output o, int code, const char *word)
{
    if (o.code != code || !strstr(o.err, word) || harness_count(o.err, "\n") != 1)
        fail_msg("%s: got exit %d and '%s', want %d and one line with '%s'", name, o.code, o.err, code, word);
    harness_output_done(&o);
}

#define TRIALS "SELECT number, state FROM trials ORDER BY number"
#define ATTEMPTS "SELECT count(*) FROM attempts"

static void write_config(const struct world *w, const char *sections, const char *hyper)
{
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&text,
                         "{ \"bigdlConf\": \"app.json\",\n  \"study\": { \"name\": \"s\", \"epochs\": 2 },\n  %s%s }\n",
                         sections, hyper) > 0);
    harness_write(w->dir, "c.conf", text);
}

static void one_trial(const struct world *w)
{
    write_config(w, "", "\"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1] }");
}

static void two_trials(const struct world *w)
{
    write_config(w, "", WORLD_HYPER);
}

/* --- settings, dry run, spelling of the command ----------------------------------------------------------------------- */

/* The seed's own files, as they are, below the world. */
static void copy_seed_files(const struct world *w)
{
    static const char *const files[][2] = { { "conf/pipetune.conf", "pipetune.conf" },
                                            { "bigdl/config/mnist.json", "bigdl/config/mnist.json" } };
    world_dir(w, "bigdl/config");
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_BUF struct buf text = BUF_INIT;
        AUTO_CLOSE int fd = openat(w->tree, files[i][0], O_RDONLY | O_CLOEXEC);
        char chunk[4096];
        for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) > 0;)
            buf_put(&text, chunk, (size_t)n);
        assert_true(text.len > 0);
        harness_write(w->dir, files[i][1], buf_text(&text));
    }
    harness_write(w->dir, "bigdl/spark-bigdl.conf", "");
}

static void test_the_three_section_config_as_it_is(void **state)
{
    struct world *w = *state;
    copy_seed_files(w);
    expect_exit("pipetune.conf", RUN(w, "--config", "pipetune.conf", "--max-trials", "2", "--epochs", "1"), 0);
    harness_expect_rows("trials", "pipetune.db", TRIALS, "1|finished 2|finished");
    harness_expect_rows("the first point", "pipetune.db", "SELECT hyper FROM trials WHERE number = 1",
                        "{\"batch_size\": 1024, \"learning_rate\": 0.001, \"learning_rate_decay\": 0.002}");
    harness_expect_rows("the last counts fastest", "pipetune.db", "SELECT hyper ->> 'learning_rate_decay' FROM trials",
                        "0.002 0.02");
    harness_expect_rows("as asked", "pipetune.db", "SELECT DISTINCT requested ->> 'cores' FROM trials", "16");
    AUTO_FREE char *slots =
        harness_ask("pipetune.db", "SELECT DISTINCT slots || ' ' || (effective ->> 'cores') FROM trials");
    int n = 0, effective = 0;
    cpu_set_t here;
    assert_int_equal(sched_getaffinity(0, sizeof here, &here), 0);
    assert_int_equal(sscanf(slots, "%d %d", &n, &effective), 2);
    assert_int_equal(n, effective);
    assert_true(n >= 1 && n <= CPU_COUNT(&here) && n <= 16 && 1024 % n == 0);
    if (CPU_COUNT(&here) == 2)
        assert_int_equal(n, 2);
    AUTO_FREE char *log = harness_ask("pipetune.db", "SELECT argv FROM attempts LIMIT 1");
    char local[32];
    (void)snprintf(local, sizeof local, "local[%d]", n);
    assert_non_null(strstr(log, local));
}

static void test_a_dry_run_needs_nothing_and_makes_nothing(void **state)
{
    struct world *w = *state;
    char *nothing[] = { NULL }, **full = environ;
    copy_seed_files(w);
    AUTO_FREE char *jar = harness_path(w->dir, "bigdl/bigdl-dllib.jar");
    assert_int_equal(unlink(jar), 0);
    environ = nothing; /* no Spark, no Java, no HOME, no PATH */
    struct harness_output o = RUN(w, "run", "--dry-run", "pipetune.conf");
    struct harness_output same = RUN(w, "--config=pipetune.conf", "--dry-run");
    environ = full;
    assert_string_equal(o.err, "");
    assert_int_equal(o.code, 0);
    assert_int_equal(harness_count(o.out, "\n"), 36);
    assert_int_equal(harness_count(o.out, "spark-submit"), 36);
    assert_int_equal(harness_count(o.out, " -b 32 "), 9);
    assert_int_equal(harness_count(o.out, " --deploy-mode client "), 36);
    assert_string_equal(o.out, same.out);
    assert_false(io_exists("pipetune.db") || io_exists("pipetune.d") || io_exists(".pipetune"));
    harness_output_done(&o);
    harness_output_done(&same);
}

static void test_a_setting_entered_by_the_user(void **state)
{
    struct world *w = *state;
    write_config(
        w,
        "\"systemParameters\": { \"cores\": [2, 1], \"memory\": [2, 1], \"spark.locality.wait\": [\"1s\", \"0s\"] },\n",
        WORLD_HYPER);
    struct harness_output o = RUN(w, "run", "--dry-run", "c.conf", "--policy", "v1", "--setting", "cores=1,memory=1");
    assert_non_null(strstr(o.out, "local[1]"));
    assert_non_null(strstr(o.out, " --driver-memory 1g "));
    assert_non_null(strstr(o.out, "spark.locality.wait=1s"));
    harness_output_done(&o);
    /* A policy that narrows while it runs launches with all the slots there are, and begins there. */
    o = RUN(w, "run", "--dry-run", "c.conf", "--setting", "cores=1,memory=1");
    assert_null(strstr(o.out, "local[1]"));
    assert_non_null(strstr(o.out, " --driver-memory 1g "));
    harness_output_done(&o);
}

static void test_more_memory_than_there_is_is_infeasible(void **state)
{
    struct world *w = *state;
    write_config(w, "\"systemParameters\": { \"memory\": [60000] },\n", WORLD_HYPER);
    expect_exit("60000 GiB", RUN(w, "run", "c.conf"), 1);
    harness_expect_rows("no attempt", "pipetune.db", TRIALS, "1|infeasible 2|infeasible");
    harness_expect_rows("no attempt", "pipetune.db", ATTEMPTS, "0");
}

/* Trials begin with the next value of the list, and both are told. */
static void test_a_first_memory_that_cannot_be_had_is_told(void **state)
{
    struct world *w = *state;
    static const char told[] = "systemParameters.memory: 60000, 50000 GiB is more than the ";
    static const char *const dry[] = { "--dry-run", "--quiet" };
    write_config(w, "\"systemParameters\": { \"memory\": [60000, 1, 50000] },\n", WORLD_HYPER);
    for (size_t i = 0; i < ARRAY_LEN(dry); i++) {
        struct harness_output o = RUN(w, "run", dry[i], "c.conf");
        assert_int_equal(o.code, 0);
        if (!strstr(o.err, told) || !strstr(o.err, "; trials begin with 1 GiB\n"))
            fail_msg("%s: %s", dry[i], o.err);
        assert_true(i > 0 || harness_count(o.out, " --driver-memory 1g ") == 2);
        harness_output_done(&o);
    }
    harness_expect_rows("launched", "pipetune.db", "SELECT DISTINCT requested FROM trials", "{\"memory\": 1}");
    write_config(w, "\"systemParameters\": { \"memory\": [1, 60000] },\n", WORLD_HYPER);
    struct harness_output o = RUN(w, "run", "--dry-run", "c.conf");
    assert_non_null(strstr(o.err, "systemParameters.memory: 60000 GiB is more than the "));
    assert_null(strstr(o.err, "trials begin"));
    harness_output_done(&o);
}

static void test_places(void **state)
{
    struct world *w = *state;
    world_dir(w, "sub/lib");
    harness_write(w->dir, "sub/lib/a.jar", "");
    (void)setenv("FAKE_COUNT_FILE", "count", 1); /* any variable may be named */
    harness_write(w->dir, "sub/app2.json",
                  "{ \"conf\": \"lib/a.jar\", \"class\": \"x.Y\", \"extras\": { \"batchSize\": 1, \"max_epoch\": 1,"
                  " \"note\": \"${FAKE_COUNT_FILE}-$$x\" } }");
    harness_write(w->dir, "sub/c.conf",
                  "{ \"bigdlConf\": \"app2.json\", \"hyperParameters\": { \"batch_size\": [64] } }");
    struct harness_output o = RUN(w, "run", "--dry-run", "sub/c.conf", "--epochs", "7");
    assert_string_equal(o.err, "");
    AUTO_FREE char *jar = harness_path(w->dir, "sub/lib/a.jar");
    assert_non_null(strstr(o.out, jar)); /* beside the BigDL file, which lies beside the config */
    assert_non_null(strstr(o.out, "--note 'count-$x'"));
    assert_non_null(strstr(o.out, "--batchSize 64"));
    assert_non_null(strstr(o.out, "--max_epoch 7"));
    harness_output_done(&o);
    harness_write(w->dir, "sub/c.conf",
                  "{ \"bigdlConf\": \"app2.json\", \"spark\": { \"home\": \"spark-of-sub\" }, \"hyperParameters\": { "
                  "\"batch_size\": [64] } }");
    world_dir(w, "sub/spark-of-sub");
    AUTO_FREE char *submit = harness_path(w->dir, "sub/spark-of-sub/bin/spark-submit ");
    o = RUN(w, "run", "--dry-run", "sub/c.conf");
    assert_non_null(strstr(o.out, submit)); /* beside the config */
    harness_output_done(&o);
}

static void test_store_and_name(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "my study.conf",
                  "{ \"bigdlConf\": \"app.json\", \"study\": { \"epochs\": 1 },\n" WORLD_HYPER "}");
    world_dir(w, "a"), world_dir(w, "b"), world_dir(w, "c");
    world_point_at(w, "PIPETUNE_STORE", "a/env.db");
    expect_exit("PIPETUNE_STORE", RUN(w, "run", "my study.conf", "--max-trials", "1"), 0);
    expect_exit("--store", RUN(w, "run", "my study.conf", "--max-trials", "1", "--store", "b/option.db"), 0);
    assert_true(io_exists("a/env.db") && io_exists("a/pipetune.d") && io_exists("b/option.db") &&
                io_exists("b/pipetune.d"));
    assert_false(io_exists("pipetune.db") || io_exists("pipetune.d"));
    AUTO_FREE char *name = harness_ask("a/env.db", "SELECT name FROM studies");
    assert_int_equal(strncmp(name, "my_study-", 9), 0);
    assert_int_equal(strlen(name), strlen("my_study-") + 8);
    AUTO_FREE char *folder = harness_path("a/pipetune.d", name);
    assert_true(io_exists(folder));
}

/* --- going on ---------------------------------------------------------------------------------------------------------- */

static void test_a_finished_study_prints_its_result(void **state)
{
    struct world *w = *state;
    two_trials(w);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    expect_exit("first", RUN(w, "run", "c.conf"), 0);
    assert_int_equal(starts(w), 2);
    (void)unsetenv("SPARK_HOME");
    world_point_at(w, "SPARK_HOME", "spark");
    struct harness_output o = RUN(w, "run", "c.conf");
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "best: s/1"));
    harness_output_done(&o);
    assert_int_equal(starts(w), 2);
    harness_expect_rows("attempts", "pipetune.db", ATTEMPTS, "2");
}

/* Every row of every table, whatever comes with a later schema. Free it. */
static char *all_rows(const char *store)
{
    struct buf all = BUF_INIT;
    AUTO_FREE char *tables =
        harness_ask(store, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'");
    char *save = NULL;
    for (char *t = strtok_r(tables, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", t);
        AUTO_FREE char *rows = harness_ask(store, sql);
        buf_printf(&all, "%s: %s\n", t, rows ? rows : "");
    }
    return buf_take(&all);
}

static void test_a_finished_study_that_is_looked_at_stays_as_it_was(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name, *words[6];
    } looks[] = {
        { "run", { "run", "c.conf" } },
        { "run, as JSON", { "run", "c.conf", "--json" } },
        { "run, with a trace", { "run", "c.conf", "--trace", "t.h5" } },
        { "show", { "show", "s" } },
        { "report", { "report", "s", "--html", "s.html" } },
    };
    two_trials(w);
    expect_exit("first", RUN(w, "run", "c.conf"), 0);
    free(harness_ask("pipetune.db", "UPDATE studies SET ended_ms = 12345"));
    AUTO_FREE char *before = all_rows("pipetune.db");
    for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
        expect_exit(looks[i].name, world_run(w, looks[i].words), 0);
        AUTO_FREE char *after = all_rows("pipetune.db");
        if (strcmp(before, after) != 0)
            fail_msg("%s: got\n%s\nwant\n%s", looks[i].name, after, before);
    }
}

static void test_the_result_as_json(void **state)
{
    struct world *w = *state;
    two_trials(w);
    struct harness_output o = RUN(w, "run", "c.conf", "--json");
    assert_int_equal(o.code, 0);
    json_error_t why;
    json_t *j = json_loads(o.out, 0, &why);
    if (!j)
        fail_msg("%s: %s", why.text, o.out);
    assert_string_equal(json_string_value(json_object_get(j, "study")), "s");
    assert_int_equal(json_array_size(json_object_get(j, "trials")), 2);
    json_decref(j);
    harness_output_done(&o);
    o = RUN(w, "run", "c.conf", "--quiet");
    assert_string_equal(o.err, "");
    assert_null(strstr(o.out, "attempt 1 started"));
    harness_output_done(&o);
}

static void test_again_trains_again_under_another_name(void **state)
{
    struct world *w = *state;
    one_trial(w);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    expect_exit("first", RUN(w, "run", "c.conf"), 0);
    expect_exit("again", RUN(w, "run", "c.conf", "--again"), 0);
    expect_exit("again, with other keys", RUN(w, "run", "c.conf", "--again", "--epochs", "1"), 0);
    harness_expect_rows("names", "pipetune.db", "SELECT name, state FROM studies ORDER BY id",
                        "s|finished s@2|finished s@3|finished");
    assert_int_equal(starts(w), 3);
    assert_int_equal(trained(w), 5);
}

/* What learns gives the same for the same events, whose order is the machine's (test_life, test_search_contract); what draws, whatever happens. */
static void test_a_seed_gives_the_same_trials(void **state)
{
    struct world *w = *state;
    write_config(w, "",
                 "\"hyperParameters\": { \"batch_size\": [64, 128, 256, 512], \"learning_rate\": { \"min\": 0.001, "
                 "\"max\": 0.2, \"scale\": \"log\" } }");
    static const char *const seeds[] = { "7", "7", "8" };
    AUTO_FREE char *first = NULL;
    for (size_t i = 0; i < ARRAY_LEN(seeds); i++) {
        char store[16];
        (void)snprintf(store, sizeof store, "%zu.db", i);
        expect_exit("random",
                    RUN(w, "run", "c.conf", "--store", store, "--seed", seeds[i], "--max-trials", "3", "--algorithm",
                        "random", "--stop", "none"),
                    0);
        AUTO_FREE char *got = harness_ask(store, "SELECT hyper FROM trials ORDER BY number");
        if (i == 0)
            first = MOVE_PTR(got);
        else
            assert_int_equal(strcmp(first, got) == 0, i == 1);
        harness_remove(harness_path(w->dir, "pipetune.d"));
    }
}

static void test_more_trials_go_on(void **state)
{
    struct world *w = *state;
    two_trials(w);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    expect_exit("one", RUN(w, "run", "c.conf", "--max-trials", "1"), 0);
    harness_expect_rows("one", "pipetune.db", TRIALS, "1|finished");
    expect_exit("two", RUN(w, "run", "c.conf", "--max-trials", "2"), 0);
    harness_expect_rows("two", "pipetune.db", TRIALS, "1|finished 2|finished");
    assert_int_equal(starts(w), 2);
}

static void test_a_finished_study_that_goes_on_is_running(void **state)
{
    struct world *w = *state;
    static const char study[] = "SELECT state, ended_ms > 0 FROM studies";
    two_trials(w);
    expect_exit("one", RUN(w, "run", "c.conf", "--max-trials", "1"), 0);
    expect_exit("nothing to do", RUN(w, "run", "c.conf", "--max-trials", "1"), 0);
    harness_expect_rows("nothing to do", "pipetune.db", study, "finished|1");
    (void)setenv("FAKE_EPOCH_MS", "400", 1);
    LEAVE(w, "run", "c.conf", "--max-trials", "2");
    harness_expect_rows("one more", "pipetune.db", study, "running|0");
    expect_exit("to its end", RUN(w, "run", "c.conf", "--max-trials", "2"), 0);
    harness_expect_rows("to its end", "pipetune.db", study, "finished|1");
}

static void test_equal_points_are_trained_once(void **state)
{
    struct world *w = *state;
    /* A list cannot hold a value twice and `grid` meets each point once: the memo is for searches that draw. */
    one_trial(w);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    expect_exit("random", RUN(w, "run", "c.conf", "--algorithm", "random", "--max-trials", "3"), 0);
    assert_int_equal(starts(w), 1);
    harness_expect_rows("copies", "pipetune.db", "SELECT DISTINCT state FROM trials", "finished");
    harness_expect_rows("copies", "pipetune.db",
                        "SELECT DISTINCT copy_of FROM trials WHERE number > 1 AND copy_of <> 1", "");
}

/* --- trials that fail --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *fail, *args[5];
    int code;
    const char *trials, *attempts;
} failures[] = {
    { "a failure is tried again", "fail-once", { 0 }, 0, "finished", "failed finished" },
    { "retries end", "executor-lost", { "--retries", "1" }, 1, "failed", "failed failed" },
    { "no retries", "executor-lost", { "--retries", "0" }, 1, "failed", "failed" },
    { "out of memory is no failure to try again", "oom", { 0 }, 1, "infeasible", "infeasible" },
    { "an epoch that was done is kept", "exit1-after-1", { 0 }, 0, "finished", "failed finished" },
    { "a trial that is silent", "stall", { "--stall-seconds", "1", "--retries", "0" }, 1, "failed", "failed" },
    { "garbage in the log", "garbage", { 0 }, 0, "finished", "finished" },
    { "a huge log", "huge-log", { 0 }, 0, "finished", "finished" },
    { "an executor that BigDL replaces", "recover", { 0 }, 0, "finished", "finished" },
};

static void test_failures(void **state)
{
    struct world *w = *state;
    one_trial(w);
    (void)setenv("FAKE_HUGE_MB", "4", 1);
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        const char *const *a = failures[i].args;
        (void)setenv("FAKE_FAIL", failures[i].fail, 1);
        struct harness_output o =
            RUN(w, "run", "c.conf", "--name", failures[i].fail, "--again", a[0], a[1], a[2], a[3]);
        expect_exit(failures[i].name, o, failures[i].code);
        harness_expect_rows(failures[i].name, "pipetune.db", "SELECT state FROM trials ORDER BY id DESC LIMIT 1",
                            failures[i].trials);
        harness_expect_rows(failures[i].name, "pipetune.db",
                            "SELECT outcome FROM attempts WHERE trial = (SELECT max(id) FROM trials) ORDER BY number",
                            failures[i].attempts);
        harness_expect_rows(failures[i].name, "pipetune.db",
                            "SELECT count(*) FROM trials WHERE state <> 'finished' AND reason IS NULL", "0");
    }
    harness_expect_rows(
        "every epoch of a finished trial is there", "pipetune.db",
        "SELECT DISTINCT count(*) FROM epochs JOIN trials t ON t.id = trial WHERE t.state = 'finished' GROUP BY trial",
        "2");
}

static void test_no_executor_in_time_is_infeasible(void **state)
{
    struct world *w = *state;
    one_trial(w);
    AUTO_BUF struct buf cluster = BUF_INIT;
    buf_printf(&cluster, "{ \"master\": \"spark://127.0.0.1:7077\", \"total_executor_cores\": 2,%s",
               strchr(WORLD_BIGDL WORLD_ARGUMENTS, ',') + 1);
    harness_write(w->dir, "app.json", buf_text(&cluster));
    expect_exit("a cluster that grants", RUN(w, "run", "c.conf"), 0);
    (void)setenv("FAKE_FAIL", "hang", 1);
    expect_exit("one that does not", RUN(w, "run", "c.conf", "--again", "--grant-seconds", "1"), 1);
    harness_expect_rows("trial", "pipetune.db", "SELECT state FROM trials ORDER BY id DESC LIMIT 1", "infeasible");
    assert_true(harness_wait(nothing_left, w, HARNESS_MS));
}

/* --- signals ------------------------------------------------------------------------------------------------------------ */

static void test_an_interrupted_trial_goes_on_from_its_checkpoint(void **state)
{
    struct world *w = *state;
    static const int signals[] = { SIGINT, SIGTERM };
    one_trial(w);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    (void)setenv("FAKE_EPOCH_MS", "150", 1);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "by-%d", signals[i]);
        (void)unlink("count");
        pid_t pid = START(w, -1, "run", "c.conf", "--name", name, "--epochs", "4");
        wait_for(w, trained, 2);
        assert_int_equal(kill(pid, signals[i]), 0);
        assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
        assert_int_equal(world_trials(w), 0);
        harness_expect_rows(name, "pipetune.db", "SELECT state FROM trials ORDER BY id DESC LIMIT 1", "interrupted");
        expect_exit(name, RUN(w, "run", "c.conf", "--name", name, "--epochs", "4"), 0);
        assert_true(last_first_epoch(w) > 1);
        /* When the signal struck while a checkpoint was written, that one is met unusable, and an older one is taken. */
        harness_expect_rows(name, "pipetune.db",
                            "SELECT outcome FROM attempts WHERE trial = (SELECT max(id) FROM trials)"
                            " AND outcome <> 'unusable_checkpoint' ORDER BY number",
                            "interrupted finished");
        harness_expect_rows(name, "pipetune.db",
                            "SELECT count(*) FROM epochs WHERE trial = (SELECT max(id) FROM trials)", "4");
    }
}

/* One epoch of one step, and then a validation that takes for ever. */
#define VALIDATING                                                                                                     \
    "#!/bin/sh\ncat >&2 <<'X'\n"                                                                                       \
    "2026-11-18 10:00:01.000 INFO DistriOptimizer$: [Epoch 1 60/60][Iteration 1][Wall Clock 1.0s] Trained 60.0 "       \
    "records "                                                                                                         \
    "in 1.0 seconds. Throughput is 60.0 records/second. Loss is 2.0. \n"                                               \
    "2026-11-18 10:00:01.100 INFO DistriOptimizer$: [Epoch 1 60/60][Iteration 1][Wall Clock 1.0s] Epoch finished. "    \
    "Wall "                                                                                                            \
    "clock time is 1100.0 ms\nX\nexec sleep 60\n"

static size_t ends_in_log(const struct world *w)
{
    AUTO_FREE char *text = harness_read(w->dir, "pipetune.d/s/1/log");
    return text ? harness_count(text, "Epoch finished") : 0;
}

static void test_a_trial_cut_short_in_its_last_validation_is_not_finished(void **state)
{
    struct world *w = *state;
    one_trial(w);
    AUTO_FREE char *submit = harness_path(w->dir, "spark/bin/spark-submit");
    assert_int_equal(unlink(submit), 0);
    world_script(w, "spark/bin/spark-submit", VALIDATING);
    pid_t pid = START(w, -1, "run", "c.conf", "--epochs", "1");
    wait_for(w, ends_in_log, 1);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    harness_expect_rows("its accuracy is still to come", "pipetune.db", TRIALS, "1|interrupted");
}

static size_t told_to_end(const struct world *w)
{
    AUTO_FREE char *text = harness_read(w->dir, "out");
    return text ? harness_count(text, "once more to kill") : 0;
}

static void test_a_second_interrupt_kills_at_once(void **state)
{
    struct world *w = *state;
    one_trial(w);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    (void)setenv("FAKE_EPOCH_MS", "60000", 1), (void)setenv("FAKE_FAIL", "ignore-term", 1);
    AUTO_CLOSE int out = open("out", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    pid_t pid = START(w, out, "run", "c.conf");
    wait_for(w, starts, 1);
    wait_for(w, of_this_world, 4); /* the driver, its launcher, the trial and the child that left its group */
    assert_int_equal(kill(pid, SIGINT), 0);
    wait_for(w, told_to_end, 1);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, 5000), 130); /* TERM would have had 10 s */
    assert_true(harness_wait(nothing_left, w, HARNESS_MS));
    (void)unsetenv("FAKE_FAIL"), (void)setenv("FAKE_EPOCH_MS", "10", 1);
    expect_exit("it goes on", RUN(w, "run", "c.conf"), 0);
}

static void test_what_is_left_running_is_found_again(void **state)
{
    struct world *w = *state;
    one_trial(w);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    (void)setenv("FAKE_EPOCH_MS", "400", 1);
    LEAVE(w, "run", "c.conf");
    assert_true(world_processes(w, 0) >= 2);
    struct harness_output o = RUN(w, "run", "c.conf");
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "found running"));
    harness_output_done(&o);
    harness_expect_rows("adopted", "pipetune.db", "SELECT number, outcome FROM attempts", "1|finished");
    assert_int_equal(starts(w), 1);
    assert_int_equal(trained(w), 2);
}

static void test_a_hangup_leaves_the_trials_running(void **state)
{
    struct world *w = *state;
    one_trial(w);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    (void)setenv("FAKE_EPOCH_MS", "400", 1);
    pid_t pid = START(w, -1, "run", "c.conf");
    wait_for(w, starts, 1);
    assert_int_equal(kill(pid, SIGHUP), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    wait_for(w, trained, 2); /* it goes on without a driver */
    expect_exit("adopted", RUN(w, "run", "c.conf"), 0);
    harness_expect_rows("adopted", "pipetune.db", "SELECT number, outcome FROM attempts", "1|finished");
    assert_int_equal(starts(w), 1);
}

static void test_two_trials_at_once(void **state)
{
    struct world *w = *state;
    two_trials(w);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    (void)setenv("FAKE_EPOCH_MS", "700", 1);
    pid_t pid = START(w, -1, "run", "c.conf", "--parallel", "2", "--epochs", "1", "--policy", "v1");
    wait_for(w, starts, 2);
    assert_int_equal(trained(w), 0); /* the second began before the first was through */
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    harness_expect_rows("both", "pipetune.db", TRIALS, "1|finished 2|finished");
}

/* --- where the output goes --------------------------------------------------------------------------------------------- */

static void test_output_that_cannot_be_written_is_told(void **state)
{
    struct world *w = *state;
    static const char *const scripts[] = { "exec \"$0\" run c.conf >/dev/full", "exec \"$0\" run c.conf >&-",
                                           "exec \"$0\" run --dry-run c.conf >/dev/full",
                                           "exec \"$0\" run --dry-run c.conf >&-",
                                           "exec \"$0\" run --json c.conf >/dev/full" };
    char sh[] = "/bin/sh", c[] = "-c", script[128];
    two_trials(w);
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        (void)snprintf(script, sizeof script, "%s", scripts[i]);
        char *argv[] = { sh, c, script, w->program, NULL };
        expect_error(scripts[i], harness_run(argv, HARNESS_MS), 3, "cannot print");
    }
    expect_exit("nothing is lost", RUN(w, "run", "c.conf"), 0);
    harness_expect_rows("nothing is lost", "pipetune.db", ATTEMPTS, "2");
    harness_expect_rows("nothing is lost", "pipetune.db", "PRAGMA integrity_check", "ok");
}

enum { SCREEN_LINES = 200, SCREEN_COLUMNS = 400 };

struct screen {
    char lines[SCREEN_LINES][SCREEN_COLUMNS];
    size_t row, column;
};

/* Just what the live part uses: carriage return, newline, one line up, erase the line. */
static void show(struct screen *s, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (strncmp(c, "\033[1A", 4) == 0) {
            assert_true(s->row > 0); /* it never goes above where it began */
            s->row--;
            c += 3;
        } else if (strncmp(c, "\033[2K", 4) == 0) {
            memset(s->lines[s->row], 0, SCREEN_COLUMNS);
            c += 3;
        } else if (*c == '\r') {
            s->column = 0;
        } else if (*c == '\n') {
            s->row++;
            s->column = 0;
        } else if (s->column < SCREEN_COLUMNS - 1) {
            s->lines[s->row][s->column++] = *c;
        }
        assert_true(s->row < SCREEN_LINES);
    }
}

/* All that it prints on the terminal until it ends. */
static char *read_terminal(int master)
{
    struct buf all = BUF_INIT;
    for (;;) {
        struct pollfd p = { .fd = master, .events = POLLIN };
        char chunk[4096];
        if (poll(&p, 1, HARNESS_MS) < 1)
            fail_msg("nothing comes from the terminal");
        ssize_t n = read(master, chunk, sizeof chunk);
        if (n <= 0)
            return buf_take(&all); /* EIO: the last holder of the other side has ended */
        buf_put(&all, chunk, (size_t)n);
    }
}

static void test_a_terminal_shows_the_live_part_and_is_left_clean(void **state)
{
    struct world *w = *state;
    int master, slave;
    struct winsize size = { .ws_row = 24, .ws_col = 80 };
    two_trials(w);
    (void)setenv("FAKE_EPOCH_MS", "400", 1);
    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    pid_t pid = START(w, slave, "run", "c.conf");
    (void)close(slave);
    AUTO_FREE char *text = read_terminal(master);
    (void)close(master);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    assert_non_null(strstr(text, "##"));
    assert_non_null(strstr(text, "0 of 2 trials"));
    assert_non_null(strstr(text, "to go"));
    struct screen *s = calloc(1, sizeof *s);
    assert_non_null(s);
    show(s, text);
    bool best = false;
    for (size_t i = 0; i <= s->row; i++) {
        if (strstr(s->lines[i], "##") || strstr(s->lines[i], "to go") || strchr(s->lines[i], '\033'))
            fail_msg("left on the screen: %s", s->lines[i]);
        best |= strncmp(s->lines[i], "best: s/1", 9) == 0;
    }
    assert_true(best);
    free(s);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_the_three_section_config_as_it_is),
        ROW(test_a_dry_run_needs_nothing_and_makes_nothing),
        ROW(test_a_setting_entered_by_the_user),
        ROW(test_more_memory_than_there_is_is_infeasible),
        ROW(test_a_first_memory_that_cannot_be_had_is_told),
        ROW(test_places),
        ROW(test_store_and_name),
        ROW(test_a_finished_study_prints_its_result),
        ROW(test_a_finished_study_that_is_looked_at_stays_as_it_was),
        ROW(test_the_result_as_json),
        ROW(test_again_trains_again_under_another_name),
        ROW(test_a_seed_gives_the_same_trials),
        ROW(test_more_trials_go_on),
        ROW(test_a_finished_study_that_goes_on_is_running),
        ROW(test_equal_points_are_trained_once),
        ROW(test_failures),
        ROW(test_no_executor_in_time_is_infeasible),
        ROW(test_an_interrupted_trial_goes_on_from_its_checkpoint),
        ROW(test_a_trial_cut_short_in_its_last_validation_is_not_finished),
        ROW(test_a_second_interrupt_kills_at_once),
        ROW(test_what_is_left_running_is_found_again),
        ROW(test_a_hangup_leaves_the_trials_running),
        ROW(test_two_trials_at_once),
        ROW(test_output_that_cannot_be_written_is_told),
        ROW(test_a_terminal_shows_the_live_part_and_is_left_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
