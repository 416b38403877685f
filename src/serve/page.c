#include "serve/page.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "live/study.h"
#include "monitoring/credential.h"
#include "serve/assets.h"
#include "serve/page_parts.h"
#include "view/table.h"
#include "view/words.h"

/* --- the store, and what is kept of it --- */

int page_store(struct page *p, struct err *e)
{
    int rc = p->store ? 0 : store_open(&p->store, p->store_path, STORE_READ, e);
    return rc == 0 ? 1 : rc == -ENOENT ? 0 : rc;
}

static void forget_view(struct page_view *v)
{
    if (v->name)
        view_done(&v->view);
    free(v->name);
    *v = (struct page_view){ .name = NULL };
}

static struct page_view *find_view(struct page *p, const char *name)
{
    struct page_view *oldest = &p->views[0];
    for (size_t i = 0; i < PAGE_VIEWS; i++) {
        if (p->views[i].name && strcmp(p->views[i].name, name) == 0)
            return &p->views[i];
        if (p->views[i].used < oldest->used)
            oldest = &p->views[i];
    }
    forget_view(oldest);
    return oldest;
}

int page_view(struct page *p, const char *name, struct view **out, struct err *e)
{
    int rc = page_store(p, e);
    if (rc <= 0)
        return rc < 0 ? rc : err_set(e, -EINVAL, "no study '%s': the store has none yet", name);
    AUTO_FREE char *dir = study_dir(p->store_path, name);
    pid_t driver = dir ? study_driver(dir) : 0;
    struct page_view *v = find_view(p, name);
    if (v->name) {
        rc = view_refresh(&v->view, driver, e);
    } else {
        v->name = strdup(name);
        if (!v->name)
            return err_sys(e, -ENOMEM, "study '%s'", name);
        rc = view_open(&v->view, p->store, name, dir, driver, e);
    }
    v->used = ++p->uses;
    if (rc < 0)
        forget_view(v);
    else
        *out = &v->view;
    return rc < 0 ? rc : 0;
}

/* --- what a page is made of --- */

static void put_nav(struct buf *b)
{
    buf_puts(b,
             "<a class=\"skip\" href=\"#main\">to the page</a>\n<header><b>PipeTune</b><nav aria-label=\"pages\"><ul "
             "class=\"plain\"><li><a href=\"/\">Studies</a></li><li><a href=\"/compare\">Compare</a></li>"
             "<li><a href=\"/nodes\">Nodes</a></li><li><a href=\"/model\">Model</a></li></ul></nav>"
             "<span id=\"live\" role=\"status\"></span></header>\n<main id=\"main\">\n");
}

/* Where its events begin: before what the page tells is read, so that nothing is missed. */
static void put_at(struct page *p, struct buf *b, const struct page_about *a)
{
    struct store_study row = { 0 };
    struct err e;
    if (a->still)
        return;
    buf_puts(b, " data-at=\"");
    if (page_store(p, &e) == 1 && (!a->study || store_study_find(p->store, a->study, &row, &e) == 1))
        (void)feed_now(b, p->store, row.id, &e); /* without it, it begins when it is asked for */
    buf_putc(b, '"');
    store_study_done(&row);
}

