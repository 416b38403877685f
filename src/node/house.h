/* What people ask of a machine: its memory, its load, the launches that lie there; and that ours be removed. */
#ifndef NODE_HOUSE_H
#define NODE_HOUSE_H

#include "base/buf.h"
#include "base/err.h"
#include "node/launches.h"

enum { HOUSE_TAGS_MAX = 64 }; /* that are named; more are counted */

/* ,"memory_mb":N,"free_mb":N,"load":X,"running":"T1,T2","n_running":N,"over":N    the first three only where the kernel tells. -errno. */
int house_look(struct launches *l, struct buf *to, struct err *e);

/* Removes the folders of launches that are over, and the one that they lie in when nothing is left there:
 * ,"removed":N,"running":"T1","n_running":N,"kept":N,"root":true    root: it is gone; kept: they could not be removed. -errno. */
int house_clean(struct launches *l, struct buf *to, struct err *e);

/* The texts of /proc/meminfo: kB of this row, -1 when it is not there. Pure. */
long house_memory_kb(const char *meminfo, const char *row);

#endif
