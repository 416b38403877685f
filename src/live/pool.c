#include "live/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "live/publish.h"
#include "live/writer.h"
#include "store/series.h"

enum {
    STOP_MS = 15000, /* from being told to end to KILL */
    PID_NOTE_MAX = 256,
    HEARD_MAX = 16 << 20, /* what a session prints while it starts is far less */
};

struct pool {
    struct study *study;
    uv_loop_t *loop;
    struct site_here here;
    struct hosts *hosts; /* NULL: there are none */
    struct pool_ops ops;
    void *ctx;
    struct warm **list;
    size_t n, cap;
    uint64_t next_id;
    int next_number;
};

static struct warm *by_id(const struct pool *p, uint64_t id)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i]->id == id)
            return p->list[i];
    return NULL;
}

static void free_warm(struct warm *w)
{
    session_link_free(w->link);
    if (w->launch.own)
        w->launch.row->let_go(w->launch.own, w->over);
    if (w->log_fd >= 0)
        (void)close(w->log_fd); /* read only */
    lines_done(&w->log);
    free(w->dir);
    free(w->tag);
    free(w);
}

static void drop(struct pool *p, struct warm *w)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->list[i] != w)
            continue;
        memmove(&p->list[i], &p->list[i + 1], (p->n - i - 1) * sizeof(struct warm *));
        p->n--;
        break;
    }
    free_warm(w);
}

static struct warm *add(struct pool *p, int number)
{
    struct warm **grown = array_more(p->list, p->n, &p->cap, sizeof(struct warm *));
    if (!grown)
        return NULL;
    p->list = grown;
    struct warm *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct warm){ .id = ++p->next_id, .number = number, .cold = -1, .dir = study_session_dir(p->study, number) };
    w->born_ms = w->waits_ms = clock_ms();
    w->log_fd = -1;
    w->wait = (struct wait){ .kind = WAIT_START, .words = &p->study->plan->app.kind->words };
    lines_init(&w->log, &p->study->plan->app.reader, 0);
    fold_init(&w->fold, p->study->plan->cfg.metric, 0);
    p->list[p->n++] = w;
    if (p->next_number <= number)
        p->next_number = number + 1;
    return w;
}

/* --- its process --- */

static void signal_warm(const struct warm *w, bool hard)
{
    w->launch.row->signal(w->launch.own, &w->row, hard);
}

/* Its process is known. */
static void take_at(struct warm *w, const struct launcher_ready *r)
{
    w->at = *r;
    w->row.launch = w->tag;
    w->row.boot_id = w->at.boot_id;
    w->row.pid = r->pid;
    w->row.start_ticks = (int64_t)r->start_ticks;
}

static struct site site_of(struct pool *p, size_t place)
{
    return place ? hosts_session_site(p->hosts, place) : (struct site){ &site_here_row, &p->here, NULL, 0 };
}

/* What only its process and we have read. Where it stays, the next driver or gc removes it. */
static void forget(const struct warm *w)
{
    static const char *const files[] = { "heard", "place" };
    secrets_forget(w->dir);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_FREE char *path = io_join(w->dir, files[i]);
        if (path)
            (void)unlink(path);
    }
}

static void over(struct pool *p, struct warm *w, const char *why)
{
    const char *lost = w->launch.own ? w->launch.row->lost(w->launch.own) : NULL;
    w->unplaced |= lost != NULL;
    p->ops.gone(p->ctx, w, lost ? lost : why);
    w->over = true;
    forget(w);
    drop(p, w);
}

static void on_gone(void *ctx, uint64_t id)
{
    struct pool *p = ctx;
    struct warm *w = by_id(p, id);
    signal_warm(w, true); /* what a launcher that was killed outright has left */
    session_socket_remove(w->tag);
    over(p, w, "its application has ended");
}

static void on_refused(void *ctx, uint64_t id, bool busy, const char *why)
{
    struct pool *p = ctx;
    (void)busy;
    over(p, by_id(p, id), why);
}

/* --- its log --- */

static int on_line(void *ctx, const struct app_report *ev, uint64_t end)
{
    struct fold_epoch none;
    (void)fold_report(ctx, ev, end, &none);
    return 0;
}

