/* The verbs of `pipetune-node serve` that launch and follow: with real processes, over a pipe and over what plays ssh. A launch
 * survives its helper and its driver; another helper finds it again, and nothing is started twice or lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "base/proc.h"
#include "tests/integration/harness.h"

enum { LINE_SIZE = 128 << 10 };

struct bench {
    char *dir, *node, *ssh;
    char tag[64];
    bool over_ssh; /* what plays it */
};

struct talk { /* one helper */
    pid_t pid;
    int in, out, id;
    char line[LINE_SIZE];
    size_t len;
    struct buf heard; /* what `bytes` brought, one behind the other */
    struct buf words; /* what `words` brought … */
    char why[128];    /* … and why no more do */
    json_t *news;     /* the newest `launch` event that was not looked at; owned */
};

/* --- talking ------------------------------------------------------------------------------------------------------- */

static struct talk *talk_to(const struct bench *b)
{
    static const char *const options[] = { "-T",
                                           "-oBatchMode=yes",
                                           "-oStrictHostKeyChecking=yes",
                                           "-oConnectTimeout=10",
                                           "-oServerAliveInterval=5",
                                           "-oServerAliveCountMax=3",
                                           "-oClearAllForwardings=yes",
                                           "--",
                                           "host" };
    char *argv[16] = { 0 };
    size_t n = 0;
    if (b->over_ssh) {
        argv[n++] = b->ssh;
        for (size_t i = 0; i < ARRAY_LEN(options); i++)
            argv[n++] = (char *)options[i];
    }
    argv[n++] = b->node;
    argv[n++] = (char *)"serve";
    struct talk *t = calloc(1, sizeof *t);
    int in[2], out[2];
    assert_non_null(t);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    t->pid = fork();
    assert_true(t->pid >= 0);
    if (t->pid == 0) {
        if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
            (void)execv(argv[0], argv);
        _exit(127);
    }
    (void)close(in[0]), (void)close(out[1]);
    t->in = in[1];
    t->out = out[0];
    return t;
}

/* NULL: nothing within `ms`, or the end. */
static json_t *hear(struct talk *t, int64_t ms)
{
    for (int64_t until = clock_ms() + ms;;) {
        char *newline = memchr(t->line, '\n', t->len);
        if (newline) {
            size_t n = (size_t)(newline - t->line);
            json_t *j = json_loadb(t->line, n, 0, NULL);
            if (!j)
                fail_msg("no JSON: %.*s", (int)n, t->line);
            memmove(t->line, newline + 1, t->len - n - 1);
            t->len -= n + 1;
            return j;
        }
        struct pollfd p = { .fd = t->out, .events = POLLIN };
        int64_t left = until - clock_ms();
        if (left <= 0 || poll(&p, 1, (int)left) < 1)
            return NULL;
        ssize_t got = read(t->out, t->line + t->len, sizeof t->line - t->len);
        if (got <= 0)
            return NULL;
        t->len += (size_t)got;
    }
}

static const char *text_of(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? text : "";
}

static int64_t number_of(const json_t *j, const char *key)
{
    return json_integer_value(json_object_get(j, key));
}

/* Takes an event: bytes are put together, in order and without a gap. */
static void take(struct talk *t, json_t *j)
{
    if (strcmp(text_of(j, "event"), "launch") == 0) {
        json_decref(t->news);
        t->news = j;
        return;
    }
    if (strcmp(text_of(j, "event"), "bytes") == 0) {
        size_t before = t->heard.len;
        assert_int_equal(base64_read(&t->heard, text_of(j, "data")), 0);
        assert_true(t->heard.len - before <= 2880);
    }
    if (strcmp(text_of(j, "event"), "words") == 0) {
        assert_int_equal(base64_read(&t->words, text_of(j, "data")), 0);
        (void)snprintf(t->why, sizeof t->why, "%s", text_of(j, "why"));
    }
    json_decref(j);
}

