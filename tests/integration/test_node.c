/* The launcher `pipetune-node exec`, driven as the driver drives it: over a socketpair and the trial's folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/strv.h"
#include "tests/integration/harness.h"

struct bench { /* one test: a folder, and a tag nobody else has */
    char *dir, *program;
    char tag[64];
};

struct node { /* one launcher */
    pid_t pid;
    int control;
    char line[512]; /* the last it said */
};

/* --- helpers ------------------------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
    static unsigned number;
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return -1;
    b->dir = harness_dir();
    b->program = harness_program("pipetune-node");
    (void)snprintf(b->tag, sizeof b->tag, "node-test-%ld-%u", (long)getpid(), number++);
    (void)setenv("D", b->dir, 1); /* where the scripts leave their marks */
    *state = b;
    return 0;
}

static size_t tagged(const struct bench *b)
{
    pid_t *pids = NULL;
    size_t n = 0;
    assert_int_equal(proc_tagged(b->tag, &pids, &n), 0);
    free(pids);
    return n;
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    pid_t *pids = NULL;
    size_t n = 0;
    if (proc_tagged(b->tag, &pids, &n) == 0) /* what a failed test left */
        for (size_t i = 0; i < n; i++)
            (void)kill(pids[i], SIGKILL);
    free(pids);
    (void)unsetenv("PIPETUNE_FAILPOINT");
    harness_remove(b->dir);
    free(b->program);
    free(b);
    return 0;
}

/* `options` and `words` are NULL-terminated; words are what follows "--", counts included. */
static struct node start(const struct bench *b, const char *attempt, const char *const *options,
                         const char *const *words)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int theirs = dup(pair[1]);
    AUTO_STRV struct strv argv = STRV_INIT;
    const char *const head[] = { b->program, "exec", "--dir", b->dir, "--attempt", attempt, "--launch", b->tag };
    for (size_t i = 0; i < ARRAY_LEN(head); i++)
        strv_add(&argv, head[i]);
    strv_add(&argv, "--control");
    strv_addf(&argv, "%d", theirs);
    for (; options && *options; options++)
        strv_add(&argv, *options);
    strv_add(&argv, "--");
    for (; *words; words++)
        strv_add(&argv, *words);
    assert_false(argv.failed);
    struct node n = { .pid = harness_spawn(argv.v, -1, -1), .control = pair[0] };
    (void)close(pair[1]), (void)close(theirs);
    return n;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SH(script) "3", "/bin/sh", "-c", (script)

/* The next line on the control socket, without its newline; false: end of file. */
static bool hear(struct node *n)
{
    size_t len = 0;
    for (;;) {
        struct pollfd p = { .fd = n->control, .events = POLLIN };
        if (poll(&p, 1, HARNESS_MS) < 1)
            fail_msg("the launcher says nothing");
        char c = 0;
        if (read(n->control, &c, 1) < 1)
            return false;
        if (c == '\n')
            break;
        assert_true(len + 1 < sizeof n->line);
        n->line[len++] = c;
    }
    n->line[len] = '\0';
    return true;
}

static void hear_ready(struct node *n)
{
    if (!hear(n) || strncmp(n->line, "ready ", 6) != 0)
        fail_msg("got '%s', want 'ready …'", n->line);
}

static void go(struct node *n)
{
    hear_ready(n);
    assert_int_equal(send(n->control, "g", 1, MSG_NOSIGNAL), 1);
}

static int end(struct node *n)
{
    int code = harness_exit_code(n->pid, HARNESS_MS);
    (void)close(n->control);
    return code;
}

static void run(const struct bench *b, const char *const *options, const char *const *words)
{
    struct node n = start(b, "1", options, words);
    go(&n);
    assert_int_equal(end(&n), 0);
    AUTO_FREE char *pid = harness_read(b->dir, "pid");
    assert_null(pid);
}

struct ending { /* DIR/exit */
    long attempt, code, log_end, max_rss_kb, leftovers, oom_kills, boot_ms;
    char launch[64], kind[32];
    double cpu_s;
};

static struct ending ending_of(const struct bench *b)
{
    AUTO_FREE char *text = harness_read(b->dir, "exit");
    assert_non_null(text);
    struct ending e = { 0 };
    int end_at = 0;
    int got = sscanf(text,
                     "attempt=%ld launch=%63s kind=%31s code=%ld log_end=%ld cpu_s=%lf max_rss_kb=%ld leftovers=%ld "
                     "oom_kills=%ld boot_ms=%ld\n%n",
                     &e.attempt, e.launch, e.kind, &e.code, &e.log_end, &e.cpu_s, &e.max_rss_kb, &e.leftovers,
                     &e.oom_kills, &e.boot_ms, &end_at);
    if (got != 10 || e.boot_ms <= 0 || text[end_at] != '\0')
        fail_msg("unexpected exit file: %s", text);
    assert_string_equal(e.launch, b->tag);
    return e;
}

static void assert_ended(const struct bench *b, const char *kind, long code)
{
    struct ending e = ending_of(b);
    if (strcmp(e.kind, kind) != 0 || e.code != code)
        fail_msg("got kind=%s code=%ld, want kind=%s code=%ld", e.kind, e.code, kind, code);
}

static void assert_log(const struct bench *b, const char *want)
{
    AUTO_FREE char *log = harness_read(b->dir, "log");
    assert_non_null(log);
    assert_string_equal(log, want);
    if (harness_wait_file(b->dir, "exit", 0))
        assert_int_equal(ending_of(b).log_end, strlen(want));
}

