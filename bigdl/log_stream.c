/* The log as it grows: bytes become lines, lines events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bigdl/log.h"

void log_stream_init(struct log_stream *s, uint64_t offset)
{
    *s = (struct log_stream){ .offset = offset };
}

void log_stream_done(struct log_stream *s)
{
    if (!s)
        return;
    free(s->partial);
    *s = (struct log_stream){ 0 };
}

static int deliver(struct log_stream *s, const char *line, size_t len, log_sink *sink, void *ctx)
{
    struct log_event ev;
    if (!log_parse_line(&s->place, line, len < LOG_LINE_MAX ? len : LOG_LINE_MAX, &ev))
        return 0;
    return sink(ctx, &ev, s->offset);
}

/* Keeps the beginning of a line; of an over-long one only what will be parsed. */
static int keep(struct log_stream *s, const char *bytes, size_t len)
{
    size_t room = LOG_LINE_MAX - s->partial_len;
    size_t take = len < room ? len : room;
    if (s->partial_len + take > s->partial_cap) {
        size_t cap = s->partial_cap ? s->partial_cap : 512;
        while (cap < s->partial_len + take)
            cap *= 2;
        char *grown = realloc(s->partial, cap);
        if (!grown)
            return -ENOMEM;
        s->partial = grown;
        s->partial_cap = cap;
    }
    if (take)
        memcpy(s->partial + s->partial_len, bytes, take);
    s->partial_len += take;
    s->skipping = s->partial_len == LOG_LINE_MAX;
    s->offset += len;
    return 0;
}

/* The line that began in `partial` has ended. */
static int flush(struct log_stream *s, log_sink *sink, void *ctx)
{
    size_t len = s->partial_len;
    s->partial_len = 0;
    s->skipping = false;
    return len ? deliver(s, s->partial, len, sink, ctx) : 0;
}

int log_stream_feed(struct log_stream *s, const char *bytes, size_t len, log_sink *sink, void *ctx)
{
    const char *p = bytes, *end = bytes + len;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            return keep(s, p, (size_t)(end - p));
        int rc;
        if (s->partial_len > 0) {
            rc = keep(s, p, (size_t)(nl - p));
            if (rc < 0)
                return rc;
            s->offset++;
            rc = flush(s, sink, ctx);
        } else {
            s->offset += (uint64_t)(nl - p) + 1;
            rc = deliver(s, p, (size_t)(nl - p), sink, ctx);
        }
        if (rc != 0)
            return rc;
        p = nl + 1;
    }
    return 0;
}

int log_stream_end(struct log_stream *s, log_sink *sink, void *ctx)
{
    return flush(s, sink, ctx);
}
