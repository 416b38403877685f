/* The driver's end of a warm session, against a peer that this test plays on a real socket, against fake-spark-submit, and
 * against the real bigdl/apps/pipetune_session.py over a SparkContext that is none (fake-session.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "base/proc.h"
#include "live/session.h"
#include "tests/integration/harness.h"

#define HELLO "{\"hello\":{\"protocol\":1,\"app_id\":\"local-17\",\"pid\":4711,\"busy\":null}}\n"

enum { ID = 42 };

struct seen { /* what the link told */
    int hello, epoch, done, lost;
    int f1_of_epoch;
    bool ok;
    char id[SESSION_ID_MAX + 1], error[SESSION_TEXT_MAX], why[1100];
};

struct bench {
    char *dir, *path;
    uv_loop_t loop;
    uv_timer_t tick; /* so that waiting ends */
    struct session_link *link;
    int listener, peer; /* -1: none */
    bool free_in_callback, telling;
    struct seen seen;
};

/* --- what the link calls ---------------------------------------------------------------------------------------------- */

static struct bench *told(void *ctx, uint64_t id)
{
    struct bench *b = ctx;
    assert_int_equal(id, ID);
    assert_int_equal(b->seen.lost, 0); /* nothing comes after it */
    assert_false(b->telling);
    if (b->free_in_callback) {
        session_link_free(b->link);
        b->link = NULL;
    }
    return b;
}

static void on_hello(void *ctx, uint64_t id, const struct session_message *m)
{
    struct bench *b = told(ctx, id);
    b->seen.hello++;
    (void)snprintf(b->seen.id, sizeof b->seen.id, "%s", m->id);
}

static void on_epoch(void *ctx, uint64_t id, const struct session_message *m)
{
    struct bench *b = told(ctx, id);
    b->seen.epoch++;
    b->seen.f1_of_epoch = m->epoch * (int)json_number_value(json_object_get(m->metrics, "f1"));
}

static void on_done(void *ctx, uint64_t id, const struct session_message *m)
{
    struct bench *b = told(ctx, id);
    b->seen.done++;
    b->seen.ok = m->ok;
    (void)snprintf(b->seen.id, sizeof b->seen.id, "%s", m->id);
    (void)snprintf(b->seen.error, sizeof b->seen.error, "%s", m->error);
}

static void on_lost(void *ctx, uint64_t id, const char *why)
{
    struct bench *b = told(ctx, id);
    b->seen.lost++;
    (void)snprintf(b->seen.why, sizeof b->seen.why, "%s", why);
}

static const struct session_ops ops = { on_hello, on_epoch, on_done, on_lost, NULL };

/* --- the bench -------------------------------------------------------------------------------------------------------- */

static void on_tick(uv_timer_t *t)
{
    (void)t;
}

static int set_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->dir = harness_dir();
    b->path = harness_path(b->dir, "s.sock");
    b->listener = b->peer = -1;
    assert_int_equal(uv_loop_init(&b->loop), 0);
    assert_int_equal(uv_timer_init(&b->loop, &b->tick), 0);
    assert_int_equal(uv_timer_start(&b->tick, on_tick, 5, 5), 0);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    session_link_free(b->link);
    uv_close((uv_handle_t *)&b->tick, NULL);
    assert_int_equal(uv_run(&b->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&b->loop), 0); /* -EBUSY: a handle was forgotten */
    own_close(&b->peer);
    own_close(&b->listener);
    harness_remove(b->dir);
    free(b->path);
    free(b);
    return 0;
}

static void open_link(struct bench *b)
{
    struct err e = { 0 };
    b->telling = true;
    int rc = session_link_open(&b->link, &b->loop, b->path, &ops, b, ID, &e);
    b->telling = false;
    if (rc < 0)
        fail_msg("%s", e.text);
}

static void listen_here(struct bench *b)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", b->path);
    b->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(b->listener >= 0);
    assert_int_equal(bind(b->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(b->listener, 1), 0);
}

/* Turns the loop until the number is reached. */
static void turn_until(struct bench *b, const int *number, int want)
{
    for (uint64_t until = uv_now(&b->loop) + HARNESS_MS; *number < want && uv_now(&b->loop) < until;)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
    if (*number != want)
        fail_msg("waited in vain: hello %d, epoch %d, done %d, lost %d '%s'", b->seen.hello, b->seen.epoch,
                 b->seen.done, b->seen.lost, b->seen.why);
}

