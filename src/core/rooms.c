#include "core/rooms.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

void rooms_done(struct rooms *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->nodes[i].cpu);
        free(r->nodes[i].holder);
    }
    free(r->nodes);
    free(r->leases);
    free(r->by_trial);
    *r = (struct rooms){ 0 };
}

int rooms_add(struct rooms *r, int said, double memory_gb)
{
    struct room *grown = array_more(r->nodes, r->n, &r->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    r->nodes = grown;
    r->nodes[r->n++] = (struct room){ .said = said, .memory_gb = memory_gb };
    return 0;
}

static int at_of(const struct room *m, int cpu)
{
    for (int i = 0; i < m->n; i++)
        if (m->cpu[i] == cpu)
            return i;
    return -1;
}

int rooms_know(struct rooms *r, size_t node, const int *cpus, int n)
{
    struct room *m = &r->nodes[node];
    n = n > ROOMS_MAX_CPUS ? ROOMS_MAX_CPUS : n;
    AUTO_FREE int *cpu = malloc((size_t)n * sizeof *cpu + 1);
    AUTO_FREE int *holder = malloc((size_t)n * sizeof *holder + 1);
    if (!cpu || !holder)
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        int before = at_of(m, cpus[i]);
        cpu[i] = cpus[i];
        holder[i] = before < 0 ? 0 : m->holder[before];
    }
    free(m->cpu);
    free(m->holder);
    m->cpu = MOVE_PTR(cpu);
    m->holder = MOVE_PTR(holder);
    m->n = n;
    return 0;
}

/* --- what changes hands --- */

/* Numbers of a gang's other members, beside those of trials. */
enum { TRIALS_BITS = 24 };

static bool is_member(int holder)
{
    return holder >> TRIALS_BITS > 0;
}

/* Of members there are few at a time. */
static struct rooms_lease *find_member(const struct rooms *r, int holder)
{
    for (size_t i = 0; i < r->n_leases; i++)
        if (r->leases[i].trial == holder)
            return &r->leases[i];
    return NULL;
}

static struct rooms_lease *find_lease(const struct rooms *r, int trial)
{
    if (is_member(trial))
        return find_member(r, trial);
    size_t at = trial >= 0 && (size_t)trial < r->n_by_trial ? r->by_trial[trial] : 0;
    return at ? &r->leases[at - 1] : NULL;
}

/* So that it is found by its number: those are given one by one, and a table of them stays small. */
static int index_trial(struct rooms *r, int trial)
{
    size_t n = r->n_by_trial ? r->n_by_trial : 64;
    assert(trial >= 0); /* ROOMS_OTHERS has no lease */
    while (n <= (size_t)trial)
        n *= 2;
    size_t *grown = n > r->n_by_trial ? realloc(r->by_trial, n * sizeof *grown) : r->by_trial;
    if (!grown)
        return -ENOMEM;
    memset(grown + r->n_by_trial, 0, (n - r->n_by_trial) * sizeof *grown);
    r->by_trial = grown;
    r->n_by_trial = n;
    return 0;
}

/* Added up anew, so that no error does. */
static void reckon(struct rooms *r, size_t node)
{
    double all = 0;
    for (size_t i = 0; i < r->n_leases; i++)
        if (r->leases[i].node == node)
            all += r->leases[i].memory_gb;
    r->nodes[node].kept_gb = all;
}

/* NULL: memory. */
static struct rooms_lease *lease_of(struct rooms *r, size_t node, int trial)
{
    struct rooms_lease *l = find_lease(r, trial);
    if (l)
        return l;
    struct rooms_lease *grown = array_more(r->leases, r->n_leases, &r->cap_leases, sizeof *grown);
    if (!grown)
        return NULL;
    r->leases = grown;
    if (!is_member(trial) && index_trial(r, trial) < 0)
        return NULL;
    if (!is_member(trial))
        r->by_trial[trial] = r->n_leases + 1;
    r->leases[r->n_leases] = (struct rooms_lease){ .trial = trial, .node = node };
    return &r->leases[r->n_leases++];
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* CPUs that trials but this one have. */
static int others_have(const struct room *m, int trial)
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        n += m->holder[i] > 0 && m->holder[i] != trial;
    return n;
}

