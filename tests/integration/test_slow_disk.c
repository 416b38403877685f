/* A disk on which every fsync takes its time (tests/faults.so): lines of logs are read meanwhile, whatever is being stored, everything is stored,
 * and the study ends as on any other. What happens tells a story, in the order of its lines: "sync" and "synced" stand around each fsync,
 * "lines" where a trial's are read, failpoints where they are passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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
enum { PATIENCE_MS = 90000 };
#define SYNC_MS "500"

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

/* --- a program that prints until others have come and gone --- */

static const char script[] = "#!/bin/sh\n"
                             "[ $2 = 0.1 ] && until [ \"$(grep -c end-committed $PIPETUNE_STORY)\" -ge 2 ]; do\n"
                             "  n=$((n + 1)); echo \"step $n loss 0.5\"; sleep 0.02\n"
                             "done\n"
                             "echo \"epoch 1: accuracy $2\"\n";

static const char command[] = "{ \"kind\": \"command\", \"command\": [\"./train.sh\"],\n"
                              "  \"progress\": [\"step (?<step>\\\\d+) loss (?<loss>\\\\S+)\",\n"
                              "    \"epoch (?<epoch>\\\\d+): accuracy (?<accuracy>\\\\S+)\"],\n"
                              "  \"arguments\": { \"lr\": [\"--lr\", \"{}\"] } }\n";

static const char beside[] =
    "{ \"application\": \"train.json\",\n"
    "  \"study\": { \"name\": \"s\", \"epochs\": 1, \"parallel\": 2 }, \"tuning\": { \"policy\": \"v1\" },\n"
    "  \"systemParameters\": { \"cores\": [1] }, \"hyperParameters\": { \"lr\": [0.1, 0.2, 0.3] } }\n";

static int set_up(void **state)
{
    if (world_open(state) < 0)
        return -1;
    struct world *w = *state;
    AUTO_FREE char *preload = harness_program("tests/faults.so");
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json", bigdl);
    harness_write(w->dir, "c.conf", config);
    world_script(w, "train.sh", script);
    harness_write(w->dir, "train.json", command);
    harness_write(w->dir, "beside.conf", beside);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    world_point_at(w, "XDG_RUNTIME_DIR", "empty");
    world_point_at(w, "PIPETUNE_STORY", "story");
    (void)setenv("FAKE_EPOCH_MS", "700", 1);
    (void)setenv("FAKE_ITERATIONS", "20", 1);
    (void)setenv("LD_PRELOAD", preload, 1);
    (void)setenv("PIPETUNE_SLOW_SYNC", SYNC_MS, 1);
#if defined(__SANITIZE_ADDRESS__) /* its runtime would have to be loaded before */
    (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
#endif
    return 0;
}

static int tear_down(void **state)
{
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("PIPETUNE_SLOW_SYNC");
    (void)unsetenv("PIPETUNE_STORY");
    (void)unsetenv("XDG_RUNTIME_DIR");
    return world_close(state);
}

/* --- the story --- */

struct story {
    char *text;
    char **word;
    size_t n;
};

static struct story read_story(const struct world *w)
{
    struct story s = { .text = harness_read(w->dir, "story") };
    s.word = calloc(strlen(s.text) + 1, sizeof *s.word);
    char *rest = NULL;
    for (char *line = strtok_r(s.text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        s.word[s.n++] = line;
    return s;
}

static void story_done(struct story *s)
{
    free(s->text);
    free(s->word);
}

static bool says(const struct story *s, size_t at, const char *word)
{
    return at < s->n && strcmp(s->word[at], word) == 0;
}

/* From `at` on; n: nowhere. */
static size_t next(const struct story *s, size_t at, const char *word)
{
    while (at < s->n && !says(s, at, word))
        at++;
    return at;
}

static size_t last(const struct story *s, const char *word)
{
    size_t at = s->n;
    while (at > 0 && !says(s, at - 1, word))
        at--;
    return at > 0 ? at - 1 : s->n;
}

/* While there was something to be read, each fsync leaves time to read it. How many there were. */
static int expect_lines_within_syncs(const struct story *s)
{
    int n = 0;
    size_t end = last(s, "lines");
    for (size_t at = next(s, next(s, 0, "lines"), "sync"); at < end; at = next(s, at + 1, "sync"), n++)
        if (next(s, at, "lines") > next(s, at, "synced"))
            fail_msg("no line was read while the disk was written to, of %zu words from word %zu on", s->n, at);
    return n;
}

/* How many of these were stored while lines were read. */
static int count_stored_beside(const struct story *s, const char *put, const char *committed)
{
    int n = 0;
    for (size_t at = next(s, 0, put); at < s->n; at = next(s, at + 1, put)) {
        size_t sync = next(s, at, "sync"), synced = next(s, sync, "synced");
        assert_true(synced < next(s, at, committed));
        n += next(s, sync, "lines") < synced;
    }
    return n;
}

static void no_line_waits_for_the_disk(void **state)
{
    struct world *w = *state;
    assert_int_equal(harness_exit_code(START(w, -1, "run", "c.conf"), PATIENCE_MS), 0);
    struct story s = read_story(w);
    assert_true(expect_lines_within_syncs(&s) > 5);
    story_done(&s);
    harness_expect_rows("epochs", STORE, "SELECT count(*) FROM epochs", "8");
    harness_expect_rows("tells", STORE, "SELECT count(*) FROM tells WHERE NOT done", "8");
    harness_expect_rows("readings", STORE, "SELECT count(*) > 10 FROM energy", "1");
    harness_expect_rows("the policy's log", STORE, "SELECT count(*) > 3 FROM tuner_log", "1");
    harness_expect_rows("the study", STORE, "SELECT state FROM studies", "finished");
}

static void nor_for_the_launch_and_the_end_of_others(void **state)
{
    struct world *w = *state;
    assert_int_equal(harness_exit_code(START(w, -1, "run", "beside.conf"), PATIENCE_MS), 0);
    struct story s = read_story(w);
    assert_true(expect_lines_within_syncs(&s) > 3);
    assert_true(count_stored_beside(&s, "attempt-before-commit", "attempt-committed") >=
                1);                                                                     /* two may begin together */
    assert_int_equal(count_stored_beside(&s, "end-before-commit", "end-committed"), 2); /* and one is the last */
    story_done(&s);
    harness_expect_rows("ends", STORE, "SELECT number, state FROM trials ORDER BY 1",
                        "1|finished 2|finished 3|finished");
    harness_expect_rows("the study", STORE, "SELECT state FROM studies", "finished");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_line_waits_for_the_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nor_for_the_launch_and_the_end_of_others, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("slow_disk", tests, NULL, NULL);
}
