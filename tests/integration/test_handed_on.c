/* Figures of a study for other programs: what is written is what was stored, and reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
#define APPLICATION_MEMBERS                                                                                            \
    "\"command\": [\"./train.sh\"],\n"                                                                                 \
    "  \"arguments\": { \"batch_size\": [\"--batch\", \"{}\"], \"learning_rate\": [\"--lr\", \"{}\"],\n"               \
    "    \"epochs\": [\"--epochs\", \"{}\"] },\n"                                                                      \
    "  \"progress\": [\"step (?<step>\\\\d+): loss (?<loss>\\\\S+)\",\n"                                               \
    "    \"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+), accuracy (?<accuracy>\\\\S+), f1 (?<f1>\\\\S+)\"]"
#define APPLICATION "{ " APPLICATION_MEMBERS " }\n"
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

/* --- what changed, and beginning again --- */

static void run_other(const struct world *w)
{
    harness_write(w->dir, "s.conf", STUDY);
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "--config", "s.conf", "--name", "t", "--seed", "7");
    expect("the other", &o, 0, "t/2: finished");
}

static void what_changed_between_studies_is_told(void **state)
{
    const struct world *w = *state;
    run_study(w);
    AUTO_OUTPUT struct harness_output alike = RUN(w, "diff", "s/1", "s/1");
    expect("the same", &alike, 0, "nothing differs");
    world_script(w, "train.sh", TRAIN "# a better one\n");
    run_other(w);
    AUTO_OUTPUT struct harness_output o = RUN(w, "diff", "s/1", "t/1");
    expect("the sum", &o, 0, "code.train.sh");
    expect("its lines", &o, 0, "\ntrain.sh: 0 lines less, 1 more\n@@ 7\n+# a better one\n");
    expect("the config", &o, 0, "config.study.seed");
    if (strstr(o.out, "machine.") || strstr(o.out, "config.study.name"))
        fail_msg("what is alike is told: %s", o.out);
    AUTO_OUTPUT struct harness_output json = RUN(w, "diff", "s/1", "t/1", "--json");
    expect("as JSON", &json, 0, "\"name\": \"train.sh\"");
}

static void a_trial_is_begun_again_from_what_it_was(void **state)
{
    const struct world *w = *state;
    run_study(w);
    world_script(w, "train.sh", "#!/bin/sh\nexit 1\n"); /* what it became */
    harness_write(w->dir, "s.json", "{}");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "--from", "s/2");
    expect("again", &o, 0, "s-2/1: finished: accuracy 0.4");
    harness_expect_rows("its point", "pipetune.db",
                        "SELECT hyper FROM trials t JOIN studies s ON s.id = t.study WHERE s.name = 's-2'",
                        "{\"batch_size\": 64, \"learning_rate\": 0.1}");
    AUTO_FREE char *script = harness_read(w->dir, "s-2.from/source/train.sh");
    assert_string_equal(script, TRAIN);
    AUTO_OUTPUT struct harness_output same = RUN(w, "diff", "s/2", "s-2/1");
    if (strstr(same.out, "code."))
        fail_msg("code differs: %s", same.out);
    AUTO_OUTPUT struct harness_output on = RUN(w, "run", "--from", "s/2");
    expect("once more goes on", &on, 0, "s-2/1");
}