void page_head(struct page *p, struct buf *b, const struct http_request *q, const struct page_about *a)
{
    buf_puts(b, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    svg_escape(b, a->title);
    buf_puts(b, " · PipeTune</title>\n<link rel=\"icon\" href=\"/assets/icon.svg\">\n"
                "<link rel=\"stylesheet\" href=\"/assets/page.css\">\n"
                "<script src=\"/assets/page.js\" defer></script>\n</head>\n<body");
    if (a->study) {
        buf_puts(b, " data-study=\"");
        svg_escape(b, a->study);
        buf_putc(b, '"');
    }
    if (a->trial)
        buf_printf(b, " data-trial=\"%d\"", a->trial);
    if (page_is_whole(q))
        put_at(p, b, a);
    buf_puts(b, ">\n");
    put_nav(b);
}

void page_foot(struct buf *b)
{
    buf_puts(b, "</main>\n</body>\n</html>\n");
}

static void refuse(void *ctx, unsigned status, const char *why, struct http_answer *out)
{
    struct buf *b = &out->body;
    (void)ctx;
    buf_clear(b);
    buf_printf(b,
               "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
               "content=\"width=device-width, initial-scale=1\"><title>%u · PipeTune</title>"
               "<link rel=\"stylesheet\" href=\"/assets/page.css\"></head>\n<body><main><h1>",
               status);
    svg_escape(b, why);
    buf_puts(b, "</h1>\n");
    if (status == 401)
        buf_puts(b, "<form method=\"post\" action=\"/login\"><label>token <input type=\"password\" name=\"token\" "
                    "autocomplete=\"current-password\" required autofocus></label> <button>show</button></form>\n");
    else
        buf_puts(b, "<p><a href=\"/\">All studies</a></p>\n");
    buf_puts(b, "</main></body></html>\n");
    out->status = status;
    out->type = NULL;
}

void page_fail(struct http_answer *out, int rc, const struct err *e)
{
    refuse(NULL, rc == -EINVAL || rc == -ENOENT ? 404 : rc == -EBUSY || rc == -ENOMEM ? 503 : 500, e->text, out);
}

bool page_is_whole(const struct http_request *q)
{
    return !http_pairs_get(&q->query, "parts");
}

static bool is_asked(const struct http_request *q, const char *id)
{
    size_t len = strlen(id);
    for (const char *at = http_pairs_get(&q->query, "parts"); at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, id, len) == 0 && (!at[len] || at[len] == ','))
            return true;
    return page_is_whole(q);
}

bool page_begin_part(struct buf *b, const struct http_request *q, const char *id, const char *title,
                     enum page_pace pace)
{
    if (!is_asked(q, id))
        return false;
    buf_printf(b, "<section id=\"%s\" data-live%s>\n", id, pace == PAGE_QUICK ? " data-quick" : "");
    if (title) {
        buf_puts(b, "<h2>");
        svg_escape(b, title);
        buf_puts(b, "</h2>\n");
    }
    return true;
}

void page_end_part(struct buf *b)
{
    buf_puts(b, "</section>\n");
}

static void put_absent(struct buf *b)
{
    buf_puts(b, "<span class=\"absent\">absent</span>");
}

void page_put_number(struct buf *b, double x)
{
    char digits[32];
    if (isnan(x))
        put_absent(b);
    else
        buf_puts(b, table_digits(x, digits));
}

void page_put_cell_number(struct buf *b, double x)
{
    char exact[NUM_TEXT_MAX];
    if (isfinite(x))
        buf_printf(b, "<td class=\"n\" data-v=\"%s\">", num_print(x, exact));
    else
        buf_puts(b, "<td class=\"n\" data-v=\"\">");
    page_put_number(b, x);
    buf_puts(b, "</td>");
}

void page_put_seconds(struct buf *b, double s)
{
    char text[32];
    if (isfinite(s))
        buf_puts(b, table_duration(s, text));
    else
        put_absent(b);
}

void page_put_time(struct buf *b, int64_t ms)
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    char text[32];
    if (ms <= 0 || !localtime_r(&at, &tm) || strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        put_absent(b);
    else
        buf_printf(b, "<time>%s</time>", text);
}

void page_put_fact(struct buf *b, const char *name, const char *text)
{
    buf_puts(b, "<div><dt>");
    svg_escape(b, name);
    buf_puts(b, "</dt><dd>");
    svg_escape(b, text);
    buf_puts(b, "</dd></div>\n");
}

void page_put_fact_number(struct buf *b, const char *name, double x)
{
    buf_puts(b, "<div><dt>");
    svg_escape(b, name);
    buf_puts(b, "</dt><dd>");
    page_put_number(b, x);
    buf_puts(b, "</dd></div>\n");
}

void page_put_study(struct buf *b, const char *study)
{
    buf_puts(b, "<a href=\"/study/");
    http_put_word(b, study);
    buf_puts(b, "\">");
    svg_escape(b, study);
    buf_puts(b, "</a>");
}

void page_put_trial(struct buf *b, const char *study, int number)
{
    buf_puts(b, "<a href=\"/trial/");
    http_put_word(b, study);
    buf_printf(b, "/%d\">", number);
    svg_escape(b, study);
    buf_printf(b, "/%d</a>", number);
}

