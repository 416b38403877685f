#include "node/launches.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/beneath.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/socket_path.h"
#include "base/strv.h"
#include "base/wire.h"
#include "node/folder.h"
#include "node/members.h"
#include "node/port.h"
#include "node/talk.h"

enum { NOTE_MAX = 4096, ALIVE_MS = 1000 };

static const char session_name[] = "session"; /* in the folder of a session and of its runs: whose they are */
static const char files_name[] = "files";     /* what drivers have sent, by what is in it: ROOT/files is no launch's */

/* --- folders ---------------------------------------------------------------------------------------------------------- */

char *launches_root(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    AUTO_FREE char *base = state && *state == '/' ? strdup(state)
                           : home && *home == '/' ? io_join(home, ".local/state")
                                                  : NULL;
    return base ? io_join(base, "pipetune") : NULL;
}

static int find_root(struct launches *l, struct err *e)
{
    if (l->root)
        return 0;
    AUTO_FREE char *root = launches_root();
    if (!root)
        return err_set(e, -ENOENT, "there is no place for launches: neither XDG_STATE_HOME nor HOME is set");
    AUTO_FREE char *base = io_dirname(root);
    int rc = base ? io_mkdirs(base, e) : err_sys(e, -ENOMEM, "launches");
    if (rc == 0)
        rc = ours_dir(root, e);
    if (rc == 0)
        l->root = MOVE_PTR(root);
    return rc;
}

/* ROOT/TAG/name, or ROOT/TAG. NULL: memory. */
static char *path_of(const struct launches *l, const char *tag, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s%s%s", l->root, tag, name ? "/" : "", name ? name : "") < 0 ? NULL : path;
}

/* A file of a launch. The descriptor, or -errno. */
static int open_file(const struct launches *l, const char *tag, const char *name, int flags)
{
    AUTO_FREE char *path = path_of(l, tag, name);
    return path ? ours_open(path, flags, NULL) : -ENOMEM;
}

static int64_t size_of(const struct launches *l, const char *tag, const char *name)
{
    struct stat st;
    AUTO_FREE char *path = path_of(l, tag, name);
    return path && lstat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

/* A short file's first line. False: there is none. */
static bool read_line(const struct launches *l, const char *tag, const char *name, char *out, size_t size)
{
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *path = path_of(l, tag, name);
    if (!path || ours_read(&text, path, NOTE_MAX, NULL) < 0)
        return false;
    (void)snprintf(out, size, "%.*s", (int)strcspn(buf_text(&text), "\n"), buf_text(&text));
    return *out;
}

/* --- the table -------------------------------------------------------------------------------------------------------- */

static struct launch *find(struct launches *l, const char *tag)
{
    for (size_t i = 0; i < LAUNCHES_MAX; i++)
        if (strcmp(l->v[i].tag, tag) == 0)
            return &l->v[i];
    return NULL;
}

static void drop(struct launch *x)
{
    if (x->control >= 0)
        (void)close(x->control);
    if (x->pidfd >= 0)
        (void)close(x->pidfd);
    talk_done(&x->talk);
    memset(x, 0, sizeof *x);
}

static int add(struct launches *l, const char *tag, struct launch **out, struct err *e)
{
    struct launch *x = find(l, tag);
    if (!x && (x = find(l, "")))
        *x = (struct launch){ .control = -1, .pidfd = -1, .talk = TALK_NONE };
    if (!x)
        return err_set(e, -ENOSPC, "%d launches are followed already", LAUNCHES_MAX);
    (void)snprintf(x->tag, sizeof x->tag, "%s", tag);
    *out = x;
    return 0;
}

void launches_done(struct launches *l)
{
    for (size_t i = 0; i < LAUNCHES_MAX; i++)
        if (l->v[i].tag[0])
            drop(&l->v[i]);
    if (l->root)
        blobs_done(&l->blobs, l->root);
    free(l->root);
    l->root = NULL;
}

/* --- starting --------------------------------------------------------------------------------------------------------- */

/* The texts of a list are appended, each behind `option` when there is one. */
static int put_list(struct strv *to, const char *option, const char *list, const char *what, struct err *e)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    int rc = list ? base64_read(&bytes, list) : 0;
    if (rc < 0 || (bytes.len > 0 && bytes.data[bytes.len - 1] != '\0'))
        return err_set(e, -EINVAL, "'%s' must be base 64 of texts that end in a NUL", what);
    for (size_t at = 0; at < bytes.len; at += strlen(bytes.data + at) + 1) {
        if (option)
            strv_add(to, option);
        strv_add(to, bytes.data + at);
    }
    return 0;
}

