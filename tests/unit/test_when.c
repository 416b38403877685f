#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "base/own.h"
#include "serve/when.h"

/* 2026-11-20 10:00:00 UTC. */
static const int64_t now_ms = 1795168800000;

static const struct {
    const char *text;
    int64_t want_s; /* from then; -1: it is no time */
} cases[] = {
    { "+90s", 90 },
    { "+30m", 1800 },
    { "+2h", 7200 },
    { "+1d", 86400 },
    { "+0s", 0 },
    { "18:30", 30600 },
    { "09:30", 84600 },
    { "10:00", 86400 },
    { "2026-11-20 10:01", 60 },
    { "2026-11-20T10:01:05", 65 },
    { "2026-11-21 10:00:00", 86400 },
    { "", -1 },
    { "+", -1 },
    { "+5", -1 },
    { "+5x", -1 },
    { "+5hh", -1 },
    { "+-5h", -1 },
    { "+99999999999h", -1 },
    { "25:00", -1 },
    { "tomorrow", -1 },
    { "2026-11-20", -1 },
    { "2026-13-20 10:00", -1 },
    { "18:30 or so", -1 },
};

static void test_times_are_read_as_people_write_them(void **state)
{
    (void)state;
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t at = now_ms - 1000;
        struct err e = { 0 };
        int rc = when_parse(cases[i].text, now_ms, &at, &e);
        if ((at - now_ms) / 1000 != cases[i].want_s || (rc < 0) != (cases[i].want_s < 0))
            fail_msg("'%s': got %d, %lld, want %lld", cases[i].text, rc, (long long)(at - now_ms) / 1000,
                     (long long)cases[i].want_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_times_are_read_as_people_write_them) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
