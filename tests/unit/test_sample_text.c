/* Samples as text, and the list of features that they are in the order of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "monitoring/features.h"
#include "monitoring/sample_text.h"

static struct reading ok(double value)
{
    return (struct reading){ .value = value, .ratio = 1, .state = READING_OK };
}

static void cells_are_read(void **state)
{
    (void)state;
    struct reading got[8];
    assert_int_equal(sample_text_read(got, 8, "0 123.5 5e9/0.25 - n u d", NULL), 0);
    static const enum reading_state states[] = { READING_OK,     READING_OK,          READING_MULTIPLEXED,
                                                 READING_ABSENT, READING_NOT_COUNTED, READING_UNSUPPORTED,
                                                 READING_DENIED, READING_ABSENT };
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(got[i].state, states[i]);
    assert_true(got[0].value == 0 && got[1].value == 123.5 && got[2].value == 5e9 && got[2].ratio == 0.25F);
    assert_true(isnan(got[3].value) && isnan(got[7].value));
}

static void what_is_no_sample_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        " ",     "1 ",  " 1",   "1  2",  "x",      "-1",   "+1",  "nan",     "inf",  "0x1",
        "1e999", "1/",  "1/0",  "1/2",   "1/-0.5", "/0.5", "1/x", "nn",      "n/1",  "--",
        "1,5",   "1\n", "1\t2", "1/1/1", "1e",     ".5",   "5e-", "1 2 3 4", "-1 2",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct reading out[3] = { ok(7), ok(7), ok(7) };
        struct err e = { 0 };
        int rc = sample_text_read(out, 3, texts[i], &e);
        if (rc != -EINVAL || !e.text[0] || out[0].value != 7 || out[2].value != 7)
            fail_msg("'%s': %d '%s', %g", texts[i], rc, e.text, out[0].value);
    }
}

static void no_cell_is_all_absent(void **state)
{
    (void)state;
    struct reading out[2] = { ok(7), ok(7) };
    assert_int_equal(sample_text_read(out, 2, "", NULL), 0);
    assert_int_equal(out[0].state, READING_ABSENT);
    assert_int_equal(out[1].state, READING_ABSENT);
}

static void features_begin_with_the_events(void **state)
{
    (void)state;
    assert_int_equal(FEATURES, 105);
    assert_int_equal(feature_index("code/pages-23-time"), FEATURES - 1);
    for (int i = 0; i < EVENT_NAMES; i++)
        assert_string_equal(feature_names[i], event_names[i]);
}

static void every_feature_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < FEATURES; i++) {
        assert_non_null(feature_names[i]);
        assert_int_equal(feature_index(feature_names[i]), i);
    }
    assert_int_equal(feature_index("cpu"), -1);
}

static void memory_and_threads_are_gauges(void **state)
{
    (void)state;
    for (int i = 0; i < FEATURES; i++) {
        bool gauge = strcmp(feature_names[i], "proc/rss") == 0 || strcmp(feature_names[i], "proc/threads") == 0;
        assert_int_equal(feature_kind(i), gauge ? FEATURE_GAUGE : FEATURE_COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_read),
        cmocka_unit_test(what_is_no_sample_is_refused),
        cmocka_unit_test(no_cell_is_all_absent),
        cmocka_unit_test(features_begin_with_the_events),
        cmocka_unit_test(every_feature_has_a_name_of_its_own),
        cmocka_unit_test(memory_and_threads_are_gauges),
    };
    return cmocka_run_group_tests_name("sample text", tests, NULL, NULL);
}
