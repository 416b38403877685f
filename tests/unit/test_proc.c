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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "tests/fault.h"

/* A child that has done `prepare` and now waits until our end of the pipe is closed, or it is killed. */
struct helper {
    pid_t pid;
    int release;
};

static void nothing(void)
{
}

static void own_session(void)
{
    (void)setsid();
}

static void odd_name(void)
{
    (void)setsid();
    (void)prctl(PR_SET_NAME, ") Z 1 (x y");
}

static struct helper helper_start(void (*prepare)(void))
{
    int ready[2], release[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(release), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    char byte = 'r';
    if (pid == 0) {
        (void)close(release[1]);
        prepare();
        ssize_t n = write(ready[1], &byte, 1);
        if (n == 1)
            n = read(release[0], &byte, 1);
        _exit(n == 0 ? 0 : 1);
    }
    (void)close(ready[1]), (void)close(release[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    return (struct helper){ .pid = pid, .release = release[1] };
}

static void helper_end(struct helper *h)
{
    (void)close(h->release);
    (void)waitpid(h->pid, NULL, 0);
}

static bool has(const pid_t *pids, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

static void a_process_is_known_by_pid_start_and_boot(void **state)
{
    (void)state;
    char boot[PROC_BOOT_ID_SIZE];
    assert_int_equal(proc_boot_id(boot), 0);
    assert_int_equal(strlen(boot), PROC_BOOT_ID_SIZE - 1);
    uint64_t start = 0;
    assert_int_equal(proc_start_ticks(getpid(), &start), 0);
    assert_true(start > 0);
    assert_true(proc_is(getpid(), start, boot));
    assert_false(proc_is(getpid(), start + 1, boot));
    assert_false(proc_is(getpid(), start, "00000000-0000-0000-0000-000000000000"));
    assert_false(proc_is(0, start, boot));
    assert_false(proc_is(-1, start, boot));
}

static void a_name_with_parentheses_and_blanks_is_no_obstacle(void **state)
{
    (void)state;
    struct helper plain = helper_start(nothing), odd = helper_start(odd_name);
    uint64_t before = 0, start = 0;
    assert_int_equal(proc_start_ticks(plain.pid, &before), 0);
    assert_int_equal(proc_start_ticks(odd.pid, &start), 0);
    assert_in_range(start, before, before + 6000); /* born after the plain one, a minute later at most */
    pid_t *pids = NULL;
    size_t n = 0;
    assert_int_equal(proc_session_pids(odd.pid, &pids, &n), 0);
    assert_true(n == 1 && pids[0] == odd.pid);
    free(pids);
    helper_end(&odd);
    helper_end(&plain);
}

static void a_zombie_is_not_alive_and_a_reaped_process_is_not_there(void **state)
{
    (void)state;
    char boot[PROC_BOOT_ID_SIZE];
    assert_int_equal(proc_boot_id(boot), 0);
    struct helper h = helper_start(nothing);
    uint64_t start = 0, again = 0;
    assert_int_equal(proc_start_ticks(h.pid, &start), 0);
    assert_true(proc_is(h.pid, start, boot));
    (void)close(h.release);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)h.pid, &info, WEXITED | WNOWAIT), 0);
    assert_false(proc_is(h.pid, start, boot));
    assert_int_equal(proc_start_ticks(h.pid, &again), 0);
    pid_t *pids = NULL;
    size_t n = 0;
    assert_int_equal(proc_descendants(getpid(), &pids, &n), 0);
    assert_false(has(pids, n, h.pid));
    free(pids);
    assert_int_equal(waitpid(h.pid, NULL, 0), h.pid);
    assert_int_equal(proc_start_ticks(h.pid, &again), -ESRCH);
}

static void descendants_are_those_of_children_too(void **state)
{
    (void)state;
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        struct helper grandchild = helper_start(own_session);
        ssize_t n = write(told[1], &grandchild.pid, sizeof grandchild.pid);
        (void)close(told[1]);
        for (;;)
            (void)poll(NULL, 0, n > 0 ? -1 : 0);
    }
    pid_t grandchild = 0, *pids = NULL;
    size_t n = 0;
    assert_int_equal(read(told[0], &grandchild, sizeof grandchild), sizeof grandchild);
    assert_int_equal(proc_descendants(getpid(), &pids, &n), 0);
    assert_true(has(pids, n, child) && has(pids, n, grandchild));
    assert_false(has(pids, n, getpid()));
    free(pids);
    (void)kill(child, SIGKILL); /* the grandchild's pipe ends with it */
    (void)waitpid(child, NULL, 0);
    (void)close(told[0]), (void)close(told[1]);
}

