#include "node/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/socket_path.h"
#include "node/args.h"
#include "node/cgroup.h"
#include "node/cpus.h"
#include "node/log.h"
#include "node/port.h"
#include "node/teller.h"

enum {
    EXIT_USAGE = 2,
    EXIT_BUSY = 75,
    CODE_NOT_FOUND = 127, /* as a shell has it */
    CODE_TERMINATED = 128 + SIGTERM,

    TICK_MS = 50,       /* between looks at leftovers, which need not be our children */
    RETRY_MS = 1000,    /* a full disk is tried again this often */
    LEFTOVER_MS = 2000, /* between TERM and KILL for what a step left behind */
    GIVE_UP_MS = 5000,  /* after KILL: what stays is stuck in the kernel or not ours to kill */
    FD_LOCK_IN_CHILD = 3,
    FD_FAIL_IN_CHILD = 4,
    FD_PARKED = 10, /* out of the way of 0…4 while the child puts its descriptors in place */
};

const char exec_usage[] =
    "  exec --dir DIR --attempt N --launch TAG [--control FD] [--cpus LIST] [--folder DIR]\n"
    "       [--memory BYTES] [--log-cap BYTES] [--keep TEXT]… [--step TEXT]… [--mark TEXT --runs DIR | --ids DIR]\n"
    "       [--tell SOCKET --answer LINE] [--gang N] [--grace SECONDS] -- ARGC ARG… [ARGC ARG…]";

/* --- the launcher ----------------------------------------------------------------------------------------------- */

struct launcher {
    const struct args *o;
    pid_t self;
    char boot_id[PROC_BOOT_ID_SIZE];
    uint64_t start_ticks;
    char *pid_path, *tell_path; /* tell_path NULL: it was said where */
    int lock_fd, signal_fd, control_fd;
    struct log log;
    struct teller teller;
    struct cgroup cgroup; /* of the steps */
    struct port port;     /* of one of a gang */
    char unlimited[512];  /* why they have none although they were to; "": as it was to be */

    pid_t step;    /* 0: none runs */
    int step_wait; /* as wait4 gave it, once step is 0 */
    int pipe_fd;   /* its stdout and stderr; -1: none, or at its end */
    int fail_fd;   /* an errno comes through it when the program could not be started */

    bool childless; /* nothing is below us: a subreaper without children has no descendants */
    bool reaped;    /* since it was last cleared */
    bool told_to_end;
    uint64_t kill_at_ms; /* told_to_end: when the grace is over */

    const char *kind; /* how the last step ended, for DIR/exit */
    int code;
    double cpu_s;
    long max_rss_kb;
    size_t leftovers;
    uint64_t oom_kills; /* of this machine, when the steps began */
};

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool grace_is_over(const struct launcher *l)
{
    return l->told_to_end && now_ms() >= l->kill_at_ms;
}

struct pids {
    pid_t *v; /* owned */
    size_t n;
};

/* Signals everything below us; how many there were. When /proc cannot be read the step itself is what we know. */
static size_t signal_below(const struct launcher *l, int sig)
{
    struct pids p = { 0 };
    if (proc_descendants(l->self, &p.v, &p.n) < 0 && l->step > 0)
        (void)kill(l->step, sig); /* ours and not reaped: it is this process */
    for (size_t i = 0; i < p.n; i++)
        (void)kill(p.v[i], sig); /* gone meanwhile, or of another uid: the next pass sees */
    free(p.v);
    return p.n;
}

/* Tagged processes that are not below us: those that somebody else started for the application. Unreadable lists are empty ones. */
static size_t signal_tagged_elsewhere(const struct launcher *l, int sig)
{
    struct pids tagged = { 0 }, below = { 0 };
    (void)proc_tagged(l->o->launch, &tagged.v, &tagged.n);
    if (tagged.n)
        (void)proc_descendants(l->self, &below.v, &below.n);
    size_t n = 0;
    for (size_t i = 0; i < tagged.n; i++) {
        size_t k = 0;
        while (k < below.n && below.v[k] != tagged.v[i])
            k++;
        if (k == below.n && kill(tagged.v[i], sig) == 0)
            n++;
    }
    free(tagged.v);
    free(below.v);
    return n;
}

