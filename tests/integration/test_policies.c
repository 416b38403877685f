/* `pipetune run` under each policy, over a fake spark-submit and the real helper: settings, warm sessions, packing. After each test
 * every decision is derived again from what the policy was told, and nothing runs any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "tests/integration/harness.h"

#define STORE "pipetune.db"
#define TRIALS "SELECT number, state FROM trials ORDER BY number"
#define OUTCOMES "SELECT outcome FROM attempts ORDER BY id"
#define SESSION ", \"session\": true"
#define ONE_POINT "{ \"batch_size\": [64], \"learning_rate\": [0.1] }"
#define TWO_POINTS "{ \"batch_size\": [64], \"learning_rate\": [0.1, 0.05] }"
#define THREE_POINTS "{ \"batch_size\": [64], \"learning_rate\": [0.1, 0.05, 0.02] }"
#define FOUR_POINTS "{ \"batch_size\": [64, 128], \"learning_rate\": [0.1, 0.05] }"

/* --- the world ---------------------------------------------------------------------------------------------------------- */

static int cpus_here(void)
{
    cpu_set_t here;
    assert_int_equal(sched_getaffinity(0, sizeof here, &here), 0);
    return CPU_COUNT(&here);
}

/* Narrowing and packing need two CPUs. */
static void need_two_cpus(void)
{
    if (cpus_here() >= 2)
        return;
    print_message("SKIP needs two CPUs\n");
    skip();
}

static void write_app_of(const struct world *w, const char *memory, const char *more)
{
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&text,
                         "{ \"master\": \"local[*]\", \"driver_memory\": \"%s\", \"conf\": \"app.py\"%s,\n"
                         "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"], \"learning_rate\": "
                         "[\"--learning-rate\", \"{}\"],\n"
                         "    \"epochs\": [\"--epochs\", \"{}\"], \"checkpoint\": [\"--checkpoint\", \"{}\"], "
                         "\"seed\": [\"--seed\", \"{}\"],\n"
                         "    \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }\n",
                         memory, more) > 0);
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json", text);
}

static void write_app(const struct world *w, const char *more)
{
    write_app_of(w, "1g", more);
}

/* Two epochs; windows of 0.1 s. */
static void write_study(const struct world *w, const char *system, const char *hyper)
{
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&text,
                         "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 2 },\n"
                         "  \"tuning\": { \"window_seconds\": 0.1 }, \"systemParameters\": %s,\n"
                         "  \"hyperParameters\": %s }\n",
                         system, hyper) > 0);
    harness_write(w->dir, "c.conf", text);
}

static void set_pace(const char *epoch_ms, const char *iterations)
{
    (void)setenv("FAKE_EPOCH_MS", epoch_ms, 1);
    (void)setenv("FAKE_ITERATIONS", iterations, 1);
}

static int set_up(void **state)
{
    if (world_open(state) < 0)
        return -1;
    struct world *w = *state;
    write_app(w, SESSION);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    world_point_at(w, "XDG_RUNTIME_DIR", "empty"); /* so that no socket lies outside of it */
    return 0;
}

static bool nothing_left(void *world)
{
    return world_processes(world, 0) == 0;
}

static void expect_exit(const char *name, struct harness_output o, int code)
{
    if (o.code != code)
        fail_msg("%s: got exit %d, want %d\n%s%s", name, o.code, code, o.out, o.err);
    harness_output_done(&o);
}

/* Empty, or what is wrong: every decision must be derived again as it was stored. Free it. */
static char *replayed(const struct world *w)
{
    AUTO_FREE char *names = io_exists(STORE) ? harness_ask(STORE, "SELECT name FROM studies") : NULL;
    struct buf faults = BUF_INIT;
    char *save = NULL;
    for (char *name = names ? strtok_r(names, " ", &save) : NULL; name; name = strtok_r(NULL, " ", &save)) {
        struct harness_output o = RUN(w, "replay", "decisions", name);
        if (o.code != 0)
            buf_printf(&faults, "%s: exit %d: %s%s", name, o.code, o.out, o.err);
        harness_output_done(&o);
    }
    return buf_take(&faults);
}

static int tear_down(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *faults = replayed(w);
    bool ended = harness_wait(nothing_left, w, HARNESS_MS);
    (void)unsetenv("XDG_RUNTIME_DIR");
    (void)world_close(state);
    if (*faults)
        print_error("%s\n", faults);
    if (!ended)
        print_error("something was left running\n");
    return *faults || !ended ? -1 : 0;
}

static void expect_rows(const char *name, const char *sql, const char *want)
{
    harness_expect_rows(name, STORE, sql, want);
}

static void expect_text(const char *name, const char *text, const char *want)
{
    if (!strstr(text, want))
        fail_msg("%s: want '%s' in: %s", name, want, text);
}

/* --- what the fake wrote of itself ---------------------------------------------------------------------------------------- */

/* Lines that begin so. */
static size_t lines_with(const char *begin)
{
    AUTO_FREE char *text = harness_read(".", "count");
    size_t n = 0;
    char *save = NULL;
    for (char *l = text ? strtok_r(text, "\n", &save) : NULL; l; l = strtok_r(NULL, "\n", &save))
        n += strncmp(l, begin, strlen(begin)) == 0;
    return n;
}

static size_t sessions(void)
{
    return lines_with("session ");
}

static size_t begun(void)
{
    return lines_with("pt-");
}

static size_t trained(void)
{
    return lines_with("trained ");
}

struct number {
    size_t (*of)(void);
    size_t at_least;
};

static bool reached(void *arg)
{
    const struct number *n = arg;
    return n->of() >= n->at_least;
}

static void wait_for(size_t (*of)(void), size_t at_least)
{
    struct number n = { of, at_least };
    if (!harness_wait(reached, &n, HARNESS_MS))
        fail_msg("got %zu, want %zu", of(), at_least);
}

/* The process of the newest start of a trial. */
static pid_t newest_process(void)
{
    AUTO_FREE char *text = harness_read(".", "count");
    long pid = 0;
    char *save = NULL;
    for (char *l = text ? strtok_r(text, "\n", &save) : NULL; l; l = strtok_r(NULL, "\n", &save))
        (void)sscanf(l, "pt-%*s %*d %*d %ld", &pid);
    assert_true(pid > 1);
    return (pid_t)pid;
}

