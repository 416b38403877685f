#include "core/desired.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

/* One node's side of a launch. */
struct part {
    struct desired_seen seen;
    uint64_t asked;              /* for the want of this stamp; 0: for none since its helper was started */
    bool awaited;                /* nothing is told of what is wanted before it has answered, or is lost */
    bool to_measure, to_release; /* it is yet to be asked to */
    int64_t samples, sampled_ms; /* that came, since when */
};

struct row {
    struct row *next;
    char tag[DESIRED_TAG_MAX + 1];
    uint64_t first, stamp;            /* of all its wants, and of the one there is; 0: no CPUs are wanted */
    struct desired_want want;         /* its cpus are owned */
    struct desired_sampling sampling; /* interval 0: none */
    int64_t until_ms;
    bool untold, changed;     /* what is to be told */
    int n_awaited;            /* of the parts; with 0 what is told is … */
    struct desired_have have; /* … what was in force then */
    bool dropped;             /* it is over: what is left is to be asked and told */
    char why[DESIRED_WHY_MAX];
    size_t from, n; /* the nodes that it may concern: one, of what runs on one alone */
    struct part parts[];
};

struct desired {
    struct row *rows; /* oldest first */
    uint64_t last_stamp;
    const char *const *names;
    size_t n;
    enum desired_node state[];
};

static const struct desired_seen nothing;

static void free_row(struct row *r)
{
    free((int *)r->want.cpus);
    free(r);
}

struct desired *desired_new(const char *const *names, size_t nodes)
{
    struct desired *d = calloc(1, sizeof *d + nodes * sizeof d->state[0]);
    if (!d)
        return NULL;
    d->names = names;
    d->n = nodes;
    return d;
}

void desired_free(struct desired *d)
{
    for (struct row *r; d && (r = d->rows); free_row(r))
        d->rows = r->next;
    free(d);
}

/* --- rows ------------------------------------------------------------------------------------------------------------- */

static struct row *row_of(const struct desired *d, const char *tag)
{
    struct row *r = d->rows;
    while (r && (r->dropped || strcmp(r->tag, tag) != 0))
        r = r->next;
    return r;
}

static struct row *row_by_stamp(const struct desired *d, uint64_t stamp)
{
    struct row *r = d->rows;
    while (r && (r->dropped || stamp < r->first || stamp > r->stamp))
        r = r->next;
    return r;
}

/* Its side of this node. NULL: it has none. */
static struct part *part_of(struct row *r, size_t node)
{
    return node >= r->from && node - r->from < r->n ? &r->parts[node - r->from] : NULL;
}

/* In the place of `before`, NULL: new, with these nodes. NULL: memory, and nothing has changed. */
static struct row *make_row(const struct row *before, size_t from, size_t n)
{
    struct row *r = calloc(1, sizeof *r + n * sizeof r->parts[0]);
    if (r && before) {
        *r = *before;
        r->want.tag = before->want.tag ? r->tag : NULL;
        memcpy(&r->parts[before->from - from], before->parts, before->n * sizeof r->parts[0]);
    }
    if (r) {
        r->from = from;
        r->n = n;
    }
    return r;
}

/* The one there is, or a new one, with at least this node; all nodes, unless `local`. NULL: memory. */
static struct row *need_row(struct desired *d, const char *tag, bool local, size_t node)
{
    struct row **at = &d->rows;
    while (*at && ((*at)->dropped || strcmp((*at)->tag, tag) != 0))
        at = &(*at)->next;
    bool one = local && node < d->n;
    if (*at && (one ? part_of(*at, node) != NULL : (*at)->n == d->n))
        return *at;
    struct row *r = one && !*at ? make_row(NULL, node, 1) : make_row(*at, 0, d->n);
    if (!r)
        return NULL;
    if (!*at)
        (void)snprintf(r->tag, sizeof r->tag, "%s", tag);
    free(*at);
    return *at = r;
}

