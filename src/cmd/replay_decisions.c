/* Every decision of a policy once more, from what it was told, and compared with what was stored when it was taken. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/replay_parts.h"
#include "core/tuner_log.h"
#include "live/study.h"
#include "store/store.h"
#include "store/trace.h"
#include "view/words.h"

/* Where a log and the decisions beside it come from. */
struct source {
    int (*log)(const struct source *s, int (*row)(void *ctx, const char *text), void *ctx, struct err *e);
    int (*decisions)(const struct source *s, int (*row)(void *ctx, const struct store_decision *d), void *ctx,
                     struct err *e);
    const char *name, *policy; /* policy NULL: not known */
    struct store *store;       /* a study's */
    int64_t study;
    const struct trace_tuner *recorded; /* a trace's */
};

/* Both sides of one decision, as texts; kind NULL: that side has none. */
struct side {
    char *kind, *setting, *reason;
    int trial;
    int64_t seq; /* stored ones */
};

struct replay {
    const struct source *source;
    struct tuner_replay tuner;
    bool loaded, logged; /* the stored decisions are there; there was a log */
    struct side *stored;
    size_t n, cap;
    size_t at; /* so many agree */
    bool differs;
    struct side derived;  /* at the difference */
    struct err log_error; /* code 0: none */
    struct err *e;
};

/* --- the stored ones --- */

static void side_done(struct side *s)
{
    free(s->kind);
    free(s->setting);
    free(s->reason);
    *s = (struct side){ 0 };
}

static void replay_done(struct replay *r)
{
    for (size_t i = 0; i < r->n; i++)
        side_done(&r->stored[i]);
    free(r->stored);
    side_done(&r->derived);
    tuner_replay_done(&r->tuner);
}

/* Absent texts are empty ones. */
static int fill_side(struct side *out, const char *kind, int trial, const char *setting, const char *reason)
{
    *out = (struct side){ .kind = strdup(kind),
                          .setting = strdup(setting ? setting : ""),
                          .reason = strdup(reason ? reason : ""),
                          .trial = trial };
    if (out->kind && out->setting && out->reason)
        return 0;
    side_done(out);
    return -ENOMEM;
}

static int keep_stored(void *ctx, const struct store_decision *d)
{
    struct replay *r = ctx;
    if (!tuner_log_is_kind(d->kind))
        return 0;
    struct side *grown = array_more(r->stored, r->n, &r->cap, sizeof *grown);
    if (!grown)
        return err_sys(r->e, -ENOMEM, "decisions");
    r->stored = grown;
    if (fill_side(&r->stored[r->n], d->kind, d->trial, d->setting, d->reason) < 0)
        return err_sys(r->e, -ENOMEM, "decisions");
    r->stored[r->n++].seq = d->seq;
    return 0;
}

static int load(struct replay *r)
{
    if (r->loaded)
        return 0;
    r->loaded = true;
    return r->source->decisions(r->source, keep_stored, r, r->e);
}

/* --- the derived ones --- */

/* A value that the stored setting has is the derived one; a knob that the study has not is in neither. */
static bool same_value(const json_t *setting, const char *name, double derived)
{
    const json_t *stored = json_object_get(setting, name);
    return !stored || json_number_value(stored) == derived;
}

static bool agrees(const struct replay *r, const struct side *stored, const char *kind, int trial,
                   struct tuner_setting at, const char *reason)
{
    if (strcmp(stored->kind, kind) != 0 || stored->trial != trial || strcmp(stored->reason, reason) != 0)
        return false;
    AUTO_JSON json_t *setting = json_loads(stored->setting, 0, NULL);
    const struct tuner_space *s = &r->tuner.space;
    return same_value(setting, "cores", s->cores[at.hot]) && same_value(setting, "memory", s->memory[at.cold]);
}

static int keep_derived(struct replay *r, const char *kind, int trial, struct tuner_setting at, const char *reason)
{
    AUTO_BUF struct buf setting = BUF_INIT;
    char cores[NUM_TEXT_MAX], memory[NUM_TEXT_MAX];
    buf_printf(&setting, "{\"cores\": %s, \"memory\": %s}", num_print(r->tuner.space.cores[at.hot], cores),
               num_print(r->tuner.space.memory[at.cold], memory));
    if (setting.failed || fill_side(&r->derived, kind, trial, buf_text(&setting), reason) < 0)
        return err_sys(r->e, -ENOMEM, "decisions");
    return 0;
}

