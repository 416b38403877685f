/* The config's "monitoring.meters" and "powerMeter": which meters are read, and how. Pure.
 *
 *     "meters": "rapl"    "meters": ["rapl", {"name": "estimate", "idle_w": 40, "cpu_w": 6}]
 *     {"name": "pdu", "url": "http://HOST[:PORT]", "outlets": {"NODE": OUTLET, …}, "path", "value", "scale", "max_w", "idle_w", "timeout_ms"}
 *     {"name": "snmp", "host": "HOST[:PORT]", "outlets": {…}, "model": "apc"|"raritan" or "oid", "version": 2|3, "credential_file", "scale", …}
 *     {"name": "pcm", "file": "PATH"}
 *
 * Keys mean what they do in struct meter_cfg. "idle_w" of any meter is the idle baseline of each node. The
 * estimate is idle_w + cpu_w for each busy CPU; a small computer, where the config does not say what it is (METERS_IDLE_W, METERS_CPU_W). */
#ifndef MONITORING_METERS_CFG_H
#define MONITORING_METERS_CFG_H

#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "monitoring/meter.h"

#define METERS_IDLE_W 10.0
#define METERS_CPU_W 5.0

struct meters_entry {
    const struct meter_ops *meter;
    struct meter_cfg cfg; /* its texts are the document's */
    double idle_w;        /* NAN: not given, and not the estimate's */
};

struct meters_cfg {
    struct meters_entry *v; /* in the order written; no meter twice, but pdu and snmp, of which there may be many */
    size_t n;
};

/* Nothing where there is no such key. -EINVAL names the line and the key; -ENOMEM. `doc` must outlive it. */
int meters_cfg_read(struct meters_cfg *out, const struct json_doc *doc, struct err *e);
void meters_cfg_done(struct meters_cfg *m);

#endif
