/* What Spark's file of properties says of one name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "bigdl/properties.h"

static const struct {
    const char *name, *text, *want; /* NULL: nothing */
} cases[] = {
    { "a blank between", "spark.a b", "b" },
    { "an equals sign", "spark.a=b", "b" },
    { "both", "  spark.a  =  b c \t\r\n", "b c" },
    { "a colon", "spark.a: b", "b" },
    { "the last one counts", "spark.a b\nspark.a c\n", "c" },
    { "comments", "# spark.a b\n! spark.a c", NULL },
    { "another name", "spark.ab b\nspark c", NULL },
    { "no value", "spark.a", "" },
    { "no value, and an equals sign", "spark.a =", "" },
    { "an escaped value", "spark.a=C\\:\\\\x", "C:\\x" },
    { "an escaped name", "spark\\.a=b", "b" },
    { "a backslash at the end", "spark.a=b\\", "b\\" },
    { "nothing", "", NULL },
};

static void test_a_name_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf got = BUF_INIT;
        bool found = properties_find(cases[i].text, "spark.a", &got);
        if (found != (cases[i].want != NULL) || (found && strcmp(buf_text(&got), cases[i].want) != 0))
            fail_msg("%s: got '%s'", cases[i].name, found ? buf_text(&got) : "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_name_is_found) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
