/* `pipetune events` as a program: on a machine that a test makes up, and on this one, whatever it is. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/event_names.h"
#include "tests/fake_sysfs.h"
#include "tests/integration/harness.h"

static struct harness_output run(char *first, char *second, char *third)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[] = { program, "events", first, second, third, NULL };
    return harness_run(argv, HARNESS_MS);
}

static void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in:\n%s", part, text);
}

static void test_the_table_of_another_machine(void **state)
{
    char *root = fake_sysfs_make(FAKE_SKYLAKE_SP);
    (void)state;
    struct harness_output o = run("--sysfs", root, NULL);
    fake_sysfs_remove(root);
    assert_int_equal(o.code, 0);
    expect_text(o.out, "cpu/mem-loads/                 4:0x1cd,config1=0x3");
    expect_text(o.out, "58 of 58 events resolved, 47 distinct encodings, 42 of them on the core's counters\n");
    expect_text(o.out, "(Intel Skylake): 4 counters for any event");
    assert_null(strstr(o.out, "countable"));
    harness_output_done(&o);
}

static json_t *parsed(const struct harness_output *o)
{
    json_t *j = json_loads(o->out, 0, NULL);
    if (!j)
        fail_msg("no JSON:\n%s", o->out);
    return j;
}

static void expect_keys(json_t *j, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!json_object_get(j, keys[i]))
            fail_msg("no key '%s'", keys[i]);
    assert_int_equal(json_object_size(j), n);
}

static void test_json_of_another_machine(void **state)
{
    (void)state;
    static const char *const top[] = { "events", "resolved", "distinct", "core_distinct", "countable", "core" };
    static const char *const one[] = { "event", "encoding", "by",    "same_as", "scale",
                                       "unit",  "cpus",     "state", "share",   "why" };
    char *root = fake_sysfs_make(FAKE_ICELAKE_SP);
    struct harness_output o = run("--json", "--sysfs", root);
    fake_sysfs_remove(root);
    json_t *j = parsed(&o), *list = json_object_get(j, "events");
    expect_keys(j, top, ARRAY_LEN(top));
    assert_int_equal(json_array_size(list), EVENT_NAMES);
    for (size_t i = 0; i < EVENT_NAMES; i++) {
        json_t *e = json_array_get(list, i);
        expect_keys(e, one, ARRAY_LEN(one));
        assert_string_equal(json_string_value(json_object_get(e, "event")), event_names[i]);
        assert_true(json_is_null(json_object_get(e, "state"))); /* nothing was opened */
        assert_int_equal(json_is_null(json_object_get(e, "by")), json_is_string(json_object_get(e, "why")));
    }
    assert_true(json_is_null(json_object_get(j, "countable")));
    json_decref(j);
    harness_output_done(&o);
}

static void test_json_of_this_machine(void **state)
{
    (void)state;
    struct harness_output o = run("--json", NULL, NULL);
    assert_int_equal(o.code, 0);
    json_t *j = parsed(&o), *list = json_object_get(j, "events");
    json_int_t ok = 0;
    for (size_t i = 0; i < EVENT_NAMES; i++) {
        const char *seen = json_string_value(json_object_get(json_array_get(list, i), "state"));
        assert_non_null(seen);
        ok += strcmp(seen, "ok") == 0;
    }
    assert_int_equal(json_integer_value(json_object_get(j, "countable")), ok);
    json_decref(j);
    harness_output_done(&o);
}

static void test_a_folder_that_is_none(void **state)
{
    (void)state;
    struct harness_output o = run("--sysfs", "/nonexistent", NULL);
    assert_int_equal(o.code, 2);
    assert_string_equal(o.err, "pipetune: '/nonexistent' is no folder: name one that is laid out like /sys\n");
    harness_output_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_of_another_machine),
        cmocka_unit_test(test_json_of_another_machine),
        cmocka_unit_test(test_json_of_this_machine),
        cmocka_unit_test(test_a_folder_that_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
