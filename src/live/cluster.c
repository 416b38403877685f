#include "live/cluster.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/resize.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/http.h"
#include "base/io.h"
#include "base/own.h"

enum {
    ANSWER_MAX = 32 << 20,
    FILE_MAX = 1 << 20,
    TOKEN_MAX = 16 << 10,
    TIMEOUT_MS = 3000,
    END_FOR_MS = 300000, /* what is left behind is asked to end so long */
};

/* --- where it is ------------------------------------------------------------------------------------------------------------ */

void cluster_at_done(struct cluster_at *at)
{
    strv_done(&at->bases);
    free(at->space);
    free(at->token_file);
    free(at->ca);
    free(at->user);
    free(at->part);
    *at = (struct cluster_at){ 0 };
}

static const char *filled(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* What the environment says, else the application, else the row, where that is there. */
static int find_file(char **out, const char *name, const char *said, const char *usual, struct err *e)
{
    const char *path = filled(name) ? filled(name) : said ? said : usual && io_exists(usual) ? usual : NULL;
    if (!path)
        return 0;
    if (!io_exists(path))
        return err_set(e, -ENOENT, "%s names '%s', which is not there", filled(name) ? name : "the application", path);
    *out = strdup(path);
    return *out ? 0 : err_sys(e, -ENOMEM, "'%s'", path);
}

/* It becomes a part of addresses. */
static bool is_space(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name);
}

static int find_space(char **out, const struct cluster_row *row, const char *said, struct err *e)
{
    enum { SPACE_MAX = 256 };
    AUTO_BUF struct buf value = BUF_INIT;
    const char *given = row->space_env ? filled(row->space_env) : NULL;
    if (!row->space)
        return 0;
    if (given || said)
        buf_puts(&value, given ? given : said);
    else if (row->space_file && io_exists(row->space_file) && io_read_file(&value, row->space_file, SPACE_MAX, e) < 0)
        return e->code;
    while (value.len > 0 && value.data[value.len - 1] == '\n')
        buf_cut(&value, value.len - 1);
    *out = strdup(value.len ? buf_text(&value) : row->space);
    if (!*out)
        return err_sys(e, -ENOMEM, "%s", row->what);
    bool fits = !row->space_env || is_space(*out);
    return fits ? 0 : err_set(e, -EINVAL, "'%s' is no namespace: small letters, digits and -", *out);
}

/* One that is not here is whoever launches' to fetch: nothing is known of it. */
static int find_part(char **out, const char *said, struct err *e)
{
    static const char scheme[] = "file:";
    AUTO_BUF struct buf text = BUF_INIT;
    const char *path = said && strncmp(said, scheme, strlen(scheme)) == 0 ? said + strlen(scheme) : said;
    if (!path || !io_exists(path))
        return 0;
    int rc = io_read_file(&text, path, FILE_MAX, e);
    if (rc < 0)
        return rc;
    *out = strdup(buf_text(&text));
    return *out ? 0 : err_sys(e, -ENOMEM, "'%s'", path);
}

static int find_user(char **out)
{
    const struct passwd *me = getpwuid(geteuid());
    const char *name = filled("HADOOP_USER_NAME") ? filled("HADOOP_USER_NAME") : me ? me->pw_name : NULL;
    *out = name ? strdup(name) : NULL;
    return *out || !name ? 0 : -ENOMEM;
}

/* Where a page was given as a whole, its address is meant. */
static void add_given(struct strv *out, const char *ui)
{
    static const char page[] = "/json";
    size_t len = strlen(ui);
    while (len > 0 && ui[len - 1] == '/')
        len--;
    if (len >= strlen(page) && strncmp(ui + len - strlen(page), page, strlen(page)) == 0)
        len -= strlen(page);
    strv_addf(out, "%.*s", (int)len, ui);
}

static int find_bases(struct strv *out, const struct cluster_row *row, const char *master, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    const char *folder = row->folder_env ? filled(row->folder_env) : NULL;
    AUTO_FREE char *path = folder ? io_join(folder, row->file) : NULL;
    if (folder && !path)
        return err_sys(e, -ENOMEM, "'%s'", folder);
    bool there = path && io_exists(path);
    int rc = there ? io_read_file(&text, path, FILE_MAX, e) : 0;
    return rc < 0 ? rc : row->bases(master, there ? buf_text(&text) : NULL, out, e);
}

