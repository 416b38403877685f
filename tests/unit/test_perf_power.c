/* The meter perf-power: a fake kernel's events by a fake sysfs. */
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

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/perf_power.h"
#include "tests/fake_sysfs.h"
#include "tests/fault.h"

#define POWER FAKE_PMU "power/"
#define CPU "devices/system/cpu/"

enum { FD = 500, FDS = 64, TYPE = 23, PKG = 2, RAM = 3, SECOND = 1000000000 };

/* --- a fake kernel ------------------------------------------------------------------------------------------------ */

static struct kernel {
    struct {
        bool open;
        uint64_t config, v[3];
        int cpu;
        ssize_t answers; /* to a read; 0: all of v */
    } fd[FDS];
    int n_open;
    int refuse_pkg, refuse_ram; /* -errno */
    bool stopped;               /* events are enabled and do not run */
} kernel;

static int64_t clock_ns;

static int64_t fake_now(void)
{
    return clock_ns;
}

static int fake_open(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx)
{
    (void)ctx;
    assert_int_equal(attr->type, TYPE);
    assert_true(attr->config == PKG || attr->config == RAM); /* never cores, gpu or psys */
    assert_false(attr->exclude_kernel_ok);
    assert_true(pid == -1 && flags == 0 && cpu >= 0);
    int rc = attr->config == PKG ? kernel.refuse_pkg : kernel.refuse_ram, i = 0;
    if (rc < 0)
        return rc;
    while (kernel.fd[i].open)
        i++;
    assert_true(i < FDS);
    memset(&kernel.fd[i], 0, sizeof kernel.fd[i]);
    kernel.fd[i].open = true;
    kernel.fd[i].config = attr->config;
    kernel.fd[i].cpu = cpu;
    kernel.n_open++;
    return FD + i;
}

static ssize_t fake_read(int fd, uint64_t out[3], void *ctx)
{
    (void)ctx;
    assert_true(kernel.fd[fd - FD].open);
    if (kernel.fd[fd - FD].answers)
        return kernel.fd[fd - FD].answers;
    memcpy(out, kernel.fd[fd - FD].v, sizeof kernel.fd->v);
    return sizeof kernel.fd->v;
}

static int fake_close(int fd, void *ctx)
{
    (void)ctx;
    assert_true(kernel.fd[fd - FD].open);
    kernel.fd[fd - FD].open = false;
    kernel.n_open--;
    return 0;
}

static const struct perf_ops ops = { .open = fake_open, .read = fake_read, .close = fake_close };

static void pass(double seconds)
{
    uint64_t ns = (uint64_t)(seconds * SECOND);
    clock_ns += (int64_t)ns;
    for (int i = 0; i < FDS; i++) {
        kernel.fd[i].v[1] += ns;
        kernel.fd[i].v[2] += kernel.stopped ? 0 : ns;
    }
}

/* How many counted it. */
static int spend(uint64_t config, int cpu, double j)
{
    int n = 0;
    for (int i = 0; i < FDS; i++) {
        if (!kernel.fd[i].open || kernel.fd[i].config != config || kernel.fd[i].cpu != cpu)
            continue;
        kernel.fd[i].v[0] += (uint64_t)(j * 4294967296.0);
        n++;
    }
    return n;
}

/* --- a machine ---------------------------------------------------------------------------------------------------- */

struct rig {
    char *root;
    struct meter_cfg cfg;
    struct meter *m;
    struct meter_reading got;
};

static void write_event(const struct rig *r, const char *name, const char *config)
{
    char path[128];
    (void)snprintf(path, sizeof path, POWER "events/%s", name);
    fake_sysfs_write(r->root, path, config);
    (void)snprintf(path, sizeof path, POWER "events/%s.scale", name);
    fake_sysfs_write(r->root, path, "2.3283064365386962890625e-10\n");
    (void)snprintf(path, sizeof path, POWER "events/%s.unit", name);
    fake_sysfs_write(r->root, path, "Joules\n");
}

static void write_topology(const struct rig *r, int cpu, const char *package, const char *die)
{
    char path[128];
    (void)snprintf(path, sizeof path, CPU "cpu%d/topology/physical_package_id", cpu);
    fake_sysfs_write(r->root, path, package);
    (void)snprintf(path, sizeof path, CPU "cpu%d/topology/die_id", cpu);
    fake_sysfs_write(r->root, path, die);
}

