/* Roles of a gang: their member of the application file, and what each process is given. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/app.h"
#include "base/own.h"
#include "tests/fault.h"

static const char *lookup(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return NULL;
}

static int parse(struct application *out, const char *text, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, "/a/app.json", text, strlen(text), e);
    return rc < 0 ? rc : app_parse(out, &doc, lookup, NULL, e);
}

#define QUIET "\"env\": { \"OMP_WAIT_POLICY\": null, \"PYTHONUNBUFFERED\": null }, "
#define ROLES                                                                                                          \
    "{ \"kind\": \"command\", \"env\": { \"OMP_WAIT_POLICY\": null, \"PYTHONUNBUFFERED\": null, \"ME\": "              \
    "\"{role}-{index} of {count.worker}\" },\n"                                                                        \
    "  \"roles\": { \"ps\": { \"count\": \"{ps}\", \"cores\": 0, \"command\": [\"ps\", \"{port}\", \"{lr}\"] },\n"     \
    "    \"worker\": { \"count\": \"{roles.worker}\", \"command\": [\"w\", \"{index}\", \"{host}\", "                  \
    "\"{peers.ps}/{peers.worker}\"], \"tf_config\": true } },\n"                                                       \
    "  \"arguments\": { \"lr\": [], \"epochs\": [\"-e\", \"{}\"] } }"

static const struct app_value hypers[] = { { "ps", "1" }, { "lr", "0.1" } };
static const struct app_value knobs[] = { { "roles.worker", "2" } };
static const struct app_tools tools = { 0 };

static struct app_launch launch(void)
{
    return (struct app_launch){
        .tools = &tools, .hypers = hypers, .n_hypers = 2, .knobs = knobs, .n_knobs = 1, .epochs = 3, .slots = 1
    };
}

static char *words_of(const struct app_steps *s)
{
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < s->env.n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", s->env.v[i]);
    for (size_t i = 0; i < s->argv[0].n; i++)
        buf_printf(&b, " %s", s->argv[0].v[i]);
    return buf_take(&b);
}

static void test_each_process_is_told_who_it_is(void **state)
{
    (void)state;
    static const char *const hosts[] = { "h0", "10.0.0.2", "fe80::3" };
    static const char *const want[] = {
        "ME=ps-0 of 2 ps {port.0} 0.1 -e 3",
        "ME=worker-0 of 2 TF_CONFIG={\"cluster\":{\"ps\":[\"h0:{port.0}\"],\"worker\":[\"10.0.0.2:{port.1}\","
        "\"[fe80::3]:{port.2}\"]},\"task\":{\"type\":\"worker\",\"index\":0}} w 0 10.0.0.2 "
        "h0:{port.0}/10.0.0.2:{port.1},[fe80::3]:{port.2} -e 3",
        "ME=worker-1 of 2 TF_CONFIG={\"cluster\":{\"ps\":[\"h0:{port.0}\"],\"worker\":[\"10.0.0.2:{port.1}\","
        "\"[fe80::3]:{port.2}\"]},\"task\":{\"type\":\"worker\",\"index\":1}} w 1 fe80::3 "
        "h0:{port.0}/10.0.0.2:{port.1},[fe80::3]:{port.2} -e 3",
    };
    struct application a = { 0 };
    struct err e = { 0 };
    struct app_gang g = { .n = 0 };
    struct app_launch l = launch();
    if (parse(&a, ROLES, &e) < 0 || a.kind->gang(&a, &l, &g, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(g.n, 3);
    assert_int_equal(g.tells, 0);
    assert_int_equal(g.v[0].cores, 0);
    assert_int_equal(g.v[2].cores, -1);
    l.gang = &g;
    l.hosts = hosts;
    for (l.rank = 0; l.rank < g.n; l.rank++) {
        AUTO_STEPS struct app_steps steps = { 0 };
        if (a.kind->steps(&a, &l, &steps, &e) < 0)
            fail_msg("%s", e.text);
        AUTO_FREE char *got = words_of(&steps);
        assert_string_equal(got, want[l.rank]);
    }
    app_done(&a);
}

static void test_what_is_shown_is_the_one_that_tells(void **state)
{
    (void)state;
    struct application a = { 0 };
    struct err e = { 0 };
    struct app_launch l = launch();
    AUTO_STEPS struct app_steps steps = { 0 };
    if (parse(&a,
              "{ " QUIET "\"roles\": { \"a\": { \"command\": [\"x\"], \"arguments\": false }, \"b\": { \"count\": 2, "
              "\"command\": [\"y\", \"{peers.b}\"] } }, \"tells\": \"b\", \"arguments\": { \"lr\": [], \"ps\": [] } }",
              &e) < 0 ||
        a.kind->steps(&a, &l, &steps, &e) < 0)
        fail_msg("%s", e.text);
    AUTO_FREE char *got = words_of(&steps);
    assert_string_equal(got, " y HOST:{port.1},HOST:{port.2}");
    app_done(&a);
}

#define IN "'/a/app.json' line 1: "
#define W "\"w\": { \"command\": [\"t\"] }"

static const struct {
    const char *name, *file, *want;
} faults[] = {
    { "no roles", "\"roles\": {}", IN "'roles' must be an object of 1 to 16 roles" },
    { "a list", "\"roles\": []", IN "'roles' must be an object of 1 to 16 roles" },
    { "a role that is none", "\"roles\": { \"w\": 3 }",
      IN "'roles.w' must be an object such as {\"count\": 2, \"command\": [\"python3\", \"train.py\"]}" },
    { "no command", "\"roles\": { \"w\": { \"count\": 2 } }",
      IN "'roles.w' has no command: what is to be run, such as [\"python3\", \"train.py\"]" },
    { "a name that is no folder's", "\"roles\": { \"a/b\": { \"command\": [\"t\"] } }",
      IN "'roles.a.b' is no name of a role: 1 to 32 of A-Z a-z 0-9 _ -" },
    { "a slip", "\"roles\": { \"w\": { \"command\": [\"t\"], \"counts\": 2 } }",
      IN "'roles.w.counts' is unknown; did you mean 'count'?" },
    { "none of it", "\"roles\": { \"w\": { \"command\": [\"t\"], \"count\": 0 } }",
      IN "'roles.w.count' must be a whole number from 1 to 64, or {NAME} of a hyperparameter or a system parameter" },
    { "half a process", "\"roles\": { \"w\": { \"command\": [\"t\"], \"count\": 1.5 } }",
      IN "'roles.w.count' must be a whole number from 1 to 64, or {NAME} of a hyperparameter or a system parameter" },
    { "a count as text", "\"roles\": { \"w\": { \"command\": [\"t\"], \"count\": \"2\" } }",
      IN "'roles.w.count' must be a whole number from 1 to 64, or {NAME} of a hyperparameter or a system parameter" },
    { "cores that are none", "\"roles\": { \"w\": { \"command\": [\"t\"], \"cores\": -1 } }",
      IN "'roles.w.cores' must be a whole number from 0 to 4096" },
    { "peers of nobody", "\"roles\": { \"w\": { \"command\": [\"t\", \"{peers.v}\"] } }",
      IN "'roles.w.command.1' has {peers.v}, and there is no such role: there is w" },
    { "peers of nobody in the environment", "\"roles\": { " W " }, \"env\": { \"P\": \"{count.x}\" }",
      IN "'env.P' has {count.x}, and there is no such role: there is w" },
    { "who tells is nobody", "\"roles\": { " W " }, \"tells\": \"v\"", IN "'tells' names no role: there is w" },
    { "who tells of whom", "\"command\": [\"t\"], \"tells\": \"v\"",
      IN "'tells' names a role, and there are no 'roles'" },
    { "a count by nothing", "\"roles\": { \"w\": { \"command\": [\"t\"], \"count\": \"{n}\" } }",
      "'/a/app.json': roles.w.count: {n} stands for nothing: the study has no hyperparameter and no system parameter "
      "of that name" },
    { "a count by what is none", "\"roles\": { \"w\": { \"command\": [\"t\"], \"count\": \"{lr}\" } }",
      "'/a/app.json': roles.w.count is 0.1: it must be a whole number from 1 to 64" },
    { "too many",
      "\"roles\": { \"v\": { \"command\": [\"t\"], \"count\": 40 }, \"w\": { \"command\": [\"t\"], \"count\": 40 } }",
      "'/a/app.json': its roles have more than 64 processes" },
};

static void test_faults_are_told_by_file_line_and_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct application a = { 0 };
        struct err e = { 0 };
        struct app_gang g = { .n = 0 };
        struct app_launch l = launch();
        AUTO_BUF struct buf text = BUF_INIT;
        buf_printf(&text, "{ \"kind\": \"command\", %s }", faults[i].file);
        int rc = parse(&a, buf_text(&text), &e);
        if (rc == 0)
            rc = a.kind->gang(&a, &l, &g, &e);
        if (rc >= 0 || strcmp(e.text, faults[i].want) != 0)
            fail_msg("%s: got %d '%s', want '%s'", faults[i].name, rc, e.text, faults[i].want);
        app_done(&a);
    }
}

static void test_memory_may_end_anywhere(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct application a = { 0 };
        struct err e = { 0 };
        struct app_gang g = { .n = 0 };
        struct app_launch l = launch();
        AUTO_STEPS struct app_steps steps = { 0 };
        assert_true(nth < 400);
        fault_arm(FAULT_ALLOC, nth);
        rc = parse(&a, ROLES, &e);
        if (rc == 0)
            rc = a.kind->gang(&a, &l, &g, &e);
        l.gang = &g;
        l.rank = 2;
        if (rc == 0)
            rc = a.kind->steps(&a, &l, &steps, &e);
        fault_disarm();
        app_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_process_is_told_who_it_is),
        cmocka_unit_test(test_what_is_shown_is_the_one_that_tells),
        cmocka_unit_test(test_faults_are_told_by_file_line_and_key),
        cmocka_unit_test(test_memory_may_end_anywhere),
    };
    return cmocka_run_group_tests_name("roles", tests, NULL, NULL);
}
