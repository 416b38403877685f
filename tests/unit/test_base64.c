/* Bytes as text, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/own.h"
#include "tests/fault.h"

static const struct {
    const char *bytes, *text;
} pairs[] = { /* RFC 4648, 10 */
              { "", "" },
              { "f", "Zg==" },
              { "fo", "Zm8=" },
              { "foo", "Zm9v" },
              { "foob", "Zm9vYg==" },
              { "fooba", "Zm9vYmE=" },
              { "foobar", "Zm9vYmFy" },
              { "\xfb\xff\xfe", "+//+" }
};

static void bytes_become_text_and_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        AUTO_BUF struct buf text = BUF_INIT, bytes = BUF_INIT;
        base64_put(&text, pairs[i].bytes, strlen(pairs[i].bytes));
        assert_string_equal(buf_text(&text), pairs[i].text);
        assert_int_equal(base64_read(&bytes, pairs[i].text), 0);
        assert_int_equal(bytes.len, strlen(pairs[i].bytes));
        assert_string_equal(buf_text(&bytes), pairs[i].bytes);
    }
}

static void what_is_no_such_text_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = { "Z",    "Zg",   "Zg=",      "Zg==\n", "Zh==", "Zm9=", "Z===",
                                         "====", "Zg=v", "Zg==Zg==", "Zm 9",   "Zm9-", "=g==", "Zm9vYg" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_BUF struct buf bytes = BUF_INIT;
        buf_puts(&bytes, "kept");
        if (base64_read(&bytes, texts[i]) != -EINVAL || strcmp(buf_text(&bytes), "kept") != 0)
            fail_msg("'%s' was read", texts[i]);
    }
}

static void without_memory_nothing_is_appended(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    fault_arm(FAULT_ALLOC, 1);
    int rc = base64_read(&bytes, "Zm9v");
    assert_true(fault_disarm());
    assert_int_equal(rc, -ENOMEM);
    assert_int_equal(bytes.len, 0);
    buf_done(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_text_and_come_back),
        cmocka_unit_test(what_is_no_such_text_is_refused),
        cmocka_unit_test(without_memory_nothing_is_appended),
    };
    return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
