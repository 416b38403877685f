#include "live/study.h"
#include "live/hosts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/utf8.h"
#include "live/earlier.h"
#include "live/energy.h"
#include "live/provenance.h"
#include "live/publish.h"
#include "live/results.h"
#include "live/sources.h"
#include "live/tidy.h"
#include "live/wants.h"
#include "store/queue.h"

enum { PARALLEL_MAX = 256 };
enum { RANDOM_TRIALS = 20 }; /* of a search without an end of its own, when max_trials is not given */

int64_t study_now_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t study_clock_ms(const struct study *s)
{
    return s->base_ms + clock_boot_ms();
}

int study_story_base(struct store *s, int64_t study, int64_t *out_ms, struct err *e)
{
    char boot[PROC_BOOT_ID_SIZE] = "";
    *out_ms = study_now_ms() - clock_boot_ms();
    (void)proc_boot_id(boot); /* "": no attempt has that */
    int rc = store_study_base(s, study, boot, out_ms, e);
    return rc < 0 ? rc : 0;
}

char *study_store_path(const char *configured)
{
    const char *env = getenv("PIPETUNE_STORE");
    return io_absolute(configured ? configured : env && *env ? env : "pipetune.db");
}

char *study_dir(const char *store_path, const char *name)
{
    AUTO_FREE char *beside = io_dirname(store_path);
    AUTO_FREE char *all = beside ? io_join(beside, "pipetune.d") : NULL;
    return all ? io_join(all, name) : NULL;
}

/* --- the lock: a POSIX record lock dies with its owner, and tells the owner's pid --- */

static struct flock whole_file(short type)
{
    return (struct flock){ .l_type = type, .l_whence = SEEK_SET };
}

pid_t study_lock_holder(const char *path)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct flock l = whole_file(F_RDLCK); /* who may only read may ask, too */
    if (fd < 0 && errno == EACCES)
        return -1;
    if (fd < 0 || fcntl(fd, F_GETLK, &l) < 0 || l.l_type == F_UNLCK)
        return 0;
    return l.l_pid;
}

pid_t study_driver(const char *dir)
{
    AUTO_FREE char *path = io_join(dir, "driver.lock");
    return path ? study_lock_holder(path) : 0;
}

int study_lock_file(int *out_fd, const char *path, pid_t *out_holder, struct err *e)
{
    AUTO_CLOSE int fd = ours_open(path, O_RDWR | O_CREAT, e);
    if (fd < 0)
        return fd;
    struct flock l = whole_file(F_WRLCK);
    if (fcntl(fd, F_SETLK, &l) < 0) {
        l = whole_file(F_WRLCK);
        *out_holder = fcntl(fd, F_GETLK, &l) < 0 || l.l_type == F_UNLCK ? 0 : l.l_pid;
        return err_set(e, -EBUSY, "'%s' is locked by process %ld", path, (long)*out_holder);
    }
    *out_fd = MOVE_FD(fd);
    return 0;
}

/* A driver of ours; or, while the file could still be read by all, anybody. */
static int tell_holder(const char *name, const char *path, pid_t pid, struct err *e)
{
    char program[PROC_NAME_SIZE];
    uid_t uid;
    if (proc_who(pid, program, &uid) < 0 || (uid == geteuid() && strcmp(program, "pipetune") == 0))
        return err_set(e, -EBUSY,
                       "study '%s' is run by another driver, pid %ld: wait for it, or end it with kill -INT %ld", name,
                       (long)pid, (long)pid);
    return err_set(e, -EBUSY,
                   "study '%s' cannot be run: '%s' is locked by process %ld ('%s', of user %ld), which is no driver of "
                   "yours: end it, then run again",
                   name, path, (long)pid, program, (long)uid);
}

int study_lock(int *out_fd, const char *dir, const char *name, struct err *e)
{
    AUTO_FREE char *all = io_dirname(dir);
    AUTO_FREE char *path = io_join(dir, "driver.lock");
    if (!all || !path)
        return err_sys(e, -ENOMEM, "study '%s'", name);
    int rc = ours_dir(all, e);
    if (rc == 0)
        rc = ours_dir(dir, e);
    if (rc < 0)
        return rc;
    pid_t holder = 0;
    rc = study_lock_file(out_fd, path, &holder, e);
    if (rc == -EBUSY)
        rc = holder ? tell_holder(name, path, holder, e) : err_set(e, rc, "study '%s' is run by another driver", name);
    return rc;
}

/* --- the open trials --- */

static void free_trial(struct study_trial *t)
{
    if (!t)
        return;
    store_trial_done(&t->row);
    free(t->cpus);
    free(t);
}

struct study_trial *study_trial(struct study *s, int number)
{
    for (size_t i = 0; i < s->n_open; i++)
        if (s->open_trials[i]->row.number == number)
            return s->open_trials[i];
    return NULL;
}

void study_drop(struct study *s, int number)
{
    for (size_t i = 0; i < s->n_open; i++) {
        if (s->open_trials[i]->row.number != number)
            continue;
        free_trial(s->open_trials[i]);
        memmove(&s->open_trials[i], &s->open_trials[i + 1], (s->n_open - i - 1) * sizeof s->open_trials[0]);
        s->n_open--;
        return;
    }
}