static void put_cpus(struct strv *argv, const struct cpus *cpus)
{
    AUTO_BUF struct buf text = BUF_INIT;
    for (int i = 0; i < cpus->n; i++)
        buf_printf(&text, "%s%d", i ? "," : "", cpus->v[i]);
    if (cpus->n == 0)
        return;
    strv_add(argv, "--cpus");
    strv_add(argv, buf_text(&text));
    argv->failed |= text.failed;
}

static int put_tell(struct strv *argv, const struct launch_ask *a, struct err *e)
{
    AUTO_FREE char *path = NULL;
    int rc = a->answer ? socket_path(&path, a->tag, e) : 0;
    if (rc < 0 || !a->answer)
        return rc;
    strv_add(argv, "--tell");
    strv_add(argv, path);
    strv_add(argv, "--answer");
    strv_add(argv, a->answer);
    return 0;
}

/* Where its runs are: beside it. */
static void put_mark(struct strv *argv, const struct launch_ask *a, const char *root)
{
    if (!a->mark)
        return;
    strv_add(argv, "--mark");
    strv_add(argv, a->mark);
    strv_add(argv, "--ids");
    strv_add(argv, root);
}

static int make_argv(struct strv *argv, const struct launch_ask *a, const char *root, const char *dir, int control,
                     struct err *e)
{
    strv_add(argv, "pipetune-node");
    strv_add(argv, "exec");
    strv_add(argv, "--dir");
    strv_add(argv, dir);
    strv_add(argv, "--attempt");
    strv_addf(argv, "%" PRId64, a->attempt);
    strv_add(argv, "--launch");
    strv_add(argv, a->tag);
    strv_add(argv, "--control");
    strv_addf(argv, "%d", control);
    put_cpus(argv, a->cpus);
    if (a->log_cap > 0) {
        strv_add(argv, "--log-cap");
        strv_addf(argv, "%" PRId64, a->log_cap);
    }
    if (a->memory > 0) {
        strv_add(argv, "--memory");
        strv_addf(argv, "%" PRId64, a->memory);
    }
    if (a->gang > 0) {
        strv_add(argv, "--gang");
        strv_addf(argv, "%" PRId64, a->gang);
    }
    put_mark(argv, a, root);
    int rc = put_tell(argv, a, e);
    if (rc == 0)
        rc = put_list(argv, "--keep", a->keep, "keep", e);
    if (rc == 0)
        rc = put_list(argv, "--step", a->step, "step", e);
    strv_add(argv, "--");
    if (rc == 0)
        rc = put_list(argv, NULL, a->steps, "steps", e);
    return rc == 0 && argv->failed ? err_sys(e, -ENOMEM, "launch '%s'", a->tag) : rc;
}

static bool has_name(const struct strv *env, size_t n, const char *like)
{
    size_t len = strcspn(like, "=") + 1;
    for (size_t i = 0; i < n; i++)
        if (strncmp(env->v[i], like, len) == 0)
            return true;
    return false;
}

/* What is given, and of our own what is not. A session is told where its socket is to be: that is ours to say. */
static int make_env(struct strv *env, const struct launch_ask *a, struct err *e)
{
    AUTO_FREE char *socket = NULL;
    int rc = a->mark ? socket_path(&socket, a->tag, e) : 0;
    if (socket)
        strv_addf(env, "PIPETUNE_SESSION=%s", socket);
    if (rc == 0)
        rc = put_list(env, NULL, a->env, "env", e);
    size_t given = env->n;
    for (size_t i = 0; rc == 0 && i < given; i++) {
        const char *equals = strchr(env->v[i], '=');
        if (!equals || equals == env->v[i])
            return err_set(e, -EINVAL, "'env' must be NAME=VALUE, not '%.40s'", env->v[i]);
    }
    for (char **v = environ; rc == 0 && *v; v++)
        if (!has_name(env, given, *v))
            strv_add(env, *v);
    return rc == 0 && env->failed ? err_sys(e, -ENOMEM, "launch '%s'", a->tag) : rc;
}