int cluster_at_find(struct cluster_at *out, const struct cluster_row *row, const char *master, const char *ui,
                    const struct cluster_said *said, struct err *e)
{
    struct cluster_at at = { .row = row };
    int rc = 0;
    if (ui)
        add_given(&at.bases, ui);
    else
        rc = find_bases(&at.bases, row, master, e);
    if (rc == 0)
        rc = find_file(&at.token_file, "PIPETUNE_CLUSTER_TOKEN_FILE", said ? said->token_file : NULL, row->token_file,
                       e);
    if (rc == 0)
        rc = find_file(&at.ca, "PIPETUNE_CLUSTER_CA_FILE", said ? said->ca_file : NULL, row->ca_file, e);
    if (rc == 0)
        rc = find_space(&at.space, row, said ? said->space : NULL, e);
    if (rc == 0)
        rc = find_part(&at.part, said ? said->part_file : NULL, e);
    if (rc == 0 && (find_user(&at.user) < 0 || at.bases.failed))
        rc = err_sys(e, -ENOMEM, "'%s'", master);
    if (rc < 0)
        cluster_at_done(&at);
    else
        *out = at;
    return rc;
}

/* --- one look ------------------------------------------------------------------------------------------------------------------ */

/* The file's line; *out stays NULL where there is no file. */
static int read_token(const struct cluster_at *at, struct buf *out, const char **out_token, struct err *e)
{
    if (!at->token_file)
        return 0;
    int rc = io_read_file(out, at->token_file, TOKEN_MAX, e);
    if (rc < 0)
        return rc;
    size_t len = out->len;
    while (len > 0 && strchr(" \t\r\n", out->data[len - 1]))
        len--;
    buf_cut(out, len);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)out->data[i] <= ' ' || (unsigned char)out->data[i] >= 0x7f)
            len = 0;
    if (len == 0)
        return err_set(e, -EINVAL, "'%s' is no token: a line of letters, digits and signs", at->token_file);
    *out_token = buf_text(out);
    return 0;
}

static int request(const struct cluster_at *at, const char *token, struct cluster_request *r, struct buf *text,
                   int *out_status, struct err *e)
{
    if (r->url.failed || r->body.failed)
        return err_sys(e, -ENOMEM, "asking %s", at->row->what);
    const struct http_ask ask = { .method = r->method,
                                  .url = buf_text(&r->url),
                                  .type = r->type,
                                  .body = r->type ? buf_text(&r->body) : NULL,
                                  .body_len = r->body.len,
                                  .token = token,
                                  .ca_file = at->ca,
                                  .max = ANSWER_MAX,
                                  .timeout_ms = TIMEOUT_MS };
    return http_ask(text, out_status, &ask, e);
}

int cluster_at_ask(const struct cluster_at *at, struct cluster_request *q, int *out_status, struct buf *out,
                   struct err *e)
{
    AUTO_BUF struct buf token_text = BUF_INIT;
    const char *token = NULL;
    int rc = read_token(at, &token_text, &token, e);
    return rc < 0 ? rc : request(at, token, q, out, out_status, e);
}

/* All that a look asks, of one master. */
static int look_at(struct cluster_view *v, const struct cluster_at *at, const struct cluster_asked *a,
                   const char *token, struct err *e)
{
    enum { ASKED_MAX = 500 };
    int rc = 0, asked = 0;
    if (at->row->begin)
        at->row->begin(v);
    for (size_t i = 0; rc == 0; i += v->next.len == 0) {
        struct cluster_request r = { 0 };
        AUTO_BUF struct buf text = BUF_INIT;
        int status = 0;
        if (!at->row->ask(a, v, i, &r))
            break;
        buf_clear(&v->next);
        rc = asked++ < ASKED_MAX ? request(at, token, &r, &text, &status, e)
                                 : err_set(e, -EPROTO, "%s answers with lists without an end", at->row->what);
        if (rc == 0 && (rc = at->row->answer(v, a, i, status, buf_text(&text), text.len, e)) < 0)
            err_prefix(e, "'%s'", buf_text(&r.url));
        cluster_request_done(&r);
    }
    return rc;
}

static struct cluster_asked asked_of(const struct cluster_at *at, const struct cluster_key *keys, size_t n)
{
    return (struct cluster_asked){
        .base = at->bases.v[0], .space = at->space, .user = at->user, .part = at->part, .keys = keys, .n_keys = n
    };
}

struct cluster_asked cluster_at_asked(const struct cluster_at *at)
{
    return asked_of(at, NULL, 0);
}

static bool copy_text(char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return *out || !text;
}

