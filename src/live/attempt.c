#include "live/attempt.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/io.h"
#include "base/own.h"
#include "bigdl/submit.h"
#include "live/resume.h"

enum {
    LINGER_MS = 60000, /* an application may take this long to end after its last epoch */
    EXIT_NOTE_MAX = 4096,
};

/* --- preparing --- */

static char *trial_dir(const struct study *s, int number)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%d", number);
    return io_join(s->dir, name);
}

/* A tag that no other launch on any machine has: [A-Za-z0-9_-]. */
static char *new_tag(const struct store_trial *t, int attempt)
{
    uint32_t r[2] = { 0 };
    if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r)
        r[0] = (uint32_t)getpid(), r[1] = (uint32_t)study_now_ms();
    char *tag = NULL;
    return asprintf(&tag, "pt-%08x%08x-%d-%d", r[0], r[1], t->number, attempt) < 0 ? NULL : tag;
}

/* One step of the launcher: its words, with their count before them. */
static void add_step(struct strv *argv, const struct strv *step)
{
    strv_addf(argv, "%zu", step->n);
    for (size_t i = 0; i < step->n; i++)
        strv_add(argv, step->v[i]);
    argv->failed |= step->failed;
}

static void add_launcher(const struct attempt *a, struct strv *argv)
{
    /* Lines that a capped log goes on keeping: those that epochs are made of. */
    static const char *const keep[] = { "Epoch finished", "Accuracy is ", "Loss is (", "Save ",
                                        "Retrying",       "recover from", "Error",     "Exception" };
    strv_add(argv, a->study->plan->env.node);
    strv_add(argv, "exec");
    strv_add(argv, "--dir");
    strv_add(argv, a->dir);
    strv_add(argv, "--attempt");
    strv_addf(argv, "%d", a->row.number);
    strv_add(argv, "--launch");
    strv_add(argv, a->row.launch);
    strv_add(argv, "--control");
    strv_add(argv, "3");
    strv_add(argv, "--grace");
    strv_addf(argv, "%d", ATTEMPT_GRACE_S);
    for (size_t i = 0; i < ARRAY_LEN(keep); i++) {
        strv_add(argv, "--keep");
        strv_add(argv, keep[i]);
    }
    strv_add(argv, "--");
}

static int argv_text(const struct strv *argv, char **out)
{
    struct buf b = BUF_INIT;
    buf_putc(&b, '[');
    for (size_t i = 0; i < argv->n; i++) {
        buf_puts(&b, i ? ", " : "");
        json_put_string(&b, argv->v[i]);
    }
    buf_putc(&b, ']');
    *out = buf_take(&b);
    return *out ? 0 : -ENOMEM;
}

/* The steps: for a JVM application that resumes, the conversion of its checkpoint; then the training. */
static int add_steps(struct attempt *a, const char *checkpoint_dir, const struct resume_point *r, struct strv *argv,
                     struct err *e)
{
    const struct plan *p = a->study->plan;
    AUTO_STRV struct strv convert = STRV_INIT;
    AUTO_STRV struct strv train = STRV_INIT;
    AUTO_FREE char *converted = io_join(a->dir, "resume.model");
    bool convert_first = r->model && submit_needs_convert(&p->app);
    int rc = converted ? 0 : err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    if (rc == 0 && convert_first)
        rc = plan_convert_argv(p, r->model, converted, &convert, e);
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%" PRId64, p->cfg.seed);
    struct plan_launch l = { .epochs = a->trial->row.epochs,
                             .launch = a->row.launch,
                             .checkpoint = checkpoint_dir,
                             .resume_model = convert_first ? converted : r->model,
                             .resume_state = r->state,
                             .seed_text = seed };
    if (rc == 0)
        rc = plan_argv(p, &a->trial->point, a->trial->row.slots, &l, &train, e);
    if (rc == 0 && argv_text(&train, &a->row.argv) < 0)
        rc = err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    if (rc < 0)
        return rc;
    if (convert_first)
        add_step(argv, &convert);
    add_step(argv, &train);
    return 0;
}

