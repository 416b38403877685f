/* The meter `pdu` against a small HTTP server of our own on loopback: what it reads equals what the server was told to say, and whatever
 * else a PDU may answer is a reading that says why, after which the next read holds again. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
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
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/pdu.h"
#include "monitoring/pdu_json.h"
#include "tests/integration/harness.h"

/* --- the server: one thread, one connection at a time --- */

enum { HELD_MAX = 8 };

struct peer {
    int listener;
    uint16_t port;
    pthread_t thread;
    /* Set by the test between two reads: a whole HTTP answer; NULL: never answers; "" closes without one. */
    const char *answer;
    bool closes;  /* after the answer */
    bool endless; /* the answer is said again and again, until the client has gone */
    /* Seen by the server. */
    char head[2048];
    int requests, connections;
    int held[HELD_MAX]; /* connections that are never answered */
    int n_held;
};

static bool read_request(struct peer *p, int fd)
{
    size_t len = 0;
    while (len + 1 < sizeof p->head) {
        ssize_t n = recv(fd, p->head + len, sizeof p->head - 1 - len, 0);
        if (n <= 0)
            return false;
        len += (size_t)n;
        p->head[len] = '\0';
        if (strstr(p->head, "\r\n\r\n"))
            return true;
    }
    return false;
}

static void serve(struct peer *p, int fd)
{
    p->connections++;
    struct timeval limit = { .tv_sec = HARNESS_MS / 1000 };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    while (read_request(p, fd)) {
        p->requests++;
        if (!p->answer && p->n_held < HELD_MAX) {
            p->held[p->n_held++] = fd;
            return;
        }
        bool closes = p->closes; /* once the client has its answer, the next one is being set */
        bool sent = p->answer && *p->answer && send(fd, p->answer, strlen(p->answer), MSG_NOSIGNAL) > 0;
        while (sent && p->endless)
            sent = send(fd, p->answer, strlen(p->answer), MSG_NOSIGNAL) > 0;
        if (!sent || closes)
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

static void peer_listen(struct peer *p, uint16_t port)
{
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    (void)setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    assert_int_equal(bind(p->listener, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(p->listener, 16), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&a, &len), 0);
    p->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&p->thread, NULL, peer_run, p), 0);
}

/* The client's connection must be closed, or about to be. */
static void peer_stop(struct peer *p)
{
    (void)shutdown(p->listener, SHUT_RDWR);
    (void)pthread_join(p->thread, NULL);
    for (int i = 0; i < p->n_held; i++)
        (void)close(p->held[i]);
    p->n_held = 0;
    (void)close(p->listener);
}

/* --- a PDU of three outlets --- */

static char node_a[] = "eiger-1", node_b[] = "eiger-10", node_c[] = "eiger-2";
static const struct meter_outlet outlets[] = { { node_a, 0 }, { node_b, 2 }, { node_c, 1 } };

struct bed {
    struct peer peer;
    struct meter *m;
    char url[64];
    struct meter_reading got[METER_READINGS_MAX];
    struct buf page; /* what the server says */
};

static struct meter_cfg cfg_of(const struct bed *b)
{
    return (struct meter_cfg){
        .url = b->url, .outlets = outlets, .n_outlets = ARRAY_LEN(outlets), .timeout_ms = HARNESS_MS
    };
}

static void open_meter(struct bed *b, struct meter_cfg cfg)
{
    struct err e = { 0 };
    if (meter_pdu.open(&b->m, &cfg, &e) < 0)
        fail_msg("%s", e.text);
}

static int set_up(void **state)
{
    struct bed *b = calloc(1, sizeof *b);
    assert_non_null(b);
    peer_listen(&b->peer, 0);
    (void)snprintf(b->url, sizeof b->url, "http://127.0.0.1:%u", b->peer.port);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *b = *state;
    meter_pdu.close(b->m);
    peer_stop(&b->peer);
    buf_done(&b->page);
    free(b);
    return 0;
}

static void put_outlet(struct buf *to, const char *v)
{
    buf_printf(to, "[{\"v\":\"230\"},{\"v\":\"0.2\"},{\"v\":\"50\"},{\"v\":\"1\"},{\"n\":\"P\",\"v\":%s}]", v);
}

/* The server says these watts from now on, as they are written here. */
static void say_watts(struct bed *b, const char *outlet_0, const char *outlet_1, const char *outlet_2)
{
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "{\"sensor_values\":[{\"values\":[]},{\"type\":8,\"values\":[");
    put_outlet(&body, outlet_0);
    buf_putc(&body, ',');
    put_outlet(&body, outlet_1);
    buf_putc(&body, ',');
    put_outlet(&body, outlet_2);
    buf_puts(&body, "]}]}");
    buf_clear(&b->page);
    buf_printf(&b->page, "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nContent-Length: %zu\r\n\r\n%s", body.len,
               buf_text(&body));
    assert_false(b->page.failed);
    b->peer.answer = buf_text(&b->page);
    b->peer.closes = false;
}

