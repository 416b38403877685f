#include "live/energy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/own.h"
#include "live/metering.h"
#include "live/nodes_cfg.h"
#include "live/publish.h"
#include "live/spells.h"
#include "live/writer.h"
#include "monitoring/ledger.h"
#include "store/energy.h"
#include "store/samples.h"

enum {
    STORE_EVERY_MS = 5000, /* one transaction for many readings */
    SILENT_MS = 10000,     /* of a node, against the others */
    LATE_MS = 60000,       /* that a reading or a CPU time may come after another one of its time */
    ROWS_MAX = 16,         /* of meters_local */
};

/* A reading that is not stored yet. */
struct entry {
    int node;
    const struct meter_ops *meter;
    struct meter_reading r;
};

/* What a trial has taken, added up until so long ago that nothing comes of that time any more. */
struct spent {
    int trial;
    const struct meter_ops *meter;
    double j, upto_ms; /* j NAN: nothing is known of that time */
};

struct energy {
    struct study *study;
    const struct plan *plan;      /* its */
    const struct meters_cfg *cfg; /* the plan's */
    struct ledger *ledger;
    struct metering *metering; /* NULL: no meter of the network */
    struct metering_ops ops;
    struct nodes_metering wanted;
    struct buf names;                   /* of those that the helpers read */
    double *until_ms;                   /* by node: the newest moment with a value of any meter */
    struct spells (*failing)[ROWS_MAX]; /* by node, of each local meter: it cannot be read (the first bit) */
    int64_t opened_ms;
    int64_t set_ms; /* by how much the wall clock, which meters read, was set since */
    struct entry *list;
    size_t n, cap;
    struct spent *spent; /* by trial, as they were asked for */
    size_t n_spent, cap_spent;
    int64_t stored_ms;
    bool storing;       /* it is handed over, and not in the store yet */
    struct err failure; /* of storing; code 0: none */
    void (*note)(void *ctx, const char *text);
    void *ctx;
    bool failed; /* without memory */
};

static void know(struct energy *en, int node, const struct meter_ops *meter, const struct meter_reading *r)
{
    if (r->state == METER_OK && meter->kind != METER_CPU && r->to_ms > en->until_ms[node])
        en->until_ms[node] = r->to_ms;
}

/* --- opening --- */

static void want_of_helpers(struct energy *en, const struct meters_entry *m)
{
    buf_printf(&en->names, ",%s", m->meter->name);
    en->wanted.max_w = fmax(en->wanted.max_w, m->cfg.max_w);
    if (m->meter->estimated) {
        en->wanted.idle_w = m->cfg.idle_w;
        en->wanted.cpu_w = m->cfg.cpu_w;
    }
}

/* What a helper takes no path for is read here: a file on this machine. */
static bool is_read_here(const struct meters_entry *m)
{
    return !m->meter->local || m->cfg.file;
}

static int add_meter(struct energy *en, const struct meters_entry *m, struct err *e)
{
    if (is_read_here(m))
        return metering_try(en->metering, m->meter, &m->cfg, e);
    want_of_helpers(en, m);
    return 0;
}

static void on_read(void *ctx, const struct meter_ops *meter, const struct meter_reading *r);

static void on_note(void *ctx, const char *text)
{
    struct energy *en = ctx;
    en->note(en->ctx, text);
}

/* --- what earlier drivers read --- */

static int recall_reading(void *ctx, const struct store_reading *row)
{
    struct energy *en = ctx;
    const struct meter_ops *meter = meter_find(row->meter);
    int state = meter_state_find(row->state);
    if (!meter || state < 0 || row->node < 0 || (size_t)row->node > en->plan->n_nodes ||
        (state == METER_OK && !isfinite(row->value)))
        return 0; /* of another version, or another config */
    struct meter_reading r = { .state = (enum meter_state)state,
                               .from_ms = row->from_ms,
                               .to_ms = row->to_ms,
                               .value = row->value,
                               .error = row->error };
    know(en, row->node, meter, &r);
    return ledger_read(en->ledger, row->node, meter, &r);
}

