/* What /proc says of processes: its texts, and sums over processes and threads that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "monitoring/procs.h"
#include "monitoring/procs_text.h"
#include "tests/fake_sysfs.h"
#include "tests/fault.h"

#define AT(feature) ((feature)-FEATURE_PROC)

static struct reading chores[PROCS_CHORES]; /* of the read before */

/* --- texts -------------------------------------------------------------------------------------------------------- */

#define STAT_TAIL " S 1 2 3 4 5 6 11 0 13 0 21 22 0 0 20 0 7 0 4711 123456 99 0\n"

static void a_stat_is_read_behind_its_name(void **state)
{
    (void)state;
    static const char *const texts[] = { "5 (java)" STAT_TAIL, "5 (a) S 1 (b)" STAT_TAIL, "5 ()" STAT_TAIL,
                                         "5 (\n1 2 3)" STAT_TAIL };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct procs_stat s = { 0 };
        assert_int_equal(procs_text_stat(&s, texts[i]), 0);
        assert_int_equal(s.minor_faults, 11);
        assert_int_equal(s.major_faults, 13);
        assert_int_equal(s.user_ticks, 21);
        assert_int_equal(s.system_ticks, 22);
        assert_int_equal(s.threads, 7);
        assert_int_equal(s.start_ticks, 4711);
        assert_int_equal(s.rss_pages, 99);
    }
}

static void what_is_no_stat_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "5 (java",
        "5 (java)",
        "5 (java) S 1 2",
        "5 (java) S 1 2 3 4 5 6 11 0 13 0 21 22 0 0 20 0 7 0 4711 123456",
        "5 (java) S 1 2 3 4 5 6 11 0 13 0 21 22 0 0 20 0 7 0 4711 123456 x",
        "5 (java) S 1 2 3 4 5 6 -1 0 13 0 21 22 0 0 20 0 7 0 4711 123456 9",
        "5 (java) S 1 2 3 4 5 6 11 0 13 0 21 22 0 0 20 0 7 0 99999999999999999999 123456 9",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct procs_stat s = { .threads = 77 };
        if (procs_text_stat(&s, texts[i]) != -EINVAL || s.threads != 77)
            fail_msg("'%s'", texts[i]);
    }
}

static void schedstats_are_read(void **state)
{
    (void)state;
    struct procs_schedstat s = { 0 };
    assert_int_equal(procs_text_schedstat(&s, "18446744073709551615 2 3\n"), 0);
    assert_true(s.run_ns == UINT64_MAX && s.delay_ns == 2 && s.slices == 3);
    assert_int_equal(procs_text_schedstat(&s, "1 2"), -EINVAL);
    assert_int_equal(procs_text_schedstat(&s, "1 2 x"), -EINVAL);
    assert_int_equal(procs_text_schedstat(&s, ""), -EINVAL);
    assert_true(s.run_ns == UINT64_MAX);
}

static void io_is_read_by_name(void **state)
{
    (void)state;
    struct procs_io io = { 0 };
    assert_int_equal(procs_text_io(&io, "syscw: 4\nrchar: 1\nnew: x\nwchar: 2\nsyscr: 3"), 0);
    assert_true(io.read_chars == 1 && io.write_chars == 2 && io.read_calls == 3 && io.write_calls == 4);
    assert_int_equal(procs_text_io(&io, "rchar: 9\nwchar: 9\nsyscr: 9\n"), -EINVAL);
    assert_int_equal(procs_text_io(&io, "rchar: 9\nwchar: 9\nsyscr: 9\nsyscw: \n"), -EINVAL);
    assert_int_equal(procs_text_io(&io, ""), -EINVAL);
    assert_int_equal(io.read_chars, 1);
}

/* --- a /proc of our own ------------------------------------------------------------------------------------------- */

static char *root;

static int make_root(void **state)
{
    (void)state;
    root = fake_sysfs_make(FAKE_VM); /* a folder as any other: ours is below it */
    return root ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    fake_sysfs_remove(root);
    root = NULL;
    return 0;
}

static void __attribute__((format(printf, 2, 3))) put(const char *path, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fake_sysfs_write(root, path, text);
}

