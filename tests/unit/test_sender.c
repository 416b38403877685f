/* Which rows are sent, when, and what becomes of them: against a table of rows, a server and a clock, none of them real. */
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
#include "tests/fault.h"

enum { LINES_MAX = 20000, LINE_BYTES = 9 };

enum where { NOWHERE, WAITS, STORED, REJECTED };

/* A batch that was fetched. Line number i is row i + 1, and LINE_BYTES long. */
struct job {
    struct sender_batch asked, b;
};

struct world {
    struct sender *s;
    int64_t now;
    int pushed;
    enum where row[LINES_MAX];
    /* the server */
    struct influx_answer (*answer)(struct world *w, const struct job *job);
    int requests;
    int64_t sent_ms[1024];
    uint8_t at_peer[LINES_MAX];
    struct rng rng;
    char notes[4096];
    struct job open[SENDER_IN_FLIGHT_MAX]; /* being done */
    int n_open;
    int not_fetched; /* of so many fetches one fails; 0: none */
};

static struct influx_answer answer_of(enum influx_kind kind)
{
    return (struct influx_answer){ .kind = kind, .wait_ms = -1, .text = "words" };
}

static struct influx_answer delivers(struct world *w, const struct job *job)
{
    (void)w, (void)job;
    return answer_of(INFLUX_DELIVERED);
}

static struct influx_answer is_down(struct world *w, const struct job *job)
{
    (void)w, (void)job;
    return answer_of(INFLUX_RETRY);
}

static struct world *world_new(struct sender_cfg cfg)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->s = sender_new(&cfg, 0);
    assert_non_null(w->s);
    w->answer = delivers;
    w->rng = rng_seeded(5);
    return w;
}

static void world_done(struct world *w)
{
    sender_free(w->s);
    free(w);
}

static bool has_line(const struct job *job, int line)
{
    return line >= job->b.after && line < job->b.to;
}

/* What the outbox does for a batch. False: there is nothing to be sent. */
static bool fetch(struct world *w, struct job *job)
{
    struct sender_batch *b = &job->b;
    *b = job->asked;
    b->lines = 0;
    b->bytes = 0;
    b->to = b->after;
    for (int64_t i = job->asked.after; i < job->asked.to; i++) {
        if (w->row[i] != WAITS)
            continue;
        if (b->lines == job->asked.lines || (b->lines && b->bytes + LINE_BYTES > job->asked.bytes))
            return sender_fetched(w->s, &job->asked, b);
        b->lines++;
        b->bytes += LINE_BYTES;
        b->to = i + 1;
    }
    b->to = job->asked.to;
    return sender_fetched(w->s, &job->asked, b);
}

/* 1: *out is fetched and can be sent. */
static int next_job(struct world *w, struct job *out, int64_t *wake)
{
    while (sender_next(w->s, w->now, &out->asked, wake)) {
        if (w->not_fetched && rng_below(&w->rng, (uint64_t)w->not_fetched) == 0)
            sender_not_fetched(w->s, &out->asked);
        else if (fetch(w, out))
            return 1;
    }
    return 0;
}

static void mark(struct world *w, const struct sender_batch *b, enum where to)
{
    for (int64_t i = b->after; i < b->to; i++) {
        if (w->row[i] != WAITS)
            continue;
        w->row[i] = to;
    }
}

static size_t count_rows(const struct world *w, enum where where)
{
    size_t n = 0;
    for (int i = 0; i < w->pushed; i++)
        n += w->row[i] == where;
    return n;
}

static void check_balance(const struct world *w)
{
    struct sender_counts c = sender_counts(w->s);
    if (count_rows(w, STORED) != c.stored + c.refused || count_rows(w, REJECTED) != c.rejected)
        fail_msg("out of balance: stored %zu, counted %lu + %lu; rejected %zu, counted %lu", count_rows(w, STORED),
                 (unsigned long)c.stored, (unsigned long)c.refused, count_rows(w, REJECTED), (unsigned long)c.rejected);
}

static void do_job(struct world *w, const struct job *job)
{
    if (w->requests < (int)ARRAY_LEN(w->sent_ms))
        w->sent_ms[w->requests] = w->now;
    w->requests++;
    struct influx_answer a = w->answer(w, job);
    if (a.kind == INFLUX_DELIVERED || a.kind == INFLUX_PARTIAL)
        for (int64_t i = job->b.after; i < job->b.to; i++)
            w->at_peer[i] |= w->row[i] == WAITS;
    enum sender_fate fate = sender_done(w->s, w->now, &job->b, &a);
    if (fate != SENDER_KEEP)
        mark(w, &job->b, fate == SENDER_STORED ? STORED : REJECTED);
    check_balance(w);
    char text[512];
    while (sender_told(w->s, text, sizeof text))
        (void)snprintf(w->notes + strlen(w->notes), sizeof w->notes - strlen(w->notes), "%s\n", text);
}

