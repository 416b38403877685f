/* A segment of any bytes (the first two say how far it was delivered): its lines are no more than it has bytes, those behind the position are
 * the last of all, and its head alone decides what it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "monitoring/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void put_le(uint8_t *to, uint64_t x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(x >> (8 * i));
}

/* Sums that no mutation would guess are made right, for the heads of half of the inputs, so that what lies behind them is read, too. */
static void mend(uint8_t *bytes, size_t len)
{
    if (len < SPOOL_HEAD)
        return;
    memcpy(bytes, "PTSPOOL1", 8);
    put_le(bytes + 8, 1, 8);
    for (size_t at = SPOOL_HEAD; at + SPOOL_HEAD <= len;) {
        size_t want = bytes[at], room = len - at - SPOOL_HEAD, payload = want < room ? want : room;
        if (payload == 0 || bytes[at + 1] == 0xff)
            return;
        put_le(bytes + at, payload, 4);
        put_le(bytes + at + 8, crc32_z(0, bytes + at + SPOOL_HEAD, payload), 4);
        put_le(bytes + at + 12, crc32_z(0, bytes + at, 12), 4);
        at += SPOOL_HEAD + payload;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    uint8_t *bytes = malloc(size);
    check(bytes);
    memcpy(bytes, data + 2, size - 2);
    if (data[0] & 1)
        mend(bytes, size - 2);
    struct buf all = BUF_INIT, some = BUF_INIT, none = BUF_INIT;
    bool whole = spool_segment(bytes, size - 2, 1, 0, &all);
    check(spool_segment(bytes, size - 2, 1, data[1], &some) == whole);
    check(all.len <= size && some.len <= all.len);
    check(some.len == 0 || memcmp(all.data + (all.len - some.len), some.data, some.len) == 0);
    (void)spool_segment(bytes, size - 2, 2, 0, &none);
    check(all.len == 0 || none.len == 0);
    uint64_t number, at;
    if (size - 2 >= SPOOL_POSITION)
        (void)spool_position(bytes, &number, &at);
    buf_done(&all);
    buf_done(&some);
    buf_done(&none);
    free(bytes);
    return 0;
}