static void turn_for(struct bench *b, uint64_t ms)
{
    for (uint64_t until = uv_now(&b->loop) + ms; uv_now(&b->loop) < until;)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
}

static void accept_peer(struct bench *b)
{
    struct pollfd p = { .fd = b->listener, .events = POLLIN };
    for (uint64_t until = uv_now(&b->loop) + HARNESS_MS; poll(&p, 1, 0) == 0 && uv_now(&b->loop) < until;)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
    assert_int_equal(p.revents, POLLIN);
    b->peer = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(b->peer >= 0);
}

static void peer_says(struct bench *b, const char *text)
{
    assert_int_equal(io_write_all(b->peer, text, strlen(text)), 0);
}

/* A link whose peer has said hello. */
static void meet(struct bench *b)
{
    listen_here(b);
    open_link(b);
    accept_peer(b);
    peer_says(b, HELLO);
    turn_until(b, &b->seen.hello, 1);
}

/* The next line the peer hears, "" when there is none; free it. */
static char *peer_hears(struct bench *b)
{
    AUTO_BUF struct buf line = BUF_INIT;
    struct pollfd p = { .fd = b->peer, .events = POLLIN };
    char c = 0;
    for (uint64_t until = uv_now(&b->loop) + HARNESS_MS; c != '\n' && uv_now(&b->loop) < until;) {
        if (poll(&p, 1, 0) == 0)
            (void)uv_run(&b->loop, UV_RUN_ONCE);
        else if (read(b->peer, &c, 1) == 1)
            buf_putc(&line, c);
        else
            break;
    }
    return buf_take(&line);
}

static void expect_lost(struct bench *b, const char *word)
{
    turn_until(b, &b->seen.lost, 1);
    if (!strstr(b->seen.why, word))
        fail_msg("lost: got '%s', want '%s'", b->seen.why, word);
    assert_int_equal(session_link_stop(b->link), -ENOTCONN);
}

/* --- paths ------------------------------------------------------------------------------------------------------------ */

static void expect_path(const char *tag, const char *want)
{
    AUTO_FREE char *got = NULL;
    struct err e = { 0 };
    if (session_path(&got, tag, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(got, want);
}

static void test_session_path_lies_in_a_folder_of_ours(void **state)
{
    struct bench *b = *state;
    struct stat st;
    AUTO_FREE char *folder = harness_path(b->dir, "pipetune");
    AUTO_FREE char *want = harness_path(folder, "s-1.sock");
    assert_int_equal(setenv("XDG_RUNTIME_DIR", b->dir, 1), 0);
    expect_path("s-1", want);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    expect_path("s-1", want);
}

static void test_session_path_goes_where_it_fits(void **state)
{
    struct bench *b = *state;
    AUTO_FREE char *want = NULL;
    AUTO_FREE char *deep =
        harness_path(b->dir, "a/folder/whose/path/is/too/long/for/the/address/of/a/unix/socket/by/far");
    struct err e = { 0 };
    assert_true(asprintf(&want, "/tmp/pipetune-%ld/s-1.sock", (long)geteuid()) > 0);
    assert_int_equal(io_mkdirs(deep, &e), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", deep, 1), 0);
    expect_path("s-1", want);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1), 0);
    expect_path("s-1", want);
}

static void expect_no_path(const char *tag, int code, const char *word)
{
    char *path = NULL;
    struct err e = { 0 };
    int rc = session_path(&path, tag, &e);
    assert_null(path);
    if (rc != code || !strstr(e.text, word))
        fail_msg("got %d '%s', want %d '%s'", rc, e.text, code, word);
}

static void test_session_path_refuses_a_folder_that_is_not_ours_alone(void **state)
{
    struct bench *b = *state;
    AUTO_FREE char *folder = harness_path(b->dir, "pipetune");
    assert_int_equal(setenv("XDG_RUNTIME_DIR", b->dir, 1), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0750), 0);
    expect_no_path("s-1", -EPERM, "0700");
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(symlink(b->dir, folder), 0); /* the folder behind it is ours, and 0700 */
    expect_no_path("s-1", -EPERM, "0700");
    expect_no_path("../s", -EINVAL, "'../s'");
    expect_no_path("", -EINVAL, "''");
}

