/* Batches on disk while the server cannot be reached: a bounded queue that survives kill -9 at any point.
 *
 * A folder (0700) of segment files that are only appended to, named by their number in 16 hexadecimal digits, and of one small file
 * that says how far the oldest segment has been delivered. All numbers are little-endian; crc is zlib's crc32.
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
 *      24  4  crc of the 24 bytes before
 *
 * After a crash: a record at the end of a segment that is cut short, or of nothing but zeros, was being written, and is cut off
 * (counted as torn). Anything else that is wrong is corruption: the whole file is kept as NAME.bad, its good records before the
 * fault stay in the queue. A position that cannot be read is none, and what it covered is delivered again, which changes nothing
 * at the server: points carry their time. */
#ifndef MONITORING_SPOOL_H
#define MONITORING_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    SPOOL_HEAD = 16, /* bytes before a segment's first record, and before a record's payload */
    SPOOL_RECORD_MAX = 16 << 20,
    SPOOL_BAD_MAX = 8, /* corrupt files that are kept; the oldest goes */
};

struct spool_cfg {
    uint64_t cap;     /* bytes of all segments together; at least 4 segments */
    uint64_t segment; /* bytes after which another one is begun */
};

struct spool_counts {
    uint64_t lines, bytes; /* in the queue now: not delivered; on the disk */
    uint64_t found;        /* lines that were there when it was opened */
    uint64_t dropped;      /* lines given up for want of room, or unreadable later than at opening */
    uint64_t torn, bad;    /* records cut off, files set aside */
};

struct spool;

/* Makes the folder when there is none, reads all that is there. Blocks. -EBUSY: another process has it; -ENOTDIR, -errno. */
int spool_open(struct spool **out, const char *dir, const struct spool_cfg *cfg, struct err *e);

/* Closes the files; what is in the queue stays. Does not sync. */
void spool_close(struct spool *s);

/* Appends a batch; over the cap, the oldest segments go first, and their lines are counted as dropped. It is in the page cache
 * then: safe from kill -9, safe from a power cut after spool_sync(). -EMSGSIZE: larger than a record or the cap; -ENOSPC and other
 * -errno: nothing was appended. */
int spool_append(struct spool *s, const void *bytes, size_t len, uint32_t lines, struct err *e);

/* Appends the oldest batch to `out`. 1; 0: the queue is empty. A segment that has become unreadable is set aside, and its lines
 * counted as dropped. -errno. */
int spool_peek(struct spool *s, struct buf *out, uint32_t *out_lines, struct err *e);

/* Forgets the oldest batch, the one that spool_peek() gives; a segment that is used up is deleted. 0 also when the batch has gone
 * meanwhile for want of room: `id` is spool_id() as it was at the peek. */
int spool_pop(struct spool *s, uint64_t id, struct err *e);

/* Names the oldest batch: never 0, never the same again in this process. 0: the queue is empty. */
uint64_t spool_id(const struct spool *s);

/* Everything that was appended since the last time reaches the disk. Blocks. */
int spool_sync(struct spool *s, struct err *e);

struct spool_counts spool_counts(const struct spool *s);

#endif
