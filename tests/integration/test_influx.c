/* Delivery to InfluxDB against a small HTTP server of our own on loopback, from an outbox on a real disk: what the server may say, how
 * connections may end, outages in compressed time, kill -9 at every failpoint, a disk that is full. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "monitoring/influx.h"
#include "monitoring/influx_query.h"
#include "monitoring/sender.h"
#include "store/outbox.h"
#include "tests/integration/harness.h"

enum { LINES_MAX = 20000, HELD_MAX = 16 };

/* --- the server: one thread, one connection at a time. Line number i is "m v=i …". --- */

struct peer {
    int listener, stop[2];
    uint16_t port;
    pthread_t thread;
    /* What to answer: a whole HTTP answer; "" closes the connection without one; NULL never answers. */
    const char *(*judge)(struct peer *p);
    /* Shared while a request is under way only: the test reads them between sends. */
    char head[4096];
    struct buf lines; /* of the request, unpacked */
    int requests, connections;
    bool database, half_close;
    uint8_t seen[LINES_MAX];
    int held[HELD_MAX]; /* connections that are never answered */
    int n_held;
};

static const char no_content[] = "HTTP/1.1 204 No Content\r\nX-Influxdb-Version: 1.6.7\r\n\r\n";

static void store(struct peer *p)
{
    for (const char *at = p->lines.data; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        int i = -1;
        if (sscanf(at, "m v=%d", &i) == 1 && i >= 0 && i < LINES_MAX)
            p->seen[i] = 1;
    }
}

static const char *takes(struct peer *p)
{
    store(p);
    return no_content;
}

static void unpack(struct peer *p, const char *bytes, size_t len)
{
    buf_clear(&p->lines);
    if (!strstr(p->head, "Content-Encoding: gzip")) {
        buf_put(&p->lines, bytes, len);
        return;
    }
    z_stream z = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)len };
    char chunk[16384];
    int rc = inflateInit2(&z, 15 + 16);
    while (rc == Z_OK) {
        z.next_out = (Bytef *)chunk;
        z.avail_out = sizeof chunk;
        rc = inflate(&z, Z_NO_FLUSH);
        buf_put(&p->lines, chunk, sizeof chunk - z.avail_out);
    }
    (void)inflateEnd(&z);
}

/* One request into head and lines. False: the connection is over. */
static bool read_request(struct peer *p, int fd)
{
    AUTO_BUF struct buf in = BUF_INIT;
    size_t want = SIZE_MAX, head = 0;
    char chunk[16384];
    while (in.len < want) {
        ssize_t n = recv(fd, chunk, sizeof chunk, 0);
        if (n <= 0)
            return false;
        buf_put(&in, chunk, (size_t)n);
        const char *end = head ? NULL : strstr(in.data, "\r\n\r\n");
        if (!end)
            continue;
        head = (size_t)(end - in.data) + 4;
        (void)snprintf(p->head, sizeof p->head, "%.*s", (int)head, in.data);
        const char *length = strstr(p->head, "Content-Length: ");
        want = head + (length ? strtoul(length + 16, NULL, 10) : 0);
    }
    unpack(p, in.data + head, in.len - head);
    return true;
}

