#include "view/energy_load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/own.h"
#include "monitoring/features.h"
#include "monitoring/meters_cfg.h"
#include "store/samples.h"
#include "store/times.h"

enum { NODES_MAX = 4096 };

/* --- nodes --- */

/* The config's nodes are names, or objects that have one. */
static int name_nodes(struct energy_load *l, const struct store_study *study)
{
    AUTO_JSON json_t *config = study->config ? json_loads(study->config, 0, NULL) : NULL;
    AUTO_JSON json_t *provenance = study->provenance ? json_loads(study->provenance, 0, NULL) : NULL;
    const char *host = json_string_value(json_object_get(provenance, "host"));
    const json_t *list = json_object_get(config, "nodes");
    strv_add(&l->nodes, host ? host : "localhost");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *name =
            json_is_string(one) ? json_string_value(one) : json_string_value(json_object_get(one, "host"));
        strv_add(&l->nodes, name ? name : "?");
    }
    return l->nodes.failed ? -ENOMEM : 0;
}

const char *energy_load_node(const struct energy_load *l, int node)
{
    return node >= 0 && (size_t)node < l->nodes.n ? l->nodes.v[node] : "?";
}

/* --- readings --- */

static int row_of(const struct meter_ops *meter)
{
    for (int i = 0; meters[i] && i < ENERGY_LOAD_METERS; i++)
        if (meters[i] == meter)
            return i;
    return -1;
}

int energy_load_reading(struct energy_load *l, const struct store_reading *r)
{
    const struct meter_ops *meter = meter_find(r->meter);
    int state = meter_state_find(r->state), row = meter ? row_of(meter) : -1;
    if (row < 0 || state < 0 || r->node < 0 || r->node > NODES_MAX)
        return 0; /* of another version */
    struct meter_reading m = {
        .state = (enum meter_state)state, .from_ms = r->from_ms, .to_ms = r->to_ms, .value = r->value, .error = r->error
    };
    if (m.state == METER_OK && !isfinite(m.value))
        return 0;
    l->seen[row] |= m.state != METER_FIRST;
    l->last_ms = r->to_ms > l->last_ms ? r->to_ms : l->last_ms;
    return ledger_read(l->ledger, r->node, meter, &m);
}

static int keep_reading(void *ctx, const struct store_reading *r)
{
    return energy_load_reading(ctx, r);
}

int energy_load_cpu(struct energy_load *l, int node, int trial, const struct energy_load_span *at, double cpu_s)
{
    if (node < 0 || node > NODES_MAX || !isfinite(cpu_s))
        return 0;
    return ledger_cpu(l->ledger, node, trial, at->from_ms, at->to_ms, cpu_s);
}

/* --- trials --- */

struct loading {
    struct energy_load *l;
    struct store *store;
    struct store_epoch *epochs; /* of the trial under way */
    size_t n, cap;
    struct err *e;
};

