/* OIDs, hosts and numbers as texts, and any values at all: each is read or refused, within its bounds. Input: a byte that picks a model, an
 * outlet's number in two bytes, then a text that is taken for each of the three. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/snmp_oid.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_oid(const char *text, int outlet)
{
    struct snmp_oid o = { .n = 999 };
    struct err e = { 0 };
    int rc = snmp_oid_read(&o, text, outlet, &e);
    check(rc == 0 ? o.n >= 2 && o.n <= SNMP_OID_ARCS && o.arc[0] <= 2 : o.n == 999 && e.code == rc);
}

static void check_host(const char *text)
{
    char host[256] = "?", port[8] = "?";
    if (snmp_oid_host(text, host, port, NULL) < 0)
        check(host[0] == '?' && port[0] == '?');
    else
        check(strlen(host) > 0 && strlen(host) < sizeof host && strspn(port, "0123456789") == strlen(port));
}

static void check_power(const struct snmp_model *m, const char *text, size_t len)
{
    struct snmp_value v[SNMP_ASKED] = { snmp_oid_text(text, len), snmp_oid_text(text, len / 2),
                                        snmp_oid_text(text, 1) };
    struct meter_reading r = { .state = METER_STATES };
    snmp_oid_power(&r, m, 2000, v);
    check(r.state < METER_STATES && strlen(r.why) < sizeof r.why);
    check((r.state == METER_OK) == isfinite(r.value));
    check(r.state != METER_OK || (r.value >= 0 && r.value <= 2000 && !(r.error <= 0) && !*r.why));
    check(r.state == METER_OK || *r.why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    const struct snmp_model *m = snmp_oid_models;
    for (int i = data[0] % 3; i > 0 && m[1].name; i--)
        m++;
    size_t len = size - 3;
    char *text = fuzz_text(data + 3, len);
    check_oid(text, data[1] << 8 | data[2]);
    check_host(text);
    check_power(m, text, len);
    free(text);
    return 0;
}
