#include "clustering/model_json.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/model_parts.h"

#define COUNT_MAX 9007199254740992.0 /* 2^53 */
#define LOG_MAX 1000.0               /* no log1p of a double is larger */
#define SQUARES_MAX (MODEL_MEMORY * LOG_MAX * LOG_MAX)

/* --- reading --- */

/* A value, and where it stands. */
struct at {
    const struct json_doc *doc;
    json_t *value;
    char path[128];
};

static int fault(const struct at *a, struct err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int fault(const struct at *a, struct err *e, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap); /* a cut message is still a message */
    va_end(ap);
    return json_doc_err(a->doc, a->path, e, -EINVAL, "%s", what);
}

static struct at element(const struct at *a, size_t i)
{
    struct at x = { .doc = a->doc, .value = json_array_get(a->value, i) };
    (void)snprintf(x.path, sizeof x.path, "%s/%zu", a->path, i);
    return x;
}

static struct at member(const struct at *a, const char *key)
{
    struct at x = { .doc = a->doc, .value = json_object_get(a->value, key) };
    (void)snprintf(x.path, sizeof x.path, "%s%s%s", a->path, *a->path ? "/" : "", key);
    return x;
}

/* An object with these keys, which end with NULL, and no others. */
static int check_keys(const struct at *a, const char *const *keys, struct err *e)
{
    if (!json_is_object(a->value))
        return fault(a, e, "must be an object");
    const char *key;
    json_t *value;
    json_object_foreach(a->value, key, value)
    {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        struct at x = member(a, key);
        if (!keys[i])
            return fault(&x, e, "is none of a model's keys");
    }
    for (size_t i = 0; keys[i]; i++) {
        struct at x = member(a, keys[i]);
        if (!x.value)
            return fault(&x, e, "is missing");
    }
    return 0;
}

static int read_array(const struct at *a, size_t most, struct err *e)
{
    if (!json_is_array(a->value))
        return fault(a, e, "must be a list");
    if (json_array_size(a->value) > most)
        return fault(a, e, "has %zu elements, and %zu are the most", json_array_size(a->value), most);
    return 0;
}

/* `absent`: what null stands for; NULL: it stands for nothing. */
static int read_number(double *out, const struct at *a, double min, double max, const double *absent, struct err *e)
{
    double x = json_number_value(a->value);
    if (absent && json_is_null(a->value)) {
        *out = *absent;
        return 0;
    }
    if (!json_is_number(a->value) || !isfinite(x))
        return fault(a, e, "must be a number");
    if (x < min || x > max)
        return fault(a, e, "must be between %g and %g", min, max);
    *out = x;
    return 0;
}

static int read_member_number(double *out, const struct at *a, const char *key, double min, double max,
                              const double *absent, struct err *e)
{
    struct at x = member(a, key);
    return read_number(out, &x, min, max, absent, e);
}

static int read_integer(int64_t *out, const struct at *a, const char *key, double min, double max, struct err *e)
{
    double x = 0;
    struct at number = member(a, key);
    int rc = read_number(&x, &number, min, max, NULL, e);
    if (rc == 0 && !json_is_integer(number.value))
        rc = fault(&number, e, "must be a whole number");
    if (rc == 0)
        *out = json_integer_value(number.value);
    return rc;
}

static int no_memory(const struct at *a, struct err *e)
{
    return err_sys(e, -ENOMEM, "'%s'", a->doc->name);
}

static int read_text(char **out, const struct at *a, const char *key, bool may_lack, struct err *e)
{
    struct at x = member(a, key);
    if (may_lack && json_is_null(x.value))
        return 0;
    if (!json_is_string(x.value))
        return fault(&x, e, "must be a text");
    if (json_string_length(x.value) > MODEL_TEXT_MAX)
        return fault(&x, e, "is longer than %d bytes", MODEL_TEXT_MAX);
    *out = strdup(json_string_value(x.value));
    return *out ? 0 : no_memory(a, e);
}

static int read_setting(char **out, const struct at *a, const char *key, bool may_lack, struct err *e)
{
    struct at x = member(a, key);
    if (may_lack && json_is_null(x.value))
        return 0;
    AUTO_FREE char *text = json_text(x.value);
    if (!text)
        return no_memory(a, e);
    int rc = model_setting(out, text, NULL);
    return rc == -EINVAL ? fault(&x, e, "is no setting: an object of names and values is expected")
           : rc < 0      ? no_memory(a, e)
                         : 0;
}

