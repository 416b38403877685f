#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/space.h"
#include "core/space_yaml.h"
#include "tests/fault.h"

/* What a config would say, or a part of the error. */
static const struct {
    const char *name, *text, *want;
} cases[] = {
    { "a value, a list, a tuple", "lr: 0.1\nbatch_size: [32, 64]\ndecay: !!python/tuple [0, 1, 0.25]\n",
      "{\"lr\": 0.1, \"batch_size\": [32, 64], \"decay\": {\"range\": [0, 1, 0.25]}}" },
    { "a tuple without a step", "n: !!python/tuple [1, 4]", "{\"n\": {\"range\": [1, 4]}}" },
    { "lists in lines", "opt:\n- sgd\n- 'adam'\nn: !!python/tuple\n  - 1\n  - 3\n",
      "{\"opt\": [\"sgd\", \"adam\"], \"n\": {\"range\": [1, 3]}}" },
    { "a document's marks, comments, a flow mapping", "%YAML 1.1\n--- # all\n{lr: 1, 'b c': 2}\n...\n",
      "{\"lr\": 1, \"b c\": 2}" },
    { "a byte order mark", "\xef\xbb\xbflr: 1\n", "{\"lr\": 1}" },
    { "decimal numbers, as people write them", "a: [1e-3, 1E3, .5, 5., +1, -1.0, 007.5]",
      "{\"a\": [0.001, 1000, 0.5, 5, 1, -1, 7.5]}" },
    { "texts", "a: [3x3, 1.2.3, 2026-11-20, e5, -, ., 1e, a b]",
      "{\"a\": [\"3x3\", \"1.2.3\", \"2026-11-20\", \"e5\", \"-\", \".\", \"1e\", \"a b\"]}" },
    { "quotes make texts", "a: ['true', \"0x10\", '012', \"16\", \"\\u00e9\"]",
      "{\"a\": [\"true\", \"0x10\", \"012\", \"16\", \"é\"]}" },
    { "names are texts", "on: 1\n1: 2\n", "{\"on\": 1, \"1\": 2}" },
    { "nothing", "", "'f' line 1: there are no parameters" },
    { "comments alone", "# none\n\n", "'f' line 3: there are no parameters" },
    { "a list of all", "- lr\n", "'f' line 1: a file of parameter sets has a line 'parameter: value' of each" },
    { "a CSV", "lr,opt\n0.1,sgd\n", "'f' line 1: a file of parameter sets has a line" },
    { "no value", "lr: 1\nmomentum:\n", "'f' line 2: 'momentum' has no value" },
    { "a truth value", "\nnesterov: [yes]",
      "'f' line 2: 'nesterov' has the value yes, which is a truth value in YAML" },
    { "a truth value in capitals", "a: True", "write \"True\", in quotes, for the text" },
    { "no value by name", "a: ~", "has the value ~, which is no value in YAML" },
    { "infinity", "a: -.Inf", "which is no finite number in YAML" },
    { "no number", "a: .NaN", "which is no number in YAML" },
    { "a number too large", "a: 1\nb: 1e999", "'f' line 2: 'b' must be finite" },
    { "hexadecimal", "a: 0x10", "'a' has the value 0x10, which readers of YAML take for different numbers" },
    { "binary", "a: -0b101", "different numbers" },
    { "octal", "a: 0o17", "different numbers" },
    { "octal of old", "a: 012", "different numbers" },
    { "a number in groups", "a: 1_000", "different numbers" },
    { "minutes", "a: 1:30", "different numbers" },
    { "lines that are folded", "a: 1\nb: x\n  y\n", "'f' line 2: 'b' goes on over several lines" },
    { "a list in a list", "a: [1, [2]]", "'f' line 1: 'a' has a list or a mapping in its list" },
    { "a mapping in a list", "a:\n- 1\n- b: 2\n", "'f' line 3: 'a' has a list or a mapping in its list" },
    { "a nested mapping", "a:\n  b: 1\n", "'f' line 2: 'a' is a mapping: parameters are not nested" },
    { "a name twice", "a: 1\nb: 1\na: 2\n", "'f' line 3: 'a' is there twice: it is on line 1, too" },
    { "an anchor", "a: &x 1\n", "'f' line 1: anchors (&) are not taken" },
    { "an alias", "b: 1\na: *x\n", "'f' line 2: aliases (*x) are not taken" },
    { "an anchor of all", "&x {a: 1}\n", "anchors (&) are not taken" },
    { "an anchor at a name", "&x a: 1\n", "anchors (&) are not taken" },
    { "a merge key", "<<: {a: 1}\n", "merge keys (<<) are not taken" },
    { "a tag that runs things", "a: !!python/object/apply:os.system [echo]\n",
      "the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not taken" },
    { "a tuple of a text", "a: !!python/tuple 1\n", "the tag 'tag:yaml.org,2002:python/tuple' is not taken" },
    { "a type", "a: !!int 3\n", "the tag 'tag:yaml.org,2002:int' is not taken" },
    { "a type in a list", "a: [!!str 3]\n", "is not taken" },
    { "a tag that is a name's", "!!str a: 3\n", "is not taken" },
    { "a tag that stands for another", "%TAG !! tag:x,2000:\n---\na: 1\n",
      "'f' line 1: %TAG directives are not taken" },
    { "a second document", "a: 1\n---\nb: 2\n", "'f' line 2: a second document begins" },
    { "a name that is a list", "? [a]\n: 1\n", "'f' line 1: the name of a parameter must be a text" },
    { "a byte 0", "a: \"x\\0y\"", "has a value with a byte 0 in it" },
    { "a byte 0 in a name", "\"a\\0\": 1", "has a name with a byte 0 in it" },
    { "no YAML", "a: 1\nb: [1, 2\n", "'f' line 3: this is no YAML: while parsing a flow sequence" },
    { "a tab", "a:\n\t- 1\n", "'f' line 2: this is no YAML" },
    { "no UTF-8", "a: \xff\n", "'f' line 1: this is no YAML: " },
    { "a control character", "a: 1\nb: \x01\n", "this is no YAML: " },
    { "an integer that no double holds", "a: 1\nb: 99999999999999999999\n", "'f' line 2" },
};