/* A socket of that name in the folder, made so long ago; bound: the descriptor, which is the caller's. */
static int make_socket(const char *folder, const char *name, int age_s)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, name);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    const struct timespec at = { .tv_sec = time(NULL) - age_s };
    assert_int_equal(utimensat(AT_FDCWD, address.sun_path, (const struct timespec[]){ at, at }, AT_SYMLINK_NOFOLLOW),
                     0);
    return fd;
}

static void test_sockets_of_killed_sessions_are_swept(void **state)
{
    struct bench *b = *state;
    static const struct {
        const char *name;
        int age_s;
        bool open, stays;
    } sockets[] = {
        { "pt-killed.sock", 3600, false, false }, { "pt-listening.sock", 3600, true, true },
        { "pt-of-now.sock", 0, false, true },     { "other", 3600, false, true },
        { "b ad.sock", 3600, false, true },
    };
    AUTO_FREE char *folder = harness_path(b->dir, "pipetune");
    assert_int_equal(setenv("XDG_RUNTIME_DIR", b->dir, 1), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    int fds[ARRAY_LEN(sockets)];
    for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
        fds[i] = make_socket(folder, sockets[i].name, sockets[i].age_s);
        if (!sockets[i].open)
            (void)close(fds[i]);
    }
    harness_write(folder, "pt-file.sock", "no socket");
    session_sockets_sweep();
    for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
        AUTO_FREE char *path = harness_path(folder, sockets[i].name);
        if (io_exists(path) != sockets[i].stays)
            fail_msg("%s: is %sthere", sockets[i].name, sockets[i].stays ? "not " : "");
        if (sockets[i].open)
            (void)close(fds[i]);
    }
    AUTO_FREE char *file = harness_path(folder, "pt-file.sock");
    assert_true(io_exists(file));
    session_socket_remove("pt-of-now"); /* its process has ended */
    AUTO_FREE char *now = harness_path(folder, "pt-of-now.sock");
    assert_false(io_exists(now));
}

static bool is_there(void *tag)
{
    AUTO_FREE pid_t *pids = NULL;
    size_t n = 0;
    return proc_tagged(tag, &pids, &n) == 0 && n > 0;
}

/* One that listens in another network namespace is not among the kernel's sockets here; its process is among our processes. */
static void test_a_socket_stays_while_its_session_has_a_process(void **state)
{
    struct bench *b = *state;
    AUTO_FREE char *fake = harness_program("tests/integration/fake-tagged");
    AUTO_FREE char *folder = harness_path(b->dir, "pipetune");
    AUTO_FREE char *path = harness_path(folder, "pt-elsewhere.sock");
    char *const argv[] = { fake, (char *)"1", (char *)"-", (char *)"-Dpipetune.launch=pt-elsewhere", NULL };
    AUTO_CLOSE int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", b->dir, 1), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    (void)close(make_socket(folder, "pt-elsewhere.sock", 3600));
    pid_t pid = harness_spawn(argv, out, -1);
    assert_true(harness_wait(is_there, (void *)(uintptr_t) "pt-elsewhere", HARNESS_MS));
    session_sockets_sweep();
    assert_true(io_exists(path));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 128 + SIGKILL);
    session_sockets_sweep();
    assert_false(io_exists(path));
}

/* --- meeting ---------------------------------------------------------------------------------------------------------- */

static void test_session_waits_for_its_socket(void **state)
{
    struct bench *b = *state;
    open_link(b);
    turn_for(b, 250);
    assert_int_equal(b->seen.lost, 0);
    listen_here(b);
    own_close(&b->listener); /* as a killed session leaves it: there, and nobody behind it */
    turn_for(b, 250);
    assert_int_equal(b->seen.lost, 0);
    assert_int_equal(unlink(b->path), 0);
    listen_here(b);
    accept_peer(b);
    turn_for(b, 20);
    assert_int_equal(b->seen.hello, 0);
    peer_says(b, "{\"hello\":{\"protocol\":1,\"app_id\":\"a\",\"pid\":1,\"busy\":\"s-7\"}}\n");
    turn_until(b, &b->seen.hello, 1);
    assert_string_equal(b->seen.id, "s-7");
}