static int room_for_trial(struct study *s)
{
    if (s->n_open < s->cap_open)
        return 0;
    size_t cap = s->cap_open ? 2 * s->cap_open : 16;
    struct study_trial **grown = realloc(s->open_trials, cap * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->open_trials = grown;
    s->cap_open = cap;
    return 0;
}

static int keep_open(struct study *s, const struct store_trial *row, const struct point *pt)
{
    struct study_trial *t = room_for_trial(s) == 0 ? calloc(1, sizeof *t) : NULL;
    if (!t)
        return -ENOMEM;
    if (store_trial_copy(&t->row, row) < 0) {
        free_trial(t);
        return -ENOMEM;
    }
    t->point = *pt;
    s->open_trials[s->n_open++] = t;
    return 0;
}

/* --- resuming: the search's state as it was stored, and the trials --- */

static struct sched_trial sched_trial_of(const struct store_trial *row)
{
    return (struct sched_trial){ .number = row->number,
                                 .state = (enum trial_state)trial_state_parse(row->state),
                                 .failures = row->failures,
                                 .kills = row->kills };
}

static int note_metric(void *ctx, const struct store_epoch *row)
{
    struct study *s = ctx;
    s->has_metric |= !isnan(row->metric);
    return 0;
}

static int take_trial(struct study *s, const struct store_trial *row, const struct point *p, struct err *e)
{
    struct sched_trial t = sched_trial_of(row);
    s->has_metric |= !isnan(row->metric);
    s->sched.exhausted |= row->repeat_of > 0; /* that is only begun when the search has ended */
    int rc = s->has_metric ? 0 : store_epochs(s->store, row->id, note_metric, s, e); /* the last may have had none */
    if (rc < 0)
        return rc;
    if (sched_add(&s->sched, &t) < 0 || (!trial_state_is_final(t.state) && keep_open(s, row, p) < 0))
        return err_sys(e, -ENOMEM, "resuming");
    return 0;
}

struct recall {
    struct study *s;
    struct err *e;
};

static int recall_trial(void *ctx, const struct store_trial *row)
{
    struct recall *r = ctx;
    struct point p = { 0 };
    AUTO_JSON json_t *hyper = json_loads(row->hyper, 0, NULL);
    AUTO_JSON json_t *knobs = row->requested ? json_loads(row->requested, 0, NULL) : NULL;
    bool final = trial_state_is_final((enum trial_state)trial_state_parse(row->state));
    if (!final && space_point_parse(&r->s->plan->space, hyper, knobs, &p) < 0)
        return err_set(r->e, -EPROTO,
                       "study '%s' cannot be resumed: %s/%d has hyperparameters that are not in its space", r->s->name,
                       r->s->name, row->number);
    return take_trial(r->s, row, &p, r->e);
}

static int restore_search(struct study *s, const struct buf *state, struct err *e)
{
    int rc = search_restore(&s->search, buf_text(state), state->len);
    if (rc == -ENOMEM)
        return err_sys(e, rc, "resuming");
    return rc == 0 ? 0
                   : err_set(e, rc,
                             "study '%s' cannot be resumed: its search was left by another version of pipetune; use "
                             "that, or run --again",
                             s->name);
}

/* --- studies of versions that did not store it: ask and tell again what was asked and told, in that order --- */

struct retell {
    struct study *s;
    struct store_tell *tells;
    size_t n, cap, next;
    struct err *e;
};

static int collect_tell(void *ctx, const struct store_tell *t)
{
    struct retell *r = ctx;
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 256;
        struct store_tell *grown = realloc(r->tells, cap * sizeof *grown);
        if (!grown)
            return err_sys(r->e, -ENOMEM, "resuming");
        r->tells = grown;
        r->cap = cap;
    }
    r->tells[r->n++] = *t;
    return 0;
}

static int tell_until(struct retell *r, int64_t seq)
{
    for (; r->next < r->n && r->tells[r->next].seq < seq; r->next++) {
        const struct store_tell *t = &r->tells[r->next];
        struct told told = { .id = t->proposal, .epoch = t->epoch, .value = t->value, .seconds = NAN, .joules = NAN };
        told.kind = !t->done ? TOLD_EPOCH : isnan(t->value) ? TOLD_FAILED : TOLD_FINISHED;
        struct search_answer ignored;
        if (search_tell(&r->s->search, &told, &ignored) < 0)
            return err_sys(r->e, -ENOMEM, "resuming");
    }
    return 0;
}

static int ask_again(void *ctx, const struct store_trial *row)
{
    struct retell *r = ctx;
    struct study *s = r->s;
    int rc = tell_until(r, row->ask_seq);
    if (rc < 0)
        return rc;
    struct proposal p;
    rc = search_ask(&s->search, true, &p);
    AUTO_JSON json_t *point = rc == 1 ? space_point_json(&s->plan->space, &p.point) : NULL;
    AUTO_FREE char *hyper = json_text(point);
    if (rc == 1 && !hyper)
        return err_sys(r->e, -ENOMEM, "resuming");
    if (rc != 1 || p.again || p.id != row->proposal || strcmp(hyper, row->hyper) != 0)
        return err_set(r->e, -EPROTO,
                       "study '%s' cannot be resumed: its search no longer proposes %s/%d as stored; "
                       "use the version of pipetune that began it, or run --again",
                       s->name, s->name, row->number);
    return take_trial(s, row, &p.point, r->e);
}

static int ask_all_again(struct study *s, struct err *e)
{
    struct retell r = { .s = s, .e = e };
    int rc = store_tells(s->store, s->id, collect_tell, &r, e);
    if (rc == 0)
        rc = store_trials(s->store, s->id, 0, ask_again, &r, e);
    if (rc == 0)
        rc = tell_until(&r, INT64_MAX);
    free(r.tells);
    return rc;
}

static int resume(struct study *s, struct err *e)
{
    AUTO_BUF struct buf state = BUF_INIT;
    int rc = store_search_get(s->store, s->id, &state, e);
    if (rc <= 0)
        return rc < 0 ? rc : ask_all_again(s, e);
    struct recall r = { s, e };
    rc = restore_search(s, &state, e);
    return rc < 0 ? rc : store_trials(s->store, s->id, 0, recall_trial, &r, e);
}

/* --- opening --- */

static int compare_config(const struct study *s, const struct store_study *row, const json_t *now, struct err *e)
{
    AUTO_JSON json_t *stored = json_loads(row->config, 0, NULL);
    AUTO_BUF struct buf keys = BUF_INIT;
    if (!stored)
        return err_set(e, -EPROTO, "study '%s': its stored config cannot be read", row->name);
    const char *salt = secrets_salt(now);
    if (salt && !secrets_salt(stored)) { /* of a version that stored them as they were */
        const struct secrets names = { .named = s->plan->secrets.named, .tuned = s->plan->secrets.tuned };
        json_t *bare = secrets_config(&names, stored, salt);
        if (!bare)
            return err_sys(e, -ENOMEM, "study '%s'", row->name);
        json_decref(stored);
        stored = bare;
    }
    if (config_diff(stored, now, &keys) == 0)
        return 0;
    return err_set(
        e, -EEXIST,
        "study '%s' was begun with another config, these keys differ: %s; set them back, give --name, or run --again",
        row->name, buf_text(&keys));
}

/* What the search is at, in the transaction of what brought it there. */
static int keep_search(struct study *s, struct err *e)
{
    AUTO_BUF struct buf state = BUF_INIT;
    search_save(&s->search, &state);
    return state.failed ? err_sys(e, -ENOMEM, "study '%s'", s->name)
                        : store_search_put(s->store, s->id, buf_text(&state), state.len, e);
}

