#include "live/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "live/nodes.h"

enum { LOOK_MS = 250, READY_MS = 3000, GIVE_WAY_MS = 1000 /* who waits looks four times meanwhile */, HERE = 0 };

struct places {
    struct rooms rooms;    /* of this machine, or of the cluster as one; behind it the hosts */
    struct leases *leases; /* NULL: not local */
    const struct nodes *nodes;
    int64_t opened_ms, looked_ms;
    int64_t gives_way_ms; /* until then; 0: nobody waits for what our trials had */
};

int places_open(struct places **out, const struct offer *offer, bool local, const struct nodes *nodes, size_t n_hosts,
                struct err *e)
{
    struct places *p = calloc(1, sizeof *p);
    if (!p)
        return err_sys(e, -ENOMEM, "cannot keep account of CPUs");
    p->opened_ms = clock_ms();
    p->nodes = nodes;
    p->leases = local ? leases_of_cpus() : NULL;
    if ((local && !p->leases) || rooms_add(&p->rooms, offer->cores, local ? offer->memory_gb : 0) < 0) {
        places_close(p);
        return err_sys(e, -ENOMEM, "cannot keep account of CPUs");
    }
    for (size_t i = 1; i <= n_hosts; i++) {
        if (rooms_add(&p->rooms, 0, 0) < 0) {
            places_close(p);
            return err_sys(e, -ENOMEM, "cannot keep account of CPUs");
        }
        p->rooms.nodes[i].closed = true;
    }
    *out = p;
    return 0;
}

void places_close(struct places *p)
{
    if (!p)
        return;
    leases_free(p->leases);
    rooms_done(&p->rooms);
    free(p);
}

const struct rooms *places_rooms(const struct places *p)
{
    return &p->rooms;
}

static const struct room *here(const struct places *p)
{
    return &p->rooms.nodes[HERE];
}

/* --- what there is --- */

void places_close_node(struct places *p, size_t node, bool closed)
{
    struct room *m = &p->rooms.nodes[node];
    const int *cpus = NULL;
    int n = node != HERE && !closed && (m->closed || m->n == 0) ? nodes_cpus(p->nodes, node, &cpus) : 0;
    if (n > 0 && rooms_know(&p->rooms, node, cpus, n) < 0)
        return; /* without memory it is opened later */
    if (n > 0)
        m->memory_gb = nodes_memory_gb(p->nodes, node);
    m->closed = closed;
}

void places_lose_node(struct places *p, size_t node)
{
    p->rooms.nodes[node].lost = true;
}

/* Which CPUs there are, and how many others ask for some. */
static void learn(struct places *p)
{
    const int *cpus = NULL;
    int n = p->leases && here(p)->n == 0 ? nodes_cpus(p->nodes, HERE, &cpus) : 0;
    if (n > 0)
        (void)rooms_know(&p->rooms, HERE, cpus, n); /* without memory they are learnt later */
    if (p->leases)
        p->rooms.nodes[HERE].guests = (int)leases_guests(p->leases);
}

bool places_is_ready(const struct places *p)
{
    const int *cpus = NULL;
    return !p->leases || nodes_cpus(p->nodes, HERE, &cpus) > 0 || nodes_local_is_gone(p->nodes) ||
           clock_ms() - p->opened_ms > READY_MS;
}

/* To whoever has it, but ourselves. */
static void say_use(struct places *p, int at)
{
    if (here(p)->holder[at] <= 0)
        leases_visit(p->leases, here(p)->cpu[at], true);
}

/* Which of those that none of our trials has are another driver's. */
static void look(struct places *p)
{
    const struct room *m = here(p);
    learn(p);
    for (int i = 0; p->leases && i < m->n; i++)
        if (m->holder[i] <= 0)
            rooms_mark(&p->rooms, HERE, m->cpu[i], !leases_is_free(p->leases, m->cpu[i]));
    for (int i = 0; i < rooms_shares(&p->rooms, HERE, 0); i++)
        say_use(p, i); /* others may have it by now */
    p->looked_ms = clock_ms();
}

