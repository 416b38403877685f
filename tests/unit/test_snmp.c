#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/snmp.h"
#include "tests/fault.h"

static char node_a[] = "a", node_b[] = "b";
static const struct meter_outlet outlets[] = { { node_a, 1 }, { node_b, 24 } };

#define TWO .outlets = outlets, .n_outlets = 2
#define ONE .outlets = outlets, .n_outlets = 1

static const struct {
    const char *name;
    struct meter_cfg cfg;
    int want;
    const char *says;
} rows[] = {
    { "a model", { .host = "pdu", .model = "apc", TWO }, 0, "" },
    { "an OID", { .host = "[::1]:1161", .oid = "1.3.{outlet}", TWO }, 0, "" },
    { "an OID of one outlet needs no place for it", { .host = "pdu", .oid = "1.3.6", ONE }, 0, "" },
    { "an OID of two does", { .host = "pdu", .oid = "1.3.6", TWO }, -EINVAL, "{outlet}" },
    { "a model that is not known names those that are",
      { .host = "pdu", .model = "eaton", TWO },
      -EINVAL,
      "apc, apc-device, raritan" },
    { "a model and an OID", { .host = "pdu", .model = "apc", .oid = "1.3.{outlet}", TWO }, -EINVAL, "either" },
    { "neither", { .host = "pdu", TWO }, -EINVAL, "either" },
    { "no host", { .model = "apc", TWO }, -EINVAL, "host" },
    { "a host that is none", { .host = "pdu:", .model = "apc", TWO }, -EINVAL, "HOST" },
    { "no outlets", { .host = "pdu", .model = "apc" }, -EINVAL, "outlets" },
    { "an OID that is none", { .host = "pdu", .oid = "iso.{outlet}", TWO }, -EINVAL, "no OID" },
    { "version 3 without a user", { .host = "pdu", .model = "apc", .version = 3, TWO }, -EINVAL, "credential_file" },
    { "a file that is not there",
      { .host = "pdu", .model = "apc", .credential_file = "/nonexistent/secret", TWO },
      -ENOENT,
      "/nonexistent/secret" },
};

static void opening_asks_nobody_and_says_what_is_lacking(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct meter *m = NULL;
        struct err e = { 0 };
        int rc = meter_snmp.open(&m, &rows[i].cfg, &e);
        if (rc != rows[i].want || !strstr(e.text, rows[i].says) || (rc == 0) != (m != NULL))
            fail_msg("%s: got %d '%s'", rows[i].name, rc, e.text);
        meter_snmp.close(m);
    }
}

static void opening_survives_any_failure(void **state)
{
    (void)state;
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 16);
        struct meter *m = NULL;
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        rc = meter_snmp.open(&m, &rows[0].cfg, &e);
        fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && e.code == -ENOMEM && !m));
        meter_snmp.close(m);
    }
}

static void a_probe_that_cannot_open_says_why(void **state)
{
    (void)state;
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    const struct meter_cfg cfg = { .host = "pdu", .model = "eaton", TWO };
    assert_int_equal(meter_snmp.probe(&cfg, &detail, &fix), -EINVAL);
    assert_non_null(strstr(buf_text(&detail), "eaton"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_asks_nobody_and_says_what_is_lacking),
        cmocka_unit_test(opening_survives_any_failure),
        cmocka_unit_test(a_probe_that_cannot_open_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
