/* k-means over rows of numbers, of which some may be missing. Pure; the same data and seed give the same bits on every machine.
 *
 * The distance of a row and a centre is the mean of the squared differences over the features which both have; a centre has a
 * feature when one of its members has it, and there it is the mean over the members that do. A pair with fewer than `min_common`
 * features in common is no candidate. That mean is no metric, so no bound of it holds: every distance is computed. Of centres
 * equally near the lowest index is taken.
 *
 * Values must be finite, and small enough that no sum of their squares overflows; where the mask says that a feature is missing,
 * anything may stand. */
#ifndef CLUSTERING_KMEANS_H
#define CLUSTERING_KMEANS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define KMEANS_NONE UINT32_MAX /* the cluster of a row that has no candidate */

struct kmeans_data {
    const double *values;      /* n rows of d features */
    const unsigned char *mask; /* n × d, 1 = the feature is there */
    size_t n, d;               /* both at least 1, n below 2^31 */
    size_t min_common;         /* at least 1 */
};

struct kmeans {
    size_t k, d;
    double *centroids;      /* k × d; 0 where a centre lacks the feature */
    unsigned char *present; /* k × d, 1 = the centre has the feature */
    uint64_t *sizes;        /* k: members */
    uint32_t *labels;       /* n: each row's cluster, the nearest; KMEANS_NONE when it has no candidate */
    double inertia;         /* sum of the distances of the rows to their centres */
    size_t n_none;          /* rows that have min_common features, but no candidate */
};

void kmeans_done(struct kmeans *km);

/* The best of ten restarts: the one with the fewest rows without a candidate, then the lowest inertia, the first of equals. Each has seeds of its
 * own by k-means++, greedily: of 8 rows drawn by their distance to the nearest seed the one that lowers the sum of distances most
 * becomes the next seed. Then Lloyd's algorithm, until no row changes, or the centres' squared shifts sum to a 10,000th of the features' mean
 * variance, or for 300 rounds. A cluster left without members gets the row that is farthest from its centre (the lowest
 * of equals, never the only member of its cluster); when all rows lie on centres already, it stays empty and where it was.
 *
 * kmeans_done() frees `out`. It takes 100 n bytes for a while. -EINVAL: k, at least 1, is more than the rows that have min_common
 * features; -ENOMEM. */
int kmeans_fit(const struct kmeans_data *x, size_t k, uint64_t seed, struct kmeans *out, struct err *e);

/* The number of clusters there are to tell apart, from 1 to k_max (at least 1), and the fit with it.
 *
 * Two clusters are told apart when their centres lie at least 4 spreads of their members apart along the line that joins them,
 * the distance from which recognition says "unknown"; each member is measured from its cluster's centre without it, so that few
 * members in many dimensions do not look tighter than they are. The largest k is taken of which all pairs are so (and none
 * is empty), at most half the rows. A normal cluster cut in two has its halves 2.7 spreads apart, a uniform one 3.5: neither
 * is cut. Criteria that only look at the inertia (BIC, Calinski-Harabasz) cut any elongated cluster once there are many rows,
 * silhouettes shrink with the number of dimensions and say nothing of k = 1, and the gap statistic costs a dozen more fits for
 * each k; this one costs a pass over the rows, and knows no scale.
 *
 * -EINVAL: no row has min_common features; -ENOMEM. */
int kmeans_choose_k(const struct kmeans_data *x, size_t k_max, uint64_t seed, struct kmeans *out, struct err *e);

#endif