void page_put_state(struct buf *b, const char *state)
{
    buf_puts(b, "<span class=\"state ");
    svg_escape(b, state);
    buf_puts(b, "\">");
    svg_escape(b, state);
    buf_puts(b, "</span>");
}

void page_put_members(struct buf *b, const char *text)
{
    AUTO_JSON json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    AUTO_BUF struct buf words = BUF_INIT;
    if (!json_is_object(j)) {
        put_absent(b);
        return;
    }
    words_put_short_members(&words, j);
    svg_escape(b, json_object_size(j) ? buf_text(&words) : "none");
    b->failed |= words.failed;
}

void page_put_form(struct page *p, struct buf *b, const char *action, const char *name, const char *label)
{
    buf_printf(
        b,
        "<form class=\"inline\" method=\"post\" action=\"/do/%s\"><input type=\"hidden\" name=\"form\" value=\"%s\">",
        action, p->gate.form);
    buf_puts(b, "<input type=\"hidden\" name=\"name\" value=\"");
    svg_escape(b, name);
    buf_puts(b, "\"><button>");
    svg_escape(b, label);
    buf_puts(b, "</button></form>\n");
}

/* --- what is no page --- */

static void put_asset(void *ctx, const struct http_request *q, struct http_answer *out)
{
    const struct asset *a = asset_find(q->path.words[1]);
    if (!a) {
        refuse(ctx, 404, "there is no such file", out);
        return;
    }
    out->type = a->type;
    out->keep = true;
    buf_put(&out->body, a->from, (size_t)(a->to - a->from));
}

static void login(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    const char *token = http_pairs_get(&q->form, "token");
    if (!token || !http_gate_knows(&p->gate, token)) {
        refuse(ctx, 401, "that is not the token of this server", out);
        return;
    }
    (void)snprintf(out->cookie, sizeof out->cookie, "pipetune=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000",
                   p->gate.cookie);
    out->status = 303;
    out->location = strdup("/");
    out->body.failed |= !out->location;
}

static void answer_api(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    api_answer(&p->api, q, out);
}

/* Back to what it was about. */
static char *page_of(const char *name)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const char *slash = strchr(name, '/');
    AUTO_FREE char *study = strndup(name, slash ? (size_t)(slash - name) : strlen(name));
    if (!study)
        return NULL;
    buf_puts(&b, slash ? "/trial/" : "/study/");
    http_put_word(&b, study);
    if (slash) {
        buf_putc(&b, '/');
        http_put_word(&b, slash + 1);
    }
    return buf_take(&b);
}

static void act(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    AUTO_BUF struct buf why = BUF_INIT;
    if (!http_gate_form(&p->gate, http_pairs_get(&q->form, "form"))) {
        refuse(ctx, 403, "the form is not of this server as it runs now: load its page again", out);
        return;
    }
    unsigned status = api_act(&p->api, q, &why);
    if (status != 0) {
        refuse(ctx, status, why.len ? buf_text(&why) : "there is no such thing to do", out);
        return;
    }
    out->status = 303;
    out->location = page_of(http_pairs_get(&q->form, "name"));
    out->body.failed |= !out->location;
}

static void metrics(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    struct err e;
    (void)q;
    int rc = page_store(p, &e);
    if (rc >= 0)
        rc = prometheus_put(&p->prometheus, &out->body, p->store, p->store_path, &e);
    if (rc < 0)
        page_fail(out, rc, &e);
    else
        out->type = "text/plain; version=0.0.4; charset=utf-8";
}

/* clang-format off */
static const struct http_route routes[] = {
    { "GET", "", HTTP_BY_PAGES, false, page_studies },
    { "GET", "study/?", HTTP_BY_PAGES, false, page_study },
    { "GET", "study/?/events", HTTP_BY_PAGES, false, page_heat },
    { "GET", "trial/?/?", HTTP_BY_PAGES, false, page_trial },
    { "GET", "trial/?/?/log", HTTP_BY_PAGES, false, page_trial_log },
    { "GET", "compare", HTTP_BY_PAGES, false, page_compare },
    { "GET", "nodes", HTTP_BY_PAGES, false, page_nodes },
    { "GET", "model", HTTP_BY_ASKING, false, page_model },
    { "GET", "events", HTTP_FOLLOW, false, NULL },
    { "GET", "api/*", HTTP_BY_ASKING, false, answer_api },
    { "GET", "metrics", HTTP_BY_PAGES, false, metrics },
    { "GET", "assets/?", HTTP_AT_ONCE, true, put_asset },
    { "POST", "login", HTTP_AT_ONCE, true, login },
    { "POST", "do/?", HTTP_BY_ASKING, false, act },
    { NULL, NULL, HTTP_AT_ONCE, false, NULL },
};
/* clang-format on */