static void test_yaml_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };
        AUTO_JSON_DOC struct json_doc doc = { 0 };
        int rc = space_yaml_parse(&doc, "f", cases[i].text, strlen(cases[i].text), &e);
        AUTO_FREE char *text = json_text(json_object_get(doc.root, "hyperParameters"));
        bool good = rc == 0 ? strcmp(text, cases[i].want) == 0 : rc == -EINVAL && strstr(e.text, cases[i].want);
        if (!good)
            fail_msg("%s: got %d %s, want %s", cases[i].name, rc, rc == 0 ? text : e.text, cases[i].want);
    }
}

/* What only space_parse() sees is told with the line of the file, too. */
static const struct {
    const char *name, *text, *want;
} later[] = {
    { "a value twice", "a: 1\nb:\n- 1\n\n- 1.0\n", "'f' line 5: 'hyperParameters.b.1'" },
    { "an empty list", "a: 1\n# no\nb: []\n", "'f' line 3: 'hyperParameters.b'" },
    { "a name that is no argument's", "a: 1\n'b c': 2\n", "has a name that cannot be an argument's: 'b c'" },
    { "a tuple that leads nowhere", "a: 1\nb: !!python/tuple [1, 0]\n",
      "'f' line 2: 'hyperParameters.b.range' is empty" },
    { "a tuple of texts", "a: !!python/tuple\n- 1\n- x\n", "'f' line 3: 'hyperParameters.a.range.1' must be a number" },
    { "a tuple of four", "a: !!python/tuple [1, 2, 3, 4]\n", "must be [start, end] or [start, end, step]" },
    { "a text that is too long", "a: 1\nb: x123456789012345678901234567890123456789012345678901234567890123456789\n",
      "'f' line 2: 'hyperParameters.b' is longer than 63 bytes" },
};

static void test_later_faults_have_their_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(later); i++) {
        struct err e = { 0 };
        struct space s = { 0 };
        AUTO_JSON_DOC struct json_doc doc = { 0 };
        int rc = space_yaml_parse(&doc, "f", later[i].text, strlen(later[i].text), &e);
        if (rc < 0)
            fail_msg("%s: %s", later[i].name, e.text);
        assert_int_equal(space_parse(&s, &doc, &e), -EINVAL);
        if (!strstr(e.text, later[i].want))
            fail_msg("%s: got %s, want %s", later[i].name, e.text, later[i].want);
    }
}

static void test_all_combinations_are_points(void **state)
{
    (void)state;
    static const char text[] = "lr: [0.1, 0.2]\nn: !!python/tuple [1, 10, 3]\nopt: sgd\n";
    struct err e = { 0 };
    struct space s = { 0 };
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    assert_int_equal(space_yaml_parse(&doc, "f", text, strlen(text), &e), 0);
    assert_int_equal(space_parse(&s, &doc, &e), 0);
    assert_true(space_is_listed(&s));
    assert_int_equal(space_size(&s), 6); /* the tuple's end is not in it */
    struct point last = space_point_at(&s, 5);
    AUTO_JSON json_t *told = space_point_json(&s, &last);
    AUTO_FREE char *line = json_text(told);
    assert_string_equal(line, "{\"lr\": 0.2, \"n\": 7, \"opt\": \"sgd\"}");
    space_done(&s);
}

static void test_a_large_file_is_refused(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct json_doc doc = { 0 };
    AUTO_FREE char *text = malloc(SPACE_YAML_MAX + 1);
    assert_non_null(text);
    memset(text, '#', SPACE_YAML_MAX + 1);
    assert_int_equal(space_yaml_parse(&doc, "f", text, SPACE_YAML_MAX + 1, &e), -E2BIG);
    assert_int_equal(space_yaml_parse(&doc, "f", text, SPACE_YAML_MAX, &e), -EINVAL);
}

static void test_no_memory_is_told(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct err e = { 0 };
        AUTO_JSON_DOC struct json_doc doc = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = space_yaml_parse(&doc, "f", "a: [1, 2]\n", 10, &e);
        fault_disarm();
        assert_true(rc == 0 ? doc.root != NULL : rc == -ENOMEM && !doc.root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_is_read),
        cmocka_unit_test(test_later_faults_have_their_lines),
        cmocka_unit_test(test_all_combinations_are_points),
        cmocka_unit_test(test_a_large_file_is_refused),
        cmocka_unit_test(test_no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
