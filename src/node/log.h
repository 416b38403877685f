/* A trial's log, DIR/log: what becomes of each byte that a step writes, up to the cap and beyond it (--log-cap, --keep), and
 * what waits while the disk is full. */
#ifndef NODE_LOG_H
#define NODE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct args;

enum { LOG_CHUNK = 64 << 10 }; /* what a pipe holds, and the most that one log_take() may bring */

enum log_mode {
    LOG_ALL,      /* below the cap: bytes as they come */
    LOG_LINE_END, /* the cap was reached inside a line, which may still end */
    LOG_KEPT,     /* whole lines with one of the texts, up to twice the cap */
    LOG_FULL,     /* nothing of the application any more */
};

struct log {
    int fd;
    const struct args *o;
    enum log_mode mode;
    uint64_t taken;     /* bytes of the application that this attempt put into the log */
    size_t overrun;     /* LOG_LINE_END: bytes beyond the cap */
    bool inside_line;   /* what was put last did not end in a newline */
    bool skipping;      /* LOG_KEPT: in a line too long to be kept */
    struct buf line;    /* LOG_KEPT: the line as far as it has come */
    struct buf pending; /* decided on, not in the file yet; while there are any, the pipe is not read: the next
                            application line waits in the application, not here */
    uint64_t lost;      /* bytes that could not be written, for a reason that waiting does not cure */
    int lost_why;
};

/* Opens DIR/log for appending, and takes the memory for the most that is ever held. `g` is zeroed but for fd = -1, and keeps
 * `o`. -errno of the file, -EINVAL: not a plain file, -ENOMEM. */
int log_open(struct log *g, const struct args *o, struct err *e);
void log_done(struct log *g);

/* Decides what becomes of these bytes of the application; log_flush() writes them. */
void log_take(struct log *g, const char *p, size_t len);

/* No more output comes from this step. */
void log_take_end(struct log *g);

/* A line of our own; cut when it is too long. */
void __attribute__((format(printf, 2, 3))) log_note(struct log *g, const char *fmt, ...);

/* Writes what is pending. Some of it stays so when the disk is full: to be called again later, and nothing taken until then. */
void log_flush(struct log *g);

/* Gives up what is pending, and counts it as lost. */
void log_lose_pending(struct log *g, int why);

uint64_t log_size(const struct log *g);

/* Is this failure of a write one that waiting may cure? */
bool log_disk_may_recover(int rc);

#endif
