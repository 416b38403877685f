#include "live/slurm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/capture.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/sha256.h"
#include "core/slurm_words.h"

enum {
    LOOK_MS = 500,     /* between two looks at the folders of those that run */
    POLL_MS = 5000,    /* between two of squeue, where nothing is expected */
    SOON_MS = 1500,    /* … and where something is */
    SILENT_MS = 15000, /* … and where it does not answer; before it is given another job then, too */
    ANSWER_MS = 30000, /* one of its commands may take */
    TOLD_MS = 60000,   /* a job waits so long without a word of it */
    SETTLE_MS = 30000, /* the note of its end may be seen so much later here than its end */
    HOPE_MS = 30000,   /* that it can never run is believed when it is said for so long */
    NOTE_MAX = 4096,
    WHY_MAX = 400,
};

/* One of its commands, run by a worker. */
struct ask {
    uv_work_t work;
    struct slurm *s;
    uint64_t id; /* of the launch; 0: of none */
    void (*done)(struct slurm *s, const struct ask *a);
    struct strv argv;
    struct buf out;
    int code; /* of its exit; -errno: it was not run, or did not answer */
};

/* A launch. */
struct job {
    struct job *next;
    struct slurm *all;
    uint64_t id, number; /* the driver's; Slurm's, 0: not made */
    char *tag, *dir;
    bool went, adopted;
    bool to_end;                                       /* before it went */
    bool to_release, busy;                             /* busy: a command of it is under way */
    bool begun, noted, over;                           /* noted: its launcher has written how it ended */
    bool asked, listed;                                /* by the squeue under way; in its answer */
    bool killed;                                       /* it was to be */
    struct slurm_job seen;                             /* as squeue has it */
    int64_t went_ms, settle_ms, hopeless_ms, retry_ms; /* when; 0: not yet */
    char told[96];                                     /* the reason that was */
    bool ends;                                         /* `end` is known */
    struct site_end end;
    char why[WHY_MAX];
};

struct slurm {
    uv_loop_t *loop;
    const struct plan *plan;
    const struct launcher_ops *launcher;
    const struct slurm_ops *ops;
    void *ctx;
    char name[160]; /* of its jobs */
    struct job *list;
    int asks;    /* under way */
    bool closed; /* freed when none is */
    bool polls, sweeps, to_sweep, told_silent;
    int64_t look_ms, poll_ms, rests_until_ms;
};

static struct job *find(const struct slurm *s, uint64_t id)
{
    struct job *j = s->list;
    while (j && j->id != id)
        j = j->next;
    return j;
}

static struct job *find_number(const struct slurm *s, uint64_t number)
{
    struct job *j = s->list;
    while (j && j->number != number)
        j = j->next;
    return j;
}

static bool knows_tag(const struct slurm *s, const char *tag)
{
    const struct job *j = s->list;
    while (j && strcmp(j->tag, tag) != 0)
        j = j->next;
    return j != NULL;
}

static void poll_within(struct slurm *s, int64_t ms)
{
    int64_t at = clock_ms() + ms;
    s->poll_ms = s->poll_ms < at ? s->poll_ms : at;
}

/* --- its commands ----------------------------------------------------------------------------------------------------------- */

static void free_slurm(struct slurm *s)
{
    free(s);
}

static void run(uv_work_t *work)
{
    struct ask *a = work->data;
    struct err e;
    a->code = capture(&a->out, a->argv.v, ANSWER_MS, &e);
    if (a->code < 0)
        buf_puts(&a->out, e.text);
}

static void free_ask(struct ask *a)
{
    strv_done(&a->argv);
    buf_done(&a->out);
    free(a);
}

static void on_run(uv_work_t *work, int status)
{
    struct ask *a = work->data;
    struct slurm *s = a->s;
    (void)status; /* none is cancelled */
    s->asks--;
    if (a->done)
        a->done(s, a);
    free_ask(a);
    if (s->closed && s->asks == 0)
        free_slurm(s);
}

/* Takes `argv`. -ENOMEM. */
static int ask(struct slurm *s, uint64_t id, struct strv *argv, void (*done)(struct slurm *s, const struct ask *a))
{
    struct ask *a = calloc(1, sizeof *a);
    bool failed = argv->failed;
    if (!a || failed) {
        strv_done(argv);
        free(a);
        return -ENOMEM;
    }
    *a = (struct ask){ .s = s, .id = id, .done = done, .argv = *argv };
    *argv = STRV_INIT;
    a->work.data = a;
    int rc = uv_queue_work(s->loop, &a->work, run, on_run);
    if (rc < 0)
        free_ask(a);
    else
        s->asks++;
    return rc;
}