/* ROOT/TAG/name, which is made. NULL: it could not be. */
static char *make_folder(const struct launches *l, const char *tag, const char *name, struct err *e)
{
    AUTO_FREE char *path = path_of(l, tag, name);
    int rc = path ? ours_dir(path, e) : err_sys(e, -ENOMEM, "launch '%s'", tag);
    return rc == 0 ? MOVE_PTR(path) : NULL;
}

static int write_session(const struct launches *l, const char *tag, const char *session, struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT;
    AUTO_CLOSE int fd = open_file(l, tag, session_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    buf_printf(&line, "%s\n", session);
    int rc = fd < 0 ? fd : line.failed ? -ENOMEM : io_write_all(fd, line.data, line.len);
    return rc < 0 ? err_sys(e, rc, "launch '%s'", tag) : 0;
}

/* The folder that it runs in, in *out. What is made is taken away again when the launch does not come about. */
static int make_folders(const struct launches *l, const struct launch_ask *a, char **out, struct err *e)
{
    AUTO_FREE char *note = path_of(l, a->tag, "exit");
    if (!note)
        return err_sys(e, -ENOMEM, "launch '%s'", a->tag);
    if (io_exists(note))
        return err_set(e, -EEXIST, "'%s' was launched already", a->tag);
    int rc = blobs_room(l->root, LAUNCHES_ROOM, e);
    AUTO_FREE char *dir = rc == 0 ? make_folder(l, a->tag, NULL, e) : NULL;
    AUTO_FREE char *written = dir ? make_folder(l, a->tag, "checkpoint", e) : NULL;
    AUTO_FREE char *work = written ? make_folder(l, a->tag, "work", e) : NULL;
    if (!work)
        return e->code;
    rc = a->files ? blobs_unpack(l->root, a->files, dir, e) : 0;
    if (rc == 0 && a->mark)
        rc = write_session(l, a->tag, a->tag, e);
    if (rc == 0)
        *out = MOVE_PTR(work);
    return rc;
}

static void __attribute__((noreturn)) child(int control, const char *work, char **argv, char **env)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        (void)dup2(null, fd); /* what we talk to the driver through is not for it */
    if (null >= 0 && chdir(work) == 0 && fcntl(control, F_SETFD, 0) == 0)
        (void)execve("/proc/self/exe", argv, env);
    _exit(127); /* which is told as the end of a launcher that said nothing */
}

static int spawn(struct launch *x, const char *work, struct strv *argv, struct strv *env, const int pair[2],
                 struct err *e)
{
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "cannot launch '%s'", x->tag);
    if (pid == 0)
        child(pair[1], work, argv->v, env->v);
    x->pid = pid;
    x->ours = true;
    x->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* not waited for yet: it is this process */
    return x->pidfd < 0 ? err_sys(e, -errno, "cannot watch process %ld", (long)pid) : 0;
}

static int start(struct launches *l, struct launch *x, const struct launch_ask *a, struct err *e)
{
    AUTO_STRV struct strv argv = STRV_INIT, env = STRV_INIT;
    AUTO_FREE char *dir = path_of(l, a->tag, NULL);
    AUTO_FREE char *work = NULL;
    int pair[2];
    if (!dir)
        return err_sys(e, -ENOMEM, "launch '%s'", a->tag);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, -errno, "cannot launch '%s'", a->tag);
    x->control = pair[0];
    AUTO_CLOSE int theirs = pair[1];
    int rc = make_argv(&argv, a, l->root, dir, theirs, e);
    if (rc == 0)
        rc = make_env(&env, a, e);
    if (rc == 0)
        rc = make_folders(l, a, &work, e);
    return rc < 0 ? rc : spawn(x, work, &argv, &env, pair, e);
}

int launches_start(struct launches *l, const struct launch_ask *a, struct err *e)
{
    struct launch *x = NULL;
    int rc = find_root(l, e);
    if (rc == 0 && find(l, a->tag))
        rc = err_set(e, -EEXIST, "'%s' was launched already", a->tag);
    if (rc == 0)
        rc = add(l, a->tag, &x, e);
    if (rc < 0)
        return rc;
    rc = start(l, x, a, e);
    if (rc < 0) {
        drop(x); /* a launcher without a go ends by itself */
        if (rc != -EEXIST)
            (void)launches_forget(l, a->tag, NULL); /* what stays is a folder */
    }
    return rc;
}

