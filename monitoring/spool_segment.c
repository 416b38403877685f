#include "monitoring/spool_segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/own.h"
#include "monitoring/spool.h"

static const char head_magic[8] = { 'P', 'T', 'S', 'P', 'O', 'O', 'L', '1' };
static const char position_magic[8] = { 'P', 'T', 'S', 'P', 'O', 'O', 'L', 'P' };

/* --- bytes --- */

static void put_le(unsigned char *to, uint64_t x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(x >> (8 * i));
}

static uint64_t get_le(const unsigned char *from, size_t bytes)
{
    uint64_t x = 0;
    for (size_t i = 0; i < bytes; i++)
        x |= (uint64_t)from[i] << (8 * i);
    return x;
}

static uint32_t crc_of(const void *bytes, size_t len)
{
    return (uint32_t)crc32_z(0, bytes, len);
}

const char *segment_name(uint64_t number, const char *suffix, char out[SEGMENT_NAME_MAX])
{
    (void)snprintf(out, SEGMENT_NAME_MAX, "%016" PRIx64 "%s", number, suffix);
    return out;
}

bool segment_named(const char *name, const char *suffix, uint64_t *out_number)
{
    if (strspn(name, "0123456789abcdef") != 16 || strcmp(name + 16, suffix) != 0)
        return false;
    *out_number = strtoull(name, NULL, 16);
    return *out_number != 0;
}

void segment_put_head(unsigned char out[16], uint64_t number)
{
    memcpy(out, head_magic, 8);
    put_le(out + 8, number, 8);
}

void segment_put_record(unsigned char out[16], const void *payload, size_t len, uint32_t lines)
{
    put_le(out, len, 4);
    put_le(out + 4, lines, 4);
    put_le(out + 8, crc_of(payload, len), 4);
    put_le(out + 12, crc_of(out, 12), 4);
}

bool segment_get_record(const unsigned char in[16], struct segment_record *out)
{
    struct segment_record r = { .len = (uint32_t)get_le(in, 4),
                                .lines = (uint32_t)get_le(in + 4, 4),
                                .crc = (uint32_t)get_le(in + 8, 4) };
    if (get_le(in + 12, 4) != crc_of(in, 12) || r.len == 0 || r.len > SPOOL_RECORD_MAX || r.lines == 0)
        return false;
    *out = r;
    return true;
}

void segment_put_position(unsigned char out[SEGMENT_POSITION], uint64_t number, uint64_t at)
{
    memcpy(out, position_magic, 8);
    put_le(out + 8, number, 8);
    put_le(out + 16, at, 8);
    put_le(out + 24, crc_of(out, 24), 4);
}

bool segment_get_position(const unsigned char in[SEGMENT_POSITION], uint64_t *out_number, uint64_t *out_at)
{
    if (memcmp(in, position_magic, 8) != 0 || get_le(in + 24, 4) != crc_of(in, 24))
        return false;
    *out_number = get_le(in + 8, 8);
    *out_at = get_le(in + 16, 8);
    return true;
}

/* --- files --- */

/* All of it, or what there is up to the file's end. Bytes or -errno. */
static ssize_t read_at(int fd, void *to, size_t len, uint64_t at)
{
    size_t n = 0;
    while (n < len) {
        ssize_t got = pread(fd, (char *)to + n, len - n, (off_t)(at + n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

/* 1 the record is whole; 0 it is cut short (*cut) or something else; -errno. */
static int look_at(int fd, uint64_t at, char **payload, struct segment_record *r, bool *cut)
{
    unsigned char head[16];
    ssize_t n = read_at(fd, head, sizeof head, at);
    *cut = n >= 0 && n < (ssize_t)sizeof head;
    if (n < (ssize_t)sizeof head || !segment_get_record(head, r))
        return n < 0 ? (int)n : 0;
    AUTO_FREE char *bytes = malloc(r->len);
    if (!bytes)
        return -ENOMEM;
    n = read_at(fd, bytes, r->len, at + sizeof head);
    *cut = n >= 0 && n < (ssize_t)r->len;
    if (n < (ssize_t)r->len || crc_of(bytes, r->len) != r->crc)
        return n < 0 ? (int)n : 0;
    if (payload)
        *payload = MOVE_PTR(bytes);
    return 1;
}

int segment_read(int fd, uint64_t at, struct buf *out, struct segment_record *out_record)
{
    AUTO_FREE char *payload = NULL;
    bool cut;
    int rc = look_at(fd, at, &payload, out_record, &cut);
    if (rc == 1) {
        buf_put(out, payload, out_record->len);
        rc = out->failed ? -ENOMEM : 1;
    }
    return rc;
}

/* From `at` to the end: 1 nothing but zeros, 0 something, -errno. */
static int all_zeros(int fd, uint64_t at)
{
    unsigned char chunk[4096];
    ssize_t n;
    for (; (n = read_at(fd, chunk, sizeof chunk, at)) > 0; at += (uint64_t)n)
        for (ssize_t i = 0; i < n; i++)
            if (chunk[i])
                return 0;
    return n < 0 ? (int)n : 1;
}

static int scan_records(int fd, uint64_t size, uint64_t delivered, struct segment_scan *s)
{
    bool met = false, cut = false;
    uint64_t all = 0;
    int rc = 1;
    while (s->good < size) {
        struct segment_record r;
        if (s->good == delivered) {
            met = true;
            s->lines = 0;
        }
        rc = look_at(fd, s->good, NULL, &r, &cut);
        if (rc != 1)
            break;
        s->good += 16 + r.len;
        s->lines += r.lines;
        all += r.lines;
    }
    if (s->good == delivered) {
        met = true;
        s->lines = 0;
    }
    s->at = met ? delivered : 16;
    s->lines = met ? s->lines : all;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = cut ? 1 : all_zeros(fd, s->good);
    s->end = rc == 1 ? SEGMENT_TORN : SEGMENT_BAD;
    return rc < 0 ? rc : 0;
}

int segment_scan(int fd, uint64_t number, uint64_t delivered, struct segment_scan *out)
{
    struct stat st;
    unsigned char head[16], want[16];
    ssize_t n = fstat(fd, &st) < 0 ? -errno : read_at(fd, head, sizeof head, 0);
    if (n < 0)
        return (int)n;
    segment_put_head(want, number);
    struct segment_scan s = { .end = SEGMENT_WHOLE };
    int rc = 0;
    if (n == sizeof head && memcmp(head, want, sizeof head) == 0) {
        s.good = 16;
        rc = scan_records(fd, (uint64_t)st.st_size, delivered, &s);
    } else {
        rc = n < (ssize_t)sizeof head ? 1 : all_zeros(fd, 0);
        s.end = rc == 1 ? SEGMENT_TORN : SEGMENT_BAD;
        rc = rc < 0 ? rc : 0;
    }
    if (rc == 0)
        *out = s;
    return rc;
}
