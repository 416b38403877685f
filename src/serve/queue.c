#include "serve/queue.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/proc.h"
#include "core/shares.h"
#include "live/background.h"
#include "live/study.h"

enum {
    LOOK_MS = 500,  /* between two looks at what nobody tells: the hour, and drivers that are not our children */
    STARTS_MAX = 5, /* drivers that were killed one after the other without having got any further */
    EXIT_INTERRUPTED = 130,
    EXIT_FAILED = 3,
};

static const char all_running[] = QUEUE_RUNNING " " QUEUE_DRAINING " " QUEUE_LEAVING " " QUEUE_STOPPING;

struct queue {
    struct store *store;
    char *path;
    int cpus;
    void (*say)(const char *line);
    struct store_queued *rows; /* as they were read last */
    size_t n, cap;
    pid_t *children; /* drivers that are ours to be waited for */
    size_t n_children, cap_children;
    int64_t changes, looked_ms;
    bool stale; /* what was read is not what is there */
    bool drains;
};

static void forget_rows(struct queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        store_queued_done(&q->rows[i]);
    q->n = 0;
}

void queue_close(struct queue *q)
{
    if (!q)
        return;
    forget_rows(q);
    free(q->rows);
    free(q->children);
    store_close(q->store);
    free(q->path);
    free(q);
}

static int cpus_here(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return n > 0 ? n : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int queue_open(struct queue **out, const char *store_path, int cpus, void (*say)(const char *line), struct err *e)
{
    struct queue *q = calloc(1, sizeof *q);
    if (!q)
        return err_sys(e, -ENOMEM, "queue");
    q->cpus = cpus > 0 ? cpus : cpus_here();
    q->say = say;
    q->stale = true;
    q->path = strdup(store_path);
    int rc = q->path ? store_open(&q->store, store_path, STORE_WRITE, e) : err_sys(e, -ENOMEM, "queue");
    if (rc < 0) {
        queue_close(q);
        return rc;
    }
    *out = q;
    return 0;
}

static void say(const struct queue *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct queue *q, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap); /* a cut line is still a line */
    va_end(ap);
    q->say(line);
}

static bool is(const struct store_queued *r, const char *state)
{
    return strcmp(r->state, state) == 0;
}

/* --- what becomes of a row: in a transaction, with what is known of it --- */

static int put(struct queue *q, struct store_queued *r, const char *from, const char *to, struct err *e)
{
    int rc = store_begin(q->store, e);
    if (rc == 0)
        rc = to ? store_queue_turn(q->store, r->id, from, to, e) : 1;
    bool turned = rc == 1;
    if (turned)
        rc = store_queue_put(q->store, r, e);
    if (rc == 0)
        rc = store_commit(q->store, e);
    if (rc < 0)
        store_rollback(q->store);
    q->stale = true;
    return rc < 0 ? rc : turned;
}

static int set_reason(struct store_queued *r, const char *text, struct err *e)
{
    free(r->reason);
    r->reason = text ? strdup(text) : NULL;
    return text && !r->reason ? err_sys(e, -ENOMEM, "study '%s'", r->study) : 0;
}

static int end(struct queue *q, struct store_queued *r, const char *to, int exit_code, const char *reason,
               struct err *e)
{
    int rc = set_reason(r, reason, e);
    r->pid = 0;
    r->exit_code = exit_code;
    r->ended_ms = study_now_ms();
    if (rc == 0)
        rc = put(q, r, all_running, to, e);
    if (rc == 1)
        say(q, reason ? "study %s is %s: %s" : "study %s is %s", r->study, to, reason);
    return rc < 0 ? rc : 0;
}

/* It waits again, with its place kept. */
static int put_back(struct queue *q, struct store_queued *r, struct err *e)
{
    r->pid = 0;
    int rc = put(q, r, all_running, QUEUED, e);
    if (rc == 1)
        say(q, "study %s is in the queue again", r->study);
    return rc < 0 ? rc : 0;
}

/* --- starting --- */

static json_t *variables(const struct store_queued *r)
{
    json_t *env = json_loads(r->env, 0, NULL);
    if (!env || json_object_set_new(env, "PIPETUNE_QUEUED", json_string("1")) < 0) {
        json_decref(env);
        return NULL;
    }
    return env;
}

static int note_driver(struct queue *q, struct store_queued *r, pid_t pid, uint64_t ticks, struct err *e)
{
    char boot[PROC_BOOT_ID_SIZE] = "";
    (void)proc_boot_id(boot); /* "": it is not met again */
    free(r->boot_id);
    r->boot_id = strdup(boot);
    r->pid = pid;
    r->start_ticks = (int64_t)ticks;
    int rc = r->boot_id ? put(q, r, NULL, NULL, e) : err_sys(e, -ENOMEM, "study '%s'", r->study);
    return rc < 0 ? rc : 0;
}

