/* What Slurm's commands answer, and what they are told. Lines are those of 22.05. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/capture.h"
#include "base/own.h"
#include "core/slurm_words.h"

static void put_job(void *ctx, const struct slurm_job *j)
{
    struct buf *b = ctx;
    buf_printf(b, "%llu:%d:%lld:%s:%s:%s:%s ", (unsigned long long)j->id, (int)j->state, (long long)j->run_s, j->limit,
               j->node, j->comment, j->reason);
}

static const struct {
    const char *name, *text, *want;
} lists[] = {
    { "nothing", "", "" },
    { "a job that runs", "1|RUNNING|0:03|1:00|vm|pt-1|None\n", "1:2:3:1:00:vm:pt-1: " },
    { "one that waits", "12|PENDING|0:00|UNLIMITED||pt-2|JobHeldUser\n", "12:1:0:UNLIMITED::pt-2:JobHeldUser " },
    { "a reason of many words, without an end of line",
      "3|PENDING|0:00|10:00||(null)|Nodes required for job are DOWN, DRAINED",
      "3:1:0:10:00:::Nodes required for job are DOWN, DRAINED " },
    { "warnings between them",
      "squeue: warning\n4|TIMEOUT|1:01|1:00|a|t|TimeLimit\n\nx|y\n5|CANCELLED|0:00|1:00||t|None\n",
      "4:7:61:1:00:a:t:TimeLimit 5:6:0:1:00::t: " },
    { "days", "6|COMPLETING|1-02:03:04|2-00:00:00|n[1-2]|t|None", "6:3:93784:2-00:00:00:n[1-2]:t: " },
    { "a word that is new", "7|DREAMING|0:01|1:00|a|t|None", "7:0:1:1:00:a:t: " },
    { "a task of an array is none of ours", "8_1|RUNNING|0:01|1:00|a|t|None", "" },
    { "no number", "|RUNNING|0:01|1:00|a|t|None\n0|RUNNING|0:01|1:00|a|t|None", "" },
    { "a number that is too large", "99999999999|RUNNING|0:01|1:00|a|t|None", "" },
    { "too few fields", "9|RUNNING|0:01|1:00|a|t", "" },
};

static void test_jobs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        AUTO_BUF struct buf got = BUF_INIT;
        slurm_words_jobs(lists[i].text, strlen(lists[i].text), put_job, &got);
        if (strcmp(buf_text(&got), lists[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", lists[i].name, buf_text(&got), lists[i].want);
    }
}

static void test_the_number_of_a_new_job(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t want; /* 0: none was made */
    } rows[] = {
        { "17\n", 17 },
        { "17", 17 },
        { "17;cluster\n", 17 },
        { "sbatch: warning: 5 of them\n18\n", 18 },
        { "18\nsbatch: done\n", 18 },
        { "sbatch: error: Batch job submission failed: Invalid partition name specified\n", 0 },
        { "17 jobs\n", 0 },
        { "0\n", 0 },
        { "", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t id = 0;
        bool found = slurm_words_id(rows[i].text, &id);
        if (found != (rows[i].want > 0) || id != rows[i].want)
            fail_msg("'%s': got %llu", rows[i].text, (unsigned long long)id);
    }
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want; /* -1: none */
    } rows[] = { { "0:00", 0 },     { "1:01", 61 },      { "02:03:04", 7384 }, { "1-00:00:01", 86401 },
                 { "INVALID", -1 }, { "UNLIMITED", -1 }, { "", -1 },           { "5", -1 },
                 { "1:2:3:4", -1 }, { "1:", -1 },        { "-1:00", -1 },      { "1-x:00", -1 } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t s = -1;
        bool is = slurm_words_seconds(rows[i].text, &s);
        if (is != (rows[i].want >= 0) || s != rows[i].want)
            fail_msg("'%s': got %lld", rows[i].text, (long long)s);
    }
}