/* With what its search has learnt from earlier studies, which may be removed from then on. */
static int put_new(struct study *s, const struct store_study *row, const struct strv *said,
                   const struct sources *sources, struct err *e)
{
    int rc = store_begin(s->store, e);
    if (rc == 0)
        rc = store_study_add(s->store, row, &s->id, e);
    if (rc == 0)
        rc = sources_keep(sources, s->store, s->id, e);
    for (size_t i = 0; rc == 0 && i < said->n; i++) {
        struct store_decision d = { .kind = "learn", .reason = said->v[i] };
        rc = store_decision_add(s->store, s->id, &d, e);
    }
    if (rc == 0)
        rc = keep_search(s, e);
    if (rc == 0)
        rc = store_commit(s->store, e);
    if (rc < 0)
        store_rollback(s->store);
    return rc;
}

static int create_row(struct study *s, const json_t *config, struct err *e)
{
    AUTO_STRV struct strv said = STRV_INIT;
    int rc = earlier_learn(s, &said, e);
    if (rc < 0)
        return rc;
    const struct plan *p = s->plan;
    char hash[17];
    space_hash(&p->space, hash);
    AUTO_JSON json_t *provenance = provenance_json(p);
    AUTO_FREE char *config_text = json_text(config);
    AUTO_FREE char *provenance_text = json_text(provenance);
    struct sources sources = { 0 };
    if (!config_text || !provenance_text || sources_collect(&sources, p) < 0)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    s->created_ms = study_clock_ms(s);
    char running[] = "running";
    struct store_study row = { .name = s->name,
                               .state = running,
                               .config = config_text,
                               .space_hash = hash,
                               .provenance = provenance_text,
                               .maximise = config_maximise(&p->cfg),
                               .seed = p->cfg.seed,
                               .created_ms = s->created_ms };
    rc = put_new(s, &row, &said, &sources, e);
    sources_done(&sources);
    return rc;
}

/* How a study is measured may change while it runs: what reads the store goes by the newest. */
static int keep_config(struct study *s, const struct store_study *row, const json_t *config, struct err *e)
{
    AUTO_FREE char *text = json_text(config);
    if (!text)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    return strcmp(text, row->config) == 0 ? 0 : store_study_set_config(s->store, row->id, text, e);
}

int study_reopen(struct study *s, struct err *e)
{
    return s->ended ? store_study_set_state(s->store, s->id, "running", 0, e) : 0;
}

/* The config as it may be stored; `before` is the one that is. */
static json_t *stored_config(const struct study *s, const char *before)
{
    const struct plan *p = s->plan;
    AUTO_JSON json_t *stored = before ? json_loads(before, 0, NULL) : NULL;
    AUTO_JSON json_t *config = config_effective((struct config *)&p->cfg, &p->doc, p->app_doc.root);
    return config ? secrets_config(&p->secrets, config, secrets_salt(stored)) : NULL;
}

static const char refused_kind[] = "refused";

static int recall_refused(void *ctx, const struct store_decision *d)
{
    struct study *s = ctx;
    if (strcmp(d->kind, refused_kind) != 0 || !d->setting)
        return 0;
    AUTO_JSON json_t *j = json_loads(d->setting, 0, NULL);
    struct layout_ask ask = { .memory_gb = json_number_value(json_object_get(j, "executor_memory")) };
    if (json_unpack(j, "{s:i, s:i}", "executors", &ask.parts, "executor_cores", &ask.cores) == 0)
        (void)layout_refuse(&s->plan->offer.room, ask); /* one too many is found out again */
    return 0;
}

static int find_or_create(struct study *s, struct err *e)
{
    struct store_study row = { 0 };
    int rc = store_study_find(s->store, s->name, &row, e);
    AUTO_JSON json_t *config = rc < 0 ? NULL : stored_config(s, rc == 0 ? NULL : row.config);
    if (rc >= 0 && !config)
        rc = err_sys(e, -ENOMEM, "study '%s'", s->name);
    if (rc == 0)
        return create_row(s, config, e);
    if (rc < 0) {
        store_study_done(&row);
        return rc;
    }
    rc = compare_config(s, &row, config, e);
    if (rc == 0)
        rc = keep_config(s, &row, config, e);
    s->id = row.id;
    s->created_ms = row.created_ms;
    s->resumed = true;
    s->ended = strcmp(row.state, "running") != 0;
    store_study_done(&row);
    if (rc == 0)
        rc = store_decisions(s->store, s->id, 0, recall_refused, s, e);
    return rc < 0 ? rc : resume(s, e);
}

/* NAME@2, or the first number that is free. */
static int name_again(struct study *s, const char *base, struct err *e)
{
    for (int n = 2;; n++) {
        char *name = NULL;
        if (asprintf(&name, "%s@%d", base, n) < 0)
            return err_sys(e, -ENOMEM, "study '%s'", base);
        struct store_study row = { 0 };
        int rc = store_study_find(s->store, name, &row, e);
        store_study_done(&row);
        if (rc <= 0) {
            s->name = name;
            return rc;
        }
        free(name);
    }
}

int study_max_trials(const struct config *c, const struct search *search)
{
    return c->max_trials ? (int)c->max_trials : search->ops->goes_through ? 0 : RANDOM_TRIALS;
}

/* "auto": as many as can be packed (the driver sees to that) where the policy packs, or as many as there are places
 * for where there are other hosts or a queue, else one. Joules are told of nodes: what a trial's setting costs is known where it runs alone. */
int study_parallel(const struct plan *p)
{
    bool packs = plan_packs(p) || hosts_wanted(p) || config_on_slurm(&p->cfg);
    return p->cfg.parallel != CONFIG_PARALLEL_AUTO ? (int)p->cfg.parallel : packs ? PARALLEL_MAX : 1;
}

static bool can_pause(const struct plan *p)
{
    return p->app.checkpoints && p->app.resumes;
}

/* Where the config leaves it open: as the study was begun (`stored`: its config; NULL: it is new), or the default of today. What was left open
 * then stays so. */
static int settle_word(char **word, const json_t *stored, const char *key, const char *fallback)
{
    const char *before = json_string_value(json_object_get(json_object_get(stored, "search"), key));
    const char *chosen = stored ? before : fallback;
    if (*word || !chosen)
        return 0;
    *word = strdup(chosen);
    return *word ? 0 : -ENOMEM;
}