/* What it says until it has come up. Where that cannot be read, it says nothing. */
static void read_log(struct warm *w)
{
    AUTO_FREE char *path = w->log_fd < 0 ? io_join(w->dir, "heard") : NULL;
    char chunk[8192];
    ssize_t n = 0;
    if (path)
        w->log_fd = open(path, O_RDONLY | O_CLOEXEC);
    while (w->log_fd >= 0 && (n = pread(w->log_fd, chunk, sizeof chunk, (off_t)w->log.offset)) > 0)
        if (lines_feed(&w->log, chunk, (size_t)n, on_line, &w->fold) < 0)
            return; /* out of memory: the same bytes are read again at the next tick */
}

/* --- what its host tells --- */

static void on_unplaced(void *ctx, uint64_t id, const char *why)
{
    struct pool *p = ctx;
    struct warm *w = by_id(p, id);
    w->unplaced = true;
    over(p, w, why);
}

/* What is heard of it is read while it comes up. */
static void on_ended(void *ctx, uint64_t id)
{
    (void)ctx, (void)id;
}

/* It says more than is kept, or nothing can be kept here: it serves nobody any more. */
static void on_failed(void *ctx, uint64_t id, int rc, const struct err *e)
{
    struct pool *p = ctx;
    (void)rc, (void)e;
    pool_end(p, by_id(p, id), true);
}

static const struct hosts_ops host_calls = { .unplaced = on_unplaced, .ended = on_ended, .failed = on_failed };

/* --- its socket --- */

static void on_hello(void *ctx, uint64_t id, const struct session_message *m)
{
    struct pool *p = ctx;
    struct warm *w = by_id(p, id);
    read_log(w); /* of one that was met again all of it: what its cluster calls it */
    w->ready = true;
    w->idle_ms = clock_ms();
    w->start_ms = w->idle_ms - w->born_ms;
    w->protocol = m->protocol;
    (void)snprintf(w->busy, sizeof w->busy, "%s", m->id);
    p->ops.hello(p->ctx, w);
}

/* Figures on their way to the series of a trial. */
struct figures {
    int64_t trial;
    int attempt;
    struct series told;
};

static int put_figures(void *ctx, struct store *store, struct err *e)
{
    struct figures *f = ctx;
    (void)e;
    (void)store_series_put(store, f->trial, f->attempt, &f->told, NULL); /* the epoch itself is what counts */
    return 0;
}

static void on_figures_stored(void *ctx, int rc, const struct err *e)
{
    struct figures *f = ctx;
    (void)rc, (void)e; /* who stores what counts is told */
    series_done(&f->told);
    free(f);
}

/* Where the trial has not ended meanwhile. */
static void keep_metrics(struct study *s, int trial, const struct session_message *m)
{
    const struct study_trial *t = study_trial(s, trial);
    struct figures *f = t ? calloc(1, sizeof *f) : NULL;
    const char *name;
    json_t *value;
    int rc = f ? 0 : -ENOENT;
    if (f)
        *f = (struct figures){ .trial = t->row.id, .attempt = t->row.attempts };
    json_object_foreach(m->metrics, name, value)
    {
        if (rc == 0)
            rc = series_add(&f->told, name, m->epoch, 0, study_clock_ms(s), json_number_value(value));
    }
    const struct write one = { .rows = put_figures, .done = on_figures_stored, .ctx = f };
    if (rc == 0)
        rc = writer_put(s->writer, s->store, one, NULL);
    if (rc < 0 && f)
        on_figures_stored(f, rc, NULL);
}

/* Epochs come by the log; what the application told of them comes here, before or after. */
static void on_epoch(void *ctx, uint64_t id, const struct session_message *m)
{
    struct pool *p = ctx;
    struct warm *w = by_id(p, id);
    p->ops.told(p->ctx, w, m);
    keep_metrics(p->study, w->trial, m);
    publish_metrics(p->study->publish, w->trial, m->epoch, m->metrics, study_clock_ms(p->study));
}

static void on_done(void *ctx, uint64_t id, const struct session_message *m)
{
    struct pool *p = ctx;
    struct warm *w = by_id(p, id);
    if (strcmp(w->busy, m->id) == 0)
        w->busy[0] = '\0';
    p->ops.done(p->ctx, w, m);
}

/* Without its socket it is no use; its end is told when its process is gone. */
static void on_lost(void *ctx, uint64_t id, const char *why)
{
    struct pool *p = ctx;
    struct warm *w = by_id(p, id);
    (void)why;
    session_link_free(MOVE_PTR(w->link));
    w->ready = false;
    if (!w->ending) /* else that is how it begins to end */
        pool_end(p, w, false);
}