static void serve(struct peer *p, int fd)
{
    p->connections++;
    struct timeval limit = { .tv_sec = HARNESS_MS / 1000 };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    while (read_request(p, fd)) {
        p->requests++;
        const char *answer = p->judge(p);
        if (!answer && p->n_held < HELD_MAX) {
            p->held[p->n_held++] = fd;
            return;
        }
        if (answer && *answer && send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
            break;
        if (!answer || !*answer || p->half_close)
            break;
    }
    (void)close(fd);
}

static void *peer_run(void *arg)
{
    struct peer *p = arg;
    for (;;) {
        int fd = accept(p->listener, NULL, NULL);
        if (fd < 0)
            return NULL; /* shut down */
        serve(p, fd);
    }
}

/* It listens, and answers nobody yet. A writer of its own is forked now: the child of a process with threads may find a lock taken
 * that nobody gives back. */
static struct peer *peer_listening(void)
{
    struct peer *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->judge = takes;
    p->database = true;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    assert_int_equal(bind(p->listener, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(p->listener, 16), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&a, &len), 0);
    p->port = ntohs(a.sin_port);
    return p;
}

static void peer_begin(struct peer *p)
{
    assert_int_equal(pthread_create(&p->thread, NULL, peer_run, p), 0);
}

static struct peer *peer_new(void)
{
    struct peer *p = peer_listening();
    peer_begin(p);
    return p;
}

/* The client must be gone: the thread may be reading from it. */
static void peer_done(struct peer *p)
{
    (void)shutdown(p->listener, SHUT_RDWR);
    (void)pthread_join(p->thread, NULL);
    for (int i = 0; i < p->n_held; i++)
        (void)close(p->held[i]);
    (void)close(p->listener);
    buf_done(&p->lines);
    free(p);
}

static size_t count_seen(const struct peer *p)
{
    size_t n = 0;
    for (size_t i = 0; i < LINES_MAX; i++)
        n += p->seen[i];
    return n;
}

/* --- one batch --- */

static struct influx *client(const struct peer *p, struct influx_cfg cfg)
{
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/", p->port);
    cfg.url = cfg.url ? cfg.url : url;
    if (!cfg.database && !cfg.bucket)
        cfg.database = "energy";
    struct influx *x = NULL;
    struct err e = { 0 };
    if (influx_new(&x, &cfg, &e) < 0)
        fail_msg("%s", e.text);
    return x;
}

static struct influx_answer send_lines(struct influx *x, const char *lines)
{
    struct influx_answer a;
    influx_send(x, lines, strlen(lines), harness_count(lines, "\n"), &a);
    return a;
}

static void a_batch_is_written_to_1_x(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    char user[] = "me", password[] = "hunter2";
    struct credential c = { .user = user, .password = password };
    struct influx *x = client(
        p, (struct influx_cfg){ .database = "my energy", .retention = "week", .credential = &c, .precision = LINE_US });
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_lines(x, "m v=1 1\nm v=2 2\n").kind, INFLUX_DELIVERED);
    assert_string_equal(p->lines.data, "m v=1 1\nm v=2 2\n");
    assert_non_null(strstr(p->head, "POST /write?precision=u&db=my%20energy&rp=week HTTP/1.1\r\n"));
    assert_non_null(strstr(p->head, "Authorization: Basic bWU6aHVudGVyMg==\r\n"));
    assert_non_null(strstr(p->head, "Content-Encoding: gzip\r\n"));
    assert_null(strstr(p->head, "Expect:"));
    assert_int_equal(p->connections, 1); /* kept alive */
    influx_free(x);
    peer_done(p);
}

static void a_batch_is_written_to_2_x(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    char token[] = "s3cret==";
    struct credential c = { .token = token };
    struct influx *x = client(
        p, (struct influx_cfg){ .bucket = "energy", .org = "us & them", .credential = &c, .precision = LINE_US });
    assert_int_equal(send_lines(x, "m v=1 1\n").kind, INFLUX_DELIVERED);
    assert_non_null(strstr(p->head, "POST /api/v2/write?precision=us&org=us%20%26%20them&bucket=energy HTTP/1.1\r\n"));
    assert_non_null(strstr(p->head, "Authorization: Token s3cret==\r\n"));
    influx_free(x);
    peer_done(p);
}

static void a_batch_for_this_machine_need_not_be_packed(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    struct influx *x = client(p, (struct influx_cfg){ .database = "d", .plain = true });
    assert_int_equal(send_lines(x, "m v=1 1\n").kind, INFLUX_DELIVERED);
    assert_null(strstr(p->head, "gzip"));
    assert_string_equal(p->lines.data, "m v=1 1\n");
    assert_int_equal(influx_sent_bytes(x), 8);
    influx_free(x);
    peer_done(p);
}

static const char *fixed_answer; /* what `says` says */

static const char *says(struct peer *p)
{
    (void)p;
    return fixed_answer;
}

#define BODY(status, body) "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body

