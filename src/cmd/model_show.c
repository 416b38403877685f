/* `model ls` and `model show` */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/model_json.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/model_parts.h"
#include "live/study.h"
#include "store/models.h"
#include "view/table.h"
#include "view/words.h"

/* --- ls --- */

struct listing {
    struct store *store;
    json_t *json;
    struct err *e;
};

static int list_model(void *ctx, const char *name, int64_t version)
{
    struct listing *l = ctx;
    AUTO_MODEL struct model m = { 0 };
    AUTO_FREE char *text = NULL;
    int64_t now = version;
    int rc = store_model_get(l->store, name, &text, &now, l->e);
    if (rc > 0)
        rc = model_json_read(&m, name, text, strlen(text), l->e);
    if (rc < 0)
        return rc;
    json_t *one = json_pack("{s:s, s:I, s:I, s:I, s:I}", "model", name, "version", (json_int_t)now, "clusters",
                            (json_int_t)m.n_clusters, "classes", (json_int_t)m.n_classes, "features", (json_int_t)m.n);
    return json_array_append_new(l->json, one) < 0 ? err_sys(l->e, -ENOMEM, "cannot list the models") : 0;
}

static int print_models(const json_t *list, const char *path)
{
    static const char *const heads[] = { "model", ">version", ">clusters", ">classes", ">features", NULL };
    static const char *const keys[] = { "version", "clusters", "classes", "features" };
    AUTO_BUF struct buf b = BUF_INIT;
    struct table t;
    size_t i;
    json_t *one;
    table_init(&t, heads);
    json_array_foreach(list, i, one)
    {
        table_cell(&t, json_string_value(json_object_get(one, "model")));
        for (size_t k = 0; k < ARRAY_LEN(keys); k++)
            table_cellf(&t, "%lld", (long long)json_integer_value(json_object_get(one, keys[k])));
    }
    if (json_array_size(list))
        table_put(&t, &b, 0);
    else
        buf_printf(&b, "no model in '%s' yet: runs make one, and so does 'pipetune model train TRACE'\n", path);
    table_done(&t);
    return cmd_print(&b);
}

int model_ls(const struct model_args *a, struct err *e)
{
    AUTO_FREE char *path = study_store_path(a->store);
    AUTO_JSON json_t *list = json_array();
    struct listing l = { .json = list, .e = e };
    int rc = path && list ? store_open(&l.store, path, STORE_READ, e) : err_sys(e, -ENOMEM, "cannot list the models");
    if (rc == 0)
        rc = store_models(l.store, list_model, &l, e);
    else if (rc == -ENOENT) /* nothing was run yet: that is an answer too */
        rc = 0;
    store_close(l.store);
    if (rc < 0)
        return cmd_fail(e);
    return a->json ? cmd_print_json(json_incref(list)) : print_models(list, path);
}

/* --- show --- */

static size_t measured(const struct model *m, const struct model_cluster *c)
{
    size_t n = 0;
    for (size_t f = 0; f < m->n; f++)
        n += !c->weight || c->weight[f] > 0;
    return n;
}

