/* The meter rapl over trees of powercap that a script writes: what it reads is what the script spent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/rapl.h"
#include "tests/fake_sysfs.h"
#include "tests/fault.h"

#define RANGE_UJ 262143328850ULL /* of a Skylake-SP: 2^32 - 1 steps of 2^-14 J */
#define POWERCAP "class/powercap/"

enum { ZONES_MAX = 12, TIMES_MAX = 2048, SECOND = 1000000000 };

/* --- a machine ---------------------------------------------------------------------------------------------------- */

struct zone {
    const char *folder;           /* below class/powercap */
    uint64_t range_uj, energy_uj; /* all that it ever took; its file has that modulo its range */
    bool gone;
    bool counts; /* in the truth that the meter should read */
};

struct rig {
    char *root;
    struct zone v[ZONES_MAX];
    int n;
    struct meter_cfg cfg;
    struct meter *m;
    struct meter_reading got;
    struct {
        int64_t ns;
        uint64_t uj; /* of all zones that count */
    } truth[TIMES_MAX];
    int n_truth;
    int n_of[METER_STATES];
    double ok_j, error_j;
};

static int64_t clock_ns;

static void assert_near(double got, double want, double within) /* cmocka's is of floats */
{
    if (!(fabs(got - want) <= within))
        fail_msg("%.9g, not %.9g within %.9g", got, want, within);
}

static int64_t fake_now(void)
{
    return clock_ns;
}

static void write_file(const struct rig *r, const struct zone *z, const char *file, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, POWERCAP "%s/%s", z->folder, file);
    fake_sysfs_write(r->root, path, text);
}

static void write_count(const struct rig *r, const struct zone *z, const char *file, uint64_t x)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%llu\n", (unsigned long long)x);
    write_file(r, z, file, text);
}

static void show_energy(const struct rig *r, const struct zone *z)
{
    if (!z->gone)
        write_count(r, z, "energy_uj", z->range_uj ? z->energy_uj % z->range_uj : z->energy_uj);
}

static struct zone *add(struct rig *r, const char *folder, const char *name, uint64_t range_uj, uint64_t energy_uj,
                        bool counts)
{
    struct zone *z = &r->v[r->n++];
    char text[64];
    *z = (struct zone){ .folder = folder, .range_uj = range_uj, .energy_uj = energy_uj, .counts = counts };
    (void)snprintf(text, sizeof text, "%s\n", name);
    write_file(r, z, "name", text);
    write_count(r, z, "max_energy_range_uj", range_uj);
    show_energy(r, z);
    return z;
}

enum { COUNTED = 1, LEFT_OUT = 0 };

static int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->root = fake_sysfs_make(FAKE_VM);
    r->cfg = (struct meter_cfg){ .sysfs = r->root, .now_ns = fake_now };
    clock_ns = 1700000000LL * SECOND;
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    meter_rapl.close(r->m);
    fake_sysfs_remove(r->root);
    free(r);
    return 0;
}

static void open_meter(struct rig *r)
{
    struct err e = { 0 };
    if (meter_rapl.open(&r->m, &r->cfg, &e) < 0)
        fail_msg("%s", e.text);
}

static double truth_at(const struct rig *r, double ms)
{
    for (int i = 0; i < r->n_truth; i++)
        if (fabs((double)r->truth[i].ns / 1e6 - ms) < 0.01)
            return (double)r->truth[i].uj / 1e6;
    fail_msg("nothing was read at %.3f", ms);
    return NAN;
}

static uint64_t truth_now(const struct rig *r)
{
    uint64_t sum = 0;
    for (int i = 0; i < r->n; i++)
        sum += r->v[i].counts ? r->v[i].energy_uj : 0;
    return sum;
}

/* Reads, and holds a reading with a value to what was spent between its two moments, and one without to having none. */
static enum meter_state read_now(struct rig *r)
{
    assert_true(r->n_truth < TIMES_MAX);
    r->truth[r->n_truth].ns = clock_ns;
    r->truth[r->n_truth++].uj = truth_now(r);
    assert_int_equal(meter_rapl.read(r->m, &r->got), 1);
    const struct meter_reading *got = &r->got;
    r->n_of[got->state]++;
    assert_string_equal(got->node, "");
    assert_near(got->to_ms, (double)clock_ns / 1e6, 0.01);
    if (got->state == METER_OK) {
        double want = truth_at(r, got->to_ms) - truth_at(r, got->from_ms);
        assert_true(got->from_ms < got->to_ms && *got->why == '\0');
        if (!(fabs(got->value - want) <= got->error))
            fail_msg("%.6f J, not %.6f within %.6f", got->value, want, got->error);
        r->ok_j += got->value;
        r->error_j += got->error;
    } else {
        assert_true(isnan(got->value) && isnan(got->error));
        assert_int_equal(*got->why != '\0', got->state != METER_FIRST);
    }
    return got->state;
}

