/* live/nodes against helpers and an ssh that behave as badly as they can (fake-node, fake-ssh): whatever one node does, there is
 * one note about it, what is wanted last of a launch is answered once, and the other nodes go on. */
#include "tests/integration/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "base/proc.h"
#include "live/nodes.h"

static const struct app_workers spark = { "org.apache.spark.", "ExecutorBackend", "--cores" };

enum { TOLD_MAX = 64 };

struct told {
    uint64_t id;
    struct desired_have have;
    char why[512]; /* "": NULL */
};

struct net {
    uv_loop_t loop;
    uv_timer_t beat; /* so that waiting looks again */
    struct nodes *nodes;
    char *dir, *helper;
    size_t fds; /* before */
    struct told told[TOLD_MAX];
    size_t n_told, n_changed, n_notes, n_sampled;
    size_t n_metered[3]; /* of each node */
    double metered_ms[3];
    size_t sample_node;
    double sample_ms;
    struct desired_have newest; /* of either call */
    struct buf notes;           /* one per line */
    uint64_t again;             /* asked for from within `applied` */
    bool close_at_note;
};

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

static struct desired_want cluster_want(const char *tag)
{
    return (struct desired_want){ .tag = tag, .cores = 4, .slots = 4 };
}

static void apply(struct net *w, const struct desired_want *want, uint64_t id)
{
    struct err e = { 0 };
    struct desired_want with_id = *want;
    with_id.id = id;
    with_id.to.hot = (int)id;
    if (nodes_apply(w->nodes, &with_id, &e) < 0)
        fail_msg("%s", e.text);
}

static void on_applied(void *ctx, const struct desired_want *of, const struct desired_have *have, const char *why)
{
    struct net *w = ctx;
    assert_true(w->n_told < TOLD_MAX);
    struct told *t = &w->told[w->n_told++];
    *t = (struct told){ .id = of->id, .have = *have };
    assert_true(*of->tag && of->to.hot == (int)of->id && !of->cpus);
    w->newest = *have;
    (void)snprintf(t->why, sizeof t->why, "%s", why ? why : "");
    struct desired_want want = cluster_want("T-again");
    if (w->again)
        apply(w, &want, w->again);
    w->again = 0;
}

static void on_changed(void *ctx, const char *tag, const struct desired_have *have)
{
    struct net *w = ctx;
    assert_true(*tag);
    w->n_changed++;
    w->newest = *have;
}

static void on_note(void *ctx, const char *text)
{
    struct net *w = ctx;
    w->n_notes++;
    buf_printf(&w->notes, "%s\n", text);
    if (w->close_at_note) {
        nodes_close(w->nodes);
        w->nodes = NULL;
    }
}

static void on_sampled(void *ctx, const char *tag, const struct nodes_sample *s)
{
    struct net *w = ctx;
    assert_string_equal(tag, "T1");
    assert_true(s->v[0].value == 1 && s->v[1].state == READING_UNSUPPORTED);
    assert_string_equal(s->scope, "process");
    assert_true(s->dt_ms == 1000.5 && s->missed == 2);
    w->n_sampled++;
    w->sample_node = s->node;
    w->sample_ms = s->t_ms;
}

static void on_metered(void *ctx, const struct nodes_reading *r)
{
    struct net *w = ctx;
    assert_string_equal(r->meter, "cpu");
    assert_int_equal(r->r.state, METER_OK);
    assert_true(r->r.value == 0.5 && r->r.error == 0.01 && fabs(r->r.to_ms - r->r.from_ms - 1000.25) < 0.001);
    assert_true(r->node < 3);
    w->n_metered[r->node]++;
    w->metered_ms[r->node] = r->r.from_ms;
}

static const struct nodes_ops ops = { on_applied, on_changed, on_sampled, on_metered, on_note };

static void on_beat(uv_timer_t *t)
{
    (void)t;
}

/* On the heap, so that a test that fails leaves nothing on the stack that libuv's signal handler knows. */
static struct net *net_new(void)
{
    struct net *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->fds = open_fds();
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_int_equal(uv_timer_init(&w->loop, &w->beat), 0);
    assert_int_equal(uv_timer_start(&w->beat, on_beat, 20, 20), 0);
    uv_unref((uv_handle_t *)&w->beat);
    w->dir = harness_dir();
    w->helper = harness_program("tests/integration/fake-node");
    AUTO_FREE char *ssh = harness_program("tests/integration/fake-ssh");
    (void)setenv("FAKE_NODE_DIR", w->dir, 1);
    (void)setenv("PIPETUNE_SSH", ssh, 1);
    (void)setenv("PIPETUNE_NODES_SPEED", "10", 1);
    (void)unsetenv("PIPETUNE_NODES_HASTE");
    (void)unsetenv("FAKE_NODE");
    return w;
}