/* --- every policy ------------------------------------------------------------------------------------------------------- */

static void test_every_policy_finishes_a_grid(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *policy, *app;
        const char *trials, *epochs;
    } cases[] = {
        { "v1", SESSION, "4", "8" },       { "v2", SESSION, "8", "16" }, { "paper", SESSION, "4", "8" },
        { "pipetune", SESSION, "4", "8" }, { "pipetune", "", "4", "8" },
    };
    need_two_cpus();
    write_study(w, "{ \"cores\": [2, 1] }", FOUR_POINTS);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%s-%zu", cases[i].policy, i);
        write_app(w, cases[i].app);
        expect_exit(name, RUN(w, "run", "c.conf", "--name", name, "--policy", cases[i].policy), 0);
        AUTO_FREE char *sql = NULL;
        assert_true(asprintf(&sql,
                             "SELECT count(DISTINCT t.id), count(*), max(e.attempt) FROM "
                             "studies s JOIN trials t ON t.study = s.id JOIN epochs e ON e.trial = t.id WHERE "
                             "s.name = '%s' AND t.state = 'finished'",
                             name) > 0);
        char want[32];
        (void)snprintf(want, sizeof want, "%s|%s|1", cases[i].trials, cases[i].epochs);
        expect_rows(name, sql, want);
    }
}

/* --- v2 ------------------------------------------------------------------------------------------------------------------- */

static double number_of(const char *sql)
{
    AUTO_FREE char *text = harness_ask(STORE, sql);
    return strtod(text, NULL);
}

static void test_v2_searches_settings_for_accuracy_over_time(void **state)
{
    struct world *w = *state;
    need_two_cpus();
    write_study(w, "{ \"cores\": [2, 1], \"memory\": [1] }", TWO_POINTS);
    set_pace("200", "2");
    struct harness_output o = RUN(w, "run", "c.conf", "--policy", "v2", "--json");
    assert_int_equal(o.code, 0);
    harness_output_done(&o);
    expect_rows("each point with each setting",
                "SELECT hyper ->> 'learning_rate', requested ->> 'cores', effective ->> 'cores', slots FROM trials "
                "ORDER BY number",
                "0.1|2|2|2 0.1|1|1|1 0.05|2|2|2 0.05|1|1|1");
    expect_rows("no knob among the hyperparameters",
                "SELECT count(*) FROM trials WHERE hyper ->> 'cores' IS NOT NULL OR hyper ->> 'memory' IS NOT NULL",
                "0");
    expect_rows("launched as its point says",
                "SELECT count(*) FROM trials t JOIN attempts a ON a.trial = t.id WHERE "
                "a.argv LIKE '%local[' || slots || ']%'",
                "4");
    double off = number_of("SELECT max(abs(metric * seconds / accuracy - 1)) FROM trials");
    if (!(off < 0.3)) /* its end is told a tick after its last epoch */
        fail_msg("the worth is no accuracy over seconds: off by %g", off);
    AUTO_FREE char *best = harness_ask(STORE, "SELECT number FROM trials ORDER BY metric DESC, number LIMIT 1");
    AUTO_FREE char *line = NULL;
    assert_true(asprintf(&line, "best: s/%s,", best) > 0);
    o = RUN(w, "show", "s");
    expect_text("the best is the one that is worth most", o.out, line);
    harness_output_done(&o);
}

static void test_v2_trains_equal_settings_once(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [4096, 4095, 1] }", ONE_POINT);
    expect_exit("v2", RUN(w, "run", "c.conf", "--policy", "v2"), 0);
    expect_rows("one is a copy", "SELECT number, copy_of FROM trials ORDER BY number",
                cpus_here() > 1 ? "1|0 2|1 3|0" : "1|0 2|1 3|1");
    expect_rows("as it was asked for", "SELECT requested ->> 'cores' FROM trials ORDER BY number", "4096 4095 1");
    assert_int_equal(begun(), cpus_here() > 1 ? 2 : 1);
}

/* --- dry runs ------------------------------------------------------------------------------------------------------------- */

static void test_a_dry_run_prints_stand_alone_commands(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *policy;
        size_t lines;
        const char *slots;
        size_t wide;
    } cases[] = { { "v1", 4, "local[2]", 4 },
                  { "v2", 8, "local[1]", 4 },
                  { "paper", 4, "local[2]", 4 },
                  { "pipetune", 4, "local[2]", 4 } };
    need_two_cpus();
    write_study(w, "{ \"cores\": [2, 1] }", FOUR_POINTS);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct harness_output o = RUN(w, "run", "--dry-run", "c.conf", "--policy", cases[i].policy);
        assert_int_equal(o.code, 0);
        assert_int_equal(harness_count(o.out, "\n"), cases[i].lines);
        assert_int_equal(harness_count(o.out, "spark-submit"), cases[i].lines);
        assert_int_equal(harness_count(o.out, cases[i].slots), cases[i].wide);
        assert_int_equal(harness_count(o.out, "--batch-size"), cases[i].lines);
        assert_int_equal(harness_count(o.out, "session"), 0);
        harness_output_done(&o);
    }
    assert_false(io_exists(STORE));
}

#define ONE_POINT "{ \"batch_size\": [64], \"learning_rate\": [0.1] }"

/* Memory alone is a ladder: what has no order begins with what was written first, in the dry run, in the launch, in the next study; and nothing is
 * called the best before it was compared. */
