/* One SNMP agent and what is asked of it, by net-snmp. No file of that library's is read or written, and it prints nothing.
 *
 * An agent is of one thread at a time; different agents may be asked at the same time by different threads, and none waits for another's
 * answer. */
#ifndef MONITORING_SNMP_AGENT_H
#define MONITORING_SNMP_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "monitoring/snmp_oid.h"

enum { SNMP_GET_MAX = 48 }; /* values of one GET: about as many as an answer of 1400 bytes has room for */

struct snmp_agent_cfg {
    const char *host;            /* "HOST[:PORT]" */
    const char *credential_file; /* as in snmp.h; NULL: the community "public" */
    int version;                 /* 2, 3 */
};

struct snmp_agent;

/* Reads the credentials, asks nobody. -EINVAL, -EACCES (as credential_read()), -ENOMEM, -errno. */
int snmp_agent_open(struct snmp_agent **out, const struct snmp_agent_cfg *cfg, struct err *e);
void snmp_agent_close(struct snmp_agent *a); /* NULL is fine */

/* One GET. */
struct snmp_get {
    const struct snmp_oid *oids;
    size_t n;                              /* at most SNMP_GET_MAX */
    int64_t deadline_ms;                   /* clock_ms() */
    struct snmp_value value[SNMP_GET_MAX]; /* out, when 0 is returned: as many, in the order asked for */
    size_t refused;                        /* out, of -EINVAL: which of them */
    int64_t took_ms;                       /* out, always: from asking to the answer, or to giving up */
};

/* Blocks until the deadline at most, not counting DNS. -E2BIG: ask for fewer; -EINVAL: the agent refuses to answer because of one value;
 * -ETIMEDOUT; -EACCES: user or password; -EPROTO: no answer to what was asked; -EHOSTUNREACH, -ENOMEM, -errno. After those the next
 * call begins anew; of version 3 so does this one, once, when half of the time is over, since an agent that was restarted may be
 * another engine and not say so. */
int snmp_agent_get(struct snmp_agent *a, struct snmp_get *g, struct err *e);

#endif
