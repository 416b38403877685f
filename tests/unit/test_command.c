/* Kind `command`: its file, and what is run of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/command.h"
#include "base/own.h"

struct variables {
    const char *v[4]; /* NAME=VALUE */
};

static const char *lookup(void *ctx, const char *name)
{
    const struct variables *all = ctx;
    size_t len = strlen(name);
    for (size_t i = 0; all && i < ARRAY_LEN(all->v) && all->v[i]; i++)
        if (strncmp(all->v[i], name, len) == 0 && all->v[i][len] == '=')
            return all->v[i] + len + 1;
    return NULL;
}

static int parse(struct application *out, const char *text, const struct variables *all, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, "/a/app.json", text, strlen(text), e);
    return rc < 0 ? rc : app_parse(out, &doc, lookup, (void *)(uintptr_t)all, e);
}

/* "in FOLDER: NAME=VALUE … WORD …", or why not. */
static char *run_of(const char *text, const struct variables *all, const struct app_launch *l)
{
    struct application a = { 0 };
    struct err e = { 0 };
    AUTO_STEPS struct app_steps steps = { 0 };
    AUTO_BUF struct buf b = BUF_INIT;
    int rc = parse(&a, text, all, &e);
    if (rc == 0)
        rc = a.kind->steps(&a, l, &steps, &e);
    if (rc < 0) {
        buf_puts(&b, e.text);
    } else {
        buf_printf(&b, "in %s:", steps.folder);
        for (size_t i = 0; i < steps.env.n; i++)
            buf_printf(&b, " %s", steps.env.v[i]);
        for (size_t i = 0; i < steps.argv[0].n; i++)
            buf_printf(&b, " %s", steps.argv[0].v[i]);
    }
    app_done(&a);
    return buf_take(&b);
}

#define DEFAULTS "OMP_WAIT_POLICY=passive PYTHONUNBUFFERED=1 "
#define KIND "\"kind\": \"command\", "

static const struct {
    const char *name, *file, *want;
    struct variables all;
} cases[] = {
    { "what stands nowhere is passed by its name",
      "{ \"command\": [\"train\"] }",
      "in /a: " DEFAULTS "train --lr=0.1 --kind=a b",
      { { 0 } } },
    { "hyperparameters and system parameters where they are named",
      "{ " KIND
      "\"command\": [\"train\", \"{lr}\", \"x{cores}-{memory}\"], \"extras\": { \"k\": \"{kind}\" }, \"env\": { \"N\": "
      "\"{cores}\" } }",
      "in /a: " DEFAULTS "N=4 train 0.1 x4-8 --k a b",
      { { 0 } } },
    { "arguments, and roles",
      "{ \"command\": [\"train\"], \"arguments\": { \"lr\": [\"-r\", \"{}\"], \"kind\": [], \"epochs\": [\"-e\", "
      "\"{}\"], "
      "\"seed\": [\"-s{}\"], \"checkpoint\": [\"--save\", \"{}\"], \"resume\": [\"--load\", \"{checkpoint}\"] } }",
      "in /a: " DEFAULTS "train -r 0.1 -e 3 --save /c --load /c/2 -s7",
      { { 0 } } },
    { "variables",
      "{ \"command\": [\"$HOME/train\"], \"arguments\": { \"lr\": [], \"kind\": [] }, \"folder\": \"$HOME\" }",
      "in /h: " DEFAULTS "/h/train",
      { { "HOME=/h" } } },
    { "what the user says of the environment holds",
      "{ \"command\": [\"t\"], \"arguments\": { \"lr\": [], \"kind\": [] }, \"env\": { \"PYTHONUNBUFFERED\": null } }",
      "in /a: t",
      { { "OMP_WAIT_POLICY=active" } } },
    { "a runtime's own variable goes beside the standard's, and wins there",
      "{ \"command\": [\"t\"], \"arguments\": { \"lr\": [], \"kind\": [] }, \"env\": { \"KMP_BLOCKTIME\": 5 } }",
      "in /a: " DEFAULTS "KMP_BLOCKTIME=5 t",
      { { 0 } } },
    { "the file's wait policy is the only one",
      "{ \"command\": [\"t\"], \"arguments\": { \"lr\": [], \"kind\": [] }, \"env\": { \"OMP_WAIT_POLICY\": \"active\" "
      "} }",
      "in /a: PYTHONUNBUFFERED=1 OMP_WAIT_POLICY=active t",
      { { 0 } } },
    { "braces of the program's own",
      "{ \"command\": [\"t\", \"{\\\"a\\\": 1}\"], \"arguments\": { \"lr\": [], \"kind\": [] } }",
      "in /a: " DEFAULTS "t {\"a\": 1}",
      { { 0 } } },
    { "a name that stands for nothing",
      "{ \"command\": [\"t\", \"{rate}\"] }",
      "'/a/app.json': {rate} stands for nothing: the study has no hyperparameter and no system parameter of that name",
      { { 0 } } },
    { "no command",
      "{ " KIND "\"env\": {} }",
      "'/a/app.json' line 1: 'command' is missing: what is to be run, such as [\"python3\", \"train.py\"]",
      { { 0 } } },
    { "a command for a shell",
      "{ \"command\": \"train --lr 3\" }",
      "'/a/app.json' line 1: 'command' must be an array of words",
      { { 0 } } },
    { "roles beside a command",
      "{ \"command\": [\"t\"], \"roles\": { \"w\": { \"command\": [\"u\"] } } }",
      "'/a/app.json' line 1: 'roles' stands beside 'command': each role has its own",
      { { 0 } } },
    { "a pattern that is none",
      "{ \"command\": [\"t\"], \"progress\": [\"loss (?<loss>\"] }",
      "'/a/app.json' line 1: 'progress' cannot be used: pattern 'loss (?<loss>' at 13: missing closing parenthesis",
      { { 0 } } },
    { "a list that is none",
      "{ \"command\": [\"t\"], \"progress\": \"kreas\" }",
      "'/a/app.json' line 1: 'progress' names 'kreas', which is no list; did you mean 'keras'?",
      { { 0 } } },
    { "an unknown key",
      "{ \"command\": [\"t\"], \"comand\": [] }",
      "'/a/app.json' line 1: 'comand' is unknown; did you mean 'command'?",
      { { 0 } } },
    { "a session",
      "{ \"command\": [\"t\"], \"session\": true }",
      "'/a/app.json' line 1: 'session' must be false: a command has no sessions",
      { { 0 } } },
    { "a variable that cannot be one",
      "{ \"command\": [\"t\"], \"env\": { \"A B\": \"1\" } }",
      "'/a/app.json' line 1: 'env.A B' is no name of a variable",
      { { 0 } } },
};

