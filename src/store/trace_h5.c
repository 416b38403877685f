#include "store/trace_h5.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/own.h"
#include "store/trace.h"

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
