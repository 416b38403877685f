/* The page as it is served: what it answers, whom it refuses, what its stream tells, and what it holds against. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "store/energy.h"
#include "store/queue.h"
#include "store/store.h"
#include "tests/integration/harness.h"

enum { T0_S = 1700000000, LOADS = 300 };

#define HOSTILE "<script>alert(1)</script>\xe2\x80\xae\x1b[31m\"'&"

struct served {
    char *dir, *store;
    struct store *s;
    int64_t study, trial, attempt; /* of demo/1, which runs */
    pid_t pid;
    int port, out;
};

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

/* --- a store --- */

static int64_t add_study(struct store *s, const char *name, const char *state)
{
    struct err e = { 0 };
    struct store_study row = {
        .name = (char *)(uintptr_t)name,
        .state = (char *)(uintptr_t)state,
        .config = (char *)(uintptr_t) "{\"study\":{\"metric\":\"accuracy\",\"epochs\":20},"
                                      "\"hyperParameters\":{\"batch_size\":[64,128],\"name\":[\"a\"]}}",
        .space_hash = (char *)(uintptr_t) "0123456789abcdef",
        .provenance = (char *)(uintptr_t) "{\"host\":\"here\"}",
        .maximise = true,
        .seed = 1,
        .created_ms = T0_S * INT64_C(1000),
        .ended_ms = strcmp(state, "running") == 0 ? 0 : T0_S * INT64_C(1000) + 60000,
    };
    int64_t id = 0;
    check(store_study_add(s, &row, &id, &e), &e);
    return id;
}

static int64_t add_trial(struct store *s, int64_t study, int number, const char *state, double metric,
                         const char *reason)
{
    struct err e = { 0 };
    char hyper[256];
    (void)snprintf(hyper, sizeof hyper, "{\"batch_size\":%d,\"name\":\"<b>x</b>\"}", 64 * number);
    struct store_trial row = { .study = study,
                               .number = number,
                               .proposal = (uint64_t)number - 1,
                               .state = (char *)(uintptr_t)state,
                               .epochs = 20,
                               .hyper = hyper,
                               .requested = (char *)(uintptr_t) "{\"cores\":2}",
                               .effective = (char *)(uintptr_t) "{\"cores\":2}",
                               .accuracy = metric,
                               .loss = NAN,
                               .metric = metric,
                               .seconds = 10,
                               .reason = (char *)(uintptr_t)reason };
    check(store_trial_add(s, &row, &e), &e);
    return row.id;
}

static int64_t add_attempt(struct store *s, int64_t trial, const char *state, const char *outcome, int *out_number)
{
    struct err e = { 0 };
    struct store_attempt row = { .trial = trial,
                                 .state = (char *)(uintptr_t)state,
                                 .outcome = (char *)(uintptr_t)outcome,
                                 .launch = (char *)(uintptr_t) "pt-1",
                                 .argv = (char *)(uintptr_t) "[\"train\",\""
                                                             "<i>"
                                                             "\"]",
                                 .started_ms = T0_S * INT64_C(1000),
                                 .ended_ms = outcome ? T0_S * INT64_C(1000) + 10000 : 0,
                                 .exit_code = -1,
                                 .cores = 2,
                                 .first_epoch = 1 };
    check(store_attempt_add(s, &row, &e), &e);
    if (out_number)
        *out_number = row.number;
    return row.id;
}

static void add_epoch(struct store *s, int64_t trial, int attempt, int epoch, double metric)
{
    struct err e = { 0 };
    struct store_epoch row = { .trial = trial,
                               .epoch = epoch,
                               .attempt = attempt,
                               .accuracy = metric,
                               .loss = NAN,
                               .metric = metric,
                               .seconds = 1,
                               .end_ms = T0_S * INT64_C(1000) };
    check(store_epoch_put(s, &row, &e), &e);
}

static void add_decision(struct store *s, int64_t study, int trial, const char *reason)
{
    struct err e = { 0 };
    struct store_decision d = {
        .trial = trial, .t_s = 1, .kind = "launch", .setting = "{\"cores\":2}", .reason = reason
    };
    check(store_decision_add(s, study, &d, &e), &e);
}

