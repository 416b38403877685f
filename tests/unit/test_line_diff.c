/* Which lines of two texts differ. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/line_diff.h"
#include "tests/fault.h"

static void test_what_differs(void **state)
{
    static const struct {
        const char *name, *a, *b, *want;
        size_t removed, added;
    } cases[] = {
        { "the same", "a\nb\n", "a\nb\n", "", 0, 0 },
        { "nothing at all", "", "", "", 0, 0 },
        { "a line changed", "a\nb\nc\n", "a\nx\nc\n", "@@ 2\n-b\n+x\n", 1, 1 },
        { "a line more", "a\nc\n", "a\nb\nc\n", "@@ 2\n+b\n", 0, 1 },
        { "a line less", "a\nb\nc\n", "a\nc\n", "@@ 2\n-b\n", 1, 0 },
        { "two places", "a\nb\nc\nd\ne\n", "x\nb\nc\nd\ny\n", "@@ 1\n-a\n+x\n@@ 5\n-e\n+y\n", 2, 2 },
        { "all of it", "", "a\nb\n", "@@ 1\n+a\n+b\n", 0, 2 },
        { "a last line without an end is a line", "a\nb", "a\nb\nc", "@@ 3\n+c\n", 0, 1 },
        { "lines that moved", "a\nb\nc\n", "b\nc\na\n", "@@ 1\n-a\n@@ 3\n+a\n", 1, 1 },
        { "more than is wanted", "", "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
          "@@ 1\n+1\n+2\n+3\n+4\n+5\n+6\n… and 3 lines more\n", 0, 9 },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf text = BUF_INIT;
        struct line_diff d = { 99, 99 };
        assert_int_equal(line_diff(&d, &text, cases[i].a, strlen(cases[i].a), cases[i].b, strlen(cases[i].b), 6), 0);
        if (strcmp(buf_text(&text), cases[i].want) != 0 || d.removed != cases[i].removed || d.added != cases[i].added)
            fail_msg("%s: got %zu out, %zu in:\n%s", cases[i].name, d.removed, d.added, buf_text(&text));
    }
}

/* What is too long to find the fewest is told all the same. */
static void test_long_texts_are_told_as_replaced(void **state)
{
    enum { LINES = 4000 };
    (void)state;
    AUTO_BUF struct buf a = BUF_INIT;
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    struct line_diff d;
    for (int i = 0; i < LINES; i++) {
        buf_printf(&a, "a%d\n", i);
        buf_printf(&b, "b%d\n", i);
    }
    assert_int_equal(line_diff(&d, &text, a.data, a.len, b.data, b.len, 2), 0);
    assert_true(d.removed == LINES && d.added == LINES);
    assert_string_equal(buf_text(&text), "@@ 1\n-a0\n-a1\n… and 7998 lines more\n");
}

static void test_a_lack_of_memory_leaves_what_was_there(void **state)
{
    int rc = -ENOMEM;
    (void)state;
    for (unsigned nth = 1; rc < 0; nth++) {
        AUTO_BUF struct buf text = BUF_INIT;
        struct line_diff d = { 7, 7 };
        assert_true(nth < 32);
        fault_arm(FAULT_ALLOC, nth);
        rc = line_diff(&d, &text, "a\n", 2, "b\n", 2, 9);
        (void)fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && d.removed == 7 && text.len == 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_differs),
        cmocka_unit_test(test_long_texts_are_told_as_replaced),
        cmocka_unit_test(test_a_lack_of_memory_leaves_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