void places_look(struct places *p)
{
    if (!p->leases)
        return;
    leases_poll(p->leases);
    if (clock_ms() - p->looked_ms >= LOOK_MS)
        look(p);
}

void places_ask(struct places *p, char who[LEASE_WHO_MAX])
{
    const struct room *m = here(p);
    who[0] = '\0';
    for (int i = 0; i < m->n; i++) {
        leases_visit(p->leases, m->cpu[i], false);
        if (!who[0])
            leases_holder(p->leases, m->cpu[i], who);
    }
}

int places_holders(const struct places *p, pid_t *out, int most)
{
    const struct room *m = here(p);
    int n = 0;
    for (int i = 0; p->leases && i < m->n && n < most; i++)
        if (m->holder[i] == ROOMS_OTHERS)
            out[n++] = leases_holder_pid(p->leases, m->cpu[i]);
    return n;
}

/* --- giving and taking --- */

/* What is no trial's is for others to take. Who asks (`asks`) for more than ours share goes on asking. */
static void let_go_of_rest(struct places *p, bool asks)
{
    const struct room *m = here(p);
    int shared = rooms_shares(&p->rooms, HERE, 0);
    for (int i = 0; i < m->n; i++) {
        if (m->holder[i] <= 0)
            leases_drop(p->leases, m->cpu[i]);
        if (!asks && i >= shared)
            leases_leave(p->leases, m->cpu[i]);
    }
}

/* There is none for it: the first ones, with whoever has them. It still asks for those that it uses no more. */
static int share(struct places *p, int trial, int want, int out[ROOMS_MAX_CPUS])
{
    int before = rooms_shares(&p->rooms, HERE, 0);
    int n = rooms_share(&p->rooms, HERE, trial, want, out);
    for (int i = rooms_shares(&p->rooms, HERE, 0); i < before; i++)
        leases_leave(p->leases, here(p)->cpu[i]), leases_visit(p->leases, here(p)->cpu[i], false);
    for (int i = 0; i < n; i++)
        say_use(p, i);
    return n;
}

int places_share(struct places *p, int trial, int want, int out[ROOMS_MAX_CPUS], struct err *e)
{
    int n = p->leases ? share(p, trial, want, out) : 0;
    return n < 0 ? err_sys(e, n, "trial %d", trial) : n;
}

/* Takes what is free in truth: another driver may have been quicker since the last look. */
int places_take(struct places *p, int trial, int want, int out[ROOMS_MAX_CPUS])
{
    int n, lost;
    size_t node = rooms_node(&p->rooms, trial);
    if (node != HERE)
        return rooms_take(&p->rooms, node, trial, want, out); /* which of them it is given there says its helper */
    if (!p->leases)
        return 0;
    look(p);
    do {
        lost = 0;
        n = rooms_take(&p->rooms, HERE, trial, want, out);
        for (int i = 0; i < n; i++) {
            if (leases_hold(p->leases, out[i]))
                continue;
            rooms_lose(&p->rooms, HERE, out[i]);
            lost++;
        }
    } while (lost > 0);
    let_go_of_rest(p, n == 0);
    return n;
}

int places_assign(struct places *p, int trial, int want, int out[ROOMS_MAX_CPUS], struct err *e)
{
    int n = places_take(p, trial, want, out);
    bool is_here = rooms_node(&p->rooms, trial) == HERE;
    /* without others all are those of our own trials, which nobody packs */
    return n == 0 && is_here && places_is_divided(p) ? places_share(p, trial, want, out, e) : n;
}

int places_put(struct places *p, size_t node, int trial, struct err *e)
{
    int rc = rooms_put(&p->rooms, node, trial);
    return rc < 0 ? err_sys(e, rc, "trial %d", trial) : 0;
}