static void test_cold_knobs_without_an_order_begin_with_the_first_value(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *system, *parallel, *says[3], *never;
    } cases[] = {
        { "{ \"spark.locality.wait\": [\"1s\", \"7s\"], \"spark.shuffle.compress\": [\"true\", \"false\"] }",
          "1",
          { "spark.locality.wait=1s", "spark.shuffle.compress=true" },
          "7s" },
        { "{ \"spark.locality.wait\": [\"7s\", \"1s\"] }", "1", { "spark.locality.wait=7s" }, "1s" },
        { "{ \"memory\": [1, 2], \"spark.locality.wait\": [\"4s\", \"7s\", \"2s\"] }",
          "1",
          { "--driver-memory 2g", "spark.locality.wait=4s" },
          "7s" },
        { "{ \"spark.locality.wait\": [\"4s\", \"7s\"], \"memory\": [2, 1], \"cores\": [2, 1] }",
          "auto",
          { "--driver-memory 2g", "spark.locality.wait=4s", "local[2]" },
          "7s" },
    };
    need_two_cpus();
    write_app(w, "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "cold%zu", i);
        write_study(w, cases[i].system, ONE_POINT);
        struct harness_output o = RUN(w, "run", "--dry-run", "c.conf", "--parallel", cases[i].parallel);
        assert_int_equal(o.code, 0);
        expect_exit(cases[i].system, RUN(w, "run", "c.conf", "--name", name, "--parallel", cases[i].parallel), 0);
        expect_exit("again", RUN(w, "run", "c.conf", "--again", "--name", name, "--parallel", cases[i].parallel), 0);
        AUTO_FREE char *launched = harness_ask(STORE, "SELECT replace(argv, '\", \"', ' ') FROM attempts ORDER BY id");
        for (size_t k = 0; k < ARRAY_LEN(cases[i].says) && cases[i].says[k]; k++)
            if (!strstr(o.out, cases[i].says[k]) || harness_count(launched, cases[i].says[k]) < 2)
                fail_msg("%s: no %s in\n%s\nor not twice in\n%s", cases[i].system, cases[i].says[k], o.out, launched);
        if (strstr(launched, cases[i].never))
            fail_msg("%s: launched\n%s", cases[i].system, launched);
        harness_output_done(&o);
        expect_rows("no best", "SELECT count(*) FROM decisions WHERE kind = 'learn' AND setting LIKE '%7s%'", "0");
        expect_rows("nor later", "SELECT count(*) FROM models WHERE json LIKE '%7s%' OR json LIKE '%\"1s\"%'", "0");
        AUTO_FREE char *faults = replayed(w);
        assert_string_equal(faults, "");
        expect_exit("forgotten", RUN(w, "model", "forget", "--all"), 0);
        assert_int_equal(unlink(STORE), 0);
    }
}

/* --- warm sessions -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *policy, *app, *system, *hyper;
    size_t sessions, begun;
} shared[] = {
    { "four trials in one session", "pipetune", SESSION, "{ \"cores\": [2] }",
      "{ \"batch_size\": [64], \"learning_rate\": [0.1, 0.05, 0.02, 0.01] }", 1, 4 },
    { "batches of the same slots share", "pipetune", SESSION, "{ \"cores\": [2] }", FOUR_POINTS, 1, 4 },
    { "other slots, another session", "pipetune", SESSION, "{ \"cores\": [2, 1] }",
      "{ \"batch_size\": [64, 63], \"learning_rate\": [0.1, 0.05] }", 2, 4 },
    { "an application that cannot serve", "pipetune", "", "{ \"cores\": [2] }", FOUR_POINTS, 0, 4 },
    { "a policy that does not share", "v1", SESSION, "{ \"cores\": [2] }", FOUR_POINTS, 0, 4 },
    { "the published policy does not either", "paper", SESSION, "{ \"cores\": [2] }", FOUR_POINTS, 0, 4 },
};

static void test_trials_share_sessions(void **state)
{
    struct world *w = *state;
    need_two_cpus();
    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "s%zu", i);
        (void)unlink("count");
        write_app(w, shared[i].app);
        write_study(w, shared[i].system, shared[i].hyper);
        expect_exit(shared[i].name,
                    RUN(w, "run", "c.conf", "--name", name, "--policy", shared[i].policy, "--parallel", "1"), 0);
        if (sessions() != shared[i].sessions || begun() != shared[i].begun || trained() != 2 * shared[i].begun)
            fail_msg("%s: %zu sessions, %zu begun, %zu epochs", shared[i].name, sessions(), begun(), trained());
        char folder[48];
        (void)snprintf(folder, sizeof folder, "pipetune.d/%s/session-%zu", name, shared[i].sessions + 1);
        assert_false(io_exists(folder));
    }
}

#define METRICS                                                                                                        \
    "SELECT t.number, e.epoch, e.metric = e.accuracy, t.metric = e.metric FROM epochs e JOIN trials t ON t.id = "      \
    "e.trial"                                                                                                          \
    " WHERE e.metric IS NOT NULL ORDER BY 1, 2"
#define TOLD "SELECT count(DISTINCT proposal || '/' || epoch) FROM tells WHERE value IS NOT NULL AND NOT done"

/* That of the fake is told by metric() alone. */
static void test_a_study_may_be_about_what_a_session_tells(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    expect_exit("each epoch", RUN(w, "run", "c.conf", "--metric", "fake", "--parallel", "1"), 0);
    assert_int_equal(sessions(), 1);
    expect_rows("each epoch", TRIALS, "1|finished 2|finished");
    expect_rows("each epoch", METRICS, "1|1|1|0 1|2|1|1 2|1|1|0 2|2|1|1");
    expect_rows("each epoch", TOLD, "4");
    expect_rows("each epoch", "SELECT count(*) FROM series WHERE name = 'fake'", "4");
    (void)setenv("FAKE_FAIL", "metric-late", 1);
    expect_exit("at the end", RUN(w, "run", "c.conf", "--name", "late", "--metric", "fake", "--parallel", "1"), 0);
    expect_rows("at the end",
                "SELECT t.number, e.epoch, e.metric = e.accuracy, t.metric = e.metric FROM epochs e"
                " JOIN trials t ON t.id = e.trial JOIN studies s ON s.id = t.study"
                " WHERE s.name = 'late' AND e.metric IS NOT NULL ORDER BY 1, 2",
                "1|2|1|1 2|2|1|1");
}

static void test_a_metric_that_no_session_tells_ends_the_study(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    struct harness_output o = RUN(w, "run", "c.conf", "--metric", "throughput", "--parallel", "1");
    if (o.code != 2 ||
        !strstr(o.err, "metric 'throughput' is not reported by trial 1: there is Top1Accuracy, Loss, fake"))
        fail_msg("got exit %d, %s%s", o.code, o.out, o.err);
    harness_output_done(&o);
    assert_int_equal(begun(), 1);
}