static void add_reading(struct store *s, int64_t study, const char *meter, double second, double value)
{
    struct err e = { 0 };
    double from_ms = (T0_S + second) * 1000;
    struct store_reading r = { 0, meter, "ok", from_ms, from_ms + 1000, value, 0 };
    check(store_reading_add(s, study, &r, &e), &e);
}

/* demo: 1 is under way, 2 finished, 3 failed, with words in it that would like to be markup. */
static void fill(struct served *w)
{
    struct err e = { 0 };
    check(store_open(&w->s, w->store, STORE_WRITE, &e), &e);
    w->study = add_study(w->s, "demo", "running");
    w->trial = add_trial(w->s, w->study, 1, "running", NAN, NULL);
    w->attempt = add_attempt(w->s, w->trial, "running", NULL, NULL);
    int64_t second = add_trial(w->s, w->study, 2, "finished", 0.75, NULL);
    (void)add_attempt(w->s, second, "ended", "finished", NULL);
    for (int i = 1; i <= 20; i++)
        add_epoch(w->s, second, 1, i, 0.5 + 0.0125 * i);
    (void)add_trial(w->s, w->study, 3, "failed", NAN, HOSTILE);
    add_decision(w->s, w->study, 1, HOSTILE);
    for (int i = 0; i < 10; i++) {
        add_reading(w->s, w->study, "rapl", i, 30);
        add_reading(w->s, w->study, "cpu", i, 1);
    }
}

/* --- a server --- */

static void start(struct served *w)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[] = { program, "serve", "--store", w->store, "--listen", "127.0.0.1:0", NULL };
    char line[128] = "";
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    w->pid = harness_spawn(argv, fds[1], -1);
    (void)close(fds[1]);
    w->out = fds[0];
    for (size_t n = 0; n < sizeof line - 1 && !strchr(line, '\n'); n++)
        if (read(w->out, line + n, 1) != 1)
            fail_msg("the server ended before it said where it is: '%s'", line);
    assert_int_equal(sscanf(line, "http://127.0.0.1:%d/", &w->port), 1);
}

static int stop(struct served *w)
{
    (void)kill(w->pid, SIGTERM);
    int code = harness_exit_code(w->pid, HARNESS_MS);
    (void)close(w->out);
    w->pid = 0;
    return code;
}

static int open_world(void **state)
{
    struct served *w = calloc(1, sizeof *w);
    harness_own_leases();
    w->dir = harness_dir();
    w->store = harness_path(w->dir, "x.db");
    fill(w);
    start(w);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct served *w = *state;
    if (w->pid)
        (void)stop(w);
    store_close(w->s);
    harness_remove(w->dir);
    free(w->store);
    free(w);
    return 0;
}

/* --- a client --- */

static int dial(const struct served *w)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)w->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval tv = { HARNESS_MS / 1000, 0 };
    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        fail_msg("cannot connect: %s", strerror(errno));
    return fd;
}

static void put(int fd, const char *text)
{
    size_t len = strlen(text);
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* it was shut: the answer tells */
        text += n;
        len -= (size_t)n;
    }
}

/* All until the server closes; the status, 0: it said nothing. */
static int answer(int fd, struct buf *out)
{
    char chunk[4096];
    ssize_t n;
    int status = 0;
    while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0)
        buf_put(out, chunk, (size_t)n);
    (void)close(fd);
    (void)sscanf(buf_text(out), "HTTP/1.1 %d", &status);
    return status;
}

static int ask_with(const struct served *w, const char *line, const char *heads, const char *body, struct buf *out)
{
    AUTO_BUF struct buf b = BUF_INIT;
    int fd = dial(w);
    buf_printf(&b, "%s HTTP/1.1\r\n%sConnection: close\r\n", line, heads);
    if (body)
        buf_printf(&b, "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n", strlen(body));
    buf_printf(&b, "\r\n%s", body ? body : "");
    put(fd, buf_text(&b));
    return answer(fd, out);
}