/* What it says is wrong, in one line. */
static void first_error(const struct ask *a, char out[WHY_MAX])
{
    const char *text = buf_text(&a->out), *at = strstr(text, "error: Batch job submission failed: ");
    const char *error = at ? at + strlen("error: Batch job submission failed: ") : strstr(text, "error: ");
    const char *from = at ? error : error ? error + strlen("error: ") : text;
    (void)snprintf(out, WHY_MAX, "%.*s", (int)strcspn(from, "\n"), from);
    if (!*out)
        (void)snprintf(out, WHY_MAX, "'%s' ended with exit code %d", a->argv.v[0], a->code);
}

static void cancel(struct slurm *s, uint64_t number, const char *how, const char *signal)
{
    struct strv argv = STRV_INIT;
    strv_add(&argv, "scancel");
    strv_add(&argv, "--quiet");
    if (how)
        strv_add(&argv, how);
    if (signal)
        strv_addf(&argv, "--signal=%s", signal);
    strv_addf(&argv, "%" PRIu64, number);
    (void)ask(s, 0, &argv, NULL); /* without memory the driver asks again */
    poll_within(s, SOON_MS);
}

/* --- the end of a launch ------------------------------------------------------------------------------------------------------ */

static void free_job(struct job *j)
{
    struct job **at = &j->all->list;
    while (*at && *at != j)
        at = &(*at)->next;
    if (*at)
        *at = j->next;
    free(j->tag);
    free(j->dir);
    free(j);
}

static void __attribute__((format(printf, 3, 4))) ended_as(struct job *j, enum outcome outcome, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(j->why, sizeof j->why, fmt, ap);
    va_end(ap);
    j->end = (struct site_end){ .outcome = outcome, .why = j->why };
    j->ends = true;
}

static void over(struct job *j)
{
    struct slurm *s = j->all;
    j->over = true;
    s->launcher->gone(s->ctx, j->id);
}

static const char *node_of(const struct job *j)
{
    return j->seen.node[0] ? j->seen.node : "its node";
}

/* Its launcher has left no note, and the job is said to have failed by itself. */
static void judge_failed(struct job *j, const struct slurm_end *end)
{
    const struct plan *p = j->all->plan;
    if (slurm_reason_of(j->seen.reason) == SLURM_NEVER)
        ended_as(j, OUTCOME_INFEASIBLE, "Slurm cannot run job %" PRIu64 ": %s", j->number, j->seen.reason);
    else if (end->code == SLURM_EXIT_UNSEEN)
        ended_as(j, OUTCOME_ENVIRONMENT,
                 "%s does not see '%s', or this working directory: the store and what trials need must lie on a file "
                 "system that Slurm's "
                 "nodes share",
                 node_of(j), j->dir);
    else if (end->code >= SLURM_EXIT_NO_NODE_MIN && end->code <= SLURM_EXIT_NO_NODE_MAX)
        ended_as(j, OUTCOME_ENVIRONMENT, "%s has no '%s' that it can run: it must lie where Slurm's nodes see it, too",
                 node_of(j), p->env.node);
    else if (end->code == SLURM_EXIT_BUSY)
        ended_as(j, OUTCOME_INTERRUPTED, "an earlier attempt of it still ran");
    else if (end->signal)
        ended_as(j, OUTCOME_KILLED, "its job %" PRIu64 " was killed from outside by signal %d", j->number, end->signal);
    else
        ended_as(j, OUTCOME_FAILED, "its launcher ended with exit code %d on %s, see %s/job.out", end->code, node_of(j),
                 j->dir);
}

