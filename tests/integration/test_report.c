/* Reporting on a study, and comparing studies and trials, with the built program over a store made here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "store/samples.h"
#include "store/store.h"
#include "tests/cells.h"
#include "tests/integration/harness.h"

enum { T0_S = 1700000000, ZONE_S = 7200, WORDS = 10 };

#define TEXT(literal) ((char *)(uintptr_t)(literal))
#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

struct shown {
    char *dir, *store;
};

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

/* Runs pipetune with these words; "@" is the store's path. */
static struct harness_output look(const struct shown *w, const char *const *words)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[WORDS + 4] = { program };
    size_t n = 1;
    for (; *words; words++)
        argv[n++] = TEXT(strcmp(*words, "@") == 0 ? w->store : *words);
    return harness_run(argv, HARNESS_MS);
}

#define LOOK(w, ...) look(w, (const char *const[]){ __VA_ARGS__, NULL })

static json_t *parsed(const struct harness_output *o)
{
    json_error_t e;
    json_t *j = json_loads(o->out, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("no JSON: %s line %d; stdout: %s stderr: %s", e.text, e.line, o->out, o->err);
    return j;
}

static void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %s", part, text);
}

static void expect_no_text(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("there is '%s' in: %s", part, text);
}

/* The value at a path of keys and numbers, "trials/0/state". */
static json_t *at(json_t *j, const char *path)
{
    while (*path && j) {
        char key[64];
        size_t n = strcspn(path, "/");
        (void)snprintf(key, sizeof key, "%.*s", (int)n, path);
        j = json_is_array(j) ? json_array_get(j, strtoul(key, NULL, 10)) : json_object_get(j, key);
        path += n + (path[n] == '/');
    }
    return j;
}

/* As it would be written in JSON. */
static void expect_json(json_t *j, const char *path, const char *want)
{
    json_t *value = at(j, path);
    if (!value)
        fail_msg("no '%s'", path);
    AUTO_FREE char *got = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    if (strcmp(got, want) != 0)
        fail_msg("%s: got %s, want %s", path, got, want);
}

/* --- a store with something in it --- */

static int64_t add_study(struct store *s, const char *name, const char *config)
{
    struct err e = { 0 };
    struct store_study row = {
        .name = TEXT(name),
        .state = TEXT("finished"),
        .config = TEXT(config),
        .provenance = TEXT("{\"pipetune\":\"0.1.0\",\"spark\":\"3.5.8\",\"java\":17,\"host\":\"<b>here</b>\"}"),
        .maximise = true,
        .seed = 41,
        .created_ms = T0_S * INT64_C(1000),
        .ended_ms = T0_S * INT64_C(1000) + 60000,
    };
    int64_t id = 0;
    check(store_study_add(s, &row, &id, &e), &e);
    return id;
}

static int64_t add_trial(struct store *s, int64_t study, int number, const char *state, double accuracy)
{
    struct err e = { 0 };
    char hyper[96];
    (void)snprintf(hyper, sizeof hyper, "{\"batch_size\":%d,\"note\":\"a<b, \\\"c\\\"\"}", 64 * number);
    bool failed = strcmp(state, "failed") == 0;
    struct store_trial row = { .study = study,
                               .number = number,
                               .state = TEXT(state),
                               .epochs = 2,
                               .hyper = hyper,
                               .requested = TEXT("{\"cores\":16}"),
                               .effective = TEXT("{\"cores\":2}"),
                               .slots = 2,
                               .accuracy = accuracy,
                               .loss = NAN,
                               .metric = accuracy,
                               .seconds = isnan(accuracy) ? (double)NAN : 22.5,
                               .reason = failed ? TEXT("</td><script>alert(1)</script>") : NULL };
    check(store_trial_add(s, &row, &e), &e);
    return row.id;
}

/* Two seconds of start-up, then epochs of ten seconds each, by stamps of another zone. */
static void add_attempt(struct store *s, int64_t trial, int epochs)
{
    struct err e = { 0 };
    struct store_attempt row = { .trial = trial,
                                 .state = TEXT("ended"),
                                 .outcome = TEXT("finished"),
                                 .started_ms = T0_S * INT64_C(1000),
                                 .ended_ms = T0_S * INT64_C(1000) + 22500,
                                 .first_epoch = 1,
                                 .startup_s = 2,
                                 .cores = NAN };
    check(store_attempt_add(s, &row, &e), &e);
    for (int i = 1; i <= epochs; i++) {
        struct store_epoch epoch = { .trial = trial,
                                     .epoch = i,
                                     .attempt = 1,
                                     .accuracy = 0.9 + 0.01 * i,
                                     .loss = NAN,
                                     .metric = 0.9 + 0.01 * i,
                                     .seconds = 10,
                                     .records = 1000,
                                     .iterations = 10,
                                     .learning_rate = NAN,
                                     .end_ms = (T0_S + ZONE_S + 2 + 10 * i) * INT64_C(1000) };
        check(store_epoch_put(s, &epoch, &e), &e);
    }
}