#define OURS "Host: localhost\r\n"

static int get(const struct served *w, const char *path, struct buf *out)
{
    char line[8192];
    (void)snprintf(line, sizeof line, "GET %s", path);
    return ask_with(w, line, OURS, NULL, out);
}

static const char *body_of(const struct buf *b)
{
    const char *end = strstr(buf_text(b), "\r\n\r\n");
    return end ? end + 4 : "";
}

/* --- what it answers --- */

static void test_pages(void **state)
{
    static const struct {
        const char *path;
        int status;
        const char *has;
    } rows[] = {
        { "/", 200, "/study/demo" },
        { "/study/demo", 200, "/trial/demo/2" },
        { "/study/demo?figure=loss", 200, "absent" },
        { "/study/demo?sort=time&state=finished&page=1", 200, "/trial/demo/2" },
        { "/study/demo?sort=%22%3E&state=%3Cb%3E&page=x&until=x&figure=%3Cscript%3E", 200, "absent" },
        { "/study/nothing", 404, "no study" },
        { "/study/demo", 200, "<td>measured (rapl)</td><td class=\"n\" data-v=\"300\">300</td>" },
        { "/study/demo/events", 200, "nothing was sampled" },
        { "/trial/demo/1", 200, "data-log=\"/trial/demo/1/log\"" },
        { "/trial/demo/2", 200, "<svg" },
        { "/trial/demo/99", 404, "no trial" },
        { "/trial/demo/x", 404, "no trial" },
        { "/trial/demo/1/log", 404, "" },
        { "/compare", 200, "Compare" },
        { "/compare?t=demo/1&t=demo/2", 200, "batch_size" },
        { "/compare?t=demo/1+demo/2&at=best&all=1", 200, "config" },
        { "/compare?t=demo/99&t=x&t=%3Cb%3E/1", 200, "no trial" },
        { "/nodes", 200, "this machine" },
        { "/model", 200, "Model" },
        { "/assets/page.css", 200, "prefers-color-scheme" },
        { "/assets/page.js", 200, "EventSource" },
        { "/assets/nothing", 404, "" },
        { "/metrics", 200, "pipetune_trial_epochs_total{study=\"demo\"} 20\n" },
        { "/metrics", 200, "pipetune_metric{study=\"demo\",name=\"accuracy\"} 0.75\n" },
        { "/api/ls", 200, "\"study\": \"demo\"" },
        { "/api/show/demo/2", 200, "\"accuracy\": 0.75" },
        { "/api/show/nothing", 404, "\"error\"" },
        { "/nothing", 404, "no such page" },
    };
    const struct served *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        int status = get(w, rows[i].path, &b);
        if (status != rows[i].status || !strstr(body_of(&b), rows[i].has))
            fail_msg("%s: got %d, want %d with '%s': %s", rows[i].path, status, rows[i].status, rows[i].has,
                     buf_text(&b));
        if (!strstr(buf_text(&b), "Content-Security-Policy: default-src 'self'") ||
            !strstr(buf_text(&b), "X-Content-Type-Options: nosniff"))
            fail_msg("%s has no guard: %.600s", rows[i].path, buf_text(&b));
    }
}

static void test_parts_of_a_page_come_by_themselves(void **state)
{
    const struct served *w = *state;
    static const struct {
        const char *path, *has, *not ;
    } rows[] = { { "/study/demo?parts=facts,running", "id=\"running\"", "id=\"trials\"" },
                 { "/study/demo?parts=story", "id=\"story\"", "id=\"facts\"" },
                 { "/study/demo?parts=fact", "<main", "id=\"facts\"" },
                 { "/study/demo?parts=", "<main", "data-at" },
                 { "/trial/demo/2?parts=facts", "id=\"facts\"", "<pre" } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        assert_int_equal(get(w, rows[i].path, &b), 200);
        if (!strstr(body_of(&b), rows[i].has) || strstr(body_of(&b), rows[i].not ))
            fail_msg("%s: not with '%s' and without '%s': %s", rows[i].path, rows[i].has, rows[i].not, body_of(&b));
    }
}