static int find_resume(struct attempt *a, const char *checkpoint_dir, struct resume_point *r, struct err *e)
{
    a->row.first_epoch = 1;
    if (!app_argument(&a->study->plan->app, "resume"))
        return 0;
    int rc = resume_find(a->study->store, a->trial->row.id, checkpoint_dir, r, e);
    if (rc == 1) {
        a->row.first_epoch = r->epochs + 1;
        a->row.resumed_from = strdup(r->model);
        if (!a->row.resumed_from)
            return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    }
    return rc < 0 ? rc : 0;
}

static void init(struct attempt *a, struct study *s, struct study_trial *t)
{
    *a = (struct attempt){ .study = s, .trial = t, .log_fd = -1, .dir = trial_dir(s, t->row.number) };
    a->row.trial = t->row.id;
    a->row.exit_code = -1;
}

int attempt_prepare(struct attempt *a, struct study *s, struct study_trial *t, struct strv *argv, struct err *e)
{
    init(a, s, t);
    a->row.number = t->row.attempts + 1;
    a->row.launch = new_tag(&t->row, a->row.number);
    AUTO_FREE char *checkpoint_dir = a->dir ? io_join(a->dir, "checkpoint") : NULL;
    if (!checkpoint_dir || !a->row.launch)
        return err_sys(e, -ENOMEM, "trial %d", t->row.number);
    int rc = io_mkdirs(checkpoint_dir, e);
    struct resume_point r = { 0 };
    if (rc == 0)
        rc = find_resume(a, checkpoint_dir, &r, e);
    if (rc == 0) {
        a->epochs_done = a->row.first_epoch - 1;
        add_launcher(a, argv);
        rc = add_steps(a, checkpoint_dir, &r, argv, e);
    }
    if (rc == 0 && argv->failed)
        rc = err_sys(e, -ENOMEM, "trial %d", t->row.number);
    resume_done(&r);
    return rc;
}

static int last_epoch(void *ctx, const struct store_epoch *row)
{
    struct attempt *a = ctx;
    if (row->attempt != a->row.number)
        return 0;
    a->gained = true;
    if (row->epoch > a->epochs_done)
        a->epochs_done = row->epoch;
    return 0;
}

int attempt_recall(struct attempt *a, struct study *s, struct study_trial *t, const struct store_attempt *row,
                   struct err *e)
{
    init(a, s, t);
    if (!a->dir || store_attempt_copy(&a->row, row) < 0)
        return err_sys(e, -ENOMEM, "trial %d", t->row.number);
    a->adopted = true;
    a->epochs_done = row->first_epoch - 1;
    log_stream_init(&a->stream, row->log_offset);
    fold_init(&a->fold, s->plan->cfg.metric, row->log_offset);
    a->fold.connected = a->fold.granted = row->app_id != NULL; /* its line may lie before the offset */
    return store_epochs(s->store, t->row.id, last_epoch, a, e);
}

void attempt_done(struct attempt *a)
{
    if (!a)
        return;
    launcher_free(a->launcher);
    if (a->log_fd >= 0)
        (void)close(a->log_fd); /* read only */
    log_stream_done(&a->stream);
    store_attempt_done(&a->row);
    free(a->dir);
    *a = (struct attempt){ .log_fd = -1 };
}

/* --- starting --- */

static int set_text(char **slot, const char *text)
{
    char *c = strdup(text);
    if (!c)
        return -ENOMEM;
    free(*slot);
    *slot = c;
    return 0;
}

