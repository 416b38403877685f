#include "base/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>

#include "base/own.h"

struct sink {
    struct buf *out;
    size_t left;
};

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct sink *s = ctx;
    if (size * n > s->left)
        return 0; /* ends the transfer */
    s->left -= size * n;
    buf_put(s->out, bytes, size * n);
    return size * n;
}

/* "NAME: VALUE"; false: memory. */
static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
    AUTO_BUF struct buf line = BUF_INIT;
    buf_printf(&line, "%s: %s", name, value);
    struct curl_slist *grown = line.failed ? NULL : curl_slist_append(*list, buf_text(&line));
    if (line.data)
        explicit_bzero(line.data, line.len);
    *list = grown ? grown : *list;
    return grown != NULL;
}

static CURLcode perform(CURL *c, const struct http_ask *a, struct curl_slist *headers, struct sink *s, char *why)
{
    (void)curl_easy_setopt(c, CURLOPT_URL, a->url);
    (void)curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, a->method);
    (void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(c, CURLOPT_NOPROXY, "*"); /* it asks machines of the cluster */
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, a->timeout_ms);
    (void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, s);
    (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
    if (a->type)
        (void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)a->body_len);
    if (a->type && curl_easy_setopt(c, CURLOPT_COPYPOSTFIELDS, a->body ? a->body : "") != CURLE_OK)
        return CURLE_OUT_OF_MEMORY;
    if (a->ca_file && curl_easy_setopt(c, CURLOPT_CAINFO, a->ca_file) != CURLE_OK)
        return CURLE_OUT_OF_MEMORY;
    return curl_easy_perform(c);
}

static int explain(CURLcode rc, const struct http_ask *a, const char *why, struct err *e)
{
    if (rc == CURLE_OUT_OF_MEMORY)
        return err_sys(e, -ENOMEM, "'%s'", a->url);
    if (rc == CURLE_WRITE_ERROR)
        return err_set(e, -EPROTO, "'%s': the answer is larger than %zu bytes", a->url, a->max);
    return err_set(e, -EHOSTUNREACH, "'%s': %s", a->url, *why ? why : curl_easy_strerror(rc));
}

int http_ask(struct buf *out, int *out_status, const struct http_ask *a, struct err *e)
{
    if (a->token && strncmp(a->url, "https://", 8) != 0)
        return err_set(e, -EACCES, "'%s' would be sent a token that everybody could read: use https", a->url);
    CURL *c = curl_easy_init();
    struct curl_slist *headers = NULL;
    char why[CURL_ERROR_SIZE] = "";
    struct sink s = { .out = out, .left = a->max };
    AUTO_BUF struct buf bearer = BUF_INIT;
    if (a->token)
        buf_printf(&bearer, "Bearer %s", a->token);
    bool ready = c && !bearer.failed && add_header(&headers, "Accept", "application/json") &&
                 (!a->type || add_header(&headers, "Content-Type", a->type)) &&
                 (!a->token || add_header(&headers, "Authorization", buf_text(&bearer)));
    CURLcode rc = ready ? perform(c, a, headers, &s, why) : CURLE_OUT_OF_MEMORY;
    long status = 0;
    if (c)
        (void)curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(c);
    if (bearer.data)
        explicit_bzero(bearer.data, bearer.len);
    if (rc != CURLE_OK)
        return explain(rc, a, why, e);
    *out_status = (int)status;
    return out->failed ? err_sys(e, -ENOMEM, "'%s'", a->url) : 0;
}
