/* The environment that a study is submitted from, as far as it matters to its driver and its trials: where programs and libraries are found, how
 * runtimes are set, and what its files name. Secrets are not kept: they would stand in the store. Pure. */
#ifndef SERVE_VARIABLES_H
#define SERVE_VARIABLES_H

#include "base/json.h"
#include "base/strv.h"

/* Of these NAME=VALUE texts, those that are kept, as an object; null for those of always that are not set. `texts` are searched for $NAME and ${NAME};
 * secrets that they name are added to `left_out`. New reference; NULL: memory. */
json_t *variables_kept(char *const *env, const char *const *texts, size_t n_texts, struct strv *left_out);

#endif
