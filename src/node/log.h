/* What becomes of each byte that a step writes: into the folder's log, and its lines that matter into `heard` (log_files.h).
 *
 * A line with one of the texts of --step or --keep is heard, whatever room it takes: an epoch is made of all of them. Of the others
 * those are that come first, up to LOG_HEARD_ROOM, and when a step ends, the newest: why it ended is said near the end. Lines that
 * came before the last with a text of --step are left out of these, for that is a sign that the application lived on.
 *
 * With --tell, all that is heard has a stamp before it, milliseconds since 1970 and a blank: when it came, by the wall clock as it was
 * when the attempt began, going on by one that nobody sets.
 *
 * With --mark TEXT, a line `TEXT ID begin`, ID ending in -tN-A, begins the run of a trial: from there up to `TEXT ID end`, both
 * lines included, all goes to the folder RUNS/N instead, or IDS/ID. */
#ifndef NODE_LOG_H
#define NODE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/log_files.h"

struct args;

enum {
    LOG_CHUNK = 64 << 10,     /* what a pipe holds, and the most that one log_take() may bring */
    LOG_HEARD_ROOM = 4 << 20, /* for lines without such a text, of one step, or run */
    LOG_ID_MAX = 64,
};

/* What is to be done as soon as everything that was decided on is in the files. */
enum log_due { LOG_DUE_NOTHING, LOG_DUE_ROTATE, LOG_DUE_BEGIN, LOG_DUE_END };

struct log {
    const struct args *o;
    struct log_files own, run; /* of the launcher's folder; of the run under way */
    struct log_files *to;      /* one of the two: where lines go now */
    char run_id[LOG_ID_MAX + 1];
    struct buf in; /* taken, from in_at on not decided on */
    size_t in_at;
    struct buf line;  /* the line under way: as much of it as is looked at */
    size_t held;      /* of it, not in the log yet: it may become a mark */
    bool inside_line; /* what was put into the log last did not end in a newline */
    bool over;        /* nothing follows what was taken */
    enum log_due due;
    struct buf to_log,
        to_heard;          /* decided on, not in the files yet; while there are any, the pipe is not read: the next
                                    application line waits in the application, not here */
    int64_t stamp_from_ms; /* what the clock since the machine's start is behind a stamp */
    uint64_t room;         /* in `heard`, for lines without such a text */
    struct buf last;       /* the newest lines that were not heard */
    uint64_t lost;         /* bytes that could not be written, for a reason that waiting does not cure */
    int lost_why;
};

/* Opens DIR/log and DIR/heard, and takes the memory for the most that is ever held. `g` is LOG_CLOSED, and keeps `o`. As
 * log_files_open(), and -ENOMEM. */
#define LOG_CLOSED ((struct log){ .own = LOG_FILES_CLOSED, .run = LOG_FILES_CLOSED })
int log_open(struct log *g, const struct args *o, struct err *e);
void log_done(struct log *g);

/* These bytes of the application are ours now; log_flush() writes them. Only when log_busy() says no. */
void log_take(struct log *g, const char *p, size_t len);

/* No more output comes from this step. */
void log_take_end(struct log *g);

/* A line that a program told of itself (node/teller.h): it is heard. Only when log_busy() says no. */
void log_told(struct log *g, const char *line, size_t len);

/* A line of our own; cut when it is too long. */
void __attribute__((format(printf, 2, 3))) log_note(struct log *g, const char *fmt, ...);

/* Writes what was taken. Some of it stays when the disk is full: to be called again later, and nothing taken until then. */
void log_flush(struct log *g);

/* Is there something that is not in the files yet? */
bool log_busy(const struct log *g);

/* Gives up what is not in the files, and counts it as lost. */
void log_lose(struct log *g, int why);

uint64_t log_size(const struct log *g);       /* of DIR/log */
uint64_t log_heard_size(const struct log *g); /* of DIR/heard */

/* Is this failure of a write one that waiting may cure? */
bool log_disk_may_recover(int rc);

#endif