/* Two sockets of two CPUs, with all events that there can be. */
static int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    memset(&kernel, 0, sizeof kernel);
    clock_ns = 1700000000LL * SECOND;
    r->root = fake_sysfs_make(FAKE_VM);
    r->cfg = (struct meter_cfg){ .sysfs = r->root, .ops = &ops, .now_ns = fake_now };
    fake_sysfs_write(r->root, POWER "type", "23\n");
    fake_sysfs_write(r->root, POWER "format/event", "config:0-7\n");
    fake_sysfs_write(r->root, POWER "cpumask", "0,2\n");
    write_event(r, "energy-cores", "event=0x01\n");
    write_event(r, "energy-pkg", "event=0x02\n");
    write_event(r, "energy-ram", "event=0x03\n");
    write_event(r, "energy-gpu", "event=0x04\n");
    write_event(r, "energy-psys", "event=0x05\n");
    fake_sysfs_write(r->root, CPU "online", "0-3\n");
    for (int i = 0; i < 4; i++)
        write_topology(r, i, i < 2 ? "0\n" : "1\n", "0\n");
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    meter_perf_power.close(r->m);
    assert_int_equal(kernel.n_open, 0);
    fake_sysfs_remove(r->root);
    free(r);
    return 0;
}

static void open_meter(struct rig *r)
{
    struct err e = { 0 };
    if (meter_perf_power.open(&r->m, &r->cfg, &e) < 0)
        fail_msg("%s", e.text);
}

static void expect(struct rig *r, enum meter_state want)
{
    assert_int_equal(meter_perf_power.read(r->m, &r->got), 1);
    if (r->got.state != want)
        fail_msg("%s (%s), not %s", meter_state_name(r->got.state), r->got.why, meter_state_name(want));
    assert_int_equal(isnan(r->got.value), want != METER_OK);
}

static void expect_j(struct rig *r, double want)
{
    expect(r, METER_OK);
    if (fabs(r->got.value - want) > 1e-6)
        fail_msg("%.6f J, not %.6f", r->got.value, want);
}

static int refused(struct rig *r, const char *says)
{
    struct err e = { 0 };
    int rc = meter_perf_power.open(&r->m, &r->cfg, &e);
    if (rc >= 0 || !strstr(e.text, says))
        fail_msg("%d: '%s' does not say '%s'", rc, e.text, says);
    assert_null(r->m);
    assert_int_equal(kernel.n_open, 0);
    return rc;
}

/* --- readings ----------------------------------------------------------------------------------------------------- */

static void joules_are_those_of_packages_and_memory(void **state)
{
    struct rig *r = *state;
    open_meter(r);
    assert_int_equal(kernel.n_open, 4);
    expect(r, METER_FIRST);
    double sum = 0;
    for (int i = 0; i < 50; i++) {
        pass(1);
        assert_int_equal(spend(PKG, 0, 100 + i), 1);
        assert_int_equal(spend(PKG, 2, 80), 1);
        assert_int_equal(spend(RAM, 0, 10), 1);
        assert_int_equal(spend(RAM, 2, 12), 1);
        expect_j(r, 202 + i);
        sum += r->got.value;
        assert_true(fabs(r->got.to_ms - r->got.from_ms - 1000) < 0.001);
        assert_true(r->got.error > 0 && r->got.error < 1);
    }
    assert_true(fabs(sum - (50 * 202 + 49 * 25)) < 1e-6);
}

static void a_count_that_goes_back_is_discarded(void **state)
{
    struct rig *r = *state;
    open_meter(r);
    expect(r, METER_FIRST);
    pass(1);
    (void)spend(PKG, 0, 100);
    (void)spend(PKG, 2, 100);
    expect_j(r, 200);
    kernel.fd[0].v[0] = 5;
    pass(1);
    expect(r, METER_DISCARDED);
    pass(1);
    (void)spend(PKG, 0, 50);
    (void)spend(PKG, 2, 60);
    expect_j(r, 110);
}

