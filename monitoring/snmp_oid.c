#include "monitoring/snmp_oid.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/decimal.h"

/* PowerNet-MIB: rPDU2OutletMeteredStatusPower in W, -1 where outlets are not metered; rPDU2DeviceStatusPower of the whole PDU, by its
 * number in a chain, in 1/100 kW. PDU2-MIB: measurementsOutletSensorValue, outletSensorDecimalDigits and
 * measurementsOutletSensorIsAvailable of the sensor activePower (5), all of PDU 1. */
const struct snmp_model snmp_oid_models[] = {
    { "apc", "outlets of an APC metered-by-outlet rack PDU", { "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.{outlet}" }, 1 },
    { "apc-device", "a whole APC rack PDU, in steps of 10 W", { "1.3.6.1.4.1.318.1.1.26.4.3.1.5.{outlet}" }, 10 },
    { "raritan",
      "outlets of a Raritan PX2 or PX3",
      { "1.3.6.1.4.1.13742.6.5.4.3.1.4.1.{outlet}.5", "1.3.6.1.4.1.13742.6.3.5.4.1.7.1.{outlet}.5",
        "1.3.6.1.4.1.13742.6.5.4.3.1.2.1.{outlet}.5" },
      1 },
    { .name = NULL },
};

const struct snmp_model *snmp_oid_model(const char *name)
{
    for (const struct snmp_model *m = snmp_oid_models; m->name; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

/* --- OIDs --- */

static const char outlet_word[] = "{outlet}";
enum { OUTLET_WORD = sizeof outlet_word - 1 };

bool snmp_oid_has_outlet(const char *text)
{
    return strstr(text, outlet_word) != NULL;
}

/* One arc; moves on behind it. False: there is none. */
static bool read_arc(const char **at, int outlet, uint32_t *out)
{
    uint64_t arc = 0;
    size_t digits = strspn(*at, "0123456789");
    if (digits == 0 && strncmp(*at, outlet_word, OUTLET_WORD) == 0) {
        *at += OUTLET_WORD;
        *out = (uint32_t)outlet;
        return true;
    }
    for (size_t i = 0; i < digits && arc <= UINT32_MAX; i++)
        arc = arc * 10 + (uint64_t)((*at)[i] - '0');
    *at += digits;
    *out = (uint32_t)arc;
    return digits > 0 && arc <= UINT32_MAX;
}

/* BER packs the first two arcs into one number. */
static bool begins_well(const struct snmp_oid *o)
{
    return o->n >= 2 && o->arc[0] <= 2 && (o->arc[0] == 2 ? o->arc[1] <= UINT32_MAX - 80 : o->arc[1] < 40);
}

int snmp_oid_read(struct snmp_oid *out, const char *text, int outlet, struct err *e)
{
    struct snmp_oid got = { .n = 0 };
    const char *at = text + (*text == '.');
    bool whole = outlet >= 0;
    for (bool more = whole; more; at += more) {
        whole = got.n < SNMP_OID_ARCS && read_arc(&at, outlet, &got.arc[got.n]);
        got.n += whole;
        more = whole && *at == '.';
    }
    if (!whole || *at || !begins_well(&got))
        return err_set(e, -EINVAL, "'%.*s' with outlet %d is no OID, like 1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.{outlet}",
                       SNMP_OID_ARCS, text, outlet);
    *out = got;
    return 0;
}

/* --- hosts --- */

int snmp_oid_host(const char *text, char out_host[256], char out_port[8], struct err *e)
{
    bool brackets = *text == '[';
    const char *colon = strchr(text, ':');
    bool bare = !brackets && colon && strchr(colon + 1, ':');
    const char *begin = text + brackets;
    const char *end = brackets ? strchr(begin, ']') : bare ? NULL : colon;
    end = end || brackets ? end : begin + strlen(begin);
    const char *rest = end ? end + brackets : "";
    const char *port = *rest == ':' ? rest + 1 : "161";
    size_t len = end ? (size_t)(end - begin) : 0, digits = strspn(port, "0123456789");
    bool good = len > 0 && len < 256 && (!*rest || *rest == ':') && digits > 0 && digits <= 5 && !port[digits];
    for (size_t i = 0; good && i < len; i++)
        good = begin[i] > ' ' && begin[i] < 0x7f && begin[i] != '/' && begin[i] != '[' && begin[i] != ']';
    if (!good)
        return err_set(e, -EINVAL, "'%.256s' must be HOST or HOST:PORT", text);
    (void)snprintf(out_host, 256, "%.*s", (int)len, begin);
    (void)snprintf(out_port, 8, "%s", port);
    return 0;
}

/* --- values --- */

struct snmp_value snmp_oid_text(const char *text, size_t len)
{
    struct snmp_value v = { .kind = SNMP_NO_NUMBER };
    if (decimal_read(text, len, ".", &v.number, &v.step))
        v.kind = SNMP_NUMBER;
    return v;
}

static void no_value(struct meter_reading *out, enum meter_state state, const char *why)
{
    out->state = state;
    out->value = out->error = NAN;
    (void)snprintf(out->why, sizeof out->why, "%s", why);
}

/* Why there is no power to speak of; NULL: there is. */
static const char *missing(const struct snmp_model *m, const struct snmp_value v[SNMP_ASKED])
{
    const struct snmp_value *power = &v[SNMP_POWER], *digits = &v[SNMP_DIGITS], *available = &v[SNMP_AVAILABLE];
    if (power->kind == SNMP_NO_OBJECT)
        return "the PDU has no such value: is it of this model?";
    if (power->kind == SNMP_NO_INSTANCE)
        return "the PDU has no such outlet";
    if (m->oid[SNMP_AVAILABLE] && available->kind == SNMP_NUMBER && available->number != 1)
        return "the PDU says that it does not measure this outlet now";
    if (power->kind != SNMP_NUMBER || !isfinite(power->number))
        return "what the PDU has there is no number";
    if (power->number < 0)
        return "the PDU does not measure this outlet's power";
    if (m->oid[SNMP_DIGITS] && !(digits->kind == SNMP_NUMBER && digits->number >= 0 && digits->number <= 9))
        return "the PDU does not tell how many decimals its power has: give \"scale\"";
    return NULL;
}

void snmp_oid_power(struct meter_reading *out, const struct snmp_model *m, double max_w,
                    const struct snmp_value v[SNMP_ASKED])
{
    const char *why = missing(m, v);
    if (why) {
        no_value(out, METER_FAILED, why);
        return;
    }
    double unit = m->scale;
    if (m->oid[SNMP_DIGITS])
        unit /= pow(10, v[SNMP_DIGITS].number);
    double watts = v[SNMP_POWER].number * unit;
    if (watts > max_w) {
        char text[METER_WHY_MAX];
        (void)snprintf(text, sizeof text, "%g W is more than max_w, %g W", watts, max_w);
        no_value(out, METER_DISCARDED, text);
        return;
    }
    out->state = METER_OK;
    out->value = watts;
    double step = v[SNMP_POWER].step * unit;
    out->error = step > 0 ? step : NAN; /* a text may claim more digits than a double has */
    out->why[0] = '\0';
}