/* The answer, to be freed; events that come before it are taken. */
static json_t *ask(struct talk *t, const char *fmt, ...)
{
    AUTO_BUF struct buf line = BUF_INIT;
    char text[8192];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_printf(&line, "{\"id\":%d,%s}\n", ++t->id, text);
    assert_int_equal(write(t->in, line.data, line.len), (ssize_t)line.len);
    for (;;) {
        json_t *j = hear(t, HARNESS_MS);
        if (!j)
            fail_msg("no answer to %s", text);
        if (!json_object_get(j, "event")) {
            assert_int_equal(number_of(j, "id"), t->id);
            return j;
        }
        take(t, j);
    }
}

static void ask_well(struct talk *t, const char *words, const char *tag)
{
    AUTO_JSON json_t *j = ask(t, "%s,\"tag\":\"%s\"", words, tag);
    if (!json_is_true(json_object_get(j, "ok")))
        fail_msg("%s: %s", words, text_of(j, "error"));
}

static void expect_refused(struct talk *t, const char *words, const char *tag, const char *why)
{
    AUTO_JSON json_t *j = ask(t, "%s,\"tag\":\"%s\"", words, tag);
    if (json_is_true(json_object_get(j, "ok")) || !strstr(text_of(j, "error"), why))
        fail_msg("%s: '%s', want '%s'", words, text_of(j, "error"), why);
}

static struct talk *greet(const struct bench *b)
{
    struct talk *t = talk_to(b);
    AUTO_JSON json_t *j = ask(t, "\"verb\":\"hello\",\"protocol\":1");
    assert_true(json_is_true(json_object_get(j, "ok")));
    return t;
}

/* The next event about a launch: its state. */
static void expect_news(struct talk *t, const char *state)
{
    for (int64_t until = clock_ms() + HARNESS_MS; !t->news && clock_ms() < until;) {
        json_t *j = hear(t, HARNESS_MS);
        if (!j)
            break;
        take(t, j);
    }
    if (!t->news || strcmp(text_of(t->news, "state"), state) != 0)
        fail_msg("want '%s', got '%s' (%s)", state, text_of(t->news, "state"), text_of(t->news, "why"));
}

static void news_done(struct talk *t)
{
    json_decref(t->news);
    t->news = NULL;
}

static void hear_bytes(struct talk *t, size_t n)
{
    for (int64_t until = clock_ms() + HARNESS_MS; t->heard.len < n && clock_ms() < until;) {
        json_t *j = hear(t, 1000);
        if (j)
            take(t, j);
    }
    if (t->heard.len < n)
        fail_msg("heard %zu bytes, not %zu: %s", t->heard.len, n, buf_text(&t->heard));
}

static void hang_up(struct talk *t)
{
    (void)close(t->in), (void)close(t->out);
    int code = harness_exit_code(t->pid, HARNESS_MS);
    if (code != 0 && code != 128 + SIGKILL)
        fail_msg("the helper ended with %d", code);
    news_done(t);
    buf_done(&t->heard);
    buf_done(&t->words);
    free(t);
}

/* A list of texts as launches take it. Free it. */
static char *list_of(const char *const *texts, bool counted)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    struct buf out = BUF_INIT;
    size_t n = 0;
    while (texts[n])
        n++;
    if (counted)
        buf_printf(&bytes, "%zu", n), buf_putc(&bytes, '\0');
    for (size_t i = 0; i < n; i++)
        buf_put(&bytes, texts[i], strlen(texts[i]) + 1);
    base64_put(&out, bytes.data, bytes.len);
    return buf_take(&out);
}

static void launch_as(struct talk *t, const char *tag, const char *script, const char *more)
{
    AUTO_FREE char *steps = list_of((const char *const[]){ "/bin/sh", "-c", script, NULL }, true);
    AUTO_FREE char *env = list_of((const char *const[]){ "COLOUR=blue", "HOME=/nowhere", NULL }, false);
    AUTO_JSON json_t *j = ask(t, "\"verb\":\"launch\",\"tag\":\"%s\",\"attempt\":3,\"steps\":\"%s\",\"env\":\"%s\"%s",
                              tag, steps, env, more);
    if (!json_is_true(json_object_get(j, "ok")))
        fail_msg("launch: %s", text_of(j, "error"));
}

