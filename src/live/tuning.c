#include "live/tuning.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "core/pace.h"
#include "core/tuner_log.h"
#include "live/costing.h"
#include "live/reuse.h"
#include "live/writer.h"

/* Steps shorter than this share of a window are handed on several at a time: while probing, and once settled. */
static const double SHARE_PROBING = 1.0 / 12, SHARE_SETTLED = 1.0 / 2;

/* A trial. Its time is the log's: seconds since the first step's stamp. */
struct tuned {
    int trial;
    struct study_trial *row;
    bool begun; /* the machine was told of it */
    struct pace pace;
    int first_epoch;               /* by epochs: the one that its time begins at the end of … */
    double whole_s, whole_records; /* … and what was trained since: to the machine all of that is one epoch */
    int n_hot;
    bool alone;
    double base_ms; /* the stamp of the first step */
    double
        behind_ms; /* by which lines arrive later than they are stamped (and the zone's offset): the least that was seen */
    double last_ms; /* the stamp of the newest step */
    double last_wall_s;
    int last_epoch;
    double t_s;                    /* of the newest event */
    double wake_s;                 /* INFINITY: none */
    bool probed;                   /* something was compared in it */
    struct tuner_setting in_force; /* as it was read back, with cores > 0 … */
    int cores;                     /* … CPUs */
    struct tuner_event steps;      /* gathered, not handed on yet; records 0: none */
    double steps_from_ms;          /* the stamp at which they began */
    struct costing_steps costed;   /* gathered, and their cost is not known yet */
};

struct decision {
    int trial;
    const char *kind;
    struct tuner_setting setting;
    char reason[TUNER_REASON_MAX];
};

struct tuning {
    struct study *study;
    const struct policy *policy;
    void *machine;
    const struct choices *choices;
    struct tuning_ops ops;
    void *ctx;
    struct buf log; /* what the machine was told since the last transaction */
    struct decision *decisions;
    size_t n_decisions, cap_decisions;
    struct tuner_action *todo; /* of decisions that are stored, or on their way there */
    size_t n_todo, cap_todo;
    size_t n_ready;     /* so many of them go with what is on its way */
    bool storing;       /* something is */
    struct err failure; /* of that; code 0: none */
    struct tuned **trials;
    size_t n, cap;
    struct strv families; /* of trials that have settled in this run */
    struct strv likes;    /* pairs: a class of which nothing was known, and the one that its profile is of */
    struct strv recalled; /* classes that the machine was told all about that is known of them */
    struct costing costing;
    int waiting;
};

static struct tuned *met(const struct tuning *t, int trial)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->trials[i]->trial == trial)
            return t->trials[i];
    return NULL;
}

/* One that the machine knows. */
static struct tuned *find(const struct tuning *t, int trial)
{
    struct tuned *u = met(t, trial);
    return u && u->begun ? u : NULL;
}

static struct tuned *meet(struct tuning *t, struct study_trial *row)
{
    struct tuned *known = met(t, row->row.number);
    if (known)
        return known;
    struct tuned **grown = array_more(t->trials, t->n, &t->cap, sizeof(struct tuned *));
    if (!grown)
        return NULL;
    t->trials = grown;
    struct tuned *u = calloc(1, sizeof *u);
    if (u) {
        *u = (struct tuned){ .trial = row->row.number, .row = row, .wake_s = INFINITY, .last_wall_s = NAN };
        t->trials[t->n++] = u;
    }
    return u;
}

static void drop(struct tuning *t, const struct tuned *u)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->trials[i] != u)
            continue;
        costing_drop(&t->trials[i]->costed);
        free(t->trials[i]);
        memmove(&t->trials[i], &t->trials[i + 1], (t->n - i - 1) * sizeof(struct tuned *));
        t->n--;
        return;
    }
}

/* --- the machine: told, noted, and its decisions kept for the store --- */

char *tuning_setting_text(const struct tuning *t, struct tuner_setting s)
{
    const struct plan *p = t->study->plan;
    struct setting set = choices_setting(t->choices, &p->space, s);
    AUTO_JSON json_t *j = plan_effective_json(p, &set, 0);
    return json_text(j);
}

static bool is_among(const struct strv *list, const char *text)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], text) == 0)
            return true;
    return false;
}

static int learn_family(struct tuning *t, int trial)
{
    const struct tuned *u = find(t, trial);
    AUTO_BUF struct buf family = BUF_INIT;
    if (!u)
        return 0;
    plan_class_key(t->study->plan, &u->row->point, true, &family);
    if (!is_among(&t->families, buf_text(&family)))
        strv_add(&t->families, buf_text(&family));
    return family.failed || t->families.failed ? -ENOMEM : 0;
}

