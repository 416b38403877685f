#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"
#include "monitoring/sender.h"
#include "monitoring/sender_hand.h"
#include "tests/fault.h"

enum { LINES_MAX = 20000, BATCHES_MAX = 4096 };

/* A server, a disk and a clock, none of them real. Line number i is "m v=i\n"; `fate` says where it was seen last. */
struct world {
    struct sender *s;
    int64_t now;
    int pushed;
    /* the server */
    struct influx_answer (*answer)(struct world *w, const struct sender_job *job);
    int requests;
    int64_t sent_ms[1024];
    uint8_t at_peer[LINES_MAX], at_quarantine[LINES_MAX];
    struct rng rng;
    /* the disk */
    bool disk_full;
    struct {
        char *text;
        uint32_t lines;
    } batches[BATCHES_MAX];
    uint64_t first, end; /* of the batches; the id is the number + 1 */
    uint64_t cap, dropped;
    uint64_t held; /* the id that was fetched */
    int syncs;
    char notes[4096];
    struct sender_job *open[SENDER_IN_FLIGHT_MAX]; /* being done */
    int n_open;
};

static struct influx_answer answer_of(enum influx_kind kind)
{
    return (struct influx_answer){ .kind = kind, .wait_ms = -1, .text = "words" };
}

static struct influx_answer delivers(struct world *w, const struct sender_job *job)
{
    (void)w, (void)job;
    return answer_of(INFLUX_DELIVERED);
}

static struct influx_answer is_down(struct world *w, const struct sender_job *job)
{
    (void)w, (void)job;
    return answer_of(INFLUX_RETRY);
}

static struct world *world_new(struct sender_cfg cfg)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->s = sender_new(&cfg);
    assert_non_null(w->s);
    w->answer = delivers;
    w->cap = BATCHES_MAX;
    w->rng = rng_seeded(5);
    return w;
}

static void world_done(struct world *w)
{
    for (uint64_t i = w->first; i < w->end; i++)
        free(w->batches[i % BATCHES_MAX].text);
    sender_free(w->s);
    free(w);
}

static void each_line(const char *bytes, size_t len, uint8_t *seen)
{
    for (const char *at = bytes; at < bytes + len; at = strchr(at, '\n') + 1) {
        int i = -1;
        assert_int_equal(sscanf(at, "m v=%d\n", &i), 1);
        seen[i] = 1;
    }
}

static void do_spool(struct world *w, struct sender_job *job)
{
    if (w->disk_full) {
        job->rc = -ENOSPC;
        (void)snprintf(job->why, sizeof job->why, "the disk is full");
        return;
    }
    while (w->end - w->first >= w->cap) {
        uint64_t i = w->first++ % BATCHES_MAX;
        w->dropped += w->held == w->first ? 0 : w->batches[i].lines;
        free(w->batches[i].text);
    }
    w->batches[w->end % BATCHES_MAX].text = strndup(job->bytes, job->len);
    w->batches[w->end++ % BATCHES_MAX].lines = job->lines;
}

static void do_fetch(struct world *w, struct sender_job *job)
{
    job->rc = w->first < w->end;
    if (!job->rc)
        return;
    buf_puts(&job->fetched, w->batches[w->first % BATCHES_MAX].text);
    job->fetched_lines = w->batches[w->first % BATCHES_MAX].lines;
    w->held = w->first + 1;
}

static void do_forget(struct world *w, const struct sender_job *job)
{
    if (job->id != w->first + 1 || w->first == w->end)
        return;
    free(w->batches[w->first++ % BATCHES_MAX].text);
    w->held = 0;
}

static void do_send(struct world *w, struct sender_job *job)
{
    if (w->requests < (int)ARRAY_LEN(w->sent_ms))
        w->sent_ms[w->requests] = w->now;
    w->requests++;
    job->answer = w->answer(w, job);
    if (job->answer.kind == INFLUX_DELIVERED || job->answer.kind == INFLUX_PARTIAL)
        each_line(job->bytes, job->len, w->at_peer);
}

static void check_balance(const struct world *w)
{
    struct sender_counts c = sender_counts(w->s);
    if (!sender_balanced(&c))
        fail_msg("out of balance: produced %lu, stored %lu, spooled %lu, quarantined %lu, dropped %lu, waiting %lu",
                 (unsigned long)c.produced, (unsigned long)c.stored, (unsigned long)c.spooled,
                 (unsigned long)c.quarantined, (unsigned long)c.dropped, (unsigned long)c.waiting);
}

