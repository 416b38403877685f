/* Delivery on a loop: through a store, to an HTTP server of our own on loopback, to a socket, and from the store the next time. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "live/deliver.h"
#include "store/outbox.h"
#include "tests/integration/harness.h"
#include "tests/integration/sink.h"

struct fix {
    uv_loop_t loop;
    struct sink *sink;
    char *dir;
    char url[64];
    struct deliver_cfg cfg;
    struct store *store;
    struct writer *writer;
    const char *old_spool;
    struct deliver *d;
    struct deliver_counts counts; /* at the end */
    int ended;
    char notes[2048];
    struct err e;
    int next; /* line */
};

static void on_note(void *ctx, const char *text)
{
    struct fix *f = ctx;
    size_t len = strlen(f->notes);
    (void)snprintf(f->notes + len, sizeof f->notes - len, "%s\n", text);
}

static const struct deliver_ops ops = { .note = on_note };

static void open_place(struct fix *f)
{
    AUTO_FREE char *path = harness_path(f->dir, "lines.db");
    if (store_open(&f->store, path, STORE_WRITE, &f->e) < 0 || writer_open(&f->writer, &f->loop, f->store, &f->e) < 0)
        fail_msg("%s", f->e.text);
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->sink = sink_new();
    f->dir = harness_dir();
    (void)snprintf(f->url, sizeof f->url, "http://127.0.0.1:%u", sink_port(f->sink));
    f->cfg = (struct deliver_cfg){ .url = f->url };
    assert_int_equal(uv_loop_init(&f->loop), 0);
    open_place(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    sink_answer(f->sink, "");
    deliver_free(f->d);
    writer_close(f->writer);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    store_close(f->store);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    sink_free(f->sink);
    harness_remove(f->dir);
    free(f);
    return 0;
}

static int open_deliver(struct fix *f)
{
    const struct deliver_place place = { .store = f->store, .writer = f->writer, .old_spool = f->old_spool };
    return deliver_open(&f->d, &f->loop, &f->cfg, &place, &ops, f, &f->e);
}

static void begin(struct fix *f)
{
    f->ended = 0;
    f->notes[0] = '\0';
    if (open_deliver(f) < 0)
        fail_msg("%s", f->e.text);
}

static void push(struct fix *f, int n)
{
    AUTO_BUF struct buf b = BUF_INIT;
    for (int i = 0; i < n; i++, f->next++)
        buf_printf(&b, "m v=%d %d\n", f->next, f->next);
    deliver_push(f->d, b.data, b.len, (uint32_t)n);
}

static void on_ended(void *ctx)
{
    struct fix *f = ctx;
    f->ended++;
    f->counts = deliver_counts(f->d);
    deliver_free(MOVE_PTR(f->d));
}

/* Until nothing is left of it. */
static void end(struct fix *f, int64_t within_ms)
{
    deliver_end(f->d, within_ms, on_ended);
    assert_int_equal(f->ended, 0); /* never from within */
    while (!f->ended)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    assert_int_equal(f->ended, 1);
    const struct deliver_counts *c = &f->counts;
    assert_int_equal(c->produced, c->stored + c->waiting + c->quarantined + c->dropped);
    struct outbox box;
    assert_int_equal(outbox_open(&box, f->store, 0, &f->e), 0);
    assert_int_equal(box.waiting, c->waiting);
}

static void expect_account(const struct fix *f, const char *want)
{
    char text[256];
    deliver_account(&f->counts, text, sizeof text);
    assert_string_equal(text, want);
}

static void run_until_stored(struct fix *f, uint64_t n)
{
    uint64_t until = uv_hrtime() + HARNESS_MS * UINT64_C(1000000);
    while (deliver_counts(f->d).stored < n) {
        assert_true(uv_hrtime() < until);
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

/* --- */

static void lines_arrive_and_are_accounted(void **state)
{
    struct fix *f = *state;
    begin(f);
    push(f, 2);
    push(f, 1);
    end(f, 5000);
    AUTO_FREE char *lines = sink_lines(f->sink), *head = sink_head(f->sink);
    assert_string_equal(lines, "m v=0 0\nm v=1 1\nm v=2 2\n");
    assert_non_null(strstr(head, "POST /write?precision=ns&db=energy HTTP/1.1\r\n"));
    assert_null(strstr(head, "gzip")); /* on the way to this machine itself nothing is saved by it */
    expect_account(f, "produced 3 = stored 3 + waiting 0 + quarantined 0 + dropped 0");
    assert_string_equal(f->notes, "");
}

static void lines_arrive_though_nobody_ends_it(void **state)
{
    struct fix *f = *state;
    begin(f);
    push(f, 5);
    run_until_stored(f, 5);
    push(f, 2);
    run_until_stored(f, 7);
    assert_int_equal(sink_requests(f->sink), 2);
}

static void an_outage_is_told_and_loses_nothing(void **state)
{
    struct fix *f = *state;
    sink_answer(f->sink, SINK_BUSY);
    begin(f);
    push(f, 100);
    while (deliver_counts(f->d).retries < 2)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    assert_int_equal(deliver_counts(f->d).waiting, 100);
    sink_answer(f->sink, NULL);
    push(f, 20);
    run_until_stored(f, 120);
    end(f, 5000);
    AUTO_FREE char *lines = sink_lines(f->sink);
    for (int i = 0; i < f->next; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "m v=%d %d\n", i, i);
        assert_int_equal(harness_count(lines, line), 1);
    }
    expect_account(f, "produced 120 = stored 120 + waiting 0 + quarantined 0 + dropped 0");
    assert_int_equal(harness_count(f->notes, "\n"), 2);
    assert_non_null(strstr(f->notes, "influxdb takes no data, trying again: status 503"));
    assert_non_null(strstr(f->notes, "\ninfluxdb takes data again\n"));
}

static void what_the_server_never_took_is_delivered_the_next_time(void **state)
{
    struct fix *f = *state;
    sink_answer(f->sink, SINK_BUSY);
    begin(f);
    push(f, 10);
    while (deliver_counts(f->d).retries < 1)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    end(f, 0);
    expect_account(f, "produced 10 = stored 0 + waiting 10 + quarantined 0 + dropped 0");
    sink_answer(f->sink, NULL);
    begin(f);
    assert_true(deliver_waiting_bytes(f->d) > 0);
    run_until_stored(f, 10); /* without a push */
    end(f, 5000);
    expect_account(f,
                   "produced 10 = stored 10 + waiting 0 + quarantined 0 + dropped 0; 10 of them are of an earlier run");
    AUTO_FREE char *lines = sink_lines(f->sink);
    assert_int_equal(harness_count(lines, "\n"), 10);
}

static void put_le(struct buf *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        buf_putc(b, (char)(x >> (8 * i)));
}

/* One segment of a spool, as monitoring/spool.h draws it. */
static void write_spool(const struct fix *f, const char *lines)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_FREE char *dir = harness_path(f->dir, "spool");
    buf_put(&b, "PTSPOOL1", 8);
    put_le(&b, 1, 8);
    put_le(&b, strlen(lines), 4);
    put_le(&b, 2, 4);
    put_le(&b, crc32_z(0, (const void *)lines, strlen(lines)), 4);
    put_le(&b, crc32_z(0, (const void *)(b.data + 16), 12), 4);
    buf_puts(&b, lines);
    assert_int_equal(mkdir(dir, 0700), 0);
    AUTO_FREE char *path = harness_path(dir, "0000000000000001.spool");
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, b.data, b.len), (ssize_t)b.len);
}

