/* Ports of gangs: chosen, held against other gangs, and put into words. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "node/port.h"
#include "tests/fault.h"

static void test_each_gets_one_that_is_free_and_its_own(void **state)
{
    (void)state;
    enum { N = 16 };
    struct port got[N];
    struct err e;
    for (size_t i = 0; i < N; i++) {
        if (port_take(&got[i], &e) < 0)
            fail_msg("%s", e.text);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(got[i].number, got[k].number);
        AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)got[i].number) };
        assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&at, sizeof at), 0);
    }
    for (size_t i = 0; i < N; i++)
        port_give_back(&got[i]);
    port_give_back(&got[0]); /* again is fine */
}

static const struct {
    const char *name, *text;
    size_t n;
    int rc;
} lists[] = {
    { "one", "4000", 1, 0 },
    { "three", "4000,4001,65535", 3, 0 },
    { "one too few", "4000", 2, -EINVAL },
    { "one too many", "4000,4001", 1, -EINVAL },
    { "none", "", 1, -EINVAL },
    { "of no gang", "", 0, -EINVAL },
    { "no port", "0", 1, -EINVAL },
    { "beyond", "65536", 1, -EINVAL },
    { "far beyond", "4294971296", 1, -EINVAL },
    { "signed", "-1", 1, -EINVAL },
    { "a comma more", "4000,", 1, -EINVAL },
    { "too large a gang", "1", PORTS_MAX + 1, -EINVAL },
};

static void test_lists_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        int ports[PORTS_MAX];
        int rc = ports_read(ports, lists[i].n, lists[i].text);
        if (rc != lists[i].rc)
            fail_msg("%s: got %d, want %d", lists[i].name, rc, lists[i].rc);
    }
}

static void test_words_are_filled(void **state)
{
    (void)state;
    static const int ports[] = { 4000, 4001 };
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "h:{port.1},g:{port.0}", "h:4001,g:4000" },
        { "{port.2} {port.} {port.x} {port.0", "{port.2} {port.} {port.x} {port.0" },
        { "{port.00000}", "{port.00000}" },
        { "", "" },
        { "{{port.0}}", "{4000}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *got = ports_fill(cases[i].text, ports, 2);
        assert_string_equal(got, cases[i].want);
    }
}

static void test_memory_may_end(void **state)
{
    (void)state;
    static const int ports[] = { 4000 };
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc == -ENOMEM; nth++) {
        struct port p = { 0 };
        struct err e;
        assert_true(nth < 50);
        fault_arm(FAULT_ALLOC, nth);
        rc = port_take(&p, &e);
        fault_disarm();
        port_give_back(&p);
    }
    fault_arm(FAULT_ALLOC, 1);
    char *none = ports_fill("{port.0}", ports, 1);
    fault_disarm();
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_gets_one_that_is_free_and_its_own),
        cmocka_unit_test(test_lists_are_read_whole_or_not_at_all),
        cmocka_unit_test(test_words_are_filled),
        cmocka_unit_test(test_memory_may_end),
    };
    return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
