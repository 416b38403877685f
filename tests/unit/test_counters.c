/* Counting events: over a fake kernel whatever machine, and over the real one what every machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "monitoring/counters.h"
#include "tests/fake_sysfs.h"
#include "tests/fault.h"

#define ONLINE "devices/system/cpu/online"

/* --- a fake kernel ------------------------------------------------------------------------------------------------ */

enum { FIRST_FD = 1000, FDS = 4096, OTHERS = 7 };

struct fake {
    struct fake_fd {
        bool open;
        struct event_attr attr;
        pid_t pid;
        int cpu;
        unsigned flags;
        uint64_t v[3];
        ssize_t answers; /* to a read; 0: all of v */
        int leader;      /* which of fd it joined; -1 */
        int nth;         /* the how many-th that was opened */
    } fd[FDS];
    int n_open, most, opened; /* now, that may be at once, ever */
    int (*refuse)(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags); /* NULL: nothing */
    void (*on_open)(struct fake *f);
    bool refuse_join;
};

static struct fake kernel;

static int fake_open(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx)
{
    struct fake *f = ctx;
    int rc = f->refuse ? f->refuse(attr, pid, cpu, flags) : 0;
    if (rc < 0)
        return rc;
    if (f->n_open >= f->most)
        return -EMFILE;
    int i = 0;
    while (f->fd[i].open)
        i++;
    f->fd[i] = (struct fake_fd){ .open = true, .attr = *attr, .pid = pid, .cpu = cpu, .flags = flags, .leader = -1 };
    f->n_open++;
    f->fd[i].nth = ++f->opened;
    if (f->on_open)
        f->on_open(f);
    return FIRST_FD + i;
}

static ssize_t fake_read(int fd, uint64_t out[3], void *ctx)
{
    struct fake *f = ctx;
    struct fake_fd *at = &f->fd[fd - FIRST_FD];
    assert_true(at->open);
    if (at->answers != 0)
        return at->answers == 1 ? 0 : at->answers;
    memcpy(out, at->v, sizeof at->v);
    return sizeof at->v;
}

static int fake_close(int fd, void *ctx)
{
    struct fake *f = ctx;
    assert_true(f->fd[fd - FIRST_FD].open);
    f->fd[fd - FIRST_FD].open = false;
    f->n_open--;
    return 0;
}

static const struct perf_ops ops = { .open = fake_open, .read = fake_read, .close = fake_close, .ctx = &kernel };

static int fake_join(int leader, const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx)
{
    struct fake *f = ctx;
    assert_true(f->fd[leader - FIRST_FD].open && f->fd[leader - FIRST_FD].flags & PERF_OPS_LEADER);
    assert_int_equal(f->fd[leader - FIRST_FD].cpu, cpu);
    if (f->refuse_join)
        return -EINVAL;
    int fd = fake_open(attr, pid, cpu, flags, ctx);
    if (fd >= 0)
        f->fd[fd - FIRST_FD].leader = leader - FIRST_FD;
    return fd;
}

/* Of those that joined behind the `after`-th, the first; -1: none. */
static int next_joined(const struct fake *f, int leader, int after)
{
    int next = -1;
    for (int i = 0; i < FDS; i++)
        if (f->fd[i].open && f->fd[i].leader == leader && f->fd[i].nth > after &&
            (next < 0 || f->fd[i].nth < f->fd[next].nth))
            next = i;
    return next;
}

static int fake_read_group(int fd, uint64_t times[2], uint64_t *values, int most, void *ctx)
{
    const struct fake *f = ctx;
    int leader = fd - FIRST_FD, n = 0;
    assert_true(f->fd[leader].open);
    if (f->fd[leader].answers)
        return -EIO;
    times[0] = f->fd[leader].v[1];
    times[1] = f->fd[leader].v[2];
    values[n++] = f->fd[leader].v[0];
    for (int i = next_joined(f, leader, 0); i >= 0; i = next_joined(f, leader, f->fd[i].nth)) {
        assert_true(n < most);
        values[n++] = f->fd[i].v[0];
    }
    return n;
}

static const struct perf_ops grouping = { .open = fake_open,
                                          .read = fake_read,
                                          .close = fake_close,
                                          .ctx = &kernel,
                                          .join = fake_join,
                                          .read_group = fake_read_group };

#define ANY INT32_MIN

/* All that are open for this encoding, here or there. How many they are. */
static int advance(uint64_t config, int cpu, pid_t pid, uint64_t value, uint64_t enabled, uint64_t running)
{
    int n = 0;
    for (int i = 0; i < FDS; i++) {
        struct fake_fd *at = &kernel.fd[i];
        if (!at->open || at->attr.type != OTHERS || at->attr.config != config || (cpu != ANY && at->cpu != cpu) ||
            (pid != ANY && at->pid != pid))
            continue;
        at->v[0] += value;
        at->v[1] += enabled;
        at->v[2] += running;
        n++;
    }
    return n;
}

