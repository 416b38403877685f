#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/perf_stat.h"
#include "tests/fault.h"

/* A cell is "INTERVAL EVENT STATE VALUE RATIO[ UNIT];". */
static const struct {
    const char *name, *text, *want;
    size_t faults, others;
    bool cut;
} cases[] = {
    { "a plain count", "     1.000106442          1,234,567      branches                    \n",
      "0 branches ok 1234567 1;", 0, 0, false },
    { "a unit", "     1.000106442           1,003.01 msec cpu-clock          #    1.003 CPUs utilized          \n",
      "0 cpu-clock ok 1003.01 1 msec;", 0, 0, false },
    { "a percentage behind the event", "     1.0                123      branches         (57.14%)\n",
      "0 branches multiplexed 123 0.5714;", 0, 0, false },
    { "a comment with a percentage of its own, then the percentage",
      "     1.0                123      branch-misses         #    3.45% of all branches         (57.14%)\n",
      "0 branch-misses multiplexed 123 0.5714;", 0, 0, false },
    { "a comment with a percentage is none", "     1.0   123   branch-misses   #    3.45% of all branches\n",
      "0 branch-misses ok 123 1;", 0, 0, false },
    { "all of the time is not multiplexed", "  1.0   123   branches   (100.00%)\n", "0 branches ok 123 1;", 0, 0,
      false },
    { "a spread is no percentage", "  1.0   123   branches   ( +-  0.50% )\n", "", 1, 0, false },
    { "not counted", "     1.0      <not counted>      LLC-loads                    (0.00%)\n",
      "0 LLC-loads not_counted nan 0;", 0, 0, false },
    { "not supported", "     1.0    <not supported>      node-loads                    \n",
      "0 node-loads not_supported nan 1;", 0, 0, false },
    { "a name with slashes", "     1.0   521722968      msr/tsc/      #    2.596 G/sec\n", "0 msr/tsc/ ok 521722968 1;",
      0, 0, false },
    { "intervals follow the time stamps",
      "# started on Mon Nov 18\n\n#           time             counts unit events\n 1.0  1  cycles\n 1.0  2  branches\n"
      "#           time\n 2.0  3  cycles\n 2.0  4  branches\n",
      "0 cycles ok 1 1;0 branches ok 2 1;1 cycles ok 3 1;1 branches ok 4 1;", 0, 0, false },
    { "counts grouped by points, apostrophes, narrow spaces",
      " 1.0  1.234.567  a\n 1.0  1'234'567  b\n 1.0  1\xE2\x80\xAF"
      "234  c\n 1.0  1.003,01 msec d\n 1.0  1.234  e\n",
      "0 a ok 1234567 1;0 b ok 1234567 1;0 c ok 1234 1;0 d ok 1003.01 1 msec;0 e ok 1234 1;", 0, 0, false },
    { "rows per CPU are added up", " 1.0 CPU0   5  cycles\n 1.0 CPU1   6  cycles    (50.00%)\n",
      "0 cycles multiplexed 11 0.5;", 0, 0, false },
    { "one CPU not counted is missing in the sum",
      " 1.0 CPU0   5  cycles\n 1.0 CPU1   <not counted>  cycles   (0.00%)\n", "0 cycles not_counted nan 0;", 0, 0,
      false },
    { "rows per socket",
      " 1.0 S0        2             200.90 msec cpu-clock   # 2.0\n 1.0 S0  1  <not supported>  node-loads\n",
      "0 cpu-clock ok 200.9 1 msec;0 node-loads not_supported nan 1;", 0, 0, false },
    { "an event asked for twice counts once", " 1.0  5  cycles\n 1.0  6  cycles\n", "0 cycles ok 5 1;", 0, 0, false },
    { "a further line of metrics is perf's comment", " 1.0  5  cycles\n 1.0     #   25.0 %  tma_backend_bound\n",
      "0 cycles ok 5 1;", 0, 0, false },
    { "lines of others are counted",
      "Epoch 1 done\n 1.0  5  cycles\nSome events weren't counted. Try disabling the NMI watchdog:\n",
      "0 cycles ok 5 1;", 0, 2, false },
    { "the table of --summary, and what another perf appends",
      " 1.0  5  cycles\n\n Performance counter stats for 'sleep 1':\n\n  5  cycles\n  0.80 msec task-clock  #  0.002 "
      "CPUs "
      "utilized\n\n  1.353854976 seconds time elapsed\n\n  0.000000000 seconds user\n# started on Thu\n 3.0  6  "
      "cycles\n",
      "0 cycles ok 5 1;1 cycles ok 6 1;", 0, 5, false },
    { "a row that cannot be read", " 1.0  cycles\n 1.0  5  cycles\n 1.0  x5  cycles or so it seems\n",
      "0 cycles ok 5 1;", 2, 0, false },
    { "CRLF", " 1.0  5  cycles\r\n 2.0  6  cycles  (50.00%)\r\n", "0 cycles ok 5 1;1 cycles multiplexed 6 0.5;", 0, 0,
      false },

    { "separated", "     1.000106442,1234567,,branches,571400000,57.14,67.333,M/sec\n",
      "0 branches multiplexed 1234567 0.5714;", 0, 0, false },
    { "separated, with a unit", "1.0,1003.01,msec,cpu-clock,1003010000,100.00,1.003,CPUs utilized\n",
      "0 cpu-clock ok 1003.01 1 msec;", 0, 0, false },
    { "separated, three decimals are no group", "1.0,1003.123,msec,cpu-clock,1003010000,100.00,,\n",
      "0 cpu-clock ok 1003.123 1 msec;", 0, 0, false },
    { "separated, not counted", "1.0,<not counted>,,LLC-loads,0,0.00,,\n", "0 LLC-loads not_counted nan 0;", 0, 0,
      false },
    { "separated, not supported", "1.0,<not supported>,,node-loads,0,100.00,,\n", "0 node-loads not_supported nan 1;",
      0, 0, false },
    { "an event's own commas", "1.0,5,,cpu/event=0x3c,umask=0x0/,100,50.00,,\n",
      "0 cpu/event=0x3c,umask=0x0/ multiplexed 5 0.5;", 0, 0, false },
    { "separated by semicolons, with a decimal comma",
      "1.0;1003,01;msec;cpu-clock;1003010000;50,00;1,003;CPUs utilized\n", "0 cpu-clock multiplexed 1003.01 0.5 msec;",
      0, 0, false },
    { "separated by tabs", "1.0\t5\t\tcycles\t100\t50.00\t\t\n", "0 cycles multiplexed 5 0.5;", 0, 0, false },
    { "separated, per CPU", "1.0,CPU0,5,,cycles,9,100.00,,\n1.0,CPU1,6,,cycles,9,100.00,,\n", "0 cycles ok 11 1;", 0, 0,
      false },
    { "separated, per socket", "1.0,S0,2,5,,cycles,9,100.00,,\n", "0 cycles ok 5 1;", 0, 0, false },
    { "separated, a further metric", "1.0,5,,cycles,9,100.00,1.0,GHz\n1.0,,,,,,0.5,insn per cycle\n",
      "0 cycles ok 5 1;", 0, 0, false },
    { "separated, broken", "1.0,5\n1.0,,,\n1.0,x,,cycles,9,100.00,,\n", "", 2, 0, false },

    { "a whole last line without a newline", " 1.0  5  cycles\n 2.0  6  cycles", "0 cycles ok 5 1;1 cycles ok 6 1;", 0,
      0, false },
    { "a last line of a known event", " 1.0  5  LLC-loads", "0 LLC-loads ok 5 1;", 0, 0, false },
    { "a last line cut within the event", " 1.0  5  cycles\n 2.0  6  cyc", "0 cycles ok 5 1;", 0, 0, true },
    { "a last line cut within the count", " 1.0  5  cycles\n 2.0  6", "0 cycles ok 5 1;", 0, 0, true },
    { "a last line cut within the time", " 1.0  5  cycles\n 2", "0 cycles ok 5 1;", 0, 0, true },
    { "a last line cut before the percentage", " 1.0  5  cycles  (50.00%)\n 2.0  6  cycles  ",
      "0 cycles multiplexed 5 0.5;", 0, 0, true },
    { "a last line cut within the percentage", " 1.0  5  cycles  (50.00%)\n 2.0  6  cycles  (5",
      "0 cycles multiplexed 5 0.5;", 0, 0, true },
    { "a last line cut within not counted", " 1.0  5  cycles\n 2.0  <not cou", "0 cycles ok 5 1;", 0, 0, true },
    { "separated, the last line cut within the percentage", "1.0,5,,cycles,9,57.14,,\n2.0,6,,cycles,9,5",
      "0 cycles multiplexed 5 0.5714;", 0, 0, true },
    { "separated, the last line cut in what is not read", "1.0,5,,cycles,9,57.14,1.0,GHz\n2.0,6,,cycles,9,57.14,1.0,G",
      "0 cycles multiplexed 5 0.5714;1 cycles multiplexed 6 0.5714;", 0, 0, false },
    { "nothing", "", "", 0, 0, false },
};

