/* The meter `snmp` against a real agent, snmpsim on loopback: models, versions 2c and 3, what is missing or wrong, an agent that goes away
 * and comes back. What that agent cannot be made to do is done by a small one of our own: lost datagrams, answers that are too big or
 * none. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "monitoring/snmp.h"
#include "tests/integration/harness.h"

#define APC "1.3.6.1.4.1.318.1.1.26"
#define RARITAN "1.3.6.1.4.1.13742.6"

/* A community names the file it is answered from. Version 3 names none, and is then answered by where it came from. */
#define COMMUNITY_FILE "rack.snmprec"
#define VERSION_3_FILE "1.3.6.1.6.1.1.0/127.0.0.1.snmprec"

enum { WAIT_MS = 400, STEPS = 12, MANY = 64 };

struct lab {
    char *dir, *program;
    char host[32], community[256], both[256], one[256]; /* files of credentials: v2c; v3 with and without privacy */
    uint16_t port;
    pid_t agent;
};

/* --- the agent --- */

static int bind_loopback(uint16_t *out_port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *out_port = ntohs(a.sin_port);
    return fd;
}

static char *find_program(const char *name)
{
    const char *path = getenv("PATH");
    for (const char *at = path; at && *at;) {
        size_t len = strcspn(at, ":");
        char *file = NULL;
        assert_true(asprintf(&file, "%.*s/%s", (int)len, at, name) > 0);
        if (len && access(file, X_OK) == 0)
            return file;
        free(file);
        at += len + (at[len] == ':');
    }
    fail_msg("no program '%s': install the Debian package snmpsim (./run-pipetune.sh setup --dev)", name);
    return NULL;
}

/* The last steps of the script read their watts from a file, so that the test says what they are. */
static void write_data(const struct lab *l)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, APC ".4.3.1.5.1|2|17\n");
    for (int i = 1; i <= MANY; i++)
        buf_printf(&b, APC ".9.4.3.1.7.%d|2|%d\n", i, 100 + i);
    buf_printf(&b,
               APC ".9.4.3.1.7.70|2|-1\n" APC ".9.4.3.1.7.71|4|41.5\n" APC ".9.4.3.1.7.72|4|many\n" APC
                   ".9.4.3.1.7.73|65|99\n" APC ".9.4.3.1.7.74|66|4000000000\n" APC
                   ".9.4.3.1.7.75|2:error|status=authorizationError,value=1\n" APC
                   ".9.4.3.1.7.80|2:subprocess|/bin/cat %s/watts\n",
               l->dir);
    buf_puts(&b, RARITAN ".3.5.4.1.7.1.1.5|66|1\n" RARITAN ".3.5.4.1.7.1.2.5|66|0\n" RARITAN ".3.5.4.1.7.1.3.5|66|0\n");
    buf_puts(&b, RARITAN ".5.4.3.1.2.1.1.5|2|1\n" RARITAN ".5.4.3.1.2.1.2.5|2|1\n" RARITAN ".5.4.3.1.2.1.3.5|2|2\n");
    buf_puts(&b,
             RARITAN ".5.4.3.1.4.1.1.5|66|1015\n" RARITAN ".5.4.3.1.4.1.2.5|66|98\n" RARITAN ".5.4.3.1.4.1.3.5|66|0\n");
    assert_false(b.failed);
    AUTO_FREE char *data = harness_path(l->dir, "data");
    harness_write(data, COMMUNITY_FILE, buf_text(&b));
    harness_write(data, VERSION_3_FILE, buf_text(&b));
}

static bool is_listening(void *lab)
{
    struct lab *l = lab;
    AUTO_FREE char *log = harness_read(l->dir, "log");
    return log && strstr(log, "Listening at UDP");
}

static void stop_agent(struct lab *l)
{
    if (l->agent <= 0)
        return;
    (void)kill(l->agent, SIGTERM);
    (void)harness_exit_code(l->agent, HARNESS_MS);
    l->agent = 0;
}

