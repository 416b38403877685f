#include "monitoring/sender_hand.h"

#include <assert.h>
#include <string.h>

void hand_take(struct hand *h, struct buf *text, uint32_t lines, uint64_t spool_id)
{
    hand_done(h);
    h->text = *text;
    *text = BUF_INIT;
    h->lines = lines;
    h->spool_id = spool_id;
    h->n = lines ? 1 : 0;
    h->parts[0] = (struct hand_part){ .to = h->text.len, .lines = lines };
}

void hand_done(struct hand *h)
{
    buf_done(&h->text);
    *h = (struct hand){ 0 };
}

struct hand_part *hand_next(struct hand *h)
{
    assert(h->n > 0);
    return &h->parts[h->n - 1];
}

void hand_settle(struct hand *h)
{
    assert(h->n > 0);
    h->n--;
}

/* The end of the line that starts at `at`. */
static size_t line_end_at(const struct hand *h, size_t at, size_t to)
{
    const char *newline = memchr(h->text.data + at, '\n', to - at);
    return newline ? (size_t)(newline - h->text.data) + 1 : to;
}

void hand_halve(struct hand *h, enum hand_cut by)
{
    struct hand_part all = *hand_next(h), first = { .from = all.from, .to = all.from };
    assert(all.lines > 1 && h->n < HAND_PARTS_MAX);
    size_t middle = all.from + (all.to - all.from) / 2;
    /* At least one line on either side. */
    do {
        first.to = line_end_at(h, first.to, all.to);
        first.lines++;
    } while (first.lines + 1 < all.lines && (by == HAND_BY_LINES ? first.lines < all.lines / 2 : first.to < middle));
    h->parts[h->n - 1] = (struct hand_part){ .from = first.to, .to = all.to, .lines = all.lines - first.lines };
    h->parts[h->n++] = first;
}

uint32_t hand_left(const struct hand *h)
{
    uint32_t lines = 0;
    for (size_t i = 0; i < h->n; i++)
        lines += h->parts[i].lines;
    return lines;
}

void hand_rest(const struct hand *h, struct buf *out)
{
    for (size_t i = h->n; i-- > 0;)
        buf_put(out, h->text.data + h->parts[i].from, h->parts[i].to - h->parts[i].from);
}
