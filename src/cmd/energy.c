#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/energy_influx.h"
#include "cmd/energy_parts.h"
#include "cmd/look.h"
#include "live/study.h"

struct energy_options {
    char *store, *meter, *from, *url, *database, *credential_file, *against;
    bool allow_plain_http;
    double carbon, price;
    bool json, csv;
};

static const char *const sources[] = { "store", "influx", NULL };

#define FIELD(member) offsetof(struct energy_options, member)

/* clang-format off */
static const struct opt_row energy_rows[] = {
    LOOK_STORE_ROW(struct energy_options),
    { NULL, "meter", OPT_TEXT, FIELD(meter), NULL, 0, 0, NULL, "NAME", "figures of this meter alone (default: all of nodes; of a trial the first of the config that knows it)" },
    { NULL, "from", OPT_CHOICE, FIELD(from), "store", 0, 0, sources, "SOURCE", "where readings come from: store or influx" },
    { NULL, "url", OPT_TEXT, FIELD(url), NULL, 0, 0, NULL, "URL", "of the InfluxDB (default: the study's)" },
    { NULL, "database", OPT_TEXT, FIELD(database), NULL, 0, 0, NULL, "NAME", "in it (default: the study's, else energy)" },
    { NULL, "allow_plain_http", OPT_FLAG, FIELD(allow_plain_http), NULL, 0, 0, NULL, NULL, "a credential may go to another machine over http:// (default: as the study, for its own URL)" },
    { NULL, "credential_file", OPT_TEXT, FIELD(credential_file), NULL, 0, 0, NULL, "FILE", "USER:PASSWORD or a token, mode 0600 (default: the study's, for its own URL)" },
    { NULL, "carbon", OPT_REAL, FIELD(carbon), NULL, 0, 1e5, NULL, "G_PER_KWH", "tell carbon, by this intensity" },
    { NULL, "price", OPT_REAL, FIELD(price), NULL, 0, 1e5, NULL, "PER_KWH", "tell cost, by this price" },
    { NULL, "against", OPT_TEXT, FIELD(against), NULL, 0, 0, NULL, "K=V,…", "what was saved is counted against this setting, such as cores=4 (default: the first of each class of jobs)" },
    { NULL, "csv", OPT_FLAG, FIELD(csv), NULL, 0, 0, NULL, NULL, "print CSV" },
    LOOK_JSON_ROW(struct energy_options),
};
/* clang-format on */

void cmd_energy_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(energy_rows, NULL));
}

/* --- figures --- */