/* As root it wants to be told who it is to be. Somebody else might not see our folder. */
static void start_agent(struct lab *l)
{
    char at[64], data[300], cache[300];
    (void)snprintf(at, sizeof at, "--agent-udpv4-endpoint=%s", l->host);
    (void)snprintf(data, sizeof data, "--data-dir=%s/data", l->dir);
    (void)snprintf(cache, sizeof cache, "--cache-dir=%s/cache", l->dir);
    char *argv[] = { l->program,
                     at,
                     data,
                     cache,
                     "--v3-user=both",
                     "--v3-auth-key=authpass12",
                     "--v3-auth-proto=SHA",
                     "--v3-priv-key=privpass12",
                     "--v3-priv-proto=AES",
                     "--v3-user=one",
                     "--v3-auth-key=authpass12",
                     "--v3-auth-proto=SHA",
                     geteuid() == 0 ? "--process-user=root" : NULL,
                     "--process-group=root",
                     NULL };
    harness_write(l->dir, "log", "");
    AUTO_FREE char *path = harness_path(l->dir, "log");
    AUTO_CLOSE int log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(log >= 0);
    l->agent = harness_spawn(argv, log, log);
    if (!harness_wait(is_listening, l, HARNESS_MS)) {
        AUTO_FREE char *text = harness_read(l->dir, "log");
        stop_agent(l);
        fail_msg("the agent does not listen; it said: %s", text);
    }
}

static void write_secret(const struct lab *l, const char *name, const char *text, char out[256])
{
    harness_write(l->dir, name, text);
    (void)snprintf(out, 256, "%s/%s", l->dir, name);
    assert_int_equal(chmod(out, 0600), 0);
}