/* A process that used so many ticks, faults, pages, read calls: each row a multiple of `n`. */
static void put_process(int pid, int start, int n)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%d/stat", pid);
    put(path, "%d (x) S 1 2 3 4 5 6 %d 0 %d 0 %d %d 0 0 20 0 2 0 %d 1 %d 0", pid, n, 2 * n, 3 * n, 4 * n, start, n);
    (void)snprintf(path, sizeof path, "%d/io", pid);
    put(path, "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d\n", 5 * n, 6 * n, 7 * n, 8 * n);
}

static void put_thread(int pid, int tid, int n)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%d/task/%d/schedstat", pid, tid);
    put(path, "%d %d %d\n", n, 2 * n, 3 * n);
}

static void drop(const char *path)
{
    fake_sysfs_delete(root, path);
}

static void assert_reads(const char *when, const struct reading *v, int feature, double want)
{
    const struct reading *r = &v[AT(feature)];
    if (r->state != READING_OK || !(fabs(r->value - want) < 1e-12 + 1e-12 * want))
        fail_msg("%s: %s: got %s %.17g, want %.17g", when, feature_names[feature], reading_state_name(r->state),
                 r->value, want);
}

static void assert_state(const char *when, const struct reading *v, int feature, enum reading_state want)
{
    const struct reading *r = &v[AT(feature)];
    if (r->state != want || !isnan(r->value))
        fail_msg("%s: %s: got %s, want %s", when, feature_names[feature], reading_state_name(r->state),
                 reading_state_name(want));
}

static void assert_all(const char *when, const struct reading *v, double run_ns, double n)
{
    double tick = (double)sysconf(_SC_CLK_TCK);
    assert_reads(when, v, FEATURE_PROC_CPU_TIME, run_ns / 1e9);
    assert_reads(when, v, FEATURE_PROC_RUN_DELAY, 2 * run_ns / 1e9);
    assert_reads(when, v, FEATURE_PROC_TIMESLICES, 3 * run_ns);
    assert_reads(when, v, FEATURE_PROC_MINOR_FAULTS, n);
    assert_reads(when, v, FEATURE_PROC_MAJOR_FAULTS, 2 * n);
    assert_reads(when, v, FEATURE_PROC_USER_TIME, 3 * n / tick);
    assert_reads(when, v, FEATURE_PROC_SYSTEM_TIME, 4 * n / tick);
    assert_reads(when, v, FEATURE_PROC_READ_CHARS, 5 * n);
    assert_reads(when, v, FEATURE_PROC_WRITE_CHARS, 6 * n);
    assert_reads(when, v, FEATURE_PROC_READ_CALLS, 7 * n);
    assert_reads(when, v, FEATURE_PROC_WRITE_CALLS, 8 * n);
}

static void all_features_are_sums_of_deltas(void **state)
{
    (void)state;
    static const struct procs_id ids[] = { { 20, 200 }, { 10, 100 } };
    struct reading v[PROCS_READINGS];
    struct procs *p = procs_new(root);
    put_process(10, 100, 1000);
    put_thread(10, 10, 50);
    put_thread(10, 11, 60);
    put_process(20, 200, 5000);
    put_thread(20, 20, 70);
    assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
    for (int i = FEATURE_PROC; i < FEATURE_LOG; i++)
        if (feature_kind(i) == FEATURE_COUNT)
            assert_state("the first read", v, i, READING_NOT_COUNTED);
    assert_reads("the first read", v, FEATURE_PROC_THREADS, 4);
    put_process(10, 100, 1001);
    put_thread(10, 10, 51);
    put_thread(10, 11, 62);
    put_process(20, 200, 5010);
    put_thread(20, 20, 73);
    assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
    assert_all("the second read", v, 6, 11);
    assert_reads("the second read", v, FEATURE_PROC_RSS, 6011 * (double)sysconf(_SC_PAGESIZE));
    assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
    assert_all("nothing was done", v, 0, 0);
    procs_free(p);
}

