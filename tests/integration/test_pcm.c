/* The meter `pcm` with a program of its own: a script that writes PCM's CSV. How it is started, read, missed, started again and ended. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "monitoring/pcm.h"
#include "tests/integration/harness.h"

#define NOON_MS INT64_C(1795003200000) /* 2026-11-18 12:00:00 */
#define HEADER "System;;;\nDate;Time;Proc Energy (Joules);DRAM Energy (Joules)\n"
#define ROW(time, x, y) "2026-11-18;" time ";" x ";" y "\n"
/* The rest of a script: it writes this, says that it has, and stays. */
#define SAY(text) "cat <<'END'\n" text "END\n>\"$dir/said\"\n"
#define STAY "while :; do sleep 60 & wait; done\n"

static int64_t clock_ns;

static int64_t the_clock(void)
{
    return clock_ns;
}

static void set_clock(int64_t ms_after_noon)
{
    clock_ns = (NOON_MS + ms_after_noon) * 1000000;
}

struct bed {
    char *dir, *program;
    struct meter *m;
    struct meter_reading got[METER_READINGS_MAX];
    int n;
    enum meter_state want; /* of the first reading that is waited for */
};

static int set_up(void **state)
{
    struct bed *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->dir = harness_dir();
    b->program = harness_path(b->dir, "pcm");
    set_clock(0);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *b = *state;
    meter_pcm.close(b->m);
    harness_remove(b->dir);
    free(b->program);
    free(b);
    return 0;
}

/* The program tells its pid and arguments, then does the rest. */
static void script(struct bed *b, const char *rest)
{
    AUTO_BUF struct buf text = BUF_INIT;
    buf_printf(&text, "#!/bin/sh\ndir=%s\necho $$ \"$@\" >>\"$dir/started\"\n%s", b->dir, rest);
    harness_write(b->dir, "pcm", buf_text(&text));
    assert_int_equal(chmod(b->program, 0700), 0);
}

static int try_open(struct bed *b, struct err *e)
{
    struct meter_cfg cfg = { .program = b->program, .now_ns = the_clock };
    return meter_pcm.open(&b->m, &cfg, e);
}

static void open_meter(struct bed *b)
{
    struct err e = { 0 };
    if (try_open(b, &e) < 0)
        fail_msg("%s", e.text);
}

static bool reads(void *arg)
{
    struct bed *b = arg;
    b->n = meter_pcm.read(b->m, b->got);
    assert_true(b->n >= 0);
    return b->n > 0 && b->got[0].state == b->want;
}

/* Reads until the first reading is of this state: the program needs its time. */
static void await(struct bed *b, enum meter_state want)
{
    b->want = want;
    if (!harness_wait(reads, b, HARNESS_MS))
        fail_msg("got %d readings, the first '%s'", b->n, b->n > 0 ? b->got[0].why : "");
}

static pid_t started_pid(struct bed *b)
{
    AUTO_FREE char *text = harness_read(b->dir, "started");
    assert_non_null(text);
    return (pid_t)strtol(text, NULL, 10);
}

static bool is_gone(void *arg)
{
    pid_t pid = *(pid_t *)arg;
    return kill(-pid, 0) < 0 && errno == ESRCH;
}

static size_t starts(struct bed *b)
{
    AUTO_FREE char *text = harness_read(b->dir, "started");
    return text ? harness_count(text, "\n") : 0;
}

/* --- */

static void rows_come_from_the_program_that_was_started(void **state)
{
    struct bed *b = *state;
    script(b, SAY(HEADER ROW("12:00:01.000", "40.5", "2") ROW("12:00:02.000", "41.5", "2.25")
                      ROW("12:00:03.500", "60", "3")) STAY);
    open_meter(b);
    assert_true(harness_wait_file(b->dir, "said", HARNESS_MS));
    set_clock(4000);
    await(b, METER_OK);
    assert_int_equal(b->n, 1);
    assert_true(b->got[0].value == 41.5 + 2.25 + 60 + 3);
    assert_true(b->got[0].from_ms == (double)(NOON_MS + 1000) && b->got[0].to_ms == (double)(NOON_MS + 3500));
    assert_int_equal(meter_pcm.read(b->m, b->got), 0);
    AUTO_FREE char *text = harness_read(b->dir, "started");
    assert_non_null(strstr(text, " /csv 1\n"));
}

