/* Properties of Spark as a file that it reads. Pure. */
#ifndef BIGDL_PROPERTIES_H
#define BIGDL_PROPERTIES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

/* Appends a line for each member of the object, whose value is a scalar or an array of one. */
void properties_put(const json_t *values, struct buf *out);

/* Appends the value that such a file gives to this name: the last one. False: none. Lines that go on in the next one are not read. */
bool properties_find(const char *text, const char *name, struct buf *out);

#endif