static int choose_search(struct study *s, struct err *e)
{
    struct config *c = &s->plan->cfg;
    struct store_study row = { 0 };
    int rc = store_study_find(s->store, s->name, &row, e);
    AUTO_JSON json_t *stored = rc == 1 ? json_loads(row.config ? row.config : "{}", 0, NULL) : NULL;
    store_study_done(&row);
    if (rc < 0)
        return rc;
    rc = settle_word(&c->algorithm, stored, "algorithm", search_default(&s->plan->space));
    if (rc == 0)
        rc = settle_word(&c->stop, stored, "stop", search_default_stop(c->algorithm ? c->algorithm : ""));
    return rc < 0 ? err_sys(e, rc, "study '%s'", s->name) : 0;
}

/* One that was begun when this was the default, and was not stored. */
static const char *older_default(const struct space *sp)
{
    return space_is_listed(sp) ? search_default(sp) : "random";
}

static int start_search(struct study *s, struct err *e)
{
    const struct config *c = &s->plan->cfg;
    struct search_cfg cfg = { .seed = (uint64_t)c->seed,
                              .epochs = (int)c->epochs,
                              .maximise = config_maximise(c),
                              .max_trials = (int)c->max_trials,
                              .min_epochs = (int)c->min_epochs,
                              .eta = (int)c->eta,
                              .can_pause = can_pause(s->plan),
                              .goals = &c->goals,
                              .constrained = s->plan->demands.n > 0,
                              .joules = wants_joules_as_cost(s->plan) };
    int rc = search_new(&s->search, c->algorithm ? c->algorithm : older_default(&s->plan->space), c->stop,
                        &s->plan->space, &cfg, e);
    if (rc < 0)
        return rc;
    s->sched = (struct sched){ .parallel = study_parallel(s->plan),
                               .retries = (int)c->retries,
                               .max_trials = study_max_trials(c, &s->search),
                               .learns = search_learns(&s->search) };
    return 0;
}

/* What it says of attempts decides which processes are ended, and from which files trials go on. */
static int own_store(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0 || st.st_uid == geteuid()) /* what is wrong with it otherwise, opening it tells */
        return 0;
    return err_set(e, -EPERM, "store '%s' belongs to user %ld, not to you (%ld): copy it, or name another by --store",
                   path, (long)st.st_uid, (long)geteuid());
}

/* Checkpoints lie beside the store, and Java writes them. */
static int check_path(const char *path, struct err *e)
{
    return utf8_is_valid(path)
               ? 0
               : err_set(e, -EINVAL,
                         "store '%s': its path is not UTF-8, and Java would write the checkpoints beside "
                         "it elsewhere: name another by --store or PIPETUNE_STORE",
                         path);
}

int study_open(struct study *out, struct plan *plan, bool again, struct err *e)
{
    struct study s = { .plan = plan, .lock_fd = -1, .base_ms = study_now_ms() - clock_boot_ms() };
    AUTO_FREE char *path = study_store_path(plan->cfg.store);
    int rc = path ? check_path(path, e) : err_sys(e, -ENOMEM, "store");
    if (rc == 0)
        rc = own_store(path, e);
    if (rc == 0)
        rc = store_open(&s.store, path, STORE_WRITE, e);
    if (rc == 0 && again)
        rc = name_again(&s, plan->name, e);
    if (rc == 0 && !s.name && !(s.name = strdup(plan->name)))
        rc = err_sys(e, -ENOMEM, "study '%s'", plan->name);
    if (rc == 0 && !(s.dir = study_dir(path, s.name)))
        rc = err_sys(e, -ENOMEM, "study '%s'", s.name);
    if (rc == 0)
        rc = study_lock(&s.lock_fd, s.dir, s.name, e);
    if (rc == 0)
        rc = choose_search(&s, e);
    if (rc == 0)
        rc = start_search(&s, e);
    if (rc == 0)
        rc = find_or_create(&s, e);
    if (rc == 0)
        rc = study_story_base(s.store, s.id, &s.story_ms, e);
    if (rc == 0)
        rc = aims_open(&s, e);
    if (rc == 0 && s.resumed && plan->secrets.knobs)
        tidy_secrets(s.dir); /* of launches that have outlived their driver */
    if (rc < 0) {
        study_close(&s);
        return rc;
    }
    *out = s;
    return 0;
}

void study_close(struct study *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_open; i++)
        free_trial(s->open_trials[i]);
    free(s->open_trials);
    free(s->added);
    repeats_done(&s->repeats);
    sched_done(&s->sched);
    search_done(&s->search);
    store_close(s->store);
    if (s->lock_fd >= 0)
        (void)close(s->lock_fd); /* the lock goes with it */
    free(s->dir);
    free(s->name);
    *s = (struct study){ .lock_fd = -1 };
}

/* Is the study of this plan in the store? */
static bool is_begun(const struct plan *plan)
{
    AUTO_FREE char *path = study_store_path(plan->cfg.store);
    struct store *store = NULL;
    struct store_study row = { 0 };
    if (!path ||
        store_open(&store, path, STORE_READ, NULL) < 0) /* there is none, or study_open() says what is wrong with it */
        return false;
    bool begun = store_study_find(store, plan->name, &row, NULL) == 1;
    store_study_done(&row);
    store_close(store);
    return begun;
}

int study_compare(struct plan *plan, struct err *e)
{
    AUTO_FREE char *path = study_store_path(plan->cfg.store);
    struct study s = { .plan = plan, .name = plan->name, .lock_fd = -1 };
    struct store_study row = { 0 };
    if (!path || !io_exists(path))
        return path ? 0 : err_sys(e, -ENOMEM, "store");
    int rc = store_open(&s.store, path, STORE_WRITE,
                        e); /* an older one is brought up to date, as it would be when it is run */
    if (rc == 0)
        rc = choose_search(&s, e);
    if (rc == 0)
        rc = store_study_find(s.store, s.name, &row, e);
    AUTO_JSON json_t *config = rc == 1 ? stored_config(&s, row.config) : NULL;
    if (rc == 1)
        rc = config ? compare_config(&s, &row, config, e) : err_sys(e, -ENOMEM, "study '%s'", s.name);
    store_study_done(&row);
    store_close(s.store);
    return rc;
}

