/* Trials as jobs of a Slurm that is faked: its commands are scripts that say what a real one says only when things go wrong. The real one is
 * tests/net/test-slurm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "tests/integration/harness.h"

/* Jobs are folders jobs/N with tag, script, state and reason. say-COMMAND is what a command answers once, behind its exit code; `lost`: sbatch
 * makes a job, once, and does not say so; `fate`: what becomes of the next that is released, which does not run;
 * `stuck`: none does; `free`: what sinfo says is. */
#define FAKE                                                                                                           \
    "#!/bin/sh\n"                                                                                                      \
    "me=${0##*/}; cd \"${0%/*}/..\" || exit 9; last=; for word; do last=$word; case $word in --comment=*) "            \
    "tag=${word#*=};; "                                                                                                \
    "esac; done\n"                                                                                                     \
    "echo \"$me $*\" >>calls\n"                                                                                        \
    "if mv say-$me said-$me 2>/dev/null; then { read -r code; cat; } <said-$me; exit $code; fi\n"                      \
    "case $me in\n"                                                                                                    \
    "sbatch) n=1; until mkdir jobs/$n 2>/dev/null; do n=$((n + 1)); done\n"                                            \
    "  echo \"$last\" >jobs/$n/script; echo PENDING >jobs/$n/state; echo JobHeldUser >jobs/$n/reason; echo $tag "      \
    ">jobs/$n/tag\n"                                                                                                   \
    "  if mv lost was-lost 2>/dev/null; then echo 'sbatch: error: Batch job submission failed: Socket timed out on "   \
    "send/recv operation'; exit 1; fi\n"                                                                               \
    "  echo 'sbatch: warning: it is fake'; echo $n ;;\n"                                                               \
    "scontrol) job=jobs/$last; [ \"$1\" = release ] || { echo \"JobId=$last JobState=$(cat $job/state) "               \
    "ExitCode=$(cat $job/code)\"; exit; }\n"                                                                           \
    "  if [ -e stuck ]; then echo Resources >$job/reason; exit; fi\n"                                                  \
    "  if mv fate was-fate 2>/dev/null; then read -r state reason <was-fate; echo \"$reason\" >$job/reason\n"          \
    "    echo 1:0 >$job/code; if [ $state = GONE ]; then rm -r $job; else echo $state >$job/state; fi; exit; fi\n"     \
    "  echo None >$job/reason; echo RUNNING >$job/state\n"                                                             \
    "  (setsid sh \"$(cat $job/script)\"; echo $?:0 >$job/code; end=COMPLETED; [ $(cat $job/code) = 0:0 ] || "         \
    "end=FAILED\n"                                                                                                     \
    "   [ $(cat $job/state) != RUNNING ] || echo $end >$job/state) >/dev/null 2>&1 & ;;\n"                             \
    "squeue) for tag in jobs/*/tag; do [ -e $tag ] || continue; job=${tag%/tag}\n"                                     \
    "  echo \"${job#jobs/}|$(cat $job/state)|0:00|1:00|fake|$(cat $tag)|$(cat $job/reason)\"; done ;;\n"               \
    "scancel) echo CANCELLED >jobs/$last/state ;;\n"                                                                   \
    "sinfo) case $* in *--Format*) cat free 2>/dev/null ;; *) echo 'main*|2|2000' ;; esac ;;\n"                        \
    "sacct) echo 'Slurm accounting storage is disabled'; exit 1 ;;\n"                                                  \
    "esac\n"
static int open_fake(void **state)
{
    static const char *const commands[] = { "sbatch", "scontrol", "squeue", "scancel", "sinfo", "sacct" };
    if (world_open(state) < 0)
        return -1;
    struct world *w = *state;
    world_dir(w, "fake");
    world_dir(w, "jobs");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "fake/%s", commands[i]);
        world_script(w, name, FAKE);
    }
    AUTO_BUF struct buf path = BUF_INIT;
    buf_printf(&path, "%s/fake:%s", w->dir, getenv("PATH"));
    (void)setenv("PATH", buf_text(&path), 1);
    (void)setenv("PIPETUNE_REST_MS", "500", 1);
    (void)setenv("PIPETUNE_HOPE_MS", "0", 1);
    world_script(
        w, "train.sh",
        "#!/bin/sh\necho begins >>begun\nfor epoch in 1 2; do sleep 0.05; echo \"epoch $epoch: loss 0.5, accuracy "
        "0.$epoch\"; done\n");
    harness_write(w->dir, "app.json",
                  "{ \"command\": [\"./train.sh\"], \"arguments\": { \"epochs\": [\"--epochs\", \"{}\"] },\n"
                  "  \"progress\": [\"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+), accuracy (?<accuracy>\\\\S+)\"] }");
    harness_write(w->dir, "s.conf",
                  "{ \"application\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 2 }, \"places\": { "
                  "\"slurm\": { } },\n"
                  "  \"tuning\": { \"policy\": \"v1\" }, \"systemParameters\": { \"cores\": [1], \"memory\": [0.5] },\n"
                  "  \"hyperParameters\": { \"lr\": [0.1, 0.2] } }\n");
    return 0;
}