static void launch(struct talk *t, const char *tag, const char *script)
{
    launch_as(t, tag, script, "");
}

static void expect_state(struct talk *t, const char *tag, const char *state)
{
    AUTO_JSON json_t *j = ask(t, "\"verb\":\"adopt\",\"tag\":\"%s\"", tag);
    if (strcmp(text_of(j, "state"), state) != 0)
        fail_msg("want '%s', got '%s' %s", state, text_of(j, "state"), text_of(j, "error"));
}

static bool is_in_folder(const struct bench *b, const char *name)
{
    AUTO_FREE char *path = NULL;
    struct stat st;
    assert_true(asprintf(&path, "%s/pipetune/%s/%s", b->dir, b->tag, name) > 0);
    return lstat(path, &st) == 0;
}

/* --- set-up ----------------------------------------------------------------------------------------------------------- */

static int set_up_with(void **state, bool over_ssh)
{
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return -1;
    b->dir = harness_dir();
    b->node = harness_program("pipetune-node");
    b->ssh = harness_program("tests/integration/fake-ssh");
    b->over_ssh = over_ssh;
    (void)snprintf(b->tag, sizeof b->tag, "launches-%ld", (long)getpid());
    (void)setenv("XDG_STATE_HOME", b->dir, 1), (void)setenv("XDG_RUNTIME_DIR", b->dir, 1);
    (void)setenv("PIPETUNE_SESSION_WAIT_S", "60", 1), (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    (void)unsetenv("PIPETUNE_FAILPOINT");
    *state = b;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, false);
}

static int set_up_ssh(void **state)
{
    return set_up_with(state, true);
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    pid_t *pids = NULL;
    size_t n = 0;
    if (proc_tagged(b->tag, &pids, &n) == 0)
        for (size_t i = 0; i < n; i++)
            (void)kill(pids[i], SIGKILL);
    free(pids);
    harness_remove(b->dir);
    free(b->node);
    free(b->ssh);
    free(b);
    return 0;
}

/* --- launching --------------------------------------------------------------------------------------------------------- */

static void test_a_launch_runs_from_its_go_to_its_exit(void **state)
{
    const struct bench *b = *state;
    struct talk *t = greet(b);
    expect_state(t, b->tag, "none");
    launch(t, b->tag, "echo $COLOUR $HOME $PIPETUNE_LAUNCH; pwd; exit 7");
    expect_news(t, "ready");
    assert_true(number_of(t->news, "pid") > 1 && number_of(t->news, "heard") == 0);
    assert_int_equal(strlen(text_of(t->news, "boot_id")), 36);
    news_done(t);
    expect_state(t, b->tag, "waiting");
    assert_false(is_in_folder(b, "exit"));
    ask_well(t, "\"verb\":\"tail\",\"from\":0,\"credit\":100000", b->tag);
    ask_well(t, "\"verb\":\"go\"", b->tag);
    expect_news(t, "gone");
    news_done(t);
    AUTO_JSON json_t *j = ask(t, "\"verb\":\"adopt\",\"tag\":\"%s\"", b->tag);
    assert_string_equal(text_of(j, "state"), "ended");
    if (!strstr(text_of(j, "exit"), "attempt=3 ") || !strstr(text_of(j, "exit"), "kind=exited code=7 "))
        fail_msg("its exit is '%s'", text_of(j, "exit"));
    hear_bytes(t, (size_t)number_of(j, "heard"));
    char want[512];
    (void)snprintf(want, sizeof want, "blue /nowhere %s\n%s/pipetune/%s/work\n", b->tag, b->dir, b->tag);
    assert_string_equal(buf_text(&t->heard), want);
    ask_well(t, "\"verb\":\"forget\"", b->tag);
    assert_false(is_in_folder(b, ""));
    expect_state(t, b->tag, "none");
    ask_well(t, "\"verb\":\"forget\"", b->tag); /* fine again */
    hang_up(t);
}

