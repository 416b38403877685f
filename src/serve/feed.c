#include "serve/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "live/study.h"
#include "store/news.h"
#include "store/since.h"

enum { BATCH_MAX = 500, QUIET_MS = 10000, CHANGED_MS = 2000 };

struct follower {
    struct feed_at at;
    char *study;      /* NULL: all */
    char *log;        /* whose size is told; NULL: none */
    int64_t log_size; /* -1: not seen yet */
    bool placed;      /* `at` holds */
    bool more;        /* a batch was full */
    bool changed;     /* to be told */
    int64_t spoke_ms, changed_ms;
};

/* What one look at the store finds. */
struct look {
    struct store *store;
    struct follower *f;
    json_t *news;
    const struct store_since *of; /* whose epochs are walked */
    int epoch;                    /* the last of them */
    int n;                        /* rows of this batch */
    bool ended;
    struct err e;
};

/* --- lines of news --- */

static int append(struct look *l, const char *key, json_t *one)
{
    json_t *list = json_object_get(l->news, key);
    if (!list) {
        list = json_array();
        if (json_object_set_new(l->news, key, list) < 0) {
            json_decref(one);
            return -ENOMEM;
        }
    }
    l->n++;
    return json_array_append_new(list, one) < 0 ? -ENOMEM : 0;
}

static int tell_epoch(void *ctx, const struct store_epoch *r)
{
    struct look *l = ctx;
    l->epoch = r->epoch;
    return append(l, "epochs",
                  json_pack("{s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "study", l->of->name, "trial", l->of->number,
                            "attempt", l->of->attempt, "epoch", r->epoch, "metric", json_num(r->metric), "accuracy",
                            json_num(r->accuracy), "loss", json_num(r->loss), "seconds", json_num(r->seconds)));
}

static int tell_attempt(struct look *l, const struct store_since *n)
{
    return append(l, "attempts",
                  json_pack("{s:s, s:i, s:i, s:s, s:s?}", "study", n->name, "trial", n->number, "attempt", n->attempt,
                            "state", n->state, "outcome", n->outcome));
}

static int tell_decision(void *ctx, const struct store_decision *d)
{
    struct look *l = ctx;
    l->f->at.decisions = d->seq;
    return append(l, "decisions",
                  json_pack("{s:I, s:i, s:o, s:s, s:s?}", "seq", (json_int_t)d->seq, "trial", d->trial, "t_s",
                            json_num(d->t_s), "kind", d->kind, "reason", d->reason));
}

/* --- attempts --- */

static int tell_epochs(struct look *l, const struct store_since *n, int from)
{
    l->of = n;
    l->epoch = from;
    return store_epochs_after(l->store, n, from, tell_epoch, l, &l->e);
}

static int look_again(void *ctx, const struct store_since *n)
{
    struct look *l = ctx;
    int rc = tell_epochs(l, n, l->epoch);
    l->ended = strcmp(n->state, "ended") == 0;
    return rc == 0 && l->ended ? tell_attempt(l, n) : rc;
}

/* Those that were under way. */
static int look_at_open(struct look *l)
{
    struct feed_at *at = &l->f->at;
    size_t kept = 0;
    int rc = 0;
    for (size_t i = 0; i < at->n; i++) {
        struct feed_open o = at->open[i];
        l->epoch = o.epoch;
        l->ended = false;
        if (rc >= 0)
            rc = store_attempt_news(l->store, o.attempt, look_again, l, &l->e);
        bool gone = rc == 0; /* removed, with its trial */
        l->f->changed |= gone;
        if (rc < 0 || (rc == 1 && !l->ended))
            at->open[kept++] = (struct feed_open){ o.attempt, l->epoch };
    }
    at->n = kept;
    return rc < 0 ? rc : 0;
}

static int take_new(void *ctx, const struct store_since *n)
{
    struct look *l = ctx;
    int rc = tell_attempt(l, n);
    if (rc == 0)
        rc = tell_epochs(l, n, 0);
    if (rc == 0 && strcmp(n->state, "ended") != 0)
        rc = feed_at_open(&l->f->at, n->id, l->epoch);
    if (rc == 0)
        l->f->at.attempts = n->id;
    return rc;
}