static void net_open(struct net *w, const char *const *hosts)
{
    struct node_cfg cfg[8] = { 0 };
    size_t n = 0;
    for (; hosts && hosts[n]; n++)
        cfg[n].host = (char *)hosts[n];
    struct err e = { 0 };
    if (nodes_open(&w->nodes, &w->loop, cfg, n, w->helper, &spark, &ops, w, &e) < 0)
        fail_msg("%s", e.text);
}

static void run_until(struct net *w, bool (*holds)(const struct net *w), int ms, const char *name)
{
    for (int64_t until = clock_ms() + ms; !holds(w);) {
        if (clock_ms() > until)
            fail_msg("%s: not within %d ms; told %zu, changed %zu, notes:\n%s", name, ms, w->n_told, w->n_changed,
                     buf_text(&w->notes));
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    }
}

static void run_for(struct net *w, int ms)
{
    for (int64_t until = clock_ms() + ms; clock_ms() < until;)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
}

/* Everything ends by itself, and leaves no descriptor and no child behind. */
static void net_done(struct net *w, const char *name)
{
    size_t told = w->n_told, notes = w->n_notes;
    nodes_close(w->nodes);
    int64_t begun = clock_ms();
    assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    if (clock_ms() - begun > 8000)
        fail_msg("%s: the end took %ld ms", name, (long)(clock_ms() - begun));
    if (w->n_told != told || w->n_notes != notes)
        fail_msg("%s: something was told after nodes_close()", name);
    uv_close((uv_handle_t *)&w->beat, NULL);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    if (open_fds() > w->fds + 4) /* libuv keeps a pipe for signals and one to wake signal loops */
        fail_msg("%s: %zu descriptors, %zu before", name, open_fds(), w->fds);
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
        fail_msg("%s: a child is left", name);
    harness_remove(w->dir);
    free(w->helper);
    buf_done(&w->notes);
    free(w);
}

static bool told_one(const struct net *w)
{
    return w->n_told >= 1;
}

static bool told_two(const struct net *w)
{
    return w->n_told >= 2;
}

static bool told_changed(const struct net *w)
{
    return w->n_changed >= 1;
}

static bool four_of_each_and_changed(const struct net *w)
{
    return w->newest.processes == 4 && w->newest.cores == 4 && w->n_changed >= 1;
}

static bool told_note(const struct net *w)
{
    return w->n_notes >= 1;
}

static void expect_notes(const struct net *w, const char *name, size_t n, const char *const *texts)
{
    const char *notes = buf_text(&w->notes);
    if (w->n_notes != n)
        fail_msg("%s: %zu notes, not %zu:\n%s", name, w->n_notes, n, notes);
    for (; texts && *texts; texts++)
        if (!strstr(notes, *texts))
            fail_msg("%s: '%s' is not in the notes:\n%s", name, *texts, notes);
}

static void expect_told(const struct net *w, const char *name, size_t at, uint64_t id, int cores, int processes,
                        const char *why)
{
    const struct told *t = &w->told[at];
    if (w->n_told <= at || t->id != id || t->have.cores != cores || t->have.processes != processes)
        fail_msg("%s: %zu told; got id %d, %d cores, %d processes (%s), want id %d, %d, %d", name, w->n_told,
                 (int)t->id, t->have.cores, t->have.processes, t->why, (int)id, cores, processes);
    if (why ? !strstr(t->why, why) : t->why[0])
        fail_msg("%s: why is '%s', not '%s'", name, t->why, why ? why : "");
}

/* --- this machine ------------------------------------------------------------------------------------------------------- */

