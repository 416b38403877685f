#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/udp.h"
#include "tests/fault.h"

/* Both ends on loopback, at a port the kernel picks. */
struct ends {
    struct udp_in in;
    struct udp_out out;
    struct buf seen; /* what came in, written again */
};

static int set_up(void **state)
{
    struct ends *x = calloc(1, sizeof *x);
    struct err e = { 0 };
    assert_non_null(x);
    if (udp_in_open(&x->in, NULL, 0, &e) < 0)
        fail_msg("%s", e.text);
    char url[64];
    (void)snprintf(url, sizeof url, "udp://127.0.0.1:%u", x->in.port);
    if (udp_out_open(&x->out, url, 0, &e) < 0)
        fail_msg("%s", e.text);
    *state = x;
    return 0;
}

static int tear_down(void **state)
{
    struct ends *x = *state;
    udp_in_done(&x->in);
    udp_out_done(&x->out);
    buf_done(&x->seen);
    free(x);
    return 0;
}

static void on_point(void *ctx, const struct line_point *pt)
{
    struct ends *x = ctx;
    assert_int_equal(line_put_point(&x->seen, pt, NULL, 0, pt->stamped ? pt->stamp : -1, LINE_NS), 1);
}

static int read_all(struct ends *x)
{
    struct err e = { 0 };
    int n = udp_in_read(&x->in, on_point, x, &e);
    if (n < 0)
        fail_msg("%s", e.text);
    return n;
}

static void points_arrive_as_they_were_sent(void **state)
{
    struct ends *x = *state;
    static const char lines[] = "m,a=b f=1.5 17\nn f=2i\n";
    struct udp_sent sent;
    struct err e;
    assert_int_equal(udp_out_send(&x->out, lines, strlen(lines), &sent, &e), 0);
    assert_int_equal(sent.lines, 2);
    assert_int_equal(sent.datagrams, 1);
    assert_int_equal(read_all(x), 1);
    assert_string_equal(x->seen.data, "m,a=b f=1.5 17\nn f=2i -1\n");
    assert_int_equal(read_all(x), 0); /* and it did not block */
}

static void lines_are_packed_into_datagrams_whole(void **state)
{
    struct ends *x = *state;
    x->out.payload = 24;
    /* 8 bytes each; the fourth does not fit behind three, the long one fits nowhere. */
    static const char lines[] = "m a=1.0\nm b=1.0\nm c=1.0\nm d=1.0\nm this_is_far_too_long=1.0\nm e=1.0\n";
    struct udp_sent sent;
    struct err e;
    assert_int_equal(udp_out_send(&x->out, lines, strlen(lines), &sent, &e), 0);
    assert_int_equal(sent.lines, 5);
    assert_int_equal(sent.too_long, 1);
    assert_int_equal(sent.datagrams, 3);
    assert_int_equal(read_all(x), 3);
    assert_string_equal(x->seen.data, "m a=1.0 -1\nm b=1.0 -1\nm c=1.0 -1\nm d=1.0 -1\nm e=1.0 -1\n");
}

static void what_is_no_line_protocol_is_counted_and_the_rest_is_read(void **state)
{
    struct ends *x = *state;
    static const char bytes[] = "m f=1\r\n\nnonsense\nm f=2\0\nm f=3";
    assert_int_equal(send(x->out.fd, bytes, sizeof bytes - 1, 0), sizeof bytes - 1);
    assert_int_equal(send(x->out.fd, "", 0, 0), 0);
    assert_int_equal(read_all(x), 2);
    assert_string_equal(x->seen.data, "m f=1.0 -1\nm f=3.0 -1\n");
    assert_int_equal(x->in.rejected, 2);
    assert_int_equal(x->in.lines, 2);
    assert_non_null(strstr(x->in.why, "not line protocol at byte 6"));
}

static void a_flood_does_not_hold_the_reader(void **state)
{
    struct ends *x = *state;
    for (int i = 0; i < UDP_READ_MAX + 6; i++)
        assert_int_equal(send(x->out.fd, "m f=1", 5, 0), 5);
    assert_int_equal(read_all(x), UDP_READ_MAX);
    assert_int_equal(read_all(x), 6);
}

static void nobody_listening_is_an_error(void **state)
{
    struct ends *x = *state;
    udp_in_done(&x->in);
    struct udp_sent sent;
    struct err e = { 0 };
    int rc = 0;
    for (int i = 0; i < 10 && rc == 0; i++) /* the first one learns nothing: its refusal comes with the next */
        rc = udp_out_send(&x->out, "m f=1\n", 6, &sent, &e);
    assert_int_equal(rc, -ECONNREFUSED);
    assert_int_equal(sent.lines, 0);
}

static void urls_and_addresses_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = { "http://h:1", "udp://",     "udp://h",     "udp://h:",       "udp://:1",
                                        "udp://h:x",  "udp://[::1", "udp://[::1]", "udp://h:123456", "udp://h:1/x" };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct udp_out u;
        struct err e = { 0 };
        if (udp_out_open(&u, urls[i], 0, &e) != -EINVAL)
            fail_msg("%s was taken", urls[i]);
    }
    struct udp_in in;
    struct err e = { 0 };
    assert_int_equal(udp_in_open(&in, "localhost", 0, &e), -EINVAL);
}

static void a_port_that_is_taken_is_refused(void **state)
{
    struct ends *x = *state;
    struct udp_in second;
    struct err e = { 0 };
    assert_int_equal(udp_in_open(&second, "127.0.0.1", x->in.port, &e), -EADDRINUSE);
}

static void without_memory_nothing_is_read_and_nothing_is_lost(void **state)
{
    struct ends *x = *state;
    struct err e = { 0 };
    assert_int_equal(send(x->out.fd, "m f=1", 5, 0), 5);
    fault_arm(FAULT_ALLOC, 1);
    assert_int_equal(udp_in_read(&x->in, on_point, x, &e), -ENOMEM);
    assert_true(fault_disarm());
    assert_int_equal(read_all(x), 1);
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(points_arrive_as_they_were_sent),
        ROW(lines_are_packed_into_datagrams_whole),
        ROW(what_is_no_line_protocol_is_counted_and_the_rest_is_read),
        ROW(a_flood_does_not_hold_the_reader),
        ROW(nobody_listening_is_an_error),
        ROW(urls_and_addresses_that_are_none_are_refused),
        ROW(a_port_that_is_taken_is_refused),
        ROW(without_memory_nothing_is_read_and_nothing_is_lost),
    };
    return cmocka_run_group_tests_name("udp", tests, NULL, NULL);
}