int cluster_at_copy(struct cluster_at *out, const struct cluster_at *at)
{
    struct cluster_at c = { .row = at->row, .resizes = at->resizes };
    for (size_t i = 0; i < at->bases.n; i++)
        strv_add(&c.bases, at->bases.v[i]);
    bool whole = copy_text(&c.space, at->space) && copy_text(&c.token_file, at->token_file) &&
                 copy_text(&c.ca, at->ca) && copy_text(&c.user, at->user) && copy_text(&c.part, at->part) &&
                 !c.bases.failed;
    if (!whole) {
        cluster_at_done(&c);
        return -ENOMEM;
    }
    *out = c;
    return 0;
}

/* The next master is first from now on. */
static void turn(struct strv *bases)
{
    char *first = bases->v[0];
    memmove(&bases->v[0], &bases->v[1], (bases->n - 1) * sizeof *bases->v);
    bases->v[bases->n - 1] = first;
}

int cluster_look(struct cluster_view *out, struct cluster_at *at, const struct cluster_key *keys, size_t n,
                 struct err *e)
{
    AUTO_BUF struct buf token_text = BUF_INIT;
    const char *token = NULL;
    int rc = read_token(at, &token_text, &token, e);
    if (rc < 0)
        return rc;
    for (size_t tries = 0; tries < at->bases.n; tries++) {
        struct cluster_view v = { 0 };
        struct cluster_asked a = asked_of(at, keys, n);
        rc = look_at(&v, at, &a, token, e);
        if (rc == 0) {
            *out = v;
            return 0;
        }
        cluster_view_done(&v);
        if (rc == -ENOMEM)
            break;
        turn(&at->bases);
    }
    return rc;
}

void cluster_ask_resize(struct cluster_at *at)
{
    const struct cluster_resize *row = at->row->resize;
    struct cluster_asked a = asked_of(at, NULL, 0);
    struct cluster_request q = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    struct err ignored; /* it was asked for other things a moment ago */
    int status = 0;
    at->resizes = row && row->can(&a, &q) && cluster_at_ask(at, &q, &status, &text, &ignored) == 0 &&
                  row->says_so(status, buf_text(&text), text.len);
    cluster_request_done(&q);
}

/* --- again and again ------------------------------------------------------------------------------------------------------------ */

/* A launch that is asked for, and copies of its words. */
struct known {
    char tag[CLUSTER_TAG_MAX + 1], id[CLUSTER_NAME_MAX];
    int64_t end_ms, until_ms; /* when it is to be over, and how long it is asked to; 0: it runs */
    bool told;
};

struct cluster {
    struct cluster_at *at;
    const struct cluster_ops *ops;
    void *ctx;
    uv_loop_t *loop;
    uv_work_t work;
    bool working, closed, failed;
    bool told; /* … that it failed */
    struct cluster_view view;
    bool seen;
    int64_t asked_ms;   /* of the view */
    struct known *ends; /* what is left behind */
    size_t n_ends, cap_ends;
    /* the worker's, while it works */
    struct known *known;
    size_t n_known;
    struct cluster_view news;
    int64_t news_ms;
    int rc;
    struct err why;
};

static void drop(struct cluster *c)
{
    cluster_view_done(&c->view);
    cluster_view_done(&c->news);
    free(c->known);
    free(c->ends);
    free(c);
}

int cluster_open(struct cluster **out, uv_loop_t *loop, struct cluster_at *at, const struct cluster_ops *ops, void *ctx,
                 struct err *e)
{
    struct cluster *c = calloc(1, sizeof *c);
    if (!c)
        return err_sys(e, -ENOMEM, "%s", at->row->what);
    *c = (struct cluster){ .at = at, .ops = ops, .ctx = ctx, .loop = loop };
    c->work.data = c;
    *out = c;
    return 0;
}

void cluster_close(struct cluster *c)
{
    if (!c)
        return;
    c->closed = true;
    if (!c->working)
        drop(c);
}

static struct known known_of(const struct cluster_key *key)
{
    struct known k = { 0 };
    (void)snprintf(k.tag, sizeof k.tag, "%s", key->tag);
    (void)snprintf(k.id, sizeof k.id, "%s", key->id ? key->id : "");
    return k;
}

static void end_one(struct cluster *c, const struct cluster_app *app)
{
    struct cluster_request r = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    struct cluster_asked a = asked_of(c->at, NULL, 0);
    struct err ignored; /* it is asked again */
    int status;
    if (c->at->row->end && c->at->row->end(&a, app, &r))
        (void)cluster_at_ask(c->at, &r, &status, &text, &ignored);
    cluster_request_done(&r);
}

