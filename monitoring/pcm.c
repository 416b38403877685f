#include "monitoring/pcm.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "monitoring/meter_util.h"
#include "monitoring/pcm_csv.h"

extern char **environ;

enum {
    CHUNK = 65536,
    READ_MAX = 8 << 20,   /* bytes of one read; the rest waits */
    WINDOW = 1 << 20,     /* how much of a file's beginning and end is looked at when it is opened */
    AGAIN_MS = 10000,     /* from one start of the program to the next */
    END_MS = 2000,        /* between TERM and KILL */
    SILENT_MS = 60000,    /* nothing for so long, and three intervals, is a failure */
    ZONE_MS = 15 * 60000, /* zones are multiples of it */
    AHEAD_MS = 60000,     /* how far a row may be ahead of our clock */
};

struct meter {
    struct meter_cfg cfg; /* the texts are the caller's */
    struct pcm_csv csv;
    int fd; /* the file, or the program's output; -1: none */

    dev_t dev; /* the file */
    ino_t ino;
    off_t at;

    pid_t pid;         /* the program; 0: none */
    double started_ms; /* by our clock */

    double zone_ms; /* our clock less the rows' */
    bool zone_known;
    double last_ms; /* the row before, on our clock */
    bool last_known;
    double floor_ms;  /* what is before it was told to be missing */
    double period_ms; /* between the last two rows */
    double heard_ms;  /* when the last row came */
    bool told;        /* something was handed out: no METER_FIRST any more */

    struct { /* rows that are summed and not handed out yet */
        bool there;
        double from_ms, to_ms, j, error_j;
    } run;
};

/* What one read hands out. */
struct handed {
    struct meter_reading *out;
    int n;
};

static double now_ms(const struct meter *m)
{
    return (double)meter_now_ns(m->cfg.now_ns) / 1e6;
}

/* --- readings --- */

static struct meter_reading *hand_out(struct handed *h, enum meter_state state, double from_ms, double to_ms)
{
    struct meter_reading *r = &h->out[h->n++];
    *r = (struct meter_reading){ .state = state, .from_ms = from_ms, .to_ms = to_ms, .value = NAN, .error = NAN };
    return r;
}

/* The rows so far. Those that took no time, since times are shown in seconds only, wait for the next. */
static void flush_run(struct meter *m, struct handed *h)
{
    if (!m->run.there || !(m->run.to_ms > m->run.from_ms))
        return;
    struct meter_reading *r = hand_out(h, METER_OK, m->run.from_ms, m->run.to_ms);
    r->value = m->run.j;
    r->error = m->run.error_j;
    m->run.there = false;
}

static void end_run(struct meter *m, struct handed *h)
{
    flush_run(m, h);
    m->run.there = false; /* and if it took no time, it is lost */
}

static void discard(struct meter *m, struct handed *h, double to_ms, const char *why)
{
    end_run(m, h);
    struct meter_reading *before = h->n ? &h->out[h->n - 1] : NULL;
    if (before && before->state == METER_DISCARDED && before->to_ms == m->last_ms) {
        before->to_ms = to_ms;
        return;
    }
    struct meter_reading *r = hand_out(h, METER_DISCARDED, m->last_ms, to_ms);
    (void)snprintf(r->why, sizeof r->why, "%s", why);
}

/* The energy cannot be had now. What rows may still say of the time before is not asked for any more: their next interval begins later. */
static void hand_out_failure(struct meter *m, struct handed *h, const char *why)
{
    end_run(m, h);
    double now = now_ms(m);
    struct meter_reading *r = hand_out(h, METER_FAILED, now, now);
    (void)snprintf(r->why, sizeof r->why, "%s", why);
    m->last_known = false;
    m->floor_ms = now;
}

/* --- rows --- */

static void find_zone(struct meter *m, const struct pcm_row *row, double now)
{
    m->zone_ms = floor((now - (double)row->local_ms + AHEAD_MS) / ZONE_MS) * ZONE_MS;
    m->zone_known = true;
}