static int decide(struct tuning *t, const char *kind, int trial, struct tuner_setting setting, const char *reason)
{
    struct decision *grown = array_more(t->decisions, t->n_decisions, &t->cap_decisions, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    t->decisions = grown;
    struct decision *d = &grown[t->n_decisions++];
    *d = (struct decision){ .trial = trial, .kind = kind, .setting = setting };
    (void)snprintf(d->reason, sizeof d->reason, "%s", reason);
    return 0;
}

static int keep_action(struct tuning *t, const struct tuner_action *a)
{
    struct tuned *u = find(t, a->trial);
    if (a->kind == ACT_WAKE) {
        if (u)
            u->wake_s = a->t_s;
        return 0;
    }
    if (a->kind == ACT_SETTLE && learn_family(t, a->trial) < 0)
        return -ENOMEM;
    if (u && (a->kind == ACT_APPLY || a->kind == ACT_LEARN))
        u->probed = true;
    struct tuner_action *grown = array_more(t->todo, t->n_todo, &t->cap_todo, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    t->todo = grown;
    t->todo[t->n_todo++] = *a;
    if (!tuner_is_decision(a->kind))
        return 0;
    return decide(t, tuner_action_name(a->kind), a->trial, a->setting, a->reason);
}

static int feed(struct tuning *t, const struct tuner_event *ev, struct err *e)
{
    struct tuner_actions out = { .n = 0 };
    size_t before = t->log.len;
    tuner_log_event(&t->log, ev);
    int rc = t->policy->step(t->machine, ev, &out, e);
    if (rc < 0)
        buf_cut(&t->log, before); /* what the machine did not take it will not take again */
    for (size_t i = 0; rc == 0 && i < out.n; i++)
        if (keep_action(t, &out.list[i]) < 0)
            rc = err_sys(e, -ENOMEM, "trial %d", ev->trial);
    return rc;
}

/* --- storing --- */

/* The class that the profile of this one is of, as it was told last; NULL: of none. */
static const char *like_of(const struct tuning *t, const char *class_key)
{
    const char *like = NULL;
    for (size_t i = 0; i + 1 < t->likes.n; i += 2)
        like = strcmp(t->likes.v[i], class_key) == 0 ? t->likes.v[i + 1] : like;
    return like;
}

/* What was recalled was of the trial's own class, or, where nothing is known of that one, of the class that its profile is of. */
static int judge_recalled(struct tuning *t, int trial, bool holds, struct err *e)
{
    const struct study_trial *row = study_trial(t->study, trial);
    AUTO_BUF struct buf key = BUF_INIT;
    if (!row)
        return 0;
    plan_class_key(t->study->plan, &row->point, false, &key);
    if (key.failed)
        return err_sys(e, -ENOMEM, "trial %d", trial);
    const char *like = reuse_knows(t->study->reuse, buf_text(&key)) ? NULL : like_of(t, buf_text(&key));
    return reuse_confirm(t->study->reuse, trial, like ? like : buf_text(&key), holds, e);
}

static int store_decision(struct tuning *t, const struct decision *d, struct err *e)
{
    AUTO_FREE char *text = tuning_setting_text(t, d->setting);
    if (!text)
        return err_sys(e, -ENOMEM, "trial %d", d->trial);
    int rc = study_decide(t->study, d->trial, d->kind, text, e, "%s", d->reason);
    bool holds = strcmp(d->kind, tuner_action_name(ACT_CONFIRM)) == 0;
    if (rc == 0 && (holds || strcmp(d->kind, tuner_action_name(ACT_WEAKEN)) == 0))
        rc = judge_recalled(t, d->trial, holds, e);
    return rc;
}

/* Inside a transaction. */
static int put_all(struct tuning *t, struct err *e)
{
    if (t->log.failed)
        return err_sys(e, -ENOMEM, "study '%s'", t->study->name);
    int rc = t->log.len ? store_tuner_log_add(t->study->store, t->study->id, buf_text(&t->log), e) : 0;
    for (size_t i = 0; rc == 0 && i < t->n_decisions; i++)
        rc = store_decision(t, &t->decisions[i], e);
    if (rc < 0)
        return rc;
    buf_clear(&t->log);
    t->n_decisions = 0;
    return 0;
}

/* What the log's clock says, on ours: that of samples and meters. */
static double our_ms(const struct tuned *u, double log_ms)
{
    return log_ms + (isfinite(u->behind_ms) ? u->behind_ms : 0);
}

static void ask_for_profile(struct tuning *t, const struct tuner_action *a)
{
    const struct tuned *u = find(t, a->trial);
    if (!u)
        return;
    struct profiles_window w = { .trial = a->trial,
                                 .from_ms = our_ms(u, u->base_ms + 1000 * a->t_s),
                                 .to_ms = our_ms(u, u->base_ms + 1000 * a->until_s),
                                 .setting = a->setting };
    (void)profiles_ask(t->study->profiles, &w, NULL); /* without memory for it there is no verdict */
}

static void act_on(struct tuning *t, size_t n)
{
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++) { /* what is called back may not decide anything at once */
        const struct tuner_action *a = &t->todo[i];
        if (a->kind == ACT_APPLY)
            t->ops.apply(t->ctx, a->trial, a->setting);
        else if (a->kind == ACT_RELAUNCH)
            t->ops.relaunch(t->ctx, a->trial);
        else if (a->kind == ACT_PROFILE)
            ask_for_profile(t, a);
        else if (a->kind == ACT_SETTLE)
            t->ops.settled(t->ctx, a->trial, a->setting, a->reason);
    }
    t->n_todo -= n;
    memmove(t->todo, t->todo + n, t->n_todo * sizeof *t->todo);
    t->n_ready = 0;
}

static int put_on_the_way(void *ctx, struct store *s, struct err *e)
{
    (void)s; /* it is the study's */
    return tuning_put(ctx, e);
}

static void on_stored(void *ctx, int rc, const struct err *e)
{
    struct tuning *t = ctx;
    t->storing = false;
    if (rc == 0)
        tuning_stored(t);
    t->failure = rc < 0 ? *e : t->failure; /* the next call tells */
}

/* What was decided outside of any transaction gets its own; what is decided while that is on its way gets the next. */
static int settle_up(struct tuning *t, struct err *e)
{
    if (t->failure.code < 0)
        return err_set(e, t->failure.code, "%s", t->failure.text);
    if (t->storing || t->n_ready > 0)
        return 0;
    if (t->n_decisions == 0) {
        act_on(t, t->n_todo); /* what was asked for alone */
        return 0;
    }
    t->storing = t->study->writer != NULL;
    const struct write one = { .rows = put_on_the_way, .done = on_stored, .ctx = t };
    int rc = writer_put(t->study->writer, t->study->store, one, e);
    t->storing = t->storing && rc == 0;
    return rc < 0 || t->failure.code == 0 ? rc : err_set(e, t->failure.code, "%s", t->failure.text);
}

static int tell(struct tuning *t, const struct tuner_event *ev, struct err *e)
{
    int rc = feed(t, ev, e);
    return rc < 0 ? rc : settle_up(t, e);
}

/* --- opening --- */

static int again(void *ctx, const struct tuner_replay *r, const char *kind, int trial, struct tuner_setting setting,
                 const char *reason)
{
    (void)ctx, (void)r, (void)kind, (void)trial, (void)setting, (void)reason;
    return 0; /* they are stored, and what they asked for was done or is void */
}

struct rebuilding {
    struct tuner_replay replay;
    struct err *e;
};

static int feed_again(void *ctx, const char *text)
{
    struct rebuilding *r = ctx;
    return tuner_replay_feed(&r->replay, text, strlen(text), again, NULL, r->e);
}

/* A machine that was made for another set of settings (other CPUs, another policy's version) cannot be gone on with. */
static bool fits(const struct tuning *t, const struct tuner_replay *r, const struct tuner_space *space)
{
    if (!r->machine || r->policy != t->policy || r->space.n_hot != space->n_hot || r->space.n_cold != space->n_cold)
        return false;
    bool same = true;
    for (int i = 0; i < space->n_hot; i++)
        same &= r->space.cores[i] == space->cores[i];
    for (int i = 0; i < space->n_cold; i++)
        same &= r->space.memory[i] == space->memory[i] && r->space.other[i] == space->other[i];
    same &= r->space.memory_entered == space->memory_entered;
    return same;
}

static int lose_all(struct tuning *t, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < t->study->n_open; i++) {
        int number = t->study->open_trials[i]->row.number;
        struct tuner_setting now;
        if (t->policy->current(t->machine, number, &now))
            rc = feed(t, &(struct tuner_event){ .kind = EV_TRIAL_LOST, .trial = number }, e);
    }
    return rc;
}