static const struct {
    const char *name, *answer;
    enum influx_kind kind;
    enum influx_reason reason;
    uint64_t dropped;
    int64_t wait_ms;
} answers[] = {
    { "204", no_content, INFLUX_DELIVERED, 0, 0, -1 },
    { "a part is dropped",
      BODY("400 Bad Request", "{\"error\":\"partial write: points beyond retention policy dropped=2\"}"),
      INFLUX_PARTIAL, 0, 2, -1 },
    { "poison", BODY("400 Bad Request", "{\"error\":\"unable to parse 'x': missing fields\"}"), INFLUX_REJECT, 0, 0,
      -1 },
    { "401", BODY("401 Unauthorized", "{\"error\":\"unable to parse authentication credentials\"}"), INFLUX_PAUSE,
      INFLUX_UNAUTHORIZED, 0, -1 },
    { "403", BODY("403 Forbidden", ""), INFLUX_PAUSE, INFLUX_FORBIDDEN, 0, -1 },
    { "no such path", BODY("404 Not Found", "404 page not found"), INFLUX_PAUSE, INFLUX_NO_API, 0, -1 },
    { "413", BODY("413 Request Entity Too Large", "{\"error\":\"too large\"}"), INFLUX_HALVE, 0, 0, -1 },
    { "429 with seconds", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n",
      INFLUX_RETRY, 0, 0, 17000 },
    { "429 with a date",
      "HTTP/1.1 429 Too Many Requests\r\nDate: Fri, 11 Nov 1994 08:00:00 GMT\r\nRetry-After: Fri, 11 Nov 1994 08:00:30 "
      "GMT\r\nContent-Length: 0\r\n\r\n",
      INFLUX_RETRY, 0, 0, 30000 },
    { "500", BODY("500 Internal Server Error", "{\"error\":\"timeout\"}"), INFLUX_RETRY, 0, 0, -1 },
    { "503 with a word", "HTTP/1.1 503 Busy\r\nRetry-After: later\r\nContent-Length: 0\r\n\r\n", INFLUX_RETRY, 0, 0,
      10000 },
    { "an answer that ends early", "HTTP/1.1 500 No\r\nContent-Length: 100\r\nConnection: close\r\n\r\nabc",
      INFLUX_RETRY, 0, 0, -1 },
    { "no answer, the connection is closed", "", INFLUX_RETRY, 0, 0, -1 },
    { "no HTTP", "220 mail.example ESMTP\r\n\r\n", INFLUX_RETRY, 0, 0, -1 },
    { "never an answer", NULL, INFLUX_RETRY, 0, 0, -1 },
};

static void every_answer_becomes_a_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct peer *p = peer_new();
        p->judge = says;
        p->half_close = answers[i].kind != INFLUX_DELIVERED;
        fixed_answer = answers[i].answer;
        struct influx *x = client(p, (struct influx_cfg){ .timeout_ms = answers[i].answer ? 0 : 300 });
        struct influx_answer a = send_lines(x, "m v=1 1\nm v=2 2\nm v=3 3\n");
        if (a.kind != answers[i].kind || a.reason != answers[i].reason || a.dropped != answers[i].dropped ||
            a.wait_ms != answers[i].wait_ms || (a.kind != INFLUX_DELIVERED && !a.text[0]))
            fail_msg("%s: got kind %d, reason %d, dropped %lu, wait %ld: %s", answers[i].name, (int)a.kind,
                     (int)a.reason, (unsigned long)a.dropped, (long)a.wait_ms, a.text);
        influx_free(x);
        peer_done(p);
    }
}

static void a_server_that_is_gone_is_tried_again(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    struct influx *x = client(p, (struct influx_cfg){ .database = "d" });
    peer_done(p);
    struct influx_answer a = send_lines(x, "m v=1 1\n");
    assert_int_equal(a.kind, INFLUX_RETRY);
    influx_free(x);
}

static void a_connection_closed_between_two_batches_is_opened_anew(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    p->half_close = true;
    struct influx *x = client(p, (struct influx_cfg){ .database = "d" });
    for (int i = 0; i < 5; i++)
        assert_int_equal(send_lines(x, "m v=1 1\n").kind, INFLUX_DELIVERED);
    influx_free(x);
    peer_done(p);
}

static void an_endless_answer_is_cut_off(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < 4 * INFLUX_BODY_MAX; i++)
        buf_putc(&b, 'x');
    p->judge = says;
    p->half_close = true;
    fixed_answer = b.data;
    struct influx *x = client(p, (struct influx_cfg){ .database = "d" });
    struct influx_answer a = send_lines(x, "m v=1 1\n");
    assert_int_equal(a.kind, INFLUX_PAUSE);
    assert_int_equal(a.reason, INFLUX_STRANGER);
    influx_free(x);
    peer_done(p);
}

static void a_redirect_takes_no_credentials_elsewhere(void **state)
{
    (void)state;
    struct peer *p = peer_new(), *other = peer_new();
    char answer[256], token[] = "s3cret";
    (void)snprintf(
        answer, sizeof answer,
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:%u/write\r\nContent-Length: 0\r\n\r\n",
        other->port);
    p->judge = says;
    fixed_answer = answer;
    struct credential c = { .token = token };
    struct influx *x = client(p, (struct influx_cfg){ .bucket = "b", .credential = &c });
    struct influx_answer a = send_lines(x, "m v=1 1\n");
    assert_int_equal(a.kind, INFLUX_PAUSE);
    assert_int_equal(a.reason, INFLUX_REDIRECTED);
    assert_int_equal(other->requests, 0);
    influx_free(x);
    peer_done(p);
    peer_done(other);
}

static const char *lacks_a_database(struct peer *p)
{
    if (strncmp(p->head, "POST /query", 11) == 0) {
        p->database = strcmp(p->lines.data, "q=CREATE%20DATABASE%20%22my%20%5C%22db%22") == 0;
        return "HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n{\"results\":[{\"statement_id\":0}]}\r\n";
    }
    return p->database ? takes(p) : BODY("404 Not Found", "{\"error\":\"database not found: \\\"my\\\"\"}");
}