int study_check(const struct plan *plan, struct err *e)
{
    const struct config *c = &plan->cfg;
    const char *algorithm = c->algorithm ? c->algorithm : search_default(&plan->space);
    return is_begun(plan) ? 0 : config_check(c, c->stop ? c->stop : search_default_stop(algorithm), e);
}

/* --- going on --- */

int study_decide(struct study *s, int trial, const char *kind, const char *setting, struct err *e, const char *reason,
                 ...)
{
    char text[512];
    va_list ap;
    va_start(ap, reason);
    (void)vsnprintf(text, sizeof text, reason, ap); /* a cut reason is still a reason */
    va_end(ap);
    struct store_decision d = { .trial = trial,
                                .t_s = (double)(s->story_ms + clock_boot_ms() - s->created_ms) / 1000.0,
                                .kind = kind,
                                .setting = setting,
                                .reason = text };
    int rc = store_decision_add(s->store, s->id, &d, e);
    if (rc == 0)
        publish_decision(s->publish, &d);
    return rc;
}

/* The search's answer. */
static int ask_verdict(struct study *s, const struct told *told, struct search_answer *out, struct err *e)
{
    struct store_tell tell = { .proposal = told->id,
                               .epoch = told->epoch,
                               .value = told->value,
                               .done = told->kind != TOLD_EPOCH,
                               .kind = 1 + (int)told->kind,
                               .seconds = told->seconds,
                               .joules = told->joules,
                               .start_seconds = told->start_seconds };
    int rc = store_tell_add(s->store, s->id, &tell, e);
    if (rc == 0 && search_tell(&s->search, told, out) < 0)
        rc = err_sys(e, -ENOMEM, "study '%s'", s->name);
    return rc;
}

/* The search is told, but not of repeats, nor of what others added; where the epoch broke a constraint for good, at once that nothing comes of this trial, and told->value is NAN
 * then: what it is worth reaches no target. */
static int tell_search(struct study *s, const struct store_trial *t, struct told *told, struct search_answer *out,
                       struct err *e)
{
    struct search_answer broken = { .verdict = SEARCH_GO_ON };
    int rc = results_told(s, t, told, &broken, e);
    struct told own = *told;
    bool is_broken = broken.verdict != SEARCH_GO_ON;
    if (is_broken) {
        own.kind = TOLD_INFEASIBLE;
        own.value = told->value = NAN;
    }
    *out = broken;
    if (rc == 0 && !t->repeat_of && !t->added)
        rc = ask_verdict(s, &own, out, e);
    if (rc == 0 && is_broken) {
        out->verdict = broken.verdict;
        memcpy(out->why, broken.why, sizeof out->why);
    }
    return rc;
}

int study_tell(struct study *s, const struct store_trial *t, struct told told, struct search_answer *out, struct err *e)
{
    told.id = t->proposal;
    if (!t->copy_of) /* that costs nothing, and has what the other one took */
        told.joules = energy_trial_j(s->energy, t->number);
    int rc = tell_search(s, t, &told, out, e);
    if (rc == 0)
        rc = aims_told(s, t, &told, out, e);
    if (rc < 0 || t->repeat_of || t->added)
        return rc;
    if (out->wake)
        sched_woken(&s->sched);
    s->woken |= out->wake;
    return keep_search(s, e);
}

/* Nothing more comes of it. */
static int tell_end(struct study *s, const struct store_trial *t, enum told_kind kind, int epoch, double value,
                    struct err *e)
{
    struct search_answer none;
    struct told told = { .kind = kind, .epoch = epoch, .value = value, .seconds = t->seconds };
    return study_tell(s, t, told, &none, e);
}

static int first_trial(void *ctx, const struct store_trial *row)
{
    struct store_trial *to = ctx;
    to->accuracy = row->accuracy;
    to->loss = row->loss;
    to->metric = row->metric;
    if (row->violates && !(to->violates = strdup(row->violates)))
        return -ENOMEM;
    return 1;
}

char *study_session_dir(const struct study *s, int session)
{
    char name[32];
    (void)snprintf(name, sizeof name, "session-%d", session);
    return io_join(s->dir, name);
}

struct setting study_setting(const struct study *s, const struct study_trial *t)
{
    const struct plan *p = s->plan;
    struct setting asked = plan_requested(p, &t->point);
    struct setting set =
        p->policy->create ? choices_setting(&p->choices, &p->space, t->setting) : plan_effective(p, &asked);
    /* fewer than in other settings, where parts or memory leave no room for more */
    for (size_t i = 0; i < p->space.n_knobs; i++)
        if (p->space.knobs[i].kind->id == KNOB_CORES && t->row.slots > 0 && set.v[i].number > t->row.slots)
            set.v[i] = value_of_number(t->row.slots);
    return set;
}

int study_slots(const struct study *s, const struct study_trial *t, struct err *e)
{
    const struct plan *p = s->plan;
    if (p->policy->create || !p->offer.divided)
        return p->policy->create ? plan_most_slots(p, &t->point, t->refused_cold, e) : t->row.slots;
    struct setting set = study_setting(s, t);
    if (setting_parts(&p->space, &set, &p->offer, t->row.slots) > 0)
        return t->row.slots; /* nothing changes it, but its parts may be others */
    return err_set(e, -ENODEV, "%d cores cannot be had: the cluster did not grant them", t->row.slots);
}

int study_refuse(struct study *s, int trial, struct layout_ask ask, const char *why, struct err *e)
{
    AUTO_JSON json_t *j = json_pack("{s:i, s:i, s:f}", "executors", ask.parts, "executor_cores", ask.cores,
                                    "executor_memory", ask.memory_gb > 0 ? ask.memory_gb : 0.0);
    AUTO_FREE char *text = json_text(j);
    if (!text)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    if (!layout_refuse(&s->plan->offer.room, ask))
        return 0;
    int rc = study_decide(s, trial, refused_kind, text, e, "%s", why);
    return rc < 0 ? rc : 1;
}

/* A point that cannot be launched here is a trial all the same: it says why. */
static int mark_infeasible(struct store_trial *row, const char *why, struct err *e)
{
    free(row->state);
    row->state = strdup(trial_state_name(TRIAL_INFEASIBLE));
    row->reason = strdup(why);
    return row->state && row->reason ? 0 : err_sys(e, -ENOMEM, "trial %d", row->number);
}

int study_give_up(struct study_trial *t, const char *why, struct err *e)
{
    free(t->row.state);
    free(t->row.reason);
    t->row.state = t->row.reason = NULL;
    return mark_infeasible(&t->row, why, e);
}