/* How it ended is known as well as it will be. */
static void conclude(struct job *j, const struct slurm_end *end)
{
    const char *limit = j->seen.limit[0] ? j->seen.limit : "places.slurm.time";
    switch (end->state) {
    case SLURM_CANCELLED:
        ended_as(j, OUTCOME_INTERRUPTED, "its job %" PRIu64 " was cancelled from outside", j->number);
        break;
    case SLURM_TIMEOUT:
        ended_as(j, OUTCOME_FAILED, "time_limit: its job was over its time limit of %s; give places.slurm.time more",
                 limit);
        break;
    case SLURM_LOST:
        ended_as(j, OUTCOME_INTERRUPTED, "its job %" PRIu64 " lost its node: %s", j->number,
                 j->seen.reason[0] ? j->seen.reason : "it failed, or was given to another");
        break;
    case SLURM_MEMORY:
        ended_as(j, OUTCOME_INFEASIBLE, "its job took more memory than it was given");
        j->end.memory = true;
        break;
    case SLURM_FAILED:
        if (!j->noted)
            judge_failed(j, end);
        break;
    case SLURM_UNKNOWN:
        if (!j->noted)
            ended_as(j, OUTCOME_KILLED, "Slurm knows its job %" PRIu64 " no more, and it left no note of its end",
                     j->number);
        break;
    default: break; /* what its launcher noted says it all */
    }
    over(j);
}

/* --- what is looked at here ------------------------------------------------------------------------------------------------------ */

/* Does the note in its folder speak of this launch? */
static bool has_note(const struct job *j, const char *name)
{
    AUTO_FREE char *path = io_join(j->dir, name);
    AUTO_BUF struct buf text = BUF_INIT;
    return path && ours_read(&text, path, NOTE_MAX, NULL) == 0 && strstr(buf_text(&text), j->tag);
}

static void has_begun(struct job *j, int64_t ago_ms)
{
    struct slurm *s = j->all;
    if (j->begun)
        return;
    j->begun = true;
    s->ops->begun(s->ctx, j->id, ago_ms);
}

static void look_at(struct job *j)
{
    if (!j->begun && has_note(j, "pid"))
        has_begun(j, 0);
    if (!j->noted && (j->noted = has_note(j, "exit")))
        poll_within(j->all, 0);
}

/* --- starting -------------------------------------------------------------------------------------------------------------------- */

static void on_swept_line(void *ctx, const struct slurm_job *line)
{
    struct slurm *s = ctx;
    char text[160];
    if (slurm_state_is_over(line->state) || strncmp(line->comment, "pt-", 3) != 0 || knows_tag(s, line->comment))
        return;
    cancel(s, line->id, NULL, NULL);
    (void)snprintf(text, sizeof text, "Slurm's job %" PRIu64 " belongs to no attempt and is cancelled", line->id);
    if (!s->closed)
        s->ops->note(s->ctx, 0, text);
}

static void on_swept(struct slurm *s, const struct ask *a)
{
    s->sweeps = false;
    if (a->code == 0)
        slurm_words_jobs(buf_text(&a->out), a->out.len, on_swept_line, s);
    else
        s->to_sweep = true;
}

/* What a driver that was killed, or an answer that was lost, left behind. */
static void sweep(struct slurm *s)
{
    struct strv argv = STRV_INIT;
    strv_add(&argv, "squeue");
    strv_add(&argv, "--noheader");
    strv_add(&argv, "--me");
    strv_addf(&argv, "--name=%s", s->name);
    strv_add(&argv, "--format=" SLURM_JOB_FORMAT);
    s->to_sweep = false;
    s->sweeps = ask(s, 0, &argv, on_swept) == 0;
}

static void ready(struct job *j)
{
    struct slurm *s = j->all;
    const struct launcher_ready r = { .boot_id = SLURM_PLACE, .start_ticks = j->number };
    s->launcher->ready(s->ctx, j->id, &r);
}

/* It made no job, as far as is known. */
static void on_refused(struct slurm *s, struct job *j, const struct ask *a)
{
    char why[WHY_MAX], text[WHY_MAX + 64];
    first_error(a, why);
    bool passes = a->code == -ETIMEDOUT || a->code > 128;
    enum slurm_fault fault = passes ? SLURM_PASSES : slurm_fault_of(buf_text(&a->out));
    (void)snprintf(text, sizeof text, "Slurm does not take its job: %s", why);
    s->to_sweep = true;
    if (fault == SLURM_NEVER) { /* the attempt says so by its end */
        ended_as(j, OUTCOME_INFEASIBLE, "%s", text);
        ready(j);
    } else if (fault == SLURM_PASSES) {
        s->rests_until_ms = clock_ms() + SILENT_MS;
        s->ops->unplaced(s->ctx, j->id, text);
    } else {
        s->launcher->refused(s->ctx, j->id, false, text);
    }
}

