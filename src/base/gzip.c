#include "base/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>

#include <zlib.h>

bool gzip_is(const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    return len >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

/* One stream to its end; Z_STREAM_END, or how it went wrong. */
static int unpack_stream(z_stream *z, struct buf *out, size_t max)
{
    char chunk[16384];
    int rc = Z_OK;
    while (rc == Z_OK && !out->failed && out->len <= max) {
        z->next_out = (Bytef *)chunk;
        z->avail_out = sizeof chunk;
        rc = inflate(z, Z_NO_FLUSH);
        buf_put(out, chunk, sizeof chunk - z->avail_out);
    }
    return rc;
}

static int explain(const char *name, const z_stream *z, int rc, struct err *e)
{
    if (rc == Z_MEM_ERROR)
        return err_sys(e, -ENOMEM, "cannot unpack '%s'", name);
    return err_set(e, -EINVAL, "'%s' is no whole gzip file: %s", name,
                   rc == Z_BUF_ERROR ? "it ends too early"
                   : z->msg          ? z->msg
                                     : "damaged");
}

static int unpack_all(z_stream *z, struct buf *out, const char *name, size_t max, struct err *e)
{
    size_t had = out->len;
    int rc;
    do {
        rc = unpack_stream(z, out, had + max);
    } while (rc == Z_STREAM_END && z->avail_in > 0 && out->len <= had + max && inflateReset(z) == Z_OK);
    if (out->failed)
        return err_sys(e, -ENOMEM, "cannot unpack '%s'", name);
    if (out->len > had + max)
        return err_set(e, -EFBIG, "'%s' unpacks to more than %zu bytes", name, max);
    return rc == Z_STREAM_END ? 0 : explain(name, z, rc, e);
}

int gzip_unpack(struct buf *out, const char *name, const void *bytes, size_t len, size_t max, struct err *e)
{
    if (len > UINT_MAX)
        return err_set(e, -EFBIG, "'%s' is larger than %u bytes", name, UINT_MAX);
    /* zlib only reads through next_in. */
    z_stream z = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)len };
    int rc = inflateInit2(&z, 15 + 16); /* 16: gzip's header */
    if (rc != Z_OK)
        return explain(name, &z, rc, e);
    rc = unpack_all(&z, out, name, max, e);
    (void)inflateEnd(&z); /* of a stream that is there */
    return rc;
}
