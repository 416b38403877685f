#include "monitoring/influx.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/influx_parts.h"

enum { CONNECT_MS = 5000, TIMEOUT_MS = 30000, SLOW_S = 20 };

struct influx {
    CURL *curl;
    struct curl_slist *write_headers, *query_headers;
    char *write_url, *query_url; /* the second of 1.x only */
    char *create;                /* what makes the database, in the server's language or the client's */
    struct credential credential;
    z_stream z;
    bool z_there, plain;
    struct buf packed, body;
    char why[CURL_ERROR_SIZE];
    long timeout_ms;
    uint64_t sent_bytes;
};

/* --- set-up --- */

static CURLcode global_rc;

static void global_init(void)
{
    global_rc = curl_global_init(CURL_GLOBAL_DEFAULT);
}

int influx_global(struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, global_init);
    return global_rc == CURLE_OK ? 0 : err_set(e, -EIO, "cannot set up libcurl: %s", curl_easy_strerror(global_rc));
}

int influx_credential(struct credential *to, const struct credential *from)
{
    to->user = from->user ? strdup(from->user) : NULL;
    to->password = from->password ? strdup(from->password) : NULL;
    to->token = from->token ? strdup(from->token) : NULL;
    bool whole = !from->user == !to->user && !from->password == !to->password && !from->token == !to->token;
    return whole ? 0 : -ENOMEM;
}

void influx_put_query(struct buf *to, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(to, "&%s=", name);
    for (const char *p = value; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                     strchr("-_.~", *p) != NULL;
        if (plain)
            buf_putc(to, *p);
        else
            buf_printf(to, "%%%02X", (unsigned char)*p);
    }
}

/* The name alone decides, before anything is asked of DNS. */
static bool is_loopback(const char *host)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

/* What it holds may be a secret: no message repeats it. */
static int check_parts(CURLU *u, const char *whose, const char *url, struct err *e)
{
    static const CURLUPart unwanted[] = { CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT };
    CURLUcode rc = curl_url_set(u, CURLUPART_URL, url, 0);
    if (rc != CURLUE_OK)
        return err_set(e, -EINVAL, "the url of %s is none: %s", whose, curl_url_strerror(rc));
    for (size_t i = 0; i < ARRAY_LEN(unwanted); i++) {
        char *part = NULL;
        bool there = curl_url_get(u, unwanted[i], &part, 0) == CURLUE_OK;
        curl_free(part);
        if (there)
            return err_set(e, -EINVAL,
                           "the url of %s must be http[s]://HOST[:PORT][/PREFIX] alone; user, password "
                           "and token go into the credential file",
                           whose);
    }
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return err_set(e, -EINVAL, "'%s': the url of %s must begin with http:// or https://", url, whose);
    return 0;
}

static bool stays_here(CURLU *u)
{
    char *host = NULL;
    bool here = curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && is_loopback(host);
    curl_free(host);
    return here;
}

int influx_url_check(const char *url, bool secret, bool allow_plain, struct err *e)
{
    return influx_url_check_of("influxdb", "--allow-plain-http", url, secret, allow_plain, e);
}

int influx_url_check_of(const char *whose, const char *option, const char *url, bool secret, bool allow_plain,
                        struct err *e)
{
    CURLU *u = curl_url();
    if (!u)
        return err_sys(e, -ENOMEM, "%s url", whose);
    int rc = check_parts(u, whose, url, e);
    if (rc == 0 && secret && !allow_plain && strncasecmp(url, "https://", 8) != 0 && !stays_here(u))
        rc = err_set(e, -EINVAL,
                     "'%s': the credential would go to another machine unencrypted: use https://, or allow it by "
                     "\"allow_plain_http\": true in '%s' (%s)",
                     url, whose, option);
    curl_url_cleanup(u);
    return rc;
}

bool influx_url_is_here(const char *url)
{
    CURLU *u = curl_url();
    bool here = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK && stays_here(u);
    curl_url_cleanup(u);
    return here;
}

