#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "search/pack.h"

static void test_what_is_packed_reads_back(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    pack_u64(&b, 0x0102030405060708);
    pack_f64(&b, -0.1);
    pack_f64(&b, NAN);
    pack_bytes(&b, "abc", 3);
    pack_bytes(&b, NULL, 0);
    pack_u64(&b, UINT64_MAX);
    assert_int_equal(b.data[0], 8); /* the least significant first */
    struct unpack u = unpack_from(b.data, b.len);
    assert_int_equal(unpack_u64(&u), 0x0102030405060708);
    assert_true(unpack_f64(&u) == -0.1);
    assert_true(isnan(unpack_f64(&u)));
    struct unpack part = unpack_bytes(&u);
    assert_memory_equal(part.at, "abc", 3);
    assert_int_equal(part.end - part.at, 3);
    part = unpack_bytes(&u);
    assert_true(part.at == part.end && !part.bad);
    assert_true(unpack_u64(&u) == UINT64_MAX);
    assert_true(!u.bad && u.at == u.end);
    assert_int_equal(unpack_u64(&u), 0);
    assert_true(u.bad);
}

static void test_more_than_there_is_is_not_read(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    pack_u64(&b, 3); /* … of which there are two */
    pack_u64(&b, 1);
    pack_u64(&b, 2);
    struct unpack u = unpack_from(b.data, b.len);
    assert_int_equal(unpack_count(&u, 8), 0);
    assert_true(u.bad);
    assert_int_equal(unpack_u64(&u), 0); /* once bad, bad */
    u = unpack_from(b.data, b.len);
    assert_int_equal(unpack_count(&u, 4), 3);
    u = unpack_from(b.data, 7);
    assert_int_equal(unpack_u64(&u), 0);
    assert_true(u.bad);
    u = unpack_from(NULL, 0);
    struct unpack part = unpack_bytes(&u);
    assert_true(part.bad && part.at == part.end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_packed_reads_back),
        cmocka_unit_test(test_more_than_there_is_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
