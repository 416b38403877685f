#include <errno.h>
#include <math.h>
#include <string.h>

#include "clustering/kmeans_state.h"

static uint32_t nearest(const struct kmeans_tiles *t, const struct kmeans *km, const double *row, double *out_distance)
{
    uint32_t best = 0;
    double least = t->dist2(row, km->centroids, km->d);
    for (uint32_t c = 1; c < km->k; c++) {
        double dist = t->dist2(row, km->centroids + c * km->d, km->d);
        if (kmeans_nearer(row, km->centroids + best * km->d, least, km->centroids + c * km->d, dist, km->d)) {
            best = c;
            least = dist;
        }
    }
    *out_distance = least;
    return best;
}

int kmeans_predict(const struct kmeans *km, const double *row, const unsigned char *mask, uint32_t *out_cluster,
                   double *out_distance, struct err *e)
{
    int rc = kmeans_check_values(row, mask, 1, km->d, "row", e);
    if (rc < 0)
        return rc;
    double distance;
    uint32_t best = mask || km->present ? kmeans_masked_nearest(kmeans_tiles_here(), km, row, mask, &distance)
                                        : nearest(kmeans_tiles_here(), km, row, &distance);
    if (best == KMEANS_NONE)
        return err_set(e, -ENODATA, "no centre has %zu features in common with the row",
                       km->min_common ? km->min_common : 1);
    *out_cluster = best;
    *out_distance = distance;
    return 0;
}

/* Its share in the new mean. */
static double weight_of_one(uint64_t count, uint64_t limit)
{
    return 1 / ((double)(limit > 0 && count > limit ? limit : count) + 1);
}

int kmeans_update(struct kmeans *km, const double *row, const unsigned char *mask, uint64_t limit,
                  uint32_t *out_cluster, struct err *e)
{
    uint32_t c;
    double distance;
    int rc = kmeans_predict(km, row, mask, &c, &distance, e);
    if (rc < 0)
        return rc;
    for (size_t j = 0; j < km->d; j++) {
        size_t at = c * km->d + j;
        if (mask && !mask[j])
            continue;
        uint64_t count = km->counts ? km->counts[at] : km->sizes[c];
        if (km->present && !km->present[at])
            count = 0; /* taken as it is */
        km->centroids[at] += (row[j] - km->centroids[at]) * weight_of_one(count, limit);
        if (km->present)
            km->present[at] = 1;
        if (km->counts)
            km->counts[at]++;
    }
    km->sizes[c]++;
    *out_cluster = c;
    return 0;
}