static void end_requested(struct launcher *l)
{
    if (l->told_to_end)
        return;
    l->told_to_end = true;
    l->kill_at_ms = now_ms() + l->o->grace_s * 1000;
    /* A TERM to the whole group has reached the application already. Who else got it cannot be told, so it is passed on in
     * any case: twice is harmless, never is not. */
    (void)signal_below(l, SIGTERM);
}

static void account(struct launcher *l, const struct rusage *u)
{
    l->cpu_s += (double)u->ru_utime.tv_sec + (double)u->ru_stime.tv_sec +
                (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
    if (u->ru_maxrss > l->max_rss_kb)
        l->max_rss_kb = u->ru_maxrss;
}

static void reap(struct launcher *l)
{
    for (;;) {
        struct rusage usage;
        int how = 0;
        pid_t pid = wait4(-1, &how, WNOHANG, &usage);
        if (pid <= 0) {
            l->childless = pid < 0 && errno == ECHILD;
            return;
        }
        account(l, &usage); /* what it waited for itself is included, so nothing counts twice */
        l->reaped = true;
        if (pid == l->step) {
            l->step = 0;
            l->step_wait = how;
        }
    }
}

static void take_signals(struct launcher *l)
{
    struct signalfd_siginfo info;
    while (read(l->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGTERM)
            end_requested(l);
        else if (info.ssi_signo == SIGUSR1)
            teller_say_stop(&l->teller);
    reap(l); /* several SIGCHLD come as one */
}

/* One chunk from pipe to log. How many bytes, 0 at the end or when there are none now. */
static size_t copy_chunk(struct launcher *l)
{
    static char chunk[LOG_CHUNK];
    ssize_t n = read(l->pipe_fd, chunk, sizeof chunk);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        (void)close(MOVE_FD(l->pipe_fd)); /* it would be readable for ever */
        return 0;
    }
    log_take(&l->log, chunk, (size_t)n);
    log_flush(&l->log);
    return (size_t)n;
}

/* Waits for one thing to happen, at most timeout_ms (-1: no limit), and deals with it. */
static void pump(struct launcher *l, int timeout_ms)
{
    bool stalled = log_busy(&l->log);
    struct pollfd fds[2 + TELLER_FDS] = {
        { .fd = l->signal_fd, .events = POLLIN },
        { .fd = stalled ? -1 : l->pipe_fd, .events = POLLIN },
    };
    teller_wants(&l->teller, fds + 2);
    if (stalled && (timeout_ms < 0 || timeout_ms > RETRY_MS))
        timeout_ms = RETRY_MS;
    (void)poll(fds, stalled ? 2 : ARRAY_LEN(fds), timeout_ms); /* EINTR cannot be: all we handle is blocked */
    if (fds[0].revents)
        take_signals(l);
    if (stalled) {
        log_flush(&l->log);
        return;
    }
    if (fds[1].revents)
        (void)copy_chunk(l);
    if (!log_busy(&l->log))
        teller_serve(&l->teller, fds + 2);
}

static int ms_left(uint64_t until)
{
    uint64_t now = now_ms();
    return now >= until ? 0 : until - now > INT32_MAX ? INT32_MAX : (int)(until - now);
}

/* --- one step --------------------------------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    if (S_ISREG(st.st_mode) && access(path, X_OK) == 0)
        return true;
    errno = EACCES;
    return false;
}

/* Where `name` is, as a shell would find it; execvp() is no use, it gives what it cannot execute to /bin/sh. The caller
 * frees; NULL and errno when there is none. */
static char *find_program(const char *name)
{
    if (strchr(name, '/'))
        return is_program(name) ? strdup(name) : NULL;
    const char *dirs = getenv("PATH");
    int why = ENOENT;
    for (const char *d = dirs ? dirs : "/usr/bin:/bin"; d; d = strchr(d, ':') ? strchr(d, ':') + 1 : NULL) {
        int len = (int)strcspn(d, ":");
        char *path = NULL;
        if (asprintf(&path, "%.*s/%s", len ? len : 1, len ? d : ".", name) < 0)
            return NULL;
        if (is_program(path))
            return path;
        if (errno == EACCES)
            why = EACCES;
        free(path);
    }
    errno = why;
    return NULL;
}

static void default_signals(void)
{
    struct sigaction standard = { .sa_handler = SIG_DFL };
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, &standard, NULL); /* KILL, STOP and libc's own refuse */
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Descriptors 0, 1, 2, the lock, and until exec the one that reports failure: nothing else. */
static int child_descriptors(int lock_fd, int out_fd, int fail_fd)
{
    int in = open("/dev/null", O_RDONLY);
    int parked_in = fcntl(in, F_DUPFD, FD_PARKED), parked_out = fcntl(out_fd, F_DUPFD, FD_PARKED);
    int parked_lock = fcntl(lock_fd, F_DUPFD, FD_PARKED), parked_fail = fcntl(fail_fd, F_DUPFD, FD_PARKED);
    if (in < 0 || parked_in < 0 || parked_out < 0 || parked_lock < 0 || parked_fail < 0)
        return -1;
    if (dup2(parked_in, STDIN_FILENO) < 0 || dup2(parked_out, STDOUT_FILENO) < 0 ||
        dup2(parked_out, STDERR_FILENO) < 0 || dup2(parked_lock, FD_LOCK_IN_CHILD) < 0 ||
        dup3(parked_fail, FD_FAIL_IN_CHILD, O_CLOEXEC) < 0)
        return -1;
    return close_range(FD_FAIL_IN_CHILD + 1, ~0U, 0);
}

static void __attribute__((noreturn))
child(const struct launcher *l, const char *path, char **argv, int out_fd, int fail_fd)
{
    /* A launcher killed outright takes its step along. If it died before this call, we have another parent by now. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != l->self)
        _exit(CODE_NOT_FOUND);
    int report = fail_fd;
    errno = l->cgroup.fd < 0 ? 0 : -cgroup_enter(&l->cgroup); /* without its limit it does not run: nobody would know */
    if (errno == 0 && child_descriptors(l->lock_fd, out_fd, fail_fd) == 0) {
        report = FD_FAIL_IN_CHILD;
        default_signals();
        if (!l->o->folder || chdir(l->o->folder) == 0)
            (void)execv(path, argv);
    }
    int why = errno;
    (void)io_write_all(report, &why, sizeof why); /* the exit code says it less well */
    _exit(CODE_NOT_FOUND);
}

struct pipe_ends {
    int from, to;
};

static int pipe_open(struct pipe_ends *out)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) { /* our end only: the application gets an ordinary pipe */
        int rc = -errno;
        (void)close(fds[0]), (void)close(fds[1]);
        return rc;
    }
    *out = (struct pipe_ends){ .from = fds[0], .to = fds[1] };
    return 0;
}

