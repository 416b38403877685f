#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "serve/api.h"

static const struct api api = { "/bin/pipetune", "/tmp/x.db" };

static void join(char out[512], const struct strv *v)
{
    *out = '\0';
    for (size_t i = 0; i < v->n; i++)
        (void)snprintf(out + strlen(out), 512 - strlen(out), "%s%s", i ? " " : "", v->v[i]);
}

static const struct {
    const char *path, *want;
} cases[] = {
    { "/api/ls", "/bin/pipetune ls --json --store /tmp/x.db" },
    { "/api/ls/demo", "" },
    { "/api/show/demo", "/bin/pipetune show --json --store /tmp/x.db -- demo" },
    { "/api/show/demo/3", "/bin/pipetune show --json --store /tmp/x.db -- demo/3" },
    { "/api/show/--log", "/bin/pipetune show --json --store /tmp/x.db -- --log" },
    { "/api/show", "" },
    { "/api/show/a/1/2", "" },
    { "/api/decisions/demo/2", "/bin/pipetune show --decisions --json --store /tmp/x.db -- demo/2" },
    { "/api/compare/a/b/c", "/bin/pipetune compare --json --store /tmp/x.db -- a b c" },
    { "/api/compare/a", "" },
    { "/api/diff/a/1/b/2", "/bin/pipetune diff --json --store /tmp/x.db -- a/1 b/2" },
    { "/api/diff/a/1/b", "" },
    { "/api/version", "/bin/pipetune version --json" },
    { "/api/model", "/bin/pipetune model show --json --store /tmp/x.db" },
    { "/api/rm/demo", "" },
    { "/api/run", "" },
    { "/api/help", "" },
    { "/api", "" },
};

static void test_commands(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_STRV struct strv argv = STRV_INIT;
        struct http_path p;
        char got[512];
        assert_int_equal(http_path_parse(&p, cases[i].path), 0);
        api_command(&argv, &api, &p);
        join(got, &argv);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].path, got, cases[i].want);
        http_path_done(&p);
    }
}

static void test_actions_are_those_of_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *action, *name, *want;
    } rows[] = { { "retry", "demo/3", "/bin/pipetune retry --store /tmp/x.db -- demo/3" },
                 { "retry", "--help", "/bin/pipetune retry --store /tmp/x.db -- --help" },
                 { "rm", "demo", "" },
                 { "", "demo", "" } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_STRV struct strv argv = STRV_INIT;
        char got[512];
        api_action(&argv, &api, rows[i].action, rows[i].name);
        join(got, &argv);
        assert_string_equal(got, rows[i].want);
    }
}

static void test_what_is_no_table_is_told_as_json(void **state)
{
    (void)state;
    struct http_request q = { .last_event = NULL };
    struct http_answer a = { 0 };
    assert_int_equal(http_path_parse(&q.path, "/api/nothing"), 0);
    api_answer(&api, &q, &a);
    assert_int_equal(a.status, 404);
    assert_string_equal(buf_text(&a.body), "{\"error\": \"there is no such table\"}\n");
    http_path_done(&q.path);
    buf_done(&a.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_actions_are_those_of_the_table),
        cmocka_unit_test(test_what_is_no_table_is_told_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
