#include "monitoring/meters_cfg.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

/* --- the keys of an entry --- */

enum key_type { KEY_NUMBER, KEY_WHOLE, KEY_TEXT };

enum key_use { USE_ANY, USE_ESTIMATE, USE_PCM, USE_PDU, USE_SNMP, USE_NETWORK /* either of the two */ };

#define CFG(member) offsetof(struct meters_entry, cfg.member)

static const struct key {
    const char *name;
    enum key_type type;
    enum key_use use;
    size_t offset;
    double min, max; /* of a number */
} keys[] = {
    { "idle_w", KEY_NUMBER, USE_ANY, offsetof(struct meters_entry, idle_w), 0, 1e5 },
    { "max_w", KEY_NUMBER, USE_ANY, CFG(max_w), 1, 1e5 },
    { "cpu_w", KEY_NUMBER, USE_ESTIMATE, CFG(cpu_w), 1e-3, 1e5 },
    { "file", KEY_TEXT, USE_PCM, CFG(file), 0, 0 },
    { "url", KEY_TEXT, USE_PDU, CFG(url), 0, 0 },
    { "path", KEY_TEXT, USE_PDU, CFG(path), 0, 0 },
    { "value", KEY_TEXT, USE_PDU, CFG(value), 0, 0 },
    { "host", KEY_TEXT, USE_SNMP, CFG(host), 0, 0 },
    { "model", KEY_TEXT, USE_SNMP, CFG(model), 0, 0 },
    { "oid", KEY_TEXT, USE_SNMP, CFG(oid), 0, 0 },
    { "credential_file", KEY_TEXT, USE_SNMP, CFG(credential_file), 0, 0 },
    { "version", KEY_WHOLE, USE_SNMP, CFG(version), 2, 3 },
    { "scale", KEY_NUMBER, USE_NETWORK, CFG(scale), 1e-6, 1e6 },
    { "timeout_ms", KEY_WHOLE, USE_NETWORK, CFG(timeout_ms), 10, 60000 },
};

enum { KEYS = sizeof keys / sizeof keys[0] };

static bool is_used(enum key_use use, const char *meter)
{
    bool pdu = strcmp(meter, "pdu") == 0, snmp = strcmp(meter, "snmp") == 0;
    switch (use) {
    case USE_ANY: return true;
    case USE_ESTIMATE: return strcmp(meter, "estimate") == 0;
    case USE_PCM: return strcmp(meter, "pcm") == 0;
    case USE_PDU: return pdu;
    case USE_SNMP: return snmp;
    case USE_NETWORK: return pdu || snmp;
    }
    return false;
}

struct reading_cfg {
    const struct json_doc *doc;
    struct meters_cfg *out;
    struct err *e;
};

static int read_number(const struct key *k, const char *path, const json_t *j, struct meters_entry *m,
                       struct reading_cfg *r)
{
    double x = json_number_value(j);
    bool whole = k->type == KEY_WHOLE;
    if (!json_is_number(j) || (whole && x != floor(x)) || !(x >= k->min && x <= k->max))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a %snumber between %g and %g", whole ? "whole " : "",
                            k->min, k->max);
    if (whole)
        *(int *)(void *)((char *)m + k->offset) = (int)x;
    else
        *(double *)(void *)((char *)m + k->offset) = x;
    return 0;
}

static int read_key(const struct key *k, const char *path, const json_t *j, struct meters_entry *m,
                    struct reading_cfg *r)
{
    if (k->type != KEY_TEXT)
        return read_number(k, path, j, m, r);
    if (!json_is_string(j) || !json_string_value(j)[0])
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a string that is not empty");
    *(const char **)(void *)((char *)m + k->offset) = json_string_value(j);
    return 0;
}

