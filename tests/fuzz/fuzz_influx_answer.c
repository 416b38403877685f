/* An answer of any status, headers and body: a verdict within its bounds. Input: two bytes of status, then Retry-After, Date and body with
 * newlines between them. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/influx_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES = 5000 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* The bytes up to the next newline, as a text; moves on behind it. */
static char *take(const char **at, const char *end)
{
    size_t left = (size_t)(end - *at);
    const char *stop = left ? memchr(*at, '\n', left) : NULL;
    char *text = strndup(left ? *at : "", stop ? (size_t)(stop - *at) : left);
    check(text != NULL);
    *at = stop ? stop + 1 : end;
    return text;
}

static void check_answer(const struct influx_answer *a, long status)
{
    check(a->kind <= INFLUX_PAUSE && a->reason < INFLUX_REASONS);
    check((a->kind == INFLUX_PAUSE) == (a->reason != INFLUX_NO_REASON));
    check(a->dropped <= LINES && (a->kind == INFLUX_PARTIAL || a->dropped == 0));
    check(a->wait_ms >= -1 && a->wait_ms <= INFLUX_WAIT_MAX_MS && (a->kind == INFLUX_RETRY || a->wait_ms == -1));
    check(a->kind != INFLUX_DELIVERED || (status >= 200 && status < 300)); /* nothing else acknowledges */
    check(a->kind != INFLUX_PARTIAL || status >= 400);
    check(strlen(a->text) < sizeof a->text && influx_reason_name(a->reason)[0]);
    for (const char *c = a->text; *c; c++)
        check(*c >= 0x20 && *c < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    long status = data[0] * 8 + data[1] % 8;
    const char *at = (const char *)data + 2, *end = (const char *)data + size;
    char *retry = take(&at, end), *date = take(&at, end);
    size_t len = (size_t)(end - at);
    char *body = malloc(len ? len : 1); /* of exact size: no NUL behind it */
    check(body != NULL);
    if (len)
        memcpy(body, at, len);
    struct influx_reply r = { .status = status,
                              .retry_after = *retry ? retry : NULL,
                              .date = *date ? date : NULL,
                              .body = body,
                              .body_len = len,
                              .lines = LINES,
                              .now_s = 1000000000 };
    struct influx_answer a;
    influx_answer(&a, &r);
    check_answer(&a, status);
    char text[64] = "";
    check(influx_query_done(status, body, len, text, sizeof text) == 0 ? status == 200 : text[0] != '\0');
    free(retry);
    free(date);
    free(body);
    return 0;
}