int launches_go(struct launches *l, const char *tag, const char *ports, struct err *e)
{
    char word[PORTS_TEXT_MAX + 2];
    struct launch *x = find(l, tag);
    if (!x || x->control < 0 || strncmp(x->line, "ready ", 6) != 0)
        return err_set(e, -ESRCH, "'%s' waits for no go", tag);
    int len = snprintf(word, sizeof word, "g%s%s", ports ? ports : "", ports ? "\n" : "");
    if (len >= (int)sizeof word)
        return err_set(e, -EINVAL, "'ports' are more than %d", PORTS_MAX);
    ssize_t n = send(x->control, word, (size_t)len, MSG_NOSIGNAL);
    (void)close(MOVE_FD(x->control)); /* where it did not arrive it has ended, and that is told */
    return n == len ? 0 : err_sys(e, -errno, "'%s'", tag);
}

/* --- what there is ---------------------------------------------------------------------------------------------------- */

const char *launch_state_name(enum launch_state s)
{
    static const char *const names[] = { "none", "waiting", "running", "ended", "cut" };
    return names[s];
}

/* Is this very process the launcher of the tag? */
static bool is_launcher(const struct launch_facts *f, const char *tag)
{
    return f->pid > 1 && proc_is(f->pid, f->start_ticks, f->boot_id) && proc_has_words(f->pid, "--launch", tag);
}

/* Whose launcher it has: of a run its session's. */
static const char *launcher_of(const struct launches *l, const char *tag, char session[65])
{
    return read_line(l, tag, session_name, session, 65) && members_tag_is_valid(session) ? session : tag;
}

static bool is_session(const struct launches *l, const char *tag)
{
    char session[65];
    return read_line(l, tag, session_name, session, sizeof session) && strcmp(session, tag) == 0;
}

static void look_at(const struct launches *l, const char *tag, struct launch_facts *out)
{
    char line[256], session[65];
    const char *launcher = launcher_of(l, tag, session);
    long pid = 0;
    AUTO_FREE char *dir = path_of(l, tag, NULL);
    *out = (struct launch_facts){ .state = dir && ours_is_dir(dir) ? LAUNCH_CUT : LAUNCH_NONE };
    if (out->state == LAUNCH_NONE)
        return;
    out->served = strcmp(launcher, tag) != 0;
    out->heard = size_of(l, tag, "heard");
    out->log = size_of(l, tag, "log");
    if (read_line(l, launcher, "pid", line, sizeof line) &&
        sscanf(line, "%36s %ld %" SCNu64, out->boot_id, &pid, &out->start_ticks) == 3) {
        out->pid = (pid_t)pid;
        if (is_launcher(out, launcher))
            out->state = LAUNCH_RUNNING;
    }
    /* Asked last: the note is written before the launcher ends. */
    if (out->state == LAUNCH_CUT && read_line(l, launcher, "exit", out->note, sizeof out->note))
        out->state = LAUNCH_ENDED;
    const char *boot = strstr(out->note, " boot_ms=");
    int64_t ago_ms = boot ? clock_boot_ms() - strtoll(boot + strlen(" boot_ms="), NULL, 10) : -1;
    out->ago_ms = ago_ms >= 0 ? ago_ms : -1; /* of another boot: not known */
}

/* Follows one that an earlier helper started. */
static int follow(struct launches *l, const char *tag, const struct launch_facts *f, struct err *e)
{
    char session[65];
    struct launch *x = NULL;
    int rc = add(l, tag, &x, e);
    if (rc < 0 || x->pidfd >= 0 || f->state != LAUNCH_RUNNING)
        return rc;
    x->pid = f->pid;
    x->pidfd = (int)syscall(SYS_pidfd_open, f->pid, 0);
    /* Asked after the pidfd is open, so that it cannot stand for a later process of that number. */
    if (x->pidfd >= 0 && is_launcher(f, launcher_of(l, tag, session)))
        return 0;
    rc = x->pidfd < 0 ? -errno : -ESRCH;
    drop(x);
    return rc == -ESRCH ? 0 : err_sys(e, rc, "cannot watch process %ld", (long)f->pid);
}

