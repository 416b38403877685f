/* A gang as one launch: its processes are started at places that are played here, and end in many ways. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "live/gang.h"
#include "live/nodes.h"
#include "monitoring/features.h"
#include "tests/fault.h"

enum { N = 3, TELLS = 1, ID = 7 };

/* --- places -------------------------------------------------------------------------------------------------------------- */

struct played { /* one process */
    uint64_t id;
    char ports[64];
    int terms, kills, let_go;
    bool went, away;
    const char *lost;
    uint64_t accounted;
};

static struct world {
    char dir[64];
    struct gangs *all;
    struct gang *g;
    struct played at[N];
    struct site_launch launch;
    size_t started;
    int fails_at; /* the start that fails; -1: none */
    int ready, refused, gone, unplaced, ended;
    char why[320];
    int64_t now_ms;
} w;

static int start(void *site, uint64_t id, struct site_order *o, struct site_launch *out, struct err *e);

static int go(void *own, const char *ports)
{
    struct played *p = own;
    p->went = true;
    (void)snprintf(p->ports, sizeof p->ports, "%s", ports);
    return 0;
}

static void tell_end(void *own, const struct store_attempt *row, bool hard)
{
    struct played *p = own;
    (void)row;
    if (p)
        ++*(hard ? &p->kills : &p->terms);
}

static void say_stop(void *own, const struct store_attempt *row)
{
    (void)own, (void)row;
}

static void accounted(void *own, uint64_t offset)
{
    ((struct played *)own)->accounted = offset;
}

static int checkpoint(void *own, int epoch, const char *path, struct err *e)
{
    (void)own, (void)epoch, (void)path, (void)e;
    return 1;
}

static bool away(void *own)
{
    return own && ((struct played *)own)->away;
}

static bool boot_id(void *own, char out[PROC_BOOT_ID_SIZE])
{
    (void)own, (void)out;
    return false;
}

static bool ahead(void *own, int64_t *out_ms)
{
    (void)own;
    *out_ms = 5;
    return true;
}

static const char *lost(void *own)
{
    return own ? ((struct played *)own)->lost : NULL;
}

static void let_go(void *own, bool over)
{
    (void)over;
    if (own)
        ((struct played *)own)->let_go++;
}

static int adopt(void *site, uint64_t id, const struct store_attempt *row, const char *dir, struct site_launch *out,
                 struct err *e);

static const struct site_row played_row = { .start = start,
                                            .adopt = adopt,
                                            .go = go,
                                            .signal = tell_end,
                                            .say_stop = say_stop,
                                            .accounted = accounted,
                                            .checkpoint = checkpoint,
                                            .away = away,
                                            .boot_id = boot_id,
                                            .ahead = ahead,
                                            .lost = lost,
                                            .let_go = let_go };

static int start(void *site, uint64_t id, struct site_order *o, struct site_launch *out, struct err *e)
{
    (void)site, (void)o;
    if ((int)w.started == w.fails_at)
        return err_set(e, -EAGAIN, "no more processes");
    w.at[w.started].id = id;
    *out = (struct site_launch){ &played_row, &w.at[w.started++] };
    return 0;
}

/* The first is not there any more. */
static int adopt(void *site, uint64_t id, const struct store_attempt *row, const char *dir, struct site_launch *out,
                 struct err *e)
{
    (void)row, (void)dir;
    if (w.started++ == 0)
        return err_set(e, -ESRCH, "it is gone");
    return w.started--, start(site, id, NULL, out, e);
}

/* --- who is told ----------------------------------------------------------------------------------------------------------- */

static void on_ready(void *ctx, uint64_t id, const struct launcher_ready *r)
{
    (void)ctx;
    assert_int_equal(id, ID);
    assert_int_equal(r->pid, 100 + TELLS);
    w.ready++;
}

static void on_refused(void *ctx, uint64_t id, bool busy, const char *why)
{
    (void)ctx, (void)busy;
    assert_int_equal(id, ID);
    (void)snprintf(w.why, sizeof w.why, "%s", why);
    w.refused++;
}

static void on_gone(void *ctx, uint64_t id)
{
    (void)ctx;
    assert_int_equal(id, ID);
    w.gone++;
}

static void on_unplaced(void *ctx, uint64_t id, const char *why)
{
    on_refused(ctx, id, false, why);
    w.unplaced++;
}

static void on_ended(void *ctx, uint64_t id)
{
    (void)ctx;
    assert_int_equal(id, ID);
    w.ended++;
}