static void test_without_a_go_nothing_is_started(void **state)
{
    const struct bench *b = *state;
    struct talk *t = greet(b);
    launch(t, b->tag, "touch started");
    expect_news(t, "ready");
    hang_up(t);
    t = greet(b);
    for (int64_t until = clock_ms() + HARNESS_MS; is_in_folder(b, "pid") && clock_ms() < until;)
        (void)usleep(10000);
    expect_state(t, b->tag, "cut");
    assert_false(is_in_folder(b, "work/started"));
    expect_refused(t, "\"verb\":\"go\"", b->tag, "waits for no go");
    launch(t, b->tag, "touch started"); /* it never was */
    expect_news(t, "ready");
    news_done(t);
    ask_well(t, "\"verb\":\"go\"", b->tag);
    expect_news(t, "gone");
    assert_true(is_in_folder(b, "work/started"));
    expect_refused(t, "\"verb\":\"launch\",\"attempt\":3,\"steps\":\"MQAvYmluL3RydWUA\"", b->tag, "already");
    hang_up(t);
}

/* --- a link that breaks --------------------------------------------------------------------------------------------------- */

#define SLOWLY                                                                                                         \
    "echo one; while [ ! -e two ]; do sleep 0.05; done; echo two; while [ ! -e end ]; do sleep 0.05; done; echo end"

static void write_work(const struct bench *b, const char *name)
{
    AUTO_FREE char *file = NULL;
    assert_true(asprintf(&file, "pipetune/%s/work/%s", b->tag, name) > 0);
    harness_write(b->dir, file, "");
}

/* Its helper is killed, or hears the end of its line; what was launched goes on, and is read on where that was. */
static void goes_on(const struct bench *b, bool killed)
{
    struct talk *t = greet(b);
    launch(t, b->tag, SLOWLY);
    expect_news(t, "ready");
    pid_t pid = (pid_t)number_of(t->news, "pid");
    news_done(t);
    ask_well(t, "\"verb\":\"go\"", b->tag);
    ask_well(t, "\"verb\":\"tail\",\"from\":0,\"credit\":100000", b->tag);
    hear_bytes(t, 4);
    assert_string_equal(buf_text(&t->heard), "one\n");
    if (killed)
        assert_int_equal(kill(t->pid, SIGKILL), 0);
    hang_up(t);
    write_work(b, "two"); /* while nobody listens */
    t = greet(b);
    AUTO_JSON json_t *j = ask(t, "\"verb\":\"adopt\",\"tag\":\"%s\"", b->tag);
    assert_string_equal(text_of(j, "state"), "running");
    assert_int_equal(number_of(j, "pid"), pid);
    ask_well(t, "\"verb\":\"tail\",\"from\":4,\"credit\":100000,\"accounted\":4", b->tag);
    hear_bytes(t, 4);
    assert_string_equal(buf_text(&t->heard), "two\n");
    expect_refused(t, "\"verb\":\"forget\"", b->tag, "not over");
    write_work(b, "end");
    expect_news(t, "gone");
    hear_bytes(t, 8);
    assert_string_equal(buf_text(&t->heard), "two\nend\n");
    expect_state(t, b->tag, "ended");
    hang_up(t);
}

static void test_a_launch_survives_a_broken_link(void **state)
{
    goes_on(*state, false);
}

static void test_a_launch_survives_its_helper(void **state)
{
    goes_on(*state, true);
}

static void test_what_ended_while_nobody_looked_is_told(void **state)
{
    const struct bench *b = *state;
    struct talk *t = greet(b);
    launch(t, b->tag, SLOWLY);
    expect_news(t, "ready");
    ask_well(t, "\"verb\":\"go\"", b->tag);
    hang_up(t);
    write_work(b, "two"), write_work(b, "end");
    for (int64_t until = clock_ms() + HARNESS_MS; !is_in_folder(b, "exit") && clock_ms() < until;)
        (void)usleep(10000);
    t = greet(b);
    expect_state(t, b->tag, "ended");
    ask_well(t, "\"verb\":\"tail\",\"from\":8,\"credit\":100", b->tag);
    hear_bytes(t, 4);
    assert_string_equal(buf_text(&t->heard), "end\n");
    hang_up(t);
}

