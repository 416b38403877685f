/* What help and the manual pages tell beside the option rows is true of the tables that the program runs by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/help_facts.h"

#define EACH_FACT(kind, f)                                                                                             \
    for (const struct help_kind *kind = help_kinds; kind->title; kind++)                                               \
        for (const struct help_fact *f = kind->facts; f->pages; f++)

static const struct command *find(const char *name)
{
    const struct command *c = cmd_table;
    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->name ? c : NULL;
}

static void test_pages_are_commands(void **state)
{
    (void)state;
    EACH_FACT(kind, f)
    {
        char pages[256];
        (void)snprintf(pages, sizeof pages, "%s", f->pages);
        char *save = NULL;
        for (char *page = strtok_r(pages, " ", &save); page; page = strtok_r(NULL, " ", &save))
            if (strcmp(page, "*") != 0 && strcmp(page, "pipetune") != 0 && !find(page))
                fail_msg("%s: '%s' stands on the page of '%s', which is no command", kind->title, f->tag, page);
    }
}

static size_t facts_of(const char *title, const char *page)
{
    size_t n = 0;
    EACH_FACT(kind, f)
    n += strcmp(kind->title, title) == 0 && help_is_on(kind->facts, f, page);
    return n;
}

static void test_each_command_has_an_example_and_exit_codes(void **state)
{
    (void)state;
    for (const struct command *c = cmd_table; c->name; c++) {
        if (facts_of("EXAMPLES", c->name) == 0)
            fail_msg("'%s' has no example: give it a row in src/cmd/help_facts.c", c->name);
        if (facts_of("EXIT STATUS", c->name) < 3)
            fail_msg("'%s' does not say how it may end", c->name);
        if (strcmp(c->name, "help") != 0 && !*help_about(c->name))
            fail_msg("'%s' does not say what it is for: give it a row in src/cmd/help_facts.c", c->name);
    }
}

static bool has_option(const struct cmd_rows *rows, const char *name, size_t len)
{
    char own[64];
    if (len == 4 && memcmp(name, "help", len) == 0)
        return true;
    for (size_t i = 0; i < rows->n; i++)
        if (strlen(opt_name(&rows->v[i], own)) == len && memcmp(own, name, len) == 0)
            return true;
    return false;
}

/* An example that cannot be typed is worse than none. */
static void test_examples_name_options_that_there_are(void **state)
{
    (void)state;
    EACH_FACT(kind, f)
    {
        const char *said = strstr(f->tag, "pipetune ");
        if (strcmp(kind->title, "EXAMPLES") != 0 || !said)
            continue;
        char name[32];
        assert_int_equal(sscanf(said, "pipetune %31[a-z]", name), 1);
        const struct command *c = find(name);
        if (!c)
            fail_msg("example '%s': no such command", f->tag);
        struct cmd_rows rows = { .n = 0 };
        if (c->options)
            c->options(&rows);
        for (const char *at = said; (at = strstr(at, " --"));) {
            at += strlen(" --");
            size_t len = strcspn(at, " =)|");
            if (!has_option(&rows, at, len))
                fail_msg("example '%s': %s has no option --%.*s", f->tag, name, (int)len, at);
        }
    }
}

static void test_a_page_has_its_own_fact_and_not_that_of_all(void **state)
{
    (void)state;
    static const struct help_fact facts[] = {
        { "run", "0", "trained" }, { "*", "0", "well" }, { "runner", "1", "else" }, { NULL, NULL, NULL }
    };
    assert_true(help_is_on(facts, &facts[0], "run"));
    assert_false(help_is_on(facts, &facts[1], "run"));
    assert_true(help_is_on(facts, &facts[1], "ls"));
    assert_false(help_is_on(facts, &facts[2], "run"));
    assert_false(help_is_on(facts, &facts[2], "un"));
}

static void test_the_table_of_commands_is_sorted(void **state)
{
    (void)state;
    for (const struct command *c = cmd_table; c[1].name; c++)
        if (strcmp(c[0].name, c[1].name) >= 0)
            fail_msg("'%s' stands before '%s'", c[0].name, c[1].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_are_commands),
        cmocka_unit_test(test_each_command_has_an_example_and_exit_codes),
        cmocka_unit_test(test_examples_name_options_that_there_are),
        cmocka_unit_test(test_a_page_has_its_own_fact_and_not_that_of_all),
        cmocka_unit_test(test_the_table_of_commands_is_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