static void a_process_that_comes_or_goes_makes_no_jump(void **state)
{
    (void)state;
    static const struct procs_id ids[] = { { 10, 100 }, { 20, 200 } };
    struct reading v[PROCS_READINGS];
    struct procs *p = procs_new(root);
    put_process(10, 100, 1000);
    put_thread(10, 10, 50);
    assert_int_equal(procs_read(p, ids, 1, v, chores), 0);
    put_process(10, 100, 1003);
    put_thread(10, 10, 55);
    put_process(20, 200, 900000);
    put_thread(20, 20, 900000);
    assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
    assert_all("one came", v, 5, 3);
    assert_reads("one came", v, FEATURE_PROC_THREADS, 4);
    put_process(20, 200, 900001);
    put_thread(20, 20, 900002);
    drop("10"); /* it is on the list still */
    assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
    assert_all("one went", v, 2, 1);
    assert_reads("one went", v, FEATURE_PROC_THREADS, 2);
    assert_int_equal(procs_read(p, ids, 0, v, chores), 0);
    assert_state("none is left", v, FEATURE_PROC_CPU_TIME, READING_NOT_COUNTED);
    assert_state("none is left", v, FEATURE_PROC_RSS, READING_NOT_COUNTED);
    procs_free(p);
}

static void put_name(int pid, int tid, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%d/task/%d/comm", pid, tid);
    put(path, "%s\n", name);
}

static double chore(int feature)
{
    const struct reading *r = &chores[feature - FEATURE_JVM];
    return r->state == READING_OK ? 1e9 * r->value : r->state == READING_NOT_COUNTED ? -1 : (double)NAN;
}

/* A thread gets its name soon after its birth, as the one that compiles does here. */
static void what_a_jvm_does_for_itself_is_told_apart(void **state)
{
    (void)state;
    static const struct procs_id id = { 10, 100 };
    struct reading v[PROCS_READINGS];
    struct procs *p = procs_new(root);
    static const char *const collectors[] = { "GC Thread#1", "G1 Conc#0", "VM Thread", "ParGC Thread#0" };
    put_process(10, 100, 1000);
    put_thread(10, 10, 50);
    put_name(10, 10, "java");
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    assert_true(chore(FEATURE_JVM_COMPILE_TIME) == -1);
    put_thread(10, 10, 51);
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    assert_true(chore(FEATURE_JVM_COMPILE_TIME) == -1); /* no JVM is no 0 */
    put_thread(10, 11, 7);
    put_name(10, 11, "java");
    for (int i = 0; i < 4; i++) {
        put_thread(10, 20 + i, 100);
        put_name(10, 20 + i, collectors[i]);
    }
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    assert_true(chore(FEATURE_JVM_COMPILE_TIME) == 0);
    assert_true(chore(FEATURE_JVM_COLLECT_TIME) == 400); /* since they were born */
    put_name(10, 11, "C2 CompilerThre");
    put_thread(10, 11, 12);
    put_thread(10, 20, 103);
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    assert_true(chore(FEATURE_JVM_COMPILE_TIME) == 5);
    assert_true(chore(FEATURE_JVM_COLLECT_TIME) == 3);
    assert_reads("all of it", v, FEATURE_PROC_CPU_TIME, 8 / 1e9);
    put_thread(10, 11, 4); /* another one, by the same number */
    put_name(10, 11, "task-7");
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    assert_true(chore(FEATURE_JVM_COMPILE_TIME) == 0);
    procs_free(p);
}

static void a_pid_in_use_again_is_another_process(void **state)
{
    (void)state;
    static const struct procs_id old = { 10, 100 }, now = { 10, 170 };
    struct reading v[PROCS_READINGS];
    struct procs *p = procs_new(root);
    put_process(10, 100, 1000);
    put_thread(10, 10, 50);
    assert_int_equal(procs_read(p, &old, 1, v, chores), 0);
    put_process(10, 170, 4000);
    put_thread(10, 10, 9000);
    assert_int_equal(procs_read(p, &old, 1, v, chores), 0);
    assert_state("gone", v, FEATURE_PROC_CPU_TIME, READING_NOT_COUNTED);
    assert_int_equal(procs_read(p, &now, 1, v, chores), 0);
    assert_state("new", v, FEATURE_PROC_CPU_TIME, READING_NOT_COUNTED);
    put_process(10, 170, 4001);
    put_thread(10, 10, 9002);
    assert_int_equal(procs_read(p, &now, 1, v, chores), 0);
    assert_all("followed", v, 2, 1);
    procs_free(p);
}

