#include "live/handing.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/array.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/json.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/sha256.h"
#include "live/study.h"
#include "monitoring/mlflow.h"
#include "store/handed.h"
#include "store/notes.h"

enum { DECISIONS_MOST = 50, TEXT_MAX = 1000, MARK_MAX = SHA256_HEX_MAX + 16 };

static const char mark_tag[] = "pipetune.run"; /* by which a run of ours is found again */

struct handing {
    struct mlflow *server;
    struct store *store;
    struct store_study study;
    char *path, *name, *experiment, *target; /* of the store; the study's; on the server */
    int lock_fd;
    char experiment_id[MLFLOW_ID_MAX]; /* "": not asked yet */
    char parent_id[MLFLOW_ID_MAX];
    handing_joules *joules;
    void *ctx;
    struct handing_counts counts;
};

/* --- opening --- */

struct handing_cfg handing_cfg_of(const struct config *c)
{
    return (struct handing_cfg){ .url = c->mlflow_url,
                                 .experiment = c->mlflow_experiment,
                                 .credential_file = c->mlflow_credential_file,
                                 .ca_file = c->mlflow_ca_file,
                                 .allow_plain = c->mlflow_allow_plain_http };
}

static int connect_to(struct mlflow **out, const struct handing_cfg *cfg, struct err *e)
{
    const struct mlflow_cfg to = { cfg->url, cfg->credential_file, cfg->ca_file, cfg->allow_plain, cfg->timeout_ms };
    return mlflow_new(out, &to, e);
}

int handing_check(const struct handing_cfg *cfg, struct err *e)
{
    struct mlflow *server = NULL;
    int rc = connect_to(&server, cfg, e);
    mlflow_free(server);
    return rc;
}

