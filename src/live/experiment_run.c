#include "live/experiment_run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/strv.h"
#include "live/study.h"

enum { KEEP_MS = 5000, LOOK_MS = 100, LOCKED_MS = 30000, STATE_MAX = 1 << 26, OUTPUT_MAX = 1 << 24 };

static const char measure[] = "measure";

char *experiment_store(const char *folder, const char *stage)
{
    AUTO_FREE char *dir = io_join(folder, stage);
    return dir ? io_join(dir, "pipetune.db") : NULL;
}

void experiment_study_name(char out[EXPERIMENT_STUDY_MAX], const struct experiment *x, size_t job, int number)
{
    (void)snprintf(out, EXPERIMENT_STUDY_MAX, "%s-%d", x->jobs[job].name, number);
}

/* --- a run of it --- */

/* The studies of one policy, or those that measure. */
struct stage {
    const char *name;
    const struct policy *policy;
    struct experiment_arrival *arrivals;
    struct experiment_row *rows; /* ended_s NAN: not yet; started_s likewise */
    size_t n;
    double clock_s; /* as it was kept */
};

struct runner {
    const struct experiment_run *r;
    struct stage stages[EXPERIMENT_POLICIES_MAX + 1];
    size_t n_stages;
    double service_s; /* NAN: not measured yet */
    json_t *identity; /* what the folder is of */
    char *path;       /* of the state */
    int signals, lock;
    bool interrupted;
    int64_t since_ms, kept_ms; /* when clock_s was right; when the state was kept last */
};

static double clock_of(const struct runner *w, const struct stage *s)
{
    return s->clock_s + (double)(clock_boot_ms() - w->since_ms) / 1000;
}

static void set_clock(struct runner *w, struct stage *s, double clock_s)
{
    s->clock_s = clock_s;
    w->since_ms = clock_boot_ms();
}

/* --- the state --- */

static json_t *row_json(const struct experiment_row *row)
{
    return json_pack("{s:o, s:o, s:i}", "started_s", json_num(row->started_s), "ended_s", json_num(row->ended_s),
                     "interruptions", row->interruptions);
}

static json_t *stage_json(const struct stage *s)
{
    json_t *rows = json_array();
    for (size_t i = 0; rows && i < s->n && isfinite(s->rows[i].started_s); i++)
        if (json_array_append_new(rows, row_json(&s->rows[i])) < 0) {
            json_decref(rows);
            return NULL;
        }
    return json_pack("{s:f, s:o}", "clock_s", s->clock_s, "studies", rows);
}

static int keep_state(struct runner *w, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_JSON json_t *stages = json_object();
    int rc = stages ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < w->n_stages; i++)
        rc = json_object_set_new(stages, w->stages[i].name, stage_json(&w->stages[i]));
    AUTO_JSON json_t *all = rc == 0 ? json_pack("{s:O, s:o, s:O}", "experiment", w->identity, "service_s",
                                                json_num(w->service_s), "stages", stages)
                                    : NULL;
    if (!all)
        return err_sys(e, -ENOMEM, "cannot keep '%s'", w->path);
    json_put(&text, all, JSON_STYLE_INDENT);
    buf_putc(&text, '\n');
    w->kept_ms = clock_boot_ms();
    if (text.failed)
        return err_sys(e, -ENOMEM, "cannot keep '%s'", w->path);
    return io_write_atomic(w->path, text.data, text.len, 0600, e);
}

static double seconds_of(const json_t *object, const char *key)
{
    const json_t *j = json_object_get(object, key);
    return json_is_number(j) ? json_number_value(j) : (double)NAN;
}

/* What was written by us; anything else is as if it had not begun. */
static void read_stage(struct stage *s, const json_t *from)
{
    double clock_s = seconds_of(from, "clock_s");
    const json_t *rows = json_object_get(from, "studies");
    s->clock_s = clock_s >= 0 ? clock_s : 0;
    for (size_t i = 0; i < s->n && i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        s->rows[i].started_s = seconds_of(row, "started_s");
        s->rows[i].ended_s = seconds_of(row, "ended_s");
        s->rows[i].interruptions = (int)json_integer_value(json_object_get(row, "interruptions"));
    }
}

