#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "serve/http_route.h"
#include "tests/fault.h"

static const struct {
    const char *path, *pattern;
    int rc;
    bool is;
} paths[] = {
    { "/", "", 0, true },
    { "/study/demo", "study/?", 0, true },
    { "/study/demo/", "study/?", 0, true },
    { "/study/demo", "trial/?", 0, false },
    { "/study", "study/?", 0, false },
    { "/study/demo/3", "study/?", 0, false },
    { "/api/show/demo/3", "api/*", 0, true },
    { "/api", "api/*", 0, false },
    { "/study/a%20b%C3%A9", "study/a b\xc3\xa9", 0, true },
    { "/study/a+b", "study/a+b", 0, true },
    { "", "", -EINVAL, false },
    { "study", "study", -EINVAL, false },
    { "//", "", -EINVAL, false },
    { "/a//b", "", -EINVAL, false },
    { "/../etc/passwd", "", -EINVAL, false },
    { "/a/%2e%2e/b", "", -EINVAL, false },
    { "/a/.", "", -EINVAL, false },
    { "/a%2fb", "", -EINVAL, false },
    { "/a%00b", "", -EINVAL, false },
    { "/a%0ab", "", -EINVAL, false },
    { "/a%1bb", "", -EINVAL, false },
    { "/a%", "", -EINVAL, false },
    { "/a%4", "", -EINVAL, false },
    { "/a%zz", "", -EINVAL, false },
    { "/a%ff", "", -EINVAL, false },
    { "/1/2/3/4/5/6/7/8", "1/*", 0, true },
    { "/1/2/3/4/5/6/7/8/9", "", -EINVAL, false },
};

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct http_path p = { .n = 0 };
        int rc = http_path_parse(&p, paths[i].path);
        if (rc != paths[i].rc || (rc == 0 && http_path_is(&p, paths[i].pattern) != paths[i].is))
            fail_msg("'%s' against '%s': rc %d, want %d", paths[i].path, paths[i].pattern, rc, paths[i].rc);
        http_path_done(&p);
    }
}

static void test_a_long_word_is_none(void **state)
{
    (void)state;
    char text[2000] = "/";
    struct http_path p = { .n = 0 };
    memset(text + 1, 'a', HTTP_WORD_MAX);
    assert_int_equal(http_path_parse(&p, text), 0);
    http_path_done(&p);
    memset(text + 1, 'a', HTTP_WORD_MAX + 1);
    assert_int_equal(http_path_parse(&p, text), -EINVAL);
    assert_int_equal(p.n, 0);
}

static void test_pairs(void **state)
{
    (void)state;
    struct http_pairs p;
    assert_int_equal(http_pairs_parse(&p, "a=1&b=x+y%2B&c&=&a=2&d=&&e=%26%3D"), 0);
    assert_string_equal(http_pairs_get(&p, "a"), "1");
    assert_string_equal(http_pairs_get(&p, "b"), "x y+");
    assert_string_equal(http_pairs_get(&p, "c"), "");
    assert_string_equal(http_pairs_get(&p, "d"), "");
    assert_string_equal(http_pairs_get(&p, "e"), "&=");
    assert_null(http_pairs_get(&p, "f"));
    assert_int_equal(p.n, 7);
    http_pairs_done(&p);
    assert_int_equal(http_pairs_parse(&p, "a=%"), -EINVAL);
    assert_int_equal(http_pairs_parse(&p, "a=%80"), -EINVAL);
    assert_int_equal(p.n, 0);
    AUTO_BUF struct buf many = BUF_INIT;
    for (int i = 0; i <= HTTP_PAIRS_MAX; i++)
        buf_puts(&many, "a=1&");
    assert_int_equal(http_pairs_parse(&p, buf_text(&many)), -EINVAL);
}

static void test_numbers_of_queries(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        long want;
    } rows[] = { { "n=7", 7 }, { "n=0", -1 }, { "n=101", -1 }, { "n=x", -1 },
                 { "n=", -1 }, { "", -1 },    { "n=7x", -1 },  { "n=99999999999999999999", -1 } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_pairs p;
        assert_int_equal(http_pairs_parse(&p, rows[i].text), 0);
        assert_int_equal(http_pairs_number(&p, "n", 1, 100, -1), rows[i].want);
        http_pairs_done(&p);
    }
}

static void test_words_come_back_as_they_went(void **state)
{
    (void)state;
    static const char *const words[] = { "demo", "a b", "100%", "a&b=c?d#e", "\xc3\xa9t\xc3\xa9", "x+y", "'\"<>" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        struct http_path p = { .n = 0 };
        struct http_pairs q;
        buf_putc(&b, '/');
        http_put_word(&b, words[i]);
        assert_int_equal(http_path_parse(&p, buf_text(&b)), 0);
        assert_string_equal(p.words[0], words[i]);
        buf_shift(&b, 1);
        AUTO_BUF struct buf pair = BUF_INIT;
        buf_printf(&pair, "w=%s", buf_text(&b));
        assert_int_equal(http_pairs_parse(&q, buf_text(&pair)), 0);
        assert_string_equal(http_pairs_get(&q, "w"), words[i]);
        http_path_done(&p);
        http_pairs_done(&q);
    }
}

static void test_without_memory_nothing_is_held(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct http_path p = { .n = 0 };
        assert_true(nth < 32);
        fault_arm(FAULT_ALLOC, nth);
        rc = http_path_parse(&p, "/study/demo");
        fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && p.n == 0));
        http_path_done(&p);
    }
    rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct http_pairs p;
        assert_true(nth < 32);
        fault_arm(FAULT_ALLOC, nth);
        rc = http_pairs_parse(&p, "a=1&b=2");
        fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && p.n == 0));
        http_pairs_done(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_a_long_word_is_none),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_numbers_of_queries),
        cmocka_unit_test(test_words_come_back_as_they_went),
        cmocka_unit_test(test_without_memory_nothing_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
