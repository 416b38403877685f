#include "monitoring/influx_query.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "monitoring/influx.h"
#include "monitoring/influx_answer.h"
#include "monitoring/influx_parts.h"

struct influx_query {
    CURL *curl;
    struct curl_slist *headers;
    char *url, *database, *retention;
    struct credential credential;
    struct buf body;
    char why[CURL_ERROR_SIZE];
};

/* --- set-up --- */

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct buf *body = ctx;
    size_t len = size * n;
    if (len > INFLUX_PAGE_MAX - body->len)
        return 0; /* ends the transfer */
    buf_put(body, bytes, len);
    return body->failed ? 0 : len;
}

static char *query_url(const char *url)
{
    size_t len = strlen(url);
    struct buf b = BUF_INIT;
    while (len && url[len - 1] == '/')
        len--;
    buf_put(&b, url, len);
    buf_puts(&b, "/query");
    return buf_take(&b);
}

static int set_up(struct influx_query *x, const struct influx_query_cfg *cfg)
{
    x->curl = curl_easy_init();
    x->url = query_url(cfg->url);
    x->database = strdup(cfg->database);
    x->retention = cfg->retention ? strdup(cfg->retention) : NULL;
    int rc = x->curl && x->url && x->database && (x->retention || !cfg->retention) ? 0 : -ENOMEM;
    if (rc == 0 && cfg->credential)
        rc = influx_credential(&x->credential, cfg->credential);
    if (rc == 0)
        rc = influx_add_header(&x->headers, "Expect:");
    if (rc == 0)
        rc = influx_add_token(&x->headers, &x->credential);
    if (rc < 0)
        return rc;
    (void)curl_easy_setopt(x->curl, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(x->curl, CURLOPT_WRITEDATA, &x->body);
    (void)curl_easy_setopt(x->curl, CURLOPT_ERRORBUFFER, x->why);
    (void)curl_easy_setopt(x->curl, CURLOPT_ACCEPT_ENCODING, ""); /* rows shrink well */
    return influx_options(x->curl, &x->credential, cfg->ca_file, cfg->connect_ms, cfg->timeout_ms);
}

int influx_query_new(struct influx_query **out, const struct influx_query_cfg *cfg, struct err *e)
{
    int rc = influx_global(e);
    if (rc == 0 && (!cfg->database || !*cfg->database))
        rc = err_set(e, -EINVAL, "influxdb needs a database to read from");
    if (rc == 0)
        rc = influx_url_check(cfg->url, cfg->credential != NULL, cfg->allow_plain, e);
    if (rc < 0)
        return rc;
    struct influx_query *x = calloc(1, sizeof *x);
    rc = x ? set_up(x, cfg) : -ENOMEM;
    if (rc < 0) {
        influx_query_free(x);
        return err_sys(e, rc, "cannot prepare reading from influxdb");
    }
    *out = x;
    return 0;
}

void influx_query_free(struct influx_query *x)
{
    if (!x)
        return;
    if (x->curl)
        curl_easy_cleanup(x->curl);
    influx_free_headers(x->headers);
    credential_done(&x->credential);
    buf_done(&x->body);
    free(x->url);
    free(x->database);
    free(x->retention);
    free(x);
}

/* --- InfluxQL --- */

static void put_quoted(struct buf *to, const char *text, char quote)
{
    buf_putc(to, quote);
    for (const char *p = text; *p; p++) {
        if (*p == quote || *p == '\\')
            buf_putc(to, '\\');
        if (*p == '\n')
            buf_puts(to, "\\n");
        else
            buf_putc(to, *p);
    }
    buf_putc(to, quote);
}

void influx_query_put_text(struct buf *to, const char *text)
{
    put_quoted(to, text, '\'');
}

/* Where the next page begins: at this time, of whose rows so many are known. */
struct place {
    int64_t time_ns;
    size_t known;
};

static void put_select(struct buf *q, const struct influx_query *x, const struct influx_select *s,
                       const struct place *at)
{
    buf_printf(q, "SELECT %s FROM ", s->columns);
    if (x->retention) {
        put_quoted(q, x->retention, '"');
        buf_putc(q, '.');
    }
    put_quoted(q, s->measurement, '"');
    buf_printf(q, " WHERE %s AND time >= %lld AND time <= %lld ORDER BY time ASC LIMIT %d OFFSET %zu", s->where,
               (long long)at->time_ns, (long long)s->to_ns, INFLUX_PAGE_ROWS, at->known);
}

/* --- one page --- */

/* The server's words where it has any; nothing of what was sent. */
static int refused(struct influx_query *x, long status, struct err *e)
{
    char words[256] = "";
    (void)influx_query_done(status, buf_text(&x->body), x->body.len, words, sizeof words);
    return err_set(e, status == 401 || status == 403 ? -EACCES : -EPROTO, "cannot read from influxdb: %s", words);
}

static int not_answered(struct influx_query *x, CURLcode rc, struct err *e)
{
    const char *why = x->why[0] ? x->why : curl_easy_strerror(rc);
    if (rc == CURLE_WRITE_ERROR && x->body.failed)
        return err_sys(e, -ENOMEM, "cannot read from influxdb");
    if (rc == CURLE_WRITE_ERROR)
        return err_set(e, -EPROTO, "cannot read from influxdb: its answer is longer than %d MiB",
                       INFLUX_PAGE_MAX >> 20);
    bool cut = rc == CURLE_PARTIAL_FILE || rc == CURLE_RECV_ERROR || rc == CURLE_GOT_NOTHING ||
               rc == CURLE_WEIRD_SERVER_REPLY || rc == CURLE_UNSUPPORTED_PROTOCOL;
    return err_set(e, cut ? -EPROTO : -EHOSTUNREACH, "cannot read from influxdb: %s", why);
}

static int ask(struct influx_query *x, const char *form, size_t len, struct err *e)
{
    CURL *c = x->curl;
    buf_clear(&x->body);
    x->why[0] = '\0';
    if (curl_easy_setopt(c, CURLOPT_URL, x->url) != CURLE_OK)
        return err_sys(e, -ENOMEM, "cannot read from influxdb");
    (void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, x->headers);
    (void)curl_easy_setopt(c, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    (void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, form);
    CURLcode rc = curl_easy_perform(c);
    if (rc != CURLE_OK)
        return not_answered(x, rc, e);
    long status = 0;
    (void)curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status); /* 0 then */
    return status == 200 ? 0 : refused(x, status, e);
}

static int ask_page(struct influx_query *x, const struct influx_select *s, const struct place *at, struct err *e)
{
    AUTO_BUF struct buf q = BUF_INIT;
    AUTO_BUF struct buf form = BUF_INIT;
    put_select(&q, x, s, at);
    influx_put_query(&form, "q", buf_text(&q));
    influx_put_query(&form, "db", x->database);
    buf_puts(&form, "&epoch=ns");
    if (q.failed || form.failed)
        return err_sys(e, -ENOMEM, "cannot read from influxdb");
    return ask(x, form.data + 1, form.len - 1, e); /* without the first '&' */
}

/* --- all pages --- */

enum { SAME_TIME_MAX = 100000 }; /* rows; a server that skips nothing would go on for ever */

struct paging {
    int (*row)(void *ctx, const struct influx_row *r);
    void *ctx;
    struct place at;
    struct err *e;
};

static int take_row(void *ctx, const struct influx_row *r)
{
    struct paging *p = ctx;
    if (r->time_ns < p->at.time_ns)
        return err_set(p->e, -EPROTO, "cannot read from influxdb: its rows do not come in the order of time");
    p->at.known = r->time_ns == p->at.time_ns ? p->at.known + 1 : 1;
    p->at.time_ns = r->time_ns;
    if (p->at.known > SAME_TIME_MAX)
        return err_set(p->e, -EPROTO, "cannot read from influxdb: more than %d of its rows have the same time",
                       SAME_TIME_MAX);
    return p->row(p->ctx, r);
}

/* A page that is short does not tell that it is the last: a server may hand out fewer rows than were asked for. */
int influx_query_select(struct influx_query *x, const struct influx_select *s,
                        int (*row)(void *ctx, const struct influx_row *r), void *ctx, struct err *e)
{
    struct paging p = { .row = row, .ctx = ctx, .at = { .time_ns = s->from_ns }, .e = e };
    for (;;) {
        struct influx_page page = { 0 };
        int rc = ask_page(x, s, &p.at, e);
        if (rc == 0)
            rc = influx_rows(x->body.data, x->body.len, take_row, &p, &page, e);
        if (rc != 0)
            return rc;
        if (page.rows == 0)
            return page.partial ? err_set(e, -EPROTO, "cannot read from influxdb: it left out all of its rows") : 0;
    }
}