/* One core takes twice the time of two, by their second epochs; trial 2 is launched with one at once. */
static const char tuner_log[] = "H 1 pipetune 3 0.1 0.01 0.01 2 1 2 1 4\n"
                                "s 1 0 1 0 \"lenet <batch>\" \"lenet\" 1 2 0 1 2\n"
                                "i 1 10 1 10 1500 3000\n"
                                "a 1 10 0 0\n"
                                "i 1 20 1 10 1000 3000\n"
                                "i 1 30 2 10 1000 3000\n"
                                "a 1 30 1 0\n"
                                "i 1 32 2 2 400 3000\n"
                                "d 1\n"
                                "s 2 0 0 0 \"lenet <batch>\" \"lenet\" 1 2 0 1 2\n"
                                "i 2 10 1 10 1000 3000\n"
                                "d 2\n";

static void add_decision(struct store *s, int64_t study, int trial, const char *kind, const char *setting,
                         const char *reason)
{
    struct err e = { 0 };
    struct store_decision d = { .trial = trial, .t_s = 1.5, .kind = kind, .setting = setting, .reason = reason };
    check(store_decision_add(s, study, &d, &e), &e);
}

static void add_sample(struct store *s, int64_t trial, double end_s, double seconds, const char *cells)
{
    struct err e = { 0 };
    struct store_sample row = {
        .t_ms = (T0_S + end_s) * 1000, .dt_ms = seconds * 1000, .scope = "process", .v = cells_of(cells)
    };
    check(store_sample_add(s, trial, &row, &e), &e);
}

static void fill_demo(struct store *s)
{
    struct err e = { 0 };
    int64_t demo = add_study(s, "demo", "{\"study\":{\"metric\":\"accuracy\"},\"tuning\":{\"policy\":\"pipetune\"}}");
    int64_t first = add_trial(s, demo, 1, "finished", 0.9914), second = add_trial(s, demo, 2, "finished", 0.92);
    add_attempt(s, first, 2);
    add_attempt(s, second, 1);
    (void)add_trial(s, demo, 3, "failed", NAN);
    check(store_tuner_log_add(s, demo, tuner_log, &e), &e);
    add_decision(s, demo, 0, "begin", NULL, "the study");
    add_decision(s, demo, 1, "apply", "{\"cores\":1}", "probe 1 of 1 core");
    add_decision(s, demo, 1, "settle", "{\"cores\":2}", "2 cores < 3 & faster");
    /* Two events, the second only in the start-up; the third is not there. The last interval is half in epoch 2. */
    add_sample(s, first, 1, 1, "100 7 u");
    add_sample(s, first, 13, 2, "400 n u");
    struct store_profile profile = {
        .epoch = 2, .setting = "{\"cores\":2}", .vector = "[]", .verdict = "{\"verdict\":\"known\",\"cluster\":3}"
    };
    check(store_profile_add(s, first, &profile, &e), &e);
}

static int make_world(void **state)
{
    struct shown *w = calloc(1, sizeof *w);
    struct store *s = NULL;
    struct err e = { 0 };
    assert_non_null(w);
    w->dir = harness_dir();
    w->store = harness_path(w->dir, "pipetune.db");
    check(store_open(&s, w->store, STORE_WRITE, &e), &e);
    fill_demo(s);
    int64_t other = add_study(s, "other", "{}");
    add_attempt(s, add_trial(s, other, 1, "finished", 0.95), 2);
    (void)add_study(s, "empty <&>", "{}");
    store_close(s);
    *state = w;
    return 0;
}

static int end_world(void **state)
{
    struct shown *w = *state;
    harness_remove(w->dir);
    free(w->store);
    free(w);
    return 0;
}

/* --- report --- */