static int refuse_key(const char *key, const char *path, const char *meter, struct reading_cfg *r)
{
    const char *names[KEYS + 3] = { "name" };
    size_t n = 1;
    for (size_t i = 0; i < KEYS; i++)
        if (is_used(keys[i].use, meter))
            names[n++] = keys[i].name;
    if (is_used(USE_NETWORK, meter))
        names[n++] = "outlets";
    const char *near = suggest_nearest(key, names, n);
    return json_doc_err(r->doc, path, r->e, -EINVAL, "is no key of the meter %s%s%s%s", meter,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* --- outlets --- */

static int read_outlets(const char *path, const json_t *j, struct meters_entry *m, struct reading_cfg *r)
{
    size_t n = json_object_size(j);
    if (!json_is_object(j) || n == 0 || n > METER_READINGS_MAX)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be an object of up to %d members {\"NODE\": OUTLET, …}",
                            METER_READINGS_MAX);
    struct meter_outlet *list = calloc(n, sizeof *list);
    if (!list)
        return err_sys(r->e, -ENOMEM, "meters");
    m->cfg.outlets = list; /* meters_cfg_done() frees what there is of it */
    const char *node;
    json_t *outlet;
    json_object_foreach((json_t *)j, node, outlet)
    {
        json_int_t number = json_integer_value(outlet);
        if (!json_is_integer(outlet) || number < 0 || number > 10000 || !*node || strlen(node) > METER_NODE_MAX)
            return json_doc_err(r->doc, path, r->e, -EINVAL,
                                "must name an outlet, a whole number from 0 to 10000, for each node");
        struct meter_outlet *o = &list[m->cfg.n_outlets];
        *o = (struct meter_outlet){ .node = strdup(node), .outlet = (int)number };
        if (!o->node)
            return err_sys(r->e, -ENOMEM, "meters");
        m->cfg.n_outlets++;
    }
    return 0;
}

/* --- entries --- */

static int find_meter(const char *name, const char *path, const struct meter_ops **out, struct reading_cfg *r)
{
    const char *names[32];
    size_t n = 0;
    AUTO_BUF struct buf list = BUF_INIT;
    *out = meter_find(name);
    if (*out && (*out)->kind != METER_CPU)
        return 0;
    for (size_t i = 0; meters[i] && n < sizeof names / sizeof names[0]; i++) {
        if (meters[i]->kind == METER_CPU) /* always read, and no meter that anybody chooses */
            continue;
        names[n++] = meters[i]->name;
        buf_printf(&list, "%s%s", list.len ? ", " : "", meters[i]->name);
    }
    const char *near = suggest_nearest(name, names, n);
    if (near)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "names '%s', which is no meter; did you mean '%s'?", name,
                            near);
    return json_doc_err(r->doc, path, r->e, -EINVAL, "names '%s', which is no meter: there are %s", name,
                        buf_text(&list));
}

static int read_keys(const char *path, const json_t *j, struct meters_entry *m, struct reading_cfg *r)
{
    const char *key;
    json_t *value;
    int rc = 0;
    json_object_foreach((json_t *)j, key, value)
    {
        char below[256];
        size_t i = 0;
        (void)snprintf(below, sizeof below, "%s/%s", path, key);
        while (i < KEYS && strcmp(keys[i].name, key) != 0)
            i++;
        if (strcmp(key, "name") == 0)
            continue;
        if (strcmp(key, "outlets") == 0 && is_used(USE_NETWORK, m->meter->name))
            rc = read_outlets(below, value, m, r);
        else if (i < KEYS && is_used(keys[i].use, m->meter->name))
            rc = read_key(&keys[i], below, value, m, r);
        else
            rc = refuse_key(key, below, m->meter->name, r);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* What a meter cannot be read without. */
static int check_whole(const char *path, const struct meters_entry *m, struct reading_cfg *r)
{
    const struct meter_cfg *c = &m->cfg;
    const char *lacks = NULL;
    if (is_used(USE_PDU, m->meter->name) && !c->url)
        lacks = "needs \"url\": \"http://HOST\"";
    else if (is_used(USE_SNMP, m->meter->name) && !c->host)
        lacks = "needs \"host\": \"HOST[:PORT]\"";
    else if (is_used(USE_SNMP, m->meter->name) && !c->model == !c->oid)
        lacks = "needs either \"model\" (apc, apc-device, raritan) or \"oid\"";
    else if (is_used(USE_NETWORK, m->meter->name) && !c->n_outlets)
        lacks = "needs \"outlets\": {\"NODE\": OUTLET, …}";
    return lacks ? json_doc_err(r->doc, path, r->e, -EINVAL, "names %s, which %s", m->meter->name, lacks) : 0;
}

static int read_entry(const char *path, const json_t *j, struct reading_cfg *r)
{
    const char *name = json_is_string(j) ? json_string_value(j) : json_string_value(json_object_get(j, "name"));
    const struct meter_ops *meter = NULL;
    int rc = find_meter(name ? name : "", path, &meter, r);
    for (size_t i = 0; rc == 0 && i < r->out->n; i++)
        if (r->out->v[i].meter == meter && meter->local)
            rc = json_doc_err(r->doc, path, r->e, -EINVAL, "names %s again", meter->name);
    if (rc < 0)
        return rc;
    struct meters_entry *m = &r->out->v[r->out->n++];
    *m = (struct meters_entry){ .meter = meter, .idle_w = NAN };
    if (is_used(USE_ESTIMATE, meter->name))
        *m = (struct meters_entry){ .meter = meter, .idle_w = METERS_IDLE_W, .cfg.cpu_w = METERS_CPU_W };
    if (json_is_object(j))
        rc = read_keys(path, j, m, r);
    if (rc == 0)
        rc = check_whole(path, m, r);
    m->cfg.idle_w = isnan(m->idle_w) ? 0 : m->idle_w;
    return rc;
}

static int read_list(const char *path, const json_t *j, struct reading_cfg *r)
{
    if (!json_is_array(j))
        return j ? read_entry(path, j, r) : 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(j); i++) {
        char below[64];
        (void)snprintf(below, sizeof below, "%s/%zu", path, i);
        rc = read_entry(below, json_array_get(j, i), r);
    }
    return rc;
}

static size_t count(const json_t *j)
{
    return json_is_array(j) ? json_array_size(j) : j ? 1 : 0;
}

int meters_cfg_read(struct meters_cfg *out, const struct json_doc *doc, struct err *e)
{
    struct meters_cfg got = { 0 };
    struct reading_cfg r = { .doc = doc, .out = &got, .e = e };
    const json_t *listed = json_object_get(json_object_get(doc->root, "monitoring"), "meters");
    const json_t *brief = json_object_get(doc->root, "powerMeter");
    size_t n = count(listed) + count(brief);
    got.v = n ? calloc(n, sizeof *got.v) : NULL;
    if (n && !got.v)
        return err_sys(e, -ENOMEM, "meters");
    int rc = read_list("monitoring/meters", listed, &r);
    if (rc == 0)
        rc = read_list("powerMeter", brief, &r);
    if (rc < 0) {
        meters_cfg_done(&got);
        return rc;
    }
    *out = got;
    return 0;
}

void meters_cfg_done(struct meters_cfg *m)
{
    for (size_t i = 0; m && i < m->n; i++) {
        struct meter_outlet *list =
            (struct meter_outlet *)(uintptr_t)m->v[i].cfg.outlets; /* ours, and const to readers */
        for (size_t k = 0; k < m->v[i].cfg.n_outlets; k++)
            free(list[k].node);
        free(list);
    }
    if (m) {
        free(m->v);
        *m = (struct meters_cfg){ 0 };
    }
}
