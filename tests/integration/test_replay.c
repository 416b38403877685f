/* `pipetune replay` over files: keys, numbers, exit codes. The numbers are derived in tests/unit/test_replay.c and
 * test_online.c, on the same figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zlib.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "core/timeline_csv.h"
#include "store/trace.h"
#include "tests/integration/harness.h"

enum { WORDS = 16 };

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

/* Runs pipetune with these words; one that begins with '@' is a path in the folder. */
static struct harness_output replay(const char *dir, const char *const *words)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[WORDS + 3] = { program, "replay" };
    size_t n = 2;
    for (; *words && n < WORDS; words++)
        argv[n++] = **words == '@' ? harness_path(dir, *words + 1) : strdup(*words);
    struct harness_output o = harness_run(argv, HARNESS_MS);
    for (size_t i = 2; i < n; i++)
        free(argv[i]);
    return o;
}

#define REPLAY(dir, ...) replay(dir, (const char *const[]){ __VA_ARGS__, NULL })

static json_t *parsed(const struct harness_output *o)
{
    json_error_t e;
    json_t *j = json_loads(o->out, JSON_REJECT_DUPLICATES, &e);
    if (!j || o->code != 0)
        fail_msg("exit %d, %s line %d; stdout: %s stderr: %s", o->code, e.text, e.line, o->out, o->err);
    return j;
}

/* The value at "a|b|c": names hold slashes. */
static const json_t *at(const json_t *j, const char *path)
{
    char key[128];
    for (const char *p = path; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL) {
        (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(p, "|"), p);
        j = json_object_get(j, key);
        if (!j)
            fail_msg("no '%s' of '%s'", key, path);
    }
    return j;
}

static void expect_number(const json_t *j, const char *path, double want)
{
    const json_t *got = at(j, path);
    if (isnan(want) ? !json_is_null(got) : !json_is_number(got) || fabs(json_number_value(got) - want) > 1e-6)
        fail_msg("%s: got %.17g, want %.17g", path, json_number_value(got), want);
}

static void expect_choice(const json_t *j, const char *path, int cores, double memory_gb)
{
    const json_t *got = at(j, path);
    if (json_integer_value(json_array_get(got, 0)) != cores ||
        !(json_number_value(json_array_get(got, 1)) == memory_gb))
        fail_msg("%s is not [%d, %g]", path, cores, memory_gb);
}

static void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %s", part, text);
}

static int make_dir(void **state)
{
    *state = harness_dir();
    return 0;
}

static int remove_dir(void **state)
{
    harness_remove(*state);
    return 0;
}

/* --- a timeline --- */

static void put_run(struct buf *b, const char *workload, int cores, int memory, int batch, const double *epochs)
{
    double now = 1000 + 10000 * cores + 1000 * memory;
    for (int i = 0; i == 0 || epochs[i - 1] > 0; i++) {
        buf_printf(b, "%s,%d,%d,%d,run.log,%d,%.3f\n", workload, cores, memory, batch, i, now);
        now += i == 0 ? 10 : epochs[i - 1];
        if (epochs[i] <= 0) {
            buf_printf(b, "%s,%d,%d,%d,run.log,end,%.3f\n", workload, cores, memory, batch, i ? now : now - 10);
            return;
        }
    }
}

/* m/d at batch 32 as in test_replay.c, (4,8) failed; at batch 64 nothing is feasible; x/y has one setting. */
static void write_timeline(const char *dir, const char *name, const char *more)
{
    AUTO_BUF struct buf b = BUF_INIT;
    put_run(&b, "m,d", 2, 4, 32, (const double[]){ 100, 44, 36, 0 });
    put_run(&b, "m,d", 8, 8, 32, (const double[]){ 85, 18, 18, 0 });
    put_run(&b, "m,d", 4, 8, 32, (const double[]){ 0 });
    put_run(&b, "m,d", 4, 4, 32, (const double[]){ 80, 28, 32, 0 });
    put_run(&b, "m,d", 2, 8, 32, (const double[]){ 90, 46, 44, 0 });
    put_run(&b, "m,d", 8, 4, 32, (const double[]){ 80, 22, 18, 0 });
    put_run(&b, "m,d", 2, 4, 64, (const double[]){ 0 });
    put_run(&b, "m,d", 4, 4, 64, (const double[]){ 0 });
    put_run(&b, "x,y", 1, 2, 8, (const double[]){ 7, 5, 0 });
    buf_puts(&b, more);
    harness_write(dir, name, buf_text(&b));
}

#define FIXED "v1_first,v1_max,v2_random,v2_grid,original,orig_fair,paper,oracle"