int study_put_given_up(struct study *s, const struct study_trial *t, struct err *e)
{
    int rc = store_trial_update(s->store, &t->row, e);
    if (rc == 0)
        rc = study_decide(s, t->row.number, "infeasible", t->row.effective, e, "%s", t->row.reason);
    double none = NAN; /* what it came to is no result */
    return rc == 0 ? tell_end(s, &t->row, TOLD_INFEASIBLE, t->row.epochs, none, e) : rc;
}

uint64_t study_unasked(const struct study *s)
{
    uint64_t most = s->sched.max_trials ? (uint64_t)s->sched.max_trials : space_size(&s->plan->space);
    uint64_t made = (uint64_t)s->sched.made, again = (uint64_t)s->sched.extra;
    again += (uint64_t)s->sched.added;
    if (!s->repeats.planned && s->plan->cfg.repeats > 1)
        again = 1; /* or more: it is not known yet */
    return again + (s->sched.exhausted || made >= most ? 0 : most - made);
}

/* Takes over the result of a finished trial with the same settings and budget. */
static int take_copy(struct study *s, struct store_trial *row, struct err *e)
{
    int twin = 0;
    /* Where the policy changes settings while a trial runs, any setting gives the same result. */
    const char *effective = s->plan->policy->create ? NULL : row->effective;
    int rc = store_trial_twin(s->store, s->id, row->hyper, effective, row->epochs, &twin, e);
    if (rc < 0 || twin == 0)
        return rc;
    rc = store_trials(s->store, s->id, twin, first_trial, row, e);
    if (rc < 0)
        return rc == -ENOMEM ? err_sys(e, rc, "study '%s'", s->name) : rc;
    row->copy_of = twin;
    free(row->state);
    row->state = strdup(trial_state_name(TRIAL_FINISHED));
    return row->state ? 0 : err_sys(e, -ENOMEM, "study '%s'", s->name);
}

static int fill_row(struct study *s, const struct proposal *p, struct store_trial *row, struct err *e)
{
    struct err why;
    struct setting asked = plan_requested(s->plan, &p->point);
    struct setting set = plan_effective(s->plan, &asked);
    int slots = plan_most_slots(s->plan, &p->point, 0, &why);
    AUTO_JSON json_t *hyper = space_point_json(&s->plan->space, &p->point);
    AUTO_JSON json_t *requested = setting_json(&s->plan->space, &asked);
    AUTO_JSON json_t *effective = plan_effective_json(s->plan, &set, slots < 0 ? 0 : slots);
    *row = (struct store_trial){ .study = s->id,
                                 .number = s->sched.made + 1,
                                 .proposal = p->id,
                                 .state = strdup(trial_state_name(TRIAL_WAITING)),
                                 .epochs = (int)s->plan->cfg.epochs,
                                 .slots = slots < 0 ? 0 : slots,
                                 .hyper = json_text(hyper),
                                 .requested = json_text(requested),
                                 .effective = json_text(effective),
                                 .accuracy = NAN,
                                 .loss = NAN,
                                 .metric = NAN };
    if (!row->state || !row->hyper || !row->requested || !row->effective)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    return slots < 0 ? mark_infeasible(row, why.text, e) : 0;
}

/* What the proposal became, as `show --decisions` tells it. */
static int decide_proposal(struct study *s, const struct store_trial *row, struct err *e)
{
    if (row->copy_of)
        return study_decide(s, row->number, "copy", row->hyper, e, "same settings as finished %s/%d", s->name,
                            row->copy_of);
    if (row->reason)
        return study_decide(s, row->number, "infeasible", row->effective, e, "%s", row->reason);
    if (row->repeat_of)
        return study_decide(s, row->number, "repeat", row->hyper, e, "%s/%d again, with seed %lld", s->name,
                            row->repeat_of, (long long)repeats_seed(s, row));
    if (row->added)
        return study_decide(s, row->number, "add", row->hyper, e, "somebody asked for this point");
    if (row->learnt_from)
        return study_decide(s, row->number, "propose", row->hyper, e, "learnt from %s, proposal %llu", row->learnt_from,
                            (unsigned long long)row->proposal);
    return study_decide(s, row->number, "propose", row->hyper, e, "%s, proposal %llu", s->search.ops->name,
                        (unsigned long long)row->proposal);
}

/* With the figures of the one whose result it takes. */
static int tell_copy(struct study *s, const struct store_trial *row, struct err *e)
{
    struct results_copied r;
    struct search_answer none;
    int rc = results_copied(s, row, &r, e);
    struct told told = { .kind = TOLD_FINISHED,
                         .epoch = row->epochs,
                         .value = row->metric,
                         .metrics = r.metrics,
                         .n_metrics = r.n,
                         .seconds = isnan(r.seconds) ? row->seconds : r.seconds,
                         .joules = r.joules };
    if (row->violates) {
        told.kind = TOLD_INFEASIBLE;
        told.value = NAN;
    }
    return rc < 0 ? rc : study_tell(s, row, told, &none, e);
}

static int put_proposal(struct study *s, struct store_trial *row, struct err *e)
{
    int rc = store_trial_add(s->store, row, e);
    if (rc == 0)
        rc = decide_proposal(s, row, e);
    bool final = row->copy_of || row->reason;
    if (rc < 0 || !final)
        return rc < 0 ? rc : keep_search(s, e);
    return row->copy_of ? tell_copy(s, row, e) : tell_end(s, row, TOLD_INFEASIBLE, row->epochs, row->metric, e);
}

/* --- paused trials --- */

/* One that still runs to its pause trains on, or, when it has been told to end, is started again when it has got there. */
static int put_going_on(struct study *s, struct study_trial *t, struct err *e)
{
    bool runs = t->attempt != NULL, trains_on = runs && !t->end_told;
    char **text = runs ? &t->attempt->ends_as : &t->row.state;
    char *was = *text;
    *text = trains_on ? NULL : strdup(runs ? outcome_name(OUTCOME_INTERRUPTED) : trial_state_name(TRIAL_INTERRUPTED));
    free(was);
    if (!*text && !trains_on)
        return err_sys(e, -ENOMEM, "trial %d", t->row.number);
    if (trains_on)
        t->attempt->ends_at = 0;
    int rc = runs ? store_attempt_update(s->store, t->attempt, e) : store_trial_update(s->store, &t->row, e);
    struct store_tell asked = { .proposal = t->row.proposal,
                                .value = NAN,
                                .kind = STORE_TELL_RESUME,
                                .seconds = NAN,
                                .joules = NAN,
                                .start_seconds = NAN };
    if (rc == 0)
        rc = store_tell_add(s->store, s->id, &asked, e);
    if (rc == 0)
        rc = study_decide(s, t->row.number, "resume", NULL, e, "%s goes on with it", s->search.stop->name);
    return rc == 0 ? keep_search(s, e) : rc;
}