static void test_a_session_that_cannot_be_had_is_told_and_done_without(void **state)
{
    struct world *w = *state;
    static const char *const fails[] = { "session-silent", "session-protocol", "folder" };
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    for (size_t i = 0; i < ARRAY_LEN(fails); i++) {
        (void)unlink("count");
        (void)setenv("FAKE_FAIL", fails[i], 1);
        if (strcmp(fails[i], "folder") == 0) { /* a folder that others may write to holds no socket of ours */
            world_dir(w, "empty/pipetune");
            assert_int_equal(chmod("empty/pipetune", 0755), 0);
            (void)unsetenv("FAKE_FAIL");
        }
        struct harness_output o = RUN(w, "run", "c.conf", "--name", fails[i], "--grant-seconds", "1");
        if (harness_count(o.out, "a warm session could not be had") != 1)
            fail_msg("%s: want to be told once: %s", fails[i], o.out);
        expect_exit(fails[i], o, 0);
        assert_int_equal(begun(), 2);
    }
    expect_rows("submitted one by one", "SELECT DISTINCT session FROM attempts", "0");
    expect_rows("no retry is used up", "SELECT count(*), max(number) FROM attempts", "6|1");
}

/* One that dies while it starts is no reason to do without, three are. */
static void test_a_session_that_dies_while_starting_is_started_again(void **state)
{
    static const struct {
        const char *fail, *served_by;
        size_t again, without;
    } cases[] = {
        { "session-unborn-1", "2", 1, 0 },
        { "session-unborn-2", "3", 2, 0 },
        { "session-unborn-9", "0", 2, 1 },
    };
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *fail = cases[i].fail;
        char count[32], store[32];
        (void)snprintf(count, sizeof count, "count-%s", fail);
        (void)snprintf(store, sizeof store, "%s.db", fail);
        world_point_at(w, "FAKE_COUNT_FILE", count);
        (void)setenv("FAKE_FAIL", fail, 1);
        struct harness_output o =
            RUN(w, "run", "c.conf", "--store", store, "--name", fail, "--parallel", "1", "--retries", "0");
        if (o.code != 0 || harness_count(o.out, "Address already in use") != cases[i].again + cases[i].without ||
            harness_count(o.out, "another is started") != cases[i].again ||
            harness_count(o.out, "a warm session could not be had") != cases[i].without)
            fail_msg("%s: got exit %d\n%s%s", fail, o.code, o.out, o.err);
        harness_output_done(&o);
        harness_expect_rows(fail, store, "SELECT DISTINCT session FROM attempts", cases[i].served_by);
        harness_expect_rows(fail, store, OUTCOMES, "finished finished");
    }
    world_point_at(w, "FAKE_COUNT_FILE", "count");
}

static const struct {
    const char *name, *fail, *retries;
    int code;
    const char *trials, *outcomes;
    size_t sessions;
} mishaps[] = {
    { "a trial that fails in its session is tried again, and then given up", "session-fail", "1", 1,
      "1|failed 2|failed", "failed failed failed failed", 1 },
    { "a session that dies is replaced", "session-die-once", "2", 0, "1|finished 2|finished",
      "failed finished failed finished", 3 },
    { "a session that always dies", "session-die", "1", 1, "1|failed 2|failed", "failed failed failed failed", 4 },
    { "data that are not there stop the study", "data", "2", 3, "1|waiting", "doubted_environment environment", 0 },
    { "a session that speaks nonsense is replaced", "session-garbage", "2", 0, "1|finished 2|finished",
      "finished finished", 2 },
    { "a session that does not say that a trial is done", "session-mute", "2", 0, "1|finished 2|finished",
      "finished finished", 1 },
};

static void test_mishaps_of_sessions(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    for (size_t i = 0; i < ARRAY_LEN(mishaps); i++) {
        char store[16];
        (void)unlink("count");
        (void)snprintf(store, sizeof store, "%zu.db", i);
        (void)setenv("FAKE_FAIL", mishaps[i].fail, 1);
        expect_exit(mishaps[i].name,
                    RUN(w, "run", "c.conf", "--store", store, "--name", mishaps[i].fail, "--retries",
                        mishaps[i].retries, "--parallel", "1"),
                    mishaps[i].code);
        harness_expect_rows(mishaps[i].name, store, TRIALS, mishaps[i].trials);
        harness_expect_rows(mishaps[i].name, store, OUTCOMES, mishaps[i].outcomes);
        expect_exit(mishaps[i].name, RUN(w, "replay", "decisions", mishaps[i].fail, "--store", store), 0);
        if (sessions() != mishaps[i].sessions)
            fail_msg("%s: %zu sessions, want %zu", mishaps[i].name, sessions(), mishaps[i].sessions);
    }
    harness_expect_rows("it says what the application said", "0.db",
                        "SELECT count(*) FROM trials WHERE reason LIKE '%fake-spark-submit fails this trial%'", "2");
}

