/* A disk on which every fsync takes its time (tests/faults.so): lines of logs are looked at as often as ever, everything is stored, and the
 * study ends as on any other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "tests/integration/harness.h"

#define STORE "pipetune.db"
enum {
    PATIENCE_MS = 90000,
    SYNC_MS = 800,
    LOOK_MS = 780 /* a look every 100 ms, on a machine that has other things to do */
};

static const char bigdl[] =
    "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\",\n"
    "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"], \"learning_rate\": [\"--learning-rate\", \"{}\"],\n"
    "    \"epochs\": [\"--epochs\", \"{}\"], \"checkpoint\": [\"--checkpoint\", \"{}\"], \"seed\": [\"--seed\", "
    "\"{}\"],\n"
    "    \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }\n";

static const char config[] = "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 8 },\n"
                             "  \"monitoring\": { \"meters\": \"estimate\", \"interval\": 0.2 },\n"
                             "  \"tuning\": { \"window_seconds\": 0.5 },\n"
                             "  \"systemParameters\": { \"cores\": [2, 1] },\n"
                             "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1] } }\n";

static int set_up(void **state)
{
    if (world_open(state) < 0)
        return -1;
    struct world *w = *state;
    AUTO_FREE char *preload = harness_program("tests/faults.so"), *slow = NULL;
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json", bigdl);
    harness_write(w->dir, "c.conf", config);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    world_point_at(w, "XDG_RUNTIME_DIR", "empty");
    (void)setenv("FAKE_EPOCH_MS", "700", 1);
    (void)setenv("FAKE_ITERATIONS", "20", 1);
    (void)setenv("LD_PRELOAD", preload, 1);
    if (asprintf(&slow, "%d:%s/looks", SYNC_MS, w->dir) < 0)
        return -1;
    (void)setenv("PIPETUNE_SLOW_SYNC", slow, 1);
#if defined(__SANITIZE_ADDRESS__) /* its runtime would have to be loaded before */
    (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
#endif
    return 0;
}

static int tear_down(void **state)
{
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("PIPETUNE_SLOW_SYNC");
    (void)unsetenv("XDG_RUNTIME_DIR");
    return world_close(state);
}

static void no_line_waits_for_the_disk(void **state)
{
    struct world *w = *state;
    assert_int_equal(harness_exit_code(START(w, -1, "run", "c.conf"), PATIENCE_MS), 0);
    AUTO_FREE char *text = harness_read(w->dir, "looks");
    double longest_ms = 0;
    long looks = 0;
    assert_int_equal(sscanf(text, "%lf %ld", &longest_ms, &looks), 2);
    assert_true(looks > 30);
    if (longest_ms > LOOK_MS)
        fail_msg("no look at the log for %.0f ms, of %ld looks", longest_ms, looks);
    harness_expect_rows("epochs", STORE, "SELECT count(*) FROM epochs", "8");
    harness_expect_rows("tells", STORE, "SELECT count(*) FROM tells WHERE NOT done", "8");
    harness_expect_rows("readings", STORE, "SELECT count(*) > 10 FROM energy", "1");
    harness_expect_rows("the policy's log", STORE, "SELECT count(*) > 3 FROM tuner_log", "1");
    harness_expect_rows("the study", STORE, "SELECT state FROM studies", "finished");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_line_waits_for_the_disk, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("slow_disk", tests, NULL, NULL);
}