/* --- its parts --- */

static int read_feature(struct model *m, const struct at *a, struct err *e)
{
    static const char *const profile_keys[] = { "name", "per", "median", "iqr", NULL };
    static const char *const raw_keys[] = { "name", NULL };
    bool raw = m->vectors == MODEL_RAW;
    const double none = NAN;
    struct model_feature *f = &m->features[m->n];
    *f = (struct model_feature){ .median = NAN, .iqr = NAN, .noise = NAN };
    int rc = check_keys(a, raw ? raw_keys : profile_keys, e);
    if (rc == 0)
        rc = read_text(&f->name, a, "name", raw, e);
    m->n += rc == 0; /* from here on model_done() frees the name */
    if (rc < 0 || raw)
        return rc;
    struct at per = member(a, "per");
    int norm = json_is_string(per.value) ? profile_norm_find(json_string_value(per.value)) : -1;
    if (norm < 0)
        return fault(&per, e, "must be instructions, cpu-time, seconds or none");
    f->norm = (enum profile_norm)norm;
    rc = read_member_number(&f->median, a, "median", -LOG_MAX, LOG_MAX, &none, e);
    return rc < 0 ? rc : read_member_number(&f->iqr, a, "iqr", 0, LOG_MAX, &none, e);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names are looked up by: each stands for one feature. */
static int check_names(const struct model *m, const struct at *list, struct err *e)
{
    AUTO_FREE const char **names = calloc(m->n + 1, sizeof *names);
    if (!names)
        return no_memory(list, e);
    for (size_t i = 0; i < m->n; i++)
        names[i] = m->features[i].name;
    qsort(names, m->n, sizeof *names, by_text);
    for (size_t i = 1; i < m->n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return fault(list, e, "has '%.64s' twice", names[i]);
    return 0;
}

static int read_features(struct model *m, const struct at *a, struct err *e)
{
    struct at list = member(a, "features");
    int rc = read_array(&list, PROFILE_FEATURES_MAX, e);
    if (rc < 0)
        return rc;
    size_t n = json_array_size(list.value);
    m->features = calloc(n + 1, sizeof *m->features);
    if (!m->features)
        return no_memory(a, e);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct at one = element(&list, i);
        rc = read_feature(m, &one, e);
    }
    return rc < 0 || m->vectors == MODEL_RAW ? rc : check_names(m, &list, e);
}

/* One number per feature. *out is allocated. */
static int read_vector(double **out, const struct model *m, const struct at *a, const char *key, const double *absent,
                       double min, double max, struct err *e)
{
    struct at list = member(a, key);
    int rc = read_array(&list, PROFILE_FEATURES_MAX, e);
    if (rc == 0 && json_array_size(list.value) != m->n)
        rc = fault(&list, e, "has %zu numbers, and the model %zu features", json_array_size(list.value), m->n);
    if (rc < 0)
        return rc;
    double *x = calloc(m->n + 1, sizeof *x);
    if (!x)
        return no_memory(a, e);
    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        struct at one = element(&list, i);
        rc = read_number(&x[i], &one, min, max, absent, e);
    }
    *out = x; /* whoever asked frees it */
    return rc;
}

/* A centroid is null where no member had the feature, and only there. */
static int check_masks(const struct model *m, struct model_cluster *c, const struct at *a, struct err *e)
{
    for (size_t f = 0; f < m->n; f++) {
        if (isnan(c->mean[f]) != !(c->weight[f] > 0))
            return fault(a, e, "has members with feature %zu and no centroid there, or the other way round", f);
        if (c->weight[f] > 0 && c->weight[f] < 1)
            return fault(a, e, "has less than one member with feature %zu", f);
        if (isnan(c->mean[f]))
            c->mean[f] = 0;
    }
    return 0;
}

static int read_sums(struct model_cluster *c, const struct model *m, const struct at *a, struct err *e)
{
    const double none = NAN, any = HUGE_VAL;
    bool raw = m->vectors == MODEL_RAW;
    double bound = raw ? any : LOG_MAX;
    int rc = read_vector(&c->mean, m, a, "centroid", raw ? NULL : &none, -bound, bound, e);
    if (rc == 0 && !raw)
        rc = read_vector(&c->weight, m, a, "seen", NULL, 0, MODEL_MEMORY, e);
    if (rc == 0 && !raw)
        rc = read_vector(&c->m2, m, a, "squares", NULL, 0, SQUARES_MAX, e);
    return rc < 0 || raw ? rc : check_masks(m, c, a, e);
}