/* The setting as `show --decisions` prints it: what the trial really gets. */
static int store_launch(struct attempt *a, struct err *e)
{
    struct study *s = a->study;
    struct store_trial *t = &a->trial->row;
    int rc = store_begin(s->store, e);
    if (rc == 0)
        rc = store_attempt_add(s->store, &a->row, e);
    if (rc == 0)
        rc = store_trial_update(s->store, t, e);
    if (rc == 0)
        rc = study_decide(s, t->number, "launch", t->effective, e, "attempt %d on %d slot%s, %s%s", a->row.number,
                          t->slots, t->slots == 1 ? "" : "s",
                          a->row.resumed_from ? "from checkpoint " : "from the beginning",
                          a->row.resumed_from ? a->row.resumed_from : "");
    failpoint("attempt-before-commit");
    if (rc == 0)
        rc = store_commit(s->store, e);
    if (rc < 0)
        store_rollback(s->store);
    return rc;
}

int attempt_commit(struct attempt *a, const struct launcher_ready *r, struct err *e)
{
    a->row.pid = r->pid;
    a->row.start_ticks = (int64_t)r->start_ticks;
    a->row.log_offset = r->log_size;
    a->row.started_ms = study_now_ms();
    log_stream_init(&a->stream, r->log_size);
    fold_init(&a->fold, a->study->plan->cfg.metric, r->log_size);
    if (set_text(&a->row.state, "running") < 0 || set_text(&a->row.boot_id, r->boot_id) < 0 ||
        set_text(&a->trial->row.state, trial_state_name(TRIAL_RUNNING)) < 0)
        return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    int rc = store_launch(a, e);
    if (rc < 0)
        return rc;
    a->trial->row.attempts = a->row.number;
    failpoint("attempt-committed");
    return 0;
}

/* --- reading --- */

struct reading {
    struct attempt *a;
    struct err *e;
};

static struct store_epoch epoch_row(const struct attempt *a, const struct fold_epoch *f)
{
    bool by_loss = strcasecmp(a->fold.metric, "loss") == 0;
    double loss = isnan(f->loss) ? f->train_loss : f->loss;
    return (struct store_epoch){ .trial = a->trial->row.id,
                                 .epoch = f->epoch,
                                 .attempt = a->row.number,
                                 .accuracy = f->accuracy,
                                 .loss = loss,
                                 .metric = by_loss ? loss : f->metric,
                                 .seconds = f->seconds,
                                 .records = f->records,
                                 .iterations = f->iterations,
                                 .learning_rate = f->learning_rate,
                                 .end_ms = f->end_ms };
}

static int store_one_epoch(struct attempt *a, const struct store_epoch *row, struct err *e)
{
    struct study *s = a->study;
    struct store_trial *t = &a->trial->row;
    t->accuracy = row->accuracy;
    t->loss = row->loss;
    t->metric = row->metric;
    a->row.log_offset = a->fold.safe_offset;
    int rc = store_begin(s->store, e);
    if (rc == 0)
        rc = store_epoch_put(s->store, row, e);
    if (rc == 0)
        rc = store_attempt_update(s->store, &a->row, e);
    if (rc == 0)
        rc = store_trial_update(s->store, t, e);
    if (rc == 0)
        rc = study_tell(s, t, row->epoch, row->metric, false, e);
    failpoint("epoch-before-commit");
    if (rc == 0)
        rc = store_commit(s->store, e);
    if (rc < 0)
        store_rollback(s->store);
    failpoint("epoch-committed");
    return rc;
}

static int on_epoch(struct attempt *a, const struct fold_epoch *f, struct err *e)
{
    struct store_epoch row = epoch_row(a, f);
    int rc = store_one_epoch(a, &row, e);
    if (rc < 0)
        return rc;
    a->gained = true;
    a->epochs_done = row.epoch;
    if (a->on_epoch)
        a->on_epoch(a, &row);
    return 0;
}

