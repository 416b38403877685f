#include "node/request.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/beneath.h"
#include "base/own.h"
#include "node/blobs.h"
#include "node/members.h"
#include "node/meters.h"

static int take_whole(const struct wire_member *m, void *field);
static int take_int(const struct wire_member *m, void *field);
static int take_real(const struct wire_member *m, void *field);
static int take_flag(const struct wire_member *m, void *field);
static int take_text(const struct wire_member *m, void *field);
static int take_tag(const struct wire_member *m, void *field);
static int take_cpus(const struct wire_member *m, void *field);
static int take_interval(const struct wire_member *m, void *field);
static int take_scope(const struct wire_member *m, void *field);
static int take_meters(const struct wire_member *m, void *field);
static int take_watts(const struct wire_member *m, void *field);
static int take_events(const struct wire_member *m, void *field);
static int take_worker(const struct wire_member *m, void *field);
static int take_option(const struct wire_member *m, void *field);
static int take_hash(const struct wire_member *m, void *field);
static int take_name(const struct wire_member *m, void *field);
static int take_ports(const struct wire_member *m, void *field);

static const struct row {
    const char *key;
    size_t field; /* in struct request */
    int (*take)(const struct wire_member *m, void *field);
    const char *must; /* "'key' must be …" */
} rows[REQUEST_MEMBERS] = {
    [REQUEST_ID] = { "id", offsetof(struct request, id), take_whole, "a whole number from 0 to 2^53" },
    [REQUEST_VERB] = { "verb", offsetof(struct request, verb), take_text, "a text" },
    [REQUEST_PROTOCOL] = { "protocol", offsetof(struct request, protocol), take_whole, "a whole number" },
    [REQUEST_TAG] = { "tag", offsetof(struct request, tag), take_tag, "1 to 64 of A-Z a-z 0-9 _ -" },
    [REQUEST_CORES] = { "cores", offsetof(struct request, wish.cores), take_int, "a whole number from 1 to 1048576" },
    [REQUEST_SLOTS] = { "slots", offsetof(struct request, wish.slots), take_int, "a whole number from 1 to 1048576" },
    [REQUEST_LOCAL] = { "local", offsetof(struct request, wish.local), take_flag, "true or false" },
    [REQUEST_CPUS] = { "cpus", offsetof(struct request, wish.given), take_cpus, "a list of at least one CPU" },
    [REQUEST_FREQUENCY] = { "frequency_khz", offsetof(struct request, wish.limits[LIMIT_FREQUENCY]), take_real,
                            "a number above 0" },
    [REQUEST_POWER] = { "power_cap_w", offsetof(struct request, wish.limits[LIMIT_POWER]), take_real,
                        "a number above 0" },
    [REQUEST_INTERVAL] = { "interval_ms", offsetof(struct request, interval_ms), take_interval,
                           "0, or a whole number from 100 to 60000" },
    [REQUEST_SCOPE] = { "scope", offsetof(struct request, scope), take_scope,
                        "'system', 'process', 'cgroup' or 'auto'" },
    [REQUEST_METERS] = { "meters", offsetof(struct request, meters), take_meters,
                         "names with commas between, of at most 256 bytes" },
    [REQUEST_IDLE] = { "idle_w", offsetof(struct request, idle_w), take_watts, "a number from 0 to 100000" },
    [REQUEST_MAX] = { "max_w", offsetof(struct request, max_w), take_watts, "a number from 0 to 100000" },
    [REQUEST_CPU] = { "cpu_w", offsetof(struct request, cpu_w), take_watts, "a number from 0 to 100000" },
    [REQUEST_EVENTS] = { "events", offsetof(struct request, events), take_events,
                         "names of events with commas between, none twice" },
    [REQUEST_ATTEMPT] = { "attempt", offsetof(struct request, attempt), take_whole, "a whole number" },
    [REQUEST_STEPS] = { "steps", offsetof(struct request, steps), take_text, "a text" },
    [REQUEST_ENV] = { "env", offsetof(struct request, env), take_text, "a text" },
    [REQUEST_KEEP] = { "keep", offsetof(struct request, keep), take_text, "a text" },
    [REQUEST_STEP] = { "step", offsetof(struct request, step), take_text, "a text" },
    [REQUEST_LOG_CAP] = { "log_cap", offsetof(struct request, log_cap), take_whole, "a whole number" },
    [REQUEST_FROM] = { "from", offsetof(struct request, from), take_whole, "a whole number" },
    [REQUEST_CREDIT] = { "credit", offsetof(struct request, credit), take_whole, "a whole number" },
    [REQUEST_ACCOUNTED] = { "accounted", offsetof(struct request, accounted), take_whole, "a whole number" },
    [REQUEST_HARD] = { "hard", offsetof(struct request, hard), take_flag, "true or false" },
    [REQUEST_WORKER] = { "worker", offsetof(struct request, worker), take_worker,
                         "two words of at most 64 of A-Z a-z 0-9 . _ $ - with a '*' between" },
    [REQUEST_WORKER_CORES] = { "worker_cores", offsetof(struct request, worker), take_option,
                               "1 to 64 of A-Z a-z 0-9 . _ $ -" },
    [REQUEST_MEMORY] = { "memory", offsetof(struct request, memory), take_whole, "a whole number" },
    [REQUEST_ANSWER] = { "answer", offsetof(struct request, answer), take_text, "a text" },
    [REQUEST_FILES] = { "files", offsetof(struct request, files), take_hash, "64 of 0-9 a-f" },
    [REQUEST_HASH] = { "hash", offsetof(struct request, hash), take_hash, "64 of 0-9 a-f" },
    [REQUEST_SIZE] = { "size", offsetof(struct request, size), take_whole, "a whole number" },
    [REQUEST_DATA] = { "data", offsetof(struct request, data), take_text, "a text" },
    [REQUEST_NAME] = { "name", offsetof(struct request, name), take_name,
                       "a name below a launch's folder, without '..'" },
    [REQUEST_GANG] = { "gang", offsetof(struct request, gang), take_whole, "a whole number" },
    [REQUEST_PORTS] = { "ports", offsetof(struct request, ports), take_ports, "numbers with commas between" },
    [REQUEST_SESSION] = { "session", offsetof(struct request, session), take_tag, "1 to 64 of A-Z a-z 0-9 _ -" },
    [REQUEST_MARK] = { "mark", offsetof(struct request, mark), take_text, "a text" },
};

