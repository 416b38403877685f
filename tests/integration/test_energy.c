/* `pipetune energy`, and the joules that other commands tell, with the built program over a store made here, and over a small server of our
 * own that answers as an InfluxDB does. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
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

#include <cmocka.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "monitoring/features.h"
#include "store/energy.h"
#include "store/samples.h"
#include "store/store.h"
#include "tests/integration/harness.h"

enum { WORDS = 16, SECONDS = 22 };

static const int64_t T0 = 1700000000000;

#define TEXT(literal) ((char *)(uintptr_t)(literal))
#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

/* --- the server: one thread, one connection at a time. It has rows, and hands out as many as it likes. --- */

struct table {
    const char *measurement, *columns; /* of JSON */
    struct buf rows;                   /* one per line: TIME_NS CONDITION|JSON values */
};

struct peer {
    int listener;
    uint16_t port;
    pthread_t thread;
    struct table tables[4];
    const char *fixed; /* a whole HTTP answer instead; "" closes the connection */
    size_t most;       /* rows at once; more is partial */
    char head[4096];
    char *query; /* the last one, decoded */
    int requests;
};

/* The form's value of this key, decoded. */
static char *form_value(const char *form, const char *key)
{
    struct buf b = BUF_INIT;
    const char *at = strstr(form, key);
    assert_non_null(at);
    for (at += strlen(key); *at && *at != '&'; at++) {
        char hex[3] = { at[0] == '%' ? at[1] : '\0', at[0] == '%' ? at[2] : '\0' };
        buf_putc(&b, *hex ? (char)strtol(hex, NULL, 16) : *at);
        at += *hex ? 2 : 0;
    }
    return buf_take(&b);
}

/* By a query that asks for this tag, only rows with one of the values it names; rows without the tag have an empty one. */
static bool has_tag(const char *query, const char *tags, const char *key)
{
    char asked[32], had[32], both[128];
    (void)snprintf(asked, sizeof asked, "\"%s\" = '", key);
    (void)snprintf(had, sizeof had, "&%s=", key);
    const char *at = strstr(tags, had);
    at = at ? at + strlen(had) : "";
    (void)snprintf(both, sizeof both, "%s%.*s'", asked, (int)strcspn(at, "&"), at);
    return !strstr(query, asked) || strstr(query, both);
}

/* Whether the row's condition is in the query: study = 'x', or nodename = 'y', and whether further tags behind it (&host=…) are asked for. */
static bool wanted(const char *query, const char *row, int64_t *out_time, const char **out_values)
{
    char condition[128] = "", tags[128] = "";
    const char *space = strchr(row, ' '), *bar = space ? strchr(space, '|') : NULL;
    assert_non_null(bar);
    size_t len = strcspn(space + 1, "&|");
    (void)snprintf(condition, sizeof condition, "WHERE %.*s AND ", (int)len, space + 1);
    (void)snprintf(tags, sizeof tags, "%.*s", (int)(bar - space - 1 - (ptrdiff_t)len), space + 1 + len);
    *out_time = strtoll(row, NULL, 10);
    *out_values = bar + 1;
    const char *at = strstr(query, condition), *since = strstr(query, " AND time >= ");
    int64_t from = at && since ? strtoll(since + 13, NULL, 10) : INT64_MAX;
    at = strstr(query, "AND time <= ");
    if (!has_tag(query, tags, "user") || (!strstr(tags, "&node=") && !has_tag(query, tags, "host")))
        return false;
    return *out_time >= from && at && *out_time <= strtoll(at + 12, NULL, 10);
}

static void put_rows(struct buf *to, const struct peer *p, const struct table *t, const char *query)
{
    const char *limit = strstr(query, "ORDER BY time ASC LIMIT "), *offset = strstr(query, " OFFSET ");
    assert_true(limit && offset);
    size_t most = strtoul(limit + 24, NULL, 10), skip = strtoul(offset + 8, NULL, 10), n = 0;
    bool partial = false;
    for (const char *row = buf_text(&t->rows); *row; row = strchr(row, '\n') + 1) {
        int64_t time;
        const char *values;
        if (!wanted(query, row, &time, &values) || skip-- > 0) {
            skip += skip == SIZE_MAX; /* there was nothing to skip */
            continue;
        }
        skip = 0;
        partial = n == p->most;
        if (n == most || partial)
            break;
        if (n++ == 0)
            buf_printf(to, ",\"series\":[{\"name\":\"%s\",\"columns\":%s,\"values\":[", t->measurement, t->columns);
        buf_printf(to, "%s[%" PRId64 ",%.*s]", n > 1 ? "," : "", time, (int)strcspn(values, "\n"), values);
    }
    if (n > 0)
        buf_printf(to, "]%s}]", partial ? ",\"partial\":true" : "");
}

static void answer(struct peer *p, const char *form, struct buf *to)
{
    free(p->query);
    p->query = form_value(form, "q=");
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "{\"results\":[{\"statement_id\":0");
    for (size_t i = 0; i < ARRAY_LEN(p->tables); i++) {
        char from[96];
        (void)snprintf(from, sizeof from, " FROM \"%s\" ", p->tables[i].measurement ? p->tables[i].measurement : "");
        if (strstr(p->query, from))
            put_rows(&body, p, &p->tables[i], p->query);
    }
    buf_puts(&body, "}]}\n");
    buf_printf(to, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body.len);
    buf_put(to, body.data, body.len);
}

/* One request into `in`, its body from *out_body. */
static bool read_request(struct peer *p, int fd, struct buf *in, size_t *out_body)
{
    size_t want = SIZE_MAX, head = 0;
    char chunk[16384];
    while (in->len < want) {
        ssize_t n = recv(fd, chunk, sizeof chunk, 0);
        if (n <= 0)
            return false;
        buf_put(in, chunk, (size_t)n);
        const char *end = head ? NULL : strstr(in->data, "\r\n\r\n");
        if (!end)
            continue;
        head = (size_t)(end - in->data) + 4;
        (void)snprintf(p->head, sizeof p->head, "%.*s", (int)head, in->data);
        const char *length = strstr(p->head, "Content-Length: ");
        want = head + (length ? strtoul(length + 16, NULL, 10) : 0);
    }
    *out_body = head;
    return true;
}