static void test_json_has_its_keys_and_absent_is_null(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "report", "demo", "--json", "--store", "@");
    assert_int_equal(o.code, 0);
    json_t *j = parsed(&o);
    static const struct {
        const char *path, *want;
    } rows[] = {
        { "study", "\"demo\"" },
        { "state", "\"finished\"" },
        { "seed", "41" },
        { "provenance/spark", "\"3.5.8\"" },
        { "best", "{\"trial\":1,\"accuracy\":0.9914}" },
        { "trials/0/energy", "{\"j\":null,\"source\":\"absent\",\"coverage\":null}" },
        { "trials/0/loss", "null" },
        { "trials/0/epochs", "2" },
        { "trials/0/curve/1/accuracy", "0.92" },
        { "trials/2/accuracy", "null" },
        { "trials/2/seconds", "null" },
        { "trials/2/story/class", "null" },
        { "trials/2/story/saved", "null" },
        { "trials/0/story/class", "\"lenet <batch>\"" },
        { "trials/0/story/tried/0", "{\"cores\":2,\"memory_gb\":4,\"seconds\":12,\"records\":1900}" },
        { "trials/0/story/tried/1", "{\"cores\":1,\"memory_gb\":4,\"seconds\":20,\"records\":2000}" },
        { "trials/0/story/settled", "{\"setting\":{\"cores\":2},\"reason\":\"2 cores < 3 & faster\"}" },
        { "trials/0/story/verdicts/0/verdict/cluster", "3" },
        { "trials/0/story/steps/0/kind", "\"apply\"" },
        { "trials/1/story/saved/seconds", "-5" }, /* ten seconds under one core are five under two */
        { "trials/1/story/saved/core_seconds", "0" },
        { "trials/1/story/saved/against", "{\"cores\":2,\"memory_gb\":4}" },
        { "heat/trial/trial", "1" },
        { "heat/trial/columns", "[\"start-up\",\"1\",\"2\"]" },
        { "heat/trial/rows", "[{\"feature\":\"node-stores\",\"kind\":\"per_second\",\"values\":[100,200,200]},"
                             "{\"feature\":\"node-store-misses\",\"kind\":\"per_second\",\"values\":[7,null,null]}]" },
        { "heat/classes/columns", "[\"class 1\"]" },
        { "heat/classes/rows/0/values", "[200]" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect_json(j, rows[i].path, rows[i].want);
    json_decref(j);
}

/* Every element that is opened is closed, in order. */
static void expect_balanced(const char *page)
{
    char open[64][16];
    size_t depth = 0;
    for (const char *p = strchr(page, '<'); p; p = strchr(p + 1, '<')) {
        bool closes = p[1] == '/';
        const char *name = p + 1 + closes, *end = strchr(p, '>');
        size_t n = strcspn(name, " >/\n");
        assert_non_null(end);
        if (p[1] == '!' || end[-1] == '/' || strncmp(name, "meta ", 5) == 0)
            continue;
        if (!closes) {
            assert_true(depth < ARRAY_LEN(open) && n < sizeof open[0]);
            (void)snprintf(open[depth++], sizeof open[0], "%.*s", (int)n, name);
        } else if (depth == 0 || strncmp(open[--depth], name, n) != 0 || open[depth][n]) {
            fail_msg("</%.*s> closes what it did not open: %.80s", (int)n, name, p);
        }
    }
    assert_int_equal(depth, 0);
}

static void test_html_needs_nothing_else_and_escapes_all(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "report", "demo", "--store", "@");
    assert_int_equal(o.code, 0);
    expect_balanced(o.out);
    static const char *const there[] = {
        "<h1>Study demo</h1>",
        "&lt;b&gt;here&lt;/b&gt;",
        "3.5.8",
        "<b>demo/1</b>: accuracy 0.9914",
        "a&lt;b, &quot;c&quot;",
        "&lt;/td&gt;&lt;script&gt;",
        "cores 2 [16]",
        "2 cores &lt; 3 &amp; faster",
        "lenet &lt;batch&gt;",
        "<title>node-stores, start-up: 100 per second</title>",
        "class=\"absent\"><title>node-store-misses, 1: absent, not_counted</title>",
        "msr/tsc/ (absent)",
        "node-loads (unsupported)",
        "verdict known, cluster 3",
        "demo/1, the best",
        "Cost, estimated: 5.0 s",
        "Cost, estimated: 10.0 s",
        "energy <span class=\"none\">absent</span>",
    };
    for (size_t i = 0; i < ARRAY_LEN(there); i++)
        expect_text(o.out, there[i]);
    static const char *const not_there[] = {
        "<script", "http:", "https:", "src=", "href=", "@import", "nan", "<b>here"
    };
    for (size_t i = 0; i < ARRAY_LEN(not_there); i++)
        expect_no_text(o.out, not_there[i]);
    /* no joules, and the reason in a row below */
    expect_text(o.out, "<td class=\"n\"><span class=\"none\">absent</span></td></tr>\n<tr class=\"note\">");
    expect_text(o.out, "<div>&lt;/td&gt;&lt;script&gt;");
}

