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

/* A file that is made whole in memory, and its bytes on disk, atomically: it is there at once or not at all. Negative, and HDF5's reasons;
 * writing explains itself: -EIO, -errno. */
hid_t trace_h5_memory_file(void);
int trace_h5_write(hid_t file, const char *path, struct err *e);

/* A data set of rank 1 to 3; numbers are packed. Negative: failed. */
int trace_h5_array(hid_t at, const char *name, hid_t type, int rank, const hsize_t *dims, const void *data);

#endif