/* On a worker. */
static void on_work(uv_work_t *work)
{
    struct cluster *c = work->data;
    AUTO_FREE struct cluster_key *keys = calloc(c->n_known + 1, sizeof *keys);
    if (!keys) {
        c->rc = err_sys(&c->why, -ENOMEM, "asking %s", c->at->row->what);
        return;
    }
    for (size_t i = 0; i < c->n_known; i++)
        keys[i] = (struct cluster_key){ c->known[i].tag, c->known[i].id[0] ? c->known[i].id : NULL };
    c->news_ms = clock_ms();
    c->rc = cluster_look(&c->news, c->at, keys, c->n_known, &c->why);
    for (size_t i = 0; c->rc == 0 && i < c->n_known; i++) {
        const struct cluster_app *app = cluster_app_of(&c->news, c->known[i].tag);
        if (c->known[i].end_ms && c->known[i].end_ms <= c->news_ms && app && app->state != CLUSTER_OVER)
            end_one(c, app);
    }
}

static void note(struct cluster *c, const char *text)
{
    c->ops->note(c->ctx, text);
}

/* What was left behind and is over, or cannot be known, is asked for no more. */
static void settle_ends(struct cluster *c)
{
    int64_t now = clock_ms();
    for (size_t i = c->n_ends; i-- > 0;) {
        struct known *k = &c->ends[i];
        const struct cluster_app *app = cluster_app_of(&c->view, k->tag);
        bool due = k->end_ms <= c->asked_ms, lives = app && app->state != CLUSTER_OVER;
        if (due && lives && !k->told) {
            char text[320];
            (void)snprintf(text, sizeof text, "%s still had %s of a launch that is over: it was told to end it",
                           c->at->row->what, app->id);
            note(c, text);
            k->told = true;
        }
        if ((due && !lives) || now >= k->until_ms)
            *k = c->ends[--c->n_ends];
    }
}

static void on_worked(uv_work_t *work, int status)
{
    struct cluster *c = work->data;
    char text[1200];
    c->working = false;
    if (c->closed) {
        drop(c);
        return;
    }
    if (status < 0)
        return;
    if (c->rc == 0) {
        cluster_view_done(&c->view);
        c->view = c->news;
        c->news = (struct cluster_view){ 0 };
        c->asked_ms = c->news_ms;
        c->seen = true;
        settle_ends(c);
    }
    if (c->rc < 0 && !c->failed && c->seen) { /* of one that never answered was told before */
        (void)snprintf(text, sizeof text, "%s cannot be asked what is free: %s", c->at->row->what, c->why.text);
        note(c, text);
    } else if (c->rc == 0 && c->told) {
        (void)snprintf(text, sizeof text, "%s can be asked again", c->at->row->what);
        note(c, text);
    }
    c->told = c->rc < 0 && (c->told || c->seen);
    c->failed = c->rc < 0;
    c->ops->seen(c->ctx);
}

void cluster_tick(struct cluster *c, const struct cluster_key *keys, size_t n, int older_ms)
{
    enum { AGAIN_MS = 2000 }; /* where it did not answer, or what was left there may be over */
    older_ms = c->n_ends > 0 && older_ms > AGAIN_MS ? AGAIN_MS : older_ms;
    if (c->working || clock_ms() - c->news_ms < (c->failed ? AGAIN_MS : older_ms))
        return;
    free(c->known);
    c->known = calloc(n + c->n_ends + 1, sizeof *c->known);
    if (!c->known)
        return; /* at the next tick */
    for (size_t i = 0; i < n; i++)
        c->known[i] = known_of(&keys[i]);
    if (c->n_ends)
        memcpy(c->known + n, c->ends, c->n_ends * sizeof *c->ends);
    c->n_known = n + c->n_ends;
    c->working = true;
    (void)uv_queue_work(c->loop, &c->work, on_work, on_worked); /* fails only without a callback */
}

const struct cluster_view *cluster_now(const struct cluster *c, int64_t *out_asked_ms)
{
    *out_asked_ms = c->asked_ms;
    return c->seen && !c->failed ? &c->view : NULL;
}

bool cluster_is_mute(const struct cluster *c)
{
    return c->failed && !c->seen;
}

int cluster_end(struct cluster *c, const struct cluster_key *key, int after_ms)
{
    struct known *grown = array_more(c->ends, c->n_ends, &c->cap_ends, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    c->ends = grown;
    c->ends[c->n_ends] = known_of(key);
    c->ends[c->n_ends].end_ms = clock_ms() + after_ms;
    c->ends[c->n_ends].until_ms = clock_ms() + END_FOR_MS;
    c->n_ends++;
    return 0;
}
