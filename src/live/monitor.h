/* The collectors as a daemon of one machine: events in scope system, meters, what applications send over UDP, and figures of the daemon
 * itself, as lines to an InfluxDB. Needs no study; a small store of its own keeps what is not delivered. */
#ifndef LIVE_MONITOR_H
#define LIVE_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "live/deliver.h"
#include "live/relay.h"
#include "monitoring/meters_cfg.h"

struct monitor_cfg {
    int interval_ms;
    const struct meters_entry *meters; /* how long the CPUs were busy is always read besides */
    size_t n_meters;
    bool events;
    const bool *only;        /* of the 58 events those that are counted; NULL: all */
    const char *udp_address; /* NULL: nothing is listened to */
    uint16_t udp_port;
    const struct deliver_cfg *deliver; /* NULL: lines go to monitor_ops.lines */
    const char *dir;                   /* then: of its store; made where it is not there */
    int64_t drain_ms;                  /* how long the end may take */
    bool once; /* ends after one round: a second reading of every meter, one sample of the events */
};

struct monitor_ops {
    /* One line for people: a change, a loss. */
    void (*note)(void *ctx, const char *text);
    /* Whole lines, when they are not delivered. Negative errno ends the daemon. */
    int (*lines)(void *ctx, const char *bytes, size_t len);
};

/* What became of everything. */
struct monitor_result {
    struct deliver_counts counts; /* of what is not delivered but handed over: produced and stored */
    uint64_t samples, missed;     /* samples of events and readings of meters; ticks */
    struct relay_counts relay;    /* what applications sent */
    uint64_t unwritten;           /* points that there was no memory for */
};

/* Runs until SIGTERM, SIGINT or SIGHUP, which are taken while it runs. A meter or an event that cannot be had is told and left out.
 * -EBUSY: another one has the folder; what store_open(), deliver_open() and relay_open() say; -ENOMEM; what `lines` said. *out is set in any case. */
int monitor_run(const struct monitor_cfg *cfg, const struct monitor_ops *ops, void *ctx, struct monitor_result *out,
                struct err *e);

#endif