static void serve(struct peer *p, int fd)
{
    struct timeval limit = { .tv_sec = HARNESS_MS / 1000 };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (;;) {
        AUTO_BUF struct buf in = BUF_INIT;
        AUTO_BUF struct buf out = BUF_INIT;
        size_t body = 0;
        if (!read_request(p, fd, &in, &body))
            break;
        p->requests++;
        if (p->fixed)
            buf_puts(&out, p->fixed);
        else
            answer(p, in.data + body, &out);
        if (out.len == 0 || send(fd, out.data, out.len, MSG_NOSIGNAL) < 0 || p->fixed)
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

static struct peer *peer_new(void)
{
    struct peer *p = calloc(1, sizeof *p);
    assert_non_null(p);
    *p = (struct peer){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .most = 7 };
    p->tables[0] = (struct table){
        .measurement = "pipetune_energy",
        .columns = "[\"time\",\"value\",\"error\",\"from_ms\",\"to_ms\",\"state\",\"meter\",\"node\"]",
    };
    p->tables[1] = (struct table){
        .measurement = "pipetune_profile",
        .columns = "[\"time\",\"proc/cpu-time\",\"dt_ms\",\"t_ms\",\"trial\",\"node\"]",
    };
    p->tables[2] = (struct table){ .measurement = "pdu_power/node_utilization", .columns = "[\"time\",\"value\"]" };
    p->tables[3] = (struct table){ .measurement = "pcm_power/node_utilization", .columns = "[\"time\",\"value\"]" };
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

static void peer_done(struct peer *p)
{
    (void)shutdown(p->listener, SHUT_RDWR);
    (void)pthread_join(p->thread, NULL);
    (void)close(p->listener);
    for (size_t i = 0; i < ARRAY_LEN(p->tables); i++)
        buf_done(&p->tables[i].rows);
    free(p->query);
    free(p);
}

/* --- the world: a store, and the same figures as rows of the server --- */

struct shown {
    char *dir, *store;
    struct peer *peer;
    char url[64];
};

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

static int64_t add_study_by(struct store *s, const char *name, const char *config, const char *provenance)
{
    struct err e = { 0 };
    struct store_study row = { .name = TEXT(name),
                               .state = TEXT("finished"),
                               .config = TEXT(config),
                               .provenance = TEXT(provenance),
                               .maximise = true,
                               .created_ms = T0 - 5000,
                               .ended_ms = T0 + 40000 };
    int64_t id = 0;
    check(store_study_add(s, &row, &id, &e), &e);
    return id;
}

static int64_t add_study(struct store *s, const char *name, const char *config)
{
    return add_study_by(s, name, config, "{\"host\":\"here\"}");
}

static int64_t add_trial(struct store *s, int64_t study, int number, bool attempted)
{
    struct err e = { 0 };
    struct store_trial row = { .study = study,
                               .number = number,
                               .state = TEXT(attempted ? "finished" : "failed"),
                               .epochs = 2,
                               .hyper = TEXT("{\"batch_size\":64}"),
                               .effective = TEXT("{\"cores\":2}"),
                               .accuracy = attempted ? 0.9 : (double)NAN,
                               .loss = NAN,
                               .metric = attempted ? 0.9 : (double)NAN,
                               .seconds = attempted ? SECONDS : (double)NAN };
    check(store_trial_add(s, &row, &e), &e);
    struct store_attempt a = { .trial = row.id,
                               .state = TEXT("ended"),
                               .outcome = TEXT("finished"),
                               .started_ms = T0,
                               .ended_ms = T0 + SECONDS * 1000,
                               .startup_s = 2,
                               .cores = NAN };
    if (attempted)
        check(store_attempt_add(s, &a, &e), &e);
    for (int i = 1; attempted && i <= 2; i++) {
        struct store_epoch ep = { .trial = row.id,
                                  .epoch = i,
                                  .attempt = 1,
                                  .accuracy = 0.9,
                                  .seconds = 10,
                                  .records = 1000,
                                  .end_ms = T0 + 2000 + i * 10000 };
        check(store_epoch_put(s, &ep, &e), &e);
    }
    return row.id;
}

/* `peer` NULL: the store alone. */
static void add_reading(struct store *s, struct peer *peer, int64_t study, const char *name, const char *meter,
                        int second, double value)
{
    struct err e = { 0 };
    struct store_reading r = { .meter = meter,
                               .state = isnan(value) ? "discarded" : "ok",
                               .from_ms = (double)T0 + (second - 1) * 1000,
                               .to_ms = (double)T0 + second * 1000,
                               .value = value,
                               .error = isnan(value) ? (double)NAN : 1.0 / 65536 };
    check(store_reading_add(s, study, &r, &e), &e);
    char num[3][NUM_TEXT_MAX];
    if (peer)
        buf_printf(&peer->tables[0].rows, "%" PRId64 " study = '%s'|%s,%s,%.0f,%.0f,\"%s\",\"%s\",\"0\"\n",
                   (T0 + second * 1000) * 1000000, name, num_print(r.value, num[0]), num_print(r.error, num[1]),
                   r.from_ms, r.to_ms, r.state, meter);
}

static void add_sample(struct store *s, struct peer *peer, int64_t trial, const char *name, int number, int second,
                       double cpu_s)
{
    struct err e = { 0 };
    struct reading v[FEATURES];
    for (int i = 0; i < FEATURES; i++)
        v[i] = (struct reading){ .value = NAN, .state = READING_UNSUPPORTED };
    v[FEATURE_PROC_CPU_TIME] = (struct reading){ .value = cpu_s, .state = READING_OK };
    struct store_sample row = { .t_ms = (double)T0 + second * 1000 + 0.125, .dt_ms = 1000, .scope = "process", .v = v };
    check(store_sample_add(s, trial, &row, &e), &e);
    char num[NUM_TEXT_MAX];
    if (peer)
        buf_printf(&peer->tables[1].rows, "%" PRId64 " study = '%s'|%s,1000,%.3f,\"%d\",\"0\"\n",
                   (T0 + second * 1000) * 1000000 + 125000, name, num_print(cpu_s, num), row.t_ms, number);
}

/* Digits that do not end: nothing that is lost on the way stays unseen. */
static double uneven(int second)
{
    return 30 + second / 7.0;
}

#define CONFIG "{\"monitoring\":{\"meters\":[{\"name\":\"rapl\",\"idle_w\":10},\"perf-power\"]}}"

static const char tuner_log[] = "H 1 pipetune 3 0.1 0.01 0.01 2 1 2 1 4\n"
                                "s 1 0 1 0 \"k\" \"k\" 1 2 0 1 2\n"
                                "i 1 10 1 10 1000 3000\n"
                                "i 1 20 2 10 1000 3000\n"
                                "d 1\n"
                                "s 2 0 0 0 \"k\" \"k\" 1 2 0 1 2\n"
                                "a 2 0 0 0\n"
                                "i 2 10 1 10 1000 3000\n"
                                "i 2 20 2 10 1000 3000\n"
                                "d 2\n";

/* Two trials at once, of which the second uses half as much CPU time; the third never began. */
static void fill_demo(struct store *s, struct peer *peer)
{
    struct err e = { 0 };
    int64_t demo = add_study(s, "demo", CONFIG);
    int64_t trials[2] = { add_trial(s, demo, 1, true), add_trial(s, demo, 2, true) };
    (void)add_trial(s, demo, 3, false);
    for (int t = 1; t <= SECONDS; t++) {
        add_reading(s, peer, demo, "demo", "rapl", t, uneven(t));
        add_reading(s, peer, demo, "demo", "cpu", t, 2);
        if (t <= 12)
            add_reading(s, peer, demo, "demo", "perf-power", t, 2 * uneven(t));
        add_sample(s, peer, trials[0], "demo", 1, t, 1);
        add_sample(s, peer, trials[1], "demo", 2, t, 0.5);
    }
    check(store_tuner_log_add(s, demo, tuner_log, &e), &e);
}

/* Measured where there was a RAPL to read, and estimated all along. */
static void fill_others(struct store *s)
{
    int64_t study = add_study(s, "guess", "{\"monitoring\":{\"meters\":{\"name\":\"estimate\",\"idle_w\":5}}}");
    int64_t trial = add_trial(s, study, 1, true);
    int64_t half = add_study(s, "half", CONFIG), trial_half = add_trial(s, half, 1, true);
    int64_t both = add_study(s, "both", "{\"monitoring\":{\"meters\":[\"rapl\",\"estimate\"]}}");
    int64_t trial_both = add_trial(s, both, 1, true);
    for (int t = 1; t <= SECONDS; t++) {
        add_reading(s, NULL, study, "guess", "estimate", t, 15);
        add_reading(s, NULL, study, "guess", "cpu", t, 1);
        add_sample(s, NULL, trial, "guess", 1, t, 1);
        add_reading(s, NULL, half, "half", "rapl", t, t <= 11 ? 30 : (double)NAN);
        add_reading(s, NULL, half, "half", "cpu", t, 1);
        add_sample(s, NULL, trial_half, "half", 1, t, 1);
        add_reading(s, NULL, both, "both", "rapl", t, 30);
        add_reading(s, NULL, both, "both", "estimate", t, 15);
        add_reading(s, NULL, both, "both", "cpu", t, 1);
        add_sample(s, NULL, trial_both, "both", 1, t, 1);
    }
}

/* What others wrote of two nodes: one has a name that begins as the other's does. */
static void fill_nodes(struct store *s, struct peer *peer)
{
    int64_t study = add_study(s, "old", "{\"nodes\":[\"eiger-1\",{\"host\":\"eiger-10\"},\"it's\"]}");
    (void)add_trial(s, study, 1, true);
    for (int t = -1; t <= SECONDS + 1; t++) {
        int64_t ns = (T0 + t * 1000) * 1000000;
        buf_printf(&peer->tables[2].rows, "%" PRId64 " nodename = 'eiger-1'|%d\n", ns, 100);
        buf_printf(&peer->tables[2].rows, "%" PRId64 " nodename = 'eiger-10'|%d.5\n", ns, 200);
        buf_printf(&peer->tables[3].rows, "%" PRId64 " nodename = 'eiger-1'|\"%d.25\"\n", ns, 80); /* a text */
    }
    buf_printf(&peer->tables[3].rows, "%" PRId64 " nodename = 'it\\'s'|\"none\"\n", T0 * 1000000);
}

/* The driver's machine among the nodes by two names, and one node twice; and points that are missing. */
static void fill_twice(struct store *s, struct peer *peer)
{
    static const char config[] = "{\"nodes\":[\"driver\",\"localhost\",\"eiger-2\",\"eiger-2\"]}";
    (void)add_trial(s, add_study_by(s, "twice", config, "{\"host\":\"driver\"}"), 1, true);
    for (int t = -1; t <= SECONDS + 1; t++) {
        int64_t ns = (T0 + t * 1000) * 1000000;
        bool missing = t == 5 || t == 6;
        buf_printf(&peer->tables[2].rows, "%" PRId64 " nodename = 'driver'|%d\n", ns, 10);
        buf_printf(&peer->tables[2].rows, "%" PRId64 " nodename = 'localhost'|%d\n", ns, 10);
        if (!missing)
            buf_printf(&peer->tables[3].rows, "%" PRId64 " nodename = 'eiger-2'|%d\n", ns, 50);
    }
}

/* The same study by two users and on two machines at once; and what somebody wrote without such tags. Of a node's readings of one second the
 * first counts, so others' come first. */
static void fill_ours(struct store *s, struct peer *peer)
{
    static const struct {
        const char *tags, *meter;
        int node, value;
    } rows[] = { { "&host=there&user=ann", "rapl", 0, 70 },     { "&host=here&user=bob", "rapl", 0, 80 },
                 { "&host=here&user=ann", "rapl", 0, 30 },      { "&host=n1&user=bob&node=1", "rapl", 1, 90 },
                 { "&host=n1&user=ann&node=1", "rapl", 1, 40 }, { "", "pcm", 0, 20 } };
    static const char provenance[] = "{\"host\":\"here\",\"user\":\"ann\"}";
    (void)add_trial(s, add_study_by(s, "ours", "{\"nodes\":[\"n1\"]}", provenance), 1, true);
    for (int i = 0; i < SECONDS * (int)ARRAY_LEN(rows); i++) {
        size_t k = (size_t)i % ARRAY_LEN(rows);
        int64_t to_ms = T0 + 1000 * (1 + i / (int)ARRAY_LEN(rows));
        buf_printf(&peer->tables[0].rows,
                   "%" PRId64 " study = 'ours'%s|%d,null,%" PRId64 ",%" PRId64 ",\"ok\",\"%s\",\"%d\"\n",
                   to_ms * 1000000, rows[k].tags, rows[k].value, to_ms - 1000, to_ms, rows[k].meter, rows[k].node);
    }
}

/* The server's own URL with a secret in the config. */
static void fill_secret(struct store *s, const char *dir, const char *url)
{
    char config[512];
    AUTO_FREE char *file = harness_path(dir, "stored");
    harness_write(dir, "stored", "me:hunter2\n");
    assert_int_equal(chmod(file, 0600), 0);
    static const char *const names[] = { "stored", "elsewhere" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(config, sizeof config,
                       "{\"influxdb\":{\"url\":\"%s\",\"credential_file\":\"%s\",\"retention_policy\":\"long\"}}",
                       i == 0 ? url : "http://127.0.0.1:9", file);
        (void)add_trial(s, add_study(s, names[i], config), 1, true);
    }
}

/* A meter whose readings were all discarded. */
static void fill_lost(struct store *s)
{
    int64_t study = add_study(s, "lost", CONFIG), trial = add_trial(s, study, 1, true);
    for (int t = 1; t <= SECONDS; t++) {
        add_reading(s, NULL, study, "lost", "rapl", t, NAN);
        add_reading(s, NULL, study, "lost", "cpu", t, 1);
        add_sample(s, NULL, trial, "lost", 1, t, 1);
    }
}

static int make_world(void **state)
{
    struct shown *w = calloc(1, sizeof *w);
    struct store *s = NULL;
    struct err e = { 0 };
    assert_non_null(w);
    w->dir = harness_dir();
    w->store = harness_path(w->dir, "pipetune.db");
    w->peer = peer_new();
    (void)snprintf(w->url, sizeof w->url, "http://127.0.0.1:%u", w->peer->port);
    check(store_open(&s, w->store, STORE_WRITE, &e), &e);
    check(store_begin(s, &e), &e);
    fill_demo(s, w->peer);
    fill_others(s);
    fill_nodes(s, w->peer);
    fill_twice(s, w->peer);
    fill_ours(s, w->peer);
    fill_secret(s, w->dir, w->url);
    fill_lost(s);
    (void)add_trial(s, add_study(s, "bare", "{}"), 1, true);
    check(store_commit(s, &e), &e);
    store_close(s);
    peer_begin(w->peer);
    *state = w;
    return 0;
}

static int end_world(void **state)
{
    struct shown *w = *state;
    peer_done(w->peer);
    harness_remove(w->dir);
    free(w->store);
    free(w);
    return 0;
}

/* Runs pipetune with these words; "@" is the store's path, "%" the server's URL. */
static struct harness_output look(const struct shown *w, const char *const *words)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[WORDS + 4] = { program };
    size_t n = 1;
    for (; *words; words++)
        argv[n++] = TEXT(strcmp(*words, "@") == 0 ? w->store : strcmp(*words, "%") == 0 ? w->url : *words);
    return harness_run(argv, HARNESS_MS);
}

#define LOOK(w, ...) look(w, (const char *const[]){ __VA_ARGS__, NULL })

static json_t *parsed(const struct harness_output *o)
{
    json_error_t e;
    json_t *j = json_loads(o->out, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("no JSON: %s line %d; stdout: %s stderr: %s", e.text, e.line, o->out, o->err);
    return j;
}

static void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %s", part, text);
}

static void expect_no_text(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("there is '%s' in: %s", part, text);
}

static json_t *at(json_t *j, const char *path)
{
    while (*path && j) {
        char key[64];
        size_t n = strcspn(path, "/");
        (void)snprintf(key, sizeof key, "%.*s", (int)n, path);
        j = json_is_array(j) ? json_array_get(j, strtoul(key, NULL, 10)) : json_object_get(j, key);
        path += n + (path[n] == '/');
    }
    return j;
}

static void expect_number(json_t *j, const char *path, double want)
{
    json_t *value = at(j, path);
    double got = json_is_null(value) ? (double)NAN : json_number_value(value);
    if (!value || (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-9 * fmax(1, fabs(want)))))
        fail_msg("%s: got %.12g, want %.12g", path, got, want);
}

static void expect_json(json_t *j, const char *path, const char *want)
{
    json_t *value = at(j, path);
    if (!value)
        fail_msg("no '%s'", path);
    AUTO_FREE char *got = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    if (strcmp(got, want) != 0)
        fail_msg("%s: got %s, want %s", path, got, want);
}

/* Sum over these seconds of what is above `idle`, times `share`. */
static double joules(int from, int to, double idle, double share)
{
    double j = 0;
    for (int t = from + 1; t <= to; t++)
        j += (uneven(t) - idle) * share;
    return j;
}

/* --- the command --- */

static void test_json_has_nodes_trials_epochs_and_meters(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "energy", "demo", "--json", "--store", "@");
    assert_int_equal(o.code, 0);
    json_t *j = parsed(&o);
    expect_json(j, "study", "\"demo\"");
    expect_json(j, "nodes/0/meter", "\"rapl\"");
    expect_json(j, "nodes/0/name", "\"here\"");
    expect_json(j, "nodes/0/source", "\"measured\"");
    expect_number(j, "nodes/0/j", joules(0, SECONDS, 0, 1));
    expect_number(j, "nodes/0/idle_j", 10 * SECONDS);
    expect_number(j, "nodes/0/idle_w", 10);
    expect_number(j, "nodes/0/coverage", 1);
    expect_number(j, "nodes/0/discarded", 0);
    double sum = json_number_value(at(j, "nodes/0/idle_j")) + json_number_value(at(j, "nodes/0/trials_j")) +
                 json_number_value(at(j, "nodes/0/other_j"));
    expect_number(j, "nodes/0/j", sum);
    expect_json(j, "nodes/1/meter", "\"perf-power\"");
    assert_int_equal(json_array_size(at(j, "trials")), 2); /* the third never began */
    expect_json(j, "trials/0/trial", "1");
    expect_json(j, "trials/0/source", "\"attributed\"");
    expect_json(j, "trials/0/meter", "\"rapl\"");
    double first = json_number_value(at(j, "trials/0/j")), want = joules(0, SECONDS, 10, 0.5);
    assert_true(fabs(first - want) < 0.01 * want); /* samples end an eighth of a millisecond later than readings */
    assert_int_equal(json_array_size(at(j, "trials/0/epochs")), 2);
    expect_number(j, "trials/0/idle_w", 10);
    expect_number(j, "trials/0/epochs/1/idle_w", 10);
    expect_json(j, "trials/0/epochs/1/epoch", "2");
    expect_json(j, "trials/0/epochs/1/source", "\"attributed\"");
    expect_json(j, "meters/0/a", "\"rapl\"");
    expect_json(j, "meters/0/b", "\"perf-power\"");
    expect_number(j, "meters/0/ratio", 2);
    expect_number(j, "meters/0/drift", 1);
    expect_number(j, "meters/0/seconds", 12);
    expect_json(j, "saved/label", "\"estimated difference\"");
    expect_json(j, "saved/source", "\"attributed\"");
    expect_json(j, "carbon", "null");
    expect_json(j, "cost", "null");
    json_decref(j);
}