/* One that has a study's row, and one that has not begun; what has ended waits for nothing. */
static void test_what_waits_in_the_queue_is_shown(void **state)
{
    const struct served *w = *state;
    struct err e;
    AUTO_BUF struct buf out = BUF_INIT, figures = BUF_INIT;
    char folder[] = "/", words[] = "[]", env[] = "{}", waits[] = "<later>", over[] = "over";
    struct store_queued rows[] = { { .study = waits, .state = QUEUED, .priority = 5, .at_ms = 4102444800000 },
                                   { .study = over, .state = QUEUE_DONE } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rows[i].folder = folder;
        rows[i].argv = words;
        rows[i].env = env;
        check(store_queue_add(w->s, &rows[i], &e), &e);
    }
    assert_int_equal(get(w, "/", &out), 200);
    assert_non_null(strstr(buf_text(&out), "&lt;later&gt;"));
    assert_non_null(strstr(buf_text(&out), "priority 5"));
    assert_null(strstr(buf_text(&out), ">over<"));
    assert_int_equal(get(w, "/metrics", &figures), 200);
    assert_non_null(strstr(buf_text(&figures), "pipetune_queued_studies{state=\"waiting\"} 1\n"));
}

static void test_texts_of_others_are_no_markup(void **state)
{
    static const char *const paths[] = {
        "/", "/study/demo", "/trial/demo/1", "/trial/demo/3", "/compare?t=demo/1+demo/3&all=1", "/nodes"
    };
    static const char *const never[] = { "<script>alert", "<b>x", "\xe2\x80\xae", "\x1b", "<i>" };
    const struct served *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        assert_int_equal(get(w, paths[i], &b), 200);
        for (size_t k = 0; k < ARRAY_LEN(never); k++)
            if (strstr(buf_text(&b), never[k]))
                fail_msg("%s has '%s'", paths[i], never[k]);
    }
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(get(w, "/trial/demo/3", &b), 200);
    assert_non_null(strstr(buf_text(&b), "&lt;script&gt;alert(1)"));
}

static void test_the_api_is_what_commands_print(void **state)
{
    const struct served *w = *state;
    static const struct {
        const char *path;
        const char *words[4];
    } rows[] = { { "/api/ls", { "ls" } },
                 { "/api/show/demo", { "show", "demo" } },
                 { "/api/decisions/demo", { "show", "demo", "--decisions" } },
                 { "/api/energy/demo", { "energy", "demo" } } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *program = harness_program("pipetune");
        char *argv[9] = { program, "--json", "--store", w->store };
        size_t n = 1;
        for (size_t k = 0; k < 4 && rows[i].words[k]; k++)
            argv[n++] = (char *)(uintptr_t)rows[i].words[k];
        argv[n++] = "--json";
        argv[n++] = "--store";
        argv[n++] = w->store;
        argv[n] = NULL;
        struct harness_output o = harness_run(argv, HARNESS_MS);
        AUTO_BUF struct buf b = BUF_INIT;
        assert_int_equal(get(w, rows[i].path, &b), 200);
        assert_string_equal(body_of(&b), o.out);
        harness_output_done(&o);
    }
}

/* --- whom it refuses --- */