int launches_adopt(struct launches *l, const char *tag, struct launch_facts *out, struct err *e)
{
    const struct launch *x = find(l, tag);
    int rc = find_root(l, e);
    if (rc < 0)
        return rc;
    look_at(l, tag, out);
    if (x && x->control >= 0)
        out->state = LAUNCH_WAITING;
    if (out->state != LAUNCH_RUNNING)
        return 0;
    rc = follow(l, tag, out, e);
    if (rc == 0 && !find(l, tag)) /* it has ended this moment */
        look_at(l, tag, out);
    return rc;
}

int launches_tail(struct launches *l, const char *tag, int64_t from, int64_t credit, int64_t accounted, struct err *e)
{
    struct launch_facts f;
    struct launch *x = NULL;
    int rc = find_root(l, e);
    if (rc < 0)
        return rc;
    look_at(l, tag, &f);
    if (f.state == LAUNCH_NONE)
        return err_set(e, -ESRCH, "there is no launch '%s'", tag);
    AUTO_CLOSE int fd = accounted > 0 ? open_file(l, tag, "heard", O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) /* where the file system cannot, it takes more room, and nothing else */
        (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        (off_t)(accounted < f.heard ? accounted : f.heard));
    rc = add(l, tag, &x, e);
    if (rc < 0)
        return rc;
    x->from = from;
    x->credit = credit;
    if (credit == 0 && x->pidfd < 0)
        drop(x);
    return 0;
}

int launches_signal(struct launches *l, const char *tag, bool hard, struct err *e)
{
    struct launch_facts f;
    char session[65];
    int rc = find_root(l, e);
    if (rc < 0)
        return rc;
    look_at(l, tag, &f);
    if (f.state == LAUNCH_NONE)
        return err_set(e, -ESRCH, "there is no launch '%s'", tag);
    if (f.state == LAUNCH_RUNNING) {
        if (hard)
            (void)proc_kill_session(f.pid, SIGKILL);  /* children in groups of their own too */
        (void)kill(-f.pid, hard ? SIGKILL : SIGTERM); /* ESRCH: it has just ended, and that is told */
    }
    AUTO_FREE pid_t *pids = NULL;
    size_t n = 0;
    if (hard && proc_tagged(launcher_of(l, tag, session), &pids, &n) ==
                    0) /* what a launcher that was killed outright has left */
        for (size_t i = 0; i < n; i++)
            (void)kill(pids[i], SIGKILL);
    return 0;
}

int launches_say_stop(struct launches *l, const char *tag, struct err *e)
{
    struct launch_facts f;
    int rc = find_root(l, e);
    if (rc < 0)
        return rc;
    look_at(l, tag, &f);
    if (f.state == LAUNCH_RUNNING)
        (void)kill(f.pid, SIGUSR1); /* ESRCH: it has just ended */
    return 0;
}

/* --- sessions --------------------------------------------------------------------------------------------------------- */

static int make_run(const struct launches *l, const struct launch_run *a, struct err *e)
{
    AUTO_FREE char *dir = make_folder(l, a->tag, NULL, e);
    AUTO_FREE char *written = dir ? make_folder(l, a->tag, "checkpoint", e) : NULL;
    int rc = written ? write_session(l, a->tag, a->session, e) : e->code;
    return rc == 0 && a->files ? blobs_unpack(l->root, a->files, dir, e) : rc;
}

/* What one of that name that never began has left is in its way no more. */
static int clear_run(struct launches *l, const struct launch_run *a, struct err *e)
{
    size_t len = strlen(a->session);
    AUTO_FREE char *heard = path_of(l, a->tag, "heard");
    if (!heard)
        return err_sys(e, -ENOMEM, "launch '%s'", a->tag);
    if (strncmp(a->tag, a->session, len) != 0 || a->tag[len] != '-')
        return err_set(e, -EINVAL, "'%s' is no run of '%s'", a->tag, a->session);
    if (!is_session(l, a->session))
        return err_set(e, -ESRCH, "there is no session '%s'", a->session);
    if (io_exists(heard))
        return err_set(e, -EEXIST, "'%s' was begun already", a->tag);
    return launches_forget(l, a->tag, e);
}