static void put_cells(struct buf *b, const struct perf_stat *p)
{
    static const char *const states[] = { "ok", "multiplexed", "not_counted", "not_supported" };
    for (size_t i = 0; i < p->n_cells; i++) {
        const struct perf_stat_cell *c = &p->cells[i];
        const char *unit = p->units.v[c->event];
        buf_printf(b, "%zu %s %s %.10g %.6g%s%s;", c->interval, p->events.v[c->event], states[c->state], c->value,
                   c->ratio, *unit ? " " : "", unit);
    }
}

static void test_text_becomes_cells(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf got = BUF_INIT;
        struct csv_faults f = { 0 };
        struct perf_stat p;
        assert_int_equal(perf_stat_parse(&p, cases[i].text, strlen(cases[i].text), &f), 0);
        put_cells(&got, &p);
        if (strcmp(buf_text(&got), cases[i].want) != 0 || f.n != cases[i].faults || p.other_lines != cases[i].others ||
            p.cut != cases[i].cut)
            fail_msg("%s: got '%s', %zu faults, %zu others, cut %d; want '%s'", cases[i].name, buf_text(&got), f.n,
                     p.other_lines, p.cut, cases[i].want);
        perf_stat_done(&p);
        csv_faults_done(&f);
    }
    perf_stat_done(NULL);
}