static void test_session_tells_what_it_hears(void **state)
{
    struct bench *b = *state;
    meet(b);
    const char *text = "{\"epoch\":{\"id\":\"a\",\"epoch\":2,\"metrics\":{\"f1\":3}}}\n{\"heartbeat\":{}}\n"
                       "{\"done\":{\"id\":\"a\",\"ok\":false,\"error\":\"no luck\"}}\n";
    for (const char *p = text; *p; p++) { /* however it is cut */
        assert_int_equal(io_write_all(b->peer, p, 1), 0);
        (void)uv_run(&b->loop, UV_RUN_NOWAIT);
    }
    turn_until(b, &b->seen.done, 1);
    assert_int_equal(b->seen.epoch, 1);
    assert_int_equal(b->seen.f1_of_epoch, 6);
    assert_false(b->seen.ok);
    assert_string_equal(b->seen.error, "no luck");
    peer_says(b, "{\"done\":{\"id\":\"b\",\"ok\":true}}\n{\"done\":{\"id\":\"c\",\"ok\":true}}\n"); /* two at once */
    turn_until(b, &b->seen.done, 3);
    assert_string_equal(b->seen.id, "c");
    assert_int_equal(b->seen.lost, 0);
}

static void test_session_is_told_what_to_run(void **state)
{
    struct bench *b = *state;
    meet(b);
    struct session_run r = { .id = "s-1", .epochs = 2, .seed = 3, .checkpoint = "/ck" };
    AUTO_BUF struct buf want = BUF_INIT;
    session_put_run(&want, &r);
    assert_int_equal(session_link_run(b->link, &r), 0);
    assert_int_equal(session_link_end(b->link, "s-1", 1), 0);
    assert_int_equal(session_link_stop(b->link), 0);
    AUTO_FREE char *run = peer_hears(b), *end = peer_hears(b), *stop = peer_hears(b);
    assert_string_equal(run, buf_text(&want));
    assert_string_equal(end, "{\"end\":{\"id\":\"s-1\",\"epoch\":1}}\n");
    assert_string_equal(stop, "{\"stop\":{}}\n");
}

static void test_session_is_told_nothing_before_its_hello(void **state)
{
    struct bench *b = *state;
    const struct session_run r = { .id = "s-1", .epochs = 1 };
    open_link(b);
    assert_int_equal(session_link_run(b->link, &r), -ENOTCONN);
    listen_here(b);
    accept_peer(b);
    assert_int_equal(session_link_run(b->link, &r), -ENOTCONN);
    peer_says(b, HELLO);
    turn_until(b, &b->seen.hello, 1);
    assert_int_equal(session_link_run(b->link, &r), 0);
}

static void test_session_limits_what_it_is_told(void **state)
{
    struct bench *b = *state;
    AUTO_BUF struct buf path = BUF_INIT;
    meet(b);
    while (path.len < SESSION_LINE_MAX / 2)
        buf_putc(&path, 'x');
    struct session_run r = { .id = "s-1", .epochs = 1, .checkpoint = buf_text(&path) };
    int rc = 0, sent = 0; /* the peer reads nothing: what the kernel does not take queues up */
    for (; rc == 0 && sent < 1000; sent++) {
        rc = session_link_run(b->link, &r);
        (void)uv_run(&b->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(rc, -ENOBUFS);
    while (path.len < SESSION_LINE_MAX)
        buf_putc(&path, 'x');
    r.checkpoint = buf_text(&path);
    assert_int_equal(session_link_run(b->link, &r), -EMSGSIZE);
    assert_int_equal(b->seen.lost, 0);
}

/* --- losing it -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *says, *why;
} nonsense[] = {
    { "another protocol", "{\"hello\":{\"protocol\":7}}\n", "protocol 7" },
    { "no hello", "{\"done\":{\"id\":\"a\",\"ok\":true}}\n", "does not begin with hello" },
    { "two hellos", HELLO HELLO, "hello twice" },
    { "no JSON", "hello\n", "nonsense: no JSON" },
    { "a done of no trial", HELLO "{\"done\":{\"ok\":true}}\n", "nonsense: 'done'" },
    { "an empty line", HELLO "\n", "nonsense" },
};

static void test_session_is_lost_when_it_speaks_nonsense(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(nonsense); i++) {
        struct bench *b = *state;
        print_message("%s\n", nonsense[i].name);
        listen_here(b);
        open_link(b);
        accept_peer(b);
        peer_says(b, nonsense[i].says);
        peer_says(b, "{\"done\":{\"id\":\"b\",\"ok\":true}}\n"); /* told() fails when this is heard */
        expect_lost(b, nonsense[i].why);
        (void)tear_down(state);
        (void)set_up(state);
    }
}