/* Of sessions, left in their folder. */
static size_t sockets(void)
{
    DIR *d = opendir("empty/pipetune");
    assert_non_null(d);
    size_t n = 0;
    for (const struct dirent *f; (f = readdir(d));)
        n += f->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static void test_a_session_killed_in_mid_trial_goes_on_from_the_checkpoint(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", ONE_POINT);
    set_pace("500", "5");
    pid_t pid = START(w, -1, "run", "c.conf", "--epochs", "3");
    wait_for(trained, 1);
    (void)poll(NULL, 0, 200); /* its checkpoint is written by now, and the second epoch far from done */
    assert_int_equal(kill(newest_process(), SIGKILL), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    expect_rows("attempts", "SELECT outcome, first_epoch FROM attempts ORDER BY number", "failed|1 finished|2");
    assert_int_equal(sessions(), 2);
    assert_int_equal(trained(), 3);
    assert_int_equal(sockets(), 0); /* the killed one had no time to tidy */
}

/* --- signals -------------------------------------------------------------------------------------------------------------- */

static size_t told_to_end(void)
{
    AUTO_FREE char *text = harness_read(".", "out");
    return text ? harness_count(text, "once more to kill") : 0;
}

static void test_an_interrupt_ends_sessions_and_can_be_gone_on_from(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    set_pace("400", "4");
    pid_t pid = START(w, -1, "run", "c.conf", "--parallel", "1");
    wait_for(trained, 1);
    (void)poll(NULL, 0, 150);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    assert_int_equal(world_trials(w), 0);
    expect_rows("interrupted", "SELECT state FROM trials WHERE number = 1", "interrupted");
    expect_exit("it goes on", RUN(w, "run", "c.conf", "--parallel", "1"), 0);
    expect_rows("finished", TRIALS, "1|finished 2|finished");
    expect_rows("from its checkpoint", "SELECT outcome, first_epoch FROM attempts ORDER BY trial, number",
                "interrupted|1 finished|2 finished|1");
    assert_int_equal(trained(), 4);
}

static void test_a_second_interrupt_kills_a_session_at_once(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", ONE_POINT);
    set_pace("60000", "2");
    (void)setenv("FAKE_FAIL", "ignore-term", 1);
    AUTO_CLOSE int out = open("out", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    pid_t pid = START(w, out, "run", "c.conf");
    wait_for(begun, 1);
    (void)poll(NULL, 0,
               300); /* the attempt is stored before the session is told to run: its start says no more than that */
    assert_int_equal(kill(pid, SIGINT), 0);
    wait_for(told_to_end, 1);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, 5000), 130); /* TERM would have had 10 s */
    assert_true(harness_wait(nothing_left, w, HARNESS_MS));
    (void)unsetenv("FAKE_FAIL");
    set_pace("10", "2");
    expect_exit("it goes on", RUN(w, "run", "c.conf"), 0);
}

/* An interrupt while the session starts: nothing was stored of the trial. */
static void test_an_interrupt_before_hello(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", ONE_POINT);
    (void)setenv("FAKE_SESSION_MS", "60000", 1);
    pid_t pid = START(w, -1, "run", "c.conf");
    assert_true(harness_wait_file(w->dir, "pipetune.d/s/session-1/pid", HARNESS_MS));
    (void)poll(NULL, 0, 200);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    assert_int_equal(world_trials(w), 0);
    expect_rows("no attempt", "SELECT count(*) FROM attempts", "0");
    (void)unsetenv("FAKE_SESSION_MS");
    expect_exit("it goes on", RUN(w, "run", "c.conf"), 0);
}

/* It closes its connection first: no reason to end it by force. */
static void test_a_session_that_is_told_to_stop_ends_by_itself(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", ONE_POINT);
    (void)setenv("FAKE_STOP_MS", "700", 1);
    expect_exit("in a session", RUN(w, "run", "c.conf"), 0);
    AUTO_FREE char *exit = harness_read(w->dir, "pipetune.d/s/session-1/exit");
    expect_text("by itself", exit, "kind=exited code=0");
}

/* Whatever its session had started outlives a launcher that is killed outright; it is ended, too. */
static void test_a_killed_session_leaves_nothing_behind(void **state)
{
    struct world *w = *state;
    char boot[64];
    int pid = 0;
    write_study(w, "{ \"cores\": [1] }", ONE_POINT);
    (void)setenv("FAKE_SESSION_MS", "60000", 1);
    (void)setenv("FAKE_FAIL", "ignore-term", 1); /* it has a child */
    pid_t driver = START(w, -1, "run", "c.conf");
    for (int i = 1; i <= 3; i++) { /* each time another is started */
        char name[48];
        (void)snprintf(name, sizeof name, "pipetune.d/s/session-%d/pid", i);
        assert_true(harness_wait_file(w->dir, name, HARNESS_MS));
        (void)poll(NULL, 0, 300);
        AUTO_FREE char *note = harness_read(w->dir, name);
        assert_int_equal(sscanf(note, "%63s %d", boot, &pid), 2);
        assert_int_equal(kill(pid, SIGKILL), 0);
    }
    assert_int_equal(harness_exit_code(driver, HARNESS_MS), 0);
    (void)unsetenv("FAKE_SESSION_MS");
    (void)unsetenv("FAKE_FAIL");
    expect_rows("submitted by itself", TRIALS, "1|finished");
}

static void test_a_session_left_behind_is_found_again(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    set_pace("600", "4");
    LEAVE(w, "run", "c.conf");
    assert_true(world_processes(w, 0) >= 2);
    struct harness_output o = RUN(w, "run", "c.conf", "--parallel", "1");
    assert_int_equal(o.code, 0);
    expect_text("adopted", o.out, "found running");
    harness_output_done(&o);
    expect_rows("adopted", "SELECT number, outcome FROM attempts", "1|finished 1|finished");
    assert_int_equal(trained(), 4);
    assert_int_equal(sessions(), 1);
}

static void test_a_trial_that_ended_in_a_session_left_behind_is_not_trained_again(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    set_pace("200", "4");
    LEAVE(w, "run", "c.conf");
    wait_for(trained, 2);
    (void)poll(NULL, 0, 200); /* its `done` was nobody's to hear */
    expect_exit("found", RUN(w, "run", "c.conf"), 0);
    expect_rows("finished", TRIALS, "1|finished 2|finished");
    expect_rows("once", "SELECT number, outcome FROM attempts", "1|finished 1|finished");
    assert_int_equal(trained(), 4);
    assert_int_equal(begun(), 2);
}

static pid_t start_with(const struct world *w, const char *name, const char *value)
{
    (void)setenv(name, value, 1);
    pid_t pid = START(w, -1, "run", "c.conf");
    (void)unsetenv(name);
    return pid;
}

/* The driver dies after it has stored that a trial goes on from its checkpoint, and before it tells the session. */
static void test_a_run_that_was_never_sent_goes_on_from_its_checkpoint(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [1] }", ONE_POINT);
    set_pace("400", "4");
    pid_t pid = START(w, -1, "run", "c.conf");
    wait_for(trained, 1);
    (void)poll(NULL, 0, 200);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    assert_int_equal(harness_exit_code(start_with(w, "PIPETUNE_FAILPOINT", "attempt-committed"), HARNESS_MS),
                     128 + SIGKILL);
    expect_exit("adopted", RUN(w, "run", "c.conf"), 0);
    expect_rows("attempts", "SELECT outcome, first_epoch FROM attempts ORDER BY number", "interrupted|1 finished|2");
    assert_int_equal(begun(), 2);
    assert_int_equal(trained(), 2);
}