static void test_offline_says_what_each_policy_costs(void **state)
{
    write_timeline(*state, "t.csv", "");
    AUTO_OUTPUT struct harness_output o = REPLAY(*state, "offline", "@t.csv", "--policy", FIXED, "--epochs", "6",
                                                 "--repeat", "1", "--default", "first", "--probe", "mean", "--json");
    AUTO_JSON json_t *j = parsed(&o);
    static const struct {
        const char *policy;
        double md, xy; /* x/y: U = 10, D = 7, S = 5: fresh(6) = 42, fresh(1) = 17, fresh(2) = 22 */
        int cores, memory;
    } want[] = {
        { "v1_first", 310, 42, 2, 4 }, { "v1_max", 185, 42, 8, 8 },    { "v2_grid", 1250, 42, 8, 8 },
        { "original", 510, 39, 4, 4 }, { "orig_fair", 630, 59, 4, 4 }, { "paper", 245, 42, 8, 4 },
        { "oracle", 185, 42, 8, 8 },
    };
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        char path[96];
        (void)snprintf(path, sizeof path, "per_batch|m/d/32|time|%s", want[i].policy);
        expect_number(j, path, want[i].md);
        (void)snprintf(path, sizeof path, "per_batch|m/d/32|choice|%s", want[i].policy);
        expect_choice(j, path, want[i].cores, want[i].memory);
        (void)snprintf(path, sizeof path, "per_batch|x/y/8|time|%s", want[i].policy);
        expect_number(j, path, want[i].xy);
        (void)snprintf(path, sizeof path, "total|m/d|%s", want[i].policy);
        expect_number(j, path, want[i].md);
        (void)snprintf(path, sizeof path, "total|ALL|%s", want[i].policy);
        expect_number(j, path, want[i].md + want[i].xy);
    }
    expect_number(j, "per_batch|m/d/32|time|v2_random", 250);
    assert_true(json_is_null(at(j, "per_batch|m/d/32|choice|v2_random")));
    assert_int_equal(json_array_size(at(j, "per_batch|m/d/32|infeasible")), 1);
    expect_number(j, "per_batch|m/d/64|time|paper", NAN); /* listed, and nothing to say */
    assert_true(json_is_null(at(j, "per_batch|m/d/64|choice|paper")));
    assert_int_equal(json_array_size(at(j, "per_batch|m/d/64|infeasible")), 2);
    assert_int_equal(json_object_size(at(j, "total")), 3);
    assert_int_equal(json_object_size(at(j, "total|ALL")), 8);
}

static void test_offline_options_reach_the_policies(void **state)
{
    write_timeline(*state, "t.csv", "");
    AUTO_OUTPUT struct harness_output o = REPLAY(*state, "offline", "@t.csv", "--policy=paper", "--epochs=6",
                                                 "--repeat=3", "--default=first", "--probe=recorded", "--json");
    AUTO_JSON json_t *j = parsed(&o);
    expect_number(j, "per_batch|m/d/32|time|paper", 241 + 2 * 210);
    assert_int_equal(json_object_size(at(j, "total|ALL")), 1);
    AUTO_OUTPUT struct harness_output last =
        REPLAY(*state, "offline", "@t.csv", "--policy=original", "--epochs=6", "--default=last", "--json");
    AUTO_JSON json_t *k = parsed(&last);
    expect_number(k, "per_batch|m/d/32|time|original", 395);
}

static void test_offline_has_every_policy_by_itself(void **state)
{
    write_timeline(*state, "t.csv", "");
    AUTO_OUTPUT struct harness_output o = REPLAY(*state, "offline", "@t.csv", "--json");
    AUTO_JSON json_t *j = parsed(&o);
    assert_int_equal(json_object_size(at(j, "total|ALL")), 9);
    double oracle = json_number_value(at(j, "total|ALL|oracle"));
    assert_true(json_number_value(at(j, "total|ALL|pipetune")) >= oracle);
    expect_number(j, "per_batch|m/d/64|time|pipetune", NAN);
    AUTO_OUTPUT struct harness_output people = REPLAY(*state, "offline", "@t.csv");
    assert_int_equal(people.code, 0);
    expect_text(people.out, "over oracle");
    expect_text(people.out, "none feasible");
    expect_text(people.out, "infeasible: m/d batch 32 at 4, 8\n");
}