/* Frees those of which nothing is wanted any more, nor to be asked or told. */
static void sweep(struct desired *d)
{
    for (struct row **at = &d->rows, *r; (r = *at);) {
        bool left = r->untold || (!r->dropped && (r->stamp || r->sampling.interval_ms));
        for (size_t i = 0; i < r->n; i++)
            left |= r->parts[i].to_measure || r->parts[i].to_release;
        if (left) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        free_row(r);
    }
}

/* True when what was known before is no more. */
static bool see(struct part *p, const struct desired_seen *seen)
{
    struct desired_seen before = p->seen;
    p->seen = *seen;
    return before.processes != seen->processes || before.cpus != seen->cpus || before.slots != seen->slots ||
           strcmp(before.shared, seen->shared) != 0;
}

static void add_why(struct row *r, const char *who, const char *why)
{
    size_t len = strlen(r->why);
    (void)snprintf(r->why + len, sizeof r->why - len, "%s%s%s%s", len ? "; " : "", who, *who ? ": " : "", why);
}

static struct desired_have have_of(const struct row *r)
{
    struct desired_have have = { 0 };
    for (size_t i = 0; i < r->n; i++) {
        const struct desired_seen *s = &r->parts[i].seen;
        have.processes += s->processes;
        have.frequency_khz = fmax(have.frequency_khz, s->frequency_khz);
        have.power_cap_w = fmax(have.power_cap_w, s->power_cap_w);
        /* Where there are no slots there is only the driver, whose CPUs are not those that work. */
        if (s->processes > 0 && (r->want.local || s->slots > 0))
            have.cores += s->cpus;
    }
    return have;
}

/* Nothing more is awaited of this node, which has come to a good end when `why` is NULL. */
static void settle(const struct desired *d, struct row *r, size_t node, const char *why)
{
    struct part *p = part_of(r, node);
    if (!p || !p->awaited)
        return;
    if (why)
        add_why(r, d->names[node], why);
    p->awaited = false;
    if (--r->n_awaited == 0)
        r->have = have_of(r);
}

/* --- what is wanted --------------------------------------------------------------------------------------------------- */

static bool concerns(const struct desired_want *want, size_t node)
{
    return node == want->node || !want->local;
}

int desired_set(struct desired *d, const struct desired_want *want, int64_t now_ms, struct err *e)
{
    if (want->cores < 1 || want->slots < 1 || want->n_cpus < 0 || want->n_cpus > DESIRED_MAX_CPUS)
        return err_set(e, -EINVAL, "%d cores for %d slots of %d CPUs cannot be asked for", want->cores, want->slots,
                       want->n_cpus);
    AUTO_FREE int *cpus = want->n_cpus ? malloc((size_t)want->n_cpus * sizeof *cpus) : NULL;
    struct row *r = cpus || !want->n_cpus ? need_row(d, want->tag, want->local, want->node) : NULL;
    if (!r)
        return err_sys(e, -ENOMEM, "cannot ask for the CPUs of '%s'", want->tag);
    if (cpus)
        memcpy(cpus, want->cpus, (size_t)want->n_cpus * sizeof *cpus);
    free((int *)r->want.cpus);
    r->want = *want;
    r->want.tag = r->tag;
    r->want.cpus = MOVE_PTR(cpus);
    r->stamp = ++d->last_stamp;
    r->first = r->first ? r->first : r->stamp;
    r->until_ms = now_ms + DESIRED_ANSWER_MS;
    r->untold = true;
    r->why[0] = '\0';
    r->n_awaited = 0;
    for (size_t i = 0; i < r->n; i++) {
        r->parts[i].awaited = concerns(want, r->from + i) && d->state[r->from + i] != DESIRED_LOST;
        r->n_awaited += r->parts[i].awaited;
    }
    r->have = have_of(r);
    if (r->n_awaited == 0)
        add_why(r, "", "no node is left that could be asked");
    return 0;
}

static bool is_same(const struct desired_sampling *a, const struct desired_sampling *b)
{
    bool events = a->events && b->events ? strcmp(a->events, b->events) == 0 : a->events == b->events;
    return a->interval_ms == b->interval_ms && strcmp(a->scope, b->scope) == 0 && events;
}