/* Its pid is committed before it may begin: so that there are never two. */
static int let_go(struct queue *q, struct store_queued *r, struct background *b, struct err *e)
{
    pid_t *grown = array_more(q->children, q->n_children, &q->cap_children, sizeof *grown);
    failpoint("queue-spawned");
    if (!grown)
        return err_sys(e, -ENOMEM, "study '%s'", r->study);
    q->children = grown;
    q->children[q->n_children++] = b->pid;
    int rc = note_driver(q, r, b->pid, b->start_ticks, e);
    failpoint("queue-noted");
    if (rc == 0)
        (void)background_go(b); /* one that has died since is reaped */
    failpoint("queue-gone");
    return rc;
}

static int prepare_folder(const char *dir, struct err *e)
{
    AUTO_FREE char *all = io_dirname(dir);
    int rc = all ? ours_dir(all, e) : err_sys(e, -ENOMEM, "'%s'", dir);
    return rc == 0 ? ours_dir(dir, e) : rc;
}

/* What cannot be started ends, and says why; the others go on. */
static int spawn(struct queue *q, struct store_queued *r, struct err *e)
{
    struct err why = { 0 };
    struct background b = { .go_fd = -1 };
    AUTO_FREE char *dir = study_dir(q->path, r->study);
    AUTO_FREE char *log = dir ? background_log(dir) : NULL;
    AUTO_JSON json_t *env = variables(r);
    AUTO_JSON json_t *words = json_loads(r->argv, 0, NULL);
    if (!log || !env || !words)
        return err_sys(e, -ENOMEM, "study '%s'", r->study);
    int rc = prepare_folder(dir, &why);
    if (rc == 0)
        rc = background_start(&b, words, r->folder, env, log, &why);
    if (rc < 0)
        return end(q, r, QUEUE_DONE, EXIT_FAILED, why.text, e);
    rc = let_go(q, r, &b, e);
    background_drop(&b); /* where it was not let go it ends by itself */
    if (rc == 0)
        say(q, "study %s is run by process %ld", r->study, (long)b.pid);
    return rc;
}

/* Somebody drives it already, or it gets a driver. */
static int drive(struct queue *q, struct store_queued *r, struct err *e)
{
    AUTO_FREE char *dir = study_dir(q->path, r->study);
    pid_t holder = dir ? study_driver(dir) : 0;
    uint64_t ticks = 0;
    if (!dir)
        return err_sys(e, -ENOMEM, "study '%s'", r->study);
    if (holder <= 0 || proc_start_ticks(holder, &ticks) < 0)
        return spawn(q, r, e);
    say(q, "study %s is run by process %ld already", r->study, (long)holder);
    return note_driver(q, r, holder, ticks, e);
}

static int begin(struct queue *q, struct store_queued *r, struct err *e)
{
    r->starts = 1;
    r->pid = 0;
    r->begun_ms = r->begun_ms ? r->begun_ms : study_now_ms();
    int rc = put(q, r, QUEUED, QUEUE_RUNNING, e);
    failpoint("queue-turned");
    return rc == 1 ? drive(q, r, e) : rc;
}

/* --- a driver has ended --- */

struct standing {
    const char *name;
    int over;      /* trials that are */
    double mean_s; /* … and took, each; NAN: none is */
};

static int take_standing(void *ctx, const struct store_summary *s)
{
    struct standing *st = ctx;
    if (strcmp(s->name, st->name) != 0)
        return 0;
    st->over = s->done + s->failed + s->stopped;
    st->mean_s = st->over > 0 ? s->seconds / st->over : (double)NAN;
    return 1;
}

static int find_standing(struct queue *q, const char *study, struct standing *out, struct err *e)
{
    *out = (struct standing){ .name = study, .mean_s = NAN };
    int rc = store_list(q->store, take_standing, out, e);
    return rc < 0 ? rc : 0;
}

/* It was killed: another one goes on, as long as that leads anywhere. `counts`: nobody but itself could have ended it. */
static int again(struct queue *q, struct store_queued *r, bool counts, struct err *e)
{
    char text[96];
    struct standing st;
    int rc = find_standing(q, r->study, &st, e);
    if (rc < 0)
        return rc;
    r->starts = st.over > r->done ? 1 : r->starts + counts;
    r->done = st.over;
    (void)snprintf(text, sizeof text, "its driver was killed %d times and got no further", STARTS_MAX);
    if (r->starts > STARTS_MAX)
        return end(q, r, QUEUE_DONE, -1, text, e);
    r->pid = 0;
    rc = put(q, r, NULL, NULL, e);
    return rc < 0 ? rc : drive(q, r, e);
}

