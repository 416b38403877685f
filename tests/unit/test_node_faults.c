/* live/nodes, node_peer and node_link when memory runs out: whichever allocation fails, what was asked for is answered once or
 * refused, and nothing is left behind. The helper is a script that says what a hello and an apply are answered. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/nodes.h"
#include "tests/fault.h"

static const struct app_workers spark = { "org.apache.spark.", "ExecutorBackend", "--cores" };

static const char script[] =
    "#!/bin/sh\n"
    "read l; echo "
    "'{\"id\":1,\"ok\":true,\"protocol\":1,\"version\":\"0\",\"clock_ms\":1,\"features\":\"node-stores\",\"cpus\":[0]}'"
    "\n"
    "read l; echo '{\"id\":2,\"ok\":true,\"processes\":1,\"threads\":1,\"slots\":1,\"cpus\":[0]}'\n"
    "echo '{\"event\":\"changed\",\"tag\":\"T\",\"processes\":2,\"threads\":1,\"slots\":1,\"cpus\":[0]}'\n"
    "read l; echo '{\"id\":3,\"ok\":true}'\n"
    "echo "
    "'{\"event\":\"sample\",\"tag\":\"T\",\"scope\":\"system\",\"t_ms\":1,\"dt_ms\":1,\"values\":\"AAAAAAAAAPA/\"}'\n"
    "read l; echo '{\"id\":4,\"ok\":true,\"opened\":\"cpu\",\"refused\":\"rapl: none\"}'\n"
    "echo '{\"event\":\"meter\",\"meter\":\"cpu\",\"state\":\"ok\",\"from_ms\":1,\"to_ms\":2,\"value\":3}'\n"
    "while read l; do :; done\n";

struct seen {
    size_t applied, changed, sampled, metered, notes;
    bool whole;
};

static void on_applied(void *ctx, const struct desired_want *want, const struct desired_have *have, const char *why)
{
    struct seen *s = ctx;
    assert_int_equal(want->id, 5);
    s->applied++;
    s->whole = !why && have->cores == 1;
}

static void on_changed(void *ctx, const char *tag, const struct desired_have *have)
{
    struct seen *s = ctx;
    assert_string_equal(tag, "T");
    /* A node whose line could not be read is lost. */
    assert_true(have->processes == 2 || (have->processes == 0 && s->whole));
    s->changed++;
}

static void on_sampled(void *ctx, const char *tag, const struct nodes_sample *s)
{
    struct seen *seen = ctx;
    assert_string_equal(tag, "T");
    assert_true(s->v[0].value == 1);
    seen->sampled++;
}

static void on_metered(void *ctx, const struct nodes_reading *r)
{
    struct seen *s = ctx;
    assert_string_equal(r->meter, "cpu");
    assert_true(r->node == 0 && r->r.value == 3);
    s->metered++;
}

static void on_note(void *ctx, const char *text)
{
    struct seen *s = ctx;
    assert_true(*text);
    s->notes++;
}

/* Whoever has no memory to ask for samples or readings gets none. */
static bool is_all(const struct seen *s, bool struck)
{
    return s->applied >= 1 && (!s->whole || (s->changed >= 1 && (struck || (s->sampled >= 1 && s->metered >= 1))));
}

/* True when all of it went well. */
static bool go(const char *helper, unsigned nth)
{
    static const struct nodes_ops ops = { on_applied, on_changed, on_sampled, on_metered, on_note };
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct seen seen = { 0 };
    struct nodes *n = NULL;
    struct err e = { 0 };
    int cpus[] = { 0 };
    struct desired_want want = {
        .tag = "T", .id = 5, .cores = 1, .slots = 1, .local = true, .cpus = cpus, .n_cpus = 1
    };
    fault_arm(FAULT_ALLOC, nth);
    int rc = nodes_open(&n, &loop, NULL, 0, helper, &spark, &ops, &seen, &e);
    if (rc == 0)
        rc = nodes_apply(n, &want, &e);
    if (rc == 0)
        rc = nodes_sample(n, "T", &(struct desired_sampling){ .interval_ms = 1000, .scope = "auto" }, &e);
    if (rc == 0)
        rc = nodes_meter(n, &(struct nodes_metering){ .meters = "cpu,rapl", .interval_ms = 1000 }, &e);
    assert_true(rc == 0 || rc == -ENOMEM);
    bool struck = false;
    for (int64_t until = clock_ms() + 10000; rc == 0 && !is_all(&seen, struck);) {
        assert_true(clock_ms() < until);
        (void)uv_run(&loop, UV_RUN_ONCE);
        struck = fault_struck();
    }
    if (rc == 0)
        nodes_release(n, "T");
    struck = fault_disarm();
    nodes_close(n);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_true(seen.applied == 1 || rc < 0);
    assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    return rc == 0 && seen.whole && !struck;
}

static void test_whatever_allocation_fails_nothing_is_left(void **state)
{
    (void)state;
    char helper[] = "/tmp/pipetune-test-XXXXXX";
    int fd = mkstemp(helper);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, script, sizeof script - 1), sizeof script - 1);
    assert_int_equal(fchmod(fd, 0700), 0);
    (void)close(fd);
    unsigned nth = 1;
    while (!go(helper, nth))
        assert_true(++nth < 64);
    assert_true(nth > 8);
    (void)unlink(helper);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_whatever_allocation_fails_nothing_is_left) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
