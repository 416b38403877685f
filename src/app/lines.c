#include "app/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void lines_init(struct lines *s, const struct line_reader *reader, uint64_t offset)
{
    *s = (struct lines){ .reader = *reader, .offset = offset };
}

void lines_done(struct lines *s)
{
    if (!s)
        return;
    free(s->partial);
    *s = (struct lines){ 0 };
}

static int deliver(struct lines *s, const char *line, size_t len, report_sink *sink, void *ctx)
{
    struct app_report r;
    if (!s->reader.parse(s->reader.ctx, &s->place, line, len < LINES_BYTES_MAX ? len : LINES_BYTES_MAX, &r))
        return 0;
    return sink(ctx, &r, s->offset);
}

/* Keeps the beginning of a line; of an over-long one only what will be parsed. */
static int keep(struct lines *s, const char *bytes, size_t len)
{
    size_t room = LINES_BYTES_MAX - s->partial_len;
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
    s->skipping = s->partial_len == LINES_BYTES_MAX;
    s->offset += len;
    return 0;
}

/* The line that began in `partial` has ended. */
static int flush(struct lines *s, report_sink *sink, void *ctx)
{
    size_t len = s->partial_len;
    s->partial_len = 0;
    s->skipping = false;
    return len ? deliver(s, s->partial, len, sink, ctx) : 0;
}

int lines_feed(struct lines *s, const char *bytes, size_t len, report_sink *sink, void *ctx)
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

int lines_end(struct lines *s, report_sink *sink, void *ctx)
{
    return flush(s, sink, ctx);
}

const char *lines_dropped(const struct lines *s)
{
    return s->reader.dropped ? s->reader.dropped(s->reader.ctx) : NULL;
}
