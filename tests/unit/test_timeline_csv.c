#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/timeline_csv.h"
#include "tests/bench/gen_timeline.h"
#include "tests/fault.h"

/* Rows are written "RUN EPOCH SECOND;", RUN being `cores` and the log's name; what begins with '!' is a line as it stands.
 * A result is "CORES STATUS START-UP: DURATION …;", faults are "line column;". */
static const struct {
    const char *name, *rows, *want, *faults;
} cases[] = {
    { "a complete run", "4 0 100;4 1 150;4 2 170;4 end 185", "4 complete 50: 20 15;", "" },
    { "end at once is a failure", "4 0 100;4 end 100;8 0 1;8 1 2;8 end 3", "4 failed nan:;8 complete 1: 1;", "" },
    { "fewer epochs than the longest: partial, and the last one is cut off",
      "4 0 0;4 1 1;4 2 3;4 end 9;8 0 0;8 1 1;8 2 3;8 3 6;8 end 10", "4 partial 1: 2;8 complete 1: 2 3 4;", "" },
    { "a partial run of one epoch has none, but a start-up", "4 0 0;4 1 7;4 end 9;8 0 0;8 1 1;8 2 3;8 end 6",
      "4 partial 7:;8 complete 1: 2 3;", "" },
    { "a run that was not seen to end knows its epochs but the last", "4 0 0;4 1 2;4 2 5;4 3 9", "4 running 2: 3 4;",
      "" },
    { "a run that only was submitted", "4 0 0", "4 running nan:;", "" },
    { "runs may be interleaved", "4 0 0;8 0 1;4 1 2;8 1 3;8 end 4;4 end 6", "4 complete 2: 4;8 complete 2: 1;", "" },
    { "rows may be out of order", "4 end 185;4 2 170;4 0 100;4 1 150", "4 complete 50: 20 15;", "" },
    { "epochs may be out of order", "4 0 0;4 10 10;4 2 2;4 1 1;4 end 11", "4 partial 1: 1;", "" },
    { "a submission after an end begins another run", "4 0 0;4 1 1;4 end 2;4 0 5;4 1 7;4 end 10",
      "4 complete 1: 1;4 complete 2: 3;", "" },
    { "so does one without an end", "4 0 0;4 1 1;4 0 5;4 1 7;4 end 10", "4 running 1:;4 complete 2: 3;", "" },
    { "two runs of one name, sorted by epoch: time tells them apart",
      "4 0 0;4 0 5;4 1 1;4 1 7;4 2 3;4 2 8;4 end 4;4 end 11", "4 complete 1: 2 1;4 complete 2: 1 3;", "" },
    { "and backwards", "4 end 10;4 1 7;4 0 5;4 end 2;4 1 1;4 0 0", "4 complete 2: 3;4 complete 1: 1;", "" },
    { "two at the same time stand as the file has them", "4 0 0;4 1 3;4 end 9;4 0 1;4 1 2;4 end 6",
      "4 complete 3: 6;4 complete 1: 4;", "" },
    { "a missing epoch is a hole: what is before it is whole", "4 0 0;4 1 1;4 2 3;4 4 9;4 end 10;8 0 0;8 1 1;8 end 2",
      "4 partial 1: 2;8 complete 1: 1;", "" },
    { "without the first epoch there is nothing", "4 0 0;4 2 3;4 end 10", "4 partial nan:;", "" },
    { "without the submission there is no start-up", "4 1 3;4 2 5;4 end 10", "4 complete nan: 2 5;", "" },
    { "an end alone is a failure", "4 end 10", "4 failed nan:;", "" },
    { "an epoch of no time", "4 0 0;4 1 1;4 2 1;4 end 2", "4 complete 1: 0 1;", "" },
    { "fractions of seconds", "4 0 0.25;4 1 1;4 end 2.5", "4 complete 0.75: 1.5;", "" },
    { "an epoch twice", "4 0 0;4 1 1;4 1 2;4 end 3", "4 complete 1: 2;", "3 epoch" },
    { "an end that is too early", "4 0 5;4 1 6;4 2 8;4 end 7", "4 running 1: 2;", "4 unix_s" },
    { "time that goes back", "4 0 5;4 1 6;4 2 3;4 end 9", "4 complete 1: 3;", "3 unix_s" },
    { "a row after the end", "4 0 5;4 1 6;4 end 9;4 2 10", "4 complete 1: 3;", "4 the row" },
    { "too few fields", "4 0 5;!a,b;4 1 6;4 end 9", "4 complete 1: 3;", "2 the row" },
    { "too many fields", "!m,d,4,8,64,l,0,1,9", "", "1 the row" },
    { "a header", "!model,dataset,cores,memory_gb,batch,log,epoch,unix_s", "", "1 the row" },
    { "no model", "!,d,4,8,64,l,0,1", "", "1 model" },
    { "a dataset that is no text", "!m,\xFF,4,8,64,l,0,1", "", "1 dataset" },
    { "half a core", "!m,d,0.5,8,64,l,0,1", "", "1 cores" },
    { "memory that is no number", "!m,d,4,8g,64,l,0,1", "", "1 memory_gb" },
    { "no batch at all", "!m,d,4,8,0,l,0,1", "", "1 batch" },
    { "an epoch below 0", "!m,d,4,8,64,l,-1,1", "", "1 epoch" },
    { "an epoch that is a word", "!m,d,4,8,64,l,last,1", "", "1 epoch" },
    { "a time that is none", "!m,d,4,8,64,l,0,", "", "1 unix_s" },
    { "several faults, by line", "!x;4 0 5;4 1 3;!y;4 end 9", "4 failed nan:;", "1 the row;3 unix_s;4 the row" },
    { "nothing at all", "", "", "" },
};

