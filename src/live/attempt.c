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

#include "base/array.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/num.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/suggest.h"
#include "live/grant.h"
#include "live/mirror.h"
#include "live/profiles.h"
#include "live/publish.h"
#include "live/results.h"
#include "live/reuse.h"
#include "live/session.h"
#include "live/tuning.h"
#include "store/running.h"

enum {
    MARK_MS = 5000,    /* the session's last mark may come this much later than its word, and its word than the mark */
    LINGER_MS = 60000, /* an application may take this long to end after its last epoch */
    STARVED_MAX = 3,   /* a cluster that kills parts for want of memory goes on doing so */
    WRITTEN_MS = 500,  /* a checkpoint that has not grown for so long is whole */
    PUNCH_UNIT = 1 << 20, /* a multiple of any file system's blocks: only whole ones leave the disk */
};

/* --- preparing --- */

static char *trial_dir(const struct study *s, int number)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%d", number);
    return io_join(s->dir, name);
}

static char *heard_path(const struct attempt *a)
{
    return io_join(a->dir, "heard");
}

static uint64_t heard_size(const struct attempt *a)
{
    AUTO_FREE char *path = heard_path(a);
    struct stat st;
    return path && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
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

/* One launch of the attempt: all of it, or a process of its gang. */
struct one_launch {
    const struct site *site;
    const char *tag, *dir, *cpus;
    const struct app_gang *gang; /* NULL: all of it */
    size_t rank;
    const char *const *hosts;
    int slots;
    struct site_paths there;
};

static struct plan_launch plan_launch_of(const struct attempt *a, const struct one_launch *one, const char *converted,
                                         const char *seed, const char *properties)
{
    const struct site_paths *there = &one->there;
    struct setting set = study_setting(a->study, a->trial);
    bool packed = a->study->tuning && !a->trial->alone;
    return (struct plan_launch){ .setting = set,
                                 .one_cpu = packed && setting_number(&a->study->plan->space, &set, KNOB_CORES, 0) == 1,
                                 .slots = one->slots,
                                 .parts = a->trial->parts,
                                 .epochs = a->trial->row.epochs,
                                 .launch = one->tag,
                                 .gang = one->gang,
                                 .rank = one->rank,
                                 .hosts = one->hosts,
                                 .checkpoint = there->checkpoint ? there->checkpoint : a->checkpoint_dir,
                                 .resume_model = there->resume ? there->resume : a->resume.model,
                                 .resume_state = a->resume.state,
                                 .converted = converted,
                                 .seed_text = seed,
                                 .library = there->library,
                                 .properties = properties };
}

/* The steps; what is stored and shown is the training, of a gang by the one that tells. */
static int find_steps(struct attempt *a, const struct one_launch *one, struct app_steps *steps, struct err *e)
{
    bool shows = !one->gang || one->rank == one->gang->tells;
    const struct plan *p = a->study->plan;
    AUTO_STRV struct strv shown = STRV_INIT;
    AUTO_FREE char *converted = io_join(a->dir, "resume.model");
    AUTO_FREE char *properties = NULL;
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%" PRId64, repeats_seed(a->study, &a->trial->row));
    int rc = converted ? 0 : err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    if (rc == 0)
        rc = secrets_write(&p->secrets, &p->app, a->dir, &p->env, &properties, e);
    struct plan_launch l = plan_launch_of(a, one, converted, seed, properties);
    if (rc == 0)
        rc = plan_steps(p, &a->trial->point, &l, steps, e);
    if (rc == 0 && shows)
        rc = plan_shown(p, &steps->argv[steps->n - 1], &shown, e);
    if (rc == 0 && shows && argv_text(&shown, &a->row.argv) < 0)
        rc = err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    return rc;
}

static bool writes_checkpoints(const struct attempt *a)
{
    const struct app_argument *writes = app_file_argument(&a->study->plan->app.file, "checkpoint");
    return writes && writes->words.n > 0;
}

/* By their names, or as the application tells. */
static int find_checkpoint(const struct attempt *a, struct resume_point *out, struct err *e)
{
    const struct application *app = &a->study->plan->app;
    if (app->kind->part)
        return resume_find(a->study->reader, a->trial->row.id, a->checkpoint_dir, out, e);
    return resume_find_told(a->study->reader, a->trial->row.id, a->checkpoint_dir, writes_checkpoints(a), out, e);
}

static int find_resume(struct attempt *a, struct err *e)
{
    struct resume_point *r = &a->resume;
    a->row.first_epoch = 1;
    if (!a->study->plan->app.resumes)
        return 0;
    int rc = find_checkpoint(a, r, e);
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
    *a = (struct attempt){
        .study = s, .trial = t, .at = { &site_here_row, NULL }, .heard_fd = -1, .dir = trial_dir(s, t->row.number)
    };
    a->checkpoint_dir = a->dir ? io_join(a->dir, "checkpoint") : NULL;
    a->row.trial = t->row.id;
    t->attempt = &a->row;
    t->end_told = false;
    a->row.exit_code = -1;
    a->row.startup_s = a->row.cores = NAN;
}

/* CPUs of a launch whose setting nobody changes: its slots, or fewer where other drivers have the rest. */
static int launch_cores(const struct study_trial *t)
{
    int n = t->cpus ? 1 : t->row.slots;
    for (const char *p = t->cpus; p && (p = strchr(p, ',')); p++)
        n++;
    return n < t->row.slots ? n : t->row.slots;
}

/* All that was heard of the attempts before is accounted: they have ended. */
static int forget_heard_in(const struct attempt *a, const char *dir, struct err *e)
{
    AUTO_FREE char *path = io_join(dir, "heard");
    if (!path)
        return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    return unlink(path) == 0 || errno == ENOENT ? 0 : err_sys(e, -errno, "cannot remove '%s'", path);
}

static int forget_heard(const struct attempt *a, struct err *e)
{
    return forget_heard_in(a, a->dir, e);
}

/* Its folder, what it goes on from, and the setting it is launched with. */
static int prepare(struct attempt *a, struct study *s, struct study_trial *t, struct err *e)
{
    init(a, s, t);
    a->row.number = t->row.attempts + 1;
    if (!a->checkpoint_dir)
        return err_sys(e, -ENOMEM, "trial %d", t->row.number);
    int rc = ours_dir(a->dir, e);
    if (rc == 0)
        rc = ours_dir(a->checkpoint_dir, e);
    if (rc == 0)
        rc = forget_heard(a, e);
    if (rc == 0)
        rc = find_resume(a, e);
    a->epochs_done = a->row.first_epoch - 1;
    struct setting set = study_setting(s, t);
    AUTO_JSON json_t *j = plan_effective_json(s->plan, &set, s->tuning ? 0 : launch_cores(t));
    a->row.setting = json_text(j);
    return rc == 0 && !a->row.setting ? err_sys(e, -ENOMEM, "trial %d", t->row.number) : rc;
}

/* Where its programs tell of themselves, and what they are answered. */
static int find_tell(const struct attempt *a, const struct one_launch *one, struct site_order *o, struct err *e)
{
    const struct site_paths *there = &one->there;
    const struct plan *p = a->study->plan;
    struct app_launch l = { .epochs = a->trial->row.epochs,
                            .checkpoint = there->checkpoint ? there->checkpoint : a->checkpoint_dir,
                            .resume_model = there->resume ? there->resume : a->resume.model };
    AUTO_JSON json_t *hyper = space_point_json(&p->space, &a->trial->point);
    AUTO_BUF struct buf b = BUF_INIT;
    if (!p->app.kind->tells)
        return 0;
    if (!hyper)
        return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    app_put_answer(&l, hyper, repeats_seed(a->study, &a->trial->row), &b);
    o->answer = buf_take(&b);
    return o->answer ? session_path(&o->tell, one->tag, e) : err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
}

/* Of a kind that does not keep to what its setting gives by itself. */
static int64_t memory_limit(const struct study *s, const struct study_trial *t)
{
    struct setting set = study_setting(s, t);
    bool limited = s->plan->app.kind->memory == APP_MEMORY_LIMIT;
    double gb = limited ? setting_number(&s->plan->space, &set, KNOB_MEMORY, 0) : 0;
    return (int64_t)(gb * (1 << 30));
}

/* What its site is to start. */
static int make_order(struct attempt *a, struct one_launch *one, struct site_order *o, struct err *e)
{
    const struct study *s = a->study;
    int rc = one->site->row->paths(one->site->own, one->tag, a->resume.model, &one->there, e);
    if (rc == 0)
        rc = find_tell(a, one, o, e);
    if (rc == 0)
        rc = find_steps(a, one, &o->steps, e);
    if (rc == 0 && a->resume.model && !(o->resume = strdup(a->resume.model)))
        rc = err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    if (rc == 0 && a->resume.state && !(o->resume_state = strdup(a->resume.state)))
        rc = err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    bool heard = !one->gang || one->rank == one->gang->tells;
    o->words = (struct launcher_words){
        .node = s->plan->env.node,
        .dir = one->dir,
        .tag = one->tag,
        .cpus = one->cpus,
        .attempt = a->row.number,
        .gang = one->gang ? (int)one->gang->n : 0,
        .memory = memory_limit(s, a->trial),
        .log_mb = s->plan->cfg.log_mb,
        .app = heard ? &s->plan->app : NULL,
    };
    site_paths_done(&one->there);
    return rc;
}

static int no_memory(const struct attempt *a, struct err *e)
{
    return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
}

/* The place of its launch, and the tag. */
static int put_place(struct attempt *a, const struct site *site, struct err *e)
{
    a->at.row = site->row;
    a->row.node = (int)site->node;
    a->row.launch = launcher_new_tag(a->trial->row.number, a->row.number);
    if (!a->row.launch || (site->name && !(a->row.place = strdup(site->name))))
        return no_memory(a, e);
    return 0;
}

int attempt_prepare(struct attempt *a, struct study *s, struct study_trial *t, const struct site *site,
                    struct site_order *o, struct err *e)
{
    int rc = prepare(a, s, t, e);
    if (rc == 0)
        rc = put_place(a, site, e);
    struct one_launch one = {
        .site = site, .tag = a->row.launch, .dir = a->dir, .cpus = t->cpus, .slots = t->row.slots
    };
    return rc == 0 ? make_order(a, &one, o, e) : rc;
}

/* --- a gang --- */

void attempt_await(struct attempt *a, struct study *s, struct study_trial *t)
{
    init(a, s, t);
}

/* Its folder, where it is not the trial's, its tag and its place. */
static int prepare_member(struct attempt *a, size_t k, const struct site *site, struct err *e)
{
    bool tells = k == gang_teller(a->gang);
    struct gang_member *m = gang_member(a->gang, k);
    AUTO_FREE char *members = io_join(a->dir, "members");
    int rc = members ? 0 : no_memory(a, e);
    if (rc == 0 && !tells)
        rc = ours_dir(members, e);
    if (rc == 0 && !tells)
        rc = ours_dir(m->dir, e);
    if (rc == 0 && !tells)
        rc = forget_heard_in(a, m->dir, e);
    m->row.node = (int)site->node;
    m->row.launch = tells ? strdup(a->row.launch) : launcher_new_tag(a->trial->row.number, a->row.number);
    if (rc == 0 && (!m->row.launch || (site->name && !(m->row.place = strdup(site->name)))))
        rc = no_memory(a, e);
    return rc;
}

int attempt_prepare_gang(struct attempt *a, struct study *s, struct study_trial *t, struct gangs *all,
                         const struct app_gang *shape, const struct site *sites, const char *const *hosts,
                         struct site_order *orders, struct err *e)
{
    int rc = prepare(a, s, t, e);
    if (rc == 0)
        rc = put_place(a, &sites[shape->tells], e);
    if (rc == 0 && !(a->gang = gang_new(all, shape, t->row.id, a->row.number, a->dir)))
        rc = no_memory(a, e);
    for (size_t k = 0; rc == 0 && k < shape->n; k++) {
        const struct gang_member *m = gang_member(a->gang, k);
        int own = shape->v[k].cores;
        int slots = own > 0 ? own : own < 0 && space_knob(&s->plan->space, KNOB_CORES) ? t->row.slots : 1;
        rc = prepare_member(a, k, &sites[k], e);
        struct one_launch one = { .site = &sites[k],
                                  .tag = m->row.launch,
                                  .dir = m->dir,
                                  .gang = shape,
                                  .rank = k,
                                  .hosts = hosts,
                                  .slots = slots };
        if (rc == 0)
            rc = make_order(a, &one, &orders[k], e);
    }
    return rc;
}

struct recalled {
    struct attempt *a;
    size_t n;
    struct err *e;
};

static int recall_member(void *ctx, const struct store_member *row)
{
    struct recalled *r = ctx;
    if (r->n == gang_count(r->a->gang))
        return 0; /* it says more than it had */
    struct store_member *m = &gang_member(r->a->gang, r->n++)->row;
    m->node = row->node;
    m->pid = row->pid;
    m->start_ticks = row->start_ticks;
    m->port = row->port;
    m->launch = row->launch ? strdup(row->launch) : NULL;
    m->boot_id = row->boot_id ? strdup(row->boot_id) : NULL;
    m->place = row->place ? strdup(row->place) : NULL;
    bool whole = (m->launch || !row->launch) && (m->boot_id || !row->boot_id) && (m->place || !row->place);
    return whole ? 0 : no_memory(r->a, r->e);
}

int attempt_recall_gang(struct attempt *a, struct gangs *all, const struct app_gang *shape, struct err *e)
{
    struct recalled r = { a, 0, e };
    a->gang = gang_new(all, shape, a->trial->row.id, a->row.number, a->dir);
    if (!a->gang)
        return no_memory(a, e);
    int rc = store_members(a->study->store, a->trial->row.id, a->row.number, recall_member, &r, e);
    return rc < 0 ? rc : r.n > 0;
}

/* --- a warm session's run --- */

/* Where its launcher notes how it ended; on a host the note is put into the folder here. */
static const char *launch_dir(const struct attempt *a)
{
    return a->session_dir && !a->row.place ? a->session_dir : a->dir;
}

static int join_session(struct attempt *a, int session, const char *tag)
{
    a->session_dir = study_session_dir(a->study, session);
    a->row.session = session;
    if (asprintf(&a->run_id, "%s-t%d-%d", tag, a->trial->row.number, a->row.number) < 0)
        a->run_id = NULL;
    return a->session_dir && a->run_id ? 0 : -ENOMEM;
}

static int find_there(struct attempt *a, const struct site *site)
{
    site_paths_done(&a->there);
    site_paths_done(&a->there_state);
    int rc = site->row->paths(site->own, a->run_id, a->resume.model, &a->there, NULL);
    if (rc == 0 && a->resume.state)
        rc = site->row->paths(site->own, a->run_id, a->resume.state, &a->there_state, NULL);
    return rc;
}

int attempt_run(struct attempt *a, const struct site *site, json_t **hyper, struct session_run *out)
{
    *hyper = space_point_json(&a->study->plan->space, &a->trial->point);
    if (!*hyper)
        return -ENOMEM;
    int rc = a->row.resumed_from && !a->resume.model ? resume_again(a->row.resumed_from, &a->resume) : 0;
    if (rc == -ENOENT && a->gained) /* it has gone on since, and what it trained has replaced that */
        rc = 0;
    if (rc == 0)
        rc = find_there(a, site);
    const struct site_paths *there = &a->there, *state = &a->there_state;
    if (rc == 0)
        *out = (struct session_run){ .id = a->run_id,
                                     .hyper = *hyper,
                                     .epochs = a->trial->row.epochs,
                                     .seed = repeats_seed(a->study, &a->trial->row),
                                     .checkpoint = there->checkpoint ? there->checkpoint : a->checkpoint_dir,
                                     .model = there->resume ? there->resume : a->resume.model,
                                     .state = state->resume ? state->resume : a->resume.state };
    return rc;
}

static int copy_text(char **to, const char *text)
{
    *to = text ? strdup(text) : NULL;
    return text && !*to ? -ENOMEM : 0;
}

int attempt_prepare_run(struct attempt *a, struct study *s, struct study_trial *t, const struct warm *w,
                        const struct site *site, struct site_order *o, struct err *e)
{
    int rc = prepare(a, s, t, e);
    if (rc < 0)
        return rc;
    a->row.launch = strdup(w->tag);
    a->row.node = (int)site->node;
    if (!a->row.launch || join_session(a, w->number, w->tag) < 0 || copy_text(&a->row.place, site->name) < 0)
        return no_memory(a, e);
    if (!site->node)
        return 0;
    a->at.row = site->row;
    o->words = (struct launcher_words){
        .dir = a->dir, .tag = a->run_id, .attempt = a->row.number, .log_mb = s->plan->cfg.log_mb
    };
    if (copy_text(&o->session, w->tag) < 0 || copy_text(&o->resume, a->resume.model) < 0 ||
        copy_text(&o->resume_state, a->resume.state) < 0)
        return no_memory(a, e);
    return 0;
}

struct launcher_ready attempt_session_ready(const struct attempt *a, const struct warm *w)
{
    struct launcher_ready r = w->at;
    r.heard_size = heard_size(a);
    return r;
}

void attempt_done_said(struct attempt *a, const struct session_message *m)
{
    a->served = m->ok ? SERVED_OK : SERVED_FAILED;
    a->served_ms = clock_ms();
    (void)snprintf(a->served_error, sizeof a->served_error, "%s", m->error);
}

bool attempt_is_served(const struct attempt *a, int64_t now_ms)
{
    if (a->at.row->owes && a->at.row->owes(a->at.own))
        return false;
    if (a->served != SERVED_NOT)
        return a->marked_end || now_ms - a->served_ms > MARK_MS;
    return a->marked_end && now_ms - a->line_ms > MARK_MS; /* its word was lost, or never comes */
}

static int last_epoch(void *ctx, const struct store_epoch *row)
{
    struct attempt *a = ctx;
    if (row->attempt != a->row.number)
        return 0;
    a->gained = true;
    if (row->epoch > a->epochs_done)
        a->epochs_done = row->epoch;
    if (!isnan(row->metric) && row->epoch > a->metric_epoch)
        a->metric_epoch = row->epoch;
    a->fold.since_ms = row->end_ms;
    return 0;
}

int attempt_recall(struct attempt *a, struct study *s, struct study_trial *t, const struct store_attempt *row,
                   struct err *e)
{
    init(a, s, t);
    if (!a->checkpoint_dir || store_attempt_copy(&a->row, row) < 0)
        return err_sys(e, -ENOMEM, "trial %d", t->row.number);
    a->adopted = true;
    t->end_told = row->ends_at > 0; /* by the driver before, for all we know */
    a->epochs_done = row->first_epoch - 1;
    lines_init(&a->stream, &s->plan->app.reader, row->log_offset);
    fold_init(&a->fold, s->plan->cfg.metric, row->log_offset);
    if (row->session && join_session(a, row->session, row->launch) < 0)
        return err_sys(e, -ENOMEM, "trial %d", t->row.number);
    a->live_from = heard_size(a);
    if (s->plan->app.kind->tells)
        a->fold.since_ms = row->started_ms;
    int rc = store_epochs(s->store, t->row.id, last_epoch, a, e);
    a->fold.last_epoch = a->epochs_done;
    /* When an epoch was accounted, the offset stands behind its begin mark and what it was granted: else all is read anew. */
    a->begun = a->fold.connected = a->fold.granted = a->gained;
    return rc;
}

void attempt_done(struct attempt *a)
{
    if (!a)
        return;
    if (a->trial && a->trial->attempt == &a->row)
        a->trial->attempt = NULL;
    if (a->at.own)
        a->at.row->let_go(a->at.own, a->over);
    if (a->heard_fd >= 0)
        (void)close(a->heard_fd); /* nothing was written */
    lines_done(&a->stream);
    series_done(&a->series);
    checkpoints_done(&a->checkpoints);
    for (size_t i = 0; i < a->n_epochs; i++)
        series_done(&a->epochs[i].series);
    free(a->epochs);
    free(a->figures);
    gang_free(a->gang);
    if (a->blamed)
        lines_done(&a->blamed->stream);
    free(a->blamed);
    store_attempt_done(&a->row);
    resume_done(&a->resume);
    free(a->dir);
    free(a->session_dir);
    free(a->run_id);
    site_paths_done(&a->there);
    site_paths_done(&a->there_state);
    free(a->checkpoint_dir);
    *a = (struct attempt){ .heard_fd = -1 };
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

int attempt_ready(struct attempt *a, const struct launcher_ready *r, struct err *e)
{
    a->row.pid = r->pid;
    a->row.start_ticks = (int64_t)r->start_ticks;
    a->row.log_offset = r->heard_size;
    a->row.started_ms = study_clock_ms(a->study);
    a->row.started_boot_ms = clock_boot_ms();
    lines_init(&a->stream, &a->study->plan->app.reader, r->heard_size);
    fold_init(&a->fold, a->study->plan->cfg.metric, r->heard_size);
    a->fold.last_epoch = a->epochs_done;
    if (a->study->plan->app.kind->tells)
        a->fold.since_ms = a->row.started_ms;
    if (set_text(&a->row.state, "running") < 0 || set_text(&a->row.boot_id, r->boot_id) < 0 ||
        set_text(&a->trial->row.state, trial_state_name(TRIAL_RUNNING)) < 0)
        return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    return 0;
}

/* The setting as `show --decisions` prints it: what the trial really gets. */
int attempt_put_launch(struct attempt *a, struct err *e)
{
    struct study *s = a->study;
    struct store_trial *t = &a->trial->row;
    if ((s->tuning || a->trial->cpus) && set_text(&t->effective, a->row.setting) < 0)
        return err_sys(e, -ENOMEM, "trial %d", t->number);
    int rc = store_attempt_add(s->store, &a->row, e);
    for (size_t k = 0; rc == 0 && k < gang_count(a->gang); k++)
        rc = store_member_put(s->store, &gang_member(a->gang, k)->row, e);
    if (rc == 0)
        rc = store_trial_update(s->store, t, e);
    if (rc == 0)
        rc = study_reopen(s, e);
    if (rc == 0)
        rc = study_decide(s, t->number, "launch", t->effective, e, "attempt %d on %d slot%s%s, %s%s", a->row.number,
                          t->slots, t->slots == 1 ? "" : "s", a->session_dir ? " of a warm session" : "",
                          a->row.resumed_from ? "from checkpoint " : "from the beginning",
                          a->row.resumed_from ? a->row.resumed_from : "");
    failpoint("attempt-before-commit");
    return rc;
}

void attempt_launched(struct attempt *a)
{
    a->study->ended = false;
    a->trial->row.attempts = a->row.number;
    failpoint("attempt-committed");
}

/* --- reading --- */

struct hearing {
    struct attempt *a;
    int64_t now_ms; /* since 1970 */
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

/* When it printed last; 0: nothing yet. */
static struct timespec mtime_in(const char *dir)
{
    AUTO_FREE char *path = io_join(dir, "log");
    struct stat st;
    return path && stat(path, &st) == 0 ? st.st_mtim : (struct timespec){ 0 };
}

/* Of a gang, any of it. */
static struct timespec log_mtime(const struct attempt *a)
{
    struct timespec newest = mtime_in(a->dir);
    for (size_t k = 0; k < gang_count(a->gang); k++) {
        struct timespec t = mtime_in(gang_member(a->gang, k)->dir);
        bool newer = t.tv_sec > newest.tv_sec || (t.tv_sec == newest.tv_sec && t.tv_nsec > newest.tv_nsec);
        newest = newer ? t : newest;
    }
    return newest;
}

static int64_t log_mtime_ms(const struct attempt *a)
{
    struct timespec t = log_mtime(a);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* When the log was written last, on that clock: files have the wall clock's time, which tells how long ago. */
static int64_t written_ms(const struct attempt *a)
{
    int64_t now = running_now_ms(&a->row), age = study_now_ms() - log_mtime_ms(a);
    int64_t at = age > 0 ? now - age : now;
    return at > a->row.started_ms ? at : a->row.started_ms;
}

/* Seconds from the first submission until now; of a log that is read later than it was written, until its last line. */
static double seconds_so_far(const struct attempt *a)
{
    int64_t until = a->adopted ? written_ms(a) : running_now_ms(&a->row);
    return a->trial->row.seconds + (double)(until - a->row.started_ms) / 1000.0;
}

/* What the trial is worth: where system parameters are searched too, its metric over time. */
static double worth(const struct attempt *a, double metric)
{
    double s = seconds_so_far(a);
    bool timed =
        a->study->plan->policy->joins_search && a->study->plan->cfg.goals.n < 2; /* else it is one of several */
    if (!timed || !(s > 0))
        return metric;
    return config_maximise(&a->study->plan->cfg) ? metric / s : metric * s;
}

/* It is not gone on with: stored before it is acted on. */
static int order_end(struct attempt *a, const struct search_answer *answer, const struct attempt_epoch *x,
                     struct err *e)
{
    bool pause = answer->verdict == SEARCH_PAUSE;
    if (a->row.ends_at == 0) { /* else it has been told, and gets no further in earnest */
        a->row.ends_at = x->row.epoch;
        a->ends_iteration = x->iteration;
    }
    if (set_text(&a->row.ends_as, outcome_name(pause ? OUTCOME_PAUSED : OUTCOME_STOPPED)) < 0 ||
        set_text(&a->row.cause, answer->why) < 0)
        return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    return study_decide(a->study, a->trial->row.number, pause ? "pause" : "stop", NULL, e, "%s", answer->why);
}

int attempt_put_stop(struct attempt *a, const char *why, struct err *e)
{
    char text[SEARCH_WHY_MAX];
    int n = a->epochs_done;
    study_put_why(text, n, why);
    a->row.ends_at = n ? n : 1;
    a->ends_iteration = a->fold.iteration;
    if (set_text(&a->row.ends_as, outcome_name(OUTCOME_STOPPED)) < 0 || set_text(&a->row.cause, text) < 0)
        return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    int rc = store_attempt_update(a->study->store, &a->row, e);
    return rc == 0 ? study_decide(a->study, a->trial->row.number, "stop", NULL, e, "%s", text) : rc;
}

/* No earlier answer binds it. One that was gone on with before it had got to its pause runs, as the search knows it. */
static bool is_free(const struct attempt *a)
{
    return a->row.ends_at == 0 || strcmp(a->row.ends_as, outcome_name(OUTCOME_INTERRUPTED)) == 0;
}

/* All that was told of the epoch by its name, and the two figures that every search may ask for. */
static size_t told_metrics(const struct attempt_epoch *x, struct told_metric out[REPORT_VALUES_MAX + 2])
{
    const struct told_metric usual[] = { { "accuracy", x->row.accuracy }, { "loss", x->row.loss } };
    size_t n = 0;
    for (; n < x->n_values; n++)
        out[n] = (struct told_metric){ x->values[n].name, x->values[n].value };
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        size_t k = 0;
        while (k < x->n_values && strcmp(x->values[k].name, usual[i].name) != 0)
            k++;
        if (k == x->n_values && !isnan(usual[i].value))
            out[n++] = usual[i];
    }
    return n;
}

/* What the search wants of it after this epoch. Once it is to be ended, whatever it trains until then changes nothing. */
static int tell_search(struct attempt *a, const struct attempt_epoch *x, struct err *e)
{
    const struct store_epoch *row = &x->row;
    const struct store_trial *t = &a->trial->row;
    struct told_metric metrics[REPORT_VALUES_MAX + 2];
    struct told told = { .kind = TOLD_EPOCH,
                         .epoch = row->epoch,
                         .value = t->metric,
                         .metrics = metrics,
                         .n_metrics = told_metrics(x, metrics),
                         .seconds = x->seconds,
                         .start_seconds = a->row.startup_s };
    struct search_answer answer;
    int rc = study_tell(a->study, t, told, &answer, e);
    bool counts = rc == 0 && answer.verdict != SEARCH_GO_ON && is_free(a) && row->epoch < t->epochs;
    return counts ? order_end(a, &answer, x, e) : rc;
}

static int64_t stamp_or_none(int64_t stamp_ms)
{
    return stamp_ms > 0 ? stamp_ms : 0;
}

/* What a step told by name, until its epoch is stored. The fold has taken it. */
static int keep_step(struct attempt *a, const struct app_report *r, struct err *e)
{
    int64_t at_ms = stamp_or_none(r->stamp_ms), step = a->fold.iteration;
    int rc = 0, epoch = fold_epoch_now(&a->fold);
    bool loss_named = false;
    for (size_t i = 0; rc == 0 && i < r->n_values; i++) {
        rc = series_add(&a->series, r->values[i].name, epoch, step, at_ms, r->values[i].value);
        loss_named |= strcmp(r->values[i].name, "loss") == 0;
    }
    if (rc == 0 && !isnan(r->loss) && !loss_named)
        rc = series_add(&a->series, "loss", epoch, step, at_ms, r->loss);
    return rc < 0 ? err_sys(e, rc, "trial %d", a->trial->row.number) : 0;
}

static int keep_epoch(struct attempt *a, const struct fold_epoch *f, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->n_values; i++)
        rc = series_add(&a->series, f->values[i].name, f->epoch, 0, stamp_or_none(f->end_ms), f->values[i].value);
    return rc < 0 ? err_sys(e, rc, "trial %d", a->trial->row.number) : 0;
}

/* It is put into the store when the driver gets to it. */
static int note(struct attempt *a, const struct store_epoch *row, const struct fold_epoch *f, bool amends,
                struct err *e)
{
    struct attempt_epoch *grown = array_more(a->epochs, a->n_epochs, &a->cap_epochs, sizeof *grown);
    if (!grown)
        return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    a->epochs = grown;
    struct attempt_epoch *x = &a->epochs[a->n_epochs++];
    *x = (struct attempt_epoch){ .row = *row,
                                 .metric = worth(a, row->metric),
                                 .seconds = seconds_so_far(a),
                                 .iteration = a->fold.iteration,
                                 .upto = a->fold.safe_offset,
                                 .amends = amends,
                                 .n_values = f->n_values };
    memcpy(x->values, f->values, sizeof x->values);
    return 0;
}

static int note_epoch(struct attempt *a, const struct store_epoch *row, const struct fold_epoch *f, struct err *e)
{
    int rc = note(a, row, f, false, e);
    if (rc < 0)
        return rc;
    a->epochs[a->n_epochs - 1].series = a->series;
    a->series = (struct series){ .n = 0 }; /* the next steps are of the next epoch */
    return tuning_epoch(a->study->tuning, a->trial, row, e);
}

/* The trial's newest figures. A validation may be rarer than epochs, and a metric may be told when later ones are complete. */
static void keep_newest(struct attempt *a, const struct attempt_epoch *x)
{
    struct store_trial *t = &a->trial->row;
    bool newest = !x->amends || x->row.epoch >= a->epochs_done;
    if (newest && !isnan(x->row.accuracy))
        t->accuracy = x->row.accuracy;
    if (newest)
        t->loss = x->row.loss;
    if (isnan(x->row.metric) || (x->amends && x->row.epoch < a->metric_epoch))
        return;
    t->metric = x->metric;
    a->metric_epoch = x->row.epoch;
}

static int put_epoch(struct attempt *a, struct attempt_epoch *x, struct err *e)
{
    struct study *s = a->study;
    struct store_trial *t = &a->trial->row;
    keep_newest(a, x);
    t->kills = 0;
    a->row.log_offset = x->upto;
    if (!x->amends)
        aims_trained(s);
    int rc = store_epoch_put(s->store, &x->row, e);
    if (rc == 0)
        rc = tell_search(a, x, e);
    if (rc == 0)
        rc = store_series_put(s->store, t->id, a->row.number, &x->series, e);
    if (rc == 0)
        publish_epoch(s->publish, t->number, &x->row, study_clock_ms(s));
    return rc;
}

bool attempt_has_news(const struct attempt *a)
{
    return a->n_put < a->n_epochs || a->checkpoints.n_put < a->checkpoints.n;
}

int attempt_put(struct attempt *a, struct err *e)
{
    struct study *s = a->study;
    int rc = 0;
    if (!attempt_has_news(a))
        return 0;
    for (; rc == 0 && a->n_put < a->n_epochs; a->n_put++)
        rc = put_epoch(a, &a->epochs[a->n_put], e);
    if (rc == 0)
        rc = checkpoints_put(&a->checkpoints, s->store, a->trial->row.id, a->row.number, e);
    if (rc == 0)
        rc = store_attempt_update(s->store, &a->row, e);
    if (rc == 0)
        rc = store_trial_update(s->store, &a->trial->row, e);
    if (rc == 0)
        rc = tuning_put(s->tuning, e);
    failpoint("epoch-before-commit");
    return rc;
}

static void punch_accounted(struct attempt *a);

void attempt_stored(struct attempt *a)
{
    size_t n = a->n_put;
    checkpoints_stored(&a->checkpoints, a->checkpoint_dir);
    if (n == 0)
        return;
    failpoint("epoch-committed");
    a->accounted = a->row.log_offset;
    if (a->at.own)
        a->at.row->accounted(a->at.own, a->accounted);
    punch_accounted(a);
    for (size_t i = 0; i < n; i++) {
        series_done(&a->epochs[i].series);
        if (a->on_epoch)
            a->on_epoch(a, &a->epochs[i].row);
    }
    a->n_put = 0;
    a->n_epochs -= n;
    memmove(a->epochs, a->epochs + n, a->n_epochs * sizeof *a->epochs);
}

/* "Top1Accuracy, Loss", and the name among them that is meant: is there one? */
static bool explain_metric(const struct attempt *a, const char *wanted, char out[STUDY_WHY_MAX])
{
    bool own = strcmp(wanted, a->fold.metric) == 0;
    const struct fold *f = &a->fold;
    const char *names[FOLD_REPORTED_MAX + 2];
    size_t n = 0;
    AUTO_BUF struct buf list = BUF_INIT;
    for (int i = 0; i < f->n_reported; i++) {
        names[n++] = f->reported[i];
        buf_printf(&list, "%s%s", i ? ", " : "", f->reported[i]);
    }
    bool accuracy = strcasestr(buf_text(&list), "accuracy") != NULL, loss = strcasestr(buf_text(&list), "loss") != NULL;
    if (!loss && f->has_loss)
        buf_puts(&list, list.len ? ", loss" : "loss");
    if (loss || f->has_loss)
        names[n++] = "loss";
    if (accuracy)
        names[n++] = "accuracy";
    const char *near = suggest_nearest(wanted, names, n);
    const char *fix = own ? "give one of them as --metric"
                          : "correct 'study.metrics' and 'study.constraints', which may name hyperparameters, too";
    (void)snprintf(out, STUDY_WHY_MAX, "metric '%s' is not reported by trial %d: there is %s; %s%s%s", wanted,
                   a->trial->row.number, list.len ? buf_text(&list) : "none", near ? "did you mean '" : fix,
                   near ? near : "", near ? "'?" : "");
    return near != NULL;
}

/* A name that the study's metrics or constraints have. */
struct looked_for {
    const struct attempt *a;
    const char *missing; /* the first that was not told; NULL: all were */
};

static bool is_reported(const struct fold *f, const char *name)
{
    bool accuracy = strcasecmp(name, "accuracy") == 0, is = f->has_loss && strcasecmp(name, "loss") == 0;
    for (int i = 0; i < f->n_reported; i++)
        is |= strcasecmp(f->reported[i], name) == 0 || (accuracy && strcasestr(f->reported[i], name));
    return is;
}

static bool look_for(void *ctx, const char *name)
{
    struct looked_for *l = ctx;
    if (!is_reported(&l->a->fold, name))
        l->missing = name;
    return !l->missing;
}

/* A metric that never comes would be told at the study's end, after all was trained. A validation may be rarer than epochs, so it is
 * the first figures that tell, and at the last epoch none. What a session tells may come when its trial is `over` alone: until then a
 * name is wrong only where it looks like another one. */
static void check_metric(struct attempt *a, bool over)
{
    char why[STUDY_WHY_MAX];
    struct study *s = a->study;
    const struct fold *f = &a->fold;
    s->has_metric |= f->has_metric || (f->has_loss && strcasecmp(f->metric, "loss") == 0);
    struct looked_for l = { a, s->has_metric ? NULL : f->metric };
    if (s->no_metric[0] || (f->n_reported == 0 && a->epochs_done < a->trial->row.epochs))
        return;
    if (!l.missing && !s->has_results)
        results_each_name(s->plan, look_for, &l);
    s->has_results |= !l.missing;
    if (!l.missing)
        return;
    bool slip = explain_metric(a, l.missing, why);
    if (a->run_id && !over && !slip)
        return;
    memcpy(s->no_metric, why, sizeof why);
    s->sched.stopping = true;
}

/* What the session has told of this epoch. */
static void take_figures(struct attempt *a, struct fold_epoch *f)
{
    for (size_t i = 0; i < a->n_figures; i++)
        if (a->figures[i].epoch == f->epoch)
            fold_tell(&a->fold, f, a->figures[i].name, a->figures[i].value);
}

static int on_epoch(struct attempt *a, struct fold_epoch *f, struct err *e)
{
    take_figures(a, f);
    struct store_epoch row = epoch_row(a, f);
    int rc = keep_epoch(a, f, e);
    if (rc == 0)
        rc = note_epoch(a, &row, f, e);
    if (rc < 0)
        return rc;
    a->gained = true;
    a->epochs_done = row.epoch;
    const struct app_kind *kind = a->study->plan->app.kind;
    a->unseen = kind->part && writes_checkpoints(a) ? row.epoch : 0;
    if (!a->tells_checkpoints && kind->tells && !kind->part && writes_checkpoints(a))
        rc = a->at.row->checkpoint(a->at.own, row.epoch, NULL, e);
    if (rc < 0)
        return rc;
    a->study->doubt.n = 0; /* a trial can run here */
    sched_gained(&a->study->sched, a->trial->row.number);
    check_metric(a, false);
    return 0;
}

static int keep_figure(struct attempt *a, int epoch, const char *name, double value)
{
    size_t i = 0;
    fold_tell(&a->fold, NULL, name, value);
    while (i < a->n_figures &&
           (a->figures[i].epoch != epoch || strncmp(a->figures[i].name, name, REPORT_NAME_MAX - 1) != 0))
        i++;
    if (i == a->n_figures) {
        struct attempt_figure *grown = array_more(a->figures, a->n_figures, &a->cap_figures, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        a->figures = grown;
        a->figures[a->n_figures++] = (struct attempt_figure){ .epoch = epoch };
        (void)snprintf(grown[i].name, sizeof grown->name, "%s", name);
    }
    a->figures[i].value = value;
    return 0;
}

static int take_row(void *ctx, const struct store_epoch *row)
{
    struct store_epoch *to = ctx;
    if (row->epoch == to->epoch && row->attempt == to->attempt)
        *to = *row;
    return 0;
}

/* The epoch as it was noted last. -ENOENT: it was not, in this attempt. */
static int noted_row(const struct attempt *a, int epoch, struct store_epoch *out, struct err *e)
{
    *out = (struct store_epoch){ .epoch = epoch, .attempt = a->row.number };
    for (size_t i = a->n_epochs; i-- > 0;)
        if (a->epochs[i].row.epoch == epoch) {
            *out = a->epochs[i].row;
            return 0;
        }
    int rc = store_epochs(a->study->store, a->trial->row.id, take_row, out, e);
    return rc < 0 ? rc : out->trial ? 0 : -ENOENT;
}

/* The study's metric was told of an epoch that was noted without it, or with another value. What the log says of the accuracy stands. */
static int amend(struct attempt *a, int epoch, struct err *e)
{
    struct store_epoch row;
    struct fold_epoch f = { .epoch = epoch, .accuracy = NAN, .loss = NAN, .train_loss = NAN, .metric = NAN };
    take_figures(a, &f);
    double metric = epoch_row(a, &f).metric;
    int rc = isnan(metric) ? -ENOENT : noted_row(a, epoch, &row, e);
    bool stands = rc == 0 && !isnan(row.metric) && strcasecmp(a->fold.metric, "accuracy") == 0;
    if (rc < 0 || stands || row.metric == metric)
        return rc == -ENOENT ? 0 : rc;
    row.metric = metric;
    row.accuracy = isnan(row.accuracy) ? f.accuracy : row.accuracy;
    row.loss = isnan(row.loss) ? f.loss : row.loss;
    return note(a, &row, &f, true, e);
}

int attempt_figures_said(struct attempt *a, const struct session_message *m, struct err *e)
{
    const char *name;
    json_t *value;
    int rc = 0;
    json_object_foreach(m->metrics, name, value)
    {
        if (rc == 0)
            rc = keep_figure(a, m->epoch, name, json_number_value(value));
    }
    a->study->has_metric |= a->fold.has_metric;
    if (rc < 0)
        return err_sys(e, rc, "trial %d", a->trial->row.number);
    return m->epoch <= a->epochs_done ? amend(a, m->epoch, e) : 0; /* else its epoch takes them */
}

/* Of what a session wrote for this trial, only the lines between the two marks are this attempt's. */
static bool is_ours(struct attempt *a, const struct app_report *ev, uint64_t end)
{
    if (!a->run_id)
        return true;
    if (ev->kind != REPORT_MARK)
        return a->begun && !a->marked_end;
    if (strcmp(ev->text, a->run_id) != 0)
        return false;
    if (ev->begins)
        fold_init(&a->fold, a->study->plan->cfg.metric, end);
    a->begun |= ev->begins;
    a->marked_end = !ev->begins;
    return false;
}

/* What one that tells less than others is to the policy and the profiles: a step has an epoch, and took the time since what was told
 * before it, which the first one (and its start-up) has not; an epoch that is told of as a whole, and had no steps, is a step. False:
 * it is nothing to them. */
static bool complete_step(struct attempt *a, const struct app_report *r, struct app_report *out)
{
    bool whole = r->kind == REPORT_EPOCH && r->whole;
    if (!a->study->plan->app.kind->tells || (r->kind != REPORT_STEP && !whole))
        return true;
    double before_ms = a->told_ms;
    a->told_ms = r->stamp_ms > 0 ? (double)r->stamp_ms : a->told_ms;
    if (whole && a->fold.iteration > a->steps_told) { /* its steps have told it */
        a->steps_told = a->fold.iteration;
        return false;
    }
    out->kind = REPORT_STEP;
    out->epoch = r->epoch > 0 ? r->epoch : fold_epoch_now(&a->fold) > 0 ? fold_epoch_now(&a->fold) : a->epochs_done + 1;
    out->records = r->records > 0 ? r->records : 1;
    if (!isfinite(r->seconds))
        out->seconds = before_ms > 0 && r->stamp_ms > 0 ? ((double)r->stamp_ms - before_ms) / 1000.0 : (double)NAN;
    return isfinite(out->seconds) && out->epoch > a->epochs_done;
}

/* What the policy and the profiles want to know of a line that was written while we watched. */
static int tell_watchers(const struct hearing *r, const struct app_report *ev, uint64_t end)
{
    struct attempt *a = r->a;
    struct study_trial *t = a->trial;
    if (end <= a->live_from)
        return 0;
    if (ev->kind == REPORT_STEP && ev->stamp_ms >= 0) {
        struct profiles_step step = { ev->epoch, (double)ev->stamp_ms, ev->seconds, ev->records };
        int rc = profiles_step(a->study->profiles, t->row.number, &step, r->e);
        if (rc < 0)
            return rc;
    }
    if (ev->kind == REPORT_PAUSE)
        return profiles_pause(a->study->profiles, t->row.number, ev->stamp_ms >= 0 ? (double)ev->stamp_ms : (double)NAN,
                              ev->seconds, r->e);
    if (ev->kind == REPORT_STEP)
        publish_step(a->study->publish, t->row.number, ev, r->now_ms);
    if (!a->study->tuning)
        return 0;
    if (ev->kind == REPORT_RECOVERY || ev->kind == REPORT_LOST)
        return tuning_break(a->study->tuning, t->row.number, r->e);
    if (ev->kind != REPORT_STEP)
        return 0;
    if (isnan(a->row.startup_s) && !a->adopted) {
        a->row.startup_s = (double)(clock_boot_ms() - a->row.started_boot_ms) / 1000.0;
        bool resumable = a->study->plan->app.resumes && a->study->plan->app.checkpoints;
        t->startup_s = resumable ? a->row.startup_s : 0;
    }
    return tuning_iteration(a->study->tuning, t, ev, r->now_ms, r->e);
}

int attempt_checkpoint(struct attempt *a, int epoch, const char *path, struct err *e)
{
    int rc = checkpoints_add(&a->checkpoints, epoch, path);
    return rc < 0 ? err_sys(e, rc, "trial %d", a->trial->row.number) : 0;
}

static int keep_checkpoint(struct attempt *a, const struct app_report *r, struct err *e)
{
    int epoch = r->epoch > 0 ? r->epoch : a->epochs_done;
    int rc = epoch < 1 ? 1 : a->at.row->checkpoint(a->at.own, epoch, r->text, e);
    a->tells_checkpoints = true;
    return rc == 0 ? attempt_checkpoint(a, epoch, r->text, e) : rc < 0 ? rc : 0;
}

/* Its folder is looked at when the next epoch has begun: what it writes there of one, by names of its own, is whole then. */
static int see_checkpoint(struct attempt *a, struct err *e)
{
    int epoch = a->unseen, rc = a->at.row ? a->at.row->checkpoint(a->at.own, epoch, NULL, e) : 0;
    a->unseen = 0;
    return rc < 0 ? rc : 0;
}

/* On a host the checkpoint of its last epoch is to be fetched: no next one begins that would say that it is whole. */
int attempt_see_last(struct attempt *a, struct err *e)
{
    return a->unseen && a->marked_end ? see_checkpoint(a, e) : 0;
}

static int on_event(void *ctx, const struct app_report *heard, uint64_t end)
{
    struct hearing *r = ctx;
    struct fold_epoch f;
    if (!is_ours(r->a, heard, end))
        return 0;
    struct app_report mended = *heard;
    const struct app_report *ev = &mended;
    if (mended.stamp_ms >= 0)
        mended.stamp_ms -= r->a->ahead_ms;
    stamps_mend(&r->a->stamps, &mended, r->now_ms, end > r->a->live_from);
    /* An attempt that went back to the untrained model keeps its old counters: its figures would be another trial's. */
    if (ev->kind == REPORT_RECOVERY && ev->untrained && r->a->stop == STOP_NONE)
        r->a->stop = STOP_ORIGIN;
    if (r->a->stop == STOP_ORIGIN && (ev->kind == REPORT_STEP || ev->kind == REPORT_EPOCH))
        return 0;
    if (ev->kind == REPORT_READY && !r->a->row.app_id)
        r->a->row.app_id = strdup(ev->text); /* stored with the next epoch; NULL is "not known" */
    struct app_report step = mended;
    int rc = complete_step(r->a, ev, &step) ? tell_watchers(r, &step, end) : 0;
    if (rc == 0 && ev->kind == REPORT_STEP && r->a->unseen)
        rc = see_checkpoint(r->a, r->e);
    if (rc == 0 && ev->kind == REPORT_CHECKPOINT && r->a->study->plan->app.kind->tells)
        rc = keep_checkpoint(r->a, ev, r->e);
    if (rc == 0 && fold_report(&r->a->fold, ev, end, &f))
        rc = on_epoch(r->a, &f, r->e);
    return rc == 0 && ev->kind == REPORT_STEP ? keep_step(r->a, ev, r->e) : rc;
}

static int open_heard(struct attempt *a, struct err *e)
{
    AUTO_FREE char *path = heard_path(a);
    if (!path)
        return err_sys(e, -ENOMEM, "trial %d", a->trial->row.number);
    struct err why;
    int fd = ours_open(path, O_RDWR, &why);
    if (fd < 0 && fd != -ENOENT) { /* not written yet is no error */
        *e = why;
        return fd;
    }
    a->heard_fd = fd < 0 ? -1 : fd;
    return 0;
}

/* What is accounted is of no more use. A file system that has no holes keeps it, as long as the attempt lives. */
static void punch_accounted(struct attempt *a)
{
    uint64_t upto = a->accounted & ~(uint64_t)(PUNCH_UNIT - 1);
    if (a->heard_fd < 0 || upto <= a->punched)
        return;
    (void)fallocate(a->heard_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)a->punched,
                    (off_t)(upto - a->punched));
    a->punched = upto;
}

/* Whatever it prints, heard or not, and whatever becomes of it. */
static void look_for_life(struct attempt *a, int64_t now_ms)
{
    struct timespec t = log_mtime(a);
    if (t.tv_sec != a->log_mtime.tv_sec || t.tv_nsec != a->log_mtime.tv_nsec || a->at.row->away(a->at.own))
        a->line_ms = now_ms;
    if (a->at.row->away(a->at.own)) /* the rest of its lines comes when it is there again */
        a->served_ms = now_ms;
    a->log_mtime = t;
}

int attempt_read(struct attempt *a, int64_t now_ms, struct err *e)
{
    look_for_life(a, now_ms);
    if (!a->knows_ahead && !(a->knows_ahead = a->at.row->ahead(a->at.own, &a->ahead_ms)))
        return 0;
    int rc = a->heard_fd < 0 ? open_heard(a, e) : 0;
    if (rc < 0 || a->heard_fd < 0)
        return rc;
    struct hearing r = { .a = a, .now_ms = study_clock_ms(a->study), .e = e };
    char chunk[32768];
    for (;;) {
        ssize_t n = pread(a->heard_fd, chunk, sizeof chunk, (off_t)a->stream.offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, -errno, "cannot read the log of trial %d", a->trial->row.number);
        if (n == 0)
            break;
        a->line_ms = now_ms;
        rc = lines_feed(&a->stream, chunk, (size_t)n, on_event, &r);
        if (rc < 0)
            return rc == -ENOMEM ? err_sys(e, rc, "reading the log of trial %d", a->trial->row.number) : rc;
        if (a->epochs_done >= a->trial->row.epochs && a->done_ms == 0)
            a->done_ms = now_ms;
    }
    return 0;
}

struct wait attempt_wait(const struct attempt *a)
{
    struct wait w = grant_wait(a->study, a->trial, &a->fold, a->trial->row.slots);
    if (a->gained)
        w.kind = WAIT_NONE;
    else if (a->run_id && w.kind != WAIT_NONE) /* of a session that is up */
        w.kind = WAIT_DATA;
    return w;
}

enum attempt_stop attempt_overdue(const struct attempt *a, int64_t now_ms)
{
    const struct config *c = &a->study->plan->cfg;
    if (a->stop != STOP_NONE || a->at.row->away(a->at.own))
        return a->stop;
    if (!a->run_id && a->done_ms && now_ms - a->done_ms > LINGER_MS)
        return STOP_LINGERS;
    if (a->fold.starved >= STARVED_MAX || a->starved >= STARVED_MAX)
        return STOP_STARVED;
    if (attempt_wait(a).kind == WAIT_ROOM && now_ms - a->born_ms > c->grant_seconds * 1000)
        return STOP_NO_ROOM;
    return now_ms - a->line_ms > c->stall_seconds * 1000 ? STOP_STALLED : STOP_NONE;
}

/* --- ending --- */

/* Bytes of its files, which are two or one; -1: one of them is not there. */
static int64_t checkpoint_bytes(const struct resume_point *r)
{
    struct stat model, state = { 0 };
    bool there = stat(r->model, &model) == 0 && (!r->state || stat(r->state, &state) == 0);
    return there ? (int64_t)(model.st_size + state.st_size) : -1;
}

/* Is there a checkpoint of that epoch, or a later one, and is it whole? It is written before training goes on. */
static int is_written(struct attempt *a, bool trains_on, int64_t now_ms, struct err *e)
{
    struct resume_point r = { 0 };
    int rc = find_checkpoint(a, &r, e);
    int64_t bytes = rc == 1 && r.epochs >= a->row.ends_at ? checkpoint_bytes(&r) : -1;
    resume_done(&r);
    if (bytes != a->written_bytes)
        a->written_ms = now_ms;
    a->written_bytes = bytes;
    return rc < 0 ? rc : bytes > 0 && (trains_on || now_ms - a->written_ms >= WRITTEN_MS);
}

int attempt_can_end(struct attempt *a, int64_t now_ms, struct err *e)
{
    const struct application *app = &a->study->plan->app;
    if (!app->checkpoints || !app->resumes)
        return 1;
    bool trains_on =
        a->fold.iteration > a->ends_iteration || a->epochs_done > a->row.ends_at; /* steps may not be told */
    int rc = is_written(a, trains_on, now_ms, e);
    bool needed = strcmp(a->row.ends_as, outcome_name(OUTCOME_STOPPED)) != 0;
    return rc == 0 && trains_on && !needed ? 1 : rc; /* it does not write one after each epoch */
}

bool attempt_ignores_end(const struct attempt *a, int64_t now_ms)
{
    enum { LATE = 2, LATE_MS = 3000 }; /* the word may come within the next epoch, and epochs may be short */
    return a->end_said && a->epochs_done >= a->row.ends_at + LATE && now_ms - a->end_said_ms >= LATE_MS;
}

void attempt_signal(struct attempt *a, bool hard)
{
    a->at.row->signal(a->at.own, &a->row, hard);
}

void attempt_say_stop(struct attempt *a)
{
    if (!a->study->plan->app.kind->tells || a->stop_said)
        return;
    a->stop_said = true;
    a->at.row->say_stop(a->at.own, &a->row);
}

/* Of a gang, the one that it ended of. */
static void read_exit(const struct attempt *a, struct attempt_exit *out)
{
    const struct gang_member *blamed = gang_blamed(a->gang);
    exit_note_read(blamed ? blamed->dir : launch_dir(a), a->run_id ? 1 : a->row.number,
                   blamed ? blamed->row.launch : a->row.launch, out);
    if (a->at.row->elsewhere)
        out->boot_ms = 0;
}

/* What its log says that it ended of; NULL: nothing. */
static const struct fold_seen *cause_of(const struct attempt *a)
{
    if (a->blamed)
        return fold_cause(&a->blamed->fold, a->blamed->stream.offset);
    return fold_cause(&a->fold, a->stream.offset);
}

static enum outcome outcome_of_verdict(enum cause_verdict v)
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
    const char *lost = a->lost ? a->lost : a->at.row->lost(a->at.own);
    if (lost) {
        (void)snprintf(text, 512, "%s", lost);
        return OUTCOME_INTERRUPTED;
    }
    if (a->row.boot_id && a->at.row->boot_id(a->at.own, boot) && strcmp(boot, a->row.boot_id) != 0) {
        (void)snprintf(text, 512, "the machine was started anew");
        return OUTCOME_INTERRUPTED;
    }
    bool begun = a->stream.offset > a->row.log_offset || a->gained || log_mtime_ms(a) > a->row.started_ms;
    if (!begun && a->adopted) { /* a driver died between commit and go */
        (void)snprintf(text, 512, "it had not begun");
        return OUTCOME_INTERRUPTED;
    }
    (void)snprintf(text, 512, "its launcher was killed");
    return OUTCOME_KILLED;
}

/* Its cluster killed parts of it for want of memory: it would again. */
static bool is_starved(const struct attempt *a)
{
    return a->stop == STOP_STARVED || (a->stop == STOP_ORIGIN && a->fold.starved > 0);
}

static enum outcome judge_starved(const struct attempt *a, char text[512])
{
    int n = a->fold.starved > a->starved ? a->fold.starved : a->starved;
    (void)snprintf(text, 512,
                   "out_of_memory: its cluster killed %d of its %ss for exceeding their memory; raise memory, or lower "
                   "the batch",
                   n, a->study->plan->offer.part_word);
    return OUTCOME_INFEASIBLE;
}

static enum outcome judge_stop(const struct attempt *a, char text[512])
{
    const struct config *c = &a->study->plan->cfg;
    switch (a->stop) {
    case STOP_NO_ROOM:
        grant_put_refused(a->study, &a->fold, a->trial->row.slots, a->crowded_out, a->why_no_room, text);
        return a->crowded_out ? OUTCOME_INTERRUPTED : OUTCOME_INFEASIBLE;
    case STOP_STARVED: return judge_starved(a, text);
    case STOP_STALLED: (void)snprintf(text, 512, "no line for %" PRId64 " s", c->stall_seconds); return OUTCOME_FAILED;
    case STOP_ORIGIN:
        (void)snprintf(text, 512, "%s, and begins anew", a->study->plan->app.kind->words.lost);
        return is_starved(a) ? judge_starved(a, text) : OUTCOME_FAILED;
    case STOP_FLOOD:
        (void)snprintf(text, 512, "more than %d MB came from its host without the end of an epoch",
                       MIRROR_HEARD_MAX >> 20);
        return OUTCOME_FAILED;
    case STOP_METRIC: (void)snprintf(text, 512, "%s", a->study->no_metric); return OUTCOME_INTERRUPTED;
    case STOP_RELAUNCH: (void)snprintf(text, 512, "launched again with another setting"); return OUTCOME_INTERRUPTED;
    default: (void)snprintf(text, 512, "interrupted"); return OUTCOME_INTERRUPTED;
    }
}

/* With its log: of a gang, the one's that it ended of. */
static const char *log_dir(const struct attempt *a)
{
    const struct gang_member *blamed = gang_blamed(a->gang);
    return blamed ? blamed->dir : a->dir;
}

static enum outcome judge_exit(const struct attempt *a, const struct attempt_exit *x, char text[512])
{
    if (strcmp(x->kind, "not-started") == 0 && x->code == 127) {
        (void)snprintf(text, 512, "%s could not be started, see %s/log", a->study->plan->app.kind->words.program,
                       log_dir(a));
        return OUTCOME_ENVIRONMENT;
    }
    const char *how = x->code > 128 ? "was killed by signal" : "ended with exit code";
    const char *last = a->blamed ? a->blamed->stream.place.said : a->stream.place.said;
    const char *said = x->code > 128 ? "" : last; /* who is killed has no last word */
    (void)snprintf(text, 512, "%s %d after %d of %d epochs%s%s, see %s/log", how,
                   x->code > 128 ? x->code - 128 : x->code, a->epochs_done, a->trial->row.epochs, *said ? ": " : "",
                   said, log_dir(a));
    return OUTCOME_FAILED;
}

/* What stands in the log is not what it died of. */
static enum outcome judge_killed(const struct attempt *a, const struct attempt_exit *x, char text[512])
{
    if (x->starved && x->code == 128 + SIGKILL) {
        (void)snprintf(text, 512,
                       "out_of_memory: the kernel killed it after %d of %d epochs, as this machine's memory was full; "
                       "lower memory, or run less beside it",
                       a->epochs_done, a->trial->row.epochs);
        return OUTCOME_FAILED;
    }
    (void)snprintf(text, 512, "killed from outside by signal %d (%s) after %d of %d epochs, see %s/log", x->code - 128,
                   sigabbrev_np(x->code - 128), a->epochs_done, a->trial->row.epochs, log_dir(a));
    return OUTCOME_KILLED;
}

/* Whatever its programs made of it that one of them was killed. */
static enum outcome judge_limited(const struct attempt *a, char text[512])
{
    char gb[NUM_TEXT_MAX];
    struct setting set = study_setting(a->study, a->trial);
    (void)snprintf(text, 512,
                   "out_of_memory: it took more than the %s GiB it was given, after %d of %d epochs; raise memory",
                   num_print(setting_number(&a->study->plan->space, &set, KNOB_MEMORY, 0), gb), a->epochs_done,
                   a->trial->row.epochs);
    return OUTCOME_INFEASIBLE;
}

static enum outcome judge_served(const struct attempt *a, char text[512])
{
    if (a->served == SERVED_FAILED)
        (void)snprintf(text, 512, "the application says: %s", a->served_error);
    else
        (void)snprintf(text, 512, "the application returned after %d of %d epochs, see %s/log", a->epochs_done,
                       a->trial->row.epochs, a->dir);
    return OUTCOME_FAILED;
}

static enum outcome judge(const struct attempt *a, const struct attempt_exit *x, char text[512])
{
    text[0] = '\0';
    if (a->epochs_done >= a->trial->row.epochs)
        return OUTCOME_FINISHED;
    if (a->row.ends_at) { /* however it ended then */
        (void)snprintf(text, 512, "%s", a->row.cause ? a->row.cause : "");
        return (enum outcome)outcome_parse(a->row.ends_as);
    }
    struct site_end end = { 0 };
    bool said = a->at.row->end && a->at.row->end(a->at.own, &end);
    if (x->limited && (a->stop == STOP_NONE || a->stop == STOP_STALLED))
        return judge_limited(a, text);
    if (a->stop != STOP_NONE)
        return judge_stop(a, text);
    if (said) {
        (void)snprintf(text, 512, "%s", end.why);
        return end.outcome;
    }
    /* Before the log's cause: what the launcher says of itself there, "Cannot allocate memory", is not the trial's fault. */
    if (x->there && strcmp(x->kind, "not-started") == 0)
        return judge_exit(a, x, text);
    if (!x->there && a->served == SERVED_NOT && !a->marked_end)
        return judge_silent(a, text);
    if (exit_note_is_killed(x) && !a->told_to_end)
        return judge_killed(a, x, text);
    const struct fold_seen *why = cause_of(a);
    bool vague =
        why && (why->cause->traits & CAUSE_IS_ANY) && a->served == SERVED_FAILED; /* the session knows it better */
    if (why && !vague) {
        const char *fix = why->cause->fix;
        (void)snprintf(text, 512, "%s: %s%s%s", why->cause->name, why->text, fix ? "; " : "", fix ? fix : "");
        return outcome_of_verdict(why->cause->verdict);
    }
    if (a->served != SERVED_NOT || a->marked_end)
        return judge_served(a, text);
    return judge_exit(a, x, text);
}

/* That no trial can run here takes two attempts to say. True: this one is believed. */
static bool confirms(struct study_doubt *doubt, const struct attempt *a, const char *text)
{
    enum { DOUBTS_MAX = 3 }; /* who says another thing each time does not run either */
    char cause[sizeof doubt->cause];
    (void)snprintf(cause, sizeof cause, "%.*s", (int)strcspn(text, ":,"), text);
    if (doubt->n > 0 && a->row.started_ms < doubt->since_ms) /* both fell into the same moment */
        return false;
    bool many = a->at.row->is_one_of_many && a->at.row->is_one_of_many(a->at.own);
    if (doubt->n > 0 && many && doubt->place == a->trial->place) /* it says nothing of others */
        return false;
    doubt->place = a->trial->place;
    bool same = doubt->n > 0 && strcmp(cause, doubt->cause) == 0;
    memcpy(doubt->cause, cause, sizeof cause);
    doubt->since_ms = study_clock_ms(a->study);
    return ++doubt->n >= DOUBTS_MAX || same;
}

/* A loss of its room may be a different one each time. */
static bool is_loss(const struct attempt *a)
{
    const struct fold_seen *why = cause_of(a);
    return a->stop == STOP_ORIGIN || (why && (why->cause->traits & CAUSE_IS_LOSS));
}

/* Has it failed as it did before, and came no further? It will the next time, too. */
static bool fails_alike(const struct attempt *a, const char *text)
{
    const struct store_trial *t = &a->trial->row;
    return t->failures > 0 && !a->gained && !is_loss(a) && t->reason && strcmp(t->reason, text) == 0;
}

static int ignore(void *ctx, const struct app_report *r, uint64_t end)
{
    struct attempt_words *w = ctx;
    struct fold_epoch none;
    (void)fold_report(&w->fold, r, end, &none);
    return 0;
}

/* The last words of the process that a gang ended of: what it told before that is nobody's business. */
static int read_blamed(struct attempt *a, struct err *e)
{
    enum { LAST = 256 << 10 };
    const struct gang_member *blamed = gang_blamed(a->gang);
    if (!blamed)
        return 0;
    struct attempt_words *w = calloc(1, sizeof *w);
    AUTO_FREE char *path = io_join(blamed->dir, "heard");
    AUTO_FREE char *bytes = malloc(LAST);
    if (!w || !path || !bytes) {
        free(w);
        return no_memory(a, e);
    }
    AUTO_CLOSE int fd = ours_open(path, O_RDONLY, NULL);
    struct stat st = { .st_size = 0 };
    off_t from = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > LAST ? st.st_size - LAST : 0;
    ssize_t n = fd >= 0 ? pread(fd, bytes, LAST, from) : 0;
    const char *begin = from > 0 && n > 0 ? memchr(bytes, '\n', (size_t)n) : NULL;
    size_t skip = begin ? (size_t)(begin + 1 - bytes) : 0;
    lines_init(&w->stream, &a->study->plan->app.reader, (uint64_t)from + skip);
    fold_init(&w->fold, a->study->plan->cfg.metric, (uint64_t)from + skip);
    a->blamed = w;
    int rc = n > 0 ? lines_feed(&w->stream, bytes + skip, (size_t)n - skip, ignore, w) : 0;
    if (rc == 0)
        rc = lines_end(&w->stream, ignore, w);
    return rc < 0 ? no_memory(a, e) : 0;
}

static int read_rest(struct attempt *a, const struct attempt_exit *x, struct err *e)
{
    int rc = attempt_read(a, 0, e);
    struct hearing r = { .a = a, .now_ms = study_clock_ms(a->study), .e = e };
    if (rc == 0 && !a->run_id) /* a session writes on */
        rc = lines_end(&a->stream, on_event, &r);
    struct fold_epoch f;
    if (rc < 0 || a->stop == STOP_ORIGIN || !fold_end(&a->fold, &f))
        return rc;
    /* An epoch without its result counts only when the application ended by itself: one that was cut short in its
     * validation would be finished without an accuracy. */
    bool by_itself = a->served == SERVED_OK || (x->there && strcmp(x->kind, "exited") == 0 && x->code == 0);
    take_figures(a, &f);
    return isnan(f.metric) && !by_itself ? 0 : on_epoch(a, &f, e);
}

/* When it ended: by its own note; met dead without one, by its last line. */
static int64_t end_time(const struct attempt *a, const struct attempt_exit *x)
{
    int64_t at = a->adopted ? written_ms(a) : running_now_ms(&a->row);
    if (x->there &&
        a->served == SERVED_NOT) /* … on the clock of the boot in which it was started, whichever that was */
        at = x->boot_ms > 0 && a->row.started_boot_ms > 0 ? a->row.started_ms + x->boot_ms - a->row.started_boot_ms
                                                          : x->at_ms;
    return at > a->row.started_ms ? at : a->row.started_ms;
}

/* A window of the trial that can teach something: to look at, and for the model. */
static int keep_profile(void *ctx, const struct profiles_window *w, const struct profile *p, struct err *e)
{
    const struct attempt *a = ctx;
    int rc = p ? profiles_store(a->study->profiles, a->trial, w, p, NULL, e) : 0;
    return p && rc == 0 ? reuse_note(a->study->reuse, w->trial, p, e) : rc;
}

/* What it measured stands, whether or not it came to its end. */
static bool has_trained(enum outcome o)
{
    return o == OUTCOME_FINISHED || o == OUTCOME_PAUSED || o == OUTCOME_STOPPED;
}

static int tell_end(struct attempt *a, enum trial_state state, struct err *e)
{
    static const enum told_kind kinds[] = { [TRIAL_FINISHED] = TOLD_FINISHED,
                                            [TRIAL_STOPPED] = TOLD_STOPPED,
                                            [TRIAL_FAILED] = TOLD_FAILED,
                                            [TRIAL_INFEASIBLE] = TOLD_INFEASIBLE };
    const struct store_trial *t = &a->trial->row;
    bool worth = (state == TRIAL_FINISHED || state == TRIAL_STOPPED) && !t->violates;
    struct search_answer none;
    struct told told = { .kind = t->violates ? TOLD_INFEASIBLE : kinds[state],
                         .epoch = a->epochs_done,
                         .value = worth ? t->metric : (double)NAN,
                         .seconds = t->seconds };
    return study_tell(a->study, t, told, &none, e);
}

static int put_judged(struct attempt *a, struct err *e)
{
    struct study *s = a->study;
    struct store_trial *t = &a->trial->row;
    enum outcome o = a->end.outcome;
    enum trial_state state = a->end.state;
    const char *text = a->end.text;
    int rc = profiles_end(s->profiles, t->number, has_trained(o), keep_profile, a, e);
    if (rc == 0)
        rc = tuning_end(s->tuning, a->trial, has_trained(o), e);
    if (rc == 0 && a->out_of_memory)
        rc = tuning_bound(s->tuning, a->trial, true, e);
    if (rc == 0)
        rc = store_attempt_update(s->store, &a->row, e);
    if (rc == 0 && (state == TRIAL_FINISHED || (state == TRIAL_STOPPED && a->epochs_done > 0)))
        rc = results_judge(s, a->trial, e);
    if (rc == 0)
        rc = store_trial_update(s->store, t, e);
    if (rc == 0)
        rc =
            study_decide(s, t->number,
                         trial_state_is_final(state) ? "end"
                         : state == TRIAL_PAUSED     ? "paused"
                                                     : "again",
                         t->effective, e, "attempt %d %s%s%s", a->row.number, outcome_name(o), *text ? ": " : "", text);
    if (rc == 0 && t->violates)
        rc = study_decide(s, t->number, "violates", NULL, e, "%s", t->violates);
    if (rc == 0 && trial_state_is_final(state))
        rc = tell_end(a, state, e);
    failpoint("end-before-commit");
    return rc;
}

/* An application that cannot read its checkpoint says so and exits; one that was killed says nothing of it. */
static bool blames_checkpoint(const struct attempt *a, const struct attempt_exit *x)
{
    return a->row.resumed_from && !a->gained && (a->served == SERVED_FAILED || (x->there && x->code <= 128));
}

/* A setting that the policy chose has run out of memory: the trial goes on with more, as long as there is more. */
static bool refuse_setting(struct attempt *a, const struct attempt_exit *x)
{
    struct study_trial *t = a->trial;
    const struct fold_seen *why = cause_of(a);
    a->out_of_memory =
        a->study->tuning && (x->limited || is_starved(a) || (why && (why->cause->traits & CAUSE_IS_MEMORY)));
    if (!a->out_of_memory)
        return false;
    t->refused_cold |= 1u << t->setting.cold;
    return choices_more_memory(&a->study->plan->choices, &a->study->plan->space, t->setting.cold) >= 0;
}

/* A cause is a line of the application's, which may repeat what it was given. */
static void hide_secrets(const struct plan *p, char text[512])
{
    AUTO_FREE char *bare = secret_hide(&p->secrets.values, text);
    (void)snprintf(text, 512, "%s", bare ? bare : "");
}

int attempt_read_end(struct attempt *a, struct err *e)
{
    struct site_end end = { 0 };
    read_exit(a, &a->end.note);
    if (a->at.row->end && a->at.row->end(a->at.own, &end))
        a->end.note.limited |= end.memory;
    int rc = read_rest(a, &a->end.note, e);
    if (rc == 0)
        rc = read_blamed(a, e);
    if (rc == 0 && a->run_id && a->served == SERVED_OK && a->epochs_done > 0)
        check_metric(a, true);
    a->row.exit_code = a->end.note.code;
    a->row.ended_ms = end_time(a, &a->end.note);
    return rc;
}

/* A rule that goes by epochs would wait for them for ever, and each trial fail: that shows when the first has run to its end. */
static bool tells_no_epochs(const struct attempt *a)
{
    const struct attempt_exit *x = &a->end.note;
    bool by_itself = x->there && strcmp(x->kind, "exited") == 0 && x->code == 0;
    return by_itself && a->stop == STOP_NONE && a->epochs_done == 0 && !a->study->has_metric && !cause_of(a) &&
           a->study->search.stop->tell;
}

static void note_no_epochs(struct attempt *a)
{
    struct study *s = a->study;
    if (!s->no_metric[0])
        (void)snprintf(s->no_metric, sizeof s->no_metric,
                       "stop rule '%s' goes by epochs, and trial %d ended without telling one: have them told by "
                       "'progress' in the application file or by 'pipetune tell' (docs/applications.md); one that "
                       "tells its result alone needs --epochs 1",
                       s->search.stop->name, a->trial->row.number);
    (void)snprintf(a->end.text, sizeof a->end.text, "%s", s->no_metric);
    s->sched.stopping = true;
}

/* Which process of a gang it was. */
static void put_who(const struct attempt *a, enum outcome o, char text[512])
{
    char whole[512];
    const struct gang_member *blamed = gang_blamed(a->gang);
    bool says = o == OUTCOME_FAILED || o == OUTCOME_KILLED || o == OUTCOME_INFEASIBLE || o == OUTCOME_ENVIRONMENT;
    if (!blamed || !says || a->stop != STOP_NONE)
        return;
    (void)snprintf(whole, sizeof whole, "%s %d: %s", blamed->row.role, blamed->row.index, text);
    memcpy(text, whole, sizeof whole);
}

/* What the cluster did not grant is stored with how the attempt ended: it is asked for no more. */
static int judge_end(struct attempt *a, struct err *e)
{
    struct study *s = a->study;
    struct store_trial *t = &a->trial->row;
    char *text = a->end.text;
    enum outcome o = judge(a, &a->end.note, text);
    put_who(a, o, text);
    if (o == OUTCOME_FAILED && tells_no_epochs(a)) {
        note_no_epochs(a);
        o = OUTCOME_INTERRUPTED; /* the config is to be mended, and the trial has no part in that */
    }
    hide_secrets(s->plan, text); /* before it is compared with what was said before */
    if (o == OUTCOME_FAILED && blames_checkpoint(a, &a->end.note))
        o = OUTCOME_UNUSABLE; /* an older checkpoint, or none, is next: that costs no retry */
    bool not_granted = o == OUTCOME_INFEASIBLE && a->stop == STOP_NO_ROOM;
    int rc = not_granted ? grant_refuse(s, a->trial, &a->fold, t->slots, text, e) : 0;
    if (rc < 0)
        return rc;
    if (not_granted ? rc == 1 : o == OUTCOME_INFEASIBLE && refuse_setting(a, &a->end.note))
        o = OUTCOME_REFUSED;
    if (o == OUTCOME_ENVIRONMENT && !confirms(&s->doubt, a, text))
        o = OUTCOME_DOUBTED;
    if (o == OUTCOME_FAILED && fails_alike(a, text))
        sched_give_up(&s->sched, t->number);
    a->end.outcome = o;
    a->end.state = sched_state_after(&s->sched, t->number, o);
    return 0;
}

static int fill_ended(struct attempt *a, struct err *e)
{
    struct store_trial *t = &a->trial->row;
    const char *text = a->end.text;
    enum outcome o = a->end.outcome;
    t->seconds += (double)(a->row.ended_ms - a->row.started_ms) / 1000.0;
    t->failures += o == OUTCOME_FAILED;
    t->kills += o == OUTCOME_KILLED;
    if (set_text(&a->row.state, "ended") < 0 || set_text(&a->row.outcome, outcome_name(o)) < 0 ||
        set_text(&a->row.cause, text) < 0 || set_text(&t->state, trial_state_name(a->end.state)) < 0 ||
        set_text(&t->reason, text) < 0)
        return err_sys(e, -ENOMEM, "trial %d", t->number);
    if (a->end.state == TRIAL_FINISHED) { /* why an earlier attempt ended is told with that attempt */
        free(t->reason);
        t->reason = NULL;
    }
    return 0;
}

int attempt_put_end(struct attempt *a, struct err *e)
{
    int rc = attempt_put(a, e); /* it is judged by what these lead to */
    if (rc == 0)
        rc = judge_end(a, e);
    if (rc == 0)
        rc = fill_ended(a, e);
    return rc == 0 ? put_judged(a, e) : rc;
}

void attempt_ended(struct attempt *a)
{
    failpoint("end-committed");
    a->over = true;
    gang_forget_heard(a->gang);
    (void)forget_heard(a, NULL); /* where it stays, the next attempt removes it */
    if (a->study->plan->secrets.knobs)
        secrets_forget(a->dir);
}
