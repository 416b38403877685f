#include "live/actuate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "core/place.h"

/* One setting on its way. */
struct order {
    uint64_t id;
    int trial;
    struct tuner_setting to;
};

struct actuate {
    struct study *study;
    struct actuate_ops ops;
    void *ctx;
    struct nodes *nodes;
    bool local; /* local mode: trials are packed on this machine's CPUs */
    struct place place;
    struct order *orders; /* not answered yet, oldest first */
    size_t n, cap;
    uint64_t next_id;
};

/* --- the helpers' answers --- */

static void on_applied(void *ctx, uint64_t id, const struct nodes_have *have, const char *why)
{
    struct actuate *a = ctx;
    size_t i = 0;
    while (i < a->n && a->orders[i].id != id)
        i++;
    if (i == a->n)
        return; /* its trial is over */
    struct order o = a->orders[i];
    memmove(&a->orders[i], &a->orders[i + 1], (a->n - i - 1) * sizeof o);
    a->n--;
    a->ops.applied(a->ctx, o.trial, o.to, have->cores, why);
}

static void on_changed(void *ctx, const char *tag, const struct nodes_have *have)
{
    struct actuate *a = ctx;
    (void)have;
    a->ops.changed(a->ctx, tag);
}

static void on_sampled(void *ctx, const char *tag, const struct nodes_sample *s)
{
    struct actuate *a = ctx;
    a->ops.sampled(a->ctx, tag, s);
}

static void on_metered(void *ctx, const struct nodes_reading *r)
{
    struct actuate *a = ctx;
    if (a->ops.metered)
        a->ops.metered(a->ctx, r);
}

static void on_note(void *ctx, const char *text)
{
    struct actuate *a = ctx;
    a->ops.note(a->ctx, text);
}

/* --- opening --- */

int actuate_open(struct actuate **out, struct study *s, uv_loop_t *loop, const struct actuate_ops *ops, void *ctx,
                 struct err *e)
{
    static const struct nodes_ops calls = { on_applied, on_changed, on_sampled, on_metered, on_note };
    struct actuate *a = calloc(1, sizeof *a);
    if (!a)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    *a = (struct actuate){ .study = s, .ops = *ops, .ctx = ctx, .local = app_is_local(&s->plan->app) };
    const struct plan *p = s->plan;
    int rc = nodes_open(&a->nodes, loop, p->nodes, p->n_nodes, p->env.node, &calls, a, e);
    if (rc < 0) {
        actuate_close(a);
        return rc;
    }
    *out = a;
    return 0;
}

void actuate_close(struct actuate *a)
{
    if (!a)
        return;
    nodes_close(a->nodes);
    free(a->orders);
    free(a);
}

/* --- CPUs --- */

static void learn_cpus(struct actuate *a)
{
    const int *cpus = NULL;
    int n = nodes_local_cpus(a->nodes, &cpus);
    if (n > 0 && a->place.n == 0)
        place_set(&a->place, cpus, n);
}

int actuate_room(struct actuate *a, int trial)
{
    learn_cpus(a);
    return place_room(&a->place, trial);
}

static int keep_order(struct actuate *a, int trial, struct tuner_setting to, struct err *e)
{
    struct order *grown = array_more(a->orders, a->n, &a->cap, sizeof *grown);
    if (!grown)
        return err_sys(e, -ENOMEM, "trial %d", trial);
    a->orders = grown;
    a->orders[a->n++] = (struct order){ .id = ++a->next_id, .trial = trial, .to = to };
    return 0;
}

static int cores_of(const struct actuate *a, const struct setting *set, int slots)
{
    return (int)setting_number(&a->study->plan->space, set, KNOB_CORES, slots);
}

void actuate_reserve(struct actuate *a, int trial, int slots, struct tuner_setting to)
{
    const struct plan *p = a->study->plan;
    struct setting set = choices_setting(&p->choices, &p->space, to);
    int cpus[PLACE_MAX_CPUS];
    learn_cpus(a);
    (void)place_take(&a->place, trial, cores_of(a, &set, slots), cpus);
}

int actuate_apply(struct actuate *a, int trial, const char *tag, int slots, struct tuner_setting to, struct err *e)
{
    const struct plan *p = a->study->plan;
    struct setting set = choices_setting(&p->choices, &p->space, to);
    int cores = cores_of(a, &set, slots);
    int cpus[PLACE_MAX_CPUS];
    learn_cpus(a);
    int n = a->local ? place_take(&a->place, trial, cores, cpus) : 0;
    struct nodes_want want = { .tag = tag,
                               .cores = n > 0 && n < cores ? n : cores,
                               .slots = slots,
                               .local = a->local,
                               .cpus = n > 0 ? cpus : NULL,
                               .n_cpus = n,
                               .frequency_khz = setting_number(&p->space, &set, KNOB_FREQUENCY, 0),
                               .power_cap_w = setting_number(&p->space, &set, KNOB_POWER_CAP, 0) };
    int rc = keep_order(a, trial, to, e);
    return rc < 0 ? rc : nodes_apply(a->nodes, &want, a->next_id, e);
}

void actuate_release(struct actuate *a, int trial, const char *tag)
{
    if (!a)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < a->n; i++)
        if (a->orders[i].trial != trial)
            a->orders[kept++] = a->orders[i];
    a->n = kept;
    place_free(&a->place, trial);
    if (tag)
        actuate_forget(a, tag);
}

int actuate_sample(struct actuate *a, const char *tag, const struct nodes_sampling *how, struct err *e)
{
    return nodes_sample(a->nodes, tag, how, e);
}

int actuate_meter(struct actuate *a, const struct nodes_metering *how, struct err *e)
{
    return nodes_meter(a->nodes, how, e);
}

void actuate_forget(struct actuate *a, const char *tag)
{
    if (a)
        nodes_release(a->nodes, tag);
}
