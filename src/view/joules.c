#include "view/joules.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

static int add_node(struct joules *v, int node, const struct meter_ops *meter)
{
    struct joules_node *grown = array_more(v->nodes, v->n_nodes, &v->cap_nodes, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    v->nodes = grown;
    struct joules_node *one = &grown[v->n_nodes];
    *one = (struct joules_node){ .node = node, .meter = meter };
    const struct energy_load_span *at = &v->load.study;
    int rc = ledger_of_node(v->load.ledger, node, meter, at->from_ms, at->to_ms, &one->f);
    if (rc < 0)
        return rc;
    v->n_nodes++;
    bool has = isfinite(one->f.total.j);
    v->estimated |= has && meter->estimated;
    v->measured |= has && !meter->estimated;
    return 0;
}

/* What is estimated is not held against what was measured. */
static int add_match(struct joules *v, int node, const struct meter_ops *a, const struct meter_ops *b)
{
    if (a->estimated != b->estimated || !ledger_has(v->load.ledger, node, a) || !ledger_has(v->load.ledger, node, b))
        return 0;
    struct joules_match *grown = array_more(v->matches, v->n_matches, &v->cap_matches, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    v->matches = grown;
    grown[v->n_matches] = (struct joules_match){ .node = node, .a = a, .b = b };
    int rc = ledger_match(v->load.ledger, node, a, b, &grown[v->n_matches].m);
    v->n_matches += rc == 0;
    return rc;
}

static int add_nodes(struct joules *v, const struct meter_ops *only)
{
    const struct energy_load *l = &v->load;
    int rc = 0, nodes = isnan(l->study.from_ms) ? 0 : ledger_nodes(l->ledger);
    for (int node = 0; rc == 0 && node < nodes; node++) {
        for (size_t i = 0; rc == 0 && i < l->n_meters; i++) {
            bool told = (!only || l->meters[i] == only) && ledger_knows(l->ledger, node, l->meters[i]);
            rc = told ? add_node(v, node, l->meters[i]) : 0;
            for (size_t k = 0; rc == 0 && !only && k < i; k++)
                rc = add_match(v, node, l->meters[k], l->meters[i]);
        }
    }
    return rc;
}

static int add_trial(struct joules *v, const struct energy_load_trial *t, const struct meter_ops *only)
{
    struct joules_trial *one = &v->trials[v->n_trials];
    *one = (struct joules_trial){ .of = t, .epochs = calloc(t->n_epochs + 1, sizeof *one->epochs) };
    if (!one->epochs)
        return -ENOMEM;
    v->n_trials++;
    int rc = energy_figure_trial(&v->load, t, only, &one->f);
    for (size_t i = 0; rc == 0 && i < t->n_epochs; i++) {
        one->epochs[i] = energy_figure_absent;
        if (one->f.meter) /* an epoch is part of its trial: by the same meter */
            rc = energy_figure_epoch(&v->load, t, &t->epochs[i], one->f.meter, &one->epochs[i]);
    }
    return rc;
}

static int add_trials(struct joules *v, const struct meter_ops *only)
{
    const struct energy_load *l = &v->load;
    v->trials = calloc(l->n + 1, sizeof *v->trials);
    int rc = v->trials ? energy_figure_study(l, only, &v->total) : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        if (!v->trial || l->trials[i].number == v->trial)
            rc = add_trial(v, &l->trials[i], only);
    if (rc == 0 && v->trial && v->n_trials > 0)
        v->total = v->trials[0].f;
    for (size_t i = 0; i < v->n_trials; i++)
        v->mixed |= v->trials[i].f.meter && v->trials[i].f.meter != v->total.meter;
    return rc;
}

/* Of nodes that have the meter which trials are told by; those of one source may be added. */
static void add_up_nodes(struct joules *v)
{
    const struct meter_ops *meter = v->total.meter;
    v->nodes_j = NAN;
    for (size_t i = 0; i < v->n_nodes; i++) {
        if (!isfinite(v->nodes[i].f.total.j))
            continue;
        meter = meter ? meter : v->nodes[i].meter;
        if (v->nodes[i].meter == meter)
            v->nodes_j = (isnan(v->nodes_j) ? 0 : v->nodes_j) + v->nodes[i].f.total.j;
    }
}

void joules_done(struct joules *v)
{
    for (size_t i = 0; i < v->n_trials; i++)
        free(v->trials[i].epochs);
    free(v->trials);
    free(v->nodes);
    free(v->matches);
    energy_load_done(&v->load);
}

/* The meter that was asked for, which must have been read. */
static int find_meter(const struct energy_load *l, const char *study, const char *name, const struct meter_ops **out,
                      struct err *e)
{
    AUTO_BUF struct buf list = BUF_INIT;
    *out = NULL;
    for (size_t i = 0; name && i < l->n_meters; i++) {
        if (strcmp(l->meters[i]->name, name) == 0)
            *out = l->meters[i];
        buf_printf(&list, "%s%s", i ? ", " : "", l->meters[i]->name);
    }
    if (!name || *out)
        return 0;
    return err_set(e, -EINVAL, "study '%s' has no readings of a meter '%s': %s%s", study, name,
                   list.len ? "it has those of " : "none was read", buf_text(&list));
}

int joules_reckon(struct joules *v, struct store *s, const struct store_study *study, const char *meter,
                  const struct energy_setting *against, struct err *e)
{
    const struct meter_ops *only = NULL;
    int rc = find_meter(&v->load, study->name, meter, &only, e);
    if (rc < 0)
        return rc;
    rc = add_nodes(v, only);
    if (rc == 0)
        rc = add_trials(v, only);
    if (rc < 0)
        return err_sys(e, rc, "study '%s'", study->name);
    add_up_nodes(v);
    return energy_saved(&v->saved, s, study->id, &v->load, v->total.meter, against, e);
}
