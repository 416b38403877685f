/* `pipetune monitor` as a program: printing, delivering to a server of our own on loopback, UDP in, faked PDU, signals, what it says
 * at the end. Events and meters are this machine's, whatever it has: CPUs are busy everywhere. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/strv.h"
#include "monitoring/line.h"
#include "tests/integration/harness.h"
#include "tests/integration/sink.h"

struct fix {
    struct sink *sink;
    char *dir, *spool, *program;
    char url[64];
};

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->sink = sink_new();
    f->dir = harness_dir();
    f->spool = harness_path(f->dir, "spool");
    f->program = harness_program("pipetune");
    (void)snprintf(f->url, sizeof f->url, "http://127.0.0.1:%u", sink_port(f->sink));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    sink_free(f->sink);
    harness_remove(f->dir);
    free(f->spool);
    free(f->program);
    free(f);
    return 0;
}

static void fill(struct strv *argv, const struct fix *f, const char *const *words)
{
    strv_add(argv, f->program);
    strv_add(argv, "monitor");
    for (; *words; words++)
        strv_add(argv, *words);
    assert_false(argv->failed);
}

static struct harness_output run_words(const struct fix *f, const char *const *words)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    fill(&argv, f, words);
    return harness_run(argv.v, HARNESS_MS);
}

/* Its stderr goes to DIR/err. */
static pid_t start_words(const struct fix *f, const char *const *words)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    AUTO_FREE char *path = harness_path(f->dir, "err");
    fill(&argv, f, words);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return harness_spawn(argv.v, -1, fd);
}

#define RUN_MONITOR(f, ...) run_words(f, (const char *const[]){ __VA_ARGS__, NULL })
#define START_MONITOR(f, ...) start_words(f, (const char *const[]){ __VA_ARGS__, NULL })

static void expect_text(const char *text, const char *part)
{
    if (!text || !strstr(text, part))
        fail_msg("no '%s' in:\n%s", part, text ? text : "(nothing)");
}

static void expect_no_text(const char *text, const char *part)
{
    if (text && strstr(text, part))
        fail_msg("there is '%s' in:\n%s", part, text);
}

/* Every line is line protocol. Returns how many. */
static int check_lines(char *text)
{
    static struct line_point pt;
    int n = 0;
    struct err e = { 0 };
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1, n++) {
        AUTO_FREE char *line = strndup(at, (size_t)(end - at));
        if (line_parse(&pt, line, strlen(line), &e) < 0)
            fail_msg("%s: %.*s", e.text, (int)(end - at), at);
    }
    return n;
}

static void one_round_is_printed(void **state)
{
    struct fix *f = *state;
    struct harness_output o = RUN_MONITOR(f, "--print", "--once", "--interval", "0.1", "--meters", "estimate");
    assert_int_equal(o.code, 0);
    int n = check_lines(o.out);
    expect_text(o.out, "pipetune_profile,host=");
    expect_text(o.out, ",meter=estimate,node=0 value=");
    expect_text(o.out, ",meter=cpu,node=0 value=");
    expect_text(o.out, "pipetune_self,host=");
    char want[128];
    (void)snprintf(want, sizeof want, "pipetune: produced %d = stored %d + waiting 0 + quarantined 0 + dropped 0\n", n,
                   n);
    expect_text(o.err, want);
    harness_output_done(&o);
}

static void nothing_of_events_on_request(void **state)
{
    struct fix *f = *state;
    struct harness_output o =
        RUN_MONITOR(f, "--print", "--once", "--interval", "0.1", "--meters", "estimate", "--no-events");
    assert_int_equal(o.code, 0);
    assert_null(strstr(o.out, "pipetune_profile"));
    harness_output_done(&o);
}

static void one_round_is_delivered(void **state)
{
    struct fix *f = *state;
    struct harness_output o = RUN_MONITOR(f, "--once", "--interval", "0.1", "--meters", "estimate", "--url", f->url,
                                          "--database", "nodes", "--spool", f->spool);
    assert_int_equal(o.code, 0);
    AUTO_FREE char *lines = sink_lines(f->sink), *head = sink_head(f->sink);
    int n = check_lines(lines);
    char want[128];
    (void)snprintf(want, sizeof want, "pipetune: produced %d = stored %d + ", n, n);
    expect_text(o.err, want);
    expect_text(head, "db=nodes");
    expect_text(lines, ",meter=estimate,node=0 value=");
    harness_output_done(&o);
}