static void test_how_one_ended(void **state)
{
    (void)state;
    struct slurm_end end;
    assert_true(
        slurm_words_shown("JobId=2 JobName=x JobState=FAILED Reason=NonZeroExitCode ExitCode=93:0 RunTime=1", &end));
    assert_true(end.state == SLURM_FAILED && end.code == 93 && end.signal == 0);
    assert_true(slurm_words_shown("JobId=2 JobState=CANCELLED ExitCode=0:9 ", &end));
    assert_true(end.state == SLURM_CANCELLED && end.signal == 9);
    assert_false(slurm_words_shown("slurm_load_jobs error: Invalid job id specified", &end));
    assert_false(slurm_words_shown("JobId=2 JobState=FAILED ExitCode=x", &end));
    assert_true(slurm_words_accounted("CANCELLED by 0|0:15\n", &end));
    assert_true(end.state == SLURM_CANCELLED && end.signal == 15);
    assert_true(slurm_words_accounted("sacct: warning\nTIMEOUT|0:0\n", &end));
    assert_int_equal(end.state, SLURM_TIMEOUT);
    assert_false(slurm_words_accounted("Slurm accounting storage is disabled\n", &end));
    assert_false(slurm_words_accounted("", &end));
}

static void test_what_nodes_have(void **state)
{
    (void)state;
    struct slurm_room r = { 0 };
    static const char text[] = "main*|2|2000\nmain*|16|64000\nbig|128|1024000\nsinfo: warning\n";
    assert_true(slurm_words_room(text, "", &r));
    assert_true(r.cpus == 16 && r.memory_gb == 62.5);
    assert_true(slurm_words_room(text, "main", &r) && r.cpus == 16);
    assert_true(slurm_words_room(text, "big", &r) && r.cpus == 128 && r.memory_gb == 1000);
    assert_false(slurm_words_room(text, "bi", &r));
    assert_false(slurm_words_room(text, "none", &r));
    assert_false(slurm_words_room("", "", &r));
    assert_true(slurm_words_room("main*|8+|3000+\n", "", &r) && r.cpus == 8);
}

static void test_what_fits_into_what_is_free(void **state)
{
    (void)state;
    static const char text[] = "main*  1/3/0/4  4000  1024\nmain*  0/8/0/8  16000  0\nmain*  0/0/4/4  4000  0\n"
                               "big  0/128/0/128  1024000  1024001\nsinfo: warning\n";
    static const struct {
        const char *name, *partition;
        int cpus;
        double memory_gb;
        int want; /* -1: it is not told of */
    } rows[] = {
        { "by CPUs, of the nodes that are up", "", 1, 0, 11 },
        { "on each node whole ones", "main", 2, 0, 5 },
        { "by memory, less what is taken", "main", 1, 2, 8 },
        { "too large for all", "main", 9, 1, 0 },
        { "its memory is taken", "big", 1, 1, 0 },
        { "no CPUs are asked for", "big", 0, 0, 128 },
        { "no such partition", "bi", 1, 0, -1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int got = -1;
        bool known = slurm_words_fits(text, rows[i].partition, rows[i].cpus, rows[i].memory_gb, &got);
        if (known != (rows[i].want >= 0) || got != rows[i].want)
            fail_msg("%s: got %d, want %d", rows[i].name, got, rows[i].want);
    }
    static const char *const none[] = {
        "", "\n\n", "main* 1/x/0/4 4000 0", "main* 1/3", "main* 1/3/0/4 N/A 0", "main*"
    };
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        int got;
        if (slurm_words_fits(none[i], "", 1, 1, &got))
            fail_msg("'%s' tells of %d", none[i], got);
    }
}

static void test_which_faults_pass(void **state)
{
    (void)state;
    static const struct {
        const char *said;
        enum slurm_fault want;
    } said[] = {
        { "sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job submission failed: "
          "Requested node configuration is not available",
          SLURM_NEVER },
        { "sbatch: error: Batch job submission failed: Invalid partition name specified", SLURM_NO_JOB },
        { "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
          SLURM_PASSES },
        { "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", SLURM_PASSES },
        { "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's "
          "size "
          "and/or time limits)",
          SLURM_PASSES },
    };
    static const struct {
        const char *reason;
        enum slurm_fault want;
    } reasons[] = {
        { "Resources", SLURM_PASSES },          { "Priority", SLURM_PASSES },
        { "JobHeldUser", SLURM_PASSES },        { "PartitionConfig", SLURM_NEVER },
        { "BadConstraints", SLURM_NEVER },      { "QOSMaxCpuPerJobLimit", SLURM_NEVER },
        { "AssocMaxJobsLimit", SLURM_PASSES },  { "QOSMaxCpuPerUserLimit", SLURM_PASSES },
        { "PartitionTimeLimit", SLURM_NO_JOB }, { "ReqNodeNotAvail, UnavailableNodes:a", SLURM_PASSES },
    };
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        if (slurm_fault_of(said[i].said) != said[i].want)
            fail_msg("'%s': got %d", said[i].said, (int)slurm_fault_of(said[i].said));
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (slurm_reason_of(reasons[i].reason) != reasons[i].want)
            fail_msg("'%s': got %d", reasons[i].reason, (int)slurm_reason_of(reasons[i].reason));
}

