/* A trace on its way from the process that reads a file of unknown origin to the one that asked. HDF5 can break the heap of whoever
 * reads a damaged file without anything being noticed at first, so that process gives its result away as plain bytes and ends.
 * Those are checked like any input: who knows what broke.
 *
 *     i64 rc · on failure: the text of the error · else features, runs, the tuner (its policy NULL: none)
 *     text: u64 length, bytes (length 2^64 - 1: NULL) · array: u64 count, elements as in memory (both ends are one machine) */
#ifndef STORE_TRACE_WIRE_H
#define STORE_TRACE_WIRE_H

#include <stddef.h>

#include "base/err.h"
#include "store/trace.h"

/* Writes the outcome: the trace when rc is 0, else the error. 0 or -errno. */
int trace_wire_put(int fd, int rc, const struct trace *t, const struct err *error);

/* Takes it: what was put as rc, with its error; -EPROTO for bytes that are no outcome (explained as damage of `path`); -ENOMEM.
 * *out is untouched on failure. */
int trace_wire_get(struct trace *out, const void *bytes, size_t len, const char *path, struct err *e);

#endif