static int close_fake(void **state)
{
    (void)unsetenv("PIPETUNE_REST_MS");
    (void)unsetenv("PIPETUNE_HOPE_MS");
    return world_close(state);
}

#define ATTEMPTS_SQL "SELECT group_concat(outcome) FROM (SELECT outcome FROM attempts ORDER BY outcome)"

/* What happens once, and what comes of it. */
static const struct {
    const char *name, *file, *text; /* that the fake finds */
    const char *file2, *text2;
    int code;
    const char *attempts, *begun; /* of the two trials, by outcome; how often their program began */
    const char *said;
} cases[] = {
    { "nothing", NULL, NULL, NULL, NULL, 0, "finished,finished", "2", "s/2: finished" },
    { "the answer of sbatch is lost", "lost", "", NULL, NULL, 0, "finished,finished", "2",
      "belongs to no attempt and is cancelled" },
    { "a job is preempted", "fate", "PREEMPTED None\n", NULL, NULL, 0, "finished,finished,interrupted", "2",
      "lost its node" },
    { "one vanishes, and was over its time by the accounts", "fate", "GONE\n", "say-sacct", "0\nTIMEOUT|0:0\n", 0,
      "failed,finished,finished", "2", "time_limit: " },
    { "one vanishes, and there are no accounts", "fate", "GONE\n", NULL, NULL, 0, "finished,finished,killed", "2",
      "without a note" },
    { "one takes too much memory", "fate", "OUT_OF_MEMORY OutOfMemory\n", NULL, NULL, 0, "finished,infeasible", "1",
      "out_of_memory: " },
    { "one can never run", "fate", "PENDING PartitionConfig\n", NULL, NULL, 0, "finished,infeasible", "1",
      "would never run job" },
    { "one fails as its launcher does", "fate", "FAILED NonZeroExitCode\n", NULL, NULL, 0, "failed,finished,finished",
      "2", "job.out" },
    { "squeue does not answer", "say-squeue", "1\nslurm_load_jobs error: Unable to contact slurm controller\n", NULL,
      NULL, 0, "finished,finished", "2", "s/2: finished" },
    { "squeue answers anything", "say-squeue", "0\n1|\n||||||\n999|RUNNING|0:00|x|y|z|w\n", NULL, NULL, 0,
      "finished,finished", "2", "s/2: finished" },
    { "a release fails", "say-scontrol", "1\nslurm_update error: Socket timed out\n", NULL, NULL, 0,
      "finished,finished", "2", "s/2: finished" },
    { "the controller is away", "say-sbatch",
      "1\nsbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n", NULL,
      NULL, 0, "finished,finished", "2", "Unable to contact" },
    { "no job can be had", "say-sbatch",
      "1\nsbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
      NULL, NULL, 3, NULL, NULL, "Invalid account" },
    { "sinfo says nothing", "say-sinfo", "1\nsinfo: error: no\n", NULL, NULL, 0, "finished,finished", "2",
      "sinfo tells of no partition" },
};

static void what_goes_wrong_is_told_and_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        void *opened = NULL;
        assert_int_equal(open_fake(&opened), 0);
        struct world *w = opened;
        print_message("%s:\n", cases[i].name);
        if (cases[i].file)
            harness_write(w->dir, cases[i].file, cases[i].text);
        if (cases[i].file2)
            harness_write(w->dir, cases[i].file2, cases[i].text2);
        struct harness_output o = RUN(w, "run", "--config", "s.conf");
        if (o.code != cases[i].code || (!strstr(o.out, cases[i].said) && !strstr(o.err, cases[i].said)))
            fail_msg("%s: exit %d, %s%s", cases[i].name, o.code, o.out, o.err);
        AUTO_FREE char *causes = harness_ask("pipetune.db", "SELECT cause FROM attempts WHERE cause <> ''");
        print_message("  %s\n", causes);
        if (cases[i].attempts)
            harness_expect_rows(cases[i].name, "pipetune.db", ATTEMPTS_SQL, cases[i].attempts);
        AUTO_FREE char *begun = harness_read(w->dir, "begun"), *calls = harness_read(w->dir, "calls");
        if (cases[i].begun && harness_count(begun ? begun : "", "begins") != (size_t)(*cases[i].begun - '0'))
            fail_msg("%s: begun %zu times", cases[i].name, harness_count(begun ? begun : "", "begins"));
        assert_non_null(strstr(calls, "sinfo "));
        harness_output_done(&o);
        (void)close_fake(&opened);
    }
}