static int read_state(json_t **out, const struct runner *w, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    if (!io_exists(w->path))
        return 0;
    int rc = io_read_file(&text, w->path, STATE_MAX, e);
    if (rc == 0)
        rc = json_doc_parse(&doc, w->path, buf_text(&text), text.len, e);
    if (rc < 0)
        return rc;
    if (!json_equal(json_object_get(doc.root, "experiment"), w->identity))
        return err_set(e, -EEXIST,
                       "folder '%s' is of another experiment, or its file or a config has changed since: choose "
                       "another --folder, or remove this one",
                       w->r->folder);
    *out = json_incref(doc.root);
    return 0;
}

/* The file as it is written, and the content of each job's config. */
static int find_identity(struct runner *w, struct err *e)
{
    json_t *configs = json_array();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < w->r->x->n_jobs; i++) {
        char sha[SHA256_HEX_MAX];
        rc = sha256_file(w->r->configs[i], sha, e);
        if (rc == 0 && json_array_append_new(configs, json_string(sha)) < 0)
            rc = err_sys(e, -ENOMEM, "experiment");
    }
    w->identity = json_pack("{s:O, s:o}", "file", w->r->file, "configs", configs);
    return rc == 0 && !w->identity ? err_sys(e, -ENOMEM, "experiment") : rc;
}

/* --- a study --- */

/* FOLDER/STAGE/STUDY.out; NULL: memory. */
static char *output_of(const struct experiment_run *r, const char *stage, const char *study)
{
    char name[EXPERIMENT_STUDY_MAX + 8];
    AUTO_FREE char *dir = io_join(r->folder, stage);
    (void)snprintf(name, sizeof name, "%s.out", study);
    return dir ? io_join(dir, name) : NULL;
}

/* In the child: async-signal-safe calls alone. It ends as the experiment does, however that ends. */
static void become(int out, char *const argv[], pid_t parent)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* a terminal's signals come through us */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(127);
    (void)execv("/proc/self/exe", argv);
    _exit(127);
}

static int start_run(const struct experiment_run *r, const char *stage, const struct policy *policy, size_t job,
                     const char *study, pid_t *out, struct err *e)
{
    AUTO_FREE char *store = experiment_store(r->folder, stage);
    AUTO_FREE char *printed = output_of(r, stage, study);
    AUTO_STRV struct strv argv = STRV_INIT;
    const char *const words[] = { "pipetune", "run", "--config", r->configs[job], "--policy", policy->name,
                                  "--name",   study, "--store",  store,           "--quiet" };
    for (size_t i = 0; store && i < ARRAY_LEN(words); i++)
        strv_add(&argv, words[i]);
    if (!store || !printed || argv.failed)
        return err_sys(e, -ENOMEM, "cannot start study '%s'", study);
    AUTO_CLOSE int fd = open(printed, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, -errno, "cannot write '%s'", printed);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(fd, argv.v, parent);
    if (pid < 0)
        return err_sys(e, -errno, "cannot start study '%s'", study);
    *out = pid;
    return 0;
}

/* The last line that the study's run printed: its error, when it failed. */
static void last_words(const struct runner *w, const char *stage, const char *study, char *out, size_t size)
{
    static const char ours[] = "pipetune: ";
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *path = output_of(w->r, stage, study);
    struct err ignored;
    (void)snprintf(out, size, "it ended at once");
    if (!path || io_read_file(&text, path, OUTPUT_MAX, &ignored) < 0)
        return;
    while (text.len > 0 && text.data[text.len - 1] == '\n')
        buf_cut(&text, text.len - 1);
    const char *line = strrchr(buf_text(&text), '\n');
    line = line ? line + 1 : buf_text(&text);
    if (strncmp(line, ours, sizeof ours - 1) == 0)
        line += sizeof ours - 1;
    if (*line)
        (void)snprintf(out, size, "%s", line);
}