static int count_open(uint64_t config)
{
    return advance(config, ANY, ANY, 0, 0, 0);
}

/* --- one test ----------------------------------------------------------------------------------------------------- */

static char *root; /* /sys, and /proc below it */
static struct events events;
static struct reading v[COUNTERS_READINGS];

/* Event i is of encoding i, all on all CPUs; the first six alone are known. */
static int set_up(void **state)
{
    (void)state;
    root = fake_sysfs_make(FAKE_VM);
    fake_sysfs_write(root, ONLINE, "0-1\n");
    memset(&kernel, 0, sizeof kernel);
    memset(&events, 0, sizeof events);
    kernel.most = FDS - 1;
    for (int i = 0; i < EVENT_NAMES; i++)
        events.v[i] = (struct event_spec){ .name = event_names[i], .same_as = -1, .scale = 1, .core_counter = true };
    for (int i = 0; i < 6; i++) {
        events.v[i].by = EVENT_BY_SYSFS;
        events.v[i].attr = (struct event_attr){ .type = OTHERS, .config = (uint64_t)i };
    }
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

static struct counters_want want_of(enum counters_scope scope)
{
    return (struct counters_want){
        .ops = &ops, .events = &events, .scope = scope, .cgroup_fd = -1, .sysfs = root, .proc = root
    };
}

static struct counters *open_scope(enum counters_scope scope)
{
    struct counters_want want = want_of(scope);
    struct counters *c = counters_new(&want);
    assert_non_null(c);
    return c;
}

static void assert_is(const char *when, int event, enum reading_state state, double value, double ratio)
{
    const struct reading *r = &v[event];
    bool counted = state <= READING_MULTIPLEXED;
    bool right =
        counted ? fabs(r->value - value) <= 1e-9 * value && fabs((double)r->ratio - ratio) < 1e-6 : isnan(r->value);
    if (r->state != state || !right)
        fail_msg("%s: event %d: got %s %.17g/%g, want %s %.17g/%g", when, event, reading_state_name(r->state), r->value,
                 (double)r->ratio, reading_state_name(state), value, ratio);
}

/* --- what is counted ---------------------------------------------------------------------------------------------- */

static void a_reading_is_what_was_counted_since_the_last(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t before[3], now[3];
        enum reading_state state;
        double value, ratio;
    } cases[] = {
        { "all the time", { 100, 5, 5 }, { 350, 1005, 1005 }, READING_OK, 250, 1 },
        { "none of it happened", { 100, 5, 5 }, { 100, 1005, 1005 }, READING_OK, 0, 1 },
        { "a quarter of the time", { 100, 5, 5 }, { 350, 1005, 255 }, READING_MULTIPLEXED, 1000, 0.25 },
        { "only the interval's share counts", { 0, 1000, 0 }, { 10, 2000, 500 }, READING_MULTIPLEXED, 20, 0.5 },
        { "enabled and never ran", { 100, 5, 5 }, { 100, 1005, 5 }, READING_NOT_COUNTED, 0, 0 },
        { "not even enabled", { 100, 5, 5 }, { 100, 5, 5 }, READING_NOT_COUNTED, 0, 0 },
        { "64 bits wrap", { UINT64_MAX - 9, 5, 5 }, { 10, 1005, 1005 }, READING_OK, 20, 1 },
        { "48 bits wrap", { (UINT64_C(1) << 48) - 10, 5, 5 }, { 10, 1005, 1005 }, READING_OK, 20, 1 },
        { "48 bits wrap, half of the time",
          { (UINT64_C(1) << 48) - 10, 0, 0 },
          { 10, 1000, 500 },
          READING_MULTIPLEXED,
          40,
          0.5 },
        { "a step back is no count", { 1000, 5, 5 }, { 900, 1005, 1005 }, READING_NOT_COUNTED, 0, 0 },
        { "a count beyond 2^53", { 0, 0, 0 }, { UINT64_C(1) << 62, 9, 9 }, READING_OK, 4611686018427387904.0, 1 },
    };
    fake_sysfs_write(root, ONLINE, "0\n");
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fake_fd *at = kernel.fd;
        while (!at->open || at->attr.type != OTHERS || at->attr.config != 3)
            at++;
        memcpy(at->v, cases[i].before, sizeof at->v);
        counters_read(c, v);
        counters_read(c, v); /* a step back of the case before is done with */
        memcpy(at->v, cases[i].now, sizeof at->v);
        counters_read(c, v);
        assert_is(cases[i].name, 3, cases[i].state, cases[i].value, cases[i].ratio);
    }
    counters_free(c);
}