static int make_urls(struct influx *x, const struct influx_cfg *cfg)
{
    static const char *const v1[] = { "ns", "u", "ms", "s" }, *const v2[] = { "ns", "us", "ms", "s" };
    size_t len = strlen(cfg->url);
    while (len && cfg->url[len - 1] == '/')
        len--;
    struct buf write = BUF_INIT, query = BUF_INIT, create = BUF_INIT;
    buf_put(&write, cfg->url, len);
    if (cfg->database) {
        buf_printf(&write, "/write?precision=%s", v1[cfg->precision]);
        influx_put_query(&write, "db", cfg->database);
        influx_put_query(&write, "rp", cfg->retention);
        buf_put(&query, cfg->url, len);
        buf_puts(&query, "/query");
        buf_puts(&create, "CREATE DATABASE \"");
        for (const char *p = cfg->database; *p; p++) {
            if (*p == '"' || *p == '\\')
                buf_putc(&create, '\\');
            buf_putc(&create, *p);
        }
        buf_putc(&create, '"');
    } else {
        buf_printf(&write, "/api/v2/write?precision=%s", v2[cfg->precision]);
        influx_put_query(&write, "org", cfg->org);
        influx_put_query(&write, "bucket", cfg->bucket);
        buf_puts(&create, "influx bucket create -n ");
        buf_put_shell(&create, cfg->bucket);
    }
    x->write_url = buf_take(&write);
    x->query_url = cfg->database ? buf_take(&query) : NULL;
    x->create = buf_take(&create);
    return x->write_url && x->create && (x->query_url || !cfg->database) ? 0 : -ENOMEM;
}

int influx_add_header(struct curl_slist **list, const char *line)
{
    struct curl_slist *more = curl_slist_append(*list, line);
    if (!more)
        return -ENOMEM;
    *list = more;
    return 0;
}

int influx_add_token(struct curl_slist **list, const struct credential *c)
{
    char *token = NULL;
    if (!c->token)
        return 0;
    if (asprintf(&token, "Authorization: Token %s", c->token) < 0)
        return -ENOMEM;
    int rc = influx_add_header(list, token);
    explicit_bzero(token, strlen(token));
    free(token);
    return rc;
}

static int make_headers(struct influx *x)
{
    static const char *const writing[] = { "Content-Type: text/plain; charset=utf-8",
                                           "Expect:", "Content-Encoding: gzip" };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(writing) - x->plain; i++)
        rc = influx_add_header(&x->write_headers, writing[i]);
    if (rc == 0)
        rc = influx_add_header(&x->query_headers, "Expect:");
    if (rc == 0)
        rc = influx_add_token(&x->write_headers, &x->credential);
    return rc == 0 ? influx_add_token(&x->query_headers, &x->credential) : rc;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct buf *body = ctx;
    size_t room = INFLUX_BODY_MAX - body->len, len = size * n;
    buf_put(body, bytes, len < room ? len : room);
    return len <= room ? len : 0; /* enough was seen: ends the transfer */
}

int influx_options(CURL *c, const struct credential *credential, const char *ca_file, long connect_ms, long timeout_ms)
{
    bool set = curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
               curl_easy_setopt(c, CURLOPT_NOPROXY, "*") == CURLE_OK &&
               curl_easy_setopt(c, CURLOPT_USERAGENT, "pipetune/" PIPETUNE_VERSION) == CURLE_OK;
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L); /* numbers and our own pointers are always taken */
    (void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
    (void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
    (void)curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, connect_ms ? connect_ms : CONNECT_MS);
    (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, timeout_ms ? timeout_ms : TIMEOUT_MS);
    if (ca_file)
        set = set && curl_easy_setopt(c, CURLOPT_CAINFO, ca_file) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_CAPATH, NULL) == CURLE_OK;
    if (credential->user) {
        (void)curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        set = set && curl_easy_setopt(c, CURLOPT_USERNAME, credential->user) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_PASSWORD, credential->password) == CURLE_OK;
    }
    return set ? 0 : -ENOMEM;
}