static void on_submitted(struct slurm *s, const struct ask *a)
{
    struct job *j = find(s, a->id);
    uint64_t number;
    bool made = a->code == 0 && slurm_words_id(buf_text(&a->out), &number);
    if (!j && made) { /* nobody waits for it any more */
        cancel(s, number, NULL, NULL);
    } else if (!j) {
        sweep(s);
    } else if (!made) {
        j->busy = false;
        on_refused(s, j, a);
    } else {
        j->busy = false;
        j->number = number;
        ready(j);
    }
}

static struct job *make(struct slurm *s, uint64_t id, const char *tag, const char *dir, struct err *e)
{
    struct job *j = calloc(1, sizeof *j);
    if (j) {
        *j = (struct job){ .all = s, .id = id, .tag = strdup(tag), .dir = io_absolute(dir) };
        j->next = s->list;
        s->list = j;
    }
    if (j && j->tag && j->dir)
        return j;
    if (j)
        free_job(j);
    (void)err_sys(e, -ENOMEM, "launch '%s'", tag);
    return NULL;
}

static int write_script(const struct job *j, struct site_order *o, const char *path, struct err *e)
{
    AUTO_COMMAND struct launcher_command command = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    AUTO_FREE char *said = io_join(j->dir, "job.out");
    struct launcher_words words = o->words;
    words.dir = j->dir;
    words.unasked = true;
    words.memory = 0; /* Slurm's to limit */
    words.tell = o->tell ? "-" : NULL;
    words.answer = o->answer;
    launcher_put(&command, &words, &o->steps);
    if (!cwd || !said)
        return err_sys(e, -ENOMEM, "launch '%s'", j->tag);
    slurm_words_script(path, j->tag, cwd, said, &command.env, &command.argv, &text);
    if (command.argv.failed || command.env.failed || text.failed)
        return err_sys(e, -ENOMEM, "launch '%s'", j->tag);
    return io_write_atomic(path, text.data, text.len, 0700, e);
}

static int start(void *site, uint64_t id, struct site_order *o, struct site_launch *out, struct err *e)
{
    struct slurm *s = site;
    const struct config *c = &s->plan->cfg;
    struct job *j = make(s, id, o->words.tag, o->words.dir, e);
    AUTO_FREE char *path = j ? io_join(j->dir, "job") : NULL;
    struct strv argv = STRV_INIT;
    int rc = !j ? e->code : path ? write_script(j, o, path, e) : err_sys(e, -ENOMEM, "launch '%s'", j->tag);
    const struct slurm_ask what = { .name = s->name,
                                    .tag = o->words.tag,
                                    .script = path,
                                    .partition = c->slurm_partition,
                                    .account = c->slurm_account,
                                    .time = c->slurm_time,
                                    .options = &c->slurm_options,
                                    .cpus = o->room.cpus,
                                    .memory_gb = o->room.memory_gb };
    if (rc == 0) {
        slurm_words_sbatch(&what, &argv);
        rc = ask(s, id, &argv, on_submitted);
        rc = rc < 0 ? err_sys(e, rc, "launch '%s'", j->tag) : 0;
    }
    if (rc < 0) {
        if (j)
            free_job(j);
        return rc;
    }
    j->busy = true;
    *out = (struct site_launch){ slurm_site(s).row, j };
    return 0;
}

/* Whether it still runs shows the first squeue. */
static int adopt(void *site, uint64_t id, const struct store_attempt *row, const char *dir, struct site_launch *out,
                 struct err *e)
{
    struct slurm *s = site;
    if (row->start_ticks <= 0) /* it was never to be had */
        return -ESRCH;
    struct job *j = make(s, id, row->launch, dir, e);
    if (!j)
        return e->code;
    j->number = (uint64_t)row->start_ticks;
    j->went = j->adopted = true;
    j->went_ms = clock_ms();
    s->poll_ms = 0;
    *out = (struct site_launch){ slurm_site(s).row, j };
    return 0;
}

static void on_released(struct slurm *s, const struct ask *a)
{
    struct job *j = find(s, a->id);
    poll_within(s, SOON_MS);
    if (!j)
        return;
    j->busy = false;
    if (a->code == 0)
        return;
    j->to_release = true; /* where it has ended, squeue says so */
    j->retry_ms = clock_ms() + SOON_MS;
}

