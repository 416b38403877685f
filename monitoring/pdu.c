#include "monitoring/pdu.h"

#include <curl/curl.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "monitoring/meter_util.h"
#include "monitoring/pdu_json.h"

struct meter {
    struct meter_cfg cfg; /* the texts are the caller's */
    CURL *curl;           /* one connection, kept as long as the PDU lets it be */
    char *url;            /* the whole */
    struct buf body;
    bool too_long;
    char why[CURL_ERROR_SIZE];
};

/* --- set-up --- */

static int check_url(const char *url, struct err *e)
{
    if (!url)
        return err_set(e, -EINVAL, "the pdu needs a url: http://HOST[:PORT]");
    CURLU *u = curl_url();
    if (!u)
        return err_sys(e, -ENOMEM, "the url of the pdu");
    CURLUcode rc = curl_url_set(u, CURLUPART_URL, url, 0);
    static const CURLUPart unwanted[] = { CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT };
    bool more = false;
    for (size_t i = 0; rc == CURLUE_OK && i < ARRAY_LEN(unwanted); i++) {
        char *part = NULL;
        more = more || curl_url_get(u, unwanted[i], &part, 0) == CURLUE_OK;
        curl_free(part);
    }
    curl_url_cleanup(u);
    /* What it holds may be a secret: no message repeats it before it has passed. */
    bool http = strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
    if (rc != CURLUE_OK || more || !http)
        return err_set(e, -EINVAL, "the url of the pdu must be http[s]://HOST[:PORT] alone");
    return 0;
}

static int check_outlets(const struct meter_cfg *cfg, struct err *e)
{
    if (cfg->n_outlets == 0 || cfg->n_outlets > METER_READINGS_MAX)
        return err_set(e, -EINVAL, "the pdu needs 1 to %d outlets, each of a node", METER_READINGS_MAX);
    for (size_t i = 0; i < cfg->n_outlets; i++) {
        const struct meter_outlet *o = &cfg->outlets[i];
        size_t len = o->node ? strlen(o->node) : 0;
        if (len == 0 || len > METER_NODE_MAX)
            return err_set(e, -EINVAL, "the node of outlet %d must have a name of 1 to %d characters", o->outlet,
                           METER_NODE_MAX);
        if (o->outlet < 0)
            return err_set(e, -EINVAL, "'%s': outlets are counted from 0", o->node);
    }
    return 0;
}

/* Puts the defaults into the zeros. */
static int check_cfg(struct meter_cfg *cfg, struct err *e)
{
    cfg->path = cfg->path ? cfg->path : PDU_PAGE;
    cfg->value = cfg->value ? cfg->value : PDU_VALUE;
    cfg->scale = cfg->scale == 0 ? 1 : cfg->scale;
    cfg->max_w = meter_max_w(cfg);
    cfg->timeout_ms = cfg->timeout_ms ? cfg->timeout_ms : PDU_TIMEOUT_MS;
    int rc = check_url(cfg->url, e);
    if (rc == 0)
        rc = check_outlets(cfg, e);
    if (rc == 0)
        rc = pdu_path_check(cfg->value, e);
    if (rc < 0)
        return rc;
    if (*cfg->path != '/')
        return err_set(e, -EINVAL, "'%s': the path of the pdu's page must begin with '/'", cfg->path);
    if (!(cfg->scale > 0) || !isfinite(cfg->scale) || cfg->timeout_ms < 0)
        return err_set(e, -EINVAL, "the scale and timeout_ms of the pdu must be above 0");
    return 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct meter *m = ctx;
    m->too_long = size * n > PDU_BODY_MAX - m->body.len;
    if (m->too_long)
        return 0; /* ends the transfer */
    buf_put(&m->body, bytes, size * n);
    return size * n;
}

static int set_options(struct meter *m)
{
    CURL *c = m->curl;
    bool set = curl_easy_setopt(c, CURLOPT_URL, m->url) == CURLE_OK &&
               curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
               curl_easy_setopt(c, CURLOPT_NOPROXY, "*") == CURLE_OK && /* it is a machine of the cluster */
               curl_easy_setopt(c, CURLOPT_USERAGENT, "pipetune/" PIPETUNE_VERSION) == CURLE_OK;
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L); /* numbers and our own pointers are always taken */
    (void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)m->cfg.timeout_ms);
    (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)m->cfg.timeout_ms);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, m);
    (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, m->why);
    return set ? 0 : -ENOMEM;
}

static int set_up(struct meter *m)
{
    size_t len = strlen(m->cfg.url);
    while (len && m->cfg.url[len - 1] == '/')
        len--;
    AUTO_BUF struct buf url = BUF_INIT;
    buf_put(&url, m->cfg.url, len);
    buf_puts(&url, m->cfg.path);
    m->url = buf_take(&url);
    m->curl = m->url ? curl_easy_init() : NULL;
    return m->curl ? set_options(m) : -ENOMEM;
}

static void pdu_close(struct meter *m)
{
    if (!m)
        return;
    if (m->curl)
        curl_easy_cleanup(m->curl);
    buf_done(&m->body);
    free(m->url);
    free(m);
}