int launches_run(struct launches *l, const struct launch_run *a, struct launch_facts *out, struct err *e)
{
    int rc = find_root(l, e);
    if (rc == 0)
        rc = clear_run(l, a, e);
    if (rc < 0)
        return rc;
    rc = blobs_room(l->root, LAUNCHES_ROOM, e);
    if (rc == 0)
        rc = make_run(l, a, e);
    if (rc == 0)
        rc = launches_adopt(l, a->tag, out, e);
    if (rc == 0 && out->state != LAUNCH_RUNNING)
        rc = err_set(e, -ESRCH, "session '%s' has ended", a->session);
    if (rc < 0)
        (void)launches_forget(l, a->tag, NULL); /* what stays is a folder */
    return rc;
}

int launches_talk(struct launches *l, const char *tag, int64_t credit, struct err *e)
{
    struct launch_facts f;
    struct launch *x = NULL;
    int rc = find_root(l, e);
    if (rc < 0)
        return rc;
    look_at(l, tag, &f);
    if (f.state != LAUNCH_RUNNING || !is_session(l, tag))
        return err_set(e, -ESRCH, "no session '%s' runs", tag);
    rc = add(l, tag, &x, e);
    if (rc < 0)
        return rc;
    x->talk.wanted = true;
    x->talk.upto = credit;
    return 0;
}

int launches_say(struct launches *l, const char *tag, const char *base64, struct err *e)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    struct launch *x = find(l, tag);
    if (base64_read(&bytes, base64) < 0)
        return err_set(e, -EINVAL, "'data' must be base 64");
    if (!x)
        return err_set(e, -ENOTCONN, "nobody is at the socket of '%s'", tag);
    return talk_say(&x->talk, bytes.data, bytes.len, e);
}

/* --- files ------------------------------------------------------------------------------------------------------------ */

int launches_have(struct launches *l, const char *hash, int64_t size, bool *out, struct err *e)
{
    int rc = find_root(l, e);
    if (rc == 0)
        *out = blobs_have(l->root, hash, size);
    return rc;
}

int launches_put(struct launches *l, const char *hash, int64_t size, int64_t at, const char *base64, struct err *e)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    int rc = find_root(l, e);
    if (rc == 0 && base64_read(&bytes, base64) < 0)
        rc = err_set(e, -EINVAL, "'data' must be base 64");
    return rc < 0 ? rc : blobs_put(&l->blobs, l->root, hash, size, at, bytes.data, bytes.len, e);
}

int launches_list(struct launches *l, const char *tag, const char *name, struct buf *out, struct err *e)
{
    int rc = find_root(l, e);
    AUTO_FREE char *dir = rc == 0 ? path_of(l, tag, NULL) : NULL;
    if (rc == 0 && !dir)
        rc = err_sys(e, -ENOMEM, "launch '%s'", tag);
    return rc < 0 ? rc : folder_list(dir, name, out, e);
}

int launches_read(struct launches *l, const char *tag, const char *name, int64_t from, size_t n, struct buf *out,
                  struct err *e)
{
    int rc = find_root(l, e);
    AUTO_FREE char *dir = rc == 0 ? path_of(l, tag, NULL) : NULL;
    if (rc == 0 && !dir)
        rc = err_sys(e, -ENOMEM, "launch '%s'", tag);
    return rc < 0 ? rc : folder_read(dir, name, from, n, out, e);
}

/* --- its end ---------------------------------------------------------------------------------------------------------- */

/* One that was killed leaves its socket behind. */
static void remove_socket(const char *tag)
{
    struct stat st;
    AUTO_FREE char *path = NULL;
    if (socket_path(&path, tag, NULL) == 0 && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        (void)unlink(path); /* it is in nobody's way */
}

int launches_forget(struct launches *l, const char *tag, struct err *e)
{
    struct launch *x = find(l, tag);
    int rc = find_root(l, e);
    AUTO_FREE char *dir = rc == 0 ? path_of(l, tag, NULL) : NULL;
    if (rc < 0 || !dir)
        return rc < 0 ? rc : err_sys(e, -ENOMEM, "launch '%s'", tag);
    if (!ours_is_dir(dir))
        return 0;
    AUTO_CLOSE int lock = open_file(l, tag, "lock", O_RDWR | O_CREAT | O_CLOEXEC);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, -EBUSY, "'%s' is not over", tag);
    if (x)
        drop(x);
    if (is_session(l, tag))
        remove_socket(tag);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        beneath_empty(fd);
    return rmdir(dir) == 0 || errno == ENOENT ? 0 : err_sys(e, -errno, "'%s'", dir);
}