static void spend(const struct rig *r, struct zone *z, double j)
{
    z->energy_uj += (uint64_t)(j * 1e6);
    show_energy(r, z);
}

static void pass(double seconds)
{
    clock_ns += (int64_t)(seconds * SECOND);
}

static void expect(struct rig *r, enum meter_state want)
{
    enum meter_state got = read_now(r);
    if (got != want)
        fail_msg("%s (%s), not %s", meter_state_name(got), r->got.why, meter_state_name(want));
}

static void expect_j(struct rig *r, double want)
{
    expect(r, METER_OK);
    if (fabs(r->got.value - want) > 1e-6)
        fail_msg("%.6f J, not %.6f", r->got.value, want);
}

/* --- one interval after the other --------------------------------------------------------------------------------- */

static void the_first_read_has_no_value_and_the_next_has_its_interval(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 5000000, COUNTED);
    struct zone *dram = add(r, "intel-rapl:0:0", "dram", 65712999613, 7, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    assert_true(r->got.from_ms == r->got.to_ms);
    pass(1.5);
    spend(r, pkg, 80);
    spend(r, dram, 12.25);
    expect_j(r, 92.25);
    assert_near(r->got.to_ms - r->got.from_ms, 1500, 0.001);
    assert_true(r->got.error > 0 && r->got.error < 0.1);
}

static void wraps_every_few_samples_lose_nothing(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", 65712999613, 64000000000, COUNTED);
    struct zone *dram = add(r, "intel-rapl:0:0", "dram", 20000000000, 19999999999, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    uint64_t before = truth_now(r);
    for (int i = 0; i < 400; i++) {
        pass(9);
        spend(r, pkg, 15000 + i);
        spend(r, dram, 3000 + 2 * i);
        expect(r, METER_OK);
    }
    assert_near(r->ok_j, (double)(truth_now(r) - before) / 1e6, 1e-4);
}

/* The range that the kernel shows is one hardware step short of where the counter really begins anew. */
static void a_wrap_one_step_later_is_within_the_error(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, RANGE_UJ - 30000000, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    pass(1);
    pkg->energy_uj += 50000000;
    write_count(r, pkg, "energy_uj", pkg->energy_uj - RANGE_UJ - 61);
    expect(r, METER_OK);
}

static void a_range_of_zero_makes_a_decrease_no_wrap(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", 0, 90000000, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    pass(1);
    spend(r, pkg, 50);
    expect_j(r, 50);
    pass(1);
    write_count(r, pkg, "energy_uj", 89000000);
    expect(r, METER_DISCARDED);
    assert_string_equal(r->got.why, "the counter of package-0 went back");
    pass(1);
    write_count(r, pkg, "energy_uj", 99000000);
    pkg->energy_uj += 10000000;
    expect_j(r, 10);
}

static void a_guest_that_sees_two_sockets_in_turn_invents_nothing(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 0, LEFT_OUT);
    uint64_t socket[2] = { 100000000000, 160000000000 };
    open_meter(r);
    for (int i = 0; i < 200; i++) {
        socket[0] += 60000000;
        socket[1] += 90000000;
        write_count(r, pkg, "energy_uj", socket[i % 2] % RANGE_UJ);
        pass(1);
        expect(r, i == 0 ? METER_FIRST : METER_DISCARDED);
    }
    assert_non_null(strstr(r->got.why, "package-0"));
    pkg->counts = true;
    for (int i = 0; i < 3; i++) { /* it stays on one of them */
        socket[1] += 90000000;
        pkg->energy_uj += 90000000;
        write_count(r, pkg, "energy_uj", socket[1] % RANGE_UJ);
        pass(1);
        expect_j(r, 90);
    }
}