static void test_time_stamps_are_exact(void **state)
{
    (void)state;
    static const char text[] = "     1.000106442  5  cycles\n    12.5,6,,cycles,9,100.00,,\n";
    struct csv_faults f = { 0 };
    struct perf_stat p;
    assert_int_equal(perf_stat_parse(&p, text, strlen(text), &f), 0);
    assert_int_equal(p.n_intervals, 2);
    assert_true(p.t_ns[0] == 1000106442 && p.t_ns[1] == 12500000000);
    perf_stat_done(&p);
}

static const char sample[] = "# started\n"
                             "     1.000106442           1,003.01 msec cpu-clock          #    1.003 CPUs utilized\n"
                             "     1.000106442      <not counted>      LLC-loads                         (0.00%)\n"
                             "     1.000106442            123,456      branches           # 1 M/sec      (57.14%)\n"
                             "     2.000106442           1,003.01 msec cpu-clock          #    1.003 CPUs utilized\n"
                             "     2.000106442    <not supported>      LLC-loads\n"
                             "     2.000106442            123,456      branches           # 1 M/sec      (57.14%)\n";

/* Wherever the text ends, the cells are a beginning of all the cells. */
static void test_a_text_may_end_anywhere(void **state)
{
    (void)state;
    AUTO_BUF struct buf all = BUF_INIT;
    for (size_t len = strlen(sample) + 1; len-- > 0;) {
        AUTO_BUF struct buf got = BUF_INIT;
        struct csv_faults f = { 0 };
        struct perf_stat p;
        assert_int_equal(perf_stat_parse(&p, sample, len, &f), 0);
        put_cells(len == strlen(sample) ? &all : &got, &p);
        assert_int_equal(f.n, 0);
        if (strncmp(buf_text(&all), buf_text(&got), got.len) != 0)
            fail_msg("after %zu bytes: got '%s' of '%s'", len, buf_text(&got), buf_text(&all));
        perf_stat_done(&p);
    }
}

static void test_parse_whatever_allocation_fails(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct csv_faults f = { 0 };
        struct perf_stat p = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = perf_stat_parse(&p, sample, strlen(sample), &f);
        fault_disarm();
        assert_true(rc == 0 ? p.n_cells == 6 : p.cells == NULL);
        perf_stat_done(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_becomes_cells),
        cmocka_unit_test(test_time_stamps_are_exact),
        cmocka_unit_test(test_a_text_may_end_anywhere),
        cmocka_unit_test(test_parse_whatever_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