static int add_node(struct energy_view *v, int node, const struct meter_ops *meter)
{
    struct energy_node *grown = array_more(v->nodes, v->n_nodes, &v->cap_nodes, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    v->nodes = grown;
    struct energy_node *one = &grown[v->n_nodes];
    *one = (struct energy_node){ .node = node, .meter = meter };
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
static int add_match(struct energy_view *v, int node, const struct meter_ops *a, const struct meter_ops *b)
{
    if (a->estimated != b->estimated || !ledger_has(v->load.ledger, node, a) || !ledger_has(v->load.ledger, node, b))
        return 0;
    struct energy_match *grown = array_more(v->matches, v->n_matches, &v->cap_matches, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    v->matches = grown;
    grown[v->n_matches] = (struct energy_match){ .node = node, .a = a, .b = b };
    int rc = ledger_match(v->load.ledger, node, a, b, &grown[v->n_matches].m);
    v->n_matches += rc == 0;
    return rc;
}

static int add_nodes(struct energy_view *v, const struct meter_ops *only)
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

static int add_trial(struct energy_view *v, const struct energy_load_trial *t, const struct meter_ops *only)
{
    struct energy_trial *one = &v->trials[v->n_trials];
    *one = (struct energy_trial){ .of = t, .epochs = calloc(t->n_epochs + 1, sizeof *one->epochs) };
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

static int add_trials(struct energy_view *v, const struct meter_ops *only)
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
static void add_up_nodes(struct energy_view *v)
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

static void energy_done(struct energy_view *v)
{
    for (size_t i = 0; i < v->n_trials; i++)
        free(v->trials[i].epochs);
    free(v->trials);
    free(v->nodes);
    free(v->matches);
    energy_load_done(&v->load);
}

/* --- finding them --- */

static int check(const struct energy_options *o, const struct strv *words, struct err *e)
{
    bool influx = strcmp(o->from, "influx") == 0;
    if (words->n == 0)
        return err_set(e, -EINVAL, "which study? 'pipetune ls' lists them, 'pipetune energy STUDY' tells its joules");
    if (o->json && o->csv)
        return err_set(e, -EINVAL, "one of '--csv' and '--json': an answer has one form");
    if (!influx && (o->url || o->database || o->credential_file || o->allow_plain_http))
        return err_set(e, -EINVAL, "option '--%s' is for '--from influx'",
                       o->url               ? "url"
                       : o->database        ? "database"
                       : o->credential_file ? "credential-file"
                                            : "allow-plain-http");
    return 0;
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

static int load(struct energy_view *v, const struct energy_options *o, struct store *s, const struct store_study *study,
                struct err *e)
{
    struct energy_influx_cfg cfg = { o->url, o->database, o->credential_file, o->allow_plain_http };
    enum energy_influx_from from = ENERGY_INFLUX_OWN;
    v->from = o->from;
    if (strcmp(o->from, "influx") != 0)
        return energy_load(&v->load, s, study, e);
    int rc = energy_influx_load(&v->load, s, study, &cfg, &from, e);
    if (rc == 0 && from == ENERGY_INFLUX_OTHERS && v->load.n_meters)
        v->from = "influx (by node)";
    return rc;
}

static int look(struct energy_view *v, const struct energy_options *o, struct store *s, const struct store_study *study,
                struct err *e)
{
    const struct meter_ops *only = NULL;
    struct energy_setting against = { NAN, NAN };
    v->study = study->name;
    v->carbon_g_per_kwh = o->carbon;
    v->price_per_kwh = o->price;
    int rc = o->against ? energy_setting_parse(&against, o->against, e) : 0;
    if (rc == 0)
        rc = load(v, o, s, study, e);
    if (rc == 0)
        rc = find_meter(&v->load, study->name, o->meter, &only, e);
    if (rc < 0)
        return rc;
    rc = add_nodes(v, only);
    if (rc == 0)
        rc = add_trials(v, only);
    if (rc < 0)
        return err_sys(e, rc, "study '%s'", study->name);
    add_up_nodes(v);
    return energy_saved(&v->saved, s, study->id, &v->load, v->total.meter, o->against ? &against : NULL, e);
}

static int put(const struct energy_view *v, const struct energy_options *o)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (o->json)
        return cmd_print_json(energy_json(v));
    if (o->csv)
        energy_put_csv(&b, v);
    else
        energy_put_text(&b, v);
    return cmd_print(&b);
}

static int energy(const struct energy_options *o, const struct strv *words)
{
    struct err e = { 0 };
    struct energy_view v = { .nodes_j = NAN };
    AUTO_LOOK struct look_name name = { 0 };
    struct store_study study = { 0 };
    struct store *store = NULL;
    AUTO_FREE char *path = study_store_path(o->store);
    int rc = path ? check(o, words, &e) : err_sys(&e, -ENOMEM, "cannot account energy");
    if (rc == 0)
        rc = store_open(&store, path, STORE_READ, &e);
    if (rc == 0)
        rc = look_name_find(&name, store, words->v[0], &study, &e);
    v.trial = name.trial;
    if (rc == 0)
        rc = look(&v, o, store, &study, &e);
    int code = rc < 0 ? cmd_fail(&e) : put(&v, o);
    energy_done(&v);
    store_study_done(&study);
    store_close(store);
    return code;
}

int cmd_energy(int argc, char **argv)
{
    struct energy_options o = { 0 };
    struct opt_set set = OPT_SET(energy_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e;
    int code;
    if (opt_presets(&set, &e) < 0)
        return cmd_fail(&e);
    if (!cmd_options("energy", argc, argv, &set, 1, &words, 1, &code))
        code = energy(&o, &words);
    opt_done(&set);
    return code;
}
