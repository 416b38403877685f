#include "monitoring/influx_answer.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

/* --- the server's words --- */

static void put_plain(char *to, size_t room, const char *from, size_t len)
{
    size_t n = 0;
    for (; n < len && n + 1 < room; n++)
        to[n] = (unsigned char)from[n] < 0x20 || (unsigned char)from[n] >= 0x7f ? ' ' : from[n];
    to[n] = '\0';
}

static const char *text_of(const json_t *root, const char *key)
{
    return json_string_value(json_object_get(root, key));
}

/* {"error":"…"} of 1.x and 3.x, {"code":"…","message":"…"} of 2.x; else the body as it is. NULL: memory. */
static char *words_of(const char *body, size_t len)
{
    AUTO_JSON json_t *root = len ? json_loadb(body, len, 0, NULL) : NULL;
    const char *message = text_of(root, "message"), *error = text_of(root, "error");
    const char *words = message && *message ? message : error;
    return words ? strdup(words) : strndup(len ? body : "", len);
}

/* --- how much of a partial write is not there --- */

static uint64_t count(const char *words, const char *needle)
{
    uint64_t n = 0;
    for (const char *p = words; (p = strstr(p, needle)); p += strlen(needle))
        n++;
    return n;
}

/* The number at the end of "… dropped=N". Elsewhere it would be part of a line that is quoted. */
static uint64_t said_dropped(const char *words)
{
    size_t len = strlen(words), digits = 0;
    while (digits < len && words[len - digits - 1] >= '0' && words[len - digits - 1] <= '9')
        digits++;
    static const char before[] = "dropped=";
    size_t head = len - digits;
    bool said = digits && head >= strlen(before) && strncmp(words + head - strlen(before), before, strlen(before)) == 0;
    return said ? strtoull(words + head, NULL, 10) : 0;
}

/* 1.x says "dropped=N", but 0 for lines it could not parse: those it names one by one. 3.x lists errors with line numbers. */
static uint64_t dropped_of(const char *words, const struct influx_reply *r)
{
    uint64_t said = said_dropped(words);
    uint64_t named = count(words, "unable to parse '");
    AUTO_JSON json_t *root = r->body_len ? json_loadb(r->body, r->body_len, 0, NULL) : NULL;
    uint64_t listed = json_array_size(json_object_get(root, "data"));
    uint64_t most = said > named ? said : named;
    most = listed > most ? listed : most;
    return most < r->lines ? most : r->lines;
}

/* --- waiting --- */

int64_t influx_retry_after(const char *value, const char *date, int64_t now_s)
{
    if (!value)
        return -1;
    value += strspn(value, " \t");
    size_t digits = strspn(value, "0123456789");
    if (digits && value[digits + strspn(value + digits, " \t")] == '\0')
        return digits > 6 || strtoll(value, NULL, 10) * 1000 > INFLUX_WAIT_MAX_MS ? INFLUX_WAIT_MAX_MS
                                                                                  : strtoll(value, NULL, 10) * 1000;
    int64_t until = curl_getdate(value, NULL);
    if (until < 0 || digits)
        return INFLUX_WAIT_VAGUE_MS;
    int64_t from = date ? curl_getdate(date, NULL) : -1; /* the server's own clock, whatever ours says */
    from = from < 0 ? now_s : from;
    if (until <= from)
        return 0;
    return until - from > INFLUX_WAIT_MAX_MS / 1000 ? INFLUX_WAIT_MAX_MS : (until - from) * 1000;
}

/* --- what it means --- */

static bool has(const char *words, const char *needle)
{
    return strcasestr(words, needle) != NULL;
}

/* The same, before anything is quoted: a line that is quoted may say whatever it likes. */
static bool begins_with(const char *words, const char *needle)
{
    const char *at = strcasestr(words, needle);
    return at && at < words + strcspn(words, "'\"");
}

static void pause_for(struct influx_answer *a, enum influx_reason reason)
{
    a->kind = INFLUX_PAUSE;
    a->reason = reason;
}

/* What is absent says so under several statuses: 404, but 500 too, which retrying would not end. */
static bool judge_absent(struct influx_answer *a, const char *words)
{
    if (has(words, "retention policy not found"))
        pause_for(a, INFLUX_NO_RETENTION);
    else if (has(words, "database not found"))
        pause_for(a, INFLUX_NO_DATABASE);
    else if ((has(words, "bucket") || has(words, "organization")) &&
             (has(words, "not found") || has(words, "could not find")))
        pause_for(a, INFLUX_NO_DATABASE);
    return a->kind == INFLUX_PAUSE;
}

