/* The meter row `snmp`: the watts of a PDU's outlets, asked over SNMP, version 2c or 3. What stands where is in snmp_oid.h.
 *
 * One GET asks for all outlets, or as many as the agent's answer has room for; each outlet is one reading, whose `node` is the outlet's. The
 * moment of a reading is the middle of its request. An outlet that the agent does not know, or that does not measure, is a failed reading;
 * the others still hold. A request without an answer is sent once more, after half of the time that is left.
 *
 * The credential file holds the community of version 2c. Of version 3 it holds USER:PASSWORD, for authentication alone (SHA), or
 * USER:PASSWORD:PRIVACY, where what is said is encrypted (AES-128), too; a password then has no colon. Each has at least 8 characters.
 *
 * open() asks nobody: a PDU that is switched off is a meter whose readings fail. read() resolves the host's name whenever it has lost the
 * PDU; that is the one thing that timeout_ms does not bound. */
#ifndef MONITORING_SNMP_H
#define MONITORING_SNMP_H

#include "monitoring/meter.h"

extern const struct meter_ops meter_snmp;

#endif