/* Everything that is due until `until`. */
static void run_until(struct world *w, int64_t until)
{
    for (int steps = 0;; steps++) {
        assert_true(steps < 1000000);
        struct job job;
        int64_t wake;
        if (next_job(w, &job, &wake)) {
            do_job(w, &job);
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
        struct job job;
        while (w->n_open < SENDER_IN_FLIGHT_MAX && next_job(w, &job, &wake)) {
            for (int i = 0; i < w->n_open; i++)
                assert_int_not_equal(w->open[i].b.lane, job.b.lane);
            w->open[w->n_open++] = job;
        }
        if (w->n_open > 0) {
            w->now += (int64_t)rng_below(&w->rng, 3) * 100;
            int i = (int)rng_below(&w->rng, (uint64_t)w->n_open);
            job = w->open[i];
            w->open[i] = w->open[--w->n_open];
            do_job(w, &job);
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
        assert_true(w->pushed < LINES_MAX);
        w->row[w->pushed++] = WAITS;
    }
    sender_rows(w->s, w->now, w->pushed);
}

static void close_in(struct world *w, int64_t ms)
{
    sender_close(w->s, w->now, w->now + ms);
    run_until(w, w->now + ms + 1);
    assert_true(sender_ended(w->s));
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

static void a_batch_has_no_more_bytes_than_it_may(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_bytes = 60 });
    push(w, 20);
    run_until(w, 1000);
    assert_int_equal(w->requests, 4);
    assert_int_equal(sender_counts(w->s).stored, 20);
    world_done(w);
}

/* --- refusals --- */

static struct influx_answer rejects_777(struct world *w, const struct job *job)
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
    assert_true(w->requests <= 1 + 2 * 10); /* log2(1024) halvings */
    assert_int_equal(sender_counts(w->s).stored, 1023);
    assert_int_equal(sender_counts(w->s).rejected, 1);
    assert_int_equal(w->row[777], REJECTED);
    assert_non_null(strstr(w->notes, "in quarantine: words"));
    world_done(w);
}

static struct influx_answer rejects_all(struct world *w, const struct job *job)
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
    assert_int_equal(sender_counts(w->s).rejected, 5000);
    assert_true(w->requests < 200);
    world_done(w);
}

static struct influx_answer takes_4500_bytes(struct world *w, const struct job *job)
{
    (void)w;
    return answer_of(job->b.bytes > 4500 ? INFLUX_HALVE : INFLUX_DELIVERED);
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

static struct influx_answer drops_three(struct world *w, const struct job *job)
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
    assert_int_equal(sender_counts(w->s).refused, 6);
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

static struct influx_answer asks_for_90_s(struct world *w, const struct job *job)
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

static struct influx_answer is_forbidden_at_first(struct world *w, const struct job *job)
{
    (void)job;
    struct influx_answer a = answer_of(w->now < 300000 ? INFLUX_PAUSE : INFLUX_DELIVERED);
    a.reason = w->now < 150000 ? INFLUX_UNAUTHORIZED : INFLUX_FORBIDDEN;
    return a;
}

static void a_pause_is_told_once_per_reason(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 1, .pause_ms = 60000 });
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

/* --- several at once --- */

/* All that may be done now; returns how many. */
static int begin_all(struct world *w, struct job jobs[SENDER_IN_FLIGHT_MAX])
{
    int n = 0;
    int64_t wake;
    while (n < SENDER_IN_FLIGHT_MAX && next_job(w, &jobs[n], &wake))
        n++;
    return n;
}

static void whole_batches_are_sent_beside_each_other(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 3, .batch_lines = 10 });
    struct job jobs[SENDER_IN_FLIGHT_MAX], next[SENDER_IN_FLIGHT_MAX];
    push(w, 45);
    assert_int_equal(begin_all(w, jobs), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jobs[i].b.lane, i);
        assert_true(has_line(&jobs[i], 10 * i));
    }
    assert_int_equal(count_rows(w, WAITS), 45);
    do_job(w, &jobs[1]);
    assert_int_equal(begin_all(w, next), 1);
    assert_int_equal(next[0].b.lane, 1);
    do_job(w, &jobs[2]);
    do_job(w, &next[0]);
    assert_int_equal(begin_all(w, next), 0); /* five lines are not a whole batch */
    do_job(w, &jobs[0]);
    close_in(w, 1000);
    assert_int_equal(count_of(w->at_peer), 45);
    assert_int_equal(w->requests, 5);
    world_done(w);
}