static int read_cluster(struct model *m, const struct at *a, struct err *e)
{
    static const char *const profile_keys[] = { "id", "count", "spread", "centroid", "seen", "squares", NULL };
    static const char *const raw_keys[] = { "id", "count", "centroid", NULL };
    bool raw = m->vectors == MODEL_RAW;
    struct model_cluster *c = &m->clusters[m->n_clusters];
    int64_t count = 0;
    int rc = check_keys(a, raw ? raw_keys : profile_keys, e);
    if (rc < 0)
        return rc;
    m->n_clusters++; /* from here on model_done() frees it */
    int64_t after = m->n_clusters > 1 ? c[-1].id : -1;
    rc = read_integer(&c->id, a, "id", (double)after + 1, (double)(m->next_id - 1), e);
    if (rc == 0)
        rc = read_integer(&count, a, "count", 0, COUNT_MAX, e);
    if (rc == 0 && !raw)
        rc = read_member_number(&c->spread, a, "spread", 0, HUGE_VAL, NULL, e);
    c->count = (uint64_t)count;
    return rc < 0 ? rc : read_sums(c, m, a, e);
}

static int read_clusters(struct model *m, const struct at *a, struct err *e)
{
    struct at list = member(a, "clusters");
    int rc = read_array(&list, MODEL_CLUSTERS_MAX, e);
    if (rc < 0)
        return rc;
    size_t n = json_array_size(list.value);
    m->clusters = calloc(n + 1, sizeof *m->clusters);
    if (!m->clusters)
        return no_memory(a, e);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct at one = element(&list, i);
        rc = read_cluster(m, &one, e);
    }
    return rc;
}

static int read_member(struct model_class *c, const struct model *m, const struct at *a, struct err *e)
{
    static const char *const keys[] = { "id", "count", NULL };
    int64_t id = 0, count = 0;
    int rc = check_keys(a, keys, e);
    if (rc == 0)
        rc = read_integer(&id, a, "id", 0, COUNT_MAX, e);
    if (rc == 0 && !model_cluster_find(m, id))
        rc = fault(a, e, "names cluster %lld, which the model does not have", (long long)id);
    if (rc == 0 && model_class_count(c, id) > 0)
        rc = fault(a, e, "names cluster %lld twice", (long long)id);
    if (rc == 0)
        rc = read_integer(&count, a, "count", 1, COUNT_MAX, e);
    return rc < 0 ? rc : model_class_count_in(c, id, (uint64_t)count, e);
}

static int read_entry(struct model_class *c, const struct at *a, struct err *e)
{
    static const char *const keys[] = { "setting", "over", "log_ratio", "at_least", "n", "spread", NULL };
    int rc = check_keys(a, keys, e);
    if (rc < 0)
        return rc;
    struct model_entry *x = &c->entries[c->n_entries++];
    rc = read_setting(&x->setting, a, "setting", false, e);
    if (rc == 0)
        rc = read_setting(&x->over, a, "over", false, e);
    if (rc == 0)
        rc = read_member_number(&x->log_ratio, a, "log_ratio", -LOG_MAX, LOG_MAX, NULL, e);
    if (rc == 0)
        rc = read_integer(&x->n, a, "n", 1, COUNT_MAX, e);
    if (rc == 0)
        rc = read_member_number(&x->spread, a, "spread", 0, LOG_MAX, NULL, e);
    struct at flag = member(a, "at_least");
    if (rc == 0 && !json_is_boolean(flag.value))
        rc = fault(&flag, e, "must be true or false");
    x->at_least = json_is_true(flag.value);
    return rc;
}

static int read_bound(struct model_class *c, const struct at *a, struct err *e)
{
    static const char *const keys[] = { "setting", "evidence", "n", NULL };
    int rc = check_keys(a, keys, e);
    if (rc < 0)
        return rc;
    struct model_bound *x = &c->bounds[c->n_bounds++];
    rc = read_setting(&x->setting, a, "setting", false, e);
    if (rc == 0)
        rc = read_text(&x->evidence, a, "evidence", false, e);
    return rc < 0 ? rc : read_integer(&x->n, a, "n", 1, COUNT_MAX, e);
}