/* The next driver knows nothing of what was measured: it begins anew. */
static void test_a_trial_that_is_found_running_alone_is_tuned(void **state)
{
    struct world *w = *state;
    need_two_cpus();
    write_study(w, "{ \"cores\": [2, 1] }", ONE_POINT);
    set_pace("4000", "40");
    LEAVE(w, "run", "c.conf");
    expect_exit("found", RUN(w, "run", "c.conf", "--parallel", "1"), 0);
    expect_rows("it is probed", "SELECT count(*) FROM decisions WHERE reason LIKE 'probe 1 of 1 core'", "1");
}

/* --- memory --------------------------------------------------------------------------------------------------------------- */

/* Runs out of memory below so many GiB; 0: always. */
static void need_memory(const struct world *w, int gb)
{
    AUTO_BUF struct buf script = BUF_INIT;
    AUTO_FREE char *fake = harness_program("tests/integration/fake-spark-submit");
    buf_puts(&script, "#!/bin/sh\ncase \" $* \" in\n");
    for (int i = gb; gb > 0 && i < 64; i++)
        buf_printf(&script, "*' --driver-memory %dg '*) ;;\n", i);
    buf_printf(&script, "*) export FAKE_FAIL=oom ;;\nesac\nexec %s \"$@\"\n", fake);
    (void)unlink("spark/bin/spark-submit");
    world_script(w, "spark/bin/spark-submit", buf_text(&script));
}

/* Where other trials wait a trial begins with the default memory. */
static void test_a_trial_that_runs_out_of_memory_goes_on_with_more(void **state)
{
    struct world *w = *state;
    need_two_cpus();
    static const char *const apps[] = { "", SESSION };
    write_study(w, "{ \"cores\": [2, 1], \"memory\": [1, 2, 3] }",
                "{ \"batch_size\": [64], \"learning_rate\": [0.1, 0.05, 0.02, 0.01] }");
    need_memory(w, 2);
    for (size_t i = 0; i < ARRAY_LEN(apps); i++) {
        write_app(w, apps[i]);
        expect_exit("2 GiB do", RUN(w, "run", "c.conf", "--name", i ? "sessions" : "plain", "--retries", "0"), 0);
        expect_rows("all finish", "SELECT DISTINCT state FROM trials", "finished");
        expect_rows("the first one met it",
                    "SELECT outcome, a.setting ->> 'memory' FROM attempts a JOIN trials t ON t.id = a.trial WHERE "
                    "t.number = 1 AND t.study = (SELECT max(id) FROM studies) ORDER BY a.number",
                    "refused_setting|1 finished|2");
        expect_rows("nobody tries it again",
                    "SELECT count(*) FROM attempts WHERE setting ->> 'memory' = 1 AND trial IN (SELECT id FROM trials "
                    "WHERE study = (SELECT max(id) FROM studies))",
                    "1");
        expect_exit("a later study knows it",
                    RUN(w, "run", "c.conf", "--name", i ? "later-2" : "later", "--retries", "0"), 0);
        expect_rows("and begins with what does",
                    "SELECT outcome, setting ->> 'memory' > 1 FROM attempts a JOIN trials t ON t.id = a.trial WHERE "
                    "t.number = 1 AND t.study = (SELECT max(id) FROM studies)",
                    "finished|1");
        expect_exit("forgotten", RUN(w, "model", "forget", "--all"), 0);
    }
}

static void test_where_no_memory_does_a_trial_is_infeasible(void **state)
{
    struct world *w = *state;
    need_two_cpus();
    write_study(w, "{ \"cores\": [2, 1], \"memory\": [1, 2] }", THREE_POINTS);
    need_memory(w, 0);
    expect_exit("no memory does", RUN(w, "run", "c.conf"), 1);
    expect_rows("infeasible", "SELECT DISTINCT state FROM trials", "infeasible");
    expect_rows("the first one tried both",
                "SELECT outcome, setting ->> 'memory' FROM attempts WHERE trial = 1 ORDER BY number",
                "refused_setting|1 infeasible|2");
}

/* --- packing -------------------------------------------------------------------------------------------------------------- */

/* A store that is being made has none yet. */
static bool has_tables(void)
{
    AUTO_FREE char *n =
        io_exists(STORE) ? harness_ask(STORE, "SELECT count(*) FROM sqlite_master WHERE name = 'attempts'") : NULL;
    return n && strcmp(n, "1") == 0;
}

static size_t running(void)
{
    if (!has_tables())
        return 0;
    AUTO_FREE char *n = harness_ask(STORE, "SELECT count(*) FROM attempts WHERE state = 'running'");
    return (size_t)strtoul(n, NULL, 10);
}

/* The processes of the trials that run, from the fake's own count. */
struct crowd {
    pid_t pid[64];
    cpu_set_t cpus[64];
    size_t n;
};

static bool has_ended(const char *count, const char *id, size_t epochs)
{
    AUTO_FREE char *line = NULL;
    assert_true(asprintf(&line, "trained %s %zu\n", id, epochs) > 0);
    return strstr(count, line) != NULL;
}

static struct crowd crowd_now(size_t epochs)
{
    struct crowd c = { .n = 0 };
    AUTO_FREE char *text = harness_read(".", "count");
    for (const char *l = text; l && *l; l = strchr(l, '\n') ? strchr(l, '\n') + 1 : NULL) {
        char id[80];
        long pid;
        if (sscanf(l, "%79s %*d %*d %ld", id, &pid) != 2 || strncmp(id, "pt-", 3) != 0 || has_ended(text, id, epochs))
            continue;
        if (sched_getaffinity((pid_t)pid, sizeof c.cpus[0], &c.cpus[c.n]) == 0)
            c.pid[c.n++] = (pid_t)pid;
    }
    return c;
}

static bool are_apart(const struct crowd *c)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = i + 1; k < c->n; k++) {
            cpu_set_t both;
            CPU_AND(&both, &c->cpus[i], &c->cpus[k]);
            if (CPU_COUNT(&both) > 0)
                return false;
        }
    return true;
}

static bool two_are_apart(void *arg)
{
    struct crowd c = crowd_now(2);
    (void)arg;
    return c.n == 2 && are_apart(&c);
}

/* As long as these two run they have CPUs of their own. */
static void watch_them(void)
{
    struct crowd first = crowd_now(2);
    for (;;) {
        struct crowd c = crowd_now(2);
        if (c.n != 2 || memcmp(c.pid, first.pid, sizeof(pid_t) * 2) != 0)
            return;
        struct crowd again = crowd_now(2); /* one of them may just have ended */
        if (!are_apart(&c) && again.n == 2 && memcmp(again.pid, first.pid, sizeof(pid_t) * 2) == 0)
            fail_msg("two packed trials share a CPU");
        (void)poll(NULL, 0, 20);
    }
}