/* --- waiting --- */

static void take_signals(struct runner *w, pid_t study)
{
    struct signalfd_siginfo got;
    while (read(w->signals, &got, sizeof got) == (ssize_t)sizeof got) {
        w->interrupted = true;
        if (study > 0)
            (void)kill(study, SIGINT); /* a second one ends it at once; it is our child, so the number is its */
    }
}

/* Until the study's end (or, where there is none, for LOOK_MS at most), with the clock kept. 1: it has ended. */
static int wait_a_while(struct runner *w, struct stage *s, pid_t study, int pidfd, int ms, struct err *e)
{
    struct pollfd fds[] = { { w->signals, POLLIN, 0 }, { pidfd, POLLIN, 0 } };
    if (poll(fds, pidfd >= 0 ? 2 : 1, ms) < 0 && errno != EINTR)
        return err_sys(e, -errno, "cannot wait");
    take_signals(w, study);
    if (clock_boot_ms() - w->kept_ms >= KEEP_MS) {
        set_clock(w, s, clock_of(w, s));
        int rc = keep_state(w, e);
        if (rc < 0)
            return rc;
    }
    return pidfd >= 0 && (fds[1].revents & POLLIN);
}

/* An earlier run of it may still be ending what it had started. */
static int wait_for_lock(struct runner *w, struct stage *s, const char *study, struct err *e)
{
    AUTO_FREE char *store = experiment_store(w->r->folder, s->name);
    AUTO_FREE char *dir = store ? study_dir(store, study) : NULL;
    if (!dir)
        return err_sys(e, -ENOMEM, "study '%s'", study);
    for (int waited = 0; waited < LOCKED_MS && !w->interrupted && study_driver(dir) > 0; waited += LOOK_MS) {
        int rc = wait_a_while(w, s, 0, -1, LOOK_MS, e);
        if (rc < 0)
            return rc;
        set_clock(w, s, s->clock_s); /* nothing of this is the study's */
    }
    return w->interrupted ? -EINTR : 0;
}

static void tell(const struct runner *w, const struct stage *s, enum experiment_event event, size_t at,
                 const char *study, double until_s)
{
    struct experiment_news n = { .event = event,
                                 .stage = s->name,
                                 .study = study,
                                 .number = at + 1,
                                 .of = s->n,
                                 .clock_s = clock_of(w, s),
                                 .until_s = until_s };
    for (size_t i = at + 1; i < s->n; i++)
        n.waiting += s->arrivals[i].at_s <= n.clock_s;
    if (w->r->watch)
        w->r->watch(w->r->ctx, &n);
}

static int wait_for_arrival(struct runner *w, struct stage *s, size_t at, const char *study, struct err *e)
{
    double until_s = s->arrivals[at].at_s;
    if (clock_of(w, s) >= until_s)
        return 0;
    if (w->r->skip_idle) {
        set_clock(w, s, until_s);
        return 0;
    }
    tell(w, s, EXPERIMENT_ARRIVES, at, study, until_s);
    while (!w->interrupted && clock_of(w, s) < until_s) {
        double left_ms = (until_s - clock_of(w, s)) * 1000;
        int rc = wait_a_while(w, s, 0, -1, left_ms < KEEP_MS ? (int)left_ms + 1 : KEEP_MS, e);
        if (rc < 0)
            return rc;
    }
    return w->interrupted ? -EINTR : 0;
}

/* What its end says: 0, it is over, with or without a result; 130 and signals: it can be gone on with; others: it cannot begin. */
static int judge(struct runner *w, const struct stage *s, const char *study, int status, struct err *e)
{
    char words[1024];
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 130;
    if (code == 0 || code == 1)
        return 0;
    if (code == 130 && w->interrupted)
        return -EINTR;
    if (code == 130)
        return err_set(e, -ECANCELED, "study '%s' under %s was interrupted from outside; the same command goes on",
                       study, s->name);
    last_words(w, s->name, study, words, sizeof words);
    return err_set(e, -ECANCELED, "study '%s' under %s: %s; the same command goes on", study, s->name, words);
}