static const char *place(const char *text, const char *part)
{
    const char *at = strstr(text, part);
    if (!at)
        fail_msg("no '%s' in: %s", part, text);
    return at;
}

/* What programs tell by name: a chart for each, with the steps' left out, and the study's own first. */
static void test_html_draws_every_figure(void **state)
{
    struct shown *w = *state;
    free(harness_ask(w->store,
                     "INSERT INTO series (trial, name, step, epoch, attempt, at_ms, value)"
                     " SELECT t.id, n.name, n.step, n.epoch, 1, 0, n.value FROM trials t JOIN studies s ON s.id = "
                     "t.study, (SELECT 'f1 <micro>' AS name, 0 AS step, 1 AS epoch, 0.25 AS value"
                     " UNION SELECT 'f1 <micro>', 0, 2, 0.5 UNION SELECT 'f1 <micro>', 7, 2, 9"
                     " UNION SELECT 'grad', 1, 1, 3 UNION SELECT 'Top1Accuracy', 0, 1, 0.9"
                     " UNION SELECT 'lr', 0, 1, NULL) n WHERE s.name = 'demo' AND t.number IN (1, 2)"));
    AUTO_OUTPUT struct harness_output o = LOOK(w, "report", "demo", "--store", "@");
    assert_int_equal(o.code, 0);
    expect_balanced(o.out);
    expect_text(o.out, "<h2>f1 &lt;micro&gt; per epoch</h2>");
    expect_no_text(o.out, "grad per epoch");
    expect_no_text(o.out, "Top1Accuracy per epoch");
    expect_no_text(o.out, "lr per epoch"); /* nothing to draw */
    const char *chart = place(o.out, "<h2>f1 &lt;micro&gt; per epoch</h2>");
    AUTO_FREE char *svg = strndup(chart, (size_t)(place(chart, "</svg>") - chart));
    assert_int_equal(harness_count(svg, "<path class=\"line"), 2);
    expect_text(svg, "demo/1, the best");
    free(harness_ask(w->store,
                     "UPDATE studies SET config = json_set(config, '$.study.metric', 'f1 <micro>') WHERE name = "
                     "'demo'"));
    AUTO_OUTPUT struct harness_output first = LOOK(w, "report", "demo", "--store", "@");
    if (place(first.out, "<h2>f1 &lt;micro&gt; per") > place(first.out, "<h2>Accuracy per"))
        fail_msg("it is not first: %s", first.out);
}

static void test_html_tells_results_first_and_fits_a_phone(void **state)
{
    struct shown *w = *state;
    free(harness_ask(w->store, "UPDATE trials SET hyper = '{\"learning_rate\": 0.031622776601683791}', accuracy = "
                               "0.99139999999999995 WHERE number = 1"));
    free(harness_ask(w->store, "UPDATE profiles SET verdict = '{\"verdict\": \"known\", \"near\": [{\"cluster\": 3, "
                               "\"distance\": 0.12345678901234567}]}'"));
    AUTO_OUTPUT struct harness_output o = LOOK(w, "report", "demo", "--store", "@");
    assert_int_equal(o.code, 0);
    expect_balanced(o.out);
    expect_text(o.out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    static const char *const order[] = { "<h2>Best trial</h2>", "<h2>Trials</h2>", "<h2>Accuracy per epoch</h2>",
                                         "<h2>Decisions</h2>",  "<h2>Events",      "3.5.8" };
    for (size_t i = 1; i < ARRAY_LEN(order); i++)
        if (place(o.out, order[i]) < place(o.out, order[i - 1]))
            fail_msg("'%s' stands before '%s'", order[i], order[i - 1]);
    expect_text(o.out, "learning_rate 0.03162");
    expect_text(o.out, "near (cluster 3, distance 0.1235)");
    expect_no_text(o.out, "{&quot;");
    expect_no_text(o.out, "[{");
    for (const char *p = o.out; (p = strstr(p, "<table")); p++) /* moved within itself, or facts, which are broken */
        if (strncmp(p, "<table class=\"facts\"", 20) != 0 && strncmp(p - 18, "<div class=\"wide\">", 18) != 0)
            fail_msg("a table that may be wider than the page: %.80s", p);
}

static void test_a_study_without_anything_is_reported_too(void **state)
{
    AUTO_OUTPUT struct harness_output html = LOOK(*state, "report", "empty <&>", "--store", "@");
    assert_int_equal(html.code, 0);
    expect_balanced(html.out);
    expect_text(html.out, "Study empty &lt;&amp;&gt;");
    expect_text(html.out, "None: no trial is finished.");
    expect_text(html.out, "no epoch has an accuracy");
    expect_text(html.out, "nothing was sampled of it");
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "report", "empty <&>", "--json", "--store", "@");
    json_t *j = parsed(&json);
    expect_json(j, "best", "null");
    expect_json(j, "trials", "[]");
    expect_json(j, "heat", "{\"trial\":null,\"classes\":null}");
    json_decref(j);
    AUTO_OUTPUT struct harness_output csv = LOOK(*state, "report", "empty <&>", "--csv", "--store", "@");
    assert_int_equal(harness_count(csv.out, "\n"), 1);
}