static void test_hostile_requests(void **state)
{
    static const struct {
        const char *name, *line, *heads, *body;
        int status;
    } rows[] = {
        { "another name", "GET /", "Host: evil.example\r\n", NULL, 421 },
        { "no name", "GET /", "", NULL, 421 },
        { "a name that begins as ours", "GET /api/ls", "Host: 127.0.0.1.evil.example\r\n", NULL, 421 },
        { "a script of elsewhere", "GET /api/ls", OURS "Origin: http://evil.example\r\n", NULL, 403 },
        { "a form of elsewhere", "POST /do/retry", OURS "Origin: http://evil.example\r\n", "name=demo", 403 },
        { "a form of nowhere", "POST /do/retry", OURS, "name=demo", 403 },
        { "a form without the word", "POST /do/retry", OURS "Origin: http://localhost\r\n", "name=demo", 403 },
        { "a form with a wrong one", "POST /do/retry", OURS "Origin: http://localhost\r\n", "name=demo&form=0", 403 },
        { "a form that cannot be read", "POST /do/retry", OURS "Origin: http://localhost\r\n", "name=%", 400 },
        { "a change by a look", "GET /do/retry", OURS, NULL, 405 },
        { "another way", "DELETE /study/demo", OURS, NULL, 405 },
        { "out of the folder", "GET /assets/../../etc/passwd", OURS, NULL, 400 },
        { "out of it, written otherwise", "GET /assets/%2e%2e%2fpage.c", OURS, NULL, 400 },
        { "an end within", "GET /study/demo%00", OURS, NULL, 400 },
        { "an address that is none", "GET study/demo", OURS, NULL, 400 },
        { "an option as a name", "GET /api/show/--help", OURS, NULL, 404 },
        { "a command that is none of the table", "GET /api/rm/demo", OURS, NULL, 404 },
    };
    const struct served *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        int status = ask_with(w, rows[i].line, rows[i].heads, rows[i].body, &b);
        if (status != rows[i].status)
            fail_msg("%s: got %d, want %d", rows[i].name, status, rows[i].status);
    }
}

static void test_what_is_too_much(void **state)
{
    const struct served *w = *state;
    AUTO_BUF struct buf path = BUF_INIT, body = BUF_INIT, heads = BUF_INIT, out = BUF_INIT;
    buf_puts(&path, "GET /study/demo?x=");
    for (int i = 0; i < 6000; i++)
        buf_putc(&path, 'a');
    assert_int_equal(ask_with(w, buf_text(&path), OURS, NULL, &out), 414);
    for (int i = 0; i < 20000; i++)
        buf_putc(&body, 'a');
    buf_clear(&out);
    assert_int_equal(ask_with(w, "POST /do/retry", OURS "Origin: http://localhost\r\n", buf_text(&body), &out), 413);
    buf_puts(&heads, OURS "X-Long: ");
    for (int i = 0; i < 200000; i++)
        buf_putc(&heads, 'a');
    buf_puts(&heads, "\r\n");
    buf_clear(&out);
    int status = ask_with(w, "GET /", buf_text(&heads), NULL, &out);
    assert_true(status == 431 || status == 413 || status == 0);
    buf_clear(&out);
    assert_int_equal(get(w, "/", &out), 200);
}

static void test_who_says_nothing_keeps_nobody_out(void **state)
{
    const struct served *w = *state;
    static int fds[LOADS];
    int64_t begun_ms = clock_ms();
    for (size_t i = 0; i < LOADS; i++) {
        fds[i] = dial(w);
        if (i % 2)
            put(fds[i], "GET / HTTP/1.1\r\nHost: loc");
        if (i % 100 == 99) {
            AUTO_BUF struct buf b = BUF_INIT;
            assert_int_equal(get(w, "/assets/page.css", &b), 200);
        }
    }
    assert_true(clock_ms() - begun_ms < HARNESS_MS);
    for (size_t i = 0; i < LOADS; i++)
        (void)close(fds[i]);
}

/* --- what is done from it --- */

static void test_a_form_of_the_page_does_what_it_says(void **state)
{
    struct served *w = *state;
    AUTO_BUF struct buf b = BUF_INIT, body = BUF_INIT, out = BUF_INIT;
    char word[65] = "";
    assert_int_equal(get(w, "/trial/demo/3", &b), 200);
    const char *form = strstr(buf_text(&b), "name=\"form\" value=\"");
    assert_non_null(form);
    assert_int_equal(sscanf(form, "name=\"form\" value=\"%64[0-9a-f]\"", word), 1);
    buf_printf(&body, "form=%s&name=demo%%2F3", word);
    assert_int_equal(ask_with(w, "POST /do/retry", OURS "Origin: http://localhost\r\n", buf_text(&body), &out), 303);
    assert_non_null(strstr(buf_text(&out), "Location: /trial/demo/3"));
    buf_clear(&b);
    assert_int_equal(get(w, "/api/show/demo/3", &b), 200);
    assert_non_null(strstr(body_of(&b), "\"state\": \"waiting\""));
    buf_clear(&body);
    buf_clear(&out);
    buf_printf(&body, "form=%s&name=demo%%2F2", word);
    assert_int_equal(ask_with(w, "POST /do/retry", OURS "Origin: http://localhost\r\n", buf_text(&body), &out), 409);
}