static void threads_that_come_count_from_birth_and_those_that_go_stay_counted(void **state)
{
    (void)state;
    static const struct procs_id id = { 10, 100 };
    struct reading v[PROCS_READINGS];
    struct procs *p = procs_new(root);
    put_process(10, 100, 1);
    put_thread(10, 10, 50);
    put_thread(10, 12, 500);
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    put_thread(10, 11, 7); /* born since */
    put_thread(10, 12, 501);
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    assert_reads("born", v, FEATURE_PROC_TIMESLICES, 3 * (7 + 1));
    drop("10/task/12");
    put_thread(10, 11, 9);
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    assert_reads("gone", v, FEATURE_PROC_TIMESLICES, 3 * 2);
    put_thread(10, 11, 3); /* its number is used again */
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    assert_reads("another of its number", v, FEATURE_PROC_TIMESLICES, 3 * 3);
    procs_free(p);
}

static void a_file_that_is_missing_takes_its_features_alone(void **state)
{
    (void)state;
    static const struct procs_id ids[] = { { 10, 100 }, { 20, 200 } };
    struct reading v[PROCS_READINGS];
    struct procs *p = procs_new(root);
    for (int i = 0; i < 2; i++) {
        put_process(10, 100, 1 + i);
        put_thread(10, 10, 50 + i);
        put_process(20, 200, 1 + i);
        put_thread(20, 20, 1 + i);
        drop("20/io");
        assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
    }
    assert_state("without io", v, FEATURE_PROC_READ_CALLS, READING_UNSUPPORTED);
    assert_reads("without io", v, FEATURE_PROC_TIMESLICES, 6);
    assert_reads("without io", v, FEATURE_PROC_MINOR_FAULTS, 2);
    put_process(20, 200, 2);
    drop("20/task/20/schedstat");
    assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
    assert_state("without schedstat", v, FEATURE_PROC_CPU_TIME, READING_UNSUPPORTED);
    assert_reads("io of one that had none", v, FEATURE_PROC_READ_CALLS, 0);
    put("20/io", "nonsense");
    assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
    assert_state("an io that cannot be read", v, FEATURE_PROC_READ_CALLS, READING_NOT_COUNTED);
    procs_free(p);
}

static void more_processes_than_it_holds_are_not_summed_in_part(void **state)
{
    (void)state;
    static struct procs_id ids[PROCS_MAX + 1];
    struct reading v[PROCS_READINGS];
    struct procs *p = procs_new(root);
    for (int i = 0; i <= PROCS_MAX; i++)
        ids[i] = (struct procs_id){ .pid = i + 1, .start_ticks = 1 };
    put_process(1, 1, 1);
    put_thread(1, 1, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(procs_read(p, ids, PROCS_MAX + 1, v, chores), 0);
    assert_state("too many", v, FEATURE_PROC_CPU_TIME, READING_NOT_COUNTED);
    assert_int_equal(procs_read(p, ids, PROCS_MAX, v, chores), 0);
    assert_reads("as many as it holds", v, FEATURE_PROC_CPU_TIME, 0);
    procs_free(p);
}

static void whatever_memory_fails_the_next_read_is_whole(void **state)
{
    (void)state;
    static const struct procs_id ids[] = { { 10, 100 }, { 20, 200 } };
    struct reading v[PROCS_READINGS];
    put_process(10, 100, 1);
    put_thread(10, 10, 1);
    put_process(20, 200, 1);
    put_thread(20, 20, 1);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        struct procs *p = procs_new(root);
        assert_non_null(p);
        v[0] = (struct reading){ .value = 7, .state = READING_OK };
        fault_arm(FAULT_ALLOC, nth);
        rc = procs_read(p, ids, 2, v, chores);
        bool struck = fault_disarm();
        if (rc < 0 && (rc != -ENOMEM || !struck || v[0].value != 7))
            fail_msg("fault %u: %d", nth, rc);
        assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
        assert_int_equal(procs_read(p, ids, 2, v, chores), 0);
        assert_all("after it", v, 0, 0);
        procs_free(p);
    }
    fault_arm(FAULT_ALLOC, 1);
    assert_null(procs_new(root));
    assert_true(fault_disarm());
    procs_free(NULL);
}