static void test_local_helper_is_asked_and_given_back(void **state)
{
    (void)state;
    struct net *w = net_new();
    net_open(w, NULL);
    const int *cpus = NULL;
    assert_int_equal(nodes_cpus(w->nodes, 0, &cpus), 0);
    assert_true(isnan(nodes_clock_offset_s(w->nodes, 0)));
    struct desired_want want = {
        .tag = "T1", .cores = 2, .slots = 4, .local = true, .cpus = (int[]){ 3, 1 }, .n_cpus = 2
    };
    want.frequency_khz = 1800000;
    apply(w, &want, 7); /* before its hello */
    assert_int_equal(w->n_told, 0);
    run_until(w, told_one, HARNESS_MS, "applied");
    expect_told(w, "local", 0, 7, 2, 1, NULL);
    assert_true(w->told[0].have.frequency_khz == 1800000);
    assert_int_equal(nodes_cpus(w->nodes, 0, &cpus), 4);
    assert_int_equal(cpus[2], 3);
    assert_true(fabs(nodes_clock_offset_s(w->nodes, 0)) < 5);
    nodes_release(w->nodes, "T1");
    run_for(w, 1200); /* a lease falls due */
    nodes_close(w->nodes);
    w->nodes = NULL;
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    AUTO_FREE char *heard = harness_read(w->dir, "ok");
    static const char *const in_turn[] = { "\"verb\":\"hello\",\"protocol\":1,",
                                           ("\"verb\":\"apply\",\"tag\":\"T1\",\"cores\":2,\"slots\":4,\"local\":true,"
                                            "\"cpus\":[3,1],\"frequency_khz\":1800000}"),
                                           "\"verb\":\"release\",\"tag\":\"T1\"}",
                                           "\"verb\":\"lease\"}",
                                           "\"verb\":\"stop\"}",
                                           "(stopped)" };
    const char *at = heard;
    for (size_t i = 0; i < ARRAY_LEN(in_turn); i++) {
        at = at ? strstr(at, in_turn[i]) : NULL;
        if (!at)
            fail_msg("'%s' did not come in its turn:\n%s", in_turn[i], heard);
    }
    AUTO_FREE char *fds = harness_read(w->dir, "ok.fds");
    assert_string_equal(fds, "0 1 2 ");
    expect_notes(w, "local", 0, NULL);
    net_done(w, "local");
}

static void test_killed_local_helper_is_started_again_and_asked_again(void **state)
{
    (void)state;
    struct net *w = net_new();
    (void)setenv("FAKE_NODE", "killed", 1);
    net_open(w, NULL);
    struct desired_want want = { .tag = "T1", .cores = 1, .slots = 2, .local = true };
    apply(w, &want, 1);
    run_until(w, told_one, HARNESS_MS, "applied");
    expect_told(w, "killed", 0, 1, 1, 1, NULL);
    expect_notes(w, "killed", 1,
                 (const char *[]){ "this machine's pipetune-node is started again (1 of 5)", "signal 9", NULL });
    net_done(w, "killed");
}

static bool sampled_once(const struct net *w)
{
    return w->n_sampled >= 1;
}

static void test_what_is_measured_is_asked_for_again_after_a_kill(void **state)
{
    (void)state;
    struct net *w = net_new();
    (void)setenv("FAKE_NODE", "sampled-and-killed", 1);
    net_open(w, NULL);
    struct desired_sampling how = { .interval_ms = 1000, .scope = "auto", .events = "" };
    assert_int_equal(nodes_sample(w->nodes, "T1", &how, NULL), 0); /* before its hello */
    how.events = "msr/tsc/";
    assert_int_equal(nodes_sample(w->nodes, "T1", &how, NULL), 0); /* other events: asked for in place of those */
    assert_int_equal(nodes_sample(w->nodes, "a b", &how, NULL), -EINVAL);
    run_until(w, sampled_once, HARNESS_MS, "sampled");
    assert_int_equal(w->sample_node, 0);
    assert_true(w->sample_ms == 1700000000000.25); /* this machine's clock is ours */
    expect_notes(w, "sampled", 1, (const char *[]){ "started again (1 of 5)", NULL });
    nodes_release(w->nodes, "T1"); /* which has no CPUs to be given back */
    run_for(w, 300);
    AUTO_FREE char *heard = harness_read(w->dir, "sampled-and-killed");
    static const char first[] = "\"verb\":\"sample\",\"tag\":\"T1\",\"interval_ms\":1000,\"scope\":\"auto\","
                                "\"events\":\"msr/tsc/\"}";
    const char *second = strstr(heard, first);
    second = second ? strstr(second + 1, first) : NULL;
    assert_non_null(second);
    assert_non_null(strstr(second, "\"interval_ms\":0"));
    net_done(w, "sampled");
}

/* A helper whose features are others, in another order: those that both know come, and what cannot be read is told once. */
static void test_samples_of_another_version_are_read_by_name(void **state)
{
    (void)state;
    struct net *w = net_new();
    (void)setenv("FAKE_NODE", "other-features", 1);
    net_open(w, NULL);
    struct desired_sampling how = { .interval_ms = 1000, .scope = "auto", .events = "" };
    assert_int_equal(nodes_sample(w->nodes, "T1", &how, NULL), 0);
    run_until(w, sampled_once, HARNESS_MS, "sampled");
    run_for(w, 300);
    assert_int_equal(w->n_sampled, 1);
    expect_notes(w, "sampled", 1, (const char *[]){ "samples that cannot be read", NULL });
    net_done(w, "sampled");
}

static bool metered_here(const struct net *w)
{
    return w->n_metered[0] >= 1;
}

