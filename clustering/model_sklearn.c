#include "clustering/model_sklearn.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

enum { VECTORS_MAX = 10000000, CELLS_MAX = 1 << 26 };

static int no_memory(const struct json_doc *doc, struct err *e)
{
    return err_sys(e, -ENOMEM, "'%s'", doc->name);
}

/* A list of n elements at this path. */
static int check_list(const struct json_doc *doc, const json_t *list, size_t n, const char *path, struct err *e)
{
    if (!json_is_array(list))
        return json_doc_err(doc, path, e, -EINVAL, list ? "must be a list" : "is missing");
    if (json_array_size(list) != n)
        return json_doc_err(doc, path, e, -EINVAL, "has %zu elements, and must have %zu", json_array_size(list), n);
    return 0;
}

static int read_count(const struct json_doc *doc, const char *key, size_t max, size_t *out, struct err *e)
{
    const json_t *value = json_object_get(doc->root, key);
    if (!value)
        return json_doc_err(doc, key, e, -EINVAL, "is missing");
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < 1 || n > (json_int_t)max)
        return json_doc_err(doc, key, e, -EINVAL, "must be a whole number from 1 to %zu", max);
    *out = (size_t)n;
    return 0;
}

/* A row of `width` numbers, the at-th of the list `key`. */
static int read_row(const struct json_doc *doc, const char *key, size_t at, const json_t *row, double *out,
                    size_t width, bool may_lack, struct err *e)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%zu", key, at);
    int rc = check_list(doc, row, width, path, e);
    for (size_t i = 0; rc == 0 && i < width; i++) {
        const json_t *cell = json_array_get(row, i);
        bool absent = may_lack && json_is_null(cell);
        (void)snprintf(path, sizeof path, "%s/%zu/%zu", key, at, i);
        if (!absent && !json_is_number(cell))
            rc = json_doc_err(doc, path, e, -EINVAL, "must be a number");
        else
            out[i] = absent ? (double)NAN : json_number_value(cell);
    }
    return rc;
}

/* --- models --- */

static int read_names(struct model *m, const struct json_doc *doc, struct err *e)
{
    const json_t *names = json_object_get(doc->root, "feature_names");
    bool has_names = names && !json_is_null(names);
    int rc = has_names ? check_list(doc, names, m->n, "feature_names", e) : 0;
    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        m->features[i] = (struct model_feature){ .norm = PROFILE_AS_IS, .median = NAN, .iqr = NAN };
        const json_t *name = has_names ? json_array_get(names, i) : NULL;
        if (name && (!json_is_string(name) || json_string_length(name) > MODEL_TEXT_MAX))
            return json_doc_err(doc, "feature_names", e, -EINVAL, "must hold texts");
        m->features[i].name = name ? strdup(json_string_value(name)) : NULL;
        rc = name && !m->features[i].name ? no_memory(doc, e) : 0;
    }
    return rc;
}

static int read_centroids(struct model *m, const struct json_doc *doc, size_t k, struct err *e)
{
    const json_t *list = json_object_get(doc->root, "centroids");
    int rc = check_list(doc, list, k, "centroids", e);
    for (size_t j = 0; rc == 0 && j < k; j++) {
        struct model_cluster *c = &m->clusters[j];
        c->id = m->next_id++;
        c->spread = NAN;
        c->mean = calloc(m->n + 1, sizeof *c->mean);
        m->n_clusters++;
        rc = c->mean ? read_row(doc, "centroids", j, json_array_get(list, j), c->mean, m->n, false, e)
                     : no_memory(doc, e);
    }
    return rc;
}

static int read_sizes(struct model *m, const struct json_doc *doc, struct err *e)
{
    const json_t *list = json_object_get(doc->root, "cluster_sizes"), *inertia = json_object_get(doc->root, "inertia");
    int rc = check_list(doc, list, m->n_clusters, "cluster_sizes", e);
    for (size_t j = 0; rc == 0 && j < m->n_clusters; j++) {
        double size = json_number_value(json_array_get(list, j)); /* numpy may have made them 12.0 */
        if (!json_is_number(json_array_get(list, j)) || size < 0 || size > 0x1p53 || size != floor(size))
            rc = json_doc_err(doc, "cluster_sizes", e, -EINVAL, "must hold whole numbers from 0 on");
        else
            m->clusters[j].count = (uint64_t)size;
    }
    if (rc == 0 && (!json_is_number(inertia) || json_number_value(inertia) < 0))
        rc = json_doc_err(doc, "inertia", e, -EINVAL, inertia ? "must be a number from 0 on" : "is missing");
    m->inertia = json_number_value(inertia);
    return rc;
}