/* How it ended is not known, or was a signal: the study itself tells whether there is more to do. */
static int judge_lost(struct queue *q, struct store_queued *r, bool counts, struct err *e)
{
    struct store_study study = { 0 };
    int rc = store_study_find(q->store, r->study, &study, e);
    bool over = rc == 1 && strcmp(study.state, "running") != 0;
    int code = over && strcmp(study.state, "failed") == 0;
    store_study_done(&study);
    if (rc < 0)
        return rc;
    if (over)
        return end(q, r, QUEUE_DONE, code, NULL, e);
    return is(r, QUEUE_DRAINING) || is(r, QUEUE_LEAVING) ? put_back(q, r, e) : again(q, r, counts, e);
}

static int judge_exit(struct queue *q, struct store_queued *r, int code, const char *dir, struct err *e)
{
    bool interrupted = code == EXIT_INTERRUPTED;
    if (interrupted && (is(r, QUEUE_DRAINING) || is(r, QUEUE_LEAVING)))
        return put_back(q, r, e);
    if (interrupted || is(r, QUEUE_STOPPING))
        return end(q, r, QUEUE_STOPPED, code, is(r, QUEUE_STOPPING) ? NULL : "its driver was interrupted", e);
    AUTO_FREE char *log = code ? background_log(dir) : NULL;
    AUTO_FREE char *last = log ? background_last(log) : NULL;
    return end(q, r, QUEUE_DONE, code, last, e);
}

/* `status`: as waitpid() gave it; -1: it was no child of ours. */
static int on_end(struct queue *q, struct store_queued *r, int status, struct err *e)
{
    AUTO_FREE char *dir = study_dir(q->path, r->study);
    if (!dir)
        return err_sys(e, -ENOMEM, "study '%s'", r->study);
    if (study_driver(dir) > 0) /* another one drives it, which is the reason */
        return drive(q, r, e);
    if (status >= 0 && WIFEXITED(status))
        return judge_exit(q, r, WEXITSTATUS(status), dir, e);
    return judge_lost(q, r, status >= 0, e);
}

/* --- looking --- */

static int keep_row(void *ctx, const struct store_queued *r)
{
    struct queue *q = ctx;
    struct store_queued *grown = array_more(q->rows, q->n, &q->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    q->rows = grown;
    int rc = store_queued_copy(&q->rows[q->n], r);
    q->n += rc == 0;
    return rc;
}

static int load(struct queue *q, struct err *e)
{
    forget_rows(q);
    q->stale = false;
    q->looked_ms = clock_ms();
    int rc = store_queue(q->store, NULL, keep_row, q, e);
    return rc == -ENOMEM ? err_sys(e, rc, "queue") : rc;
}

int queue_look(struct queue *q, struct err *e)
{
    return load(q, e);
}

static bool is_child(const struct queue *q, int64_t pid)
{
    for (size_t i = 0; i < q->n_children; i++)
        if (q->children[i] == pid)
            return true;
    return false;
}

static int hear_child(struct queue *q, pid_t pid, int status, struct err *e)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->rows[i].pid == pid && store_queue_runs(q->rows[i].state))
            return on_end(q, &q->rows[i], status, e);
    return 0; /* it was given up */
}

