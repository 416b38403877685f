#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/snmp_oid.h"

/* --- OIDs --- */

static char *text_of(const struct snmp_oid *o)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < o->n; i++)
        buf_printf(&b, "%s%u", i ? "." : "", o->arc[i]);
    return buf_take(&b);
}

static const struct {
    const char *name, *text;
    int outlet;
    const char *want; /* NULL: refused */
} oids[] = {
    { "an OID is read", "1.3.6.1", 1, "1.3.6.1" },
    { "a dot may stand in front", ".1.3.6.1", 1, "1.3.6.1" },
    { "the outlet takes its place", "1.3.{outlet}.5", 24, "1.3.24.5" },
    { "the outlet may stand at the end", "1.3.{outlet}", 0, "1.3.0" },
    { "the outlet may stand twice", "1.3.{outlet}.{outlet}", 7, "1.3.7.7" },
    { "the largest arc", "1.3.4294967295", 1, "1.3.4294967295" },
    { "an arc beyond 32 bits", "1.3.4294967296", 1, NULL },
    { "an arc beyond 64 bits", "1.3.18446744073709551617", 1, NULL },
    { "nothing", "", 1, NULL },
    { "a dot", ".", 1, NULL },
    { "one arc", "1", 1, NULL },
    { "a dot at the end", "1.3.", 1, NULL },
    { "two dots", "1..3", 1, NULL },
    { "a name", "iso.3.6", 1, NULL },
    { "a blank", "1.3 .6", 1, NULL },
    { "a sign", "1.3.-6", 1, NULL },
    { "half of an arc", "1.3.1{outlet}", 1, NULL },
    { "an unknown word", "1.3.{node}", 1, NULL },
    { "an outlet below 0", "1.3.{outlet}", -1, NULL },
    { "a first arc that there is not", "3.1.1", 1, NULL },
    { "a second arc beyond its room", "1.40.1", 1, NULL },
    { "a second arc has more room below 2", "2.999.1", 1, "2.999.1" },
};

static void oids_are_read_and_outlets_put_in(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(oids); i++) {
        struct snmp_oid o = { .n = 77 };
        struct err e = { 0 };
        int rc = snmp_oid_read(&o, oids[i].text, oids[i].outlet, &e);
        if (!oids[i].want && (rc != -EINVAL || o.n != 77 || !strstr(e.text, oids[i].text)))
            fail_msg("%s: got %d, %zu arcs, '%s'", oids[i].name, rc, o.n, e.text);
        if (!oids[i].want)
            continue;
        AUTO_FREE char *got = rc == 0 ? text_of(&o) : NULL;
        if (!got || strcmp(got, oids[i].want) != 0)
            fail_msg("%s: got %d %s, want %s", oids[i].name, rc, got ? got : e.text, oids[i].want);
    }
}

static void an_oid_has_at_most_its_arcs(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    struct snmp_oid o;
    buf_puts(&b, "1");
    for (int i = 1; i < SNMP_OID_ARCS; i++)
        buf_puts(&b, ".1");
    assert_int_equal(snmp_oid_read(&o, buf_text(&b), 1, NULL), 0);
    assert_int_equal(o.n, SNMP_OID_ARCS);
    buf_puts(&b, ".1");
    assert_int_equal(snmp_oid_read(&o, buf_text(&b), 1, NULL), -EINVAL);
}

static void every_model_has_oids_that_can_be_read_and_differ_by_outlet(void **state)
{
    (void)state;
    size_t n = 0;
    for (const struct snmp_model *m = snmp_oid_models; m->name; m++, n++) {
        struct snmp_oid one, two;
        assert_ptr_equal(snmp_oid_model(m->name), m);
        assert_true(m->scale > 0 && m->help && m->oid[SNMP_POWER]);
        for (int k = 0; k < SNMP_ASKED; k++)
            if (m->oid[k]) {
                assert_true(snmp_oid_has_outlet(m->oid[k]));
                assert_int_equal(snmp_oid_read(&one, m->oid[k], 1, NULL), 0);
                assert_int_equal(snmp_oid_read(&two, m->oid[k], 2, NULL), 0);
                assert_memory_not_equal(one.arc, two.arc, one.n * sizeof one.arc[0]);
            }
    }
    assert_true(n >= 3);
    assert_null(snmp_oid_model("eaton"));
    assert_null(snmp_oid_model(""));
    assert_false(snmp_oid_has_outlet("1.3.6"));
}