static int read_lists(struct model_class *c, const struct model *m, const struct at *a, struct err *e)
{
    struct at members = member(a, "clusters"), entries = member(a, "entries"), bounds = member(a, "infeasible");
    int rc = read_array(&members, MODEL_CLUSTERS_MAX, e);
    if (rc == 0)
        rc = read_array(&entries, MODEL_ENTRIES_MAX, e);
    if (rc == 0)
        rc = read_array(&bounds, MODEL_ENTRIES_MAX, e);
    if (rc < 0)
        return rc;
    c->entries = calloc(json_array_size(entries.value) + 1, sizeof *c->entries);
    c->bounds = calloc(json_array_size(bounds.value) + 1, sizeof *c->bounds);
    if (!c->entries || !c->bounds)
        return no_memory(a, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(members.value); i++) {
        struct at one = element(&members, i);
        rc = read_member(c, m, &one, e);
    }
    for (size_t i = 0; rc == 0 && i < json_array_size(entries.value); i++) {
        struct at one = element(&entries, i);
        rc = read_entry(c, &one, e);
    }
    for (size_t i = 0; rc == 0 && i < json_array_size(bounds.value); i++) {
        struct at one = element(&bounds, i);
        rc = read_bound(c, &one, e);
    }
    return rc;
}

static int read_evidence(struct model_class *c, const struct at *a, struct err *e)
{
    static const char *const keys[] = { "study", "trial", "trials", NULL };
    struct at x = member(a, "evidence");
    int rc = check_keys(&x, keys, e);
    if (rc == 0)
        rc = read_text(&c->study, &x, "study", true, e);
    if (rc == 0)
        rc = read_integer(&c->trial, &x, "trial", 0, COUNT_MAX, e);
    return rc < 0 ? rc : read_integer(&c->trials, &x, "trials", 0, COUNT_MAX, e);
}

static int read_strength(struct model_class *c, const struct at *a, struct err *e)
{
    int64_t strength = 0;
    int rc = read_setting(&c->best, a, "best", true, e);
    if (rc == 0)
        rc = read_integer(&strength, a, "strength", c->best ? 1 : 0, c->best ? MODEL_STRENGTH_MAX : 0, e);
    if (rc == 0)
        rc = read_integer(&c->confirmations, a, "confirmations", 0, COUNT_MAX, e);
    c->strength = (int)strength;
    return rc < 0 ? rc : read_integer(&c->weakenings, a, "weakenings", 0, COUNT_MAX, e);
}

static int read_class(struct model *m, const struct at *a, struct err *e)
{
    static const char *const keys[] = { "key",        "family",  "clusters",   "best",     "strength", "confirmations",
                                        "weakenings", "entries", "infeasible", "evidence", NULL };
    struct model_class *c = &m->classes[m->n_classes];
    int rc = check_keys(a, keys, e);
    if (rc == 0)
        rc = read_text(&c->key, a, "key", false, e);
    if (rc < 0)
        return rc;
    bool twice = model_class_find(m, c->key);
    m->n_classes++; /* from here on model_done() frees it */
    if (twice)
        return fault(a, e, "has the key of another class, '%.64s'", c->key);
    rc = read_text(&c->family, a, "family", true, e);
    if (rc == 0)
        rc = read_strength(c, a, e);
    if (rc == 0)
        rc = read_evidence(c, a, e);
    return rc < 0 ? rc : read_lists(c, m, a, e);
}

static int read_classes(struct model *m, const struct at *a, struct err *e)
{
    struct at list = member(a, "classes");
    int rc = read_array(&list, m->vectors == MODEL_RAW ? 0 : MODEL_CLASSES_MAX, e);
    if (rc < 0)
        return rc;
    size_t n = json_array_size(list.value);
    m->classes = calloc(n + 1, sizeof *m->classes);
    if (!m->classes)
        return no_memory(a, e);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct at one = element(&list, i);
        rc = read_class(m, &one, e);
    }
    return rc;
}