static void an_event_that_fails_is_opened_again(void **state)
{
    struct rig *r = *state;
    static const ssize_t answers[] = { -EIO, 8, -ENODEV };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        open_meter(r);
        expect(r, METER_FIRST);
        pass(1);
        kernel.fd[1].answers = answers[i]; /* 8: an event in its error state */
        expect(r, METER_FAILED);
        assert_non_null(strstr(r->got.why, "energy-pkg of CPU 2"));
        assert_int_equal(kernel.n_open, 0);
        kernel.refuse_ram = -EACCES;
        pass(1);
        expect(r, METER_FAILED); /* memory is no less a part of it than before */
        kernel.refuse_ram = 0;
        pass(1);
        expect(r, METER_FIRST);
        pass(1);
        (void)spend(PKG, 0, 50);
        (void)spend(PKG, 2, 50);
        expect_j(r, 100);
        meter_perf_power.close(r->m);
        r->m = NULL;
    }
}

static void an_event_that_does_not_run_is_opened_again(void **state)
{
    struct rig *r = *state;
    open_meter(r);
    expect(r, METER_FIRST);
    kernel.stopped = true;
    pass(1);
    expect(r, METER_FAILED);
    kernel.stopped = false;
    pass(1);
    expect(r, METER_FIRST);
}

static void packages_that_stand_still_take_no_0_joules(void **state)
{
    struct rig *r = *state;
    open_meter(r);
    expect(r, METER_FIRST);
    pass(1);
    expect(r, METER_DISCARDED);
    assert_non_null(strstr(r->got.why, "stands still"));
}

/* --- where -------------------------------------------------------------------------------------------------------- */

/* The CPUs of the packages' events, "0 2". */
static void expect_cpus(struct rig *r, const char *want)
{
    AUTO_BUF struct buf got = BUF_INIT;
    open_meter(r);
    for (int i = 0; i < FDS; i++)
        if (kernel.fd[i].open && kernel.fd[i].config == PKG)
            buf_printf(&got, "%s%d", got.len ? " " : "", kernel.fd[i].cpu);
    assert_string_equal(buf_text(&got), want);
    meter_perf_power.close(r->m);
    r->m = NULL;
}

static void without_a_cpumask_topology_tells_where(void **state)
{
    struct rig *r = *state;
    fake_sysfs_write(r->root, POWER "cpumask", "\n");
    expect_cpus(r, "0 2");
    fake_sysfs_delete(r->root, POWER "cpumask");
    expect_cpus(r, "0 2");
    write_topology(r, 1, "0\n", "1\n");
    expect_cpus(r, "0 2"); /* AMD (the fake machine's) counts by socket */
    fake_sysfs_write(r->root, CPU "modalias", "cpu:type:x86,ven0000fam0006mod0055:feature:,0000\n");
    expect_cpus(r, "0 1 2"); /* Intel by die */
    fake_sysfs_write(r->root, CPU "online", "1,3\n");
    expect_cpus(r, "1 3");
    fake_sysfs_delete(r->root, CPU "cpu1");
    expect_cpus(r, "1 3"); /* of the first socket, as far as is known */
    fake_sysfs_delete(r->root, CPU "online");
    assert_int_equal(refused(r, "on which CPUs"), -ENOENT);
}

static void dies_that_show_one_counter_count_once(void **state)
{
    struct rig *r = *state;
    fake_sysfs_write(r->root, POWER "cpumask", "0-1\n"); /* two dies of one socket */
    open_meter(r);
    expect(r, METER_FIRST);
    for (int i = 0; i < 10; i++) {
        pass(1);
        for (int cpu = 0; cpu < 2; cpu++) {
            (void)spend(PKG, cpu, 90);
            (void)spend(RAM, cpu, 10 + cpu); /* but memory has two */
        }
        expect(r, i < 2 ? METER_FIRST : METER_OK);
        if (i >= 2)
            assert_true(fabs(r->got.value - (i == 2 ? 3 * 111 : 111)) < 1e-6);
    }
}

/* --- what there is ------------------------------------------------------------------------------------------------ */