static json_t *clusters_json(const struct model *m)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < m->n_clusters; i++) {
        const struct model_cluster *c = &m->clusters[i];
        json_t *one = json_pack("{s:I, s:I, s:o, s:I}", "id", (json_int_t)c->id, "count", (json_int_t)c->count,
                                "spread", json_num(c->spread), "features", (json_int_t)measured(m, c));
        if (json_array_append_new(list, one) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* As a file has the classes; of the clusters only what one can look at. */
static json_t *model_as_json(const struct model *m, const char *name)
{
    AUTO_BUF struct buf text = BUF_INIT;
    model_json_put(&text, m);
    AUTO_JSON json_t *whole = text.failed ? NULL : json_loadb(text.data, text.len, 0, NULL);
    json_t *classes = json_object_get(whole, "classes");
    if (!classes)
        return NULL;
    return json_pack("{s:s, s:s, s:I, s:o, s:O}", "model", name, "vectors",
                     m->vectors == MODEL_RAW ? "raw" : "profiles", "features", (json_int_t)m->n, "clusters",
                     clusters_json(m), "classes", classes);
}

static void put_setting(struct buf *b, const char *text)
{
    AUTO_JSON json_t *setting = words_object(text);
    words_put_members(b, setting);
}

static void put_classes(struct buf *b, const struct model *m)
{
    static const char *const heads[] = { "class",   "best",        ">strength", ">trials",
                                         ">ratios", ">infeasible", "clusters",  NULL };
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < m->n_classes; i++) {
        const struct model_class *c = &m->classes[i];
        AUTO_BUF struct buf key = BUF_INIT, best = BUF_INIT, clusters = BUF_INIT;
        words_put_plain(&key, c->key);
        if (c->best)
            put_setting(&best, c->best);
        for (size_t k = 0; k < c->n_members; k++)
            buf_printf(&clusters, "%s%lld", k ? ", " : "", (long long)c->members[k].cluster);
        table_cell(&t, buf_text(&key));
        table_cell(&t, c->best ? buf_text(&best) : c->weakenings > 0 ? "retired" : "-");
        table_cellf(&t, "%d of %d", c->strength, MODEL_STRENGTH_MAX);
        table_cellf(&t, "%lld", (long long)c->trials);
        table_cellf(&t, "%zu", c->n_entries);
        table_cellf(&t, "%zu", c->n_bounds);
        table_cell(&t, buf_text(&clusters));
    }
    table_put(&t, b, 0);
    table_done(&t);
}

static void put_ratios(struct buf *b, const struct model *m)
{
    for (size_t i = 0; i < m->n_classes; i++) {
        const struct model_class *c = &m->classes[i];
        for (size_t k = 0; k < c->n_entries; k++) {
            const struct model_entry *x = &c->entries[k];
            buf_puts(b, k ? "  " : "\n");
            if (k == 0) {
                words_put_plain(b, c->key);
                buf_puts(b, ":\n  ");
            }
            put_setting(b, x->setting);
            buf_printf(b, " takes %s%.3f times as long as ", x->at_least ? "at least " : "", exp(x->log_ratio));
            put_setting(b, x->over);
            buf_printf(b, " (measured %lld time%s", (long long)x->n, x->n == 1 ? "" : "s");
            if (x->n > 1)
                buf_printf(b, ", spread %.1f %%", 100 * x->spread);
            buf_puts(b, ")\n");
        }
    }
}

static void put_clusters(struct buf *b, const struct model *m)
{
    static const char *const heads[] = { ">cluster", ">profiles", ">spread", ">features", NULL };
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < m->n_clusters; i++) {
        const struct model_cluster *c = &m->clusters[i];
        table_cellf(&t, "%lld", (long long)c->id);
        table_cellf(&t, "%llu", (unsigned long long)c->count);
        table_number(&t, c->spread);
        table_cellf(&t, "%zu", measured(m, c));
    }
    table_put(&t, b, 0);
    table_done(&t);
}

static int print_model(const struct model *m, const char *name)
{
    AUTO_BUF struct buf b = BUF_INIT;
    words_put_plain(&b, name);
    buf_printf(&b, ": %zu classes, %zu clusters of %zu features\n", m->n_classes, m->n_clusters, m->n);
    if (m->n_classes > 0) {
        buf_putc(&b, '\n');
        put_classes(&b, m);
        put_ratios(&b, m);
    }
    if (m->n_clusters > 0) {
        buf_putc(&b, '\n');
        put_clusters(&b, m);
    }
    return cmd_print(&b);
}

int model_show(const struct model_args *a, struct err *e)
{
    AUTO_MODEL struct model m = { 0 };
    if (model_load(&m, a, e) < 0)
        return cmd_fail(e);
    return a->json ? cmd_print_json(model_as_json(&m, model_name(a))) : print_model(&m, model_name(a));
}