int launches_each(struct launches *l, void (*each)(void *ctx, const char *tag, const struct launch_facts *f), void *ctx,
                  struct err *e)
{
    AUTO_FREE char *root = launches_root();
    if (!root || !ours_is_dir(root))
        return 0; /* there never was one */
    int rc = find_root(l, e);
    DIR *d = rc == 0 ? opendir(root) : NULL;
    if (rc == 0 && !d)
        rc = err_sys(e, -errno, "'%s'", root);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        struct launch_facts f;
        bool tag = members_tag_is_valid(entry->d_name) && strcmp(entry->d_name, files_name) != 0;
        AUTO_FREE char *dir = tag ? io_join(root, entry->d_name) : NULL;
        if (!dir || !ours_is_dir(dir))
            continue;
        look_at(l, entry->d_name, &f);
        each(ctx, entry->d_name, &f);
    }
    if (d)
        (void)closedir(d);
    return rc;
}

bool launches_leave(struct launches *l)
{
    AUTO_FREE char *root = launches_root();
    AUTO_FREE char *files = root ? io_join(root, files_name) : NULL;
    int fd = files && ours_is_dir(root) && ours_is_dir(files)
                 ? open(files, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    if (fd >= 0) {
        beneath_empty(fd);
        (void)rmdir(files); /* what stays makes ROOT stay, and that is told */
    }
    if (!root || !ours_is_dir(root) || rmdir(root) < 0)
        return false;
    free(l->root);
    l->root = NULL;
    return true;
}

/* --- for the loop ----------------------------------------------------------------------------------------------------- */

size_t launches_fds(const struct launches *l, struct pollfd fds[2 * LAUNCHES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < LAUNCHES_MAX; i++) {
        const struct launch *x = &l->v[i];
        if (x->tag[0] && x->control >= 0 && x->len == 0)
            fds[n++] = (struct pollfd){ .fd = x->control, .events = POLLIN };
        if (x->tag[0] && x->pidfd >= 0)
            fds[n++] = (struct pollfd){ .fd = x->pidfd, .events = POLLIN };
    }
    return n;
}

int64_t launches_due(const struct launches *l)
{
    for (size_t i = 0; i < LAUNCHES_MAX; i++)
        if (l->v[i].tag[0] && (l->v[i].credit > 0 || l->v[i].talk.wanted))
            return l->tick_ms;
    return INT64_MAX;
}

static void put_launch(struct buf *out, const struct launch *x, const char *state)
{
    buf_printf(out, "\"event\":\"launch\",\"tag\":\"%s\",\"state\":\"%s\"", x->tag, state);
}

static void put_refused(struct buf *out, const struct launch *x, const char *state, const char *why)
{
    put_launch(out, x, state);
    buf_puts(out, ",\"why\":");
    wire_put_text(out, why);
}

/* What its launcher says before its go: "ready BOOT PID START HEARD_SIZE [port=N] [WHY]", "busy", "error TEXT" (exec.h). */
static bool take_line(struct launch *x, struct buf *out)
{
    char boot[PROC_BOOT_ID_SIZE];
    long pid;
    uint64_t start, heard;
    ssize_t n = recv(x->control, x->line + x->len, sizeof x->line - 1 - x->len, MSG_DONTWAIT);
    if (n <= 0)
        return false; /* its end is told by its pidfd */
    x->len += (size_t)n;
    x->line[x->len] = '\0';
    x->line[strcspn(x->line, "\n")] = '\0';
    int at = 0, port = 0, more = 0;
    if (sscanf(x->line, "ready %36s %ld %" SCNu64 " %" SCNu64 " %n", boot, &pid, &start, &heard, &at) == 4) {
        put_launch(out, x, "ready");
        buf_printf(out, ",\"boot_id\":\"%s\",\"pid\":%ld,\"start_ticks\":%" PRIu64 ",\"heard\":%" PRIu64, boot, pid,
                   start, heard);
        if (at > 0 && sscanf(x->line + at, "port=%d %n", &port, &more) == 1) {
            buf_printf(out, ",\"port\":%d", port);
            at += more > 0 ? more : (int)strlen(x->line + at);
        }
        if (at > 0 && x->line[at]) {
            buf_puts(out, ",\"why\":");
            wire_put_text(out, x->line + at);
        }
        return true;
    }
    if (strcmp(x->line, "busy") == 0)
        put_refused(out, x, "busy", "another process still holds the launch's folder");
    else
        put_refused(out, x, "refused", strncmp(x->line, "error ", 6) == 0 ? x->line + 6 : x->line);
    return true;
}

static bool is_readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return fd >= 0 && poll(&p, 1, 0) == 1;
}