/* --- signals ---------------------------------------------------------------------------------------------------------- */

static void test_a_launch_is_told_to_end_or_killed(void **state)
{
    const struct bench *b = *state;
    for (int hard = 0; hard <= 1; hard++) {
        char tag[80], signal[64];
        struct talk *t = greet(b);
        (void)snprintf(tag, sizeof tag, "%.50s-%d", b->tag, hard);
        (void)snprintf(signal, sizeof signal, "\"verb\":\"signal\",\"hard\":%s", hard ? "true" : "false");
        launch(t, tag, "echo here; sleep 1000");
        expect_news(t, "ready");
        news_done(t);
        ask_well(t, "\"verb\":\"go\"", tag);
        ask_well(t, "\"verb\":\"tail\",\"from\":0,\"credit\":100000", tag);
        hear_bytes(t, 5);
        ask_well(t, signal, tag);
        expect_news(t, "gone");
        expect_state(t, tag, hard ? "cut" : "ended"); /* who is killed writes no note */
        ask_well(t, signal, tag);                     /* fine for one that is over */
        pid_t *pids = NULL;
        size_t n = 1;
        for (int64_t until = clock_ms() + HARNESS_MS; n > 0 && clock_ms() < until; free(pids))
            assert_int_equal(proc_tagged(tag, &pids, &n), 0);
        assert_int_equal(n, 0);
        ask_well(t, "\"verb\":\"forget\"", tag);
        hang_up(t);
    }
}

/* --- bounds ----------------------------------------------------------------------------------------------------------- */

static void test_no_more_is_told_than_there_is_credit_for(void **state)
{
    const struct bench *b = *state;
    struct talk *t = greet(b);
    launch(t, b->tag, "i=0; while [ $i -lt 2000 ]; do echo 0123456789012345678; i=$((i+1)); done");
    expect_news(t, "ready");
    news_done(t);
    ask_well(t, "\"verb\":\"go\"", b->tag);
    ask_well(t, "\"verb\":\"tail\",\"from\":0,\"credit\":7000", b->tag);
    expect_news(t, "gone");
    hear_bytes(t, 7000);
    json_t *more = hear(t, 400);
    if (more)
        take(t, more);
    assert_int_equal(t->heard.len, 7000);
    ask_well(t, "\"verb\":\"tail\",\"from\":7000,\"credit\":1000000,\"accounted\":7000", b->tag);
    hear_bytes(t, 40000);
    for (size_t at = 0; at < 40000; at += 20)
        assert_memory_equal(t->heard.data + at, "0123456789012345678\n", 20);
    hang_up(t);
}

