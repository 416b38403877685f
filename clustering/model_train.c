#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/kmeans.h"
#include "clustering/model.h"
#include "clustering/model_parts.h"

#define NORMAL_IQR 1.349  /* of a normal distribution, in standard deviations */
#define MERGE_SPREADS 0.7 /* with 1, batch sizes that differ in half of the features would become one */

enum { CLUSTERS_PER_CLASS = 4, NOT_TAKEN = -1 };

struct training {
    struct model *m;
    const struct model_sample *samples;
    struct profile *views; /* in the model's order */
    int64_t *cluster;      /* of each; NOT_TAKEN */
    size_t *first;         /* the first sample of its class */
    size_t n;
    uint64_t seed;
};

static int no_memory(struct err *e)
{
    return err_sys(e, -ENOMEM, "cannot train the model");
}

static bool is_taken(const struct training *t, size_t i)
{
    return profile_measured(&t->views[i]) >= MODEL_MIN_COMMON;
}

/* --- scaling --- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values, between two of them in proportion. */
static double quantile(const double *x, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
    return x[low] + (x[high] - x[low]) * (at - (double)low);
}

static void scale_feature(struct training *t, size_t f, double *values)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (is_taken(t, i) && t->views[i].mask[f])
            values[n++] = t->views[i].x[f];
    if (n == 0)
        return;
    qsort(values, n, sizeof *values, by_value);
    t->m->features[f].median = quantile(values, n, 0.5);
    t->m->features[f].iqr = quantile(values, n, 0.75) - quantile(values, n, 0.25);
}

static int scale(struct training *t, struct err *e)
{
    AUTO_FREE double *values = calloc(t->n + 1, sizeof *values);
    if (!values)
        return no_memory(e);
    for (size_t f = 0; f < t->m->n; f++)
        scale_feature(t, f, values);
    return 0;
}

static double scaled(const struct model_feature *f, double x)
{
    return (x - f->median) / fmax(f->iqr / NORMAL_IQR, MODEL_NOISE_FLOOR);
}

/* --- clusters of one class --- */

static bool is_same_class(const struct model_sample *a, const struct model_sample *b)
{
    return a->key && b->key ? strcmp(a->key, b->key) == 0 : a->key == b->key;
}

/* Fills t->first. */
static int sort_into_classes(struct training *t, struct err *e)
{
    size_t n = 0;
    AUTO_FREE size_t *classes = calloc(t->n + 1, sizeof *classes);
    if (!classes)
        return no_memory(e);
    for (size_t i = 0; i < t->n; i++) {
        size_t j = 0;
        while (j < n && !is_same_class(&t->samples[classes[j]], &t->samples[i]))
            j++;
        if (j == n)
            classes[n++] = i;
        t->first[i] = classes[j];
    }
    return 0;
}

/* The rows of one class, as k-means takes them. */
struct rows {
    double *x;
    unsigned char *mask;
    size_t *sample; /* which it is */
    size_t n;
};

static void rows_done(struct rows *r)
{
    free(r->x);
    free(r->mask);
    free(r->sample);
}

static int rows_make(struct rows *r, const struct training *t, size_t first, struct err *e)
{
    size_t d = t->m->n, n = 0;
    for (size_t i = first; i < t->n; i++)
        n += t->first[i] == first && is_taken(t, i);
    *r = (struct rows){ .x = calloc(n * d + 1, sizeof *r->x),
                        .mask = calloc(n * d + 1, 1),
                        .sample = calloc(n + 1, sizeof *r->sample) };
    if (!r->x || !r->mask || !r->sample)
        return no_memory(e);
    for (size_t i = first; i < t->n; i++) {
        if (t->first[i] != first || !is_taken(t, i))
            continue;
        for (size_t f = 0; f < d; f++) {
            r->mask[r->n * d + f] = t->views[i].mask[f];
            r->x[r->n * d + f] = t->views[i].mask[f] ? scaled(&t->m->features[f], t->views[i].x[f]) : 0;
        }
        r->sample[r->n++] = i;
    }
    return 0;
}

static int label_samples(struct training *t, const struct rows *r, const struct kmeans *km, struct err *e)
{
    for (size_t j = 0; j < km->k; j++) {
        struct model_cluster *c;
        int rc = model_cluster_add(t->m, &c, e);
        if (rc < 0)
            return rc;
        for (size_t i = 0; i < r->n; i++)
            if (km->labels[i] == j)
                t->cluster[r->sample[i]] = c->id;
    }
    return 0;
}

static int cluster_class(struct training *t, size_t first, struct err *e)
{
    struct rows r = { 0 };
    struct kmeans km = { 0 };
    int rc = rows_make(&r, t, first, e);
    if (rc == 0 && r.n > 0) {
        const struct kmeans_data data = {
            .values = r.x, .mask = r.mask, .n = r.n, .d = t->m->n, .min_common = MODEL_MIN_COMMON
        };
        size_t half = r.n / 2 > 0 ? r.n / 2 : 1;
        rc = kmeans_choose_k(&data, half < CLUSTERS_PER_CLASS ? half : CLUSTERS_PER_CLASS, t->seed, &km, e);
    }
    if (rc == 0)
        rc = label_samples(t, &r, &km, e);
    kmeans_done(&km);
    rows_done(&r);
    return rc;
}

/* --- sums --- */

static void clear(struct model *m)
{
    for (size_t j = 0; j < m->n_clusters; j++) {
        struct model_cluster *c = &m->clusters[j];
        memset(c->weight, 0, m->n * sizeof *c->weight);
        memset(c->m2, 0, m->n * sizeof *c->m2);
        c->count = 0;
    }
}