static const struct launcher_ops launcher = { on_ready, on_refused, on_gone };
static const struct hosts_ops hosts = { .unplaced = on_unplaced, .ended = on_ended };

static const struct app_gang shape = {
    .v = { { .role = "ps" }, { .role = "rank", .which = 1 }, { .role = "rank", .which = 1, .index = 1 } },
    .n = N,
    .tells = TELLS
};

static int begin(struct err *e)
{
    int rc = gangs_open(&w.all, &launcher, &hosts, NULL, e);
    if (rc < 0)
        return rc;
    w.g = gang_new(w.all, &shape, 1, 2, w.dir);
    return w.g ? 0 : err_sys(e, -ENOMEM, "gang");
}

static int set_up(void **state)
{
    (void)state;
    w = (struct world){ .dir = "/tmp/pipetune-gang.XXXXXX", .fails_at = -1, .now_ms = 1000 };
    struct err e;
    if (!mkdtemp(w.dir) || begin(&e) < 0)
        return -1;
    for (size_t k = 0; k < N; k++) {
        struct gang_member *m = gang_member(w.g, k);
        char tag[] = { 't', (char)('0' + k), '\0' };
        m->row.launch = strdup(tag);
        (void)snprintf(w.why, sizeof w.why, "%s/members", w.dir);
        (void)mkdir(w.why, 0700), (void)mkdir(m->dir, 0700);
    }
    w.why[0] = '\0';
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char members[128];
    gang_free(w.g);
    gangs_close(w.all);
    for (size_t k = 0; k < N; k++) {
        char path[160];
        static const char *const folders[] = { "members/ps-0", ".", "members/rank-1" };
        (void)snprintf(path, sizeof path, "%s/%s/exit", w.dir, folders[k]);
        (void)unlink(path);
        (void)snprintf(path, sizeof path, "%s/%s", w.dir, folders[k]);
        (void)rmdir(path);
    }
    (void)snprintf(members, sizeof members, "%s/members", w.dir);
    (void)rmdir(members);
    return rmdir(w.dir);
}

static void start_all(void)
{
    const struct site here = { &played_row, NULL, NULL, 0 };
    const struct site sites[N] = { here, here, here };
    struct site_order orders[N] = { 0 };
    struct err e;
    if (gang_start(w.g, ID, sites, orders, &w.launch, &e) < 0)
        fail_msg("%s", e.text);
}

static void be_ready(size_t k)
{
    const struct launcher_ready r = { .boot_id = "b", .pid = (pid_t)(100 + k), .port = (int)(4000 + k) };
    gangs_launcher_ops.ready(w.all, w.at[k].id, &r);
}

static void let_all_go(void)
{
    start_all();
    for (size_t k = 0; k < N; k++)
        be_ready(k);
    assert_int_equal(w.launch.row->go(w.launch.own, NULL), 0);
}

/* It ends, and its launcher notes how; code -1: it does not. */
static void end(size_t k, int code)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/exit", gang_member(w.g, k)->dir);
    FILE *f = code < 0 ? NULL : fopen(path, "w");
    if (f) {
        fprintf(f, "attempt=2 launch=t%zu kind=%s code=%d\n", k, code > 128 ? "signalled" : "exited", code);
        (void)fclose(f);
        (void)chmod(path, 0600);
    }
    gangs_launcher_ops.gone(w.all, w.at[k].id);
}

static void pass_ms(int64_t ms)
{
    for (int64_t until = w.now_ms + ms; w.now_ms < until; w.now_ms += 10)
        gangs_tick(w.all, w.now_ms);
}

static void expect_blamed(const char *name, int k)
{
    const struct gang_member *got = gang_blamed(w.g);
    if (got != (k < 0 ? NULL : gang_member(w.g, (size_t)k)))
        fail_msg("%s: got %d, want %d", name, got ? got->row.number : -1, k);
}

/* --- the tests -------------------------------------------------------------------------------------------------------------- */

static void test_it_is_ready_when_all_are_and_all_go_with_all_ports(void **state)
{
    (void)state;
    start_all();
    be_ready(2), be_ready(0);
    assert_int_equal(w.ready, 0);
    be_ready(1);
    assert_int_equal(w.ready, 1);
    assert_int_equal(w.launch.row->go(w.launch.own, NULL), 0);
    for (size_t k = 0; k < N; k++)
        assert_string_equal(w.at[k].ports, "4000,4001,4002");
}