static void test_a_trace_says_the_same_as_its_timeline(void **state)
{
    write_timeline(*state, "t.csv", "");
    AUTO_FREE char *text = harness_read(*state, "t.csv");
    AUTO_FREE char *path = harness_path(*state, "t.h5");
    struct timeline t = { 0 };
    struct trace trace = { 0 };
    struct csv_faults faults = { 0 };
    struct err e = { 0 };
    assert_int_equal(timeline_csv_parse(&t, text, strlen(text), &faults), 0);
    assert_int_equal(trace_default_features(&trace), 0);
    if (trace_add_timeline(&trace, &t, &e) < 0 || trace_write(&trace, path, &e) < 0)
        fail_msg("%s", e.text);
    trace_done(&trace);
    timeline_done(&t);
    AUTO_OUTPUT struct harness_output from_csv = REPLAY(*state, "offline", "@t.csv", "--json");
    AUTO_OUTPUT struct harness_output from_h5 = REPLAY(*state, "offline", "@t.h5", "--json");
    assert_int_equal(from_h5.code, 0);
    assert_string_equal(from_h5.out, from_csv.out);
}

static void test_offline_does_not_guess_at_broken_rows(void **state)
{
    write_timeline(*state, "t.csv", "m,d,many,4,32,run.log,0,5\n");
    AUTO_OUTPUT struct harness_output strict = REPLAY(*state, "offline", "@t.csv", "--json");
    assert_int_equal(strict.code, 2);
    assert_string_equal(strict.out, "");
    expect_text(strict.err, "line 36: cores");
    expect_text(strict.err, "1 broken row, the first in line");
    expect_text(strict.err, "--lenient");
    AUTO_OUTPUT struct harness_output lenient = REPLAY(*state, "offline", "@t.csv", "--lenient", "--json");
    AUTO_JSON json_t *j = parsed(&lenient);
    expect_text(lenient.err, "left out: ");
    assert_int_equal(json_object_size(at(j, "per_batch")), 3);
}

/* --- queues, and plain tuning runs --- */

static void write_queues(const char *dir)
{
    harness_write(dir, "TuneV1Load_0.5_4.csv",
                  "0.5,a,4,0.1,64,10,0,100,100,0.1,40,1,1000,10\n"
                  "0.5,b,4,0.1,64,10,60,50,110,0.1,80,1,500,20\n"
                  "0.5,a,4,0.1,64,10,70,100,170,0.1,90,1,1000,30\n"
                  "0.5,a,4,0.1,64,10,10,100,110,0.1,40,1,1000,40\n");
    harness_write(dir, "TuneV2Load_0.5_4.csv", "0.5,b,4,0.1,64,10,0,30,35,0.1,12,1\n");
    harness_write(dir, "TuneV1Load_0.5_16.csv", "0.5,b,16,0.1,64,10,0,30,35,0.1,12,1\n");
    harness_write(dir, "notes.txt", "not a table");
}

static void test_online_means_and_queues(void **state)
{
    write_queues(*state);
    AUTO_OUTPUT struct harness_output o = REPLAY(*state, "online", "@.", "--json");
    AUTO_JSON json_t *j = parsed(&o);
    expect_number(j, "0.5|4|all|v1|response_s", 122.5);
    expect_number(j, "0.5|4|all|v1|tuning_s", 87.5);
    expect_number(j, "0.5|4|all|v1|training_s", 62.5);
    expect_number(j, "0.5|4|all|v1|energy_j", 875);
    expect_number(j, "0.5|4|all|pipetune|response_s", 62.5);
    expect_number(j, "0.5|4|all|pipetune|energy_j", 25);
    expect_number(j, "0.5|4|all|pipetune_on_v2|response_s", 12);
    expect_number(j, "0.5|4|all|fcfs|v1", 82.5);
    expect_number(j, "0.5|4|b|fcfs|v2", 30);
    expect_number(j, "0.5|4|b|v2|energy_j", NAN); /* the columns are missing */
    expect_number(j, "0.5|4|a|v2|response_s", NAN);
    expect_number(j, "0.5|16|all|v1|response_s", 35);
    expect_number(j, "0.5|16|all|fcfs|v2", NAN);
    AUTO_OUTPUT struct harness_output people = REPLAY(*state, "online", "@.");
    assert_int_equal(people.code, 0);
    expect_text(people.out, "mean response");
}

static void test_offline_sums_a_folder_of_tuning_runs(void **state)
{
    harness_write(*state, "TuneV1_lenet_8.csv", "0.1,10,64,0.2,7,100,5000000\n0.01,10,64,0.1,9,50,6000000\n");
    harness_write(*state, "TuneV2_lenet_8.csv", "0.1,10,64,0.3,3,10,1000000\n");
    AUTO_OUTPUT struct harness_output o = REPLAY(*state, "offline", "@.", "--json");
    AUTO_JSON json_t *j = parsed(&o);
    expect_number(j, "lenet|8|v1|trials", 2);
    expect_number(j, "lenet|8|v1|time_s", 150);
    expect_number(j, "lenet|8|v1|energy_j", 11);
    expect_number(j, "lenet|8|v1|best|error|lr", 0.01);
    expect_number(j, "lenet|8|v1|best|error_resp|lr", 0.1);
    expect_number(j, "lenet|8|v2|time_s", 10);
    AUTO_OUTPUT struct harness_output people = REPLAY(*state, "offline", "@.");
    expect_text(people.out, "0.1 (lr 0.01, batch 64, 10 epochs)");
}

