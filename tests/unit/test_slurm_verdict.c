/* What becomes of an attempt whose job has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/slurm_verdict.h"

static const struct {
    const char *name;
    struct slurm_end end;
    bool noted;
    const char *reason;
    const char *why; /* a part of it; NULL: the note says it all */
    enum outcome outcome;
} cases[] = {
    { "it ended by itself", { SLURM_COMPLETED, 0, 0 }, true, "", NULL, 0 },
    { "it failed, and its launcher noted it", { SLURM_FAILED, 1, 0 }, true, "", NULL, 0 },
    { "Slurm has forgotten it, and its launcher noted it", { SLURM_UNKNOWN, 0, 0 }, true, "", NULL, 0 },
    { "cancelled, whatever was noted",
      { SLURM_CANCELLED, 0, 15 },
      true,
      "",
      "cancelled from outside",
      OUTCOME_INTERRUPTED },
    { "over its time, whatever was noted",
      { SLURM_TIMEOUT, 0, 0 },
      true,
      "TimeLimit",
      "time_limit: its job was over its time of 1:00",
      OUTCOME_FAILED },
    { "its node failed", { SLURM_LOST, 0, 0 }, false, "NodeDown", "lost its node: NodeDown", OUTCOME_INTERRUPTED },
    { "it took too much memory", { SLURM_MEMORY, 0, 9 }, false, "", "out_of_memory: ", OUTCOME_INFEASIBLE },
    { "it can never run", { SLURM_FAILED, 1, 0 }, false, "BadConstraints", "BadConstraints", OUTCOME_INFEASIBLE },
    { "its node sees no such folder", { SLURM_FAILED, 93, 0 }, false, "", "n1 does not see '/d'", OUTCOME_ENVIRONMENT },
    { "its node has no pipetune-node", { SLURM_FAILED, 127, 0 }, false, "", "n1 has no '/p'", OUTCOME_ENVIRONMENT },
    { "an earlier one still runs", { SLURM_FAILED, 75, 0 }, false, "", "earlier attempt", OUTCOME_INTERRUPTED },
    { "it was killed", { SLURM_FAILED, 0, 9 }, false, "", "signal 9", OUTCOME_KILLED },
    { "its launcher failed", { SLURM_FAILED, 1, 0 }, false, "", "/d/job.out", OUTCOME_FAILED },
    { "it vanished", { SLURM_UNKNOWN, 0, 0 }, false, "", "without a note", OUTCOME_KILLED },
};

static void test_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct slurm_job job = { .id = 7, .limit = "1:00", .node = "n1" };
        (void)strncpy(job.reason, cases[i].reason, sizeof job.reason - 1);
        const struct slurm_ended x = { &job, cases[i].end, cases[i].noted, "/d", "/p" };
        struct slurm_verdict v;
        slurm_verdict(&x, &v);
        bool as_wanted = cases[i].why ? strstr(v.why, cases[i].why) && v.outcome == cases[i].outcome : !v.why[0];
        if (!as_wanted || v.memory != (cases[i].end.state == SLURM_MEMORY))
            fail_msg("%s: got %s, '%s'", cases[i].name, outcome_name(v.outcome), v.why);
    }
}

static void test_one_that_waits_in_vain(void **state)
{
    (void)state;
    const struct slurm_job job = { .id = 7, .reason = "PartitionConfig" };
    struct slurm_verdict v;
    slurm_verdict_never(&job, SLURM_NEVER, &v);
    assert_int_equal(v.outcome, OUTCOME_INFEASIBLE);
    assert_non_null(strstr(v.why, "PartitionConfig"));
    slurm_verdict_never(&job, SLURM_NO_JOB, &v);
    assert_int_equal(v.outcome, OUTCOME_ENVIRONMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_one_that_waits_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
