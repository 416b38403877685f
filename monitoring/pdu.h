/* The meter row `pdu`: the watts of a PDU's outlets, read over HTTP from its status page, which is JSON (pdu_json.h).
 *
 * One read is one request, which answers for all outlets: one reading of each, whose node is the outlet's. The moment of a reading is
 * the middle of the request. Its error is half of the last digit that the PDU shows (0.5 W of one that shows whole watts); how old the
 * PDU's own figure is, it does not say. 0 W is what an outlet takes that is switched off, and counts as measured.
 *
 * Failed: no whole answer within the time-out, another status than 200 (a redirect is not followed), more than PDU_BODY_MAX bytes,
 * something that is no JSON or has no number at the path. Discarded: less than 0 W, or more than max_w. */
#ifndef MONITORING_PDU_H
#define MONITORING_PDU_H

#include "monitoring/meter.h"

#define PDU_PAGE "/statusjsn.js?components=16384"
#define PDU_VALUE "sensor_values/1/values/{outlet}/4/v"

enum { PDU_TIMEOUT_MS = 2000 };

extern const struct meter_ops meter_pdu;

#endif