/* --- where it stands --- */

static int skip_epoch(void *ctx, const struct store_epoch *r)
{
    *(int *)ctx = r->epoch;
    return 0;
}

struct place {
    struct store *store;
    struct feed_at *at;
    struct err *e;
};

static int place_open(void *ctx, const struct store_since *n)
{
    struct place *p = ctx;
    int epoch = 0;
    int rc = store_epochs_after(p->store, n, 0, skip_epoch, &epoch, p->e);
    return rc == 0 ? feed_at_open(p->at, n->id, epoch) : rc;
}

/* As it is now; within a read. */
static int place(struct feed_at *at, struct store *s, int64_t study, struct err *e)
{
    struct place p = { s, at, e };
    at->n = 0;
    at->study = study;
    int rc = store_newest(s, study, &at->attempts, &at->decisions, e);
    if (rc == 0)
        rc = store_studies_sum(s, &at->studies, e);
    return rc == 0 ? store_attempts_open(s, study, place_open, &p, e) : rc;
}

int feed_now(struct buf *out, struct store *s, int64_t study, struct err *e)
{
    struct feed_at at = { .n = 0 };
    int rc = store_read_begin(s, e);
    if (rc < 0)
        return rc;
    rc = place(&at, s, study, e);
    store_read_end(s);
    if (rc == 0)
        feed_at_put(out, &at);
    feed_at_done(&at);
    return rc;
}

static void put_event(struct buf *out, const struct feed_at *at, const char *event, const json_t *data)
{
    if (at) {
        buf_puts(out, "id: ");
        feed_at_put(out, at);
        buf_putc(out, '\n');
    }
    buf_printf(out, "event: %s\ndata: ", event);
    json_put(out, data, JSON_STYLE_COMPACT);
    buf_puts(out, "\n\n");
}

static void put_bare(struct buf *out, const struct feed_at *at, const char *event)
{
    AUTO_JSON json_t *none = json_object();
    put_event(out, at, event, none);
}

/* The study's id, 0: all. -ENOENT: there is none of that name. */
static int find_study(struct follower *f, struct store *s, int64_t *out, struct err *e)
{
    struct store_study row = { 0 };
    *out = 0;
    if (!f->study)
        return 0;
    int rc = store_study_find(s, f->study, &row, e);
    *out = row.id;
    store_study_done(&row);
    return rc == 0 ? -ENOENT : rc < 0 ? rc : 0;
}

/* Goes on from where it was, if that is in this store. */
static int place_first(struct follower *f, struct store *s, struct buf *out, struct err *e)
{
    int64_t study, attempt, decision;
    int rc = find_study(f, s, &study, e);
    if (rc == 0)
        rc = store_newest(s, study, &attempt, &decision, e);
    if (rc < 0)
        return rc;
    bool told = f->placed;
    if (told && f->at.study == study && f->at.attempts <= attempt && f->at.decisions <= decision)
        return 0;
    rc = place(&f->at, s, study, e);
    if (rc == 0)
        put_bare(out, &f->at, told ? "reset" : "hello");
    f->placed = rc == 0;
    return rc;
}

/* --- a look --- */

static int look_at(struct look *l)
{
    struct feed_at *at = &l->f->at;
    uint32_t studies;
    int rc = store_studies_sum(l->store, &studies, &l->e);
    if (rc == 0 && studies != at->studies) {
        at->studies = studies;
        rc = json_object_set_new(l->news, "studies", json_true()) < 0 ? -ENOMEM : 0;
        l->n++;
    }
    if (rc == 0)
        rc = look_at_open(l);
    int before = l->n;
    if (rc == 0)
        rc = store_attempts_after(l->store, at->study, at->attempts, BATCH_MAX, take_new, l, &l->e);
    l->f->more = l->n - before >= BATCH_MAX;
    before = l->n;
    if (rc == 0 && at->study)
        rc = store_decisions_after(l->store, at->study, at->decisions, BATCH_MAX, tell_decision, l, &l->e);
    l->f->more |= l->n - before >= BATCH_MAX;
    return rc;
}