static void what_is_left_behind_is_told_and_delivered_the_next_time(void **state)
{
    struct fix *f = *state;
    sink_answer(f->sink, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    struct harness_output o =
        RUN_MONITOR(f, "--once", "--interval", "0.1", "--meters", "estimate", "--url", f->url, "--spool", f->spool);
    assert_int_equal(o.code, 1);
    int n = 0, stored = -1, waiting = 0;
    const char *account = strstr(o.err, "produced ");
    assert_non_null(account);
    assert_int_equal(sscanf(account, "produced %d = stored %d + waiting %d", &n, &stored, &waiting), 3);
    assert_int_equal(stored, 0);
    assert_true(n > 0 && n == waiting);
    expect_text(o.err, "lines wait in '");
    assert_int_equal(harness_count(o.err, "status 401"), 1); /* told once */
    harness_output_done(&o);
    sink_answer(f->sink, NULL);
    o = RUN_MONITOR(f, "--once", "--interval", "0.1", "--no-events", "--url", f->url, "--spool", f->spool);
    assert_int_equal(o.code, 0);
    char want[64];
    (void)snprintf(want, sizeof want, "; %d of them are of an earlier run", n);
    expect_text(o.err, want);
    AUTO_FREE char *lines = sink_lines(f->sink);
    assert_true(check_lines(lines) > n);
    harness_output_done(&o);
}

static void what_the_server_rejects_is_no_success(void **state)
{
    struct fix *f = *state;
    sink_answer(f->sink, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    struct harness_output o = RUN_MONITOR(f, "--once", "--interval", "0.1", "--no-events", "--meters", "estimate",
                                          "--url", f->url, "--spool", f->spool);
    expect_text(o.err, "lines that were rejected are in '");
    expect_text(o.err, " + waiting 0 + ");
    assert_int_equal(o.code, 1);
    harness_output_done(&o);
}

/* --- as a daemon --- */

static void send_to(int port, const char *text)
{
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port) };
    assert_int_equal(sendto(fd, text, strlen(text), 0, (struct sockaddr *)&a, sizeof a), (ssize_t)strlen(text));
}

static int port_of(const char *err)
{
    int port = 0;
    const char *at = err ? strstr(err, "udp input on port ") : NULL;
    return at && sscanf(at, "udp input on port %d\n", &port) == 1 ? port : 0;
}

static bool tells_port(void *arg)
{
    struct fix *f = arg;
    AUTO_FREE char *err = harness_read(f->dir, "err");
    return port_of(err) != 0;
}

static bool has_gauge(void *arg)
{
    struct fix *f = arg;
    AUTO_FREE char *lines = sink_lines(f->sink);
    return strstr(lines, "gauge,") != NULL;
}

static void points_of_applications_are_passed_on_until_the_end(void **state)
{
    struct fix *f = *state;
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    pid_t pid = START_MONITOR(f, "--url", f->url, "--spool", f->spool, "--udp-in", "127.0.0.1:0", "--no-events",
                              "--interval", "0.05", "--meters", "estimate");
    assert_true(harness_wait(tells_port, f, HARNESS_MS));
    AUTO_FREE char *before = harness_read(f->dir, "err");
    int port = port_of(before);
    send_to(port, "gauge,app=x level=1.5 1700000000000000001\ngauge,host=elsewhere level=2 1700000000000000002\n");
    send_to(port, "no line protocol\n");
    send_to(port, "late level=3\nlate level=4\n");
    assert_true(harness_wait(has_gauge, f, HARNESS_MS));
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    AUTO_FREE char *lines = sink_lines(f->sink), *err = harness_read(f->dir, "err");
    int n = check_lines(lines);
    char want[512];
    (void)snprintf(want, sizeof want, "gauge,app=x,host=%s level=1.5 1700000000000000001\n", host);
    expect_text(lines, want);
    expect_text(lines, "gauge,host=elsewhere level=2.0 1700000000000000002\n"); /* its own stays */
    (void)snprintf(want, sizeof want, "late,host=%s level=3.0 ", host);
    const char *third = strstr(lines, want), *stamp = third ? strchr(third, ' ') : NULL;
    assert_non_null(stamp);
    stamp = strchr(stamp + 1, ' ') + 1;
    (void)snprintf(want, sizeof want, "late,host=%s level=4.0 %.19s", host, stamp);
    assert_null(strstr(lines, want)); /* not at the same time as the one before */
    expect_text(lines, "meter=estimate");
    expect_text(lines, "pipetune_self,");
    expect_text(err, "udp input: 1 rejected so far, the newest: ");
    expect_text(err, "udp input: 4 points, 1 rejected, 0 left out, 0 datagrams lost\n");
    (void)snprintf(want, sizeof want, "produced %d = stored %d + waiting 0 + quarantined 0 + dropped 0\n", n, n);
    expect_text(err, want);
}

