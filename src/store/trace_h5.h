/* What writing and reading traces share of HDF5: handles that close themselves, its errors as ours, the columns. */
#ifndef STORE_TRACE_H5_H
#define STORE_TRACE_H5_H

#include <hdf5.h>
#include <stdbool.h>

#include "base/err.h"

enum { TRACE_COLUMNS = 7, TRACE_VERSION = 1 };

struct trace_column {
    const char *name;
    size_t offset; /* in struct trace_epoch */
};

extern const struct trace_column trace_columns[TRACE_COLUMNS];

/* HDF5 counts references of every kind of handle alike, so one way to let go serves all. A failure's reasons outlive it: the
 * handles of the function that failed go before its caller explains. */
void trace_h5_close(hid_t *id);

#define AUTO_H5 __attribute__((cleanup(trace_h5_close)))

/* Switches HDF5's own printing off, and with it the loading of filters from shared libraries that a file may name. */
void trace_h5_init(void);

/* Explains a call that just failed: the text, then the innermost of HDF5's own reasons. Returns `code`. */
int trace_h5_error(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A table's type in memory: the seven columns `base` bytes into a struct of `size` bytes. Negative: failed. */
hid_t trace_h5_row_type(size_t size, size_t base);

/* Strings of variable length, in UTF-8. Negative: failed. */
hid_t trace_h5_text_type(void);

#endif