static int follow(struct runner *w, struct stage *s, const char *study, pid_t pid, struct err *e)
{
    int status = 0, rc = 0;
    AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        rc = err_sys(e, -errno, "cannot follow study '%s'", study);
    while (rc == 0)
        rc = wait_a_while(w, s, pid, pidfd, KEEP_MS, e);
    if (rc < 0)
        (void)kill(pid, SIGTERM); /* it ends what it has started, and can be gone on with */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return rc < 0 ? rc : judge(w, s, study, status, e);
}

static int run_study(struct runner *w, struct stage *s, size_t at, struct err *e)
{
    struct experiment_row *row = &s->rows[at];
    char study[EXPERIMENT_STUDY_MAX];
    pid_t pid = 0;
    bool again = isfinite(row->started_s);
    experiment_study_name(study, w->r->x, row->job, row->number);
    int rc = again ? wait_for_lock(w, s, study, e) : wait_for_arrival(w, s, at, study, e);
    if (rc < 0)
        return rc;
    if (again)
        row->interruptions++;
    else
        row->started_s = clock_of(w, s);
    set_clock(w, s, clock_of(w, s));
    rc = keep_state(w, e); /* before it begins: what is started is never started as new again */
    if (rc == 0)
        rc = (w->r->start ? w->r->start : start_run)(w->r, s->name, s->policy, row->job, study, &pid, e);
    if (rc < 0)
        return rc;
    tell(w, s, again ? EXPERIMENT_GOES_ON : EXPERIMENT_STARTS, at, study, 0);
    rc = follow(w, s, study, pid, e);
    set_clock(w, s, clock_of(w, s));
    if (rc == 0) {
        row->ended_s = s->clock_s;
        tell(w, s, EXPERIMENT_ENDS, at, study, 0);
    }
    struct err late;
    int kept = keep_state(w, rc < 0 ? &late : e);
    return rc < 0 ? rc : kept;
}

/* --- stages --- */

static int run_stage(struct runner *w, struct stage *s, struct err *e)
{
    AUTO_FREE char *dir = io_join(w->r->folder, s->name);
    int rc = dir ? io_mkdirs(dir, e) : err_sys(e, -ENOMEM, "experiment");
    set_clock(w, s, s->clock_s);
    for (size_t i = 0; rc == 0 && i < s->n; i++)
        if (!isfinite(s->rows[i].ended_s))
            rc = w->interrupted ? -EINTR : run_study(w, s, i, e);
    set_clock(w, s, clock_of(w, s));
    return rc;
}

static void begin_rows(struct stage *s, size_t policy)
{
    for (size_t i = 0; i < s->n; i++)
        s->rows[i] = (struct experiment_row){ .policy = policy,
                                              .job = s->arrivals[i].job,
                                              .number = (int)i + 1,
                                              .arrived_s = s->arrivals[i].at_s,
                                              .started_s = NAN,
                                              .ended_s = NAN };
}

/* Each job once, alone, under the first policy. */
static int measure_service(struct runner *w, const json_t *state, struct err *e)
{
    const struct experiment *x = w->r->x;
    struct experiment_arrival arrivals[EXPERIMENT_JOBS_MAX];
    struct experiment_row rows[EXPERIMENT_JOBS_MAX];
    double seconds[EXPERIMENT_JOBS_MAX];
    struct stage *s = &w->stages[w->n_stages++];
    *s =
        (struct stage){ .name = measure, .policy = x->policies[0], .arrivals = arrivals, .rows = rows, .n = x->n_jobs };
    for (size_t i = 0; i < x->n_jobs; i++)
        arrivals[i] = (struct experiment_arrival){ .at_s = 0, .job = i };
    begin_rows(s, 0);
    read_stage(s, json_object_get(json_object_get(state, "stages"), measure));
    int rc = run_stage(w, s, e);
    for (size_t i = 0; rc == 0 && i < x->n_jobs; i++)
        seconds[i] = rows[i].ended_s - rows[i].started_s;
    w->n_stages--; /* its rows are ours; what they came to is kept by itself */
    if (rc == 0)
        w->service_s = experiment_mean_service(x, seconds);
    return rc;
}