static void test_text_tells_each_figure_with_its_source(void **state)
{
    AUTO_OUTPUT struct harness_output o =
        LOOK(*state, "energy", "demo", "--store", "@", "--carbon", "400", "--price", "0.3");
    assert_int_equal(o.code, 0);
    static const char *const there[] = { "study demo: energy, by readings from store",
                                         "rapl",
                                         "measured",
                                         "attributed (rapl)",
                                         "perf-power over rapl",
                                         "trials together: ",
                                         "estimated difference, attributed (rapl)",
                                         "carbon: ",
                                         " by the nodes as a whole (at 400 g per kWh)",
                                         "cost: " };
    for (size_t i = 0; i < ARRAY_LEN(there); i++)
        expect_text(o.out, there[i]);
    expect_text(o.out, "55 % !"); /* perf-power was read for 12 of 22 seconds */
    expect_text(o.out, "less than 95 %");
    expect_no_text(o.out, "nan");
    expect_no_text(o.out, "idle power included");
    AUTO_OUTPUT struct harness_output plain = LOOK(*state, "energy", "demo", "--store", "@");
    expect_no_text(plain.out, "carbon");
    expect_no_text(plain.out, "cost:");
}

static void test_csv_has_a_row_per_node_trial_and_epoch(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "energy", "demo", "--csv", "--meter", "rapl", "--store", "@");
    assert_int_equal(o.code, 0);
    static const char head[] = "kind,node,name,trial,epoch,meter,source,j,error_j,wh,coverage,discarded,idle_j,idle_w,"
                               "trials_j,other_j\nnode,0,here,,,rapl,measured,";
    if (strncmp(o.out, head, strlen(head)) != 0)
        fail_msg("got %s", o.out);
    assert_int_equal(harness_count(o.out, "\n"), 8);
    assert_int_equal(harness_count(o.out, "\nepoch,,,2,"), 2);
    assert_int_equal(harness_count(o.out, ",0,,10,,\n"), 6); /* the baseline of each trial and epoch */
    for (const char *line = o.out; *line; line = strchr(line, '\n') + 1) {
        size_t commas = 0;
        for (const char *p = line; *p != '\n'; p++)
            commas += *p == ',';
        assert_int_equal(commas, 15);
    }
}

