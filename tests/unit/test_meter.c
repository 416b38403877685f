/* The rows of the table of local meters, and the words for readings' states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "monitoring/meter.h"

static void every_state_has_a_word_that_is_found_again(void **state)
{
    (void)state;
    static const char *const words[METER_STATES] = { "ok", "first", "discarded", "failed" };
    for (int i = 0; i < METER_STATES; i++) {
        assert_string_equal(meter_state_name((enum meter_state)i), words[i]);
        assert_int_equal(meter_state_find(words[i]), i);
    }
    assert_int_equal(meter_state_find(""), -1);
    assert_int_equal(meter_state_find("OK"), -1);
}

static void every_local_meter_is_whole_and_found_by_its_name(void **state)
{
    (void)state;
    static const char *const names[] = { "rapl", "perf-power", "pcm", "estimate", "cpu" };
    size_t n = 0;
    for (; meters_local[n]; n++) {
        const struct meter_ops *m = meters_local[n];
        assert_true(n < sizeof names / sizeof *names);
        assert_string_equal(m->name, names[n]);
        assert_true(m->local && m->help && *m->help);
        assert_true(m->probe && m->open && m->read && m->close);
        assert_int_equal(m->estimated, strcmp(m->name, "estimate") == 0);
        assert_int_equal(m->kind == METER_CPU, strcmp(m->name, "cpu") == 0);
        assert_ptr_equal(meter_find_local(m->name), m);
        m->close(NULL);
    }
    assert_int_equal(n, sizeof names / sizeof *names);
    assert_null(meter_find_local("snmp"));
    assert_null(meter_find_local(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_has_a_word_that_is_found_again),
        cmocka_unit_test(every_local_meter_is_whole_and_found_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