static int read_model(struct model *m, const struct json_doc *doc, struct err *e)
{
    size_t k = 0, n = 0;
    if (!json_is_object(doc->root))
        return err_set(e, -EINVAL,
                       "'%s' is no model: an object with k, n_features, centroids, cluster_sizes and inertia is "
                       "expected",
                       doc->name);
    int rc = read_count(doc, "k", MODEL_CLUSTERS_MAX, &k, e);
    if (rc == 0)
        rc = read_count(doc, "n_features", PROFILE_FEATURES_MAX, &n, e);
    if (rc < 0)
        return rc;
    m->features = calloc(n, sizeof *m->features);
    m->clusters = calloc(k, sizeof *m->clusters);
    if (!m->features || !m->clusters)
        return no_memory(doc, e);
    m->n = n;
    rc = read_names(m, doc, e);
    if (rc == 0)
        rc = read_centroids(m, doc, k, e);
    return rc < 0 ? rc : read_sizes(m, doc, e);
}

int model_sklearn_read(struct model *out, const char *name, const char *text, size_t len, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, name, text, len, e);
    if (rc < 0)
        return rc;
    struct model m = { .vectors = MODEL_RAW, .inertia = NAN };
    rc = read_model(&m, &doc, e);
    if (rc < 0) {
        model_done(&m);
        return rc;
    }
    model_derive(&m);
    *out = m;
    return 0;
}

/* --- vectors --- */

void model_sklearn_vectors_done(struct model_vectors_list *v)
{
    if (!v)
        return;
    free(v->x);
    *v = (struct model_vectors_list){ 0 };
}

int model_sklearn_vectors(struct model_vectors_list *out, size_t width, bool may_lack, const char *name,
                          const char *text, size_t len, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, name, text, len, e);
    if (rc < 0)
        return rc;
    const json_t *list = json_object_get(doc.root, "vectors");
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        return json_doc_err(&doc, "vectors", e, -EINVAL, list ? "must be a list" : "is missing");
    if (n > VECTORS_MAX || n * (width + 1) > CELLS_MAX)
        return json_doc_err(&doc, "vectors", e, -EINVAL, "has too many numbers: %d are the most", CELLS_MAX);
    struct model_vectors_list v = { .x = calloc(n * width + 1, sizeof *v.x), .n = n, .width = width };
    if (!v.x)
        return no_memory(&doc, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = read_row(&doc, "vectors", i, json_array_get(list, i), v.x + i * width, width, may_lack, e);
    if (rc < 0)
        model_sklearn_vectors_done(&v);
    else
        *out = v;
    return rc;
}

/* --- prediction --- */

static json_t *prediction(json_t *cluster, double squared, enum model_decision decision)
{
    return json_pack("{s:o, s:o, s:s}", "cluster", cluster, "squared_distance", json_num(squared), "decision",
                     model_decision_name(decision));
}

static json_t *predict_raw(const struct model *m, const double *x)
{
    double squared = NAN;
    int at = model_nearest(m, x, &squared);
    return prediction(at < 0 ? json_null() : json_integer(m->clusters[at].id), squared, MODEL_UNKNOWN);
}

static json_t *predict_profile(const struct model *m, const double *x, struct profile *scratch)
{
    struct model_verdict v;
    for (size_t f = 0; f < m->n; f++) {
        scratch->mask[f] = isfinite(x[f]) ? 1 : 0;
        scratch->x[f] = scratch->mask[f] ? x[f] : 0;
    }
    model_verdict(&v, m, scratch);
    double distance = v.near[0].distance;
    return v.n_near ? prediction(json_integer(v.near[0].cluster), distance * distance, v.decision)
                    : prediction(json_null(), NAN, v.decision);
}

int model_sklearn_predict(json_t **out, const struct model *m, const struct model_vectors_list *v, struct err *e)
{
    struct profile scratch;
    int rc = profile_init(&scratch, m->n, e);
    if (rc < 0)
        return rc;
    json_t *list = json_array();
    for (size_t i = 0; list && rc == 0 && i < v->n; i++) {
        const double *x = v->x + i * v->width;
        json_t *one = m->vectors == MODEL_RAW ? predict_raw(m, x) : predict_profile(m, x, &scratch);
        if (json_array_append_new(list, one) < 0)
            rc = -ENOMEM;
    }
    profile_done(&scratch);
    if (!list || rc < 0) {
        json_decref(list);
        return err_sys(e, -ENOMEM, "cannot predict");
    }
    *out = list;
    return 0;
}
