/* k-means models made elsewhere, and vectors for them. Pure.
 *
 *     {"k":2,"n_features":3,"centroids":[[…],[…]],"cluster_sizes":[10,20],"inertia":1.5,"feature_names":["a","b","c"] or null}
 *
 * Other keys are ignored. The vectors of such a model are compared as they are, in the space that it was made in. */
#ifndef CLUSTERING_MODEL_SKLEARN_H
#define CLUSTERING_MODEL_SKLEARN_H

#include "base/json.h"
#include "clustering/model.h"

/* As a raw model; its clusters are numbered 0, 1, … like the centroids. -EINVAL: a key is missing, of a wrong kind or size, or a
 * number is none; -ENOMEM. *out is untouched then. */
int model_sklearn_read(struct model *out, const char *name, const char *text, size_t len, struct err *e);

struct model_vectors_list {
    double *x; /* n × width, row-major; NAN: null */
    size_t n, width;
};

/* {"vectors":[[…],…]}, each of `width` numbers; null, for a feature that was not measured, only when `may_lack`. -EINVAL, -ENOMEM. */
int model_sklearn_vectors(struct model_vectors_list *out, size_t width, bool may_lack, const char *name,
                          const char *text, size_t len, struct err *e);
void model_sklearn_vectors_done(struct model_vectors_list *v);

/* [{"cluster":id,"squared_distance":x,"decision":"known" | "ambiguous" | "unknown" | "refused"},…], one per vector. In a raw model the
 * squared distance is the sum of squared differences and the decision "unknown": it has no spreads. Else the vectors are profiles
 * (log rates in the model's order), the squared distance is that of model.h; cluster and squared_distance are null where nothing
 * can be compared. *out is a new reference. -ENOMEM. */
int model_sklearn_predict(json_t **out, const struct model *m, const struct model_vectors_list *v, struct err *e);

#endif