int rooms_take(struct rooms *r, size_t node, int trial, int want, int out[ROOMS_MAX_CPUS])
{
    struct room *m = &r->nodes[node];
    struct rooms_lease *l = find_lease(r, trial);
    int has = 0, left = m->share - others_have(m, trial);
    if (m->share > 0)
        want = least(want, left > 1 ? left : 1);
    for (int i = 0; i < m->n; i++) {
        if (m->holder[i] != trial)
            continue;
        if (has < want)
            out[has++] = m->cpu[i];
        else
            m->holder[i] = 0;
    }
    for (int i = 0; i < m->n && has < want; i++) {
        if (m->holder[i])
            continue;
        m->holder[i] = trial;
        out[has++] = m->cpu[i];
    }
    if (l && has > 0)
        l->shares = 0;
    return has;
}

int rooms_share(struct rooms *r, size_t node, int trial, int want, int out[ROOMS_MAX_CPUS])
{
    const struct room *m = &r->nodes[node];
    struct rooms_lease *l = lease_of(r, node, trial);
    if (!l)
        return -ENOMEM;
    l->shares = want < m->n ? want : m->n;
    memcpy(out, m->cpu, (size_t)l->shares * sizeof *out);
    return l->shares;
}

int rooms_put(struct rooms *r, size_t node, int trial)
{
    if (rooms_node(r, trial) != node)
        rooms_free(r, trial);
    return lease_of(r, node, trial) ? 0 : -ENOMEM;
}

size_t rooms_node(const struct rooms *r, int trial)
{
    const struct rooms_lease *l = find_lease(r, trial);
    return l ? l->node : 0;
}

int rooms_keep(struct rooms *r, size_t node, int trial, double memory_gb)
{
    struct rooms_lease *l = lease_of(r, node, trial);
    if (!l)
        return -ENOMEM;
    size_t before = l->node;
    l->node = node;
    l->memory_gb = memory_gb;
    reckon(r, before);
    reckon(r, node);
    return 0;
}

void rooms_free(struct rooms *r, int trial)
{
    struct rooms_lease *l = find_lease(r, trial);
    if (l) {
        size_t before = l->node;
        *l = r->leases[--r->n_leases];
        if (!is_member(l->trial))
            r->by_trial[l->trial] = (size_t)(l - r->leases) + 1;
        if (!is_member(trial))
            r->by_trial[trial] = 0;
        reckon(r, before);
    }
    for (size_t node = 0; node < r->n; node++)
        for (int i = 0; i < r->nodes[node].n; i++)
            if (r->nodes[node].holder[i] == trial)
                r->nodes[node].holder[i] = 0;
}

void rooms_mark(struct rooms *r, size_t node, int cpu, bool others)
{
    struct room *m = &r->nodes[node];
    int at = at_of(m, cpu);
    if (at >= 0 && m->holder[at] <= 0)
        m->holder[at] = others ? ROOMS_OTHERS : 0;
}

void rooms_lose(struct rooms *r, size_t node, int cpu)
{
    struct room *m = &r->nodes[node];
    int at = at_of(m, cpu);
    if (at >= 0)
        m->holder[at] = ROOMS_OTHERS;
}

/* --- what is asked --- */

int rooms_left(const struct rooms *r, size_t node, int trial)
{
    const struct room *m = &r->nodes[node];
    int n = 0;
    for (int i = 0; i < m->n; i++)
        n += m->holder[i] == 0 || m->holder[i] == trial;
    return n;
}

