#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "monitoring/event_names.h"

static void test_the_names_are_58_different_ones(void **state)
{
    (void)state;
    for (int i = 0; i < EVENT_NAMES; i++) {
        assert_non_null(event_names[i]);
        assert_int_equal(event_name_index(event_names[i]), i); /* the first of its name */
    }
    assert_int_equal(event_name_index("node-stores"), 0);
    assert_int_equal(event_name_index("L1-dcache-load-misses"), 57);
    assert_int_equal(event_name_index("page-faults"), -1);
}

/* perf stat's reader relies on it: a name cut short is no other name. */
static void test_no_name_begins_another(void **state)
{
    (void)state;
    for (int i = 0; i < EVENT_NAMES; i++)
        for (int k = 0; k < EVENT_NAMES; k++)
            if (i != k && strncmp(event_names[i], event_names[k], strlen(event_names[i])) == 0)
                fail_msg("'%s' begins '%s'", event_names[i], event_names[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_names_are_58_different_ones),
        cmocka_unit_test(test_no_name_begins_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