/* 0 and l->step, l->pipe_fd, l->fail_fd are set; or -errno and nothing runs. */
static int spawn(struct launcher *l, char **argv)
{
    AUTO_FREE char *path = find_program(argv[0]);
    if (!path)
        return -errno;
    struct pipe_ends out = { -1, -1 }, fail = { -1, -1 };
    int rc = pipe_open(&out);
    if (rc == 0)
        rc = pipe_open(&fail);
    AUTO_CLOSE int out_from = out.from, out_to = out.to, fail_from = fail.from, fail_to = fail.to;
    if (rc < 0)
        return rc;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        child(l, path, argv, out_to, fail_to);
    l->step = pid;
    l->pipe_fd = MOVE_FD(out_from);
    l->fail_fd = MOVE_FD(fail_from);
    return 0;
}

static void not_started(struct launcher *l, const char *program, int why)
{
    log_note(&l->log, "cannot start '%s': %s", program, strerror(why));
    log_flush(&l->log);
    l->kind = "not-started";
    l->code = CODE_NOT_FOUND;
}

static void wait_for_step(struct launcher *l)
{
    while (l->step > 0) {
        if (grace_is_over(l))
            (void)signal_below(l, SIGKILL);
        pump(l, !l->told_to_end ? -1 : grace_is_over(l) ? RETRY_MS : ms_left(l->kill_at_ms));
    }
}