static const struct nodes_metering metering = {
    .meters = "cpu,rapl,pcm", .interval_ms = 1000, .idle_w = 40, .cpu_w = 6
};
static const char metering_request[] =
    "\"verb\":\"meter\",\"meters\":\"cpu,rapl,pcm\",\"interval_ms\":1000,\"idle_w\":40,\"cpu_w\":6}";

static void test_meters_are_asked_for_again_after_a_kill_and_refusals_told_once(void **state)
{
    (void)state;
    struct net *w = net_new();
    (void)setenv("FAKE_NODE", "metered-and-killed", 1);
    net_open(w, NULL);
    assert_int_equal(nodes_meter(w->nodes, &metering, NULL), 0); /* before its hello */
    assert_int_equal(nodes_meter(w->nodes, &metering, NULL), 0); /* which is the same */
    run_until(w, metered_here, HARNESS_MS, "metered");
    assert_true(w->metered_ms[0] == 1700000000000.25); /* this machine's clock is ours */
    struct nodes_metering fewer = { .meters = "rapl,cpu", .interval_ms = 500 };
    assert_int_equal(nodes_meter(w->nodes, &fewer, NULL), 0); /* its refusal is known */
    run_for(w, 300);
    assert_int_equal(w->n_metered[0], 2);
    struct nodes_metering none = { .interval_ms = 0 };
    assert_int_equal(nodes_meter(w->nodes, &none, NULL), 0);
    run_for(w, 300);
    assert_int_equal(w->n_metered[0], 2);
    expect_notes(w, "metered", 3,
                 (const char *[]){ "started again (1 of 5)", "this machine's pipetune-node: rapl: no RAPL zone\n",
                                   "this machine's pipetune-node: pcm: not found\n", NULL });
    AUTO_FREE char *heard = harness_read(w->dir, "metered-and-killed");
    assert_int_equal(harness_count(heard, metering_request), 2); /* of either start */
    assert_int_equal(harness_count(heard, "\"verb\":\"meter\",\"meters\":\"rapl,cpu\",\"interval_ms\":500}"), 1);
    assert_int_equal(harness_count(heard, "\"verb\":\"meter\",\"interval_ms\":0}"), 1);
    net_done(w, "metered");
}

