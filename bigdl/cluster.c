#include "bigdl/cluster.h"

#include <string.h>

const struct cluster_row *const cluster_rows[] = { &cluster_standalone, &cluster_yarn, &cluster_kubernetes, NULL };

const struct cluster_row *cluster_find(const char *master)
{
    for (size_t i = 0; cluster_rows[i]; i++) {
        const struct cluster_row *r = cluster_rows[i];
        if (r->whole ? strcmp(master, r->begins) == 0 : strncmp(master, r->begins, strlen(r->begins)) == 0)
            return r;
    }
    return NULL;
}
