/* When launches are sampled, and in which scope, by a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/wire.h"
#include "node/request.h"
#include "node/sampler.h"
#include "tests/fake_sysfs.h"
#include "tests/fault.h"

#define MS INT64_C(1000000)

enum { SOME_FD = 77777 };

static char *root; /* /sys, and /proc below it */
static int64_t now_ns;
static struct {
    unsigned flags; /* of the last that was opened, not counting the sampler's question to the kernel */
    pid_t pid;
    int cpu, n_open;
} kernel;

static int64_t tell_time(void)
{
    return now_ns;
}

static int fake_open(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx)
{
    (void)attr, (void)ctx;
    kernel.n_open++;
    if (pid == 0)
        return SOME_FD;
    kernel.flags = flags;
    kernel.pid = pid;
    kernel.cpu = cpu;
    return SOME_FD;
}

/* Whoever is asked has counted as many as ns have passed. */
static ssize_t fake_read(int fd, uint64_t out[3], void *ctx)
{
    (void)fd, (void)ctx;
    out[0] = out[1] = out[2] = (uint64_t)now_ns;
    return 3 * sizeof *out;
}

static int fake_close(int fd, void *ctx)
{
    (void)fd, (void)ctx;
    kernel.n_open--;
    return 0;
}

static const struct perf_ops ops = { .open = fake_open, .read = fake_read, .close = fake_close };

/* Two launches, each with a process that runs. */
static struct member processes[] = {
    { .pid = 10, .start = 100, .tag = 0, .counts = true },
    { .pid = 20, .start = 200, .tag = 1, .counts = true },
    { .pid = 30, .start = 300, .tag = 0, .counts = true, .ours = true },
};
static struct members members = { .v = processes, .n = ARRAY_LEN(processes) };

static void put_process(int pid, int start, int reads)
{
    char path[64], text[256];
    (void)snprintf(path, sizeof path, "%d/stat", pid);
    (void)snprintf(text, sizeof text, "%d (x) S 1 2 3 4 5 6 0 0 0 0 0 0 0 0 20 0 1 0 %d 1 1 0", pid, start);
    fake_sysfs_write(root, path, text);
    (void)snprintf(path, sizeof path, "%d/io", pid);
    (void)snprintf(text, sizeof text, "rchar: 0\nwchar: 0\nsyscr: %d\nsyscw: 0\n", reads);
    fake_sysfs_write(root, path, text);
    (void)snprintf(path, sizeof path, "%d/task/%d/schedstat", pid, pid);
    fake_sysfs_write(root, path, "0 0 0\n");
}

