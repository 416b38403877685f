/* `pipetune run` with meters and an InfluxDB, over a fake spark-submit, the real helper, and a server of the test's own: what is delivered, what
 * becomes of a study whose server is away, and what is refused before anything begins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "tests/integration/harness.h"
#include "tests/integration/sink.h"

#define STORE "pipetune.db"

static const char bigdl[] =
    "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\",\n"
    "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"], \"learning_rate\": [\"--learning-rate\", \"{}\"],\n"
    "    \"epochs\": [\"--epochs\", \"{}\"], \"checkpoint\": [\"--checkpoint\", \"{}\"], \"seed\": [\"--seed\", "
    "\"{}\"],\n"
    "    \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }\n";

/* One trial of two epochs, about 1.5 s long. `more`: members with their commas. */
static void write_study(const struct world *w, const char *more)
{
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&text,
                         "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 2 }, %s\n"
                         "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1] } }\n",
                         more) > 0);
    harness_write(w->dir, "c.conf", text);
}

static void write_metered(const struct world *w, unsigned port)
{
    AUTO_FREE char *more = NULL;
    assert_true(asprintf(&more,
                         "\"monitoring\": { \"meters\": \"estimate\", \"interval\": 0.2 },\n"
                         "  \"systemParameters\": { \"cores\": [1] },\n"
                         "  \"influxdb\": { \"url\": \"http://127.0.0.1:%u\" },",
                         port) > 0);
    write_study(w, more);
}

static int set_up(void **state)
{
    if (world_open(state) < 0)
        return -1;
    struct world *w = *state;
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json", bigdl);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    world_point_at(w, "XDG_RUNTIME_DIR", "empty");
    (void)setenv("FAKE_EPOCH_MS", "700", 1);
    (void)setenv("FAKE_ITERATIONS", "10", 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)unsetenv("XDG_RUNTIME_DIR");
    return world_close(state);
}

static unsigned long number_behind(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    if (!at)
        fail_msg("no '%s' in: %s", words, text);
    return strtoul(at + strlen(words), NULL, 10);
}

static void expect(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("no '%s' in: %s", what, text);
}

/* --- cases ----------------------------------------------------------------------------------------------------------------- */

static void all_that_is_measured_is_delivered_and_accounted(void **state)
{
    struct world *w = *state;
    struct sink *server = sink_new();
    write_metered(w, sink_port(server));
    struct harness_output o = RUN(w, "run", "c.conf");
    AUTO_FREE char *lines = sink_lines(server);
    AUTO_FREE char *head = sink_head(server);
    if (o.code != 0)
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    unsigned long produced = number_behind(o.err, "produced ");
    assert_int_equal(number_behind(o.err, "= stored "), produced);
    assert_int_equal(harness_count(lines, "\n"), produced);
    expect(head, "db=energy");
    expect(lines, "pipetune_energy,");
    expect(lines, "meter=estimate");
    expect(lines, "pipetune_iteration,");
    assert_int_equal(harness_count(lines, "pipetune_iteration,"), 20);
    assert_int_equal(harness_count(lines, "pipetune_epoch,"), 2);
    assert_int_equal(harness_count(lines, "pipetune_trial,"), 2); /* its begin and its end */
    expect(lines, " state=\"running\",attempt=1i,epochs=2i,begin_ms=");
    expect(lines, " state=\"finished\",attempt=1i,epochs=2i,end_ms=");
    assert_int_equal(harness_count(lines, ",batch_size=64.0,learning_rate=0.1 "), 2);
    expect(lines, "pipetune_setting,");
    expect(lines, " cores=");
    AUTO_FREE char *decisions = harness_ask(STORE, "SELECT count(*) FROM decisions");
    assert_int_equal(harness_count(lines, "pipetune_decision,"), strtoul(decisions, NULL, 10));
    if (strstr(lines, "unsupported"))
        fail_msg("what was not measured is a field: %s", lines);
    expect(o.out, "estimated (estimate)");
    harness_expect_rows("readings", STORE, "SELECT count(*) > 3 FROM energy WHERE meter = 'estimate' AND state = 'ok'",
                        "1");
    harness_output_done(&o);
    sink_free(server);
}