static void absorb_all(struct training *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct model_cluster *c = t->cluster[i] == NOT_TAKEN ? NULL : model_cluster_find(t->m, t->cluster[i]);
        if (c)
            model_cluster_absorb(t->m, c, &t->views[i]);
    }
}

/* Views with what lies beyond MODEL_CUT noises of its centroid drawn in to there. */
static void draw_in(struct training *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct model_cluster *c = t->cluster[i] == NOT_TAKEN ? NULL : model_cluster_find(t->m, t->cluster[i]);
        for (size_t f = 0; c && f < t->m->n; f++) {
            double most = MODEL_CUT * t->m->features[f].noise, *x = &t->views[i].x[f];
            if (t->views[i].mask[f])
                *x = c->mean[f] + fmax(-most, fmin(most, *x - c->mean[f]));
        }
    }
}

/* First as it is, to know the noises; then without what is wild by them. Nothing is cut on the way: the cut goes by a centroid
 * that is not there yet. */
static void sum_up(struct training *t)
{
    for (int pass = 0; pass < 2; pass++) {
        clear(t->m);
        for (size_t f = 0; f < t->m->n; f++)
            t->m->features[f].noise = HUGE_VAL;
        absorb_all(t);
        model_derive(t->m);
        draw_in(t);
    }
}

/* --- merging --- */

static double gap(const struct model *m, const struct model_cluster *a, const struct model_cluster *b,
                  struct profile *scratch)
{
    for (size_t f = 0; f < m->n; f++) {
        scratch->mask[f] = b->weight[f] > 0;
        scratch->x[f] = b->mean[f];
    }
    struct model_distance d = model_distance_to(m, a, scratch);
    return d.distance / fmin(a->spread, b->spread);
}

static void pool(const struct model *m, struct model_cluster *a, const struct model_cluster *b)
{
    for (size_t f = 0; f < m->n; f++) {
        double wa = a->weight[f], wb = b->weight[f], w = wa + wb, diff = b->mean[f] - a->mean[f];
        if (!(wb > 0))
            continue;
        a->mean[f] += diff * wb / w;
        a->m2[f] += b->m2[f] + diff * diff * wa * wb / w;
        if (w > MODEL_MEMORY)
            a->m2[f] *= MODEL_MEMORY / w;
        a->weight[f] = fmin(w, MODEL_MEMORY);
    }
    a->count += b->count;
}

static void relabel(struct training *t, int64_t from, int64_t to)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->cluster[i] == from)
            t->cluster[i] = to;
}

/* The closest two that are one; false: there are none. */
static bool merge_one(struct training *t, struct profile *scratch)
{
    struct model *m = t->m;
    double least = MERGE_SPREADS;
    size_t a = 0, b = 0;
    for (size_t i = 0; i < m->n_clusters; i++) {
        for (size_t j = i + 1; j < m->n_clusters; j++) {
            double d = gap(m, &m->clusters[i], &m->clusters[j], scratch);
            if (d < least) {
                least = d;
                a = i;
                b = j;
            }
        }
    }
    if (a == b)
        return false;
    pool(m, &m->clusters[a], &m->clusters[b]);
    relabel(t, m->clusters[b].id, m->clusters[a].id);
    model_cluster_drop(m, b);
    model_derive(m);
    return true;
}

static int merge(struct training *t, struct err *e)
{
    struct profile scratch;
    int rc = profile_init(&scratch, t->m->n, e);
    if (rc < 0)
        return rc;
    while (merge_one(t, &scratch))
        ;
    profile_done(&scratch);
    return 0;
}

/* --- the whole --- */

static int make_views(struct training *t, const struct profile_space *s, struct err *e)
{
    int rc = model_extend(t->m, s, e);
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        t->cluster[i] = NOT_TAKEN;
        rc = model_view(&t->views[i], t->m, s, t->samples[i].profile, e);
    }
    return rc;
}

static int count_members(struct training *t, struct err *e)
{
    int taken = 0;
    for (size_t i = 0; i < t->n; i++) {
        struct model_class *c = NULL;
        const struct model_sample *s = &t->samples[i];
        if (t->cluster[i] == NOT_TAKEN)
            continue;
        taken++;
        int rc = s->key ? model_class_get(t->m, s->key, s->family, &c, e) : 0;
        if (rc == 0 && c)
            rc = model_class_count_in(c, t->cluster[i], 1, e);
        if (rc < 0)
            return rc;
    }
    return taken;
}

static int train(struct training *t, const struct profile_space *s, struct err *e)
{
    int rc = make_views(t, s, e);
    if (rc == 0)
        rc = scale(t, e);
    if (rc == 0)
        rc = sort_into_classes(t, e);
    for (size_t i = 0; rc == 0 && i < t->n; i++)
        if (t->first[i] == i)
            rc = cluster_class(t, i, e);
    if (rc < 0)
        return rc;
    sum_up(t);
    rc = merge(t, e);
    return rc < 0 ? rc : count_members(t, e);
}

int model_train(struct model *m, const struct profile_space *s, const struct model_sample *samples, size_t n,
                uint64_t seed, struct err *e)
{
    if (m->n_clusters > 0)
        return err_set(e, -EINVAL, "the model has clusters already: it goes on learning one profile at a time");
    struct training t = { .m = m,
                          .samples = samples,
                          .views = calloc(n + 1, sizeof *t.views),
                          .cluster = calloc(n + 1, sizeof *t.cluster),
                          .first = calloc(n + 1, sizeof *t.first),
                          .n = n,
                          .seed = seed };
    int rc = t.views && t.cluster && t.first ? train(&t, s, e) : no_memory(e);
    for (size_t i = 0; t.views && i < n; i++)
        profile_done(&t.views[i]);
    free(t.views);
    free(t.cluster);
    free(t.first);
    return rc;
}