static bool has_requests(void *arg)
{
    struct fix *f = arg;
    return sink_requests(f->sink) > 0;
}

static void a_daemon_without_its_server_keeps_everything(void **state)
{
    struct fix *f = *state;
    sink_answer(f->sink, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    pid_t pid = START_MONITOR(f, "--url", f->url, "--spool", f->spool, "--no-events", "--interval", "0.05", "--meters",
                              "estimate");
    assert_true(harness_wait(has_requests, f, HARNESS_MS));
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 1);
    AUTO_FREE char *err = harness_read(f->dir, "err");
    int n = 0, waiting = -1;
    const char *account = strstr(err, "produced ");
    assert_non_null(account);
    assert_int_equal(sscanf(account, "produced %d = stored 0 + waiting %d + quarantined 0 + dropped 0", &n, &waiting),
                     2);
    assert_true(n > 0 && n == waiting);
}

static void a_reader_that_has_seen_enough_ends_it(void **state)
{
    struct fix *f = *state;
    int fds[2];
    AUTO_STRV struct strv argv = STRV_INIT;
    fill(&argv, f,
         (const char *const[]){ "--print", "--no-events", "--interval", "0.05", "--meters", "estimate", NULL });
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = harness_spawn(argv.v, fds[1], -1);
    (void)close(fds[1]);
    char byte;
    assert_int_equal(read(fds[0], &byte, 1), 1);
    (void)close(fds[0]);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
}

/* --- config --- */

static void write_config(const struct fix *f, const char *text)
{
    harness_write(f->dir, "monitor.json", text);
}

static void the_config_names_server_meters_and_interval(void **state)
{
    struct fix *f = *state;
    struct sink *pdu = sink_new();
    char text[1024];
    sink_answer(pdu, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
                     "{\"sensor_values\":[0,{\"values\":[[],[],[],[0,0,0,0,{\"v\":41.5,\"s\":\"ok\"}]]}]}");
    (void)snprintf(text, sizeof text,
                   "{ \"influxdb\": { \"url\": \"%s\", \"bucket\": \"b\", \"org\": \"o\" },\n"
                   "  \"monitoring\": { \"interval\": 0.1, \"meters\": [\"estimate\",\n"
                   "    { \"name\": \"pdu\", \"url\": \"http://127.0.0.1:%u\", \"outlets\": { \"node-7\": 3, "
                   "\"localhost\": 3 } } ] } }",
                   f->url, sink_port(pdu));
    write_config(f, text);
    AUTO_FREE char *path = harness_path(f->dir, "monitor.json");
    struct harness_output o = RUN_MONITOR(f, "--config", path, "--once", "--no-events", "--spool", f->spool);
    AUTO_FREE char *lines = sink_lines(f->sink), *head = sink_head(f->sink);
    if (o.code != 0)
        fail_msg("%s", o.err);
    (void)check_lines(lines);
    expect_text(head, "/api/v2/write?precision=ns&org=o&bucket=b");
    expect_text(lines, ",meter=estimate,node=0 value=");
    expect_text(lines, "pipetune_energy,host=node-7,meter=pdu,node=0 value=41.5");
    expect_text(lines, "pdu_power/node_utilization,nodename=node-7 value=41.5 ");
    expect_no_text(lines, "localhost"); /* its name among all machines */
    char host[256] = "", want[512];
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(want, sizeof want, "pdu_power/node_utilization,nodename=%s value=41.5 ", host);
    expect_text(lines, want);
    harness_output_done(&o);
    o = RUN_MONITOR(f, path, "--once", "--no-events", "--meters", "pdu", "--print");
    assert_int_equal(o.code, 0);
    expect_text(o.out, "host=node-7,meter=pdu");
    assert_null(strstr(o.out, "meter=estimate"));
    harness_output_done(&o);
    sink_free(pdu);
}