static void after_a_reset_counting_goes_on_from_there(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 200000000000, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    double first_ms = r->got.to_ms;
    pass(1);
    write_count(r, pkg, "energy_uj", 5000000);
    expect(r, METER_DISCARDED);
    assert_true(r->got.from_ms == first_ms);
    double discarded_ms = r->got.to_ms;
    pass(1);
    write_count(r, pkg, "energy_uj", 55000000);
    pkg->energy_uj += 50000000;
    expect_j(r, 50);
    assert_true(r->got.from_ms == discarded_ms);
}

/* 62 kJ in two minutes would be plausible for a wrap, but the machine was suspended. */
static void a_reset_while_suspended_is_no_wrap(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 200000000000, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    pass(1);
    spend(r, pkg, 20);
    expect_j(r, 20);
    pass(120);
    write_count(r, pkg, "energy_uj", 5000000);
    expect(r, METER_DISCARDED);
}

static void a_pause_in_which_it_may_have_gone_round_is_discarded(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    pass(1);
    spend(r, pkg, 100);
    expect_j(r, 100);
    pass(3600);
    spend(r, pkg, 300000); /* once round, and 38 kJ */
    expect(r, METER_DISCARDED);
    assert_non_null(strstr(r->got.why, "unseen"));
    pass(1);
    spend(r, pkg, 100);
    expect_j(r, 100);
}

static void read_too_seldom_the_error_holds_the_rounds(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", 65712999613, 1, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    for (int i = 0; i < 3; i++) {
        pass(600);
        spend(r, pkg, 168000); /* 280 W: more than two rounds */
        expect(r, METER_OK);
        assert_true(r->got.error > 2 * 65712);
    }
}

static void a_counter_that_stands_still_is_not_0_joules(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    (void)add(r, "intel-rapl:0:0", "dram", RANGE_UJ, 0, COUNTED); /* which may stand still */
    open_meter(r);
    expect(r, METER_FIRST);
    pass(1);
    expect(r, METER_DISCARDED);
    assert_non_null(strstr(r->got.why, "package-0 stands still"));
    pass(1);
    spend(r, pkg, 3000); /* it is renewed every two seconds: the power is no jump */
    expect_j(r, 3000);
    assert_near(r->got.to_ms - r->got.from_ms, 2000, 0.001);
    pass(0.0005);
    expect_j(r, 0); /* not renewed yet */
    pass(0.0005);
    spend(r, pkg, 1.9); /* of the ms before */
    expect_j(r, 1.9);
    pass(0.0005);
    spend(r, pkg, 1.9); /* 3.8 kW, of half a ms */
    expect_j(r, 1.9);
}

