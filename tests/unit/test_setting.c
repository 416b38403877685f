#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/setting.h"

static struct space parsed(const char *knobs)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "{\"hyperParameters\": {\"x\": [1]}, \"systemParameters\": {%s}}", knobs);
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space s = { 0 };
    struct err e = { 0 };
    if (json_doc_parse(&doc, "t.conf", buf_text(&b), b.len, &e) < 0 || space_parse(&s, &doc, &e) < 0)
        fail_msg("%s: %s", knobs, e.text);
    return s;
}

#define KNOBS "\"cores\": [16, 8, 4], \"memory\": [8, 4], \"spark.x\": [\"a\", \"b\"]"

static bool same(const struct space *s, const struct setting *a, const struct setting *b)
{
    bool equal = true;
    for (size_t i = 0; i < s->n_knobs; i++)
        equal &= value_equal(&a->v[i], &b->v[i]);
    return equal;
}

static void assert_json(json_t *j, const char *want)
{
    AUTO_BUF struct buf b = BUF_INIT;
    json_put(&b, j, JSON_STYLE_COMPACT);
    json_decref(j);
    assert_string_equal(buf_text(&b), want);
}

static const struct {
    const char *name, *knobs;
    struct offer offer;
    const char *want;
} defaults[] = {
    { "the first of each", KNOBS, { 0 }, "{\"cores\": 16, \"memory\": 8, \"spark.x\": \"a\"}" },
    { "cores are not cut yet", KNOBS, { .cores = 2 }, "{\"cores\": 16, \"memory\": 8, \"spark.x\": \"a\"}" },
    { "the first memory that fits", KNOBS, { .memory_gb = 6 }, "{\"cores\": 16, \"memory\": 4, \"spark.x\": \"a\"}" },
    { "the first memory when none fits",
      KNOBS,
      { .memory_gb = 2 },
      "{\"cores\": 16, \"memory\": 8, \"spark.x\": \"a\"}" },
    { "no knobs, no values", "", { .cores = 2 }, "{}" },
};

static void test_the_default_setting(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++) {
        struct space s = parsed(defaults[i].knobs);
        struct setting set = setting_default(&s, &defaults[i].offer);
        print_message("%s\n", defaults[i].name);
        assert_json(setting_json(&s, &set), defaults[i].want);
        space_done(&s);
    }
}

static const struct {
    const char *name, *text, *want; /* the setting, or a part of the message */
} entered[] = {
    { "one knob", "cores=4", "{\"cores\": 4, \"memory\": 8, \"spark.x\": \"a\"}" },
    { "two knobs and spaces", " memory = 0.5 , cores=2", "{\"cores\": 2, \"memory\": 0.5, \"spark.x\": \"a\"}" },
    { "a value that is no candidate", "cores=3", "{\"cores\": 3, \"memory\": 8, \"spark.x\": \"a\"}" },
    { "a property with an equals sign", "spark.x=-Da=b", "{\"cores\": 16, \"memory\": 8, \"spark.x\": \"-Da=b\"}" },
    { "a number written oddly", "cores=04.0", "{\"cores\": 4, \"memory\": 8, \"spark.x\": \"a\"}" },
    { "nothing", "", "must be NAME=VALUE" },
    { "a trailing comma", "cores=4,", "must be NAME=VALUE" },
    { "no value", "cores=", "'cores' has no value" },
    { "no name", "=4", "no system parameter ''" },
    { "twice the same", "cores=4,cores=8", "'cores' has two values" },
    { "a mistyped name", "coers=4", "did you mean 'cores'" },
    { "a knob not in the space", "executors=4", "no system parameter 'executors'" },
    { "cores 0", "cores=0", "a whole number from 1 to 4096 (CPUs), not '0'" },
    { "cores 5000", "cores=5000", "not '5000'" },
    { "memory with a unit", "memory=8g", "(GiB), not '8g'" },
    { "a long value", "spark.x=0123456789012345678901234567890123456789012345678901234567890123456789", "is too long" },
};

static void test_a_setting_is_entered(void **state)
{
    (void)state;
    struct space s = parsed(KNOBS);
    struct offer offer = { 0 };
    struct setting base = setting_default(&s, &offer);
    for (size_t i = 0; i < ARRAY_LEN(entered); i++) {
        struct setting set = base;
        struct err e = { 0 };
        int rc = setting_parse(&set, &s, &base, entered[i].text, &e);
        print_message("%s\n", entered[i].name);
        if (entered[i].want[0] == '{') {
            assert_int_equal(rc, 0);
            assert_json(setting_json(&s, &set), entered[i].want);
        } else {
            assert_int_equal(rc, -EINVAL);
            if (!strstr(e.text, entered[i].want))
                fail_msg("got \"%s\", want \"%s\"", e.text, entered[i].want);
            assert_true(same(&s, &set, &base));
        }
    }
    space_done(&s);
}

static void test_which_knobs_were_entered(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool names;
    } texts[] = { { "memory=4", true },  { "cores=2, memory = 4", true }, { "memory=4,cores=2", true },
                  { "cores=2", false },  { "spark.memory=4", false },     { "spark.x=memory", false },
                  { "memoryx=4", false } };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (setting_names(texts[i].text, "memory") != texts[i].names)
            fail_msg("'%s'", texts[i].text);
}