static void test_session_is_lost_when_a_line_does_not_end(void **state)
{
    struct bench *b = *state;
    AUTO_BUF struct buf line = BUF_INIT;
    meet(b);
    while (line.len < 4096)
        buf_putc(&line, ' ');
    for (size_t n = 0; n < SESSION_LINE_MAX; n += line.len) {
        peer_says(b, buf_text(&line));
        (void)uv_run(&b->loop, UV_RUN_NOWAIT);
    }
    expect_lost(b, "a line without an end");
}

static void test_session_is_lost_when_it_closes(void **state)
{
    struct bench *b = *state;
    meet(b);
    own_close(&b->peer);
    b->peer = -1;
    expect_lost(b, "closed its socket");
    turn_for(b, 250); /* and it is not looked for again */
}

static void test_session_says_when_it_cannot_connect(void **state)
{
    struct bench *b = *state;
    free(b->path);
    b->path = harness_path(b->dir, "no-folder/s.sock");
    harness_write(b->dir, "no-folder", "a file");
    open_link(b);
    expect_lost(b, "cannot connect");
}

static void test_session_refuses_a_peer_of_another_user(void **state)
{
    struct bench *b = *state;
    if (geteuid() != 0)
        skip();
    listen_here(b);
    assert_int_equal(seteuid(65534), 0);
    int rc = listen(b->listener, 1); /* whose it is is who listens */
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(rc, 0);
    open_link(b);
    expect_lost(b, "belongs to another user");
}

static void test_session_refuses_a_path_that_does_not_fit(void **state)
{
    struct bench *b = *state;
    char path[200];
    struct err e = { 0 };
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(session_link_open(&b->link, &b->loop, path, &ops, b, ID, &e), -ENAMETOOLONG);
    assert_null(b->link);
}

/* --- letting go ------------------------------------------------------------------------------------------------------- */

static void test_session_may_be_freed_in_each_call(void **state)
{
    struct bench *b = *state;
    listen_here(b);
    open_link(b);
    accept_peer(b);
    b->free_in_callback = true;
    peer_says(b, HELLO "{\"done\":{\"id\":\"a\",\"ok\":true}}\n");
    turn_until(b, &b->seen.hello, 1);
    turn_for(b, 50);
    assert_int_equal(b->seen.done, 0);
    own_close(&b->peer);
    open_link(b);
    accept_peer(b);
    own_close(&b->peer);
    b->peer = -1;
    turn_until(b, &b->seen.lost, 1);
}

static void test_session_is_let_go_without_a_word(void **state)
{
    struct bench *b = *state;
    meet(b);
    const struct session_run r = { .id = "s-1", .epochs = 1 };
    assert_int_equal(session_link_run(b->link, &r), 0);
    session_link_free(b->link); /* with a message under way */
    b->link = NULL;
    turn_for(b, 20);
    AUTO_FREE char *run = peer_hears(b);
    assert_non_null(strstr(run, "\"s-1\""));
    AUTO_FREE char *end = peer_hears(b);
    assert_string_equal(end, "");
    assert_int_equal(b->seen.lost, 0);
}

/* --- fake-spark-submit ------------------------------------------------------------------------------------------------ */

static pid_t start_fake(struct bench *b, const char *fail)
{
    AUTO_FREE char *fake = harness_program("tests/integration/fake-spark-submit");
    AUTO_FREE char *application = harness_path(b->dir, "app.py");
    AUTO_FREE char *conf = NULL;
    AUTO_FREE char *log = harness_path(b->dir, "log");
    assert_true(asprintf(&conf, "spark.pipetune.session=%s", b->path) > 0);
    harness_write(b->dir, "app.py", "");
    assert_int_equal(setenv("FAKE_EPOCH_MS", "40", 1), 0);
    assert_int_equal(setenv("FAKE_FAIL", fail, 1), 0);
    assert_int_equal(setenv("PIPETUNE_SESSION_WAIT_S", "1", 1), 0);
    char *const argv[] = { fake, (char *)"--master", (char *)"local[2]", (char *)"--conf", conf, application, NULL };
    FILE *f = fopen(log, "we");
    assert_non_null(f);
    pid_t pid = harness_spawn(argv, -1, fileno(f));
    (void)fclose(f);
    return pid;
}

static void run_fake(struct bench *b, const char *id, int batch)
{
    json_t *hyper = json_pack("{s:i, s:f}", "batch_size", batch, "learning_rate", 0.1);
    struct session_run r = { .id = id, .hyper = hyper, .epochs = 2, .seed = 1 };
    assert_int_equal(session_link_run(b->link, &r), 0);
    json_decref(hyper);
}