/* Returns early when a child has ended, so that a step without leftovers costs no tick. */
static void pump_tick(struct launcher *l)
{
    uint64_t until = now_ms() + TICK_MS;
    l->reaped = false;
    while (!l->reaped && ms_left(until) > 0)
        pump(l, ms_left(until));
}

/* Ends what the step left behind: TERM, then KILL; reaped by us, as everything below us is in the end. */
static void end_leftovers(struct launcher *l)
{
    uint64_t kill_at = now_ms() + LEFTOVER_MS, give_up = kill_at + GIVE_UP_MS;
    for (int sig = SIGTERM;; sig = 0) {
        if (grace_is_over(l) || now_ms() >= kill_at)
            sig = SIGKILL; /* each time round: what was born meanwhile too */
        reap(l);
        size_t n = signal_tagged_elsewhere(l, sig);
        if (!l->childless)
            n += signal_below(l, sig);
        if (n == 0 && l->childless)
            return;
        if (n > l->leftovers)
            l->leftovers = n;
        if (now_ms() >= give_up) {
            log_note(&l->log, "%zu processes of this attempt do not end", n);
            return;
        }
        pump_tick(l);
    }
}

/* Lets the log have everything that was decided on, or gives it up when the time is over. */
static void settle_log(struct launcher *l)
{
    log_flush(&l->log);
    while (log_busy(&l->log) && !grace_is_over(l))
        pump(l, RETRY_MS);
    if (log_busy(&l->log))
        log_lose(&l->log, -ENOSPC);
}

/* Takes what is still in the pipe. Someone we could not end may hold it open and go on writing, so it is what is there
 * now, not up to the end of file. */
static void drain(struct launcher *l)
{
    int left = 0;
    if (l->pipe_fd < 0 || ioctl(l->pipe_fd, FIONREAD, &left) < 0)
        return;
    while (left > 0 && l->pipe_fd >= 0) {
        settle_log(l);
        size_t n = copy_chunk(l);
        if (n == 0)
            return;
        left -= (int)n;
    }
}

/* All that was told before the end, as long as the disk takes it. */
static void drain_told(struct launcher *l)
{
    while (teller_drain(&l->teller) && log_busy(&l->log))
        settle_log(l);
}

static void how_it_ended(struct launcher *l, const char *program)
{
    int why = 0;
    if (read(l->fail_fd, &why, sizeof why) == (ssize_t)sizeof why) {
        not_started(l, program, why);
    } else if (WIFSIGNALED(l->step_wait)) {
        l->kind = "signalled";
        l->code = 128 + WTERMSIG(l->step_wait);
    } else {
        l->kind = "exited";
        l->code = WEXITSTATUS(l->step_wait);
    }
}

static void run_step(struct launcher *l, char **argv)
{
    int rc = spawn(l, argv);
    if (rc < 0) {
        not_started(l, argv[0], -rc);
        return;
    }
    failpoint("node-started");
    wait_for_step(l);
    size_t before = l->leftovers;
    l->leftovers = 0;
    end_leftovers(l);
    l->leftovers += before;
    drain(l);
    settle_log(l);
    drain_told(l);
    log_take_end(&l->log);
    settle_log(l);
    how_it_ended(l, argv[0]);
    settle_log(l);
    own_close(&l->pipe_fd);
    own_close(&l->fail_fd);
    l->pipe_fd = l->fail_fd = -1;
}

static void run_steps(struct launcher *l)
{
    for (size_t i = 0; i < l->o->n_steps; i++) {
        take_signals(l);
        if (l->told_to_end) {
            l->kind = "not-started";
            l->code = CODE_TERMINATED;
            return;
        }
        run_step(l, l->o->steps[i].argv);
        if (l->code != 0)
            return;
    }
}

