/* What the parts of the model share; nobody else includes it. */
#ifndef CLUSTERING_MODEL_PARTS_H
#define CLUSTERING_MODEL_PARTS_H

#include "clustering/model.h"

/* A cluster with the next number, no member and nothing measured; -ENOSPC, -ENOMEM. It may move the others. */
int model_cluster_add(struct model *m, struct model_cluster **out, struct err *e);
void model_cluster_drop(struct model *m, size_t at);

/* One more member: the centroid moves, deviations are cut at MODEL_CUT noises. Nothing is derived anew. */
void model_cluster_absorb(const struct model *m, struct model_cluster *c, const struct profile *view);

/* Found or made; -ENOSPC, -ENOMEM. It may move the others. */
int model_class_get(struct model *m, const char *key, const char *family, struct model_class **out, struct err *e);
void model_class_done(struct model_class *c);
int model_class_count_in(struct model_class *c, int64_t cluster, uint64_t count, struct err *e); /* adds a member */

#endif
