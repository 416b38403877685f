/* Meters read on workers by a loop that runs: ticks, slow meters, those that fail for a while, the end in the midst of a read. */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "live/metering.h"

enum { INTERVAL_MS = 5, OUTLETS = 2 };

/* What the next reads find; of one test. */
static struct {
    enum meter_state states[16][OUTLETS];
    int n_states; /* after the last, all is well */
    int reads, n_open;
    bool memory; /* the first read has none */
    sem_t slow;  /* a slow read ends by a post */
} world;

struct meter {
    bool slow;
};

static int open_meter(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    (void)e;
    *out = calloc(1, sizeof **out);
    assert_non_null(*out);
    (*out)->slow = cfg->scale > 0;
    world.n_open++;
    return 0;
}

static int read_fast(struct meter *m, struct meter_reading *out)
{
    (void)m;
    int at = world.reads++;
    if (world.memory && at == 0)
        return -ENOMEM;
    for (int i = 0; i < OUTLETS; i++) {
        enum meter_state state = at < world.n_states ? world.states[at][i] : METER_OK;
        out[i] = (struct meter_reading){ .state = state, .value = at };
        (void)snprintf(out[i].node, sizeof out[i].node, "node-%d", i);
        if (state == METER_FAILED)
            (void)snprintf(out[i].why, sizeof out[i].why, "nobody answers");
        if (state == METER_DISCARDED)
            (void)snprintf(out[i].why, sizeof out[i].why, "more than there is");
    }
    return OUTLETS;
}

static int read_slow(struct meter *m, struct meter_reading *out)
{
    (void)m;
    while (sem_wait(&world.slow) < 0)
        ;
    out[0] = (struct meter_reading){ .state = METER_OK };
    return 1;
}

static void close_meter(struct meter *m)
{
    world.n_open--;
    free(m);
}

static const struct meter_ops fast = { .name = "fast", .open = open_meter, .read = read_fast, .close = close_meter };
static const struct meter_ops slow = { .name = "slow", .open = open_meter, .read = read_slow, .close = close_meter };

/* Who listens. */
struct ear {
    uv_loop_t loop;
    struct metering *m;
    int fast, slow;       /* readings */
    int free_at;          /* frees the metering within this reading */
    uint64_t first, last; /* when, by the loop's clock */
    char notes[1024];
};

static void on_reading(void *ctx, const struct meter_ops *meter, const struct meter_reading *r)
{
    struct ear *ear = ctx;
    (void)r;
    assert_non_null(ear->m);
    ++*(meter == &fast ? &ear->fast : &ear->slow);
    ear->last = uv_now(&ear->loop);
    if (ear->fast == 1)
        ear->first = ear->last;
    if (ear->free_at && ear->fast == ear->free_at)
        metering_free(MOVE_PTR(ear->m));
}

static void on_note(void *ctx, const char *text)
{
    struct ear *ear = ctx;
    size_t len = strlen(ear->notes);
    (void)snprintf(ear->notes + len, sizeof ear->notes - len, "%s\n", text);
}

static const struct metering_ops ops = { .read = on_reading, .note = on_note };
static const struct meter_cfg plain = { 0 };

static void begin(struct ear *ear)
{
    memset(&world, 0, sizeof world);
    *ear = (struct ear){ 0 };
    assert_int_equal(sem_init(&world.slow, 0, 0), 0);
    assert_int_equal(uv_loop_init(&ear->loop), 0);
    ear->m = metering_new(&ear->loop, INTERVAL_MS, &ops, ear);
    assert_non_null(ear->m);
}

static void add(struct ear *ear, const struct meter_ops *meter)
{
    struct err e = { 0 };
    assert_int_equal(metering_add(ear->m, meter, &plain, &e), 0);
}

static void end(struct ear *ear)
{
    metering_free(MOVE_PTR(ear->m));
    assert_int_equal(uv_run(&ear->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&ear->loop), 0);
    assert_int_equal(world.n_open, 0);
    (void)sem_destroy(&world.slow);
}

static void a_meter_is_read_at_once_and_at_every_tick(void **state)
{
    (void)state;
    struct ear ear;
    begin(&ear);
    add(&ear, &fast);
    uint64_t rounds = 11;
    while (metering_rounds(ear.m) < rounds)
        (void)uv_run(&ear.loop, UV_RUN_ONCE);
    assert_int_equal(ear.fast, OUTLETS * (int)rounds);
    /* However late each came, the last is no earlier than ten intervals after the first. One is lost to rounding. */
    assert_true(ear.last - ear.first >= INTERVAL_MS * (rounds - 2));
    assert_string_equal(ear.notes, "");
    end(&ear);
}

