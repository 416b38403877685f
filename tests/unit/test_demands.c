/* Constraints on what trials come to. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/demands.h"

struct world {
    struct json_doc doc;
    struct space space;
    struct demands demands;
};

static int load(struct world *w, const char *constraints, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(
        &b,
        "{\"hyperParameters\": {\"batch_size\": [32, 64], \"opt\": [\"sgd\", \"adam\"],"
        " \"momentum\": {\"values\": [0.5], \"when\": {\"opt\": \"sgd\"}}}, \"systemParameters\": {\"cores\": [2, 1]},"
        " \"study\": {\"constraints\": %s}}",
        constraints);
    *w = (struct world){ .demands = { .n = 0 } };
    int rc = json_doc_parse(&w->doc, "t.conf", buf_text(&b), b.len, e);
    if (rc == 0)
        rc = space_parse(&w->space, &w->doc, e);
    return rc < 0 ? rc : demands_read(&w->demands, &w->space, &w->doc, e);
}

static void unload(struct world *w)
{
    demands_done(&w->demands);
    space_done(&w->space);
    json_doc_done(&w->doc);
}

static const struct {
    const char *name, *constraint;
    double seconds, joules, accuracy;
    bool early, late; /* is it broken while it trains, and at the end? */
} cases[] = {
    { "a limit that is kept", "[\"seconds <= 10\"]", 10, NAN, NAN, false, false },
    { "a limit is broken at once", "[\"seconds < 10\"]", 10, NAN, NAN, true, true },
    { "a limit written the other way", "[\"10 >= seconds\"]", 11, NAN, NAN, true, true },
    { "a sum of what only grows", "[\"seconds / 2 + energy_j * 3 <= 10\"]", 2, 4, NAN, true, true },
    { "two at once", "[\"seconds <= 10 and not (energy_j > 5)\"]", 2, 6, NAN, true, true },
    { "a least is told at the end", "[\"seconds >= 10\"]", 2, NAN, NAN, false, true },
    { "a metric is told at the end", "[\"accuracy > 0.9\"]", 2, NAN, 0.8, false, true },
    { "a metric in another case", "[\"Accuracy > 0.7\"]", 2, NAN, 0.8, false, false },
    { "a metric for its price may still do", "[\"accuracy / seconds > 1\"]", 2, NAN, 0.8, false, true },
    { "joules that nothing is known of", "[\"energy_j <= 5\"]", 2, NAN, NAN, false, true },
    { "a hyperparameter beside them", "[\"seconds * 2 <= batch_size\"]", 20, NAN, NAN, true, true },
    { "one that is kept by another batch", "[\"seconds <= batch_size\"]", 30, NAN, NAN, false, false },
    { "one that is not there binds nothing", "[\"seconds <= momentum\"]", 30, NAN, NAN, false, false },
    { "a text", "[\"opt == 'sgd' or seconds < 5\"]", 30, NAN, NAN, true, true },
    { "one between hyperparameters is not ours", "[\"batch_size > 1000 or opt == 'adam'\"]", 1, NAN, NAN, false,
      false },
};

static void test_what_is_broken(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        struct err e = { 0 };
        if (load(&w, cases[i].constraint, &e) < 0)
            fail_msg("%s: %s", cases[i].name, e.text);
        struct point p = { { 0, 1 } }; /* 32, adam */
        assert_true(space_admits(&w.space, &p) || w.space.points);
        const struct demands_figure figures[] = { { "seconds", cases[i].seconds },
                                                  { "energy_j", cases[i].joules },
                                                  { "accuracy", cases[i].accuracy } };
        char why[DEMANDS_WHY_MAX] = "";
        bool early = demands_broken(&w.demands, &w.space, &p, figures, ARRAY_LEN(figures), false, why);
        bool late = demands_broken(&w.demands, &w.space, &p, figures, ARRAY_LEN(figures), true, why);
        if (early != cases[i].early || late != cases[i].late)
            fail_msg("%s: got %d and %d", cases[i].name, early, late);
        assert_int_equal(late, why[0] != '\0');
        unload(&w);
    }
}