static int set_options(struct influx *x, const struct influx_cfg *cfg)
{
    (void)curl_easy_setopt(x->curl, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(x->curl, CURLOPT_WRITEDATA, &x->body);
    (void)curl_easy_setopt(x->curl, CURLOPT_ERRORBUFFER, x->why);
    return influx_options(x->curl, &x->credential, cfg->ca_file, cfg->connect_ms, cfg->timeout_ms);
}

static int set_up(struct influx *x, const struct influx_cfg *cfg)
{
    x->plain = cfg->plain;
    x->curl = curl_easy_init();
    int rc = x->curl ? 0 : -ENOMEM;
    if (rc == 0 && cfg->credential)
        rc = influx_credential(&x->credential, cfg->credential);
    if (rc == 0)
        rc = make_urls(x, cfg);
    if (rc == 0)
        rc = make_headers(x);
    return rc == 0 ? set_options(x, cfg) : rc;
}

int influx_new(struct influx **out, const struct influx_cfg *cfg, struct err *e)
{
    int rc = influx_global(e);
    if (rc == 0 && !cfg->database == !cfg->bucket)
        rc = err_set(e, -EINVAL, "influxdb needs a database (1.x) or a bucket (2.x), and not both");
    if (rc == 0)
        rc = influx_url_check(cfg->url, cfg->credential != NULL, cfg->allow_plain, e);
    if (rc < 0)
        return rc;
    struct influx *x = calloc(1, sizeof *x);
    rc = x ? set_up(x, cfg) : -ENOMEM;
    if (rc < 0) {
        influx_free(x);
        return err_sys(e, rc, "cannot prepare writing to influxdb");
    }
    *out = x;
    return 0;
}

void influx_free_headers(struct curl_slist *list)
{
    for (struct curl_slist *p = list; p; p = p->next)
        explicit_bzero(p->data, strlen(p->data));
    curl_slist_free_all(list);
}

void influx_free(struct influx *x)
{
    if (!x)
        return;
    if (x->curl)
        curl_easy_cleanup(x->curl);
    if (x->z_there)
        (void)deflateEnd(&x->z);
    influx_free_headers(x->write_headers);
    influx_free_headers(x->query_headers);
    credential_done(&x->credential);
    buf_done(&x->packed);
    buf_done(&x->body);
    free(x->write_url);
    free(x->query_url);
    free(x->create);
    free(x);
}

uint64_t influx_sent_bytes(const struct influx *x)
{
    return x->sent_bytes;
}

/* --- one request --- */

/* With the first batch: it takes a quarter of a megabyte, and many a connection never sends one. 16 more window bits: gzip's header.
 * Level 1 costs a fifth of level 6, and these texts shrink nearly as well. */
static bool have_z(struct influx *x)
{
    if (!x->z_there)
        x->z_there = deflateInit2(&x->z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    return x->z_there;
}

static int pack(struct influx *x, const char *bytes, size_t len)
{
    char chunk[16384];
    if (!have_z(x))
        return -ENOMEM;
    buf_clear(&x->packed);
    (void)deflateReset(&x->z); /* of a stream that is there */
    /* zlib only reads through next_in. */
    x->z.next_in = (Bytef *)(uintptr_t)bytes;
    x->z.avail_in = (uInt)len;
    int rc;
    do {
        x->z.next_out = (Bytef *)chunk;
        x->z.avail_out = sizeof chunk;
        rc = deflate(&x->z, Z_FINISH);
        buf_put(&x->packed, chunk, sizeof chunk - x->z.avail_out);
    } while (rc == Z_OK);
    return rc == Z_STREAM_END && !x->packed.failed ? 0 : -ENOMEM;
}

static CURLcode post(struct influx *x, const char *url, struct curl_slist *headers, const char *body, size_t len)
{
    CURL *c = x->curl;
    buf_clear(&x->body);
    x->why[0] = '\0';
    if (curl_easy_setopt(c, CURLOPT_URL, url) != CURLE_OK)
        return CURLE_OUT_OF_MEMORY;
    (void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(c, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    (void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
    x->sent_bytes += len;
    CURLcode rc = curl_easy_perform(c);
    /* An answer larger than we look at is an answer. */
    return rc == CURLE_WRITE_ERROR && x->body.len == INFLUX_BODY_MAX ? CURLE_OK : rc;
}

static long status_of(struct influx *x)
{
    long status = 0;
    (void)curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status); /* 0 then */
    return status;
}

static const char *header(struct influx *x, const char *name)
{
    struct curl_header *h = NULL;
    return curl_easy_header(x->curl, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK ? h->value : NULL;
}

/* No answer. Only what no waiting mends is a pause. */
static void judge_curl(struct influx *x, CURLcode rc, struct influx_answer *out)
{
    bool tls = rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE || rc == CURLE_SSL_ISSUER_ERROR;
    *out = (struct influx_answer){ .kind = tls ? INFLUX_PAUSE : INFLUX_RETRY,
                                   .reason = tls ? INFLUX_TLS : INFLUX_NO_REASON,
                                   .wait_ms = -1 };
    (void)snprintf(out->text, sizeof out->text, "%s", x->why[0] ? x->why : curl_easy_strerror(rc));
}

/* What a write sends, packed or as it is. */
struct body {
    const char *bytes;
    size_t len;
    uint64_t lines;
};

static void write_once(struct influx *x, const struct body *b, struct influx_answer *out)
{
    CURLcode rc = post(x, x->write_url, x->write_headers, b->bytes, b->len);
    if (rc != CURLE_OK) {
        judge_curl(x, rc, out);
        return;
    }
    struct influx_reply r = { .status = status_of(x),
                              .retry_after = header(x, "Retry-After"),
                              .date = header(x, "Date"),
                              .body = buf_text(&x->body),
                              .body_len = x->body.len,
                              .lines = b->lines,
                              .now_s = time(NULL) };
    influx_answer(out, &r);
}

/* 1.x alone makes its databases so. Whatever comes of it, the answer to be told is in *out. */
static void create_and_write(struct influx *x, const struct body *b, struct influx_answer *out)
{
    char why[128] = "";
    AUTO_BUF struct buf q = BUF_INIT;
    influx_put_query(&q, "q", x->create);
    buf_shift(&q, q.len ? 1 : 0); /* the '&' */
    if (q.failed)
        return;
    CURLcode rc = post(x, x->query_url, x->query_headers, buf_text(&q), q.len);
    if (rc != CURLE_OK)
        judge_curl(x, rc, out);
    else if (influx_query_done(status_of(x), buf_text(&x->body), x->body.len, why, sizeof why) == 0)
        write_once(x, b, out);
    else
        (void)snprintf(out->text, sizeof out->text, "cannot create the database (%.80s); run: influx -execute '%.120s'",
                       why, x->create);
}

void influx_send(struct influx *x, const char *lines, size_t len, uint64_t n_lines, struct influx_answer *out)
{
    if (!x->plain && pack(x, lines, len) < 0) {
        *out = (struct influx_answer){ .kind = INFLUX_RETRY, .wait_ms = -1 };
        (void)snprintf(out->text, sizeof out->text, "%s", strerror(ENOMEM));
        return;
    }
    struct body b = { .bytes = x->plain ? lines : x->packed.data,
                      .len = x->plain ? len : x->packed.len,
                      .lines = n_lines };
    write_once(x, &b, out);
    if (out->kind != INFLUX_PAUSE || out->reason != INFLUX_NO_DATABASE)
        return;
    if (x->query_url)
        create_and_write(x, &b, out);
    else
        (void)snprintf(out->text, sizeof out->text, "run: %.200s", x->create);
}