static void a_session_is_listed_and_killed_without_the_caller(void **state)
{
    (void)state;
    struct helper h = helper_start(own_session);
    assert_int_equal(proc_kill_session(0, SIGTERM), -EINVAL);
    assert_int_equal(proc_kill_session(-1, SIGTERM), -EINVAL);
    assert_int_equal(proc_kill_session(h.pid, SIGTERM), 1);
    int how = 0;
    assert_int_equal(waitpid(h.pid, &how, 0), h.pid);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
    (void)close(h.release);
    assert_int_equal(proc_kill_session(h.pid, SIGTERM), 0);
}

/* Texts as string literals: the compiler's NUL ends the last argument. */
#define TEXT(s) s, sizeof(s)

static void tags_are_found_in_argument_lists(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        size_t len;
        bool want;
    } cases[] = {
        { "an argument of its own", TEXT("java\0-Dpipetune.launch=t-1\0Main"), true },
        { "the last argument", TEXT("java\0-Dpipetune.launch=t-1"), true },
        { "first in a Java option string", TEXT("x\0-Dpipetune.launch=t-1 -Xmx1g"), true },
        { "last in a Java option string", TEXT("x\0-Xmx1g -Dpipetune.launch=t-1"), true },
        { "a value of --conf", TEXT("spark-submit\0--conf\0spark.a=-Dpipetune.launch=t-1 -Db=c"), true },
        { "quoted", TEXT("sh\0JAVA_OPTS='-Dpipetune.launch=t-1'"), true },
        { "the second of two", TEXT("x\0-Dpipetune.launch=t-2 -Dpipetune.launch=t-1"), true },
        { "a longer tag", TEXT("x\0-Dpipetune.launch=t-12"), false },
        { "a shorter tag", TEXT("x\0-Dpipetune.launch=t"), false },
        { "another option that ends alike", TEXT("x\0-X-Dpipetune.launch=t-1"), false },
        { "cut over two arguments", TEXT("x\0-Dpipetune.launch=\0t-1"), false },
        { "no arguments", "", 0, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (proc_args_tagged(cases[i].text, cases[i].len, "t-1") != cases[i].want)
            fail_msg("%s: got %d, want %d", cases[i].name, !cases[i].want, cases[i].want);
}

static void tags_are_found_in_environments(void **state)
{
    (void)state;
    assert_true(proc_env_tagged(TEXT("A=b\0PIPETUNE_LAUNCH=t-1\0C=d"), "t-1"));
    assert_false(proc_env_tagged(TEXT("PIPETUNE_LAUNCH=t-12"), "t-1"));
    assert_false(proc_env_tagged(TEXT("MY_PIPETUNE_LAUNCH=t-1"), "t-1"));
    assert_false(proc_env_tagged("", 0, "t-1"));
}

/* A `sleep` with this environment variable and this first argument after the program's name. */
static pid_t sleeper(const char *variable, const char *argument)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    char script[] = "exec 2>&-; while :; do sleep 60 & wait; done";
    char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, script, strdup(argument), NULL };
    char *env[] = { (char[]){ "PATH=/usr/bin:/bin" }, strdup(variable), NULL };
    (void)setsid();
    (void)execve("/bin/sh", argv, env);
    _exit(127);
}

