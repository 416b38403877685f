#include "base/http.h"

#include <curl/curl.h>
#include <errno.h>

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

static CURLcode perform(CURL *c, const char *url, struct sink *s, long timeout_ms, char *why)
{
    (void)curl_easy_setopt(c, CURLOPT_URL, url);
    (void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(c, CURLOPT_NOPROXY, "*"); /* it asks machines of the cluster */
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, timeout_ms);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, s);
    (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
    return curl_easy_perform(c);
}

int http_get(struct buf *out, const char *url, size_t max, long timeout_ms, struct err *e)
{
    CURL *c = curl_easy_init();
    if (!c)
        return err_sys(e, -ENOMEM, "'%s'", url);
    char why[CURL_ERROR_SIZE] = "";
    struct sink s = { .out = out, .left = max };
    CURLcode rc = perform(c, url, &s, timeout_ms, why);
    long status = 0;
    (void)curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(c);
    if (rc == CURLE_WRITE_ERROR)
        return err_set(e, -EPROTO, "'%s': the answer is larger than %zu bytes", url, max);
    if (rc != CURLE_OK)
        return err_set(e, -EHOSTUNREACH, "'%s': %s", url, *why ? why : curl_easy_strerror(rc));
    if (status != 200)
        return err_set(e, -EPROTO, "'%s': status %ld", url, status);
    return out->failed ? err_sys(e, -ENOMEM, "'%s'", url) : 0;
}