static void one_that_must_wait_stops_all(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 3, .batch_lines = 10 });
    struct job jobs[SENDER_IN_FLIGHT_MAX], probe[SENDER_IN_FLIGHT_MAX];
    push(w, 100);
    assert_int_equal(begin_all(w, jobs), 3);
    w->answer = asks_for_90_s;
    do_job(w, &jobs[1]);
    w->answer = delivers;
    do_job(w, &jobs[0]); /* what was under way is there, but does not end the wait */
    do_job(w, &jobs[2]);
    assert_int_equal(sender_counts(w->s).stored, 20);
    w->now = 89999;
    assert_int_equal(begin_all(w, probe), 0);
    w->now = 90000;
    assert_int_equal(begin_all(w, probe), 1); /* one alone looks whether it is over */
    do_job(w, &probe[0]);
    assert_int_equal(begin_all(w, jobs), 3);
    for (int i = 0; i < 3; i++)
        do_job(w, &jobs[i]);
    close_in(w, 1000);
    assert_int_equal(count_of(w->at_peer), 100);
    assert_string_equal(w->notes, "influxdb takes no data, trying again: words\ninfluxdb takes data again\n");
    world_done(w);
}

static void those_that_fail_together_are_one_failure(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct world *w =
            world_new((struct sender_cfg){ .in_flight = 4, .batch_lines = 10, .seed = seed, .backoff_ms = 1000 });
        struct job jobs[SENDER_IN_FLIGHT_MAX];
        int64_t wake;
        push(w, 40);
        assert_int_equal(begin_all(w, jobs), 4);
        w->answer = is_down;
        for (int i = 0; i < 4; i++)
            do_job(w, &jobs[i]);
        if (!next_job(w, &jobs[0], &wake))
            assert_true(wake <= 1000); /* the wait after the first of several failures */
        run_until(w, 60000);
        assert_int_equal(count_rows(w, WAITS), 40);
        assert_string_equal(w->notes, "influxdb takes no data, trying again: words\n");
        world_done(w);
    }
}

static void a_pause_that_comes_late_is_one(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 2, .batch_lines = 10, .pause_ms = 60000 });
    struct job jobs[SENDER_IN_FLIGHT_MAX];
    push(w, 40);
    assert_int_equal(begin_all(w, jobs), 2);
    w->answer = is_down;
    do_job(w, &jobs[0]);
    w->answer = is_forbidden_at_first;
    do_job(w, &jobs[1]);
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
        struct influx_answer (*answer)(struct world *w, const struct job *job);
        uint64_t quarantined;
    } rows[] = {
        { "a line is poison", rejects_777, 1 },
        { "the batch is too large", takes_4500_bytes, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world *w = world_new((struct sender_cfg){ .in_flight = 3, .batch_lines = 500 });
        struct job jobs[SENDER_IN_FLIGHT_MAX];
        w->answer = rows[i].answer;
        push(w, 5000);
        for (int n; (n = begin_all(w, jobs)) > 0;)
            for (int k = n - 1; k >= 0; k--) {
                if (jobs[k].b.lines < 500 && n > 1)
                    fail_msg("%s: a part of %u lines, and %d other batches", rows[i].name, jobs[k].b.lines, n - 1);
                do_job(w, &jobs[k]);
            }
        assert_int_equal(sender_counts(w->s).rejected, rows[i].quarantined);
        assert_int_equal(sender_counts(w->s).stored, 5000 - rows[i].quarantined);
        assert_true(w->requests < 100);
        world_done(w);
    }
}

static void one_that_is_refused_is_halved_when_the_others_are_over(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 2, .batch_lines = 500 });
    struct job jobs[SENDER_IN_FLIGHT_MAX], more[SENDER_IN_FLIGHT_MAX];
    push(w, 2000);
    assert_int_equal(begin_all(w, jobs), 2);
    w->answer = rejects_777;
    do_job(w, &jobs[1]);
    assert_int_equal(begin_all(w, more), 0);
    do_job(w, &jobs[0]);
    assert_int_equal(begin_all(w, more), 1);
    assert_int_equal(more[0].b.after, 500);
    assert_int_equal(more[0].b.lines, 250);
    do_job(w, &more[0]);
    run_until(w, 0);
    assert_int_equal(sender_counts(w->s).stored, 1999);
    assert_int_equal(sender_counts(w->s).rejected, 1);
    world_done(w);
}

