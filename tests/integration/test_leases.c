/* Several drivers on one machine: each trial on CPUs of its own, whoever runs the others, and told where there are none. The machine
 * is the first two CPUs that this test may use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lease.h"
#include "base/own.h"
#include "tests/integration/harness.h"

#define STORE "pipetune.db"

static cpu_set_t machine, all;

/* --- the world --- */

static void write_study(const struct world *w, const char *name, const char *more)
{
    AUTO_FREE char *file = NULL;
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&file, "%s.conf", name) > 0);
    assert_true(asprintf(&text,
                         "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"%s\", \"epochs\": 4 },\n"
                         "  \"store\": \"%s.db\", \"tuning\": { \"window_seconds\": 0.1 }, %s\n"
                         "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1] } }\n",
                         name, name, more) > 0);
    harness_write(w->dir, file, text);
}

#define TWO_OR_ONE "\"systemParameters\": { \"cores\": [2, 1] },"
#define TWO "\"systemParameters\": { \"cores\": [2] },"
#define ONE "\"systemParameters\": { \"cores\": [1] },"

static int set_up(void **state)
{
    int n = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&machine);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &machine);
            n++;
        }
    if (world_open(state) < 0)
        return -1;
    if (n == 2)
        assert_int_equal(sched_setaffinity(0, sizeof machine, &machine), 0);
    const struct world *w = *state;
    (void)setenv("FAKE_EPOCH_MS", "3000", 1), (void)setenv("FAKE_ITERATIONS", "30", 1);
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json",
                  "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\",\n"
                  "  \"arguments\": { \"batch_size\": [\"-b\", \"{}\"], \"learning_rate\": [\"-r\", \"{}\"],\n"
                  "    \"epochs\": [\"-e\", \"{}\"] } }\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)sched_setaffinity(0, sizeof all, &all);
    return world_close(state);
}

static void need_two_cpus(void)
{
    if (CPU_COUNT(&machine) == 2)
        return;
    print_message("SKIP needs two CPUs\n");
    skip();
}

/* --- what runs --- */

/* Starts the study; its trials write of themselves to NAME.count. */
static pid_t start(const struct world *w, const char *name)
{
    char file[32], count[32];
    (void)snprintf(file, sizeof file, "%s.conf", name);
    (void)snprintf(count, sizeof count, "%s.count", name);
    world_point_at(w, "FAKE_COUNT_FILE", count);
    pid_t pid = START(w, -1, "run", file);
    (void)unsetenv("FAKE_COUNT_FILE");
    return pid;
}

/* Of the study's newest trial; false: it does not run. */
static bool mask_of(const struct world *w, const char *study, cpu_set_t *out)
{
    char count[32];
    (void)snprintf(count, sizeof count, "%s.count", study);
    AUTO_FREE char *text = harness_read(w->dir, count);
    char *save = NULL;
    long pid = 0;
    for (char *l = text ? strtok_r(text, "\n", &save) : NULL; l; l = strtok_r(NULL, "\n", &save))
        (void)sscanf(l, "pt-%*s %*d %*d %ld", &pid);
    return pid > 1 && sched_getaffinity((pid_t)pid, sizeof *out, out) == 0;
}

struct pair {
    const struct world *w;
    const char *a, *b;
};

static bool are_apart(void *arg)
{
    const struct pair *p = arg;
    cpu_set_t a, b, both;
    if (!mask_of(p->w, p->a, &a) || !mask_of(p->w, p->b, &b))
        return false;
    CPU_AND(&both, &a, &b);
    return CPU_COUNT(&both) == 0 && CPU_COUNT(&a) == 1 && CPU_COUNT(&b) == 1;
}

static void expect_apart(const struct world *w, const char *a, const char *b)
{
    struct pair p = { w, a, b };
    cpu_set_t of_a, of_b;
    if (harness_wait(are_apart, &p, HARNESS_MS))
        return;
    CPU_ZERO(&of_a);
    CPU_ZERO(&of_b);
    bool has_a = mask_of(w, a, &of_a), has_b = mask_of(w, b, &of_b);
    fail_msg("study %s (%s) has CPUs %lx, study %s (%s) has %lx: want one each, two in all", a, has_a ? "runs" : "gone",
             of_a.__bits[0], b, has_b ? "runs" : "gone", of_b.__bits[0]);
}

static bool runs(void *arg)
{
    const struct pair *p = arg;
    cpu_set_t a;
    return mask_of(p->w, p->a, &a);
}

static void expect_runs(const struct world *w, const char *study)
{
    struct pair p = { w, study, NULL };
    if (!harness_wait(runs, &p, HARNESS_MS))
        fail_msg("study %s has not begun", study);
}