/* The tag shows from exec on, which is a moment after fork. */
static bool gets_tagged(pid_t pid, const char *tag)
{
    for (int look = 0; look < 2000; look++) {
        pid_t *pids = NULL;
        size_t n = 0;
        assert_int_equal(proc_tagged(tag, &pids, &n), 0);
        bool found = has(pids, n, pid);
        assert_false(has(pids, n, getpid()));
        free(pids);
        if (found)
            return true;
        (void)poll(NULL, 0, 5);
    }
    return false;
}

static void tagged_processes_are_found_by_argument_and_by_environment(void **state)
{
    (void)state;
    char tag[32], variable[64], option[64];
    (void)snprintf(tag, sizeof tag, "unit-%ld", (long)getpid());
    (void)snprintf(variable, sizeof variable, "PIPETUNE_LAUNCH=%s", tag);
    (void)snprintf(option, sizeof option, "-Xmx1g -Dpipetune.launch=%s", tag);
    pid_t by_env = sleeper(variable, "x"), by_arg = sleeper("A=b", option);
    assert_true(gets_tagged(by_env, tag));
    assert_true(gets_tagged(by_arg, tag));
    (void)proc_kill_session(by_env, SIGKILL), (void)proc_kill_session(by_arg, SIGKILL);
    (void)waitpid(by_env, NULL, 0), (void)waitpid(by_arg, NULL, 0);
}

static void running_out_of_memory_is_reported(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    unsigned nth = 1;
    for (; rc < 0; nth++) {
        pid_t *pids = NULL;
        size_t n = 0;
        assert_true(nth < 5000);
        fault_arm(FAULT_ALLOC, nth);
        rc = proc_descendants(getppid(), &pids, &n);
        (void)fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && !pids));
        free(pids);
    }
    assert_true(nth > 2);
}

static void kills_for_want_of_memory_are_counted(void **state)
{
    (void)state;
    assert_int_equal(proc_oom_kills_of("nr_free_pages 1\noom_kill 7\nzone_reclaim_failed 0\n"), 7);
    assert_int_equal(proc_oom_kills_of("nr_free_pages 1\nthp_oom_kill 7\n"), 0);
    assert_int_equal(proc_oom_kills_of(""), 0);
    assert_int_equal(proc_oom_kills(), proc_oom_kills()); /* of this machine, whatever it is */
}

static void what_a_process_used_is_read_behind_its_name(void **state)
{
    (void)state;
    struct proc_usage u = { 0 };
    assert_int_equal(proc_usage_of("7 (a) b 1 2) S 1 7 7 0 -1 4194560 10 20 30 40 250 50 1 2 20 0 1 0 99", "100 25 5",
                                   100, 4096, &u),
                     0);
    assert_true(u.cpu_s > 2.999 && u.cpu_s < 3.001);
    assert_true(u.resident_bytes > 102399 && u.resident_bytes < 102401);
    assert_int_equal(proc_usage_of("7 (a) S 1", "100 25", 100, 4096, &u), -EINVAL);
    assert_int_equal(proc_usage_of("", "100 25", 100, 4096, &u), -EINVAL);
    assert_int_equal(proc_usage(getpid(), &u), 0);
    assert_true(u.resident_bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_known_by_pid_start_and_boot),
        cmocka_unit_test(a_name_with_parentheses_and_blanks_is_no_obstacle),
        cmocka_unit_test(a_zombie_is_not_alive_and_a_reaped_process_is_not_there),
        cmocka_unit_test(descendants_are_those_of_children_too),
        cmocka_unit_test(a_session_is_listed_and_killed_without_the_caller),
        cmocka_unit_test(tags_are_found_in_argument_lists),
        cmocka_unit_test(tags_are_found_in_environments),
        cmocka_unit_test(tagged_processes_are_found_by_argument_and_by_environment),
        cmocka_unit_test(kills_for_want_of_memory_are_counted),
        cmocka_unit_test(running_out_of_memory_is_reported),
        cmocka_unit_test(what_a_process_used_is_read_behind_its_name),
    };
    return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