static void test_cores_are_cut_to_the_offer(void **state)
{
    (void)state;
    struct space s = parsed(KNOBS);
    struct offer none = { 0 };
    struct offer laptop = { .cores = 2, .memory_gb = 4 };
    struct setting first = setting_default(&s, &none);
    struct setting second = first;
    second.v[0] = value_of_number(4);
    assert_false(same(&s, &first, &second));
    struct setting a = setting_effective(&s, &first, &laptop);
    struct setting b = setting_effective(&s, &second, &laptop);
    assert_true(same(&s, &a, &b));
    assert_json(setting_json(&s, &a), "{\"cores\": 2, \"memory\": 8, \"spark.x\": \"a\"}");
    struct setting c = setting_effective(&s, &first, &none);
    assert_true(same(&s, &c, &first));
    assert_true(setting_number(&s, &a, KNOB_CORES, -1) == 2);
    assert_true(setting_number(&s, &a, KNOB_PARTS, -1) == -1);
    space_done(&s);
}

static const struct {
    const char *name, *memory;
    double there;
    const char *want;
} infeasible[] = {
    { "more than there is", "64", 23, "memory 64 GiB is more than the 23 GiB there are" },
    { "a little more than there is", "23.5", 23.48, "memory 23.5 GiB is more than the 23.4 GiB there are" },
    { "just what there is", "23", 23, NULL },
    { "nobody knows what there is", "64", 0, NULL },
};

static void test_too_much_memory_is_infeasible(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(infeasible); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        buf_printf(&b, "\"memory\": [%s]", infeasible[i].memory);
        struct space s = parsed(buf_text(&b));
        struct offer offer = { .memory_gb = infeasible[i].there };
        struct setting set = setting_default(&s, &offer);
        char text[SETTING_WHY_MAX];
        const char *got = setting_infeasible(&s, &set, &offer, text);
        if (!got != !infeasible[i].want || (got && strcmp(got, infeasible[i].want) != 0))
            fail_msg("%s: got %s, want %s", infeasible[i].name, got ? got : "feasible",
                     infeasible[i].want ? infeasible[i].want : "feasible");
        space_done(&s);
    }
}

static const struct {
    const char *name, *knobs;
    int offered, file_cores;
    double batch;
    int want;
    const char *fault;
} slots[] = {
    { "the largest candidate that divides", "\"cores\": [16, 8, 4]", 0, 0, 1024, 16, NULL },
    { "not the first written but the largest", "\"cores\": [4, 16, 8]", 0, 0, 1024, 16, NULL },
    { "a smaller one when the largest does not divide", "\"cores\": [16, 8, 4]", 0, 0, 24, 8, NULL },
    { "cut to the offer", "\"cores\": [16, 8, 4]", 2, 0, 1024, 2, NULL },
    { "cut to an offer that does not divide", "\"cores\": [16, 4]", 6, 0, 32, 4, NULL },
    { "nothing divides", "\"cores\": [16, 8, 4]", 0, 0, 1023, -ERANGE, "batch 1023 is not a multiple of 16, 8, 4" },
    { "nothing divides after the cut", "\"cores\": [16, 8, 4]", 2, 0, 1023, -ERANGE,
      "not a multiple of 2 cores (of the 2" },
    { "half a batch", "\"cores\": [2]", 0, 0, 32.5, -ERANGE, "batch 32.5 is not a multiple" },
    { "no batch at all", "\"cores\": [2]", 0, 0, 0, -ERANGE, "batch 0" },
    { "an unknown batch takes the largest", "\"cores\": [3, 7, 5]", 0, 0, NAN, 7, NULL },
    { "no knob: the file's", "", 8, 4, 32, 4, NULL },
    { "no knob: the file's, cut", "", 2, 4, 32, 2, NULL },
    { "no knob, no number in the file: the offer", "", 8, 0, 32, 8, NULL },
    { "nothing known at all", "", 0, 0, 32, 1, NULL },
    { "the file's does not divide", "", 8, 5, 32, -ERANGE, "not a multiple of 5" },
    { "a knob hides the file's", "\"cores\": [2]", 8, 4, 32, 2, NULL },
};

static void test_slots_divide_the_batch(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
        struct space s = parsed(slots[i].knobs);
        struct offer offer = { .cores = slots[i].offered, .file_cores = slots[i].file_cores };
        struct setting set = setting_default(&s, &offer);
        struct err e = { 0 };
        int got = setting_slots(&s, &set, &offer, slots[i].batch, &e);
        if (got != slots[i].want || (slots[i].fault && !strstr(e.text, slots[i].fault)))
            fail_msg("%s: got %d \"%s\", want %d", slots[i].name, got, e.text, slots[i].want);
        space_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_default_setting),           cmocka_unit_test(test_a_setting_is_entered),
        cmocka_unit_test(test_which_knobs_were_entered),      cmocka_unit_test(test_cores_are_cut_to_the_offer),
        cmocka_unit_test(test_too_much_memory_is_infeasible), cmocka_unit_test(test_slots_divide_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