static int on_event(void *ctx, const struct log_event *ev, uint64_t end)
{
    struct reading *r = ctx;
    struct fold_epoch f;
    /* An attempt that went back to the untrained model keeps its old counters: its figures would be another trial's. */
    if (ev->kind == LOG_RECOVERY && strstr(ev->text, "origin") && r->a->stop == STOP_NONE)
        r->a->stop = STOP_ORIGIN;
    if (r->a->stop == STOP_ORIGIN && (ev->kind == LOG_ITERATION || ev->kind == LOG_EPOCH_END))
        return 0;
    if (ev->kind == LOG_APP_ID && !r->a->row.app_id)
        r->a->row.app_id = strdup(ev->text); /* stored with the next epoch; NULL is "not known" */
    return fold_event(&r->a->fold, ev, end, &f) ? on_epoch(r->a, &f, r->e) : 0;
}

static int open_log(struct attempt *a, struct err *e)
{
    AUTO_FREE char *path = io_join(a->dir, "log");
    if (!path)
        return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    a->log_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (a->log_fd < 0 && errno != ENOENT) /* not written yet is no error */
        return err_sys(e, -errno, "cannot read '%s'", path);
    return 0;
}

int attempt_read(struct attempt *a, int64_t now_ms, struct err *e)
{
    int rc = a->log_fd < 0 ? open_log(a, e) : 0;
    if (rc < 0 || a->log_fd < 0)
        return rc;
    struct reading r = { .a = a, .e = e };
    char chunk[32768];
    for (;;) {
        ssize_t n = pread(a->log_fd, chunk, sizeof chunk, (off_t)a->stream.offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, -errno, "cannot read the log of trial %d", a->trial->row.number);
        if (n == 0)
            return 0;
        a->line_ms = now_ms;
        rc = log_stream_feed(&a->stream, chunk, (size_t)n, on_event, &r);
        if (rc < 0)
            return rc == -ENOMEM ? err_sys(e, rc, "reading the log of trial %d", a->trial->row.number) : rc;
        if (a->epochs_done >= a->trial->row.epochs && a->done_ms == 0)
            a->done_ms = now_ms;
    }
}

enum attempt_stop attempt_overdue(const struct attempt *a, int64_t now_ms)
{
    const struct config *c = &a->study->plan->cfg;
    if (a->stop != STOP_NONE)
        return a->stop;
    if (a->done_ms && now_ms - a->done_ms > LINGER_MS)
        return STOP_LINGERS;
    if (a->fold.connected && !a->fold.granted && now_ms - a->born_ms > c->grant_seconds * 1000)
        return STOP_NO_EXECUTOR;
    return now_ms - a->line_ms > c->stall_seconds * 1000 ? STOP_STALLED : STOP_NONE;
}

/* --- ending --- */

void attempt_signal(struct attempt *a, bool hard)
{
    pid_t pid = (pid_t)a->row.pid;
    if (pid <= 1 || !a->row.boot_id)
        return;
    if (proc_is(pid, (uint64_t)a->row.start_ticks, a->row.boot_id)) {
        if (hard)
            (void)proc_kill_session(pid, SIGKILL);  /* children in groups of their own too */
        (void)kill(-pid, hard ? SIGKILL : SIGTERM); /* ESRCH: it has just ended, and that will be told */
    }
    pid_t *pids = NULL;
    size_t n = 0;
    if (hard && proc_tagged(a->row.launch, &pids, &n) == 0)
        for (size_t i = 0; i < n; i++)
            (void)kill(pids[i], SIGKILL);
    free(pids);
}

struct exit_note {
    bool there;
    char kind[16];
    int code;
    int64_t at_ms; /* when it was written */
};

/* DIR/exit, when it speaks of this attempt. */
static void read_exit(const struct attempt *a, struct exit_note *out)
{
    *out = (struct exit_note){ .code = -1 };
    AUTO_FREE char *path = io_join(a->dir, "exit");
    AUTO_BUF struct buf b = BUF_INIT;
    struct stat st;
    if (!path || io_read_file(&b, path, EXIT_NOTE_MAX, NULL) < 0 || stat(path, &st) < 0)
        return;
    int attempt = 0;
    char launch[80];
    struct exit_note x = { .there = true };
    if (sscanf(buf_text(&b), "attempt=%d launch=%79s kind=%15s code=%d", &attempt, launch, x.kind, &x.code) == 4 &&
        attempt == a->row.number && strcmp(launch, a->row.launch) == 0) {
        x.at_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
        *out = x;
    }
}