/* The row's time on our clock. False: its interval does not begin where the row before ended. */
static bool place(struct meter *m, const struct pcm_row *row, double *out_ms)
{
    double now = now_ms(m);
    bool joined = m->zone_known && m->last_known && !row->fresh;
    *out_ms = (double)row->local_ms + m->zone_ms;
    if (m->zone_known && *out_ms <= now + AHEAD_MS && (!m->last_known || *out_ms >= m->last_ms))
        return joined;
    find_zone(m, row, now);
    *out_ms = (double)row->local_ms + m->zone_ms;
    return false;
}

/* Why this row is no measurement; NULL: it is one. */
static const char *fault_of(const struct meter *m, const struct pcm_row *row, double ms)
{
    if (isnan(row->proc_j) || isnan(row->dram_j))
        return "an energy in the row is no number";
    if (row->proc_j == 0)
        return "pcm says 0 J of the processors: it cannot read their energy here";
    double limit_w = meter_max_w(&m->cfg) * (double)m->csv.layout.sockets;
    if ((row->proc_j + row->dram_j) * 1e3 > limit_w * (ms + row->step_ms))
        return "more than max_w for each processor";
    return NULL;
}

static void add_row(struct meter *m, const struct pcm_row *row, double to_ms)
{
    if (!m->run.there) {
        m->run.there = true;
        m->run.from_ms = m->last_ms;
        m->run.j = m->run.error_j = 0;
    }
    m->run.to_ms = to_ms;
    m->run.j += row->proc_j + row->dram_j;
    m->run.error_j += row->error_j;
}

/* Hands out two readings at most. */
static void take_row(struct meter *m, const struct pcm_row *row, struct handed *h)
{
    double at_ms;
    bool joined = place(m, row, &at_ms);
    if (joined) {
        const char *why = fault_of(m, row, at_ms - m->last_ms);
        if (why)
            discard(m, h, at_ms, why);
        else
            add_row(m, row, at_ms);
    } else {
        end_run(m, h);
    }
    if (at_ms > m->last_ms && !row->fresh)
        m->period_ms = at_ms - m->last_ms;
    m->last_ms = at_ms;
    m->last_known = at_ms >= m->floor_ms;
    m->heard_ms = now_ms(m);
}

/* What was in the file before: where the next interval begins. */
static int pass_rows(struct meter *m)
{
    struct pcm_row row;
    int rc;
    while ((rc = pcm_csv_next(&m->csv, &row)) == 1) {
        double at_ms;
        (void)place(m, &row, &at_ms);
        m->last_ms = at_ms;
        m->last_known = true;
    }
    return rc;
}

/* --- a file that grows --- */