static void an_absent_database_is_created(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    p->judge = lacks_a_database;
    p->database = false;
    p->half_close = true;
    struct influx *x = client(p, (struct influx_cfg){ .database = "my \"db" });
    struct influx_answer a = send_lines(x, "m v=1 1\n");
    if (a.kind != INFLUX_DELIVERED)
        fail_msg("%s; %s", a.text, buf_text(&p->lines));
    assert_int_equal(p->requests, 3);
    influx_free(x);
    peer_done(p);
}

static const char *lets_nobody_create(struct peer *p)
{
    if (strncmp(p->head, "POST /query", 11) == 0)
        return BODY("403 Forbidden", "{\"error\":\"create database requires admin\"}");
    return BODY("404 Not Found", "{\"error\":\"database not found: \\\"energy\\\"\"}");
}

static void one_that_may_not_be_created_is_told_with_the_command(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    p->judge = lets_nobody_create;
    p->half_close = true;
    struct influx *x = client(p, (struct influx_cfg){ .database = "energy" });
    struct influx_answer a = send_lines(x, "m v=1 1\n");
    assert_int_equal(a.kind, INFLUX_PAUSE);
    assert_int_equal(a.reason, INFLUX_NO_DATABASE);
    assert_non_null(strstr(a.text, "requires admin"));
    assert_non_null(strstr(a.text, "run: influx -execute 'CREATE DATABASE \"energy\"'"));
    influx_free(x);
    peer_done(p);
}

static void urls_that_hold_secrets_are_refused_and_not_repeated(void **state)
{
    (void)state;
    static const char *const urls[] = { "http://me:hunter2@h:8086", "http://h/?u=me&p=hunter2", "ftp://h",
                                        "nonsense://", "" };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct influx_cfg cfg = { .url = urls[i], .database = "d" };
        struct influx *x = NULL;
        struct err e = { 0 };
        if (influx_new(&x, &cfg, &e) != -EINVAL || strstr(e.text, "hunter2"))
            fail_msg("'%s': %s", urls[i], e.text);
    }
    struct influx_cfg neither = { .url = "http://h" }, both = { .url = "http://h", .database = "d", .bucket = "b" };
    struct influx *x = NULL;
    struct err e = { 0 };
    assert_int_equal(influx_new(&x, &neither, &e), -EINVAL);
    assert_int_equal(influx_new(&x, &both, &e), -EINVAL);
}

static const struct {
    const char *url;
    bool here;
} hosts[] = {
    { "http://localhost:8086", true },     { "http://127.0.0.1", true },
    { "http://127.1.2.3:1/prefix", true }, { "http://[::1]:8086", true },
    { "HTTP://LocalHost:8086", true },     { "http://127.0.0.1.example:8086", false },
    { "http://localhost.example", false }, { "http://10.0.0.1:8086", false },
    { "http://[::2]:8086", false },        { "http://[fe80::1]", false },
    { "http://128.0.0.1", false },         { "http://h:8086", false },
};

static void a_credential_goes_to_another_machine_encrypted_or_by_leave(void **state)
{
    (void)state;
    char user[] = "me", password[] = "hunter2";
    const struct credential secret = { .user = user, .password = password };
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct influx_cfg cfg = { .url = hosts[i].url, .database = "d" };
        for (int with = 0; with < 4; with++) {
            struct influx *x = NULL;
            struct err e = { 0 };
            cfg.credential = with & 1 ? &secret : NULL;
            cfg.allow_plain = with & 2;
            int want = with == 1 && !hosts[i].here ? -EINVAL : 0, rc = influx_new(&x, &cfg, &e);
            if (rc != want || strstr(e.text, password) || (rc < 0 && !strstr(e.text, "allow_plain_http")))
                fail_msg("'%s', %d: got %d '%s', want %d", hosts[i].url, with, rc, e.text, want);
            influx_free(x);
        }
        assert_int_equal(influx_url_is_here(hosts[i].url), hosts[i].here);
    }
    struct err e = { 0 };
    assert_int_equal(influx_url_check("https://10.0.0.1", true, false, &e), 0);
    const struct influx_query_cfg q = { .url = "http://10.0.0.1", .database = "d", .credential = &secret };
    struct influx_query *asked = NULL;
    assert_int_equal(influx_query_new(&asked, &q, &e), -EINVAL);
}

/* --- TLS --- */

static bool holds_port(void *arg)
{
    AUTO_FREE char *text = harness_read(arg, "s_server.out");
    return text && strstr(text, "ACCEPT 127.0.0.1:");
}