static void test_it_says_which_and_why(void **state)
{
    (void)state;
    struct world w;
    char why[DEMANDS_WHY_MAX];
    const struct demands_figure figures[] = { { "seconds", 12.5 }, { "energy_j", NAN } };
    struct point p = { { 0, 1 } };
    assert_int_equal(load(&w, "[\"seconds <= 600\", \"seconds + energy_j <= 5000\"]", NULL), 0);
    assert_true(demands_name(&w.demands, "energy_j"));
    assert_false(demands_name(&w.demands, "accuracy"));
    assert_true(demands_broken(&w.demands, &w.space, &p, figures, 2, true, why));
    assert_string_equal(why, "seconds + energy_j <= 5000 does not hold: seconds 12.5, energy_j is not known");
    unload(&w);
}

static const struct {
    const char *name, *constraint, *want;
} faults[] = {
    { "a slip of a hyperparameter", "[\"batch_sise < 3\"]", "did you mean 'batch_size'" },
    { "a system parameter beside a result", "[\"seconds * cores < 3\"]",
      "has the system parameter 'cores' beside results" },
    { "one that nothing can keep", "[\"seconds <= 0\"]", "is nothing that a trial can keep" },
    { "another one", "[\"energy_j < -1 and seconds < 5\"]", "is nothing that a trial can keep" },
    { "one that is none", "[\"seconds <\"]", "a value is missing" },
};

static void test_faults_are_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct world w;
        struct err e = { 0 };
        int rc = load(&w, faults[i].constraint, &e);
        if (rc != -EINVAL || !strstr(e.text, faults[i].want) || !strstr(e.text, "study.constraints.0"))
            fail_msg("%s: got %d %s", faults[i].name, rc, e.text);
        unload(&w);
    }
}

/* --- study.metrics --- */

static int read_goals(struct goals *out, const char *metrics, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    buf_printf(&b, "{\"study\": {\"metrics\": %s}}", metrics);
    int rc = json_doc_parse(&doc, "t.conf", buf_text(&b), b.len, e);
    return rc < 0 ? rc : goals_read(out, &doc, e);
}

static void test_metrics_are_read(void **state)
{
    (void)state;
    struct goals g;
    assert_int_equal(read_goals(&g, "\"val_loss\"", NULL), 0);
    assert_int_equal(g.n, 1);
    assert_false(g.v[0].maximise);
    assert_int_equal(read_goals(&g,
                                "[{\"metric\": \"seconds\"}, {\"metric\": \"accuracy\"}, \"energy_j\","
                                " {\"metric\": \"margin_error\", \"direction\": \"max\"}]",
                                NULL),
                     0);
    assert_int_equal(g.n, 4);
    assert_int_equal(g.v[0].kind, GOAL_SECONDS);
    assert_int_equal(g.v[2].kind, GOAL_JOULES);
    assert_true(g.v[1].maximise && !g.v[0].maximise && !g.v[2].maximise && g.v[3].maximise);
    assert_string_equal(goals_first_told(&g)->name, "accuracy");
}

static const struct {
    const char *metrics, *want;
} bad_goals[] = {
    { "[]", "is empty" },
    { "3", "must be a metric's name" },
    { "[{\"direction\": \"max\"}]", "must be a metric's name" },
    { "[\"a\", \"A\"]", "is there twice" },
    { "[\"a\", \"b\", \"c\", \"d\", \"e\"]", "is one too many: there may be 4" },
    { "[\"seconds\", \"energy_j\"]", "has nothing that the application tells" },
    { "[{\"metric\": \"a\", \"direction\": \"up\"}]", "has a bad 'direction'" },
    { "[{\"metric\": \"a\", \"weight\": 1}]", "has an unknown 'weight'" },
};

static void test_bad_metrics_are_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad_goals); i++) {
        struct goals g;
        struct err e = { 0 };
        int rc = read_goals(&g, bad_goals[i].metrics, &e);
        if (rc != -EINVAL || !strstr(e.text, bad_goals[i].want))
            fail_msg("%s: got %d %s", bad_goals[i].metrics, rc, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_broken),
        cmocka_unit_test(test_it_says_which_and_why),
        cmocka_unit_test(test_faults_are_explained),
        cmocka_unit_test(test_metrics_are_read),
        cmocka_unit_test(test_bad_metrics_are_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