static void test_one_meter_may_be_asked_for(void **state)
{
    AUTO_OUTPUT struct harness_output o =
        LOOK(*state, "energy", "demo", "--json", "--meter", "perf-power", "--store", "@");
    json_t *j = parsed(&o);
    assert_int_equal(json_array_size(at(j, "nodes")), 1);
    expect_json(j, "trials/0/meter", "\"perf-power\"");
    expect_json(j, "meters", "[]");
    json_decref(j);
    AUTO_OUTPUT struct harness_output none = LOOK(*state, "energy", "demo", "--meter", "pdu", "--store", "@");
    assert_int_equal(none.code, 2);
    expect_text(none.err, "no readings of a meter 'pdu': it has those of rapl, perf-power");
}

static void test_what_was_not_read_is_absent(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "energy", "bare", "--store", "@");
    assert_int_equal(o.code, 0);
    expect_text(o.out, "energy absent: no meter was read");
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "energy", "bare", "--json", "--carbon", "5", "--store", "@");
    json_t *j = parsed(&json);
    expect_json(j, "nodes", "[]");
    expect_json(j, "meters", "[]");
    expect_json(j, "saved", "null");
    expect_json(j, "carbon", "{\"g_per_kwh\":5,\"trials_g\":null,\"nodes_g\":null}");
    json_decref(j);
}

