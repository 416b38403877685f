/* One request to `pipetune-node serve` (serve.h draws them), read from its line and checked member by member. */
#ifndef NODE_REQUEST_H
#define NODE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/wire.h"
#include "node/members.h"
#include "node/sampler.h"
#include "node/wish.h"

enum request_member {
    REQUEST_ID,
    REQUEST_VERB,
    REQUEST_PROTOCOL,
    REQUEST_TAG,
    REQUEST_CORES,
    REQUEST_SLOTS,
    REQUEST_LOCAL,
    REQUEST_CPUS,
    REQUEST_FREQUENCY,
    REQUEST_POWER,
    REQUEST_INTERVAL,
    REQUEST_SCOPE,
    REQUEST_METERS,
    REQUEST_IDLE,
    REQUEST_CPU,
    REQUEST_MAX,
    REQUEST_EVENTS,
    REQUEST_ATTEMPT,
    REQUEST_STEPS,
    REQUEST_ENV,
    REQUEST_KEEP,
    REQUEST_STEP,
    REQUEST_LOG_CAP,
    REQUEST_FROM,
    REQUEST_CREDIT,
    REQUEST_ACCOUNTED,
    REQUEST_HARD,
    REQUEST_WORKER,
    REQUEST_WORKER_CORES,
    REQUEST_MEMORY,
    REQUEST_ANSWER,
    REQUEST_FILES,
    REQUEST_HASH,
    REQUEST_SIZE,
    REQUEST_DATA,
    REQUEST_NAME,
    REQUEST_GANG,
    REQUEST_PORTS,
    REQUEST_SESSION,
    REQUEST_MARK,
    REQUEST_MEMBERS,
};

#define REQUEST_BIT(member) (UINT64_C(1) << (member))

struct request {
    uint64_t has; /* REQUEST_BITs of what is there and not null */
    int64_t id, protocol;
    const char *verb, *tag; /* of the line */
    struct wish wish;
    int interval_ms; /* 0: no more samples, or readings */
    enum sampler_scope scope;
    const char *meters;          /* of the line: names, meters.h */
    double idle_w, cpu_w, max_w; /* 0 when they are left out */
    struct event_choice events;  /* all when they are left out */
    int64_t attempt, log_cap, from, credit, accounted;
    const char *steps, *env, *keep, *step; /* of the line: lists of launches.h; NULL when they are left out */
    bool hard;
    int64_t memory, size, gang;
    const char *ports;                               /* of the line: digits and commas */
    const char *answer, *files, *hash, *data, *name; /* of the line; hashes and names are checked */
    const char *session, *mark;                      /* of the line; a session is a tag */
    struct members_worker worker;                    /* zeroed where they are left out */
};

/* Unknown members are left alone. -EINVAL: one has the wrong type or is out of bounds, or id or verb is missing; `out` then still has
 * the id when that could be read. */
int request_read(struct request *out, const struct wire *w, struct err *e);

/* -EINVAL: names the first of these (REQUEST_BITs) that is missing. */
int request_needs(const struct request *r, uint64_t members, struct err *e);

#endif