static void put_rows(struct buf *b, const char *rows)
{
    while (*rows) {
        size_t len = strcspn(rows, ";");
        int cores = 0;
        char epoch[16] = "", second[16] = "";
        if (*rows == '!')
            buf_printf(b, "%.*s\n", (int)len - 1, rows + 1);
        else if (sscanf(rows, "%d %15s %15[^;]", &cores, epoch, second) == 3)
            buf_printf(b, "m,d,%d,8,64,run-%d.log,%s,%s\n", cores, cores, epoch, second);
        rows += len + (rows[len] == ';');
    }
}

static void put_timeline(struct buf *b, const struct timeline *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct timeline_run *r = &t->runs[i];
        buf_printf(b, "%d %s %g:", r->cores, timeline_status_name(r->status), r->startup_s);
        for (size_t k = 0; k < r->n_epochs; k++)
            buf_printf(b, " %g", r->epochs[k].duration_s);
        buf_putc(b, ';');
    }
}

static void test_rows_become_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf text = BUF_INIT, got = BUF_INIT, faults = BUF_INIT;
        struct csv_faults f = { 0 };
        struct timeline t;
        put_rows(&text, cases[i].rows);
        assert_int_equal(timeline_csv_parse(&t, buf_text(&text), text.len, &f), 0);
        put_timeline(&got, &t);
        for (size_t k = 0; k < f.n; k++)
            buf_printf(&faults, "%s%zu %s", k ? ";" : "", f.faults[k].line, f.faults[k].column);
        if (strcmp(buf_text(&got), cases[i].want) != 0 || strcmp(buf_text(&faults), cases[i].faults) != 0)
            fail_msg("%s: got '%s' with faults '%s', want '%s' and '%s'", cases[i].name, buf_text(&got),
                     buf_text(&faults), cases[i].want, cases[i].faults);
        csv_faults_done(&f);
        timeline_done(&t);
    }
}

static void test_a_run_is_all_its_columns(void **state)
{
    (void)state;
    static const char text[] = "m,d,4,8,64,a,0,1\nm,d,4,8,64,b,0,1\nm,d,4,8,32,a,0,1\nm,d,4,16,64,a,0,1\n"
                               "m,e,4,8,64,a,0,1\nn,d,4,8,64,a,0,1\nm,d,4,8,64,,0,1\n\"m\",d,4.0,8,64,a,1,3\n"
                               "m,d,4,,64,a,0,1\n";
    struct csv_faults f = { 0 };
    struct timeline t;
    assert_int_equal(timeline_csv_parse(&t, text, strlen(text), &f), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(t.n, 8);
    assert_true(isnan(t.runs[7].memory_gb)); /* not recorded */
    assert_true(t.runs[0].startup_s == 2);   /* the last row is its second one */
    assert_string_equal(t.runs[1].log, "b");
    assert_true(t.runs[2].batch == 32 && t.runs[3].memory_gb == 16);
    assert_string_equal(t.runs[4].dataset, "e");
    assert_string_equal(t.runs[5].model, "n");
    assert_null(t.runs[6].log);
    timeline_done(&t);
}

static void test_each_workload_has_its_own_longest_run(void **state)
{
    (void)state;
    static const char text[] = "m,d,4,8,64,a,0,1\nm,d,4,8,64,a,1,2\nm,d,4,8,64,a,2,3\nm,d,4,8,64,a,end,4\n"
                               "m,d,4,8,32,a,0,1\nm,d,4,8,32,a,1,2\nm,d,4,8,32,a,end,4\n"
                               "m,e,4,8,32,a,0,1\nm,e,4,8,32,a,1,2\nm,e,4,8,32,a,end,4\n";
    struct csv_faults f = { 0 };
    struct timeline t;
    assert_int_equal(timeline_csv_parse(&t, text, strlen(text), &f), 0);
    assert_int_equal(t.runs[0].status, RUN_COMPLETE);
    assert_int_equal(t.runs[1].status, RUN_PARTIAL); /* another batch of the same workload */
    assert_int_equal(t.runs[2].status, RUN_COMPLETE);
    timeline_done(&t);
}

static void test_parse_whatever_allocation_fails(void **state)
{
    (void)state;
    static const char text[] = "m,d,4,8,64,a,0,1\nm,d,4,8,64,a,1,2\nbroken\nm,d,4,8,64,a,end,4\nm,e,4,8,64,b,0,2\n";
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct csv_faults f = { 0 };
        struct timeline t = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = timeline_csv_parse(&t, text, strlen(text), &f);
        fault_disarm();
        assert_true(rc == 0 ? t.n == 2 && f.n == 1 : t.runs == NULL);
        csv_faults_done(&f);
        timeline_done(&t);
    }
}