/* --- hosts --- */

static const struct {
    const char *name, *text, *host, *port; /* host NULL: refused */
} hosts[] = {
    { "a name", "pdu-1.rack", "pdu-1.rack", "161" },
    { "a name and a port", "pdu-1:1161", "pdu-1", "1161" },
    { "an address", "10.0.0.7", "10.0.0.7", "161" },
    { "an IPv6 address", "::1", "::1", "161" },
    { "an IPv6 address in brackets", "[fe80::1]", "fe80::1", "161" },
    { "an IPv6 address and a port", "[::1]:1161", "::1", "1161" },
    { "nothing", "", NULL, NULL },
    { "a port alone", ":161", NULL, NULL },
    { "a host without its port", "pdu:", NULL, NULL },
    { "a port that is a word", "pdu:snmp", NULL, NULL },
    { "a port with something behind it", "pdu:161/x", NULL, NULL },
    { "a port of six digits", "pdu:161161", NULL, NULL },
    { "a bracket that stays open", "[::1", NULL, NULL },
    { "something behind a bracket", "[::1]161", NULL, NULL },
    { "brackets around nothing", "[]:161", NULL, NULL },
    { "another transport", "unix:/tmp/socket", NULL, NULL },
    { "a path", "/tmp/socket", NULL, NULL },
    { "a blank", "pdu 1", NULL, NULL },
};

static void hosts_are_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        char host[256] = "", port[8] = "";
        struct err e = { 0 };
        int rc = snmp_oid_host(hosts[i].text, host, port, &e);
        bool good = hosts[i].host ? rc == 0 && strcmp(host, hosts[i].host) == 0 && strcmp(port, hosts[i].port) == 0
                                  : rc == -EINVAL && !*host && !*port && *e.text;
        if (!good)
            fail_msg("%s: got %d, '%s', '%s', '%s'", hosts[i].name, rc, host, port, e.text);
    }
}

/* --- values --- */

#define NUMBER(x)                                                                                                      \
    {                                                                                                                  \
        SNMP_NUMBER, (x), 1                                                                                            \
    }
#define NONE(kind)                                                                                                     \
    {                                                                                                                  \
        (kind), 0, 0                                                                                                   \
    }