static void do_job(struct world *w, struct sender_job *job)
{
    switch (job->act) {
    case SENDER_SEND: do_send(w, job); break;
    case SENDER_SPOOL: do_spool(w, job); break;
    case SENDER_FETCH: do_fetch(w, job); break;
    case SENDER_FORGET: do_forget(w, job); break;
    case SENDER_QUARANTINE: each_line(job->bytes, job->len, w->at_quarantine); break;
    case SENDER_SYNC: w->syncs++; break;
    }
    job->front = w->first < w->end ? w->first + 1 : 0;
    job->dropped = w->dropped;
    sender_done(w->s, w->now, job);
    check_balance(w);
    char text[512];
    while (sender_note(w->s, text, sizeof text))
        (void)snprintf(w->notes + strlen(w->notes), sizeof w->notes - strlen(w->notes), "%s\n", text);
}

/* Everything that is due until `until`. */
static void run_until(struct world *w, int64_t until)
{
    for (int steps = 0;; steps++) {
        assert_true(steps < 1000000);
        struct sender_job *job;
        int64_t wake;
        if (sender_next(w->s, w->now, &job, &wake)) {
            do_job(w, job);
            continue;
        }
        if (sender_ended(w->s) || wake > until)
            break;
        assert_true(wake > w->now); /* no waking up for nothing */
        w->now = wake;
    }
    if (w->now < until)
        w->now = until;
}

/* The same, with jobs of several lanes that take their time and end in any order; some are still under way then. */
static void run_mixed_until(struct world *w, int64_t until)
{
    for (int64_t wake = 0;;) {
        struct sender_job *job;
        while (w->n_open < SENDER_IN_FLIGHT_MAX && sender_next(w->s, w->now, &job, &wake)) {
            for (int i = 0; i < w->n_open; i++)
                assert_int_not_equal(w->open[i]->lane, job->lane);
            w->open[w->n_open++] = job;
        }
        if (w->n_open > 0) {
            w->now += (int64_t)rng_below(&w->rng, 3) * 100;
            int i = (int)rng_below(&w->rng, (uint64_t)w->n_open);
            job = w->open[i];
            w->open[i] = w->open[--w->n_open];
            do_job(w, job);
        } else if (sender_ended(w->s) || wake > until) {
            break;
        } else {
            w->now = wake > w->now ? wake : w->now;
        }
        if (w->now >= until && rng_below(&w->rng, 2) == 0)
            return;
    }
    w->now = w->now < until ? until : w->now;
}

static void push(struct world *w, int n)
{
    for (int i = 0; i < n; i++) {
        char line[32];
        assert_true(w->pushed < LINES_MAX);
        int len = snprintf(line, sizeof line, "m v=%d\n", w->pushed++);
        sender_push(w->s, w->now, line, (size_t)len, 1);
    }
    check_balance(w);
}

static uint64_t on_disk(const struct world *w)
{
    uint64_t lines = 0;
    for (uint64_t i = w->first; i < w->end; i++)
        lines += w->batches[i % BATCHES_MAX].lines;
    return lines;
}

static void close_in(struct world *w, int64_t ms)
{
    sender_close(w->s, w->now, w->now + ms);
    run_until(w, w->now + ms + 1);
    assert_true(sender_ended(w->s));
    assert_int_equal(sender_counts(w->s).waiting, 0);
}

static size_t count_of(const uint8_t *seen)
{
    size_t n = 0;
    for (size_t i = 0; i < LINES_MAX; i++)
        n += seen[i];
    return n;
}

/* --- batches --- */

static void a_full_batch_is_sent_at_once(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 10 });
    push(w, 9);
    run_until(w, 0);
    assert_int_equal(w->requests, 0);
    push(w, 1);
    run_until(w, 0);
    assert_int_equal(w->requests, 1);
    assert_int_equal(sender_counts(w->s).stored, 10);
    world_done(w);
}

static void a_batch_that_is_not_full_is_sent_by_its_age(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .age_ms = 1000 });
    w->now = 5000;
    push(w, 1);
    run_until(w, 5900);
    push(w, 1);
    run_until(w, 5999);
    assert_int_equal(w->requests, 0);
    run_until(w, 6000);
    assert_int_equal(w->requests, 1);
    assert_int_equal(sender_counts(w->s).stored, 2);
    world_done(w);
}

static void a_batch_is_full_by_bytes_too(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_bytes = 60 });
    push(w, 20);
    run_until(w, 0);
    assert_int_equal(w->requests, 2);
    assert_true(sender_counts(w->s).stored < 20);
    close_in(w, 0);
    world_done(w);
}

/* --- refusals --- */

static bool has_line(const struct sender_job *job, int line)
{
    char text[32];
    (void)snprintf(text, sizeof text, "m v=%d\n", line);
    return strstr(job->bytes, text) && strstr(job->bytes, text) < job->bytes + job->len;
}