int rooms_room(const struct rooms *r, size_t node, int trial)
{
    const struct room *m = &r->nodes[node];
    int left = rooms_left(r, node, trial), most = m->n, ours = others_have(m, trial);
    if (m->guests > 0)
        most = least(most, m->n / (1 + m->guests));
    if (m->share > 0)
        most = least(most, m->share);
    int fair = m->guests > 0 || m->share > 0 ? most - ours : m->n;
    fair = fair > 1 ? fair : 1;
    return left < fair ? left : fair;
}

bool rooms_fits(const struct rooms *r, size_t node, int trial, struct rooms_want want)
{
    double there = r->nodes[node].memory_gb;
    bool memory = !(there > 0) || r->nodes[node].kept_gb + want.memory_gb <= there;
    return memory && !r->nodes[node].closed && rooms_room(r, node, trial) >= want.cpus;
}

int rooms_find(const struct rooms *r, int trial, struct rooms_want want)
{
    int best = -1;
    for (size_t node = 0; node < r->n; node++)
        if (rooms_fits(r, node, trial, want) &&
            (best < 0 || rooms_room(r, node, trial) > rooms_room(r, (size_t)best, trial)))
            best = (int)node;
    return best;
}

int rooms_member(int trial, size_t k)
{
    return trial + (int)(k << TRIALS_BITS);
}

int rooms_trial(int holder)
{
    return holder > 0 ? holder & ((1 << TRIALS_BITS) - 1) : holder;
}

struct left {
    int cpus;
    double memory_gb;
};

static int not_ours(const struct room *m)
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        n += m->holder[i] <= 0;
    return n;
}

static int cpus_left(const struct rooms *r, size_t node, enum rooms_when when)
{
    if (when == ROOMS_EVER || r->nodes[node].n == 0)
        return rooms_cpus(r, node);
    return when == ROOMS_SHARED ? not_ours(&r->nodes[node]) : rooms_room(r, node, 0);
}

static struct left left_of(const struct rooms *r, size_t node, enum rooms_when when)
{
    const struct room *m = &r->nodes[node];
    bool ever = when == ROOMS_EVER;
    if (m->lost || (m->closed && (!ever || node == 0)))
        return (struct left){ -1, 0 };
    double memory = !(m->memory_gb > 0) ? INFINITY : ever ? m->memory_gb : m->memory_gb - m->kept_gb;
    return (struct left){ cpus_left(r, node, when), memory };
}

static bool takes(const struct left *l, const struct rooms_want *want)
{
    return l->cpus >= want->cpus && l->memory_gb >= want->memory_gb;
}

/* The machine with most CPUs left of those that it fits on; -1: there is none. */
static int roomiest(const struct left *left, size_t n, const struct rooms_want *want)
{
    int best = -1;
    for (size_t node = 0; node < n; node++)
        if (takes(&left[node], want) && (best < 0 || left[node].cpus > left[best].cpus))
            best = (int)node;
    return best;
}

static bool is_larger(const struct rooms_want *a, const struct rooms_want *b)
{
    return a->cpus != b->cpus ? a->cpus > b->cpus : a->memory_gb > b->memory_gb;
}

/* The largest that has no machine yet, of equal ones the first: what is small fits into what the others leave. */
static size_t next_want(const struct rooms_want *wants, size_t n, const bool *placed)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (!placed[i] && (best == n || is_larger(&wants[i], &wants[best])))
            best = i;
    return best;
}

static void put_on(struct left *left, const struct rooms_want *want)
{
    left->cpus -= want->cpus;
    left->memory_gb -= want->memory_gb;
}

struct spread {
    const struct rooms_want *wants;
    size_t n, n_nodes;
    struct left *left; /* of each machine */
    size_t *order;     /* of wants: as they are placed */
    size_t *out;       /* of each want: its machine */
    int looks;         /* at a machine for a want, that are left */
};

/* On as few machines as going by size comes to. */
static bool spread_by_size(struct spread *s)
{
    int at = -1;
    for (size_t k = 0; k < s->n; k++) {
        const struct rooms_want *want = &s->wants[s->order[k]];
        if (at < 0 || !takes(&s->left[at], want))
            at = roomiest(s->left, s->n_nodes, want);
        if (at < 0)
            return false;
        put_on(&s->left[at], want);
        s->out[s->order[k]] = (size_t)at;
    }
    return true;
}