static enum outcome outcome_of_verdict(enum log_verdict v)
{
    static const enum outcome map[] = { [VERDICT_FAILED] = OUTCOME_FAILED,
                                        [VERDICT_INFEASIBLE] = OUTCOME_INFEASIBLE,
                                        [VERDICT_ENVIRONMENT] = OUTCOME_ENVIRONMENT };
    return map[v];
}

/* It ended without a note of its launcher: killed, or never begun, or the machine went down. */
static enum outcome judge_silent(const struct attempt *a, char text[512])
{
    char boot[PROC_BOOT_ID_SIZE] = "";
    (void)proc_boot_id(boot);
    if (a->row.boot_id && strcmp(boot, a->row.boot_id) != 0) {
        (void)snprintf(text, 512, "the machine was started anew");
        return OUTCOME_INTERRUPTED;
    }
    bool begun = a->stream.offset > a->row.log_offset || a->gained;
    if (!begun && a->adopted) { /* a driver died between commit and go */
        (void)snprintf(text, 512, "it had not begun");
        return OUTCOME_INTERRUPTED;
    }
    (void)snprintf(text, 512, "its launcher was killed");
    return OUTCOME_FAILED;
}

static enum outcome judge_stop(const struct attempt *a, char text[512])
{
    const struct config *c = &a->study->plan->cfg;
    switch (a->stop) {
    case STOP_NO_EXECUTOR:
        (void)snprintf(text, 512, "no executor was granted in %" PRId64 " s: more cores or memory than the cluster has",
                       c->grant_seconds);
        return OUTCOME_INFEASIBLE;
    case STOP_STALLED: (void)snprintf(text, 512, "no line for %" PRId64 " s", c->stall_seconds); return OUTCOME_FAILED;
    case STOP_ORIGIN:
        (void)snprintf(text, 512, "it lost its executor before the first checkpoint, and begins anew");
        return OUTCOME_FAILED;
    default: (void)snprintf(text, 512, "interrupted"); return OUTCOME_INTERRUPTED;
    }
}

static enum outcome judge_exit(const struct attempt *a, const struct exit_note *x, char text[512])
{
    if (strcmp(x->kind, "not-started") == 0 && x->code == 127) {
        (void)snprintf(text, 512, "spark-submit could not be started, see %s/log", a->dir);
        return OUTCOME_ENVIRONMENT;
    }
    const char *how = x->code > 128 ? "was killed by signal" : "ended with exit code";
    (void)snprintf(text, 512, "%s %d after %d of %d epochs, see %s/log", how, x->code > 128 ? x->code - 128 : x->code,
                   a->epochs_done, a->trial->row.epochs, a->dir);
    return OUTCOME_FAILED;
}

static enum outcome judge(const struct attempt *a, const struct exit_note *x, char text[512])
{
    text[0] = '\0';
    if (a->epochs_done >= a->trial->row.epochs)
        return OUTCOME_FINISHED;
    if (a->stop != STOP_NONE)
        return judge_stop(a, text);
    /* Before the log's cause: what the launcher says of itself there, "Cannot allocate memory", is not the trial's fault. */
    if (x->there && strcmp(x->kind, "not-started") == 0)
        return judge_exit(a, x, text);
    if (a->fold.cause != CAUSE_NONE) {
        const char *fix = log_cause_fix(a->fold.cause);
        (void)snprintf(text, 512, "%s: %s%s%s", log_cause_name(a->fold.cause), a->fold.cause_text, fix ? "; " : "",
                       fix ? fix : "");
        return outcome_of_verdict(log_cause_verdict(a->fold.cause));
    }
    return x->there ? judge_exit(a, x, text) : judge_silent(a, text);
}