static int take_lock(struct handing *h, const char *dir, struct err *e)
{
    AUTO_FREE char *path = io_join(dir, "handing.lock");
    if (!path)
        return err_sys(e, -ENOMEM, "study '%s'", h->name);
    h->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (h->lock_fd < 0)
        return err_set(e, -errno, "cannot open '%s'", path);
    if (flock(h->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return err_set(e, -EBUSY, "study '%s' is being handed on by another process: let it, or end it", h->name);
}

static int copy_texts(struct handing *h, const struct handing_cfg *cfg, const char *store, const char *study)
{
    h->path = strdup(store);
    h->name = strdup(study);
    h->experiment = strdup(cfg->experiment ? cfg->experiment : "pipetune");
    if (!h->path || !h->name || !h->experiment || asprintf(&h->target, "%s %s", cfg->url, h->experiment) < 0) {
        h->target = NULL;
        return -ENOMEM;
    }
    return 0;
}

int handing_open(struct handing **out, const struct handing_cfg *cfg, const char *store, const char *study,
                 const char *dir, handing_joules *joules, void *ctx, struct err *e)
{
    struct handing *h = calloc(1, sizeof *h);
    if (!h)
        return err_sys(e, -ENOMEM, "study '%s'", study);
    *h = (struct handing){ .lock_fd = -1, .joules = joules, .ctx = ctx };
    int rc = copy_texts(h, cfg, store, study);
    if (rc < 0)
        (void)err_sys(e, rc, "study '%s'", study);
    if (rc == 0)
        rc = connect_to(&h->server, cfg, e);
    if (rc == 0)
        rc = take_lock(h, dir, e);
    if (rc == 0)
        rc = store_open(&h->store, store, STORE_WRITE, e);
    if (rc < 0) {
        handing_free(h);
        return rc;
    }
    *out = h;
    return 0;
}

void handing_free(struct handing *h)
{
    if (!h)
        return;
    store_study_done(&h->study);
    store_close(h->store);
    mlflow_free(h->server);
    if (h->lock_fd >= 0)
        (void)close(h->lock_fd);
    free(h->path);
    free(h->name);
    free(h->experiment);
    free(h->target);
    free(h);
}

struct handing_counts handing_counts(const struct handing *h)
{
    return h->counts;
}

/* --- asking --- */

/* 0: *out tells; -EAGAIN: not now. */
static int ask(struct handing *h, const char *path, const struct buf *body, struct mlflow_answer *out, struct err *e)
{
    h->counts.requests++;
    mlflow_ask(h->server, path, body, out);
    if (out->kind != MLFLOW_LATER)
        return 0;
    mlflow_answer_done(out);
    return err_set(e, -EAGAIN, "MLflow: %s", out->text);
}

static void note_refused(struct handing *h, uint64_t n, const struct mlflow_answer *a)
{
    h->counts.refused += n;
    (void)snprintf(h->counts.why, sizeof h->counts.why, "%s", a->text);
}

static int no_id(struct err *e, const char *what)
{
    return err_set(e, -EAGAIN, "MLflow: the server tells no id of %s", what);
}

static int ask_experiment(struct handing *h, struct mlflow_answer *a, struct err *e)
{
    AUTO_BUF struct buf body = BUF_INIT;
    mlflow_put_experiment(&body, h->experiment);
    return ask(h, "experiments/create", &body, a, e);
}

static int find_experiment(struct handing *h, struct mlflow_answer *a, struct err *e)
{
    AUTO_BUF struct buf path = BUF_INIT;
    mlflow_put_named_experiment(&path, h->experiment);
    return path.failed ? err_sys(e, -ENOMEM, "study '%s'", h->name) : ask(h, buf_text(&path), NULL, a, e);
}

/* Found, else made; another one may make it meanwhile. */
static int need_experiment(struct handing *h, struct err *e)
{
    struct mlflow_answer a = { 0 };
    if (*h->experiment_id)
        return 0;
    int rc = find_experiment(h, &a, e);
    if (rc == 0 && a.kind == MLFLOW_ABSENT) {
        mlflow_answer_done(&a);
        rc = store_handed_forget(h->store, h->study.id, h->target, e); /* what it had, it has lost */
        rc = rc < 0 ? rc : ask_experiment(h, &a, e);
    }
    if (rc < 0)
        return rc;
    bool known = a.kind == MLFLOW_DONE && mlflow_experiment_id(a.body, h->experiment_id);
    mlflow_answer_done(&a);
    if (known)
        return 0;
    return a.kind == MLFLOW_DONE ? no_id(e, "the experiment")
                                 : err_set(e, -EAGAIN, "MLflow: experiment '%s': %s", h->experiment, a.text);
}

/* --- runs --- */

/* A trial, or the study, while it is handed on. */
struct piece {
    struct handing *h;
    struct handed row;           /* as it is committed; its texts are owned */
    const struct store_trial *t; /* NULL: the study itself */
    bool over;
    int64_t begun_ms, ended_ms; /* 0: not known */
    int last_epoch;
};

/* Commits it; `row.run_id` and the like are texts of the caller. */
static int keep(struct piece *p, struct err *e)
{
    return store_handed_put(p->h->store, &p->row, e);
}

static int set_text(const char **field, const char *text, struct err *e)
{
    char *copy = strdup(text);
    if (!copy)
        return err_sys(e, -ENOMEM, "cannot hand on a study");
    free((char *)(uintptr_t)*field);
    *field = copy;
    return 0;
}

/* The same for the same study of the same store, whoever asks; and for no other one. */
static void put_mark(const struct piece *p, char out[MARK_MAX])
{
    AUTO_BUF struct buf whose = BUF_INIT;
    char hex[SHA256_HEX_MAX] = "";
    struct sha256 sum;
    buf_printf(&whose, "%s\n%lld\n%lld\n%s", p->h->study.name, (long long)p->h->study.created_ms,
               (long long)p->h->study.seed, p->h->study.space_hash ? p->h->study.space_hash : "");
    sha256_init(&sum);
    sha256_add(&sum, buf_text(&whose), whose.len);
    sha256_hex(&sum, hex);
    (void)snprintf(out, MARK_MAX, "%.32s-%d", hex, p->row.trial);
}

static int find_run(struct piece *p, struct err *e)
{
    char mark[MARK_MAX], id[MLFLOW_ID_MAX];
    AUTO_BUF struct buf body = BUF_INIT;
    struct mlflow_answer a;
    put_mark(p, mark);
    mlflow_put_search(&body, p->h->experiment_id, mark_tag, mark);
    int rc = ask(p->h, "runs/search", &body, &a, e);
    if (rc < 0)
        return rc;
    bool found = a.kind == MLFLOW_DONE && mlflow_found_id(a.body, id);
    mlflow_answer_done(&a);
    if (a.kind != MLFLOW_DONE)
        return err_set(e, -EAGAIN, "MLflow: cannot look for run '%s': %s", mark, a.text);
    return found ? set_text(&p->row.run_id, id, e) : 0;
}

static int ask_run(struct piece *p, struct mlflow_answer *a, struct err *e)
{
    char mark[MARK_MAX], name[300];
    AUTO_BUF struct buf body = BUF_INIT;
    put_mark(p, mark);
    const struct mlflow_pair tags[] = { { mark_tag, mark },
                                        { "mlflow.source.name", "pipetune" },
                                        { "mlflow.parentRunId", p->h->parent_id } };
    if (p->t)
        (void)snprintf(name, sizeof name, "%s/%d", p->h->study.name, p->t->number);
    else
        (void)snprintf(name, sizeof name, "%s", p->h->study.name);
    mlflow_put_run(&body, p->h->experiment_id, name, p->begun_ms, tags, ARRAY_LEN(tags) - !p->t);
    return ask(p->h, "runs/create", &body, a, e);
}

static int make_run(struct piece *p, struct err *e)
{
    char id[MLFLOW_ID_MAX];
    struct mlflow_answer a;
    int rc = ask_run(p, &a, e);
    if (rc < 0)
        return rc;
    failpoint("handing-run-made");
    bool made = a.kind == MLFLOW_DONE && mlflow_run_id(a.body, id);
    mlflow_answer_done(&a);
    if (!made)
        return a.kind == MLFLOW_DONE ? no_id(e, "a run") : err_set(e, -EAGAIN, "MLflow: cannot make a run: %s", a.text);
    p->h->counts.runs++;
    return set_text(&p->row.run_id, id, e);
}

/* What may have been made before a kill is looked for first. */
static int need_run(struct piece *p, struct err *e)
{
    int rc = 0;
    if (*p->row.run_id)
        return 0;
    if (p->row.sending == HANDED_RUN)
        rc = find_run(p, e);
    p->row.sending = HANDED_RUN;
    if (rc == 0 && !*p->row.run_id)
        rc = keep(p, e);
    if (rc == 0 && !*p->row.run_id)
        rc = make_run(p, e);
    if (rc < 0)
        return rc;
    p->row.sending = HANDED_NONE;
    return keep(p, e);
}

/* --- batches --- */

struct item {
    char key[MLFLOW_KEY_MAX + 1];
    double value;
    int64_t at_ms, step;
    bool there; /* the server has it */
};

struct items {
    struct item *v;
    size_t n, cap;
};

static struct item *add_item(struct items *l, const char *key)
{
    struct item *grown = array_more(l->v, l->n, &l->cap, sizeof *grown);
    if (!grown)
        return NULL;
    l->v = grown;
    l->v[l->n] = (struct item){ .value = NAN };
    mlflow_key(l->v[l->n].key, key);
    return &l->v[l->n++];
}

struct looking {
    struct items *l;
    const char *key;
    bool by_time; /* a step may have several */
};

static void is_there(void *ctx, int64_t step, int64_t at_ms)
{
    const struct looking *k = ctx;
    for (size_t i = 0; i < k->l->n; i++) {
        struct item *p = &k->l->v[i];
        if (p->step == step && (!k->by_time || p->at_ms == at_ms) && strcmp(p->key, k->key) == 0)
            p->there = true;
    }
}

static int look_at_history(struct piece *p, struct looking *k, struct err *e)
{
    char token[256] = "";
    do {
        AUTO_BUF struct buf path = BUF_INIT;
        struct mlflow_answer a;
        mlflow_put_history(&path, p->row.run_id, k->key, token);
        int rc = path.failed ? err_sys(e, -ENOMEM, "cannot hand on a study") : ask(p->h, buf_text(&path), NULL, &a, e);
        if (rc < 0)
            return rc;
        const char *next = a.kind == MLFLOW_DONE ? mlflow_history(a.body, is_there, k) : "";
        bool same = strcmp(next, token) == 0; /* a server that does not turn pages */
        (void)snprintf(token, sizeof token, "%s", same ? "" : next);
        mlflow_answer_done(&a);
    } while (*token);
    return 0;
}

static bool is_first_of_key(const struct items *l, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(l->v[k].key, l->v[i].key) == 0)
            return false;
    return true;
}

/* A batch that may have arrived before a kill, or whose answer was lost: what of it the server has is not sent again. */
static int heal(struct piece *p, struct items *l, bool by_time, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        struct looking k = { l, l->v[i].key, by_time };
        if (is_first_of_key(l, i))
            rc = look_at_history(p, &k, e);
    }
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        p->h->counts.healed += l->v[i].there;
    return rc;
}