static struct influx_answer rejects_777(struct world *w, const struct sender_job *job)
{
    (void)w;
    return answer_of(has_line(job, 777) ? INFLUX_REJECT : INFLUX_DELIVERED);
}

static void one_poison_line_is_found_by_halving(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 1024 });
    w->answer = rejects_777;
    push(w, 1024);
    run_until(w, 0);
    assert_int_equal(w->requests, 1 + 2 * 10); /* log2(1024) halvings */
    assert_int_equal(sender_counts(w->s).stored, 1023);
    assert_int_equal(sender_counts(w->s).quarantined, 1);
    assert_int_equal(count_of(w->at_quarantine), 1);
    assert_true(w->at_quarantine[777]);
    assert_non_null(strstr(w->notes, "in quarantine: words"));
    world_done(w);
}

static struct influx_answer rejects_all(struct world *w, const struct sender_job *job)
{
    (void)w, (void)job;
    return answer_of(INFLUX_REJECT);
}

static void a_batch_of_poison_does_not_cost_a_request_a_line(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 5000, .rejects_max = 64 });
    w->answer = rejects_all;
    push(w, 5000);
    run_until(w, 0);
    assert_int_equal(sender_counts(w->s).quarantined, 5000);
    assert_int_equal(count_of(w->at_quarantine), 5000);
    assert_true(w->requests < 200);
    world_done(w);
}

static struct influx_answer takes_4500_bytes(struct world *w, const struct sender_job *job)
{
    (void)w;
    return answer_of(job->len > 4500 ? INFLUX_HALVE : INFLUX_DELIVERED);
}

static void what_is_too_large_is_sent_in_smaller_parts_from_then_on(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 5000 });
    w->answer = takes_4500_bytes;
    push(w, 5000);
    run_until(w, 0);
    assert_int_equal(sender_counts(w->s).stored, 5000);
    uint64_t halved = sender_counts(w->s).halved;
    push(w, 5000);
    run_until(w, 2000);
    assert_int_equal(sender_counts(w->s).stored, 10000);
    assert_int_equal(sender_counts(w->s).halved, halved);
    world_done(w);
}

static struct influx_answer drops_three(struct world *w, const struct sender_job *job)
{
    (void)w, (void)job;
    struct influx_answer a = answer_of(INFLUX_PARTIAL);
    a.dropped = 3;
    return a;
}

static void what_the_server_drops_is_counted_and_not_sent_again(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 10 });
    w->answer = drops_three;
    push(w, 20);
    run_until(w, 0);
    assert_int_equal(w->requests, 2);
    assert_int_equal(sender_counts(w->s).stored, 14);
    assert_int_equal(sender_counts(w->s).dropped_server, 6);
    assert_string_equal(w->notes, "influxdb dropped 3 of 10 lines: words\n"); /* once, not per batch */
    world_done(w);
}

/* --- waiting --- */

static void failures_are_retried_ever_more_rarely(void **state)
{
    (void)state;
    double sum[8] = { 0 };
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct world *w = world_new((struct sender_cfg){ .seed = seed, .backoff_ms = 1000, .backoff_max_ms = 16000 });
        w->answer = is_down;
        push(w, 1);
        run_until(w, 120000);
        for (int i = 0; i < 8; i++) {
            int64_t wait = w->sent_ms[i + 1] - w->sent_ms[i], most = i > 4 ? 16000 : 1000 << i;
            assert_true(wait >= 0 && wait <= most);
            sum[i] += (double)wait;
        }
        assert_string_equal(w->notes, "influxdb takes no data, trying again: words\n");
        world_done(w);
    }
    for (int i = 0; i < 8; i++) { /* even over the whole of it: half on average */
        double mean = sum[i] / 200, half = (i > 4 ? 16000 : 1000 << i) / 2.0;
        assert_true(mean > 0.8 * half && mean < 1.2 * half);
    }
}

static struct influx_answer asks_for_90_s(struct world *w, const struct sender_job *job)
{
    (void)job;
    struct influx_answer a = answer_of(w->requests == 1 ? INFLUX_RETRY : INFLUX_DELIVERED);
    a.wait_ms = 90000;
    return a;
}

static void a_server_that_asks_to_wait_is_left_alone_so_long(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 1 });
    w->answer = asks_for_90_s;
    push(w, 1);
    run_until(w, 89999);
    assert_int_equal(w->requests, 1);
    run_until(w, 90000);
    assert_int_equal(sender_counts(w->s).stored, 1);
    assert_string_equal(w->notes, "influxdb takes no data, trying again: words\ninfluxdb takes data again\n");
    world_done(w);
}

