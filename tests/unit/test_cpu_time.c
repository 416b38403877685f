/* The meters cpu and estimate over a /proc/stat that a script writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/cpu_time.h"
#include "monitoring/estimate.h"
#include "tests/fake_sysfs.h"
#include "tests/fault.h"

#define TAIL "cpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1 1 1\nintr 5 0 0\nctxt 9\nbtime 1\n"

static int64_t clock_ns;

static int64_t fake_now(void)
{
    return clock_ns;
}

struct rig {
    char *root;
    struct meter_cfg cfg;
    struct meter *m;
    const struct meter_ops *ops;
    struct meter_reading got;
};

static int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->root = fake_sysfs_make(FAKE_VM);
    r->cfg = (struct meter_cfg){ .proc = r->root, .now_ns = fake_now, .idle_w = 40, .cpu_w = 6 };
    r->ops = &meter_cpu;
    clock_ns = 1700000000000000000LL;
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    r->ops->close(r->m);
    fake_sysfs_remove(r->root);
    free(r);
    return 0;
}

/* Ticks of user and the rest at the same value; USER_HZ of them are a second. */
static void write_stat(const struct rig *r, long user, long nice, long system, long other, long irq, long softirq)
{
    char text[512];
    (void)snprintf(text, sizeof text, "cpu  %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld\n" TAIL, user, nice, system, other,
                   other, irq, softirq, other, other, other);
    fake_sysfs_write(r->root, "stat", text);
}

static void open_meter(struct rig *r, const struct meter_ops *ops)
{
    struct err e = { 0 };
    r->ops = ops;
    if (ops->open(&r->m, &r->cfg, &e) < 0)
        fail_msg("%s", e.text);
}

static void expect(struct rig *r, enum meter_state want)
{
    assert_int_equal(r->ops->read(r->m, &r->got), 1);
    if (r->got.state != want)
        fail_msg("%s (%s), not %s", meter_state_name(r->got.state), r->got.why, meter_state_name(want));
    assert_true(isnan(r->got.value) == (want != METER_OK));
    assert_int_equal(*r->got.why != '\0', want == METER_DISCARDED || want == METER_FAILED);
}

/* Seconds, or joules of the estimate. */
static void expect_s(struct rig *r, double want)
{
    expect(r, METER_OK);
    if (fabs(r->got.value - want) > 1e-6)
        fail_msg("%.6f, not %.6f", r->got.value, want);
}

static void pass(double seconds)
{
    clock_ns += (int64_t)(seconds * 1e9);
}

/* --- the text ----------------------------------------------------------------------------------------------------- */

static void busy_is_five_fields_of_the_first_line(void **state)
{
    (void)state;
    struct cpu_time t;
    assert_int_equal(cpu_time_parse(&t, "cpu  1 20 300 4000 50000 600000 7000000 80000000 5 5\n" TAIL), 0);
    assert_int_equal(t.busy_ticks, 1 + 20 + 300 + 600000 + 7000000);
    assert_int_equal(t.cpus, 2);
    assert_int_equal(cpu_time_parse(&t, "cpu  1 2 3 4 5 6 7\ncpu0 1 2 3 4 5 6 7\n"), 0); /* an old kernel's */
    assert_int_equal(t.busy_ticks, 1 + 2 + 3 + 6 + 7);
    assert_int_equal(t.cpus, 1);
}

static void what_is_no_stat_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "cpu",
        "cpu ",
        "cpu  1 2 3 4 5 6 7 8\n", /* of no CPU */
        "cpu0 1 2 3 4 5 6 7\ncpu1 1 2 3 4 5 6 7\n",
        "cpu  1 2 3 4 5 6\ncpu0 1 2 3 4 5 6\n",
        "cpu  1 2 3 4 5 -6 7\n" TAIL,
        "cpu  1 2 x 4 5 6 7\n" TAIL,
        "cpu  1 2 3.5 4 5 6 7\n" TAIL,
        "cpu  99999999999999999999 2 3 4 5 6 7\n" TAIL,
        "cpu  1844674407370955161 1844674407370955161 3 4 5 6 7\n" TAIL,
        "intr 1\ncpu  1 2 3 4 5 6 7\n" TAIL,
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct cpu_time t = { .cpus = 77 };
        if (cpu_time_parse(&t, texts[i]) != -EINVAL || t.cpus != 77)
            fail_msg("'%s' was taken for /proc/stat", texts[i]);
    }
}