struct recalling {
    struct energy *en;
    int trial;
};

static int recall_sample(void *ctx, const struct store_sample *row)
{
    const struct recalling *r = ctx;
    if (row->node < 0 || (size_t)row->node > r->en->plan->n_nodes || !isfinite(row->cpu_s))
        return 0;
    return ledger_cpu(r->en->ledger, row->node, r->trial, row->t_ms - row->dt_ms, row->t_ms, row->cpu_s);
}

/* Of what goes on: nobody asks what those have spent that are over. */
static int recall(struct energy *en, struct err *e)
{
    const struct study *s = en->study;
    int rc = store_readings(s->store, s->id, recall_reading, en, e);
    for (size_t i = 0; rc == 0 && i < s->n_open; i++) {
        struct recalling r = { en, s->open_trials[i]->row.number };
        rc = store_samples(s->store, s->open_trials[i]->row.id, recall_sample, &r, e);
    }
    for (size_t i = 0; rc == 0 && i < en->cfg->n; i++)
        rc = isnan(en->cfg->v[i].idle_w) ? 0 : ledger_idle(en->ledger, -1, en->cfg->v[i].meter, en->cfg->v[i].idle_w);
    return rc == -ENOMEM ? err_sys(e, rc, "meters") : rc;
}

/* --- opening, all of it --- */

static int open_all(struct energy *en, uv_loop_t *loop, struct err *e)
{
    const struct plan *p = en->plan;
    int rc = 0;
    en->ops = (struct metering_ops){ .read = on_read, .note = on_note };
    en->wanted = (struct nodes_metering){ .interval_ms = config_interval_ms(&p->cfg) };
    en->until_ms = calloc(p->n_nodes + 1, sizeof *en->until_ms);
    en->failing = calloc(p->n_nodes + 1, sizeof *en->failing);
    en->opened_ms = study_clock_ms(en->study);
    en->ledger = ledger_new();
    en->metering = metering_new(loop, en->wanted.interval_ms, &en->ops, en);
    buf_puts(&en->names, "cpu");
    if (!en->until_ms || !en->failing || !en->ledger || !en->metering)
        return err_sys(e, -ENOMEM, "meters");
    for (size_t i = 0; rc == 0 && i < en->cfg->n; i++)
        rc = add_meter(en, &en->cfg->v[i], e);
    if (rc == 0)
        rc = recall(en, e);
    en->wanted.meters = buf_text(&en->names);
    return rc == 0 && en->names.failed ? err_sys(e, -ENOMEM, "meters") : rc;
}

int energy_open(struct energy **out, struct study *s, uv_loop_t *loop, void (*note)(void *ctx, const char *text),
                void *ctx, struct err *e)
{
    *out = NULL;
    if (s->plan->meters.n == 0)
        return 0;
    struct energy *en = calloc(1, sizeof *en);
    if (!en)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    *en = (struct energy){
        .study = s, .plan = s->plan, .cfg = &s->plan->meters, .note = note, .ctx = ctx, .names = BUF_INIT
    };
    int rc = open_all(en, loop, e);
    if (rc < 0) {
        energy_close(en);
        return rc;
    }
    *out = en;
    return 0;
}

static int put_all(void *ctx, struct store *s, struct err *e);
static void on_stored(void *ctx, int rc, const struct err *e);

/* What came since the last tick. */
static void store_rest(struct energy *en)
{
    const struct write one = { .rows = put_all, .done = on_stored, .ctx = en };
    struct err why;
    char text[400];
    if (en->n == 0)
        return;
    (void)writer_put(NULL, en->study->store, one, &why); /* at once, which needs no memory */
    if (en->failure.code == 0)
        return;
    (void)snprintf(text, sizeof text, "what the meters told last is not stored: %s", en->failure.text);
    en->note(en->ctx, text);
}

void energy_close(struct energy *en)
{
    if (!en)
        return;
    store_rest(en);
    metering_free(en->metering);
    ledger_free(en->ledger);
    free(en->spent);
    buf_done(&en->names);
    free(en->until_ms);
    free(en->failing);
    free(en->list);
    free(en);
}