/* The time of its rest has been told already: what it takes at once is of this interval. */
static void memory_that_wakes_has_no_jump(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    struct zone *dram = add(r, "intel-rapl:0:0", "dram", RANGE_UJ, 0, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    for (int i = 0; i < 100; i++) {
        pass(1);
        spend(r, pkg, 90);
        expect_j(r, 90);
    }
    pass(1);
    spend(r, pkg, 90);
    spend(r, dram, 20000);
    expect(r, METER_DISCARDED);
    assert_non_null(strstr(r->got.why, "dram of package-0 would have taken"));
}

static void a_clock_that_goes_back_costs_one_interval(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    pass(-5);
    spend(r, pkg, 100);
    expect(r, METER_DISCARDED);
    assert_true(r->got.from_ms <= r->got.to_ms);
    pass(1);
    spend(r, pkg, 70);
    expect_j(r, 70);
}

static void the_bound_is_the_configurations(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    r->cfg.max_w = 150;
    open_meter(r);
    expect(r, METER_FIRST);
    pass(1);
    spend(r, pkg, 149);
    expect_j(r, 149);
    pass(1);
    spend(r, pkg, 160);
    expect(r, METER_DISCARDED);
    assert_non_null(strstr(r->got.why, "160 W, more than 150 W"));
}

/* --- files that go ------------------------------------------------------------------------------------------------ */

static void lose(struct rig *r, struct zone *z)
{
    char path[128];
    (void)snprintf(path, sizeof path, POWERCAP "%s/energy_uj", z->folder);
    fake_sysfs_delete(r->root, path);
    z->gone = true;
}

static void find_again(struct rig *r, struct zone *z)
{
    z->gone = false;
    show_energy(r, z);
}

static void a_counter_that_is_lost_for_a_while_loses_no_energy(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    struct zone *other = add(r, "intel-rapl:1", "package-1", RANGE_UJ, 1, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    double first_ms = r->got.to_ms;
    lose(r, other);
    for (int i = 0; i < 10; i++) {
        pass(1);
        spend(r, pkg, 100);
        spend(r, other, 50);
        expect(r, METER_FAILED); /* one package is no half of the machine */
        assert_true(r->got.from_ms == first_ms);
        assert_non_null(strstr(r->got.why, "cannot read package-1: "));
    }
    find_again(r, other);
    pass(1);
    spend(r, pkg, 100);
    spend(r, other, 50);
    expect_j(r, 11 * 150);
    assert_true(r->got.from_ms == first_ms);
}

static void a_file_in_whose_place_is_something_else_is_failed(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    static const char *const texts[] = { "", "\n", "-1\n", "1 2\n", "12x\n", "99999999999999999999999\n" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        pass(1);
        write_file(r, pkg, "energy_uj", texts[i]);
        expect(r, METER_FAILED);
    }
    pass(1);
    spend(r, pkg, 500);
    expect_j(r, 500);
    lose(r, pkg);
    write_file(r, pkg, "energy_uj/x", "a folder");
    pass(1);
    expect(r, METER_FAILED);
    lose(r, pkg);
    write_file(r, pkg, "name", "package-7\n"); /* numbered anew */
    find_again(r, pkg);
    expect(r, METER_FAILED);
}

/* The folder of the test, and what is in it, are anybody's to enter; the counter is root's. */
/* What root may do with files that are not for it: taken away, or given back. */
static void override_modes(bool may)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    const uint32_t bits = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
    assert_int_equal(syscall(SYS_capget, &head, data), 0);
    data[0].effective = may ? data[0].effective | (bits & data[0].permitted) : data[0].effective & ~bits;
    assert_int_equal(syscall(SYS_capset, &head, data), 0);
}

static void a_counter_that_is_denied_says_how_to_mend_it(void **state)
{
    struct rig *r = *state;
    struct meter_cfg *cfg = &r->cfg;
    struct err e = { 0 };
    char path[512];
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    (void)add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    (void)snprintf(path, sizeof path, "%s/" POWERCAP "intel-rapl:0/energy_uj", r->root);
    assert_int_equal(chmod(path, 0), 0);
    override_modes(false);
    int rc = meter_rapl.open(&r->m, cfg, &e), probed = meter_rapl.probe(cfg, &detail, &fix);
    override_modes(true);
    assert_int_equal(rc, -EACCES);
    assert_int_equal(probed, -EACCES);
    assert_null(r->m);
    assert_non_null(strstr(e.text, path));
    assert_non_null(strstr(e.text, "conf/udev/60-pipetune-rapl.rules"));
    assert_non_null(strstr(e.text, "perf-power with CAP_PERFMON"));
    assert_non_null(strstr(buf_text(&detail), "Permission denied"));
    assert_non_null(strstr(buf_text(&fix), "conf/udev/60-pipetune-rapl.rules"));
}

static void where_there_is_none_it_says_so(void **state)
{
    struct rig *r = *state;
    struct err e = { 0 };
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    assert_int_equal(meter_rapl.open(&r->m, &r->cfg, &e), -ENODEV);
    assert_non_null(strstr(e.text, "no RAPL zone"));
    (void)add(r, "intel-rapl:0", "core", RANGE_UJ, 1, LEFT_OUT); /* a part of something that is not there */
    assert_int_equal(meter_rapl.open(&r->m, &r->cfg, &e), -ENODEV);
    assert_int_equal(meter_rapl.probe(&r->cfg, &detail, &fix), -ENODEV);
    assert_non_null(strstr(buf_text(&detail), "no RAPL zone"));
    assert_non_null(strstr(buf_text(&fix), "virtual machines"));
}

/* --- which zones -------------------------------------------------------------------------------------------------- */

static void expect_probe(struct rig *r, const char *want)
{
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    assert_int_equal(meter_rapl.probe(&r->cfg, &detail, &fix), 0);
    assert_string_equal(buf_text(&detail), want);
    assert_string_equal(buf_text(&fix), "");
}

/* Ten seconds in which each zone takes 10 W more than the one before it. */
static void run_ten_seconds(struct rig *r)
{
    open_meter(r);
    expect(r, METER_FIRST);
    for (int i = 0; i < 10; i++) {
        pass(1);
        for (int k = 0; k < r->n; k++)
            spend(r, &r->v[k], 50 + 10 * k);
        expect(r, METER_OK);
    }
}

static void a_server_is_its_packages_and_their_memory(void **state)
{
    struct rig *r = *state;
    fake_sysfs_write(r->root, POWERCAP "intel-rapl/enabled", "1\n");
    (void)add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    (void)add(r, "intel-rapl:0:0", "dram", 65712999613, 2, COUNTED);
    (void)add(r, "intel-rapl:1", "package-1", RANGE_UJ, 3, COUNTED);
    (void)add(r, "intel-rapl:1:0", "dram", 65712999613, 4, COUNTED);
    expect_probe(r, "2 packages, 2 dram");
    run_ten_seconds(r);
    assert_near(r->ok_j, 10 * (50 + 60 + 70 + 80), 1e-6);
}

static void children_may_be_in_their_parents_folders(void **state)
{
    struct rig *r = *state;
    (void)add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    (void)add(r, "intel-rapl:0/intel-rapl:0:0", "core", RANGE_UJ, 2, LEFT_OUT);
    (void)add(r, "intel-rapl:0/intel-rapl:0:1", "dram", RANGE_UJ, 3, COUNTED);
    expect_probe(r, "1 package, 1 dram");
    run_ten_seconds(r);
}

static void a_desktop_has_psys_and_mmio_that_are_not_added(void **state)
{
    struct rig *r = *state;
    (void)add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    (void)add(r, "intel-rapl:0:0", "core", RANGE_UJ, 2, LEFT_OUT);
    (void)add(r, "intel-rapl:0:1", "uncore", RANGE_UJ, 3, LEFT_OUT);
    (void)add(r, "intel-rapl:1", "psys", RANGE_UJ, 4, LEFT_OUT);
    (void)add(r, "intel-rapl-mmio:0", "package-0", RANGE_UJ, 1, LEFT_OUT);
    (void)add(r, "intel-rapl-mmio:0:0", "dram", RANGE_UJ, 1, LEFT_OUT);
    expect_probe(r, "1 package, 0 dram; without psys, which has them in it; without intel-rapl-mmio, which shows them "
                    "again");
    run_ten_seconds(r);
}

static void amd_has_packages_and_cores(void **state)
{
    struct rig *r = *state;
    (void)add(r, "intel-rapl:0", "package-0", 65532610987, 1, COUNTED);
    (void)add(r, "intel-rapl:0:0", "core", 65532610987, 2, LEFT_OUT);
    (void)add(r, "intel-rapl:1", "package-1", 65532610987, 3, COUNTED);
    (void)add(r, "intel-rapl:1:0", "core", 65532610987, 4, LEFT_OUT);
    expect_probe(r, "2 packages, 0 dram");
    run_ten_seconds(r);
}

static void psys_counts_where_there_is_nothing_else(void **state)
{
    struct rig *r = *state;
    (void)add(r, "intel-rapl:0", "psys", RANGE_UJ, 1, COUNTED);
    (void)add(r, "intel-rapl:1", "unknown", RANGE_UJ, 1, LEFT_OUT);
    expect_probe(r, "psys alone: there is no package; without 1 of unknown name");
    run_ten_seconds(r);
}

static void mmio_counts_where_there_is_nothing_else(void **state)
{
    struct rig *r = *state;
    (void)add(r, "intel-rapl-mmio:0", "package-0", RANGE_UJ, 1, COUNTED);
    expect_probe(r, "1 package, 0 dram");
    run_ten_seconds(r);
}

/* --- dies --------------------------------------------------------------------------------------------------------- */

static void dies_that_show_one_counter_count_once(void **state)
{
    struct rig *r = *state;
    struct zone *v[4];
    v[0] = add(r, "intel-rapl:0", "package-0-die-0", 65532610987, 65000000000, COUNTED);
    v[1] = add(r, "intel-rapl:1", "package-0-die-1", 65532610987, 65000000000, LEFT_OUT);
    v[2] = add(r, "intel-rapl:2", "package-1-die-0", 65532610987, 9, COUNTED);
    v[3] = add(r, "intel-rapl:3", "package-1-die-1", 65532610987, 9, LEFT_OUT);
    expect_probe(r, "4 packages, 0 dram; dies of one package count once while they show the same");
    open_meter(r);
    expect(r, METER_FIRST);
    double first_ms = r->got.to_ms;
    for (int i = 0; i < 100; i++) {
        pass(1);
        for (int k = 0; k < 4; k++)
            spend(r, v[k], k < 2 ? 170 + i : 90);
        expect(r, i < 2 ? METER_FIRST : METER_OK);
        if (i == 2)
            assert_true(r->got.from_ms == first_ms); /* nothing of the time before is lost */
    }
    assert_near(r->ok_j, (double)(truth_now(r) - 65000000000 - 9) / 1e6, 1e-4);
}

/* The same counter is read twice, one after the other: what lies between belongs to the next interval. */
static void dies_that_show_one_counter_may_be_read_a_moment_apart(void **state)
{
    struct rig *r = *state;
    struct zone *a = add(r, "intel-rapl:0", "package-0-die-0", RANGE_UJ, 1000000, COUNTED);
    struct zone *b = add(r, "intel-rapl:1", "package-0-die-1", RANGE_UJ, 1000000, LEFT_OUT);
    open_meter(r);
    expect(r, METER_FIRST);
    for (int i = 0; i < 500; i++) {
        pass(1);
        spend(r, a, 200);
        b->energy_uj = a->energy_uj + (uint64_t)(i % 3) * 150000; /* renewed in between or not */
        show_energy(r, b);
        expect(r, i < 2 ? METER_FIRST : METER_OK);
    }
}

static void dies_with_counters_of_their_own_are_added(void **state)
{
    struct rig *r = *state;
    struct zone *a = add(r, "intel-rapl:0", "package-0-die-0", RANGE_UJ, 1, COUNTED);
    struct zone *am = add(r, "intel-rapl:0:0", "dram", RANGE_UJ, 1, COUNTED);
    struct zone *b = add(r, "intel-rapl:1", "package-0-die-1", RANGE_UJ, 1, COUNTED);
    struct zone *bm = add(r, "intel-rapl:1:0", "dram", RANGE_UJ, 1, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    for (int i = 0; i < 50; i++) {
        pass(1);
        spend(r, a, 100);
        spend(r, am, 20);
        spend(r, b, 103);
        spend(r, bm, 21);
        expect_j(r, 244);
    }
}

static void dies_that_are_alike_at_first_are_added_once_they_differ(void **state)
{
    struct rig *r = *state;
    struct zone *a = add(r, "intel-rapl:0", "package-0-die-0", RANGE_UJ, 1, COUNTED);
    struct zone *b = add(r, "intel-rapl:1", "package-0-die-1", RANGE_UJ, 1, LEFT_OUT);
    open_meter(r);
    for (int i = 0; i < 10; i++) {
        pass(1);
        spend(r, a, 40);
        spend(r, b, 40);
        expect(r, i < 3 ? METER_FIRST : METER_OK);
    }
    b->counts = true;
    r->truth[r->n_truth - 1].uj = truth_now(r);
    pass(1);
    spend(r, a, 160);
    spend(r, b, 90);
    expect_j(r, 250);
    pass(1);
    spend(r, a, 40);
    spend(r, b, 40);
    expect_j(r, 80); /* different once, different for good */
}

static void a_package_named_twice_counts_once(void **state)
{
    struct rig *r = *state;
    struct zone *a = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 100, COUNTED);
    struct zone *b = add(r, "intel-rapl:1", "package-0", RANGE_UJ, 100, LEFT_OUT);
    open_meter(r);
    for (int i = 0; i < 8; i++) {
        pass(1);
        spend(r, a, 40);
        spend(r, b, 40);
        expect(r, i < 3 ? METER_FIRST : METER_OK);
    }
}

/* --- anything ----------------------------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    return *x ^= *x << 5;
}

/* Wraps, resets and lost files at random, intervals from 0.5 to 1.5 s: every value is what was spent between its moments. */
static void whatever_happens_no_joule_is_invented(void **state)
{
    struct rig *r = *state;
    uint32_t seed = 20231;
    (void)add(r, "intel-rapl:0", "package-0", 20000000000, 1, COUNTED);
    (void)add(r, "intel-rapl:0:0", "dram", 15000000000, 14999999000, COUNTED);
    (void)add(r, "intel-rapl:1", "package-1", 20000000000, 19000000000, COUNTED);
    open_meter(r);
    for (int i = 0; i < 2000; i++) {
        pass(0.5 + (next_random(&seed) % 1000) / 1000.0);
        bool reset = next_random(&seed) % 50 == 0;
        for (int k = 0; k < r->n; k++) {
            struct zone *z = &r->v[k];
            if (!z->gone && next_random(&seed) % 60 == 0)
                lose(r, z);
            spend(r, z, 1 + next_random(&seed) % 400);
            if (reset && k != 1)
                spend(r, z, 7000); /* to which it does not come by itself */
            if (z->gone && next_random(&seed) % 2)
                find_again(r, z);
        }
        (void)read_now(r);
    }
    assert_true(r->n_of[METER_OK] > 1000);
    assert_true(r->n_of[METER_DISCARDED] > 10 && r->n_of[METER_FAILED] > 50);
}

/* --- what runs short ---------------------------------------------------------------------------------------------- */

static void whatever_runs_short_leaves_nothing_open(void **state)
{
    struct rig *r = *state;
    struct err e;
    int rc = -EIO;
    (void)add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    (void)add(r, "intel-rapl:0:0", "dram", RANGE_UJ, 1, COUNTED);
    int before = dup(0);
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC | FAULT_OPEN, nth);
        rc = meter_rapl.open(&r->m, &r->cfg, &e);
        bool struck = fault_disarm();
        assert_int_equal(rc < 0, struck); /* a part of the machine is never taken for all of it */
        if (rc < 0)
            assert_true((rc == -ENOMEM || rc == -EMFILE) && !r->m);
        if (rc < 0) {
            int now = dup(0);
            assert_int_equal(now, before + 1);
            assert_int_equal(close(now), 0);
        }
    }
    assert_int_equal(close(before), 0);
}