static void test_online_does_not_guess_at_broken_rows(void **state)
{
    write_queues(*state);
    harness_write(*state, "TuneV2Load_0.5_4.csv", "0.5,b,4,0.1,64,10,0,30,35,0.1,12,1\nnonsense\n");
    AUTO_OUTPUT struct harness_output strict = REPLAY(*state, "online", "@.", "--json");
    assert_int_equal(strict.code, 2);
    expect_text(strict.err, "TuneV2Load_0.5_4.csv' line 2: the row has not 12 to 14 fields");
    AUTO_OUTPUT struct harness_output lenient = REPLAY(*state, "online", "@.", "--json", "--lenient");
    AUTO_JSON json_t *j = parsed(&lenient);
    expect_number(j, "0.5|4|all|v2|response_s", 35);
}

/* --- wrong usage --- */

static const char curves[] = "{\"format\":\"curves\",\"metric\":\"acc\",\"direction\":\"max\",\"epochs\":2}\n"
                             "{\"hyper\":{\"x\":1},\"values\":[0.1,0.2]}\n"
                             "{\"hyper\":{\"x\":2},\"values\":[0.3,0.6]}\n"
                             "{\"hyper\":{\"x\":3},\"values\":[0.1,0.4]}\n";

static void test_searches_over_curves(void **state)
{
    harness_write(*state, "c.jsonl", curves);
    AUTO_OUTPUT struct harness_output o = REPLAY(*state, "search", "@c.jsonl", "--algorithm", "grid,random", "--stop",
                                                 "none,median", "--budget", "6", "--at", "1,3,6", "--json");
    AUTO_JSON json_t *j = parsed(&o);
    assert_int_equal(json_object_size(j), 4);
    expect_number(j, "grid+none|regret|1", 2.5); /* (0.6 - 0.1) / (0.6 - 0.4) */
    expect_number(j, "grid+none|regret|3", 1.5);
    expect_number(j, "grid+none|best|6", 0.6);
    expect_number(j, "grid+none|trials", 3);
    expect_number(j, "random+median|epochs", 6);
    assert_true(json_is_number(at(j, "random+none|decision_ms")));
    AUTO_OUTPUT struct harness_output people = REPLAY(*state, "search", "@c.jsonl", "--budget", "6");
    assert_int_equal(people.code, 0);
    assert_non_null(strstr(people.out, "3 configurations of 2 epochs"));
}

static void test_a_table_may_be_gzipped(void **state)
{
    AUTO_FREE char *path = harness_path(*state, "c.curves");
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzputs(f, curves), sizeof curves - 1);
    assert_int_equal(gzclose(f), Z_OK);
    harness_write(*state, "c.jsonl", curves);
    AUTO_OUTPUT struct harness_output packed = REPLAY(*state, "search", "@c.curves", "--budget", "6", "--json");
    AUTO_OUTPUT struct harness_output plain = REPLAY(*state, "search", "@c.jsonl", "--budget", "6", "--json");
    AUTO_JSON json_t *a = parsed(&packed), *b = parsed(&plain);
    assert_true(json_object_size(a) > 0);
    const char *name;
    json_t *of;
    json_object_foreach(a, name, of)
    { /* but for the time that it took */
        json_t *other = json_object_get(b, name);
        assert_true(json_equal(json_object_get(of, "best"), json_object_get(other, "best")));
    }
    AUTO_OUTPUT struct harness_output forecast = REPLAY(*state, "forecast", "@c.curves", "--at", "0.5", "--json");
    assert_int_equal(forecast.code, 0);
}

static void test_forecasts_of_curves(void **state)
{
    harness_write(*state, "c.jsonl", curves);
    AUTO_OUTPUT struct harness_output o = REPLAY(*state, "forecast", "@c.jsonl", "--at", "0.5", "--json");
    AUTO_JSON json_t *j = parsed(&o);
    assert_int_equal(json_object_size(j), 1);
    expect_number(j, "0.5|last_value_error", 3.5 / 3); /* 0.1, 0.3 and 0.3 off, in units of 0.2 */
    assert_true(json_is_number(at(j, "0.5|coverage")) && json_is_number(at(j, "0.5|width")));
    assert_true(json_is_number(at(j, "0.5|error")));
    AUTO_OUTPUT struct harness_output people = REPLAY(*state, "forecast", "@c.jsonl");
    assert_int_equal(people.code, 0);
    assert_non_null(strstr(people.out, "3 configurations of 2 epochs"));
}

