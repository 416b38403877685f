#include "bigdl/kube_taints.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* --- the template ---------------------------------------------------------------------------------------------------------- */

/* What a mapping has by that name; NULL: nothing, or it is none. */
static yaml_node_t *member(yaml_document_t *d, const yaml_node_t *of, const char *name)
{
    if (!of || of->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *p = of->data.mapping.pairs.start; p < of->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(d, p->key);
        if (key && key->type == YAML_SCALAR_NODE && key->data.scalar.length == strlen(name) &&
            memcmp(key->data.scalar.value, name, strlen(name)) == 0)
            return yaml_document_get_node(d, p->value);
    }
    return NULL;
}

/* "" where there is none. False: it is longer than there is any. */
static bool put_text(yaml_document_t *d, const yaml_node_t *of, const char *name, char *out, size_t size)
{
    const yaml_node_t *j = member(d, of, name);
    bool scalar = j && j->type == YAML_SCALAR_NODE;
    bool null = scalar && j->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                (strcmp((const char *)j->data.scalar.value, "null") == 0 ||
                 strcmp((const char *)j->data.scalar.value, "~") == 0);
    size_t len = scalar && !null ? j->data.scalar.length : 0;
    if (len >= size)
        return false;
    if (len > 0)
        memcpy(out, j->data.scalar.value, len);
    out[len] = '\0';
    return true;
}

/* False: it tolerates nothing. */
static bool read_one(yaml_document_t *d, const yaml_node_t *j, struct kube_toleration *out)
{
    char how[16];
    if (!put_text(d, j, "key", out->key, sizeof out->key) || !put_text(d, j, "value", out->value, sizeof out->value) ||
        !put_text(d, j, "effect", out->effect, sizeof out->effect) || !put_text(d, j, "operator", how, sizeof how))
        return false;
    out->any_value = strcmp(how, "Exists") == 0;
    bool known = out->any_value || !*how || strcmp(how, "Equal") == 0;
    return known && !member(d, j, "tolerationSeconds") && (*out->key || out->any_value);
}

static int read_all(struct kube_tolerations *out, yaml_document_t *d, struct err *e)
{
    const yaml_node_t *spec = member(d, yaml_document_get_root_node(d), "spec"), *all = member(d, spec, "tolerations");
    struct kube_tolerations t = { .n = 0 };
    if (!all || all->type != YAML_SEQUENCE_NODE)
        return 0;
    for (const yaml_node_item_t *i = all->data.sequence.items.start; i < all->data.sequence.items.top; i++) {
        if (t.n == KUBE_TOLERATIONS_MAX)
            return err_set(e, -E2BIG, "the pod's template has more than %d tolerations", KUBE_TOLERATIONS_MAX);
        t.n += read_one(d, yaml_document_get_node(d, *i), &t.v[t.n]);
    }
    *out = t;
    return 0;
}

int kube_read_tolerations(struct kube_tolerations *out, const char *text, size_t len, struct err *e)
{
    yaml_parser_t yaml;
    yaml_document_t d;
    if (!yaml_parser_initialize(&yaml))
        return err_sys(e, -ENOMEM, "the pod's template");
    yaml_parser_set_encoding(&yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&yaml, (const unsigned char *)text, len);
    int rc;
    if (yaml_parser_load(&yaml, &d)) {
        rc = read_all(out, &d, e);
        yaml_document_delete(&d);
    } else if (yaml.error == YAML_MEMORY_ERROR) {
        rc = err_sys(e, -ENOMEM, "the pod's template");
    } else {
        rc = err_set(e, -EINVAL, "the pod's template is no YAML: line %zu: %s", yaml.problem_mark.line + 1,
                     yaml.problem ? yaml.problem : "it cannot be read");
    }
    yaml_parser_delete(&yaml);
    return rc;
}

/* --- taints ------------------------------------------------------------------------------------------------------------------ */

static const char *text_of(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? text : "";
}

static bool tolerates(const struct kube_toleration *t, const json_t *taint)
{
    bool effect = !*t->effect || strcmp(t->effect, text_of(taint, "effect")) == 0;
    bool key = !*t->key || strcmp(t->key, text_of(taint, "key")) == 0;
    return effect && key && (t->any_value || strcmp(t->value, text_of(taint, "value")) == 0);
}

static bool is_tolerated(const struct kube_tolerations *t, const json_t *taint)
{
    for (size_t i = 0; i < t->n; i++)
        if (tolerates(&t->v[i], taint))
            return true;
    return strcmp(text_of(taint, "effect"), "PreferNoSchedule") == 0;
}

bool kube_tolerates(const struct kube_tolerations *t, const json_t *node)
{
    const json_t *taint;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(node, "spec"), "taints"), i, taint)
    {
        if (!is_tolerated(t, taint))
            return false;
    }
    return true;
}