static int keep_epoch(void *ctx, const struct store_epoch *row)
{
    struct loading *g = ctx;
    struct store_epoch *grown = array_more(g->epochs, g->n, &g->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    g->epochs = grown;
    g->epochs[g->n++] = *row;
    return 0;
}

static int add_epoch(struct energy_load_trial *t, const struct energy_load_epoch *ep)
{
    struct energy_load_epoch *grown = array_more(t->epochs, t->n_epochs, &t->cap_epochs, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    t->epochs = grown;
    t->epochs[t->n_epochs++] = *ep;
    return 0;
}

/* Epochs are placed by the attempt's own start: where its start-up is not known, nobody knows where they lie. */
static int add_epochs(struct loading *g, struct energy_load_trial *t, const struct store_attempt *a)
{
    AUTO_FREE struct times_epoch *at = calloc(g->n + 1, sizeof *at);
    if (!at)
        return -ENOMEM;
    if (isnan(times_startup_s(a, g->epochs, g->n)))
        return 0;
    size_t n = times_epochs(at, a, g->epochs, g->n);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct energy_load_epoch ep = { .epoch = at[i].row->epoch, .records = at[i].row->records };
        ep.at.from_ms = (double)a->started_ms + at[i].start_s * 1000;
        ep.at.to_ms = (double)a->started_ms + at[i].end_s * 1000;
        rc = isfinite(ep.at.to_ms) ? add_epoch(t, &ep) : 0;
    }
    return rc;
}

static int add_attempt(void *ctx, const struct store_attempt *a)
{
    struct loading *g = ctx;
    struct energy_load_trial *t = &g->l->trials[g->l->n - 1];
    if (a->started_ms == 0 || strcmp(a->state, "starting") == 0)
        return 0;
    struct energy_load_span *grown = array_more(t->attempts, t->n_attempts, &t->cap_attempts, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    t->attempts = grown;
    t->attempts[t->n_attempts++] =
        (struct energy_load_span){ (double)a->started_ms, a->ended_ms ? (double)a->ended_ms : (double)NAN };
    return add_epochs(g, t, a);
}

static int add_trial(void *ctx, const struct store_trial *row)
{
    struct loading *g = ctx;
    struct energy_load *l = g->l;
    if (row->attempts == 0)
        return 0;
    struct energy_load_trial *grown = array_more(l->trials, l->n, &l->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    l->trials = grown;
    l->trials[l->n++] = (struct energy_load_trial){ .number = row->number, .id = row->id };
    g->n = 0;
    int rc = store_epochs(g->store, row->id, keep_epoch, g, g->e);
    return rc < 0 ? rc : store_attempts(g->store, row->id, add_attempt, g, g->e);
}

static int explained(int rc, struct err *e)
{
    return rc == -ENOMEM ? err_sys(e, rc, "cannot account energy") : rc;
}

int energy_load_trials(struct energy_load *l, struct store *s, int64_t study, struct err *e)
{
    struct loading g = { .l = l, .store = s, .e = e };
    int rc = store_trials(s, study, 0, add_trial, &g, e);
    free(g.epochs);
    return explained(rc, e);
}

/* They come by number. */
const struct energy_load_trial *energy_load_find(const struct energy_load *l, int number)
{
    size_t from = 0, to = l->n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (l->trials[mid].number == number)
            return &l->trials[mid];
        if (l->trials[mid].number < number)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

/* --- CPU time --- */

struct sampled {
    struct energy_load *l;
    int trial;
};

static int add_sample(void *ctx, const struct store_sample *row)
{
    const struct sampled *g = ctx;
    struct energy_load_span at = { row->t_ms - row->dt_ms, row->t_ms };
    return energy_load_cpu(g->l, row->node, g->trial, &at, row->cpu_s);
}

int energy_load_samples(struct energy_load *l, struct store *s, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        struct sampled g = { l, l->trials[i].number };
        rc = store_samples(s, l->trials[i].id, add_sample, &g, e);
    }
    return explained(rc, e);
}

/* --- the config's meters --- */

static void add_meter(struct energy_load *l, const struct meter_ops *meter)
{
    int row = row_of(meter);
    bool there = row < 0 || !l->seen[row] || meter->kind == METER_CPU;
    for (size_t i = 0; i < l->n_meters; i++)
        there |= l->meters[i] == meter;
    if (!there)
        l->meters[l->n_meters++] = meter;
}

/* A name, or an object with a name: whatever else is in it, or wrong with it, was another one's to tell. */
static int take_entry(struct energy_load *l, const json_t *j)
{
    const char *name = json_is_string(j) ? json_string_value(j) : json_string_value(json_object_get(j, "name"));
    const struct meter_ops *meter = name ? meter_find(name) : NULL;
    if (!meter)
        return 0;
    add_meter(l, meter);
    const json_t *idle_w = json_object_get(j, "idle_w");
    if (json_is_number(idle_w))
        return ledger_idle(l->ledger, -1, meter, json_number_value(idle_w));
    return meter->estimated ? ledger_idle(l->ledger, -1, meter, METERS_IDLE_W) : 0;
}

static int take_entries(struct energy_load *l, const json_t *j)
{
    int rc = j && !json_is_array(j) ? take_entry(l, j) : 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(j); i++)
        rc = take_entry(l, json_array_get(j, i));
    return rc;
}

/* --- the whole --- */

/* What has no end goes on. */
static void close_spans(struct energy_load *l)
{
    l->study = (struct energy_load_span){ NAN, NAN };
    for (size_t i = 0; i < l->n; i++) {
        for (size_t k = 0; k < l->trials[i].n_attempts; k++) {
            struct energy_load_span *a = &l->trials[i].attempts[k];
            if (isnan(a->to_ms))
                a->to_ms = fmax(a->from_ms, l->last_ms);
            l->study.from_ms = fmin(l->study.from_ms, a->from_ms); /* of a number and NAN: the number */
            l->study.to_ms = fmax(l->study.to_ms, a->to_ms);
        }
    }
}

static void begin(struct energy_load *out)
{
    *out = (struct energy_load){ .ledger = ledger_new(), .study = { NAN, NAN } };
}

int energy_load_begin(struct energy_load *out, const struct store_study *study, struct err *e)
{
    begin(out);
    return explained(out->ledger ? name_nodes(out, study) : -ENOMEM, e);
}

int energy_load_end(struct energy_load *l, const struct store_study *study, struct err *e)
{
    AUTO_JSON json_t *config = study->config ? json_loads(study->config, 0, NULL) : NULL;
    int rc = take_entries(l, json_object_get(json_object_get(config, "monitoring"), "meters"));
    if (rc == 0)
        rc = take_entries(l, json_object_get(config, "powerMeter"));
    for (int i = 0; meters[i] && i < ENERGY_LOAD_METERS; i++)
        add_meter(l, meters[i]);
    close_spans(l);
    return explained(rc, e);
}

int energy_load(struct energy_load *out, struct store *s, const struct store_study *study, struct err *e)
{
    begin(out);
    int rc = out->ledger ? store_readings(s, study->id, keep_reading, out, e) : -ENOMEM;
    if (rc < 0 || out->last_ms == 0)
        return explained(rc, e);
    rc = explained(name_nodes(out, study), e);
    if (rc == 0)
        rc = energy_load_trials(out, s, study->id, e);
    if (rc == 0)
        rc = energy_load_samples(out, s, e);
    return rc < 0 ? rc : energy_load_end(out, study, e);
}

void energy_load_done(struct energy_load *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->trials[i].attempts);
        free(l->trials[i].epochs);
    }
    free(l->trials);
    ledger_free(l->ledger);
    strv_done(&l->nodes);
    *l = (struct energy_load){ 0 };
}