static void cpus_are_summed_and_scaled_each(void **state)
{
    (void)state;
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    advance(2, 0, ANY, 100, 1000, 1000);
    advance(2, 1, ANY, 100, 1000, 250);
    advance(3, 0, ANY, 100, 1000, 1000);
    advance(3, 1, ANY, 0, 1000, 0);
    counters_read(c, v);
    assert_is("each by its own ratio", 2, READING_MULTIPLEXED, 500, 0.625);
    assert_is("one never ran: as the other", 3, READING_MULTIPLEXED, 200, 0.5);
    counters_free(c);
}

static void equal_encodings_are_opened_once(void **state)
{
    (void)state;
    events.v[1].same_as = 0;
    events.v[1].scale = 4;
    events.v[5].same_as = 0;
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    assert_int_equal(count_open(0), 2);
    assert_int_equal(count_open(1), 0);
    assert_int_equal(kernel.n_open, 2 * (4 + 4)); /* four of ours, and software */
    advance(0, ANY, ANY, 10, 7, 7);
    counters_read(c, v);
    assert_is("the first", 0, READING_OK, 20, 1);
    assert_is("the same, of another scale", 1, READING_OK, 80, 1);
    assert_is("the same", 5, READING_OK, 20, 1);
    assert_is("nobody knows it", 6, READING_UNSUPPORTED, 0, 0);
    counters_free(c);
}

static void events_that_are_not_chosen_are_never_opened(void **state)
{
    (void)state;
    static const enum counters_scope scopes[] = { COUNTERS_SYSTEM, COUNTERS_PROCESS };
    bool only[EVENT_NAMES] = { [2] = true, [7] = true };
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
        struct procs_id self = { .pid = getpid() };
        struct counters_want want = want_of(scopes[i]);
        want.only = only;
        want.proc = "/proc";
        assert_int_equal(proc_start_ticks(self.pid, &self.start_ticks), 0);
        struct counters *c = counters_new(&want);
        assert_non_null(c);
        counters_follow(c, &self, scopes[i] == COUNTERS_PROCESS);
        for (uint64_t config = 0; config < 6; config++)
            assert_int_equal(count_open(config) > 0, config == 2);
        assert_true(advance(2, ANY, ANY, 10, 5, 5) > 0);
        counters_read(c, v);
        assert_int_equal(v[2].state, READING_OK);
        assert_is("not chosen", 0, READING_ABSENT, 0, 0);
        assert_is("nobody knows it, and not chosen", 6, READING_ABSENT, 0, 0);
        assert_is("nobody knows it", 7, READING_UNSUPPORTED, 0, 0);
        assert_true(v[FEATURE_CONTEXT_SWITCHES].state != READING_ABSENT);
        counters_free(c);
        kernel.opened = 0;
    }
}

static void without_an_event_the_software_events_are_counted(void **state)
{
    (void)state;
    static const bool none[EVENT_NAMES] = { false };
    struct counters_want want = want_of(COUNTERS_SYSTEM);
    int left = 8; /* four on two CPUs */
    want.only = none;
    want.fds_left = &left;
    struct counters *c = counters_new(&want);
    assert_int_equal(kernel.n_open, 8);
    counters_read(c, v);
    for (int i = 0; i < EVENT_NAMES; i++)
        assert_is("none is chosen", i, READING_ABSENT, 0, 0);
    for (int i = FEATURE_SOFTWARE; i < COUNTERS_READINGS; i++)
        assert_int_equal(v[i].state, READING_NOT_COUNTED); /* open, and no time has passed there */
    counters_free(c);
    assert_int_equal(left, 8);
}

/* Events 1 and 5 are event 0 by other names. */
static void a_chosen_name_of_an_event_that_is_not_chosen_is_counted(void **state)
{
    (void)state;
    bool only[EVENT_NAMES] = { [5] = true };
    struct counters_want want = want_of(COUNTERS_SYSTEM);
    want.only = only;
    events.v[1].same_as = events.v[5].same_as = 0;
    events.v[5].scale = 4;
    for (int both = 0; both < 2; both++) {
        only[0] = both;
        struct counters *c = counters_new(&want);
        assert_int_equal(kernel.n_open, 2 * (1 + 4));
        assert_int_equal(advance(0, ANY, ANY, 10, 7, 7), 2);
        counters_read(c, v);
        assert_is("chosen", 5, READING_OK, 80, 1);
        assert_is("what it is counted by", 0, both ? READING_OK : READING_ABSENT, 20, 1);
        assert_is("another name", 1, READING_ABSENT, 0, 0);
        counters_free(c);
    }
}

static void an_event_is_opened_on_its_own_cpus_alone(void **state)
{
    (void)state;
    fake_sysfs_write(root, ONLINE, "0-3,8\n");
    (void)snprintf(events.v[2].cpus, sizeof events.v[2].cpus, "0,8-9");
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    assert_int_equal(count_open(1), 5);
    assert_int_equal(count_open(2), 2);
    assert_int_equal(advance(2, 8, -1, 5, 5, 5), 1);
    counters_free(c);
}