/* --- the stream --- */

struct stream {
    int fd;
    struct buf in;
    char id[256];
};

static void follow(struct stream *st, const struct served *w, const char *query)
{
    AUTO_BUF struct buf b = BUF_INIT;
    st->fd = dial(w);
    buf_clear(&st->in);
    buf_printf(&b, "GET /events?%s HTTP/1.1\r\n" OURS, query);
    if (*st->id)
        buf_printf(&b, "Last-Event-ID: %s\r\n", st->id);
    buf_puts(&b, "\r\n");
    put(st->fd, buf_text(&b));
}

/* The data of the next event of that name; others are passed over. Free it. */
static json_t *next_event(struct stream *st, const char *event, int ms)
{
    int64_t until = clock_ms() + ms;
    char head[64];
    (void)snprintf(head, sizeof head, "event: %s\ndata: ", event);
    for (;;) {
        const char *at = strstr(buf_text(&st->in), head), *end = at ? strstr(at, "\n\n") : NULL;
        if (end) {
            const char *data = at + strlen(head);
            json_t *j = json_loadb(data, (size_t)(end - data), 0, NULL);
            for (const char *p = st->in.data; p < at; p++)
                if (strncmp(p, "id: ", 4) == 0 && sscanf(p, "id: %255s", st->id) != 1)
                    fail_msg("an id that is none");
            buf_shift(&st->in, (size_t)(end + 2 - st->in.data));
            assert_non_null(j);
            return j;
        }
        struct pollfd p = { .fd = st->fd, .events = POLLIN };
        int left = (int)(until - clock_ms());
        char chunk[4096];
        if (left <= 0 || poll(&p, 1, left) <= 0)
            return NULL;
        ssize_t n = recv(st->fd, chunk, sizeof chunk, 0);
        if (n <= 0)
            return NULL;
        buf_put(&st->in, chunk, (size_t)n);
    }
}

static void expect_epochs(json_t *news, int from, int to)
{
    assert_non_null(news);
    const json_t *epochs = json_object_get(news, "epochs");
    assert_int_equal(json_array_size(epochs), to - from + 1);
    for (int i = from; i <= to; i++)
        assert_int_equal(json_integer_value(json_object_get(json_array_get(epochs, (size_t)(i - from)), "epoch")), i);
    json_decref(news);
}

static void test_an_epoch_is_told_within_a_second(void **state)
{
    struct served *w = *state;
    struct stream st = { .fd = -1 };
    follow(&st, w, "study=demo");
    json_t *hello = next_event(&st, "hello", HARNESS_MS);
    assert_non_null(hello);
    json_decref(hello);
    for (int epoch = 1; epoch <= 3; epoch++) {
        int64_t begun_ms = clock_ms();
        add_epoch(w->s, w->trial, 1, epoch, 0.5);
        expect_epochs(next_event(&st, "news", HARNESS_MS), epoch, epoch);
        assert_true(clock_ms() - begun_ms < 1000);
    }
    (void)close(st.fd);
    buf_done(&st.in);
}

