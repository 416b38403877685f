/* Ticks, spells, and that meters are opened and given back whatever fails. What happens over time is in tests/integration/test_metering.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/ticker.h"
#include "live/metering.h"
#include "live/spells.h"
#include "tests/fault.h"

/* --- ticks --- */

static const struct {
    const char *name;
    uint64_t now[4], want[4], next;
} rows[] = {
    { "a tick comes after the interval and not before", { 1999, 2000, 2001, 2999 }, { 0, 1, 0, 0 }, 3000 },
    { "one that comes late does not move the next", { 2700, 3000, 4999, 5000 }, { 1, 1, 1, 1 }, 6000 },
    { "those that were slept through are counted", { 4500, 4999, 5000, 9000 }, { 3, 0, 1, 4 }, 10000 },
};

static void test_ticks(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ticker t = ticker_from(1000, 1000);
        for (size_t k = 0; k < 4; k++) {
            uint64_t got = ticker_take(&t, (int64_t)rows[i].now[k]);
            if (got != rows[i].want[k])
                fail_msg("%s: at %lu got %lu, want %lu", rows[i].name, (unsigned long)rows[i].now[k],
                         (unsigned long)got, (unsigned long)rows[i].want[k]);
        }
        assert_int_equal(t.next, rows[i].next);
    }
}

/* --- spells --- */

enum { S = 1000, M = SPELLS_TOLD_EVERY_MS };

static const struct {
    const char *name;
    uint64_t on[6], at_ms[6];
    int want[6];
} spell_rows[] = {
    { "one that begins is told once",
      { 1, 1, 1, 1, 1, 0 },
      { 0, S, 2 * S, M, 3 * M, 4 * M },
      { 0, -1, -1, -1, -1, -1 } },
    { "one that comes and goes is told once a minute",
      { 1, 0, 1, 0, 1, 1 },
      { 0, S, 2 * S, 3 * S, M, M + S },
      { 0, -1, -1, -1, 0, -1 } },
    { "one that comes back and stays is told when the minute is over",
      { 2, 0, 2, 2, 2, 2 },
      { 0, S, 2 * S, M - 1, M, M + S },
      { 1, -1, -1, -1, 1, -1 } },
    { "each has its own minute", { 1, 3, 2, 3, 7, 6 }, { 0, S, 2 * S, 3 * S, 4 * S, 5 * S }, { 0, 1, -1, -1, 2, -1 } },
    { "the first speaks for all that begin at once",
      { 6, 6, 4, 0, 6, 6 },
      { 5 * M, 5 * M + S, 5 * M + 2 * S, 7 * M, 7 * M + S, 9 * M },
      { 1, -1, -1, -1, 1, -1 } },
    { "the last of all is one, too",
      { UINT64_C(1) << 63, 0, UINT64_C(1) << 63, 0, UINT64_C(1) << 63, 0 },
      { 0, S, 2 * S, 3 * S, M, M },
      { 63, -1, -1, -1, 63, -1 } },
};

static void test_spells(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(spell_rows); i++) {
        struct spells s = { 0 };
        for (size_t k = 0; k < 6; k++) {
            int got = spells_take(&s, spell_rows[i].on[k], spell_rows[i].at_ms[k]);
            if (got != spell_rows[i].want[k])
                fail_msg("%s: step %zu: got %d, want %d", spell_rows[i].name, k, got, spell_rows[i].want[k]);
        }
    }
}

/* --- opening and closing --- */

struct meter {
    int unused;
};

static int n_open, n_read;

static int open_one(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    if (cfg->max_w < 0)
        return err_set(e, -ENODEV, "there is none here");
    *out = calloc(1, sizeof **out);
    if (!*out)
        return err_sys(e, -ENOMEM, "fake");
    n_open++;
    return 0;
}

static int read_one(struct meter *m, struct meter_reading *out)
{
    (void)m, (void)out;
    n_read++;
    return 0;
}

static void close_one(struct meter *m)
{
    n_open -= m != NULL;
    free(m);
}

static const struct meter_ops fake = { .name = "fake", .open = open_one, .read = read_one, .close = close_one };

static void ignore_reading(void *ctx, const struct meter_ops *meter, const struct meter_reading *r)
{
    (void)ctx, (void)meter, (void)r;
}

static void ignore_note(void *ctx, const char *text)
{
    (void)ctx, (void)text;
}

static const struct metering_ops ops = { .read = ignore_reading, .note = ignore_note };

static void end(uv_loop_t *loop, struct metering *m)
{
    metering_free(m);
    assert_int_equal(uv_run(loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(loop), 0);
    assert_int_equal(n_open, 0);
}

static int add_two(struct metering *m)
{
    static const struct meter_cfg cfg = { 0 };
    struct err e = { 0 };
    int rc = metering_add(m, &fake, &cfg, &e);
    return rc < 0 ? rc : metering_add(m, &fake, &cfg, &e);
}

static void test_whatever_fails_every_meter_is_closed(void **state)
{
    (void)state;
    int rc = -1;
    for (unsigned nth = 1; rc < 0; nth++) {
        uv_loop_t loop;
        assert_true(nth < 20);
        assert_int_equal(uv_loop_init(&loop), 0);
        fault_arm(FAULT_ALLOC, nth);
        struct metering *m = metering_new(&loop, 3600000, &ops, NULL);
        rc = m ? add_two(m) : -ENOMEM;
        (void)fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
        end(&loop, m);
    }
}

static void test_a_meter_that_is_not_there_says_so_and_stops_no_other(void **state)
{
    (void)state;
    static const struct meter_cfg good = { 0 }, bad = { .max_w = -1 };
    uv_loop_t loop;
    struct err e = { 0 };
    assert_int_equal(uv_loop_init(&loop), 0);
    struct metering *m = metering_new(&loop, 3600000, &ops, NULL);
    assert_true(metering_rounds(m) == UINT64_MAX);
    assert_int_equal(metering_add(m, &fake, &bad, &e), -ENODEV);
    assert_string_equal(e.text, "there is none here");
    n_read = 0;
    assert_int_equal(metering_add(m, &fake, &good, &e), 0);
    assert_int_equal(metering_rounds(m), 0);
    while (metering_rounds(m) == 0)
        (void)uv_run(&loop, UV_RUN_ONCE); /* the first read is at once */
    assert_int_equal(n_read, 1);
    assert_int_equal(metering_missed(m), 0);
    end(&loop, m);
}

static void test_freeing_nothing_is_fine(void **state)
{
    (void)state;
    metering_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_spells),
        cmocka_unit_test(test_whatever_fails_every_meter_is_closed),
        cmocka_unit_test(test_a_meter_that_is_not_there_says_so_and_stops_no_other),
        cmocka_unit_test(test_freeing_nothing_is_fine),
    };
    return cmocka_run_group_tests_name("metering", tests, NULL, NULL);
}