static int set_up(void **state)
{
    (void)state;
    root = fake_sysfs_make(FAKE_VM);
    fake_sysfs_write(root, "devices/system/cpu/online", "0-1\n");
    now_ns = 1000 * MS;
    memset(&kernel, 0, sizeof kernel);
    put_process(10, 100, 0);
    put_process(20, 200, 0);
    put_process(30, 300, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_sysfs_remove(root);
    if (kernel.n_open)
        print_error("%d descriptors were left open\n", kernel.n_open);
    return kernel.n_open ? -1 : 0;
}

static struct samplers_on where(void)
{
    return (struct samplers_on){ .ops = &ops, .sysfs = root, .proc = root, .fds_max = 1000, .now_ns = tell_time };
}

static struct samplers *open_samplers(void)
{
    struct samplers *s = NULL;
    struct samplers_on on = where();
    assert_int_equal(samplers_open(&s, &on, NULL), 0);
    assert_true(samplers_due(s) == INT64_MAX);
    return s;
}

static int set(struct samplers *s, int tag, int interval_ms, enum sampler_scope scope, const struct members *m,
               struct err *e)
{
    return samplers_set(s, tag, &(struct samplers_how){ .interval_ms = interval_ms, .scope = scope }, m, e);
}

/* The sample that is due after so many ms. */
static struct sample take_after(struct samplers *s, int64_t ms)
{
    struct sample out;
    now_ns += ms * MS;
    if (!samplers_take(s, &members, true, &out))
        fail_msg("no sample after %d ms", (int)ms);
    return out;
}

static void assert_none_after(struct samplers *s, int64_t ms)
{
    struct sample out;
    now_ns += ms * MS;
    assert_false(samplers_take(s, &members, true, &out));
}

/* --- ticks -------------------------------------------------------------------------------------------------------- */

static void ticks_stay_on_their_grid(void **state)
{
    (void)state;
    static const struct {
        int64_t now;
        uint64_t due;
        int64_t next;
    } cases[] = {
        { 99, 0, 100 },  { 100, 1, 110 }, { 110, 1, 120 },     { 129, 1, 130 },   { 130, 1, 140 },
        { 165, 3, 170 }, { 170, 1, 180 }, { 1179, 100, 1180 }, { 1179, 0, 1180 },
    };
    struct ticker t = { .next = 100, .interval = 10 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t due = ticker_take(&t, cases[i].now);
        if (due != cases[i].due || t.next != cases[i].next)
            fail_msg("at %d: %d due, next %d", (int)cases[i].now, (int)due, (int)t.next);
    }
}

static void scopes_have_names(void **state)
{
    (void)state;
    static const char *const names[] = { "auto", "system", "cgroup", "process" };
    for (int i = 0; i < SAMPLER_SCOPES; i++) {
        assert_string_equal(sampler_scope_name((enum sampler_scope)i), names[i]);
        assert_int_equal(sampler_scope_find(names[i]), i);
    }
    assert_int_equal(sampler_scope_find("node"), -1);
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

static void samples_come_at_each_tick_but_the_first(void **state)
{
    (void)state;
    struct samplers *s = open_samplers();
    assert_int_equal(set(s, 0, 500, SAMPLER_AUTO, &members, NULL), 0);
    assert_true(samplers_due(s) == now_ns + 500 * MS);
    assert_none_after(s, 0);
    assert_none_after(s, 499);
    put_process(10, 100, 12);
    struct sample got = take_after(s, 1);
    assert_int_equal(got.tag, 0);
    assert_int_equal(got.scope, SAMPLER_SYSTEM);
    assert_true(got.dt_ms == 500);
    assert_int_equal(got.missed, 0);
    assert_int_equal(got.v[FEATURE_CONTEXT_SWITCHES].state, READING_OK);
    assert_true(got.v[FEATURE_CONTEXT_SWITCHES].value == 2.0 * 500 * MS); /* two CPUs */
    assert_true(got.v[FEATURE_PROC_READ_CALLS].value == 12);
    assert_true(got.v[FEATURE_PROC_THREADS].value == 1); /* not the launcher's */
    assert_int_equal(got.v[FEATURE_LOG].state, READING_ABSENT);
    assert_int_equal(got.v[FEATURE_CODE].state, READING_UNSUPPORTED); /* no CPU can be watched on this machine */
    assert_none_after(s, 0);
    assert_true(samplers_due(s) == now_ns + 500 * MS);
    samplers_drop(s, 0, &members);
    assert_true(samplers_due(s) == INT64_MAX);
    assert_none_after(s, 10000);
    samplers_close(s);
}

static void a_late_sample_covers_what_was_missed(void **state)
{
    (void)state;
    struct sample out;
    struct samplers *s = open_samplers();
    assert_int_equal(set(s, 0, 100, SAMPLER_SYSTEM, &members, NULL), 0);
    struct sample late = take_after(s, 350); /* ticks at 100, 200 and 300 */
    assert_int_equal(late.missed, 2);
    assert_true(late.dt_ms == 350);
    struct sample next = take_after(s, 50);
    assert_int_equal(next.missed, 0);
    assert_true(next.dt_ms == 50);
    put_process(10, 100, 40);
    for (int i = 0; i < 3; i++) { /* nobody reads */
        now_ns += 100 * MS;
        assert_false(samplers_take(s, &members, false, &out));
    }
    struct sample heard = take_after(s, 100);
    assert_int_equal(heard.missed, 3);
    assert_true(heard.dt_ms == 400);
    assert_true(heard.v[FEATURE_PROC_READ_CALLS].value == 40);
    samplers_close(s);
}

static void two_launches_are_measured_by_their_own_threads(void **state)
{
    (void)state;
    struct samplers *s = open_samplers();
    assert_int_equal(set(s, 0, 100, SAMPLER_AUTO, &members, NULL), 0);
    assert_int_equal(take_after(s, 100).scope, SAMPLER_SYSTEM);
    now_ns += 30 * MS;
    assert_int_equal(set(s, 1, 100, SAMPLER_AUTO, &members, NULL), 0);
    assert_none_after(s, 99); /* both begin anew */
    struct sample first = take_after(s, 1), second = take_after(s, 0);
    assert_true(first.tag == 0 && second.tag == 1);
    assert_true(first.scope == SAMPLER_PROCESS && second.scope == SAMPLER_PROCESS);
    assert_true(first.dt_ms == 100 && first.missed == 0);
    assert_true(kernel.cpu == -1);
    assert_int_equal(kernel.pid, 10); /* the last that began anew */
    samplers_drop(s, 0, &members);
    assert_none_after(s, 99);
    assert_int_equal(take_after(s, 1).scope, SAMPLER_SYSTEM);
    assert_int_equal(set(s, 0, 100, SAMPLER_SYSTEM, &members, NULL), 0);
    first = take_after(s, 100), second = take_after(s, 0);
    assert_int_equal(first.scope, SAMPLER_SYSTEM); /* as it was asked */
    assert_int_equal(second.scope, SAMPLER_PROCESS);
    samplers_close(s);
}

static void a_cgroup_is_counted_once_all_are_in_it(void **state)
{
    (void)state;
    struct samplers *s = open_samplers();
    struct members many = { .v = processes, .n = ARRAY_LEN(processes) };
    struct member launch[] = { processes[0], { .pid = 20, .start = 200, .tag = 0, .counts = true } };
    fake_sysfs_write(root, "fs/cgroup/one/x", "");
    fake_sysfs_write(root, "10/cgroup", "5:cpu:/other\n0::/one\n");
    fake_sysfs_write(root, "20/cgroup", "0::/two\n");
    many.v = launch;
    many.n = 2;
    assert_int_equal(set(s, 0, 100, SAMPLER_CGROUP, &many, NULL), 0);
    struct sample out;
    now_ns += 100 * MS;
    assert_true(samplers_take(s, &many, true, &out));
    assert_int_equal(out.scope, SAMPLER_CGROUP);
    assert_int_equal(out.v[FEATURE_CONTEXT_SWITCHES].state, READING_NOT_COUNTED);
    assert_int_equal(out.v[FEATURE_PROC_READ_CALLS].state, READING_OK);
    assert_int_equal(kernel.n_open, 0);
    fake_sysfs_write(root, "20/cgroup", "0::/one\n");
    for (int i = 0; i < 2; i++) {
        now_ns += 100 * MS;
        assert_true(samplers_take(s, &many, true, &out));
    }
    assert_int_equal(kernel.flags, PERF_OPS_CGROUP);
    assert_int_equal(out.v[FEATURE_CONTEXT_SWITCHES].state, READING_OK);
    fake_sysfs_write(root, "fs/cgroup/perf_event/named/x", "");
    fake_sysfs_write(root, "10/cgroup", "9:perf_event:/named\n0::/one\n");
    fake_sysfs_write(root, "20/cgroup", "9:perf_event:/named\n0::/two\n");
    kernel.flags = 0;
    assert_int_equal(set(s, 0, 100, SAMPLER_CGROUP, &many, NULL), 0);
    assert_int_equal(kernel.flags, PERF_OPS_CGROUP);
    samplers_close(s);
}

static void events_that_nobody_chose_are_absent_in_every_scope(void **state)
{
    (void)state;
    struct samplers *s = open_samplers();
    struct samplers_how how = { .interval_ms = 100, .scope = SAMPLER_CGROUP, .events.given = true };
    int chosen = event_name_index("msr/tsc/"), other = event_name_index("instructions");
    how.events.wanted[chosen] = true;
    assert_int_equal(samplers_set(s, 0, &how, &members, NULL), 0);
    struct sample got = take_after(s, 100); /* of no cgroup: nothing is counted yet */
    assert_int_equal(got.v[chosen].state, READING_NOT_COUNTED);
    assert_int_equal(got.v[other].state, READING_ABSENT);
    assert_int_equal(got.v[FEATURE_CONTEXT_SWITCHES].state, READING_NOT_COUNTED);
    how.scope = SAMPLER_AUTO;
    assert_int_equal(samplers_set(s, 0, &how, &members, NULL), 0);
    assert_int_equal(kernel.n_open, 2 * (1 + 4)); /* on two CPUs: the chosen one, and software */
    assert_int_equal(set(s, 1, 100, SAMPLER_AUTO, &members, NULL), 0);
    struct sample first = take_after(s, 100), second = take_after(s, 0); /* the scope is another: it began anew */
    assert_int_equal(first.scope, SAMPLER_PROCESS);
    assert_int_equal(first.v[chosen].state, READING_OK);
    assert_int_equal(first.v[other].state, READING_ABSENT);
    assert_int_equal(first.v[FEATURE_CONTEXT_SWITCHES].state, READING_OK);
    assert_int_equal(first.v[FEATURE_PROC_READ_CALLS].state, READING_OK);
    assert_true(second.v[other].state != READING_ABSENT); /* each launch as it was asked */
    samplers_close(s);
}

static void whatever_memory_fails_it_samples_or_says_so(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 200);
        struct samplers *s = NULL;
        struct samplers_on on = where();
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        rc = samplers_open(&s, &on, &e);
        bool opened = rc == 0;
        if (opened)
            rc = set(s, 0, 100, SAMPLER_PROCESS, &members, &e);
        bool struck = fault_disarm();
        if (rc < 0 && (!struck || rc != -ENOMEM || !e.text[0]))
            fail_msg("fault %u: %d %s", nth, rc, e.text);
        if (opened && rc == 0)
            assert_true(take_after(s, 100).dt_ms == 100);
        if (opened && rc < 0)
            assert_true(samplers_due(s) == INT64_MAX);
        rc = struck ? -ENOMEM : rc;
        samplers_close(s);
        assert_int_equal(kernel.n_open, 0);
    }
    samplers_close(NULL);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static int ask(struct request *out, const char *members_text, struct err *e)
{
    static char line[256];
    static struct wire w;
    int n = snprintf(line, sizeof line, "{\"id\":1,\"verb\":\"sample\",%s}", members_text);
    assert_int_equal(wire_parse(&w, line, (size_t)n, NULL), 0);
    return request_read(out, &w, e);
}

static void requests_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error; /* NULL: it is fine */
        int interval_ms;
        enum sampler_scope scope;
    } cases[] = {
        { "\"interval_ms\":1000,\"scope\":\"process\"", NULL, 1000, SAMPLER_PROCESS },
        { "\"interval_ms\":100", NULL, 100, SAMPLER_AUTO },
        { "\"interval_ms\":60000", NULL, 60000, SAMPLER_AUTO },
        { "\"interval_ms\":0", NULL, 0, SAMPLER_AUTO },
        { "\"interval_ms\":99", "'interval_ms' must be 0, or", 0, SAMPLER_AUTO },
        { "\"interval_ms\":60001", "'interval_ms'", 0, SAMPLER_AUTO },
        { "\"interval_ms\":1e300", "'interval_ms'", 0, SAMPLER_AUTO },
        { "\"interval_ms\":-1", "'interval_ms'", 0, SAMPLER_AUTO },
        { "\"interval_ms\":100.5", "'interval_ms'", 0, SAMPLER_AUTO },
        { "\"interval_ms\":\"100\"", "'interval_ms'", 0, SAMPLER_AUTO },
        { "\"interval_ms\":100,\"scope\":\"node\"", "'scope' must be 'system'", 0, SAMPLER_AUTO },
        { "\"interval_ms\":100,\"scope\":1", "'scope'", 0, SAMPLER_AUTO },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct request r;
        struct err e = { 0 };
        int rc = ask(&r, cases[i].text, &e);
        bool right = cases[i].error ? rc == -EINVAL && strstr(e.text, cases[i].error)
                                    : rc == 0 && r.interval_ms == cases[i].interval_ms && r.scope == cases[i].scope;
        if (!right)
            fail_msg("%s: %d '%s'", cases[i].text, rc, e.text);
    }
}