static void a_cgroup_is_counted_on_every_cpu(void **state)
{
    (void)state;
    struct counters_want want = want_of(COUNTERS_CGROUP);
    want.cgroup_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct counters *c = counters_new(&want);
    assert_int_equal(advance(0, 1, want.cgroup_fd, 0, 0, 0), 1);
    assert_int_equal(kernel.fd[0].flags, PERF_OPS_CGROUP);
    counters_free(c);
    assert_int_equal(fcntl(want.cgroup_fd, F_GETFD), -1); /* taken */
}

/* --- software events, which are read at once ------------------------------------------------------------------------ */

static const uint64_t kinds[] = { PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS,
                                  PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_PAGE_FAULTS_MAJ };

/* Each of them by a number of its own, everywhere: 10, 20, 30, 40 times `n`. */
static void advance_software(uint64_t n)
{
    for (int i = 0; i < FDS; i++)
        for (uint64_t k = 0; k < ARRAY_LEN(kinds); k++)
            if (kernel.fd[i].open && kernel.fd[i].attr.type == PERF_TYPE_SOFTWARE &&
                kernel.fd[i].attr.config == kinds[k]) {
                kernel.fd[i].v[0] += n * 10 * (k + 1);
                kernel.fd[i].v[1] += 5;
                kernel.fd[i].v[2] += 5;
            }
}

static void assert_software(const char *when, double n)
{
    for (int k = 0; k < (int)ARRAY_LEN(kinds); k++)
        assert_is(when, FEATURE_SOFTWARE + k, READING_OK, n * 10 * (k + 1), 1);
}

static int deny_migrations(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags)
{
    (void)pid, (void)cpu, (void)flags;
    return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_CPU_MIGRATIONS ? -EACCES : 0;
}

static void software_events_that_are_read_at_once_are_told_apart(void **state)
{
    (void)state;
    struct counters_want want = want_of(COUNTERS_SYSTEM);
    want.ops = &grouping;
    for (int refused_join = 0; refused_join < 2; refused_join++) {
        kernel.refuse_join = refused_join;
        struct counters *c = counters_new(&want);
        for (uint64_t n = 1; n < 4; n++) {
            advance_software(n);
            advance(2, ANY, ANY, n, 5, 5);
            counters_read(c, v);
            assert_software(refused_join ? "alone" : "joined", 2 * (double)n);
            assert_is("another", 2, READING_OK, 2 * (double)n, 1);
        }
        kernel.fd[0].answers = -EIO; /* the leader's on CPU 0 */
        advance_software(1);
        counters_read(c, v);
        assert_is("the leader in an error state", FEATURE_CONTEXT_SWITCHES, READING_NOT_COUNTED, 0, 0);
        counters_free(c);
    }
}

static int n_joined(int leader)
{
    int n = 0;
    for (int i = 0; i < FDS; i++)
        n += kernel.fd[i].open && kernel.fd[i].leader == leader;
    return n;
}

/* Those of msr need no counter of a core, so that they never wait for one; the others each take their turn. */
static void events_of_msr_are_read_with_the_software_events(void **state)
{
    (void)state;
    struct counters_want want = want_of(COUNTERS_SYSTEM);
    want.ops = &grouping;
    events.v[1].core_counter = events.v[4].core_counter = false;
    (void)snprintf(events.v[4].cpus, sizeof events.v[4].cpus, "1");
    struct counters *c = counters_new(&want);
    assert_int_equal(n_joined(0), 3 + 1); /* on CPU 0 */
    for (uint64_t n = 1; n < 4; n++) {
        advance_software(n);
        advance(1, ANY, ANY, 7 * n, 5, 5);
        advance(2, ANY, ANY, 8 * n, 5, 5);
        advance(4, ANY, ANY, 9 * n, 5, 5);
        counters_read(c, v);
        assert_software("software", 2 * (double)n);
        assert_is("of msr", 1, READING_OK, 14 * (double)n, 1);
        assert_is("of msr, on one CPU", 4, READING_OK, 9 * (double)n, 1);
        assert_is("of the core", 2, READING_OK, 16 * (double)n, 1);
    }
    counters_free(c);
}

static void one_that_is_had_later_joins_in_its_place(void **state)
{
    (void)state;
    struct counters_want want = want_of(COUNTERS_SYSTEM);
    want.ops = &grouping;
    kernel.refuse = deny_migrations;
    struct counters *c = counters_new(&want);
    advance_software(1);
    counters_read(c, v);
    assert_is("without it", FEATURE_CONTEXT_SWITCHES, READING_OK, 20, 1);
    assert_is("without it", FEATURE_CPU_MIGRATIONS, READING_DENIED, 0, 0);
    assert_is("without it", FEATURE_MAJOR_FAULTS, READING_OK, 80, 1);
    kernel.refuse = NULL;
    fake_sysfs_write(root, ONLINE, "0-2\n");
    advance_software(1);
    counters_read(c, v);
    assert_is("what was counted before is kept", FEATURE_MAJOR_FAULTS, READING_OK, 80, 1);
    advance_software(1);
    counters_read(c, v);
    assert_software("with it", 3);
    counters_free(c);
}

