/* live/remote against real helpers behind what plays ssh: a launch on another node goes on while its link is down, and is read on
 * from where it was; what has no go is not started; nothing is told twice or lost. This machine's own helper is not to be had here, since two
 * that see the same processes are one too many. */
#include "tests/integration/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "base/proc.h"
#include "live/node_words.h"
#include "live/remote.h"

enum { FAR = 1 };

struct world_of_two {
    uv_loop_t loop;
    uv_timer_t beat;
    char *dir, *helper;
    char tag[64];
    struct nodes *nodes;
    struct remotes *remotes;
    struct remote *launch;
    struct buf heard, notes;
    size_t n_ready, n_refused, n_gone;
    struct launcher_ready ready;
    char why[256];
};

/* --- what is told ------------------------------------------------------------------------------------------------------ */

static void on_ready(void *ctx, uint64_t id, const struct launcher_ready *r)
{
    struct world_of_two *w = ctx;
    assert_int_equal(id, 7);
    w->n_ready++;
    w->ready = *r;
}

static void on_refused(void *ctx, uint64_t id, bool busy, const char *why)
{
    struct world_of_two *w = ctx;
    assert_int_equal(id, 7);
    assert_false(busy);
    w->n_refused++;
    (void)snprintf(w->why, sizeof w->why, "%s", why);
}

static void on_gone(void *ctx, uint64_t id)
{
    struct world_of_two *w = ctx;
    assert_int_equal(id, 7);
    w->n_gone++;
}

static void on_heard(void *ctx, uint64_t id, uint64_t at, const char *bytes, size_t n)
{
    struct world_of_two *w = ctx;
    assert_int_equal(id, 7);
    assert_true(at >= w->heard.len); /* the first that it is read from may be later than 0 */
    buf_put(&w->heard, bytes, n);
    remote_accounted(w->launch, at + n);
}

static void on_applied(void *ctx, const struct desired_want *want, const struct desired_have *have, const char *why)
{
    (void)ctx, (void)want, (void)have, (void)why;
}

static void on_changed(void *ctx, const char *tag, const struct desired_have *have)
{
    (void)ctx, (void)tag, (void)have;
}

static void on_sampled(void *ctx, const char *tag, const struct nodes_sample *s)
{
    (void)ctx, (void)tag, (void)s;
}

static void on_note(void *ctx, const char *text)
{
    struct world_of_two *w = ctx;
    buf_printf(&w->notes, "%s\n", text);
}

static void on_beat(uv_timer_t *t)
{
    (void)t;
}

/* --- a driver ---------------------------------------------------------------------------------------------------------- */

static void open_driver(struct world_of_two *w)
{
    static const struct nodes_ops node_ops = { on_applied, on_changed, on_sampled, NULL, on_note };
    static const struct remote_ops ops = { { on_ready, on_refused, on_gone }, on_heard, NULL, false };
    static const struct app_workers whole_tree = { 0 };
    struct node_cfg cfg = { .host = (char *)"far" };
    struct err e = { 0 };
    if (nodes_open(&w->nodes, &w->loop, &cfg, 1, w->helper, &whole_tree, &node_ops, w, &e) < 0 ||
        remotes_open(&w->remotes, w->nodes, &ops, w, &e) < 0)
        fail_msg("%s", e.text);
}

/* As when it dies: what it launched is left alone. */
static void close_driver(struct world_of_two *w)
{
    remotes_close(w->remotes);
    nodes_close(w->nodes);
    w->remotes = NULL;
    w->nodes = NULL;
    w->launch = NULL;
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
}

