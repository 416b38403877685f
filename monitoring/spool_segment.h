/* One segment file of the spool (its bytes are drawn in monitoring/spool.h): names, heads, and reading through it. */
#ifndef MONITORING_SPOOL_SEGMENT_H
#define MONITORING_SPOOL_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { SEGMENT_NAME_MAX = 32, SEGMENT_POSITION = 28 };

/* "00000000000000a7" and the suffix. Returns `out`. */
const char *segment_name(uint64_t number, const char *suffix, char out[SEGMENT_NAME_MAX]);

/* Is this such a name, and of which number? */
bool segment_named(const char *name, const char *suffix, uint64_t *out_number);

struct segment_record {
    uint32_t len, lines, crc;
};

/* 16 bytes each. */
void segment_put_head(unsigned char out[16], uint64_t number);
void segment_put_record(unsigned char out[16], const void *payload, size_t len, uint32_t lines);
bool segment_get_record(const unsigned char in[16], struct segment_record *out); /* false: no head of a record */

void segment_put_position(unsigned char out[SEGMENT_POSITION], uint64_t number, uint64_t at);
bool segment_get_position(const unsigned char in[SEGMENT_POSITION], uint64_t *out_number, uint64_t *out_at);

/* Appends the payload of the record at `at` to `out`. 1; 0: what is there is no whole record; -errno (-ENOMEM, -EIO, …). */
int segment_read(int fd, uint64_t at, struct buf *out, struct segment_record *out_record);

enum segment_end {
    SEGMENT_WHOLE,
    SEGMENT_TORN, /* behind `good` lies a record that was being written */
    SEGMENT_BAD,  /* behind `good` lies something else */
};

struct segment_scan {
    enum segment_end end;
    uint64_t good;  /* bytes up to the end of the last good record; 0: not even the segment's head is */
    uint64_t at;    /* offset of the first record that is not delivered; `good` when all are */
    uint64_t lines; /* from `at` to `good` */
};

/* Reads all of it. `delivered` is what the position says, 0 for nothing; one that is on no record's begin counts as 0.
 * 0 or -errno. */
int segment_scan(int fd, uint64_t number, uint64_t delivered, struct segment_scan *out);

#endif