static void release(struct job *j)
{
    struct strv argv = STRV_INIT;
    if (!j->to_release || j->busy || clock_ms() < j->retry_ms)
        return;
    strv_add(&argv, "scontrol");
    strv_add(&argv, "release");
    strv_addf(&argv, "%" PRIu64, j->number);
    j->to_release = ask(j->all, j->id, &argv, on_released) < 0; /* without memory at the next look */
    j->busy = !j->to_release;
}

static int go(void *own)
{
    struct job *j = own;
    j->went = true;
    j->went_ms = clock_ms();
    j->to_release = j->number > 0 && !j->to_end;
    if (j->number > 0 && j->to_end)
        cancel(j->all, j->number, NULL, NULL);
    release(j);
    return 0;
}

/* --- what squeue says -------------------------------------------------------------------------------------------------------------- */

static void tell_wait(struct job *j, int64_t now)
{
    struct slurm *s = j->all;
    char text[256];
    if (now - j->went_ms < TOLD_MS || strcmp(j->told, j->seen.reason) == 0)
        return;
    (void)snprintf(j->told, sizeof j->told, "%s", j->seen.reason);
    (void)snprintf(text, sizeof text, "waits in Slurm's queue since %d s, as job %" PRIu64 ": %s",
                   (int)((now - j->went_ms) / 1000), j->number, j->seen.reason);
    s->ops->note(s->ctx, j->id, text);
}

static int64_t hope_ms(void)
{
#ifdef PIPETUNE_FAILPOINTS
    const char *ms = getenv("PIPETUNE_HOPE_MS"); /* tests don't wait as long as people do */
    if (ms)
        return strtol(ms, NULL, 10);
#endif
    return HOPE_MS;
}

static void on_pending(struct job *j, int64_t now)
{
    enum slurm_fault fault = slurm_reason_of(j->seen.reason);
    if (j->adopted &&
        strcmp(j->seen.reason, "JobHeldUser") == 0) { /* its driver was killed before it could release it */
        j->adopted = false;
        j->to_release = true;
    }
    if (fault == SLURM_PASSES) {
        j->hopeless_ms = 0;
        tell_wait(j, now);
        return;
    }
    j->hopeless_ms = j->hopeless_ms ? j->hopeless_ms : now;
    if (now - j->hopeless_ms < hope_ms())
        return;
    ended_as(j, fault == SLURM_NEVER ? OUTCOME_INFEASIBLE : OUTCOME_ENVIRONMENT,
             "Slurm would never run job %" PRIu64 ": %s", j->number, j->seen.reason);
    cancel(j->all, j->number, NULL, NULL);
    over(j);
}

static void on_explained(struct slurm *s, const struct ask *a)
{
    struct job *j = find(s, a->id);
    struct slurm_end end = { .state = SLURM_UNKNOWN };
    const char *text = buf_text(&a->out);
    if (!j)
        return;
    j->busy = false;
    bool known = strcmp(a->argv.v[0], "sacct") == 0 ? slurm_words_accounted(text, &end) : slurm_words_shown(text, &end);
    if (!known && j->listed)
        end.state = j->seen.state;
    look_at(j);
    conclude(j, &end);
}

/* With its exit code; of one that Slurm has forgotten by the accounts, where there are some. */
static void explain(struct job *j)
{
    struct strv argv = STRV_INIT;
    static const char *const show[] = { "scontrol", "--oneliner", "show", "job" };
    static const char *const account[] = {
        "sacct", "--noheader", "--allocations", "--parsable2", "--format=State,ExitCode", "--jobs"
    };
    if (j->busy)
        return;
    for (size_t i = 0; i < (j->listed ? ARRAY_LEN(show) : ARRAY_LEN(account)); i++)
        strv_add(&argv, j->listed ? show[i] : account[i]);
    strv_addf(&argv, "%" PRIu64, j->number);
    j->busy = ask(j->all, j->id, &argv, on_explained) == 0;
}

/* A file system takes its time until a note that was written elsewhere is seen. */
static bool awaits_note(struct job *j, int64_t now)
{
    if (j->noted || j->seen.state != SLURM_COMPLETED)
        return false;
    j->settle_ms = j->settle_ms ? j->settle_ms : now;
    return now - j->settle_ms < SETTLE_MS;
}

