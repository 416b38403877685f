/* Which meters of a node are read, and when, by a clock and meters of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/wire.h"
#include "node/meters.h"
#include "node/request.h"
#include "tests/fault.h"

#define MS INT64_C(1000000)

static int64_t now_ns;
static int n_open;                /* meters of all rows */
static struct meter_cfg last_cfg; /* of the one that was opened last */

static int64_t tell_time(void)
{
    return now_ns;
}

/* --- meters ------------------------------------------------------------------------------------------------------- */

struct meter {
    double read_ms; /* when last; 0: never */
};

static int open_fine(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return err_sys(e, -ENOMEM, "no memory for it");
    last_cfg = *cfg;
    n_open++;
    return 0;
}

static int open_denied(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    (void)out, (void)cfg;
    return err_set(e, -EACCES, "'energy_uj' is for root; let this user read it");
}

static void close_any(struct meter *m)
{
    n_open--;
    free(m);
}

/* A joule a millisecond. */
static int read_steady(struct meter *m, struct meter_reading *out)
{
    double ms = (double)now_ns / 1e6;
    *out = (struct meter_reading){ .state = m->read_ms > 0 ? METER_OK : METER_FIRST,
                                   .from_ms = m->read_ms,
                                   .to_ms = ms,
                                   .value = m->read_ms > 0 ? ms - m->read_ms : NAN };
    m->read_ms = ms;
    return 1;
}

static int read_failing(struct meter *m, struct meter_reading *out)
{
    (void)m;
    *out = (struct meter_reading){ .state = METER_FAILED, .value = NAN, .why = "gone" };
    return 1;
}

static int read_nothing(struct meter *m, struct meter_reading *out)
{
    (void)m, (void)out;
    return 0;
}

static int read_starving(struct meter *m, struct meter_reading *out)
{
    (void)m, (void)out;
    return -ENOMEM;
}

static const struct meter_ops rows[] = {
    { .name = "steady", .local = true, .open = open_fine, .read = read_steady, .close = close_any },
    { .name = "also", .local = true, .open = open_fine, .read = read_steady, .close = close_any },
    { .name = "failing", .local = true, .open = open_fine, .read = read_failing, .close = close_any },
    { .name = "nothing", .local = true, .open = open_fine, .read = read_nothing, .close = close_any },
    { .name = "starving", .local = true, .open = open_fine, .read = read_starving, .close = close_any },
    { .name = "denied", .local = true, .open = open_denied, .read = read_steady, .close = close_any },
    { .name = "remote", .local = false, .open = open_fine, .read = read_steady, .close = close_any },
    { .name = "a", .local = true, .open = open_fine, .read = read_steady, .close = close_any },
    { .name = "b", .local = true, .open = open_fine, .read = read_steady, .close = close_any },
    { .name = "c", .local = true, .open = open_fine, .read = read_steady, .close = close_any },
    { .name = "d", .local = true, .open = open_fine, .read = read_steady, .close = close_any },
};

static const struct meter_ops *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* --- one test ----------------------------------------------------------------------------------------------------- */

static const struct meters_on on = { .sysfs = "/s", .proc = "/p", .now_ns = tell_time, .find = find };

static int set_up(void **state)
{
    now_ns = 1000 * MS;
    n_open = 0;
    *state = meters_new(&on);
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    meters_free(*state);
    if (n_open)
        print_error("%d meters were left open\n", n_open);
    return n_open ? -1 : 0;
}

static void expect_text(const char *name, const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        fail_msg("%s: got '%s', want '%s'", name, got, want);
}

static void set(struct meters *m, const char *names, const char *opened, const char *refused)
{
    AUTO_BUF struct buf is = BUF_INIT, is_not = BUF_INIT;
    const struct meters_want want = { .names = names, .interval_ms = 100, .idle_w = 40, .cpu_w = 6 };
    meters_set(m, &want, &is, &is_not);
    expect_text(names, buf_text(&is), opened);
    expect_text(names, buf_text(&is_not), refused);
}

/* The reading of this meter that is due now. */
static struct meter_reading take(struct meters *m, const char *name)
{
    struct meters_taken taken;
    if (!meters_take(m, true, &taken))
        fail_msg("no reading of %s at %g ms", name, (double)now_ns / 1e6);
    expect_text("the meter", taken.meter->name, name);
    assert_int_equal(taken.n, 1);
    return taken.v[0];
}

static void assert_none(struct meters *m)
{
    struct meters_taken taken;
    if (meters_take(m, true, &taken))
        fail_msg("a reading of %s at %g ms", taken.meter->name, (double)now_ns / 1e6);
}

/* --- when --------------------------------------------------------------------------------------------------------- */

