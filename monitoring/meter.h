/* Meters: sources of energy or power. One row per meter, in one table; what a row reads is handed over by monitoring/ledger as joules of
 * nodes, trials and epochs. What a meter cannot tell is absent, and says why; it is never 0. */
#ifndef MONITORING_METER_H
#define MONITORING_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "monitoring/perf_ops.h"

enum { METER_NODE_MAX = 64, METER_WHY_MAX = 160, METER_READINGS_MAX = 64 };

enum meter_kind {
    METER_ENERGY, /* joules of the interval between two reads */
    METER_POWER,  /* watts at the moment of a read */
    METER_CPU, /* seconds that all CPUs of a node were busy, in the interval between two reads: what joules are divided by */
};

enum meter_state {
    METER_OK,
    METER_FIRST,     /* nothing to take a difference from yet: no value */
    METER_DISCARDED, /* the interval is implausible: no value, a gap */
    METER_FAILED,    /* it could not be read now: no value, a gap */
    METER_STATES
};

/* "ok", "first", "discarded", "failed"; -1: none of them. */
const char *meter_state_name(enum meter_state s);
int meter_state_find(const char *name);

/* Names of a-z, 0-9 and '-' with one comma between two, at most METER_NAMES_MAX bytes in all. */
enum { METER_NAMES_MAX = 256 };
#define METER_NAME_BYTES "abcdefghijklmnopqrstuvwxyz0123456789-"
bool meter_are_names(const char *text);

struct meter_reading {
    char node[METER_NODE_MAX + 1]; /* "": the machine that read it; else whose outlet it is */
    enum meter_state state;
    double from_ms, to_ms;   /* since 1970, with fraction; of power: twice the moment at which it held */
    double value;            /* J, W, or s; NAN unless ok */
    double error;            /* at most so much off, by the meter's own steps: same unit; NAN: not known */
    char why[METER_WHY_MAX]; /* one plain line where the state is discarded or failed; else "" */
};

/* Whose energy an outlet's is. */
struct meter_outlet {
    char *node;
    int outlet; /* as the meter counts them */
};

/* How one meter is read. Zeros stand for what is in brackets. All is borrowed for as long as the meter is open. */
struct meter_cfg {
    const char *sysfs, *proc;    /* ["/sys"], ["/proc"] */
    const struct perf_ops *ops;  /* [perf_ops_kernel] */
    int64_t (*now_ns)(void);     /* [CLOCK_REALTIME] since 1970 */
    double max_w;                /* [2000] a zone or an outlet that takes more in an interval is implausible */
    double idle_w, cpu_w;        /* estimate: of the node when idle, and of each busy CPU */
    const char *file;            /* pcm: the CSV that is followed */
    const char *program;         /* pcm: started when there is no file */
    const char *url;             /* pdu: "http://HOST[:PORT]" */
    const char *path;            /* pdu: ["/statusjsn.js?components=16384"] */
    const char *value;           /* pdu: where the watts stand in the answer, ["sensor_values/1/values/{outlet}/4/v"] */
    const char *host;            /* snmp: "HOST[:PORT]" */
    const char *model;           /* snmp: "apc", "raritan": their OIDs and scales */
    const char *oid;             /* snmp: instead of a model; {outlet} in it is replaced */
    const char *credential_file; /* snmp: community (v2c), or USER:PASSWORD (v3); [none: community "public"] */
    int version;                 /* snmp: [2], 3 */
    double scale;                /* pdu, snmp: watts of one unit [1; of a model, its own] */
    const struct meter_outlet *outlets;
    size_t n_outlets;
    int timeout_ms; /* pdu, snmp [2000] of a whole read */
};

struct meter; /* open; of one thread at a time */

struct meter_ops {
    const char *name, *help;
    enum meter_kind kind;
    bool local;     /* reads the machine it runs on; else it is asked over the network, for any node */
    bool estimated; /* by a model: never mixed with what is measured */

    /* Can it be read here? 0, or -errno. Appends to `detail` in a few words what was found ("2 packages, 2 dram"), and to `fix` what
     * mends it, if anything does. Never changes anything; of a meter of the network it asks once. */
    int (*probe)(const struct meter_cfg *cfg, struct buf *detail, struct buf *fix);

    /* -ENODEV: there is none here; -EACCES; -EINVAL: cfg lacks something; -errno. The message holds the fix. */
    int (*open)(struct meter **out, const struct meter_cfg *cfg, struct err *e);

    /* May block up to the time-out (local ones don't): for a worker. At most METER_READINGS_MAX readings to `out`; returns how
     * many, -ENOMEM. One that fails is a reading that says so, and the next read tries again. */
    int (*read)(struct meter *m, struct meter_reading *out);

    void (*close)(struct meter *m); /* NULL is fine */
};

/* Those that read their own machine (what pipetune-node has), and all: both end with a NULL. */
extern const struct meter_ops *const meters_local[]; /* meters_local.c */
extern const struct meter_ops *const meters[];       /* meters.c */

const struct meter_ops *meter_find_local(const char *name); /* NULL: none */
const struct meter_ops *meter_find(const char *name);

#endif