static bool all_have_all_cpus(void *arg)
{
    struct crowd c = crowd_now(2);
    (void)arg;
    for (size_t i = 0; i < c.n; i++)
        if (CPU_COUNT(&c.cpus[i]) != cpus_here())
            return false;
    return c.n == 2;
}

/* By what is stored: a trial is launched beside others only when all of them have settled, and never more at once than CPUs. */
static void expect_packed_well(size_t least_at_once, size_t most_at_once)
{
    AUTO_FREE char *rows = harness_ask(
        STORE, "SELECT kind, trial FROM decisions WHERE kind IN ('launch', 'settle', 'end', 'again') ORDER BY seq");
    bool runs[64] = { false }, settled[64] = { false };
    size_t most = 0;
    char *save = NULL;
    for (char *row = strtok_r(rows, " ", &save); row; row = strtok_r(NULL, " ", &save)) {
        char kind[16];
        int trial;
        assert_int_equal(sscanf(row, "%15[a-z]|%d", kind, &trial), 2);
        assert_true(trial > 0 && trial < 64);
        size_t now = 1;
        for (int i = 0; i < 64 && strcmp(kind, "launch") == 0; i++) {
            now += runs[i];
            if (runs[i] && !settled[i])
                fail_msg("trial %d is launched beside trial %d, which has not settled", trial, i);
        }
        most = now > most ? now : most;
        runs[trial] = strcmp(kind, "launch") == 0 || (runs[trial] && strcmp(kind, "settle") == 0);
        settled[trial] = runs[trial] && (settled[trial] || strcmp(kind, "settle") == 0) && strcmp(kind, "launch") != 0;
    }
    if (most < least_at_once || most > most_at_once)
        fail_msg("%zu at once, want %zu to %zu", most, least_at_once, most_at_once);
}

/* The first one was launched with two, and goes on with one. */
static void expect_shown(const struct world *w)
{
    struct harness_output o = RUN(w, "show", "s", "--json");
    AUTO_JSON json_t *j = json_loads(o.out, 0, NULL);
    const json_t *system = json_object_get(json_array_get(json_object_get(j, "trials"), 0), "system");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(system, "requested"), "cores")), 2);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(system, "effective"), "cores")), 1);
    harness_output_done(&o);
    expect_rows("what it was launched with", "SELECT setting ->> 'cores' FROM attempts ORDER BY trial", "2 1 1");
    o = RUN(w, "show", "s", "--decisions");
    expect_text("the probe", o.out, "probe 1 of 1 core");
    harness_output_done(&o);
}

static void packs(const struct world *w, const char *app)
{
    need_two_cpus();
    write_app(w, app);
    write_study(w, "{ \"cores\": [2, 1] }", THREE_POINTS);
    set_pace("2500", "25");
    pid_t pid = START(w, -1, "run", "c.conf");
    if (!harness_wait(two_are_apart, NULL, HARNESS_MS))
        fail_msg("no two trials with CPUs of their own");
    watch_them();
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    expect_rows("finished", TRIALS, "1|finished 2|finished 3|finished");
    assert_int_equal(trained(), 6);
    expect_packed_well(2, 2);
    expect_shown(w);
}

static void test_settled_trials_are_packed_on_cpus_of_their_own(void **state)
{
    packs(*state, "");
    assert_int_equal(sessions(), 0);
}

static void test_packed_trials_in_sessions(void **state)
{
    packs(*state, SESSION);
    assert_int_equal(sessions(), 2); /* the third goes where the first one was */
}

static bool one_session_is_left(void *arg)
{
    (void)arg;
    return running() == 1 && io_exists("pipetune.d/s/session-1/pid") != io_exists("pipetune.d/s/session-2/pid");
}

static void test_a_session_ends_when_no_trial_is_left_for_it(void **state)
{
    struct world *w = *state;
    need_two_cpus();
    write_app(w, SESSION);
    write_study(w, "{ \"cores\": [2, 1] }", THREE_POINTS);
    set_pace("2500", "25");
    pid_t pid = START(w, -1, "run", "c.conf");
    if (!harness_wait(one_session_is_left, NULL, HARNESS_MS))
        fail_msg("both sessions lasted as long as the study");
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    expect_rows("finished", TRIALS, "1|finished 2|finished 3|finished");
}

/* They settle at once, before the helper has held the first one to its CPU. */
static void test_never_more_trials_than_cpus(void **state)
{
    struct world *w = *state;
    static const char *const apps[] = { "", SESSION };
    need_two_cpus();
    write_study(w, "{ \"cores\": [1] }", FOUR_POINTS);
    set_pace("600", "6");
    for (size_t i = 0; i < ARRAY_LEN(apps); i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "s%zu", i);
        write_app(w, apps[i]);
        (void)unlink(STORE);
        expect_exit(name, RUN(w, "run", "c.conf", "--name", name), 0);
        expect_packed_well(2, (size_t)cpus_here());
    }
}

/* The BigDL file's heap counts as one that was chosen does. */
static void test_heaps_that_do_not_fit_are_not_packed(void **state)
{
    struct world *w = *state;
    write_app_of(w, "60000g", "");
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    set_pace("300", "6");
    expect_exit("run", RUN(w, "run", "c.conf"), 0);
    expect_packed_well(1, 1);
}

static void test_one_at_a_time_is_never_packed(void **state)
{
    struct world *w = *state;
    write_study(w, "{ \"cores\": [2, 1] }", THREE_POINTS);
    set_pace("300", "10");
    expect_exit("--parallel 1", RUN(w, "run", "c.conf", "--parallel", "1"), 0);
    expect_packed_well(1, 1);
}