/* One whose helper is yet to come is asked then, unless it is for an end of something that it does not know. */
static void ask_to_measure(const struct desired *d, struct row *r, size_t node)
{
    bool concerned = node == r->sampling.node || !r->sampling.local;
    struct part *p = part_of(r, node);
    if (p)
        p->to_measure = concerned && (r->sampling.interval_ms > 0 || d->state[node] == DESIRED_THERE);
}

int desired_measure(struct desired *d, const char *tag, const struct desired_sampling *how, struct err *e)
{
    const struct desired_sampling *now = desired_measures(d, tag);
    if (now ? is_same(now, how) : how->interval_ms == 0)
        return 0;
    struct row *r = need_row(d, tag, how->local, how->node);
    if (!r)
        return err_sys(e, -ENOMEM, "cannot measure '%s'", tag);
    r->sampling = *how;
    for (size_t i = 0; i < r->n; i++)
        ask_to_measure(d, r, r->from + i);
    return 0;
}

/* Where CPUs are given back, measuring ends by itself. */
void desired_drop(struct desired *d, const char *tag)
{
    struct row *r = row_of(d, tag);
    if (!r)
        return;
    r->sampling.interval_ms = 0;
    for (size_t i = 0; i < r->n; i++) {
        size_t node = r->from + i;
        r->parts[i].to_measure = false;
        r->parts[i].to_release = r->stamp && concerns(&r->want, node) && d->state[node] == DESIRED_THERE;
        r->parts[i].awaited = false;
        if (!r->stamp)
            ask_to_measure(d, r, node);
    }
    if (r->n_awaited > 0) {
        add_why(r, "", "the launch was released first");
        r->have = (struct desired_have){ 0 };
    }
    r->n_awaited = 0;
    r->dropped = true;
}

const struct desired_sampling *desired_measures(const struct desired *d, const char *tag)
{
    const struct row *r = row_of(d, tag);
    return r && r->sampling.interval_ms ? &r->sampling : NULL;
}

bool desired_takes_sample(struct desired *d, size_t node, const char *tag, int64_t now_ms)
{
    enum { SPARE = 100 }; /* what a helper has said may wait until we listen */
    struct row *r = row_of(d, tag);
    struct part *p = r ? part_of(r, node) : NULL;
    if (!p || r->sampling.interval_ms == 0 || (r->sampling.local && node != r->sampling.node))
        return false;
    p->sampled_ms = p->sampled_ms ? p->sampled_ms : now_ms;
    return ++p->samples <= SPARE + 2 * (now_ms - p->sampled_ms) / r->sampling.interval_ms;
}

/* --- what to ask ------------------------------------------------------------------------------------------------------ */

bool desired_next(struct desired *d, struct desired_ask *out)
{
    for (struct row *r = d->rows; r; r = r->next)
        for (size_t i = 0; i < r->n; i++) {
            struct part *p = &r->parts[i];
            *out = (struct desired_ask){ .node = r->from + i, .tag = r->tag };
            if (d->state[out->node] != DESIRED_THERE)
                continue;
            if (!r->dropped && r->stamp && concerns(&r->want, out->node) && p->asked != r->stamp) {
                out->want = &r->want;
                out->stamp = p->asked = r->stamp;
                return true;
            }
            if (p->to_measure || p->to_release) { /* never both */
                out->how = p->to_measure ? &r->sampling : NULL;
                p->to_measure = p->to_release = false;
                return true;
            }
        }
    return false;
}

/* --- what is heard ---------------------------------------------------------------------------------------------------- */

/* A helper that is started again had given everything back (its watchdog does, when it is killed): all its CPUs are in use. */
static struct desired_seen given_back(const struct desired_seen *before, enum desired_node state, int cpus)
{
    struct desired_seen s = *before;
    if (state == DESIRED_LOST || cpus == 0)
        return nothing;
    if (s.cpus > 0)
        s.cpus = cpus;
    s.frequency_khz = s.power_cap_w = 0;
    s.shared[0] = '\0';
    return s;
}