/* The server has lost it: from the beginning, with the next round. */
static int begin_anew(struct piece *p, const struct mlflow_answer *a, struct err *e)
{
    int rc = set_text(&p->row.run_id, "", e);
    if (rc == 0)
        rc = set_text(&p->row.status, "", e);
    if (rc == 0)
        rc = set_text(&p->row.name, "", e);
    p->row.sending = HANDED_NONE;
    p->row.described = p->row.done = false;
    p->row.joules = NAN;
    p->row.epoch = 0;
    p->row.step = p->row.seq = 0;
    if (rc == 0)
        rc = keep(p, e);
    return rc < 0 ? rc : err_set(e, -EAGAIN, "MLflow: a run is not there any more, and is made again: %s", a->text);
}

static int send_batch(struct piece *p, const struct items *l, struct mlflow_batch *batch, struct err *e)
{
    struct mlflow_metric *metrics = calloc(l->n + 1, sizeof *metrics);
    AUTO_BUF struct buf body = BUF_INIT;
    struct mlflow_answer a;
    if (!metrics)
        return err_sys(e, -ENOMEM, "cannot hand on a study");
    for (size_t i = 0; i < l->n; i++)
        if (!l->v[i].there)
            metrics[batch->n_metrics++] =
                (struct mlflow_metric){ l->v[i].key, l->v[i].value, l->v[i].at_ms, l->v[i].step };
    batch->metrics = metrics;
    mlflow_put_batch(&body, p->row.run_id, batch);
    free(metrics);
    size_t n = batch->n_metrics + batch->n_params + batch->n_tags;
    int rc = n ? ask(p->h, "runs/log-batch", &body, &a, e) : 0;
    if (rc < 0 || !n)
        return rc;
    if (a.kind == MLFLOW_DONE)
        p->h->counts.values += batch->n_metrics;
    else if (a.kind == MLFLOW_ABSENT)
        rc = begin_anew(p, &a, e);
    else
        note_refused(p->h, n, &a);
    mlflow_answer_done(&a);
    return rc;
}