static void test_an_estimate_stands_beside_what_was_measured_and_not_over_it(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "energy", "both", "--store", "@");
    expect_text(o.out, "estimated");
    expect_text(o.out, "measured");
    expect_text(o.out, "ranks settings as CPU time does, and is not compared with measurements");
    expect_no_text(o.out, "estimate over rapl");
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "energy", "both", "--json", "--store", "@");
    json_t *j = parsed(&json);
    assert_int_equal(json_array_size(at(j, "nodes")), 2);
    expect_json(j, "meters", "[]");
    json_decref(j);
}

static void test_readings_that_were_all_discarded_are_told_as_such(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "energy", "lost", "--store", "@");
    assert_int_equal(o.code, 0);
    expect_no_text(o.out, "no meter was read");
    expect_text(o.out, "readings of rapl were all discarded or failed (22)");
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "energy", "lost", "--json", "--store", "@");
    json_t *j = parsed(&json);
    expect_json(j, "nodes/0/meter", "\"rapl\"");
    expect_json(j, "nodes/0/j", "null");
    expect_json(j, "nodes/0/coverage", "null");
    expect_number(j, "nodes/0/discarded", SECONDS);
    expect_json(j, "trials/0/j", "null");
    expect_json(j, "trials/0/source", "\"absent\"");
    json_decref(j);
}

