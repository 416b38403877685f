#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/tune_csv.h"
#include "tests/fault.h"

enum form { OFFLINE, ONLINE };

#define GOOD "0.1,10,64,0.08,12.5,300,5000000\n"
#define QUEUED "0.5,lenet,4,0.1,64,10,5,100,105,0.08,40,1.5"

static const struct {
    const char *name;
    enum form form;
    const char *text;
    size_t rows;
    const char *says; /* the first fault; NULL: none */
} cases[] = {
    { "a row", OFFLINE, GOOD, 1, NULL },
    { "the last line needs no end", OFFLINE, GOOD "0.1,10,64,0.08,12.5,300,5000000", 2, NULL },
    { "heads are skipped", OFFLINE, "lr,epochs,batch,error,error_resp,training_s,energy_uj\n" GOOD, 1, NULL },
    { "heads are heads in the first row alone", OFFLINE, GOOD "lr,1,1,1,1,1,1\n", 1,
      "'f' line 2: lr must be a number" },
    { "blank lines, blanks and carriage returns", OFFLINE, "\r\n 0.1 ,\t10,64,0.08,12.5,300,5000000\r\n", 1, NULL },
    { "what was not measured is left empty", OFFLINE, "0.1,10,64,,,,\n", 1, NULL },
    { "a setting cannot be empty", OFFLINE, "0.1,,64,,,,\n", 0, "epochs must be a whole number" },
    { "nor can a rate", OFFLINE, ",1,64,,,,\n", 0, "lr must be a number above 0" },
    { "a word is no number", OFFLINE, GOOD "0.1,10,x,1,1,1,1\n", 1, "'f' line 2: batch must be a number above 0" },
    { "nan is no number", OFFLINE, "0.1,10,64,nan,1,1,1\n", 0, "error must be a number, or empty" },
    { "infinity is no number", OFFLINE, "0.1,10,64,1,1,1e999,1\n", 0, "training_s must" },
    { "a hexadecimal number is none", OFFLINE, "0.1,0x10,64,1,1,1,1\n", 0, "epochs must" },
    { "a number and more is none", OFFLINE, "0.1,10,64,1-1,1,1,1\n", 0, "error must" },
    { "time does not run back", OFFLINE, "0.1,10,64,1,1,-1,1\n", 0, "training_s must be a number from 0" },
    { "half an epoch", OFFLINE, "0.1,1.5,64,1,1,1,1\n", 0, "epochs must" },
    { "a whole number may be written as a real one", OFFLINE, "0.1,10.0,64,1,1,1,1\n", 1, NULL },
    { "too few columns", OFFLINE, "0.1,10,64\n", 0, "'f' line 1: the row has not 7 fields" },
    { "too many columns", OFFLINE, "0.1,10,64,1,1,1,1,1\n", 0, "has not 7 fields" },
    { "the rest is read", OFFLINE, "a\n" GOOD "c\n", 1, "'f' line 1: the row has not" },
    { "no text is no row", OFFLINE, "", 0, NULL },
    { "a job in a queue", ONLINE, QUEUED "\n", 1, NULL },
    { "with the energy of the tuning", ONLINE, QUEUED ",7\n", 1, NULL },
    { "with both energies", ONLINE, QUEUED ",7,8\n", 1, NULL },
    { "with one column more", ONLINE, QUEUED ",7,8,9\n", 0, "has not 12 to 14 fields" },
    { "with one column less", ONLINE, "0.5,lenet,4,0.1,64,10,5,100,105,0.08,40\n", 0, "has not 12 to 14 fields" },
    { "an energy that is none", ONLINE, QUEUED ",x\n", 0, "the tuning's energy must be a number from 0" },
    { "a job must have a name", ONLINE, "0.5,,4,0.1,64,10,5,100,105,0.08,40,1\n", 0, "job must be a name" },
    { "no job is called all", ONLINE, "0.5,all,4,0.1,64,10,5,100,105,0.08,40,1\n", 0, "not 'all'" },
    { "no name commands the terminal", ONLINE, "0.5,a\033b,4,0.1,64,10,5,100,105,0.08,40,1\n", 0,
      "job must be a name" },
    { "a name has an end", ONLINE,
      "0.5,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,4,0.1,64,10,5,100,105,0.08,40,1\n", 0,
      "1 to 63 bytes" },
};

static size_t rows_of(enum form form, const char *text, struct csv_faults *faults)
{
    struct tune_offline offline = { 0 };
    struct tune_online online = { 0 };
    if (form == OFFLINE)
        assert_int_equal(tune_offline_parse(&offline, text, strlen(text), faults), 0);
    else
        assert_int_equal(tune_online_parse(&online, text, strlen(text), faults), 0);
    size_t n = offline.n + online.n;
    tune_offline_done(&offline);
    tune_online_done(&online);
    return n;
}