static void test_what_no_helper_would_take_is_refused_before_it_is_asked(void **state)
{
    (void)state;
    struct net *w = net_new();
    net_open(w, NULL);
    static const struct nodes_metering bad[] = {
        { .meters = NULL, .interval_ms = 1000 },   { .meters = "", .interval_ms = 1000 },
        { .meters = "a b", .interval_ms = 1000 },  { .meters = "cpu", .interval_ms = 99 },
        { .meters = "cpu", .interval_ms = 60001 }, { .meters = "cpu", .interval_ms = -1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(nodes_meter(w->nodes, &bad[i], NULL), -EINVAL);
    struct nodes_metering none = { .interval_ms = 0 };
    assert_int_equal(nodes_meter(w->nodes, &none, NULL), 0);
    struct desired_want want = { .tag = "T1", .cores = 1, .slots = 2, .local = true };
    apply(w, &want, 1);
    run_until(w, told_one, HARNESS_MS, "applied");
    AUTO_FREE char *heard = harness_read(w->dir, "ok");
    assert_null(strstr(heard, "meter"));
    net_done(w, "refused metering");
}

static bool six_notes(const struct net *w)
{
    return w->n_notes >= 6;
}

static void test_local_helper_that_always_dies_is_given_up(void **state)
{
    (void)state;
    struct net *w = net_new();
    (void)setenv("FAKE_NODE", "die", 1);
    net_open(w, NULL);
    struct desired_want want = { .tag = "T1", .cores = 1, .slots = 2, .local = true };
    apply(w, &want, 1);
    run_until(w, six_notes, HARNESS_MS, "given up");
    run_for(w, 1500);
    expect_notes(w, "die", 6,
                 (const char *[]){ "again (5 of 5)", "left out from now on: it ended with exit code 3", NULL });
    assert_int_equal(w->n_told, 1);
    want.tag = "T2";
    apply(w, &want, 2);
    run_until(w, told_two, HARNESS_MS, "told");
    expect_told(w, "die", 1, 2, 0, 0, "no node is left");
    net_done(w, "die");
}

static void test_missing_helper_is_one_note(void **state)
{
    (void)state;
    struct net *w = net_new();
    free(w->helper);
    w->helper = strdup("/nonexistent/pipetune-node");
    net_open(w, NULL);
    assert_int_equal(w->n_notes, 0); /* never from within a call */
    struct desired_want want = { .tag = "T1", .cores = 1, .slots = 2, .local = true };
    apply(w, &want, 1);
    run_until(w, told_one, HARNESS_MS, "told");
    expect_told(w, "missing", 0, 1, 0, 0, "no node is left");
    expect_notes(w, "missing", 1, (const char *[]){ "/nonexistent/pipetune-node", "no such file", NULL });
    net_done(w, "missing");
}

/* --- other machines ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name, *host;
    const char *note; /* NULL: none */
    const char *why;  /* NULL: wholly in force */
    int cores, processes;
} cases[] = {
    { "a node that behaves", "well", NULL, NULL, 4, 3 },
    { "a banner before the hello", "banner", NULL, NULL, 4, 3 },
    { "another version, the same protocol", "oldversion", "has pipetune-node 0.0.1", NULL, 4, 3 },
    { "another protocol", "oldproto", "speaks protocol 0, this one (" PIPETUNE_VERSION ") speaks 1", "left out", 2, 2 },
    { "100 MB of lines", "flood", "65536 bytes and no answer; what came first is '####", "left out", 2, 2 },
    { "100 MB without a line's end", "one-long-line", "a line of more than 65536 bytes: '####", "left out", 2, 2 },
    { "no answer to the hello", "mute", "no answer for 30 s", "left out", 2, 2 },
    { "a banner and nothing more", "dumb", "begins with 'Please change your password.'", "left out", 2, 2 },
    { "a link that stalls", "stall", "no answer for 15 s", "left out", 2, 2 },
    { "a wrong host key", "hostkey", "exit code 255: Host key verification failed.", "left out", 2, 2 },
    { "no helper there", "no-helper", "exit code 127: bash: line 1: /opt/pipetune-node: No such file", "left out", 2,
      2 },
    { "a helper that dies", "die", "it ended with exit code 3", "left out", 2, 2 },
    { "a helper that closes its output", "close-and-stay", "it closed its output", "left out", 2, 2 },
    { "an answer to nothing", "wrongid", "answers what it was not asked", "left out", 2, 2 },
    { "junk after the hello", "late-junk", "'Segmentation fault (not really)' is no answer", "left out", 2, 2 },
    { "half an answer", "half-an-answer", "no number of 'processes', 'threads' or 'slots'", "left out", 2, 2 },
    { "a refusal", "refuse", NULL, "node 'refuse': cannot set the affinity", 2, 2 },
    { "a node without a process of the launch", "empty", NULL, NULL, 2, 2 },
    { "a second helper of this machine", "twin", "it sees the processes that this machine's", "left out", 2, 2 },
};

/* Those that don't answer need not be waited for as long as people do. */
static bool is_silent(const char *host)
{
    return strcmp(host, "mute") == 0 || strcmp(host, "dumb") == 0 || strcmp(host, "stall") == 0;
}

/* Beside it there is a node that is well: its half of the slots is always served. */
static void test_each_fault_of_a_node_is_one_note(void **state)
{
    (void)state;
    struct rusage use;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct net *w = net_new();
        if (is_silent(cases[i].host))
            (void)setenv("PIPETUNE_NODES_HASTE", "7", 1); /* 30 s are 4.3, less than an answer may take */
        net_open(w, (const char *[]){ cases[i].host, "partial", NULL });
        struct desired_want want = cluster_want("T1");
        apply(w, &want, 1);
        run_until(w, told_one, HARNESS_MS, cases[i].name);
        expect_told(w, cases[i].name, 0, 1, cases[i].cores, cases[i].processes, cases[i].why);
        expect_notes(w, cases[i].name, cases[i].note ? 1 : 0, (const char *[]){ cases[i].note, NULL });
        apply(w, &want, 2); /* and it goes on so */
        run_until(w, told_two, HARNESS_MS, cases[i].name);
        assert_int_equal(w->told[1].have.cores, cases[i].cores);
        assert_true(w->n_notes <= 1);
        net_done(w, cases[i].name);
    }
    assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
    if (!getenv("ASAN_OPTIONS"))
        assert_true(use.ru_maxrss < 200 << 10); /* KB: 200 MB of junk went by */
}

static void test_slow_answer_is_told_late(void **state)
{
    (void)state;
    struct net *w = net_new();
    (void)unsetenv("PIPETUNE_NODES_SPEED");
    net_open(w, (const char *[]){ "slow", "partial", NULL });
    struct desired_want want = cluster_want("T1");
    int64_t begun = clock_ms();
    apply(w, &want, 1);
    run_until(w, told_one, HARNESS_MS, "applied");
    assert_true(clock_ms() - begun >= 4900);
    expect_told(w, "slow", 0, 1, 2, 2, "node 'slow': has not answered within 5 s");
    run_until(w, told_changed, HARNESS_MS, "changed");
    assert_int_equal(w->newest.cores, 4);
    assert_int_equal(w->n_told, 1);
    expect_notes(w, "slow", 0, NULL);
    net_done(w, "slow");
}