static void reading_waits_for_nothing(void **state)
{
    struct bed *b = *state;
    script(b, STAY);
    open_meter(b);
    assert_int_equal(meter_pcm.read(b->m, b->got), 1); /* it would hang here */
    assert_int_equal(b->got[0].state, METER_FIRST);
    assert_int_equal(meter_pcm.read(b->m, b->got), 0);
}

static void more_than_the_pipe_holds_is_read(void **state)
{
    struct bed *b = *state;
    script(b, "cat <<'END'\nSystem;;;Other\nDate;Time;Proc Energy (Joules);Wide\nEND\ni=0\n"
              "while [ $i -lt 600 ]; do printf '2026-11-18;12:%02d:%02d.000;1;%01000d\\n' $((i / 60)) $((i % 60)) 0; "
              "i=$((i + 1)); done\n" STAY);
    set_clock(600000);
    open_meter(b);
    double sum = 0; /* the first row only begins an interval */
    for (int tries = 0; sum < 599 && tries < 10000; tries++) {
        await(b, METER_OK);
        for (int i = 0; i < b->n; i++)
            sum += b->got[i].state == METER_OK ? b->got[i].value : 0;
    }
    assert_true(sum == 599);
}

static void closing_ends_the_program_and_what_it_started(void **state)
{
    struct bed *b = *state;
    script(b, "trap 'echo gave the counters back >\"$dir/ended\"; exit 0' TERM\n" SAY(HEADER) STAY);
    open_meter(b);
    assert_true(harness_wait_file(b->dir, "said", HARNESS_MS));
    pid_t pid = started_pid(b);
    assert_false(is_gone(&pid));
    meter_pcm.close(b->m);
    b->m = NULL;
    assert_true(kill(pid, 0) < 0 && errno == ESRCH);      /* reaped */
    assert_true(harness_wait(is_gone, &pid, HARNESS_MS)); /* the sleep in its group, too, which init reaps */
    AUTO_FREE char *text = harness_read(b->dir, "ended");
    assert_non_null(text);
}

static void a_program_that_will_not_end_is_killed(void **state)
{
    struct bed *b = *state;
    script(b, "trap '' TERM\n" SAY(HEADER) STAY);
    open_meter(b);
    assert_true(harness_wait_file(b->dir, "said", HARNESS_MS));
    pid_t pid = started_pid(b);
    meter_pcm.close(b->m);
    b->m = NULL;
    assert_true(kill(pid, 0) < 0 && errno == ESRCH);
    assert_true(harness_wait(is_gone, &pid, HARNESS_MS));
}

static void one_that_is_busy_writing_can_be_closed(void **state)
{
    struct bed *b = *state;
    script(b, ">\"$dir/said\"\nexec yes\n");
    open_meter(b);
    assert_true(harness_wait_file(b->dir, "said", HARNESS_MS));
    pid_t pid = started_pid(b);
    meter_pcm.close(b->m);
    b->m = NULL;
    assert_true(kill(pid, 0) < 0 && errno == ESRCH);
}