static void test_rows_are_read_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf said = BUF_INIT;
        struct csv_faults faults = { 0 };
        size_t rows = rows_of(cases[i].form, cases[i].text, &faults);
        csv_faults_put(&faults, "", "f", &said);
        if (rows != cases[i].rows || (faults.n > 0) != (cases[i].says != NULL))
            fail_msg("%s: got %zu rows, want %zu; %s", cases[i].name, rows, cases[i].rows, buf_text(&said));
        if (cases[i].says && !strstr(buf_text(&said), cases[i].says))
            fail_msg("%s: got '%s', want '%s' in it", cases[i].name, buf_text(&said), cases[i].says);
        csv_faults_done(&faults);
    }
}

static void test_figures_have_our_units(void **state)
{
    (void)state;
    struct tune_offline t = { 0 };
    struct csv_faults faults = { 0 };
    assert_int_equal(tune_offline_parse(&t, GOOD, strlen(GOOD), &faults), 0);
    const struct tune_offline_row *r = t.rows;
    assert_true(r->lr == 0.1 && r->epochs == 10 && r->batch == 64 && r->error == 0.08 && r->error_resp == 12.5);
    assert_true(r->training_s == 300 && r->energy_j == 5); /* 5,000,000 microjoules */
    assert_int_equal(tune_offline_parse(&t, GOOD, strlen(GOOD), &faults), 0);
    assert_int_equal(t.n, 2); /* a second text is added */
    tune_offline_done(&t);
}

static void test_energy_may_be_missing(void **state)
{
    (void)state;
    static const char text[] = QUEUED "\n" QUEUED ",7\n" QUEUED ",7,8\n";
    struct tune_online t = { 0 };
    struct csv_faults faults = { 0 };
    assert_int_equal(tune_online_parse(&t, text, strlen(text), &faults), 0);
    assert_int_equal(t.n, 3);
    const struct tune_online_row *r = t.rows;
    assert_string_equal(r->load, "0.5");
    assert_string_equal(r->job, "lenet");
    assert_true(r->cores == 4 && r->queue_s == 5 && r->tuning_s == 100 && r->response_s == 105 && r->training_s == 40);
    assert_true(isnan(t.rows[0].tuning_j) && isnan(t.rows[1].training_j));
    assert_true(t.rows[2].tuning_j == 7 && t.rows[2].training_j == 8);
    tune_online_done(&t);
}

static void test_rows_survive_when_memory_is_out(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT;
    for (int i = 0; i < 200; i++)
        buf_puts(&text, i % 50 == 0 ? GOOD "broken\n" : GOOD);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct tune_offline t = { 0 };
        struct csv_faults faults = { 0 };
        assert_true(nth < 16);
        fault_arm(FAULT_ALLOC, nth);
        rc = tune_offline_parse(&t, buf_text(&text), text.len, &faults);
        (void)fault_disarm();
        assert_int_equal(t.n, rc < 0 ? 0 : 200);
        tune_offline_done(&t);
        csv_faults_done(&faults);
    }
}

static void test_a_row_that_was_written_reads_back(void **state)
{
    (void)state;
    static const struct tune_online_row rows[] = {
        { "0.95", "lenet", 4, 12, 0.1, 64, 1.5, 100, NAN, 0.125, 40.25, NAN, 12, NAN },
        { "rush, hour", "=cmd", 16, 1, 1e-5, 1024, 0, 0, 0, -1, 0, 2, NAN, 3 },
    };
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        tune_online_put(&b, &rows[i]);
    assert_string_equal(buf_text(&b), "0.95,lenet,4,0.1,64,12,1.5,100,,0.125,40.25,,12,\n"
                                      "\"rush, hour\",'=cmd,16,1e-05,1024,1,0,0,0,-1,0,2,,3\n");
    struct tune_online back = { 0 };
    struct csv_faults faults = { 0 };
    assert_int_equal(tune_online_parse(&back, buf_text(&b), b.len, &faults), 0);
    assert_int_equal(faults.n, 0);
    assert_int_equal(back.n, 2);
    assert_true(back.rows[0].cores == 4 && back.rows[0].lr == 0.1 && isnan(back.rows[0].response_s));
    assert_true(back.rows[1].training_j == 3 && isnan(back.rows[1].tuning_j) && back.rows[1].error == -1);
    assert_string_equal(back.rows[1].load, "rush, hour");
    tune_online_done(&back);
    csv_faults_done(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_read_or_refused),          cmocka_unit_test(test_figures_have_our_units),
        cmocka_unit_test(test_a_row_that_was_written_reads_back), cmocka_unit_test(test_energy_may_be_missing),
        cmocka_unit_test(test_rows_survive_when_memory_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
