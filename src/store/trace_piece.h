/* Pieces of a trace's file: groups, datasets, texts and attributes, each checked before it is believed, since a file may come from
 * elsewhere. Every failure is explained by where in the file it is: -EPROTO, -ENOMEM. */
#ifndef STORE_TRACE_PIECE_H
#define STORE_TRACE_PIECE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct trace_reader {
    const char *path;
    char at[48]; /* "run 3", for errors */
    size_t rows_left, cells_left;
    hid_t transfer; /* how data are moved */
    struct err *e;
};

struct trace_texts {
    hid_t id; /* of the dataset or attribute */
    bool attribute;
    const char *column; /* NULL: the strings are all of it */
    size_t n;
};

int trace_piece_refuse(struct trace_reader *r, const char *what, const char *name);
int trace_piece_refuse_h5(struct trace_reader *r, const char *what, const char *name); /* with HDF5's own reason */
int trace_piece_no_memory(struct trace_reader *r);

bool trace_piece_has(hid_t at, const char *name);
int trace_piece_group(struct trace_reader *r, hid_t at, const char *name, hid_t *out);

/* Opens a dataset of this rank; its extent goes to dims. */
int trace_piece_set(struct trace_reader *r, hid_t at, const char *name, int rank, hid_t *out, hsize_t dims[2]);

/* The type in memory of one column alone, whose elements have this type and size; of all when `column` is NULL. */
hid_t trace_piece_column(hid_t type, const char *column, size_t size);

/* Fills out[0…n): each to be freed, whatever is returned. */
int trace_piece_texts(struct trace_reader *r, const struct trace_texts *s, hid_t in_file, const char *name, char **out);

/* Attributes. A text must be there; a number that is absent is fine: *out stays. */
int trace_piece_text(struct trace_reader *r, hid_t at, const char *name, char **out);
int trace_piece_number(struct trace_reader *r, hid_t at, const char *name, double *out);

bool trace_piece_is_number(hid_t type);

#endif
