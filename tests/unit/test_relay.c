/* Points of applications, passed on: with the machine's name and a time of their own, what is rejected and lost, and every opening that
 * fails. On loopback sockets of this process. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "live/relay.h"
#include "tests/fault.h"

struct fix {
    uv_loop_t loop;
    struct relay *r;
    int fd; /* sends to it */
    struct buf got;
    uint32_t n, calls;
    bool frees; /* within the first lines */
    char notes[1024];
};

static void on_lines(void *ctx, const char *bytes, size_t len, uint32_t n)
{
    struct fix *f = ctx;
    assert_non_null(f->r);
    buf_put(&f->got, bytes, len);
    f->n += n;
    f->calls++;
    if (f->frees)
        relay_free(MOVE_PTR(f->r));
}

static void on_note(void *ctx, const char *text)
{
    struct fix *f = ctx;
    size_t len = strlen(f->notes);
    (void)snprintf(f->notes + len, sizeof f->notes - len, "%s\n", text);
}

static const struct relay_ops ops = { .lines = on_lines, .note = on_note };

static void begin(struct fix *f, const char *host)
{
    struct err e = { 0 };
    *f = (struct fix){ .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) };
    assert_int_equal(uv_loop_init(&f->loop), 0);
    if (relay_open(&f->r, &f->loop, "127.0.0.1", 0, host, &ops, f, &e) < 0)
        fail_msg("%s", e.text);
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(relay_port(f->r)) };
    assert_int_equal(connect(f->fd, (struct sockaddr *)&a, sizeof a), 0);
}

static void end(struct fix *f)
{
    relay_free(MOVE_PTR(f->r));
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    buf_done(&f->got);
    (void)close(f->fd);
}

