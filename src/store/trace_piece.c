#include "store/trace_piece.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "store/trace.h"
#include "store/trace_h5.h"

int trace_piece_refuse(struct trace_reader *r, const char *what, const char *name)
{
    return err_set(r->e, -EPROTO, "'%s' is no trace that can be read: %s: '%s' %s", r->path, r->at, name, what);
}

int trace_piece_refuse_h5(struct trace_reader *r, const char *what, const char *name)
{
    return trace_h5_error(r->e, -EPROTO, "'%s' is no trace that can be read: %s: '%s' %s", r->path, r->at, name, what);
}

int trace_piece_no_memory(struct trace_reader *r)
{
    return err_sys(r->e, -ENOMEM, "cannot read '%s'", r->path);
}

/* --- objects: a file from elsewhere may point outside itself, by links, external storage and virtual datasets; ours never
 * does, so none of these is followed --- */

static bool is_hard_link(hid_t at, const char *name)
{
    H5L_info_t info;
    return H5Lget_info(at, name, &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_HARD;
}

bool trace_piece_has(hid_t at, const char *name)
{
    return H5Lexists(at, name, H5P_DEFAULT) > 0;
}

int trace_piece_group(struct trace_reader *r, hid_t at, const char *name, hid_t *out)
{
    if (!trace_piece_has(at, name))
        return trace_piece_refuse(r, "is missing", name);
    if (!is_hard_link(at, name))
        return trace_piece_refuse(r, "is a link that leads elsewhere", name);
    *out = H5Gopen2(at, name, H5P_DEFAULT);
    return *out < 0 ? trace_piece_refuse_h5(r, "is no group", name) : 0;
}

static bool stays_inside(hid_t set)
{
    AUTO_H5 hid_t properties = H5Dget_create_plist(set);
    return properties >= 0 && H5Pget_layout(properties) != H5D_VIRTUAL && H5Pget_external_count(properties) == 0;
}

int trace_piece_set(struct trace_reader *r, hid_t at, const char *name, int rank, hid_t *out, hsize_t dims[2])
{
    if (!trace_piece_has(at, name))
        return trace_piece_refuse(r, "is missing", name);
    if (!is_hard_link(at, name))
        return trace_piece_refuse(r, "is a link that leads elsewhere", name);
    AUTO_H5 hid_t set = H5Dopen2(at, name, H5P_DEFAULT);
    if (set < 0)
        return trace_piece_refuse_h5(r, "is no dataset", name);
    if (!stays_inside(set))
        return trace_piece_refuse(r, "keeps its data outside of the file", name);
    AUTO_H5 hid_t space = H5Dget_space(set);
    if (space < 0 || H5Sget_simple_extent_ndims(space) != rank || H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        return trace_piece_refuse(r, rank == 1 ? "has not one dimension" : "has not two dimensions", name);
    *out = set;
    set = -1;
    return 0;
}

/* --- strings: of variable or of fixed length, in ASCII or UTF-8, as a dataset, a column of one, or an attribute --- */

static herr_t read_raw(const struct trace_reader *r, const struct trace_texts *s, hid_t type, void *to)
{
    if (s->attribute)
        return H5Aread(s->id, type, to);
    return H5Dread(s->id, type, H5S_ALL, H5S_ALL, r->transfer, to);
}

/* The type in memory for a file's string type; strings of fixed length gain a NUL. */
static hid_t memory_text_type(hid_t in_file, size_t *out_size)
{
    bool variable = H5Tis_variable_str(in_file) > 0;
    size_t size = variable ? H5T_VARIABLE : H5Tget_size(in_file) + 1;
    *out_size = variable ? sizeof(char *) : size;
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && (H5Tset_size(type, size) < 0 || H5Tset_cset(type, H5Tget_cset(in_file)) < 0)) {
        trace_h5_close(&type);
        type = -1;
    }
    return type;
}

hid_t trace_piece_column(hid_t type, const char *column, size_t size)
{
    if (!column)
        return H5Tcopy(type);
    hid_t row = H5Tcreate(H5T_COMPOUND, size);
    if (row >= 0 && H5Tinsert(row, column, 0, type) < 0) {
        trace_h5_close(&row);
        row = -1;
    }
    return row;
}

static int copy_text(struct trace_reader *r, const char *name, const char *text, char **out)
{
    if (!text)
        text = ""; /* HDF5's way to keep an empty one */
    if (strnlen(text, TRACE_TEXT_MAX + 1) > TRACE_TEXT_MAX)
        return trace_piece_refuse(r, "is too long a text", name);
    *out = strdup(text);
    return *out ? 0 : trace_piece_no_memory(r);
}

int trace_piece_texts(struct trace_reader *r, const struct trace_texts *s, hid_t in_file, const char *name, char **out)
{
    size_t size;
    bool variable = H5Tis_variable_str(in_file) > 0;
    if (s->n == 0)
        return 0;
    if (!variable && H5Tget_size(in_file) > TRACE_TEXT_MAX)
        return trace_piece_refuse(r, "is too long a text", name);
    AUTO_H5 hid_t text = memory_text_type(in_file, &size);
    AUTO_H5 hid_t type = trace_piece_column(text, s->column, size);
    AUTO_H5 hid_t space = H5Screate_simple(1, (const hsize_t[]){ s->n }, NULL);
    AUTO_FREE char *raw = calloc(s->n, size);
    if (!raw)
        return trace_piece_no_memory(r);
    if (type < 0 || space < 0 || read_raw(r, s, type, raw) < 0)
        return trace_piece_refuse_h5(r, "cannot be read", name);
    int rc = 0;
    for (size_t i = 0; i < s->n && rc == 0; i++)
        rc = copy_text(r, name, variable ? ((char **)(void *)raw)[i] : raw + i * size, &out[i]);
    if (variable)
        (void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw);
    return rc;
}

/* The attribute's type, when it is one value. */
static int open_attribute(struct trace_reader *r, hid_t at, const char *name, hid_t *out, hid_t *out_type)
{
    AUTO_H5 hid_t attr = H5Aopen(at, name, H5P_DEFAULT);
    if (attr < 0)
        return trace_piece_refuse_h5(r, "cannot be opened", name);
    AUTO_H5 hid_t space = H5Aget_space(attr);
    if (H5Sget_simple_extent_npoints(space) != 1)
        return trace_piece_refuse(r, "is not one value", name);
    *out_type = H5Aget_type(attr);
    *out = attr;
    attr = -1;
    return 0;
}

int trace_piece_text(struct trace_reader *r, hid_t at, const char *name, char **out)
{
    if (H5Aexists(at, name) <= 0)
        return trace_piece_refuse(r, "is missing", name);
    AUTO_H5 hid_t attr = -1, type = -1;
    int rc = open_attribute(r, at, name, &attr, &type);
    if (rc < 0)
        return rc;
    if (H5Tget_class(type) != H5T_STRING)
        return trace_piece_refuse(r, "is no text", name);
    return trace_piece_texts(r, &(struct trace_texts){ attr, true, NULL, 1 }, type, name, out);
}

bool trace_piece_is_number(hid_t type)
{
    H5T_class_t class = H5Tget_class(type);
    return class == H5T_FLOAT || class == H5T_INTEGER;
}

int trace_piece_number(struct trace_reader *r, hid_t at, const char *name, double *out)
{
    if (H5Aexists(at, name) <= 0)
        return 0;
    AUTO_H5 hid_t attr = -1, type = -1;
    int rc = open_attribute(r, at, name, &attr, &type);
    if (rc < 0)
        return rc;
    if (!trace_piece_is_number(type) || H5Aread(attr, H5T_NATIVE_DOUBLE, out) < 0)
        return trace_piece_refuse(r, "is no number", name);
    return 0;
}