static int run_policies(struct runner *w, const json_t *state, struct experiment_arrival *arrivals,
                        struct experiment_row *rows, size_t n, struct err *e)
{
    const struct experiment *x = w->r->x;
    experiment_arrive(arrivals, x, w->service_s);
    int rc = 0;
    for (size_t p = 0; p < x->n_policies; p++) {
        struct stage *s = &w->stages[w->n_stages++];
        *s = (struct stage){
            .name = x->policies[p]->name, .policy = x->policies[p], .arrivals = arrivals, .rows = rows + p * n, .n = n
        };
        begin_rows(s, p);
        read_stage(s, json_object_get(json_object_get(state, "stages"), s->name));
    }
    for (size_t p = 0; rc == 0 && p < x->n_policies; p++)
        rc = run_stage(w, &w->stages[p], e);
    return rc;
}

/* --- all of it --- */

static int take_folder(struct runner *w, struct err *e)
{
    AUTO_FREE char *path = io_join(w->r->folder, "lock");
    w->path = io_join(w->r->folder, "state.json");
    if (!path || !w->path)
        return err_sys(e, -ENOMEM, "experiment");
    int rc = io_mkdirs(w->r->folder, e);
    if (rc < 0)
        return rc;
    w->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (w->lock < 0)
        return err_sys(e, -errno, "cannot open '%s'", path);
    if (flock(w->lock, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, -EBUSY, "experiment '%s' is being run by another process", w->r->folder);
    return 0;
}

static int open_signals(struct runner *w, sigset_t *before, struct err *e)
{
    sigset_t taken;
    (void)sigemptyset(&taken);
    (void)sigaddset(&taken, SIGINT);
    (void)sigaddset(&taken, SIGTERM);
    (void)sigaddset(&taken, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &taken, before);
    w->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    return w->signals < 0 ? err_sys(e, -errno, "cannot take signals") : 0;
}

/* Offline nothing depends on how long a study takes; measured once, it is kept. */
static int find_service(struct runner *w, const json_t *state, struct err *e)
{
    const struct experiment *x = w->r->x;
    w->service_s = x->offline ? 1 : isfinite(x->service_s) ? x->service_s : seconds_of(state, "service_s");
    return isfinite(w->service_s) ? 0 : measure_service(w, state, e);
}

int experiment_run(const struct experiment_run *r, struct experiment_arrival *arrivals, struct experiment_row *rows,
                   size_t n, double *out_service_s, struct err *e)
{
    struct runner w = { .r = r, .service_s = NAN, .signals = -1, .lock = -1 };
    AUTO_JSON json_t *state = NULL;
    sigset_t before;
    int rc = open_signals(&w, &before, e);
    if (rc == 0)
        rc = take_folder(&w, e);
    if (rc == 0)
        rc = find_identity(&w, e);
    if (rc == 0)
        rc = read_state(&state, &w, e);
    if (rc == 0)
        rc = find_service(&w, state, e);
    if (rc == 0)
        rc = run_policies(&w, state, arrivals, rows, n, e);
    if (rc == 0)
        *out_service_s = w.service_s;
    if (rc == -EINTR)
        (void)err_set(e, rc, "interrupted; the same command goes on with what is in '%s'", r->folder);
    own_close(&w.signals);
    own_close(&w.lock);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    json_decref(w.identity);
    free(w.path);
    return rc;
}