/* One read gives these watts, in the order of the outlets above. */
static void expect_watts(struct bed *b, double a, double c, double d)
{
    const double want[] = { a, c, d };
    assert_int_equal(meter_pdu.read(b->m, b->got), ARRAY_LEN(outlets));
    for (size_t i = 0; i < ARRAY_LEN(outlets); i++) {
        const struct meter_reading *r = &b->got[i];
        if (r->state != METER_OK || r->value != want[i])
            fail_msg("%s: got %s, %g W, want %g: %s", outlets[i].node, meter_state_name(r->state), r->value, want[i],
                     r->why);
        assert_string_equal(r->node, outlets[i].node);
        assert_string_equal(r->why, "");
        assert_true(r->from_ms == r->to_ms);
    }
}

static void expect_failure(struct bed *b, const char *name, const char *says)
{
    assert_int_equal(meter_pdu.read(b->m, b->got), ARRAY_LEN(outlets));
    for (size_t i = 0; i < ARRAY_LEN(outlets); i++) {
        const struct meter_reading *r = &b->got[i];
        if (r->state != METER_FAILED || !isnan(r->value) || !isnan(r->error) || !strstr(r->why, says))
            fail_msg("%s: got %s, %g W: '%s'", name, meter_state_name(r->state), r->value, r->why);
        assert_string_equal(r->node, outlets[i].node);
        for (const char *p = r->why; *p; p++)
            assert_true(*p >= 0x20 && *p < 0x7f);
    }
}

/* --- what it reads --- */

static void one_request_answers_for_all_outlets(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    say_watts(b, "\"41\"", "\"7.5\"", "123.25");
    expect_watts(b, 41, 123.25, 7.5);
    assert_true(b->got[0].error == 0.5 && b->got[1].error == 0.005 && b->got[2].error == 0.05);
    assert_int_equal(b->peer.requests, 1);
    assert_non_null(strstr(b->peer.head, "GET /statusjsn.js?components=16384 HTTP/1.1\r\n"));
}

static void every_read_gives_what_was_said(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    for (int i = 0; i < 50; i++) {
        char v[32];
        (void)snprintf(v, sizeof v, "\"%d.%d\"", i * 7, i % 10);
        say_watts(b, v, "\"0\"", "9");
        expect_watts(b, strtod(v + 1, NULL), 9, 0);
    }
    assert_int_equal(b->peer.connections, 1); /* kept */
}

static void an_outlet_that_is_off_takes_0_w_and_this_is_measured(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    say_watts(b, "\"0\"", "0", "\"0.0\"");
    expect_watts(b, 0, 0, 0);
}

static int64_t ticks_ns;

/* Each look at the clock is 100 ms later than the one before. */
static int64_t ticking(void)
{
    return ticks_ns += 100000000;
}

static void a_reading_is_of_the_middle_of_its_request(void **state)
{
    struct bed *b = *state;
    struct meter_cfg cfg = cfg_of(b);
    cfg.now_ns = ticking;
    ticks_ns = INT64_C(1794960000000) * 1000000;
    open_meter(b, cfg);
    say_watts(b, "\"1\"", "\"2\"", "\"3\"");
    expect_watts(b, 1, 3, 2);
    assert_true(b->got[0].to_ms == 1794960000150.0);
    assert_true(b->got[2].to_ms == 1794960000150.0);
}

static void path_value_and_scale_may_be_another_pdus(void **state)
{
    struct bed *b = *state;
    struct meter_cfg cfg = cfg_of(b);
    char url[96];
    (void)snprintf(url, sizeof url, "%s/", b->url);
    cfg.url = url;
    cfg.path = "/power.json";
    cfg.value = "outlets/o{outlet}/tens";
    cfg.scale = 10;
    open_meter(b, cfg);
    b->peer.answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
                     "{\"outlets\":{\"o0\":{\"tens\":4},\"o1\":{\"tens\":\"5.5\"},\"o2\":{\"tens\":6}}}\n";
    b->peer.closes = true;
    expect_watts(b, 40, 60, 55);
    assert_true(b->got[0].error == 5);
    assert_non_null(strstr(b->peer.head, "GET /power.json HTTP/1.1\r\n"));
}