/* It goes on, and says hello when there is a way to it again. */
static void on_away(void *ctx, uint64_t id)
{
    struct warm *w = by_id(ctx, id);
    w->ready = false;
    w->waits_ms = clock_ms(); /* that it was up is long ago, perhaps */
}

static int connect_to(struct pool *p, struct warm *w, struct err *e)
{
    static const struct session_ops ops = { on_hello, on_epoch, on_done, on_lost, on_away };
    return w->launch.row->talk(w->launch.own, p->loop, w->tag, &ops, p, w->id, &w->link, e);
}

/* --- starting --- */

static void on_ready(void *ctx, uint64_t id, const struct launcher_ready *r)
{
    struct pool *p = ctx;
    struct warm *w = by_id(p, id);
    take_at(w, r);
    w->running = true;
    w->born_ms = w->waits_ms = clock_ms();
    if (w->ending) { /* it could not be told before */
        signal_warm(w, true);
        return;
    }
    failpoint("session-launcher-ready");
    (void)w->launch.row->go(w->launch.own, NULL); /* where it has died since, its end is on the way */
    failpoint("session-go-sent");
}

static const struct launcher_ops launcher_calls = { on_ready, on_refused, on_gone };

/* Where its socket is: of one elsewhere its place says it. */
static int find_socket(const struct warm *w, const struct site *site, char **out, struct err *e)
{
    AUTO_PATHS struct site_paths there = { 0 };
    int rc = site->row->paths(site->own, w->tag, NULL, &there, e);
    if (rc == 0 && there.session)
        *out = MOVE_PTR(there.session);
    return rc < 0 || *out ? rc : session_path(out, w->tag, e);
}

static int make_order(const struct pool *p, const struct warm *w, const struct study_trial *t, const struct site *site,
                      struct site_order *o, struct err *e)
{
    AUTO_FREE char *path = NULL, *properties = NULL;
    const struct plan *plan = p->study->plan;
    int rc = find_socket(w, site, &path, e);
    if (rc == 0)
        rc = secrets_write(&plan->secrets, &plan->app, w->dir, &plan->env, &properties, e);
    if (rc < 0)
        return rc;
    struct setting set = study_setting(p->study, t);
    struct plan_launch l = { .setting = set,
                             .slots = w->slots,
                             .parts = w->parts,
                             .launch = w->tag,
                             .session = path,
                             .properties = properties,
                             .elsewhere = w->place > 0,
                             .one_cpu = setting_number(&p->study->plan->space, &set, KNOB_CORES, 0) == 1 };
    rc = plan_steps(plan, &t->point, &l, &o->steps, e);
    o->words = (struct launcher_words){ .node = p->study->plan->env.node,
                                        .dir = w->dir,
                                        .tag = w->tag,
                                        .runs = p->study->dir,
                                        .cpus = t->cpus,
                                        .attempt = 1,
                                        .log_mb = p->study->plan->cfg.log_mb,
                                        .app = &plan->app };
    return rc;
}

/* Which of them it is, before there is anything of it: the next driver asks there. */
static int write_place(const struct warm *w, const struct site *site, struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT;
    AUTO_FREE char *path = io_join(w->dir, "place");
    if (!site->name)
        return 0;
    buf_printf(&line, "%s %s\n", site->name, w->tag);
    if (!path || line.failed)
        return err_sys(e, -ENOMEM, "session %d", w->number);
    AUTO_CLOSE int fd = ours_open(path, O_WRONLY | O_CREAT | O_TRUNC, e);
    int rc = fd < 0 ? fd : io_write_all(fd, line.data, line.len);
    return fd >= 0 && rc < 0 ? err_sys(e, rc, "cannot write '%s'", path) : rc;
}

static int start(struct pool *p, struct warm *w, const struct study_trial *t, struct err *e)
{
    AUTO_ORDER struct site_order order = { 0 };
    const struct site site = site_of(p, w->place);
    int rc = ours_dir(w->dir, e);
    if (rc == 0)
        rc = make_order(p, w, t, &site, &order, e);
    if (rc == 0)
        rc = write_place(w, &site, e);
    w->launch.row = site.row;
    w->row.launch = w->tag;
    if (rc == 0)
        rc = site.row->start(site.own, w->id, &order, &w->launch, e);
    return rc == 0 ? connect_to(p, w, e) : rc;
}

