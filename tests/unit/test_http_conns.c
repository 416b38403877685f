#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include <sys/socket.h>
#include <unistd.h>

#include "serve/http_conns.h"

struct pair {
    int ours, theirs;
};

static struct pair make_pair(void)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return (struct pair){ fds[0], fds[1] };
}

static void end_pair(struct pair p)
{
    (void)close(p.ours);
    (void)close(p.theirs);
}

static bool is_shut(struct pair p)
{
    char c;
    return recv(p.theirs, &c, 1, MSG_DONTWAIT) == 0;
}

static void test_each_thing_has_its_time(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum http_doing doing;
        int64_t after_ms;
        bool shut;
    } rows[] = {
        { "who asks has ten seconds", HTTP_ASKS, HTTP_ASK_MS - 1, false },
        { "and no more", HTTP_ASKS, HTTP_ASK_MS, true },
        { "an answer may be read slowly", HTTP_ANSWERED, HTTP_ANSWER_MS - 1, false },
        { "but not for ever", HTTP_ANSWERED, HTTP_ANSWER_MS, true },
        { "who follows, follows", HTTP_FOLLOWS, INT64_C(1) << 40, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct http_conns c;
        struct pair p = make_pair();
        assert_int_equal(http_conns_init(&c), 0);
        struct http_conn *one = http_conns_add(&c, p.ours, 1000);
        assert_int_equal(http_conns_turn(&c, one, rows[i].doing, 2000), 0);
        (void)http_conns_sweep(&c, 2000 + rows[i].after_ms);
        if (is_shut(p) != rows[i].shut)
            fail_msg("%s", rows[i].name);
        http_conns_drop(&c, one);
        http_conns_done(&c);
        end_pair(p);
    }
}

static void test_many_that_wait_push_out_the_one_that_waits_longest(void **state)
{
    (void)state;
    struct http_conns c;
    struct pair first = make_pair(), second = make_pair(), busy = make_pair(), last = make_pair();
    assert_int_equal(http_conns_init(&c), 0);
    struct http_conn *answered = http_conns_add(&c, busy.ours, 1);
    assert_int_equal(http_conns_turn(&c, answered, HTTP_ANSWERED, 2), 0);
    (void)http_conns_add(&c, first.ours, 5);
    for (int i = 1; i < HTTP_WAITING_MAX; i++)
        assert_non_null(http_conns_add(&c, second.ours, 6 + i));
    assert_false(is_shut(first));
    assert_non_null(http_conns_add(&c, last.ours, 1000));
    assert_true(is_shut(first));
    assert_false(is_shut(second));
    assert_false(is_shut(busy));
    assert_false(is_shut(last));
    http_conns_done(&c);
    end_pair(first);
    end_pair(second);
    end_pair(busy);
    end_pair(last);
}

static void test_places_and_followers_are_bounded(void **state)
{
    (void)state;
    struct http_conns c;
    struct pair p = make_pair();
    struct http_conn *one[HTTP_CONNS_MAX];
    assert_int_equal(http_conns_init(&c), 0);
    for (int i = 0; i < HTTP_CONNS_MAX; i++) {
        one[i] = http_conns_add(&c, p.ours, i);
        assert_non_null(one[i]);
        int rc = http_conns_turn(&c, one[i], HTTP_FOLLOWS, i);
        assert_int_equal(rc, i < HTTP_STREAMS_MAX ? 0 : -1);
        assert_int_equal(one[i]->doing, i < HTTP_STREAMS_MAX ? HTTP_FOLLOWS : HTTP_ASKS);
    }
    assert_null(http_conns_add(&c, p.ours, 0));
    http_conns_drop(&c, one[7]);
    assert_non_null(http_conns_add(&c, p.ours, 0));
    http_conns_done(&c);
    end_pair(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_thing_has_its_time),
        cmocka_unit_test(test_many_that_wait_push_out_the_one_that_waits_longest),
        cmocka_unit_test(test_places_and_followers_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