/* --- cpu ---------------------------------------------------------------------------------------------------------- */

static void seconds_are_those_between_two_reads(void **state)
{
    struct rig *r = *state;
    long hz = sysconf(_SC_CLK_TCK);
    write_stat(r, 5 * hz, 0, hz, 7 * hz, 0, 0);
    open_meter(r, &meter_cpu);
    expect(r, METER_FIRST);
    double first_ms = r->got.to_ms;
    pass(2);
    write_stat(r, 6 * hz, hz / 2, hz + hz / 4, 900 * hz, hz / 10, hz / 5);
    expect_s(r, 1 + 0.5 + 0.25 + 0.1 + 0.2); /* idle, iowait, steal and guests are not in it */
    assert_true(r->got.from_ms == first_ms && r->got.to_ms > first_ms);
    assert_true(fabs(r->got.error - 5.0 / (double)hz) < 1e-9);
    pass(1);
    expect_s(r, 0);
}

static void implausible_times_are_discarded_and_counting_goes_on(void **state)
{
    struct rig *r = *state;
    long hz = sysconf(_SC_CLK_TCK);
    write_stat(r, 5 * hz, 0, 0, 0, 0, 0);
    open_meter(r, &meter_cpu);
    expect(r, METER_FIRST);
    pass(1);
    write_stat(r, 4 * hz, 0, 0, 0, 0, 0);
    expect(r, METER_DISCARDED);
    assert_non_null(strstr(r->got.why, "went back"));
    pass(1);
    write_stat(r, 6 * hz, 0, 0, 0, 0, 0);
    expect_s(r, 2); /* both of two CPUs */
    pass(1);
    write_stat(r, 9 * hz, 0, 0, 0, 0, 0);
    expect(r, METER_DISCARDED);
    pass(-10);
    expect(r, METER_DISCARDED);
    assert_true(r->got.from_ms <= r->got.to_ms);
    pass(1);
    write_stat(r, 9 * hz + hz / 2, 0, 0, 0, 0, 0);
    expect_s(r, 0.5);
}

static void a_failed_read_is_told_and_the_next_has_its_seconds(void **state)
{
    struct rig *r = *state;
    long hz = sysconf(_SC_CLK_TCK);
    write_stat(r, 0, 0, 0, 0, 0, 0);
    open_meter(r, &meter_cpu);
    expect(r, METER_FIRST);
    double first_ms = r->got.to_ms;
    fake_sysfs_delete(r->root, "stat");
    pass(1);
    expect(r, METER_FAILED);
    fake_sysfs_write(r->root, "stat", "nonsense");
    pass(1);
    expect(r, METER_FAILED);
    write_stat(r, 3 * hz, 0, 0, 0, 0, 0);
    pass(1);
    expect_s(r, 3);
    assert_true(r->got.from_ms == first_ms);
}

static void this_machines_own_times_are_read(void **state)
{
    struct rig *r = *state;
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    r->cfg = (struct meter_cfg){ 0 };
    assert_int_equal(meter_cpu.probe(&r->cfg, &detail, &fix), 0);
    assert_non_null(strstr(buf_text(&detail), " CPU"));
    open_meter(r, &meter_cpu);
    expect(r, METER_FIRST);
    assert_true(r->got.to_ms > 1.7e12);
    assert_int_equal(meter_cpu.read(r->m, &r->got), 1);
    assert_true(r->got.state == METER_OK || r->got.state == METER_DISCARDED); /* the clock may be set meanwhile */
}

/* --- estimate ----------------------------------------------------------------------------------------------------- */