static void an_outlet_that_is_wrong_leaves_the_others_right(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    say_watts(b, "\"41\"", "\"-1\"", "{}");
    assert_int_equal(meter_pdu.read(b->m, b->got), 3);
    assert_true(b->got[0].state == METER_OK && b->got[0].value == 41);
    assert_int_equal(b->got[1].state, METER_FAILED);
    assert_non_null(strstr(b->got[1].why, "'sensor_values/1/values/2/4/v' is an object, not a number"));
    assert_int_equal(b->got[2].state, METER_DISCARDED);
    assert_non_null(strstr(b->got[2].why, "-1 W, which is less than nothing"));
    assert_true(isnan(b->got[1].value) && isnan(b->got[2].value));
}

static void more_than_is_plausible_is_discarded(void **state)
{
    struct bed *b = *state;
    struct meter_cfg cfg = cfg_of(b);
    cfg.max_w = 100;
    open_meter(b, cfg);
    say_watts(b, "\"100\"", "\"100.1\"", "4294967295");
    assert_int_equal(meter_pdu.read(b->m, b->got), 3);
    assert_int_equal(b->got[0].state, METER_OK);
    assert_int_equal(b->got[1].state, METER_DISCARDED);
    assert_int_equal(b->got[2].state, METER_DISCARDED);
    assert_non_null(strstr(b->got[2].why, "more than the 100 W that are plausible"));
}

/* --- what else it may be told --- */

#define CLOSING(status, body) "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n" body

static const struct {
    const char *name, *answer, *says;
} answers[] = {
    { "a page", CLOSING("200 OK", "<html><body>Login</body></html>"), "the answer is no JSON: line 1" },
    { "half an answer", CLOSING("200 OK", "{\"sensor_values\":[{},{\"values\":[[{\"v\":\"2"),
      "the answer is no JSON: line 1" },
    { "less than it promised", "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{\"sensor_values\":[", "" },
    { "nothing", CLOSING("200 OK", ""), "the answer is empty" },
    { "no such page", CLOSING("404 Not Found", "{}"), "status 404" },
    { "wait", CLOSING("503 Busy", ""), "status 503" },
    { "elsewhere", "HTTP/1.1 302 Found\r\nLocation: /other\r\nConnection: close\r\n\r\n", "status 302" },
    { "a password is wanted", CLOSING("401 Unauthorized", ""), "status 401" },
    { "another answer", CLOSING("200 OK", "{\"sensor_values\":7}"),
      "'sensor_values' is a number, and nothing is in it" },
    { "a list", CLOSING("200 OK", "[1,2]"), "the answer has no 'sensor_values'" },
    { "too few elements", CLOSING("200 OK", "{\"sensor_values\":[{}]}"), "the answer has no 'sensor_values/1'" },
    { "something else than HTTP", "220 mail.example ESMTP\r\n", "" },
    { "bytes", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\x01\xff\x7f", "the answer is no JSON" },
    { "an end before an answer", "", "" },
};

static void whatever_it_answers_the_reading_says_so_and_the_next_read_holds(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        b->peer.answer = answers[i].answer;
        b->peer.closes = true;
        expect_failure(b, answers[i].name, answers[i].says);
        say_watts(b, "\"41\"", "\"7\"", "\"9\"");
        expect_watts(b, 41, 9, 7);
    }
    assert_null(strstr(b->peer.head, "/other"));
}

static void a_redirect_is_not_followed(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    b->peer.answer = "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n";
    expect_failure(b, "a redirect", "status 302");
    assert_int_equal(b->peer.requests, 1);
}

static void an_answer_of_a_megabyte_is_cut_off(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    AUTO_BUF struct buf page = BUF_INIT;
    buf_puts(&page, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"a\":\"");
    for (int i = 0; i < 1 << 16; i++)
        buf_puts(&page, "0123456789abcdef");
    buf_puts(&page, "\"}");
    b->peer.answer = buf_text(&page);
    b->peer.closes = true;
    expect_failure(b, "a megabyte", "the answer is longer than 65536 bytes");
    say_watts(b, "\"1\"", "\"2\"", "\"3\"");
    expect_watts(b, 1, 3, 2);
}