static void test_one_that_is_refused_refuses_all_once(void **state)
{
    (void)state;
    start_all();
    be_ready(0);
    gangs_launcher_ops.refused(w.all, w.at[2].id, true, "it is held");
    gangs_launcher_ops.refused(w.all, w.at[1].id, false, "it is held, too");
    be_ready(2);
    assert_int_equal(w.refused, 1);
    assert_string_equal(w.why, "rank 1: it is held");
    w.launch.row->let_go(w.launch.own, false);
    for (size_t k = 0; k < N; k++)
        assert_int_equal(w.at[k].let_go, 1);
    gangs_launcher_ops.gone(w.all, w.at[0].id); /* which is nobody's now */
    assert_int_equal(w.gone, 0);
}

static void test_one_that_has_no_place_unplaces_all_once(void **state)
{
    (void)state;
    start_all();
    gangs_hosts_ops.unplaced(w.all, w.at[1].id, "no room");
    gangs_hosts_ops.unplaced(w.all, w.at[0].id, "no room");
    assert_int_equal(w.unplaced, 1);
    assert_string_equal(w.why, "rank 0: no room");
}

static void test_a_helper_without_ports_is_too_old(void **state)
{
    (void)state;
    start_all();
    const struct launcher_ready r = { .boot_id = "b", .pid = 9 };
    gangs_launcher_ops.ready(w.all, w.at[2].id, &r);
    assert_string_equal(w.why, "rank 1: its pipetune-node knows no gangs: it is older than this one");
}

static void test_a_start_that_fails_lets_go_of_the_others(void **state)
{
    (void)state;
    const struct site here = { &played_row, NULL, NULL, 0 };
    const struct site sites[N] = { here, here, here };
    struct site_order orders[N] = { 0 };
    struct err e;
    w.fails_at = 2;
    assert_int_equal(gang_start(w.g, ID, sites, orders, &w.launch, &e), -EAGAIN);
    gang_free(MOVE_PTR(w.g));
    assert_int_equal(w.at[0].let_go + w.at[1].let_go, 2);
}

static void test_those_that_serve_end_with_the_last_that_trains(void **state)
{
    (void)state;
    let_all_go();
    pass_ms(20);
    end(1, 0);
    pass_ms(50);
    assert_int_equal(w.at[0].terms, 0); /* the other rank may still write something down */
    end(2, 0);
    gangs_hosts_ops.ended(w.all, w.at[2].id);
    pass_ms(50);
    assert_int_equal(w.at[0].terms, 1);
    assert_int_equal(w.gone + w.ended, 0);
    end(0, 143);
    assert_int_equal(w.gone, 1);
    gangs_hosts_ops.ended(w.all, w.at[1].id);
    assert_int_equal(w.ended, 1); /* of the one that tells alone */
    expect_blamed("it has ended well", -1);
    assert_null(w.launch.row->lost(w.launch.own));
}

static void test_one_that_fails_ends_the_others(void **state)
{
    (void)state;
    let_all_go();
    pass_ms(20);
    end(2, 3);
    pass_ms(100);
    assert_int_equal(w.at[0].terms + w.at[1].terms, 0);
    pass_ms(400);
    assert_int_equal(w.at[0].terms, 1);
    assert_int_equal(w.at[1].terms, 1);
    end(0, 143), end(1, 143);
    assert_int_equal(w.gone, 1);
    expect_blamed("the one that failed, not those that were ended", 2);
}

static void test_who_was_killed_explains_who_failed_in_its_wake(void **state)
{
    (void)state;
    let_all_go();
    pass_ms(20);
    end(1, 1); /* it has lost its peer, which is heard of later */
    end(2, 137);
    pass_ms(400);
    end(0, 143);
    expect_blamed("killed", 2);
}

static void test_who_was_lost_explains_all(void **state)
{
    (void)state;
    let_all_go();
    pass_ms(20);
    end(1, 1);
    w.at[2].away = true;
    pass_ms(400);
    assert_true(w.at[2].kills > 0); /* it cannot be asked: it is given up */
    end(0, 137);
    w.at[2].lost = "its host 'h' is away";
    end(2, -1);
    assert_int_equal(w.gone, 1);
    expect_blamed("lost", 2);
    assert_string_equal(w.launch.row->lost(w.launch.own), "rank 1: its host 'h' is away");
}

static void test_what_an_earlier_driver_left_in_part_is_ended(void **state)
{
    (void)state;
    const struct site here = { &played_row, NULL, NULL, 0 };
    const struct site sites[N] = { here, here, { .row = NULL } };
    const struct store_attempt row = { .log_offset = 10 };
    struct err e;
    assert_int_equal(gang_adopt(w.g, ID, sites, &row, &w.launch, &e), 0);
    pass_ms(400);
    assert_int_equal(w.at[1].terms, 1);
    gangs_launcher_ops.gone(w.all, w.at[1].id);
    assert_int_equal(w.gone, 1);
    expect_blamed("the one whose place is gone", 2);
    assert_string_equal(w.launch.row->lost(w.launch.own), "rank 1: its host is not among the nodes any more");
}