static void a_slow_meter_misses_ticks_and_holds_up_no_other(void **state)
{
    (void)state;
    struct ear ear;
    begin(&ear);
    add(&ear, &slow);
    add(&ear, &fast);
    while (ear.fast < 5 * OUTLETS)
        (void)uv_run(&ear.loop, UV_RUN_ONCE);
    assert_int_equal(ear.slow, 0);
    assert_int_equal(metering_rounds(ear.m), 0);
    assert_true(metering_missed(ear.m) >= 4); /* the first read of five was at no tick */
    assert_int_equal(sem_post(&world.slow), 0);
    while (ear.slow < 1)
        (void)uv_run(&ear.loop, UV_RUN_ONCE);
    assert_int_equal(metering_rounds(ear.m), 1);
    assert_int_equal(sem_post(&world.slow), 0); /* if it is being read again */
    end(&ear);
}

static void an_outlet_that_fails_in_turn_is_told_once_and_once_when_all_are_back(void **state)
{
    (void)state;
    struct ear ear;
    begin(&ear);
    static const enum meter_state states[][OUTLETS] = {
        { METER_FIRST, METER_FIRST },      { METER_OK, METER_FAILED }, { METER_OK, METER_FAILED },
        { METER_FAILED, METER_FAILED },    { METER_OK, METER_FAILED }, { METER_OK, METER_DISCARDED },
        { METER_DISCARDED, METER_FAILED },
    };
    memcpy(world.states, states, sizeof states);
    world.n_states = ARRAY_LEN(states);
    add(&ear, &fast);
    while (metering_rounds(ear.m) < 10)
        (void)uv_run(&ear.loop, UV_RUN_ONCE);
    assert_string_equal(ear.notes, "fast cannot be read for node-1: nobody answers\n"
                                   "fast cannot be read for node-0: nobody answers\n"
                                   "fast is implausible for node-1: more than there is\n"
                                   "fast can be read again\n"
                                   "fast is implausible for node-0: more than there is\n");
    assert_int_equal(ear.fast, 10 * OUTLETS); /* what failed is handed over, too */
    end(&ear);
}

static void a_round_without_memory_is_told(void **state)
{
    (void)state;
    struct ear ear;
    begin(&ear);
    world.memory = true;
    add(&ear, &fast);
    while (metering_rounds(ear.m) < 3)
        (void)uv_run(&ear.loop, UV_RUN_ONCE);
    assert_string_equal(ear.notes, "fast cannot be read: Cannot allocate memory\nfast can be read again\n");
    end(&ear);
}

static void ticks_that_the_loop_comes_to_too_late_are_missed(void **state)
{
    (void)state;
    struct ear ear;
    begin(&ear);
    add(&ear, &fast);
    uint64_t until = uv_hrtime() + 10 * INTERVAL_MS * UINT64_C(1000000);
    while (uv_hrtime() < until)
        ; /* nobody runs the loop */
    while (metering_rounds(ear.m) < 2)
        (void)uv_run(&ear.loop, UV_RUN_ONCE);
    assert_true(metering_missed(ear.m) >= 8);
    end(&ear);
}

static void a_read_under_way_at_the_end_is_nobodys(void **state)
{
    (void)state;
    struct ear ear;
    begin(&ear);
    add(&ear, &slow);
    add(&ear, &fast);
    while (ear.fast < OUTLETS)
        (void)uv_run(&ear.loop, UV_RUN_ONCE);
    metering_free(MOVE_PTR(ear.m)); /* on_reading() asserts that none comes any more */
    (void)uv_run(&ear.loop, UV_RUN_NOWAIT);
    assert_int_equal(world.n_open, 2);
    assert_int_equal(sem_post(&world.slow), 0);
    end(&ear);
    assert_int_equal(ear.slow, 0);
}

static void it_may_be_freed_by_whom_it_tells(void **state)
{
    (void)state;
    for (int at = 1; at <= 3; at++) {
        struct ear ear;
        begin(&ear);
        ear.free_at = at;
        world.states[0][1] = METER_FAILED;
        world.n_states = 1;
        add(&ear, &fast);
        while (ear.m)
            (void)uv_run(&ear.loop, UV_RUN_ONCE);
        end(&ear);
        assert_int_equal(ear.fast, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_meter_is_read_at_once_and_at_every_tick),
        cmocka_unit_test(a_slow_meter_misses_ticks_and_holds_up_no_other),
        cmocka_unit_test(an_outlet_that_fails_in_turn_is_told_once_and_once_when_all_are_back),
        cmocka_unit_test(a_round_without_memory_is_told),
        cmocka_unit_test(ticks_that_the_loop_comes_to_too_late_are_missed),
        cmocka_unit_test(a_read_under_way_at_the_end_is_nobodys),
        cmocka_unit_test(it_may_be_freed_by_whom_it_tells),
    };
    return cmocka_run_group_tests_name("metering over time", tests, NULL, NULL);
}