/* --- other commands --- */

static void test_show_tells_joules_with_their_source(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "show", "half", "--store", "@");
    expect_text(o.out, "energy, J 220  energy is attributed (rapl)");
    expect_text(o.out, "\n  50 % of its energy covered\n");
    AUTO_OUTPUT struct harness_output one = LOOK(*state, "show", "half", "1", "--store", "@");
    expect_text(one.out, "energy 220 J attributed (rapl), 50 % covered; by epoch: pipetune energy half/1");
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "show", "half", "--json", "--store", "@");
    json_t *j = parsed(&json);
    expect_json(j, "trials/0/energy/source", "\"attributed (rapl)\"");
    assert_true(fabs(json_number_value(at(j, "trials/0/energy/j")) - 220) < 0.1);
    assert_true(fabs(json_number_value(at(j, "trials/0/energy/coverage")) - 0.5) < 0.001);
    json_decref(j);
    AUTO_OUTPUT struct harness_output bare = LOOK(*state, "show", "bare", "--store", "@");
    expect_no_text(bare.out, "energy");
}

static void test_ls_sums_the_trials(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "ls", "--json", "--store", "@");
    json_t *j = parsed(&o);
    for (size_t i = 0; i < json_array_size(j); i++) {
        const char *name = json_string_value(at(json_array_get(j, i), "study"));
        double got = json_number_value(at(json_array_get(j, i), "energy_j")), want = joules(0, SECONDS, 10, 0.75);
        if (strcmp(name, "demo") == 0)
            assert_true(fabs(got - want) < 0.01 * want);
        if (strcmp(name, "bare") == 0)
            assert_true(json_is_null(at(json_array_get(j, i), "energy_j")));
    }
    json_decref(j);
}

static void test_compare_refuses_to_divide_what_was_estimated_by_what_was_measured(void **state)
{
    AUTO_OUTPUT struct harness_output mixed = LOOK(*state, "compare", "half", "guess", "bare", "--store", "@");
    assert_int_equal(mixed.code, 0);
    expect_text(mixed.out, "220  attributed (rapl)");
    expect_text(mixed.out, "220  estimated (estimate)");
    expect_text(mixed.out, "absent");
    expect_text(mixed.out, "joules of different sources are not compared");
    expect_no_text(mixed.out, "220 (");
    AUTO_OUTPUT struct harness_output alike = LOOK(*state, "compare", "half", "demo", "--store", "@");
    expect_no_text(alike.out, "not compared");
    expect_text(alike.out, "energy is attributed (rapl)\n\n");
    expect_text(alike.out, " (+");
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "compare", "guess", "bare", "--json", "--store", "@");
    json_t *j = parsed(&json);
    expect_json(j, "0/energy_source", "\"estimated (estimate)\"");
    expect_json(j, "1/energy_j", "null");
    expect_json(j, "1/energy_source", "\"absent\"");
    json_decref(j);
}

static void test_idle_power_is_told_where_it_is_in_the_joules(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "energy", "both", "--store", "@");
    expect_text(o.out, "trials together: 660 J attributed (rapl), idle power included (± ");
    assert_int_equal(harness_count(o.out, "idle power included"),
                     2); /* above the table, which is all of it; the total */
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "energy", "both", "--json", "--store", "@");
    json_t *j = parsed(&json);
    expect_json(j, "trials/0/idle_w", "null");
    json_decref(j);
    AUTO_OUTPUT struct harness_output two = LOOK(*state, "compare", "half", "both", "--store", "@");
    expect_text(two.out, "660  attributed (rapl), idle power included");
    expect_text(two.out, "joules with idle power in them are not compared with those without");
    expect_no_text(two.out, "different sources");
    expect_no_text(two.out, "660 (");
}

static void test_a_report_tells_joules_in_all_its_forms(void **state)
{
    AUTO_OUTPUT struct harness_output html = LOOK(*state, "report", "guess", "--store", "@");
    expect_text(html.out, "energy 220 J estimated (estimate).</p>");
    expect_text(html.out, "<td class=\"n\">220 J estimated (estimate)</td>");
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "report", "guess", "--json", "--store", "@");
    json_t *j = parsed(&json);
    expect_json(j, "energy/source", "\"estimated (estimate)\"");
    expect_json(j, "trials/0/energy/source", "\"estimated (estimate)\"");
    json_decref(j);
    AUTO_OUTPUT struct harness_output csv = LOOK(*state, "report", "guess", "--csv", "--store", "@");
    expect_text(csv.out, ",estimated (estimate),1,,");
    AUTO_OUTPUT struct harness_output bare = LOOK(*state, "report", "bare", "--csv", "--store", "@");
    expect_text(bare.out, ",,absent,1,,");
}

/* --- from InfluxDB --- */

static void test_influx_tells_the_same_to_the_last_digit(void **state)
{
    struct shown *w = *state;
    AUTO_OUTPUT struct harness_output store = LOOK(w, "energy", "demo", "--csv", "--store", "@");
    int before = w->peer->requests;
    AUTO_OUTPUT struct harness_output influx =
        LOOK(w, "energy", "demo", "--csv", "--store", "@", "--from", "influx", "--url", "%");
    if (influx.code != 0)
        fail_msg("%s", influx.err);
    assert_string_equal(influx.out, store.out);
    assert_true(w->peer->requests - before > 12); /* 7 rows at once */
    AUTO_OUTPUT struct harness_output json =
        LOOK(w, "energy", "demo", "--json", "--store", "@", "--from", "influx", "--url", "%", "--database", "my db");
    json_t *j = parsed(&json);
    expect_json(j, "from", "\"influx\"");
    json_decref(j);
}

