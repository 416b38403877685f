/* `trace import | info | export` by the built program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "tests/integration/harness.h"

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))
#define AUTO_JSON __attribute__((cleanup(decref)))

enum { WORDS = 12 };

struct folder {
    char *dir;
};

static void decref(json_t **j)
{
    json_decref(*j);
}

static int make_world(void **state)
{
    static struct folder w;
    w.dir = harness_dir();
    *state = &w;
    return 0;
}

static int remove_world(void **state)
{
    struct folder *w = *state;
    harness_remove(w->dir);
    return 0;
}

/* Runs `pipetune trace` with these words; one that begins with '@' is a file of the world. */
static struct harness_output trace(const struct folder *w, const char *const *words)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char verb[] = "trace", *argv[WORDS + 3] = { program, verb }, *made[WORDS];
    size_t n = 2, n_made = 0;
    for (; *words; words++) {
        assert_true(n < WORDS + 2);
        if (**words == '@')
            argv[n++] = made[n_made++] = harness_path(w->dir, *words + 1);
        else
            argv[n++] = (char *)(uintptr_t)*words;
    }
    struct harness_output o = harness_run(argv, HARNESS_MS);
    while (n_made > 0)
        free(made[--n_made]);
    return o;
}

#define TRACE(w, ...) trace(w, (const char *const[]){ __VA_ARGS__, NULL })

static void expect(const struct harness_output *o, int code, const char *out, const char *err)
{
    if (o->code != code || !strstr(o->out, out) || !strstr(o->err, err))
        fail_msg("exit %d, stdout: %s stderr: %s; want %d, '%s' and '%s'", o->code, o->out, o->err, code, out, err);
}

static json_t *parsed(const char *text)
{
    json_error_t e;
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("no JSON: %s line %d: %s", e.text, e.line, text);
    return j;
}

static json_t *info(const struct folder *w, const char *file)
{
    AUTO_OUTPUT struct harness_output o = TRACE(w, "info", file, "--json");
    expect(&o, 0, "", "");
    return parsed(o.out);
}

static double number_at(json_t *j, const char *key)
{
    return json_number_value(json_object_get(j, key));
}

/* --- timelines --- */

static const char timeline[] = "lenet,mnist,8,4,512,a.log,0,1000\nlenet,mnist,8,4,512,a.log,1,1045.5\n"
                               "lenet,mnist,8,4,512,a.log,2,1060\nlenet,mnist,8,4,512,a.log,end,1070\n"
                               "lenet,mnist,16,4,512,b.log,0,2000\nlenet,mnist,16,4,512,b.log,end,2001\n"
                               "lenet,mnist,4,4,512,c.log,0,3000\nlenet,mnist,4,4,512,c.log,1,3050\n"
                               "lenet,mnist,4,4,512,c.log,end,3060\n";

static void test_a_timeline_is_imported(void **state)
{
    const struct folder *w = *state;
    harness_write(w->dir, "t.csv", timeline);
    AUTO_OUTPUT struct harness_output o = TRACE(w, "import", "--format", "timeline", "@t.csv", "-o", "@t.h5");
    expect(&o, 0, "3 runs (1 complete, 1 partial, 1 failed, 0 running), 2 epochs", "partial (1), failed (1)");
    AUTO_JSON json_t *j = info(w, "@t.h5");
    json_t *runs = json_object_get(j, "runs"), *run = json_array_get(runs, 0);
    json_t *epochs = json_object_get(run, "epochs"), *epoch = json_array_get(epochs, 0);
    assert_int_equal(json_array_size(runs), 3);
    assert_string_equal(json_string_value(json_object_get(run, "model")), "lenet");
    assert_string_equal(json_string_value(json_object_get(run, "dataset")), "mnist");
    assert_string_equal(json_string_value(json_object_get(run, "status")), "complete");
    assert_true(number_at(json_object_get(run, "system"), "cores") == 8);
    assert_true(number_at(json_object_get(run, "system"), "memory") == 4);
    assert_true(number_at(json_object_get(run, "hyper"), "batch_size") == 512);
    assert_true(number_at(run, "startup_s") == 45.5);
    assert_int_equal(json_array_size(epochs), 2);
    assert_true(number_at(epoch, "duration_s") == 14.5);
    assert_true(json_is_null(json_object_get(epoch, "loss")) && json_is_null(json_object_get(epoch, "accuracy")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(runs, 1), "status")), "failed");
    assert_true(json_is_null(json_object_get(json_array_get(runs, 1), "startup_s")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(runs, 2), "status")), "partial");
    assert_int_equal(json_array_size(json_object_get(json_array_get(runs, 2), "epochs")), 0);
}

