/* Figures of a study for other programs: what is written is what was stored, and reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "tests/integration/harness.h"

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

/* Trains --epochs N of two iterations each. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "for word; do case $last in --epochs) epochs=$word ;; esac; last=$word; done\n"                                    \
    "epoch=0; while [ $epoch -lt $epochs ]; do epoch=$((epoch + 1))\n"                                                 \
    "  for i in 1 2; do echo \"step $((2 * epoch - 2 + i)): loss 0.$((9 - epoch))\"; done\n"                           \
    "  sleep 0.05; echo \"epoch $epoch: loss 0.$((9 - epoch)), accuracy 0.$((epoch + 1)), f1 0.$epoch\"\n"             \
    "done\n"
#define APPLICATION                                                                                                    \
    "{ \"command\": [\"./train.sh\"],\n"                                                                               \
    "  \"arguments\": { \"batch_size\": [\"--batch\", \"{}\"], \"learning_rate\": [\"--lr\", \"{}\"],\n"               \
    "    \"epochs\": [\"--epochs\", \"{}\"] },\n"                                                                      \
    "  \"progress\": [\"step (?<step>\\\\d+): loss (?<loss>\\\\S+)\",\n"                                               \
    "    \"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+), accuracy (?<accuracy>\\\\S+), f1 (?<f1>\\\\S+)\"] }\n"
#define STUDY                                                                                                          \
    "{ \"application\": \"s.json\", \"study\": { \"name\": \"s\", \"epochs\": 3 }, \"tuning\": { \"policy\": \"v1\" "  \
    "},\n"                                                                                                             \
    "  \"systemParameters\": { \"cores\": [1] },\n"                                                                    \
    "  \"hyperParameters\": { \"batch_size\": [32, 64], \"learning_rate\": [0.1] } }\n"

static int open_plain(void **state)
{
    if (world_open(state) < 0)
        return -1;
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME" };
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    const struct world *w = *state;
    world_script(w, "train.sh", TRAIN);
    harness_write(w->dir, "s.json", APPLICATION);
    harness_write(w->dir, "s.conf", STUDY);
    return 0;
}

static void expect(const char *what, const struct harness_output *o, int code, const char *text)
{
    if (o->code != code || !strstr(code ? o->err : o->out, text))
        fail_msg("%s: got exit %d, %s%s; want %d, '%s'", what, o->code, o->out, o->err, code, text);
}

static void run_study(const struct world *w)
{
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "--config", "s.conf");
    expect("run", &o, 0, "s/2: finished");
}

/* --- CSV --- */

static void expect_file(const struct world *w, const char *name, const char *const *parts)
{
    AUTO_FREE char *text = harness_read(w->dir, name);
    if (!text)
        fail_msg("there is no %s", name);
    for (; *parts; parts++)
        if (!strstr(text, *parts))
            fail_msg("%s: no '%s' in\n%s", name, *parts, text);
}

#define EXPECT_FILE(w, name, ...) expect_file(w, name, (const char *const[]){ __VA_ARGS__, NULL })

static void a_study_is_written_as_csv(void **state)
{
    const struct world *w = *state;
    run_study(w);
    AUTO_OUTPUT struct harness_output o = RUN(w, "export", "csv", "s", "out/all");
    expect("export", &o, 0, "");
    EXPECT_FILE(w, "out/all/s.trials.csv", "trial,state,hyper.batch_size,hyper.learning_rate", "2,finished,64,0.1,");
    EXPECT_FILE(w, "out/all/s.epochs.csv", "trial,attempt,epoch,accuracy,loss,metric,seconds,records,iterations,",
                "\n1,1,2,0.3,0.7,0.3,", "\n2,1,3,0.4,0.6,0.4,");
    EXPECT_FILE(w, "out/all/s.metrics.csv", "trial,attempt,epoch,metric,value,unix_s\n", "\n2,1,3,f1,0.3,");
    EXPECT_FILE(w, "out/all/s.iterations.csv", "trial,attempt,epoch,iteration,metric,value,unix_s\n", ",4,loss,0.7,");
    EXPECT_FILE(w, "out/all/s.settings.csv", "trial,attempt,epoch,start_s,seconds,records,cores\n", "1,1,", "2,1,");
    EXPECT_FILE(w, "out/all/s.energy.csv", "kind,node,name,trial,epoch,meter,source,j,");
    harness_expect_rows("as many rows as are stored", "pipetune.db", "SELECT count(*) FROM series WHERE step > 0",
                        "12");
    AUTO_FREE char *iterations = harness_read(w->dir, "out/all/s.iterations.csv");
    assert_int_equal(harness_count(iterations, "\n"), 13);
}