static void test_what_others_wrote_is_found_by_the_nodes_exact_names(void **state)
{
    struct shown *w = *state;
    AUTO_OUTPUT struct harness_output o =
        LOOK(w, "energy", "old", "--json", "--store", "@", "--from", "influx", "--url", "%");
    if (o.code != 0)
        fail_msg("%s", o.err);
    json_t *j = parsed(&o);
    expect_json(j, "from", "\"influx (by node)\"");
    assert_int_equal(json_array_size(at(j, "nodes")), 3);
    static const struct {
        const char *name, *meter;
        double j;
    } want[] = { { "eiger-1", "pdu", 100.0 * SECONDS },
                 { "eiger-1", "pcm", 80.25 * SECONDS },
                 { "eiger-10", "pdu", 200.5 * SECONDS } };
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        bool found = false;
        for (size_t k = 0; k < 3; k++) {
            json_t *n = json_array_get(at(j, "nodes"), k);
            if (strcmp(json_string_value(at(n, "name")), want[i].name) != 0 ||
                strcmp(json_string_value(at(n, "meter")), want[i].meter) != 0)
                continue;
            found = true;
            expect_number(n, "j", want[i].j);
            expect_number(n, "coverage", 1);
        }
        assert_true(found);
    }
    json_decref(j);
    AUTO_OUTPUT struct harness_output text = LOOK(w, "energy", "old", "--store", "@", "--from", "influx", "--url", "%");
    expect_text(text.out, "by readings from influx (by node)");
}

/* The joules of a node by a meter; NAN: there is no such row, or there are two. */
static double node_joules(json_t *j, const char *name, const char *meter, double *out_coverage)
{
    double found = NAN;
    int n = 0;
    for (size_t i = 0; i < json_array_size(at(j, "nodes")); i++) {
        json_t *one = json_array_get(at(j, "nodes"), i);
        if (strcmp(json_string_value(at(one, "name")), name) != 0 ||
            strcmp(json_string_value(at(one, "meter")), meter) != 0)
            continue;
        n++;
        found = json_number_value(at(one, "j"));
        *out_coverage = json_number_value(at(one, "coverage"));
    }
    return n == 1 ? found : (double)NAN;
}

static void test_a_machine_with_two_names_counts_once(void **state)
{
    AUTO_OUTPUT struct harness_output o =
        LOOK(*state, "energy", "twice", "--json", "--store", "@", "--from", "influx", "--url", "%");
    json_t *j = parsed(&o);
    double covered = 0;
    if (json_array_size(at(j, "nodes")) != 2)
        fail_msg("got %s", o.out);
    assert_true(fabs(node_joules(j, "driver", "pdu", &covered) - 10.0 * SECONDS) < 1e-6);
    assert_true(covered == 1);
    json_decref(j);
}

static void test_points_that_others_lost_are_a_gap(void **state)
{
    AUTO_OUTPUT struct harness_output o =
        LOOK(*state, "energy", "twice", "--json", "--store", "@", "--from", "influx", "--url", "%");
    json_t *j = parsed(&o);
    double covered = 0, got = node_joules(j, "eiger-2", "pcm", &covered), want = (SECONDS - 2.0) / SECONDS;
    if (fabs(got - 50.0 * (SECONDS - 2)) > 1e-6 || fabs(covered - want) > 1e-6)
        fail_msg("got %g J, %g covered, want %g", got, covered, want);
    json_decref(j);
}

static void test_a_study_of_the_same_name_elsewhere_is_not_this_one(void **state)
{
    AUTO_OUTPUT struct harness_output o =
        LOOK(*state, "energy", "ours", "--json", "--store", "@", "--from", "influx", "--url", "%");
    json_t *j = parsed(&o);
    double covered = 0, here = node_joules(j, "here", "rapl", &covered), n1 = node_joules(j, "n1", "rapl", &covered);
    double without = node_joules(j, "here", "pcm", &covered);
    if (fabs(here - 30.0 * SECONDS) > 1e-6 || fabs(n1 - 40.0 * SECONDS) > 1e-6 || fabs(without - 20.0 * SECONDS) > 1e-6)
        fail_msg("got %g J, %g J, and %g J without tags", here, n1, without);
    json_decref(j);
}

static void test_a_studys_secret_goes_to_its_own_server_alone(void **state)
{
    struct shown *w = *state;
    AUTO_OUTPUT struct harness_output own = LOOK(w, "energy", "stored", "--store", "@", "--from", "influx");
    assert_int_equal(own.code, 0);
    expect_text(w->peer->head, "Authorization: Basic ");
    AUTO_OUTPUT struct harness_output same =
        LOOK(w, "energy", "stored", "--store", "@", "--from", "influx", "--url", "%");
    assert_int_equal(same.code, 0);
    expect_text(w->peer->head, "Authorization: Basic ");
    int before = w->peer->requests;
    AUTO_OUTPUT struct harness_output other =
        LOOK(w, "energy", "elsewhere", "--store", "@", "--from", "influx", "--url", "%");
    assert_int_equal(other.code, 0);
    assert_true(w->peer->requests > before);
    expect_no_text(w->peer->head, "Authorization");
}

#define BODY(status, body) "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body