/* 1: here they part. */
static int compare(void *ctx, const struct tuner_replay *t, const char *kind, int trial, struct tuner_setting at,
                   const char *reason)
{
    struct replay *r = ctx;
    (void)t; /* it is r->tuner */
    if (r->at < r->n && agrees(r, &r->stored[r->at], kind, trial, at, reason)) {
        r->at++;
        return 0;
    }
    r->differs = true;
    int rc = keep_derived(r, kind, trial, at, reason);
    return rc < 0 ? rc : 1;
}

/* The decisions are read within the walk over the log, so that both are of one moment of a store in use. */
static int take_log(void *ctx, const char *text)
{
    struct replay *r = ctx;
    r->logged = true;
    int rc = load(r);
    if (rc < 0)
        return rc;
    struct err why = { 0 };
    rc = tuner_replay_feed(&r->tuner, text, strlen(text), compare, r, &why);
    if (rc >= 0 || !why.code) /* agreed, parted, or explained already */
        return rc;
    if (rc == -ENOMEM)
        return err_set(r->e, rc, "%s", why.text);
    r->differs = true;
    r->log_error = why;
    return 1;
}

static int derive(struct replay *r)
{
    int rc = r->source->log(r->source, take_log, r, r->e);
    if (rc == 0)
        rc = load(r);
    if (rc == 0 && r->at < r->n)
        r->differs = true;
    return rc < 0 ? rc : 0;
}

/* --- printing --- */

static json_t *side_json(const struct side *s)
{
    if (!s->kind)
        return json_null();
    json_t *setting = *s->setting ? json_loads(s->setting, 0, NULL) : NULL;
    return json_pack("{s:i, s:s, s:o, s:s}", "trial", s->trial, "kind", s->kind, "setting",
                     setting ? setting : json_null(), "reason", s->reason);
}

static const struct side *stored_side(const struct replay *r)
{
    static const struct side none = { 0 };
    return r->at < r->n ? &r->stored[r->at] : &none;
}

static json_t *difference_json(const struct replay *r)
{
    if (!r->differs)
        return json_null();
    const struct side *stored = stored_side(r);
    return json_pack("{s:o, s:o, s:o, s:s?}", "seq", stored->kind ? json_integer(stored->seq) : json_null(), "stored",
                     side_json(stored), "derived", side_json(&r->derived), "error",
                     r->log_error.code ? r->log_error.text : NULL);
}

static int print_json(const struct replay *r)
{
    return cmd_print_json(
        json_pack("{s:i, s:b, s:o}", "decisions", (int)r->at, "agree", !r->differs, "difference", difference_json(r)));
}

static void put_side(struct buf *b, const char *name, const struct side *s)
{
    buf_printf(b, "  %-8s ", name);
    if (s->kind) {
        buf_printf(b, "trial %d, %s%s", s->trial, s->kind, *s->setting ? " " : "");
        words_put_plain(b, s->setting);
        buf_puts(b, ": ");
        words_put_plain(b, s->reason);
    } else {
        buf_puts(b, "nothing");
    }
    buf_putc(b, '\n');
}

static int print_text(const struct replay *r)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const struct side *stored = stored_side(r);
    const struct policy *p = r->source->policy ? policy_find(r->source->policy) : NULL;
    if (!r->differs && !r->logged && p && !p->create) {
        buf_printf(&b, "%s: its policy '%s' decides nothing\n", r->source->name, p->name);
        return cmd_print(&b);
    }
    if (!r->differs) {
        buf_printf(&b, "%zu decisions agree\n", r->at);
        return cmd_print(&b);
    }
    buf_printf(&b, "%zu decisions agree, ", r->at);
    if (stored->kind)
        buf_printf(&b, "then number %lld differs\n", (long long)stored->seq);
    else
        buf_puts(&b, "then one is not stored\n");
    put_side(&b, "stored", stored);
    put_side(&b, "derived", &r->derived);
    if (r->log_error.code)
        buf_printf(&b, "  because  %s\n", r->log_error.text);
    return cmd_print(&b);
}