/* --- what fails --------------------------------------------------------------------------------------------------- */

static int refused[6]; /* by encoding: what open() answers */
static int refuse_on_cpu = ANY;

static int refuse(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags)
{
    (void)pid, (void)flags;
    return attr->type == OTHERS && (refuse_on_cpu == ANY || cpu == refuse_on_cpu) ? refused[attr->config] : 0;
}

static void refuse_all(const int how[6], int cpu)
{
    memcpy(refused, how, sizeof refused);
    refuse_on_cpu = cpu;
    kernel.refuse = refuse;
}

static void an_event_that_fails_stops_no_other(void **state)
{
    (void)state;
    static const int how[] = { -ENOENT, -EOPNOTSUPP, -EINVAL, -EACCES, -EPERM, 0 };
    static const enum reading_state want[] = { READING_UNSUPPORTED, READING_UNSUPPORTED, READING_UNSUPPORTED,
                                               READING_DENIED,      READING_DENIED,      READING_OK };
    refuse_all(how, ANY);
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    for (int round = 0; round < 2; round++) {
        advance(5, ANY, ANY, 5, 5, 5);
        counters_read(c, v);
        for (int i = 0; i < 6; i++)
            assert_is("refused", i, want[i], 10, 1);
    }
    assert_int_equal(kernel.opened, 2 * 5); /* that one and software: nothing is tried again */
    counters_free(c);
}

static void an_event_that_fails_in_one_place_is_not_summed_in_part(void **state)
{
    (void)state;
    static const int how[] = { 0, -ENOENT, -EACCES, -ENODEV, 0, 0 };
    refuse_all(how, 1);
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    assert_int_equal(count_open(1), 0);
    assert_int_equal(count_open(2), 0);
    assert_int_equal(count_open(3), 1); /* that CPU is going: nothing runs there */
    advance(3, ANY, ANY, 10, 5, 5);
    counters_read(c, v);
    assert_is("not on CPU 1", 1, READING_UNSUPPORTED, 0, 0);
    assert_is("not on CPU 1", 2, READING_DENIED, 0, 0);
    assert_is("no CPU 1", 3, READING_OK, 10, 1);
    counters_free(c);
}

static int refuse_kernel(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags)
{
    (void)attr, (void)pid, (void)cpu;
    return flags & PERF_OPS_USER ? 0 : -EACCES;
}

static void who_may_not_count_the_kernel_counts_user_mode(void **state)
{
    (void)state;
    kernel.refuse = refuse_kernel;
    events.v[2].attr.exclude_kernel_ok = true;
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    advance(2, ANY, ANY, 10, 5, 5);
    counters_read(c, v);
    assert_is("it can leave the kernel out", 2, READING_OK, 20, 1);
    assert_is("it cannot", 3, READING_DENIED, 0, 0);
    assert_is("switches are the kernel's", FEATURE_CONTEXT_SWITCHES, READING_DENIED, 0, 0);
    counters_free(c);
}

static void when_descriptors_run_out_whole_events_are_given_up(void **state)
{
    (void)state;
    kernel.most = 2 * (4 + 3) + 1; /* software and three of ours, on both CPUs */
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    for (uint64_t i = 0; i < 6; i++)
        advance(i, ANY, ANY, 5, 5, 5);
    counters_read(c, v);
    for (int i = 0; i < 6; i++)
        assert_is("too many", i, i < 3 ? READING_NO_FD : READING_OK, 10, 1);
    assert_int_equal(kernel.n_open, 2 * (4 + 3));
    counters_free(c);
}

static void a_budget_is_shared_and_given_back(void **state)
{
    (void)state;
    int left = 25;
    struct counters_want want = want_of(COUNTERS_SYSTEM);
    want.fds_left = &left;
    struct counters *a = counters_new(&want);
    assert_int_equal(kernel.n_open, 20);
    struct counters *b = counters_new(&want);
    assert_int_equal(kernel.n_open, 24);
    assert_int_equal(left, 1);
    counters_free(a);
    assert_int_equal(left, 21);
    counters_free(b);
    assert_int_equal(left, 25);
}