static const struct {
    const char *name, *answer, *err;
} faults[] = {
    { "an error under 200",
      BODY("200 OK", "{\"results\":[{\"statement_id\":0,\"error\":\"database not found: energy\"}]}"),
      "database not found: energy" },
    { "an error of all under 200", BODY("200 OK", "{\"error\":\"timeout\"}"), "timeout" },
    { "401", BODY("401 Unauthorized", "{\"error\":\"authorization failed\"}"), "authorization failed" },
    { "500", BODY("500 Internal Server Error", "oops"), "status 500" },
    { "a page", BODY("200 OK", "<html>hello</html>"), "no JSON" },
    { "half an answer", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{\"results\":[{\"statement", "" },
    { "half an answer without its length", BODY("200 OK", "{\"results\":[{\"statement"), "no JSON" },
    { "no answer", "", "cannot read from influxdb" },
    { "no rows of a series that has some",
      BODY("200 OK",
           "{\"results\":[{\"series\":[{\"name\":\"m\",\"columns\":[\"time\"],\"values\":[],\"partial\":true}]}]}"),
      "left out all of its rows" },
    { "a row that is too short",
      BODY("200 OK", "{\"results\":[{\"series\":[{\"columns\":[\"time\",\"value\"],\"values\":[[1]]}]}]}"),
      "row without" },
    { "elsewhere", "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
      "status 307" },
};

static void test_a_server_that_fails_is_told_and_nothing_is_printed(void **state)
{
    struct shown *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        w->peer->fixed = faults[i].answer;
        AUTO_OUTPUT struct harness_output o =
            LOOK(w, "energy", "demo", "--json", "--store", "@", "--from", "influx", "--url", "%");
        w->peer->fixed = NULL;
        if (o.code != 3 || *o.out || !strstr(o.err, faults[i].err))
            fail_msg("%s: got %d, stdout '%s', stderr '%s'", faults[i].name, o.code, o.out, o.err);
    }
}

static void test_credentials_come_from_a_file_and_are_not_told(void **state)
{
    struct shown *w = *state;
    AUTO_FREE char *file = harness_path(w->dir, "secret");
    harness_write(w->dir, "secret", "me:hunter2\n");
    AUTO_OUTPUT struct harness_output open =
        LOOK(w, "energy", "demo", "--store", "@", "--from", "influx", "--url", "%", "--credential-file", file);
    assert_int_equal(chmod(file, 0600), 0);
    AUTO_OUTPUT struct harness_output o =
        LOOK(w, "energy", "demo", "--store", "@", "--from", "influx", "--url", "%", "--credential-file", file);
    assert_true(open.code == 3 && strstr(open.err, "chmod"));
    assert_int_equal(o.code, 0);
    expect_text(w->peer->head, "Authorization: Basic bWU6aHVudGVyMg==\r\n");
    expect_text(w->peer->head, "POST /query HTTP/1.1\r\n");
    expect_no_text(w->peer->query, "hunter2");
}

/* --- wrong use --- */

static const struct {
    const char *name;
    const char *words[WORDS];
    int code;
    const char *err;
} mistakes[] = {
    { "no study", { "energy", "--store", "@" }, 2, "which study?" },
    { "a study mistyped", { "energy", "demmo", "--store", "@" }, 2, "did you mean 'demo'?" },
    { "two forms", { "energy", "demo", "--csv", "--json", "--store", "@" }, 2, "one form" },
    { "a server for the store", { "energy", "demo", "--url", "http://x", "--store", "@" }, 2, "'--from influx'" },
    { "an unknown source", { "energy", "demo", "--from", "paper", "--store", "@" }, 2, "--from" },
    { "no server at all", { "energy", "demo", "--from", "influx", "--store", "@" }, 2, "which influxdb?" },
    { "a URL that is none", { "energy", "demo", "--from", "influx", "--url", "ftp://x", "--store", "@" }, 2, "http" },
    { "a setting that is none", { "energy", "demo", "--against", "4", "--store", "@" }, 2, "cores=4" },
    { "less than nothing", { "energy", "demo", "--carbon", "-4", "--store", "@" }, 2, "--carbon" },
    { "a store that is not there", { "energy", "demo", "--store", "/nonexistent/x" }, 3, "no store" },
};

static void test_mistakes_are_named_on_stderr(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        AUTO_OUTPUT struct harness_output o = look(*state, mistakes[i].words);
        if (o.code != mistakes[i].code || !strstr(o.err, mistakes[i].err) || *o.out)
            fail_msg("%s: got %d, stderr '%s', stdout '%s'; want %d and '%s'", mistakes[i].name, o.code, o.err, o.out,
                     mistakes[i].code, mistakes[i].err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_has_nodes_trials_epochs_and_meters),
        cmocka_unit_test(test_text_tells_each_figure_with_its_source),
        cmocka_unit_test(test_csv_has_a_row_per_node_trial_and_epoch),
        cmocka_unit_test(test_one_meter_may_be_asked_for),
        cmocka_unit_test(test_what_was_not_read_is_absent),
        cmocka_unit_test(test_readings_that_were_all_discarded_are_told_as_such),
        cmocka_unit_test(test_an_estimate_stands_beside_what_was_measured_and_not_over_it),
        cmocka_unit_test(test_show_tells_joules_with_their_source),
        cmocka_unit_test(test_ls_sums_the_trials),
        cmocka_unit_test(test_compare_refuses_to_divide_what_was_estimated_by_what_was_measured),
        cmocka_unit_test(test_idle_power_is_told_where_it_is_in_the_joules),
        cmocka_unit_test(test_a_report_tells_joules_in_all_its_forms),
        cmocka_unit_test(test_influx_tells_the_same_to_the_last_digit),
        cmocka_unit_test(test_what_others_wrote_is_found_by_the_nodes_exact_names),
        cmocka_unit_test(test_a_machine_with_two_names_counts_once),
        cmocka_unit_test(test_points_that_others_lost_are_a_gap),
        cmocka_unit_test(test_a_study_of_the_same_name_elsewhere_is_not_this_one),
        cmocka_unit_test(test_a_studys_secret_goes_to_its_own_server_alone),
        cmocka_unit_test(test_a_server_that_fails_is_told_and_nothing_is_printed),
        cmocka_unit_test(test_credentials_come_from_a_file_and_are_not_told),
        cmocka_unit_test(test_mistakes_are_named_on_stderr),
    };
    return cmocka_run_group_tests_name("energy", tests, make_world, end_world);
}