static void a_machine_without_memorys_event_has_its_packages(void **state)
{
    struct rig *r = *state;
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    assert_int_equal(meter_perf_power.probe(&r->cfg, &detail, &fix), 0);
    assert_string_equal(buf_text(&detail), "energy-pkg on 2 CPUs, energy-ram on 2");
    buf_clear(&detail);
    kernel.refuse_ram = -EINVAL; /* it is named, and cannot be counted */
    assert_int_equal(meter_perf_power.probe(&r->cfg, &detail, &fix), 0);
    assert_string_equal(buf_text(&detail), "energy-pkg on 2 CPUs, energy-ram on 0");
    buf_clear(&detail);
    kernel.refuse_ram = 0;
    fake_sysfs_delete(r->root, POWER "events/energy-ram");
    assert_int_equal(meter_perf_power.probe(&r->cfg, &detail, &fix), 0);
    assert_string_equal(buf_text(&detail), "energy-pkg on 2 CPUs, energy-ram on 0");
    assert_int_equal(kernel.n_open, 0);
}

static void what_cannot_be_used_is_refused(void **state)
{
    struct rig *r = *state;
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    kernel.refuse_pkg = -EACCES;
    assert_int_equal(refused(r, "CAP_PERFMON"), -EACCES);
    assert_int_equal(meter_perf_power.probe(&r->cfg, &detail, &fix), -EACCES);
    assert_non_null(strstr(buf_text(&fix), "perf_event_paranoid"));
    kernel.refuse_pkg = -ENOENT;
    assert_int_equal(refused(r, "energy-pkg of CPU 0"), -ENODEV);
    kernel.refuse_pkg = -EMFILE;
    assert_int_equal(refused(r, "energy-pkg of CPU 0"), -EMFILE);
    kernel.refuse_pkg = 0;
    kernel.refuse_ram = -EMFILE; /* which says nothing of memory */
    assert_int_equal(refused(r, "energy-ram of CPU 0"), -EMFILE);
    kernel.refuse_ram = 0;
    fake_sysfs_write(r->root, POWER "cpumask", "x\n");
    assert_int_equal(refused(r, "on which CPUs"), -EINVAL);
    fake_sysfs_write(r->root, POWER "events/energy-pkg.unit", "Calories\n");
    assert_int_equal(refused(r, "energy-pkg"), -EINVAL);
    fake_sysfs_delete(r->root, POWER "events/energy-pkg");
    assert_int_equal(refused(r, "no event energy-pkg"), -ENODEV);
    fake_sysfs_delete(r->root, FAKE_PMU "power");
    assert_int_equal(refused(r, "no event energy-pkg"), -ENODEV);
}

static void a_count_without_its_scale_is_none(void **state)
{
    struct rig *r = *state;
    fake_sysfs_write(r->root, POWER "events/energy-pkg.scale", "0\n");
    assert_int_equal(refused(r, "energy-pkg"), -EINVAL);
    fake_sysfs_delete(r->root, POWER "events/energy-pkg.scale");
    assert_int_equal(refused(r, "energy-pkg"), -ENOENT);
}

static void whatever_runs_short_leaves_nothing_open(void **state)
{
    struct rig *r = *state;
    int rc = -EIO;
    fake_sysfs_delete(r->root, POWER "cpumask");
    for (unsigned nth = 1; rc < 0; nth++) {
        struct err e;
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC | FAULT_OPEN, nth);
        rc = meter_perf_power.open(&r->m, &r->cfg, &e);
        bool struck = fault_disarm();
        assert_int_equal(rc < 0, r->m == NULL);
        assert_true(rc == 0 || (struck && kernel.n_open == 0 && (rc == -ENOMEM || rc == -EMFILE)));
        if (rc == 0 && struck)
            fail_msg("call %u failed and was not missed", nth);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(joules_are_those_of_packages_and_memory),
        TEST(a_count_that_goes_back_is_discarded),
        TEST(an_event_that_fails_is_opened_again),
        TEST(an_event_that_does_not_run_is_opened_again),
        TEST(packages_that_stand_still_take_no_0_joules),
        TEST(without_a_cpumask_topology_tells_where),
        TEST(dies_that_show_one_counter_count_once),
        TEST(a_machine_without_memorys_event_has_its_packages),
        TEST(what_cannot_be_used_is_refused),
        TEST(a_count_without_its_scale_is_none),
        TEST(whatever_runs_short_leaves_nothing_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