static void test_a_stream_goes_on_over_the_servers_end(void **state)
{
    struct served *w = *state;
    struct stream st = { .fd = -1 };
    follow(&st, w, "study=demo");
    json_decref(next_event(&st, "hello", HARNESS_MS));
    add_epoch(w->s, w->trial, 1, 1, 0.5);
    expect_epochs(next_event(&st, "news", HARNESS_MS), 1, 1);
    (void)close(st.fd);
    add_epoch(w->s, w->trial, 1, 2, 0.5);
    assert_int_equal(stop(w), 0);
    add_epoch(w->s, w->trial, 1, 3, 0.5);
    add_decision(w->s, w->study, 1, "meanwhile");
    int number;
    int64_t other = add_trial(w->s, w->study, 4, "running", NAN, NULL);
    (void)add_attempt(w->s, other, "ended", "finished", &number);
    add_epoch(w->s, other, number, 1, 0.25);
    start(w);
    follow(&st, w, "study=demo");
    json_t *news = next_event(&st, "news", HARNESS_MS);
    assert_non_null(news);
    assert_int_equal(json_array_size(json_object_get(news, "epochs")), 3);
    assert_int_equal(json_array_size(json_object_get(news, "attempts")), 1);
    assert_int_equal(json_array_size(json_object_get(news, "decisions")), 1);
    json_decref(news);
    (void)close(st.fd);
    /* and once more from there: nothing is told twice */
    follow(&st, w, "study=demo");
    add_epoch(w->s, w->trial, 1, 4, 0.5);
    expect_epochs(next_event(&st, "news", HARNESS_MS), 4, 4);
    (void)close(st.fd);
    buf_done(&st.in);
}

static void test_a_position_that_is_gone_is_told(void **state)
{
    struct served *w = *state;
    struct stream st = { .fd = -1, .id = "1.999999.0.0" };
    follow(&st, w, "study=demo");
    json_t *reset = next_event(&st, "reset", HARNESS_MS);
    assert_non_null(reset);
    json_decref(reset);
    (void)close(st.fd);
    (void)snprintf(st.id, sizeof st.id, "no id at all");
    follow(&st, w, "study=demo");
    json_t *hello = next_event(&st, "hello", HARNESS_MS);
    assert_non_null(hello);
    json_decref(hello);
    (void)close(st.fd);
    buf_done(&st.in);
}

static void test_streams_are_bounded_and_end_with_the_server(void **state)
{
    struct served *w = *state;
    struct stream st[40];
    int refused = 0, followed = 0;
    for (size_t i = 0; i < ARRAY_LEN(st); i++) {
        st[i] = (struct stream){ .fd = -1 };
        follow(&st[i], w, "");
    }
    for (size_t i = 0; i < ARRAY_LEN(st); i++) {
        char head[16] = "";
        assert_true(recv(st[i].fd, head, sizeof head - 1, 0) > 12);
        refused += strncmp(head, "HTTP/1.1 503", 12) == 0;
        followed += strncmp(head, "HTTP/1.1 200", 12) == 0;
    }
    assert_int_equal(followed, 32);
    assert_int_equal(refused, 8);
    assert_int_equal(stop(w), 0);
    for (size_t i = 0; i < ARRAY_LEN(st); i++) {
        (void)close(st[i].fd);
        buf_done(&st[i].in);
    }
}

/* --- where others can reach it --- */

static struct harness_output serve_once(const struct served *w, const char *listen, const char *token_file)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[] = { program,
                     "serve",
                     "--store",
                     w->store,
                     "--listen",
                     (char *)(uintptr_t)listen,
                     token_file ? "--token-file" : NULL,
                     (char *)(uintptr_t)token_file,
                     NULL };
    return harness_run(argv, HARNESS_MS);
}

static void test_others_need_a_token(void **state)
{
    struct served *w = *state;
    AUTO_FREE char *token = harness_path(w->dir, "token");
    static const struct {
        const char *listen, *token, *says;
        mode_t mode;
    } rows[] = {
        { "0.0.0.0:0", NULL, "--token-file", 0 },
        { "0.0.0.0:0", "short\n", "at least 16", 0600 },
        { "0.0.0.0:0", "a-token-of-some-length\n", "chmod", 0644 },
        { "127.0.0.1", NULL, "HOST:PORT", 0 },
        { "127.0.0.1:x", NULL, "HOST:PORT", 0 },
        { "::1:80", NULL, "brackets", 0 },
        { "192.0.2.1:0", NULL, "no such address", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].token) {
            harness_write(w->dir, "token", rows[i].token);
            assert_int_equal(chmod(token, rows[i].mode), 0);
        }
        struct harness_output o = serve_once(w, rows[i].listen, rows[i].token ? token : NULL);
        if (o.code == 0 || !strstr(o.err, rows[i].says))
            fail_msg("%s: exit %d, '%s' without '%s'", rows[i].listen, o.code, o.err, rows[i].says);
        harness_output_done(&o);
    }
}

