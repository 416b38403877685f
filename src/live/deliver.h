/* Lines on their way to an InfluxDB (or, for "udp://HOST:PORT", a Telegraf): monitoring/sender on the loop, its jobs on workers. Optional
 * everywhere: what cannot be delivered waits in a spool, and nobody else waits for it. */
#ifndef LIVE_DELIVER_H
#define LIVE_DELIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "core/config.h"
#include "monitoring/sender.h"

/* All is copied. */
struct deliver_cfg {
    const char *url, *database,
        *bucket; /* as in monitoring/influx; with neither database nor bucket the database is "energy" */
    const char *org, *retention, *credential_file, *ca_file; /* NULL: none */
    bool allow_plain;                                        /* the credential may go to another machine over http:// */
    const char *dir;                                         /* spool and quarantine are made in it */
};

/* As a config's section "influxdb" has it. */
struct deliver_cfg deliver_cfg_of(const struct config *c, const char *dir);

struct deliver;

struct deliver_ops {
    /* One line for people: a change of state, a loss (sender_note()). From the loop, never from within a call below. */
    void (*note)(void *ctx, const char *text);
};

/* Connects nothing yet; blocks while it reads what is in the spool, and asks DNS for a Telegraf's host (one that is not known now is asked
 * for again with each batch). Keeps `loop`, `ops` and `ctx`. -EINVAL: the url, or database and bucket both; -EACCES: the credential file; -EBUSY:
 * another process has the spool; -errno. */
int deliver_open(struct deliver **out, uv_loop_t *loop, const struct deliver_cfg *cfg, const struct deliver_ops *ops,
                 void *ctx, struct err *e);

/* Would deliver_open() take the address and the credential? Makes nothing, and asks nobody; `dir` may be NULL. Errors as there. */
int deliver_check(const struct deliver_cfg *cfg, struct err *e);

/* Takes `lines` whole lines; never fails: what finds no room is counted. */
void deliver_push(struct deliver *d, const char *bytes, size_t len, uint32_t lines);

struct sender_counts deliver_counts(const struct deliver *d);
uint64_t deliver_spool_bytes(const struct deliver *d);

/* From now on nothing is pushed: what can be is delivered within `within_ms`, the rest goes to the spool; then `ended` is called from the
 * loop, once. A request that is under way at that time is waited for, ten seconds at most. */
void deliver_end(struct deliver *d, int64_t within_ms, void (*ended)(void *ctx));

/* After `ended`, or for a deliver that is not to be waited for: handles are closed by the loop. NULL is fine. */
void deliver_free(struct deliver *d);

/* Every line that was made is at the server: none waits, was rejected or lost. */
bool deliver_complete(const struct sender_counts *c);

/* "produced 1200 = stored 1200 + spooled 0 + quarantined 0 + dropped 0". Says so when something still waits. */
void deliver_account(const struct sender_counts *c, char *text, size_t room);

#endif