/* Points are kept twice where they are sent twice; parameters and tags are not. Says that it is being sent, sends it, and leaves it to the caller to say how far that came. */
static int deliver(struct piece *p, enum handed_sending what, struct items *l, struct mlflow_batch *batch,
                   struct err *e)
{
    int rc = 0;
    if (p->row.sending == (int)what)
        rc = heal(p, l, what == HANDED_DECISIONS, e);
    p->row.sending = (int)what;
    if (rc == 0)
        rc = keep(p, e);
    if (rc == 0)
        rc = send_batch(p, l, batch, e);
    if (batch->n_metrics > 0)
        failpoint("handing-batch-sent");
    if (rc == 0)
        p->row.sending = HANDED_NONE;
    return rc;
}

/* --- values --- */

struct taking {
    struct piece *p;
    struct items l;
    int epoch;
    char name[SERIES_NAME_MAX];
    int64_t step;
};

static int take_value(void *ctx, const struct store_value *r)
{
    struct taking *k = ctx;
    char key[SERIES_NAME_MAX + 16];
    (void)snprintf(key, sizeof key, "%s%s", r->step ? "iteration/" : "", r->name);
    struct item *point = add_item(&k->l, key);
    if (!point)
        return -ENOMEM;
    point->value = r->value;
    point->at_ms = r->at_ms;
    point->step = r->step ? r->step : r->epoch;
    k->epoch = r->epoch;
    k->step = r->step;
    (void)snprintf(k->name, sizeof k->name, "%s", r->name);
    return 0;
}

