/* A file of points: CSV (a line of names, then a line of each point) or JSON lines (an object of each). Pure. */
#ifndef CORE_POINT_LIST_H
#define CORE_POINT_LIST_H

#include "base/json.h"

/* As "points" of "hyperParameters" has them; space_parse() checks what they hold. JSON lines begin with '{', anything else is CSV. New reference, or
 * NULL and *out_rc: -EINVAL names file and line; -ENOMEM. */
json_t *point_list_parse(const char *name, const char *text, size_t len, struct err *e, int *out_rc);

#endif
