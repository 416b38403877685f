/* Which events are counted: as the config says it, and as the node helper is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "monitoring/event_choice_cfg.h"

static void all_are_counted_while_nobody_chose(void **state)
{
    (void)state;
    char out[EVENT_CHOICE_TEXT_SIZE];
    struct event_choice c = { 0 };
    assert_null(event_choice_only(&c));
    assert_null(event_choice_text(&c, out));
}

static const struct {
    const char *name, *text, *again; /* NULL: it is no choice */
} texts[] = {
    { "none", "", "" },
    { "one", "instructions", "instructions" },
    { "two, told in their order", "branches,cpu/tx-start/", "cpu/tx-start/,branches" },
    { "no such event", "cycles", NULL },
    { "the beginning of a name", "instruction", NULL },
    { "more than a name", "instructionsx", NULL },
    { "a blank", "instructions, branches", NULL },
    { "another case", "Instructions", NULL },
    { "one twice", "branches,instructions,branches", NULL },
    { "a comma at the end", "branches,", NULL },
    { "a comma at the beginning", ",branches", NULL },
    { "two commas", "branches,,instructions", NULL },
    { "a comma alone", ",", NULL },
};

static void a_text_is_a_choice_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char out[EVENT_CHOICE_TEXT_SIZE] = "-";
        struct event_choice c = { 0 };
        int rc = event_choice_read(&c, texts[i].text);
        const char *got = event_choice_text(&c, out);
        bool right = texts[i].again ? rc == 0 && got && strcmp(got, texts[i].again) == 0 : rc == -EINVAL && !c.given;
        if (!right)
            fail_msg("%s: %d '%s'", texts[i].name, rc, got ? got : "all");
    }
}

static void the_longest_text_has_all_names_and_is_read_back(void **state)
{
    (void)state;
    char out[EVENT_CHOICE_TEXT_SIZE];
    struct event_choice all = { .given = true }, got = { 0 };
    memset(all.wanted, true, sizeof all.wanted);
    assert_ptr_equal(event_choice_text(&all, out), out);
    assert_int_equal(event_choice_read(&got, out), 0);
    for (int i = 0; i < EVENT_NAMES; i++) {
        assert_null(strchr(event_names[i], ',')); /* which is between two */
        if (!event_choice_only(&got)[i])
            fail_msg("'%s' is lost", event_names[i]);
    }
}

static void the_config_names_one_or_more(void **state)
{
    (void)state;
    static const struct {
        const char *name, *config, *want; /* NULL: all */
    } cases[] = {
        { "no section", "{}", NULL },
        { "no key", "{ \"monitoring\": { \"scope\": \"none\" } }", NULL },
        { "a name", "{ \"monitoring\": { \"events\": \"msr/tsc/\" } }", "msr/tsc/" },
        { "no names", "{ \"monitoring\": { \"events\": [] } }", "" },
        { "two names", "{ \"monitoring\": { \"events\": [\"branches\", \"msr/tsc/\"] } }", "msr/tsc/,branches" },
        { "one twice", "{ \"monitoring\": { \"events\": [\"branches\", \"branches\"] } }", "branches" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_JSON_DOC struct json_doc doc = { 0 };
        struct event_choice c = { .wanted[3] = true };
        struct err e = { 0 };
        char out[EVENT_CHOICE_TEXT_SIZE];
        assert_int_equal(json_doc_parse(&doc, "c.json", cases[i].config, strlen(cases[i].config), &e), 0);
        int rc = event_choice_cfg_read(&c, &doc, &e);
        const char *got = event_choice_text(&c, out);
        bool same = got && cases[i].want ? strcmp(got, cases[i].want) == 0 : got == cases[i].want;
        if (rc != 0 || !same)
            fail_msg("%s: %d %s, got %s", cases[i].name, rc, e.text, got ? got : "all");
    }
}

static void a_name_that_is_none_is_told_with_its_line_and_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *config, *want;
    } cases[] = {
        { "{ \"monitoring\": {\n\"events\": \"branchs\" } }",
          "'c.json' line 2: 'monitoring.events' names 'branchs', which is no event; did you mean 'branches'?" },
        { "{ \"monitoring\": { \"events\": [\n\"branches\",\n\"LLC-load-mises\"] } }",
          "'c.json' line 3: 'monitoring.events.1' names 'LLC-load-mises', which is no event; did you mean "
          "'LLC-load-misses'?" },
        { "{ \"monitoring\": { \"events\": [\"page-faults\"] } }",
          "'c.json' line 1: 'monitoring.events.0' names 'page-faults', which is no event: `pipetune events` lists all "
          "58" },
        { "{ \"monitoring\": { \"events\": \"\" } }",
          "'c.json' line 1: 'monitoring.events' names '', which is no event: `pipetune events` lists all 58" },
        { "{ \"monitoring\": { \"events\": [7] } }",
          "'c.json' line 1: 'monitoring.events.0' names '', which is no event: `pipetune events` lists all 58" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_JSON_DOC struct json_doc doc = { 0 };
        struct event_choice c = { .given = true, .wanted[3] = true }, before = c;
        struct err e = { 0 };
        assert_int_equal(json_doc_parse(&doc, "c.json", cases[i].config, strlen(cases[i].config), &e), 0);
        assert_int_equal(event_choice_cfg_read(&c, &doc, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].want);
        assert_memory_equal(&c, &before, sizeof c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_counted_while_nobody_chose),
        cmocka_unit_test(a_text_is_a_choice_or_none),
        cmocka_unit_test(the_longest_text_has_all_names_and_is_read_back),
        cmocka_unit_test(the_config_names_one_or_more),
        cmocka_unit_test(a_name_that_is_none_is_told_with_its_line_and_the_nearest),
    };
    return cmocka_run_group_tests_name("event_choice", tests, NULL, NULL);
}