static int move_cursor(struct piece *p, const struct taking *k, struct err *e)
{
    int rc = set_text(&p->row.name, k->name, e);
    p->row.epoch = k->epoch;
    p->row.step = k->step;
    return rc;
}

/* 1: there may be more. Of the newest epoch something may still be told, until the next one or the trial is over. */
static int hand_values(struct piece *p, struct err *e)
{
    struct taking k = { .p = p };
    struct mlflow_batch batch = { 0 };
    int upto = p->over ? p->last_epoch : p->last_epoch - 1;
    if (upto < 1)
        return 0;
    int rc = store_handed_values(p->h->store, p->t->id, &p->row, upto, MLFLOW_METRICS_MAX, take_value, &k, e);
    if (rc == -ENOMEM && !e->code)
        (void)err_sys(e, rc, "cannot hand on a study");
    bool some = rc == 0 && k.l.n > 0;
    if (some)
        rc = deliver(p, HANDED_VALUES, &k.l, &batch, e);
    if (rc == 0 && some)
        rc = move_cursor(p, &k, e);
    if (rc == 0 && some)
        rc = keep(p, e);
    bool full = k.l.n == MLFLOW_METRICS_MAX;
    free(k.l.v);
    return rc < 0 ? rc : full;
}

/* --- decisions --- */

struct deciding {
    struct piece *p;
    struct items l;
    struct mlflow_pair tags[DECISIONS_MOST];
    char keys[DECISIONS_MOST][40];
    struct buf texts[DECISIONS_MOST];
    size_t n;
    int64_t seq;
};

static int count_before(void *ctx, const struct store_epoch *r)
{
    struct item *point = ctx; /* the newest epoch that had ended by then */
    point->step = r->end_ms && r->end_ms <= point->at_ms && r->epoch > point->step ? r->epoch : point->step;
    return 0;
}

static int take_knob(struct deciding *k, const char *knob, const json_t *value, int64_t at_ms)
{
    char key[MLFLOW_KEY_MAX + 1];
    if (!json_is_number(value))
        return 0;
    (void)snprintf(key, sizeof key, "system/%s", knob);
    struct item *point = add_item(&k->l, key);
    if (!point)
        return -ENOMEM;
    point->value = json_number_value(value);
    point->at_ms = at_ms;
    const struct store_trial *t = k->p->t;
    return store_epochs(k->p->h->store, t->id, count_before, point, NULL) < 0 ? -EIO : 0;
}

/* A setting that was launched with, or applied, is in force from then on. */
static int take_setting(struct deciding *k, const struct store_decision *d, int64_t at_ms)
{
    AUTO_JSON json_t *setting = d->setting ? json_loads(d->setting, 0, NULL) : NULL;
    const char *knob;
    json_t *value;
    int rc = 0;
    if (!k->p->t || (strcmp(d->kind, "launch") != 0 && strcmp(d->kind, "apply") != 0))
        return 0;
    json_object_foreach(setting, knob, value) rc = rc < 0 ? rc : take_knob(k, knob, value, at_ms);
    return rc;
}

static int take_decision(void *ctx, const struct store_decision *d)
{
    struct deciding *k = ctx;
    struct buf *text = &k->texts[k->n];
    double t_s = isfinite(d->t_s) ? d->t_s : 0;
    (void)snprintf(k->keys[k->n], sizeof k->keys[0], "pipetune.decision.%06lld", (long long)d->seq);
    buf_printf(text, "%.1f s: %s", t_s, d->kind);
    if (d->reason)
        buf_printf(text, ": %s", d->reason);
    if (d->setting)
        buf_printf(text, " %s", d->setting);
    if (text->failed)
        return -ENOMEM;
    k->tags[k->n] = (struct mlflow_pair){ k->keys[k->n], buf_text(text) };
    k->n++;
    k->seq = d->seq;
    return take_setting(k, d, k->p->h->study.created_ms + (int64_t)(t_s * 1000));
}