static void a_reopening_that_fails_is_tried_again(void **state)
{
    struct rig *r = *state;
    struct zone *pkg = add(r, "intel-rapl:0", "package-0", RANGE_UJ, 1, COUNTED);
    open_meter(r);
    expect(r, METER_FIRST);
    lose(r, pkg);
    pass(1);
    expect(r, METER_FAILED);
    find_again(r, pkg);
    for (unsigned nth = 1; nth <= 2; nth++) {
        pass(0.2);
        fault_arm(FAULT_OPEN, nth);
        expect(r, METER_FAILED);
        assert_true(fault_disarm());
        assert_non_null(strstr(r->got.why, strerror(EMFILE)));
    }
    pass(0.2);
    spend(r, pkg, 80);
    expect_j(r, 80);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_read_has_no_value_and_the_next_has_its_interval),
        TEST(wraps_every_few_samples_lose_nothing),
        TEST(a_wrap_one_step_later_is_within_the_error),
        TEST(a_range_of_zero_makes_a_decrease_no_wrap),
        TEST(a_guest_that_sees_two_sockets_in_turn_invents_nothing),
        TEST(after_a_reset_counting_goes_on_from_there),
        TEST(a_reset_while_suspended_is_no_wrap),
        TEST(a_pause_in_which_it_may_have_gone_round_is_discarded),
        TEST(read_too_seldom_the_error_holds_the_rounds),
        TEST(a_counter_that_stands_still_is_not_0_joules),
        TEST(memory_that_wakes_has_no_jump),
        TEST(a_clock_that_goes_back_costs_one_interval),
        TEST(the_bound_is_the_configurations),
        TEST(a_counter_that_is_lost_for_a_while_loses_no_energy),
        TEST(a_file_in_whose_place_is_something_else_is_failed),
        TEST(a_counter_that_is_denied_says_how_to_mend_it),
        TEST(where_there_is_none_it_says_so),
        TEST(a_server_is_its_packages_and_their_memory),
        TEST(children_may_be_in_their_parents_folders),
        TEST(a_desktop_has_psys_and_mmio_that_are_not_added),
        TEST(amd_has_packages_and_cores),
        TEST(psys_counts_where_there_is_nothing_else),
        TEST(mmio_counts_where_there_is_nothing_else),
        TEST(dies_that_show_one_counter_count_once),
        TEST(dies_that_show_one_counter_may_be_read_a_moment_apart),
        TEST(dies_with_counters_of_their_own_are_added),
        TEST(dies_that_are_alike_at_first_are_added_once_they_differ),
        TEST(a_package_named_twice_counts_once),
        TEST(whatever_happens_no_joule_is_invented),
        TEST(whatever_runs_short_leaves_nothing_open),
        TEST(a_reopening_that_fails_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
