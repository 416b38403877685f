/* The folder in which versions before the store's outbox kept what an InfluxDB had not taken: read once, and gone then.
 *
 * Segment files, named by their number in 16 hexadecimal digits, and one small file that says how far the oldest has been delivered. All
 * numbers are little-endian; crc is zlib's crc32.
 *
 *     00000000000000a7.spool
 *       0  8  magic "PTSPOOL1"
 *       8  8  the segment's number, as in its name
 *      16  …  records:
 *               0  4  bytes of the payload, 1…SPOOL_RECORD_MAX
 *               4  4  lines in it, 1…
 *               8  4  crc of the payload
 *              12  4  crc of the 12 bytes before
 *              16  …  payload
 *
 *     position                      also the lock: one process at a time (flock)
 *       0  8  magic "PTSPOOLP"
 *       8  8  number of a segment
 *      16  8  offset in it of the first record that is not delivered
 *      24  4  crc of the 24 bytes before */
#ifndef MONITORING_SPOOL_H
#define MONITORING_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { SPOOL_HEAD = 16, SPOOL_POSITION = 28, SPOOL_RECORD_MAX = 16 << 20 };

/* The payloads of a segment's good records that begin at `delivered` or behind it (0: of all; so is what is on no record's begin), appended
 * to `out`. True: the bytes are good to their end, or the last record is cut short, as one is that was being written. Pure. */
bool spool_segment(const void *bytes, size_t len, uint64_t number, uint64_t delivered, struct buf *out);

/* False: it is none. */
bool spool_position(const unsigned char bytes[SPOOL_POSITION], uint64_t *out_number, uint64_t *out_at);

/* Hands over the lines of each segment that is not delivered, in their order, and deletes it when `take` has returned 0; then the folder.
 * What is damaged behind good records stays as NAME.bad. Blocks. How many are damaged, 0 also where there is no folder; -EBUSY: a process
 * of an earlier version has it; -errno; what `take` says. */
int spool_take_over(const char *dir, int (*take)(void *ctx, const char *lines, size_t len, struct err *e), void *ctx,
                    struct err *e);

#endif