static struct influx_answer is_forbidden_at_first(struct world *w, const struct sender_job *job)
{
    (void)job;
    struct influx_answer a = answer_of(w->now < 300000 ? INFLUX_PAUSE : INFLUX_DELIVERED);
    a.reason = w->now < 150000 ? INFLUX_UNAUTHORIZED : INFLUX_FORBIDDEN;
    return a;
}

static void a_pause_is_told_once_per_reason(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 1, .pause_ms = 60000, .spool = true });
    w->answer = is_forbidden_at_first;
    push(w, 1);
    run_until(w, 400000);
    assert_true(w->requests >= 5 && w->requests <= 7);
    assert_int_equal(sender_counts(w->s).stored, 1);
    assert_string_equal(w->notes,
                        "influxdb: the credentials are not accepted, nothing is sent until that is mended: words\n"
                        "influxdb: the credentials do not allow writing, nothing is sent until that is mended: words\n"
                        "influxdb takes data again\n");
    world_done(w);
}

/* --- ring and spool --- */

static void without_a_spool_the_oldest_lines_are_dropped(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 10, .ring_bytes = 1000 });
    w->answer = is_down;
    push(w, 1000);
    struct sender_counts c = sender_counts(w->s);
    assert_true(c.waiting * 7 <= 1000);
    assert_int_equal(c.dropped_ring + c.waiting, 1000);
    w->answer = delivers;
    close_in(w, 1000);
    assert_int_equal(count_of(w->at_peer), sender_counts(w->s).stored);
    assert_true(w->at_peer[999] && !w->at_peer[0]);
    world_done(w);
}

static void an_outage_goes_through_the_spool_and_loses_nothing(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 50, .ring_bytes = 2000, .spool = true });
    for (int second = 0; second < 1200; second++) {
        w->answer = second >= 200 && second < 800 ? is_down : delivers;
        push(w, 10);
        run_until(w, (second + 1) * 1000);
        if (second == 799)
            assert_true(sender_counts(w->s).spooled > 5000);
    }
    assert_true(w->syncs > 100);
    close_in(w, 5000);
    struct sender_counts c = sender_counts(w->s);
    assert_int_equal(c.stored, 12000);
    assert_int_equal(count_of(w->at_peer), 12000);
    assert_int_equal(w->first, w->end);
    world_done(w);
}

static void what_is_old_goes_to_the_disk_when_the_server_is_down(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .spool = true, .spool_after_ms = 10000 });
    w->answer = is_down;
    push(w, 5);
    run_until(w, 9999);
    push(w, 5); /* young */
    assert_int_equal(sender_counts(w->s).spooled, 0);
    run_until(w, 10001);
    assert_int_equal(sender_counts(w->s).spooled, 5);
    assert_int_equal(sender_counts(w->s).waiting, 5);
    world_done(w);
}

static void a_spool_that_is_full_drops_its_oldest(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 10, .ring_bytes = 500, .spool = true });
    w->cap = 20;
    w->answer = is_down;
    for (int i = 0; i < 100; i++) {
        push(w, 10);
        run_until(w, w->now + 1000);
    }
    assert_true(sender_counts(w->s).dropped_spool > 500);
    w->answer = delivers;
    run_until(w, w->now + 100000);
    close_in(w, 1000);
    struct sender_counts c = sender_counts(w->s);
    assert_int_equal(c.stored + c.dropped_spool, 1000);
    assert_int_equal(count_of(w->at_peer), c.stored);
    assert_non_null(strstr(w->notes, "the spool is full"));
    world_done(w);
}

static void a_disk_that_is_full_costs_what_memory_cannot_hold(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 10, .ring_bytes = 1000, .spool = true });
    w->answer = is_down;
    w->disk_full = true;
    for (int i = 0; i < 100; i++) {
        push(w, 10);
        run_until(w, w->now + 1000);
    }
    assert_int_equal(sender_counts(w->s).spooled, 0);
    assert_true(sender_counts(w->s).dropped_ring > 500);
    assert_non_null(strstr(w->notes, "the disk is full"));
    w->disk_full = false;
    run_until(w, w->now + 30000);
    assert_true(sender_counts(w->s).spooled > 0);
    close_in(w, 1000);
    world_done(w);
}

static void a_batch_in_hand_outlives_its_place_in_the_spool(void **state)
{
    (void)state;
    struct world *w =
        world_new((struct sender_cfg){ .batch_lines = 10, .ring_bytes = 500, .spool = true, .backoff_ms = 1 });
    w->cap = 5;
    w->answer = is_down;
    for (int i = 0; i < 50; i++) { /* tries the oldest batch all the time, while it is pushed out */
        push(w, 10);
        run_until(w, w->now + 100000);
    }
    close_in(w, 1000);
    assert_int_equal(sender_counts(w->s).spooled, on_disk(w));
    world_done(w);
}

