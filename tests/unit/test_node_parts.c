/* The parts of `pipetune-node serve` one by one: which CPUs, which processes, which limits, and what fails on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "node/affinity.h"
#include "node/cpus.h"
#include "node/limits.h"
#include "node/members.h"
#include "node/watch.h"
#include "node/wish.h"
#include "tests/fault.h"

/* --- a fake /sys ---------------------------------------------------------------------------------------------------- */

static int make_folder(void **state)
{
    const char *base = getenv("TMPDIR");
    char *dir = NULL;
    if (asprintf(&dir, "%s/pipetune-node-XXXXXX", base && *base ? base : "/tmp") < 0 || !mkdtemp(dir))
        return -1;
    *state = dir;
    return 0;
}

static int remove_folder(void **state)
{
    char *command[] = { (char[]){ "/bin/rm" }, (char[]){ "-rf" }, (char[]){ "--" }, *state, NULL };
    pid_t pid = fork();
    if (pid == 0) {
        (void)execv(command[0], command);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
    free(*state);
    return 0;
}

static void __attribute__((format(printf, 3, 4))) put(const char *root, const char *text, const char *fmt, ...)
{
    char path[512], full[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    (void)snprintf(full, sizeof full, "%s/%s", root, path);
    AUTO_FREE char *folder = io_dirname(full);
    assert_int_equal(io_mkdirs(folder, NULL), 0);
    assert_int_equal(io_write_atomic(full, text, strlen(text), 0644, NULL), 0);
}

static void assert_says(const char *root, const char *want, const char *path)
{
    AUTO_FREE char *full = io_join(root, path);
    AUTO_BUF struct buf got = BUF_INIT;
    assert_int_equal(io_read_file(&got, full, 1024, NULL), 0);
    assert_string_equal(buf_text(&got), want);
}

/* --- CPUs --------------------------------------------------------------------------------------------------------- */

static void put_cpus(struct buf *b, const struct cpus *c)
{
    for (int i = 0; i < c->n; i++)
        buf_printf(b, "%s%d", i ? "," : "", c->v[i]);
}

static void kernel_lists_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "0\n", "0" },
        { "0,2-4\n", "0,2,3,4" },
        { "7-7", "7" },
        { "", "" },
        { "\n", "" },
        { "1,x", "1" },
        { "3-1", "" },
        { "-5,1", "1" },
        { "4095-99999", "4095" },
        { "5000", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct mask m = mask_parse(cases[i].text);
        struct cpus list;
        AUTO_BUF struct buf got = BUF_INIT;
        mask_list(&m, &list);
        put_cpus(&got, &list);
        if (strcmp(buf_text(&got), cases[i].want) != 0)
            fail_msg("'%s': got %s, want %s", cases[i].text, buf_text(&got), cases[i].want);
    }
}