static const struct {
    const char *name, *model;
    double scale; /* 0: the model's */
    struct snmp_value v[SNMP_ASKED];
    enum meter_state state;
    double watts, error;
    const char *why;
} powers[] = {
    { "watts are watts", "apc", 0, { NUMBER(101) }, METER_OK, 101, 1, "" },
    { "an outlet that is off takes 0 W", "apc", 0, { NUMBER(0) }, METER_OK, 0, 1, "" },
    { "hundredths of a kilowatt are steps of 10 W", "apc-device", 0, { NUMBER(17) }, METER_OK, 170, 10, "" },
    { "decimals are the PDU's", "raritan", 0, { NUMBER(1015), NUMBER(1), NUMBER(1) }, METER_OK, 101.5, 0.1, "" },
    { "no decimals", "raritan", 0, { NUMBER(98), NUMBER(0), NUMBER(1) }, METER_OK, 98, 1, "" },
    { "a scale of one's own asks for no decimals", "raritan", 0.01, { NUMBER(9800) }, METER_OK, 98, 0.01, "" },
    { "a sensor that is not there has its value's word for it",
      "raritan",
      0,
      { NUMBER(98), NUMBER(0), NONE(SNMP_NO_OBJECT) },
      METER_OK,
      98,
      1,
      "" },
    { "a text of decimals has its own step", "apc", 0, { { SNMP_NUMBER, 41.5, 0.1 } }, METER_OK, 41.5, 0.1, "" },
    { "a step too small for a double is not known", "apc", 0, { { SNMP_NUMBER, 0, 0 } }, METER_OK, 0, NAN, "" },
    { "the most that is plausible", "apc", 0, { NUMBER(500) }, METER_OK, 500, 1, "" },
    { "more than is plausible", "apc", 0, { NUMBER(501) }, METER_DISCARDED, NAN, NAN, "501 W" },
    { "an outlet that is not metered", "apc", 0, { NUMBER(-1) }, METER_FAILED, NAN, NAN, "does not measure" },
    { "no such object", "apc", 0, { NONE(SNMP_NO_OBJECT) }, METER_FAILED, NAN, NAN, "model" },
    { "no such instance", "apc", 0, { NONE(SNMP_NO_INSTANCE) }, METER_FAILED, NAN, NAN, "no such outlet" },
    { "a value of another type", "apc", 0, { NONE(SNMP_NO_NUMBER) }, METER_FAILED, NAN, NAN, "no number" },
    { "an endless value", "apc", 0, { NUMBER(INFINITY) }, METER_FAILED, NAN, NAN, "no number" },
    { "no value at all", "apc", 0, { NUMBER(NAN) }, METER_FAILED, NAN, NAN, "no number" },
    { "a sensor that does not measure now",
      "raritan",
      0,
      { NUMBER(0), NUMBER(0), NUMBER(2) },
      METER_FAILED,
      NAN,
      NAN,
      "now" },
    { "decimals that are not told",
      "raritan",
      0,
      { NUMBER(98), NONE(SNMP_NO_INSTANCE), NUMBER(1) },
      METER_FAILED,
      NAN,
      NAN,
      "scale" },
    { "decimals beyond sense", "raritan", 0, { NUMBER(98), NUMBER(-1), NUMBER(1) }, METER_FAILED, NAN, NAN, "scale" },
};

static bool near(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) < 1e-9;
}

static void values_become_readings(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(powers); i++) {
        struct snmp_model m = *snmp_oid_model(powers[i].model);
        if (powers[i].scale > 0) {
            m.scale = powers[i].scale;
            m.oid[SNMP_DIGITS] = m.oid[SNMP_AVAILABLE] = NULL;
        }
        struct meter_reading r = { .node = "a", .state = METER_STATES, .value = -7, .error = -7, .why = "?" };
        snmp_oid_power(&r, &m, 500, powers[i].v);
        bool why = *powers[i].why ? strstr(r.why, powers[i].why) != NULL : !*r.why;
        if (r.state != powers[i].state || !near(r.value, powers[i].watts) || !near(r.error, powers[i].error) || !why)
            fail_msg("%s: got state %d, %g ± %g, '%s'", powers[i].name, r.state, r.value, r.error, r.why);
        assert_string_equal(r.node, "a");
    }
}

static const struct {
    const char *name, *text;
    enum snmp_kind kind;
    double number, step;
} texts[] = {
    { "a whole number", "41", SNMP_NUMBER, 41, 1 },
    { "decimals", "41.25", SNMP_NUMBER, 41.25, 0.01 },
    { "a unit behind it", "41 W", SNMP_NO_NUMBER, 0, 0 },
    { "nothing", "", SNMP_NO_NUMBER, 0, 0 },
    { "a name", "nan", SNMP_NO_NUMBER, 0, 0 },
};

static void texts_are_numbers_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct snmp_value v = snmp_oid_text(texts[i].text, strlen(texts[i].text));
        if (v.kind != texts[i].kind || !near(v.number, texts[i].number) || !near(v.step, texts[i].step))
            fail_msg("%s: got %d, %g, %g", texts[i].name, v.kind, v.number, v.step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oids_are_read_and_outlets_put_in),
        cmocka_unit_test(an_oid_has_at_most_its_arcs),
        cmocka_unit_test(every_model_has_oids_that_can_be_read_and_differ_by_outlet),
        cmocka_unit_test(hosts_are_split),
        cmocka_unit_test(values_become_readings),
        cmocka_unit_test(texts_are_numbers_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
