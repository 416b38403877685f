#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clustering/model.h"

static const char *const decision_names[] = {
    [MODEL_KNOWN] = "known",
    [MODEL_AMBIGUOUS] = "ambiguous",
    [MODEL_UNKNOWN] = "unknown",
    [MODEL_REFUSED] = "refused",
};

const char *model_decision_name(enum model_decision d)
{
    return decision_names[d];
}

static bool has(const struct model_cluster *c, size_t f)
{
    return !c->weight || c->weight[f] > 0;
}

static double difference(const struct model *m, const struct model_cluster *c, const struct profile *view, size_t f)
{
    return (view->x[f] - c->mean[f]) / m->features[f].noise;
}

static double cut(double z)
{
    return fmin(fabs(z), MODEL_CUT);
}

/* Features of the profile, of the cluster, and of both. */
struct masks {
    size_t profile, cluster, common;
};

static struct masks compare_masks(const struct model *m, const struct model_cluster *c, const struct profile *view)
{
    struct masks n = { .profile = view->beyond };
    for (size_t f = 0; f < m->n; f++) {
        n.profile += view->mask[f];
        n.cluster += has(c, f);
        n.common += view->mask[f] && has(c, f);
    }
    return n;
}

static bool is_comparable(struct masks n)
{
    return n.common >= MODEL_MIN_COMMON && 2 * n.common >= n.profile && 2 * n.common >= n.cluster;
}

static struct model_distance raw_distance(const struct model *m, const struct model_cluster *c,
                                          const struct profile *view)
{
    long double sum = 0;
    struct model_distance d = { .cluster = c->id, .spreads = NAN, .common = compare_masks(m, c, view).common };
    for (size_t f = 0; f < m->n; f++) {
        long double diff = (long double)view->x[f] - c->mean[f];
        sum += view->mask[f] ? diff * diff : 0;
    }
    d.distance = d.common ? (double)sqrtl(sum) : (double)NAN;
    return d;
}

struct model_distance model_distance_to(const struct model *m, const struct model_cluster *c,
                                        const struct profile *view)
{
    if (m->vectors == MODEL_RAW)
        return raw_distance(m, c, view);
    struct masks n = compare_masks(m, c, view);
    struct model_distance d = { .cluster = c->id, .distance = NAN, .spreads = NAN, .common = n.common };
    if (!is_comparable(n))
        return d;
    double sum = 0;
    for (size_t f = 0; f < m->n; f++) {
        double z = view->mask[f] && has(c, f) ? cut(difference(m, c, view, f)) : 0;
        sum += z * z;
    }
    d.distance = sqrt(sum / (double)n.common);
    d.spreads = d.distance / c->spread;
    return d;
}

static long double squares(const struct model *m, const double *c, const double *x)
{
    long double sum = 0;
    for (size_t f = 0; f < m->n; f++) {
        long double diff = (long double)x[f] - c[f];
        sum += diff * diff;
    }
    return sum;
}

/* By the difference of the two sums, each feature's by itself: what both have in common falls out before anything is rounded. */
static bool is_nearer(const struct model *m, const double *a, const double *than, const double *x)
{
    long double sum = 0;
    for (size_t f = 0; f < m->n; f++)
        sum += ((long double)a[f] - than[f]) * (((long double)x[f] - a[f]) + ((long double)x[f] - than[f]));
    return sum > 0;
}

int model_nearest(const struct model *m, const double *x, double *out_squared)
{
    long double best = 0;
    int at = -1;
    for (size_t j = 0; j < m->n_clusters; j++) {
        long double sum = squares(m, m->clusters[j].mean, x);
        bool close = at >= 0 && fabsl(sum - best) <= 1e-12L * best;
        if (at < 0 || (close ? is_nearer(m, m->clusters[j].mean, m->clusters[at].mean, x) : sum < best)) {
            at = (int)j;
            best = sum;
        }
    }
    if (at >= 0)
        *out_squared = (double)best;
    return at;
}

void model_contributions(const struct model *m, const struct model_cluster *c, const struct profile *view, double *out,
                         double *out_difference)
{
    double sum = 0;
    for (size_t f = 0; f < m->n; f++) {
        double z = view->mask[f] && has(c, f) ? difference(m, c, view, f) : (double)NAN;
        if (out_difference)
            out_difference[f] = z;
        out[f] = isnan(z) ? (double)NAN : cut(z) * cut(z);
        sum += isnan(z) ? 0 : out[f];
    }
    for (size_t f = 0; f < m->n; f++)
        if (!isnan(out[f]))
            out[f] = sum > 0 ? out[f] / sum : 0;
}

/* Among equals the lower number stays first: clusters come in their order. */
static void insert(struct model_verdict *v, struct model_distance d)
{
    size_t at = v->n_near < MODEL_NEAR ? v->n_near++ : MODEL_NEAR;
    while (at > 0 && d.spreads < v->near[at - 1].spreads) {
        if (at < MODEL_NEAR)
            v->near[at] = v->near[at - 1];
        at--;
    }
    if (at < MODEL_NEAR)
        v->near[at] = d;
}

static void decide(struct model_verdict *v)
{
    const struct model_distance *d = &v->near[0];
    const char *than = "up to";
    double bound = MODEL_KNOWN_SPREADS;
    v->decision = MODEL_KNOWN;
    if (!(d->spreads <= MODEL_KNOWN_SPREADS)) {
        bool far = d->spreads > MODEL_UNKNOWN_SPREADS;
        v->decision = far ? MODEL_UNKNOWN : MODEL_AMBIGUOUS;
        than = "more than";
        bound = far ? MODEL_UNKNOWN_SPREADS : MODEL_KNOWN_SPREADS;
    }
    (void)snprintf(v->reason, sizeof v->reason, "%.2f spreads from cluster %lld, over %zu features: %s %g is %s",
                   d->spreads, (long long)d->cluster, d->common, than, bound, model_decision_name(v->decision));
}

static void refuse(struct model_verdict *v, size_t most_common)
{
    v->decision = MODEL_REFUSED;
    if (v->measured < MODEL_MIN_COMMON)
        (void)snprintf(v->reason, sizeof v->reason, "the profile has %zu features, and %d are needed", v->measured,
                       MODEL_MIN_COMMON);
    else
        (void)snprintf(
            v->reason, sizeof v->reason,
            "the profile shares too little with every cluster: %zu of its %zu features at most, and %d and half "
            "of both are needed",
            most_common, v->measured, MODEL_MIN_COMMON);
}

void model_verdict(struct model_verdict *out, const struct model *m, const struct profile *view)
{
    *out = (struct model_verdict){ .decision = MODEL_UNKNOWN, .measured = profile_measured(view) };
    size_t most = 0;
    for (size_t j = 0; j < m->n_clusters && m->vectors == MODEL_PROFILES; j++) {
        struct model_distance d = model_distance_to(m, &m->clusters[j], view);
        most = d.common > most ? d.common : most;
        if (!isnan(d.spreads))
            insert(out, d);
    }
    if (out->n_near)
        decide(out);
    else if (m->n_clusters == 0 || m->vectors == MODEL_RAW)
        (void)snprintf(out->reason, sizeof out->reason, "%s",
                       m->n_clusters ? "the model has no spreads to judge by" : "the model has no cluster yet");
    else
        refuse(out, most);
}