static void an_event_in_an_error_state_is_not_counted(void **state)
{
    (void)state;
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    for (int i = 0; i < FDS; i++)
        if (kernel.fd[i].open && kernel.fd[i].attr.type == OTHERS && kernel.fd[i].cpu == 1)
            kernel.fd[i].answers = kernel.fd[i].attr.config == 2 ? 1 : kernel.fd[i].attr.config == 3 ? -EIO : 0;
    for (uint64_t i = 0; i < 6; i++)
        advance(i, ANY, ANY, 5, 5, 5);
    counters_read(c, v);
    assert_is("end of file", 2, READING_NOT_COUNTED, 0, 0);
    assert_is("an error", 3, READING_NOT_COUNTED, 0, 0);
    assert_is("another", 4, READING_OK, 10, 1);
    counters_free(c);
}

/* --- CPUs that come and go ---------------------------------------------------------------------------------------- */

static void cpus_that_come_and_go_are_followed(void **state)
{
    (void)state;
    static const int how[] = { 0, 0, 0, -EACCES, 0, 0 }, none[] = { 0, 0, 0, 0, 0, 0 };
    refuse_all(how, ANY);
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    advance(0, ANY, ANY, 100, 9, 9);
    counters_read(c, v);
    assert_is("both", 0, READING_OK, 200, 1);
    refuse_all(none, ANY);
    counters_read(c, v);
    assert_is("not tried again", 3, READING_DENIED, 0, 0);
    advance(0, ANY, ANY, 7, 9, 9);
    fake_sysfs_write(root, ONLINE, "0\n");
    counters_read(c, v);
    assert_is("what the one that went counted is kept", 0, READING_OK, 14, 1);
    assert_int_equal(count_open(0), 1);
    advance(3, ANY, ANY, 3, 9, 9);
    counters_read(c, v);
    assert_is("tried again", 3, READING_OK, 3, 1);
    fake_sysfs_write(root, ONLINE, "0-2\n");
    advance(0, ANY, ANY, 1, 9, 9);
    counters_read(c, v);
    assert_is("two came, and have counted nothing yet", 0, READING_OK, 1, 1);
    assert_int_equal(advance(0, 2, -1, 50, 9, 9), 1);
    counters_read(c, v);
    assert_is("one of them counts", 0, READING_OK, 50, 1);
    counters_free(c);
}