static void lines_may_come_while_a_job_is_done(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .spool = true, .spool_after_ms = 1000 });
    w->answer = is_down;
    push(w, 5);
    run_until(w, 1000);
    push(w, 5);
    w->now = 20000;
    struct sender_job *job = NULL;
    int64_t wake;
    for (bool spooling = false; !spooling;) {
        assert_int_equal(sender_next(w->s, w->now, &job, &wake), 1);
        if (job->act == SENDER_SPOOL) {
            spooling = true;
            AUTO_FREE char *before = strndup(job->bytes, job->len);
            push(w, 500);
            assert_int_equal(sender_next(w->s, w->now, &job, &wake), 0); /* one at a time */
            assert_memory_equal(job->bytes, before, job->len);
        }
        do_job(w, job);
    }
    w->answer = delivers;
    close_in(w, 100000);
    assert_int_equal(count_of(w->at_peer), 510);
    world_done(w);
}

static void a_batch_is_halved_at_its_middle(void **state)
{
    (void)state;
    for (int by = HAND_BY_LINES; by <= HAND_BY_BYTES; by++) {
        struct hand h = { 0 };
        struct buf text = BUF_INIT;
        buf_printf(&text, "%0100d\n", 1);
        for (int i = 0; i < 9; i++)
            buf_puts(&text, "small\n");
        hand_take(&h, &text, 10, 0);
        hand_halve(&h, (enum hand_cut)by);
        assert_int_equal(hand_next(&h)->lines, by == HAND_BY_LINES ? 5 : 1);
        assert_int_equal(hand_next(&h)->to, by == HAND_BY_LINES ? 125 : 101);
        hand_settle(&h);
        assert_int_equal(hand_left(&h), by == HAND_BY_LINES ? 5 : 9);
        struct buf rest = BUF_INIT;
        hand_rest(&h, &rest);
        assert_int_equal(rest.len, by == HAND_BY_LINES ? 30 : 54);
        buf_done(&rest);
        hand_done(&h);
    }
}

/* --- several at once --- */

/* All that may be done now; returns how many. */
static int begin_all(struct world *w, struct sender_job *jobs[SENDER_IN_FLIGHT_MAX])
{
    int n = 0;
    int64_t wake;
    while (n < SENDER_IN_FLIGHT_MAX && sender_next(w->s, w->now, &jobs[n], &wake))
        n++;
    return n;
}

static void whole_batches_are_sent_beside_each_other(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 3, .batch_lines = 10 });
    struct sender_job *jobs[SENDER_IN_FLIGHT_MAX], *next[SENDER_IN_FLIGHT_MAX];
    push(w, 45);
    assert_int_equal(begin_all(w, jobs), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jobs[i]->act, SENDER_SEND);
        assert_int_equal(jobs[i]->lane, i);
        assert_true(has_line(jobs[i], 10 * i));
    }
    assert_int_equal(sender_counts(w->s).waiting, 45);
    do_job(w, jobs[1]);
    assert_int_equal(begin_all(w, next), 1);
    assert_int_equal(next[0]->lane, 1);
    do_job(w, jobs[2]);
    do_job(w, next[0]);
    assert_int_equal(begin_all(w, next), 0); /* five lines are not a whole batch */
    do_job(w, jobs[0]);
    close_in(w, 1000);
    assert_int_equal(count_of(w->at_peer), 45);
    assert_int_equal(w->requests, 5);
    world_done(w);
}

static void one_that_must_wait_stops_all(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 3, .batch_lines = 10 });
    struct sender_job *jobs[SENDER_IN_FLIGHT_MAX], *probe[SENDER_IN_FLIGHT_MAX];
    push(w, 100);
    assert_int_equal(begin_all(w, jobs), 3);
    w->answer = asks_for_90_s;
    do_job(w, jobs[1]);
    w->answer = delivers;
    do_job(w, jobs[0]); /* what was under way is there, but does not end the wait */
    do_job(w, jobs[2]);
    assert_int_equal(sender_counts(w->s).stored, 20);
    w->now = 89999;
    assert_int_equal(begin_all(w, probe), 0);
    w->now = 90000;
    assert_int_equal(begin_all(w, probe), 1); /* one alone looks whether it is over */
    do_job(w, probe[0]);
    assert_int_equal(begin_all(w, jobs), 3);
    for (int i = 0; i < 3; i++)
        do_job(w, jobs[i]);
    close_in(w, 1000);
    assert_int_equal(count_of(w->at_peer), 100);
    assert_string_equal(w->notes, "influxdb takes no data, trying again: words\ninfluxdb takes data again\n");
    world_done(w);
}