static int look(struct follower *f, struct store *s, struct buf *out)
{
    AUTO_JSON json_t *news = json_object();
    struct look l = { .store = s, .f = f, .news = news };
    size_t before = out->len;
    int rc = store_read_begin(s, &l.e);
    if (rc < 0)
        return rc;
    rc = place_first(f, s, out, &l.e);
    if (rc == 0)
        rc = look_at(&l);
    store_read_end(s);
    if (rc == 0 && l.n > 0)
        put_event(out, &f->at, "news", news);
    f->changed |= out->len == before;
    return rc;
}

static void look_at_log(struct follower *f, struct buf *out)
{
    struct stat st;
    if (!f->log || stat(f->log, &st) < 0 || st.st_size == f->log_size)
        return;
    bool first = f->log_size < 0;
    f->log_size = st.st_size;
    if (first)
        return; /* the page has it */
    AUTO_JSON json_t *size = json_pack("{s:I}", "size", (json_int_t)st.st_size);
    put_event(out, NULL, "log", size);
}

/* --- what the server calls --- */

void feed_done(struct feed *s)
{
    store_close(s->store);
    s->store = NULL;
}

void feed_close(void *follower)
{
    struct follower *f = follower;
    feed_at_done(&f->at);
    free(f->study);
    free(f->log);
    free(f);
}

static char *log_path(const struct feed *s, const char *study, long trial)
{
    AUTO_FREE char *dir = study_dir(s->store_path, study);
    char *path = NULL;
    return dir && asprintf(&path, "%s/%ld/log", dir, trial) >= 0 ? path : NULL;
}

void *feed_open(struct feed *s, const struct http_request *q)
{
    struct follower *f = calloc(1, sizeof *f);
    const char *study = http_pairs_get(&q->query, "study"), *after = http_pairs_get(&q->query, "after");
    long trial = http_pairs_number(&q->query, "trial", 1, INT32_MAX, 0);
    if (!f)
        return NULL;
    *f = (struct follower){ .study = study && *study ? strdup(study) : NULL, .log_size = -1 };
    if (study && *study && !f->study) {
        feed_close(f);
        return NULL;
    }
    if (f->study && trial > 0 && !strchr(f->study, '/'))
        f->log = log_path(s, f->study, trial); /* without memory for it, its size is not told */
    const char *from = q->last_event ? q->last_event : after;
    f->placed = from && feed_at_parse(&f->at, from) == 0;
    return f;
}

bool feed_begin(struct feed *s)
{
    struct err e;
    int64_t version = 0;
    if (!s->store && store_open(&s->store, s->store_path, STORE_READ, &e) < 0)
        return false; /* it comes with the first study */
    if (news_version(s->store, &version, &e) < 0) {
        feed_done(s);
        return false;
    }
    bool news = version != s->version;
    s->version = version;
    return news;
}

static void put_changed(struct follower *f, int64_t now_ms, struct buf *out)
{
    if (!f->changed || now_ms - f->changed_ms < CHANGED_MS)
        return;
    put_bare(out, NULL, "changed");
    f->changed = false;
    f->changed_ms = now_ms;
}

int feed_beat(struct feed *s, void *follower, bool news, struct buf *out)
{
    struct follower *f = follower;
    int64_t now_ms = clock_ms();
    bool first = f->spoke_ms == 0;
    int rc = 0;
    if (first)
        buf_puts(out, "retry: 2000\n\n");
    if (s->store && (news || f->more))
        rc = look(f, s->store, out);
    if (first)
        f->changed = false; /* the page is younger than that */
    look_at_log(f, out);
    put_changed(f, now_ms, out);
    if (out->len == 0 && now_ms - f->spoke_ms >= QUIET_MS)
        buf_puts(out, ":\n\n");
    if (out->len > 0 || first)
        f->spoke_ms = now_ms;
    return rc == -EBUSY ? 0 : rc;
}