/* Its launcher has ended. Before its go nothing was started; that it said why is told already. */
static bool take_end(struct launches *l, struct launch *x, struct buf *out)
{
    int how = 0;
    if (x->ours)
        (void)waitpid(x->pid, &how, WNOHANG);
    (void)close(MOVE_FD(x->pidfd));
    bool silent = x->len == 0, was_ready = strncmp(x->line, "ready ", 6) == 0;
    if (x->control < 0) {
        put_launch(out, x, "gone");
        if (x->credit == 0)
            drop(x);
        return true;
    }
    if (silent || was_ready) {
        char why[96];
        (void)snprintf(why, sizeof why, "pipetune-node ended before the start, %s %d",
                       WIFSIGNALED(how) ? "by signal" : "exit code",
                       WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
        put_refused(out, x, "refused", why);
    }
    char tag[sizeof x->tag];
    memcpy(tag, x->tag, sizeof tag);
    drop(x);
    (void)launches_forget(l, tag, NULL); /* what stays is a folder */
    return silent || was_ready;
}

/* What has come into `heard`, or else, now and then, that its log has grown: a sign of life. */
static bool take_bytes(const struct launches *l, struct launch *x, int64_t now_ms, struct buf *out)
{
    char chunk[LAUNCHES_CHUNK];
    size_t want = x->credit < LAUNCHES_CHUNK ? (size_t)x->credit : sizeof chunk;
    AUTO_CLOSE int fd = open_file(l, x->tag, "heard", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : pread(fd, chunk, want, (off_t)x->from);
    int64_t log = size_of(l, x->tag, "log");
    bool alive = log != x->log_size && now_ms - x->log_ms >= ALIVE_MS;
    if (n <= 0 && !alive)
        return false;
    buf_printf(out, "\"event\":\"bytes\",\"tag\":\"%s\",\"at\":%" PRId64 ",\"log\":%" PRId64 ",\"data\":\"", x->tag,
               x->from, log);
    base64_put(out, chunk, n > 0 ? (size_t)n : 0);
    buf_putc(out, '"');
    x->from += n > 0 ? n : 0;
    x->credit -= n > 0 ? n : 0;
    x->log_size = log;
    x->log_ms = now_ms;
    return true;
}

/* What a session says, and that it says nothing any more. */
static bool take_words(struct launch *x, struct buf *out)
{
    char chunk[LAUNCHES_CHUNK];
    ssize_t n = talk_take(&x->talk, x->tag, chunk, sizeof chunk);
    if (n == 0)
        return false;
    buf_printf(out, "\"event\":\"words\",\"tag\":\"%s\",\"data\":\"", x->tag);
    base64_put(out, chunk, n > 0 ? (size_t)n : 0);
    buf_putc(out, '"');
    if (n == -EPIPE)
        buf_puts(out, ",\"why\":\"the session closed its socket\"");
    else if (n < 0)
        buf_printf(out, ",\"why\":\"its socket: %s\"", n == -EPERM ? "it belongs to another user" : strerror((int)-n));
    return true;
}

bool launches_take(struct launches *l, bool is_heard, int64_t now_ms, struct buf *out)
{
    bool looks = is_heard && now_ms >= l->tick_ms;
    for (size_t i = 0; i < LAUNCHES_MAX; i++) {
        struct launch *x = &l->v[i];
        if (!x->tag[0])
            continue;
        if (x->control >= 0 && x->len == 0 && is_readable(x->control) && take_line(x, out))
            return true;
        if (looks && x->credit > 0 && take_bytes(l, x, now_ms, out))
            return true;
        if (looks && take_words(x, out))
            return true;
        if (is_readable(x->pidfd) && take_end(l, x, out))
            return true;
    }
    if (looks)
        l->tick_ms = now_ms + LAUNCHES_TICK_MS;
    return false;
}