int pool_start(struct pool *p, const struct study_trial *t, struct warm **out, struct err *e)
{
    struct warm *w = add(p, p->next_number);
    if (!w || !w->dir || !(w->tag = launcher_new_tag(0, w->number)))
        return err_sys(e, -ENOMEM, "session %d", p->next_number);
    w->slots = t->row.slots;
    w->parts = t->parts;
    w->cold = t->setting.cold;
    w->trial = t->row.number;
    w->place = t->place;
    int rc = start(p, w, t, e);
    if (rc < 0) {
        forget(w);
        drop(p, w);
        return rc;
    }
    *out = w;
    return 0;
}

int pool_run(struct pool *p, struct warm *w, const struct session_run *r)
{
    if (w->link && !w->ready && w->running) /* it is away */
        return 0;
    int rc = w->link ? session_link_run(w->link, r) : -ENOTCONN; /* it may have been lost since it was kept */
    if (rc < 0)
        pool_end(p, w, false);
    return rc;
}

/* --- ending --- */

bool pool_hears_end(const struct warm *w)
{
    return !w->ready || w->protocol >= SESSION_PROTOCOL_END;
}

int pool_end_run(struct warm *w, const char *run, int epoch)
{
    return w->ready && w->link ? session_link_end(w->link, run, epoch) : -ENOTCONN;
}

void pool_end(struct pool *p, struct warm *w, bool hard)
{
    (void)p;
    bool polite = !w->ending && w->link && w->ready && w->trial == 0;
    w->ending = true;
    if (hard)
        signal_warm(w, true);
    else if (!polite || session_link_stop(w->link) < 0)
        signal_warm(w, false);
    if (w->kill_ms == 0)
        w->kill_ms = clock_ms() + STOP_MS;
}

static void look(const struct pool *p, struct warm *w, int64_t now_ms)
{
    const struct study_trial *t = study_trial(p->study, w->trial);
    read_log(w);
    struct wait wait = { .kind = WAIT_START, .words = &p->study->plan->app.kind->words };
    if (t)
        wait = grant_wait(p->study, t, &w->fold, w->slots);
    if (wait.kind == WAIT_DATA || wait.kind == WAIT_NONE)
        wait.kind = WAIT_SESSION;
    w->waits_ms = wait.kind == w->wait.kind ? w->waits_ms : now_ms;
    w->wait = wait;
}

void pool_tick(struct pool *p, int64_t now_ms)
{
    const int64_t patience_ms = p->study->plan->cfg.grant_seconds * 1000;
    for (size_t i = 0; i < p->n; i++) {
        struct warm *w = p->list[i];
        if (w->kill_ms && now_ms >= w->kill_ms) {
            signal_warm(w, true);
            w->kill_ms = now_ms + STOP_MS;
        }
        if (w->launch.row->away(w->launch.own))
            w->waits_ms = now_ms; /* it cannot be heard */
        if (w->kill_ms || w->ready)
            continue;
        look(p, w, now_ms);
        if (now_ms - w->waits_ms > patience_ms) {
            w->not_granted = w->wait.kind == WAIT_ROOM;
            pool_end(p, w, false);
        }
    }
}

void pool_last_words(const struct warm *w, char text[256])
{
    AUTO_BUF struct buf heard = BUF_INIT;
    AUTO_FREE char *path = w->dir ? io_join(w->dir, "heard") : NULL;
    struct lines stream;
    struct fold fold;
    text[0] = '\0';
    if (!path || ours_read(&heard, path, HEARD_MAX, NULL) < 0)
        return;
    lines_init(&stream, &w->log.reader, 0);
    fold_init(&fold, "", 0);
    if (lines_feed(&stream, buf_text(&heard), heard.len, on_line, &fold) == 0) {
        const struct fold_seen *why = fold_cause(&fold, heard.len);
        (void)snprintf(text, 256, "%s%s%s", why ? why->cause->name : stream.place.said, why ? ": " : "",
                       why ? why->text : "");
    }
    lines_done(&stream);
}

/* --- finding --- */

/* What the launcher writes while it runs: boot id, pid, start time, attempt, tag. */
static bool read_note(struct warm *w)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_FREE char *path = w->dir ? io_join(w->dir, "pid") : NULL;
    char tag[SESSION_ID_MAX + 1];
    long pid = 0;
    if (!path || !ours_is_dir(w->dir) || ours_read(&b, path, PID_NOTE_MAX, NULL) < 0 ||
        sscanf(buf_text(&b), "%36s %ld %" SCNu64 " %*u %64s", w->at.boot_id, &pid, &w->at.start_ticks, tag) != 4)
        return false;
    w->at.pid = (pid_t)pid;
    w->tag = strdup(tag);
    return w->tag && launcher_is(w->at.pid, w->at.start_ticks, w->at.boot_id, w->tag);
}

