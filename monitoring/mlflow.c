#include "monitoring/mlflow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "monitoring/influx_parts.h"

enum { CONNECT_MS = 5000, TIMEOUT_MS = 30000 };

struct mlflow {
    CURL *curl;
    struct curl_slist *headers;
    char *base;
    struct credential credential;
    struct buf body; /* of the answer */
    char why[CURL_ERROR_SIZE];
};

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct buf *body = ctx;
    if (size * n > MLFLOW_ANSWER_MAX - body->len)
        return 0; /* ends the transfer */
    buf_put(body, bytes, size * n);
    return size * n;
}

static int make_headers(struct mlflow *m)
{
    int rc = influx_add_header(&m->headers, "Content-Type: application/json");
    if (rc == 0)
        rc = influx_add_header(&m->headers, "Expect:");
    char *token = NULL;
    if (rc < 0 || !m->credential.token)
        return rc;
    if (asprintf(&token, "Authorization: Bearer %s", m->credential.token) < 0)
        return -ENOMEM;
    rc = influx_add_header(&m->headers, token);
    explicit_bzero(token, strlen(token));
    free(token);
    return rc;
}

static int set_up(struct mlflow *m, const struct mlflow_cfg *cfg)
{
    size_t len = strlen(cfg->url);
    while (len && cfg->url[len - 1] == '/')
        len--;
    m->curl = curl_easy_init();
    if (!m->curl || asprintf(&m->base, "%.*s/api/2.0/mlflow/", (int)len, cfg->url) < 0) {
        m->base = m->curl ? NULL : m->base;
        return -ENOMEM;
    }
    (void)curl_easy_setopt(m->curl, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(m->curl, CURLOPT_WRITEDATA, &m->body);
    (void)curl_easy_setopt(m->curl, CURLOPT_ERRORBUFFER, m->why);
    /* A request on a connection that was kept, and that the server has closed, libcurl sends again by itself: it could have arrived. */
    (void)curl_easy_setopt(m->curl, CURLOPT_FRESH_CONNECT, 1L);
    (void)curl_easy_setopt(m->curl, CURLOPT_FORBID_REUSE, 1L);
    int rc = make_headers(m);
    if (rc == 0)
        rc = influx_options(m->curl, &m->credential, cfg->ca_file, CONNECT_MS,
                            cfg->timeout_ms ? cfg->timeout_ms : TIMEOUT_MS);
    (void)curl_easy_setopt(m->curl, CURLOPT_HTTPHEADER, m->headers);
    return rc;
}

int mlflow_url_check(const char *url, bool secret, bool allow_plain, struct err *e)
{
    return influx_url_check_of("mlflow", "--mlflow-allow-plain-http", url, secret, allow_plain, e);
}

int mlflow_new(struct mlflow **out, const struct mlflow_cfg *cfg, struct err *e)
{
    struct mlflow *m = calloc(1, sizeof *m);
    if (!m)
        return err_sys(e, -ENOMEM, "cannot ask an MLflow server");
    int rc = influx_global(e);
    if (rc == 0 && cfg->credential_file)
        rc = credential_read(&m->credential, cfg->credential_file, e);
    if (rc == 0)
        rc = mlflow_url_check(cfg->url, cfg->credential_file != NULL, cfg->allow_plain, e);
    if (rc == 0 && (rc = set_up(m, cfg)) < 0)
        (void)err_sys(e, rc, "cannot ask an MLflow server");
    if (rc < 0) {
        mlflow_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void mlflow_free(struct mlflow *m)
{
    if (!m)
        return;
    if (m->curl)
        curl_easy_cleanup(m->curl);
    influx_free_headers(m->headers);
    credential_done(&m->credential);
    buf_done(&m->body);
    free(m->base);
    free(m);
}

static void not_now(struct mlflow_answer *out, const char *why)
{
    *out = (struct mlflow_answer){ .kind = MLFLOW_LATER };
    (void)snprintf(out->text, sizeof out->text, "%s", why);
}

static void judge_curl(const struct mlflow *m, CURLcode rc, struct mlflow_answer *out)
{
    if (rc == CURLE_WRITE_ERROR)
        not_now(out, "its answer is too large");
    else
        not_now(out, *m->why ? m->why : curl_easy_strerror(rc));
}

void mlflow_ask(struct mlflow *m, const char *path, const struct buf *body, struct mlflow_answer *out)
{
    AUTO_BUF struct buf url = BUF_INIT;
    buf_printf(&url, "%s%s", m->base, path);
    buf_clear(&m->body);
    m->body.failed = false;
    m->why[0] = '\0';
    if (url.failed || (body && body->failed) || curl_easy_setopt(m->curl, CURLOPT_URL, buf_text(&url)) != CURLE_OK) {
        not_now(out, strerror(ENOMEM));
        return;
    }
    (void)curl_easy_setopt(m->curl, body ? CURLOPT_POST : CURLOPT_HTTPGET, 1L);
    if (body) {
        (void)curl_easy_setopt(m->curl, CURLOPT_POSTFIELDS, body->data);
        (void)curl_easy_setopt(m->curl, CURLOPT_POSTFIELDSIZE, (long)body->len);
    }
    CURLcode rc = curl_easy_perform(m->curl);
    long status = 0;
    (void)curl_easy_getinfo(m->curl, CURLINFO_RESPONSE_CODE, &status);
    if (rc != CURLE_OK)
        judge_curl(m, rc, out);
    else if (m->body.failed)
        not_now(out, strerror(ENOMEM));
    else
        mlflow_answer(out, (int)status, buf_text(&m->body), m->body.len);
}

void mlflow_put_named_experiment(struct buf *path, const char *name)
{
    AUTO_BUF struct buf query = BUF_INIT;
    influx_put_query(&query, "experiment_name", name);
    buf_printf(path, "experiments/get-by-name?%s", query.len ? buf_text(&query) + 1 : "");
    path->failed |= query.failed;
}

void mlflow_put_history(struct buf *path, const char *run, const char *metric, const char *token)
{
    char key[MLFLOW_KEY_MAX + 1];
    mlflow_key(key, metric);
    buf_printf(path, "metrics/get-history?max_results=%d", MLFLOW_PAGE_MAX);
    influx_put_query(path, "run_id", run);
    influx_put_query(path, "metric_key", key);
    influx_put_query(path, "page_token", *token ? token : NULL);
}