static int reap(struct queue *q, struct err *e)
{
    for (size_t i = q->n_children; i-- > 0;) {
        int status = 0;
        pid_t pid = q->children[i];
        if (waitpid(pid, &status, WNOHANG) != pid)
            continue;
        q->children[i] = q->children[--q->n_children];
        int rc = load(q, e); /* its last words, and what was asked meanwhile */
        if (rc == 0)
            rc = hear_child(q, pid, status, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Drivers of an earlier server, and those that were to be started by it. */
static int look_after(struct queue *q, struct store_queued *r, struct err *e)
{
    bool lives = r->pid > 0 && (is_child(q, r->pid) || proc_is((pid_t)r->pid, (uint64_t)r->start_ticks, r->boot_id));
    if (!store_queue_runs(r->state))
        return 0;
    if (lives) {
        bool goes_on = !q->drains && (is(r, QUEUE_DRAINING) || is(r, QUEUE_LEAVING));
        int rc = goes_on ? store_queue_turn(q->store, r->id, all_running, QUEUE_RUNNING, e) : 0;
        q->stale |= goes_on;
        return rc < 0 ? rc : 0;
    }
    return on_end(q, r, -1, e);
}

/* --- sharing and starting --- */

static bool takes_part(const struct queue *q, const struct store_queued *r, int64_t now_ms)
{
    bool due = is(r, QUEUED) && r->at_ms <= now_ms && !q->drains;
    return r->here && (due || is(r, QUEUE_RUNNING));
}

static int reckon(struct queue *q, struct share *shares, int64_t now_ms, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < q->n; i++) {
        const struct store_queued *r = &q->rows[i];
        struct standing st = { .mean_s = NAN };
        bool told = r->most >= 0 && is(r, QUEUE_RUNNING);
        if (takes_part(q, r, now_ms)) {
            rc = told ? find_standing(q, r->study, &st, e) : 0;
            shares[i] = (struct share){ .priority = r->priority,
                                        .most = told ? r->most : q->cpus,
                                        .grain = told && r->grain > 0 ? r->grain : 1,
                                        .need_s = told ? st.mean_s * r->to_go * r->grain : (double)NAN };
        }
    }
    shares_divide(shares, q->n, q->cpus);
    return rc;
}

/* All at once, and before anybody is started by it. */
static int put_shares(struct queue *q, const struct share *shares, struct err *e)
{
    bool any = false;
    for (size_t i = 0; i < q->n; i++)
        any |= shares[i].cpus != q->rows[i].share;
    int rc = any ? store_begin(q->store, e) : 0;
    for (size_t i = 0; any && rc == 0 && i < q->n; i++) {
        if (shares[i].cpus != q->rows[i].share)
            rc = store_queue_put_share(q->store, q->rows[i].id, shares[i].cpus, e);
        q->rows[i].share = shares[i].cpus;
    }
    if (any && rc == 0)
        rc = store_commit(q->store, e);
    if (rc < 0)
        store_rollback(q->store);
    return rc;
}

static int share(struct queue *q, struct err *e)
{
    int64_t now_ms = study_now_ms();
    AUTO_FREE struct share *shares = calloc(q->n + 1, sizeof *shares);
    int rc = shares ? reckon(q, shares, now_ms, e) : err_sys(e, -ENOMEM, "queue");
    if (rc == 0)
        rc = put_shares(q, shares, e);
    for (size_t i = 0; rc == 0 && !q->drains && i < q->n; i++) {
        struct store_queued *r = &q->rows[i];
        if (is(r, QUEUED) && r->at_ms <= now_ms && (!r->here || r->share > 0))
            rc = begin(q, r, e);
    }
    return rc;
}

int queue_tick(struct queue *q, struct err *e)
{
    int64_t changes = q->changes;
    int rc = store_changes(q->store, &changes, e);
    if (rc == 0)
        rc = reap(q, e);
    if (rc < 0 || (changes == q->changes && !q->stale && clock_ms() - q->looked_ms < LOOK_MS))
        return rc;
    q->changes = changes;
    rc = load(q, e);
    for (size_t i = 0; rc == 0 && i < q->n; i++)
        rc = look_after(q, &q->rows[i], e);
    if (rc == 0 && q->stale)
        rc = load(q, e);
    return rc == 0 ? share(q, e) : rc;
}

/* --- the end --- */

static int turn_all(struct queue *q, const char *from, const char *to, struct err *e)
{
    int rc = load(q, e);
    q->drains = q->stale = true;
    for (size_t i = 0; rc >= 0 && i < q->n; i++)
        rc = store_queue_turn(q->store, q->rows[i].id, from, to, e);
    return rc < 0 ? rc : 0;
}

int queue_drain(struct queue *q, struct err *e)
{
    return turn_all(q, QUEUE_RUNNING, QUEUE_DRAINING, e);
}

int queue_leave(struct queue *q, struct err *e)
{
    return turn_all(q, QUEUE_RUNNING " " QUEUE_DRAINING, QUEUE_LEAVING, e);
}

bool queue_runs(const struct queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        if (store_queue_runs(q->rows[i].state))
            return true;
    return q->stale;
}

bool queue_is_empty(const struct queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        if (!store_queue_is_over(q->rows[i].state))
            return false;
    return !q->stale;
}

int queue_again(struct store *s, const char *study, struct err *e)
{
    struct store_queued r = { 0 };
    int rc = store_queue_find(s, study, &r, e);
    if (rc == 1) {
        r.ended_ms = 0;
        r.exit_code = -1;
        rc = store_queue_turn(s, r.id, QUEUE_DONE " " QUEUE_STOPPED, QUEUED, e);
        int written = rc == 1 ? store_queue_put(s, &r, e) : 0;
        rc = written < 0 ? written : rc;
    }
    store_queued_done(&r);
    return rc;
}