/* 1: there may be more. Points with the same name and time are one for the server. */
static int hand_decisions(struct piece *p, struct err *e)
{
    struct deciding *k = calloc(1, sizeof *k);
    if (!k)
        return err_sys(e, -ENOMEM, "cannot hand on a study");
    k->p = p;
    int rc = store_handed_decisions(p->h->store, p->row.study, p->row.trial, p->row.seq, DECISIONS_MOST, take_decision,
                                    k, e);
    if (rc < 0 && !e->code)
        (void)err_sys(e, rc, "cannot hand on decisions");
    struct mlflow_batch batch = { .tags = k->tags, .n_tags = k->n };
    if (rc == 0 && k->n > 0)
        rc = deliver(p, HANDED_DECISIONS, &k->l, &batch, e);
    if (rc == 0 && k->n > 0) {
        p->row.seq = k->seq;
        rc = keep(p, e);
    }
    bool full = k->n == DECISIONS_MOST;
    for (size_t i = 0; i < DECISIONS_MOST; i++)
        buf_done(&k->texts[i]);
    free(k->l.v);
    free(k);
    return rc < 0 ? rc : full;
}

/* --- what it is --- */

/* Scalars of an object as pairs: the server takes texts. */
struct describing {
    struct mlflow_pair v[MLFLOW_PARAMS_MAX];
    char keys[MLFLOW_PARAMS_MAX][MLFLOW_KEY_MAX + 1];
    struct buf values[MLFLOW_PARAMS_MAX];
    size_t n;
};

static void describe(struct describing *d, const char *prefix, const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (d->n == MLFLOW_PARAMS_MAX || json_is_object(value) || json_is_null(value))
            continue;
        struct buf *text = &d->values[d->n];
        (void)snprintf(d->keys[d->n], sizeof d->keys[0], "%s%s", prefix, key);
        if (json_is_string(value))
            buf_puts(text, json_string_value(value));
        else
            json_put(text, value, JSON_STYLE_COMPACT);
        d->v[d->n] = (struct mlflow_pair){ d->keys[d->n], buf_text(text) };
        d->n++;
    }
}

/* Of the study what it is about and how it goes; of a trial its point. */
static void describe_piece(struct describing *d, const struct piece *p)
{
    static const char *const sections[] = { "study", "search", "tuning" };
    const char *text = p->t ? p->t->hyper : p->h->study.config;
    AUTO_JSON json_t *all = text ? json_loads(text, 0, NULL) : NULL;
    if (p->t) {
        describe(d, "", all);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        char prefix[32];
        (void)snprintf(prefix, sizeof prefix, "%s.", sections[i]);
        describe(d, prefix, json_object_get(all, sections[i]));
    }
    json_t *objective = json_object_get(all, "objective");
    if (objective) {
        AUTO_JSON json_t *one = json_pack("{s:O}", "objective", objective);
        describe(d, "", one);
    }
}

static int put_note(void *ctx, const struct store_note *r)
{
    buf_printf(ctx, "%s%s", ((struct buf *)ctx)->len ? "\n" : "", r->text);
    return 0;
}

static size_t describe_origin(const struct piece *p, const json_t *provenance, struct mlflow_pair tags[4])
{
    static const struct {
        const char *tag, *key;
    } from[] = { { "mlflow.user", "user" }, { "mlflow.source.git.commit", "commit" }, { "pipetune.host", "host" } };
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        const char *value = json_string_value(json_object_get(provenance, from[i].key));
        if (value && *value)
            tags[n++] = (struct mlflow_pair){ from[i].tag, value };
    }
    tags[n++] = (struct mlflow_pair){ "pipetune.study", p->h->study.name };
    return n;
}