static void nothing_is_due_before_metering_begins(void **state)
{
    assert_true(meters_due(*state) == INT64_MAX);
    assert_none(*state);
}

static void every_tick_but_the_first_is_a_reading_of_each_meter(void **state)
{
    struct meters *m = *state;
    set(m, "steady,also", "steady,also", "");
    assert_none(m); /* it was read, and is not told */
    for (int i = 1; i <= 3; i++) {
        assert_true(meters_due(m) == now_ns + 100 * MS);
        now_ns += 99 * MS;
        assert_none(m);
        now_ns += 1 * MS;
        assert_true(take(m, "steady").value == 100);
        assert_true(take(m, "also").value == 100);
        assert_none(m);
    }
}

static void being_late_covers_what_was_missed_and_does_not_add_up(void **state)
{
    struct meters *m = *state;
    set(m, "steady", "steady", "");
    now_ns += 370 * MS;
    assert_true(take(m, "steady").value == 370);
    assert_none(m);
    assert_true(meters_due(m) == 1400 * MS);
    now_ns += 30 * MS;
    assert_true(take(m, "steady").value == 30);
}

static void what_nobody_would_hear_is_not_read_and_the_next_reading_covers_it(void **state)
{
    struct meters *m = *state;
    struct meters_taken taken;
    set(m, "steady,also", "steady,also", "");
    for (int i = 0; i < 5; i++) {
        now_ns += 100 * MS;
        assert_false(meters_take(m, false, &taken));
        assert_true(meters_due(m) == now_ns + 100 * MS);
    }
    now_ns += 100 * MS;
    assert_true(take(m, "steady").value == 600);
    assert_true(take(m, "also").value == 600);
    assert_none(m);
}

static void one_that_fails_stops_nothing(void **state)
{
    struct meters *m = *state;
    set(m, "failing,nothing,starving,steady", "failing,nothing,starving,steady", "");
    for (int i = 0; i < 3; i++) {
        now_ns += 100 * MS;
        struct meter_reading failed = take(m, "failing");
        assert_int_equal(failed.state, METER_FAILED);
        assert_string_equal(failed.why, "gone");
        assert_true(take(m, "steady").value == 100);
        assert_none(m);
    }
}

static void setting_again_begins_anew_and_stopping_ends(void **state)
{
    struct meters *m = *state;
    set(m, "steady,also", "steady,also", "");
    now_ns += 150 * MS;
    set(m, "also,failing,nothing", "also,failing,nothing", "");
    assert_int_equal(n_open, 3);
    assert_true(meters_due(m) == now_ns + 100 * MS);
    now_ns += 100 * MS;
    assert_true(take(m, "also").value == 100); /* since it was opened again */
    assert_int_equal(take(m, "failing").state, METER_FAILED);
    meters_stop(m);
    assert_int_equal(n_open, 0);
    assert_true(meters_due(m) == INT64_MAX);
    now_ns += 100 * MS;
    assert_none(m);
    meters_stop(m);
    set(m, "steady", "steady", "");
    assert_int_equal(n_open, 1);
}

/* --- which -------------------------------------------------------------------------------------------------------- */