static bool lock_is_free(void *arg)
{
    const struct bench *b = arg;
    AUTO_FREE char *path = harness_path(b->dir, "lock");
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool nothing_tagged(void *arg)
{
    return tagged(arg) == 0;
}

static void assert_all_gone(struct bench *b)
{
    if (!harness_wait(nothing_tagged, b, HARNESS_MS))
        fail_msg("%zu processes of the attempt still run", tagged(b));
    assert_true(harness_wait(lock_is_free, b, HARNESS_MS));
}

static void wait_mark(const struct bench *b, const char *name)
{
    if (!harness_wait_file(b->dir, name, HARNESS_MS))
        fail_msg("'%s' never came", name);
}

/* A pid that a script wrote into a file by `echo $! > $D/x.new; mv $D/x.new $D/x`. */
static pid_t pid_in(const struct bench *b, const char *name)
{
    wait_mark(b, name);
    AUTO_FREE char *text = harness_read(b->dir, name);
    return (pid_t)strtol(text, NULL, 10);
}

static bool is_gone(void *arg)
{
    uint64_t start = 0;
    char boot[PROC_BOOT_ID_SIZE];
    const pid_t *pid = arg;
    assert_int_equal(proc_boot_id(boot), 0);
    return proc_start_ticks(*pid, &start) < 0 || !proc_is(*pid, start, boot);
}

/* --- before go ---------------------------------------------------------------------------------------------------- */

static void ready_names_the_launcher_and_the_log(void **state)
{
    struct bench *b = *state;
    harness_write(b->dir, "log", "cut li");
    harness_write(b->dir, "heard", "[Epoch 1] cut");
    struct node n = start(b, "7", NULL, WORDS("1", "/bin/true"));
    hear_ready(&n);
    char boot[PROC_BOOT_ID_SIZE], want[512];
    uint64_t ticks = 0;
    assert_int_equal(proc_boot_id(boot), 0);
    assert_int_equal(proc_start_ticks(n.pid, &ticks), 0);
    (void)snprintf(want, sizeof want, "ready %s %ld %llu 14", boot, (long)n.pid, (unsigned long long)ticks);
    assert_string_equal(n.line, want);
    (void)snprintf(want, sizeof want, "%s %ld %llu 7 %s\n", boot, (long)n.pid, (unsigned long long)ticks, b->tag);
    AUTO_FREE char *pid = harness_read(b->dir, "pid");
    assert_string_equal(pid, want);
    assert_log(b, "cut li\n");
    assert_int_equal(getsid(n.pid), n.pid);
    assert_int_equal(getpgid(n.pid), n.pid);
    assert_int_equal(send(n.control, "g", 1, MSG_NOSIGNAL), 1);
    assert_false(hear(&n)); /* closed from go on */
    assert_int_equal(end(&n), 0);
    assert_int_equal(ending_of(b).attempt, 7);
}

static void assert_nothing_ran(struct bench *b, struct node *n, int code)
{
    assert_int_equal(end(n), code);
    AUTO_FREE char *ran = harness_read(b->dir, "ran"), *pid = harness_read(b->dir, "pid"),
                   *ended = harness_read(b->dir, "exit");
    assert_true(!ran && !pid && !ended);
    assert_all_gone(b);
}

static void end_of_file_before_go_starts_nothing(void **state)
{
    struct bench *b = *state;
    struct node n = start(b, "1", NULL, WORDS(SH("touch $D/ran")));
    hear_ready(&n);
    assert_int_equal(shutdown(n.control, SHUT_WR), 0);
    assert_nothing_ran(b, &n, 0);
}

static void another_byte_than_go_starts_nothing(void **state)
{
    struct bench *b = *state;
    struct node n = start(b, "1", NULL, WORDS(SH("touch $D/ran")));
    hear_ready(&n);
    assert_int_equal(send(n.control, "x", 1, MSG_NOSIGNAL), 1);
    assert_nothing_ran(b, &n, 0);
}

static void term_before_go_starts_nothing(void **state)
{
    struct bench *b = *state;
    struct node n = start(b, "1", NULL, WORDS(SH("touch $D/ran")));
    hear_ready(&n);
    assert_int_equal(kill(n.pid, SIGTERM), 0);
    assert_nothing_ran(b, &n, 0);
}

static void a_locked_folder_is_busy(void **state)
{
    struct bench *b = *state;
    struct node first = start(b, "1", NULL, WORDS("1", "/bin/true"));
    hear_ready(&first);
    struct node second = start(b, "2", NULL, WORDS("1", "/bin/true"));
    assert_true(hear(&second));
    assert_string_equal(second.line, "busy");
    assert_int_equal(end(&second), 75);
    AUTO_FREE char *pid = harness_read(b->dir, "pid");
    assert_non_null(strstr(pid, " 1 ")); /* the first one's is untouched */
    (void)close(first.control);
    first.control = -1;
    assert_int_equal(end(&first), 0);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
    struct bench *b = *state;
    struct bench gone = *b;
    gone.dir = harness_path(b->dir, "no/such");
    struct node n = start(&gone, "1", NULL, WORDS("1", "/bin/true"));
    assert_true(hear(&n));
    assert_non_null(strstr(n.line, "error cannot open '"));
    assert_non_null(strstr(n.line, "No such file"));
    assert_int_equal(end(&n), 1);
    free(gone.dir);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void output_goes_to_the_log_in_order(void **state)
{
    struct bench *b = *state;
    harness_write(b->dir, "log", "before\n");
    run(b, NULL, WORDS(SH("echo out; echo err >&2; cat; echo \"$PIPETUNE_LAUNCH\" >$D/tag; printf end")));
    assert_log(b, "before\nout\nerr\nend\n");
    assert_ended(b, "exited", 0);
    AUTO_FREE char *tag = harness_read(b->dir, "tag");
    tag[strcspn(tag, "\n")] = '\0';
    assert_string_equal(tag, b->tag);
    assert_int_equal(ending_of(b).leftovers, 0);
    assert_true(ending_of(b).max_rss_kb > 0);
}

static void output_arrives_while_the_step_runs(void **state)
{
    struct bench *b = *state;
    /* The step waits for what it wrote itself to be in the log. */
    run(b, NULL, WORDS(SH("printf 'Epoch 1'; until grep -q 'Epoch 1' $D/log; do sleep 0.01; done")));
    assert_ended(b, "exited", 0);
}

static void much_output_comes_whole(void **state)
{
    struct bench *b = *state;
    run(b, NULL, WORDS(SH("seq 1 300000")));
    AUTO_BUF struct buf want = BUF_INIT;
    for (int i = 1; i <= 300000; i++)
        buf_printf(&want, "%d\n", i);
    assert_log(b, buf_text(&want));
}

static void an_argument_may_look_like_anything(void **state)
{
    struct bench *b = *state;
    run(b, NULL, WORDS("6", "/usr/bin/printf", "[%s]", "--", "3", "", "a b\n", SH("echo two")));
    assert_log(b, "[--][3][][a b\n]\ntwo\n");
}

static void two_steps_run_one_after_the_other(void **state)
{
    struct bench *b = *state;
    run(b, NULL, WORDS(SH("sleep 0.1; echo one"), SH("echo two; exit 3")));
    assert_log(b, "one\ntwo\n");
    assert_ended(b, "exited", 3);
}

static void a_failing_step_is_the_last(void **state)
{
    struct bench *b = *state;
    run(b, NULL, WORDS(SH("exit 5"), SH("echo two")));
    assert_log(b, "");
    assert_ended(b, "exited", 5);
}

static void a_signal_is_told_from_an_exit_code(void **state)
{
    struct bench *b = *state;
    run(b, NULL, WORDS(SH("kill -KILL $$")));
    assert_ended(b, "signalled", 137);
}

static void a_program_that_is_not_there_is_named_in_the_log(void **state)
{
    struct bench *b = *state;
    run(b, NULL, WORDS("1", "/no/such/program", SH("echo two")));
    assert_log(b, "pipetune: cannot start '/no/such/program': No such file or directory\n");
    assert_ended(b, "not-started", 127);
}

static void what_is_no_program_never_reaches_a_shell(void **state)
{
    struct bench *b = *state;
    harness_write(b->dir, "script", "touch $D/ran\n"); /* no #! */
    AUTO_FREE char *path = harness_path(b->dir, "script");
    assert_int_equal(chmod(path, 0755), 0);
    run(b, NULL, WORDS("1", path));
    assert_ended(b, "not-started", 127);
    AUTO_FREE char *log = harness_read(b->dir, "log"), *ran = harness_read(b->dir, "ran");
    assert_non_null(strstr(log, "Exec format error"));
    assert_null(ran);
}

static void a_program_is_found_on_the_path(void **state)
{
    struct bench *b = *state;
    run(b, NULL, WORDS("2", "echo", "hello", "1", "no-such-program"));
    assert_log(b, "hello\npipetune: cannot start 'no-such-program': No such file or directory\n");
}

static void exit_127_of_a_program_is_its_own(void **state)
{
    struct bench *b = *state;
    run(b, NULL, WORDS(SH("exit 127")));
    assert_ended(b, "exited", 127);
}

static void the_step_gets_only_its_three_descriptors_and_the_lock(void **state)
{
    struct bench *b = *state;
    int leaks = open("/dev/zero", O_RDONLY); /* a driver's, that forgot its flag */
    assert_true(leaks >= 0);
    run(b, NULL, WORDS(SH("readlink /proc/$$/fd/*; trap")));
    (void)close(leaks);
    AUTO_FREE char *log = harness_read(b->dir, "log"), *lock = harness_path(b->dir, "lock");
    assert_int_equal(harness_count(log, "\n"), 4);
    assert_int_equal(harness_count(log, "/dev/null\n"), 1);
    assert_int_equal(harness_count(log, "pipe:["), 2);
    assert_int_equal(harness_count(log, lock), 1);
}

static void the_step_gets_default_signals(void **state)
{
    struct bench *b = *state;
    /* Without signals 32 and 33: they are libc's own, make starts its children with them ignored, and nobody can change that. */
    run(b, NULL,
        WORDS("4", "/bin/sed", "-nE", "/^SigIgn/s/1(.{8})$/0\\1/;/^SigIgn/s/[8](.{7})$/0\\1/;/^Sig[BI]/p",
              "/proc/self/status"));
    assert_log(b, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void cpu_and_memory_include_children(void **state)
{
    struct bench *b = *state;
    run(b, NULL, WORDS(SH("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; true")));
    assert_true(ending_of(b).cpu_s > 0.02);
    assert_true(ending_of(b).cpu_s < 60);
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

#define FOREVER "while :; do sleep 0.05; done"

static void term_to_the_launcher_ends_the_step(void **state)
{
    struct bench *b = *state;
    struct node n = start(b, "1", NULL, WORDS(SH("touch $D/on; exec sleep 600"), SH("touch $D/two")));
    go(&n);
    wait_mark(b, "on");
    assert_int_equal(kill(n.pid, SIGTERM), 0);
    assert_int_equal(end(&n), 0);
    assert_ended(b, "signalled", 143);
    AUTO_FREE char *two = harness_read(b->dir, "two");
    assert_null(two);
    assert_all_gone(b);
}

static void term_to_the_group_lets_the_step_choose_its_code(void **state)
{
    struct bench *b = *state;
    struct node n = start(b, "1", NULL, WORDS(SH("trap 'echo bye; exit 143' TERM; touch $D/on; " FOREVER)));
    go(&n);
    wait_mark(b, "on");
    assert_int_equal(kill(-n.pid, SIGTERM), 0);
    assert_int_equal(end(&n), 0);
    assert_ended(b, "exited", 143);
    AUTO_FREE char *log = harness_read(b->dir, "log");
    assert_non_null(strstr(log, "bye\n")); /* sh also reports its terminated sleep */
}

static void after_a_term_no_further_step_starts(void **state)
{
    struct bench *b = *state;
    struct node n = start(b, "1", NULL, WORDS(SH("trap 'exit 0' TERM; touch $D/on; " FOREVER), SH("touch $D/two")));
    go(&n);
    wait_mark(b, "on");
    assert_int_equal(kill(n.pid, SIGTERM), 0);
    assert_int_equal(end(&n), 0);
    assert_ended(b, "not-started", 143);
    AUTO_FREE char *two = harness_read(b->dir, "two");
    assert_null(two);
}

static void what_ignores_term_is_killed_after_the_grace(void **state)
{
    struct bench *b = *state;
    const char *script =
        "trap '' TERM\n"
        "setsid sh -c 'unset PIPETUNE_LAUNCH; echo $$ >$D/far.new; mv $D/far.new $D/far; " FOREVER "' &\n"
        "touch $D/on; " FOREVER;
    struct node n = start(b, "1", WORDS("--grace", "1"), WORDS(SH(script)));
    go(&n);
    pid_t far = pid_in(b, "far");
    wait_mark(b, "on");
    assert_int_equal(kill(n.pid, SIGTERM), 0);
    assert_int_equal(end(&n), 0);
    assert_ended(b, "signalled", 137);
    assert_true(is_gone(&far)); /* before exit was written, not some time after */
    assert_all_gone(b);
}

static void what_a_step_leaves_behind_is_ended(void **state)
{
    struct bench *b = *state;
    /* One in the session, one that made its own and lost the tag; both hold the pipe. */
    const char *script = "sleep 600 &\n"
                         "setsid env -u PIPETUNE_LAUNCH sleep 601 &\n"
                         "echo $! >$D/far.new; mv $D/far.new $D/far; echo done";
    run(b, NULL, WORDS(SH(script)));
    assert_log(b, "done\n");
    assert_ended(b, "exited", 0);
    assert_int_equal(ending_of(b).leftovers, 2);
    pid_t far = pid_in(b, "far");
    assert_true(is_gone(&far));
    assert_all_gone(b);
}

static void a_leftover_that_ignores_term_is_killed(void **state)
{
    struct bench *b = *state;
    const char *script = "(trap '' TERM; touch $D/on; " FOREVER ") & until [ -e $D/on ]; do sleep 0.01; done; exit 4";
    run(b, NULL, WORDS(SH(script)));
    assert_ended(b, "exited", 4);
    assert_all_gone(b);
}

static void last_words_of_a_leftover_are_kept(void **state)
{
    struct bench *b = *state;
    const char *script = "(trap 'echo last words; exit' TERM; touch $D/on; " FOREVER ") &\n"
                         "until [ -e $D/on ]; do sleep 0.01; done";
    run(b, NULL, WORDS(SH(script)));
    AUTO_FREE char *log = harness_read(b->dir, "log");
    assert_non_null(strstr(log, "last words\n"));
}

static void tagged_processes_elsewhere_are_ended(void **state)
{
    struct bench *b = *state;
    (void)setenv("PIPETUNE_LAUNCH", b->tag, 1); /* an executor, as a Worker starts one */
    char *argv[] = { (char[]){ "/bin/sleep" }, (char[]){ "600" }, NULL };
    pid_t executor = harness_spawn(argv, -1, -1);
    (void)unsetenv("PIPETUNE_LAUNCH");
    run(b, NULL, WORDS("2", "/bin/sleep", "0.2"));
    assert_int_equal(harness_exit_code(executor, HARNESS_MS), 128 + SIGTERM);
    assert_int_equal(ending_of(b).leftovers, 1);
}

static void a_killed_launcher_takes_its_step_along(void **state)
{
    struct bench *b = *state;
    struct node n = start(b, "1", NULL, WORDS(SH("trap '' TERM HUP; touch $D/on; while :; do :; done")));
    go(&n);
    wait_mark(b, "on");
    assert_false(lock_is_free(b));
    assert_int_equal(kill(n.pid, SIGKILL), 0);
    assert_int_equal(end(&n), 137);
    assert_all_gone(b);
    AUTO_FREE char *ended = harness_read(b->dir, "exit");
    assert_null(ended);
}

static void hup_and_int_change_nothing(void **state)
{
    struct bench *b = *state;
    struct node n = start(b, "1", NULL, WORDS(SH("touch $D/on; until [ -e $D/off ]; do sleep 0.01; done; exit 6")));
    go(&n);
    wait_mark(b, "on");
    (void)close(n.control); /* the driver is gone */
    n.control = -1;
    assert_int_equal(kill(n.pid, SIGHUP), 0);
    assert_int_equal(kill(n.pid, SIGINT), 0);
    harness_write(b->dir, "off", "");
    assert_int_equal(end(&n), 0);
    assert_ended(b, "exited", 6);
}

/* --- the log's limits --------------------------------------------------------------------------------------------- */

/* Of so many megabytes of chatter, a line to be heard before and after each. */
#define CHATTER(mb)                                                                                                    \
    "i=0; while [ $i -lt " mb " ]; do echo \"[Epoch $i] before\"; yes 'Error: some chatter' | head -c 1048560; "       \
    "echo; echo \"[Epoch $i] after\"; i=$((i + 1)); done; echo the newest line"

static size_t size_of(const struct bench *b, const char *name)
{
    AUTO_FREE char *path = harness_path(b->dir, name);
    struct stat st;
    return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

static void a_capped_log_keeps_the_newest_lines_and_all_that_is_heard(void **state)
{
    struct bench *b = *state;
    run(b, WORDS("--log-cap", "2000000", "--keep", "[Epoch"), WORDS(SH(CHATTER("20"))));
    run(b, WORDS("--log-cap", "2000000", "--keep", "[Epoch"), WORDS(SH(CHATTER("2")))); /* over all attempts */
    assert_in_range(size_of(b, "log") + size_of(b, "log.1"), 1000000, 2000000 + (256 << 10));
    AUTO_FREE char *log = harness_read(b->dir, "log"), *heard = harness_read(b->dir, "heard");
    const char *end = strstr(log, "the newest line\n");
    assert_non_null(end);
    assert_string_equal(end, "the newest line\n");
    AUTO_BUF struct buf want = BUF_INIT;
    for (int attempt = 0; attempt < 2; attempt++)
        for (int i = 0; i < (attempt ? 2 : 20); i++)
            buf_printf(&want, "[Epoch %d] before\n[Epoch %d] after\n", i, i);
    AUTO_BUF struct buf got = BUF_INIT;
    for (const char *p = heard; *p; p = strchr(p, '\n') + 1)
        if (*p == '[')
            buf_put(&got, p, strcspn(p, "\n") + 1);
    assert_string_equal(buf_text(&got), buf_text(&want));
    assert_in_range(strlen(heard), 1, 2 * ((4 << 20) + (512 << 10))); /* of each step some of the others, too */
}

static void of_what_nobody_asked_for_the_beginning_and_the_end_are_heard(void **state)
{
    struct bench *b = *state;
    run(b, WORDS("--step", "[Epoch", "--keep", "Save"),
        WORDS(SH("echo first words; yes 'some chatter' | head -c 20000000; echo; echo before a step; echo '[Epoch 7]'; "
                 "echo Save; echo after it; echo Save more; printf 'last words'")));
    AUTO_FREE char *heard = harness_read(b->dir, "heard");
    assert_in_range(strlen(heard), (4 << 20) - 10, (4 << 20) + 200);
    assert_int_equal(strncmp(heard, "first words\nsome chatter\n", 25), 0);
    assert_string_equal(strstr(heard, "[Epoch 7]"), "[Epoch 7]\nSave\nSave more\nafter it\nlast words\n");
}

static void an_endless_line_is_heard_by_its_beginning(void **state)
{
    struct bench *b = *state;
    const char *script = "printf '[Epoch 1] '; head -c 5000000 /dev/zero | tr '\\0' x; echo; printf '[Epoch 2]'";
    run(b, WORDS("--log-cap", "1000000", "--keep", "[Epoch"), WORDS(SH(script)));
    AUTO_FREE char *heard = harness_read(b->dir, "heard"), *log = harness_read(b->dir, "log");
    assert_int_equal(strlen(heard), (64 << 10) + 1 + 10);
    assert_string_equal(heard + strlen(heard) - 12, "x\n[Epoch 2]\n");
    assert_in_range(size_of(b, "log") + size_of(b, "log.1"), 500000, 1000000 + (256 << 10));
    assert_string_equal(log + strlen(log) - 12, "x\n[Epoch 2]\n");
}

static void many_lines_a_second_are_all_counted(void **state)
{
    struct bench *b = *state;
    run(b, WORDS("--log-cap", "1000000", "--keep", "7"), WORDS(SH("seq 1 300000")));
    AUTO_BUF struct buf want = BUF_INIT;
    char line[16];
    for (int i = 1; i <= 300000; i++)
        if (snprintf(line, sizeof line, "%d\n", i) > 0 && strchr(line, '7'))
            buf_puts(&want, line);
    AUTO_FREE char *heard = harness_read(b->dir, "heard");
    AUTO_BUF struct buf got = BUF_INIT;
    for (const char *p = heard; *p; p = strchr(p, '\n') + 1)
        if (memchr(p, '7', strcspn(p, "\n")))
            buf_put(&got, p, strcspn(p, "\n") + 1);
    assert_string_equal(buf_text(&got), buf_text(&want));
}

/* A past that cannot be moved aside is dropped. */
static void a_log_that_cannot_be_rotated_is_bounded_all_the_same(void **state)
{
    struct bench *b = *state;
    AUTO_FREE char *in_the_way = harness_path(b->dir, "log.1");
    assert_int_equal(mkdir(in_the_way, 0777), 0);
    run(b, WORDS("--log-cap", "2000000", "--keep", "[Epoch"), WORDS(SH(CHATTER("10"))));
    assert_in_range(size_of(b, "log"), 16, 1000000 + (256 << 10));
    AUTO_FREE char *log = harness_read(b->dir, "log"), *heard = harness_read(b->dir, "heard");
    assert_string_equal(log + strlen(log) - 16, "the newest line\n");
    assert_int_equal(harness_count(heard, "[Epoch "), 20);
}

static void runs_have_logs_of_their_own(void **state)
{
    struct bench *b = *state;
    AUTO_FREE char *one = harness_path(b->dir, "1"), *two = harness_path(b->dir, "2");
    assert_int_equal(mkdir(one, 0777), 0);
    assert_int_equal(mkdir(two, 0777), 0);
    const char *script =
        "echo starting; echo; printf 'MARK run s-t1-1'; sleep 0.1; echo ' begin'; echo in 1; "
        "echo 'said MARK run s-t2-1 begin'; echo 'MARK run s-t2-1 end'; echo 'MARK run s-t1-1 end'; "
        "echo between; echo 'MARK run s-t2-7 begin'; printf 'cut '; sleep 0.1; echo in 2; echo 'MARK run s-t2-7 end'; "
        "echo 'MARK run s-t9-1 begin'; echo 'MARK run odd begin'; printf 'MARK ru'; sleep 0.1; "
        "echo 'n nothing'; echo 'MARK run s-t1-2 begin'; printf 'last of 1'";
    run(b, WORDS("--mark", "MARK run", "--runs", b->dir, "--keep", "in", "--keep", "MARK"), WORDS(SH(script)));
    AUTO_FREE char *log = harness_read(b->dir, "log"), *first = harness_read(one, "log"),
                   *second = harness_read(two, "log");
    assert_string_equal(first, "MARK run s-t1-1 begin\nin 1\nsaid MARK run s-t2-1 begin\nMARK run s-t2-1 end\n"
                               "MARK run s-t1-1 end\nMARK run s-t1-2 begin\nlast of 1\n");
    assert_string_equal(second, "MARK run s-t2-7 begin\ncut in 2\nMARK run s-t2-7 end\n");
    assert_non_null(strstr(log, "pipetune: run s-t9-1 stays in this log: "));
    assert_non_null(strstr(log, "\nMARK run s-t9-1 begin\nMARK run odd begin\nMARK run nothing\n"));
    assert_int_equal(strncmp(log, "starting\n\nbetween\n", 18), 0);
    AUTO_FREE char *heard = harness_read(two, "heard");
    assert_string_equal(heard, second);
}

static void runs_on_hosts_are_kept_by_their_names(void **state)
{
    struct bench *b = *state;
    char own[64], name[128];
    (void)snprintf(own, sizeof own, "%s-t1-1", b->tag);
    AUTO_FREE char *one = harness_path(b->dir, own), *other = harness_path(b->dir, "x-t1-1");
    assert_int_equal(mkdir(one, 0700), 0);
    assert_int_equal(mkdir(other, 0700), 0);
    (void)snprintf(name, sizeof name,
                   "for run in %s x-t1-1; do echo MARK run $run begin; echo in $run; echo MARK run $run end; done",
                   own);
    run(b, WORDS("--mark", "MARK run", "--ids", b->dir), WORDS(SH(name)));
    AUTO_FREE char *log = harness_read(b->dir, "log"), *first = harness_read(one, "log"),
                   *second = harness_read(other, "log");
    (void)snprintf(name, sizeof name, "MARK run %s begin\nin %s\nMARK run %s end\n", own, own, own);
    assert_string_equal(first, name);
    assert_null(second);
    assert_non_null(strstr(log, "run x-t1-1 stays in this log: it is none of this launch"));
    assert_non_null(strstr(log, "in x-t1-1\n"));
}

struct disk {
    char *dir;
    bool full;
};

static bool disk_is_full(void *arg)
{
    const struct disk *d = arg;
    struct statvfs s;
    assert_int_equal(statvfs(d->dir, &s), 0);
    return (s.f_bavail == 0) == d->full;
}

/* A folder of 1 MB with a ballast in it; NULL where mounting is not ours to do. */
static char *small_disk(const struct bench *b)
{
    char *dir = harness_path(b->dir, "small");
    assert_int_equal(mkdir(dir, 0777), 0);
    if (mount("none", dir, "tmpfs", 0, "size=1m") < 0) {
        print_message("SKIP full disk: cannot mount a tmpfs: %s\n", strerror(errno));
        free(dir);
        return NULL;
    }
    AUTO_FREE char *ballast = calloc(1, 600 << 10);
    assert_non_null(ballast);
    memset(ballast, '#', (600 << 10) - 1);
    harness_write(dir, "ballast", ballast);
    return dir;
}

static void a_full_disk_pauses_the_step(void **state)
{
    struct bench *b = *state;
    struct bench small = *b;
    small.dir = small_disk(b);
    if (!small.dir)
        skip();
    struct node n = start(&small, "1", NULL, WORDS(SH("seq 1 60000; touch $D/through; exit 9")));
    go(&n);
    struct disk full = { .dir = small.dir, .full = true };
    assert_true(harness_wait(disk_is_full, &full, HARNESS_MS));
    assert_false(harness_wait_file(b->dir, "through", 1200)); /* longer than a retry: it is paused, and stays so */
    AUTO_FREE char *ballast = harness_path(small.dir, "ballast");
    assert_int_equal(unlink(ballast), 0);
    assert_int_equal(end(&n), 0);
    assert_ended(&small, "exited", 9);
    AUTO_BUF struct buf want = BUF_INIT;
    for (int i = 1; i <= 60000; i++)
        buf_printf(&want, "%d\n", i);
    assert_log(&small, buf_text(&want));
    assert_int_equal(umount2(small.dir, MNT_DETACH), 0);
    free(small.dir);
}

static void a_full_disk_does_not_stop_term(void **state)
{
    struct bench *b = *state;
    struct bench small = *b;
    small.dir = small_disk(b);
    if (!small.dir)
        skip();
    struct node n = start(&small, "1", WORDS("--grace", "1"), WORDS(SH("seq 1 1000000")));
    go(&n);
    struct disk full = { .dir = small.dir, .full = true };
    assert_true(harness_wait(disk_is_full, &full, HARNESS_MS));
    assert_int_equal(kill(n.pid, SIGTERM), 0);
    assert_int_equal(end(&n), 1); /* not even `exit` had room */
    AUTO_FREE char *ended = harness_read(small.dir, "exit"), *pid = harness_read(small.dir, "pid");
    assert_null(ended);
    assert_non_null(pid);
    assert_int_equal(umount2(small.dir, MNT_DETACH), 0);
    free(small.dir);
    assert_all_gone(b);
}

static void an_idle_launcher_costs_nothing(void **state)
{
    struct bench *b = *state;
    struct node n = start(b, "1", NULL, WORDS("2", "/bin/sleep", "1"));
    go(&n);
    struct rusage before, after;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &before), 0);
    assert_int_equal(end(&n), 0);
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &after), 0);
    long switches = after.ru_nvcsw - before.ru_nvcsw;
    if (switches > 200)
        fail_msg("%ld waits in one idle second", switches);
}

/* A batch system starts it in a process group of its own, and asks it nothing: its steps begin at once, its socket is where this machine has
 * them, and what cannot be is told on stderr. */
static void without_a_control_it_begins_at_once(void **state)
{
    struct bench *b = *state;
    char *const argv[] = { b->program,
                           "exec",
                           "--dir",
                           b->dir,
                           "--attempt",
                           "1",
                           "--launch",
                           b->tag,
                           "--tell",
                           "-",
                           "--answer",
                           "{}",
                           "--",
                           "3",
                           "/bin/sh",
                           "-c",
                           "test -S \"$PIPETUNE_TELL\" && exit 3",
                           NULL };
    struct harness_output o = harness_run(argv, HARNESS_MS);
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "");
    assert_string_equal(o.err, "");
    harness_output_done(&o);
    AUTO_FREE char *note = harness_read(b->dir, "exit");
    assert_non_null(note);
    assert_non_null(strstr(note, "kind=exited code=3 "));
    char *const bad[] = { b->program, "exec", "--dir", "/dev/null", "--attempt", "1",
                          "--launch", b->tag, "--",    "1",         "/bin/true", NULL };
    o = harness_run(bad, HARNESS_MS);
    assert_int_equal(o.code, 1);
    assert_true(strncmp(o.err, "error ", 6) == 0);
    harness_output_done(&o);
}

/* --- wrong usage and sudden ends ------------------------------------------------------------------------------------ */

static void garbage_command_lines_are_refused(void **state)
{
    struct bench *b = *state;
#define GOOD "exec", "--dir", b->dir, "--attempt", "1", "--launch", "t", "--control", "9"
    const struct {
        const char *name, *argv[24], *want;
    } cases[] = {
        { "no verb", { NULL }, "unknown verb ''" },
        { "an unknown verb", { "dance" }, "unknown verb 'dance'" },
        { "nothing at all", { "exec" }, "'--attempt' is missing" },
        { "no launch", { "exec", "--dir", ".", "--attempt", "1", "--control", "9", "--", "1", "x" }, "'--launch'" },
        { "an unknown option", { GOOD, "--colour", "red", "--", "1", "x" }, "unknown option '--colour'" },
        { "an option without value", { GOOD, "--grace" }, "'--grace' needs a value" },
        { "no steps", { GOOD }, "'--' and the steps are missing" },
        { "no step after --", { GOOD, "--" }, "no step" },
        { "a count that is none", { GOOD, "--", "sh", "-c" }, "step 1: 'sh' is not a count" },
        { "a count of 0", { GOOD, "--", "0" }, "step 1: '0' is not a count" },
        { "a negative count", { GOOD, "--", "-1", "x" }, "'-1' is not a count" },
        { "a huge count", { GOOD, "--", "99999999999999999999", "x" }, "is not a count" },
        { "too few arguments", { GOOD, "--", "3", "a", "b" }, "step 1: 3 arguments announced, 2 there" },
        { "a bad second step", { GOOD, "--", "1", "a", "b" }, "step 2: 'b' is not a count" },
        { "a count at the end", { GOOD, "--", "1", "a", "1" }, "step 2: 1 arguments announced, 0 there" },
        { "an empty program", { GOOD, "--", "1", "" }, "the program's name is empty" },
        { "attempt 0", { GOOD, "--attempt", "0", "--", "1", "x" }, "'--attempt 0': not a number from 1" },
        { "a grace in words", { GOOD, "--grace", "ten", "--", "1", "x" }, "'--grace ten'" },
        { "a tag that is a path", { GOOD, "--launch", "../x", "--", "1", "x" }, "'--launch ../x'" },
        { "an empty tag", { GOOD, "--launch", "", "--", "1", "x" }, "'--launch '" },
        { "stdout as control", { GOOD, "--control", "1", "--", "1", "x" }, "'--control 1'" },
        { "marks without folders",
          { GOOD, "--mark", "x", "--", "1", "x" },
          "'--mark' and '--runs', or '--ids', need each other" },
        { "marks with folders of two kinds",
          { GOOD, "--mark", "x", "--runs", "x", "--ids", "x", "--", "1", "x" },
          "'--ids'" },
        { "an empty text", { GOOD, "--keep", "", "--", "1", "x" }, "'--keep ': empty" },
        { "a closed control", { GOOD, "--control", "987", "--", "1", "x" }, "'--control 987': Bad file descriptor" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_STRV struct strv argv = STRV_INIT;
        strv_add(&argv, b->program);
        for (const char *const *a = cases[i].argv; *a; a++)
            strv_add(&argv, *a);
        struct harness_output o = harness_run(argv.v, HARNESS_MS);
        if (o.code != 2 || !strstr(o.err, cases[i].want) || *o.out || harness_count(o.err, "\n") != 1)
            fail_msg("%s: exit %d, '%s'; want exit 2, '%s'", cases[i].name, o.code, o.err, cases[i].want);
        harness_output_done(&o);
    }
    AUTO_FREE char *lock = harness_read(b->dir, "lock");
    assert_null(lock);
}

static void help_and_version_are_there(void **state)
{
    struct bench *b = *state;
    const char *const verbs[][2] = { { "help", "exec --dir" }, { "version", "pipetune-node " }, { "--help", "exec" } };
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        char *argv[] = { b->program, (char *)(uintptr_t)verbs[i][0], NULL };
        struct harness_output o = harness_run(argv, HARNESS_MS);
        assert_int_equal(o.code, 0);
        assert_non_null(strstr(o.out, verbs[i][1]));
        harness_output_done(&o);
    }
}

/* Says go if it gets that far; the launcher is dead after. False: this build has no failpoints. */
static bool die_at(struct bench *b, const char *point, const char *attempt)
{
    (void)setenv("PIPETUNE_FAILPOINT", point, 1);
    struct node n = start(b, attempt, NULL, WORDS(SH("echo ran >>$D/ran")));
    (void)unsetenv("PIPETUNE_FAILPOINT");
    if (hear(&n))
        (void)send(n.control, "g", 1, MSG_NOSIGNAL);
    int code = end(&n);
    assert_true(code == 137 || code == 0);
    return code == 137;
}

static void killed_anywhere_nothing_runs_twice(void **state)
{
    struct bench *b = *state;
    static const struct {
        const char *point;
        size_t least, most; /* how often the step may have run */
        bool pid, exit;     /* what must be there; a dead launcher cannot tidy up */
    } cases[] = {
        { "node-locked", 0, 0, false, false }, { "node-ready", 0, 0, true, false },
        { "node-go", 0, 0, true, false },      { "node-started", 0, 1, true, false },
        { "node-exited", 1, 1, true, false },  { "node-exit-written", 1, 1, true, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "case%zu", i);
        struct bench one = *b;
        one.dir = harness_path(b->dir, name);
        assert_int_equal(mkdir(one.dir, 0777), 0);
        (void)setenv("D", one.dir, 1);
        if (!die_at(&one, cases[i].point, "1")) {
            print_message("SKIP failpoints: this build has none\n");
            free(one.dir);
            skip();
        }
        assert_all_gone(&one);
        AUTO_FREE char *ran = harness_read(one.dir, "ran"), *pid = harness_read(one.dir, "pid"),
                       *ended = harness_read(one.dir, "exit");
        size_t times = ran ? harness_count(ran, "ran") : 0;
        if (times < cases[i].least || times > cases[i].most || !pid == cases[i].pid || !ended == cases[i].exit)
            fail_msg("%s: ran %zu times, pid %d, exit %d", cases[i].point, times, pid != NULL, ended != NULL);
        run(&one, NULL, WORDS(SH("exit 0"))); /* and the folder is as good as before */
        assert_int_equal(ending_of(&one).attempt, 1);
        free(one.dir);
    }
}

#define NODE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NODE_TEST(ready_names_the_launcher_and_the_log),
        NODE_TEST(end_of_file_before_go_starts_nothing),
        NODE_TEST(another_byte_than_go_starts_nothing),
        NODE_TEST(term_before_go_starts_nothing),
        NODE_TEST(a_locked_folder_is_busy),
        NODE_TEST(a_folder_that_is_not_there_is_an_error),
        NODE_TEST(output_goes_to_the_log_in_order),
        NODE_TEST(output_arrives_while_the_step_runs),
        NODE_TEST(much_output_comes_whole),
        NODE_TEST(an_argument_may_look_like_anything),
        NODE_TEST(two_steps_run_one_after_the_other),
        NODE_TEST(a_failing_step_is_the_last),
        NODE_TEST(a_signal_is_told_from_an_exit_code),
        NODE_TEST(a_program_that_is_not_there_is_named_in_the_log),
        NODE_TEST(what_is_no_program_never_reaches_a_shell),
        NODE_TEST(a_program_is_found_on_the_path),
        NODE_TEST(exit_127_of_a_program_is_its_own),
        NODE_TEST(the_step_gets_only_its_three_descriptors_and_the_lock),
        NODE_TEST(the_step_gets_default_signals),
        NODE_TEST(cpu_and_memory_include_children),
        NODE_TEST(term_to_the_launcher_ends_the_step),
        NODE_TEST(term_to_the_group_lets_the_step_choose_its_code),
        NODE_TEST(after_a_term_no_further_step_starts),
        NODE_TEST(what_ignores_term_is_killed_after_the_grace),
        NODE_TEST(what_a_step_leaves_behind_is_ended),
        NODE_TEST(a_leftover_that_ignores_term_is_killed),
        NODE_TEST(last_words_of_a_leftover_are_kept),
        NODE_TEST(tagged_processes_elsewhere_are_ended),
        NODE_TEST(a_killed_launcher_takes_its_step_along),
        NODE_TEST(hup_and_int_change_nothing),
        NODE_TEST(a_capped_log_keeps_the_newest_lines_and_all_that_is_heard),
        NODE_TEST(of_what_nobody_asked_for_the_beginning_and_the_end_are_heard),
        NODE_TEST(an_endless_line_is_heard_by_its_beginning),
        NODE_TEST(many_lines_a_second_are_all_counted),
        NODE_TEST(a_log_that_cannot_be_rotated_is_bounded_all_the_same),
        NODE_TEST(runs_have_logs_of_their_own),
        NODE_TEST(runs_on_hosts_are_kept_by_their_names),
        NODE_TEST(a_full_disk_pauses_the_step),
        NODE_TEST(a_full_disk_does_not_stop_term),
        NODE_TEST(an_idle_launcher_costs_nothing),
        NODE_TEST(without_a_control_it_begins_at_once),
        NODE_TEST(garbage_command_lines_are_refused),
        NODE_TEST(help_and_version_are_there),
        NODE_TEST(killed_anywhere_nothing_runs_twice),
    };
    return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