static struct study_trial *trial_of(const struct study *s, uint64_t proposal)
{
    struct study_trial *t = NULL;
    for (size_t i = 0; i < s->n_open; i++)
        if (s->open_trials[i]->row.proposal == proposal)
            t = s->open_trials[i];
    assert(t);
    return t;
}

struct newest_epoch {
    int epoch;
    double metric;
};

static int note_newest(void *ctx, const struct store_epoch *row)
{
    struct newest_epoch *n = ctx;
    *n = (struct newest_epoch){ row->epoch, isnan(row->metric) ? n->metric : row->metric };
    return 0;
}

/* "after 3 epochs: 0.871, the best had 0.952 there". */
static void put_why_stopped(const struct newest_epoch *n, double best, char why[SEARCH_WHY_MAX])
{
    int len = snprintf(why, SEARCH_WHY_MAX, n->epoch ? "after %d epoch%s" : "before its first epoch", n->epoch,
                       n->epoch == 1 ? "" : "s");
    if (!isnan(n->metric) && n->metric == best)
        (void)snprintf(why + len, SEARCH_WHY_MAX - (size_t)len, ": %.4g, the best there", n->metric);
    else if (!isnan(n->metric))
        (void)snprintf(why + len, SEARCH_WHY_MAX - (size_t)len, ": %.4g, the best had %.4g there", n->metric, best);
}

static int store_stopped(struct study *s, struct study_trial *trial, int epoch, const char *who, const char *why,
                         struct err *e)
{
    struct store_trial *t = &trial->row;
    double none = NAN;
    free(t->state);
    free(t->reason);
    t->state = strdup(trial_state_name(TRIAL_STOPPED));
    t->reason = strdup(why);
    if (!t->state || !t->reason)
        return err_sys(e, -ENOMEM, "trial %d", t->number);
    int rc = epoch > 0 ? results_judge(s, trial, e) : 0;
    if (rc == 0)
        rc = store_trial_update(s->store, t, e);
    if (rc == 0)
        rc = study_decide(s, t->number, "stop", t->effective, e, "%s: %s", who, why);
    if (rc < 0)
        return rc;
    return t->violates ? tell_end(s, t, TOLD_INFEASIBLE, epoch, none, e)
                       : tell_end(s, t, TOLD_STOPPED, epoch, t->metric, e);
}

int study_stop(struct study *s, struct study_trial *t, struct err *e)
{
    char why[SEARCH_WHY_MAX];
    struct newest_epoch n = { 0, NAN };
    double best = NAN;
    int rc = store_epochs(s->store, t->row.id, note_newest, &n, e);
    if (rc == 0)
        rc = store_best_at(s->store, s->id, n.epoch, config_maximise(&s->plan->cfg), &best, e);
    if (rc == 0)
        rc = store_begin(s->store, e);
    if (rc < 0)
        return rc;
    put_why_stopped(&n, best, why);
    rc = store_stopped(s, t, n.epoch, "the study ends", why, e);
    if (rc == 0)
        rc = store_commit(s->store, e);
    if (rc < 0)
        store_rollback(s->store);
    else
        (void)sched_ended(&s->sched, t->row.number, OUTCOME_STOPPED);
    return rc;
}

void study_put_why(char text[SEARCH_WHY_MAX], int epochs, const char *why)
{
    if (epochs > 0)
        (void)snprintf(text, SEARCH_WHY_MAX, "after %d epoch%s: %s", epochs, epochs == 1 ? "" : "s", why);
    else
        (void)snprintf(text, SEARCH_WHY_MAX, "before its first epoch: %s", why);
}

int study_put_stop(struct study *s, struct study_trial *t, const char *why, struct err *e)
{
    char text[SEARCH_WHY_MAX];
    struct newest_epoch n = { 0, NAN };
    int rc = store_epochs(s->store, t->row.id, note_newest, &n, e);
    study_put_why(text, n.epoch, why);
    return rc < 0 ? rc : store_stopped(s, t, n.epoch, "stopped", text, e);
}

/* --- what people add, and want to be tried again --- */

