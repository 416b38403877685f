/* Which hosts are meant by a word, as `--hosts` and `pipetune nodes` take it. */
#ifndef LIVE_HOST_LIST_H
#define LIVE_HOST_LIST_H

#include "base/json.h"

/* A list as the config's "nodes" has it, each entry one that ssh may be given (live/ssh). `said` is, in this order,
 *   the name of a list of the config's "hosts" ({"lab": ["a", "b"]}, or the name of a JSON file that holds such an object)
 *   a file: a JSON array of such entries, or text with a host to a line ('#' begins a comment)
 *   hosts with commas between.
 * A host of a text is [USER@]HOST. Files are looked up in the working directory, then beside the config, which may have no
 * root: then there are no lists. At most HOST_LIST_MAX, none twice. New reference. -EINVAL says which, and why; -ENOMEM. */
enum { HOST_LIST_MAX = 1024 };
int host_list_choose(json_t **out, const char *said, const struct json_doc *config, struct err *e);

#endif
