/* Where PDUs keep their watts in SNMP, and what the values say. Pure: knows no SNMP library.
 *
 *     1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.{outlet}        {outlet} stands for one arc, the outlet's number */
#ifndef MONITORING_SNMP_OID_H
#define MONITORING_SNMP_OID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "monitoring/meter.h"

enum { SNMP_OID_ARCS = 128 };

struct snmp_oid {
    uint32_t arc[SNMP_OID_ARCS];
    size_t n;
};

/* What is asked of each outlet. */
enum snmp_asked {
    SNMP_POWER,
    SNMP_DIGITS,    /* how many decimals the power has: 10 of 101 is 10.1 */
    SNMP_AVAILABLE, /* 1: it is measured now; where there is no such value, it is */
    SNMP_ASKED
};

struct snmp_model {
    const char *name, *help;
    const char *oid[SNMP_ASKED]; /* templates; NULL: not asked */
    double scale;                /* watts of one unit of power */
};

enum snmp_kind {
    SNMP_NUMBER,
    SNMP_NO_OBJECT,   /* the agent does not know what is asked for */
    SNMP_NO_INSTANCE, /* it does, but not for this outlet */
    SNMP_NO_NUMBER,
};

struct snmp_value {
    enum snmp_kind kind;
    double number, step; /* step: the worth of its last digit */
};

/* Two arcs or more, with or without a dot in front; each {outlet} is replaced. -EINVAL says what is wrong; *out is then untouched. */
int snmp_oid_read(struct snmp_oid *out, const char *text, int outlet, struct err *e);
bool snmp_oid_has_outlet(const char *text);

/* NULL: no such model. The list ends with a row whose name is NULL. */
const struct snmp_model *snmp_oid_model(const char *name);
extern const struct snmp_model snmp_oid_models[];

/* A text that is a decimal number ("41.5") is that number, any other none. */
struct snmp_value snmp_oid_text(const char *text, size_t len);

/* Fills state, value, error and why of an outlet's reading. error is one step of the meter's: whether it rounds is not known. More than max_w
 * is discarded; less than 0, which PDUs say of what they do not measure, is failed. */
void snmp_oid_power(struct meter_reading *out, const struct snmp_model *m, double max_w,
                    const struct snmp_value v[SNMP_ASKED]);

/* "HOST[:PORT]", "[V6][:PORT]" or a bare V6, in its parts; port 161 unless given. -EINVAL. */
int snmp_oid_host(const char *text, char out_host[256], char out_port[8], struct err *e);

#endif