/* --- before and after the steps ---------------------------------------------------------------------------------- */

/* Whatever our parent ignored or blocked, TERM and CHLD must come through the descriptor. */
static int open_signals(struct launcher *l, struct err *e)
{
    static const int ignored[] = { SIGHUP, SIGINT, SIGPIPE, SIGXFSZ };
    default_signals();
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    sigset_t ours;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGTERM);
    (void)sigaddset(&ours, SIGCHLD);
    (void)sigaddset(&ours, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &ours, NULL);
    l->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return l->signal_fd < 0 ? err_sys(e, -errno, "cannot receive signals") : 0;
}

static int lead_session(bool with_parent, struct err *e)
{
    if (setsid() < 0 && getsid(0) != getpid() && with_parent) /* a batch system has its own */
        return err_sys(e, -errno, "cannot start a session of its own");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return err_sys(e, -errno, "cannot become subreaper");
    return 0;
}

static int take_lock(struct launcher *l, struct err *e)
{
    AUTO_FREE char *path = io_join(l->o->dir, "lock");
    if (!path)
        return err_sys(e, -ENOMEM, "cannot lock '%s'", l->o->dir);
    l->lock_fd = ours_open(path, O_RDWR | O_CREAT, e); /* the child dups it without close-on-exec */
    if (l->lock_fd < 0)
        return l->lock_fd;
    if (flock(l->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? -EBUSY : err_sys(e, -errno, "cannot lock '%s'", path);
}

static int write_pid(struct launcher *l, struct err *e)
{
    int rc = proc_boot_id(l->boot_id);
    if (rc == 0)
        rc = proc_start_ticks(l->self, &l->start_ticks);
    if (rc < 0)
        return err_sys(e, rc, "cannot read /proc");
    l->pid_path = io_join(l->o->dir, "pid");
    AUTO_FREE char *text = NULL;
    if (!l->pid_path || asprintf(&text, "%s %ld %" PRIu64 " %" PRIu64 " %s\n", l->boot_id, (long)l->self,
                                 l->start_ticks, l->o->attempt, l->o->launch) < 0) {
        text = NULL;
        return err_sys(e, -ENOMEM, "cannot write the pid file");
    }
    return io_write_atomic(l->pid_path, text, strlen(text), 0600, e);
}

static void remove_pid(const struct launcher *l)
{
    if (l->pid_path)
        (void)unlink(l->pid_path); /* a stale one names a process that is not: readers check */
}

static int open_teller(struct launcher *l, struct err *e)
{
    const char *path = l->o->tell;
    int rc = strcmp(path, "-") == 0 ? socket_path(&l->tell_path, l->o->launch, e) : 0;
    if (rc < 0)
        return rc;
    path = l->tell_path ? l->tell_path : path;
    if (setenv("PIPETUNE_TELL", path, 1) < 0)
        return err_sys(e, -errno, "cannot set PIPETUNE_TELL");
    return teller_open(&l->teller, path, l->o->answer, &l->log, e);
}

static const char *cgroup_root(void)
{
#ifdef PIPETUNE_FAILPOINTS
    const char *root = getenv("PIPETUNE_CGROUP_ROOT");
    if (root)
        return root;
#endif
    return "/sys/fs/cgroup";
}

/* Where there can be none it is told, and they run without. */
static void open_cgroup(struct launcher *l)
{
    struct err why;
    if (l->o->memory && cgroup_open(&l->cgroup, "/proc", cgroup_root(), l->o->launch, l->o->memory, &why) < 0)
        (void)snprintf(l->unlimited, sizeof l->unlimited, "%s", why.text);
}

static int prepare(struct launcher *l, struct err *e)
{
    int rc = lead_session(l->control_fd >= 0, e);
    if (rc == 0)
        rc = open_signals(l, e);
    if (rc == 0)
        rc = ours_dir_check(l->o->dir, e);
    if (rc == 0)
        rc = take_lock(l, e);
    if (rc < 0)
        return rc;
    failpoint("node-locked");
    if (setenv("PIPETUNE_LAUNCH", l->o->launch, 1) < 0)
        return err_sys(e, -errno, "cannot set PIPETUNE_LAUNCH");
    rc = log_open(&l->log, l->o, e);
    if (rc == 0 && l->o->tell)
        rc = open_teller(l, e);
    if (rc == 0 && l->o->gang)
        rc = port_take(&l->port, e);
    if (rc == 0)
        open_cgroup(l);
    return rc < 0 ? rc : write_pid(l, e);
}

/* 0 or -errno. */
static int __attribute__((format(printf, 2, 3))) say(const struct launcher *l, const char *fmt, ...)
{
    char line[1200];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof line) {
        n = (int)sizeof line - 1;
        line[n - 1] = '\n';
    }
    return io_write_all(l->control_fd < 0 ? STDERR_FILENO : l->control_fd, line, (size_t)n);
}

/* In the place of a word or a variable's text that is there as long as we are. */
static bool fill_word(char **word, const int *ports, size_t n)
{
    if (strstr(*word, "{port."))
        *word = ports_fill(*word, ports, n);
    return *word != NULL;
}

/* What comes behind the go of one of a gang. It is sent as a whole, so that nobody is waited for. */
static bool take_ports(struct launcher *l)
{
    char text[PORTS_TEXT_MAX] = "";
    int ports[PORTS_MAX];
    size_t len = 0, n = (size_t)l->o->gang;
    while (len + 1 < sizeof text && read(l->control_fd, text + len, 1) == 1 && text[len] != '\n')
        len++;
    text[len] = '\0';
    bool ok = ports_read(ports, n, text) == 0;
    for (size_t i = 0; ok && i < l->o->n_steps; i++)
        for (char **word = l->o->steps[i].argv; ok && *word; word++)
            ok = fill_word(word, ports, n);
    for (char **variable = environ; ok && *variable; variable++)
        ok = fill_word(variable, ports, n);
    return ok;
}

static bool told_to_go(struct launcher *l)
{
    struct pollfd fds[] = {
        { .fd = l->control_fd, .events = POLLIN },
        { .fd = l->signal_fd, .events = POLLIN },
    };
    for (;;) {
        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            return false;
        if (fds[1].revents)
            take_signals(l);
        if (l->told_to_end)
            return false;
        if (!fds[0].revents)
            continue;
        char byte = 0;
        ssize_t n = read(l->control_fd, &byte, 1);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        return n == 1 && byte == 'g' && (!l->o->gang || take_ports(l));
    }
}

/* Whoever started us may wait for the end of its pipes: from now on we hold none of them. */
static void let_go_of_parent(struct launcher *l)
{
    if (l->control_fd >= 0)
        (void)close(MOVE_FD(l->control_fd));
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        (void)dup2(null, fd);
}

static int write_exit(struct launcher *l)
{
    AUTO_FREE char *path = io_join(l->o->dir, "exit");
    AUTO_FREE char *text = NULL;
    char kills[40] = "";
    uint64_t n = 0;
    if (cgroup_kills(&l->cgroup, &n))
        (void)snprintf(kills, sizeof kills, " memory_kills=%" PRIu64, n);
    if (!path || asprintf(&text,
                          "attempt=%" PRIu64 " launch=%s kind=%s code=%d log_end=%" PRIu64
                          " cpu_s=%.3f max_rss_kb=%ld leftovers=%zu oom_kills=%" PRIu64 "%s boot_ms=%" PRId64 "\n",
                          l->o->attempt, l->o->launch, l->kind, l->code, log_size(&l->log), l->cpu_s, l->max_rss_kb,
                          l->leftovers, proc_oom_kills() - l->oom_kills, kills, clock_boot_ms()) < 0) {
        text = NULL;
        return -ENOMEM;
    }
    for (;;) {
        int rc = io_write_atomic(path, text, strlen(text), 0600, NULL);
        if (!log_disk_may_recover(rc) || grace_is_over(l))
            return rc;
        uint64_t until = now_ms() + RETRY_MS;
        while (ms_left(until) > 0 && !grace_is_over(l))
            pump(l, ms_left(until));
    }
}

static int finish(struct launcher *l)
{
    if (l->log.lost > 0) {
        log_note(&l->log, "%" PRIu64 " bytes of output were lost: %s", l->log.lost, strerror(-l->log.lost_why));
        log_flush(&l->log); /* the last try */
    }
    failpoint("node-exited");
    if (write_exit(l) < 0)
        return EXIT_FAILURE; /* the pid file stays: an attempt whose end nobody wrote down */
    failpoint("node-exit-written");
    remove_pid(l);
    return EXIT_SUCCESS;
}

static int launch(struct launcher *l)
{
    struct err e = { 0 };
    int rc = prepare(l, &e);
    if (rc == -EBUSY) {
        (void)say(l, "busy\n"); /* the exit code says it too */
        return EXIT_BUSY;
    }
    if (rc < 0) {
        remove_pid(l); /* it may be there although syncing it failed */
        (void)say(l, "error %s\n", e.text);
        return EXIT_FAILURE;
    }
    char port[24] = "";
    bool asks = l->control_fd >= 0;
    if (l->port.number)
        (void)snprintf(port, sizeof port, " port=%d", l->port.number);
    rc = !asks ? 0
               : say(l, "ready %s %ld %" PRIu64 " %" PRIu64 "%s%s%s\n", l->boot_id, (long)l->self, l->start_ticks,
                     log_heard_size(&l->log), port, l->unlimited[0] ? " " : "", l->unlimited);
    failpoint("node-ready");
    if (rc < 0 || (asks && !told_to_go(l))) { /* who has not heard of us will not answer */
        remove_pid(l);
        return EXIT_SUCCESS;
    }
    failpoint("node-go");
    let_go_of_parent(l);
    l->oom_kills = proc_oom_kills();
    run_steps(l);
    return finish(l);
}

/* Nothing of our parent's but the control descriptor; and 0, 1, 2 are there, so that no file of ours becomes one of them. */
static void own_descriptors(int control)
{
    if (control > ARGS_FD_FIRST)
        (void)close_range(ARGS_FD_FIRST, (unsigned)control - 1, 0);
    (void)close_range(control < ARGS_FD_FIRST ? ARGS_FD_FIRST : (unsigned)control + 1, ~0U, 0);
    int fd = 0;
    while (fd >= 0 && fd < ARGS_FD_FIRST)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0)
        (void)close(fd);
}