static int pdu_open(struct meter **out, const struct meter_cfg *given, struct err *e)
{
    struct meter_cfg cfg = *given;
    int rc = check_cfg(&cfg, e);
    if (rc < 0)
        return rc;
    struct meter *m = calloc(1, sizeof *m);
    if (m)
        m->cfg = cfg;
    rc = m ? set_up(m) : -ENOMEM;
    if (rc < 0) {
        pdu_close(m);
        return err_sys(e, rc, "cannot prepare asking the pdu");
    }
    *out = m;
    return 0;
}

/* --- one read --- */

static double now_ms(const struct meter *m)
{
    return (double)meter_now_ns(m->cfg.now_ns) / 1e6;
}

/* Curl's own words are one line, but quote what the peer sent. */
static int explain_curl(const struct meter *m, CURLcode rc, struct err *e)
{
    if (rc == CURLE_OUT_OF_MEMORY || m->body.failed)
        return err_sys(e, -ENOMEM, "the answer");
    if (m->too_long)
        return err_set(e, -EFBIG, "the answer is longer than %d bytes", PDU_BODY_MAX);
    if (rc == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, -ETIMEDOUT, "no whole answer within %d ms", m->cfg.timeout_ms);
    char plain[CURL_ERROR_SIZE];
    (void)snprintf(plain, sizeof plain, "%s", m->why[0] ? m->why : curl_easy_strerror(rc));
    for (char *p = plain; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
    return err_set(e, -EHOSTUNREACH, "%s", plain);
}

/* The answer to one request. *out_ms: the middle of it. */
static int ask(struct meter *m, json_t **out, double *out_ms, struct err *e)
{
    buf_clear(&m->body);
    m->too_long = false;
    m->why[0] = '\0';
    double before = now_ms(m);
    CURLcode rc = curl_easy_perform(m->curl);
    *out_ms = (before + now_ms(m)) / 2;
    if (rc != CURLE_OK || m->body.failed)
        return explain_curl(m, rc, e);
    long status = 0;
    (void)curl_easy_getinfo(m->curl, CURLINFO_RESPONSE_CODE, &status); /* 0 then */
    if (status != 200)
        return err_set(e, -EPROTO, "status %ld", status);
    return pdu_json_parse(out, buf_text(&m->body), m->body.len, e);
}

/* What one outlet takes; or why it is not known, `rc` and `e`: of the whole answer, else of this outlet. */
static void fill(const struct meter *m, const json_t *answer, int rc, struct err *e, const struct meter_outlet *outlet,
                 struct meter_reading *r)
{
    const struct pdu_where where = { .path = m->cfg.value, .scale = m->cfg.scale, .max_w = m->cfg.max_w };
    struct pdu_power power = { .watts = NAN, .error_w = NAN };
    if (rc == 0)
        rc = pdu_json_power(answer, &where, outlet->outlet, &power, e);
    (void)snprintf(r->node, sizeof r->node, "%s", outlet->node);
    r->value = power.watts;
    r->error = power.error_w;
    r->state = rc == 0 ? METER_OK : rc == -ERANGE ? METER_DISCARDED : METER_FAILED;
    if (rc < 0)
        (void)snprintf(r->why, sizeof r->why, "%.80s: %s", m->cfg.url, e->text);
}

static int pdu_read(struct meter *m, struct meter_reading *out)
{
    AUTO_JSON json_t *answer = NULL;
    struct err e = { 0 };
    double at_ms = 0;
    int rc = ask(m, &answer, &at_ms, &e);
    if (rc == -ENOMEM)
        return rc;
    for (size_t i = 0; i < m->cfg.n_outlets; i++) {
        out[i] = (struct meter_reading){ .from_ms = at_ms, .to_ms = at_ms };
        fill(m, answer, rc, &e, &m->cfg.outlets[i], &out[i]);
    }
    return (int)m->cfg.n_outlets;
}

/* --- probing --- */

static int pdu_probe(const struct meter_cfg *cfg, struct buf *detail, struct buf *fix)
{
    struct meter *m = NULL;
    struct err e = { 0 };
    int rc = pdu_open(&m, cfg, &e);
    if (rc < 0) {
        buf_puts(detail, e.text);
        return rc;
    }
    struct meter_reading *readings = calloc(METER_READINGS_MAX, sizeof *readings);
    int n = readings ? pdu_read(m, readings) : -ENOMEM;
    rc = n < 0 ? n : meter_told(readings, n, detail);
    if (rc == -EIO)
        buf_printf(fix, "see what '%s' answers, and correct the meter's \"url\", \"path\", \"value\" or \"outlets\"",
                   m->url);
    free(readings);
    pdu_close(m);
    return rc;
}

const struct meter_ops meter_pdu = {
    .name = "pdu",
    .help = "watts of a PDU's outlets, from its status page",
    .kind = METER_POWER,
    .local = false,
    .probe = pdu_probe,
    .open = pdu_open,
    .read = pdu_read,
    .close = pdu_close,
};
