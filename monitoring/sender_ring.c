#include "monitoring/sender_ring.h"

#include <stdlib.h>

struct batch *batch_new(int64_t now_ms)
{
    struct batch *b = calloc(1, sizeof *b);
    if (b)
        b->since_ms = now_ms;
    return b;
}

void batch_free(struct batch *b)
{
    buf_done(&b->text);
    free(b);
}

void ring_push(struct ring *r, struct batch *b)
{
    if (r->last)
        r->last->next = b;
    else
        r->first = b;
    r->last = b;
    r->bytes += b->text.len;
}

void ring_unshift(struct ring *r, struct batch *b)
{
    b->next = r->first;
    r->first = b;
    if (!r->last)
        r->last = b;
    r->bytes += b->text.len;
}

struct batch *ring_shift(struct ring *r)
{
    struct batch *b = r->first;
    r->first = b->next;
    if (!r->first)
        r->last = NULL;
    r->bytes -= b->text.len;
    b->next = NULL;
    return b;
}