static void the_end_waits_for_what_is_under_way(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .in_flight = 2, .batch_lines = 10 });
    struct job jobs[SENDER_IN_FLIGHT_MAX], more[SENDER_IN_FLIGHT_MAX];
    push(w, 40);
    assert_int_equal(begin_all(w, jobs), 2);
    sender_close(w->s, w->now, w->now + 1000);
    w->now += 1000;
    do_job(w, &jobs[0]);
    assert_int_equal(begin_all(w, more), 0);
    assert_false(sender_ended(w->s));
    w->answer = is_down;
    do_job(w, &jobs[1]);
    run_until(w, w->now);
    assert_true(sender_ended(w->s));
    assert_int_equal(sender_counts(w->s).stored, 10);
    assert_int_equal(count_rows(w, WAITS), 30);
    world_done(w);
}

/* --- the end --- */

static void the_end_delivers_what_it_can(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ 0 });
    push(w, 100);
    close_in(w, 5000);
    assert_int_equal(sender_counts(w->s).stored, 100);
    world_done(w);
}

static void the_end_leaves_what_it_cannot_deliver(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 10 });
    w->answer = is_down;
    push(w, 100);
    close_in(w, 5000);
    assert_int_equal(count_rows(w, WAITS), 100);
    world_done(w);
}

static struct influx_answer delivers_a_part(struct world *w, const struct job *job)
{
    if (job->b.lines > 25)
        return answer_of(INFLUX_HALVE);
    return answer_of(w->requests < 6 ? INFLUX_DELIVERED : INFLUX_RETRY);
}

static void the_end_leaves_of_a_batch_only_what_was_not_delivered(void **state)
{
    (void)state;
    for (int waited_first = 0; waited_first < 2; waited_first++) {
        struct world *w = world_new((struct sender_cfg){ .batch_lines = 100 });
        w->answer = is_down;
        push(w, 100);
        run_until(w, waited_first ? 20000 : 0);
        w->requests = 0;
        w->answer = delivers_a_part;
        run_until(w, w->now + 100000);
        close_in(w, 0);
        struct sender_counts c = sender_counts(w->s);
        assert_true(c.stored > 0 && c.stored < 100);
        assert_int_equal(count_rows(w, WAITS), 100 - c.stored);
        world_done(w);
    }
}

static void a_paused_sender_ends_without_waiting(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 10 });
    w->answer = is_forbidden_at_first;
    push(w, 100);
    run_until(w, 100);
    sender_close(w->s, w->now, w->now + 100000);
    run_until(w, w->now);
    assert_true(sender_ended(w->s));
    assert_int_equal(count_rows(w, WAITS), 100);
    world_done(w);
}

/* --- anything at all --- */

static struct influx_answer any(struct world *w, const struct job *job)
{
    uint64_t x = rng_below(&w->rng, 100);
    struct influx_answer a = answer_of(x < 40   ? INFLUX_DELIVERED
                                       : x < 50 ? INFLUX_PARTIAL
                                       : x < 70 ? INFLUX_RETRY
                                       : x < 80 ? INFLUX_HALVE
                                       : x < 90 ? INFLUX_REJECT
                                                : INFLUX_PAUSE);
    a.dropped = a.kind == INFLUX_PARTIAL ? rng_below(&w->rng, job->b.lines + 1) : 0;
    a.reason = a.kind == INFLUX_PAUSE ? INFLUX_FORBIDDEN : INFLUX_NO_REASON;
    return a;
}

static void whatever_happens_every_row_is_accounted(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct world *w = world_new((struct sender_cfg){ .in_flight = 1 + (unsigned)seed % 5,
                                                         .seed = seed,
                                                         .batch_lines = 20,
                                                         .batch_bytes = 200,
                                                         .rejects_max = 4 });
        w->rng = rng_seeded(seed);
        w->not_fetched = seed % 2 ? 5 : 0;
        w->answer = any;
        for (int i = 0; i < 200; i++) {
            push(w, (int)rng_below(&w->rng, 40));
            run_mixed_until(w, w->now + (int64_t)rng_below(&w->rng, 3000));
        }
        sender_close(w->s, w->now, w->now + (int64_t)rng_below(&w->rng, 10000));
        while (!sender_ended(w->s))
            run_mixed_until(w, INT64_MAX - 1);
        struct sender_counts c = sender_counts(w->s);
        assert_int_equal(c.stored + c.refused + c.rejected + count_rows(w, WAITS), w->pushed);
        assert_true(count_of(w->at_peer) >= c.stored); /* what is acknowledged is there */
        world_done(w);
    }
}