static void test_broken_rows_are_named_and_used_only_when_asked(void **state)
{
    const struct folder *w = *state;
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&text, "%sbroken\nlenet,mnist,x,4,512,d.log,0,1\n", timeline) > 0);
    harness_write(w->dir, "t.csv", text);
    AUTO_OUTPUT struct harness_output o = TRACE(w, "import", "--format", "timeline", "@t.csv", "-o", "@t.h5");
    expect(&o, 2, "", "line 10: the row has not 8 fields");
    expect(&o, 2, "", "line 11: cores must be a whole number");
    expect(&o, 2, "", "use the rest with --lenient");
    AUTO_FREE char *path = harness_path(w->dir, "t.h5");
    assert_int_not_equal(access(path, F_OK), 0);
    AUTO_OUTPUT struct harness_output again =
        TRACE(w, "import", "--lenient", "--format=timeline", "@t.csv", "--out", "@t.h5");
    expect(&again, 0, "3 runs", "left out: '");
    AUTO_JSON json_t *j = info(w, "@t.h5");
    assert_int_equal(json_array_size(json_object_get(j, "runs")), 3);
}

static void test_a_failed_import_leaves_the_old_trace(void **state)
{
    const struct folder *w = *state;
    harness_write(w->dir, "t.csv", timeline);
    harness_write(w->dir, "bad.csv", "broken\n");
    AUTO_OUTPUT struct harness_output o = TRACE(w, "import", "--format", "timeline", "@t.csv", "-o", "@t.h5");
    expect(&o, 0, "3 runs", "");
    AUTO_OUTPUT struct harness_output bad = TRACE(w, "import", "--format", "timeline", "@bad.csv", "-o", "@t.h5");
    expect(&bad, 2, "", "line 1");
    AUTO_JSON json_t *j = info(w, "@t.h5");
    assert_int_equal(json_array_size(json_object_get(j, "runs")), 3);
}

/* --- the other formats --- */

static void test_counters_are_counted(void **state)
{
    const struct folder *w = *state;
    harness_write(w->dir, "p.txt",
                  "# started on Mon Nov 18 12:00:00 2026\n\n#           time             counts unit events\n"
                  "     1.000106442           1,003.01 msec cpu-clock          #    1.003 CPUs utilized\n"
                  "     1.000106442      <not counted>      LLC-loads                         (0.00%)\n"
                  "     1.000106442    <not supported>      node-loads\n"
                  "     1.000106442            123,456      branches           #    1 M/sec   (57.14%)\n"
                  "     2.000106442           1,003.01 msec cpu-clock          #    1.003 CPUs utilized\n"
                  "     2.000106442      <not counted>      LLC-loads                         (0.00%)\n"
                  "     2.000106442    <not supp");
    AUTO_OUTPUT struct harness_output o = TRACE(w, "import", "--format", "perf-stat", "@p.txt", "-o", "@p.h5");
    expect(&o, 0, "2 intervals", "the text ends within a row");
    AUTO_JSON json_t *j = info(w, "@p.h5");
    json_t *samples = json_object_get(j, "samples");
    assert_true(number_at(samples, "intervals") == 2 && number_at(samples, "events") == 4);
    assert_true(number_at(samples, "not_counted") == 2 && number_at(samples, "not_supported") == 1);
    AUTO_OUTPUT struct harness_output json = TRACE(w, "export", "@p.h5", "--format", "json");
    expect(&json, 0, "\"multiplexed\"", "");
    AUTO_JSON json_t *all = parsed(json.out);
    json_t *run = json_array_get(json_object_get(all, "runs"), 0), *exported = json_object_get(run, "samples");
    assert_int_equal(json_array_size(json_object_get(exported, "t_ns")), 2);
    assert_int_equal(json_array_size(json_array_get(json_object_get(exported, "state"), 0)),
                     json_array_size(json_object_get(all, "features")));
}

static void test_logs_and_tuning_runs(void **state)
{
    const struct folder *w = *state;
    AUTO_OUTPUT struct harness_output o =
        TRACE(w, "import", "--format", "bigdl-log", "tests/data/logs/lenet-jvm-local.log", "-o", "@l.h5");
    expect(&o, 0, "1 run (1 complete", "");
    AUTO_JSON json_t *j = info(w, "@l.h5");
    json_t *run = json_array_get(json_object_get(j, "runs"), 0);
    assert_int_equal(json_array_size(json_object_get(run, "epochs")), 2);
    assert_true(number_at(json_array_get(json_object_get(run, "epochs"), 1), "accuracy") == 0.8873);
    harness_write(w->dir, "off.csv", "0.01,10,64,0.05,0.5,120.5,2000000\n");
    harness_write(w->dir, "on.csv", "50,lenet,4,0.01,64,10,1.5,2.5,4,0.05,120.5,7\n");
    AUTO_OUTPUT struct harness_output off = TRACE(w, "import", "--format", "tune-offline", "@off.csv", "-o", "@off.h5");
    expect(&off, 0, "1 run", "");
    AUTO_OUTPUT struct harness_output on = TRACE(w, "import", "--format", "tune-online", "@on.csv", "-o", "@on.h5");
    expect(&on, 0, "1 run", "");
    AUTO_OUTPUT struct harness_output table = TRACE(w, "info", "@on.h5");
    expect(&table, 0, "lenet", "");
}

