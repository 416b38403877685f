/* Logs whose printed clock is set while they are written, fed as lines. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "app/fold.h"
#include "app/stamps.h"
#include "base/own.h"
#include "bigdl/log.h"

enum { STEPS = 10, STEP_MS = 900, VALIDATION_MS = 700, BEGIN_MS = 36000000 /* 10:00 */ };

/* One log as it is written, and read 40 ms later where somebody watches. */
struct writer {
    struct stamps clock;
    struct fold fold;
    struct line_place place;
    int64_t true_ms; /* since it began */
    int64_t set_ms;  /* what the wall clock is off by now */
    double wall_s;
    bool live, coarse, bare; /* bare: BigDL's own clock is not printed */
    double seconds[8];       /* of each epoch, as folded */
    int n;
};

static void take(struct writer *w, const char *text)
{
    int64_t at = BEGIN_MS + w->true_ms + w->set_ms;
    char line[400];
    struct app_report ev;
    struct fold_epoch epoch;
    int n = snprintf(line, sizeof line, "2026-11-19 %02d:%02d:%02d", (int)(at / 3600000 % 24), (int)(at / 60000 % 60),
                     (int)(at / 1000 % 60));
    if (!w->coarse)
        n += snprintf(line + n, sizeof line - (size_t)n, ".%03d", (int)(at % 1000));
    (void)snprintf(line + n, sizeof line - (size_t)n, " INFO  DistriOptimizer$:408 - %s", text);
    if (!log_reader.parse(NULL, &w->place, line, strlen(line), &ev))
        fail_msg("no event: %s", line);
    stamps_mend(&w->clock, &ev, w->live ? 5000000 + w->true_ms + 40 : 99000000, w->live);
    if (fold_report(&w->fold, &ev, 1, &epoch))
        w->seconds[w->n++] = epoch.seconds;
}

static void write_step(struct writer *w, int epoch, int i)
{
    char text[300], wall[60] = "";
    w->true_ms += STEP_MS;
    w->wall_s += STEP_MS / 1000.0;
    if (!w->bare)
        (void)snprintf(wall, sizeof wall, "[Wall Clock %.6fs]", w->wall_s);
    (void)snprintf(text, sizeof text,
                   "[Epoch %d %d/%d][Iteration %d]%s Trained 64.0 records in %.3f seconds. Throughput is 71.1 "
                   "records/second. Loss is 0.5.",
                   epoch, i * 64, STEPS * 64, (epoch - 1) * STEPS + i, wall, STEP_MS / 1000.0);
    take(w, text);
}

/* The clock is set by `by_ms` after this step of this epoch; STEPS + 1: while it validates. */
static void write_log(struct writer *w, int at_epoch, int at_step, int64_t by_ms)
{
    fold_init(&w->fold, "accuracy", 0);
    w->clock = (struct stamps){ .begun = false };
    for (int epoch = 1; epoch <= 3; epoch++) {
        for (int i = 1; i <= STEPS; i++) {
            write_step(w, epoch, i);
            w->set_ms += epoch == at_epoch && i == at_step ? by_ms : 0;
        }
        char text[200];
        (void)snprintf(text, sizeof text,
                       "[Epoch %d %d/%d][Iteration %d][Wall Clock %.6fs] Epoch finished. Wall clock time is %.3f ms",
                       epoch, STEPS * 64, STEPS * 64, epoch * STEPS, w->wall_s, w->wall_s * 1000);
        take(w, text);
        w->set_ms += epoch == at_epoch && at_step > STEPS ? by_ms : 0;
        w->true_ms += VALIDATION_MS;
        take(w, "[Epoch 1 64/64][Iteration 1][Wall Clock 1.0s] Top1Accuracy is Accuracy(correct: 9, count: 10, "
                "accuracy: 0.9)");
    }
    struct fold_epoch epoch;
    if (fold_end(&w->fold, &epoch))
        w->seconds[w->n++] = epoch.seconds;
}

static const double want_s = (STEPS * STEP_MS + VALIDATION_MS) / 1000.0;

static void expect_seconds(const char *name, const struct writer *w, double tolerance_s)
{
    if (w->n != 3)
        fail_msg("%s: got %d epochs, want 3", name, w->n);
    for (int i = 0; i < 3; i++)
        if (!(fabs(w->seconds[i] - want_s) <= tolerance_s))
            fail_msg("%s: epoch %d took %g s, want %g", name, i + 1, w->seconds[i], want_s);
}

static const struct {
    const char *name;
    int64_t by_ms;
    int at_step;
} steps[] = {
    { "two hours on, in mid-epoch", 7200000, 4 },
    { "two hours back, in mid-epoch", -7200000, 4 },
    { "a minute on, in mid-epoch", 90000, 4 },
    { "a minute back, in mid-epoch", -90000, 4 },
    { "three seconds on, in mid-epoch", 3000, 4 },
    { "three seconds back, in mid-epoch", -3000, 4 },
    { "two hours on, while it validates", 7200000, 11 },
    { "two hours back, while it validates", -7200000, 11 },
    { "two hours on, between epochs", 7200000, 10 },
    { "two hours back, between epochs", -7200000, 10 },
    { "not at all", 0, 1 },
};

static void test_a_clock_that_is_set_costs_no_seconds(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct writer w = { .live = true };
        write_log(&w, 2, steps[i].at_step, steps[i].by_ms);
        expect_seconds(steps[i].name, &w, 0.15);
        struct writer coarse = { .live = true, .coarse = true };
        write_log(&coarse, 2, steps[i].at_step, steps[i].by_ms);
        expect_seconds(steps[i].name, &coarse, 2.05);
        struct writer bare = { .live = true, .bare = true };
        write_log(&bare, 2, steps[i].at_step, steps[i].by_ms);
        expect_seconds(steps[i].name, &bare, 3.05); /* a step that is as long as three seconds says nothing by itself */
    }
}

/* Read later than it was written: by what BigDL prints alone, which does not count the validation. */
static void test_a_log_that_nobody_watched(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct writer w = { .live = false };
        bool on_between = steps[i].by_ms > 0 && steps[i].at_step >= STEPS;
        write_log(&w, 2, steps[i].at_step, steps[i].by_ms);
        if (!on_between) /* nothing tells it from a long validation */
            expect_seconds(steps[i].name, &w, steps[i].by_ms == 3000 ? 3.05 : VALIDATION_MS / 1000.0 + 0.05);
    }
}

/* A driver that was held up reads much at once: what is late was not written late. */
static void test_lines_that_come_late_are_no_step(void **state)
{
    (void)state;
    struct stamps c = { .begun = false };
    for (int i = 0; i < 100; i++) {
        int64_t at = 1000 + i * 500, read = at < 10000 ? at + 30 : at < 40000 ? 40000 : at + 30;
        struct app_report ev = { .kind = REPORT_STEP, .stamp_ms = at, .epoch = 1, .wall_s = NAN };
        stamps_mend(&c, &ev, read, true);
        assert_int_equal(ev.stamp_ms, at);
    }
    struct app_report none = { .kind = REPORT_STEP, .stamp_ms = -1 };
    stamps_mend(&c, &none, 0, true);
    assert_int_equal(none.stamp_ms, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_clock_that_is_set_costs_no_seconds),
        cmocka_unit_test(test_a_log_that_nobody_watched),
        cmocka_unit_test(test_lines_that_come_late_are_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