static void send_text(struct fix *f, const char *text)
{
    assert_int_equal(send(f->fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void run_until_points(struct fix *f, uint64_t n)
{
    while (f->r && relay_counts(f->r).points < n)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
}

static void test_a_point_gets_the_host_that_it_lacks(void **state)
{
    (void)state;
    struct fix f;
    begin(&f, "me");
    send_text(&f, "a v=1 5\na,host=you v=2 6\n");
    run_until_points(&f, 2);
    assert_string_equal(buf_text(&f.got), "a,host=me v=1.0 5\na,host=you v=2.0 6\n");
    assert_int_equal(f.n, 2);
    assert_int_equal(f.calls, 1);
    end(&f);
}

static void test_a_machine_without_a_name_adds_none(void **state)
{
    (void)state;
    struct fix f;
    begin(&f, "");
    send_text(&f, "a v=1 5");
    run_until_points(&f, 1);
    assert_string_equal(buf_text(&f.got), "a v=1.0 5\n");
    end(&f);
}

static void test_points_without_a_time_get_times_of_their_own(void **state)
{
    (void)state;
    enum { POINTS = 200 };
    struct fix f;
    begin(&f, "me");
    AUTO_BUF struct buf text = BUF_INIT;
    for (int i = 0; i < POINTS; i++)
        buf_puts(&text, "a v=1\n");
    send_text(&f, buf_text(&text));
    run_until_points(&f, POINTS);
    int64_t last = 0;
    for (const char *at = f.got.data; *at; at = strchr(at, '\n') + 1) {
        long long ns = 0;
        assert_int_equal(sscanf(at, "a,host=me v=1.0 %lld\n", &ns), 1);
        assert_true(ns > last);
        last = ns;
    }
    end(&f);
}

static void test_what_is_rejected_is_told_when_it_begins(void **state)
{
    (void)state;
    struct fix f;
    begin(&f, "me");
    send_text(&f, "nonsense\nmore of it\n");
    send_text(&f, "a v=1 1");
    run_until_points(&f, 1);
    relay_look(f.r);
    assert_non_null(strstr(f.notes, "udp input: 2 rejected so far, the newest: "));
    size_t told = strlen(f.notes);
    send_text(&f, "nonsense\na v=1 2");
    run_until_points(&f, 2);
    relay_look(f.r);
    assert_int_equal(strlen(f.notes), told); /* it goes on */
    relay_look(f.r);
    send_text(&f, "nonsense\na v=1 3");
    run_until_points(&f, 3);
    relay_look(f.r);
    assert_non_null(strstr(f.notes + told, "udp input: 4 rejected so far"));
    assert_int_equal(relay_counts(f.r).rejected, 4);
    assert_int_equal(relay_counts(f.r).points, 3);
    end(&f);
}

static void test_what_the_kernel_had_no_room_for_is_told(void **state)
{
    (void)state;
    struct fix f;
    begin(&f, "me");
    for (int i = 0; i < 20000 && relay_counts(f.r).lost == 0; i++)
        send_text(&f, "a v=1 1");
    assert_true(relay_counts(f.r).lost > 0);
    relay_look(f.r);
    assert_non_null(strstr(f.notes, "datagrams lost so far"));
    f.notes[0] = '\0';
    relay_look(f.r);
    assert_string_equal(f.notes, "");
    end(&f);
}

static void test_many_points_are_passed_on_in_parts(void **state)
{
    (void)state;
    struct fix f;
    begin(&f, "me");
    AUTO_BUF struct buf text = BUF_INIT;
    while (text.len < 60000)
        buf_puts(&text, "a v=1 1\n");
    for (int i = 0; i < 2; i++)
        send_text(&f, buf_text(&text));
    run_until_points(&f, 2 * 7500);
    assert_int_equal(f.n, 2 * 7500);
    assert_true(f.calls >= 2);
    end(&f);
}

static void test_it_may_be_freed_by_whom_it_tells(void **state)
{
    (void)state;
    struct fix f;
    begin(&f, "me");
    f.frees = true;
    send_text(&f, "a v=1 1\n");
    run_until_points(&f, 1);
    assert_int_equal(f.calls, 1);
    end(&f);
}

static void test_whatever_fails_an_opening_leaves_nothing_behind(void **state)
{
    (void)state;
    int rc = -1;
    for (unsigned nth = 1; rc < 0; nth++) {
        uv_loop_t loop;
        struct relay *r = NULL;
        struct err e = { 0 };
        assert_true(nth < 10);
        assert_int_equal(uv_loop_init(&loop), 0);
        fault_arm(FAULT_ALLOC, nth);
        rc = relay_open(&r, &loop, "127.0.0.1", 0, "me", &ops, NULL, &e);
        (void)fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && !r && e.text[0]));
        relay_free(r);
        assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
        assert_int_equal(uv_loop_close(&loop), 0);
    }
}

static void test_an_address_that_is_none(void **state)
{
    (void)state;
    struct fix f;
    begin(&f, "me");
    struct relay *other = NULL;
    struct err e = { 0 };
    assert_int_equal(relay_open(&other, &f.loop, "nowhere", 0, "me", &ops, &f, &e), -EINVAL);
    assert_int_equal(relay_open(&other, &f.loop, "127.0.0.1", relay_port(f.r), "me", &ops, &f, &e), -EADDRINUSE);
    assert_null(other);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_point_gets_the_host_that_it_lacks),
        cmocka_unit_test(test_a_machine_without_a_name_adds_none),
        cmocka_unit_test(test_points_without_a_time_get_times_of_their_own),
        cmocka_unit_test(test_what_is_rejected_is_told_when_it_begins),
        cmocka_unit_test(test_what_the_kernel_had_no_room_for_is_told),
        cmocka_unit_test(test_many_points_are_passed_on_in_parts),
        cmocka_unit_test(test_it_may_be_freed_by_whom_it_tells),
        cmocka_unit_test(test_whatever_fails_an_opening_leaves_nothing_behind),
        cmocka_unit_test(test_an_address_that_is_none),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