static int take_whole(const struct wire_member *m, void *field)
{
    const double most = 9007199254740992.0;
    if (m->kind != WIRE_NUMBER || m->number < 0 || m->number > most || m->number != (double)(int64_t)m->number)
        return -EINVAL;
    *(int64_t *)field = (int64_t)m->number;
    return 0;
}

static int take_int(const struct wire_member *m, void *field)
{
    if (m->kind != WIRE_NUMBER || m->number < 1 || m->number > WISH_CORES_MAX || m->number != (int)m->number)
        return -EINVAL;
    *(int *)field = (int)m->number;
    return 0;
}

static int take_real(const struct wire_member *m, void *field)
{
    const double most = 1e9; /* a THz, a GW: what is beyond overflows the files */
    if (m->kind != WIRE_NUMBER || !(m->number > 0) || m->number > most)
        return -EINVAL;
    *(double *)field = m->number;
    return 0;
}

static int take_flag(const struct wire_member *m, void *field)
{
    *(bool *)field = m->truth;
    return m->kind == WIRE_BOOL ? 0 : -EINVAL;
}

static int take_text(const struct wire_member *m, void *field)
{
    *(const char **)field = m->text;
    return m->kind == WIRE_STRING ? 0 : -EINVAL;
}

static int take_ports(const struct wire_member *m, void *field)
{
    *(const char **)field = m->text;
    return m->kind == WIRE_STRING && *m->text && !m->text[strspn(m->text, "0123456789,")] ? 0 : -EINVAL;
}

static int take_tag(const struct wire_member *m, void *field)
{
    *(const char **)field = m->text;
    return m->kind == WIRE_STRING && members_tag_is_valid(m->text) ? 0 : -EINVAL;
}