static int open_file(struct meter *m, struct err *e)
{
    const char *path = m->cfg.file;
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for its writer */
    struct stat st;
    if (fd < 0 && errno == ENOENT)
        return err_set(e, -ENODEV, "there is no '%s'; PCM writes it when started as: pcm 1 -csv=%s", path, path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, -errno, "cannot read '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, -EINVAL, "'%s' is no regular file", path);
    if (m->fd >= 0)
        (void)close(m->fd); /* only read */
    m->fd = MOVE_FD(fd);
    m->dev = st.st_dev;
    m->ino = st.st_ino;
    m->at = 0;
    pcm_csv_restart(&m->csv);
    return 0;
}

/* The next piece of the file. How many bytes; 0: it ends here; -ENOMEM, -errno. */
static int put_piece(struct meter *m, struct err *e)
{
    char chunk[CHUNK];
    ssize_t n = pread(m->fd, chunk, sizeof chunk, m->at);
    if (n < 0)
        return err_sys(e, -errno, "cannot read '%s'", m->cfg.file);
    if (n > 0 && pcm_csv_put(&m->csv, chunk, (size_t)n) < 0)
        return err_sys(e, -ENOMEM, "cannot read '%s'", m->cfg.file);
    m->at += n;
    return (int)n;
}

/* At the end of what is there: 1 when there is more elsewhere, since the file was cut, or another has its name. */
static int look_again(struct meter *m, struct err *e)
{
    struct stat here, there;
    if (fstat(m->fd, &here) < 0)
        return err_sys(e, -errno, "cannot read '%s'", m->cfg.file);
    if (here.st_size < m->at) {
        m->at = 0;
        pcm_csv_restart(&m->csv);
        return 1;
    }
    if (stat(m->cfg.file, &there) < 0)
        return errno == ENOENT ? err_set(e, -ENOENT, "'%s' is gone", m->cfg.file)
                               : err_sys(e, -errno, "cannot read '%s'", m->cfg.file);
    if (there.st_dev == m->dev && there.st_ino == m->ino)
        return 0;
    int rc = open_file(m, e);
    return rc < 0 ? rc : 1;
}

/* Bytes that came; 0: none now; negative: why none can come. */
static int more_of_file(struct meter *m, struct err *e)
{
    for (int tries = 0; tries < 3; tries++) {
        int n = put_piece(m, e);
        if (n != 0)
            return n;
        int more = look_again(m, e);
        if (more <= 0)
            return more;
    }
    return 0; /* it changes faster than we look */
}

/* The header stands at the beginning, the latest row at the end; of what is between, many days perhaps, nothing is needed. */
static int skip_history(struct meter *m, struct err *e)
{
    struct stat st;
    if (fstat(m->fd, &st) < 0)
        return err_sys(e, -errno, "cannot read '%s'", m->cfg.file);
    off_t head = st.st_size > 2 * WINDOW ? WINDOW : st.st_size;
    int n = 1;
    while (n > 0 && m->at < st.st_size) {
        n = put_piece(m, e);
        if (n > 0 && pass_rows(m) < 0)
            return err_sys(e, -ENOMEM, "cannot read '%s'", m->cfg.file);
        if (m->at >= head && m->at < st.st_size - WINDOW) {
            m->at = st.st_size - WINDOW;
            pcm_csv_jump(&m->csv);
        }
    }
    return n < 0 ? n : 0;
}

/* --- the program --- */

static int set_up_spawn(posix_spawnattr_t *attr, posix_spawn_file_actions_t *fa, int out_fd)
{
    static const int reset[] = { SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGQUIT };
    sigset_t set, none;
    (void)sigemptyset(&set);
    (void)sigemptyset(&none);
    for (size_t i = 0; i < ARRAY_LEN(reset); i++)
        (void)sigaddset(&set, reset[i]);
    (void)posix_spawnattr_setsigdefault(attr, &set);
    (void)posix_spawnattr_setsigmask(attr, &none);
    (void)posix_spawnattr_setpgroup(attr, 0);
    (void)posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int rc = posix_spawn_file_actions_addopen(fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(fa, out_fd, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(fa, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    return -rc;
}

static int spawn(pid_t *pid, char *program, int out_fd)
{
    char csv[] = "/csv", seconds[] = "1";
    char *argv[] = { program, csv, seconds, NULL };
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t fa;
    if (posix_spawnattr_init(&attr) != 0)
        return -ENOMEM;
    if (posix_spawn_file_actions_init(&fa) != 0) {
        (void)posix_spawnattr_destroy(&attr);
        return -ENOMEM;
    }
    int rc = set_up_spawn(&attr, &fa, out_fd);
    if (rc == 0)
        rc = -posix_spawnp(pid, program, &fa, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)posix_spawnattr_destroy(&attr);
    return rc;
}

static const char *program_of(const struct meter_cfg *cfg)
{
    return cfg->program ? cfg->program : "pcm";
}

static int start_program(struct meter *m, struct err *e)
{
    const char *name = program_of(&m->cfg);
    AUTO_FREE char *program = strdup(name);
    int fds[2];
    m->started_ms = m->heard_ms = now_ms(m);
    if (!program)
        return err_sys(e, -ENOMEM, "cannot start '%s'", name);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, -errno, "cannot start '%s'", name);
    AUTO_CLOSE int in = fds[0];
    AUTO_CLOSE int out = fds[1];
    pid_t pid;
    int rc = fcntl(in, F_SETFL, O_NONBLOCK) < 0 ? -errno : spawn(&pid, program, out);
    if (rc == -ENOENT)
        return err_set(e, -ENODEV, "there is no '%s'; install Intel PCM, or name the CSV that it writes as \"file\"",
                       name);
    if (rc < 0)
        return err_sys(e, rc, "cannot start '%s'", name);
    m->pid = pid;
    m->fd = MOVE_FD(in);
    pcm_csv_restart(&m->csv);
    return 0;
}

/* Has it ended? It stays a zombie, so that its number names nobody else's group. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = { 0 };
    int rc = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
    return rc < 0 || info.si_pid == pid; /* <0: somebody else has reaped it */
}

/* Ends what is left of the group, and waits for what is dead then. */
static int reap(struct meter *m)
{
    int status = 0;
    (void)kill(-m->pid, SIGKILL);
    (void)kill(m->pid, SIGKILL); /* had it left its group */
    while (waitpid(m->pid, &status, 0) < 0 && errno == EINTR)
        ;
    m->pid = 0;
    return status;
}

/* Lets it end by itself first, since PCM gives the counters back then; what it still writes must not block it. */
static void stop_program(struct meter *m)
{
    char chunk[4096];
    (void)kill(-m->pid, SIGTERM);
    for (int64_t until = clock_ms() + END_MS; !has_ended(m->pid) && clock_ms() < until;) {
        struct pollfd p = { .fd = m->fd, .events = POLLIN };
        (void)poll(&p, 1, 5);
        if (m->fd < 0 || (p.revents && read(m->fd, chunk, sizeof chunk) <= 0))
            (void)poll(NULL, 0, 5); /* its output has ended, it has not */
    }
    (void)reap(m);
}

/* Its output has ended. */
static int tell_end(struct meter *m, struct err *e)
{
    const char *name = program_of(&m->cfg);
    if (!has_ended(m->pid))
        return err_set(e, -EPIPE, "'%s' has closed its output", name);
    int status = reap(m);
    if (WIFSIGNALED(status))
        return err_set(e, -EPIPE, "'%s' was ended by signal %d", name, WTERMSIG(status));
    return err_set(e, -EPIPE, "'%s' has ended with code %d: does it run here, as this user?", name,
                   WEXITSTATUS(status));
}

/* There is no output. Starts it again when that is due. */
static int more_of_none(struct meter *m, struct err *e)
{
    double since = now_ms(m) - m->started_ms; /* negative: the clock was set back */
    if (since >= 0 && since < AGAIN_MS)
        return m->pid ? tell_end(m, e)
                      : err_set(e, -EPIPE, "'%s' has ended, and is started again in %.0f s", program_of(&m->cfg),
                                ceil((AGAIN_MS - since) / 1e3));
    if (m->pid)
        (void)reap(m);
    return start_program(m, e);
}

static int more_of_program(struct meter *m, struct err *e)
{
    char chunk[CHUNK];
    if (m->fd < 0)
        return more_of_none(m, e);
    ssize_t n = read(m->fd, chunk, sizeof chunk);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n > 0)
        return pcm_csv_put(&m->csv, chunk, (size_t)n) < 0 ? err_sys(e, -ENOMEM, "pcm's rows") : (int)n;
    (void)close(MOVE_FD(m->fd)); /* only read */
    return tell_end(m, e);
}

/* --- the meter --- */

static void pcm_close(struct meter *m)
{
    if (!m)
        return;
    if (m->pid)
        stop_program(m);
    if (m->fd >= 0)
        (void)close(m->fd); /* only read */
    pcm_csv_done(&m->csv);
    free(m);
}

static int pcm_open(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    struct meter *m = calloc(1, sizeof *m);
    if (!m)
        return err_sys(e, -ENOMEM, "cannot open the meter pcm");
    m->cfg = *cfg;
    m->fd = -1;
    m->heard_ms = now_ms(m);
    int rc = cfg->file ? open_file(m, e) : start_program(m, e);
    if (rc == 0 && cfg->file)
        rc = skip_history(m, e);
    if (rc < 0) {
        pcm_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

/* Takes what rows there are. 0: all of them; -ENOMEM; negative: why there can be no more. */
static int take_rows(struct meter *m, struct handed *h, struct err *e)
{
    for (size_t bytes = 0; bytes < READ_MAX;) {
        struct pcm_row row;
        int rc = 0;
        /* A row hands out two readings at most, and what follows the rows one each. */
        while (h->n + 4 <= METER_READINGS_MAX && (rc = pcm_csv_next(&m->csv, &row)) == 1)
            if (m->csv.layout.proc.n)
                take_row(m, &row, h);
        if (rc < 0)
            return err_sys(e, rc, "pcm's rows");
        if (h->n + 4 > METER_READINGS_MAX)
            return 0; /* the rest waits */
        rc = m->cfg.file ? more_of_file(m, e) : more_of_program(m, e);
        if (rc <= 0)
            return rc;
        bytes += (size_t)rc;
    }
    return 0;
}

/* Nothing has come. */
static void tell_silence(struct meter *m, struct handed *h)
{
    double silent_ms = now_ms(m) - m->heard_ms;
    char why[METER_WHY_MAX];
    if (m->csv.layout.separator && m->csv.layout.proc.n == 0) {
        hand_out_failure(m, h, "pcm's CSV has no column 'Proc Energy (Joules)': it cannot read the energy here");
    } else if (silent_ms > SILENT_MS && silent_ms > 3 * m->period_ms) {
        (void)snprintf(why, sizeof why, "no row of pcm's for %.0f s (%llu lines were passed over)", silent_ms / 1e3,
                       (unsigned long long)m->csv.passed_over);
        hand_out_failure(m, h, why);
    } else if (!m->told) {
        double at_ms = m->last_known ? m->last_ms : now_ms(m);
        (void)hand_out(h, METER_FIRST, at_ms, at_ms);
    }
}

static int pcm_read(struct meter *m, struct meter_reading *out)
{
    struct handed h = { .out = out };
    struct err e = { 0 };
    int rc = take_rows(m, &h, &e);
    if (rc == -ENOMEM)
        return rc;
    flush_run(m, &h);
    if (rc < 0)
        hand_out_failure(m, &h, e.text);
    else if (h.n == 0)
        tell_silence(m, &h);
    m->told = m->told || h.n > 0;
    return h.n;
}

/* --- probing --- */

static int probe_file(const struct meter_cfg *cfg, struct buf *detail, struct buf *fix)
{
    struct meter *m = NULL;
    struct err e = { 0 };
    int rc = pcm_open(&m, cfg, &e);
    if (rc < 0) {
        buf_puts(detail, e.text);
        return rc;
    }
    const struct pcm_layout *l = &m->csv.layout;
    if (l->separator && l->proc.n)
        buf_printf(detail, "'%s': processors%s", cfg->file, l->dram.n ? " and DRAM" : "");
    else
        buf_printf(detail, "'%s' %s", cfg->file,
                   l->separator ? "has no 'Proc Energy (Joules)'" : "has no header of PCM's");
    rc = l->separator && l->proc.n ? 0 : -ENODEV;
    if (rc < 0)
        buf_puts(fix, "see whether PCM runs on this machine, and tells energies here");
    pcm_close(m);
    return rc;
}

/* Where the program is. -ENOENT. */
static int find_program(const char *name, struct buf *out)
{
    const char *path = strchr(name, '/') ? "" : getenv("PATH");
    for (const char *at = path ? path : "/bin:/usr/bin"; at;) {
        size_t len = strcspn(at, ":");
        buf_clear(out);
        buf_put(out, at, len);
        buf_puts(out, len ? "/" : "");
        buf_puts(out, name);
        if (access(buf_text(out), X_OK) == 0 && !io_is_dir(buf_text(out)))
            return 0;
        at = at[len] ? at + len + 1 : NULL;
    }
    return -ENOENT;
}

static int pcm_probe(const struct meter_cfg *cfg, struct buf *detail, struct buf *fix)
{
    if (cfg->file)
        return probe_file(cfg, detail, fix);
    AUTO_BUF struct buf path = BUF_INIT;
    if (find_program(program_of(cfg), &path) == 0) {
        buf_printf(detail, "'%s', not started", buf_text(&path));
        return 0;
    }
    buf_printf(detail, "no program '%s'", program_of(cfg));
    buf_puts(fix, "install Intel PCM, or name the CSV that it writes as \"file\"");
    return -ENODEV;
}

const struct meter_ops meter_pcm = {
    .name = "pcm",
    .help = "joules of processors and DRAM, by Intel PCM",
    .kind = METER_ENERGY,
    .local = true,
    .probe = pcm_probe,
    .open = pcm_open,
    .read = pcm_read,
    .close = pcm_close,
};