static const struct {
    const char *name, *words[8];
    int code;
    const char *says;
} wrong[] = {
    { "nothing to replay", { NULL }, 2, "offline TRACE" },
    { "no such way", { "sideways", "@t.csv" }, 2, "'sideways' cannot be replayed" },
    { "no trace", { "offline" }, 2, "replay what? 'pipetune replay offline' needs" },
    { "a trace that is not there", { "offline", "@nothing.csv" }, 3, "nothing.csv" },
    { "a policy with a typo", { "offline", "@t.csv", "--policy", "oracle,pipetun" }, 2, "did you mean 'pipetune'?" },
    { "a policy nobody knows", { "offline", "@t.csv", "--policy", "zzzzzzzz" }, 2, "there are v1_first, " },
    { "no epochs", { "offline", "@t.csv", "--epochs", "0" }, 2, "'--epochs'" },
    { "a default that is neither", { "offline", "@t.csv", "--default", "best" }, 2, "must be one of first, last" },
    { "an empty timeline", { "offline", "@empty.csv" }, 2, "holds no run" },
    { "a trace that is none", { "offline", "@foreign.h5" }, 2, "foreign.h5" },
    { "a folder without tables", { "offline", "@empty" }, 2, "holds no .csv" },
    { "a folder without queues", { "online", "@empty" }, 2, "holds no TuneV1Load" },
    { "a file for a folder", { "online", "@t.csv" }, 3, "cannot read folder" },
    { "search of nothing", { "search" }, 2, "needs a table of curves" },
    { "a table that is gzipped and damaged", { "search", "@damaged.gz" }, 2, "is no whole gzip file" },
    { "search of what is no table", { "search", "@t.csv" }, 2, "each line is a JSON object" },
    { "an unknown search", { "search", "@c.jsonl", "--algorithm", "rendom" }, 2, "did you mean 'random'" },
    { "marks that fall", { "search", "@c.jsonl", "--at", "3,2" }, 2, "must be ascending numbers" },
    { "marks beyond the budget", { "search", "@c.jsonl", "--at", "3", "--budget", "2" }, 2, "goes beyond" },
    { "forecast of nothing", { "forecast" }, 2, "needs a table of curves" },
    { "no share", { "forecast", "@c.jsonl", "--at", "0.1,1" }, 2, "must be shares of the epochs" },
    { "no name", { "search", "@c.jsonl", "--stop", "none," }, 2, "has an empty name" },
    { "decisions of nothing", { "decisions" }, 2, "needs a study, or a trace" },
    { "decisions without a store", { "decisions", "demo", "--store", "@none.db" }, 3, "no store" },
};

static void test_wrong_usage_is_explained(void **state)
{
    write_timeline(*state, "t.csv", "");
    harness_write(*state, "empty.csv", "\n\n");
    harness_write(*state, "c.jsonl", curves);
    harness_write(*state, "damaged.gz", "\x1f\x8b and nothing more");
    harness_write(*state, "foreign.h5", "\x89HDF\r\n and nothing more");
    AUTO_FREE char *empty = harness_path(*state, "empty");
    struct err e;
    assert_int_equal(io_mkdirs(empty, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        AUTO_OUTPUT struct harness_output o = replay(*state, wrong[i].words);
        if (o.code != wrong[i].code || !strstr(o.err, wrong[i].says))
            fail_msg("%s: exit %d, want %d; stderr: %s", wrong[i].name, o.code, wrong[i].code, o.err);
        if (*o.out || harness_count(o.err, "\n") != 1)
            fail_msg("%s: stdout: %s; stderr: %s", wrong[i].name, o.out, o.err);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_offline_says_what_each_policy_costs),
        TEST(test_offline_options_reach_the_policies),
        TEST(test_offline_has_every_policy_by_itself),
        TEST(test_a_trace_says_the_same_as_its_timeline),
        TEST(test_offline_does_not_guess_at_broken_rows),
        TEST(test_online_means_and_queues),
        TEST(test_offline_sums_a_folder_of_tuning_runs),
        TEST(test_online_does_not_guess_at_broken_rows),
        TEST(test_searches_over_curves),
        TEST(test_a_table_may_be_gzipped),
        TEST(test_forecasts_of_curves),
        TEST(test_wrong_usage_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
