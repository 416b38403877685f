/* k-means over rows of numbers, of which some may be missing. Pure; the same data, config and seed give the same bits on every
 * machine.
 *
 * Without a mask the distance of a row and a centre is the squared Euclidean one. With a mask it is the mean of the squared
 * differences over the features which both have; a centre has a feature when one of its members has it, and there it is the
 * mean over the members that do. A pair with fewer than `min_common` features in common is no candidate.
 *
 * Of centres equally near the lowest index is taken. When one centre lies so close behind another that the rounding of the two
 * distances could hide it, the two are compared feature by feature, (c2 - c1) (2x - c1 - c2): what the centres have in common
 * falls out exactly, so a feature of 1e17 does not hide one of 1.
 *
 * Values must be finite and at most KMEANS_MAX in magnitude, so that no sum of squares overflows; where the mask says that a
 * feature is missing, anything may stand. */
#ifndef CLUSTERING_KMEANS_H
#define CLUSTERING_KMEANS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define KMEANS_MAX 1e140
#define KMEANS_NONE UINT32_MAX /* the cluster of a row that has no candidate */

struct kmeans_data {
    const double *values;      /* n rows of d features */
    const unsigned char *mask; /* n × d, 1 = the feature is there; NULL: all are */
    size_t n, d;               /* both at least 1, n below 2^31 */
};

struct kmeans_cfg {
    size_t k;          /* 1 <= k <= rows that have min_common features */
    unsigned n_init;   /* restarts, each with its own seeds; the lowest inertia is kept, the first of equals; 0 is 1 */
    unsigned max_iter; /* rounds of Lloyd's algorithm in each; at least one is done */
    double tol;    /* ends when the centres' squared shifts sum to tol × the features' mean variance or less; 0: not */
    uint64_t seed; /* decides all that is drawn */
    size_t min_common; /* masks only; 0 counts as 1 */
};

#define KMEANS_CFG(clusters)                                                                                           \
    ((struct kmeans_cfg){ .k = (clusters), .n_init = 10, .max_iter = 300, .tol = 1e-4, .min_common = 1 })

struct kmeans {
    size_t k, d, min_common;
    double *centroids;      /* k × d; 0 where a centre lacks the feature */
    unsigned char *present; /* k × d, 1 = the centre has the feature; NULL: fitted without a mask, all do */
    uint64_t *sizes;        /* k: members */
    uint64_t *counts;       /* k × d: members that have the feature; NULL as `present` */
    double inertia;         /* sum of the distances of the rows to their centres */
    unsigned iterations;    /* of the restart that was kept */
};

enum kmeans_features { KMEANS_ALL_FEATURES, KMEANS_SOME_FEATURES };

/* `out` for k clusters of d features, all zero; `present` and `counts` are there when features may be missing. For callers that
 * read a model. kmeans_done() frees it. -EINVAL: k or d is 0 or too large; -ENOMEM. */
int kmeans_init(struct kmeans *out, size_t k, size_t d, enum kmeans_features has, struct err *e);
void kmeans_done(struct kmeans *km);

/* Seeds by k-means++, greedily: of 8 rows drawn by their distance to the nearest seed the one that lowers the sum of distances
 * most becomes the next seed. Then Lloyd's algorithm to its end, exactly: bounds only leave out distances which
 * cannot matter, so that the result is that of the plain algorithm from the same seeds. A cluster left without members gets the
 * row that is farthest from its centre (the lowest of equals, never the only member of its cluster); when all rows lie on
 * centres already, it stays empty and where it was.
 *
 * `out_labels` (n, or NULL) gets each row's cluster, the same as kmeans_predict() gives; KMEANS_NONE when it has no candidate.
 * kmeans_done() frees `out`. Without a mask it takes about 4 n (d + r (k / 8 + 16)) bytes for a while, where r is n_init, 10
 * at most: so many restarts go abreast. With a mask it takes 100 n.
 *
 * -EINVAL: a value that is not finite or too large, named by row and column (both from 0); k is 0 or more than the rows that
 * can be members; n or d is 0; a negative or NaN tol. -ENOMEM. */
int kmeans_fit(const struct kmeans_data *x, const struct kmeans_cfg *cfg, struct kmeans *out, uint32_t *out_labels,
               struct err *e);

/* The same from given centres (k × d, finite): one run of Lloyd's algorithm, nothing is drawn. Masks: a start centre has all
 * features. */
int kmeans_fit_from(const struct kmeans_data *x, const struct kmeans_cfg *cfg, const double *start, struct kmeans *out,
                    uint32_t *out_labels, struct err *e);

/* The number of clusters there are to tell apart, from 1 to k_max, and the fit with it; cfg->k is not looked at.
 *
 * Two clusters are told apart when their centres lie at least 4 spreads of their members apart along the line that joins them,
 * the distance from which recognition says "unknown"; each member is measured from its cluster's centre without it, so that few
 * members in many dimensions do not look tighter than they are. The largest k is taken of which all pairs are so (and none
 * is empty), at most half the rows. A normal cluster cut in two has its halves 2.7 spreads apart, a uniform one 3.5: neither
 * is cut. Criteria that only look at the inertia (BIC, Calinski-Harabasz) cut any elongated cluster once there are many rows,
 * silhouettes shrink with the number of dimensions and say nothing of k = 1, and the gap statistic costs a dozen more fits for
 * each k; this one costs a pass over the rows, and knows no scale.
 *
 * -EINVAL as kmeans_fit(), and k_max of 0; -ENOMEM. */
int kmeans_choose_k(const struct kmeans_data *x, const struct kmeans_cfg *cfg, size_t k_max, struct kmeans *out,
                    uint32_t *out_labels, struct err *e);

/* The nearest centre of one row (d features; mask d bytes or NULL) and its distance, which is the mean over common features when
 * the row has a mask or the centres have, else the sum. -EINVAL: a value that is not finite or too
 * large; -ENODATA: no centre has min_common features in common with it. */
int kmeans_predict(const struct kmeans *km, const double *row, const unsigned char *mask, uint32_t *out_cluster,
                   double *out_distance, struct err *e);

/* One more row: its nearest centre moves toward it by 1 / (count + 1), so that it stays the mean of its members, and counts it.
 * A count above `limit` weighs as `limit`: from then on old members fade (by half after 0.7 limit rows) and the centre keeps
 * following its jobs; 0: no limit. Per feature with masks; a feature new to the centre is taken as it is. The inertia stays that
 * of the fit. Fails as kmeans_predict() does, and has changed nothing then. */
int kmeans_update(struct kmeans *km, const double *row, const unsigned char *mask, uint64_t limit,
                  uint32_t *out_cluster, struct err *e);

#endif