static void test_what_sbatch_is_told(void **state)
{
    (void)state;
    AUTO_STRV struct strv options = STRV_INIT, argv = STRV_INIT;
    strv_add(&options, "--qos=long");
    const struct slurm_ask all = { .name = "n",
                                   .tag = "pt-1",
                                   .script = "/d/job",
                                   .partition = "p",
                                   .account = "a",
                                   .time = "10",
                                   .options = &options,
                                   .cpus = 3,
                                   .memory_gb = 0.5 };
    slurm_words_sbatch(&all, &argv);
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < argv.n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", argv.v[i]);
    assert_string_equal(buf_text(&b),
                        "sbatch --qos=long --parsable --hold --no-requeue --nodes=1 --ntasks=1 --output=/dev/null "
                        "--error=/dev/null --job-name=n --comment=pt-1 --partition=p --account=a --time=10 "
                        "--cpus-per-task=3 --mem=512M -- /d/job");
    struct err e;
    assert_int_equal(slurm_words_option("--qos=long", &e), 0);
    assert_int_equal(slurm_words_option("--exclusive", &e), 0);
    assert_int_equal(slurm_words_option("--timeout=1", &e), 0);
    static const char *const bad[] = {
        "", "x", "-p", "--", "--=x", "--time=1", "--array=1-3", "--wrap=x", "--comment"
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (slurm_words_option(bad[i], &e) != -EINVAL || !*e.text)
            fail_msg("'%s' is taken", bad[i]);
}

/* Whatever the words are, sh runs them as they stand; what does not see the script runs nothing. */
static void test_the_script(void **state)
{
    (void)state;
    char dir[] = "/tmp/pipetune-slurm-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char path[64], said[64];
    (void)snprintf(path, sizeof path, "%s/it's job", dir);
    (void)snprintf(said, sizeof said, "%s/job.out", dir);
    AUTO_STRV struct strv env = STRV_INIT, argv = STRV_INIT;
    AUTO_BUF struct buf text = BUF_INIT, got = BUF_INIT;
    strv_add(&env, "WORD=$(false) 'x' \"y\"\nz");
    strv_add(&argv, "/usr/bin/printenv");
    strv_add(&argv, "WORD");
    slurm_words_script(path, "pt-1", dir, said, &env, &argv, &text);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text.data, 1, text.len, f), text.len);
    assert_int_equal(fclose(f), 0);
    char *run[] = { "/bin/sh", path, NULL };
    struct err e;
    assert_int_equal(capture(&got, run, 10000, &e), 0);
    assert_int_equal(got.len, 0);
    char *cat[] = { "/bin/cat", said, NULL };
    assert_int_equal(capture(&got, cat, 10000, &e), 0);
    assert_string_equal(buf_text(&got), "$(false) 'x' \"y\"\nz\n");
    char elsewhere[64];
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/moved", dir);
    assert_int_equal(rename(path, elsewhere), 0);
    char *again[] = { "/bin/sh", elsewhere, NULL };
    assert_int_equal(capture(&got, again, 10000, &e), SLURM_EXIT_UNSEEN);
    char *rm[] = { "/bin/rm", "-r", dir, NULL };
    assert_int_equal(capture(&got, rm, 10000, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_the_number_of_a_new_job),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_how_one_ended),
        cmocka_unit_test(test_what_nodes_have),
        cmocka_unit_test(test_what_fits_into_what_is_free),
        cmocka_unit_test(test_which_faults_pass),
        cmocka_unit_test(test_what_sbatch_is_told),
        cmocka_unit_test(test_the_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
