/* What launches are to have and what they were seen to have: whom to ask, and what is told once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "core/desired.h"
#include "tests/fault.h"

static const char *const names[] = { "", "node 'a'", "node 'b'" };

static struct desired_want cluster(uint64_t id, int cores)
{
    return (struct desired_want){ .tag = "T", .id = id, .cores = cores, .slots = 4 };
}

static struct desired *open_table(size_t nodes)
{
    struct desired *d = desired_new(names, nodes);
    assert_non_null(d);
    for (size_t i = 0; i < nodes; i++)
        desired_node_is(d, i, DESIRED_THERE, 0);
    return d;
}

static void set(struct desired *d, const struct desired_want *want, int64_t now_ms)
{
    assert_int_equal(desired_set(d, want, now_ms, NULL), 0);
}

/* All that is to be asked now, as "apply NODE CORES; sample NODE MS; release NODE". */
static const char *asked(struct desired *d, uint64_t *stamp)
{
    static char text[512];
    struct desired_ask a;
    size_t len = 0;
    text[0] = '\0';
    while (desired_next(d, &a)) {
        assert_true(len + 64 < sizeof text);
        if (a.want)
            len += (size_t)snprintf(text + len, 64, "apply %zu %d; ", a.node, a.want->cores);
        else if (a.how)
            len += (size_t)snprintf(text + len, 64, "sample %zu %d; ", a.node, a.how->interval_ms);
        else
            len += (size_t)snprintf(text + len, 64, "release %zu; ", a.node);
        if (stamp && a.want)
            *stamp = a.stamp;
    }
    return text;
}

static struct desired_seen seen(int slots, int cpus)
{
    return (struct desired_seen){ .processes = 1, .threads = 9, .slots = slots, .cpus = cpus };
}

static void answer(struct desired *d, size_t node, uint64_t stamp, int slots, int cpus)
{
    struct desired_seen s = seen(slots, cpus);
    desired_answered(d, node, stamp, &s, NULL);
}

/* The next that is told, as "applied ID cores=N WHY" or "changed TAG cores=N"; "" for nothing. */
static const char *told(struct desired *d)
{
    static char text[700];
    struct desired_news n;
    if (!desired_tell(d, &n))
        return "";
    if (n.applied)
        (void)snprintf(text, sizeof text, "applied %d cores=%d%s%s", (int)n.want.id, n.have.cores, n.why[0] ? " " : "",
                       n.why);
    else
        (void)snprintf(text, sizeof text, "changed %s cores=%d", n.tag, n.have.cores);
    return text;
}

static void test_it_is_told_once_when_all_nodes_have_answered(void **state)
{
    (void)state;
    struct desired *d = open_table(2);
    struct desired_want want = cluster(5, 4);
    uint64_t stamp = 0;
    set(d, &want, 0);
    assert_string_equal(asked(d, &stamp), "apply 0 4; apply 1 4; ");
    assert_string_equal(asked(d, NULL), "");
    answer(d, 0, stamp, 2, 2);
    assert_string_equal(told(d), "");
    answer(d, 1, stamp, 2, 1); /* fewer than asked for: that is no fault, but what is in force */
    assert_string_equal(told(d), "applied 5 cores=3");
    assert_string_equal(told(d), "");
    desired_free(d);
}

static void test_only_nodes_with_slots_count_on_a_cluster(void **state)
{
    (void)state;
    struct desired *d = open_table(2);
    struct desired_want want = cluster(5, 4);
    uint64_t stamp = 0;
    set(d, &want, 0);
    (void)asked(d, &stamp);
    answer(d, 0, stamp, 0, 8); /* the driver's */
    answer(d, 1, stamp, 4, 4);
    assert_string_equal(told(d), "applied 5 cores=4");
    desired_free(d);
}

static void test_what_is_local_concerns_this_machine_alone(void **state)
{
    (void)state;
    struct desired *d = open_table(2);
    struct desired_want want = cluster(5, 2);
    uint64_t stamp = 0;
    want.local = true;
    set(d, &want, 0);
    assert_string_equal(asked(d, &stamp), "apply 0 2; ");
    answer(d, 0, stamp, 0, 2);
    assert_string_equal(told(d), "applied 5 cores=2");
    struct desired_seen other = seen(1, 1);
    desired_changed(d, 1, "T", &other);
    assert_string_equal(told(d), "");
    want.node = 1; /* or another one */
    set(d, &want, 0);
    assert_string_equal(asked(d, &stamp), "apply 1 2; ");
    desired_free(d);
}

