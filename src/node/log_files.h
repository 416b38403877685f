/* The two files of a folder that output goes to, and their limits on disk.
 *
 * DIR/log    all of it, for people: when it has grown past half of what it may take it becomes DIR/log.1, whose former content
 *            is gone with that, and another begins. So it is bounded over all attempts, and its end is always the newest.
 * DIR/heard  the lines that matter to who reads along, by offset; nothing is ever left out of it for want of room. */
#ifndef NODE_LOG_FILES_H
#define NODE_LOG_FILES_H

#include <limits.h>
#include <stdint.h>

#include "base/err.h"

struct log_files {
    char dir[PATH_MAX]; /* here, so that a run can begin when memory is out */
    int log, heard;     /* -1: closed */
    uint64_t size;      /* of `log` */
};

#define LOG_FILES_CLOSED ((struct log_files){ .log = -1, .heard = -1 })

/* Opens both for appending, made when absent; a line that an earlier attempt left without its end is ended. `f` is closed, and
 * stays so on failure: as ours_open(), -ENAMETOOLONG. */
int log_files_open(struct log_files *f, const char *dir, struct err *e);
void log_files_close(struct log_files *f); /* closed is fine */

/* `log` begins anew; where another cannot be had, what it holds is dropped, for the disk comes before the past. */
void log_files_rotate(struct log_files *f);

#endif