/* A program reads what stands beside it; here it is the shell that does. */
static void modules_beside_a_program_are_kept_with_it(void **state)
{
    enum { LARGE = (1 << 20) + 1 };
    const struct world *w = *state;
    world_dir(w, "app");
    harness_write(w->dir, "app/main.py", ". \"${0%/*}/model.py\"\n");
    harness_write(w->dir, "app/model.py", TRAIN);
    harness_write(w->dir, "s.json", APPLICATION);
    AUTO_FREE char *app = harness_read(w->dir, "s.json");
    char text[2048];
    const char *rest = strstr(app, "\"./train.sh\"") + strlen("\"./train.sh\"");
    (void)snprintf(text, sizeof text, "{ \"command\": [\"sh\", \"app/main.py\"%s", rest);
    harness_write(w->dir, "s.json", text);
    AUTO_FREE char *large = calloc(LARGE + 1, 1);
    memset(large, '#', LARGE);
    harness_write(w->dir, "app/large.py", large);
    run_study(w);
    harness_expect_rows(
        "all of them, and how much of each", "pipetune.db",
        "SELECT name, coalesce(length(bytes) > 0, 0) FROM sources LEFT JOIN contents USING(sha256) ORDER BY name",
        "app/large.py|0 app/main.py|1 app/model.py|1");
    harness_write(w->dir, "app/model.py", "exit 1\n");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "--from", "s/1");
    expect("what is not kept is as it was", &o, 0, "s-1/1: finished");
    harness_write(w->dir, "app/large.py", "changed");
    AUTO_OUTPUT struct harness_output other = RUN(w, "run", "--from", "s/2");
    expect("what is not kept has changed", &other, 2, "app/large.py' is not what it was");
}

static void what_cannot_be_begun_again_is_told(void **state)
{
    static const struct {
        const char *words[5], *told;
    } cases[] = {
        { { "run", "--from", "s" }, "say STUDY/N, as in s/1" },
        { { "run", "--from", "s/9" }, "there is no trial s/9" },
        { { "run", "--from", "u/1" }, "no study 'u'" },
        { { "run", "--from", "s/1", "s.conf" }, "are two: a study is begun from a config, or from a trial" },
        { { "run", "--from", "s/1" }, "secret.txt' is not what it was" },
    };
    const struct world *w = *state;
    AUTO_FREE char *path = harness_path(w->dir, "secret.txt");
    harness_write(w->dir, "s.json", "{ \"files\": [\"secret.txt\"], " APPLICATION_MEMBERS " }");
    harness_write(w->dir, "secret.txt", "hunter2");
    assert_int_equal(chmod(path, 0600), 0);
    run_study(w);
    harness_expect_rows("what only its owner reads is not kept", "pipetune.db",
                        "SELECT name, sha256 IN (SELECT sha256 FROM contents) FROM sources ORDER BY name",
                        "./train.sh|1 secret.txt|0");
    harness_write(w->dir, "secret.txt", "changed");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *words[6] = { 0 };
        memcpy(words, cases[i].words, sizeof cases[i].words);
        AUTO_OUTPUT struct harness_output o = world_run(w, words);
        expect(cases[i].told, &o, 2, cases[i].told);
    }
}

static void contents_go_with_the_last_study_that_has_them(void **state)
{
    const struct world *w = *state;
    run_study(w);
    run_other(w);
    harness_expect_rows("one content", "pipetune.db", "SELECT count(*) FROM contents", "1");
    AUTO_OUTPUT struct harness_output one = RUN(w, "rm", "s", "--yes");
    expect("one", &one, 0, "");
    harness_expect_rows("the other has it", "pipetune.db", "SELECT count(*) FROM contents", "1");
    AUTO_OUTPUT struct harness_output both = RUN(w, "rm", "t", "--yes");
    expect("both", &both, 0, "");
    harness_expect_rows("nobody has it", "pipetune.db", "SELECT count(*) FROM contents", "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_study_is_written_as_csv, open_plain, world_close),
        cmocka_unit_test_setup_teardown(what_was_written_is_read_back, open_plain, world_close),
        cmocka_unit_test_setup_teardown(jobs_of_other_studies_stay, open_plain, world_close),
        cmocka_unit_test_setup_teardown(what_cannot_be_exported_is_told, open_plain, world_close),
        cmocka_unit_test_setup_teardown(what_changed_between_studies_is_told, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_trial_is_begun_again_from_what_it_was, open_plain, world_close),
        cmocka_unit_test_setup_teardown(modules_beside_a_program_are_kept_with_it, open_plain, world_close),
        cmocka_unit_test_setup_teardown(what_cannot_be_begun_again_is_told, open_plain, world_close),
        cmocka_unit_test_setup_teardown(contents_go_with_the_last_study_that_has_them, open_plain, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