static void test_export_goes_where_it_is_told(void **state)
{
    const struct folder *w = *state;
    harness_write(w->dir, "t.csv", timeline);
    AUTO_OUTPUT struct harness_output o = TRACE(w, "import", "--format", "timeline", "@t.csv", "-o", "@t.h5");
    expect(&o, 0, "3 runs", "");
    AUTO_OUTPUT struct harness_output csv = TRACE(w, "export", "@t.h5");
    expect(&csv, 0, "run,model,dataset,system,hyper,status,startup_s,epoch,start_s,duration_s,loss", "");
    expect(&csv, 0,
           "0,lenet,mnist,\"{\"\"cores\"\":8,\"\"memory\"\":4}\",\"{\"\"batch_size\"\":512}\",complete,45.5,1,"
           "45.5,14.5,",
           "");
    assert_int_equal(harness_count(csv.out, "\n"), 5); /* two epochs, and a row for each run without */
    AUTO_OUTPUT struct harness_output jobs = TRACE(w, "export", "@t.h5", "--format", "jobs", "-o", "@j.h5");
    expect(&jobs, 2, "", "has no complete run with samples");
    AUTO_OUTPUT struct harness_output file = TRACE(w, "export", "@t.h5", "--format", "json", "-o", "@t.json");
    expect(&file, 0, "", "");
    AUTO_FREE char *text = harness_read(w->dir, "t.json");
    AUTO_JSON json_t *j = parsed(text);
    assert_int_equal(json_array_size(json_object_get(j, "runs")), 3);
}

/* --- misuse --- */

static void test_misuse_is_explained(void **state)
{
    const struct folder *w = *state;
    static const struct {
        const char *words[8];
        int code;
        const char *err;
    } cases[] = {
        { { NULL }, 2, "say 'trace import'" },
        { { "inform", "@t.csv", NULL }, 2, "no verb 'inform'" },
        { { "info", NULL }, 2, "no file given" },
        { { "info", "@t.csv", "@t.csv", NULL }, 2, "unexpected word" },
        { { "info", "@nothing.h5", NULL }, 3, "No such file" },
        { { "info", "@t.csv", NULL }, 2, "no HDF5 file" },
        { { "export", "@t.h5", "--format", "xml", NULL }, 2, "export knows csv, json, curves and jobs" },
        { { "export", "@t.h5", "--format", "jbos", NULL }, 2, "did you mean 'jobs'?" },
        { { "export", "@t.h5", "--format", "jobs", NULL }, 2, "needs -o OUT.h5" },
        { { "import", "@t.csv", "-o", "@x.h5", NULL }, 2, "import needs --format" },
        { { "import", "@t.csv", "--format", "timelime", "-o", "@x.h5", NULL }, 2, "did you mean 'timeline'" },
        { { "import", "@t.csv", "--format", "timeline", NULL }, 2, "import needs -o" },
        { { "import", "@t.csv", "--format", "timeline", "-o", "@t.csv", NULL }, 2, "by its own trace" },
        { { "import", "@t.csv", "--format", "timeline", "-o", "@no/x.h5", NULL }, 3, "cannot write" },
        { { "import", "@empty", "--format", "timeline", "-o", "@x.h5", NULL }, 2, "holds no row" },
    };
    harness_write(w->dir, "t.csv", timeline);
    harness_write(w->dir, "empty", "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OUTPUT struct harness_output o = trace(w, cases[i].words);
        expect(&o, cases[i].code, "", cases[i].err);
        if (harness_count(o.err, "\n") - harness_count(o.err, "note: ") != 1)
            fail_msg("more than one line: %s", o.err);
    }
}

/* A truncated trace at many lengths: one line that names it, exit 2, and no crash. */
static void test_truncated_traces(void **state)
{
    const struct folder *w = *state;
    harness_write(w->dir, "t.csv", timeline);
    AUTO_OUTPUT struct harness_output o = TRACE(w, "import", "--format", "timeline", "@t.csv", "-o", "@t.h5");
    expect(&o, 0, "3 runs", "");
    AUTO_FREE char *path = harness_path(w->dir, "t.h5");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    for (off_t size = st.st_size - 1; size > 0; size -= st.st_size / 17) {
        assert_int_equal(truncate(path, size), 0);
        AUTO_OUTPUT struct harness_output bad = TRACE(w, "info", "@t.h5", "--json");
        expect(&bad, 2, "", "t.h5'");
        assert_int_equal(harness_count(bad.err, "\n"), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_timeline_is_imported, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_broken_rows_are_named_and_used_only_when_asked, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_a_failed_import_leaves_the_old_trace, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_counters_are_counted, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_logs_and_tuning_runs, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_export_goes_where_it_is_told, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_misuse_is_explained, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_truncated_traces, make_world, remove_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