static int hand_description(struct piece *p, struct err *e)
{
    struct mlflow_pair tags[5];
    const char *text = p->h->study.provenance;
    if (p->row.described)
        return 0;
    AUTO_JSON json_t *provenance = text ? json_loads(text, 0, NULL) : NULL;
    AUTO_BUF struct buf notes = BUF_INIT;
    struct describing *d = calloc(1, sizeof *d);
    struct items none = { 0 };
    int rc = d ? store_notes(p->h->store, p->row.study, p->row.trial, put_note, &notes, e)
               : err_sys(e, -ENOMEM, "cannot hand on a study");
    if (rc == 0)
        describe_piece(d, p);
    size_t n = describe_origin(p, provenance, tags);
    if (notes.len)
        tags[n++] = (struct mlflow_pair){ "mlflow.note.content", buf_text(&notes) };
    if (rc == 0) {
        struct mlflow_batch batch = { .params = d->v, .n_params = d->n, .tags = tags, .n_tags = n };
        rc = send_batch(p, &none, &batch, e);
    }
    for (size_t i = 0; d && i < MLFLOW_PARAMS_MAX; i++)
        buf_done(&d->values[i]);
    free(d);
    p->row.described = rc == 0;
    return rc == 0 ? keep(p, e) : rc;
}

/* --- its end --- */

static const char *status_of(const char *state)
{
    static const struct {
        const char *state, *status;
    } words[] = { { "finished", "FINISHED" },
                  { "incomplete", "FINISHED" },
                  { "stopped", "FINISHED" },
                  { "failed", "FAILED" },
                  { "infeasible", "FAILED" } };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i].state, state) == 0)
            return words[i].status;
    return "RUNNING";
}

static int hand_status(struct piece *p, struct err *e)
{
    const char *status = status_of(p->t ? p->t->state : p->h->study.state);
    AUTO_BUF struct buf body = BUF_INIT;
    struct mlflow_answer a;
    if (strcmp(p->row.status, status) == 0)
        return 0;
    mlflow_put_status(&body, p->row.run_id, status, p->over ? p->ended_ms : 0);
    int rc = ask(p->h, "runs/update", &body, &a, e);
    if (rc < 0)
        return rc;
    if (a.kind == MLFLOW_ABSENT)
        rc = begin_anew(p, &a, e);
    else if (a.kind != MLFLOW_DONE)
        note_refused(p->h, 1, &a);
    mlflow_answer_done(&a);
    rc = rc < 0 ? rc : set_text(&p->row.status, status, e);
    return rc == 0 ? keep(p, e) : rc;
}

/* 1: they are told, or there are none; 0: not yet. */
static int hand_joules(struct piece *p, struct err *e)
{
    double j = NAN;
    struct items l = { 0 };
    struct mlflow_batch batch = { 0 };
    if (!p->over || !isnan(p->row.joules))
        return p->over;
    int known = p->h->joules ? p->h->joules(p->h->ctx, p->row.trial, &j) : 0;
    if (known != 1 || !isfinite(j))
        return known != -EAGAIN;
    struct item *point = add_item(&l, "system/energy_joules");
    if (!point)
        return err_sys(e, -ENOMEM, "cannot hand on a study");
    point->value = j;
    point->at_ms = p->ended_ms;
    point->step = p->last_epoch;
    int rc = deliver(p, HANDED_JOULES, &l, &batch, e);
    free(l.v);
    p->row.joules = rc == 0 ? j : p->row.joules;
    return rc < 0 ? rc : (rc = keep(p, e)) < 0 ? rc : 1;
}

/* --- a piece, all of them --- */

static int open_piece(struct piece *p, struct err *e)
{
    struct handed *row = &p->row;
    int trial = p->t ? p->t->number : 0;
    int rc = store_handed_get(p->h->store, p->h->study.id, p->h->target, trial, row, e);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    *row = (struct handed){ .study = p->h->study.id, .trial = trial, .joules = NAN };
    rc = set_text(&row->target, p->h->target, e);
    const char **texts[] = { &row->run_id, &row->status, &row->name };
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(texts); i++)
        rc = set_text(texts[i], "", e);
    return rc;
}