static void make_dir(const struct lab *l, const char *name, mode_t mode)
{
    AUTO_FREE char *path = harness_path(l->dir, name);
    assert_int_equal(io_mkdirs(path, NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* A home that would spoil everything if anybody read it. */
static void spoil_home(const struct lab *l)
{
    make_dir(l, "home/.snmp", 0700);
    AUTO_FREE char *home = harness_path(l->dir, "home");
    AUTO_FREE char *conf = harness_path(home, ".snmp");
    harness_write(conf, "snmp.conf", "defaultPort 9\ndefCommunity nobody\ndefVersion 1\ndisableSNMPv2c yes\n");
    assert_int_equal(setenv("HOME", home, 1), 0);
    assert_int_equal(setenv("SNMPCONFPATH", conf, 1), 0);
    assert_int_equal(setenv("SNMP_PERSISTENT_DIR", conf, 1), 0);
}

static int open_lab(void **state)
{
    struct lab *l = calloc(1, sizeof *l);
    assert_non_null(l);
    l->program = find_program("snmpsimd");
    l->dir = harness_dir();
    assert_int_equal(chmod(l->dir, 0711), 0);
    make_dir(l, "data/1.3.6.1.6.1.1.0", 0755);
    make_dir(l, "data", 0755);
    make_dir(l, "cache", 0777);
    spoil_home(l);
    write_data(l);
    write_secret(l, "community", "rack\n", l->community);
    write_secret(l, "both", "both:authpass12:privpass12\n", l->both);
    write_secret(l, "one", "one:authpass12\n", l->one);
    (void)close(bind_loopback(&l->port));
    (void)snprintf(l->host, sizeof l->host, "127.0.0.1:%u", l->port);
    *state = l;
    start_agent(l);
    return 0;
}

static int close_lab(void **state)
{
    struct lab *l = *state;
    stop_agent(l);
    harness_remove(l->dir);
    free(l->program);
    free(l);
    return 0;
}

/* --- reading --- */

static struct meter *open_meter(const struct meter_cfg *cfg)
{
    struct meter *m = NULL;
    struct err e = { 0 };
    if (meter_snmp.open(&m, cfg, &e) < 0)
        fail_msg("%s", e.text);
    return m;
}

/* A meter for one read. */
static void read_once(const struct meter_cfg *cfg, struct meter_reading *r)
{
    struct meter *m = open_meter(cfg);
    assert_int_equal(meter_snmp.read(m, r), cfg->n_outlets);
    meter_snmp.close(m);
}

static void expect_watts(const struct meter_reading *r, double watts)
{
    if (r->state != METER_OK || fabs(r->value - watts) > 1e-9 || *r->why)
        fail_msg("%s: got %s, %g W, '%s', want %g W", r->node, meter_state_name(r->state), r->value, r->why, watts);
}

static void expect_failed(const struct meter_reading *r, const char *why)
{
    if (r->state != METER_FAILED || !isnan(r->value) || !isnan(r->error) || !strstr(r->why, why))
        fail_msg("%s: got %s, %g, '%s', want '%s'", r->node, meter_state_name(r->state), r->value, r->why, why);
}

static char a[] = "a", b[] = "b", c[] = "c", d[] = "d", e[] = "e", f[] = "f", g[] = "g", h[] = "h";

static void outlets_are_read_and_each_that_has_no_power_says_why(void **state)
{
    const struct lab *l = *state;
    const struct meter_outlet outlets[] = { { a, 1 },  { b, 99 }, { c, 70 }, { d, 71 },
                                            { e, 72 }, { f, 73 }, { g, 74 }, { h, 2 } };
    const struct meter_cfg cfg = { .host = l->host,
                                   .model = "apc",
                                   .credential_file = l->community,
                                   .outlets = outlets,
                                   .n_outlets = ARRAY_LEN(outlets) };
    struct meter_reading r[METER_READINGS_MAX];
    read_once(&cfg, r);
    expect_watts(&r[0], 101);
    expect_failed(&r[1], "no such outlet");
    expect_failed(&r[2], "does not measure");
    expect_watts(&r[3], 41.5);
    expect_failed(&r[4], "no number");
    expect_failed(&r[5], "no number");
    assert_int_equal(r[6].state, METER_DISCARDED);
    expect_watts(&r[7], 102);
    for (size_t i = 0; i < ARRAY_LEN(outlets); i++)
        assert_string_equal(r[i].node, outlets[i].node);
}

static void an_outlet_that_the_agent_refuses_does_not_spoil_the_others(void **state)
{
    const struct lab *l = *state;
    const struct meter_outlet outlets[] = { { a, 3 }, { b, 75 }, { c, 4 } };
    const struct meter_cfg cfg = { .host = l->host,
                                   .model = "apc",
                                   .credential_file = l->community,
                                   .outlets = outlets,
                                   .n_outlets = ARRAY_LEN(outlets) };
    struct meter_reading r[METER_READINGS_MAX];
    read_once(&cfg, r);
    expect_watts(&r[0], 103);
    expect_failed(&r[1], "refuses");
    expect_watts(&r[2], 104);
}

static void more_outlets_than_an_answer_holds_are_asked_in_turn(void **state)
{
    const struct lab *l = *state;
    struct meter_outlet outlets[MANY];
    for (int i = 0; i < MANY; i++)
        outlets[i] = (struct meter_outlet){ a, i + 1 };
    const struct meter_cfg cfg = {
        .host = l->host, .model = "apc", .credential_file = l->both, .version = 3, .outlets = outlets, .n_outlets = MANY
    };
    struct meter_reading r[METER_READINGS_MAX];
    read_once(&cfg, r);
    for (int i = 0; i < MANY; i++)
        expect_watts(&r[i], 101 + i);
}

static void each_model_and_an_oid_of_ones_own_have_their_scale(void **state)
{
    const struct lab *l = *state;
    const struct meter_outlet one[] = { { a, 1 } }, three[] = { { a, 1 }, { b, 2 }, { c, 3 } };
    struct meter_cfg cfg = { .host = l->host, .credential_file = l->community, .outlets = one, .n_outlets = 1 };
    struct meter_reading r[METER_READINGS_MAX];

    cfg.model = "apc-device";
    read_once(&cfg, r);
    expect_watts(&r[0], 170);
    assert_true(r[0].error == 10);

    cfg.model = NULL;
    cfg.oid = "." RARITAN ".5.4.3.1.4.1.{outlet}.5";
    cfg.scale = 0.01;
    read_once(&cfg, r);
    expect_watts(&r[0], 10.15);

    cfg = (struct meter_cfg){
        .host = l->host, .model = "raritan", .credential_file = l->community, .outlets = three, .n_outlets = 3
    };
    read_once(&cfg, r);
    expect_watts(&r[0], 101.5);
    expect_watts(&r[1], 98);
    expect_failed(&r[2], "now");
}

static _Atomic int64_t fake_ns;

static int64_t fake_now(void)
{
    return atomic_load(&fake_ns);
}

/* A script of watts, one second each: what was read adds up to the script's joules. */
static void the_sum_of_the_readings_is_the_scripts(void **state)
{
    const struct lab *l = *state;
    const struct meter_outlet outlets[] = { { a, 80 } };
    const struct meter_cfg cfg = { .host = l->host,
                                   .model = "apc",
                                   .credential_file = l->community,
                                   .outlets = outlets,
                                   .n_outlets = 1,
                                   .now_ns = fake_now };
    struct meter *m = open_meter(&cfg);
    double got_j = 0, want_j = 0;
    for (int i = 0; i < STEPS; i++) {
        char text[16];
        struct meter_reading r[METER_READINGS_MAX];
        int watts = 40 + i * 37 % 101;
        (void)snprintf(text, sizeof text, "%d", watts);
        harness_write(l->dir, "watts", text);
        atomic_store(&fake_ns, (1000 + i) * INT64_C(1000000000));
        assert_int_equal(meter_snmp.read(m, r), 1);
        expect_watts(&r[0], watts);
        assert_true(fabs(r[0].from_ms - (1000 + i) * 1e3) < HARNESS_MS / 2 && r[0].to_ms == r[0].from_ms);
        want_j += watts;
        got_j += r[0].value;
    }
    meter_snmp.close(m);
    assert_true(got_j == want_j);
}

static double real_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void expect_one(const struct meter_cfg *cfg, double watts)
{
    struct meter_reading r[METER_READINGS_MAX];
    double begin = real_ms();
    read_once(cfg, r);
    expect_watts(&r[0], watts);
    assert_true(r[0].from_ms >= begin - 1 && r[0].from_ms <= real_ms());
}

static void version_3_is_spoken_with_and_without_privacy(void **state)
{
    const struct lab *l = *state;
    const struct meter_outlet outlets[] = { { a, 5 } };
    struct meter_cfg cfg = {
        .host = l->host, .model = "apc", .credential_file = l->both, .version = 3, .outlets = outlets, .n_outlets = 1
    };
    expect_one(&cfg, 105);
    cfg.credential_file = l->one;
    expect_one(&cfg, 105);
}

/* --- what is wrong --- */

static const struct {
    const char *name, *secret;
    int version;
    const char *why;
} strangers[] = {
    { "an unknown community", "nobody", 2, "community" },
    { "an unknown user", "nobody:authpass12:privpass12", 3, "" },
    { "a wrong password", "both:authpass13:privpass12", 3, "" },
    { "a wrong privacy password", "both:authpass12:privpass13", 3, "" },
    { "less than the user must have", "both:authpass12", 3, "" },
};

static void a_stranger_gets_no_value_within_the_time_and_the_right_one_does_after_it(void **state)
{
    struct lab *l = *state;
    const struct meter_outlet outlets[] = { { a, 6 }, { b, 7 } };
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
        char file[256];
        write_secret(l, "stranger", strangers[i].secret, file);
        struct meter_cfg cfg = { .host = l->host,
                                 .model = "apc",
                                 .credential_file = file,
                                 .outlets = outlets,
                                 .version = strangers[i].version,
                                 .n_outlets = 2,
                                 .timeout_ms = WAIT_MS };
        struct meter_reading r[METER_READINGS_MAX];
        int64_t begin = clock_ms();
        read_once(&cfg, r);
        int64_t took = clock_ms() - begin;
        if (took > WAIT_MS + HARNESS_MS / 2)
            fail_msg("%s: it took %d ms", strangers[i].name, (int)took);
        expect_failed(&r[1], strangers[i].why);
        assert_null(strstr(r[0].why, "pass1"));
        cfg.credential_file = strangers[i].version == 2 ? l->community : l->both;
        cfg.timeout_ms = 0;
        cfg.n_outlets = 1;
        expect_one(&cfg, 106);
    }
}

static void nothing_is_printed_and_no_file_is_made(void **state)
{
    struct lab *l = *state;
    const struct meter_outlet outlets[] = { { a, 6 } };
    const char *const secrets[] = { "both:authpass13:privpass12", "nobody:authpass12:privpass12" };
    AUTO_FREE char *path = harness_path(l->dir, "stderr");
    AUTO_CLOSE int err = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    AUTO_CLOSE int out_was = dup(STDOUT_FILENO), err_was = dup(STDERR_FILENO);
    assert_true(err >= 0 && dup2(err, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
    int n = 0;
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        char file[256];
        write_secret(l, "stranger", secrets[i], file);
        const struct meter_cfg cfg = { .host = l->host,
                                       .model = "apc",
                                       .credential_file = file,
                                       .version = 3,
                                       .outlets = outlets,
                                       .n_outlets = 1,
                                       .timeout_ms = WAIT_MS };
        struct meter *m = NULL;
        struct meter_reading r[METER_READINGS_MAX];
        if (meter_snmp.open(&m, &cfg, NULL) == 0)
            n += meter_snmp.read(m, r);
        meter_snmp.close(m);
    }
    (void)fflush(NULL);
    assert_true(dup2(out_was, STDOUT_FILENO) >= 0 && dup2(err_was, STDERR_FILENO) >= 0);
    assert_int_equal(n, 2);
    AUTO_FREE char *text = harness_read(l->dir, "stderr");
    assert_string_equal(text, "");
    AUTO_FREE char *home = harness_path(l->dir, "home");
    char *argv[] = { "/usr/bin/find", home, "-type", "f", NULL };
    struct harness_output o = harness_run(argv, HARNESS_MS);
    assert_int_equal(harness_count(o.out, "\n"), 1); /* our own snmp.conf */
    harness_output_done(&o);
}

static void a_probe_tells_of_each_outlet(void **state)
{
    const struct lab *l = *state;
    const struct meter_outlet outlets[] = { { a, 1 }, { b, 99 } };
    struct meter_cfg cfg = { .host = l->host,
                             .model = "apc",
                             .credential_file = l->community,
                             .outlets = outlets,
                             .n_outlets = 2,
                             .timeout_ms = WAIT_MS };
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    assert_int_equal(meter_snmp.probe(&cfg, &detail, &fix), 0);
    assert_non_null(strstr(buf_text(&detail), "a 101 W, b: the PDU has no such outlet"));
    assert_int_equal(fix.len, 0);
    cfg.credential_file = NULL;
    assert_true(meter_snmp.probe(&cfg, &detail, &fix) < 0);
    assert_non_null(strstr(buf_text(&fix), "snmpget"));
}

/* --- an agent of our own: one thread. An answer is the request with another tag, and its values are all NULL. --- */

struct peer {
    int fd, stop[2];
    uint16_t port;
    char host[32];
    pthread_t thread;
    _Atomic size_t fits; /* bytes of a request beyond which the answer is "too big"; 0: none is */
    _Atomic int requests, drop;
    enum { PEER_ECHO, PEER_SILENT, PEER_GARBAGE, PEER_OTHER } manner;
};

/* SEQUENCE { version, community, [0] { request id, error status, error index, … } }, each length below 128 or in two bytes. */
static unsigned char *pdu_of(unsigned char *p, size_t len)
{
    unsigned char *end = p + len;
    p += 2 + (p[1] & 0x80 ? p[1] & 0x7f : 0);
    for (int i = 0; i < 2 && p < end; i++)
        p += 2 + p[1];
    return p;
}

static void answer(struct peer *p, unsigned char *bytes, size_t len, const struct sockaddr_in *to)
{
    unsigned char *pdu = pdu_of(bytes, len);
    unsigned char *id = pdu + 2 + (pdu[1] & 0x80 ? pdu[1] & 0x7f : 0), *status = id + 2 + id[1];
    pdu[0] = 0xa2;
    size_t fits = atomic_load(&p->fits);
    if (fits && len > fits)
        status[2] = 1;
    if (p->manner == PEER_OTHER)
        bytes[len - 3]++; /* the last arc */
    if (p->manner == PEER_GARBAGE)
        memset(bytes + 2, 0xff, len - 2);
    (void)sendto(p->fd, bytes, len, 0, (const struct sockaddr *)to, sizeof *to);
}

static void *serve(void *peer)
{
    struct peer *p = peer;
    unsigned char bytes[8192];
    struct pollfd fds[] = { { .fd = p->fd, .events = POLLIN }, { .fd = p->stop[0], .events = POLLIN } };
    while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        ssize_t len = recvfrom(p->fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size);
        int n = atomic_fetch_add(&p->requests, 1);
        if (len > 20 && p->manner != PEER_SILENT && n >= atomic_load(&p->drop))
            answer(p, bytes, (size_t)len, &from);
    }
    return NULL;
}

static void start_peer(struct peer *p)
{
    p->fd = bind_loopback(&p->port);
    (void)snprintf(p->host, sizeof p->host, "127.0.0.1:%u", p->port);
    assert_int_equal(pipe2(p->stop, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
}

static void stop_peer(struct peer *p)
{
    assert_int_equal(write(p->stop[1], "", 1), 1);
    assert_int_equal(pthread_join(p->thread, NULL), 0);
    (void)close(p->fd);
    (void)close(p->stop[0]);
    (void)close(p->stop[1]);
}

static void read_peer(const struct peer *p, size_t n, int timeout_ms, int times, struct meter_reading *r)
{
    struct meter_outlet outlets[METER_READINGS_MAX];
    for (size_t i = 0; i < n; i++)
        outlets[i] = (struct meter_outlet){ a, (int)i + 1 };
    const struct meter_cfg cfg = {
        .host = p->host, .model = "apc", .outlets = outlets, .n_outlets = n, .timeout_ms = timeout_ms
    };
    struct meter *m = open_meter(&cfg);
    for (int i = 0; i < times; i++)
        assert_int_equal(meter_snmp.read(m, r), n);
    meter_snmp.close(m);
}

static void a_request_that_is_lost_is_sent_once_more(void **state)
{
    (void)state;
    struct peer p = { .drop = 1 };
    struct meter_reading r[METER_READINGS_MAX];
    start_peer(&p);
    read_peer(&p, 1, WAIT_MS, 1, r);
    stop_peer(&p);
    assert_int_equal(p.requests, 2);
    expect_failed(&r[0], "no number"); /* NULL is one */

    p = (struct peer){ .drop = 2 };
    start_peer(&p);
    read_peer(&p, 1, WAIT_MS, 1, r);
    stop_peer(&p);
    assert_int_equal(p.requests, 2);
    expect_failed(&r[0], "does not answer");
}

static void too_big_an_answer_is_asked_for_in_parts_from_then_on(void **state)
{
    (void)state;
    struct peer p = { .fits = 300 };
    struct meter_reading r[METER_READINGS_MAX];
    start_peer(&p);
    read_peer(&p, 32, 0, 1, r);
    int once = p.requests;
    read_peer(&p, 32, 0, 2, r);
    int twice = p.requests - once;
    atomic_store(&p.fits, 1);
    read_peer(&p, 3, 0, 1, r + 32);
    stop_peer(&p);
    for (int i = 0; i < 32; i++)
        expect_failed(&r[i], "no number");
    for (int i = 32; i < 35; i++)
        expect_failed(&r[i], "no room");
    assert_int_equal(once, 6);         /* 32, 16 are too many: 4 times 8 */
    assert_int_equal(twice, once + 4); /* and it is remembered */
}

static void what_is_no_answer_is_no_value(void **state)
{
    (void)state;
    struct meter_reading r[METER_READINGS_MAX];
    struct peer p = { .manner = PEER_GARBAGE };
    start_peer(&p);
    read_peer(&p, 2, WAIT_MS, 1, r);
    stop_peer(&p);
    expect_failed(&r[0], "not to be understood");
    p = (struct peer){ .manner = PEER_OTHER };
    start_peer(&p);
    read_peer(&p, 2, WAIT_MS, 1, r);
    stop_peer(&p);
    expect_failed(&r[0], "something else");
    expect_failed(&r[1], "something else");
}

struct waiting {
    struct peer peer;
    struct meter *m;
    struct meter_reading r[METER_READINGS_MAX];
    _Atomic bool over;
};

static void *read_in_vain(void *arg)
{
    struct waiting *w = arg;
    (void)meter_snmp.read(w->m, w->r);
    atomic_store(&w->over, true);
    return NULL;
}

static bool was_asked(void *arg)
{
    return atomic_load(&((struct waiting *)arg)->peer.requests) > 0;
}

static void a_pdu_that_is_silent_delays_no_other(void **state)
{
    struct lab *l = *state;
    struct waiting w = { .peer.manner = PEER_SILENT };
    start_peer(&w.peer);
    const struct meter_outlet outlets[] = { { a, 1 } };
    struct meter_cfg cfg = { .host = w.peer.host,
                             .model = "apc",
                             .credential_file = l->both,
                             .version = 3,
                             .outlets = outlets,
                             .n_outlets = 1 };
    w.m = open_meter(&cfg);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_in_vain, &w), 0);
    assert_true(harness_wait(was_asked, &w, HARNESS_MS));
    cfg.host = l->host;
    expect_one(&cfg, 101);
    bool waited = atomic_load(&w.over);
    assert_int_equal(pthread_join(thread, NULL), 0);
    meter_snmp.close(w.m);
    stop_peer(&w.peer);
    assert_false(waited);
    expect_failed(&w.r[0], "does not answer");
}

/* --- an agent that goes away --- */

static void an_agent_that_goes_away_is_a_gap_until_it_is_back(void **state)
{
    struct lab *l = *state;
    const struct meter_outlet outlets[] = { { a, 8 } };
    struct meter_cfg cfg = { .host = l->host,
                             .model = "apc",
                             .credential_file = l->community,
                             .outlets = outlets,
                             .n_outlets = 1,
                             .timeout_ms = WAIT_MS };
    struct meter_cfg cfg3 = cfg;
    cfg3.credential_file = l->both;
    cfg3.version = 3;
    struct meter *m[] = { open_meter(&cfg), open_meter(&cfg3), open_meter(&cfg3) };
    struct meter_reading r[METER_READINGS_MAX];
    for (size_t i = 0; i < ARRAY_LEN(m); i++) {
        assert_int_equal(meter_snmp.read(m[i], r), 1);
        expect_watts(&r[0], 108);
    }
    stop_agent(l);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(meter_snmp.read(m[i], r), 1);
        expect_failed(&r[0], "does not answer");
    }
    start_agent(l); /* with another engine id: the third meter was not read meanwhile, and has the old one's */
    for (size_t i = 0; i < ARRAY_LEN(m); i++) {
        assert_int_equal(meter_snmp.read(m[i], r), 1);
        expect_watts(&r[0], 108);
        meter_snmp.close(m[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outlets_are_read_and_each_that_has_no_power_says_why),
        cmocka_unit_test(an_outlet_that_the_agent_refuses_does_not_spoil_the_others),
        cmocka_unit_test(more_outlets_than_an_answer_holds_are_asked_in_turn),
        cmocka_unit_test(each_model_and_an_oid_of_ones_own_have_their_scale),
        cmocka_unit_test(the_sum_of_the_readings_is_the_scripts),
        cmocka_unit_test(version_3_is_spoken_with_and_without_privacy),
        cmocka_unit_test(a_stranger_gets_no_value_within_the_time_and_the_right_one_does_after_it),
        cmocka_unit_test(nothing_is_printed_and_no_file_is_made),
        cmocka_unit_test(a_probe_tells_of_each_outlet),
        cmocka_unit_test(a_request_that_is_lost_is_sent_once_more),
        cmocka_unit_test(too_big_an_answer_is_asked_for_in_parts_from_then_on),
        cmocka_unit_test(what_is_no_answer_is_no_value),
        cmocka_unit_test(a_pdu_that_is_silent_delays_no_other),
        cmocka_unit_test(an_agent_that_goes_away_is_a_gap_until_it_is_back),
    };
    return cmocka_run_group_tests_name("snmp", tests, open_lab, close_lab);
}