static void test_all_that_ended_without_a_driver_is_told_at_the_next_tick(void **state)
{
    (void)state;
    const struct site sites[N] = { { .row = NULL }, { .row = NULL }, { .row = NULL } };
    const struct store_attempt row = { .log_offset = 10 };
    struct err e;
    assert_int_equal(gang_adopt(w.g, ID, sites, &row, &w.launch, &e), 0);
    assert_int_equal(w.gone, 0);
    pass_ms(20);
    assert_int_equal(w.gone, 1);
}

static struct nodes_sample sample(const char *scope, double cpu_s, double rss)
{
    struct nodes_sample s = { .scope = scope };
    s.v[0] = (struct reading){ 100, 1, READING_OK };
    s.v[FEATURE_PROC_CPU_TIME] = (struct reading){ cpu_s, 1, READING_OK };
    s.v[FEATURE_PROC_RSS] = (struct reading){ rss, 1, READING_OK };
    s.v[FEATURE_PROC_THREADS] = (struct reading){ NAN, 0, READING_ABSENT };
    return s;
}

static void test_samples_of_one_machine_are_one(void **state)
{
    (void)state;
    static const struct {
        const char *scope;
        double events;
    } cases[] = { { "system", 100 }, { "process", 300 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct nodes_sample a = sample(cases[i].scope, 1, 10), out;
        gang_member(w.g, 2)->row.node = 1;
        assert_false(gang_sample(w.g, 1, &a, &out));
        a = sample(cases[i].scope, 0.5, 20);
        assert_false(gang_sample(w.g, 1, &a, &out)); /* the one that tells has missed an interval */
        assert_true(gang_sample(w.g, 2, &a, &out));  /* on a machine of its own */
        assert_true(out.v[FEATURE_PROC_CPU_TIME].value == 0.5);
        a = sample(cases[i].scope, 0.25, 5);
        assert_true(gang_sample(w.g, 0, &a, &out));
        assert_true(out.v[FEATURE_PROC_CPU_TIME].value == 1.75);
        assert_true(out.v[FEATURE_PROC_RSS].value == 25);
        assert_true(out.v[0].value == cases[i].events);
        assert_int_equal(out.v[FEATURE_PROC_THREADS].state, READING_ABSENT);
        assert_true(gang_sample(w.g, 0, &a, &out));
        assert_true(out.v[FEATURE_PROC_CPU_TIME].value == 0.25);
    }
}

static void test_memory_may_end_anywhere(void **state)
{
    (void)state;
    struct err e = { 0 };
    int rc = -ENOMEM;
    gang_free(w.g), gangs_close(w.all);
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 20);
        w.all = NULL, w.g = NULL;
        fault_arm(FAULT_ALLOC, nth);
        rc = begin(&e);
        fault_disarm();
        if (rc < 0)
            gang_free(w.g), gangs_close(w.all);
    }
    for (size_t k = 0; k < N; k++)
        gang_member(w.g, k)->row.launch = strdup("t");
    start_all();
    fault_arm(FAULT_ALLOC, 1);
    be_ready(1);
    fault_disarm();
    assert_string_equal(w.why, "rank 0: out of memory");
}

#define GANG_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GANG_TEST(test_it_is_ready_when_all_are_and_all_go_with_all_ports),
        GANG_TEST(test_one_that_is_refused_refuses_all_once),
        GANG_TEST(test_one_that_has_no_place_unplaces_all_once),
        GANG_TEST(test_a_helper_without_ports_is_too_old),
        GANG_TEST(test_a_start_that_fails_lets_go_of_the_others),
        GANG_TEST(test_those_that_serve_end_with_the_last_that_trains),
        GANG_TEST(test_one_that_fails_ends_the_others),
        GANG_TEST(test_who_was_killed_explains_who_failed_in_its_wake),
        GANG_TEST(test_who_was_lost_explains_all),
        GANG_TEST(test_what_an_earlier_driver_left_in_part_is_ended),
        GANG_TEST(test_all_that_ended_without_a_driver_is_told_at_the_next_tick),
        GANG_TEST(test_samples_of_one_machine_are_one),
        GANG_TEST(test_memory_may_end_anywhere),
    };
    return cmocka_run_group_tests_name("gang", tests, NULL, NULL);
}