/* What it starts inherits it. CPUs that are gone, or none at all, hold nobody up. */
static void hold_to(const char *cpus)
{
    struct mask m = mask_parse(cpus ? cpus : "");
    if (cpus)
        (void)sched_setaffinity(0, sizeof m, (const cpu_set_t *)(const void *)m.w);
}

int exec_run(int argc, char **argv)
{
    struct args o;
    struct err e = { 0 };
    int code = EXIT_USAGE;
    if (args_parse(&o, argc, argv, &e) < 0) {
        fprintf(stderr, "pipetune-node exec: %s: see 'pipetune-node help'\n", e.text);
    } else {
        own_descriptors((int)o.control);
        struct launcher l = { .o = &o,
                              .self = getpid(),
                              .lock_fd = -1,
                              .signal_fd = -1,
                              .control_fd = o.control ? (int)o.control : -1,
                              .log = LOG_CLOSED,
                              .cgroup = CGROUP_NONE,
                              .pipe_fd = -1,
                              .fail_fd = -1,
                              .kind = "not-started" };
        hold_to(o.cpus);
        code = launch(&l);
        teller_close(&l.teller);
        cgroup_close(&l.cgroup);
        port_give_back(&l.port);
        log_done(&l.log);
        free(l.pid_path);
        free(l.tell_path);
    }
    args_done(&o);
    return code;
}