static void those_that_fail_together_are_one_failure(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct world *w = world_new(
            (struct sender_cfg){ .in_flight = 4, .batch_lines = 10, .seed = seed, .backoff_ms = 1000, .spool = true });
        struct sender_job *jobs[SENDER_IN_FLIGHT_MAX];
        int64_t wake;
        push(w, 40);
        assert_int_equal(begin_all(w, jobs), 4);
        w->answer = is_down;
        for (int i = 0; i < 4; i++)
            do_job(w, jobs[i]);
        if (!sender_next(w->s, w->now, &jobs[0], &wake))
            assert_true(wake <= 1000); /* the wait after the first of several failures */
        run_until(w, 60000);
        assert_int_equal(sender_counts(w->s).spooled, 40);
        assert_string_equal(w->notes, "influxdb takes no data, trying again: words\n");
        world_done(w);
    }
}

static void a_pause_that_comes_late_is_one(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 2, .batch_lines = 10, .pause_ms = 60000 });
    struct sender_job *jobs[SENDER_IN_FLIGHT_MAX];
    push(w, 40);
    assert_int_equal(begin_all(w, jobs), 2);
    w->answer = is_down;
    do_job(w, jobs[0]);
    w->answer = is_forbidden_at_first;
    do_job(w, jobs[1]);
    w->now = 59999;
    assert_int_equal(begin_all(w, jobs), 0);
    assert_non_null(strstr(w->notes, "the credentials are not accepted"));
    w->answer = delivers;
    run_until(w, 80000);
    assert_int_equal(sender_counts(w->s).stored, 40);
    world_done(w);
}

static void nothing_is_sent_beside_a_batch_in_halves(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct influx_answer (*answer)(struct world *w, const struct sender_job *job);
        uint64_t quarantined;
    } rows[] = {
        { "a line is poison", rejects_777, 1 },
        { "the batch is too large", takes_4500_bytes, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world *w = world_new((struct sender_cfg){ .in_flight = 3, .batch_lines = 500 });
        struct sender_job *jobs[SENDER_IN_FLIGHT_MAX];
        w->answer = rows[i].answer;
        push(w, 5000);
        for (int n; (n = begin_all(w, jobs)) > 0;)
            for (int k = n - 1; k >= 0; k--) {
                if (jobs[k]->lines < 500 && n > 1)
                    fail_msg("%s: a part of %u lines, and %d other batches", rows[i].name, jobs[k]->lines, n - 1);
                do_job(w, jobs[k]);
            }
        assert_int_equal(sender_counts(w->s).quarantined, rows[i].quarantined);
        assert_int_equal(sender_counts(w->s).stored, 5000 - rows[i].quarantined);
        assert_true(w->requests < 100);
        world_done(w);
    }
}

static void one_that_is_refused_is_not_sent_again_and_again(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 2, .batch_lines = 500 });
    struct sender_job *jobs[SENDER_IN_FLIGHT_MAX], *more[SENDER_IN_FLIGHT_MAX];
    push(w, 2000);
    assert_int_equal(begin_all(w, jobs), 2);
    w->answer = rejects_777;
    do_job(w, jobs[1]);
    assert_int_equal(begin_all(w, more), 0); /* it is the hand's, which is busy yet */
    do_job(w, jobs[0]);
    assert_int_equal(begin_all(w, more), 2);
    assert_true(more[0]->lane == 0 && has_line(more[0], 777));
    do_job(w, more[0]);
    do_job(w, more[1]);
    run_until(w, 0);
    assert_int_equal(sender_counts(w->s).stored, 1999);
    assert_int_equal(sender_counts(w->s).quarantined, 1);
    world_done(w);
}

static void one_that_comes_back_does_not_take_the_place_of_one_that_is_spooled(void **state)
{
    (void)state;
    struct world *w =
        world_new((struct sender_cfg){ .in_flight = 2, .batch_lines = 10, .ring_bytes = 1000, .spool = true });
    struct sender_job *jobs[SENDER_IN_FLIGHT_MAX], *spool[SENDER_IN_FLIGHT_MAX];
    push(w, 20);
    assert_int_equal(begin_all(w, jobs), 2);
    do_job(w, jobs[0]);
    push(w, 80);
    assert_int_equal(begin_all(w, spool), 1);
    assert_int_equal(spool[0]->act, SENDER_SPOOL);
    w->answer = is_down;
    do_job(w, jobs[1]);
    do_job(w, spool[0]);
    assert_int_equal(sender_counts(w->s).spooled, 10);
    w->answer = delivers;
    run_until(w, 10000);
    close_in(w, 1000);
    assert_int_equal(count_of(w->at_peer), 100);
    assert_int_equal(w->requests, 11);
    world_done(w);
}

