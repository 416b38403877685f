/* Models and profiles → texts. */
#include <math.h>

#include "clustering/model_json.h"

static void put_key_number(struct buf *b, const char *key, double x)
{
    buf_printf(b, ", \"%s\": ", key);
    num_put(b, x);
}

static void put_text(struct buf *b, const char *text)
{
    if (text)
        json_put_string(b, text);
    else
        buf_puts(b, "null");
}

static void put_vector(struct buf *b, const char *key, const double *x, const double *weight, size_t n)
{
    buf_printf(b, ", \"%s\": [", key);
    for (size_t i = 0; i < n; i++) {
        buf_puts(b, i ? ", " : "");
        num_put(b, weight && !(weight[i] > 0) ? (double)NAN : x[i]);
    }
    buf_putc(b, ']');
}

static void put_feature(struct buf *b, const struct model *m, const struct model_feature *f)
{
    buf_puts(b, "{\"name\": ");
    put_text(b, f->name);
    if (m->vectors == MODEL_PROFILES) {
        buf_printf(b, ", \"per\": \"%s\"", profile_norm_name(f->norm));
        put_key_number(b, "median", f->median);
        put_key_number(b, "iqr", f->iqr);
    }
    buf_putc(b, '}');
}

static void put_cluster(struct buf *b, const struct model *m, const struct model_cluster *c)
{
    buf_printf(b, "{\"id\": %lld, \"count\": %llu", (long long)c->id, (unsigned long long)c->count);
    if (m->vectors == MODEL_PROFILES)
        put_key_number(b, "spread", c->spread);
    put_vector(b, "centroid", c->mean, c->weight, m->n);
    if (m->vectors == MODEL_PROFILES) {
        put_vector(b, "seen", c->weight, NULL, m->n);
        put_vector(b, "squares", c->m2, NULL, m->n);
    }
    buf_putc(b, '}');
}

static void put_entry(struct buf *b, const struct model_entry *x)
{
    buf_printf(b, "{\"setting\": %s, \"over\": %s", x->setting, x->over);
    put_key_number(b, "log_ratio", x->log_ratio);
    buf_printf(b, ", \"at_least\": %s, \"n\": %lld", x->at_least ? "true" : "false", (long long)x->n);
    put_key_number(b, "spread", x->spread);
    buf_putc(b, '}');
}

static void put_class(struct buf *b, const struct model_class *c)
{
    buf_puts(b, "{\"key\": ");
    put_text(b, c->key);
    buf_puts(b, ", \"family\": ");
    put_text(b, c->family);
    buf_puts(b, ", \"clusters\": [");
    for (size_t i = 0; i < c->n_members; i++)
        buf_printf(b, "%s{\"id\": %lld, \"count\": %llu}", i ? ", " : "", (long long)c->members[i].cluster,
                   (unsigned long long)c->members[i].count);
    buf_printf(b, "], \"best\": %s, \"strength\": %d, \"confirmations\": %lld, \"weakenings\": %lld, \"entries\": [",
               c->best ? c->best : "null", c->strength, (long long)c->confirmations, (long long)c->weakenings);
    for (size_t i = 0; i < c->n_entries; i++) {
        buf_puts(b, i ? ", " : "");
        put_entry(b, &c->entries[i]);
    }
    buf_puts(b, "], \"infeasible\": [");
    for (size_t i = 0; i < c->n_bounds; i++) {
        buf_printf(b, "%s{\"setting\": %s, \"evidence\": ", i ? ", " : "", c->bounds[i].setting);
        put_text(b, c->bounds[i].evidence);
        buf_printf(b, ", \"n\": %lld}", (long long)c->bounds[i].n);
    }
    buf_puts(b, "], \"evidence\": {\"study\": ");
    put_text(b, c->study);
    buf_printf(b, ", \"trial\": %lld, \"trials\": %lld}}", (long long)c->trial, (long long)c->trials);
}

static void put_separator(struct buf *b, size_t i)
{
    buf_puts(b, i ? ",\n    " : "\n    ");
}

void model_json_put(struct buf *b, const struct model *m)
{
    bool raw = m->vectors == MODEL_RAW;
    buf_printf(b, "{\n  \"format\": \"%s\",\n  \"version\": %d,\n  \"vectors\": \"%s\",\n  \"next_id\": %lld,\n",
               MODEL_JSON_FORMAT, MODEL_JSON_VERSION, raw ? "raw" : "profiles", (long long)m->next_id);
    buf_puts(b, "  \"features\": [");
    for (size_t i = 0; i < m->n; i++) {
        put_separator(b, i);
        put_feature(b, m, &m->features[i]);
    }
    buf_puts(b, "],\n  \"clusters\": [");
    for (size_t i = 0; i < m->n_clusters; i++) {
        put_separator(b, i);
        put_cluster(b, m, &m->clusters[i]);
    }
    buf_puts(b, "],\n  \"classes\": [");
    for (size_t i = 0; i < m->n_classes; i++) {
        put_separator(b, i);
        put_class(b, &m->classes[i]);
    }
    buf_putc(b, ']');
    if (raw)
        put_key_number(b, "inertia", m->inertia);
    buf_puts(b, "\n}\n");
}

void model_json_put_profile(struct buf *b, const struct profile_space *s, const struct profile *p)
{
    const char *separator = "";
    buf_putc(b, '{');
    for (size_t i = 0; i < p->n && i < s->n; i++) {
        if (!p->mask[i])
            continue;
        buf_puts(b, separator);
        json_put_string(b, s->features[i].name);
        buf_puts(b, ": ");
        num_put(b, p->x[i]);
        separator = ", ";
    }
    buf_putc(b, '}');
}