/* --- who follows --- */

static void *follow_open(void *ctx, const struct http_request *q)
{
    struct page *p = ctx;
    return feed_open(&p->feed, q);
}

static bool follow_begin(void *ctx)
{
    struct page *p = ctx;
    return feed_begin(&p->feed);
}

static int follow_beat(void *ctx, void *follower, bool news, struct buf *out)
{
    struct page *p = ctx;
    return feed_beat(&p->feed, follower, news, out);
}

static void follow_close(void *ctx, void *follower)
{
    (void)ctx;
    feed_close(follower);
}

static const struct http_follow follow = { follow_open, follow_begin, follow_beat, follow_close };

/* --- begin and end --- */

static int read_token(struct http_gate *g, const char *path, struct err *e)
{
    struct credential c = { NULL, NULL, NULL };
    int rc = path ? credential_read(&c, path, e) : 0;
    if (rc == 0 && c.token && strlen(c.token) >= HTTP_TOKEN_MIN)
        http_gate_token(g, c.token);
    else if (rc == 0 && path)
        rc = err_set(e, -EINVAL,
                     "'%s': a token is one line of at least %d characters without a colon: head -c 24 "
                     "/dev/urandom | base64 makes one",
                     path, HTTP_TOKEN_MIN);
    credential_done(&c);
    return rc;
}

static int make_gate(struct page *p, const struct page_options *o, struct err *e)
{
    unsigned char secret[32];
    p->gate.loopback = p->listen.loopback;
    if (gethostname(p->gate.host, sizeof p->gate.host - 1) < 0)
        *p->gate.host = '\0'; /* then it is called by addresses alone */
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return err_sys(e, -errno, "cannot serve pages");
    http_gate_secret(&p->gate, secret, sizeof secret);
    int rc = read_token(&p->gate, o->token_file, e);
    if (rc == 0 && !p->gate.loopback && !*p->gate.cookie)
        return err_set(e, -EINVAL,
                       "others can reach %s: name a file with a token by --token-file, or listen on 127.0.0.1",
                       p->listen.name);
    return rc;
}

static char *own_program(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return n > 0 ? strndup(path, (size_t)n) : NULL;
}

static int prepare(struct page *p, const struct page_options *o, struct err *e)
{
    p->store_path = strdup(o->store);
    p->program = own_program();
    if (!p->store_path || !p->program)
        return err_sys(e, -ENOMEM, "cannot serve pages");
    p->api = (struct api){ p->program, p->store_path };
    p->feed = (struct feed){ .store_path = p->store_path };
    int rc = http_listen(&p->listen, o->listen, e);
    return rc == 0 ? make_gate(p, o, e) : rc;
}

int page_start(struct page **out, const struct page_options *o, struct err *e)
{
    struct page *p = calloc(1, sizeof *p);
    if (!p)
        return err_sys(e, -ENOMEM, "cannot serve pages");
    p->listen.fd = -1;
    int rc = prepare(p, o, e);
    struct http_server_options server = {
        .gate = p->gate, .routes = routes, .follow = &follow, .refuse = refuse, .ctx = p
    };
    if (rc == 0)
        rc = http_server_start(&p->server, MOVE_FD(p->listen.fd), &server, e);
    if (rc < 0)
        page_stop(p);
    else
        *out = p;
    return rc;
}

const char *page_address(const struct page *p)
{
    return p->listen.name;
}

void page_stop(struct page *p)
{
    if (!p)
        return;
    http_server_stop(p->server);
    if (p->listen.fd >= 0)
        (void)close(p->listen.fd); /* nobody was answered on it */
    for (size_t i = 0; i < PAGE_VIEWS; i++)
        forget_view(&p->views[i]);
    prometheus_done(&p->prometheus);
    feed_done(&p->feed);
    store_close(p->store);
    free(p->store_path);
    free(p->program);
    free(p);
}