/* The server is away, and comes back: nothing is lost, and no study waits for it. */
static void what_cannot_be_delivered_waits_for_the_next_run(void **state)
{
    struct world *w = *state;
    struct sink *server = sink_new();
    sink_answer(server, SINK_BUSY);
    write_metered(w, sink_port(server));
    struct harness_output o = RUN(w, "run", "c.conf");
    assert_int_equal(o.code, 1);
    unsigned long waiting = number_behind(o.err, " + waiting ");
    assert_int_equal(number_behind(o.err, "produced "), waiting);
    assert_true(waiting > 25);
    expect(o.out, "study s: finished");
    harness_output_done(&o);
    harness_expect_rows("the study", STORE, "SELECT state FROM studies", "finished");
    sink_answer(server, NULL);
    o = RUN(w, "run", "c.conf");
    AUTO_FREE char *lines = sink_lines(server);
    if (o.code != 0)
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    assert_int_equal(number_behind(o.err, "= stored "), waiting);
    assert_int_equal(harness_count(lines, "\n"), waiting);
    harness_output_done(&o);
    sink_free(server);
}

static bool has_finished(void *arg)
{
    (void)arg;
    AUTO_FREE char *rows = harness_ask(STORE, "SELECT count(*) FROM trials WHERE state = 'finished'");
    return strcmp(rows, "1") == 0;
}

/* Ctrl-C while the last lines are waited for. */
static void a_signal_ends_the_waiting_and_not_the_study(void **state)
{
    struct world *w = *state;
    struct sink *server = sink_new();
    sink_answer(server, SINK_BUSY);
    write_metered(w, sink_port(server));
    pid_t pid = START(w, -1, "run", "c.conf");
    assert_true(harness_wait_file(w->dir, "pipetune.d/s/1/log", 10000));
    assert_true(harness_wait(has_finished, NULL, 15000));
    (void)usleep(4000000); /* the last reading has come, and the drain has begun */
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, 5000), 1);
    harness_expect_rows("the study", STORE, "SELECT state FROM studies", "finished");
    sink_free(server);
}

static void a_meter_that_is_not_there_stops_nothing(void **state)
{
    struct world *w = *state;
    world_dir(w, "sys");
    world_point_at(w, "PIPETUNE_SYSFS", "sys");
    write_study(w, "\"monitoring\": { \"meters\": [\"rapl\"], \"interval\": 0.2 },");
    struct harness_output o = RUN(w, "run", "c.conf");
    (void)unsetenv("PIPETUNE_SYSFS");
    if (o.code != 0)
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    expect(o.out, "rapl");
    harness_expect_rows("readings", STORE, "SELECT count(*) FROM energy WHERE meter = 'rapl'", "0");
    harness_output_done(&o);
}

static const struct {
    const char *name, *more, *want;
} faults[] = {
    { "joules without a meter", "\"objective\": \"energy\",", "the objective 'energy' needs a meter" },
    { "joules that are read too rarely",
      "\"objective\": \"edp\", \"monitoring\": { \"meters\": \"estimate\", \"interval\": 10 },",
      "'monitoring.interval' is 10 s, 'tuning.window_seconds' 3 s" },
    { "an outlet of nobody",
      "\"powerMeter\": { \"name\": \"pdu\", \"url\": \"http://127.0.0.1:9\", \"outlets\": { \"elsewhere\": 1 } },",
      "an outlet of 'elsewhere', which is neither 'localhost' nor one of 'nodes'" },
    { "two outlets of one node",
      "\"powerMeter\": [{ \"name\": \"pdu\", \"url\": \"http://127.0.0.1:9\", \"outlets\": { \"localhost\": 1 } }, "
      "{ \"name\": \"pdu\", \"url\": \"http://127.0.0.1:9\", \"outlets\": { \"localhost\": 2 } }],",
      "more than one outlet of 'localhost'" },
};

static void what_cannot_be_metered_is_refused_before_anything_begins(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        write_study(w, faults[i].more);
        struct harness_output o = RUN(w, "run", "c.conf");
        if (o.code != 2 || !strstr(o.err, faults[i].want) || access(STORE, F_OK) == 0)
            fail_msg("%s: exit %d: %s", faults[i].name, o.code, o.err);
        harness_output_done(&o);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(all_that_is_measured_is_delivered_and_accounted),
        CASE(what_cannot_be_delivered_waits_for_the_next_run),
        CASE(a_signal_ends_the_waiting_and_not_the_study),
        CASE(a_meter_that_is_not_there_stops_nothing),
        CASE(what_cannot_be_metered_is_refused_before_anything_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
