#include "serve/when.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/own.h"

enum { SPAN_MAX = 10000 };

/* "+2h". */
static int read_span(const char *text, int64_t now_ms, int64_t *out_ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 }, { 'd', 86400000 } };
    char *end;
    long n = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    if (n < 0 || n > SPAN_MAX || !*end || end[1])
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (units[i].unit == *end) {
            *out_ms = now_ms + n * units[i].ms;
            return 0;
        }
    return -EINVAL;
}

static int64_t ms_of(struct tm tm)
{
    tm.tm_isdst = -1; /* as it is then */
    time_t at = mktime(&tm);
    return at == (time_t)-1 ? -1 : (int64_t)at * 1000;
}

/* Today, or tomorrow where that is over. */
static int read_hour(const char *text, int64_t now_ms, int64_t *out_ms)
{
    time_t now = (time_t)(now_ms / 1000);
    struct tm today, hour = { 0 };
    const char *end = strptime(text, "%H:%M", &hour);
    if (!end || *end || !localtime_r(&now, &today))
        return -EINVAL;
    today.tm_hour = hour.tm_hour;
    today.tm_min = hour.tm_min;
    today.tm_sec = 0;
    int64_t at = ms_of(today);
    if (at <= now_ms) {
        today.tm_mday++;
        at = ms_of(today);
    }
    *out_ms = at;
    return at < 0 ? -EINVAL : 0;
}

static int read_date(const char *text, int64_t *out_ms)
{
    static const char *const forms[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M" };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct tm tm = { 0 };
        const char *end = strptime(text, forms[i], &tm);
        int64_t at = end && !*end ? ms_of(tm) : -1;
        if (at >= 0) {
            *out_ms = at;
            return 0;
        }
    }
    return -EINVAL;
}

int when_parse(const char *text, int64_t now_ms, int64_t *out_ms, struct err *e)
{
    int64_t at = 0;
    int rc = *text == '+' ? read_span(text + 1, now_ms, &at) : read_hour(text, now_ms, &at);
    if (rc < 0)
        rc = read_date(text, &at);
    if (rc < 0)
        return err_set(e, -EINVAL, "'%s' is no time: say 18:30, \"2026-11-20 18:30\", or +30m (s, m, h or d from now)",
                       text);
    *out_ms = at;
    return 0;
}
