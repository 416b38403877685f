/* Samples as bytes, and lists of features that are not ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "monitoring/sample_blob.h"

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

static struct feature_list list_of(const char *names)
{
    struct feature_list list;
    struct err e = { 0 };
    if (feature_list_read(&list, names, &e) < 0)
        fail_msg("%s", e.text);
    return list;
}

static struct feature_list our_list(void)
{
    AUTO_BUF struct buf names = BUF_INIT;
    feature_list_put(&names);
    return list_of(buf_text(&names));
}

static void expect(const char *name, const struct reading *got, struct reading want)
{
    bool counted = want.state <= READING_MULTIPLEXED;
    bool same = counted ? got->value == want.value && got->ratio == want.ratio : isnan(got->value);
    if (got->state != want.state || !same)
        fail_msg("%s: got %s %g/%g, want %s %g/%g", name, reading_state_name(got->state), got->value,
                 (double)got->ratio, reading_state_name(want.state), want.value, (double)want.ratio);
}

static void what_was_written_reads_back(void **state)
{
    (void)state;
    struct reading v[FEATURES], got[FEATURES];
    for (int i = 0; i < FEATURES; i++)
        v[i] = none(READING_ABSENT);
    const struct reading some[] = { ok(0),
                                    ok(1.0 / 3),
                                    ok(18446744073709551615.0),
                                    part(5e9, 1e-5F),
                                    none(READING_ABSENT),
                                    none(READING_NOT_COUNTED),
                                    none(READING_UNSUPPORTED),
                                    none(READING_DENIED),
                                    none(READING_NO_FD) };
    memcpy(v, some, sizeof some);
    AUTO_BUF struct buf blob = BUF_INIT;
    sample_blob_put(&blob, v, FEATURES);
    assert_int_equal(blob.len, 3 * 9 + 13 + 5);
    struct feature_list ours = our_list();
    assert_int_equal(ours.n, FEATURES);
    assert_int_equal(sample_blob_read(got, &ours, blob.data, blob.len, NULL), 0);
    for (int i = 0; i < FEATURES; i++)
        expect(feature_names[i], &got[i], v[i]);
}

static void nothing_is_no_byte(void **state)
{
    (void)state;
    struct reading v[2] = { none(READING_ABSENT), none(READING_ABSENT) }, got[FEATURES];
    AUTO_BUF struct buf blob = BUF_INIT;
    sample_blob_put(&blob, v, 2);
    assert_int_equal(blob.len, 0);
    struct feature_list ours = our_list();
    got[5] = ok(7);
    assert_int_equal(sample_blob_read(got, &ours, NULL, 0, NULL), 0);
    expect("nothing", &got[5], none(READING_ABSENT));
}

static void what_has_no_value_after_all_is_not_counted(void **state)
{
    (void)state;
    const struct reading v[] = { ok(NAN), ok(-1), ok(INFINITY), part(1, 0), part(1, 1.5F), part(1, NAN), { 1, 1, 77 } };
    struct reading got[FEATURES];
    AUTO_BUF struct buf blob = BUF_INIT;
    sample_blob_put(&blob, v, ARRAY_LEN(v));
    struct feature_list ours = our_list();
    assert_int_equal(sample_blob_read(got, &ours, blob.data, blob.len, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        expect("a value that is none", &got[i], none(READING_NOT_COUNTED));
}

/* Written by a version whose features are these: what is told of the three that are looked at. */
static const struct {
    const char *name, *names;
    struct reading v[4];
    size_t n;
    struct reading instructions, rss, log;
} others[] = {
    { "fewer features", "instructions", { { 5, 1, 0 } }, 1, { 5, 1, 0 }, { NAN, 0, 255 }, { NAN, 0, 255 } },
    { "more features",
      "gpu/load,instructions,proc/rss,gpu/rss",
      { { 9, 1, 0 }, { 5, 0.5F, 1 }, { 6, 1, 0 }, { 8, 0.25F, 1 } },
      4,
      { 5, 0.5F, 1 },
      { 6, 1, 0 },
      { NAN, 0, 255 } },
    { "another order",
      "log/iterations,proc/rss,instructions",
      { { 7, 1, 0 }, { 6, 1, 0 }, { NAN, 0, READING_UNSUPPORTED } },
      3,
      { NAN, 0, READING_UNSUPPORTED },
      { 6, 1, 0 },
      { 7, 1, 0 } },
    { "none of ours", "a,b", { { 1, 1, 0 }, { 2, 1, 0 } }, 2, { NAN, 0, 255 }, { NAN, 0, 255 }, { NAN, 0, 255 } },
    { "names that begin as ours do, or ours as they",
      "instruction,instructionss",
      { { 1, 1, 0 }, { 2, 1, 0 } },
      2,
      { NAN, 0, 255 },
      { NAN, 0, 255 },
      { NAN, 0, 255 } },
};

static void another_versions_values_are_found_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct reading got[FEATURES];
        struct feature_list list = list_of(others[i].names);
        AUTO_BUF struct buf blob = BUF_INIT;
        sample_blob_put(&blob, others[i].v, others[i].n);
        assert_int_equal(sample_blob_read(got, &list, blob.data, blob.len, NULL), 0);
        expect(others[i].name, &got[feature_index("instructions")], others[i].instructions);
        expect(others[i].name, &got[FEATURE_PROC_RSS], others[i].rss);
        expect(others[i].name, &got[FEATURE_LOG_ITERATIONS], others[i].log);
    }
}

static void bytes_that_are_no_sample_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes;
        size_t len;
    } cases[] = {
        { "a value that is cut off", "\0\0\0\0\0\0\0\0", 8 },
        { "a ratio that is cut off", "\1\0\0\0\0\0\0\0\0\0\0\0", 12 },
        { "a ratio of nothing", "\1\0\0\0\0\0\0\0\0\0\0\0\0", 13 },
        { "a value below 0", "\0\0\0\0\0\0\0\xf0\xbf", 9 },
        { "no number", "\0\0\0\0\0\0\0\xf8\x7f", 9 },
        { "no state", "\6", 1 },
        { "more cells than names", "\3\3\3", 3 },
    };
    struct feature_list list = list_of("instructions,proc/rss");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct reading out[FEATURES] = { ok(7) };
        struct err e = { 0 };
        int rc = sample_blob_read(out, &list, cases[i].bytes, cases[i].len, &e);
        if (rc != -EINVAL || !e.text[0] || out[0].value != 7)
            fail_msg("%s: %d '%s'", cases[i].name, rc, e.text);
    }
}

static void lists_that_are_none_are_refused(void **state)
{
    (void)state;
    AUTO_BUF struct buf many = BUF_INIT;
    for (int i = 0; i <= FEATURE_LIST_MAX; i++)
        buf_printf(&many, "%sx%d", i ? "," : "", i);
    const char *const lists[] = { "", ",", "a,", ",a", "a,,b", "proc/rss,proc/rss", buf_text(&many) };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct feature_list out = { .n = 77 };
        struct err e = { 0 };
        if (feature_list_read(&out, lists[i], &e) != -EINVAL || !e.text[0] || out.n != 77)
            fail_msg("'%.40s' was read", lists[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_reads_back),
        cmocka_unit_test(nothing_is_no_byte),
        cmocka_unit_test(what_has_no_value_after_all_is_not_counted),
        cmocka_unit_test(another_versions_values_are_found_by_name),
        cmocka_unit_test(bytes_that_are_no_sample_are_refused),
        cmocka_unit_test(lists_that_are_none_are_refused),
    };
    return cmocka_run_group_tests_name("sample blob", tests, NULL, NULL);
}