/* No sbatch at all. */
static void without_slurm_it_says_so(void **state)
{
    struct world *w = *state;
    assert_int_equal(remove("fake/sbatch"), 0);
    assert_int_equal(remove("fake/sinfo"), 0);
    (void)setenv("PATH", "fake:/nowhere", 1);
    struct harness_output o = RUN(w, "run", "--config", "s.conf");
    if (o.code != 3 || !strstr(o.err, "sbatch"))
        fail_msg("exit %d, %s%s", o.code, o.out, o.err);
    harness_output_done(&o);
}

/* What a config cannot have together. */
static void what_does_not_go_with_it_is_named(void **state)
{
    static const struct {
        const char *more, *want;
    } rows[] = {
        { "\"nodes\": [\"a\"]", "does not go with 'nodes'" },
        { "\"objective\": \"energy\"", "'places.slurm' does not go with objective 'energy'" },
        { "\"systemParameters\": { \"frequency\": [1000000] }", "cannot set 'systemParameters.frequency'" },
    };
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{ \"application\": \"app.json\", \"places\": { \"slurm\": { } }, \"hyperParameters\": { "
                       "\"lr\": [0.1] }, %s }\n",
                       rows[i].more);
        harness_write(w->dir, "t.conf", text);
        struct harness_output o = RUN(w, "run", "--config", "t.conf", "--dry-run");
        if (o.code != 2 || !strstr(o.err, rows[i].want))
            fail_msg("%s: exit %d, %s", rows[i].more, o.code, o.err);
        harness_output_done(&o);
    }
}

struct jobs {
    const struct world *w;
    size_t want, got;
};

/* As many were made, and Slurm was asked often enough that more would have been. */
static bool are_made(void *arg)
{
    struct jobs *j = arg;
    AUTO_FREE char *calls = harness_read(j->w->dir, "calls");
    j->got = calls ? harness_count(calls, "sbatch --") : 0;
    return j->got >= j->want && harness_count(calls, "squeue --noheader --states") > 2 &&
           harness_count(calls, "sinfo --noheader --Node") > 0;
}

/* All wait in the queue, however long: others are made where sinfo says that there is room for them. */
static void what_is_free_is_used_beside_those_that_wait(void **state)
{
    static const struct {
        const char *name, *free;
        size_t made;
    } rows[] = {
        { "room for two", "main* 0/2/0/2 4000 0\n", 3 },
        { "none", "main* 2/0/0/2 4000 0\n", 1 },
        { "it is not told", "sinfo: error: no\n", 1 },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        void *opened = NULL;
        assert_int_equal(open_fake(&opened), 0);
        struct jobs j = { .w = opened, .want = rows[i].made };
        harness_write(j.w->dir, "s.conf",
                      "{ \"application\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 2 },\n"
                      "  \"places\": { \"slurm\": { \"pending\": 1 } }, \"tuning\": { \"policy\": \"v1\" },\n"
                      "  \"systemParameters\": { \"cores\": [1], \"memory\": [0.5] },\n"
                      "  \"hyperParameters\": { \"lr\": [0.1, 0.2, 0.3, 0.4, 0.5] } }\n");
        harness_write(j.w->dir, "free", rows[i].free);
        harness_write(j.w->dir, "stuck", "");
        pid_t driver = START(j.w, -1, "run", "--config", "s.conf");
        bool came = harness_wait(are_made, &j, HARNESS_MS);
        (void)kill(driver, SIGINT);
        (void)harness_exit_code(driver, HARNESS_MS);
        if (!came || j.got != rows[i].made)
            fail_msg("%s: %zu jobs were made, want %zu", rows[i].name, j.got, rows[i].made);
        assert_int_equal(close_fake(&opened), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_wrong_is_told_and_survived),
        cmocka_unit_test(what_is_free_is_used_beside_those_that_wait),
        cmocka_unit_test_setup_teardown(without_slurm_it_says_so, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(what_does_not_go_with_it_is_named, open_fake, close_fake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