static void each_name_is_opened_once_or_refused_with_a_reason(void **state)
{
    static const struct {
        const char *names, *opened, *refused;
    } cases[] = {
        { "steady", "steady", "" },
        { "steady,steady,also,steady", "steady,also", "" },
        { "unheard-of", "", "unheard-of: no meter of a node has this name" },
        { "remote", "", "remote: no meter of a node has this name" },
        { "denied,steady,remote", "steady",
          "denied: 'energy_uj' is for root, let this user read it; remote: no meter of a node has this name" },
        { "steady,also,failing,nothing,starving,a,b,c,d", "steady,also,failing,nothing,starving,a,b,c",
          "d: more than 8 meters at once" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        set(*state, cases[i].names, cases[i].opened, cases[i].refused);
}

static void a_meter_gets_where_to_read_and_the_watts_that_were_given(void **state)
{
    set(*state, "steady", "steady", "");
    assert_string_equal(last_cfg.sysfs, "/s");
    assert_string_equal(last_cfg.proc, "/p");
    assert_true(last_cfg.idle_w == 40 && last_cfg.cpu_w == 6);
    assert_null(last_cfg.file); /* a path is nobody's to give */
    assert_null(last_cfg.program);
}

static void names_have_a_form(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        { "cpu", true },   { "cpu,rapl", true }, { "perf-power,x9", true }, { "", false },    { ",", false },
        { "cpu,", false }, { ",cpu", false },    { "cpu,,rapl", false },    { "CPU", false }, { "a b", false },
        { "a;b", false },  { "../cpu", false },  { "a\"", false },          { "é", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (meter_are_names(cases[i].text) != cases[i].good)
            fail_msg("'%s' is taken for %s", cases[i].text, cases[i].good ? "no names" : "names");
    char text[METER_NAMES_MAX + 2];
    memset(text, 'x', sizeof text);
    text[METER_NAMES_MAX + 1] = '\0';
    assert_false(meter_are_names(text));
    text[METER_NAMES_MAX] = '\0';
    assert_true(meter_are_names(text));
}

static void the_longest_name_is_refused_whole(void **state)
{
    char text[METER_NAMES_MAX + 1], want[METER_NAMES_MAX + 64];
    memset(text, 'x', METER_NAMES_MAX);
    text[METER_NAMES_MAX] = '\0';
    (void)snprintf(want, sizeof want, "%s: no meter of a node has this name", text);
    set(*state, text, "", want);
}

static void requests_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error; /* NULL: it is fine */
        double idle_w, cpu_w;
    } cases[] = {
        { "\"meters\":\"cpu,rapl\"", NULL, 0, 0 },
        { "\"meters\":\"cpu\",\"idle_w\":40,\"cpu_w\":6.5", NULL, 40, 6.5 },
        { "\"meters\":\"cpu\",\"idle_w\":0,\"cpu_w\":100000", NULL, 0, 100000 },
        { "\"meters\":\"cpu\",\"idle_w\":null", NULL, 0, 0 },
        { "\"meters\":\"\"", "'meters' must be names with commas between, of at most 256 bytes", 0, 0 },
        { "\"meters\":[1]", "'meters'", 0, 0 },
        { "\"meters\":\"/sys\"", "'meters'", 0, 0 },
        { "\"idle_w\":-1", "'idle_w' must be a number from 0 to 100000", 0, 0 },
        { "\"idle_w\":100000.1", "'idle_w'", 0, 0 },
        { "\"cpu_w\":1e300", "'cpu_w' must be a number from 0 to 100000", 0, 0 },
        { "\"cpu_w\":\"6\"", "'cpu_w'", 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct wire w;
        static struct request r;
        struct err e = { 0 };
        char line[256];
        int n = snprintf(line, sizeof line, "{\"id\":1,\"verb\":\"meter\",%s}", cases[i].text);
        assert_int_equal(wire_parse(&w, line, (size_t)n, NULL), 0);
        int rc = request_read(&r, &w, &e);
        bool right = cases[i].error ? rc == -EINVAL && strstr(e.text, cases[i].error)
                                    : rc == 0 && r.idle_w == cases[i].idle_w && r.cpu_w == cases[i].cpu_w;
        if (!right)
            fail_msg("%s: %d '%s', %g W, %g W", cases[i].text, rc, e.text, r.idle_w, r.cpu_w);
    }
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

static void whatever_memory_fails_the_others_are_read(void **state)
{
    (void)state;
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        assert_true(nth < 32);
        AUTO_BUF struct buf opened = BUF_INIT, refused = BUF_INIT;
        const struct meters_want want = { .names = "steady,remote,also", .interval_ms = 100 };
        fault_arm(FAULT_ALLOC, nth);
        struct meters *m = meters_new(&on);
        if (m)
            meters_set(m, &want, &opened, &refused);
        struck = fault_disarm();
        assert_true(m || struck);
        if (!struck)
            assert_string_equal(buf_text(&refused), "remote: no meter of a node has this name");
        assert_true(!m || n_open >= 1);
        int told = 0;
        struct meters_taken taken;
        now_ns += 100 * MS;
        while (m && meters_take(m, true, &taken))
            told++;
        assert_int_equal(told, n_open);
        meters_free(m);
        assert_int_equal(n_open, 0);
    }
    meters_free(NULL);
}

#define METERS_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        METERS_TEST(nothing_is_due_before_metering_begins),
        METERS_TEST(every_tick_but_the_first_is_a_reading_of_each_meter),
        METERS_TEST(being_late_covers_what_was_missed_and_does_not_add_up),
        METERS_TEST(what_nobody_would_hear_is_not_read_and_the_next_reading_covers_it),
        METERS_TEST(one_that_fails_stops_nothing),
        METERS_TEST(setting_again_begins_anew_and_stopping_ends),
        METERS_TEST(each_name_is_opened_once_or_refused_with_a_reason),
        METERS_TEST(a_meter_gets_where_to_read_and_the_watts_that_were_given),
        METERS_TEST(the_longest_name_is_refused_whole),
        cmocka_unit_test(names_have_a_form),
        cmocka_unit_test(requests_are_checked),
        METERS_TEST(whatever_memory_fails_the_others_are_read),
    };
    return cmocka_run_group_tests_name("node_meters", tests, NULL, NULL);
}