static void what_was_written_is_read_back(void **state)
{
    const struct world *w = *state;
    run_study(w);
    AUTO_OUTPUT struct harness_output o = RUN(w, "export", "csv", "s", "out");
    expect("export", &o, 0, "");
    AUTO_OUTPUT struct harness_output in =
        RUN(w, "trace", "import", "--format", "timeline", "out/s.timeline.csv", "-o", "t.h5");
    expect("a timeline", &in, 0, "2 runs (2 complete, 0 partial, 0 failed, 0 running), 6 epochs");
    AUTO_OUTPUT struct harness_output offline = RUN(w, "replay", "offline", "out/s.timeline.csv");
    expect("a replay of it", &offline, 0, "");
    AUTO_OUTPUT struct harness_output online = RUN(w, "replay", "online", "out", "--json");
    expect("a job of a queue", &online, 0, "");
    EXPECT_FILE(w, "out/TuneV1Load_1_1.csv", "1,s,1,0.1,", ",3,");
}

static void jobs_of_other_studies_stay(void **state)
{
    const struct world *w = *state;
    static const char other[] = "1,t,1,0.2,64,3,1,2,3,0.5,2,0.5,,\n", old[] = "1,s,1,0.2,64,3,1,2,3,0.5,2,0.5,,\n";
    char text[256];
    run_study(w);
    world_dir(w, "out");
    (void)snprintf(text, sizeof text, "%s%s", old, other);
    harness_write(w->dir, "out/TuneV1Load_1_1.csv", text);
    AUTO_OUTPUT struct harness_output o = RUN(w, "export", "csv", "s", "out");
    expect("export", &o, 0, "");
    AUTO_FREE char *jobs = harness_read(w->dir, "out/TuneV1Load_1_1.csv");
    assert_int_equal(harness_count(jobs, "\n"), 2);
    assert_int_equal(harness_count(jobs, "1,s,"), 1);
    assert_non_null(strstr(jobs, other));
    harness_write(w->dir, "out/TuneV1Load_1_1.csv", "a,b\n");
    AUTO_OUTPUT struct harness_output broken = RUN(w, "export", "csv", "s", "out");
    expect("a file that is no such one", &broken, 2, "TuneV1Load_1_1.csv'");
}

static void what_cannot_be_exported_is_told(void **state)
{
    static const struct {
        const char *words[4];
        int code;
        const char *told;
    } cases[] = {
        { { "export" }, 2, "export what?" },
        { { "export", "cvs", "s", "out" }, 2, "did you mean 'csv'?" },
        { { "export", "csv", "s" }, 2, "'export csv' takes 2 words: pipetune export csv STUDY DIR" },
        { { "export", "csv", "s/1", "out" }, 2, "'s/1' is a trial" },
        { { "export", "csv", "t", "out" }, 2, "no study 't'" },
        { { "export", "csv", "s", "s.json/x" }, 3, "s.json" },
    };
    const struct world *w = *state;
    run_study(w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *words[5] = { 0 };
        memcpy(words, cases[i].words, sizeof cases[i].words);
        AUTO_OUTPUT struct harness_output o = world_run(w, words);
        expect(cases[i].told, &o, cases[i].code, cases[i].told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_study_is_written_as_csv, open_plain, world_close),
        cmocka_unit_test_setup_teardown(what_was_written_is_read_back, open_plain, world_close),
        cmocka_unit_test_setup_teardown(jobs_of_other_studies_stay, open_plain, world_close),
        cmocka_unit_test_setup_teardown(what_cannot_be_exported_is_told, open_plain, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