/* --- the whole --- */

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* What kind of text it is comes first: the rest of a newer one may be anything. */
static int read_head(struct model *m, const struct at *a, struct err *e)
{
    struct at format = member(a, "format"), version = member(a, "version"), vectors = member(a, "vectors");
    if (!is_text(format.value, MODEL_JSON_FORMAT))
        return err_set(e, -EINVAL,
                       "'%s' is no model: it lacks \"format\": \"%s\"; one of scikit-learn is imported by "
                       "'pipetune model import --format sklearn'",
                       a->doc->name, MODEL_JSON_FORMAT);
    if (!json_is_integer(version.value) || json_integer_value(version.value) < 1)
        return fault(&version, e, "must be a whole number from 1 on");
    if (json_integer_value(version.value) > MODEL_JSON_VERSION)
        return err_set(e, -EINVAL,
                       "'%s' was written by a newer pipetune (format version %lld, this one reads up to %d): "
                       "use that one, or update this",
                       a->doc->name, (long long)json_integer_value(version.value), MODEL_JSON_VERSION);
    bool raw = is_text(vectors.value, "raw");
    if (!raw && !is_text(vectors.value, "profiles"))
        return fault(&vectors, e, "must be profiles or raw");
    m->vectors = raw ? MODEL_RAW : MODEL_PROFILES;
    return 0;
}

static int read_model(struct model *m, const struct at *a, struct err *e)
{
    static const char *const keys[] = { "format",   "version", "vectors", "next_id", "features",
                                        "clusters", "classes", NULL,      NULL };
    const double none = NAN;
    const char *all[ARRAY_LEN(keys)];
    memcpy(all, keys, sizeof keys);
    int rc = read_head(m, a, e);
    if (m->vectors == MODEL_RAW)
        all[ARRAY_LEN(keys) - 2] = "inertia";
    if (rc == 0)
        rc = check_keys(a, all, e);
    if (rc == 0)
        rc = read_integer(&m->next_id, a, "next_id", 0, COUNT_MAX, e);
    if (rc == 0 && m->vectors == MODEL_RAW)
        rc = read_member_number(&m->inertia, a, "inertia", 0, HUGE_VAL, &none, e);
    if (rc == 0)
        rc = read_features(m, a, e);
    if (rc == 0)
        rc = read_clusters(m, a, e);
    return rc < 0 ? rc : read_classes(m, a, e);
}

int model_json_read(struct model *out, const char *name, const char *text, size_t len, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, name, text, len, e);
    if (rc < 0)
        return rc;
    struct model m;
    model_init(&m);
    struct at root = { .doc = &doc, .value = doc.root };
    rc = read_model(&m, &root, e);
    if (rc < 0) {
        model_done(&m);
        return rc;
    }
    model_derive(&m);
    *out = m;
    return 0;
}

/* --- profiles and verdicts --- */

static int find_feature(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->features[i].name && strcmp(m->features[i].name, name) == 0)
            return (int)i;
    return -1;
}

int model_json_view(struct profile *out, const struct model *m, const char *text, struct err *e)
{
    AUTO_JSON json_t *from = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(from))
        return err_set(e, -EINVAL, "'%.80s' is no profile: an object of features is expected", text);
    struct profile p;
    int rc = profile_init(&p, m->n, e);
    const char *key;
    json_t *value;
    if (rc < 0)
        return rc;
    json_object_foreach(from, key, value)
    {
        int at = find_feature(m, key);
        if (!json_is_number(value))
            rc = err_set(e, -EINVAL, "feature '%.64s' of a profile is no number", key);
        p.beyond += at < 0;
        if (at >= 0) {
            p.x[at] = json_number_value(value);
            p.mask[at] = 1;
        }
    }
    if (rc < 0)
        profile_done(&p);
    else
        *out = p;
    return rc;
}

static json_t *near_json(const struct model_verdict *v)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < v->n_near; i++) {
        const struct model_distance *d = &v->near[i];
        json_t *one =
            json_pack("{s:I, s:o, s:o, s:I}", "cluster", (json_int_t)d->cluster, "spreads", json_num(d->spreads),
                      "distance", json_num(d->distance), "common", (json_int_t)d->common);
        if (json_array_append_new(list, one) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *model_json_verdict(const struct model_verdict *v)
{
    const struct model_distance *d = &v->near[0];
    bool compared = v->n_near > 0;
    return json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:o, s:s}", "decision", model_decision_name(v->decision),
                     "cluster", compared ? json_integer(d->cluster) : json_null(), "spreads",
                     json_num(compared ? d->spreads : (double)NAN), "distance",
                     json_num(compared ? d->distance : (double)NAN), "common", (json_int_t)(compared ? d->common : 0),
                     "measured", (json_int_t)v->measured, "near", near_json(v), "reason", v->reason);
}