static void on_seen(struct job *j, int64_t now)
{
    const struct slurm_end end = { .state = j->seen.state };
    if (j->listed && j->seen.state == SLURM_PENDING) {
        on_pending(j, now);
        return;
    }
    if (j->listed && (j->seen.state == SLURM_RUNNING || j->seen.run_s > 0))
        has_begun(j, j->seen.run_s * 1000);
    if (j->listed && !slurm_state_is_over(j->seen.state))
        return;
    look_at(j);
    if (!j->listed || (j->seen.state == SLURM_FAILED && !j->noted))
        explain(j);
    else if (!awaits_note(j, now))
        conclude(j, &end);
}

static void on_line(void *ctx, const struct slurm_job *line)
{
    struct job *j = find_number(ctx, line->id);
    if (j) {
        j->seen = *line;
        j->listed = true;
    }
}

/* Those of its own that are not said to be gone go on. */
static void on_silent(struct slurm *s, const struct ask *a)
{
    char why[WHY_MAX], text[WHY_MAX + 64];
    s->poll_ms = clock_ms() + SILENT_MS;
    if (s->told_silent)
        return;
    s->told_silent = true;
    first_error(a, why);
    (void)snprintf(text, sizeof text, "Slurm does not answer, what runs there goes on: %s", why);
    s->ops->note(s->ctx, 0, text);
}

static void on_polled(struct slurm *s, const struct ask *a)
{
    int64_t now = clock_ms();
    s->polls = false;
    if (s->closed)
        return;
    bool none = a->code > 0 && strstr(buf_text(&a->out), "Invalid job id");
    if (a->code != 0 && !none) {
        on_silent(s, a);
        return;
    }
    s->told_silent = false;
    for (struct job *j = s->list; j; j = j->next)
        j->listed = false;
    slurm_words_jobs(buf_text(&a->out), a->out.len, on_line, s);
    for (struct job *j = s->list; j;) { /* what is told may change the list */
        bool due = j->asked && !j->over;
        j->asked = false;
        if (due)
            on_seen(j, now);
        j = due ? s->list : j->next;
    }
}

static bool is_known(const struct job *j)
{
    return j->number > 0 && j->went && !j->over;
}

static void poll_queue(struct slurm *s, int64_t now)
{
    struct strv argv = STRV_INIT;
    AUTO_BUF struct buf ids = BUF_INIT;
    bool soon = false;
    for (struct job *j = s->list; j; j = j->next) {
        j->asked = is_known(j);
        if (j->asked)
            buf_printf(&ids, "%s%" PRIu64, ids.len ? "," : "", j->number);
        soon |= j->asked && (!j->begun || j->noted);
    }
    s->poll_ms = now + (soon ? SOON_MS : POLL_MS);
    if (ids.len == 0)
        return;
    strv_add(&argv, "squeue");
    strv_add(&argv, "--noheader");
    strv_add(&argv, "--states=all");
    strv_addf(&argv, "--jobs=%s", buf_text(&ids));
    strv_add(&argv, "--format=" SLURM_JOB_FORMAT);
    s->polls = !ids.failed && ask(s, 0, &argv, on_polled) == 0;
    strv_done(&argv);
}

/* --- time ---------------------------------------------------------------------------------------------------------------------------- */

/* True: something was told, and the list may be another. */
static bool tend(struct job *j)
{
    release(j);
    if (j->went && j->number == 0 && !j->over) { /* it was refused */
        over(j);
        return true;
    }
    bool begun = j->begun;
    if (is_known(j))
        look_at(j);
    return j->begun != begun;
}

void slurm_tick(struct slurm *s)
{
    int64_t now = clock_ms();
    if (now < s->look_ms)
        return;
    s->look_ms = now + LOOK_MS;
    for (struct job *j = s->list; j;)
        j = tend(j) ? s->list : j->next;
    if (s->to_sweep && !s->sweeps)
        sweep(s);
    if (!s->polls && now >= s->poll_ms)
        poll_queue(s, now);
}

bool slurm_takes(const struct slurm *s)
{
    int64_t waiting = 0;
    for (const struct job *j = s->list; j; j = j->next)
        waiting += !j->begun && !j->over;
    return waiting < s->plan->cfg.slurm_pending && clock_ms() >= s->rests_until_ms;
}

/* --- the row -------------------------------------------------------------------------------------------------------------------------- */

static int paths(void *site, const char *tag, const char *resume, struct site_paths *out, struct err *e)
{
    (void)site, (void)tag, (void)resume, (void)out, (void)e; /* all of it is where it is */
    return 0;
}