static void physical_cores_come_first(void **state)
{
    static const struct {
        const char *name, *siblings[8]; /* of CPU 0, 1, … */
        int may[9], n;
        const char *want;
    } cases[] = {
        { "threads beside each other", { "0-1", "0-1", "2-3", "2-3" }, { 0, 1, 2, 3 }, 4, "0,2,1,3" },
        { "threads far apart", { "0,2", "1,3", "0,2", "1,3" }, { 0, 1, 2, 3 }, 4, "0,1,2,3" },
        { "four threads on a core", { "0-3", "0-3", "0-3", "0-3", "4", "5" }, { 0, 1, 2, 3, 4, 5 }, 6, "0,4,5,1,2,3" },
        { "a first thread that may not be used", { "0-1", "0-1", "2-3", "2-3" }, { 1, 2, 3 }, 3, "1,2,3" },
        { "no topology", { NULL }, { 0, 3, 5 }, 3, "0,3,5" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *root = NULL;
        assert_true(asprintf(&root, "%s/case%zu", (const char *)*state, i) > 0);
        for (int cpu = 0; cpu < 8 && cases[i].siblings[cpu]; cpu++)
            put(root, cases[i].siblings[cpu], "devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        struct mask may = mask_of(cases[i].may, cases[i].n);
        struct cpus order;
        AUTO_BUF struct buf got = BUF_INIT;
        cpus_order(root, &may, &order);
        put_cpus(&got, &order);
        if (strcmp(buf_text(&got), cases[i].want) != 0)
            fail_msg("%s: got %s, want %s", cases[i].name, buf_text(&got), cases[i].want);
    }
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

#define BACKEND "org.apache.spark.executor.CoarseGrainedExecutorBackend"

static void patterns_of_workers_are_two_words(void **state)
{
    (void)state;
    struct members_worker w = { "", "", "" };
    static const char *const bad[] = { "", "*", "a*", "*b", "ab", "a*b*c", "a b*c", "a*b/c", "a*\x01" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (members_worker_words(&w, bad[i]) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
    assert_int_equal(members_worker_words(&w, "org.apache.*Backend"), 0);
    assert_string_equal(w.begins, "org.apache.");
    assert_string_equal(w.ends, "Backend");
    assert_int_equal(members_worker_option(&w, "--co res"), -EINVAL);
    assert_int_equal(members_worker_option(&w, "--cores"), 0);
    const struct members_worker none = { "", "", "" };
    assert_int_equal(members_worker_cores(&none,
                                          "x\0--cores\0"
                                          "4",
                                          12),
                     0);
}

static void executors_tell_their_cores(void **state)
{
    (void)state;
    static const struct members_worker spark = { "org.apache.spark.", "ExecutorBackend", "--cores" };
    static const struct {
        const char *name, *args; /* "|" stands for NUL */
        int want;
    } cases[] = {
        { "standalone", "java|-cp|x|" BACKEND "|--driver-url|spark://x|--cores|4|--app-id|a|", 4 },
        { "YARN", "java|org.apache.spark.executor.YarnCoarseGrainedExecutorBackend|--cores|2|", 2 },
        { "Kubernetes", "java|org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend|--cores|3|", 3 },
        { "a driver", "java|org.apache.spark.deploy.SparkSubmit|--cores|4|", 0 },
        { "cores before the class are the JVM's", "java|--cores|9|" BACKEND "|--cores|2|", 2 },
        { "no number", "java|" BACKEND "|--cores|many|", 0 },
        { "no value", "java|" BACKEND "|--cores|", 0 },
        { "a negative one", "java|" BACKEND "|--cores|-3|", 0 },
        { "a huge one", "java|" BACKEND "|--cores|99999999999999999999|", 0 },
        { "the shell around it", "bash|-c|java " BACKEND " --cores 2|", 0 },
        { "nothing", "", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *args = strdup(cases[i].args);
        size_t len = strlen(args);
        for (char *c = args; *c; c++)
            if (*c == '|')
                *c = '\0';
        int got = members_worker_cores(&spark, args, len);
        if (got != cases[i].want)
            fail_msg("%s: got %d, want %d", cases[i].name, got, cases[i].want);
    }
}

static void our_own_programs_are_known(void **state)
{
    (void)state;
#define WORDS(text) text, sizeof text
    assert_true(members_args_are_ours(WORDS("/opt/bin/pipetune-node\0exec\0--dir\0x")));
    assert_true(members_args_are_ours(WORDS("pipetune-node\0serve")));
    assert_false(members_args_are_ours(WORDS("pipetune-node\0help")));
    assert_false(members_args_are_ours(WORDS("pipetune-node")));
    assert_false(members_args_are_ours(WORDS("/bin/sh\0exec\0pipetune-node")));
    assert_false(members_args_are_ours(WORDS("my-pipetune-node\0exec")));
    assert_false(members_args_are_ours("", 0));
}

static void tags_are_few_characters(void **state)
{
    (void)state;
    static const char longest[] = "0123456789012345678901234567890123456789012345678901234567890123";
    assert_true(members_tag_is_valid("a-B_9"));
    assert_true(members_tag_is_valid(longest));
    assert_false(members_tag_is_valid("01234567890123456789012345678901234567890123456789012345678901234"));
    assert_false(members_tag_is_valid(""));
    assert_false(members_tag_is_valid("a/b"));
    assert_false(members_tag_is_valid("a b"));
    assert_false(members_tag_is_valid("\xc3\xa9"));
}

/* A child that carries the tag in its environment and waits to be killed, for a line that nobody writes. It says so after its
 * last exec: in the midst of one, a process has no environment to be seen. */
static pid_t start_tagged(const char *tag)
{
    int ready[2], never[2];
    char byte = 'r';
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(never), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, (char[]){ "echo r >&3; read line" }, NULL };
        if (dup2(ready[1], 3) == 3 && dup2(never[0], 0) == 0 && setenv("PIPETUNE_LAUNCH", tag, 1) == 0)
            (void)execv(argv[0], argv); /* it keeps never[1], so that its input never ends */
        _exit(127);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]), (void)close(ready[1]);
    (void)close(never[0]), (void)close(never[1]);
    return pid;
}

static void end_tagged(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int count(const struct members *m, int tag)
{
    int n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += members_has(&m->v[i], tag);
    return n;
}

static void who_comes_and_goes_is_seen_once(void **state)
{
    (void)state;
    char name[64];
    struct members m = { 0 };
    int64_t now = 1000000; /* far beyond what anyone here is old: only the new are read */
    (void)snprintf(name, sizeof name, "parts-%ld", (long)getpid());
    int tag = members_add_tag(&m, name);
    assert_int_equal(members_add_tag(&m, name), tag);
    assert_int_equal(members_look(&m, now, NULL), 0);
    assert_int_equal(m.changed, 0);
    pid_t pid = start_tagged(name);
    assert_int_equal(members_look(&m, now += 500, NULL), 0);
    assert_int_equal(m.changed, UINT64_C(1) << tag);
    assert_int_equal(count(&m, tag), 1);
    m.changed = 0;
    assert_int_equal(members_look(&m, now += 500, NULL), 0);
    assert_int_equal(m.changed, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* a zombie now */
    assert_int_equal(members_look(&m, now += 500, NULL), 0);
    assert_int_equal(m.changed, UINT64_C(1) << tag);
    assert_int_equal(count(&m, tag), 0);
    m.changed = 0;
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(members_look(&m, now += 500, NULL), 0);
    assert_int_equal(m.changed, 0);
    members_done(&m);
}

static void a_new_tag_is_asked_of_everybody(void **state)
{
    (void)state;
    char name[64];
    struct members m = { 0 };
    (void)snprintf(name, sizeof name, "parts-late-%ld", (long)getpid());
    pid_t pid = start_tagged(name);
    assert_int_equal(members_look(&m, 1000, NULL), 0);
    assert_int_equal(members_look(&m, 8000, NULL), 0); /* it is not young any more, nor due */
    int tag = members_add_tag(&m, name);
    assert_int_equal(members_look(&m, 8500, NULL), 0);
    assert_int_equal(count(&m, tag), 1);
    members_drop_tag(&m, tag);
    assert_int_equal(count(&m, tag), 0);
    assert_int_equal(members_find_tag(&m, name), MEMBERS_NO_TAG);
    members_done(&m);
    end_tagged(pid);
}

static void a_look_that_fails_leaves_the_list_as_it_was(void **state)
{
    (void)state;
    char name[64];
    struct members m = { 0 };
    (void)snprintf(name, sizeof name, "parts-fault-%ld", (long)getpid());
    pid_t pid = start_tagged(name);
    int tag = members_add_tag(&m, name), rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 4000);
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        rc = members_look(&m, 1000, &e);
        bool struck = fault_disarm();
        if (rc < 0 && (!struck || rc != -ENOMEM || !strstr(e.text, "cannot look at the processes") || m.n))
            fail_msg("fault %u: %d %s", nth, rc, e.text);
    }
    assert_int_equal(count(&m, tag), 1);
    members_done(&m);
    end_tagged(pid);
}

/* --- what is given back ------------------------------------------------------------------------------------------- */

static void give_back_nothing(struct watch_table *t, const void *ctx)
{
    (void)t, (void)ctx;
}

static void a_watchdog_that_cannot_start_is_explained(void **state)
{
    (void)state;
    struct watch w = { .pipe = -1 };
    struct err e = { 0 };
    fault_arm(FAULT_FORK, 1);
    int rc = watch_open(&w, give_back_nothing, NULL, &e);
    assert_true(fault_disarm());
    assert_int_equal(rc, -EAGAIN);
    assert_string_equal(e.text, "cannot start the watchdog: Resource temporarily unavailable");
    assert_null(w.table);
    assert_int_equal(watch_open(&w, give_back_nothing, NULL, &e), 0);
    pid_t child = w.child;
    watch_close(&w);
    int how = -1;
    assert_int_equal(waitpid(child, &how, 0), child); /* it sees that we let go */
    assert_int_equal(how, 0);
}

static struct watch_table *new_table(void)
{
    struct watch_table *t = calloc(1, sizeof *t);
    assert_non_null(t);
    return t;
}

static void a_full_table_refuses_and_forgets_nothing(void **state)
{
    (void)state;
    struct watch_table *t = new_table();
    for (int i = 0; i < WATCH_MASKS_MAX; i++) {
        struct watch_mask *entry = watch_free_mask(t);
        assert_non_null(entry);
        entry->pid = i + 1;
        watch_use(entry);
    }
    assert_null(watch_free_mask(t));
    struct watch_mask *some = watch_find_mask(t, 77);
    watch_drop(some);
    assert_null(watch_find_mask(t, 77));
    assert_ptr_equal(watch_free_mask(t), some);
    free(t);
}

static void a_pid_in_use_again_is_left_alone(void **state)
{
    (void)state;
    struct watch_table *t = new_table();
    struct err e = { 0 };
    pid_t pid = start_tagged("x");
    assert_int_equal(affinity_take(t, 0, pid, 1, 0, &e), -ESRCH); /* nobody of today started with the machine */
    assert_null(watch_find_mask(t, pid));
    struct watch_mask *entry = watch_free_mask(t);
    struct affinity_sum sum = { 0 };
    struct mask none = { 0 };
    *entry = (struct watch_mask){ .pid = pid, .start = 1 };
    watch_use(entry);
    assert_int_equal(affinity_put(entry, &none, &sum, &e), -ESRCH);
    assert_int_equal(sum.processes, 0);
    assert_int_equal(affinity_give_back(t, AFFINITY_ALL), 0);
    assert_null(watch_find_mask(t, pid));
    end_tagged(pid);
    free(t);
}

/* --- wishes ------------------------------------------------------------------------------------------------------- */

static struct wishes *open_wishes(const char *sysfs)
{
    struct wishes *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->watch.pipe = -1;
    assert_int_equal(wishes_open(w, sysfs, NULL), 0);
    return w;
}

static void close_wishes(struct wishes *w)
{
    pid_t watchdog = w->watch.child;
    assert_int_equal(wishes_close(w, NULL), 0);
    assert_int_equal(waitpid(watchdog, NULL, 0), watchdog);
    free(w);
}

static void a_process_that_ends_meanwhile_is_no_failure(void **state)
{
    static const struct {
        const char *name;
        bool taken; /* it was narrowed before */
    } cases[] = { { "not yet narrowed", false }, { "narrowed", true } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wishes *w = open_wishes(*state);
        struct wish_report report;
        struct err e = { 0 };
        uint64_t changed = 0;
        char name[64];
        (void)snprintf(name, sizeof name, "parts-ended-%ld", (long)getpid());
        pid_t pid = start_tagged(name);
        int tag = wishes_watch(w, name, 1000, NULL);
        assert_true(tag >= 0);
        assert_int_equal(count(&w->members, tag), 1);
        w->of[tag] = (struct wish){ .cores = 1, .slots = 1, .local = true };
        if (cases[i].taken)
            assert_int_equal(wishes_follow(w, tag, 1100, &report, NULL), 0);
        end_tagged(pid); /* the list does not know it yet */
        int rc = wishes_follow(w, tag, 1200, &report, &e);
        if (rc != 0 || e.text[0] || report.processes != 0)
            fail_msg("%s: %d '%s', %d processes", cases[i].name, rc, e.text, report.processes);
        assert_int_equal(wishes_look(w, 1300, &changed, NULL), 0);
        assert_int_equal(count(&w->members, tag), 0);
        close_wishes(w);
    }
}

static void a_tag_that_is_only_watched_is_left_as_it_is(void **state)
{
    struct wishes *w = open_wishes(*state);
    uint64_t changed = 0;
    char name[64];
    (void)snprintf(name, sizeof name, "parts-watched-%ld", (long)getpid());
    int tag = wishes_watch(w, name, 1000, NULL);
    assert_true(tag >= 0);
    assert_true(wishes_any(w));
    assert_false(wishes_wants(w, tag));
    pid_t pid = start_tagged(name);
    assert_int_equal(wishes_look(w, 1500, &changed, NULL), 0);
    assert_int_equal(count(&w->members, tag), 1);
    assert_int_equal(changed, 0); /* nothing to be brought into force */
    assert_null(watch_find_mask(w->watch.table, pid));
    assert_int_equal(wishes_release(w, name, NULL), 0);
    assert_false(wishes_any(w));
    end_tagged(pid);
    close_wishes(w);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

#define MAX_OF_0 "devices/system/cpu/cpu0/cpufreq/scaling_max_freq"
#define MAX_OF_2 "devices/system/cpu/cpu2/cpufreq/scaling_max_freq"

/* CPUs 0 and 1 share a clock, 2 has its own. */
static void put_clocks(const char *root)
{
    static const char *const related[] = { "0 1\n", "0 1\n", "2\n" };
    for (int cpu = 0; cpu < 3; cpu++) {
        put(root, related[cpu], "devices/system/cpu/cpu%d/cpufreq/related_cpus", cpu);
        put(root, "3500000\n", "devices/system/cpu/cpu%d/cpufreq/scaling_max_freq", cpu);
    }
}

static void cpus_that_share_a_clock_are_found_before_it_is_set(void **state)
{
    const char *root = *state;
    struct watch_table *t = new_table();
    struct cpus first = { .v = { 0 }, .n = 1 }, both = { .v = { 0, 1 }, .n = 2 }, third = { .v = { 2 }, .n = 1 };
    double now = 0;
    put_clocks(root);
    assert_int_equal(limits_set(t, root, 0, LIMIT_FREQUENCY, 2000000, &first, &now, NULL), 0);
    assert_int_equal(limits_set(t, root, 0, LIMIT_FREQUENCY, 1500000, &both, &now, NULL), 0);
    assert_true(now == 1500000);
    assert_says(root, "1500000\n", MAX_OF_0);
    assert_int_equal(t->n_limits, 1);
    assert_int_equal(limits_set(t, root, 0, LIMIT_FREQUENCY, 1500000, &third, &now, NULL), 0);
    assert_says(root, "3500000\n", MAX_OF_0); /* not chosen any more */
    assert_says(root, "1500000\n", MAX_OF_2);
    assert_int_equal(limits_give_back(t, root, 0), 0);
    assert_says(root, "3500000\n", MAX_OF_2);
    free(t);
}

static void what_cannot_be_given_back_is_tried_again(void **state)
{
    const char *root = *state;
    struct watch_table *t = new_table();
    struct cpus third = { .v = { 2 }, .n = 1 };
    double now = 0;
    put_clocks(root);
    assert_int_equal(limits_set(t, root, 5, LIMIT_FREQUENCY, 2000000, &third, &now, NULL), 0);
    fault_arm(FAULT_OPEN, 1);
    int rc = limits_give_back(t, root, 5);
    assert_true(fault_disarm());
    assert_int_equal(rc, -EMFILE);
    assert_says(root, "2000000\n", MAX_OF_2);
    assert_int_equal(limits_give_back(t, root, 5), 0); /* the tag has nothing any more */
    assert_says(root, "2000000\n", MAX_OF_2);
    assert_int_equal(limits_give_back(t, root, AFFINITY_ALL), 0);
    assert_says(root, "3500000\n", MAX_OF_2);
    free(t);
}

static void whatever_fails_the_limits_found_come_back(void **state)
{
    const char *root = *state;
    struct cpus all = { .v = { 0, 1, 2 }, .n = 3 };
    int rc = -EIO;
    put_clocks(root);
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 100);
        struct watch_table *t = new_table();
        struct err e = { 0 };
        double now = -1;
        fault_arm(FAULT_OPEN | FAULT_WRITE | FAULT_ALLOC, nth);
        rc = limits_set(t, root, 0, LIMIT_FREQUENCY, 2000000, &all, &now, &e);
        if (fault_disarm() && rc < 0 && (!strstr(e.text, "frequency_khz") || now != -1))
            fail_msg("fault %u: %d %s", nth, rc, e.text);
        assert_int_equal(limits_give_back(t, root, 0), 0);
        assert_says(root, "3500000\n", MAX_OF_0);
        assert_says(root, "3500000\n", MAX_OF_2);
        free(t);
    }
}

static void only_packages_have_a_cap(void **state)
{
    const char *root = *state;
    static const char *const names[] = { "package-0\n", "psys\n", "package-1\n" };
    double caps[2] = { 0 };
    for (int zone = 0; zone < 3; zone++) {
        put(root, names[zone], "class/powercap/intel-rapl:%d/name", zone);
        put(root, "95500000\n", "class/powercap/intel-rapl:%d/constraint_0_power_limit_uw", zone);
    }
    put(root, "package-0\n", "class/powercap/intel-rapl-mmio:0/name");
    assert_int_equal(limits_power_caps(root, caps, 2), 2);
    assert_true(caps[0] == 95.5 && caps[1] == 95.5);
    assert_int_equal(limits_power_caps(root, caps, 1), 1);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_lists_are_read),
        IN_FOLDER(physical_cores_come_first),
        cmocka_unit_test(patterns_of_workers_are_two_words),
        cmocka_unit_test(executors_tell_their_cores),
        cmocka_unit_test(our_own_programs_are_known),
        cmocka_unit_test(tags_are_few_characters),
        cmocka_unit_test(who_comes_and_goes_is_seen_once),
        cmocka_unit_test(a_new_tag_is_asked_of_everybody),
        cmocka_unit_test(a_look_that_fails_leaves_the_list_as_it_was),
        cmocka_unit_test(a_watchdog_that_cannot_start_is_explained),
        cmocka_unit_test(a_full_table_refuses_and_forgets_nothing),
        cmocka_unit_test(a_pid_in_use_again_is_left_alone),
        IN_FOLDER(a_process_that_ends_meanwhile_is_no_failure),
        IN_FOLDER(a_tag_that_is_only_watched_is_left_as_it_is),
        IN_FOLDER(cpus_that_share_a_clock_are_found_before_it_is_set),
        IN_FOLDER(what_cannot_be_given_back_is_tried_again),
        IN_FOLDER(whatever_fails_the_limits_found_come_back),
        IN_FOLDER(only_packages_have_a_cap),
    };
    return cmocka_run_group_tests_name("node parts", tests, NULL, NULL);
}