static int build(struct tuning *t, struct err *e)
{
    const struct plan *p = t->study->plan;
    struct tuner_space space = plan_tuner_space(p);
    struct tuner_cfg cfg = { .window_s = p->cfg.window_seconds,
                             .probe_budget = p->cfg.probe_budget,
                             .tie_margin = p->cfg.tie_margin,
                             .noise_floor = 0.01 };
    struct rebuilding r = { .e = e };
    int rc = store_tuner_log(t->study->store, t->study->id, feed_again, &r, e);
    if (rc == 0 && fits(t, &r.replay, &space))
        t->machine = MOVE_PTR(r.replay.machine);
    tuner_replay_done(&r.replay);
    if (rc < 0)
        return rc;
    if (t->machine)
        return lose_all(t, e);
    t->machine = t->policy->create(&space, &cfg);
    tuner_log_head(&t->log, t->policy, &space, &cfg);
    return t->machine ? 0 : err_sys(e, -ENOMEM, "study '%s'", t->study->name);
}

int tuning_open(struct tuning **out, struct study *s, const struct tuning_ops *ops, void *ctx, struct err *e)
{
    *out = NULL;
    if (!s->plan->policy->create)
        return 0;
    struct tuning *t = calloc(1, sizeof *t);
    if (!t)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    *t =
        (struct tuning){ .study = s, .policy = s->plan->policy, .choices = &s->plan->choices, .ops = *ops, .ctx = ctx };
    int rc = build(t, e);
    if (rc == 0)
        rc = costing_open(&t->costing, s, e);
    if (rc < 0) {
        tuning_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void tuning_close(struct tuning *t)
{
    if (!t)
        return;
    while (t->n > 0)
        drop(t, t->trials[t->n - 1]);
    free(t->trials);
    free(t->decisions);
    free(t->todo);
    buf_done(&t->log);
    strv_done(&t->families);
    strv_done(&t->recalled);
    strv_done(&t->likes);
    t->policy->destroy(t->machine);
    free(t);
}

/* --- what earlier studies knew --- */

static int feed_recalled(void *ctx, const struct tuner_event *ev, struct err *e)
{
    return feed(ctx, ev, e);
}

/* Once for each class and run; the machine passes over what it has heard before. */
static int recall(struct tuning *t, const char *class_key, struct err *e)
{
    if (!t->policy->knowledge || !t->study->reuse || is_among(&t->recalled, class_key))
        return 0;
    strv_add(&t->recalled, class_key);
    if (t->recalled.failed)
        return err_sys(e, -ENOMEM, "study '%s'", t->study->name);
    return reuse_recall(t->study->reuse, class_key, feed_recalled, t, e);
}

/* --- a launch --- */

struct keys {
    struct buf class, family;
};

static void keys_done(struct keys *k)
{
    buf_done(&k->class);
    buf_done(&k->family);
}

#define AUTO_KEYS __attribute__((cleanup(keys_done)))

static int make_keys(const struct tuning *t, const struct study_trial *trial, struct keys *out, struct err *e)
{
    plan_class_key(t->study->plan, &trial->point, false, &out->class);
    plan_class_key(t->study->plan, &trial->point, true, &out->family);
    return out->class.failed || out->family.failed ? err_sys(e, -ENOMEM, "trial %d", trial->row.number) : 0;
}

static int hot_within(const struct tuning *t, double cores)
{
    return choices_hot_within(t->choices, &t->study->plan->space, cores);
}

/* The next larger memory that this very trial has not run out of. */
static struct tuner_setting avoid_refused(const struct tuning *t, const struct study_trial *trial,
                                          struct tuner_setting s)
{
    int more;
    while (trial->refused_cold >> s.cold & 1 &&
           (more = choices_more_memory(t->choices, &t->study->plan->space, s.cold)) >= 0)
        s.cold = more;
    return s;
}

static int slots_at(const struct tuning *t, const struct study_trial *trial, int cold)
{
    const struct plan *p = t->study->plan;
    struct tuner_setting at = { 0, cold };
    struct setting set = choices_setting(t->choices, &p->space, at);
    return plan_slots(p, &trial->point, &set, NULL);
}

/* Where the cluster has no room for the setting, the nearest one that it has room for, a larger one first; with as many cores as its
 * slots allow. */
static void find_room(const struct tuning *t, struct study_trial *trial, struct tuner_setting *s)
{
    int slots = slots_at(t, trial, s->cold), n = t->choices->n_cold, from = s->cold;
    for (int i = 1; slots < 0 && i < n; i++) {
        s->cold = (from + i) % n;
        slots = trial->refused_cold >> s->cold & 1 ? -ENODEV : slots_at(t, trial, s->cold);
    }
    if (slots < 0)
        return;
    trial->row.slots = slots;
    int n_hot = hot_within(t, slots);
    s->hot = s->hot < n_hot ? s->hot : n_hot - 1;
}

int tuning_ask(struct tuning *t, struct study_trial *trial, int room, bool alone, struct err *e)
{
    AUTO_KEYS struct keys k = { 0 };
    int rc = make_keys(t, trial, &k, e);
    if (rc < 0)
        return rc;
    int n_hot = hot_within(t, room < trial->row.slots ? room : trial->row.slots);
    struct tuner_ask ask = { .trial = trial->row.number,
                             .class_key = buf_text(&k.class),
                             .family_key = buf_text(&k.family),
                             .start = t->choices->start, /* also where it may not have that yet */
                             .n_hot = n_hot,
                             .alone = alone };
    struct tuner_setting got = ask.start;
    char reason[TUNER_REASON_MAX];
    size_t before;
    rc = recall(t, ask.class_key, e);
    if (rc < 0)
        return rc;
    before = t->log.len;
    tuner_log_ask(&t->log, &ask);
    rc = t->policy->launch(t->machine, &ask, &got, reason, e);
    if (rc < 0) {
        buf_cut(&t->log, before);
        return rc;
    }
    trial->setting = avoid_refused(t, trial, got);
    find_room(t, trial, &trial->setting);
    /* What the machine chose can be derived again; what the trial gets instead is for readers, and is none of its decisions. */
    rc = decide(t, "setting", trial->row.number, got, reason);
    if (rc == 0 && trial->setting.cold != got.cold)
        rc = decide(t, "instead", trial->row.number, trial->setting, "what was chosen cannot be had");
    if (rc < 0)
        return err_sys(e, rc, "trial %d", trial->row.number);
    trial->alone = alone;
    trial->room = room;
    return settle_up(t, e);
}

/* --- what is known of a trial without being told --- */

int tuning_recall(struct tuning *t, struct study_trial *trial, const char *setting, struct err *e)
{
    trial->setting = t->choices->start;
    for (int i = 0; setting && i < t->choices->n_hot * t->choices->n_cold; i++) {
        struct tuner_setting s = { i % t->choices->n_hot, i / t->choices->n_hot };
        AUTO_FREE char *text = tuning_setting_text(t, s);
        if (!text)
            return err_sys(e, -ENOMEM, "trial %d", trial->row.number);
        if (strcmp(text, setting) == 0)
            trial->setting = s;
    }
    return 0;
}

bool tuning_knows(const struct tuning *t, const struct study_trial *trial)
{
    AUTO_BUF struct buf family = BUF_INIT;
    plan_class_key(t->study->plan, &trial->point, true, &family);
    return !family.failed && is_among(&t->families, buf_text(&family));
}

/* --- what attempts report --- */

/* `epoch`: the first one that it trains of `epochs`, as the machine is to count them. */
static int begin(struct tuning *t, struct tuned *u, int epoch, int epochs, struct err *e)
{
    AUTO_KEYS struct keys k = { 0 };
    const struct study_trial *trial = u->row;
    int rc = make_keys(t, trial, &k, e);
    if (rc < 0)
        return rc;
    u->begun = true;
    u->in_force = tuning_in_force(t, trial->setting, trial->cores);
    u->cores = trial->cores;
    u->n_hot = hot_within(t, trial->room < trial->row.slots ? trial->room : trial->row.slots);
    u->alone = trial->alone;
    u->last_epoch = epoch;
    u->behind_ms = INFINITY;
    return feed(t,
                &(struct tuner_event){ .kind = EV_TRIAL_STARTED,
                                       .trial = u->trial,
                                       .setting = u->in_force,
                                       .class_key = buf_text(&k.class),
                                       .family_key = buf_text(&k.family),
                                       .epoch = epoch,
                                       .epochs = epochs,
                                       .n_hot = u->n_hot,
                                       .alone = u->alone,
                                       .startup_s = trial->startup_s },
                e);
}

/* When the step ended, on the log's clock: the printed stamp where it has milliseconds, else when its line was read. */
static double step_end_ms(const struct app_report *ev, int64_t now_ms)
{
    return ev->stamp_ms >= 0 && !ev->stamp_coarse ? (double)ev->stamp_ms : (double)now_ms;
}

/* How long it took. Stamps tell best; where they are coarse the application's own clock does; at an epoch's first step, before which lies
 * the validation, only what the line itself says. */
static double step_seconds(const struct tuned *u, const struct app_report *ev, double end_ms)
{
    bool follows = u->last_ms > 0 && u->last_epoch == ev->epoch;
    if (follows && ev->stamp_ms >= 0 && !ev->stamp_coarse && end_ms >= u->last_ms)
        return (end_ms - u->last_ms) / 1000.0;
    if (follows && ev->wall_s > u->last_wall_s)
        return ev->wall_s - u->last_wall_s;
    return ev->seconds;
}

static double time_of(struct tuned *u, double log_ms)
{
    double t_s = (log_ms - u->base_ms) / 1000.0;
    u->t_s = t_s > u->t_s ? t_s : u->t_s;
    return u->t_s;
}

/* The log's clock now. */
static double log_now_ms(const struct tuned *u, int64_t now_ms)
{
    return (double)now_ms - u->behind_ms;
}

/* Steps whose cost is known; `all`: the others, too, as well as that can be told. */
static int feed_costed(struct tuning *t, struct tuned *u, bool all, struct err *e)
{
    struct tuner_event ev;
    int rc;
    while ((rc = costing_take(&t->costing, &u->costed, all, (double)study_clock_ms(t->study), &ev, e)) > 0)
        if ((rc = feed(t, &ev, e)) < 0)
            break;
    return rc;
}

static int hand_on(struct tuning *t, struct tuned *u, bool all, struct err *e)
{
    if (u->steps.records > 0) {
        struct tuner_event ev = u->steps;
        u->steps = (struct tuner_event){ 0 };
        if (costing_add(&u->costed, &ev, our_ms(u, u->steps_from_ms), our_ms(u, u->last_ms)) < 0)
            return err_sys(e, -ENOMEM, "trial %d", u->trial);
    }
    return feed_costed(t, u, all, e);
}

/* A step that has ended, or, by epochs, an epoch of those that are one to the machine. */
struct stepped {
    int epoch;
    double end_ms, seconds, records, epoch_records;
};

static void gather(struct tuned *u, const struct stepped *x, double t_s)
{
    struct tuner_event *s = &u->steps;
    if (!(s->records > 0))
        u->steps_from_ms = u->base_ms + 1000 * (t_s - x->seconds);
    s->kind = EV_ITERATION;
    s->trial = u->trial;
    s->t_s = t_s;
    s->epoch = x->epoch;
    s->seconds += x->seconds;
    s->records += x->records;
    s->epoch_records = x->epoch_records;
}

/* Its time begins with the first. */
static void see(struct tuned *u, double end_ms, int64_t now_ms)
{
    if (u->base_ms == 0)
        u->base_ms = end_ms;
    u->behind_ms = fmin(u->behind_ms, (double)now_ms - end_ms);
}

static int take_step(struct tuning *t, struct tuned *u, const struct stepped *x, struct err *e)
{
    int rc = 0;
    if (u->last_epoch != x->epoch && u->steps.records > 0)
        rc = hand_on(t, u, false, e);
    gather(u, x, time_of(u, x->end_ms));
    u->last_ms = x->end_ms;
    u->last_epoch = x->epoch;
    double share = tuning_settled(t, u->trial) ? SHARE_SETTLED : SHARE_PROBING;
    if (rc == 0 && u->steps.seconds >= share * t->study->plan->cfg.window_seconds)
        rc = hand_on(t, u, false, e);
    return rc;
}

int tuning_iteration(struct tuning *t, struct study_trial *trial, const struct app_report *ev, int64_t now_ms,
                     struct err *e)
{
    if (!t || !(ev->records > 0) || trial->shared)
        return 0;
    struct tuned *u = meet(t, trial);
    if (!u)
        return err_sys(e, -ENOMEM, "trial %d", trial->row.number);
    double end_ms = step_end_ms(ev, now_ms);
    bool sized = ev->records_all > 0 || !t->policy->by_windows;
    pace_step(&u->pace, ev->epoch, end_ms, ev->records, sized, t->study->plan->cfg.window_seconds);
    if (u->pace.unit != PACE_STEPS)
        return 0;
    int rc = u->begun ? 0 : begin(t, u, ev->epoch, trial->row.epochs, e);
    if (rc < 0)
        return rc;
    see(u, end_ms, now_ms);
    const struct stepped x = { ev->epoch, end_ms, step_seconds(u, ev, end_ms), ev->records, (double)ev->records_all };
    u->last_wall_s = ev->wall_s;
    rc = take_step(t, u, &x, e);
    return rc < 0 ? rc : settle_up(t, e);
}

int tuning_break(struct tuning *t, int trial, struct err *e)
{
    struct tuned *u = t ? find(t, trial) : NULL;
    if (!u)
        return 0;
    u->steps = (struct tuner_event){ 0 };
    u->costed.n = 0;
    u->last_ms = 0;
    return tell(t, &(struct tuner_event){ .kind = EV_BREAK, .trial = trial, .t_s = u->t_s }, e);
}

/* What the trial has now is what its row tells. */
static int keep_effective(struct tuning *t, struct study_trial *trial, struct err *e)
{
    struct tuner_setting now;
    if (!t->policy->current(t->machine, trial->row.number, &now))
        return 0;
    const struct tuned *u = find(t, trial->row.number);
    bool read = u && u->cores > 0 && u->in_force.hot == now.hot;
    struct setting set = choices_setting(t->choices, &t->study->plan->space, now);
    AUTO_JSON json_t *j =
        plan_effective_json(t->study->plan, &set, read && u->cores != (int)tuning_cores(t, now) ? u->cores : 0);
    char *taken = json_text(j);
    if (!taken)
        return err_sys(e, -ENOMEM, "trial %d", trial->row.number);
    free(trial->row.effective);
    trial->row.effective = taken;
    return 0;
}

static int end_epoch(struct tuning *t, struct tuned *u, int epoch, double seconds, double records, struct err *e)
{
    int rc = hand_on(t, u, true, e);
    if (rc < 0)
        return rc;
    double cost = costing_epoch(&t->costing, &u->costed, seconds, records, (double)study_clock_ms(t->study));
    return feed(
        t,
        &(struct tuner_event){
            .kind = EV_EPOCH, .trial = u->trial, .t_s = u->t_s, .epoch = epoch, .seconds = cost, .records = records },
        e);
}

/* By epochs: one that has ended is a step of the machine's only epoch, which is all that this launch trains behind its first. */
static int step_by_epoch(struct tuning *t, struct tuned *u, const struct store_epoch *row, double records,
                         struct err *e)
{
    int64_t now_ms = study_clock_ms(t->study);
    double end_ms = row->end_ms > 0 ? (double)row->end_ms : (double)now_ms;
    double seconds = (end_ms - u->last_ms) / 1000;
    bool follows = u->begun && u->last_ms > 0;
    int rc = u->begun ? 0 : begin(t, u, 1, 1, e);
    if (!u->first_epoch)
        u->first_epoch = row->epoch;
    see(u, end_ms, now_ms);
    u->last_ms = end_ms;
    if (rc < 0 || !follows || !(seconds > 0))
        return rc;
    u->whole_s += seconds;
    u->whole_records += records;
    const struct stepped x = { 1, end_ms, seconds, records, records * (u->row->row.epochs - u->first_epoch) };
    rc = take_step(t, u, &x, e);
    if (rc == 0 && row->epoch >= u->row->row.epochs)
        rc = end_epoch(t, u, 1, u->whole_s, u->whole_records, e);
    return rc;
}

int tuning_epoch(struct tuning *t, struct study_trial *trial, const struct store_epoch *row, struct err *e)
{
    struct tuned *u = t ? met(t, trial->row.number) : NULL;
    if (!u)
        return 0;
    double records = pace_epoch(&u->pace, row->records);
    int rc = 0;
    if (u->pace.unit == PACE_EPOCHS)
        rc = trial->shared ? 0 : step_by_epoch(t, u, row, records, e);
    else if (u->begun)
        rc = end_epoch(t, u, row->epoch, row->seconds, row->records, e);
    return rc == 0 ? keep_effective(t, trial, e) : rc;
}

int tuning_put(struct tuning *t, struct err *e)
{
    if (!t)
        return 0;
    t->n_ready = t->n_todo;
    return put_all(t, e);
}

void tuning_stored(struct tuning *t)
{
    if (t)
        act_on(t, t->n_ready);
}

/* What it was worth that the class was known. How the default setting compares is known by the stored ratio alone: an estimate. */
static int tell_reuse(struct tuning *t, const struct tuned *u, const struct class_entry *c, struct err *e)
{
    struct tuner_setting now = { -1, -1 }, start = t->choices->start;
    bool at_least = false;
    char gain[160] = "";
    if (!t->policy->current(t->machine, u->trial, &now))
        return 0;
    double ratio = exp(knowledge_ratio(c, now.cold, start.hot, now.hot, &at_least));
    double cores = tuning_cores(t, now), by_default = tuning_cores(t, start);
    if (now.hot == start.hot)
        (void)snprintf(gain, sizeof gain, "; the default setting is the best one");
    else if (isfinite(ratio) && ratio > 1)
        (void)snprintf(gain, sizeof gain, "; saved %s%.1f s (estimated)", at_least ? "at least " : "about ",
                       u->t_s * (ratio - 1));
    else if (isfinite(ratio) && by_default * ratio > cores)
        (void)snprintf(gain, sizeof gain, "; saved about %.1f core-seconds (estimated)",
                       u->t_s * (by_default * ratio - cores));
    AUTO_FREE char *text = tuning_setting_text(t, now);
    if (!text)
        return err_sys(e, -ENOMEM, "trial %d", u->trial);
    if (c->earlier == 0)
        return study_decide(t->study, u->trial, "reuse", text, e, "its profile is that of a job of this study%s", gain);
    return study_decide(t->study, u->trial, "reuse", text, e, "known from %d trial%s of earlier studies%s", c->earlier,
                        c->earlier == 1 ? "" : "s", gain);
}

static const struct class_entry *class_of(const struct tuning *t, const char *key)
{
    return t->policy->knowledge ? knowledge_find(t->policy->knowledge(t->machine), key) : NULL;
}

static bool is_reused(const struct class_entry *c)
{
    return c && (c->recall == RECALL_OPEN || c->recall == RECALL_HOLDS);
}

/* A trial that has finished: what it compared, and its profiles, are kept for later studies. */
static int finish(struct tuning *t, struct study_trial *trial, const struct tuned *u, struct err *e)
{
    AUTO_KEYS struct keys k = { 0 };
    int rc = make_keys(t, trial, &k, e);
    const struct class_entry *c = rc == 0 ? class_of(t, buf_text(&k.class)) : NULL;
    bool reused = is_reused(c);
    if (rc == 0 && reused)
        rc = tell_reuse(t, u, c, e);
    if (rc == 0)
        rc = feed(t, &(struct tuner_event){ .kind = EV_TRIAL_ENDED, .trial = u->trial, .t_s = u->t_s }, e);
    if (rc < 0 || !t->study->reuse || !costing_counts(&t->costing))
        return rc;
    c = reused ? NULL : class_of(t, buf_text(&k.class));
    c = c && (u->probed || knowledge_bounded(c)) ? c : NULL; /* else nothing is new */
    return reuse_learn(t->study->reuse, trial, buf_text(&k.class), buf_text(&k.family), c, e);
}

int tuning_end(struct tuning *t, struct study_trial *trial, bool finished, struct err *e)
{
    struct tuned *u = t ? met(t, trial->row.number) : NULL;
    if (!u)
        return 0;
    int rc = keep_effective(t, trial, e);
    if (rc == 0 && u->begun)
        rc = finished ? finish(t, trial, u, e)
                      : feed(t, &(struct tuner_event){ .kind = EV_TRIAL_LOST, .trial = u->trial, .t_s = u->t_s }, e);
    drop(t, u);
    return rc < 0 ? rc : tuning_put(t, e);
}

int tuning_bound(struct tuning *t, struct study_trial *trial, bool explained, struct err *e)
{
    AUTO_KEYS struct keys k = { 0 };
    int rc = t ? make_keys(t, trial, &k, e) : 0;
    if (!t || rc < 0)
        return rc;
    rc = feed(t,
              &(struct tuner_event){ .kind = EV_FAILED,
                                     .trial = trial->row.number,
                                     .setting = trial->setting,
                                     .class_key = buf_text(&k.class),
                                     .family_key = buf_text(&k.family),
                                     .infeasible = true,
                                     .unexplained = !explained },
              e);
    return rc < 0 ? rc : tuning_put(t, e);
}

struct tuner_setting tuning_in_force(const struct tuning *t, struct tuner_setting to, int cores)
{
    return t && cores > 0 ? choices_with(t->choices, &t->study->plan->space, to, cores) : to;
}

/* The answer to an older order than the newest says nothing of what that one will bring. */
static bool is_late(const struct tuning *t, int trial, struct tuner_setting to)
{
    struct tuner_setting now;
    return t->policy->current(t->machine, trial, &now) && now.hot != to.hot;
}

int tuning_applied(struct tuning *t, int trial, struct tuner_setting to, int cores, const char *why, struct err *e)
{
    struct tuned *u = t ? find(t, trial) : NULL;
    if (!u)
        return 0;
    int rc = hand_on(t, u, true, e);
    struct tuner_setting got = is_late(t, trial, to) ? to : tuning_in_force(t, to, cores);
    u->in_force = got;
    u->cores = cores;
    bool instead = !why && got.hot != to.hot;
    to = instead ? got : to;
    struct tuner_event ev = { .kind = why       ? EV_FAILED
                                      : instead ? EV_INSTEAD
                                                : EV_APPLIED,
                              .trial = trial,
                              .t_s = time_of(u, log_now_ms(u, study_clock_ms(t->study))),
                              .setting = to }; /* a failure is no bound of the class: it lies with the helper */
    return rc < 0 ? rc : tell(t, &ev, e);
}

int tuning_load(struct tuning *t, int waiting, struct err *e)
{
    if (t && t->costing.objective != OBJECTIVE_TIME)
        waiting = 0; /* what others could do meanwhile is in the joules already */
    if (!t || waiting == t->waiting)
        return 0;
    t->waiting = waiting;
    return tell(t, &(struct tuner_event){ .kind = EV_LOAD, .waiting = waiting }, e);
}

int tuning_room(struct tuning *t, int trial, int cores, bool alone, struct err *e)
{
    struct tuned *u = t ? find(t, trial) : NULL;
    if (!u)
        return 0;
    int slots = u->row->row.slots;
    int n_hot = hot_within(t, cores < slots ? cores : slots);
    if (n_hot == u->n_hot && alone == u->alone)
        return 0;
    u->n_hot = n_hot;
    u->alone = alone;
    return tell(
        t, &(struct tuner_event){ .kind = EV_LOAD, .trial = trial, .t_s = u->t_s, .n_hot = n_hot, .alone = alone }, e);
}

static enum tuner_verdict as_verdict(enum model_decision d)
{
    return d == MODEL_KNOWN ? VERDICT_KNOWN : d == MODEL_AMBIGUOUS ? VERDICT_AMBIGUOUS : VERDICT_UNKNOWN;
}

static int note_like(struct tuning *t, const struct tuned *u, const char *like, struct err *e)
{
    AUTO_BUF struct buf key = BUF_INIT;
    plan_class_key(t->study->plan, &u->row->point, false, &key);
    const char *known = like_of(t, buf_text(&key));
    if (strcmp(like, buf_text(&key)) == 0 || (known && strcmp(known, like) == 0))
        return 0;
    strv_add(&t->likes, buf_text(&key));
    strv_add(&t->likes, like);
    return key.failed || t->likes.failed ? err_sys(e, -ENOMEM, "trial %d", u->trial) : 0;
}

int tuning_verdict(struct tuning *t, int trial, enum model_decision decision, const char *class_key, struct err *e)
{
    struct tuned *u = t ? find(t, trial) : NULL;
    if (!u || decision == MODEL_REFUSED) /* nothing could be compared: the class key alone recognises a job */
        return 0;
    AUTO_FREE char *like = class_key ? strdup(class_key) : NULL; /* what is told may change the model */
    if (class_key && !like)
        return err_sys(e, -ENOMEM, "trial %d", trial);
    int rc = like ? note_like(t, u, like, e) : 0;
    if (rc == 0 && like)
        rc = recall(t, like, e);
    if (rc == 0)
        rc = hand_on(t, u, true, e);
    struct tuner_event ev = { .kind = EV_VERDICT,
                              .trial = trial,
                              .t_s = time_of(u, log_now_ms(u, study_clock_ms(t->study))),
                              .class_key = like,
                              .verdict = like || decision == MODEL_UNKNOWN ? as_verdict(decision) : VERDICT_UNKNOWN };
    return rc < 0 ? rc : tell(t, &ev, e);
}

static int wake(struct tuning *t, struct tuned *u, int64_t now_ms, struct err *e)
{
    double t_s = (log_now_ms(u, now_ms) - u->base_ms) / 1000.0;
    int rc = feed_costed(t, u, false, e);
    if (rc == 0)
        rc = settle_up(t, e);
    if (rc < 0 || !(t_s >= u->wake_s))
        return rc;
    u->wake_s = INFINITY;
    rc = hand_on(t, u, true, e);
    struct tuner_event ev = { .kind = EV_TICK, .trial = u->trial, .t_s = time_of(u, log_now_ms(u, now_ms)) };
    return rc < 0 ? rc : tell(t, &ev, e);
}

int tuning_tick(struct tuning *t, int64_t now_ms, struct err *e)
{
    int rc = t ? settle_up(t, e) : 0; /* what was decided while something was on its way */
    for (size_t i = 0; t && rc == 0 && i < t->n; i++)
        rc = t->trials[i]->row->shared || !t->trials[i]->begun ? 0 : wake(t, t->trials[i], now_ms, e);
    return rc;
}

bool tuning_settled(const struct tuning *t, int trial)
{
    return t && t->policy->settled(t->machine, trial);
}

bool tuning_current(const struct tuning *t, int trial, struct tuner_setting *out)
{
    return t && t->policy->current(t->machine, trial, out);
}

double tuning_cores(const struct tuning *t, struct tuner_setting s)
{
    const struct space *space = &t->study->plan->space;
    struct setting set = choices_setting(t->choices, space, s);
    return setting_number(space, &set, KNOB_CORES, NAN);
}