static void without_a_list_all_cpus_are_taken(void **state)
{
    (void)state;
    fake_sysfs_delete(root, ONLINE);
    struct counters *c = open_scope(COUNTERS_SYSTEM);
    assert_int_equal(count_open(0), (int)sysconf(_SC_NPROCESSORS_ONLN));
    counters_free(c);
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static void put_thread(int pid, int start, int tid)
{
    char path[64], text[160];
    (void)snprintf(path, sizeof path, "%d/stat", pid);
    (void)snprintf(text, sizeof text, "%d (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 18 %d 20 21 22\n", pid, start);
    fake_sysfs_write(root, path, text);
    (void)snprintf(path, sizeof path, "%d/task/%d/comm", pid, tid);
    fake_sysfs_write(root, path, "x\n");
}

static int refuse_threads(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags)
{
    (void)attr, (void)pid, (void)cpu;
    return flags & PERF_OPS_THREADS ? -EINVAL : 0;
}

static const struct procs_id ten = { 10, 100 }, both[] = { { 10, 100 }, { 20, 200 } };

static void every_thread_of_a_process_is_opened(void **state)
{
    (void)state;
    put_thread(10, 100, 10);
    put_thread(10, 100, 11);
    struct counters *c = open_scope(COUNTERS_PROCESS);
    counters_read(c, v);
    assert_is("nobody yet", 0, READING_NOT_COUNTED, 0, 0);
    counters_follow(c, &ten, 1);
    assert_int_equal(advance(0, -1, 10, 5, 3, 3) + advance(0, -1, 11, 6, 3, 3), 2);
    for (int i = 0; i < FDS; i++)
        assert_true(!kernel.fd[i].open || kernel.fd[i].flags == PERF_OPS_THREADS);
    put_thread(10, 100, 12); /* counted by its creator's event */
    counters_follow(c, &ten, 1);
    assert_int_equal(count_open(0), 2);
    counters_read(c, v);
    assert_is("both", 0, READING_OK, 11, 1);
    counters_free(c);
}

static void processes_come_and_go_without_a_jump(void **state)
{
    (void)state;
    put_thread(10, 100, 10);
    put_thread(20, 200, 20);
    struct counters *c = open_scope(COUNTERS_PROCESS);
    counters_follow(c, &ten, 1);
    advance(0, ANY, ANY, 1000, 3, 3);
    counters_read(c, v);
    counters_follow(c, both, 2);
    assert_int_equal(advance(0, -1, 20, 8, 2, 2), 1);
    assert_int_equal(advance(0, -1, 10, 2, 2, 2), 1);
    counters_follow(c, &both[1], 1);
    assert_int_equal(count_open(0), 1);
    counters_read(c, v);
    assert_is("what the one that went counted is kept", 0, READING_OK, 10, 1);
    struct procs_id again = { 20, 277 };
    put_thread(20, 277, 20);
    counters_follow(c, &again, 1);
    assert_int_equal(count_open(0), 1);
    counters_read(c, v);
    counters_follow(c, NULL, 0);
    assert_int_equal(kernel.n_open, 0);
    struct procs_id gone = { 30, 300 };
    counters_follow(c, &gone, 1);
    assert_int_equal(kernel.n_open, 0);
    counters_free(c);
}

/* An older kernel counts one thread by one descriptor. */
static void where_threads_are_not_inherited_each_is_followed(void **state)
{
    (void)state;
    kernel.refuse = refuse_threads;
    put_thread(10, 100, 10);
    put_thread(10, 100, 11);
    struct counters *c = open_scope(COUNTERS_PROCESS);
    counters_follow(c, &ten, 1);
    advance(0, -1, 11, 5, 3, 3);
    put_thread(10, 100, 12);
    fake_sysfs_delete(root, "10/task/11");
    counters_follow(c, &ten, 1);
    assert_int_equal(advance(0, -1, 11, 0, 0, 0), 0);
    assert_int_equal(advance(0, -1, 12, 6, 3, 3), 1);
    counters_read(c, v);
    assert_is("one that went, one that came", 0, READING_OK, 11, 1);
    counters_free(c);
}

static int births;     /* threads that are started while others are being opened, yet */
static int last_birth; /* how many had been opened then */

static void give_birth(struct fake *f)
{
    if (births > 0 && f->opened % 10 == 5)
        put_thread(10, 100, 100 + births--), last_birth = f->opened;
}

static void a_process_that_starts_threads_meanwhile_is_opened_again(void **state)
{
    (void)state;
    put_thread(10, 100, 10);
    births = 2;
    kernel.on_open = give_birth;
    struct counters *c = open_scope(COUNTERS_PROCESS);
    counters_follow(c, &ten, 1);
    assert_int_equal(births, 0);
    assert_int_equal(count_open(0), 3);
    assert_int_equal(kernel.n_open, 3 * 10);
    for (int i = 0; i < FDS; i++) /* none whose thread may have started one that is open, too */
        assert_true(!kernel.fd[i].open || kernel.fd[i].nth > last_birth);
    counters_free(c);
    births = 1000; /* without an end: it stands as it is */
    c = open_scope(COUNTERS_PROCESS);
    counters_follow(c, &ten, 1);
    assert_true(count_open(0) >= 3);
    counters_free(c);
}

static int refuse_all_but_switches(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags)
{
    (void)pid, (void)cpu, (void)flags;
    return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES ? 0 : -ENOENT;
}

static void more_threads_than_it_holds_are_not_summed_in_part(void **state)
{
    (void)state;
    for (int i = 0; i <= COUNTERS_PLACES_MAX; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "10/task/%d/comm", 10 + i);
        if (i == 0)
            put_thread(10, 100, 10);
        else
            fake_sysfs_write(root, path, "");
    }
    kernel.refuse = refuse_all_but_switches;
    struct counters *c = open_scope(COUNTERS_PROCESS);
    counters_follow(c, &ten, 1);
    counters_read(c, v);
    assert_int_equal(kernel.opened, COUNTERS_PLACES_MAX);
    assert_is("too many threads", FEATURE_CONTEXT_SWITCHES, READING_NO_FD, 0, 0);
    assert_int_equal(kernel.n_open, 0);
    counters_free(c);
}

static void whatever_memory_fails_nothing_is_left_open(void **state)
{
    (void)state;
    put_thread(10, 100, 10);
    put_thread(10, 100, 11);
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        assert_true(nth < 200);
        struct counters_want want = want_of(nth % 2 ? COUNTERS_PROCESS : COUNTERS_SYSTEM);
        fault_arm(FAULT_ALLOC, nth / 2 + 1);
        struct counters *c = counters_new(&want);
        if (c && want.scope == COUNTERS_PROCESS)
            counters_follow(c, &ten, 1);
        if (c)
            counters_read(c, v);
        struck = fault_disarm();
        if (struck && c && v[FEATURE_CONTEXT_SWITCHES].state == READING_OK)
            fail_msg("fault %u: a part was counted", nth / 2 + 1);
        counters_free(c);
        assert_int_equal(kernel.n_open, 0);
    }
    counters_free(NULL);
}

/* --- the real kernel ---------------------------------------------------------------------------------------------- */

enum { PAGES = 1000 };

static void *touch_pages(void *arg)
{
    (void)arg;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = PAGES * page;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, size, MADV_NOHUGEPAGE); /* else one fault may bring many */
    for (size_t i = 0; i < PAGES; i++)
        memory[i * page] = 1;
    (void)munmap(memory, size);
    return memory;
}

