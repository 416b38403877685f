#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "node/leased.h"
#include "tests/fault.h"

/* Of four CPUs, physical cores first. */
static const struct cpus order = { .v = { 0, 2, 1, 3 }, .n = 4 };

/* Two helpers: of two machines' worth of memory, and one name space. */
static struct leased *a, *b;

static int set_up(void **state)
{
    char space[32];
    (void)state;
    (void)snprintf(space, sizeof space, "pt-leased-%ld", (long)getpid());
    (void)setenv("PIPETUNE_LEASES", space, 1);
    a = calloc(1, sizeof *a);
    b = calloc(1, sizeof *b);
    return a && b && leased_open(a) == 0 && leased_open(b) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    leased_close(a);
    leased_close(b);
    free(a);
    free(b);
    return 0;
}

/* "0,2" and, after a space, whether they are shared. */
static void assert_takes(const char *name, struct leased *l, int tag, int n, const char *want)
{
    static struct cpus got;
    char text[64] = "", who[LEASE_WHO_MAX];
    leased_take(l, tag, &order, n, &got);
    for (int i = 0; i < got.n; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? "," : "", got.v[i]);
    leased_with(l, tag, who);
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s", who[0] ? " shared" : "");
    if (strcmp(text, want) != 0)
        fail_msg("%s: got '%s', want '%s'", name, text, want);
}

static void test_free_ones_come_first(void **state)
{
    (void)state;
    assert_takes("the first has the front", a, 0, 1, "0");
    assert_takes("the same study's next", a, 1, 1, "2");
    assert_takes("another study's", b, 0, 2, "1,3");
    assert_takes("again: it stays", a, 1, 1, "2");
    leased_drop(a, 0);
    assert_takes("what went back is taken, and what is there is kept", b, 0, 3, "1,3,0");
    assert_takes("fewer", b, 0, 1, "0");
    assert_takes("what is let go of is free", a, 0, 2, "1,3");
}

static void test_too_few_are_shared_from_the_end(void **state)
{
    (void)state;
    assert_takes("all but one", a, 0, 3, "0,2,1");
    assert_takes("the free one, and the last of the others", b, 0, 2, "3,1 shared");
    assert_takes("the least used", b, 1, 1, "3 shared");
    assert_takes("what it has comes first", b, 1, 2, "3,2 shared");
    leased_poll(a);
    assert_takes("who was there first stays", a, 0, 3, "0,2,1 shared");
    assert_false(leased_may_part(b, 1, &order));
    assert_takes("it needs one alone", a, 0, 1, "0");
    assert_false(leased_may_part(a, 0, &order)); /* it shares nothing */
    leased_poll(b);
    assert_takes("what it shared is its own", b, 1, 1, "2");
    assert_takes("here, too", b, 0, 2, "1,3");
}

static void test_who_shares_may_part(void **state)
{
    (void)state;
    assert_takes("all", a, 0, 4, "0,2,1,3");
    assert_takes("one of them", a, 1, 1, "3 shared");
    assert_false(leased_may_part(a, 1, &order));
    leased_drop(a, 0);
    assert_takes("it is there alone", a, 1, 1, "3");
    assert_takes("beside it", a, 0, 3, "0,2,1");
    assert_takes("and on it", b, 0, 1, "3 shared");
    leased_poll(a);
    assert_takes("both know", a, 1, 1, "3 shared");
    leased_drop(a, 0);
    assert_true(leased_may_part(b, 0, &order));
    assert_takes("a free one", b, 0, 1, "0");
    leased_poll(a);
    assert_takes("it has gone", a, 1, 1, "3");
}

static size_t open_fds(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

static void test_nothing_leaks_whatever_fails(void **state)
{
    (void)state;
    static struct cpus got;
    size_t before = open_fds();
    for (unsigned nth = 1; nth < 12; nth++) {
        struct leased *c = calloc(1, sizeof *c);
        fault_arm(FAULT_ALLOC, nth);
        bool opened = leased_open(c) == 0;
        for (int tag = 0; opened && tag < 3; tag++) {
            leased_take(c, tag, &order, 2, &got);
            assert_int_equal(got.n, 2); /* a lease holds nobody up */
        }
        fault_disarm();
        leased_close(c);
        free(c);
        assert_int_equal(open_fds(), before);
    }
}

#define LEASED_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASED_TEST(test_free_ones_come_first),
        LEASED_TEST(test_too_few_are_shared_from_the_end),
        LEASED_TEST(test_who_shares_may_part),
        LEASED_TEST(test_nothing_leaks_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
