#include "node/leased.h"

#include <errno.h>
#include <stdio.h>

int leased_open(struct leased *out)
{
    out->names = leases_of_cpus();
    return out->names ? 0 : -ENOMEM;
}

void leased_close(struct leased *l)
{
    leases_free(l->names);
    l->names = NULL;
}

/* Launches that have the CPU, but for this one. */
static int others_here(const struct leased *l, int tag, int cpu)
{
    int n = 0;
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        n += i != tag && mask_has(&l->has[i], cpu);
    return n;
}

/* Who uses it beside the launch, as far as is known: of another process' launches no more than that there are some. Who has a CPU and
 * whose guests use it, too, is not driven out by them. */
static int users(const struct leased *l, int tag, int cpu)
{
    return others_here(l, tag, cpu) + !leases_is_free(l->names, cpu);
}

/* Its lease is ours, or we are a guest that uses it. False: it was to be free, and another process was quicker. */
static bool use(struct leased *l, int cpu, bool shared)
{
    if (leases_hold(l->names, cpu))
        return true;
    if (shared)
        leases_visit(l->names, cpu, true);
    return shared;
}

static void let_go(struct leased *l, int tag, int cpu)
{
    if (others_here(l, tag, cpu) > 0)
        return;
    leases_drop(l->names, cpu);
    leases_leave(l->names, cpu);
}

struct choice {
    struct mask had, taken;
    int want;
    struct cpus *out;
};

static void take_one(struct leased *l, struct choice *c, int cpu, bool shared)
{
    if (c->out->n == c->want || mask_has(&c->taken, cpu) || !use(l, cpu, shared))
        return;
    mask_add(&c->taken, cpu);
    c->out->v[c->out->n++] = cpu;
}

/* Those with so many other users: what it has already comes first, so that threads stay where their caches are. */
static void take_level(struct leased *l, const struct cpus *order, const int *others, int level, struct choice *c)
{
    for (int i = 0; i < order->n; i++)
        if (others[i] == level && mask_has(&c->had, order->v[i]))
            take_one(l, c, order->v[i], level > 0);
    for (int i = 0; i < order->n; i++) {
        int at = level == 0 ? i : order->n - 1 - i;
        if (others[at] == level)
            take_one(l, c, order->v[at], level > 0);
    }
}

void leased_take(struct leased *l, int tag, const struct cpus *order, int n, struct cpus *out)
{
    int others[CPUS_MAX];
    struct choice c = { .had = l->has[tag], .want = n, .out = out };
    out->n = 0;
    for (int i = 0; i < order->n; i++)
        others[i] = users(l, tag, order->v[i]);
    for (int level = 0; level <= MEMBERS_TAGS_MAX && out->n < n; level++)
        take_level(l, order, others, level, &c);
    for (int i = 0; i < order->n && out->n < n; i++)
        take_one(l, &c, order->v[i], true); /* lost a moment ago */
    l->has[tag] = c.taken;
    struct cpus had;
    mask_list(&c.had, &had);
    for (int i = 0; i < had.n; i++)
        if (!mask_has(&c.taken, had.v[i]))
            let_go(l, tag, had.v[i]);
}

void leased_drop(struct leased *l, int tag)
{
    struct cpus had;
    mask_list(&l->has[tag], &had);
    l->has[tag] = (struct mask){ 0 };
    for (int i = 0; i < had.n; i++)
        let_go(l, tag, had.v[i]);
}

void leased_poll(struct leased *l)
{
    leases_poll(l->names);
}

/* Names whoever else uses this one. */
static bool is_used(const struct leased *l, int tag, int cpu, char who[LEASE_WHO_MAX])
{
    if (others_here(l, tag, cpu) > 0)
        (void)snprintf(who, LEASE_WHO_MAX, "another launch of this study");
    else if (!leases_is_free(l->names, cpu))
        leases_holder(l->names, cpu, who);
    else
        return leases_is_shared(l->names, cpu, who);
    return true;
}

void leased_with(const struct leased *l, int tag, char who[LEASE_WHO_MAX])
{
    struct cpus has;
    mask_list(&l->has[tag], &has);
    who[0] = '\0';
    for (int i = 0; i < has.n && !who[0]; i++)
        (void)is_used(l, tag, has.v[i], who);
}

bool leased_may_part(const struct leased *l, int tag, const struct cpus *order)
{
    bool shares = false, room = false;
    for (int i = 0; !shares && i < order->n; i++)
        shares = mask_has(&l->has[tag], order->v[i]) && users(l, tag, order->v[i]) > 0;
    for (int i = 0; shares && !room && i < order->n; i++)
        room = !mask_has(&l->has[tag], order->v[i]) && users(l, tag, order->v[i]) == 0;
    return room;
}
