#include "store/trace_h5.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "store/trace.h"

enum { CHUNK_CELLS = 1 << 16, DEFLATE_LEVEL = 4, RANK_MAX = 3 };

const struct trace_column trace_columns[TRACE_COLUMNS] = {
    { "start_s", offsetof(struct trace_epoch, start_s) },   { "duration_s", offsetof(struct trace_epoch, duration_s) },
    { "loss", offsetof(struct trace_epoch, loss) },         { "accuracy", offsetof(struct trace_epoch, accuracy) },
    { "energy_j", offsetof(struct trace_epoch, energy_j) }, { "iterations", offsetof(struct trace_epoch, iterations) },
    { "records", offsetof(struct trace_epoch, records) },
};

void trace_h5_init(void)
{
    (void)H5open();
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    (void)H5PLset_loading_state(
        0); /* without it, a file with a foreign filter is refused all the same, but after a search */
}

void trace_h5_close(hid_t *id)
{
    if (*id < 0)
        return;
    hid_t reasons = H5Eget_current_stack();
    (void)H5Idec_ref(*id);
    if (reasons >= 0)
        (void)H5Eset_current_stack(reasons); /* closes it too */
}

/* The first entry of a walk upward is where the failure began. */
static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *ctx)
{
    if (n == 0 && error->desc)
        (void)snprintf(ctx, 200, "%s", error->desc);
    return 0;
}

int trace_h5_error(struct err *e, int code, const char *fmt, ...)
{
    char reason[200] = "", text[600];
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, reason);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return *reason ? err_set(e, code, "%s: HDF5 says '%s'", text, reason) : err_set(e, code, "%s", text);
}

hid_t trace_h5_row_type(size_t size, size_t base)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, size);
    for (size_t i = 0; i < TRACE_COLUMNS && type >= 0; i++) {
        if (H5Tinsert(type, trace_columns[i].name, base + trace_columns[i].offset, H5T_NATIVE_DOUBLE) < 0) {
            trace_h5_close(&type);
            type = -1;
        }
    }
    return type;
}

hid_t trace_h5_text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        trace_h5_close(&type);
        type = -1;
    }
    return type;
}

/* Datasets without time stamps, so that the same trace gives the same bytes. */
static hid_t dataset_properties(const hsize_t *dims, int rank, bool packed)
{
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    if (p < 0 || H5Pset_obj_track_times(p, false) < 0 || !packed)
        return p;
    hsize_t chunk[RANK_MAX], row = 1;
    memcpy(chunk, dims, (size_t)rank * sizeof *dims);
    for (int i = 1; i < rank; i++)
        row *= dims[i];
    while (chunk[0] > 1 && chunk[0] * row > CHUNK_CELLS)
        chunk[0] = (chunk[0] + 1) / 2;
    if (H5Pset_chunk(p, rank, chunk) < 0 || H5Pset_shuffle(p) < 0 || H5Pset_deflate(p, DEFLATE_LEVEL) < 0) {
        trace_h5_close(&p);
        return -1;
    }
    return p;
}

int trace_h5_array(hid_t at, const char *name, hid_t type, int rank, const hsize_t *dims, const void *data)
{
    bool empty = false;
    for (int i = 0; i < rank; i++)
        empty |= dims[i] == 0;
    bool packed = !empty && H5Tget_class(type) != H5T_STRING && H5Tget_class(type) != H5T_COMPOUND;
    AUTO_H5 hid_t space = H5Screate_simple(rank, dims, NULL);
    AUTO_H5 hid_t properties = dataset_properties(dims, rank, packed);
    AUTO_H5 hid_t set = H5Dcreate2(at, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    if (set < 0)
        return -1;
    return empty ? 0 : H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
}

/* The file is made whole in memory: a disk then sees it at once or not at all, by the same few calls as every other file. */
hid_t trace_h5_memory_file(void)
{
    AUTO_H5 hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    AUTO_H5 hid_t root = H5Pcreate(H5P_FILE_CREATE); /* its group is as the others: without the time of day */
    /* The format of 1.8, of 2008, takes half the room of the oldest one, and knows checksums. */
    if (access < 0 || root < 0 || H5Pset_obj_track_times(root, false) < 0 ||
        H5Pset_fapl_core(access, 1 << 20, false) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0)
        return -1;
    return H5Fcreate("trace", H5F_ACC_TRUNC, root, access);
}

/* Its bytes where they lie: what H5Fget_file_image() copies has a head that was changed after its checksum was made. */
static int image_of(hid_t file, void **out, size_t *out_size)
{
    void **memory = NULL;
    ssize_t size = H5Fget_file_image(file, NULL, 0);
    if (size < 0 || H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&memory) < 0 || !memory)
        return -1;
    *out = *memory;
    *out_size = (size_t)size;
    return 0;
}

int trace_h5_write(hid_t file, const char *path, struct err *e)
{
    void *image = NULL;
    size_t size = 0;
    if (H5Fflush(file, H5F_SCOPE_LOCAL) < 0 || image_of(file, &image, &size) < 0)
        return trace_h5_error(e, -EIO, "cannot write '%s'", path);
    return io_write_atomic(path, image, size, 0666, e);
}