static void no_descriptor_is_no_zero(void **state)
{
    (void)state;
    static const struct procs_id id = { 10, 100 };
    struct reading v[PROCS_READINGS];
    struct procs *p = procs_new(root);
    put_process(10, 100, 1);
    put_thread(10, 10, 1);
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    fault_arm(FAULT_OPEN, 1);
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    assert_true(fault_disarm());
    for (int i = FEATURE_PROC; i < FEATURE_LOG; i++)
        assert_state("no descriptor", v, i, READING_NO_FD);
    procs_free(p);
}

/* --- the real one ------------------------------------------------------------------------------------------------- */

/* Writes as many bytes, one by one, as it is told by a byte; says when it has. */
static void write_for_ever(int in, int out)
{
    unsigned char n;
    int null = open("/dev/null", O_WRONLY);
    while (read(in, &n, 1) == 1) {
        for (int i = 0; i < n; i++)
            if (write(null, "x", 1) != 1)
                _exit(1);
        if (write(out, "d", 1) != 1)
            _exit(1);
    }
    _exit(0);
}

static void order(const int to[2], const int from[2], unsigned char n)
{
    char done;
    assert_int_equal(write(to[1], &n, 1), 1);
    assert_int_equal(read(from[0], &done, 1), 1);
}

static void calls_of_a_real_process_are_counted_exactly(void **state)
{
    (void)state;
    int to[2], from[2];
    struct reading v[PROCS_READINGS];
    struct procs_id id = { 0 };
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    id.pid = fork();
    if (id.pid == 0) {
        (void)close(to[1]);
        write_for_ever(to[0], from[1]);
    }
    assert_int_equal(proc_start_ticks(id.pid, &id.start_ticks), 0);
    struct procs *p = procs_new("/proc");
    order(to, from, 1);
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    order(to, from, 200);
    assert_int_equal(procs_read(p, &id, 1, v, chores), 0);
    (void)close(to[1]);
    assert_int_equal(waitpid(id.pid, NULL, 0), id.pid);
    (void)close(to[0]), (void)close(from[0]), (void)close(from[1]);
    procs_free(p);
    if (v[AT(FEATURE_PROC_WRITE_CALLS)].state == READING_UNSUPPORTED) {
        print_message("SKIP calls: this kernel has no /proc/PID/io\n");
        skip();
    }
    assert_reads("real", v, FEATURE_PROC_WRITE_CALLS, 201); /* the answer, too */
    assert_reads("real", v, FEATURE_PROC_WRITE_CHARS, 201);
    assert_reads("real", v, FEATURE_PROC_THREADS, 1);
    assert_true(v[AT(FEATURE_PROC_RSS)].value > 0);
}

#define WITH_ROOT(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stat_is_read_behind_its_name),
        cmocka_unit_test(what_is_no_stat_is_refused),
        cmocka_unit_test(schedstats_are_read),
        cmocka_unit_test(io_is_read_by_name),
        WITH_ROOT(what_a_jvm_does_for_itself_is_told_apart),
        WITH_ROOT(all_features_are_sums_of_deltas),
        WITH_ROOT(a_process_that_comes_or_goes_makes_no_jump),
        WITH_ROOT(a_pid_in_use_again_is_another_process),
        WITH_ROOT(threads_that_come_count_from_birth_and_those_that_go_stay_counted),
        WITH_ROOT(a_file_that_is_missing_takes_its_features_alone),
        WITH_ROOT(more_processes_than_it_holds_are_not_summed_in_part),
        WITH_ROOT(whatever_memory_fails_the_next_read_is_whole),
        WITH_ROOT(no_descriptor_is_no_zero),
        cmocka_unit_test(calls_of_a_real_process_are_counted_exactly),
    };
    return cmocka_run_group_tests_name("procs", tests, NULL, NULL);
}