/* Returns the exit code. */
static int replay_source(const struct source *source, bool json, struct err *e)
{
    struct replay r = { .source = source, .e = e };
    int code = derive(&r) < 0 ? cmd_fail(e) : json ? print_json(&r) : print_text(&r);
    if (code == CMD_OK && r.differs)
        code = CMD_NONE;
    replay_done(&r);
    return code;
}

/* --- a study of the store --- */

static int log_of_study(const struct source *s, int (*row)(void *ctx, const char *text), void *ctx, struct err *e)
{
    return store_tuner_log(s->store, s->study, row, ctx, e);
}

static int decisions_of_study(const struct source *s, int (*row)(void *ctx, const struct store_decision *d), void *ctx,
                              struct err *e)
{
    return store_decisions(s->store, s->study, 0, row, ctx, e);
}

static int replay_found(struct store *store, const struct store_study *study, bool json, struct err *e)
{
    AUTO_JSON json_t *config = study->config ? json_loads(study->config, 0, NULL) : NULL;
    const json_t *policy = json_object_get(json_object_get(config, "tuning"), "policy");
    AUTO_BUF struct buf name = BUF_INIT;
    buf_printf(&name, "study '%s'", study->name);
    const struct source source = { .log = log_of_study,
                                   .decisions = decisions_of_study,
                                   .name = buf_text(&name),
                                   .policy = json_string_value(policy),
                                   .store = store,
                                   .study = study->id };
    return replay_source(&source, json, e);
}

static int replay_study(const struct replay_args *o, const char *name, struct err *e)
{
    AUTO_FREE char *path = study_store_path(o->store);
    struct store *store = NULL;
    struct store_study study = { 0 };
    int rc = path ? store_open(&store, path, STORE_READ, e) : err_sys(e, -ENOMEM, "study '%s'", name);
    if (rc == 0)
        rc = store_study_find(store, name, &study, e);
    if (rc == 0)
        rc = err_set(e, -EINVAL, "no study '%s': 'pipetune ls' lists them; a trace ends in .h5", name);
    int code = rc < 0 ? cmd_fail(e) : replay_found(store, &study, o->json, e);
    store_study_done(&study);
    store_close(store);
    return code;
}

/* --- a trace --- */

static int log_of_trace(const struct source *s, int (*row)(void *ctx, const char *text), void *ctx, struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT;
    const struct strv *log = &s->recorded->log;
    int rc = 0;
    for (size_t i = 0; i < log->n && rc == 0; i++) {
        buf_clear(&line);
        buf_puts(&line, log->v[i]);
        buf_putc(&line, '\n');
        rc = line.failed ? err_sys(e, -ENOMEM, "%s", s->name) : row(ctx, buf_text(&line));
    }
    return rc;
}

static int decisions_of_trace(const struct source *s, int (*row)(void *ctx, const struct store_decision *d), void *ctx,
                              struct err *e)
{
    (void)e; /* `row` explains */
    int rc = 0;
    for (size_t i = 0; i < s->recorded->n_decisions && rc == 0; i++) {
        const struct trace_decision *d = &s->recorded->decisions[i];
        rc = row(ctx, &(struct store_decision){ d->seq, d->trial, d->t_s, d->kind, d->setting, d->reason });
    }
    return rc;
}

static int replay_read(const struct trace_tuner *t, const char *path, bool json, struct err *e)
{
    AUTO_BUF struct buf name = BUF_INIT;
    buf_printf(&name, "'%s'", path);
    const struct source source = { .log = log_of_trace,
                                   .decisions = decisions_of_trace,
                                   .name = buf_text(&name),
                                   .policy = t->policy,
                                   .recorded = t };
    return replay_source(&source, json, e);
}

static int replay_trace(const struct replay_args *o, const char *path, struct err *e)
{
    struct trace t = { 0 };
    int rc = trace_read(&t, path, e);
    if (rc == -EPROTO) /* a file that is no trace is the user's to change, not the machine's */
        e->code = rc = -EINVAL;
    if (rc == 0 && !t.tuner.policy)
        rc = err_set(e, -EINVAL, "'%s': this trace holds no tuner log", path);
    int code = rc < 0 ? cmd_fail(e) : replay_read(&t.tuner, path, o->json, e);
    trace_done(&t);
    return code;
}

int replay_decisions(const struct replay_args *o, const char *what, struct err *e)
{
    return replay_is_trace(what) ? replay_trace(o, what, e) : replay_study(o, what, e);
}
