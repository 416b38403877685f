#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/sha256.h"
#include "tests/fault.h"

/* FIPS 180-4's examples, and lengths around the padding's edges (as sha256sum gives them). */
static const struct {
    const char *name, *unit;
    size_t times;
    const char *want;
} cases[] = {
    { "nothing", "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "one block", "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "55 bytes", "a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
    { "56 bytes", "a", 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
    { "63 bytes", "a", 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
    { "64 bytes", "a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
    { "a million bytes", "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

static void test_known_sums(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sha256 s;
        char hex[SHA256_HEX_MAX];
        sha256_init(&s);
        for (size_t n = 0; n < cases[i].times; n++)
            sha256_add(&s, cases[i].unit, strlen(cases[i].unit));
        sha256_hex(&s, hex);
        if (strcmp(hex, cases[i].want) != 0)
            fail_msg("%s: got %s, want %s", cases[i].name, hex, cases[i].want);
    }
}

static void sum_in_two(const unsigned char *bytes, size_t len, size_t at, char out[SHA256_HEX_MAX])
{
    struct sha256 s;
    sha256_init(&s);
    sha256_add(&s, bytes, at);
    sha256_add(&s, bytes + at, len - at);
    sha256_hex(&s, out);
}

static void test_of_no_bytes_at_all(void **state)
{
    (void)state;
    struct sha256 s;
    char none[SHA256_HEX_MAX], empty[SHA256_HEX_MAX];
    sha256_init(&s);
    sha256_add(&s, NULL, 0);
    sha256_hex(&s, none);
    sha256_init(&s);
    sha256_hex(&s, empty);
    assert_string_equal(none, empty);
}

static void test_however_it_is_cut(void **state)
{
    (void)state;
    unsigned char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37 + 11);
    for (size_t len = 0; len <= sizeof bytes; len += 7) {
        char whole[SHA256_HEX_MAX], cut[SHA256_HEX_MAX];
        sum_in_two(bytes, len, len, whole);
        for (size_t at = 0; at <= len; at++) {
            sum_in_two(bytes, len, at, cut);
            if (strcmp(whole, cut) != 0)
                fail_msg("%zu bytes cut at %zu: got %s, want %s", len, at, cut, whole);
        }
    }
}

static void test_of_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/pipetune-sha-XXXXXX", hex[SHA256_HEX_MAX] = "";
    AUTO_CLOSE int fd = mkstemp(path);
    struct err e;
    assert_int_equal(write(fd, "abc", 3), 3);
    fault_arm(FAULT_OPEN, 1);
    assert_int_equal(sha256_file(path, hex, &e), -EMFILE);
    assert_true(fault_disarm());
    assert_int_equal(sha256_file("/tmp", hex, &e), -EISDIR);
    assert_int_equal(sha256_file("/tmp/pipetune-no-such-file", hex, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/tmp/pipetune-no-such-file"));
    assert_string_equal(hex, ""); /* untouched by whatever failed */
    assert_int_equal(sha256_file(path, hex, &e), 0);
    assert_string_equal(hex, cases[1].want);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_sums),
        cmocka_unit_test(test_of_no_bytes_at_all),
        cmocka_unit_test(test_however_it_is_cut),
        cmocka_unit_test(test_of_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