static void test_change_of_processes_is_told(void **state)
{
    (void)state;
    struct net *w = net_new();
    net_open(w, (const char *[]){ "changes", "ahead", NULL });
    struct desired_want want = cluster_want("T1");
    apply(w, &want, 1);
    run_until(w, four_of_each_and_changed, HARNESS_MS, "changed");
    run_until(w, told_one, HARNESS_MS, "applied");
    expect_notes(w, "changes", 0, NULL); /* an event it does not know is none */
    double ahead = nodes_clock_offset_s(w->nodes, 2);
    assert_true(ahead > 55 && ahead < 65);
    assert_true(isnan(nodes_clock_offset_s(w->nodes, 3)));
    net_done(w, "changes");
}

static bool metered_everywhere(const struct net *w)
{
    return w->n_metered[0] >= 1 && w->n_metered[1] >= 1 && w->n_metered[2] >= 1;
}

static void test_every_node_is_metered_by_our_clock(void **state)
{
    (void)state;
    struct net *w = net_new();
    net_open(w, (const char *[]){ "well", "ahead", NULL });
    assert_int_equal(nodes_meter(w->nodes, &metering, NULL), 0);
    run_until(w, metered_everywhere, HARNESS_MS, "metered");
    run_for(w, 300);
    static const double ahead_ms[] = { 0, 0, 60000 };
    for (size_t i = 0; i < 3; i++) {
        double off_ms = 1700000000000.25 - ahead_ms[i] - w->metered_ms[i];
        if (fabs(off_ms) > 5000)
            fail_msg("node %zu: %g ms off", i, off_ms);
        assert_int_equal(w->n_metered[i], 1);
    }
    expect_notes(w, "everywhere", 6,
                 (const char *[]){ "node 'well': rapl: no RAPL zone\n", "node 'ahead': rapl: no RAPL zone\n",
                                   "node 'ahead': pcm: not found\n", NULL });
    net_done(w, "everywhere");
}

/* Beside it there is this machine, which goes on. */
static void test_a_node_that_cannot_be_metered_is_one_note(void **state)
{
    (void)state;
    static const struct {
        const char *name, *host, *note;
    } nodes[] = {
        { "an older helper", "older", "node 'older' cannot read meters: unknown verb 'meter'\n" },
        { "half a reading", "half-a-reading",
          "node 'half-a-reading' is left out from now on: its reading has no 'value'" },
        { "a second helper of this machine", "twin", "it sees the processes that this machine's" },
    };
    struct nodes_metering how = { .meters = "cpu", .interval_ms = 1000 };
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        struct net *w = net_new();
        net_open(w, (const char *[]){ nodes[i].host, NULL });
        struct desired_want want = cluster_want("T1");
        apply(w, &want, 1); /* so that both have said hello */
        assert_int_equal(nodes_meter(w->nodes, &how, NULL), 0);
        run_until(w, told_one, HARNESS_MS, nodes[i].name);
        run_until(w, metered_here, HARNESS_MS, nodes[i].name);
        run_until(w, told_note, HARNESS_MS, nodes[i].name);
        run_for(w, 300);
        if (!strstr(buf_text(&w->notes), nodes[i].note))
            fail_msg("%s: '%s' is not in the notes:\n%s", nodes[i].name, nodes[i].note, buf_text(&w->notes));
        struct nodes_metering again = { .meters = "cpu", .interval_ms = 500 };
        size_t before = w->n_metered[1]; /* it may have been the first to say hello */
        assert_int_equal(nodes_meter(w->nodes, &again, NULL), 0);
        run_for(w, 300);
        assert_int_equal(w->n_metered[0], 2);
        assert_int_equal(w->n_metered[1], before);
        net_done(w, nodes[i].name);
    }
}

static void test_what_is_wanted_last_of_each_launch_is_answered_once(void **state)
{
    (void)state;
    struct net *w = net_new();
    net_open(w, (const char *[]){ "well", "partial", NULL });
    struct desired_want want = cluster_want("T1");
    apply(w, &want, 1);
    want.cores = 2;
    apply(w, &want, 2); /* replaces what was wanted, which is told no more */
    want.tag = "T2";
    apply(w, &want, 3);
    nodes_release(w->nodes, "T2"); /* released before it was answered */
    nodes_release(w->nodes, "never-asked-for");
    w->again = 4;
    run_until(w, told_two, HARNESS_MS, "told");
    run_for(w, 500);
    assert_int_equal(w->n_told, 3);
    size_t times[5] = { 0 };
    for (size_t i = 0; i < w->n_told; i++) {
        times[w->told[i].id]++;
        if (w->told[i].id == 3)
            assert_string_equal(w->told[i].why, "the launch was released first");
        if (w->told[i].id == 2)
            assert_int_equal(w->told[i].have.cores, 2);
    }
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(times[i], i == 1 ? 0 : 1);
    expect_notes(w, "orders", 0, NULL);
    net_done(w, "orders");
}

