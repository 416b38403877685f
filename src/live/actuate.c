#include "live/actuate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "core/place.h"

/* One setting on its way. */
struct order {
    uint64_t id;
    int trial;
    struct tuner_setting to;
};

/* A trial that uses CPUs of other drivers. */
struct sharer {
    int trial;
    int n;
    int *cpus;
};

enum { LOOK_MS = 250, READY_MS = 3000 };

struct actuate {
    struct study *study;
    struct actuate_ops ops;
    void *ctx;
    struct nodes *nodes;
    bool local; /* local mode: trials are packed on this machine's CPUs */
    struct place place;
    struct leases *leases;  /* NULL: not local */
    struct sharer *sharers; /* at most as many as trials run */
    size_t n_sharers, cap_sharers;
    int64_t opened_ms, looked_ms;
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
    a->ops.changed(a->ctx, tag, have->cores);
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
    a->opened_ms = clock_ms();
    a->leases = a->local ? leases_of_cpus() : NULL;
    int rc = a->local && !a->leases ? err_sys(e, -ENOMEM, "study '%s'", s->name)
                                    : nodes_open(&a->nodes, loop, p->nodes, p->n_nodes, p->env.node, &calls, a, e);
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
    leases_free(a->leases);
    for (size_t i = 0; i < a->n_sharers; i++)
        free(a->sharers[i].cpus);
    free(a->sharers);
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

bool actuate_is_ready(const struct actuate *a)
{
    const int *cpus = NULL;
    return !a->local || nodes_local_cpus(a->nodes, &cpus) > 0 || nodes_local_is_gone(a->nodes) ||
           clock_ms() - a->opened_ms > READY_MS;
}

/* Which of those that none of our trials has are another driver's. */
static void look(struct actuate *a)
{
    learn_cpus(a);
    for (int i = 0; a->leases && i < a->place.n; i++)
        if (a->place.owner[i] <= 0)
            place_mark(&a->place, a->place.cpu[i], !leases_is_free(a->leases, a->place.cpu[i]));
    a->looked_ms = clock_ms();
}

void actuate_look(struct actuate *a)
{
    if (!a || !a->leases)
        return;
    leases_poll(a->leases);
    if (clock_ms() - a->looked_ms >= LOOK_MS)
        look(a);
}

/* Who was asked for CPUs keeps its share, which its trials divide. */
static int fair_room(const struct actuate *a, int trial)
{
    int guests = (int)leases_guests(a->leases), ours = 0;
    for (int i = 0; i < a->place.n; i++)
        ours += a->place.owner[i] > 0 && a->place.owner[i] != trial;
    int fair = guests > 0 ? a->place.n / (1 + guests) - ours : a->place.n;
    return fair > 1 ? fair : 1;
}

int actuate_room(struct actuate *a, int trial)
{
    if (!a->local)
        return 0;
    learn_cpus(a);
    int room = place_room(&a->place, trial), fair = a->leases ? fair_room(a, trial) : room;
    return room < fair ? room : fair;
}

bool actuate_has_room(const struct actuate *a, int trial)
{
    return !actuate_is_divided(a) || place_room(&a->place, trial) > 0;
}

void actuate_ask(struct actuate *a, char who[LEASE_WHO_MAX])
{
    who[0] = '\0';
    for (int i = 0; i < a->place.n; i++) {
        leases_visit(a->leases, a->place.cpu[i], false);
        if (!who[0])
            leases_holder(a->leases, a->place.cpu[i], who);
    }
}

/* Takes what is free in truth: another driver may have been quicker since the last look. */
static int take(struct actuate *a, int trial, int want, int cpus[PLACE_MAX_CPUS])
{
    int n, lost;
    look(a);
    do {
        lost = 0;
        n = place_take(&a->place, trial, want, cpus);
        for (int i = 0; a->leases && i < n; i++) {
            if (leases_hold(a->leases, cpus[i]))
                continue;
            place_lose(&a->place, cpus[i]);
            lost++;
        }
    } while (lost > 0);
    for (int i = 0; a->leases && i < a->place.n; i++) {
        if (a->place.owner[i] <= 0)
            leases_drop(a->leases, a->place.cpu[i]);
        if (n > 0 && a->n_sharers == 0)
            leases_leave(a->leases, a->place.cpu[i]); /* asked for no more */
    }
    return n;
}

static struct sharer *find_sharer(const struct actuate *a, int trial)
{
    for (size_t i = 0; i < a->n_sharers; i++)
        if (a->sharers[i].trial == trial)
            return &a->sharers[i];
    return NULL;
}

static void part(struct actuate *a, int trial)
{
    struct sharer *s = find_sharer(a, trial);
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        leases_leave(a->leases, s->cpus[i]);
    free(s->cpus);
    *s = a->sharers[--a->n_sharers];
}

/* There is none for it: the first ones, with whoever has them. */
static int share(struct actuate *a, int trial, int want, int cpus[PLACE_MAX_CPUS], struct err *e)
{
    int n = want < a->place.n ? want : a->place.n;
    AUTO_FREE int *copy = malloc((size_t)n * sizeof *copy);
    part(a, trial);
    struct sharer *grown = copy ? array_more(a->sharers, a->n_sharers, &a->cap_sharers, sizeof *grown) : NULL;
    if (!grown)
        return err_sys(e, -ENOMEM, "trial %d", trial);
    a->sharers = grown;
    memcpy(copy, a->place.cpu, (size_t)n * sizeof *copy);
    memcpy(cpus, a->place.cpu, (size_t)n * sizeof *copy);
    for (int i = 0; i < n; i++)
        leases_visit(a->leases, cpus[i], true);
    a->sharers[a->n_sharers++] = (struct sharer){ .trial = trial, .n = n, .cpus = MOVE_PTR(copy) };
    return n;
}

/* The CPUs that it is to have, its own or, where there are none, shared ones. How many; 0 where it is not known which there are. */
static int assign(struct actuate *a, int trial, int want, int cpus[PLACE_MAX_CPUS], struct err *e)
{
    int n = take(a, trial, want, cpus);
    if (n > 0)
        part(a, trial);
    else if (actuate_is_divided(a)) /* else all are those of our own trials, which nobody packs */
        n = share(a, trial, want, cpus, e);
    return n;
}

bool actuate_is_shared(const struct actuate *a, int trial, const char *tag, char who[NODES_WHO_MAX])
{
    if (!a->local)
        return tag && nodes_is_shared(a->nodes, tag, who);
    const struct sharer *s = find_sharer(a, trial);
    if (s && who)
        leases_holder(a->leases, s->cpus[0], who);
    for (int i = 0; !s && a->leases && i < a->place.n; i++)
        if (a->place.owner[i] == trial && leases_is_shared(a->leases, a->place.cpu[i], who))
            return true;
    return s;
}

bool actuate_may_part(const struct actuate *a, int trial)
{
    return find_sharer(a, trial) && place_room(&a->place, trial) > 0;
}

bool actuate_is_divided(const struct actuate *a)
{
    return a->leases && place_is_divided(&a->place);
}

char *actuate_own_cpus(const struct actuate *a, int trial)
{
    struct buf text = BUF_INIT;
    if (!actuate_is_divided(a))
        return NULL;
    bool any = place_has(&a->place, trial);
    for (int i = 0; i < a->place.n; i++)
        if (any ? a->place.owner[i] == trial : a->place.owner[i] > 0) /* without any: not packed, it runs beside ours */
            buf_printf(&text, "%s%d", text.len ? "," : "", a->place.cpu[i]);
    return text.len ? buf_take(&text) : NULL; /* without memory it is launched on all */
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

int actuate_reserve(struct actuate *a, int trial, int cores, struct err *e)
{
    int cpus[PLACE_MAX_CPUS];
    int n = a->local ? assign(a, trial, cores, cpus, e) : 0;
    return n < 0 ? n : 0;
}

int actuate_apply(struct actuate *a, int trial, const char *tag, int slots, struct tuner_setting to, struct err *e)
{
    const struct plan *p = a->study->plan;
    struct setting set = choices_setting(&p->choices, &p->space, to);
    int cores = cores_of(a, &set, slots);
    int cpus[PLACE_MAX_CPUS];
    int n = a->local ? assign(a, trial, cores, cpus, e) : 0;
    if (n < 0)
        return n;
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
    part(a, trial);
    for (int i = 0; a->leases && i < a->place.n; i++)
        if (a->place.owner[i] == 0)
            leases_drop(a->leases, a->place.cpu[i]);
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
