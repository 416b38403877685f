#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lease.h"
#include "tests/fault.h"

/* A name space of this process alone. */
static const char *space(void)
{
    static char name[32];
    (void)snprintf(name, sizeof name, "pt-unit-%ld", (long)getpid());
    return name;
}

static void test_one_has_it_at_a_time(void **state)
{
    (void)state;
    struct leases *a = leases_new(space()), *b = leases_new(space());
    assert_true(leases_is_free(a, 3));
    assert_true(leases_hold(a, 3));
    assert_true(leases_hold(a, 3));
    assert_true(leases_is_free(a, 3));
    assert_false(leases_is_free(b, 3));
    assert_false(leases_hold(b, 3));
    assert_true(leases_hold(b, 4));
    leases_drop(a, 3);
    leases_drop(a, 7);
    assert_true(leases_hold(b, 3));
    leases_free(b);
    assert_true(leases_is_free(a, 3));
    leases_free(a);
    leases_free(NULL);
}

static void test_a_guest_is_known_and_says_that_it_uses(void **state)
{
    (void)state;
    struct leases *a = leases_new(space()), *b = leases_new(space());
    char who[LEASE_WHO_MAX], want[LEASE_WHO_MAX];
    (void)snprintf(want, sizeof want, "process %ld of user %ld", (long)getpid(), (long)geteuid());
    assert_true(leases_hold(a, 0));
    leases_visit(b, 0, false);
    leases_visit(b, 1, false); /* nobody has it */
    leases_poll(a);
    assert_int_equal(leases_guests(a), 1);
    assert_true(leases_is_awaited(a));
    assert_false(leases_is_shared(a, 0, who));
    assert_int_equal(leases_holder_pid(b, 0), getpid());
    assert_int_equal(leases_holder_pid(b, 1), 0);
    leases_holder(b, 0, who);
    assert_string_equal(who, want);
    leases_holder(b, 1, who);
    assert_string_equal(who, "another process");
    leases_visit(b, 0, true);
    leases_poll(a);
    assert_true(leases_is_shared(a, 0, who));
    assert_false(leases_is_awaited(a)); /* it has begun */
    assert_string_equal(who, want);
    leases_leave(b, 0);
    leases_poll(a);
    assert_int_equal(leases_guests(a), 0);
    assert_false(leases_is_shared(a, 0, NULL));
    leases_visit(b, 0, true);
    leases_free(a);
    leases_poll(b); /* its holder is gone, and so is the visit */
    assert_true(leases_hold(b, 0));
    leases_free(b);
}

static void test_a_killed_holder_has_nothing(void **state)
{
    (void)state;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const char *name = space();
    pid_t pid = fork();
    if (pid == 0) {
        struct leases *l = leases_new(name);
        (void)!write(ready[1], leases_hold(l, 5) ? "y" : "n", 1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    struct leases *l = leases_new(name);
    assert_int_equal(byte, 'y');
    assert_false(leases_hold(l, 5));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(leases_hold(l, 5));
    leases_free(l);
}

/* Guests without end are turned away, and hold nobody up. */
static void test_more_guests_than_are_let_in(void **state)
{
    (void)state;
    struct leases *a = leases_new(space()), *b[40];
    assert_true(leases_hold(a, 0));
    for (size_t i = 0; i < 40; i++) {
        b[i] = leases_new(space());
        leases_visit(b[i], 0, true);
        leases_poll(a);
    }
    assert_int_equal(leases_guests(a), 1); /* all are this process */
    for (size_t i = 0; i < 40; i++)
        leases_free(b[i]);
    leases_poll(a);
    assert_int_equal(leases_guests(a), 0);
    leases_free(a);
}

static size_t open_fds(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_nothing_leaks_whatever_fails(void **state)
{
    (void)state;
    size_t before = open_fds();
    for (unsigned nth = 1; nth < 12; nth++) {
        fault_arm(FAULT_ALLOC, nth);
        struct leases *a = leases_new(space()), *b = leases_new(space());
        for (int i = 0; a && b && i < 20; i++) {
            (void)leases_hold(a, i);
            leases_visit(b, i, true);
        }
        if (a && b) {
            leases_poll(a);
            leases_poll(b);
        }
        fault_disarm();
        leases_free(a);
        leases_free(b);
        assert_int_equal(open_fds(), before);
    }
}

static void test_who_looks_on_counts_those_that_listen(void **state)
{
    (void)state;
    static const char text[] =
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 10 @pipetune-cpu-1\n"
        "0000000000000000: 00000003 00000000 00000000 0001 03 11 @pipetune-cpu-1\n" /* a guest's end */
        "0000000000000000: 00000002 00000000 00010000 0001 01 12 @pipetune-cpu-12\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 13 @pipetune-cpu-x\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 14 @pipetune-cpu\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 15 @pipetune-cpu-other-3\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 16 /run/pipetune-cpu-4\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 17\n";
    assert_int_equal(leases_taken_of(text, "pipetune-cpu"), 2);
    assert_int_equal(leases_taken_of("", "pipetune-cpu"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_has_it_at_a_time),
        cmocka_unit_test(test_a_guest_is_known_and_says_that_it_uses),
        cmocka_unit_test(test_a_killed_holder_has_nothing),
        cmocka_unit_test(test_more_guests_than_are_let_in),
        cmocka_unit_test(test_nothing_leaks_whatever_fails),
        cmocka_unit_test(test_who_looks_on_counts_those_that_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
