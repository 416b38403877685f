#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/array.h"
#include "base/gzip.h"
#include "base/own.h"
#include "tests/fault.h"

enum { BIG = 100000 };

static void pack(struct buf *out, const char *text, size_t len)
{
    unsigned char room[4096];
    z_stream z = { .next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)len };
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = room;
    z.avail_out = sizeof room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    buf_put(out, room, sizeof room - z.avail_out);
    assert_int_equal(deflateEnd(&z), Z_OK);
}

/* More than a chunk of the reader. */
static void pack_big(struct buf *out)
{
    static char text[BIG];
    for (size_t i = 0; i < BIG; i++)
        text[i] = "a line\n"[i % 7];
    pack(out, text, BIG);
}

static int unpack(struct buf *out, const struct buf *from, size_t len, size_t max, struct err *e)
{
    AUTO_FREE char *exact = malloc(len + 1); /* so that a byte too many is seen */
    assert_non_null(exact);
    if (len)
        memcpy(exact, from->data, len);
    exact[len] = '\0';
    return gzip_unpack(out, "t.gz", exact, len, max, e);
}

static void what_was_packed_comes_back(void **state)
{
    (void)state;
    AUTO_BUF struct buf packed = BUF_INIT, out = BUF_INIT;
    buf_puts(&out, "kept ");
    pack(&packed, "one", 3);
    pack(&packed, "", 0);
    pack(&packed, " two", 4);
    assert_true(gzip_is(packed.data, packed.len));
    assert_int_equal(unpack(&out, &packed, packed.len, 7, NULL), 0);
    assert_string_equal(buf_text(&out), "kept one two");
}

static void what_is_no_gzip_is_told_apart(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "\x1f", "{\"format\":\"curves\"}", "\x8b\x1f" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_false(gzip_is(texts[i], strlen(texts[i])));
}

static void a_file_that_is_cut_anywhere_is_refused(void **state)
{
    (void)state;
    AUTO_BUF struct buf packed = BUF_INIT;
    pack_big(&packed);
    for (size_t len = 0; len < packed.len; len++) {
        AUTO_BUF struct buf out = BUF_INIT;
        struct err e = { 0 };
        if (unpack(&out, &packed, len, BIG, &e) != -EINVAL || !strstr(e.text, "'t.gz' is no whole gzip file: it ends"))
            fail_msg("cut to %zu bytes: %s", len, e.text);
    }
}

static void a_file_whose_bytes_changed_is_refused(void **state)
{
    (void)state;
    AUTO_BUF struct buf packed = BUF_INIT;
    pack_big(&packed);
    for (size_t at = packed.len - 8; at < packed.len; at++) { /* checksum and length */
        AUTO_BUF struct buf out = BUF_INIT;
        struct err e = { 0 };
        packed.data[at] ^= 1;
        assert_int_equal(unpack(&out, &packed, packed.len, BIG, &e), -EINVAL);
        assert_non_null(strstr(e.text, "incorrect"));
        packed.data[at] ^= 1;
    }
    AUTO_BUF struct buf out = BUF_INIT;
    buf_puts(&packed, "more");
    assert_int_equal(unpack(&out, &packed, packed.len, BIG, NULL), -EINVAL);
}

static void it_stops_at_the_limit(void **state)
{
    (void)state;
    AUTO_BUF struct buf packed = BUF_INIT;
    pack_big(&packed);
    for (size_t max = 0; max < BIG; max += 9999) {
        AUTO_BUF struct buf out = BUF_INIT;
        struct err e = { 0 };
        assert_int_equal(unpack(&out, &packed, packed.len, max, &e), -EFBIG);
        assert_non_null(strstr(e.text, "unpacks to more than"));
        assert_true(out.len <= max + 16384 + 1);
    }
}

static void memory_may_run_out(void **state)
{
    (void)state;
    AUTO_BUF struct buf packed = BUF_INIT;
    pack_big(&packed);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        AUTO_BUF struct buf out = BUF_INIT;
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = gzip_unpack(&out, "t.gz", packed.data, packed.len, BIG, NULL);
        fault_disarm();
        assert_true(rc == -ENOMEM || (rc == 0 && out.len == BIG));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_comes_back),
        cmocka_unit_test(what_is_no_gzip_is_told_apart),
        cmocka_unit_test(a_file_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(a_file_whose_bytes_changed_is_refused),
        cmocka_unit_test(it_stops_at_the_limit),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests_name("gzip", tests, NULL, NULL);
}
