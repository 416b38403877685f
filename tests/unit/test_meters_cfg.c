#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/meters_cfg.h"
#include "tests/fault.h"

static int read_text(struct meters_cfg *out, struct json_doc *doc, const char *text, struct err *e)
{
    assert_int_equal(json_doc_parse(doc, "c.json", text, strlen(text), e), 0);
    return meters_cfg_read(out, doc, e);
}

static void no_key_is_no_meter(void **state)
{
    (void)state;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct meters_cfg m = { 0 };
    struct err e = { 0 };
    assert_int_equal(read_text(&m, &doc, "{}", &e), 0);
    assert_int_equal(m.n, 0);
    meters_cfg_done(&m);
}

static void a_name_alone_is_a_meter_with_its_defaults(void **state)
{
    (void)state;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct meters_cfg m = { 0 };
    struct err e = { 0 };
    assert_int_equal(
        read_text(&m, &doc, "{ \"powerMeter\": \"rapl\", \"monitoring\": { \"meters\": [\"estimate\"] } }", &e), 0);
    assert_int_equal(m.n, 2);
    assert_string_equal(m.v[0].meter->name, "estimate");
    assert_true(m.v[0].cfg.idle_w == METERS_IDLE_W && m.v[0].cfg.cpu_w == METERS_CPU_W);
    assert_true(m.v[0].idle_w == METERS_IDLE_W);
    assert_string_equal(m.v[1].meter->name, "rapl");
    assert_true(isnan(m.v[1].idle_w));
    meters_cfg_done(&m);
}

static void a_pdu_says_whose_its_outlets_are(void **state)
{
    (void)state;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct meters_cfg m = { 0 };
    struct err e = { 0 };
    assert_int_equal(read_text(&m, &doc,
                               "{ \"powerMeter\": { \"name\": \"pdu\", \"url\": \"http://p\", \"outlets\": { \"a\": 3, "
                               "\"b\": 0 }, \"scale\": 0.1, \"idle_w\": 40, \"timeout_ms\": 500 } }",
                               &e),
                     0);
    assert_int_equal(m.n, 1);
    const struct meter_cfg *c = &m.v[0].cfg;
    assert_string_equal(c->url, "http://p");
    assert_int_equal(c->n_outlets, 2);
    assert_string_equal(c->outlets[0].node, "a");
    assert_int_equal(c->outlets[0].outlet, 3);
    assert_true(c->scale == 0.1 && c->timeout_ms == 500 && m.v[0].idle_w == 40);
    meters_cfg_done(&m);
}

static void there_may_be_two_pdus(void **state)
{
    (void)state;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct meters_cfg m = { 0 };
    struct err e = { 0 };
    static const char text[] =
        "{ \"powerMeter\": [{ \"name\": \"pdu\", \"url\": \"http://p\", \"outlets\": { \"a\": 1 } }, "
        "{ \"name\": \"pdu\", \"url\": \"http://q\", \"outlets\": { \"b\": 1 } }] }";
    assert_int_equal(read_text(&m, &doc, text, &e), 0);
    assert_int_equal(m.n, 2);
    meters_cfg_done(&m);
}

static const struct {
    const char *name, *meters, *want;
} faults[] = {
    { "a meter that is none", "\"raple\"", "names 'raple', which is no meter; did you mean 'rapl'?" },
    { "nothing like a meter", "\"wattsup\"", "there are rapl, perf-power" },
    { "the CPU time, which nobody chooses", "\"cpu\"", "names 'cpu', which is no meter" },
    { "a meter twice", "[\"rapl\", \"rapl\"]", "names rapl again" },
    { "a key of another meter", "{ \"name\": \"rapl\", \"url\": \"x\" }", "is no key of the meter rapl" },
    { "a key that is nearly one", "{ \"name\": \"estimate\", \"idel_w\": 1 }", "did you mean 'idle_w'?" },
    { "a number that is a text", "{ \"name\": \"estimate\", \"cpu_w\": \"5\" }", "must be a number between 0" },
    { "a number out of bounds", "{ \"name\": \"rapl\", \"max_w\": -5 }", "must be a number between 1" },
    { "a PDU without an address", "{ \"name\": \"pdu\", \"outlets\": { \"a\": 1 } }", "needs \"url\"" },
    { "a PDU without outlets", "{ \"name\": \"pdu\", \"url\": \"http://p\" }", "needs \"outlets\"" },
    { "outlets that are a list", "{ \"name\": \"pdu\", \"url\": \"http://p\", \"outlets\": [1] }",
      "must be an object" },
    { "an outlet that is no number", "{ \"name\": \"pdu\", \"url\": \"http://p\", \"outlets\": { \"a\": \"x\" } }",
      "must name an outlet" },
    { "an agent of no model", "{ \"name\": \"snmp\", \"host\": \"h\", \"outlets\": { \"a\": 1 } }",
      "needs either \"model\"" },
    { "an agent of two",
      "{ \"name\": \"snmp\", \"host\": \"h\", \"model\": \"apc\", \"oid\": \"1.3\", \"outlets\": { \"a\": 1 } }",
      "needs either \"model\"" },
    { "a version that is none",
      "{ \"name\": \"snmp\", \"host\": \"h\", \"model\": \"apc\", \"version\": 2.5, \"outlets\": { \"a\": 1 } }",
      "must be a whole number between 2 and 3" },
};

static void faults_name_the_line_and_the_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        AUTO_JSON_DOC struct json_doc doc = { 0 };
        struct meters_cfg m = { 0 };
        struct err e = { 0 };
        char text[512];
        (void)snprintf(text, sizeof text, "{\n \"monitoring\": {\n \"meters\": %s } }", faults[i].meters);
        int rc = read_text(&m, &doc, text, &e);
        if (rc != -22 || !strstr(e.text, faults[i].want) || !strstr(e.text, "'c.json' line 3"))
            fail_msg("%s: %d %s", faults[i].name, rc, e.text);
        assert_null(m.v);
    }
}

static void memory_that_runs_out_leaks_nothing(void **state)
{
    (void)state;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    static const char text[] =
        "{ \"powerMeter\": { \"name\": \"pdu\", \"url\": \"http://p\", \"outlets\": { \"a\": 3, \"b\": 0 } } }";
    struct err e = { 0 };
    assert_int_equal(json_doc_parse(&doc, "c.json", text, strlen(text), &e), 0);
    int rc = -12;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct meters_cfg m = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = meters_cfg_read(&m, &doc, &e);
        (void)fault_disarm();
        if (rc < 0)
            assert_int_equal(rc, -12);
        meters_cfg_done(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_key_is_no_meter),
        cmocka_unit_test(a_name_alone_is_a_meter_with_its_defaults),
        cmocka_unit_test(a_pdu_says_whose_its_outlets_are),
        cmocka_unit_test(there_may_be_two_pdus),
        cmocka_unit_test(faults_name_the_line_and_the_key),
        cmocka_unit_test(memory_that_runs_out_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
