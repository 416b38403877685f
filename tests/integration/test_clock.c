/* The wall clock is set, for all programs at once, while a trial trains: no second is counted that nobody waited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "tests/integration/harness.h"

enum { EPOCH_MS = 1000, EPOCHS = 3, SET_AFTER_MS = 2200 };

static int set_up(void **state)
{
    if (world_open(state) < 0)
        return -1;
    const struct world *w = *state;
    (void)setenv("FAKE_EPOCH_MS", "1000", 1), (void)setenv("FAKE_ITERATIONS", "20", 1);
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json",
                  "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\",\n"
                  "  \"arguments\": { \"batch_size\": [\"-b\", \"{}\"], \"learning_rate\": [\"-r\", \"{}\"],\n"
                  "    \"epochs\": [\"-e\", \"{}\"] } }\n");
    harness_write(w->dir, "c.conf",
                  "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 3, \"parallel\": 1 },\n"
                  "  \"systemParameters\": { \"cores\": [1] },\n"
                  "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1] } }\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)unsetenv("PIPETUNE_CLOCK_SET");
    return world_close(state);
}

static void set_clock(long by_ms)
{
    char text[64];
    AUTO_FREE char *preload = harness_program("tests/faults.so");
    (void)snprintf(text, sizeof text, "%lld:%ld", (long long)clock_boot_ms() + SET_AFTER_MS, by_ms);
    (void)setenv("PIPETUNE_CLOCK_SET", text, 1);
    (void)setenv("LD_PRELOAD", preload, 1);
#if defined(__SANITIZE_ADDRESS__) /* its runtime would have to be loaded before */
    (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
#endif
}

/* One number of the store. */
static double ask(const char *sql)
{
    AUTO_FREE char *text = harness_ask("pipetune.db", sql);
    return strtod(text, NULL);
}

static void expect_between(const char *what, double got, double least, double most)
{
    if (!(got >= least && got <= most))
        fail_msg("%s: got %g, want %g to %g", what, got, least, most);
}

static void expect_true_seconds(const char *name, double took_s)
{
    char what[160];
    (void)snprintf(what, sizeof what, "%s: seconds of the trial", name);
    expect_between(what, ask("SELECT seconds FROM trials"), EPOCHS * EPOCH_MS / 1000.0 * 0.9, took_s);
    (void)snprintf(what, sizeof what, "%s: the shortest epoch", name);
    expect_between(what, ask("SELECT min(seconds) FROM epochs"), EPOCH_MS / 1000.0 * 0.7, took_s);
    (void)snprintf(what, sizeof what, "%s: all epochs", name);
    expect_between(what, ask("SELECT sum(seconds) FROM epochs"), EPOCHS * EPOCH_MS / 1000.0 * 0.8, took_s);
    (void)snprintf(what, sizeof what, "%s: the last decision", name);
    expect_between(what, ask("SELECT max(t_s) FROM decisions"), EPOCHS * EPOCH_MS / 1000.0 * 0.9, took_s + 1);
    (void)snprintf(what, sizeof what, "%s: the start-up", name);
    expect_between(what, ask("SELECT coalesce(startup_s, 0) FROM attempts"), 0, took_s);
}

static const struct {
    const char *name;
    long by_ms;
} cases[] = { { "two hours on", 7200000 }, { "two hours back", -7200000 }, { "ten seconds back", -10000 } };

static void test_a_clock_that_is_set_changes_no_duration(void **state)
{
    const struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t from = clock_boot_ms();
        set_clock(cases[i].by_ms);
        struct harness_output o = RUN(w, "run", "c.conf");
        assert_int_equal(o.code, 0);
        harness_output_done(&o);
        (void)unsetenv("LD_PRELOAD");
        expect_true_seconds(cases[i].name, (double)(clock_boot_ms() - from) / 1000);
        assert_int_equal(unlink("pipetune.db"), 0);
    }
}

static bool has_trained(void *arg)
{
    const struct world *w = arg;
    AUTO_FREE char *text = harness_read(w->dir, "count");
    return text && strstr(text, "trained ");
}

/* It is set while no driver watches; the next one reads what was written meanwhile. */
static void test_also_where_another_driver_goes_on(void **state)
{
    const struct world *w = *state;
    int64_t from = clock_boot_ms();
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    set_clock(7200000);
    pid_t pid = START(w, -1, "run", "c.conf");
    assert_true(harness_wait(has_trained, (void *)w, HARNESS_MS));
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)harness_exit_code(pid, HARNESS_MS);
    (void)usleep(1500 * 1000); /* the clock is set meanwhile */
    struct harness_output o = RUN(w, "run", "c.conf");
    assert_int_equal(o.code, 0);
    harness_output_done(&o);
    (void)unsetenv("LD_PRELOAD");
    double took_s = (double)(clock_boot_ms() - from) / 1000;
    expect_between("attempts", ask("SELECT count(*) FROM attempts"), 1, 1);
    expect_between("seconds of the trial", ask("SELECT seconds FROM trials"), EPOCHS * EPOCH_MS / 1000.0 * 0.9, took_s);
    expect_between("the longest epoch", ask("SELECT max(seconds) FROM epochs"), EPOCH_MS / 1000.0 * 0.7, took_s);
    expect_between("the last decision", ask("SELECT max(t_s) FROM decisions"), EPOCHS * EPOCH_MS / 1000.0 * 0.9,
                   took_s);
}

/* It was set after the study ended, and the study is told to go on. */
static void test_also_where_a_user_tells_it_to_go_on(void **state)
{
    const struct world *w = *state;
    int64_t from = clock_boot_ms();
    struct harness_output o = RUN(w, "run", "c.conf");
    assert_int_equal(o.code, 0);
    harness_output_done(&o);
    free(harness_ask("pipetune.db", "UPDATE trials SET state = 'failed'"));
    set_clock(7200000);
    (void)usleep((SET_AFTER_MS + 100) * 1000);
    o = RUN(w, "retry", "s");
    (void)unsetenv("LD_PRELOAD");
    assert_int_equal(o.code, 0);
    harness_output_done(&o);
    expect_between("when it was told", ask("SELECT t_s FROM decisions WHERE kind = 'retry'"), 2.0,
                   (double)(clock_boot_ms() - from) / 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_clock_that_is_set_changes_no_duration, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_also_where_another_driver_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_also_where_a_user_tells_it_to_go_on, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