static void test_what_is_replaced_is_told_no_more(void **state)
{
    (void)state;
    struct desired *d = open_table(1);
    struct desired_want first = cluster(5, 4), second = cluster(6, 2);
    uint64_t old = 0, stamp = 0;
    set(d, &first, 0);
    (void)asked(d, &old);
    set(d, &second, 1);
    assert_string_equal(asked(d, &stamp), "apply 0 2; ");
    answer(d, 0, old, 4, 4);
    assert_string_equal(told(d), ""); /* neither as the first, nor as the second */
    answer(d, 0, stamp, 4, 2);
    assert_string_equal(told(d), "applied 6 cores=2");
    assert_string_equal(told(d), "");
    desired_free(d);
}

static void test_each_reason_is_told_with_its_node(void **state)
{
    (void)state;
    struct desired *d = open_table(3);
    struct desired_want want = cluster(5, 4);
    uint64_t stamp = 0;
    set(d, &want, 0);
    (void)asked(d, &stamp);
    answer(d, 0, stamp, 4, 4);
    desired_answered(d, 1, stamp, NULL, "cannot set the affinity");
    desired_node_is(d, 2, DESIRED_LOST, 0);
    assert_string_equal(told(d), "applied 5 cores=4 node 'a': cannot set the affinity; node 'b': is left out");
    want.id = 6; /* it was told that it is left out */
    set(d, &want, 20);
    assert_string_equal(asked(d, &stamp), "apply 0 4; apply 1 4; ");
    desired_unasked(d, 1, stamp, "it could not be asked");
    answer(d, 0, stamp, 4, 4);
    assert_string_equal(told(d), "applied 6 cores=4 node 'a': it could not be asked");
    desired_free(d);
}

static void test_who_does_not_answer_in_time_is_told_of_late(void **state)
{
    (void)state;
    struct desired *d = open_table(2);
    struct desired_want want = cluster(5, 4);
    uint64_t stamp = 0;
    set(d, &want, 1000);
    (void)asked(d, &stamp);
    answer(d, 0, stamp, 2, 2);
    desired_tick(d, 6100, 500); /* when nobody listened, silence is no fault */
    assert_string_equal(told(d), "");
    desired_tick(d, 6499, 0);
    assert_string_equal(told(d), "");
    desired_tick(d, 6500, 0);
    assert_string_equal(told(d), "applied 5 cores=2 node 'a': has not answered within 5 s");
    answer(d, 1, stamp, 2, 2);
    assert_string_equal(told(d), "changed T cores=4");
    assert_string_equal(told(d), "");
    desired_free(d);
}

static void test_without_a_node_it_is_told_at_once(void **state)
{
    (void)state;
    struct desired *d = open_table(1);
    struct desired_want want = cluster(5, 4);
    desired_node_is(d, 0, DESIRED_LOST, 0);
    set(d, &want, 0);
    assert_string_equal(asked(d, NULL), "");
    assert_string_equal(told(d), "applied 5 cores=0 no node is left that could be asked");
    desired_free(d);
}

static void test_a_helper_that_is_started_again_is_asked_again(void **state)
{
    (void)state;
    struct desired *d = open_table(1);
    struct desired_want want = cluster(5, 2);
    struct desired_sampling how = { .interval_ms = 1000, .scope = "auto", .events = "" };
    uint64_t stamp = 0;
    set(d, &want, 0);
    assert_int_equal(desired_measure(d, "T", &how, NULL), 0);
    assert_string_equal(asked(d, &stamp), "apply 0 2; sample 0 1000; ");
    answer(d, 0, stamp, 4, 2);
    assert_string_equal(told(d), "applied 5 cores=2");
    desired_node_is(d, 0, DESIRED_AWAY, 8);
    assert_string_equal(told(d), "changed T cores=8"); /* all are given back */
    assert_string_equal(asked(d, NULL), "");
    desired_node_is(d, 0, DESIRED_THERE, 0);
    assert_string_equal(asked(d, &stamp), "apply 0 2; sample 0 1000; ");
    answer(d, 0, stamp, 4, 2);
    assert_string_equal(told(d), "changed T cores=2");
    desired_free(d);
}

static void test_who_refuses_measures_no_more_and_is_asked_again(void **state)
{
    (void)state;
    struct desired *d = open_table(1);
    struct desired_want want = cluster(5, 2);
    struct desired_sampling how = { .interval_ms = 1000, .scope = "auto" };
    uint64_t stamp = 0;
    set(d, &want, 0);
    assert_int_equal(desired_measure(d, "T", &how, NULL), 0);
    (void)asked(d, &stamp);
    desired_answered(d, 0, stamp, NULL, "no");
    assert_string_equal(asked(d, NULL), "sample 0 1000; ");
    desired_free(d);
}

