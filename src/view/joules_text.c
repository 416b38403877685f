/* Joules for people. */
#include <math.h>

#include "view/joules.h"
#include "view/table.h"
#include "view/words.h"

static void coverage_cell(struct table *t, const struct ledger_figure *f)
{
    if (isfinite(f->coverage))
        table_cellf(t, "%d %%%s", energy_figure_percent(f), energy_figure_thin(f) ? " !" : "");
    else
        table_cell(t, "-");
}

static void put_table(struct buf *b, struct table *t)
{
    buf_putc(b, '\n');
    table_put(t, b, 0);
    b->failed |= t->failed != 0;
    table_done(t);
}

/* --- tables --- */

static void add_node(struct table *t, const struct joules *v, const struct joules_node *n)
{
    char idle[32];
    table_cell(t, energy_load_node(&v->load, n->node));
    table_cellf(t, "%d", n->node);
    table_number(t, n->f.total.j);
    table_number(t, n->f.total.error_j);
    table_number(t, n->f.idle_j);
    if (isfinite(n->f.idle_w))
        table_cellf(t, "%s%s", table_digits(n->f.idle_w, idle), n->f.idle_given ? "" : " (seen)");
    else
        table_cell(t, "not known");
    table_number(t, n->f.trials_j);
    table_number(t, n->f.other_j);
    coverage_cell(t, &n->f.total);
    table_cellf(t, "%llu", (unsigned long long)n->f.total.discarded);
    table_cell(t, n->meter->name);
    table_cell(t, ledger_source_name(n->f.total.source));
}

static void put_nodes(struct buf *b, const struct joules *v)
{
    static const char *const heads[] = { "node",         ">number",    "!>total, J", "!>±, J",    ">idle, J",
                                         ">baseline, W", ">trials, J", ">other, J",  ">coverage", ">discarded",
                                         "meter",        "source",     NULL };
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < v->n_nodes; i++)
        add_node(&t, v, &v->nodes[i]);
    put_table(b, &t);
}

static void add_figure(struct table *t, const struct ledger_figure *f)
{
    char source[64];
    table_number(t, f->j);
    table_number(t, f->error_j);
    table_number(t, f->j / (JOULES_PER_KWH / 1000));
    coverage_cell(t, f);
    table_cellf(t, "%llu", (unsigned long long)f->discarded);
    table_cellf(t, "%s%s", energy_figure_source(f, source), energy_figure_with_idle(f) ? ENERGY_IDLE_INCLUDED : "");
}

static void put_trials(struct buf *b, const struct joules *v)
{
    static const char *const heads[] = { "trial",     ">epoch",     "!>energy, J", "!>±, J", "!>Wh",
                                         ">coverage", ">discarded", "source",      NULL };
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < v->n_trials; i++) {
        const struct joules_trial *x = &v->trials[i];
        table_cellf(&t, "%s/%d", v->study, x->of->number);
        table_cell(&t, "all");
        add_figure(&t, &x->f);
        for (size_t k = 0; k < x->of->n_epochs; k++) {
            table_cellf(&t, "%s/%d", v->study, x->of->number);
            table_cellf(&t, "%d", x->of->epochs[k].epoch);
            add_figure(&t, &x->epochs[k]);
        }
    }
    put_table(b, &t);
}

static void put_matches(struct buf *b, const struct joules *v)
{
    static const char *const heads[] = { "meters", ">node", ">ratio", ">drift", ">in common", NULL };
    struct table t;
    if (v->n_matches == 0)
        return;
    table_init(&t, heads);
    for (size_t i = 0; i < v->n_matches; i++) {
        const struct joules_match *m = &v->matches[i];
        table_cellf(&t, "%s over %s", m->b->name, m->a->name);
        table_cellf(&t, "%d", m->node);
        table_number(&t, m->m.ratio);
        table_number(&t, m->m.drift);
        table_seconds(&t, m->m.seconds);
    }
    put_table(b, &t);
}

/* --- lines --- */

static void put_saved(struct buf *b, const struct energy_saved *s)
{
    char joules[32], error[32], used[32];
    struct ledger_figure f = { .source = s->source, .meter = s->meter };
    char source[64];
    if (!isfinite(s->j)) {
        buf_puts(b, "saved: absent, no epochs under the default setting and under another were both measured\n");
        return;
    }
    buf_printf(b, "%s: %s ± %s against ", s->j < 0 ? "cost" : "saved", energy_figure_joules(fabs(s->j), joules),
               energy_figure_joules(s->error_j, error));
    if (isnan(s->against.cores))
        buf_puts(b, "the default setting");
    else
        buf_printf(b, "%g core%s", s->against.cores, s->against.cores == 1 ? "" : "s");
    if (isfinite(s->against.memory_gb))
        buf_printf(b, " and %g GiB", s->against.memory_gb);
    buf_printf(b, ", estimated difference, %s: %.0f records took %s\n", energy_figure_source(&f, source), s->records,
               energy_figure_joules(s->used_j, used));
}