static int read_rest(struct attempt *a, const struct exit_note *x, struct err *e)
{
    int rc = attempt_read(a, 0, e);
    struct reading r = { .a = a, .e = e };
    if (rc == 0)
        rc = log_stream_end(&a->stream, on_event, &r);
    struct fold_epoch f;
    if (rc < 0 || a->stop == STOP_ORIGIN || !fold_end(&a->fold, &f))
        return rc;
    /* An epoch without its result counts only when the application ended by itself: one that was cut short in its
     * validation would be finished without an accuracy. */
    bool by_itself = x->there && strcmp(x->kind, "exited") == 0 && x->code == 0;
    return isnan(f.metric) && !by_itself ? 0 : on_epoch(a, &f, e);
}

static int64_t log_mtime_ms(const struct attempt *a)
{
    struct stat st;
    if (a->log_fd < 0 || fstat(a->log_fd, &st) < 0)
        return 0;
    return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

/* When it ended: by its own note; met dead without one, by its last line. */
static int64_t end_time(const struct attempt *a, const struct exit_note *x)
{
    int64_t at = x->there ? x->at_ms : a->adopted ? log_mtime_ms(a) : study_now_ms();
    return at > a->row.started_ms ? at : a->row.started_ms;
}

static int store_end(struct attempt *a, enum outcome o, enum trial_state state, const char *text, struct err *e)
{
    struct study *s = a->study;
    struct store_trial *t = &a->trial->row;
    int rc = store_begin(s->store, e);
    if (rc == 0)
        rc = store_attempt_update(s->store, &a->row, e);
    if (rc == 0)
        rc = store_trial_update(s->store, t, e);
    if (rc == 0)
        rc = study_decide(s, t->number, trial_state_is_final(state) ? "end" : "again", t->effective, e,
                          "attempt %d %s%s%s", a->row.number, outcome_name(o), *text ? ": " : "", text);
    if (rc == 0 && trial_state_is_final(state))
        rc = study_tell(s, t, a->epochs_done, state == TRIAL_FINISHED ? t->metric : NAN, true, e);
    failpoint("end-before-commit");
    if (rc == 0)
        rc = store_commit(s->store, e);
    if (rc < 0)
        store_rollback(s->store);
    failpoint("end-committed");
    return rc;
}

/* An application that cannot read its checkpoint says so and exits; one that was killed says nothing of it. */
static bool blames_checkpoint(const struct attempt *a, const struct exit_note *x)
{
    return a->row.resumed_from && !a->gained && x->there && x->code <= 128;
}

int attempt_settle(struct attempt *a, char text[512], enum outcome *out, struct err *e)
{
    struct study *s = a->study;
    struct store_trial *t = &a->trial->row;
    struct exit_note x;
    read_exit(a, &x);
    int rc = read_rest(a, &x, e);
    if (rc < 0)
        return rc;
    enum outcome o = judge(a, &x, text);
    if (o == OUTCOME_FAILED && blames_checkpoint(a, &x))
        o = OUTCOME_UNUSABLE; /* an older checkpoint, or none, is next: that costs no retry */
    a->row.exit_code = x.code;
    a->row.ended_ms = end_time(a, &x);
    t->seconds += (double)(a->row.ended_ms - a->row.started_ms) / 1000.0;
    t->failures += o == OUTCOME_FAILED;
    enum trial_state state = sched_ended(&s->sched, t->number, o);
    if (set_text(&a->row.state, "ended") < 0 || set_text(&a->row.outcome, outcome_name(o)) < 0 ||
        set_text(&a->row.cause, text) < 0 || set_text(&t->state, trial_state_name(state)) < 0 ||
        set_text(&t->reason, text) < 0)
        return err_sys(e, -ENOMEM, "trial %d", t->number);
    if (state == TRIAL_FINISHED) { /* why an earlier attempt ended is told with that attempt */
        free(t->reason);
        t->reason = NULL;
    }
    *out = o;
    return store_end(a, o, state, text, e);
}