static void node_ended(struct desired *d, struct row *r, size_t node, int cpus)
{
    struct part *p = part_of(r, node);
    if (!p)
        return;
    struct desired_seen now = given_back(&p->seen, d->state[node], cpus);
    r->changed |= see(p, &now);
    p->to_measure &= r->sampling.interval_ms > 0;
    p->to_release = false;
    if (d->state[node] == DESIRED_LOST) {
        settle(d, r, node, "is left out");
        p->to_measure = false;
    }
}

void desired_node_is(struct desired *d, size_t node, enum desired_node state, int cpus)
{
    d->state[node] = state;
    for (struct row *r = d->rows; r; r = r->next) {
        if (state != DESIRED_THERE) {
            node_ended(d, r, node, cpus);
            continue;
        }
        struct part *p = part_of(r, node);
        if (p)
            p->asked = 0;
        if (r->sampling.interval_ms > 0)
            ask_to_measure(d, r, node);
    }
}

void desired_answered(struct desired *d, size_t node, uint64_t stamp, const struct desired_seen *seen, const char *why)
{
    struct row *r = row_by_stamp(d, stamp);
    struct part *p = r ? part_of(r, node) : NULL;
    if (!p)
        return; /* it is over */
    bool changed = see(p, seen ? seen : &nothing), awaited = p->awaited;
    if (!seen && r->sampling.interval_ms > 0)
        ask_to_measure(d, r, node);
    if (stamp == r->stamp)
        settle(d, r, node, why);
    r->changed |= changed && !awaited; /* a late answer, or one of a helper that was started again */
}

void desired_unasked(struct desired *d, size_t node, uint64_t stamp, const char *why)
{
    struct row *r = row_by_stamp(d, stamp);
    if (r)
        settle(d, r, node, why);
}

void desired_changed(struct desired *d, size_t node, const char *tag, const struct desired_seen *seen)
{
    struct row *r = row_of(d, tag);
    struct part *p = r ? part_of(r, node) : NULL;
    if (!p || !r->stamp || !concerns(&r->want, node))
        return; /* it is over */
    (void)see(p, seen);
    r->changed = true;
}

void desired_tick(struct desired *d, int64_t now_ms, int64_t held_up_ms)
{
    sweep(d);
    for (struct row *r = d->rows; r; r = r->next) {
        r->until_ms += held_up_ms;
        for (size_t i = 0; i < r->n && now_ms >= r->until_ms; i++)
            settle(d, r, r->from + i, "has not answered within 5 s");
    }
}

/* --- what to tell ----------------------------------------------------------------------------------------------------- */

bool desired_tell(struct desired *d, struct desired_news *out)
{
    for (int applied = 1; applied >= 0; applied--)
        for (struct row *r = d->rows; r; r = r->next) {
            if (applied ? !r->untold || r->n_awaited > 0 : !r->changed || !r->stamp || r->dropped)
                continue;
            *out = (struct desired_news){ .applied = applied, .want = r->want, .have = applied ? r->have : have_of(r) };
            memcpy(out->tag, r->tag, sizeof out->tag);
            out->want.tag = out->tag;
            out->want.cpus = NULL;
            out->want.n_cpus = 0;
            if (applied)
                memcpy(out->why, r->why, sizeof out->why);
            *(applied ? &r->untold : &r->changed) = false;
            return true;
        }
    return false;
}

bool desired_is_shared(const struct desired *d, const char *tag, size_t *out_node, char who[DESIRED_WHO_MAX])
{
    const struct row *r = row_of(d, tag);
    for (size_t i = 0; r && i < r->n; i++) {
        if (!r->parts[i].seen.shared[0])
            continue;
        *out_node = r->from + i;
        memcpy(who, r->parts[i].seen.shared, DESIRED_WHO_MAX);
        return true;
    }
    return false;
}