static bool is_same(const struct rooms_want *a, const struct rooms_want *b)
{
    return a->cpus == b->cpus && a->memory_gb == b->memory_gb;
}

/* Is one of these machines just as this one? Then what fits here fits there. */
static bool has_twin(const struct left *left, size_t from, size_t node)
{
    for (size_t i = from; i < node; i++)
        if (left[i].cpus == left[node].cpus && left[i].memory_gb == left[node].memory_gb)
            return true;
    return false;
}

/* All ways for those from the k-th on, but for swapping what is alike: such wants go to machines in their order. */
static bool spread_anyhow(struct spread *s, size_t k)
{
    if (k == s->n)
        return true;
    const struct rooms_want *want = &s->wants[s->order[k]];
    size_t from = k > 0 && is_same(want, &s->wants[s->order[k - 1]]) ? s->out[s->order[k - 1]] : 0;
    for (size_t node = from; node < s->n_nodes; node++) {
        const struct left before = s->left[node];
        if (s->looks-- <= 0)
            return false;
        if (!takes(&before, want) || has_twin(s->left, from, node))
            continue;
        put_on(&s->left[node], want);
        s->out[s->order[k]] = node;
        if (spread_anyhow(s, k + 1))
            return true;
        s->left[node] = before;
    }
    return false;
}

static void look_at_left(const struct rooms *r, enum rooms_when when, struct left *left)
{
    for (size_t node = 0; node < r->n; node++)
        left[node] = left_of(r, node, when);
}

/* Going by size is enough nearly always; where it is not, few machines are tried in all ways. */
bool rooms_spread(const struct rooms *r, const struct rooms_want *wants, size_t n, enum rooms_when when, size_t *out)
{
    enum { FEW = 64, LOOKS_MAX = 20000 }; /* a millisecond at most */
    AUTO_FREE struct left *left = calloc(r->n, sizeof *left);
    AUTO_FREE bool *placed = calloc(n, sizeof *placed);
    AUTO_FREE size_t *order = calloc(n, sizeof *order);
    if (!left || !placed || !order)
        return false; /* until there is memory */
    struct spread s = {
        .wants = wants, .n = n, .n_nodes = r->n, .left = left, .order = order, .out = out, .looks = LOOKS_MAX
    };
    for (size_t i, k = 0; (i = next_want(wants, n, placed)) < n; placed[i] = true)
        order[k++] = i;
    look_at_left(r, when, left);
    if (spread_by_size(&s))
        return true;
    look_at_left(r, when, left);
    return r->n <= FEW && spread_anyhow(&s, 0);
}

int rooms_cpus(const struct rooms *r, size_t node)
{
    const struct room *m = &r->nodes[node];
    return m->n > 0 && (m->n < m->said || m->said == 0) ? m->n : m->said;
}

bool rooms_enough_wait(const struct rooms *r, double cpus, uint64_t waiting)
{
    double all = 0;
    for (size_t node = 0; node < r->n; node++)
        all += r->nodes[node].closed ? 0 : ceil(rooms_cpus(r, node) / cpus);
    return waiting > 0 && (double)waiting >= all - 1;
}

bool rooms_has(const struct rooms *r, size_t node, int trial)
{
    const struct room *m = &r->nodes[node];
    for (int i = 0; i < m->n; i++)
        if (m->holder[i] == trial)
            return true;
    return false;
}

int rooms_shares(const struct rooms *r, size_t node, int trial)
{
    int most = 0;
    for (size_t i = 0; i < r->n_leases; i++) {
        const struct rooms_lease *l = &r->leases[i];
        if (l->node == node && l->shares > most && (trial == 0 || rooms_trial(l->trial) == trial))
            most = l->shares;
    }
    return most;
}