static void test_command_runs(void **state)
{
    (void)state;
    static const struct app_tools tools = { 0 };
    static const struct app_value hypers[] = { { "lr", "0.1" }, { "kind", "a b" } };
    static const struct app_value knobs[] = { { "cores", "2" }, { "memory", "8" } };
    const struct app_launch l = { .tools = &tools,
                                  .hypers = hypers,
                                  .n_hypers = 2,
                                  .knobs = knobs,
                                  .n_knobs = 2,
                                  .epochs = 3,
                                  .slots = 4,
                                  .seed = "7",
                                  .checkpoint = "/c",
                                  .resume_model = "/c/2" };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *got = run_of(cases[i].file, &cases[i].all, &l);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, got, cases[i].want);
    }
}

static void test_command_finds_our_library(void **state)
{
    (void)state;
    static const struct app_tools tools = { .library = "/p/python" };
    static const struct variables own = { { "PYTHONPATH=/mine" } };
    const struct app_launch l = { .tools = &tools, .epochs = 1, .slots = 1 };
    AUTO_FREE char *got = run_of("{ \"command\": [\"t\"] }", &own, &l);
    assert_string_equal(got, "in /a: " DEFAULTS "PYTHONPATH=/mine:/p/python t");
}

static void test_command_answers(void **state)
{
    (void)state;
    const struct app_launch l = { .epochs = 9, .checkpoint = "/c" };
    AUTO_JSON json_t *hyper = json_pack("{s:f}", "lr", 0.1);
    AUTO_BUF struct buf b = BUF_INIT;
    app_put_answer(&l, hyper, 7, &b);
    assert_string_equal(buf_text(&b),
                        "{\"hyper\":{\"lr\": 0.1},\"epochs\":9,\"checkpoint\":\"/c\",\"resume\":null,\"seed\":7}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_runs),
        cmocka_unit_test(test_command_finds_our_library),
        cmocka_unit_test(test_command_answers),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
