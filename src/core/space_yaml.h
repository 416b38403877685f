/* A file of parameter sets, in a part of YAML:
 *
 *     batch_size: [32, 64]                            a list: each of these
 *     learning_rate: !!python/tuple [0.1, 0.5, 0.1]   a range: start, end (excluded), step (1 when left out)
 *     optimizer: sgd                                  one value
 *
 * Nothing else of YAML is taken: no anchor, alias, merge key, other tag, directive, second document, list or mapping within
 * another. Pure. */
#ifndef CORE_SPACE_YAML_H
#define CORE_SPACE_YAML_H

#include "base/json.h"

enum { SPACE_YAML_MAX = 1 << 20 }; /* bytes of such a file */

/* *out is {"hyperParameters": {…}} as a config would have it, for space_parse() to check; each value stands on the line that
 * it has in the file, so that json_doc_err() names this. -EINVAL names file and line, -E2BIG: more than SPACE_YAML_MAX, -ENOMEM. *out is untouched on failure. */
int space_yaml_parse(struct json_doc *out, const char *name, const char *text, size_t len, struct err *e);

#endif