static void test_session_of_the_fake_trains_trial_after_trial(void **state)
{
    struct bench *b = *state;
    pid_t fake = start_fake(b, "");
    open_link(b);
    turn_until(b, &b->seen.hello, 1);
    run_fake(b, "one", 128);
    turn_until(b, &b->seen.done, 1);
    assert_true(b->seen.ok);
    assert_int_equal(b->seen.epoch, 2);
    run_fake(b, "bad", 127);
    turn_until(b, &b->seen.done, 2);
    assert_false(b->seen.ok);
    assert_non_null(strstr(b->seen.error, "should be divided by total core number"));
    run_fake(b, "one", 128); /* it is done */
    turn_until(b, &b->seen.done, 3);
    assert_true(b->seen.ok);
    assert_int_equal(session_link_stop(b->link), 0);
    assert_int_equal(harness_exit_code(fake, HARNESS_MS), 0);
    turn_until(b, &b->seen.lost, 1);
    AUTO_FREE char *log = harness_read(b->dir, "log");
    assert_int_equal(harness_count(log, "\nPIPETUNE trial one begin\n"), 1);
    assert_int_equal(harness_count(log, "\nPIPETUNE trial one end\n"), 1);
    assert_int_equal(harness_count(log, "Epoch finished"), 2);
}

static void test_session_of_the_fake_outlives_its_driver(void **state)
{
    struct bench *b = *state;
    pid_t fake = start_fake(b, "");
    open_link(b);
    turn_until(b, &b->seen.hello, 1);
    run_fake(b, "one", 128);
    turn_until(b, &b->seen.epoch, 1);
    session_link_free(b->link);
    b->link = NULL;
    turn_for(b, 10);
    open_link(b);
    turn_until(b, &b->seen.hello, 2);
    assert_string_equal(b->seen.id, "one"); /* still busy with it */
    turn_until(b, &b->seen.done, 1);
    session_link_free(b->link);
    b->link = NULL;
    turn_for(b, 10);
    assert_int_equal(harness_exit_code(fake, HARNESS_MS), 0); /* alone for a second */
}