int places_keep(struct places *p, int trial, double memory_gb, struct err *e)
{
    int rc = rooms_keep(&p->rooms, rooms_node(&p->rooms, trial), trial, memory_gb);
    return rc < 0 ? err_sys(e, rc, "trial %d", trial) : 0;
}

void places_free(struct places *p, int trial)
{
    bool shared = rooms_shares(&p->rooms, HERE, trial) > 0;
    if (p->leases && rooms_has(&p->rooms, HERE, trial) && leases_is_awaited(p->leases))
        p->gives_way_ms = clock_ms() + GIVE_WAY_MS;
    rooms_free(&p->rooms, trial);
    if (p->leases)
        let_go_of_rest(p, !shared);
}

/* --- what is asked --- */

bool places_fits(struct places *p, size_t node, int trial, struct rooms_want want)
{
    learn(p);
    return rooms_fits(&p->rooms, node, trial, want);
}

int places_room(struct places *p, int trial)
{
    size_t node = rooms_node(&p->rooms, trial);
    learn(p);
    return p->leases || node != HERE ? rooms_room(&p->rooms, node, trial) : 0;
}

int places_cpus(struct places *p, int trial)
{
    return rooms_cpus(&p->rooms, rooms_node(&p->rooms, trial));
}

bool places_is_divided(const struct places *p)
{
    const struct room *m = here(p);
    bool shared = m->share > 0 && m->share < m->n;
    return p->leases && (shared || rooms_has(&p->rooms, HERE, ROOMS_OTHERS));
}

void places_limit(struct places *p, int cpus)
{
    p->rooms.nodes[HERE].share = p->leases ? cpus : 0;
}

int places_held(const struct places *p, int trial)
{
    const struct room *m = here(p);
    int n = 0;
    for (int i = 0; i < m->n; i++)
        n += m->holder[i] == trial;
    return n;
}

bool places_has_room(const struct places *p, int trial)
{
    return !places_is_divided(p) || rooms_left(&p->rooms, HERE, trial) > 0;
}

bool places_gives_way(const struct places *p)
{
    return clock_ms() < p->gives_way_ms;
}

bool places_is_shared(const struct places *p, int trial, char who[LEASE_WHO_MAX])
{
    const struct room *m = here(p);
    int shares = rooms_shares(&p->rooms, HERE, trial), at = 0; /* of who is elsewhere none are here */
    while (at + 1 < shares && m->holder[at] != ROOMS_OTHERS)
        at++;
    if (shares > 0)
        leases_holder(p->leases, m->cpu[at], who);
    for (int i = 0; shares == 0 && p->leases && i < m->n; i++)
        if (rooms_trial(m->holder[i]) == trial && leases_is_shared(p->leases, m->cpu[i], who))
            return true;
    return shares > 0;
}

bool places_may_part(const struct places *p, int trial, bool whole)
{
    int shares = rooms_shares(&p->rooms, HERE, trial);
    return shares > 0 && rooms_left(&p->rooms, HERE, trial) >= (whole ? shares : 1);
}

int places_shared(const struct places *p, int trial, int out[ROOMS_MAX_CPUS])
{
    int n = rooms_shares(&p->rooms, HERE, trial);
    if (n > 0)
        memcpy(out, here(p)->cpu, (size_t)n * sizeof *out);
    return n;
}

char *places_own_cpus(const struct places *p, int trial, bool held)
{
    size_t node = rooms_node(&p->rooms, trial);
    const struct room *m = &p->rooms.nodes[node];
    struct buf text = BUF_INIT;
    bool any = rooms_has(&p->rooms, node, trial);
    if (!(node == HERE && places_is_divided(p)) && !(held && any))
        return NULL;
    for (int i = 0; i < m->n; i++)
        if (any ? m->holder[i] == trial : m->holder[i] > 0) /* without any: not packed, it runs beside ours */
            buf_printf(&text, "%s%d", text.len ? "," : "", m->cpu[i]);
    return text.len ? buf_take(&text) : NULL; /* without memory it is launched on all */
}