/* A synthetic timeline cut and bitten anywhere: never a crash, and what is left is sane. */
static void test_holes_never_crash(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    gen_timeline_csv(&b, 3);
    for (size_t at = 0; at < b.len; at += 97) {
        struct csv_faults f = { 0 };
        struct timeline t;
        struct timeline_jobs jobs;
        char was = b.data[at];
        b.data[at] = (char)(at * 31);
        assert_int_equal(timeline_csv_parse(&t, b.data, at % 2 ? b.len : at + 1, &f), 0);
        b.data[at] = was;
        assert_int_equal(timeline_gather(&jobs, &t), 0);
        for (size_t i = 0; i < t.n; i++)
            for (size_t k = 0; k < t.runs[i].n_epochs; k++)
                assert_true(t.runs[i].epochs[k].duration_s >= 0);
        timeline_jobs_done(&jobs);
        timeline_done(&t);
        csv_faults_done(&f);
    }
}

/* As the program writes them, and as they are read back: "STATUS START-UP: DURATION …". */
static void test_what_was_written_reads_back(void **state)
{
    static const struct {
        const char *name, *dataset;
        enum timeline_status status;
        int cores;
        double startup_s, durations[3];
        size_t n;
        const char *rows, *back;
    } rows[] = {
        { "a complete run",
          "mnist",
          RUN_COMPLETE,
          4,
          50.5,
          { 20, 15 },
          2,
          "lenet,mnist,4,,64,1/1,0,100\nlenet,mnist,4,,64,1/1,1,150.5\nlenet,mnist,4,,64,1/1,2,170.5\n"
          "lenet,mnist,4,,64,1/1,end,185.5\n",
          "complete 50.5: 20 15" },
        { "one that runs",
          "mnist",
          RUN_RUNNING,
          4,
          2,
          { 3 },
          1,
          "lenet,mnist,4,,64,1/1,0,100\nlenet,mnist,4,,64,1/1,1,102\nlenet,mnist,4,,64,1/1,2,105\n",
          "running 2: 3" },
        { "no start-up",
          "mnist",
          RUN_COMPLETE,
          4,
          NAN,
          { 3 },
          1,
          "lenet,mnist,4,,64,1/1,1,100\nlenet,mnist,4,,64,1/1,end,103\n",
          "complete nan: 3" },
        { "it could not be launched",
          "mnist",
          RUN_FAILED,
          4,
          NAN,
          { 0 },
          0,
          "lenet,mnist,4,,64,1/1,0,100\nlenet,mnist,4,,64,1/1,end,100\n",
          "failed nan:" },
        { "no dataset", "", RUN_COMPLETE, 4, 1, { 3 }, 1, "", "" },
        { "no cores", "mnist", RUN_COMPLETE, 0, 1, { 3 }, 1, "", "" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct timeline_epoch epochs[3];
        for (size_t k = 0; k < ARRAY_LEN(epochs); k++)
            epochs[k] = (struct timeline_epoch){ .duration_s = rows[i].durations[k] };
        char model[] = "lenet", log[] = "1/1";
        const struct timeline_run run = { .model = model,
                                          .dataset = (char *)(uintptr_t)rows[i].dataset,
                                          .cores = rows[i].cores,
                                          .memory_gb = NAN,
                                          .batch = 64,
                                          .log = log,
                                          .status = rows[i].status,
                                          .startup_s = rows[i].startup_s,
                                          .epochs = epochs,
                                          .n_epochs = rows[i].n };
        AUTO_BUF struct buf text = BUF_INIT;
        AUTO_BUF struct buf got = BUF_INIT;
        timeline_csv_put(&text, &run, 100);
        if (strcmp(buf_text(&text), rows[i].rows) != 0)
            fail_msg("%s: got\n%s", rows[i].name, buf_text(&text));
        struct timeline back = { 0 };
        struct csv_faults faults = { 0 };
        assert_int_equal(timeline_csv_parse(&back, buf_text(&text), text.len, &faults), 0);
        assert_int_equal(faults.n, 0);
        for (size_t k = 0; k < back.n; k++) {
            buf_printf(&got, "%s %g:", timeline_status_name(back.runs[k].status), back.runs[k].startup_s);
            for (size_t m = 0; m < back.runs[k].n_epochs; m++)
                buf_printf(&got, " %g", back.runs[k].epochs[m].duration_s);
        }
        if (strcmp(buf_text(&got), rows[i].back) != 0)
            fail_msg("%s: read back as '%s'", rows[i].name, buf_text(&got));
        timeline_done(&back);
        csv_faults_done(&faults);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_become_runs),
        cmocka_unit_test(test_a_run_is_all_its_columns),
        cmocka_unit_test(test_what_was_written_reads_back),
        cmocka_unit_test(test_each_workload_has_its_own_longest_run),
        cmocka_unit_test(test_parse_whatever_allocation_fails),
        cmocka_unit_test(test_holes_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