/* What a run was begun before its end was told of stays open until that is all told, too. */
static int hand_piece(struct piece *p, struct err *e)
{
    int rc = need_run(p, e);
    if (rc == 0)
        rc = hand_description(p, e);
    do
        rc = rc < 0 ? rc : p->t ? hand_values(p, e) : 0;
    while (rc > 0);
    do
        rc = rc < 0 ? rc : hand_decisions(p, e);
    while (rc > 0);
    int told = rc == 0 && p->t ? hand_joules(p, e) : rc == 0;
    rc = told < 0 ? told : rc;
    if (rc == 0)
        rc = hand_status(p, e);
    bool done = p->over && told > 0;
    if (rc < 0 || p->row.done == done)
        return rc;
    p->row.done = done;
    return keep(p, e);
}

static int run_piece(struct piece *p, struct err *e)
{
    int rc = open_piece(p, e);
    if (rc == 0)
        rc = hand_piece(p, e);
    if (rc == 0 && !p->t)
        (void)snprintf(p->h->parent_id, sizeof p->h->parent_id, "%s", p->row.run_id);
    handed_done(&p->row);
    return rc;
}

static int hand_study(struct handing *h, struct err *e)
{
    struct piece p = { .h = h,
                       .over = strcmp(status_of(h->study.state), "RUNNING") != 0,
                       .begun_ms = h->study.created_ms,
                       .ended_ms = h->study.ended_ms };
    return run_piece(&p, e);
}

static int see_attempt(void *ctx, const struct store_attempt *a)
{
    struct piece *p = ctx;
    p->begun_ms = p->begun_ms ? p->begun_ms : a->started_ms;
    p->ended_ms = a->ended_ms ? a->ended_ms : p->ended_ms;
    return 0;
}

static int copy_trial(void *ctx, const struct store_trial *t)
{
    return store_trial_copy(ctx, t);
}

/* The walk is over before anything is asked: one that is open would keep what others write from being seen, and us from writing. */
static int hand_trial(struct handing *h, int number, struct err *e)
{
    struct store_trial t = { 0 };
    struct piece p = { .h = h, .t = &t };
    int rc = store_trials(h->store, h->study.id, number, copy_trial, &t, e);
    if (rc == 0 && t.state)
        rc = store_attempts(h->store, t.id, see_attempt, &p, e);
    if (rc == 0 && t.state)
        rc = store_last_epoch(h->store, t.id, &p.last_epoch, e);
    p.begun_ms = p.begun_ms ? p.begun_ms : h->study.created_ms;
    p.ended_ms = p.ended_ms ? p.ended_ms : p.begun_ms;
    p.over = t.state && strcmp(status_of(t.state), "RUNNING") != 0;
    if (rc == -ENOMEM && !e->code)
        (void)err_sys(e, rc, "study '%s'", h->name);
    rc = rc == 0 && t.state ? run_piece(&p, e) : rc;
    store_trial_done(&t);
    return rc;
}

struct numbers {
    int *v;
    size_t n, cap;
};

static int take_number(void *ctx, int trial)
{
    struct numbers *l = ctx;
    int *grown = array_more(l->v, l->n, &l->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    l->v = grown;
    l->v[l->n++] = trial;
    return 0;
}

static int hand_trials(struct handing *h, struct err *e)
{
    struct numbers l = { 0 };
    int rc = store_handed_open(h->store, h->study.id, h->target, take_number, &l, e);
    if (rc == -ENOMEM && !e->code)
        (void)err_sys(e, rc, "study '%s'", h->name);
    for (size_t i = 0; rc == 0 && i < l.n; i++)
        rc = hand_trial(h, l.v[i], e);
    free(l.v);
    return rc;
}

int handing_round(struct handing *h, struct err *e)
{
    e->code = 0;
    store_study_done(&h->study);
    h->study = (struct store_study){ 0 };
    int rc = store_study_find(h->store, h->name, &h->study, e);
    if (rc == 0)
        return err_set(e, -EINVAL, "no study '%s'", h->name);
    rc = rc < 0 ? rc : need_experiment(h, e);
    if (rc == 0)
        rc = hand_study(h, e);
    return rc == 0 ? hand_trials(h, e) : rc;
}