const struct nodes_metering *energy_wanted(const struct energy *en)
{
    return en ? &en->wanted : NULL;
}

/* --- what comes --- */

static int take(struct energy *en, int node, const struct meter_ops *meter, const struct meter_reading *r)
{
    publish_reading(en->study->publish, node, meter, r);
    struct entry *grown = array_more(en->list, en->n, &en->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    en->list = grown;
    en->list[en->n++] = (struct entry){ .node = node, .meter = meter, .r = *r };
    know(en, node, meter, r);
    return ledger_read(en->ledger, node, meter, r);
}

/* From the loop, which cannot be told of a failure at once: the next tick is. */
static void on_read(void *ctx, const struct meter_ops *meter, const struct meter_reading *read)
{
    struct energy *en = ctx;
    clock_follow(&en->set_ms, study_now_ms() - study_clock_ms(en->study));
    struct meter_reading mended = *read;
    const struct meter_reading *r = &mended;
    mended.from_ms -= (double)en->set_ms;
    mended.to_ms -= (double)en->set_ms;
    int node = *r->node ? nodes_cfg_find(en->plan->nodes, en->plan->n_nodes, r->node) : 0;
    if (node >= 0 && take(en, node, meter, r) < 0)
        en->failed = true;
}

static int row_of(const struct meter_ops *meter)
{
    int row = 0;
    while (meters_local[row] != meter) /* it is one of these */
        row++;
    return row;
}

/* Meters that are read here are told of by live/metering, in the same way. */
static void watch(struct energy *en, int node, const struct meter_ops *meter, const struct meter_reading *r)
{
    struct spells *failing = &en->failing[node][row_of(meter)];
    if (spells_take(failing, r->state == METER_FAILED, (uint64_t)clock_ms()) < 0)
        return;
    char text[400];
    const char *host = node > 0 ? en->plan->nodes[node - 1].host : NULL;
    (void)snprintf(text, sizeof text, "%s of %s cannot be read: %s", meter->name, host ? host : "this machine", r->why);
    en->note(en->ctx, text);
}

int energy_metered(struct energy *en, const struct nodes_reading *r, struct err *e)
{
    const struct meter_ops *meter = en ? meter_find_local(r->meter) : NULL;
    if (!meter || r->node > en->plan->n_nodes) /* that nobody asked for */
        return 0;
    watch(en, (int)r->node, meter, &r->r);
    return take(en, (int)r->node, meter, &r->r) < 0 ? err_sys(e, -ENOMEM, "meters") : 0;
}

int energy_sampled(struct energy *en, int trial, const struct nodes_sample *s, struct err *e)
{
    const struct reading *cpu = &s->v[FEATURE_PROC_CPU_TIME];
    if (!en || cpu->state != READING_OK || s->node > en->plan->n_nodes)
        return 0;
    int rc = ledger_cpu(en->ledger, (int)s->node, trial, s->t_ms - s->dt_ms, s->t_ms, cpu->value);
    return rc < 0 ? err_sys(e, rc, "meters") : 0;
}

/* --- storing --- */

static int store_one(const struct energy *en, const struct entry *x, struct err *e)
{
    struct store_reading row = { .node = x->node,
                                 .meter = x->meter->name,
                                 .state = meter_state_name(x->r.state),
                                 .from_ms = x->r.from_ms,
                                 .to_ms = x->r.to_ms,
                                 .value = x->r.value,
                                 .error = x->r.error };
    return store_reading_add(en->study->store, en->study->id, &row, e);
}

/* Inside a transaction; if that is not committed, the study ends. */
static int put_all(void *ctx, struct store *s, struct err *e)
{
    struct energy *en = ctx;
    int rc = 0;
    (void)s; /* it is the study's */
    for (size_t i = 0; rc == 0 && i < en->n; i++)
        rc = store_one(en, &en->list[i], e);
    en->n = rc < 0 ? en->n : 0;
    return rc;
}

static void on_stored(void *ctx, int rc, const struct err *e)
{
    struct energy *en = ctx;
    en->storing = false;
    if (rc < 0)
        en->failure = *e; /* the next tick tells */
}

int energy_tick(struct energy *en, int64_t now_ms, struct err *e)
{
    if (!en)
        return 0;
    if (en->failed)
        return err_sys(e, -ENOMEM, "meters");
    if (now_ms - en->stored_ms < STORE_EVERY_MS && now_ms >= en->stored_ms)
        return 0;
    en->stored_ms = now_ms;
    if (en->failure.code < 0)
        return err_set(e, en->failure.code, "%s", en->failure.text);
    if (en->n == 0 || en->storing)
        return 0;
    const struct write one = { .rows = put_all, .done = on_stored, .ctx = en };
    int rc = writer_put(en->study->writer, en->study->store, one, e);
    en->storing = rc == 0 && en->study->writer;
    return rc;
}

/* --- power --- */

const struct meter_ops *energy_choose(const struct energy *en, int64_t now_ms)
{
    if (!en || now_ms - en->opened_ms < 3 * (int64_t)en->wanted.interval_ms)
        return NULL;
    for (size_t i = 0; i < en->cfg->n; i++)
        for (int node = 0; node < ledger_nodes(en->ledger); node++)
            if (ledger_has(en->ledger, node, en->cfg->v[i].meter))
                return en->cfg->v[i].meter;
    return NULL;
}

static double newest_ms(const struct energy *en)
{
    double newest = 0;
    for (size_t i = 0; i <= en->plan->n_nodes; i++)
        newest = fmax(newest, en->until_ms[i]);
    return newest;
}

/* It has told nothing for so long that it is not waited for. */
static bool is_silent(const struct energy *en, size_t node)
{
    return en->until_ms[node] < newest_ms(en) - fmax(SILENT_MS, 5.0 * en->wanted.interval_ms);
}

double energy_power_w(struct energy *en, const struct meter_ops *meter, double from_ms, double to_ms)
{
    double sum = 0;
    bool any = false;
    for (int i = 0; en && meter && i < ledger_nodes(en->ledger); i++) {
        if (!ledger_has(en->ledger, i, meter) || is_silent(en, (size_t)i))
            continue;
        sum += ledger_power_w(en->ledger, i, meter, from_ms, to_ms);
        any = true;
    }
    return any ? sum : NAN;
}

static struct spent *spent_of(struct energy *en, int trial, const struct meter_ops *meter)
{
    size_t i = 0;
    while (i < en->n_spent && en->spent[i].trial != trial)
        i++;
    if (i == en->n_spent) {
        struct spent *grown = array_more(en->spent, en->n_spent, &en->cap_spent, sizeof *grown);
        if (!grown)
            return NULL;
        en->spent = grown;
        en->spent[en->n_spent++] = (struct spent){ .trial = trial };
    }
    if (en->spent[i].meter != meter) /* the first, or one that is preferred has begun to read */
        en->spent[i] = (struct spent){ .trial = trial, .meter = meter, .j = NAN };
    return &en->spent[i];
}

static double sum(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static double between(struct energy *en, const struct spent *s, double to_ms)
{
    struct ledger_figure f;
    return ledger_of_trial(en->ledger, s->trial, s->meter, s->upto_ms, to_ms, &f) < 0 ? (double)NAN : f.j;
}

double energy_trial_j(struct energy *en, int trial)
{
    const struct meter_ops *meter = en ? energy_choose(en, INT64_MAX) : NULL;
    double until = energy_until_ms(en);
    struct spent *s = meter ? spent_of(en, trial, meter) : NULL;
    if (!s)
        return NAN;
    if (until - s->upto_ms > 2 * LATE_MS) {
        s->j = sum(s->j, between(en, s, until - LATE_MS));
        s->upto_ms = until - LATE_MS;
    }
    return sum(s->j, between(en, s, until));
}

double energy_until_ms(const struct energy *en)
{
    double least = 0;
    for (size_t i = 0; en && i <= en->plan->n_nodes; i++)
        if (en->until_ms[i] > 0 && !is_silent(en, i) && (least == 0 || en->until_ms[i] < least))
            least = en->until_ms[i];
    return least;
}