/* Lines outside of the retention, or of another type than their field has: 1.x says 400, 2.x has said 400, 422 and 500. */
static bool judge_content(struct influx_answer *a, const char *words, const struct influx_reply *r)
{
    if (begins_with(words, "partial write")) {
        a->kind = INFLUX_PARTIAL;
        a->dropped = dropped_of(words, r);
        return true;
    }
    if (!begins_with(words, "points beyond retention") && !begins_with(words, "field type conflict"))
        return false;
    a->kind = INFLUX_REJECT;
    return true;
}

/* Only 204 is what an InfluxDB says; a 200 with a page is a proxy's or another server's. */
static void judge_2xx(struct influx_answer *a, const struct influx_reply *r)
{
    if (r->status == 204 || r->body_len == 0)
        a->kind = INFLUX_DELIVERED;
    else
        pause_for(a, INFLUX_STRANGER);
}

static void judge_4xx(struct influx_answer *a, const char *words, const struct influx_reply *r)
{
    switch (r->status) {
    case 400:
    case 406:
    case 422:
        if (begins_with(words, "database not found"))
            pause_for(a, INFLUX_NO_DATABASE);
        else if (!judge_content(a, words, r))
            a->kind = INFLUX_REJECT;
        break;
    case 401:
    case 407: pause_for(a, INFLUX_UNAUTHORIZED); break;
    case 402:
    case 403: pause_for(a, INFLUX_FORBIDDEN); break;
    case 404:
        if (!judge_absent(a, words))
            pause_for(a, INFLUX_NO_API);
        break;
    case 405: pause_for(a, INFLUX_NO_API); break;
    case 408:
    case 425:
    case 429: a->kind = INFLUX_RETRY; break;
    case 413: a->kind = INFLUX_HALVE; break;
    default: pause_for(a, INFLUX_STRANGER);
    }
}

static void judge(struct influx_answer *a, const char *words, const struct influx_reply *r)
{
    if (r->status >= 200 && r->status < 300)
        judge_2xx(a, r);
    else if (r->status >= 300 && r->status < 400)
        pause_for(a, INFLUX_REDIRECTED);
    else if (r->status >= 400 && r->status < 500)
        judge_4xx(a, words, r);
    else if (r->status < 500 || r->status > 599)
        pause_for(a, INFLUX_STRANGER);
    else if (!judge_absent(a, words) && !judge_content(a, words, r))
        a->kind = INFLUX_RETRY;
}

void influx_answer(struct influx_answer *out, const struct influx_reply *r)
{
    *out = (struct influx_answer){ .kind = INFLUX_RETRY, .wait_ms = -1 };
    AUTO_FREE char *words = words_of(r->body, r->body_len);
    if (!words) {
        (void)snprintf(out->text, sizeof out->text, "%s", strerror(ENOMEM));
        return;
    }
    judge(out, words, r);
    if (out->kind == INFLUX_RETRY)
        out->wait_ms = influx_retry_after(r->retry_after, r->date, r->now_s);
    char plain[sizeof out->text - 32];
    put_plain(plain, sizeof plain, words, strlen(words));
    (void)snprintf(out->text, sizeof out->text, "status %ld%s%s", r->status, *plain ? ": " : "", plain);
}

/* {"results":[{"statement_id":0,"error":"…"}]}, or {"error":"…"} */
int influx_query_done(long status, const char *body, size_t len, char *text, size_t room)
{
    AUTO_JSON json_t *root = len ? json_loadb(body, len, 0, NULL) : NULL;
    const char *why = text_of(root, "error");
    json_t *results = json_object_get(root, "results");
    for (size_t i = 0; !why && i < json_array_size(results); i++)
        why = text_of(json_array_get(results, i), "error");
    if (status == 200 && !why && json_is_array(results))
        return 0;
    char plain[200];
    put_plain(plain, sizeof plain, why ? why : "", why ? strlen(why) : 0);
    (void)snprintf(text, room, "status %ld%s%s", status, *plain ? ": " : "", plain);
    return -EPROTO;
}

const char *influx_reason_name(enum influx_reason r)
{
    static const char *const names[INFLUX_REASONS] = {
        [INFLUX_NO_REASON] = "nothing",
        [INFLUX_UNAUTHORIZED] = "the credentials are not accepted",
        [INFLUX_FORBIDDEN] = "the credentials do not allow writing",
        [INFLUX_NO_DATABASE] = "there is no such database or bucket",
        [INFLUX_NO_RETENTION] = "there is no such retention policy",
        [INFLUX_NO_API] = "the server has no such path",
        [INFLUX_REDIRECTED] = "the server sends elsewhere",
        [INFLUX_STRANGER] = "the answer is no InfluxDB's",
        [INFLUX_TLS] = "the server's certificate is not trusted",
    };
    return names[r];
}