static void test_what_is_no_launch_is_refused(void **state)
{
    const struct bench *b = *state;
    struct talk *t = greet(b);
    static const struct {
        const char *words, *why;
    } cases[] = {
        { "\"verb\":\"launch\",\"attempt\":1", "'steps' is missing" },
        { "\"verb\":\"launch\",\"attempt\":1,\"steps\":\"%\"", "'steps' must be base 64" },
        { "\"verb\":\"launch\",\"attempt\":1,\"steps\":\"QQ==\"", "'steps' must be base 64" }, /* without its NUL */
        { "\"verb\":\"launch\",\"attempt\":1,\"steps\":\"MQBhAA==\",\"env\":\"QQA=\"", "'env' must be NAME=VALUE" },
        { "\"verb\":\"go\"", "waits for no go" },
        { "\"verb\":\"tail\",\"from\":0,\"credit\":1", "there is no launch" },
        { "\"verb\":\"signal\"", "there is no launch" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        expect_refused(t, cases[i].words, b->tag, cases[i].why);
        expect_refused(t, cases[i].words, "../x", "'tag' must be"); /* no tag is a path */
    }
    ask_well(t, "\"verb\":\"launch\",\"attempt\":1,\"steps\":\"eABhAA==\"",
             b->tag); /* "x", "a": exec says what is wrong */
    expect_news(t, "refused");
    hang_up(t);
}

static void test_links_are_not_followed(void **state)
{
    const struct bench *b = *state;
    AUTO_FREE char *root = harness_path(b->dir, "pipetune");
    AUTO_FREE char *theirs = harness_path(b->dir, "theirs");
    AUTO_FREE char *file = harness_path(b->dir, "theirs/precious");
    AUTO_FREE char *link = NULL;
    assert_int_equal(mkdir(root, 0700), 0);
    assert_int_equal(mkdir(theirs, 0700), 0);
    harness_write(b->dir, "theirs/precious", "");
    assert_true(asprintf(&link, "%s/%s", root, b->tag) > 0);
    assert_int_equal(symlink(theirs, link), 0);
    struct talk *t = greet(b);
    expect_state(t, b->tag, "none");
    expect_refused(t, "\"verb\":\"launch\",\"attempt\":1,\"steps\":\"MQAvYmluL3RydWUA\"", b->tag, "link");
    ask_well(t, "\"verb\":\"forget\"", b->tag);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(unlink(link), 0);
    launch(t, b->tag, "ln -s ../../../theirs away; mkdir -p a/b; ln -s ../../../../theirs a/b/c");
    expect_news(t, "ready");
    news_done(t);
    ask_well(t, "\"verb\":\"go\"", b->tag);
    expect_news(t, "gone");
    ask_well(t, "\"verb\":\"forget\"", b->tag);
    assert_false(is_in_folder(b, ""));
    assert_int_equal(access(file, F_OK), 0);
    hang_up(t);
}

/* --- sessions ------------------------------------------------------------------------------------------------------------- */

/* The application's side of a session as it is shipped, over a Spark that is none. */
static void launch_session(const struct bench *b, struct talk *t)
{
    char here[PATH_MAX], script[2 * PATH_MAX];
    assert_non_null(getcwd(here, sizeof here));
    (void)snprintf(script, sizeof script, "exec python3 '%s/tests/integration/fake-session.py' '%s/bigdl/apps' -", here,
                   here);
    launch_as(t, b->tag, script, ",\"mark\":\"PIPETUNE trial\"");
    expect_news(t, "ready");
    news_done(t);
    ask_well(t, "\"verb\":\"go\"", b->tag);
    ask_well(t, "\"verb\":\"talk\",\"credit\":100000", b->tag);
}

static void hear_words(struct talk *t, const char *want)
{
    for (int64_t until = clock_ms() + HARNESS_MS; !strstr(buf_text(&t->words), want) && clock_ms() < until;) {
        json_t *j = hear(t, 1000);
        if (j)
            take(t, j);
    }
    if (!strstr(buf_text(&t->words), want))
        fail_msg("want '%s', heard '%s' (%s)", want, buf_text(&t->words), t->why);
}

static void say(struct talk *t, const char *tag, const char *words)
{
    AUTO_BUF struct buf text = BUF_INIT;
    base64_put(&text, words, strlen(words));
    AUTO_JSON json_t *j = ask(t, "\"verb\":\"say\",\"tag\":\"%s\",\"data\":\"%s\"", tag, buf_text(&text));
    if (!json_is_true(json_object_get(j, "ok")))
        fail_msg("say: %s", text_of(j, "error"));
}

static const char *run_of(const struct bench *b, char run[80])
{
    (void)snprintf(run, 80, "%s-t4-1", b->tag);
    return run;
}

static void say_run(const struct bench *b, struct talk *t)
{
    char run[80], words[256];
    (void)snprintf(words, sizeof words, "{\"run\":{\"id\":\"%s\",\"hyper\":{},\"epochs\":2,\"seed\":1}}\n",
                   run_of(b, run));
    say(t, b->tag, words);
    hear_words(t, "\"done\"");
    (void)snprintf(words, sizeof words, "\"epoch\":{\"id\":\"%s\",\"epoch\":2,", run);
    hear_words(t, words);
}

static void start_run(const struct bench *b, struct talk *t)
{
    char run[80];
    AUTO_JSON json_t *j = ask(t, "\"verb\":\"run\",\"tag\":\"%s\",\"session\":\"%s\"", run_of(b, run), b->tag);
    if (strcmp(text_of(j, "state"), "ready") != 0 || number_of(j, "pid") < 2 || strlen(text_of(j, "boot_id")) != 36)
        fail_msg("run: '%s' %s", text_of(j, "state"), text_of(j, "error"));
}

static void test_a_session_serves_runs_and_survives_its_helper(void **state)
{
    const struct bench *b = *state;
    struct talk *t = greet(b);
    char run[80], folder[96];
    launch_session(b, t);
    hear_words(t, "{\"hello\":");
    start_run(b, t);
    start_run(b, t); /* one that never began is none */
    say_run(b, t);
    ask_well(t, "\"verb\":\"tail\",\"from\":0,\"credit\":100000", run_of(b, run));
    char marks[256];
    int len = snprintf(marks, sizeof marks, "PIPETUNE trial %s begin\n\nPIPETUNE trial %s end\n", run, run);
    hear_bytes(t, (size_t)len);
    assert_string_equal(buf_text(&t->heard), marks);
    assert_int_equal(kill(t->pid, SIGKILL), 0);
    hang_up(t);

    t = greet(b);
    expect_state(t, b->tag, "running"), expect_state(t, run, "running");
    AUTO_JSON json_t *look = ask(t, "\"verb\":\"look\"");
    assert_string_equal(text_of(look, "running"), b->tag);
    ask_well(t, "\"verb\":\"talk\",\"credit\":100000", b->tag);
    hear_words(t, "{\"hello\":");
    say_run(b, t); /* answered again */
    expect_refused(t, "\"verb\":\"run\",\"session\":\"x\"", run, "no run of 'x'");
    (void)snprintf(folder, sizeof folder, "\"verb\":\"run\",\"session\":\"%s\"", b->tag);
    expect_refused(t, folder, run, "begun already");
    ask_well(t, "\"verb\":\"forget\"", run);
    expect_state(t, run, "none"), expect_state(t, b->tag, "running");
    say(t, b->tag, "{\"stop\":{}}\n");
    expect_news(t, "gone");
    assert_string_equal(text_of(t->news, "tag"), b->tag);
    ask_well(t, "\"verb\":\"forget\"", b->tag);
    hang_up(t);
}

/* Its run has the launcher of the session: it is told to end with it, and is told of as it. */
static void test_a_run_ends_with_its_session(void **state)
{
    const struct bench *b = *state;
    struct talk *t = greet(b);
    char run[80], word[128];
    launch_session(b, t);
    hear_words(t, "{\"hello\":");
    start_run(b, t);
    ask_well(t, "\"verb\":\"signal\",\"hard\":false", run_of(b, run));
    for (int ended = 0; ended < 2; ended++, news_done(t))
        expect_news(t, "gone");
    AUTO_JSON json_t *j = ask(t, "\"verb\":\"adopt\",\"tag\":\"%s\"", run);
    assert_string_equal(text_of(j, "state"), "ended");
    assert_non_null(strstr(text_of(j, "exit"), "kind=signalled"));
    ask_well(t, "\"verb\":\"forget\"", run);
    (void)snprintf(word, sizeof word, "\"verb\":\"run\",\"session\":\"%s\"", b->tag);
    expect_refused(t, word, run, "has ended");
    expect_state(t, run, "none");
    expect_refused(t, "\"verb\":\"talk\",\"credit\":1", b->tag, "no session");
    AUTO_FREE char *socket = NULL;
    assert_true(asprintf(&socket, "%s/pipetune/%s.sock", b->dir, b->tag) > 0);
    ask_well(t, "\"verb\":\"forget\"", b->tag);
    assert_int_equal(access(socket, F_OK), -1);
    hang_up(t);
}

static void test_a_session_tells_no_more_than_was_asked_for(void **state)
{
    const struct bench *b = *state;
    struct talk *t = greet(b);
    launch_session(b, t);
    ask_well(t, "\"verb\":\"talk\",\"credit\":10", b->tag);
    hear_words(t, "{\"hello\":{");
    for (int i = 0; i < 5; i++)
        ask_well(t, "\"verb\":\"lease\"", b->tag);
    assert_int_equal(t->words.len, 10);
    ask_well(t, "\"verb\":\"talk\",\"credit\":30", b->tag);
    for (int i = 0; i < 5; i++)
        ask_well(t, "\"verb\":\"lease\"", b->tag);
    ask_well(t, "\"verb\":\"talk\",\"credit\":1000", b->tag); /* in all */
    hear_words(t, "}}\n");
    say(t, b->tag, "no words\n"); /* it hangs up on who speaks nonsense */
    for (int64_t until = clock_ms() + HARNESS_MS; !t->why[0] && clock_ms() < until;) {
        json_t *j = hear(t, 1000);
        if (j)
            take(t, j);
    }
    assert_string_equal(t->why, "the session closed its socket");
    expect_refused(t, "\"verb\":\"say\",\"data\":\"eA==\"", b->tag, "nobody");
    hang_up(t);
}

static void test_what_is_no_session_is_refused(void **state)
{
    const struct bench *b = *state;
    struct talk *t = greet(b);
    char run[80], word[128];
    (void)snprintf(word, sizeof word, "\"verb\":\"run\",\"session\":\"%s\"", b->tag);
    expect_refused(t, word, run_of(b, run), "no session");
    launch(t, b->tag, "echo -$PIPETUNE_SESSION-; sleep 60");
    expect_news(t, "ready");
    news_done(t);
    ask_well(t, "\"verb\":\"go\"", b->tag);
    expect_refused(t, word, run, "no session");
    expect_refused(t, word, "../x", "'tag' must be");
    expect_refused(t, "\"verb\":\"run\",\"session\":\"../x\"", run, "'session' must be");
    expect_refused(t, "\"verb\":\"run\"", run, "'session' is missing");
    expect_refused(t, "\"verb\":\"talk\",\"credit\":1", b->tag, "no session");
    expect_refused(t, "\"verb\":\"talk\"", b->tag, "'credit' is missing");
    expect_refused(t, "\"verb\":\"say\",\"data\":\"eA==\"", b->tag, "nobody");
    expect_refused(t, "\"verb\":\"say\",\"data\":\"?\"", b->tag, "base 64");
    ask_well(t, "\"verb\":\"tail\",\"from\":0,\"credit\":100", b->tag);
    hear_bytes(t, 3);
    assert_string_equal(buf_text(&t->heard), "--\n");
    ask_well(t, "\"verb\":\"signal\",\"hard\":true", b->tag);
    expect_news(t, "gone");
    hang_up(t);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
#define HERE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
#define THERE(t)                                                                                                       \
    {                                                                                                                  \
#t " over ssh", t, set_up_ssh, tear_down, NULL                                                                 \
    }
    const struct CMUnitTest tests[] = {
        HERE(test_a_launch_runs_from_its_go_to_its_exit),
        HERE(test_without_a_go_nothing_is_started),
        HERE(test_a_launch_survives_a_broken_link),
        HERE(test_a_launch_survives_its_helper),
        HERE(test_what_ended_while_nobody_looked_is_told),
        HERE(test_a_launch_is_told_to_end_or_killed),
        HERE(test_no_more_is_told_than_there_is_credit_for),
        HERE(test_what_is_no_launch_is_refused),
        HERE(test_links_are_not_followed),
        HERE(test_a_session_serves_runs_and_survives_its_helper),
        HERE(test_a_run_ends_with_its_session),
        HERE(test_a_session_tells_no_more_than_was_asked_for),
        HERE(test_what_is_no_session_is_refused),
        THERE(test_a_launch_runs_from_its_go_to_its_exit),
        THERE(test_a_launch_survives_a_broken_link),
        THERE(test_a_launch_survives_its_helper),
        THERE(test_a_session_serves_runs_and_survives_its_helper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