static void an_answer_without_end_is_given_up_before_the_time_out(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    b->peer.answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[";
    b->peer.endless = true;
    expect_failure(b, "no end", "the answer is longer than 65536 bytes");
    b->peer.endless = false;
    say_watts(b, "\"1\"", "\"2\"", "\"3\"");
    expect_watts(b, 1, 3, 2);
}

static void an_answer_as_long_as_may_be_is_read(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    say_watts(b, "\"1\"", "\"2\"", "\"3\"");
    AUTO_FREE char *body = strdup(strstr(buf_text(&b->page), "\r\n\r\n") + 4);
    assert_non_null(body);
    for (int more = 0; more < 2; more++) {
        buf_clear(&b->page);
        buf_printf(&b->page, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", PDU_BODY_MAX + more, body);
        for (size_t n = strlen(body); n < (size_t)(PDU_BODY_MAX + more); n++)
            buf_putc(&b->page, ' ');
        b->peer.answer = buf_text(&b->page);
        if (more)
            expect_failure(b, "a byte more", "longer than");
        else
            expect_watts(b, 1, 3, 2);
    }
}

static void a_pdu_that_stalls_is_given_up_and_asked_again(void **state)
{
    struct bed *b = *state;
    struct meter_cfg cfg = cfg_of(b);
    cfg.timeout_ms = 500;
    open_meter(b, cfg);
    b->peer.answer = NULL;
    for (int i = 0; i < 2; i++)
        expect_failure(b, "a stall", "no whole answer within 500 ms");
    say_watts(b, "\"41\"", "\"7\"", "\"9\"");
    expect_watts(b, 41, 9, 7);
}

static void a_pdu_that_stalls_within_the_answer_too(void **state)
{
    struct bed *b = *state;
    struct meter_cfg cfg = cfg_of(b);
    cfg.timeout_ms = 500;
    open_meter(b, cfg);
    b->peer.answer = "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{\"sensor_values\":[";
    expect_failure(b, "a stall", "no whole answer within 500 ms");
}

static void a_pdu_that_is_gone_is_asked_again(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    say_watts(b, "\"41\"", "\"7\"", "\"9\"");
    b->peer.closes = true;
    expect_watts(b, 41, 9, 7);
    uint16_t port = b->peer.port;
    peer_stop(&b->peer);
    expect_failure(b, "gone", "connect");
    peer_listen(&b->peer, port);
    b->peer.closes = true;
    expect_watts(b, 41, 9, 7);
}

static void a_connection_that_the_pdu_closed_is_opened_anew(void **state)
{
    struct bed *b = *state;
    open_meter(b, cfg_of(b));
    for (int i = 0; i < 5; i++) {
        say_watts(b, "\"41\"", "\"7\"", "\"9\"");
        b->peer.closes = true; /* without saying so */
        expect_watts(b, 41, 9, 7);
    }
    assert_int_equal(b->peer.connections, 5);
}

/* --- probing --- */

static void probing_asks_once_and_tells_the_watts(void **state)
{
    struct bed *b = *state;
    struct meter_cfg cfg = cfg_of(b);
    AUTO_BUF struct buf detail = BUF_INIT;
    AUTO_BUF struct buf fix = BUF_INIT;
    say_watts(b, "\"41\"", "\"7\"", "\"9.5\"");
    assert_int_equal(meter_pdu.probe(&cfg, &detail, &fix), 0);
    assert_string_equal(buf_text(&detail), "eiger-1 41 W, eiger-10 9.5 W, eiger-2 7 W");
    assert_int_equal(fix.len, 0);
    assert_int_equal(b->peer.requests, 1);
}

static void probing_says_what_is_wrong_and_where_to_look(void **state)
{
    struct bed *b = *state;
    struct meter_cfg cfg = cfg_of(b);
    AUTO_BUF struct buf detail = BUF_INIT;
    AUTO_BUF struct buf fix = BUF_INIT;
    b->peer.answer = CLOSING("404 Not Found", "");
    b->peer.closes = true;
    assert_true(meter_pdu.probe(&cfg, &detail, &fix) < 0);
    assert_non_null(strstr(buf_text(&detail), "status 404"));
    assert_non_null(strstr(buf_text(&fix), "statusjsn.js"));
}

int main(void)
{
#define ASKED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ASKED(one_request_answers_for_all_outlets),
        ASKED(every_read_gives_what_was_said),
        ASKED(an_outlet_that_is_off_takes_0_w_and_this_is_measured),
        ASKED(a_reading_is_of_the_middle_of_its_request),
        ASKED(path_value_and_scale_may_be_another_pdus),
        ASKED(an_outlet_that_is_wrong_leaves_the_others_right),
        ASKED(more_than_is_plausible_is_discarded),
        ASKED(whatever_it_answers_the_reading_says_so_and_the_next_read_holds),
        ASKED(a_redirect_is_not_followed),
        ASKED(an_answer_of_a_megabyte_is_cut_off),
        ASKED(an_answer_without_end_is_given_up_before_the_time_out),
        ASKED(an_answer_as_long_as_may_be_is_read),
        ASKED(a_pdu_that_stalls_is_given_up_and_asked_again),
        ASKED(a_pdu_that_stalls_within_the_answer_too),
        ASKED(a_pdu_that_is_gone_is_asked_again),
        ASKED(a_connection_that_the_pdu_closed_is_opened_anew),
        ASKED(probing_asks_once_and_tells_the_watts),
        ASKED(probing_says_what_is_wrong_and_where_to_look),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("pdu", tests, NULL, NULL);
}