/* Of one on a host. False: there is none, or its host is not among the nodes any more. */
static bool read_place(const struct pool *p, struct warm *w)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_FREE char *path = w->dir ? io_join(w->dir, "place") : NULL;
    if (!path || !ours_is_dir(w->dir) || ours_read(&b, path, PID_NOTE_MAX, NULL) < 0 || b.len == 0)
        return false;
    char *line = b.data, *blank = strchr(line, ' ');
    line[strcspn(line, "\n")] = '\0';
    if (!blank || !session_is_id(blank + 1, strlen(blank + 1)))
        return false;
    *blank = '\0';
    w->place = hosts_find(p->hosts, line);
    w->tag = w->place ? strdup(blank + 1) : NULL;
    return w->tag;
}

static int adopt(struct pool *p, int number, struct err *e)
{
    struct warm *w = add(p, number);
    if (!w)
        return err_sys(e, -ENOMEM, "session %d", number);
    if (!read_place(p, w) && !read_note(w)) {
        drop(p, w);
        return 0;
    }
    const struct launcher_ready at = w->at;
    const struct site site = site_of(p, w->place);
    take_at(w, &at);
    w->running = true;
    w->launch.row = site.row;
    int rc = site.row->adopt(site.own, w->id, &w->row, w->dir, &w->launch, e);
    if (rc == 0)
        rc = connect_to(p, w, e);
    if (rc < 0)
        drop(p, w);
    return rc == -ESRCH ? 0 : rc; /* it has just ended */
}

static int find_left(struct pool *p, struct err *e)
{
    DIR *d = opendir(p->study->dir);
    if (!d)
        return errno == ENOENT ? 0 : err_sys(e, -errno, "cannot read '%s'", p->study->dir);
    int rc = 0;
    for (const struct dirent *entry; rc == 0 && (entry = readdir(d));) {
        int number = 0, end = 0;
        if (sscanf(entry->d_name, "session-%d%n", &number, &end) == 1 && entry->d_name[end] == '\0' && number > 0)
            rc = adopt(p, number, e);
    }
    (void)closedir(d); /* read only */
    return rc;
}

int pool_open(struct pool **out, struct study *s, uv_loop_t *loop, struct hosts *hosts, const struct pool_ops *ops,
              void *ctx, struct err *e)
{
    struct pool *p = calloc(1, sizeof *p);
    if (!p)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    *p = (struct pool){ .study = s, .loop = loop, .hosts = hosts, .ops = *ops, .ctx = ctx, .next_number = 1 };
    p->here = (struct site_here){ loop, &launcher_calls, p };
    if (hosts)
        hosts_serve(hosts, &launcher_calls, &host_calls, p);
    session_sockets_sweep();
    int rc = find_left(p, e);
    if (rc < 0) {
        pool_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void pool_close(struct pool *p)
{
    if (!p)
        return;
    while (p->n > 0)
        drop(p, p->list[p->n - 1]);
    free(p->list);
    free(p);
}

/* --- looking --- */

struct warm *pool_idle(struct pool *p, size_t place, int slots, int cold, double batch)
{
    struct warm *best = NULL;
    for (size_t i = 0; i < p->n; i++) {
        struct warm *w = p->list[i];
        bool idle = w->place == place && w->ready && !w->ending && w->trial == 0 && w->busy[0] == '\0';
        bool fits = w->slots == slots || (w->slots > slots && (isnan(batch) || fmod(batch, w->slots) == 0));
        if (idle && fits && w->cold == cold && (!best || w->slots < best->slots))
            best = w;
    }
    return best;
}

struct warm *pool_coming(struct pool *p, size_t place, int slots, int cold)
{
    for (size_t i = 0; i < p->n; i++) {
        struct warm *w = p->list[i];
        bool comes = !w->ready && !w->ending && w->trial == 0 && w->place == place;
        if (comes && w->slots == slots && w->cold == cold)
            return w;
    }
    return NULL;
}

struct warm *pool_by_tag(struct pool *p, const char *tag)
{
    for (size_t i = 0; p && i < p->n; i++)
        if (p->list[i]->tag && strcmp(p->list[i]->tag, tag) == 0)
            return p->list[i];
    return NULL;
}

size_t pool_count(const struct pool *p)
{
    return p ? p->n : 0;
}

struct warm *pool_at(struct pool *p, size_t i)
{
    return p->list[i];
}