static int set_up(void **state)
{
    struct world_of_two *w = calloc(1, sizeof *w);
    assert_non_null(w);
    AUTO_FREE char *ssh = harness_program("tests/integration/fake-ssh");
    AUTO_FREE char *node = harness_program("pipetune-node");
    char script[4200];
    w->dir = harness_dir();
    w->helper = harness_path(w->dir, "pipetune-node");
    (void)snprintf(script, sizeof script, "#!/bin/sh\n[ -n \"$FAKE_SSH\" ] || exit 3\nexec %s \"$@\"\n", node);
    harness_write(w->dir, "pipetune-node", script);
    assert_int_equal(chmod(w->helper, 0755), 0);
    (void)snprintf(w->tag, sizeof w->tag, "remote-%ld", (long)getpid());
    (void)setenv("XDG_STATE_HOME", w->dir, 1);
    (void)setenv("PIPETUNE_SSH", ssh, 1);
    (void)setenv("PIPETUNE_NODES_SPEED", "10", 1);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_int_equal(uv_timer_init(&w->loop, &w->beat), 0);
    assert_int_equal(uv_timer_start(&w->beat, on_beat, 20, 20), 0);
    uv_unref((uv_handle_t *)&w->beat);
    open_driver(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world_of_two *w = *state;
    pid_t *pids = NULL;
    size_t n = 0;
    close_driver(w);
    uv_close((uv_handle_t *)&w->beat, NULL);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    if (proc_tagged(w->tag, &pids, &n) == 0)
        for (size_t i = 0; i < n; i++)
            (void)kill(pids[i], SIGKILL);
    free(pids);
    harness_remove(w->dir);
    free(w->helper);
    buf_done(&w->heard);
    buf_done(&w->notes);
    free(w);
    return 0;
}

/* --- what is done ------------------------------------------------------------------------------------------------------ */

#define RUN_UNTIL(w, condition)                                                                                        \
    do {                                                                                                               \
        for (int64_t until = clock_ms() + HARNESS_MS; !(condition);) {                                                 \
            if (clock_ms() > until)                                                                                    \
                fail_msg("not in time: %s; heard '%s', notes:\n%s", #condition, buf_text(&(w)->heard),                 \
                         buf_text(&(w)->notes));                                                                       \
            (void)uv_run(&(w)->loop, UV_RUN_ONCE);                                                                     \
            remotes_tick((w)->remotes);                                                                                \
        }                                                                                                              \
    } while (0)

static int try_launch(struct world_of_two *w, const char *script)
{
    AUTO_STRV struct strv steps = STRV_INIT, env = STRV_INIT;
    strv_add(&steps, "3");
    strv_add(&steps, "/bin/sh");
    strv_add(&steps, "-c");
    strv_add(&steps, script);
    strv_add(&env, "COLOUR=blue");
    const struct node_launch what = { .tag = w->tag, .attempt = 1, .steps = &steps, .env = &env };
    struct err e = { 0 };
    int rc = remote_start(&w->launch, w->remotes, FAR, 7, &what, &e);
    assert_true(rc == 0 || rc == -ENOTCONN);
    return rc;
}

/* Its helper is a moment away at first. */
static void launch(struct world_of_two *w, const char *script)
{
    RUN_UNTIL(w, try_launch(w, script) == 0);
    RUN_UNTIL(w, w->n_ready == 1);
    assert_int_equal(strlen(w->ready.boot_id), 36);
    assert_true(w->ready.pid > 1);
}

static bool is_helper(pid_t pid)
{
    char name[PROC_NAME_SIZE];
    uid_t uid;
    struct proc_facts f;
    return proc_who(pid, name, &uid) == 0 && strcmp(name, "pipetune-node") == 0 && proc_facts(pid, &f) == 0 &&
           f.parent == getpid();
}

/* The link's end here and the helper's there are one process. */
static void cut_link(void)
{
    pid_t *pids = NULL;
    size_t n = 0, cut = 0;
    assert_int_equal(proc_descendants(getpid(), &pids, &n), 0);
    for (size_t i = 0; i < n; i++)
        if (is_helper(pids[i]))
            cut += kill(pids[i], SIGKILL) == 0;
    free(pids);
    assert_int_equal(cut, 1);
}

static void write_work(const struct world_of_two *w, const char *name)
{
    AUTO_FREE char *file = NULL;
    assert_true(asprintf(&file, "pipetune/%s/work/%s", w->tag, name) > 0);
    harness_write(w->dir, file, "");
}

static bool is_in_work(const struct world_of_two *w, const char *name)
{
    AUTO_FREE char *path = NULL;
    assert_true(asprintf(&path, "%s/pipetune/%s/work/%s", w->dir, w->tag, name) > 0);
    return access(path, F_OK) == 0;
}

#define SLOWLY                                                                                                         \
    "echo x >>starts; echo $COLOUR; while [ ! -e two ]; do sleep 0.05; done; echo two;"                                \
    " while [ ! -e end ]; do sleep 0.05; done; echo end; exit 5"

static void expect_ended_once(struct world_of_two *w, const char *heard)
{
    RUN_UNTIL(w, w->n_gone == 1);
    assert_string_equal(buf_text(&w->heard), heard);
    if (!strstr(remote_exit(w->launch), "kind=exited code=5 "))
        fail_msg("its exit is '%s'", remote_exit(w->launch));
    AUTO_FREE char *file = NULL;
    assert_true(asprintf(&file, "pipetune/%s/work/starts", w->tag) > 0);
    AUTO_FREE char *starts = harness_read(w->dir, file);
    assert_string_equal(starts, "x\n");
}

static void test_a_launch_goes_on_while_its_link_is_down(void **state)
{
    struct world_of_two *w = *state;
    launch(w, SLOWLY);
    assert_int_equal(remote_go(w->launch, NULL), 0);
    RUN_UNTIL(w, w->heard.len == 5);
    cut_link();
    write_work(w, "two");
    RUN_UNTIL(w, w->heard.len == 9);
    if (!strstr(buf_text(&w->notes), "node 'far' is asked again, what runs there goes on"))
        fail_msg("notes:\n%s", buf_text(&w->notes));
    cut_link();
    write_work(w, "end"); /* and it ends while nobody looks */
    expect_ended_once(w, "blue\ntwo\nend\n");
    remote_free(w->launch, true);
    RUN_UNTIL(w, !is_in_work(w, "starts"));
}

static void test_another_driver_reads_on(void **state)
{
    struct world_of_two *w = *state;
    launch(w, SLOWLY);
    assert_int_equal(remote_go(w->launch, NULL), 0);
    RUN_UNTIL(w, w->heard.len == 5);
    close_driver(w);
    write_work(w, "two");
    buf_clear(&w->heard);
    open_driver(w);
    assert_int_equal(remote_adopt(&w->launch, w->remotes, FAR, 7, w->tag, 5, NULL), 0);
    RUN_UNTIL(w, w->heard.len == 4);
    write_work(w, "end");
    expect_ended_once(w, "two\nend\n");
}

static void test_what_has_no_go_is_not_started(void **state)
{
    struct world_of_two *w = *state;
    launch(w, "touch started");
    cut_link();
    RUN_UNTIL(w, w->n_refused == 1);
    assert_string_equal(w->why, "the link to its node broke before its start");
    remote_free(w->launch, true);
    w->n_ready = 0;
    launch(w, "echo $COLOUR; exit 5"); /* it may be launched again */
    assert_int_equal(remote_go(w->launch, NULL), 0);
    RUN_UNTIL(w, w->n_gone == 1);
    assert_false(is_in_work(w, "started"));
}

static void test_a_signal_waits_for_the_link(void **state)
{
    struct world_of_two *w = *state;
    launch(w, "echo here; exec sleep 1000");
    assert_int_equal(remote_go(w->launch, NULL), 0);
    RUN_UNTIL(w, w->heard.len == 5);
    cut_link();
    remote_signal(w->launch, false);
    RUN_UNTIL(w, w->n_gone == 1);
    if (!strstr(remote_exit(w->launch), "kind=signalled code=143 "))
        fail_msg("its exit is '%s'", remote_exit(w->launch));
}

static void test_all_is_heard_however_much_it_is(void **state)
{
    struct world_of_two *w = *state;
    launch(w, "i=0; while [ $i -lt 30000 ]; do echo 0123456789012345678; i=$((i+1)); done; exit 5");
    assert_int_equal(remote_go(w->launch, NULL), 0);
    RUN_UNTIL(w, w->n_gone == 1);
    assert_int_equal(w->heard.len, 600000);
    for (size_t at = 0; at < w->heard.len; at += 20)
        assert_memory_equal(w->heard.data + at, "0123456789012345678\n", 20);
}

static void test_what_is_not_there_is_gone(void **state)
{
    struct world_of_two *w = *state;
    assert_int_equal(remote_adopt(&w->launch, w->remotes, FAR, 7, w->tag, 0, NULL), 0);
    RUN_UNTIL(w, w->n_gone == 1);
    assert_string_equal(remote_exit(w->launch), "");
}

static void test_a_launch_that_cannot_be_is_refused(void **state)
{
    struct world_of_two *w = *state;
    AUTO_STRV struct strv steps = STRV_INIT;
    strv_add(&steps, "no count");
    const struct node_launch what = { .tag = w->tag, .attempt = 1, .steps = &steps };
    RUN_UNTIL(w, remote_start(&w->launch, w->remotes, FAR, 7, &what, NULL) == 0);
    RUN_UNTIL(w, w->n_refused == 1);
    assert_string_equal(w->why, "pipetune-node ended before the start, exit code 2");
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as the driver does */
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_launch_goes_on_while_its_link_is_down), TEST(test_another_driver_reads_on),
        TEST(test_what_has_no_go_is_not_started),           TEST(test_a_signal_waits_for_the_link),
        TEST(test_all_is_heard_however_much_it_is),         TEST(test_what_is_not_there_is_gone),
        TEST(test_a_launch_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
