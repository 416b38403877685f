/* The config's "nodes": host names, or objects with host, user, port and key. */
#ifndef LIVE_NODES_CFG_H
#define LIVE_NODES_CFG_H

#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "live/nodes.h"

/* The entries in the order written; none when there is no such key. A key's path is looked up in the working directory, then
 * beside the config; "~/" is the home folder. Every entry is one that ssh may be given (live/ssh). Each with a host;
 * nodes_cfg_free() is due after success. -EINVAL: which entry is wrong, and its line; -ENOMEM. */
int nodes_cfg_read(struct node_cfg **out, size_t *out_n, const struct json_doc *doc, struct err *e);
void nodes_cfg_free(struct node_cfg *cfg, size_t n);

/* Which node of a study a name in the config is: 0 for this machine, or "localhost"; else the place in the list, from 1; -1: none. */
int nodes_cfg_find(const struct node_cfg *cfg, size_t n, const char *name);

#endif