static void what_an_earlier_version_kept_is_delivered_once(void **state)
{
    struct fix *f = *state;
    AUTO_FREE char *dir = harness_path(f->dir, "spool");
    write_spool(f, "m v=8 8\nm v=9 9\n");
    f->old_spool = dir;
    begin(f);
    assert_int_not_equal(access(dir, F_OK), 0);
    push(f, 1);
    end(f, 5000);
    expect_account(f, "produced 3 = stored 3 + waiting 0 + quarantined 0 + dropped 0; 2 of them are of an earlier run");
    AUTO_FREE char *lines = sink_lines(f->sink);
    assert_int_equal(harness_count(lines, "\n"), 3);
    assert_non_null(strstr(lines, "m v=8 8\nm v=9 9\n"));
    assert_non_null(strstr(lines, "m v=0 0\n"));
    f->old_spool = NULL;
}

static void a_line_that_is_rejected_is_set_aside(void **state)
{
    struct fix *f = *state;
    sink_answer(f->sink, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nX-Influxdb-Version: 1.6.7\r\n"
                         "Content-Length: 45\r\n\r\n{\"error\":\"unable to parse 'm': missing field\"}");
    begin(f);
    push(f, 1);
    end(f, 5000);
    expect_account(f, "produced 1 = stored 0 + waiting 0 + quarantined 1 + dropped 0");
    AUTO_FREE char *path = harness_path(f->dir, "lines.db");
    harness_expect_rows("the line", path, "SELECT line FROM outbox", "m v=0 0");
    harness_expect_rows("the reason", path, "SELECT reason LIKE 'status 400%unable to parse%' FROM outbox", "1");
    assert_non_null(strstr(f->notes, "it is in quarantine"));
}

