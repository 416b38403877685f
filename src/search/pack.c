#include "search/pack.h"

#include <string.h>

void pack_u64(struct buf *out, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        buf_putc(out, (char)(v >> (8 * i)));
}

void pack_f64(struct buf *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    pack_u64(out, bits);
}

void pack_bytes(struct buf *out, const void *bytes, size_t len)
{
    pack_u64(out, len);
    buf_put(out, bytes, len);
}

struct unpack unpack_from(const void *bytes, size_t len)
{
    const unsigned char *at = bytes ? bytes : (const void *)"";
    return (struct unpack){ .at = at, .end = at + len };
}

uint64_t unpack_u64(struct unpack *u)
{
    uint64_t v = 0;
    if (u->bad || u->end - u->at < 8) {
        u->bad = true;
        return 0;
    }
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)*u->at++ << (8 * i);
    return v;
}

double unpack_f64(struct unpack *u)
{
    uint64_t bits = unpack_u64(u);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

size_t unpack_count(struct unpack *u, size_t size)
{
    uint64_t n = unpack_u64(u);
    if (n > (uint64_t)(u->end - u->at) / size)
        u->bad = true;
    return u->bad ? 0 : (size_t)n;
}

struct unpack unpack_bytes(struct unpack *u)
{
    size_t n = unpack_count(u, 1);
    struct unpack part = { .at = u->at, .end = u->at + n, .bad = u->bad };
    u->at += n;
    return part;
}
