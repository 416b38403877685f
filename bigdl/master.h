/* What a standalone master offers, by the JSON of its web page (http://HOST:8080/json/). Pure. */
#ifndef BIGDL_MASTER_H
#define BIGDL_MASTER_H

#include "core/setting.h"

/* Cores and memory that live workers have free, each and together; `all`: with what is taken now, as when nothing is free. Fills
 * cores, memory_gb and the workers of *out, and leaves what else stands there. -EINVAL: not a master's JSON; -ENODEV: no worker is
 * alive. */
int master_parse(struct offer *out, const char *text, size_t len, bool all, struct err *e);

/* "http://HOST:8080/json/" of "spark://HOST:7077[,…]", into url[]; -EINVAL when the master is no standalone one. */
int master_url(const char *master, char *url, size_t size);

#endif