static void requests_name_the_events_to_count(void **state)
{
    (void)state;
    static const char error[] = "'events' must be names of events with commas between, none twice";
    static const struct {
        const char *text, *error, *events; /* what was chosen; NULL: all */
    } cases[] = {
        { "\"interval_ms\":100", NULL, NULL },
        { "\"interval_ms\":100,\"events\":null", NULL, NULL },
        { "\"interval_ms\":100,\"events\":\"\"", NULL, "" },
        { "\"interval_ms\":100,\"events\":\"instructions,msr/tsc/\"", NULL, "msr/tsc/,instructions" },
        { "\"interval_ms\":100,\"events\":\"instruction\"", error, NULL },
        { "\"interval_ms\":100,\"events\":\"branches,branches\"", error, NULL },
        { "\"interval_ms\":100,\"events\":1", error, NULL },
        { "\"interval_ms\":100,\"events\":true", error, NULL },
        { "\"interval_ms\":100,\"events\":[1]", error, NULL },
    };
    static struct request r;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };
        char out[EVENT_CHOICE_TEXT_SIZE];
        int rc = ask(&r, cases[i].text, &e);
        const char *got = event_choice_text(&r.events, out);
        bool same = got && cases[i].events ? strcmp(got, cases[i].events) == 0 : got == cases[i].events;
        if (cases[i].error ? rc != -EINVAL || strcmp(e.text, cases[i].error) != 0 : rc != 0 || !same)
            fail_msg("%s: %d '%s' %s", cases[i].text, rc, e.text, got ? got : "all");
    }
}

#define SAMPLER_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_stay_on_their_grid),
        cmocka_unit_test(scopes_have_names),
        SAMPLER_TEST(samples_come_at_each_tick_but_the_first),
        SAMPLER_TEST(a_late_sample_covers_what_was_missed),
        SAMPLER_TEST(two_launches_are_measured_by_their_own_threads),
        SAMPLER_TEST(a_cgroup_is_counted_once_all_are_in_it),
        SAMPLER_TEST(events_that_nobody_chose_are_absent_in_every_scope),
        SAMPLER_TEST(whatever_memory_fails_it_samples_or_says_so),
        cmocka_unit_test(requests_are_checked),
        cmocka_unit_test(requests_name_the_events_to_count),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
