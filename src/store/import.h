/* Texts of other tools as traces: a table of formats. Pure but for memory. */
#ifndef STORE_IMPORT_H
#define STORE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "store/trace.h"

struct import_text {
    const char *name; /* of the file, for errors; formats that name no model call it after this */
    const char *text;
    size_t len;
    bool lenient; /* leave broken rows out */
};

struct import_format {
    const char *name, *help;
    /* Adds runs to *out. `notes` gains a line for each broken row (the first 20), and for what else is worth knowing.
     * The number of rows left out (0 unless lenient), -EINVAL: broken rows, or nothing at all in it; -ENOMEM. */
    int (*run)(struct trace *out, const struct import_text *in, struct buf *notes, struct err *e);
};

extern const struct import_format import_formats[]; /* ends with a NULL name */

/* NULL: none of that name. */
const struct import_format *import_find(const char *name);

#endif
