#include "clustering/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/model_parts.h"

static double squared(double x)
{
    return x * x;
}

void model_init(struct model *m)
{
    *m = (struct model){ .vectors = MODEL_PROFILES, .next_id = 1, .inertia = NAN };
}

static void model_cluster_done(struct model_cluster *c)
{
    free(c->mean);
    free(c->weight);
    free(c->m2);
}

void model_done(struct model *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        free(m->features[i].name);
    for (size_t i = 0; i < m->n_clusters; i++)
        model_cluster_done(&m->clusters[i]);
    for (size_t i = 0; i < m->n_classes; i++)
        model_class_done(&m->classes[i]);
    free(m->features);
    free(m->clusters);
    free(m->classes);
    *m = (struct model){ 0 };
}

/* --- features --- */

static int find_feature(const struct model *m, const char *name, size_t guess)
{
    if (guess < m->n && strcmp(m->features[guess].name, name) == 0)
        return (int)guess;
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->features[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int widen(double **x, size_t from, size_t to)
{
    double *wide = realloc(*x, (to + 1) * sizeof *wide);
    if (!wide)
        return -ENOMEM;
    memset(wide + from, 0, (to - from) * sizeof *wide);
    *x = wide;
    return 0;
}

/* Room for `to` features, of which the model goes on to have as many as it had. */
static int make_room(struct model *m, size_t to)
{
    struct model_feature *wide = realloc(m->features, (to + 1) * sizeof *wide);
    if (!wide)
        return -ENOMEM;
    m->features = wide;
    for (size_t i = 0; i < m->n_clusters; i++) {
        struct model_cluster *c = &m->clusters[i];
        if (widen(&c->mean, m->n, to) < 0 || widen(&c->weight, m->n, to) < 0 || widen(&c->m2, m->n, to) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int count_new(const struct model *m, const struct profile_space *s, size_t *out, struct err *e)
{
    size_t fresh = 0;
    for (size_t i = 0; i < s->n; i++)
        fresh += find_feature(m, s->features[i].name, i) < 0;
    *out = fresh;
    return m->n + fresh <= PROFILE_FEATURES_MAX
               ? 0
               : err_set(e, -EINVAL, "a model has %d features at most", PROFILE_FEATURES_MAX);
}

/* Rates over different things cannot be compared. */
static void take_norms(struct model *m, const struct profile_space *s)
{
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        int at = find_feature(m, s->features[i].name, i);
        if (at < 0 || m->features[at].norm == s->features[i].norm)
            continue;
        any = true;
        for (size_t c = 0; c < m->n_clusters; c++)
            m->clusters[c].mean[at] = m->clusters[c].weight[at] = m->clusters[c].m2[at] = 0;
        m->features[at].norm = s->features[i].norm;
        m->features[at].median = m->features[at].iqr = NAN;
    }
    if (any)
        model_derive(m);
}

int model_extend(struct model *m, const struct profile_space *s, struct err *e)
{
    if (m->vectors == MODEL_RAW)
        return err_set(e, -EINVAL, "a model that was made elsewhere does not learn: begin one of your own");
    size_t fresh = 0, had = m->n;
    int rc = count_new(m, s, &fresh, e);
    if (rc < 0)
        return rc;
    if (fresh == 0) {
        take_norms(m, s);
        return 0;
    }
    rc = make_room(m, had + fresh);
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        if (find_feature(m, s->features[i].name, i) >= 0)
            continue;
        char *name = strdup(s->features[i].name);
        rc = name ? 0 : -ENOMEM;
        if (name)
            m->features[m->n++] = (struct model_feature){ name, s->features[i].norm, NAN, NAN, NAN };
    }
    while (rc < 0 && m->n > had)
        free(m->features[--m->n].name);
    model_derive(m);
    if (rc == 0)
        take_norms(m, s);
    return rc < 0 ? err_sys(e, rc, "cannot add features to the model") : 0;
}

int model_view(struct profile *out, const struct model *m, const struct profile_space *s, const struct profile *p,
               struct err *e)
{
    if (m->vectors == MODEL_RAW)
        return err_set(e, -EINVAL, "a model that was made elsewhere knows no profiles, only vectors");
    struct profile view;
    int rc = profile_init(&view, m->n, e);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < p->n && i < s->n; i++) {
        int at = find_feature(m, s->features[i].name, i);
        bool known = at >= 0 && m->features[at].norm == s->features[i].norm;
        view.beyond += p->mask[i] && !known;
        if (!p->mask[i] || !known)
            continue;
        view.x[at] = p->x[i];
        view.mask[at] = 1;
    }
    *out = view;
    return 0;
}

/* --- clusters --- */

struct model_cluster *model_cluster_find(const struct model *m, int64_t id)
{
    size_t low = 0, high = m->n_clusters;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (m->clusters[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->n_clusters && m->clusters[low].id == id ? &m->clusters[low] : NULL;
}

int model_cluster_add(struct model *m, struct model_cluster **out, struct err *e)
{
    if (m->n_clusters >= MODEL_CLUSTERS_MAX || m->next_id == INT64_MAX)
        return err_set(e, -ENOSPC, "the model has %d clusters, and takes no more: 'pipetune model forget' makes room",
                       MODEL_CLUSTERS_MAX);
    struct model_cluster *list = realloc(m->clusters, (m->n_clusters + 1) * sizeof *list);
    if (!list)
        return err_sys(e, -ENOMEM, "cannot add a cluster");
    m->clusters = list;
    struct model_cluster c = {
        .mean = calloc(m->n + 1, sizeof *c.mean),
        .weight = calloc(m->n + 1, sizeof *c.weight),
        .m2 = calloc(m->n + 1, sizeof *c.m2),
        .spread = NAN,
    };
    if (!c.mean || !c.weight || !c.m2) {
        model_cluster_done(&c);
        return err_sys(e, -ENOMEM, "cannot add a cluster");
    }
    c.id = m->next_id++;
    list[m->n_clusters] = c;
    *out = &list[m->n_clusters++];
    return 0;
}

void model_cluster_drop(struct model *m, size_t at)
{
    model_cluster_done(&m->clusters[at]);
    m->n_clusters--;
    memmove(&m->clusters[at], &m->clusters[at + 1], (m->n_clusters - at) * sizeof *m->clusters);
}

/* Welford's sums. Beyond MODEL_MEMORY an old member is forgotten for each new one. */
static void absorb_feature(struct model_cluster *c, size_t f, double x, double cut)
{
    double diff = x - c->mean[f];
    if (c->weight[f] > 0)
        diff = fmax(-cut, fmin(cut, diff));
    if (c->weight[f] >= MODEL_MEMORY) {
        c->m2[f] *= (double)(MODEL_MEMORY - 1) / MODEL_MEMORY;
        c->weight[f] = MODEL_MEMORY - 1;
    }
    c->weight[f] += 1;
    double step = diff / c->weight[f];
    c->mean[f] += step;
    c->m2[f] += diff * (diff - step);
}

void model_cluster_absorb(const struct model *m, struct model_cluster *c, const struct profile *view)
{
    for (size_t f = 0; f < m->n; f++) {
        double noise = m->features[f].noise;
        if (view->mask[f])
            absorb_feature(c, f, view->x[f], isfinite(noise) ? MODEL_CUT * noise : HUGE_VAL);
    }
    c->count++;
}

/* --- derived figures --- */

static double variance_within(const struct model *m, size_t f)
{
    double sum = MODEL_NOISE_WEIGHT * squared(MODEL_NOISE_PRIOR), degrees = MODEL_NOISE_WEIGHT;
    for (size_t j = 0; j < m->n_clusters; j++) {
        const struct model_cluster *c = &m->clusters[j];
        if (c->weight[f] > 1) {
            sum += c->m2[f];
            degrees += c->weight[f] - 1;
        }
    }
    return sum / degrees;
}

/* In units of the noises; 1 where a cluster varies as all do. */
static double spread_of(const struct model *m, const struct model_cluster *c)
{
    double sum = 0;
    size_t n = 0;
    for (size_t f = 0; f < m->n; f++) {
        double w = c->weight[f], noise2 = squared(m->features[f].noise), floor2 = squared(MODEL_NOISE_FLOOR);
        if (!(w > 0))
            continue;
        double pooled = fmax(0, noise2 - floor2) * MODEL_POOLED_SAMPLES;
        double own = (c->m2[f] + pooled) / (fmax(0, w - 1) + MODEL_POOLED_SAMPLES);
        sum += (own + floor2) / noise2 * (1 + 1 / w);
        n++;
    }
    return n ? fmin(sqrt(sum / (double)n), MODEL_SPREAD_MAX) : 1;
}

void model_derive(struct model *m)
{
    bool raw = m->vectors == MODEL_RAW;
    for (size_t f = 0; f < m->n; f++)
        m->features[f].noise = raw ? 1 : sqrt(squared(MODEL_NOISE_FLOOR) + variance_within(m, f));
    for (size_t j = 0; j < m->n_clusters; j++)
        m->clusters[j].spread = raw ? (double)NAN : spread_of(m, &m->clusters[j]);
}