static struct influx_answer over_tls(const char *dir, const char *ca_file)
{
    AUTO_FREE char *text = harness_read(dir, "s_server.out");
    char url[64];
    const char *at = strstr(text, "ACCEPT 127.0.0.1:") + strlen("ACCEPT 127.0.0.1:");
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%d", (int)strtol(at, NULL, 10));
    struct influx_cfg cfg = { .url = url, .database = "d", .ca_file = ca_file, .timeout_ms = 5000 };
    struct influx *x = NULL;
    struct err e = { 0 };
    if (influx_new(&x, &cfg, &e) < 0)
        fail_msg("%s", e.text);
    struct influx_answer a = send_lines(x, "m v=1 1\n");
    influx_free(x);
    return a;
}

static void a_certificate_that_nobody_vouches_for_is_not_trusted(void **state)
{
    (void)state;
    char openssl[] = "/usr/bin/openssl";
    if (!io_exists(openssl))
        skip();
    char *dir = harness_dir();
    AUTO_FREE char *key = harness_path(dir, "key.pem"), *cert = harness_path(dir, "cert.pem");
    AUTO_FREE char *out = harness_path(dir, "s_server.out");
    char *const make[] = { openssl,    "req",
                           "-x509",    "-newkey",
                           "rsa:2048", "-nodes",
                           "-keyout",  key,
                           "-out",     cert,
                           "-days",    "2",
                           "-subj",    "/CN=pipetune-test",
                           "-addext",  "subjectAltName=IP:127.0.0.1",
                           NULL };
    struct harness_output o = harness_run(make, HARNESS_MS);
    if (o.code != 0)
        fail_msg("openssl req: %s", o.err);
    harness_output_done(&o);
    int fd = open(out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char *const run[] = { openssl, "s_server", "-accept", "127.0.0.1:0", "-cert", cert, "-key", key, "-www", NULL };
    pid_t pid = harness_spawn(run, fd, fd);
    (void)close(fd);
    assert_true(harness_wait(holds_port, dir, HARNESS_MS));
    struct influx_answer stranger = over_tls(dir, NULL), known = over_tls(dir, cert);
    (void)kill(pid, SIGKILL);
    (void)harness_exit_code(pid, HARNESS_MS);
    harness_remove(dir);
    assert_int_equal(stranger.kind, INFLUX_PAUSE);
    assert_int_equal(stranger.reason, INFLUX_TLS);
    assert_true(known.reason != INFLUX_TLS); /* whatever it then says */
}

/* --- the whole: sender, outbox, server, and a clock of our own --- */

struct line_out {
    struct store *store;
    struct outbox box;
    struct sender *s;
    struct influx *influx;
    int64_t now;
    int next; /* line to be pushed */
    struct buf text;
    uint32_t lines; /* pushed, and not committed yet */
    uint64_t found, lost;
    int told; /* where lines that were committed are told to, as "first last\n"; -1 */
};

static struct line_out line_out_new(struct peer *p, char *dir, struct sender_cfg cfg, uint64_t room)
{
    struct line_out l = { .told = -1, .text = BUF_INIT };
    AUTO_FREE char *path = harness_path(dir, "lines.db");
    struct err e = { 0 };
    if (store_open(&l.store, path, STORE_WRITE, &e) < 0 || outbox_open(&l.box, l.store, 0, &e) < 0)
        fail_msg("%s", e.text);
    l.box.room_bytes = room ? room : l.box.room_bytes;
    l.found = l.box.waiting;
    l.influx = client(p, (struct influx_cfg){ .database = "energy" });
    l.s = sender_new(&cfg, l.box.before);
    assert_non_null(l.s);
    sender_rows(l.s, 0, l.box.top);
    return l;
}

static void line_out_done(struct line_out *l)
{
    sender_free(l->s);
    store_close(l->store);
    influx_free(l->influx);
    buf_done(&l->text);
}

/* One transaction. */
static int run_round(struct line_out *l, struct outbox_round *r)
{
    struct outbox after;
    struct err e = { 0 };
    int rc = store_begin(l->store, &e);
    if (rc == 0)
        rc = outbox_run(&l->box, l->store, r, &after, &e);
    if (rc == 0)
        rc = store_commit(l->store, &e);
    store_rollback(l->store);
    if (rc == 0)
        l->box = after;
    return rc;
}

static void commit(struct line_out *l)
{
    struct outbox_round r = { .text = l->text.data, .len = l->text.len, .lines = l->lines };
    r.spare_from = sender_taken(l->s);
    if (l->lines == 0)
        return;
    if (run_round(l, &r) < 0)
        l->lost += l->lines;
    else if (l->told >= 0)
        (void)dprintf(l->told, "%d %d\n", l->next - (int)l->lines, l->next - 1);
    l->lost += r.dropped;
    sender_rows(l->s, l->now, l->box.top);
    buf_clear(&l->text);
    l->lines = 0;
}

static void deliver_one(struct line_out *l, const struct sender_batch *asked)
{
    struct outbox_take t = { .after = asked->after, .to = asked->to, .lines = asked->lines, .bytes = asked->bytes };
    struct outbox_round r = { .takes = &t, .n_takes = 1 };
    struct influx_answer a;
    if (run_round(l, &r) < 0)
        fail_msg("what waits cannot be read");
    struct sender_batch b = *asked;
    b.to = t.got_to;
    b.lines = t.got;
    b.bytes = t.text.len;
    if (sender_fetched(l->s, asked, &b)) {
        influx_send(l->influx, t.text.data, t.text.len, t.got, &a);
        enum sender_fate fate = sender_done(l->s, l->now, &b, &a);
        struct outbox_end end = { b.after, b.to, b.lines, b.bytes, fate == SENDER_REJECT ? a.text : NULL };
        struct outbox_round settle = { .ends = &end, .n_ends = 1 };
        if (fate != SENDER_KEEP)
            assert_int_equal(run_round(l, &settle), 0);
    }
    buf_done(&t.text);
}

static void run_until(struct line_out *l, int64_t until)
{
    commit(l);
    for (;;) {
        struct sender_batch b;
        int64_t wake;
        if (sender_next(l->s, l->now, &b, &wake)) {
            deliver_one(l, &b);
            continue;
        }
        if (sender_ended(l->s) || wake > until)
            break;
        l->now = wake;
    }
    if (l->now < until)
        l->now = until;
}

static void push(struct line_out *l, int n)
{
    for (int i = 0; i < n; i++, l->next++, l->lines++)
        buf_printf(&l->text, "m v=%d,power_w=41.5 %d\n", l->next, l->next);
}

/* What is there is accounted by the store itself. */
static struct sender_counts end(struct line_out *l, int64_t ms)
{
    commit(l);
    sender_close(l->s, l->now, l->now + ms);
    run_until(l, l->now + ms + 1);
    assert_true(sender_ended(l->s));
    struct sender_counts c = sender_counts(l->s);
    struct outbox again;
    struct err e = { 0 };
    assert_int_equal(outbox_open(&again, l->store, 0, &e), 0);
    assert_int_equal(again.waiting, l->box.waiting);
    assert_int_equal(again.bytes, l->box.bytes);
    uint64_t produced = l->found + (uint64_t)l->next;
    if (produced != c.stored + c.refused + c.rejected + l->box.waiting + l->lost)
        fail_msg("produced %lu, stored %lu, waiting %lu, rejected %lu, lost %lu", (unsigned long)produced,
                 (unsigned long)c.stored, (unsigned long)l->box.waiting, (unsigned long)c.rejected,
                 (unsigned long)l->lost);
    return c;
}

static const char *is_busy(struct peer *p)
{
    (void)p;
    return BODY("503 Service Unavailable", "{\"error\":\"busy\"}");
}

static void an_outage_of_ten_minutes_loses_nothing(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    p->half_close = true;
    char *dir = harness_dir();
    struct line_out l = line_out_new(p, dir, (struct sender_cfg){ 0 }, 0);
    for (int second = 0; second < 800; second++) {
        p->judge = second >= 60 && second < 660 ? is_busy : takes;
        push(&l, 20);
        run_until(&l, l.now + 1000);
        if (second == 659)
            assert_true(l.box.waiting > 10000);
    }
    struct sender_counts c = end(&l, 10000);
    assert_int_equal(c.stored, 16000);
    assert_int_equal(count_seen(p), 16000);
    line_out_done(&l);
    peer_done(p);
    harness_remove(dir);
}

/* Like 2.x: one bad line, and none is taken. */
static const char *rejects_thirteens(struct peer *p)
{
    for (const char *at = p->lines.data; *at; at = strchr(at, '\n') + 1) {
        int i = 0;
        (void)sscanf(at, "m v=%d", &i);
        if (i % 500 == 13)
            return BODY("400 Bad Request",
                        "{\"code\":\"invalid\",\"message\":\"unable to parse 'm v=13': missing fields\"}");
    }
    return takes(p);
}

static void poison_lines_are_set_aside_and_the_rest_arrives(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    p->half_close = true;
    p->judge = rejects_thirteens;
    char *dir = harness_dir();
    struct line_out l = line_out_new(p, dir, (struct sender_cfg){ .batch_lines = 1000 }, 0);
    push(&l, 2000);
    struct sender_counts c = end(&l, 10000);
    assert_int_equal(c.rejected, 4);
    assert_int_equal(c.stored, 1996);
    assert_int_equal(count_seen(p), 1996);
    line_out_done(&l);
    AUTO_FREE char *path = harness_path(dir, "lines.db");
    harness_expect_rows("lines", path, "SELECT group_concat(line, ';') FROM outbox",
                        "m v=13,power_w=41.5 13;m v=513,power_w=41.5 513;m v=1013,power_w=41.5 1013;"
                        "m v=1513,power_w=41.5 1513");
    harness_expect_rows("reasons", path, "SELECT count(*) FROM outbox WHERE reason LIKE 'status 400: unable to parse%'",
                        "4");
    peer_done(p);
    harness_remove(dir);
}

static int the_worst; /* requests until the server changes its mind */

static const char *anything(struct peer *p)
{
    static const char *const moods[] = { BODY("503 Busy", ""), "", BODY("413 Too Large", ""), BODY("429 Slow", ""),
                                         "HTTP/1.1 500 No\r\nContent-Length: 9\r\nConnection: close\r\n\r\nx" };
    size_t mood = (size_t)(p->requests * 7 + the_worst) % 11;
    if (mood == 2 && p->lines.len < 1000)
        mood = 0; /* a line alone is never too large */
    return mood < ARRAY_LEN(moods) ? moods[mood] : rejects_thirteens(p);
}

static void a_server_of_all_moods_gets_everything_in_the_end(void **state)
{
    (void)state;
    for (the_worst = 0; the_worst < 5; the_worst++) {
        struct peer *p = peer_new();
        p->half_close = true;
        p->judge = anything;
        char *dir = harness_dir();
        struct line_out l = line_out_new(p, dir, (struct sender_cfg){ .batch_lines = 200 }, 0);
        for (int second = 0; second < 100; second++) {
            push(&l, 40);
            run_until(&l, l.now + 1000);
        }
        run_until(&l, l.now + 3600000);
        struct sender_counts c = end(&l, 1000);
        assert_int_equal(c.stored + c.rejected, 4000);
        assert_int_equal(c.rejected, 8);
        assert_int_equal(count_seen(p), 3992);
        line_out_done(&l);
        peer_done(p);
        harness_remove(dir);
    }
}

/* --- kill -9 --- */

enum { WRITER_LINES = 400 };

/* A delivery to a server that takes some, until a failpoint ends it. */
static void write_until_killed(struct peer *p, char *dir, const char *failpoint, unsigned nth, int told)
{
    char value[64];
    (void)snprintf(value, sizeof value, "%s:%u", failpoint, nth);
    (void)setenv("PIPETUNE_FAILPOINT", value, 1);
    struct line_out l =
        line_out_new(p, dir, (struct sender_cfg){ .batch_lines = 10, .backoff_ms = 10, .backoff_max_ms = 10 }, 0);
    l.told = told;
    while (l.next < WRITER_LINES) {
        push(&l, 10);
        run_until(&l, l.now + 1000);
    }
    run_until(&l, l.now + 60000);
    _exit(0);
}

static const char *takes_every_third(struct peer *p)
{
    return p->requests % 3 ? is_busy(p) : takes(p);
}

/* Marks the lines that the writer told of. */
static void read_told(int fd, uint8_t *safe)
{
    FILE *f = fdopen(fd, "r");
    assert_non_null(f);
    for (int first, last; fscanf(f, "%d %d\n", &first, &last) == 2;)
        for (int i = first; i <= last; i++)
            safe[i] = 1;
    (void)fclose(f);
}

/* 1: it was killed there. */
static bool dies_at(const char *failpoint, unsigned nth)
{
    char *dir = harness_dir();
    struct peer *p = peer_listening();
    p->half_close = true;
    p->judge = takes_every_third;
    int pipe_fds[2];
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        write_until_killed(p, dir, failpoint, nth, pipe_fds[1]);
    peer_begin(p);
    (void)close(pipe_fds[1]);
    static uint8_t safe[LINES_MAX];
    memset(safe, 0, sizeof safe);
    read_told(pipe_fds[0], safe);
    int code = harness_exit_code(pid, HARNESS_MS);
    if (code != 0 && code != 128 + SIGKILL)
        fail_msg("%s:%u: the writer ended with %d", failpoint, nth, code);
    p->judge = takes;
    struct line_out l = line_out_new(p, dir, (struct sender_cfg){ 0 }, 0);
    uint64_t found = l.found;
    struct sender_counts c = end(&l, 10000);
    assert_int_equal(c.stored, found);
    for (int i = 0; i < WRITER_LINES; i++)
        if (safe[i] && !p->seen[i])
            fail_msg("%s:%u: line %d was in the store and is lost", failpoint, nth, i);
    line_out_done(&l);
    peer_done(p);
    harness_remove(dir);
    return code != 0;
}

static void writers_killed_at_each_failpoint_lose_nothing(void **state)
{
    (void)state;
#ifndef PIPETUNE_FAILPOINTS
    skip();
#endif
    static const char *const names[] = { "store-begin", "store-before-commit", "store-committed" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        unsigned nth = 1;
        while (dies_at(names[i], nth))
            nth += nth < 6 ? 1 : 17;
        if (nth < 3)
            fail_msg("%s was passed %u times only", names[i], nth - 1);
    }
}

/* --- room, and a disk that is full --- */

static void beyond_its_room_the_oldest_lines_are_lost_and_counted(void **state)
{
    (void)state;
    struct peer *p = peer_new();
    p->half_close = true;
    p->judge = is_busy;
    char *dir = harness_dir();
    struct line_out l = line_out_new(p, dir, (struct sender_cfg){ .batch_lines = 10 }, 10000);
    for (int second = 0; second < 100; second++) {
        push(&l, 20);
        run_until(&l, l.now + 1000);
        assert_true(l.box.bytes <= 10000);
    }
    assert_true(l.lost > 1000);
    p->judge = takes;
    run_until(&l, l.now + 120000);
    struct sender_counts c = end(&l, 10000);
    assert_int_equal(c.stored + l.lost, 2000);
    assert_int_equal(count_seen(p), c.stored);
    assert_true(p->seen[1999] && p->seen[0] && !p->seen[100]); /* the first was being sent all the time */
    line_out_done(&l);
    peer_done(p);
    harness_remove(dir);
}

/* Exit code 0: all is accounted. In a process of its own, whose files cannot grow beyond 200 KiB. */
static int write_on_a_full_disk(struct peer *p, char *dir)
{
    struct rlimit limit = { .rlim_cur = 200 << 10, .rlim_max = 200 << 10 };
    (void)signal(SIGXFSZ, SIG_IGN);
    struct line_out l = line_out_new(p, dir, (struct sender_cfg){ .batch_lines = 10 }, 0);
    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return 2;
    for (int i = 0; i < 200; i++) {
        push(&l, 50);
        commit(&l);
    }
    return l.lost > 0 && l.box.waiting > 0 && l.lost + l.box.waiting == 10000 ? 0 : 1;
}

static void a_full_disk_costs_only_what_is_counted(void **state)
{
    (void)state;
    struct peer *p = peer_listening();
    p->half_close = true;
    p->judge = is_busy;
    char *dir = harness_dir();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(write_on_a_full_disk(p, dir));
    peer_begin(p);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    p->judge = takes;
    struct line_out l = line_out_new(p, dir, (struct sender_cfg){ 0 }, 0);
    uint64_t found = l.found;
    struct sender_counts c = end(&l, 10000);
    assert_true(found > 0);
    assert_int_equal(c.stored, found);
    assert_int_equal(count_seen(p), found);
    line_out_done(&l);
    peer_done(p);
    harness_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_written_to_1_x),
        cmocka_unit_test(a_batch_is_written_to_2_x),
        cmocka_unit_test(a_batch_for_this_machine_need_not_be_packed),
        cmocka_unit_test(every_answer_becomes_a_verdict),
        cmocka_unit_test(a_server_that_is_gone_is_tried_again),
        cmocka_unit_test(a_connection_closed_between_two_batches_is_opened_anew),
        cmocka_unit_test(an_endless_answer_is_cut_off),
        cmocka_unit_test(a_redirect_takes_no_credentials_elsewhere),
        cmocka_unit_test(an_absent_database_is_created),
        cmocka_unit_test(one_that_may_not_be_created_is_told_with_the_command),
        cmocka_unit_test(urls_that_hold_secrets_are_refused_and_not_repeated),
        cmocka_unit_test(a_credential_goes_to_another_machine_encrypted_or_by_leave),
        cmocka_unit_test(a_certificate_that_nobody_vouches_for_is_not_trusted),
        cmocka_unit_test(an_outage_of_ten_minutes_loses_nothing),
        cmocka_unit_test(poison_lines_are_set_aside_and_the_rest_arrives),
        cmocka_unit_test(a_server_of_all_moods_gets_everything_in_the_end),
        cmocka_unit_test(writers_killed_at_each_failpoint_lose_nothing),
        cmocka_unit_test(beyond_its_room_the_oldest_lines_are_lost_and_counted),
        cmocka_unit_test(a_full_disk_costs_only_what_is_counted),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("influx", tests, NULL, NULL);
}