static struct counters *count_ourselves(void)
{
    struct counters_want want = want_of(COUNTERS_PROCESS);
    struct procs_id self = { .pid = getpid() };
    want.ops = &perf_ops_kernel;
    want.proc = "/proc";
    for (int i = 0; i < 6; i++)
        events.v[i].by = EVENT_BY_NONE;
    assert_int_equal(proc_start_ticks(self.pid, &self.start_ticks), 0);
    struct counters *c = counters_new(&want);
    counters_follow(c, &self, 1);
    return c;
}

static void real_faults_are_counted_those_of_new_threads_too(void **state)
{
    (void)state;
    struct counters *c = count_ourselves();
    pthread_t thread;
    counters_read(c, v);
    enum reading_state first = v[FEATURE_MINOR_FAULTS].state;
    if (first == READING_DENIED || first == READING_UNSUPPORTED) {
        counters_free(c);
        print_message("SKIP real events: %s here\n", reading_state_name(first));
        skip();
    }
    assert_non_null(touch_pages(NULL));
    counters_read(c, v);
    assert_int_equal(v[FEATURE_MINOR_FAULTS].state, READING_OK);
    assert_in_range((unsigned)v[FEATURE_MINOR_FAULTS].value, PAGES, PAGES + PAGES / 2);
    assert_int_equal(pthread_create(&thread, NULL, touch_pages, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    counters_read(c, v);
    assert_int_equal(v[FEATURE_MINOR_FAULTS].state, READING_OK);
    assert_in_range((unsigned)v[FEATURE_MINOR_FAULTS].value, PAGES, PAGES + PAGES / 2);
    counters_free(c);
}

/* Other processes' faults are in it, too. */
static void real_faults_are_counted_on_all_cpus(void **state)
{
    (void)state;
    struct counters_want want = want_of(COUNTERS_SYSTEM);
    want.ops = &perf_ops_kernel;
    want.sysfs = "/sys";
    struct counters *c = counters_new(&want);
    counters_read(c, v);
    enum reading_state first = v[FEATURE_MINOR_FAULTS].state;
    if (first == READING_DENIED || first == READING_UNSUPPORTED) {
        counters_free(c);
        print_message("SKIP real events of all CPUs: %s here\n", reading_state_name(first));
        skip();
    }
    assert_non_null(touch_pages(NULL));
    counters_read(c, v);
    assert_int_equal(v[FEATURE_MINOR_FAULTS].state, READING_OK);
    assert_true(v[FEATURE_MINOR_FAULTS].value >= PAGES);
    assert_true(v[FEATURE_MAJOR_FAULTS].value < v[FEATURE_MINOR_FAULTS].value);
    counters_free(c);
}

#define COUNTERS_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COUNTERS_TEST(a_reading_is_what_was_counted_since_the_last),
        COUNTERS_TEST(cpus_are_summed_and_scaled_each),
        COUNTERS_TEST(equal_encodings_are_opened_once),
        COUNTERS_TEST(events_that_are_not_chosen_are_never_opened),
        COUNTERS_TEST(without_an_event_the_software_events_are_counted),
        COUNTERS_TEST(a_chosen_name_of_an_event_that_is_not_chosen_is_counted),
        COUNTERS_TEST(an_event_is_opened_on_its_own_cpus_alone),
        COUNTERS_TEST(a_cgroup_is_counted_on_every_cpu),
        COUNTERS_TEST(software_events_that_are_read_at_once_are_told_apart),
        COUNTERS_TEST(events_of_msr_are_read_with_the_software_events),
        COUNTERS_TEST(one_that_is_had_later_joins_in_its_place),
        COUNTERS_TEST(an_event_that_fails_stops_no_other),
        COUNTERS_TEST(an_event_that_fails_in_one_place_is_not_summed_in_part),
        COUNTERS_TEST(who_may_not_count_the_kernel_counts_user_mode),
        COUNTERS_TEST(when_descriptors_run_out_whole_events_are_given_up),
        COUNTERS_TEST(a_budget_is_shared_and_given_back),
        COUNTERS_TEST(an_event_in_an_error_state_is_not_counted),
        COUNTERS_TEST(cpus_that_come_and_go_are_followed),
        COUNTERS_TEST(without_a_list_all_cpus_are_taken),
        COUNTERS_TEST(every_thread_of_a_process_is_opened),
        COUNTERS_TEST(processes_come_and_go_without_a_jump),
        COUNTERS_TEST(where_threads_are_not_inherited_each_is_followed),
        COUNTERS_TEST(a_process_that_starts_threads_meanwhile_is_opened_again),
        COUNTERS_TEST(more_threads_than_it_holds_are_not_summed_in_part),
        COUNTERS_TEST(whatever_memory_fails_nothing_is_left_open),
        COUNTERS_TEST(real_faults_are_counted_those_of_new_threads_too),
        COUNTERS_TEST(real_faults_are_counted_on_all_cpus),
    };
    return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