static int take_cpus(const struct wire_member *m, void *field)
{
    struct cpus *to = field;
    if (m->kind != WIRE_INTS || m->n_ints == 0 || m->n_ints > CPUS_MAX)
        return -EINVAL;
    memcpy(to->v, m->ints, m->n_ints * sizeof *to->v);
    to->n = (int)m->n_ints;
    return 0;
}

static int take_interval(const struct wire_member *m, void *field)
{
    const double ms = m->number;
    if (m->kind != WIRE_NUMBER || (ms != 0 && !(ms >= SAMPLER_INTERVAL_MIN_MS && ms <= SAMPLER_INTERVAL_MAX_MS)) ||
        ms != (int)ms)
        return -EINVAL;
    *(int *)field = (int)ms;
    return 0;
}

static int take_scope(const struct wire_member *m, void *field)
{
    int scope = m->kind == WIRE_STRING ? sampler_scope_find(m->text) : -1;
    if (scope < 0)
        return -EINVAL;
    *(enum sampler_scope *)field = (enum sampler_scope)scope;
    return 0;
}

static int take_meters(const struct wire_member *m, void *field)
{
    *(const char **)field = m->text;
    return m->kind == WIRE_STRING && meter_are_names(m->text) ? 0 : -EINVAL;
}

static int take_watts(const struct wire_member *m, void *field)
{
    if (m->kind != WIRE_NUMBER || !(m->number >= 0 && m->number <= METERS_WATTS_MAX))
        return -EINVAL;
    *(double *)field = m->number;
    return 0;
}

static int take_events(const struct wire_member *m, void *field)
{
    return m->kind == WIRE_STRING ? event_choice_read(field, m->text) : -EINVAL;
}

static int take_worker(const struct wire_member *m, void *field)
{
    return m->kind == WIRE_STRING ? members_worker_words(field, m->text) : -EINVAL;
}

static int take_option(const struct wire_member *m, void *field)
{
    return m->kind == WIRE_STRING ? members_worker_option(field, m->text) : -EINVAL;
}

static int take_hash(const struct wire_member *m, void *field)
{
    *(const char **)field = m->text;
    return m->kind == WIRE_STRING && blobs_is_hash(m->text) ? 0 : -EINVAL;
}

static int take_name(const struct wire_member *m, void *field)
{
    *(const char **)field = m->text;
    return m->kind == WIRE_STRING && beneath_is_name(m->text) ? 0 : -EINVAL;
}

static void clear(struct request *r)
{
    r->has = 0;
    r->id = r->protocol = 0;
    r->verb = r->tag = NULL;
    r->wish.cores = r->wish.slots = r->wish.given.n = 0; /* the list's 16 KB are not worth clearing */
    r->wish.local = false;
    memset(r->wish.limits, 0, sizeof r->wish.limits);
    r->interval_ms = 0;
    r->scope = SAMPLER_AUTO;
    r->meters = NULL;
    r->idle_w = r->cpu_w = r->max_w = 0;
    r->events = (struct event_choice){ 0 };
    r->attempt = r->log_cap = r->from = r->credit = r->accounted = 0;
    r->steps = r->env = r->keep = r->step = NULL;
    r->hard = false;
    r->memory = r->size = 0;
    r->answer = r->files = r->hash = r->data = r->name = r->session = r->mark = NULL;
    r->worker = (struct members_worker){ 0 };
}

int request_read(struct request *out, const struct wire *w, struct err *e)
{
    clear(out);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wire_member *m = wire_find(w, rows[i].key);
        if (!m || m->kind == WIRE_NULL)
            continue;
        if (rows[i].take(m, (char *)out + rows[i].field) < 0)
            return err_set(e, -EINVAL, "'%s' must be %s", rows[i].key, rows[i].must);
        out->has |= REQUEST_BIT(i);
    }
    return request_needs(out, REQUEST_BIT(REQUEST_ID) | REQUEST_BIT(REQUEST_VERB), e);
}

int request_needs(const struct request *r, uint64_t members, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if ((members & ~r->has) & REQUEST_BIT(i))
            return err_set(e, -EINVAL, "'%s' is missing", rows[i].key);
    return 0;
}