int study_add_point(struct study *s, int64_t request, const struct point *p)
{
    struct study_added *grown = array_more(s->added, s->n_added, &s->cap_added, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->added = grown;
    s->added[s->n_added++] = (struct study_added){ request, *p };
    s->sched.added++;
    return 0;
}

/* Ids of proposals that are none of the search's, nor repeats'. */
static const uint64_t added_ids = UINT64_MAX / 2;

static int ask_added(struct study *s, struct study_asked *out, struct err *e)
{
    const struct study_added one = s->added[0];
    struct proposal p = { .id = added_ids + (uint64_t)one.request, .point = one.point };
    char text[32];
    out->point = one.point;
    int rc = fill_row(s, &p, &out->row, e);
    out->row.added = true;
    if (rc == 0 && !out->row.reason)
        rc = take_copy(s, &out->row, e);
    if (rc == 0)
        rc = put_proposal(s, &out->row, e);
    (void)snprintf(text, sizeof text, "trial %d", out->row.number);
    if (rc == 0)
        rc = study_reopen(s, e);
    if (rc == 0)
        rc = store_request_answer(s->store, one.request, true, text, e);
    if (rc < 0)
        return rc;
    memmove(s->added, s->added + 1, --s->n_added * sizeof *s->added);
    s->sched.added--;
    return 0;
}

struct forgiving {
    struct store *store;
    const struct store_study *study;
    struct store_trial *rows; /* owned */
    size_t n, cap;
    bool named;
};

/* One that proved infeasible where it ran may be named, as may one whose attempts were removed; one that was never launched has nothing
 * to be launched with. */
static bool may_go_again(const struct store_trial *t, bool named)
{
    bool failed = strcmp(t->state, trial_state_name(TRIAL_FAILED)) == 0;
    bool removed = failed && t->attempts == 0;
    return (failed && (named || !removed)) ||
           (named && t->attempts > 0 && strcmp(t->state, trial_state_name(TRIAL_INFEASIBLE)) == 0);
}

static int collect_failed(void *ctx, const struct store_trial *t)
{
    struct forgiving *f = ctx;
    if (!may_go_again(t, f->named))
        return 0;
    struct store_trial *grown = array_more(f->rows, f->n, &f->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    f->rows = grown;
    int rc = store_trial_copy(&f->rows[f->n], t);
    f->n += rc == 0;
    return rc;
}

static int forgive(const struct forgiving *f, struct store_trial *t, int64_t now_ms, struct err *e)
{
    char *waiting = strdup(trial_state_name(TRIAL_WAITING));
    if (!waiting)
        return err_sys(e, -ENOMEM, "study '%s'", f->study->name);
    free(t->state);
    t->state = waiting;
    free(t->reason);
    t->reason = NULL;
    t->forgiven = t->attempts;
    int rc = store_trial_update(f->store, t, e);
    struct store_decision d = { .trial = t->number,
                                .t_s = (double)(now_ms - f->study->created_ms) / 1000.0,
                                .kind = "retry",
                                .reason = "asked for: what became of its attempts so far is forgiven" };
    return rc == 0 ? store_decision_add(f->store, f->study->id, &d, e) : rc;
}

static int forgive_all(struct forgiving *f, int *out, struct err *e)
{
    int64_t base_ms = 0;
    int rc = study_story_base(f->store, f->study->id, &base_ms, e);
    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        out[i] = f->rows[i].number;
        rc = forgive(f, &f->rows[i], base_ms + clock_boot_ms(), e);
    }
    return rc == 0 && f->n > 0 ? store_study_set_state(f->store, f->study->id, "running", 0, e) : rc;
}

int study_forgive(struct store *s, const struct store_study *study, int number, int **out_numbers, size_t *out_n,
                  struct err *e)
{
    struct forgiving f = { .store = s, .study = study, .named = number != 0 };
    int rc = store_trials(s, study->id, number, collect_failed, &f, e);
    AUTO_FREE int *numbers = calloc(f.n + 1, sizeof *numbers);
    if (rc == -ENOMEM || !numbers)
        rc = err_sys(e, -ENOMEM, "study '%s'", study->name);
    if (rc == 0)
        rc = forgive_all(&f, numbers, e);
    if (rc == 0) {
        *out_numbers = MOVE_PTR(numbers);
        *out_n = f.n;
    }
    for (size_t i = 0; i < f.n; i++)
        store_trial_done(&f.rows[i]);
    free(f.rows);
    return rc;
}

int study_put_retry(struct study *s, int number, int **out_numbers, size_t *out_n, struct err *e)
{
    const struct store_study row = { .id = s->id, .name = s->name, .created_ms = s->created_ms };
    return study_forgive(s->store, &row, number, out_numbers, out_n, e);
}

/* Its place among the trials it had already. */
int study_take_again(struct study *s, int number, struct err *e)
{
    struct recall r = { s, e };
    int rc = store_trials(s->store, s->id, number, recall_trial, &r, e);
    s->sched.made -= rc == 0;
    return rc;
}

/* One of those that are to be trained again. */
static int ask_repeat(struct study *s, struct study_asked *out, struct err *e)
{
    const struct repeat *r = &s->repeats.v[s->repeats.next];
    AUTO_JSON json_t *hyper = json_loads(r->hyper, 0, NULL);
    AUTO_JSON json_t *knobs = json_loads(r->requested, 0, NULL);
    struct proposal p = { .id = UINT64_MAX - s->repeats.next }; /* none of the search's */
    if (space_point_parse(&s->plan->space, hyper, knobs, &p.point) < 0)
        return err_set(e, -EPROTO, "%s/%d cannot be trained again: it is no point of the study's space", s->name,
                       r->of);
    out->point = p.point;
    int rc = fill_row(s, &p, &out->row, e);
    out->row.repeat_of = r->of;
    out->row.repeat = r->time;
    if (rc == 0)
        rc = put_proposal(s, &out->row, e);
    s->repeats.next += rc == 0;
    s->sched.extra -= rc == 0;
    return rc;
}

/* In the transaction: what is asked and told between would else be stored without this. */
int study_ask(struct study *s, struct study_asked *out, struct err *e)
{
    struct proposal p = { 0 };
    *out = (struct study_asked){ .again = NULL };
    if (s->sched.closed) /* since it was to be asked: what runs is to end, and not to go on */
        return 0;
    if (s->n_added > 0)
        return ask_added(s, out, e);
    if (s->sched.extra > 0)
        return ask_repeat(s, out, e);
    int rc = search_ask(&s->search, sched_may_add(&s->sched), &p);
    if (rc == -ENOMEM)
        return err_sys(e, rc, "study '%s'", s->name);
    sched_asked(&s->sched, rc);
    if (rc != 1)
        return 0;
    if (p.again) {
        out->again = trial_of(s, p.id);
        rc = put_going_on(s, out->again, e);
        failpoint("resume-before-commit");
        return rc;
    }
    out->point = p.point;
    rc = fill_row(s, &p, &out->row, e);
    if (rc == 0 && p.learnt_from && !(out->row.learnt_from = strdup(p.learnt_from)))
        rc = err_sys(e, -ENOMEM, "study '%s'", s->name);
    if (rc == 0 && !out->row.reason)
        rc = take_copy(s, &out->row, e);
    return rc == 0 ? put_proposal(s, &out->row, e) : rc;
}

static int take_proposal(struct study *s, const struct study_asked *asked, struct study_trial **out, struct err *e)
{
    struct sched_trial t = sched_trial_of(&asked->row);
    if (keep_open(s, &asked->row, &asked->point) < 0 || sched_add(&s->sched, &t) < 0)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    *out = s->open_trials[s->n_open - 1];
    return 1;
}

int study_take(struct study *s, struct study_asked *asked, struct study_trial **out, int *out_copy, struct err *e)
{
    int rc = 0;
    if (asked->again) {
        sched_resume(&s->sched, asked->again->row.number);
        failpoint("resume-committed");
        *out = asked->again;
        rc = 1;
    } else if (asked->row.number) {
        rc = take_proposal(s, asked, out, e);
    }
    *out_copy = asked->row.copy_of;
    store_trial_done(&asked->row);
    *asked = (struct study_asked){ .again = NULL };
    return rc;
}