static void test_measuring_is_asked_for_once_and_ended_where_it_began(void **state)
{
    (void)state;
    struct desired *d = open_table(2);
    struct desired_sampling how = { .interval_ms = 1000, .scope = "auto", .events = "a" };
    desired_node_is(d, 1, DESIRED_AWAY, 0);
    assert_int_equal(desired_measure(d, "T", &how, NULL), 0);
    assert_int_equal(desired_measure(d, "T", &how, NULL), 0);
    assert_string_equal(asked(d, NULL), "sample 0 1000; ");
    how.events = "b";
    assert_int_equal(desired_measure(d, "T", &how, NULL), 0);
    assert_string_equal(asked(d, NULL), "sample 0 1000; ");
    assert_non_null(desired_measures(d, "T"));
    desired_drop(d, "T");
    assert_null(desired_measures(d, "T"));
    assert_string_equal(asked(d, NULL), "sample 0 0; ");
    desired_node_is(d, 1, DESIRED_THERE, 0);
    assert_string_equal(asked(d, NULL), "");
    desired_free(d);
}

static void test_what_is_dropped_is_released_and_told_with_a_reason(void **state)
{
    (void)state;
    struct desired *d = open_table(2);
    struct desired_want want = cluster(5, 4), again = cluster(6, 2);
    uint64_t old = 0, stamp = 0;
    set(d, &want, 0);
    (void)asked(d, &old);
    desired_drop(d, "T");
    desired_drop(d, "never-asked-for");
    assert_string_equal(asked(d, NULL), "release 0; release 1; ");
    set(d, &again, 1); /* another launch of that name is not mistaken for it */
    assert_string_equal(asked(d, &stamp), "apply 0 2; apply 1 2; ");
    answer(d, 0, old, 4, 4);
    assert_string_equal(told(d), "applied 5 cores=0 the launch was released first");
    assert_string_equal(told(d), "");
    answer(d, 0, stamp, 1, 1);
    answer(d, 1, stamp, 1, 1);
    assert_string_equal(told(d), "applied 6 cores=2");
    assert_string_equal(told(d), "");
    desired_free(d);
}

static void test_processes_that_come_and_go_are_told(void **state)
{
    (void)state;
    struct desired *d = open_table(1);
    struct desired_want want = cluster(5, 4);
    uint64_t stamp = 0;
    set(d, &want, 0);
    (void)asked(d, &stamp);
    answer(d, 0, stamp, 0, 0);
    assert_string_equal(told(d), "applied 5 cores=0");
    struct desired_seen now = seen(4, 4);
    (void)snprintf(now.shared, sizeof now.shared, "process 7");
    desired_changed(d, 0, "T", &now);
    assert_string_equal(told(d), "changed T cores=4");
    size_t node = 9;
    char who[DESIRED_WHO_MAX];
    assert_true(desired_is_shared(d, "T", &node, who));
    assert_int_equal(node, 0);
    assert_string_equal(who, "process 7");
    assert_false(desired_is_shared(d, "U", &node, who));
    desired_free(d);
}

static void test_what_cannot_be_had_is_refused(void **state)
{
    (void)state;
    struct desired *d = open_table(1);
    static const struct desired_want bad[] = {
        { .tag = "T", .cores = 0, .slots = 1 },
        { .tag = "T", .cores = 1, .slots = 0 },
        { .tag = "T", .cores = 1, .slots = 1, .n_cpus = DESIRED_MAX_CPUS + 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(desired_set(d, &bad[i], 0, NULL), -EINVAL);
    assert_string_equal(asked(d, NULL), "");
    desired_free(d);
}

static void test_without_memory_nothing_is_wanted(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    struct desired_want want = cluster(5, 1);
    want.cpus = (int[]){ 3 };
    want.n_cpus = 1;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct desired *d = open_table(1);
        assert_true(nth < 16);
        fault_arm(FAULT_ALLOC, nth);
        rc = desired_set(d, &want, 0, NULL);
        fault_disarm();
        assert_string_equal(asked(d, NULL), rc < 0 ? "" : "apply 0 1; ");
        desired_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_told_once_when_all_nodes_have_answered),
        cmocka_unit_test(test_only_nodes_with_slots_count_on_a_cluster),
        cmocka_unit_test(test_what_is_local_concerns_this_machine_alone),
        cmocka_unit_test(test_what_is_replaced_is_told_no_more),
        cmocka_unit_test(test_each_reason_is_told_with_its_node),
        cmocka_unit_test(test_who_does_not_answer_in_time_is_told_of_late),
        cmocka_unit_test(test_without_a_node_it_is_told_at_once),
        cmocka_unit_test(test_a_helper_that_is_started_again_is_asked_again),
        cmocka_unit_test(test_who_refuses_measures_no_more_and_is_asked_again),
        cmocka_unit_test(test_measuring_is_asked_for_once_and_ended_where_it_began),
        cmocka_unit_test(test_what_is_dropped_is_released_and_told_with_a_reason),
        cmocka_unit_test(test_processes_that_come_and_go_are_told),
        cmocka_unit_test(test_what_cannot_be_had_is_refused),
        cmocka_unit_test(test_without_memory_nothing_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
