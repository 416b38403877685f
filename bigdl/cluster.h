/* The rows of clusters that Spark runs on (app/cluster.h). */
#ifndef BIGDL_CLUSTER_H
#define BIGDL_CLUSTER_H

#include "app/cluster.h"

extern const struct cluster_row cluster_kubernetes, cluster_standalone, cluster_yarn;
extern const struct cluster_row *const cluster_rows[]; /* ends with NULL */

const struct cluster_row *cluster_find(const char *master); /* NULL: a local one */

#endif