/* A cursor skips nothing: once the server takes all, all that was not rejected is there. */
static void after_any_moods_all_rows_are_delivered_in_the_end(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct world *w = world_new((struct sender_cfg){ .in_flight = 1 + (unsigned)seed % 5,
                                                         .seed = seed,
                                                         .batch_lines = 20,
                                                         .batch_bytes = 200,
                                                         .rejects_max = 4 });
        w->rng = rng_seeded(seed);
        w->answer = any;
        for (int i = 0; i < 50; i++) {
            push(w, (int)rng_below(&w->rng, 60));
            run_mixed_until(w, w->now + (int64_t)rng_below(&w->rng, 3000));
        }
        w->answer = delivers;
        for (int i = 0; i < 100; i++)
            run_mixed_until(w, w->now + 100000);
        sender_close(w->s, w->now, w->now + 100000);
        while (!sender_ended(w->s))
            run_mixed_until(w, INT64_MAX - 1);
        assert_int_equal(count_rows(w, WAITS), 0);
        world_done(w);
    }
}

static void rows_of_an_earlier_run_are_walked_over_with_their_holes(void **state)
{
    (void)state;
    struct world *w = world_new((struct sender_cfg){ .batch_lines = 10 });
    for (int i = 0; i < 100; i++)
        w->row[i] = i % 7 == 0 || (i >= 20 && i < 60) ? REJECTED : WAITS;
    w->pushed = 100;
    size_t waits = count_rows(w, WAITS);
    sender_rows(w->s, w->now, 100);
    for (int64_t wake; !sender_ended(w->s);) {
        struct job job;
        sender_close(w->s, w->now, 1000);
        while (next_job(w, &job, &wake)) {
            w->requests++;
            struct influx_answer a = answer_of(INFLUX_DELIVERED);
            assert_int_equal(sender_done(w->s, w->now, &job.b, &a), SENDER_STORED);
            mark(w, &job.b, STORED);
        }
    }
    assert_int_equal(sender_counts(w->s).stored, waits);
    assert_int_equal(count_rows(w, WAITS), 0);
    world_done(w);
}

static void without_memory_there_is_none(void **state)
{
    (void)state;
    fault_arm(FAULT_ALLOC, 1);
    const struct sender_cfg cfg = { 0 };
    assert_null(sender_new(&cfg, 0));
    assert_true(fault_disarm());
    sender_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_batch_is_sent_at_once),
        cmocka_unit_test(a_batch_that_is_not_full_is_sent_by_its_age),
        cmocka_unit_test(a_batch_has_no_more_bytes_than_it_may),
        cmocka_unit_test(one_poison_line_is_found_by_halving),
        cmocka_unit_test(a_batch_of_poison_does_not_cost_a_request_a_line),
        cmocka_unit_test(what_is_too_large_is_sent_in_smaller_parts_from_then_on),
        cmocka_unit_test(what_the_server_drops_is_counted_and_not_sent_again),
        cmocka_unit_test(failures_are_retried_ever_more_rarely),
        cmocka_unit_test(a_server_that_asks_to_wait_is_left_alone_so_long),
        cmocka_unit_test(a_pause_is_told_once_per_reason),
        cmocka_unit_test(whole_batches_are_sent_beside_each_other),
        cmocka_unit_test(one_that_must_wait_stops_all),
        cmocka_unit_test(those_that_fail_together_are_one_failure),
        cmocka_unit_test(a_pause_that_comes_late_is_one),
        cmocka_unit_test(nothing_is_sent_beside_a_batch_in_halves),
        cmocka_unit_test(one_that_is_refused_is_halved_when_the_others_are_over),
        cmocka_unit_test(the_end_waits_for_what_is_under_way),
        cmocka_unit_test(the_end_delivers_what_it_can),
        cmocka_unit_test(the_end_leaves_what_it_cannot_deliver),
        cmocka_unit_test(the_end_leaves_of_a_batch_only_what_was_not_delivered),
        cmocka_unit_test(a_paused_sender_ends_without_waiting),
        cmocka_unit_test(whatever_happens_every_row_is_accounted),
        cmocka_unit_test(after_any_moods_all_rows_are_delivered_in_the_end),
        cmocka_unit_test(rows_of_an_earlier_run_are_walked_over_with_their_holes),
        cmocka_unit_test(without_memory_there_is_none),
    };
    return cmocka_run_group_tests_name("sender", tests, NULL, NULL);
}