static void the_estimate_is_idle_watts_and_busy_seconds(void **state)
{
    struct rig *r = *state;
    long hz = sysconf(_SC_CLK_TCK);
    assert_true(meter_estimate.estimated && !meter_cpu.estimated);
    write_stat(r, 0, 0, 0, 0, 0, 0);
    open_meter(r, &meter_estimate);
    expect(r, METER_FIRST);
    pass(4);
    write_stat(r, 3 * hz, 0, 2 * hz, 0, 0, 0);
    expect_s(r, 40 * 4 + 6 * 5);
    assert_true(fabs(r->got.error - 6 * 5.0 / (double)hz) < 1e-9);
    pass(1);
    expect_s(r, 40);
    fake_sysfs_delete(r->root, "stat");
    pass(1);
    expect(r, METER_FAILED);
    write_stat(r, 0, 0, 0, 0, 0, 0);
    expect(r, METER_DISCARDED);
}

static void an_estimate_without_its_powers_is_refused(void **state)
{
    struct rig *r = *state;
    static const double bad[][2] = { { 0, 0 }, { 40, 0 }, { -1, 6 }, { 40, -6 }, { NAN, 6 }, { 40, INFINITY } };
    write_stat(r, 0, 0, 0, 0, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };
        AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
        r->cfg.idle_w = bad[i][0];
        r->cfg.cpu_w = bad[i][1];
        assert_int_equal(meter_estimate.open(&r->m, &r->cfg, &e), -EINVAL);
        assert_null(r->m);
        assert_non_null(strstr(e.text, "{\"name\": \"estimate\", \"idle_w\": 40, \"cpu_w\": 6}"));
        assert_int_equal(meter_estimate.probe(&r->cfg, &detail, &fix), -EINVAL);
        assert_non_null(strstr(buf_text(&fix), "{\"name\": \"estimate\", \"idle_w\": 40, \"cpu_w\": 6}"));
    }
    r->ops = &meter_estimate;
}

static void an_estimate_tells_its_model(void **state)
{
    struct rig *r = *state;
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    write_stat(r, 0, 0, 0, 0, 0, 0);
    assert_int_equal(meter_estimate.probe(&r->cfg, &detail, &fix), 0);
    assert_string_equal(buf_text(&detail), "a model: 40 W, and 6 W of each busy CPU; 2 CPUs");
}

static void where_there_is_no_proc_neither_opens(void **state)
{
    struct rig *r = *state;
    struct err e = { 0 };
    assert_int_equal(meter_cpu.open(&r->m, &r->cfg, &e), -ENOENT);
    assert_int_equal(meter_estimate.open(&r->m, &r->cfg, &e), -ENOENT);
    assert_non_null(strstr(e.text, "stat"));
    assert_null(r->m);
}

/* --- what runs short ---------------------------------------------------------------------------------------------- */

static void whatever_runs_short_leaves_nothing(void **state)
{
    struct rig *r = *state;
    int rc = -EIO;
    write_stat(r, 0, 0, 0, 0, 0, 0);
    r->ops = &meter_estimate;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct err e;
        assert_true(nth < 32);
        fault_arm(FAULT_ALLOC | FAULT_OPEN, nth);
        rc = meter_estimate.open(&r->m, &r->cfg, &e);
        assert_int_equal(fault_disarm(), rc < 0);
        assert_int_equal(rc < 0, r->m == NULL);
    }
    fault_arm(FAULT_OPEN, 1);
    expect(r, METER_FAILED);
    assert_true(fault_disarm());
    expect(r, METER_FIRST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_is_five_fields_of_the_first_line),
        cmocka_unit_test(what_is_no_stat_is_refused),
        TEST(seconds_are_those_between_two_reads),
        TEST(implausible_times_are_discarded_and_counting_goes_on),
        TEST(a_failed_read_is_told_and_the_next_has_its_seconds),
        TEST(this_machines_own_times_are_read),
        TEST(the_estimate_is_idle_watts_and_busy_seconds),
        TEST(an_estimate_without_its_powers_is_refused),
        TEST(an_estimate_tells_its_model),
        TEST(where_there_is_no_proc_neither_opens),
        TEST(whatever_runs_short_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