static void test_closing_from_within_a_callback(void **state)
{
    (void)state;
    struct net *w = net_new();
    w->close_at_note = true;
    net_open(w, (const char *[]){ "hostkey", "oldproto", "die", NULL });
    struct desired_want want = cluster_want("T1");
    apply(w, &want, 1);
    run_until(w, told_note, HARNESS_MS, "note");
    run_for(w, 500);
    assert_int_equal(w->n_notes, 1);
    net_done(w, "closing");
}

static void test_closing_at_once_leaves_nothing(void **state)
{
    (void)state;
    static const char *const hosts[][3] = { { "well", "mute", NULL },
                                            { "flood", "hostkey", NULL },
                                            { "stubborn", "stall", NULL } };
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct net *w = net_new();
        net_open(w, hosts[i]);
        struct desired_want want = cluster_want("T1");
        apply(w, &want, 1);
        if (i == 2)
            run_for(w, 300); /* so that it ignores TERM by now */
        assert_int_equal(w->n_told, 0);
        net_done(w, hosts[i][0]);
    }
}

/* A driver that was stopped (Ctrl-Z) or swapped out finds answers in the pipe, not silence. */
static void test_held_up_loop_loses_no_node(void **state)
{
    (void)state;
    struct net *w = net_new();
    net_open(w, (const char *[]){ "well", NULL });
    struct desired_want want = cluster_want("T1");
    apply(w, &want, 1);
    run_until(w, told_one, HARNESS_MS, "applied");
    run_for(w, 600); /* a lease is under way now and then */
    apply(w, &want, 2);
    (void)poll(NULL, 0, 5500);
    run_until(w, told_two, HARNESS_MS, "applied again");
    expect_told(w, "held up", 1, 2, 2, 2, NULL);
    run_for(w, 600);
    expect_notes(w, "held up", 0, NULL);
    net_done(w, "held up");
}

static void test_what_ssh_must_not_get_is_refused(void **state)
{
    (void)state;
    struct net *w = net_new();
    struct err e = { 0 };
    struct node_cfg bad = { .host = (char *)"-oProxyCommand=x" };
    assert_int_equal(nodes_open(&w->nodes, &w->loop, &bad, 1, w->helper, &spark, &ops, w, &e), -EINVAL);
    assert_non_null(strstr(e.text, "host '-oProxyCommand=x' must not begin with '-'"));
    assert_null(w->nodes);
    struct node_cfg good = { .host = (char *)"well" };
    assert_int_equal(nodes_open(&w->nodes, &w->loop, &good, 1, "/a b/pipetune-node", &spark, &ops, w, &e), -EINVAL);
    net_open(w, NULL);
    struct desired_want want = cluster_want("a b");
    assert_int_equal(nodes_apply(w->nodes, &want, &e), -EINVAL);
    want.tag = "T1";
    want.cores = 0;
    assert_int_equal(nodes_apply(w->nodes, &want, &e), -EINVAL);
    run_for(w, 200);
    assert_int_equal(w->n_told, 0);
    net_done(w, "refused");
}

static void test_keys_that_ssh_would_pass_over_are_told(void **state)
{
    (void)state;
    struct net *w = net_new();
    harness_write(w->dir, "open", "a key");
    AUTO_FREE char *open = harness_path(w->dir, "open"), *missing = harness_path(w->dir, "missing");
    assert_int_equal(chmod(open, 0644), 0);
    struct node_cfg cfg[] = { { .host = (char *)"well", .key = open, .user = (char *)"u", .port = 22 },
                              { .host = (char *)"partial", .key = missing } };
    struct err e = { 0 };
    assert_int_equal(nodes_open(&w->nodes, &w->loop, cfg, 2, w->helper, &spark, &ops, w, &e), 0);
    struct desired_want want = cluster_want("T1");
    apply(w, &want, 1);
    run_until(w, told_one, HARNESS_MS, "applied");
    expect_told(w, "keys", 0, 1, 0, 1, NULL);
    expect_notes(w, "keys", 2,
                 (const char *[]){ "node 'well' is left out from now on: key '", "can be read by others",
                                   "No such file", NULL });
    net_done(w, "keys");
}

