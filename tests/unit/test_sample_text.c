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

static struct reading part(double value, float ratio)
{
    return (struct reading){ .value = value, .ratio = ratio, .state = READING_MULTIPLEXED };
}

static struct reading none(enum reading_state state)
{
    return (struct reading){ .value = NAN, .state = (uint8_t)state };
}

static void cells_are_written(void **state)
{
    (void)state;
    const struct {
        const char *name, *want;
        struct reading v[4];
        size_t n;
    } cases[] = {
        { "nothing", "", { none(READING_ABSENT) }, 0 },
        { "all absent", "", { none(READING_ABSENT), none(READING_ABSENT) }, 2 },
        { "absent in between", "- 1", { none(READING_ABSENT), ok(1), none(READING_ABSENT) }, 3 },
        { "why there is no value",
          "n u d f",
          { none(READING_NOT_COUNTED), none(READING_UNSUPPORTED), none(READING_DENIED), none(READING_NO_FD) },
          4 },
        { "values", "0 123.5 9007199254740994", { ok(0), ok(123.5), ok(9007199254740994.0) }, 3 },
        { "scaled values", "123.5/0.43 2/1e-05", { part(123.5, 0.43F), part(2, 1e-5F) }, 2 },
        { "no value after all", "n n n n", { ok(NAN), ok(-1), ok(INFINITY), part(1, 0) }, 4 },
        { "a ratio above 1", "n", { part(1, 1.5F) }, 1 },
        { "no state of ours", "n", { { .value = 1, .state = 77 } }, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf got = BUF_INIT;
        sample_put(&got, cases[i].v, cases[i].n);
        if (strcmp(buf_text(&got), cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, buf_text(&got), cases[i].want);
    }
}

static void what_was_written_reads_back(void **state)
{
    (void)state;
    const struct reading v[] = { ok(0),
                                 ok(1.0 / 3),
                                 ok(18446744073709551615.0),
                                 part(5e9, 0.25F),
                                 none(READING_ABSENT),
                                 none(READING_NOT_COUNTED),
                                 none(READING_UNSUPPORTED),
                                 none(READING_DENIED),
                                 none(READING_NO_FD) };
    struct reading got[ARRAY_LEN(v) + 2];
    AUTO_BUF struct buf text = BUF_INIT;
    sample_put(&text, v, ARRAY_LEN(v));
    assert_int_equal(sample_read(got, ARRAY_LEN(got), buf_text(&text), NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(got); i++) {
        struct reading want = i < ARRAY_LEN(v) ? v[i] : none(READING_ABSENT);
        bool counted = want.state <= READING_MULTIPLEXED;
        bool same = counted ? got[i].value == want.value && got[i].ratio == want.ratio : isnan(got[i].value);
        if (got[i].state != want.state || !same)
            fail_msg("cell %zu: got %s %g/%g, want %s %g/%g", i, reading_state_name(got[i].state), got[i].value,
                     (double)got[i].ratio, reading_state_name(want.state), want.value, (double)want.ratio);
    }
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
        int rc = sample_read(out, 3, texts[i], &e);
        if (rc != -EINVAL || !e.text[0] || out[0].value != 7 || out[2].value != 7)
            fail_msg("'%s': %d '%s', %g", texts[i], rc, e.text, out[0].value);
    }
}

static void no_cell_is_all_absent(void **state)
{
    (void)state;
    struct reading out[2] = { ok(7), ok(7) };
    assert_int_equal(sample_read(out, 2, "", NULL), 0);
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
        cmocka_unit_test(cells_are_written),
        cmocka_unit_test(what_was_written_reads_back),
        cmocka_unit_test(what_is_no_sample_is_refused),
        cmocka_unit_test(no_cell_is_all_absent),
        cmocka_unit_test(features_begin_with_the_events),
        cmocka_unit_test(every_feature_has_a_name_of_its_own),
        cmocka_unit_test(memory_and_threads_are_gauges),
    };
    return cmocka_run_group_tests_name("sample text", tests, NULL, NULL);
}
