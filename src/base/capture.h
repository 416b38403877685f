/* The output of a short command: for asking a program its version, never for anything that runs long. */
#ifndef BASE_CAPTURE_H
#define BASE_CAPTURE_H

#include "base/buf.h"
#include "base/err.h"

/* Runs argv (found on PATH, stdin empty) and appends stdout and stderr, at most 64 KiB. Ends it after timeout_ms. Returns the
 * exit code (128 + signal), -ENOENT when there is no such program, -ETIMEDOUT. Blocks: not for the loop. */
int capture(struct buf *out, char *const argv[], int timeout_ms, struct err *e);

/* The same with stdout and stderr apart; -EFBIG: stdout has more than `max` bytes. */
int capture_apart(struct buf *out, struct buf *said, char *const argv[], size_t max, int timeout_ms, struct err *e);

#endif