static void test_the_token_is_shown_once(void **state)
{
    struct served *w = *state;
    AUTO_FREE char *token = harness_path(w->dir, "token"), *program = harness_program("pipetune");
    AUTO_BUF struct buf b = BUF_INIT, heads = BUF_INIT;
    char cookie[128] = "", line[128] = "";
    int fds[2];
    assert_int_equal(stop(w), 0);
    harness_write(w->dir, "token", "a-token-of-some-length\n");
    assert_int_equal(chmod(token, 0600), 0);
    char *argv[] = { program, "serve", "--store", w->store, "--listen", "127.0.0.1:0", "--token-file", token, NULL };
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    w->pid = harness_spawn(argv, fds[1], -1);
    (void)close(fds[1]);
    w->out = fds[0];
    for (size_t n = 0; n < sizeof line - 1 && !strchr(line, '\n') && read(w->out, line + n, 1) == 1; n++)
        ;
    assert_int_equal(sscanf(line, "http://127.0.0.1:%d/", &w->port), 1);
    assert_int_equal(get(w, "/api/ls", &b), 401);
    assert_null(strstr(buf_text(&b), "demo"));
    buf_clear(&b);
    assert_int_equal(
        ask_with(w, "POST /login", OURS "Origin: http://localhost\r\n", "token=another-token-than-that", &b), 401);
    buf_clear(&b);
    assert_int_equal(
        ask_with(w, "POST /login", OURS "Origin: http://localhost\r\n", "token=a-token-of-some-length", &b), 303);
    const char *set = strstr(buf_text(&b), "Set-Cookie: ");
    assert_non_null(set);
    assert_int_equal(sscanf(set, "Set-Cookie: %127[^;]", cookie), 1);
    assert_non_null(strstr(set, "HttpOnly; SameSite=Strict"));
    assert_null(strstr(set, "a-token-of-some-length"));
    buf_printf(&heads, OURS "Cookie: %s\r\n", cookie);
    buf_clear(&b);
    assert_int_equal(ask_with(w, "GET /api/ls", buf_text(&heads), NULL, &b), 200);
    buf_clear(&b);
    assert_int_equal(ask_with(w, "GET /metrics", OURS "Authorization: Bearer a-token-of-some-length\r\n", NULL, &b),
                     200);
}

static void test_a_store_that_is_not_there_yet(void **state)
{
    struct served *w = *state;
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(stop(w), 0);
    char *was = w->store;
    w->store = harness_path(w->dir, "later.db");
    start(w);
    assert_int_equal(get(w, "/", &b), 200);
    assert_non_null(strstr(buf_text(&b), "There is no study yet"));
    struct store *later = NULL;
    struct err e = { 0 };
    check(store_open(&later, w->store, STORE_WRITE, &e), &e);
    (void)add_study(later, "first", "finished");
    buf_clear(&b);
    assert_int_equal(get(w, "/", &b), 200);
    assert_non_null(strstr(buf_text(&b), "/study/first"));
    store_close(later);
    free(was);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(test_pages),
        TEST(test_parts_of_a_page_come_by_themselves),
        TEST(test_what_waits_in_the_queue_is_shown),
        TEST(test_texts_of_others_are_no_markup),
        TEST(test_the_api_is_what_commands_print),
        TEST(test_hostile_requests),
        TEST(test_what_is_too_much),
        TEST(test_who_says_nothing_keeps_nobody_out),
        TEST(test_a_form_of_the_page_does_what_it_says),
        TEST(test_an_epoch_is_told_within_a_second),
        TEST(test_a_stream_goes_on_over_the_servers_end),
        TEST(test_a_position_that_is_gone_is_told),
        TEST(test_streams_are_bounded_and_end_with_the_server),
        TEST(test_others_need_a_token),
        TEST(test_the_token_is_shown_once),
        TEST(test_a_store_that_is_not_there_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