static void many_lines_at_once_are_several_batches(void **state)
{
    struct fix *f = *state;
    begin(f);
    push(f, 12001);
    end(f, 10000);
    AUTO_FREE char *lines = sink_lines(f->sink);
    assert_int_equal(harness_count(lines, "\n"), 12001);
    assert_int_equal(sink_requests(f->sink), 3);
    expect_account(f, "produced 12001 = stored 12001 + waiting 0 + quarantined 0 + dropped 0");
}

static void what_was_not_waited_for_ends_with_its_request(void **state)
{
    struct fix *f = *state;
    sink_hold(f->sink);
    begin(f);
    push(f, 1);
    while (sink_requests(f->sink) < 1)
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    deliver_free(MOVE_PTR(f->d));
    writer_close(MOVE_PTR(f->writer));
    assert_true(uv_run(&f->loop, UV_RUN_NOWAIT)); /* it still goes on */
    sink_answer(f->sink, SINK_BUSY);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_string_equal(f->notes, "");
}

static void run_until_held(struct fix *f, int requests)
{
    uint64_t until = uv_hrtime() + HARNESS_MS * UINT64_C(1000000);
    while (sink_held(f->sink) < requests) {
        assert_true(uv_hrtime() < until);
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
}

enum { IN_FLIGHT = 4 }; /* deliver's own */

static void batches_go_while_others_are_answered(void **state)
{
    struct fix *f = *state;
    sink_hold(f->sink);
    begin(f);
    push(f, 25000);
    run_until_held(f, IN_FLIGHT);
    assert_int_equal(deliver_counts(f->d).waiting, 25000);
    assert_int_equal(sink_requests(f->sink), IN_FLIGHT);
    sink_answer(f->sink, NULL);
    end(f, 10000);
    AUTO_FREE char *lines = sink_lines(f->sink);
    assert_int_equal(harness_count(lines, "\n"), 25000);
    assert_int_equal(sink_requests(f->sink), 5);
    expect_account(f, "produced 25000 = stored 25000 + waiting 0 + quarantined 0 + dropped 0");
}

static void an_outage_that_meets_several_is_told_once(void **state)
{
    struct fix *f = *state;
    sink_hold(f->sink);
    begin(f);
    push(f, 25000);
    run_until_held(f, IN_FLIGHT);
    sink_answer(f->sink, SINK_BUSY);
    while (deliver_counts(f->d).retries < IN_FLIGHT)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    assert_int_equal(deliver_counts(f->d).waiting, 25000);
    sink_answer(f->sink, NULL);
    run_until_stored(f, 25000);
    end(f, 5000);
    AUTO_FREE char *lines = sink_lines(f->sink);
    assert_int_equal(harness_count(lines, "\n"), 25000);
    expect_account(f, "produced 25000 = stored 25000 + waiting 0 + quarantined 0 + dropped 0");
    assert_int_equal(harness_count(f->notes, "\n"), 2);
}

static void several_that_were_not_waited_for_end_with_their_requests(void **state)
{
    struct fix *f = *state;
    sink_hold(f->sink);
    begin(f);
    push(f, 5000 * IN_FLIGHT);
    run_until_held(f, IN_FLIGHT);
    deliver_free(MOVE_PTR(f->d));
    writer_close(MOVE_PTR(f->writer));
    assert_true(uv_run(&f->loop, UV_RUN_NOWAIT)); /* they still go on */
    sink_answer(f->sink, SINK_BUSY);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_string_equal(f->notes, "");
}

static void bad_places_are_refused(void **state)
{
    struct fix *f = *state;
    static const struct {
        const char *name;
        struct deliver_cfg cfg;
    } rows[] = {
        { "a url that is none", { .url = "nonsense" } },
        { "a url with a secret", { .url = "http://me:hunter2@127.0.0.1" } },
        { "a datagram's without a port", { .url = "udp://127.0.0.1" } },
        { "1.x and 2.x at once", { .url = "http://127.0.0.1", .database = "a", .bucket = "b" } },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        f->cfg = rows[i].cfg;
        int rc = open_deliver(f);
        if (rc != -EINVAL || strstr(f->e.text, "hunter2"))
            fail_msg("%s: %d, %s", rows[i].name, rc, f->e.text);
    }
}

static void a_secret_that_others_may_read_is_refused_and_not_told(void **state)
{
    struct fix *f = *state;
    harness_write(f->dir, "secret", "me:hunter2\n");
    AUTO_FREE char *path = harness_path(f->dir, "secret");
    assert_int_equal(chmod(path, 0644), 0);
    f->cfg.credential_file = path;
    assert_int_equal(open_deliver(f), -EACCES);
    assert_null(strstr(f->e.text, "hunter2"));
    assert_int_equal(chmod(path, 0600), 0);
    begin(f);
    push(f, 1);
    end(f, 5000);
    AUTO_FREE char *head = sink_head(f->sink);
    assert_non_null(strstr(head, "Authorization: Basic bWU6aHVudGVyMg==\r\n"));
    f->cfg.credential_file = NULL;
}

static void lines_go_to_a_telegraf_in_datagrams(void **state)
{
    struct fix *f = *state;
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    struct timeval limit = { .tv_sec = HARNESS_MS / 1000 };
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    (void)snprintf(f->url, sizeof f->url, "udp://127.0.0.1:%u", ntohs(a.sin_port));
    begin(f);
    push(f, 2);
    end(f, 5000);
    char got[256] = "";
    assert_true(recv(fd, got, sizeof got - 1, 0) > 0);
    assert_string_equal(got, "m v=0 0\nm v=1 1\n");
    expect_account(f, "produced 2 = stored 2 + waiting 0 + quarantined 0 + dropped 0");
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lines_arrive_and_are_accounted),
        T(lines_arrive_though_nobody_ends_it),
        T(an_outage_is_told_and_loses_nothing),
        T(what_the_server_never_took_is_delivered_the_next_time),
        T(what_an_earlier_version_kept_is_delivered_once),
        T(a_line_that_is_rejected_is_set_aside),
        T(many_lines_at_once_are_several_batches),
        T(what_was_not_waited_for_ends_with_its_request),
        T(batches_go_while_others_are_answered),
        T(an_outage_that_meets_several_is_told_once),
        T(several_that_were_not_waited_for_end_with_their_requests),
        T(bad_places_are_refused),
        T(a_secret_that_others_may_read_is_refused_and_not_told),
        T(lines_go_to_a_telegraf_in_datagrams),
    };
    return cmocka_run_group_tests_name("deliver", tests, NULL, NULL);
}