static void the_end_waits_for_what_is_under_way(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 2, .batch_lines = 10, .spool = true });
    struct sender_job *jobs[SENDER_IN_FLIGHT_MAX], *more[SENDER_IN_FLIGHT_MAX];
    push(w, 40);
    assert_int_equal(begin_all(w, jobs), 2);
    sender_close(w->s, w->now, w->now + 1000);
    w->now += 1000;
    do_job(w, jobs[0]);
    assert_int_equal(begin_all(w, more), 0);
    assert_false(sender_ended(w->s));
    w->answer = is_down;
    do_job(w, jobs[1]);
    run_until(w, w->now);
    assert_true(sender_ended(w->s));
    assert_int_equal(sender_counts(w->s).stored, 10);
    assert_int_equal(sender_counts(w->s).spooled, 30);
    assert_int_equal(on_disk(w), 30);
    world_done(w);
}

/* --- the end --- */

static void the_end_delivers_what_it_can(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .spool = true });
    push(w, 100);
    close_in(w, 5000);
    assert_int_equal(sender_counts(w->s).stored, 100);
    assert_int_equal(w->syncs, 0);
    world_done(w);
}

static void the_end_spools_what_it_cannot_deliver(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .spool = true, .batch_lines = 10 });
    w->answer = is_down;
    push(w, 100);
    close_in(w, 5000);
    assert_int_equal(sender_counts(w->s).spooled, 100);
    assert_int_equal(w->syncs, 1);
    world_done(w);
}

static struct influx_answer delivers_a_part(struct world *w, const struct sender_job *job)
{
    if (job->lines > 25)
        return answer_of(INFLUX_HALVE);
    return answer_of(w->requests < 6 ? INFLUX_DELIVERED : INFLUX_RETRY);
}

static void the_end_leaves_of_a_batch_only_what_was_not_delivered(void **state)
{
    (void)state;
    for (int spooled_first = 0; spooled_first < 2; spooled_first++) {
        struct world *w = world_new((struct sender_cfg){ .spool = true, .batch_lines = 100 });
        w->answer = is_down;
        push(w, 100);
        run_until(w, spooled_first ? 20000 : 0);
        w->requests = 0;
        w->answer = delivers_a_part;
        run_until(w, w->now + 100000);
        close_in(w, 0);
        struct sender_counts c = sender_counts(w->s);
        assert_true(c.stored > 0 && c.stored < 100);
        assert_int_equal(c.spooled, 100 - c.stored);
        assert_int_equal(on_disk(w), c.spooled);
        world_done(w);
    }
}

static void the_end_without_server_and_disk_counts_the_loss(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .spool = true, .batch_lines = 10 });
    w->answer = is_down;
    w->disk_full = true;
    push(w, 100);
    run_until(w, 500);
    close_in(w, 2000);
    assert_int_equal(sender_counts(w->s).dropped, 100);
    world_done(w);
}

static void a_paused_sender_ends_without_waiting(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .spool = true, .batch_lines = 10 });
    w->answer = is_forbidden_at_first;
    push(w, 100);
    run_until(w, 100);
    sender_close(w->s, w->now, w->now + 100000);
    run_until(w, w->now);
    assert_true(sender_ended(w->s));
    assert_int_equal(sender_counts(w->s).spooled, 100);
    world_done(w);
}

static void what_the_spool_held_at_the_start_counts_as_produced(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .spool = true, .spooled = 2 });
    w->batches[0].text = strdup("m v=0\nm v=1\n");
    w->batches[w->end++].lines = 2;
    run_until(w, 0);
    assert_int_equal(sender_counts(w->s).found, 2);
    assert_int_equal(sender_counts(w->s).produced, 2);
    assert_int_equal(sender_counts(w->s).stored, 2);
    world_done(w);
}

/* --- anything at all --- */

static struct influx_answer any(struct world *w, const struct sender_job *job)
{
    uint64_t x = rng_below(&w->rng, 100);
    struct influx_answer a = answer_of(x < 40   ? INFLUX_DELIVERED
                                       : x < 50 ? INFLUX_PARTIAL
                                       : x < 70 ? INFLUX_RETRY
                                       : x < 80 ? INFLUX_HALVE
                                       : x < 90 ? INFLUX_REJECT
                                                : INFLUX_PAUSE);
    a.dropped = a.kind == INFLUX_PARTIAL ? rng_below(&w->rng, job->lines + 1) : 0;
    a.reason = a.kind == INFLUX_PAUSE ? INFLUX_FORBIDDEN : INFLUX_NO_REASON;
    return a;
}