static void test_csv_has_a_row_per_trial(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "report", "demo", "--csv", "--store", "@");
    assert_int_equal(o.code, 0);
    assert_string_equal(
        o.out, "trial,state,hyper.batch_size,hyper.note,system.cores,epochs,budget,accuracy,loss,metric,seconds,"
               "energy_j,energy_source,attempts,copy_of,reason\n"
               "1,finished,64,\"a<b, \"\"c\"\"\",2,2,2,0.9914,,0.9914,22.5,,absent,1,,\n"
               "2,finished,128,\"a<b, \"\"c\"\"\",2,1,2,0.92,,0.92,22.5,,absent,1,,\n"
               "3,failed,192,\"a<b, \"\"c\"\"\",2,0,2,,,,,,absent,0,,</td><script>alert(1)</script>\n");
}

static void test_a_report_goes_into_a_file(void **state)
{
    struct shown *w = *state;
    AUTO_FREE char *html = harness_path(w->dir, "r.html");
    AUTO_FREE char *csv = harness_path(w->dir, "r.csv");
    harness_write(w->dir, "r.csv", "old");
    AUTO_OUTPUT struct harness_output first = LOOK(w, "report", "demo", "--html", html, "--store", "@");
    AUTO_OUTPUT struct harness_output second = LOOK(w, "report", "demo", "--csv", "-o", csv, "--store", "@");
    assert_true(first.code == 0 && second.code == 0 && !*first.out && !*second.out);
    AUTO_FREE char *page = harness_read(w->dir, "r.html");
    AUTO_FREE char *table = harness_read(w->dir, "r.csv");
    expect_text(page, "</html>\n");
    assert_int_equal(strncmp(table, "trial,state,", 12), 0);
}

/* --- compare, diff --- */

static void test_compare_puts_studies_side_by_side(void **state)
{
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "compare", "demo", "other", "--json", "--store", "@");
    assert_int_equal(json.code, 0);
    json_t *j = parsed(&json);
    assert_int_equal(json_array_size(j), 2);
    expect_json(j, "0",
                "{\"study\":\"demo\",\"state\":\"finished\",\"policy\":\"pipetune\",\"trials\":3,\"done\":2,"
                "\"failed\":1,\"stopped\":0,\"paused\":0,\"best\":{\"trial\":1,\"accuracy\":0.9914},\"seconds\":45,"
                "\"energy_j\":null,\"energy_"
                "source\":\"absent\","
                "\"startup_s\":4,\"epochs\":3}");
    expect_json(j, "1/policy", "null");
    expect_json(j, "1/seconds", "22.5");
    json_decref(j);
    AUTO_OUTPUT struct harness_output people = LOOK(*state, "compare", "demo", "other", "--store", "@");
    expect_text(people.out, "22.5 s (-50.0 %)");
    expect_text(people.out, "demo  best value accuracy 0.9914  best demo/1");
    expect_text(people.out, "absent");
}

