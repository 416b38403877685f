#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/point_list.h"

#define WANT "[{\"lr\": 0.1, \"opt\": \"sgd\"}, {\"lr\": 1, \"opt\": \"01\"}]"

static const struct {
    const char *name, *text, *want; /* the points, or a part of the error */
} cases[] = {
    { "CSV", "lr,opt\n0.1,sgd\n1,01\n", WANT },
    { "CSV with quotes, blanks and no last newline", "\"lr\", opt\r\n\n 0.1 ,\"sgd\"\r\n1,01", WANT },
    { "JSON lines", "\n{\"lr\":0.1,\"opt\":\"sgd\"}\n\n{\"lr\":1,\"opt\":\"01\"}", WANT },
    { "nothing", "", "'p' holds no points" },
    { "names alone", "lr,opt\n", "'p' holds no points" },
    { "a short row", "lr,opt\n1\n", "'p' line 2: 1 fields, and the first line has 2 names" },
    { "an empty cell", "lr,opt\n1,\n", "'p' line 2: field 2 must be a text of 1 to 63 bytes" },
    { "an open quote", "lr\n\"1\n", "'p' line 2: no row" },
    { "a name twice", "lr,lr\n1,2\n", "'p' line 1: 'lr' is there twice" },
    { "a line that is no object", "{\"a\":1}\n[1]\n", "'p' line 2: each line is an object" },
    { "a line that is no JSON", "{\"a\":1}\n{\n", "'p' line 2: each line is an object of hyperparameters: " },
};

static void test_points_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };
        int rc;
        AUTO_JSON json_t *list = point_list_parse("p", cases[i].text, strlen(cases[i].text), &e, &rc);
        AUTO_FREE char *text = json_text(list);
        if (!strstr(list ? text : e.text, cases[i].want) || rc != (list ? 0 : -EINVAL))
            fail_msg("%s: got %s %s", cases[i].name, text, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_points_are_read) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