static void the_config_names_the_events(void **state)
{
    struct fix *f = *state;
    write_config(f, "{ \"monitoring\": { \"interval\": 0.1, \"events\": [\"msr/tsc/\"], \"meters\": \"estimate\" } }");
    AUTO_FREE char *path = harness_path(f->dir, "monitor.json");
    struct harness_output o = RUN_MONITOR(f, path, "--print", "--once");
    assert_int_equal(o.code, 0);
    expect_text(o.out, "scope=system msr/tsc/"); /* counted, or why not */
    assert_null(strstr(o.out, "instructions"));
    assert_null(strstr(o.out, "L1-dcache-load-misses"));
    expect_text(o.out, ",context-switches");
    harness_output_done(&o);
    write_config(f, "{ \"monitoring\": {\n\"events\": \"msr/tcs/\" } }");
    o = RUN_MONITOR(f, path, "--print", "--once");
    assert_int_equal(o.code, 2);
    expect_text(o.err, "line 2: 'monitoring.events' names 'msr/tcs/', which is no event; did you mean 'msr/tsc/'?");
    harness_output_done(&o);
}

static void the_config_that_is_shipped_is_one(void **state)
{
    struct fix *f = *state;
    struct harness_output o = RUN_MONITOR(f, "conf/monitor.json", "--print", "--once", "--interval", "0.1");
    if (o.code != 0) /* a machine without RAPL is told of, and no failure */
        fail_msg("%s", o.err);
    expect_text(o.out, ",meter=cpu,node=0 value=");
    harness_output_done(&o);
}

static void wrong_usage_is_told(void **state)
{
    struct fix *f = *state;
    static const struct {
        const char *name, *words[4];
        int code;
        const char *want;
    } rows[] = {
        { "no server", { "--once" }, 2, "--url http://HOST:8086" },
        { "a meter that is none", { "--print", "--meters", "rapI" }, 2, "did you mean 'rapl'?" },
        { "a pdu that nobody described", { "--print", "--meters", "pdu" }, 2, "needs \"url\"" },
        { "a config that is not there", { "--config", "/nonexistent/m.json" }, 2, "no config '/nonexistent/m.json'" },
        { "no port", { "--print", "--udp-in", "127.0.0.1" }, 2, "must be ADDRESS:PORT" },
        { "a port that is none", { "--print", "--udp-in", "127.0.0.1:70000" }, 2, "must be ADDRESS:PORT" },
        { "a name for an address", { "--print", "--udp-in", "localhost:1" }, 2, "is no address of this machine" },
        { "an unknown option", { "--prin" }, 2, "did you mean" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct harness_output o = run_words(f, rows[i].words);
        if (o.code != rows[i].code || !strstr(o.err, rows[i].want))
            fail_msg("%s: exit %d, '%s'", rows[i].name, o.code, o.err);
        harness_output_done(&o);
    }
}

static void a_secret_is_in_no_word_of_it(void **state)
{
    struct fix *f = *state;
    harness_write(f->dir, "secret", "me:hunter2\n");
    AUTO_FREE char *path = harness_path(f->dir, "secret");
    assert_int_equal(chmod(path, 0600), 0);
    sink_answer(f->sink, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    struct harness_output o = RUN_MONITOR(f, "--once", "--interval", "0.1", "--no-events", "--url", f->url, "--spool",
                                          f->spool, "--credential-file", path);
    assert_int_equal(o.code, 1);
    AUTO_FREE char *head = sink_head(f->sink);
    expect_text(head, "Authorization: Basic ");
    assert_null(strstr(o.err, "hunter2"));
    assert_null(strstr(o.out, "hunter2"));
    harness_output_done(&o);
}

static void one_daemon_has_a_spool(void **state)
{
    struct fix *f = *state;
    pid_t pid = START_MONITOR(f, "--url", f->url, "--spool", f->spool, "--udp-in", "127.0.0.1:0", "--no-events");
    assert_true(harness_wait(tells_port, f, HARNESS_MS));
    struct harness_output o = RUN_MONITOR(f, "--url", f->url, "--spool", f->spool, "--once");
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    assert_int_equal(o.code, 3);
    harness_output_done(&o);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(one_round_is_printed),
        T(nothing_of_events_on_request),
        T(one_round_is_delivered),
        T(what_is_left_behind_is_told_and_delivered_the_next_time),
        T(what_the_server_rejects_is_no_success),
        T(points_of_applications_are_passed_on_until_the_end),
        T(a_daemon_without_its_server_keeps_everything),
        T(a_reader_that_has_seen_enough_ends_it),
        T(the_config_names_server_meters_and_interval),
        T(the_config_names_the_events),
        T(the_config_that_is_shipped_is_one),
        T(wrong_usage_is_told),
        T(a_secret_is_in_no_word_of_it),
        T(one_daemon_has_a_spool),
    };
    return cmocka_run_group_tests_name("monitor", tests, NULL, NULL);
}