static void put_per_kwh(struct buf *b, const char *what, const char *unit, double each, const struct joules *v)
{
    char digits[32];
    if (each > 0 && isfinite(v->total.j))
        buf_printf(b, "%s: %s%s by the trials", what, table_digits(v->total.j / JOULES_PER_KWH * each, digits), unit);
    else if (each > 0)
        buf_printf(b, "%s: absent by the trials", what);
    if (each > 0 && isfinite(v->nodes_j))
        buf_printf(b, ", %s%s by the nodes as a whole", table_digits(v->nodes_j / JOULES_PER_KWH * each, digits), unit);
    if (each > 0)
        buf_printf(b, " (at %g%s per kWh)\n", each, unit);
}

static bool any_thin(const struct joules *v)
{
    bool thin = false;
    for (size_t i = 0; i < v->n_nodes; i++)
        thin |= energy_figure_thin(&v->nodes[i].f.total);
    for (size_t i = 0; i < v->n_trials; i++) {
        thin |= energy_figure_thin(&v->trials[i].f);
        for (size_t k = 0; k < v->trials[i].of->n_epochs; k++)
            thin |= energy_figure_thin(&v->trials[i].epochs[k]);
    }
    return thin;
}

static void put_total(struct buf *b, const struct joules *v)
{
    char error[32];
    if (v->trial)
        buf_printf(b, "\ntrial %s/%d: ", v->study, v->trial);
    else
        buf_puts(b, "\ntrials together: ");
    energy_figure_put(b, &v->total);
    if (isfinite(v->total.error_j))
        buf_printf(b, " (± %s)", energy_figure_joules(v->total.error_j, error));
    buf_putc(b, '\n');
    if (v->mixed)
        buf_puts(b, "some trials are told by another meter: figures of different sources are not added\n");
}

/* Meters that were asked, and told nothing that counts on any node. */
static void put_lost(struct buf *b, const struct joules *v)
{
    for (size_t i = 0; i < v->load.n_meters; i++) {
        const struct meter_ops *meter = v->load.meters[i];
        unsigned long long lost = 0;
        bool any = false, has = false;
        for (size_t k = 0; k < v->n_nodes; k++) {
            if (v->nodes[k].meter != meter)
                continue;
            any = true;
            has |= ledger_has(v->load.ledger, v->nodes[k].node, meter);
            lost += v->nodes[k].f.total.discarded;
        }
        if (any && !has)
            buf_printf(b, "readings of %s were all discarded or failed (%llu)\n", meter->name, lost);
    }
}

static void put_notes(struct buf *b, const struct joules *v)
{
    put_lost(b, v);
    if (any_thin(v))
        buf_puts(b, "!: less than 95 % of the time was read; what is missing is not counted, and widens the error\n");
    if (v->estimated)
        buf_printf(b, "an estimate ranks settings as CPU time does, and is not compared with measurements%s\n",
                   v->measured ? ": they stand here side by side, without a ratio" : "");
}

static void put_head(struct buf *b, const struct joules *v)
{
    char from[32] = "?", to[32] = "?", time[32];
    const struct energy_load_span *at = &v->load.study;
    buf_printf(b, "study %s: energy, by readings from %s", v->study, v->from);
    if (isfinite(at->from_ms)) {
        (void)words_time(from, (int64_t)at->from_ms, "%Y-%m-%d %H:%M:%S"); /* stays "?" */
        (void)words_time(to, (int64_t)at->to_ms, "%H:%M:%S");
        buf_printf(b, "; %s to %s, %s", from, to, table_duration((at->to_ms - at->from_ms) / 1000, time));
    }
    buf_putc(b, '\n');
}

static void put_all(struct buf *b, const struct joules *v)
{
    put_head(b, v);
    if (v->load.n_meters == 0) {
        buf_puts(b, "energy absent: no meter was read; name one in 'monitoring.meters' ('pipetune doctor' tells which "
                    "can be read here)\n");
        return;
    }
    put_nodes(b, v);
    put_trials(b, v);
    put_matches(b, v);
    put_total(b, v);
    if (!v->trial)
        put_saved(b, &v->saved);
    put_per_kwh(b, "carbon", " g", v->carbon_g_per_kwh, v);
    put_per_kwh(b, "cost", "", v->price_per_kwh, v);
    put_notes(b, v);
}

void joules_put_text(struct buf *b, const struct joules *v)
{
    AUTO_BUF struct buf text = BUF_INIT;
    put_all(&text, v);
    table_put_lines(b, buf_text(&text), 0);
    b->failed |= text.failed;
}
