#include "serve/feed_at.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"

/* A number from 0 that ends with `end`, or the text's end where `end` may be missing; NULL: it is none. */
static const char *number(const char *text, int base, uint64_t max, uint64_t *out)
{
    char *end;
    errno = 0;
    bool digit = *text >= '0' && *text <= '9', letter = base == 16 && *text >= 'a' && *text <= 'f';
    if (!(digit || letter) || (base == 16 && text[1] == 'x'))
        return NULL;
    *out = strtoull(text, &end, base);
    return errno || *out > max ? NULL : end;
}

static const char *stop(const char *text)
{
    return text && *text == '.' ? text + 1 : NULL;
}

void feed_at_done(struct feed_at *at)
{
    free(at->open);
    *at = (struct feed_at){ .n = 0 };
}

int feed_at_open(struct feed_at *at, int64_t attempt, int epoch)
{
    if (at->n == FEED_OPEN_MAX)
        return 0;
    void *more = array_more(at->open, at->n, &at->cap, sizeof *at->open);
    if (!more)
        return -ENOMEM;
    at->open = more;
    at->open[at->n++] = (struct feed_open){ attempt, epoch };
    return 0;
}

static int parse_open(struct feed_at *at, const char *text)
{
    while (*text) {
        uint64_t attempt, epoch;
        const char *p = *text == '.' ? number(text + 1, 10, INT64_MAX, &attempt) : NULL;
        p = p && *p == '-' ? number(p + 1, 10, INT_MAX, &epoch) : NULL;
        if (!p || at->n == FEED_OPEN_MAX)
            return -EINVAL;
        int rc = feed_at_open(at, (int64_t)attempt, (int)epoch);
        if (rc < 0)
            return rc;
        text = p;
    }
    return 0;
}

int feed_at_parse(struct feed_at *out, const char *text)
{
    uint64_t study = 0, attempts = 0, decisions = 0, studies = 0;
    const char *p = stop(number(text, 10, INT64_MAX, &study));
    p = p ? stop(number(p, 10, INT64_MAX, &attempts)) : NULL;
    p = p ? stop(number(p, 10, INT64_MAX, &decisions)) : NULL;
    p = p ? number(p, 16, UINT32_MAX, &studies) : NULL;
    if (!p)
        return -EINVAL;
    struct feed_at at = { .study = (int64_t)study,
                          .attempts = (int64_t)attempts,
                          .decisions = (int64_t)decisions,
                          .studies = (uint32_t)studies };
    int rc = parse_open(&at, p);
    if (rc < 0)
        feed_at_done(&at);
    else
        *out = at;
    return rc;
}

void feed_at_put(struct buf *b, const struct feed_at *at)
{
    buf_printf(b, "%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRIx32, at->study, at->attempts, at->decisions, at->studies);
    for (size_t i = 0; i < at->n; i++)
        buf_printf(b, ".%" PRId64 "-%d", at->open[i].attempt, at->open[i].epoch);
}