/* Its launcher alone is asked to end; one that does not is killed with all of its processes, and at last as a job. */
static void signal_launch(void *own, const struct store_attempt *row, bool hard)
{
    struct job *j = own;
    (void)row;
    if (!j || j->over)
        return;
    if (!j->went)
        j->to_end = true;
    else if (j->number > 0 && hard && !j->killed && j->begun)
        cancel(j->all, j->number, "--full", "KILL");
    else if (j->number > 0)
        cancel(j->all, j->number, j->begun && !hard ? "--batch" : NULL, j->begun && !hard ? "TERM" : NULL);
    j->killed |= hard;
    j->to_release = false;
}

static void say_stop(void *own, const struct store_attempt *row)
{
    struct job *j = own;
    (void)row;
    if (j && j->begun && !j->over)
        cancel(j->all, j->number, "--batch", "USR1");
}

static void accounted(void *own, uint64_t offset)
{
    (void)own, (void)offset; /* the attempt reads the launcher's own file */
}

static int checkpoint(void *own, int epoch, const char *path, struct err *e)
{
    (void)own, (void)epoch, (void)path, (void)e;
    return 0;
}

/* In the queue nothing is to be heard of it. */
static bool away(void *own)
{
    const struct job *j = own;
    return j && !j->begun && !j->over;
}

static bool boot_id(void *own, char out[PROC_BOOT_ID_SIZE])
{
    (void)own, (void)out;
    return false;
}

/* Nodes of a cluster have one time. */
static bool ahead(void *own, int64_t *out_ms)
{
    (void)own;
    *out_ms = 0;
    return true;
}

static const char *lost(void *own)
{
    (void)own;
    return NULL;
}

static bool end_of(void *own, struct site_end *out)
{
    const struct job *j = own;
    if (!j || !j->ends)
        return false;
    *out = j->end;
    return true;
}

static void let_go(void *own, bool is_over)
{
    struct job *j = own;
    if (!j)
        return;
    AUTO_FREE char *said = is_over ? io_join(j->dir, "job.out") : NULL;
    AUTO_FREE char *script = is_over ? io_join(j->dir, "job") : NULL;
    struct stat st;
    if (said && stat(said, &st) == 0 && st.st_size == 0)
        (void)unlink(said); /* the next attempt's is the same */
    if (script)
        (void)unlink(script);
    if (!j->went && j->number > 0)
        cancel(j->all, j->number, NULL, NULL);
    free_job(j);
}

static const struct site_row slurm_row = { .elsewhere = true,
                                           .paths = paths,
                                           .start = start,
                                           .adopt = adopt,
                                           .go = go,
                                           .signal = signal_launch,
                                           .say_stop = say_stop,
                                           .accounted = accounted,
                                           .checkpoint = checkpoint,
                                           .away = away,
                                           .boot_id = boot_id,
                                           .ahead = ahead,
                                           .lost = lost,
                                           .end = end_of,
                                           .let_go = let_go };

struct site slurm_site(struct slurm *s)
{
    return (struct site){ &slurm_row, s, SLURM_PLACE, 0 };
}

/* --- beginning and end ------------------------------------------------------------------------------------------------------------------ */

int slurm_open(struct slurm **out, uv_loop_t *loop, const struct plan *p, const char *dir,
               const struct launcher_ops *launcher, const struct slurm_ops *ops, void *ctx, struct err *e)
{
    struct slurm *s = calloc(1, sizeof *s);
    AUTO_FREE char *path = realpath(dir, NULL);
    char hex[SHA256_HEX_MAX];
    struct sha256 sum;
    if (!s || !path) {
        free(s);
        return err_sys(e, s ? -errno : -ENOMEM, "'%s'", dir);
    }
    *s = (struct slurm){ .loop = loop, .plan = p, .launcher = launcher, .ops = ops, .ctx = ctx, .to_sweep = true };
    sha256_init(&sum);
    sha256_add(&sum, path, strlen(path));
    sha256_hex(&sum, hex);
    (void)snprintf(s->name, sizeof s->name, "%.100s.%.12s", p->name,
                   hex); /* another store may have a study of that name */
    *out = s;
    return 0;
}

void slurm_close(struct slurm *s)
{
    if (!s)
        return;
    while (s->list)
        free_job(s->list);
    s->closed = true;
    if (s->asks == 0)
        free_slurm(s);
}