/* --- the real helper ----------------------------------------------------------------------------------------------------- */

/* CPUs that every thread of the process may use; 0 when they differ. */
static int cpus_of(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *d = opendir(path);
    assert_non_null(d);
    int all = -1;
    for (struct dirent *entry; (entry = readdir(d));) {
        cpu_set_t set;
        if (entry->d_name[0] == '.' || sched_getaffinity((pid_t)strtol(entry->d_name, NULL, 10), sizeof set, &set) < 0)
            continue;
        all = all < 0 || all == CPU_COUNT(&set) ? CPU_COUNT(&set) : 0;
    }
    (void)closedir(d);
    return all;
}

static pid_t the_other_child(pid_t known)
{
    AUTO_FREE pid_t *pids = NULL;
    size_t n = 0;
    assert_int_equal(proc_descendants(getpid(), &pids, &n), 0);
    for (size_t i = 0; i < n; i++)
        if (pids[i] != known)
            return pids[i];
    fail_msg("there is no helper");
    return -1;
}

static bool changed_twice(const struct net *w)
{
    return w->n_changed >= 2;
}

static void test_real_helper_narrows_and_gives_back_even_when_killed(void **state)
{
    (void)state;
    struct net *w = net_new();
    free(w->helper);
    w->helper = harness_program("pipetune-node");
    AUTO_FREE char *program = harness_program("tests/integration/fake-tagged");
    char tag[32], option[64];
    (void)snprintf(tag, sizeof tag, "nodes-%ld", (long)getpid());
    (void)snprintf(option, sizeof option, "-Dpipetune.launch=%s", tag);
    AUTO_CLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t pid = harness_spawn((char *[]){ program, (char *)"8", (char *)"-", option, NULL }, null, null);
    int all = cpus_of(getpid());
    if (all < 2) {
        (void)kill(pid, SIGKILL);
        skip(); /* one CPU cannot be narrowed */
    }
    net_open(w, NULL);
    struct desired_want want = { .tag = tag, .cores = 1, .slots = 2, .local = true };
    apply(w, &want, 1);
    run_until(w, told_one, HARNESS_MS, "applied");
    expect_told(w, "the real helper", 0, 1, 1, 1, NULL);
    assert_int_equal(cpus_of(pid), 1);
    assert_int_equal(kill(the_other_child(pid), SIGKILL), 0);
    run_until(w, told_changed, HARNESS_MS, "the helper's end is told");
    assert_int_equal(w->newest.cores, all);
    run_until(w, changed_twice, HARNESS_MS, "asked again");
    assert_int_equal(w->newest.cores, 1);
    assert_int_equal(cpus_of(pid), 1);
    expect_notes(w, "the real helper", 1, (const char *[]){ "started again (1 of 5)", "signal 9", NULL });
    nodes_close(w->nodes);
    w->nodes = NULL;
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(cpus_of(pid), all);
    (void)kill(pid, SIGKILL);
    (void)harness_exit_code(pid, HARNESS_MS);
    net_done(w, "the real helper");
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as the driver does */
    for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* what we inherited ourselves is not what helpers are judged by */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local_helper_is_asked_and_given_back),
        cmocka_unit_test(test_killed_local_helper_is_started_again_and_asked_again),
        cmocka_unit_test(test_what_is_measured_is_asked_for_again_after_a_kill),
        cmocka_unit_test(test_samples_of_another_version_are_read_by_name),
        cmocka_unit_test(test_meters_are_asked_for_again_after_a_kill_and_refusals_told_once),
        cmocka_unit_test(test_what_no_helper_would_take_is_refused_before_it_is_asked),
        cmocka_unit_test(test_every_node_is_metered_by_our_clock),
        cmocka_unit_test(test_a_node_that_cannot_be_metered_is_one_note),
        cmocka_unit_test(test_local_helper_that_always_dies_is_given_up),
        cmocka_unit_test(test_missing_helper_is_one_note),
        cmocka_unit_test(test_each_fault_of_a_node_is_one_note),
        cmocka_unit_test(test_slow_answer_is_told_late),
        cmocka_unit_test(test_change_of_processes_is_told),
        cmocka_unit_test(test_what_is_wanted_last_of_each_launch_is_answered_once),
        cmocka_unit_test(test_closing_from_within_a_callback),
        cmocka_unit_test(test_closing_at_once_leaves_nothing),
        cmocka_unit_test(test_held_up_loop_loses_no_node),
        cmocka_unit_test(test_what_ssh_must_not_get_is_refused),
        cmocka_unit_test(test_keys_that_ssh_would_pass_over_are_told),
        cmocka_unit_test(test_real_helper_narrows_and_gives_back_even_when_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