static void test_session_of_the_fake_can_fail(void **state)
{
    static const struct {
        const char *fail, *why;
    } cases[] = {
        { "session-die", "closed its socket" },
        { "session-garbage", "nonsense" },
        { "session-protocol", "speaks protocol 9" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench *b = *state;
        print_message("%s\n", cases[i].fail);
        pid_t fake = start_fake(b, cases[i].fail);
        open_link(b);
        if (i < 2) {
            turn_until(b, &b->seen.hello, 1);
            run_fake(b, "one", 128);
        }
        expect_lost(b, cases[i].why);
        (void)kill(fake, SIGTERM);
        (void)harness_exit_code(fake, HARNESS_MS);
        (void)tear_down(state);
        (void)set_up(state);
    }
}

/* --- pipetune_session.py ---------------------------------------------------------------------------------------------- */

static pid_t start_python(struct bench *b)
{
    AUTO_FREE char *log = harness_path(b->dir, "log");
    assert_int_equal(setenv("PIPETUNE_SESSION_WAIT_S", "1", 1), 0);
    assert_int_equal(setenv("PYTHONDONTWRITEBYTECODE", "1", 1), 0);
    char *const argv[] = { (char *)"/usr/bin/env", (char *)"python3", (char *)"tests/integration/fake-session.py",
                           (char *)"bigdl/apps",   b->path,           NULL };
    FILE *f = fopen(log, "we");
    assert_non_null(f);
    pid_t pid = harness_spawn(argv, fileno(f), fileno(f));
    (void)fclose(f);
    return pid;
}

/* Another driver than the link. */
static int knock(struct bench *b)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct timeval limit = { .tv_sec = HARNESS_MS / 1000 };
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", b->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* The next line, "" at its end; free it. */
static char *line_from(int fd)
{
    AUTO_BUF struct buf line = BUF_INIT;
    for (char c = 0; c != '\n' && read(fd, &c, 1) == 1;)
        buf_putc(&line, c);
    return buf_take(&line);
}

static void expect_line(int fd, const char *want)
{
    AUTO_FREE char *got = line_from(fd);
    if (*want ? !strstr(got, want) : *got != '\0')
        fail_msg("got '%s', want '%s'", got, want);
}

static void run_python(struct bench *b, const char *id, int epochs, double seconds, const char *raises)
{
    json_t *hyper = json_pack("{s:f, s:s*}", "seconds", seconds, "raise", raises);
    struct session_run r = { .id = id, .hyper = hyper, .epochs = epochs, .seed = 1, .checkpoint = "/a \xff path" };
    assert_int_equal(session_link_run(b->link, &r), 0);
    json_decref(hyper);
}

static bool trial_one_runs(void *arg)
{
    const struct bench *b = arg;
    AUTO_FREE char *log = harness_read(b->dir, "log");
    return log && strstr(log, "\nPIPETUNE trial one begin\n");
}

static void test_session_in_python_trains_trial_after_trial(void **state)
{
    struct bench *b = *state;
    struct stat st;
    pid_t python = start_python(b);
    open_link(b);
    turn_until(b, &b->seen.hello, 1);
    assert_int_equal(stat(b->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    run_python(b, "one", 2, 0, NULL);
    turn_until(b, &b->seen.done, 1);
    assert_true(b->seen.ok);
    assert_int_equal(b->seen.epoch, 2); /* what is no number is not told */
    assert_int_equal(b->seen.f1_of_epoch, 2 * 22);
    run_python(b, "bad", 1, 0, "a \"reason\"\nof two lines");
    turn_until(b, &b->seen.done, 2);
    assert_false(b->seen.ok);
    assert_string_equal(b->seen.error, "KeyError: 'a \"reason\"\\nof two lines'");
    assert_int_equal(b->seen.f1_of_epoch, 12); /* what the first left behind was cleared away */
    run_python(b, "one", 2, 0, NULL);          /* is done: told again */
    turn_until(b, &b->seen.done, 3);
    assert_true(b->seen.ok);
    assert_string_equal(b->seen.id, "one");
    assert_int_equal(b->seen.epoch, 5);
    assert_int_equal(session_link_stop(b->link), 0);
    assert_int_equal(harness_exit_code(python, HARNESS_MS), 0);
    turn_until(b, &b->seen.lost, 1);
    assert_false(io_exists(b->path));
    AUTO_FREE char *log = harness_read(b->dir, "log");
    assert_int_equal(harness_count(log, "\nPIPETUNE trial one begin\n"), 1);
    assert_int_equal(harness_count(log, "\nPIPETUNE trial one end\n"), 1);
    const char *mark = strstr(log, "\nPIPETUNE trial bad begin\n"), *trace = strstr(log, "\nTraceback (most");
    assert_true(mark && trace > mark && strstr(trace, "\nPIPETUNE trial bad end\n"));
}

static void test_session_in_python_ends_a_trial_at_an_epoch(void **state)
{
    struct bench *b = *state;
    pid_t python = start_python(b);
    open_link(b);
    turn_until(b, &b->seen.hello, 1);
    run_python(b, "one", 50, 0.1, NULL);
    turn_until(b, &b->seen.epoch, 1);
    assert_int_equal(session_link_end(b->link, "another", 1), 0); /* is not there */
    assert_int_equal(session_link_end(b->link, "one", 2), 0);
    turn_until(b, &b->seen.done, 1);
    assert_true(b->seen.ok);
    assert_in_range(b->seen.epoch, 3, 5); /* two or three, and what on_end() told of the fiftieth */
    run_python(b, "two", 1, 0, NULL);     /* the session goes on */
    turn_until(b, &b->seen.done, 2);
    assert_string_equal(b->seen.id, "two");
    assert_int_equal(session_link_stop(b->link), 0);
    assert_int_equal(harness_exit_code(python, HARNESS_MS), 0);
}

static void test_session_in_python_outlives_its_driver(void **state)
{
    struct bench *b = *state;
    pid_t python = start_python(b);
    open_link(b);
    turn_until(b, &b->seen.hello, 1);
    run_python(b, "one", 2, 0.2, NULL);
    turn_until(b, &b->seen.epoch, 1);
    session_link_free(b->link);
    turn_for(b, 10);
    open_link(b);
    turn_until(b, &b->seen.hello, 2);
    assert_string_equal(b->seen.id, "one"); /* still busy with it */
    run_python(b, "one", 2, 0.2, NULL);
    turn_until(b, &b->seen.done, 1); /* once, though it was asked twice */
    assert_int_equal(b->seen.epoch, 3);
    run_python(b, "two", 2, 0.2, NULL);
    turn_until(b, &b->seen.epoch, 4);
    session_link_free(b->link);
    b->link = NULL;
    turn_for(b, 10);
    assert_int_equal(harness_exit_code(python, HARNESS_MS), 0);
    AUTO_FREE char *log = harness_read(b->dir, "log");
    assert_int_equal(harness_count(log, "\nPIPETUNE trial two end\n"), 1); /* it was finished all the same */
}

static void test_session_in_python_has_one_driver_and_one_trial(void **state)
{
    static const char odd_id[] = "{\"run\":{\"id\":\"../x\",\"hyper\":{},\"epochs\":1,\"seed\":1}}\n";
    static const char stop[] = "{\"later\":{}}\n{\"stop\":{}}\n";
    struct bench *b = *state;
    pid_t python = start_python(b);
    open_link(b);
    turn_until(b, &b->seen.hello, 1);
    run_python(b, "one", 1, 0.5, NULL);
    turn_for(b, 10);
    assert_true(harness_wait(trial_one_runs, b, HARNESS_MS)); /* one that has not begun goes with its driver */
    run_python(b, "two", 1, 0, NULL);
    turn_until(b, &b->seen.done, 1);
    assert_string_equal(b->seen.id, "two");
    assert_string_equal(b->seen.error, "the session is busy with trial one");
    AUTO_CLOSE int second = knock(b);
    expect_line(second, "\"busy\":\"one\"");
    turn_until(b, &b->seen.lost, 1); /* the new driver replaces the old one */
    expect_line(second, "\"epoch\":1,\"metrics\":{\"f1\":12.0}");
    expect_line(second, "\"done\":{\"id\":\"one\",\"ok\":true,\"error\":null}");
    assert_int_equal(io_write_all(second, odd_id, sizeof odd_id - 1), 0);
    expect_line(second, ""); /* one that speaks nonsense is cut off */
    AUTO_CLOSE int third = knock(b);
    expect_line(third, "\"busy\":null");
    assert_int_equal(io_write_all(third, stop, sizeof stop - 1), 0);
    assert_int_equal(harness_exit_code(python, HARNESS_MS), 0);
}

static void test_session_in_python_refuses_a_folder_open_to_others(void **state)
{
    struct bench *b = *state;
    assert_int_equal(chmod(b->dir, 0711), 0);
    pid_t python = start_python(b);
    assert_int_equal(harness_exit_code(python, HARNESS_MS), 1);
    AUTO_FREE char *log = harness_read(b->dir, "log");
    assert_non_null(strstr(log, "is no folder of yours with mode 0700"));
}

#define BENCH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH_TEST(test_session_path_lies_in_a_folder_of_ours),
        BENCH_TEST(test_session_path_goes_where_it_fits),
        BENCH_TEST(test_session_path_refuses_a_folder_that_is_not_ours_alone),
        BENCH_TEST(test_sockets_of_killed_sessions_are_swept),
        BENCH_TEST(test_a_socket_stays_while_its_session_has_a_process),
        BENCH_TEST(test_session_waits_for_its_socket),
        BENCH_TEST(test_session_tells_what_it_hears),
        BENCH_TEST(test_session_is_told_what_to_run),
        BENCH_TEST(test_session_is_told_nothing_before_its_hello),
        BENCH_TEST(test_session_limits_what_it_is_told),
        BENCH_TEST(test_session_is_lost_when_it_speaks_nonsense),
        BENCH_TEST(test_session_is_lost_when_a_line_does_not_end),
        BENCH_TEST(test_session_is_lost_when_it_closes),
        BENCH_TEST(test_session_says_when_it_cannot_connect),
        BENCH_TEST(test_session_refuses_a_peer_of_another_user),
        BENCH_TEST(test_session_refuses_a_path_that_does_not_fit),
        BENCH_TEST(test_session_may_be_freed_in_each_call),
        BENCH_TEST(test_session_is_let_go_without_a_word),
        BENCH_TEST(test_session_of_the_fake_trains_trial_after_trial),
        BENCH_TEST(test_session_of_the_fake_outlives_its_driver),
        BENCH_TEST(test_session_of_the_fake_can_fail),
        BENCH_TEST(test_session_in_python_trains_trial_after_trial),
        BENCH_TEST(test_session_in_python_ends_a_trial_at_an_epoch),
        BENCH_TEST(test_session_in_python_outlives_its_driver),
        BENCH_TEST(test_session_in_python_has_one_driver_and_one_trial),
        BENCH_TEST(test_session_in_python_refuses_a_folder_open_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