static void test_diff_tells_only_what_differs(void **state)
{
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "diff", "demo/1", "demo/2", "--json", "--store", "@");
    assert_int_equal(json.code, 0);
    json_t *j = parsed(&json);
    expect_json(j, "a", "{\"study\":\"demo\",\"trial\":1}");
    expect_json(j, "differences/0", "{\"what\":\"hyper.batch_size\",\"a\":64,\"b\":128,\"delta\":64,\"percent\":100}");
    expect_json(j, "differences/1/what", "\"accuracy\"");
    expect_json(j, "differences/1/delta", "-0.0714");
    expect_json(j, "differences/2/what", "\"metric\"");
    expect_json(j, "differences/3",
                "{\"what\":\"epoch 2 accuracy\",\"a\":0.92,\"b\":null,\"delta\":null,\"percent\":null}");
    expect_no_text(json.out, "\"seconds\""); /* the same in both, as is the absent loss */
    expect_no_text(json.out, "loss");
    expect_no_text(json.out, "effective.cores");
    json_decref(j);
    AUTO_OUTPUT struct harness_output same = LOOK(*state, "diff", "demo/1", "demo/1", "--store", "@");
    assert_string_equal(same.out, "nothing differs\n");
    AUTO_OUTPUT struct harness_output people = LOOK(*state, "diff", "demo/1", "other/1", "--store", "@");
    expect_text(people.out, "demo/1");
    expect_text(people.out, "-0.0414");
    expect_text(people.out, "-4.2 %");
}

/* --- wrong use --- */

static const struct {
    const char *name;
    const char *words[WORDS];
    int code;
    const char *err;
} mistakes[] = {
    { "no study to report on", { "report", "--store", "@" }, 2, "which study?" },
    { "a study mistyped", { "report", "demmo", "--store", "@" }, 2, "did you mean 'demo'?" },
    { "two forms", { "report", "demo", "--csv", "--json", "--store", "@" }, 2, "a report has one form" },
    { "two files", { "report", "demo", "--html", "a", "-o", "b", "--store", "@" }, 2, "names the file already" },
    { "a folder that is not there", { "report", "demo", "-o", "/nonexistent/x", "--store", "@" }, 3, "/nonexistent" },
    { "one study to compare", { "compare", "demo", "--store", "@" }, 2, "two or more" },
    { "an unknown one to compare", { "compare", "demo", "nope", "--store", "@" }, 2, "no study 'nope'" },
    { "one trial", { "diff", "demo/1", "--store", "@" }, 2, "which trials?" },
    { "a trial without its number", { "diff", "demo", "demo/1", "--store", "@" }, 2, "say STUDY/N" },
    { "a trial that is not there", { "diff", "demo/1", "demo/9", "--store", "@" }, 2, "there is no trial demo/9" },
    { "a store that is not there", { "diff", "demo/1", "demo/2", "--store", "/nonexistent/x" }, 3, "no store" },
};

static void test_mistakes_are_named_on_stderr(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        AUTO_OUTPUT struct harness_output o = look(*state, mistakes[i].words);
        if (o.code != mistakes[i].code || !strstr(o.err, mistakes[i].err) || *o.out)
            fail_msg("%s: got %d, stderr '%s', stdout '%s'; want %d and '%s'", mistakes[i].name, o.code, o.err, o.out,
                     mistakes[i].code, mistakes[i].err);
    }
}

static void test_help_knows_them(void **state)
{
    static const char *const commands[] = { "report", "compare", "diff" };
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        AUTO_OUTPUT struct harness_output o = LOOK(*state, commands[i], "--help");
        assert_int_equal(o.code, 0);
        expect_text(o.out, "--json");
        expect_text(o.out, "--store FILE");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_has_its_keys_and_absent_is_null),
        cmocka_unit_test(test_html_needs_nothing_else_and_escapes_all),
        cmocka_unit_test(test_a_study_without_anything_is_reported_too),
        cmocka_unit_test(test_csv_has_a_row_per_trial),
        cmocka_unit_test(test_a_report_goes_into_a_file),
        cmocka_unit_test(test_compare_puts_studies_side_by_side),
        cmocka_unit_test(test_diff_tells_only_what_differs),
        cmocka_unit_test(test_mistakes_are_named_on_stderr),
        cmocka_unit_test(test_help_knows_them),
        cmocka_unit_test(
            test_html_tells_results_first_and_fits_a_phone), /* last: it changes the store that all look at */
        cmocka_unit_test(test_html_draws_every_figure),      /* the same */
    };
    return cmocka_run_group_tests_name("report", tests, make_world, end_world);
}
