/* Joules for programs: JSON and CSV. */
#include <math.h>

#include "core/csv.h"
#include "view/joules.h"

static json_t *meter_name(const struct meter_ops *m)
{
    return m ? json_string(m->name) : json_null();
}

/* --- JSON --- */

static json_t *node_json(const struct joules *v, size_t i)
{
    const struct joules_node *n = &v->nodes[i];
    const struct ledger_node *f = &n->f;
    return json_pack("{s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "node", n->node, "name",
                     energy_load_node(&v->load, n->node), "meter", n->meter->name, "source",
                     ledger_source_name(f->total.source), "j", json_num(f->total.j), "error_j",
                     json_num(f->total.error_j), "coverage", json_num(f->total.coverage), "idle_j", json_num(f->idle_j),
                     "idle_w", json_num(f->idle_w), "trials_j", json_num(f->trials_j), "other_j", json_num(f->other_j),
                     "discarded", (json_int_t)f->total.discarded);
}

static json_t *epoch_json(const struct joules_trial *t, size_t i)
{
    const struct ledger_figure *f = &t->epochs[i];
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:s}", "epoch", t->of->epochs[i].epoch, "j", json_num(f->j), "error_j",
                     json_num(f->error_j), "coverage", json_num(f->coverage), "idle_w", json_num(f->idle_w), "source",
                     ledger_source_name(f->source));
}

static json_t *trial_json(const struct joules *v, size_t i)
{
    const struct joules_trial *t = &v->trials[i];
    json_t *epochs = json_array();
    for (size_t k = 0; k < t->of->n_epochs; k++)
        (void)json_array_append_new(epochs, epoch_json(t, k)); /* memory that runs out ends the program */
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:I, s:s, s:o, s:o}", "trial", t->of->number, "j", json_num(t->f.j),
                     "error_j", json_num(t->f.error_j), "coverage", json_num(t->f.coverage), "idle_w",
                     json_num(t->f.idle_w), "discarded", (json_int_t)t->f.discarded, "source",
                     ledger_source_name(t->f.source), "meter", meter_name(t->f.meter), "epochs", epochs);
}

static json_t *match_json(const struct joules *v, size_t i)
{
    const struct joules_match *m = &v->matches[i];
    return json_pack("{s:s, s:s, s:i, s:o, s:o, s:o}", "a", m->a->name, "b", m->b->name, "node", m->node, "ratio",
                     json_num(m->m.ratio), "drift", json_num(m->m.drift), "seconds", json_num(m->m.seconds));
}

static json_t *list_of(const struct joules *v, size_t n, json_t *(*one)(const struct joules *, size_t))
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(list, one(v, i));
    return list;
}

static json_t *saved_json(const struct energy_saved *s)
{
    if (!isfinite(s->j))
        return json_null();
    json_t *against = isnan(s->against.cores) ? json_null()
                                              : json_pack("{s:o, s:o}", "cores", json_num(s->against.cores),
                                                          "memory_gb", json_num(s->against.memory_gb));
    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:s, s:o}", "j", json_num(s->j), "error_j", json_num(s->error_j),
                     "records", json_num(s->records), "used_j", json_num(s->used_j), "source",
                     ledger_source_name(s->source), "meter", meter_name(s->meter), "label", "estimated difference",
                     "against", against);
}

static json_t *per_kwh_json(const struct joules *v, double each, const char *of, const char *trials, const char *nodes)
{
    if (!(each > 0))
        return json_null();
    return json_pack("{s:o, s:o, s:o}", of, json_num(each), trials, json_num(v->total.j / JOULES_PER_KWH * each), nodes,
                     json_num(v->nodes_j / JOULES_PER_KWH * each));
}

json_t *joules_json(const struct joules *v)
{
    json_t *total = json_pack("{s:o, s:o, s:o, s:s, s:o}", "j", json_num(v->total.j), "error_j",
                              json_num(v->total.error_j), "coverage", json_num(v->total.coverage), "source",
                              ledger_source_name(v->total.source), "meter", meter_name(v->total.meter));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "study", v->study, "from", v->from, "nodes",
                     list_of(v, v->n_nodes, node_json), "trials", list_of(v, v->n_trials, trial_json), "meters",
                     list_of(v, v->n_matches, match_json), "saved", saved_json(&v->saved), "total", total, "carbon",
                     per_kwh_json(v, v->carbon_g_per_kwh, "g_per_kwh", "trials_g", "nodes_g"), "cost",
                     per_kwh_json(v, v->price_per_kwh, "per_kwh", "trials", "nodes"));
}

/* --- CSV --- */

/* From the meter on to the discarded. */
static void put_figure(struct buf *b, const struct ledger_figure *f)
{
    buf_printf(b, ",%s,%s", f->meter ? f->meter->name : "", ledger_source_name(f->source));
    csv_put_next(b, f->j);
    csv_put_next(b, f->error_j);
    csv_put_next(b, f->j / (JOULES_PER_KWH / 1000));
    csv_put_next(b, f->coverage);
    buf_printf(b, ",%llu", (unsigned long long)f->discarded);
}

static void put_node(struct buf *b, const struct joules *v, const struct joules_node *n)
{
    buf_printf(b, "node,%d,", n->node);
    csv_put_text(b, energy_load_node(&v->load, n->node));
    buf_puts(b, ",,");
    put_figure(b, &n->f.total);
    csv_put_next(b, n->f.idle_j);
    csv_put_next(b, n->f.idle_w);
    csv_put_next(b, n->f.trials_j);
    csv_put_next(b, n->f.other_j);
    buf_putc(b, '\n');
}

/* Of a trial or an epoch, to the end of its line. */
static void put_share(struct buf *b, const struct ledger_figure *f)
{
    put_figure(b, f);
    buf_putc(b, ',');
    csv_put_next(b, f->idle_w);
    buf_puts(b, ",,\n");
}

void joules_put_csv(struct buf *b, const struct joules *v)
{
    buf_puts(b, "kind,node,name,trial,epoch,meter,source,j,error_j,wh,coverage,discarded,idle_j,idle_w,trials_j,"
                "other_j\n");
    for (size_t i = 0; i < v->n_nodes; i++)
        put_node(b, v, &v->nodes[i]);
    for (size_t i = 0; i < v->n_trials; i++) {
        const struct joules_trial *t = &v->trials[i];
        buf_printf(b, "trial,,,%d,", t->of->number);
        put_share(b, &t->f);
        for (size_t k = 0; k < t->of->n_epochs; k++) {
            buf_printf(b, "epoch,,,%d,%d", t->of->number, t->of->epochs[k].epoch);
            put_share(b, &t->epochs[k]);
        }
    }
}
