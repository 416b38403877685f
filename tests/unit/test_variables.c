#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/own.h"
#include "serve/variables.h"

static const struct {
    const char *name, *variable, *text;
    const char *want; /* "-": it is not kept; "": kept as null */
    const char *left_out;
} cases[] = {
    { "where programs are found is kept", "PATH=/bin", "", "/bin", NULL },
    { "what is not set is known not to be", "PATH=/bin", "", "", NULL },
    { "settings of runtimes are kept", "OMP_NUM_THREADS=2", "", "2", NULL },
    { "ours too", "PIPETUNE_HOME=/p", "", "/p", NULL },
    { "but for what is of one process", "PIPETUNE_QUEUED=1", "", "-", NULL },
    { "what nothing names is not", "EDITOR=vi", "EDITOR", "-", NULL },
    { "what a file names is", "DATA=/d", "\"$DATA/x\"", "/d", NULL },
    { "in braces too", "DATA=/d", "${DATA}", "/d", NULL },
    { "a longer name is another one", "DATA=/d", "$DATA_2", "-", NULL },
    { "the second one counts as well", "DATA=/d", "$X$DATA", "/d", NULL },
    { "a secret is not kept", "MY_TOKEN=abc", "$MY_TOKEN", "-", "MY_TOKEN" },
    { "nor is one of a family", "HF_TOKEN=abc", "", "-", NULL },
    { "a value may hold anything", "DATA=a=b$", "$DATA", "a=b$", NULL },
};

static void test_variables_that_matter_are_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_STRV struct strv left_out = STRV_INIT;
        AUTO_FREE char *variable = strdup(cases[i].variable);
        char *env[] = { variable, NULL };
        AUTO_JSON json_t *kept = variables_kept(env, &cases[i].text, 1, &left_out);
        AUTO_FREE char *name = strndup(variable, strcspn(variable, "="));
        const json_t *j = json_object_get(kept, *cases[i].want ? name : "SPARK_HOME");
        const char *got = !j ? "-" : json_is_null(j) ? "" : json_string_value(j);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, got, cases[i].want);
        if (left_out.n != (cases[i].left_out != NULL) || (left_out.n && strcmp(left_out.v[0], cases[i].left_out) != 0))
            fail_msg("%s: %zu left out", cases[i].name, left_out.n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_variables_that_matter_are_kept) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