static void test_two_studies_have_cpus_of_their_own(void **state)
{
    const struct world *w = *state;
    need_two_cpus();
    write_study(w, "a", TWO_OR_ONE);
    write_study(w, "b", TWO_OR_ONE);
    pid_t a = start(w, "a");
    expect_runs(w, "a");
    pid_t b = start(w, "b");
    expect_apart(w, "a", "b");
    assert_int_equal(harness_exit_code(a, HARNESS_MS), 0);
    assert_int_equal(harness_exit_code(b, HARNESS_MS), 0);
}

/* Also where nothing is chosen: one core each is one CPU each. */
static void test_studies_of_one_core_have_one_cpu_each(void **state)
{
    const struct world *w = *state;
    need_two_cpus();
    write_study(w, "a", ONE);
    write_study(w, "b", ONE);
    pid_t a = start(w, "a");
    expect_runs(w, "a");
    pid_t b = start(w, "b");
    expect_apart(w, "a", "b");
    assert_int_equal(harness_exit_code(a, HARNESS_MS), 0);
    assert_int_equal(harness_exit_code(b, HARNESS_MS), 0);
}

static void test_a_killed_driver_leaves_its_cpus_to_others(void **state)
{
    const struct world *w = *state;
    need_two_cpus();
    write_study(w, "a", TWO);
    write_study(w, "b", ONE);
    write_study(w, "c", ONE);
    pid_t a = start(w, "a");
    expect_runs(w, "a");
    assert_int_equal(kill(a, SIGKILL), 0);
    assert_int_equal(harness_exit_code(a, HARNESS_MS), 128 + SIGKILL);
    (void)setenv("PIPETUNE_ASK_MS", "100000", 1); /* neither may come to share */
    pid_t b = start(w, "b");
    expect_runs(w, "b");
    pid_t c = start(w, "c");
    expect_apart(w, "b", "c");
    assert_int_equal(harness_exit_code(b, HARNESS_MS), 0);
    assert_int_equal(harness_exit_code(c, HARNESS_MS), 0);
}

/* --- a machine that others have --- */

/* A process that has both CPUs, and is told nothing: the bare names. As user nobody where it may be. */
static pid_t hold_all(bool *out_other_user)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    *out_other_user = geteuid() == 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (*out_other_user && setuid(65534) < 0)
            _exit(1);
        struct leases *l = leases_new(getenv("PIPETUNE_LEASES"));
        bool ok = l != NULL;
        for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
            ok = ok && (!CPU_ISSET(cpu, &machine) || leases_hold(l, (int)cpu));
        (void)!write(ready[1], ok ? "y" : "n", 1);
        for (;;)
            (void)pause();
    }
    char byte = 0;
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    assert_int_equal(byte, 'y');
    return pid;
}

static void expect_text(const char *text, const char *want)
{
    if (!strstr(text, want))
        fail_msg("want '%s' in: %s", want, text);
}

static void test_who_finds_no_cpu_says_with_whom_it_shares(void **state)
{
    const struct world *w = *state;
    need_two_cpus();
    bool nobody;
    pid_t other = hold_all(&nobody);
    char who[96], want[200];
    (void)snprintf(who, sizeof who, "process %ld of user %ld", (long)other, nobody ? 65534 : (long)geteuid());
    (void)setenv("FAKE_EPOCH_MS", "300", 1);
    (void)setenv("PIPETUNE_ASK_MS", "700", 1);
    write_study(w, "a", TWO_OR_ONE);
    struct harness_output o = RUN(w, "run", "a.conf");
    assert_int_equal(o.code, 0);
    (void)snprintf(want, sizeof want, "waits for a CPU: all of this machine are other drivers' (%s)", who);
    expect_text(o.out, want);
    (void)snprintf(want, sizeof want, "shares its CPUs with %s", who);
    expect_text(o.out, want);
    harness_output_done(&o);
    harness_expect_rows("nothing was probed", "a.db", "SELECT count(*) FROM decisions WHERE kind = 'apply'", "0");
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
}

static void test_cpus_that_come_free_are_taken(void **state)
{
    const struct world *w = *state;
    need_two_cpus();
    bool nobody;
    pid_t other = hold_all(&nobody);
    (void)setenv("PIPETUNE_ASK_MS", "100000", 1);
    write_study(w, "a", TWO_OR_ONE);
    pid_t a = start(w, "a");
    (void)usleep(500000); /* it may not begin, however long that is */
    assert_int_equal(world_trials(w), 0);
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    expect_runs(w, "a");
    assert_int_equal(harness_exit_code(a, HARNESS_MS), 0);
}

int main(void)
{
#define LEASE_TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        LEASE_TEST(test_two_studies_have_cpus_of_their_own),
        LEASE_TEST(test_studies_of_one_core_have_one_cpu_each),
        LEASE_TEST(test_a_killed_driver_leaves_its_cpus_to_others),
        LEASE_TEST(test_who_finds_no_cpu_says_with_whom_it_shares),
        LEASE_TEST(test_cpus_that_come_free_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