static void a_program_that_ends_is_missed_and_started_again_after_10_s(void **state)
{
    struct bed *b = *state;
    script(b, SAY(HEADER ROW("12:00:00.000", "40", "0") ROW("12:00:01.000", "41", "0")) "exit 3\n");
    open_meter(b);
    assert_true(harness_wait_file(b->dir, "said", HARNESS_MS));
    set_clock(1000);
    await(b, METER_OK);
    assert_true(b->got[0].value == 41);
    if (b->n < 2)
        await(b, METER_FAILED);
    const struct meter_reading *last = &b->got[b->n - 1];
    assert_true(last->state == METER_FAILED && isnan(last->value));
    set_clock(9999);
    for (int i = 0; i < 3; i++)
        await(b, METER_FAILED);
    assert_non_null(strstr(b->got[0].why, "is started again in 1 s"));
    assert_int_equal(starts(b), 1);
    script(b, SAY(HEADER ROW("12:00:10.000", "50", "0") ROW("12:00:11.000", "51", "0")) STAY);
    set_clock(10000);
    assert_int_equal(meter_pcm.read(b->m, b->got), 0);
    set_clock(11000);
    await(b, METER_OK);
    assert_true(b->got[0].value == 51 && b->got[0].from_ms == (double)(NOON_MS + 10000));
    assert_int_equal(starts(b), 2);
}

static void how_it_ended_is_told(void **state)
{
    struct bed *b = *state;
    static const struct {
        const char *rest, *says;
    } ends[] = {
        { "exit 3\n", "has ended with code 3" },
        { "kill -9 $$\n", "was ended by signal 9" },
        { "exec >/dev/null\n" STAY, "has closed its output" },
    };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        script(b, ends[i].rest);
        open_meter(b);
        bool told = false;
        for (int tries = 0; !told && tries < 1000; tries++) { /* its output may end a moment before it does */
            await(b, METER_FAILED);
            told = strstr(b->got[0].why, ends[i].says) != NULL;
        }
        if (!told)
            fail_msg("'%s': got '%s'", ends[i].says, b->got[0].why);
        meter_pcm.close(b->m);
        b->m = NULL;
    }
}

static void a_program_that_is_not_there_is_told_with_what_mends_it(void **state)
{
    struct bed *b = *state;
    struct err e = { 0 };
    assert_int_equal(try_open(b, &e), -ENODEV);
    assert_null(b->m);
    assert_non_null(strstr(e.text, "install Intel PCM"));
}

static void one_that_may_not_be_run_is_told_too(void **state)
{
    struct bed *b = *state;
    struct err e = { 0 };
    harness_write(b->dir, "pcm", "#!/bin/sh\n");
    assert_int_equal(chmod(b->program, 0600), 0);
    assert_int_equal(try_open(b, &e), -EACCES);
}

static void it_is_found_on_the_path(void **state)
{
    struct bed *b = *state;
    AUTO_FREE char *path = strdup(getenv("PATH"));
    AUTO_BUF struct buf with = BUF_INIT;
    buf_printf(&with, "%s:%s", b->dir, path);
    script(b, SAY(HEADER) STAY);
    assert_int_equal(setenv("PATH", buf_text(&with), 1), 0);
    struct meter_cfg cfg = { .now_ns = the_clock };
    struct err e = { 0 };
    int rc = meter_pcm.open(&b->m, &cfg, &e);
    (void)setenv("PATH", path, 1);
    assert_int_equal(rc, 0);
    assert_true(harness_wait_file(b->dir, "said", HARNESS_MS));
    assert_int_equal(starts(b), 1);
}

int main(void)
{
#define STARTED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        STARTED(rows_come_from_the_program_that_was_started),
        STARTED(reading_waits_for_nothing),
        STARTED(more_than_the_pipe_holds_is_read),
        STARTED(closing_ends_the_program_and_what_it_started),
        STARTED(a_program_that_will_not_end_is_killed),
        STARTED(one_that_is_busy_writing_can_be_closed),
        STARTED(a_program_that_ends_is_missed_and_started_again_after_10_s),
        STARTED(how_it_ended_is_told),
        STARTED(a_program_that_is_not_there_is_told_with_what_mends_it),
        STARTED(one_that_may_not_be_run_is_told_too),
        STARTED(it_is_found_on_the_path),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("pcm", tests, NULL, NULL);
}