/* The driver goes away and another takes over: the CPUs come back, and each trial has its own again. */
static void test_packed_trials_that_are_left_get_their_cpus_back(void **state)
{
    struct world *w = *state;
    need_two_cpus();
    write_study(w, "{ \"cores\": [1] }", THREE_POINTS);
    set_pace("4000", "40");
    pid_t pid = START(w, -1, "run", "c.conf");
    if (!harness_wait(two_are_apart, NULL, HARNESS_MS))
        fail_msg("no two trials with CPUs of their own");
    assert_int_equal(kill(pid, SIGHUP), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    if (!harness_wait(all_have_all_cpus, NULL, 5000))
        fail_msg("a trial that was left is held to some CPUs");
    pid = START(w, -1, "run", "c.conf");
    if (!harness_wait(two_are_apart, NULL, 5000))
        fail_msg("found again, they share CPUs");
    watch_them();
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    expect_rows("once each", "SELECT trial, number, outcome FROM attempts ORDER BY trial",
                "1|1|finished 2|1|finished 3|1|finished");
    assert_int_equal(trained(), 6);
    assert_true(running() == 0);
}

/* One of two was lost with the driver: it is not started again as if it were alone. */
static void test_a_trial_is_not_alone_while_another_is_yet_to_be_found(void **state)
{
    struct world *w = *state;
    need_two_cpus();
    write_app(w, "");
    write_study(w, "{ \"cores\": [1] }", TWO_POINTS);
    set_pace("4000", "40");
    pid_t pid = START(w, -1, "run", "c.conf");
    if (!harness_wait(two_are_apart, NULL, HARNESS_MS))
        fail_msg("no two trials with CPUs of their own");
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)harness_exit_code(pid, HARNESS_MS);
    assert_int_equal(kill(newest_process(), SIGKILL), 0);
    (void)poll(NULL, 0, 300);
    set_pace("10", "2");
    expect_exit("found", RUN(w, "run", "c.conf"), 0);
    AUTO_FREE char *asked =
        harness_ask(STORE, "SELECT text FROM tuner_log WHERE text LIKE '%L 2 %' ORDER BY seq DESC LIMIT 1");
    const char *line = strstr(asked, "L 2 ");
    if (!line || strncmp(line + strcspn(line, "\n") - 2, " 0", 2) != 0)
        fail_msg("it was launched as if it were alone: %s", asked);
    expect_rows("attempts", "SELECT trial, outcome FROM attempts ORDER BY trial, number",
                "1|finished 2|killed 2|finished");
}

/* Its launch was told of the room beside the other one, which ends before it begins to train. */
static void test_a_trial_that_begins_when_the_others_are_gone_hears_of_its_room(void **state)
{
    struct world *w = *state;
    need_two_cpus();
    write_app(w, "");
    write_study(w, "{ \"cores\": [2, 1] }", TWO_POINTS);
    (void)setenv("FAKE_START_MS", "5000", 1);
    set_pace("2500", "25");
    struct harness_output o = RUN(w, "run", "c.conf");
    (void)unsetenv("FAKE_START_MS");
    assert_int_equal(o.code, 0);
    harness_output_done(&o);
    expect_rows("packed when it was launched",
                "SELECT count(*) FROM tuner_log WHERE text LIKE '%L 2 % 1 0' || char(10) || '%'", "1");
    expect_rows("told that it is alone",
                "SELECT count(*) FROM tuner_log WHERE char(10) || text LIKE '%' || char(10) || 'l 2 % 0 2 1' || "
                "char(10) || '%'",
                "1");
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static int run_settings(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_every_policy_finishes_a_grid),
        ROW(test_v2_searches_settings_for_accuracy_over_time),
        ROW(test_v2_trains_equal_settings_once),
        ROW(test_a_dry_run_prints_stand_alone_commands),
        ROW(test_cold_knobs_without_an_order_begin_with_the_first_value),
        ROW(test_trials_share_sessions),
        ROW(test_a_trial_that_runs_out_of_memory_goes_on_with_more),
        ROW(test_where_no_memory_does_a_trial_is_infeasible),
    };
    return cmocka_run_group_tests_name("policies", tests, NULL, NULL);
}

static int run_sessions(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_a_study_may_be_about_what_a_session_tells),
        ROW(test_a_metric_that_no_session_tells_ends_the_study),
        ROW(test_a_session_that_cannot_be_had_is_told_and_done_without),
        ROW(test_a_session_that_dies_while_starting_is_started_again),
        ROW(test_mishaps_of_sessions),
        ROW(test_a_session_killed_in_mid_trial_goes_on_from_the_checkpoint),
        ROW(test_an_interrupt_ends_sessions_and_can_be_gone_on_from),
        ROW(test_a_second_interrupt_kills_a_session_at_once),
        ROW(test_an_interrupt_before_hello),
        ROW(test_a_killed_session_leaves_nothing_behind),
        ROW(test_a_session_that_is_told_to_stop_ends_by_itself),
        ROW(test_a_session_left_behind_is_found_again),
        ROW(test_a_trial_that_ended_in_a_session_left_behind_is_not_trained_again),
        ROW(test_a_run_that_was_never_sent_goes_on_from_its_checkpoint),
        ROW(test_a_trial_that_is_found_running_alone_is_tuned),
    };
    return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}

static int run_packing(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_settled_trials_are_packed_on_cpus_of_their_own),
        ROW(test_one_at_a_time_is_never_packed),
        ROW(test_never_more_trials_than_cpus),
        ROW(test_a_trial_is_not_alone_while_another_is_yet_to_be_found),
        ROW(test_a_trial_that_begins_when_the_others_are_gone_hears_of_its_room),
    };
    return cmocka_run_group_tests_name("packing", tests, NULL, NULL);
}

static int run_packing_in_sessions(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_packed_trials_in_sessions),
        ROW(test_a_session_ends_when_no_trial_is_left_for_it),
        ROW(test_packed_trials_that_are_left_get_their_cpus_back),
        ROW(test_heaps_that_do_not_fit_are_not_packed),
    };
    return cmocka_run_group_tests_name("packing in sessions", tests, NULL, NULL);
}

/* All at once: a study mostly waits. */
int main(void)
{
    int (*const groups[])(void) = { run_settings, run_sessions, run_packing, run_packing_in_sessions };
    pid_t pids[ARRAY_LEN(groups)];
    int failed = 0;
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            return groups[i]();
    }
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        int how = 0;
        if (pids[i] < 0 || waitpid(pids[i], &how, 0) != pids[i] || !WIFEXITED(how) || WEXITSTATUS(how) != 0)
            failed = 1;
    }
    return failed;
}