static void whatever_happens_every_line_is_accounted(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct world *w = world_new((struct sender_cfg){ .in_flight = 1 + (unsigned)seed % 5,
                                                         .seed = seed,
                                                         .spool = seed % 4 != 0,
                                                         .batch_lines = 20,
                                                         .ring_bytes = 1500,
                                                         .rejects_max = 4 });
        w->rng = rng_seeded(seed);
        w->cap = seed % 3 ? 10 : BATCHES_MAX;
        w->answer = any;
        for (int i = 0; i < 200; i++) {
            w->disk_full = rng_below(&w->rng, 10) == 0;
            push(w, (int)rng_below(&w->rng, 40));
            run_mixed_until(w, w->now + (int64_t)rng_below(&w->rng, 3000));
        }
        w->disk_full = false;
        sender_close(w->s, w->now, w->now + (int64_t)rng_below(&w->rng, 10000));
        while (!sender_ended(w->s))
            run_mixed_until(w, INT64_MAX - 1);
        assert_int_equal(sender_counts(w->s).waiting, 0);
        struct sender_counts c = sender_counts(w->s);
        assert_int_equal(c.produced, w->pushed);
        assert_int_equal(c.spooled, on_disk(w));
        assert_true(count_of(w->at_quarantine) >= c.quarantined);
        assert_true(count_of(w->at_peer) >= c.stored); /* what is acknowledged is there */
        world_done(w);
    }
}

static void without_memory_lines_are_dropped_and_counted(void **state)
{
    (void)state;
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        assert_true(nth < 200);
        struct world *w = world_new((struct sender_cfg){ .batch_lines = 10, .spool = true });
        fault_arm(FAULT_ALLOC, nth);
        push(w, 100);
        struck = fault_disarm();
        run_until(w, 2000);
        struct sender_counts c = sender_counts(w->s);
        assert_int_equal(c.stored + c.dropped_memory, 100);
        assert_true(struck ? c.dropped_memory == 1 : c.dropped_memory == 0);
        world_done(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_batch_is_sent_at_once),
        cmocka_unit_test(a_batch_that_is_not_full_is_sent_by_its_age),
        cmocka_unit_test(a_batch_is_full_by_bytes_too),
        cmocka_unit_test(one_poison_line_is_found_by_halving),
        cmocka_unit_test(a_batch_of_poison_does_not_cost_a_request_a_line),
        cmocka_unit_test(what_is_too_large_is_sent_in_smaller_parts_from_then_on),
        cmocka_unit_test(what_the_server_drops_is_counted_and_not_sent_again),
        cmocka_unit_test(failures_are_retried_ever_more_rarely),
        cmocka_unit_test(a_server_that_asks_to_wait_is_left_alone_so_long),
        cmocka_unit_test(a_pause_is_told_once_per_reason),
        cmocka_unit_test(without_a_spool_the_oldest_lines_are_dropped),
        cmocka_unit_test(an_outage_goes_through_the_spool_and_loses_nothing),
        cmocka_unit_test(what_is_old_goes_to_the_disk_when_the_server_is_down),
        cmocka_unit_test(a_spool_that_is_full_drops_its_oldest),
        cmocka_unit_test(a_disk_that_is_full_costs_what_memory_cannot_hold),
        cmocka_unit_test(a_batch_in_hand_outlives_its_place_in_the_spool),
        cmocka_unit_test(lines_may_come_while_a_job_is_done),
        cmocka_unit_test(a_batch_is_halved_at_its_middle),
        cmocka_unit_test(whole_batches_are_sent_beside_each_other),
        cmocka_unit_test(one_that_must_wait_stops_all),
        cmocka_unit_test(those_that_fail_together_are_one_failure),
        cmocka_unit_test(a_pause_that_comes_late_is_one),
        cmocka_unit_test(nothing_is_sent_beside_a_batch_in_halves),
        cmocka_unit_test(one_that_is_refused_is_not_sent_again_and_again),
        cmocka_unit_test(one_that_comes_back_does_not_take_the_place_of_one_that_is_spooled),
        cmocka_unit_test(the_end_waits_for_what_is_under_way),
        cmocka_unit_test(the_end_delivers_what_it_can),
        cmocka_unit_test(the_end_spools_what_it_cannot_deliver),
        cmocka_unit_test(the_end_leaves_of_a_batch_only_what_was_not_delivered),
        cmocka_unit_test(the_end_without_server_and_disk_counts_the_loss),
        cmocka_unit_test(a_paused_sender_ends_without_waiting),
        cmocka_unit_test(what_the_spool_held_at_the_start_counts_as_produced),
        cmocka_unit_test(whatever_happens_every_line_is_accounted),
        cmocka_unit_test(without_memory_lines_are_dropped_and_counted),
    };
    return cmocka_run_group_tests_name("sender", tests, NULL, NULL);
}
