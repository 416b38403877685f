#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "search/search.h"
#include "tests/fault.h"

enum { TRIALS = 30, EPOCHS = 9 };

static struct space points(void)
{
    static const char text[] = "{\"hyperParameters\": {\"x\": {\"range\": [0, 30]}}}";
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space sp = { 0 };
    assert_int_equal(json_doc_parse(&doc, "t.conf", text, strlen(text), NULL), 0);
    assert_int_equal(space_parse(&sp, &doc, NULL), 0);
    return sp;
}

static struct search_answer tell(struct search *s, uint64_t id, int epoch, double value)
{
    struct search_answer a = { .verdict = SEARCH_GO_ON };
    struct told t = { .id = id, .kind = epoch == EPOCHS ? TOLD_FINISHED : TOLD_EPOCH, .epoch = epoch, .value = value };
    assert_int_equal(search_tell(s, &t, &a), 0);
    return a;
}

/* Each is asked, or trained to the next rung and told: what comes of it. */
static const struct {
    const char *name;
    int min_epochs, eta;
    bool maximise, can_pause;
    struct {
        int ask; /* the id that is proposed; -1: none */
        int trial, epoch;
        double value;
        enum search_verdict verdict;
    } steps[12];
} cases[] = {
    { "the best of three goes on, the others wait",
      1,
      3,
      false,
      true,
      { { .ask = 0 },
        { -2, 0, 1, 3, SEARCH_PAUSE },
        { .ask = 1 },
        { -2, 1, 1, 2, SEARCH_PAUSE },
        { .ask = 2 },
        { -2, 2, 1, 4, SEARCH_PAUSE },
        { .ask = 1 },
        { -2, 1, 2, 1.5, SEARCH_GO_ON },
        { -2, 1, 3, 1, SEARCH_PAUSE },
        { .ask = 3 } } },
    { "who is the best when it comes trains on",
      1,
      3,
      true,
      true,
      { { .ask = 0 },
        { -2, 0, 1, 3, SEARCH_PAUSE },
        { .ask = 1 },
        { -2, 1, 1, 2, SEARCH_PAUSE },
        { .ask = 2 },
        { -2, 2, 1, 4, SEARCH_GO_ON },
        { -2, 2, 2, 1, SEARCH_GO_ON } } },
    { "eta is half or a third",
      1,
      2,
      false,
      true,
      { { .ask = 0 }, { -2, 0, 1, 3, SEARCH_PAUSE }, { .ask = 1 }, { -2, 1, 1, 2, SEARCH_GO_ON } } },
    { "nothing is judged before min_epochs",
      2,
      3,
      false,
      true,
      { { .ask = 0 }, { -2, 0, 1, 3, SEARCH_GO_ON }, { -2, 0, 2, 3, SEARCH_PAUSE } } },
    { "without pauses the first goes on and the worse is stopped",
      1,
      3,
      false,
      false,
      { { .ask = 0 },
        { -2, 0, 1, 3, SEARCH_GO_ON },
        { .ask = 1 },
        { -2, 1, 1, 4, SEARCH_STOP },
        { .ask = 2 },
        { -2, 2, 1, 2, SEARCH_GO_ON } } },
    { "one without a value goes on, and is judged by its first",
      1,
      2,
      false,
      true,
      { { .ask = 0 },
        { -2, 0, 1, NAN, SEARCH_GO_ON },
        { -2, 0, 2, NAN, SEARCH_GO_ON },
        { -2, 0, 3, 5, SEARCH_PAUSE },
        { .ask = 1 },
        { -2, 1, 1, 4, SEARCH_GO_ON },
        { -2, 1, 2, NAN, SEARCH_GO_ON } } },
};

static void test_halving(void **state)
{
    (void)state;
    struct space sp = points();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct search_cfg cfg = { .epochs = EPOCHS,
                                  .min_epochs = cases[i].min_epochs,
                                  .maximise = cases[i].maximise,
                                  .eta = cases[i].eta,
                                  .can_pause = cases[i].can_pause };
        struct search s = { 0 };
        assert_int_equal(search_new(&s, "grid", "halving", &sp, &cfg, NULL), 0);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].steps); k++) {
            struct proposal p;
            if (cases[i].steps[k].ask >= 0 && cases[i].steps[k].epoch == 0) {
                if (k > 0 && cases[i].steps[k].ask == 0)
                    break;
                if (search_ask(&s, true, &p) != 1 || p.id != (uint64_t)cases[i].steps[k].ask)
                    fail_msg("%s: step %zu: trial %d was proposed", cases[i].name, k, (int)p.id);
                continue;
            }
            struct search_answer a =
                tell(&s, (uint64_t)cases[i].steps[k].trial, cases[i].steps[k].epoch, cases[i].steps[k].value);
            if (a.verdict != cases[i].steps[k].verdict)
                fail_msg("%s: step %zu: got %d, '%s'", cases[i].name, k, (int)a.verdict, a.why);
        }
        search_done(&s);
    }
    space_done(&sp);
}

/* Trials one after the other, worth their ids, until the search ends; the epochs that each came to. */
static void live(const char *stop, int n, int epochs[TRIALS])
{
    struct space sp = points();
    struct search_cfg cfg = { .epochs = EPOCHS, .min_epochs = 1, .can_pause = true };
    struct search s = { 0 };
    struct proposal p;
    int made = 0;
    assert_int_equal(search_new(&s, "grid", stop, &sp, &cfg, NULL), 0);
    while (search_ask(&s, made < n, &p) == 1) {
        if (!p.again)
            epochs[made++] = 0;
        struct search_answer a = { .verdict = SEARCH_GO_ON };
        while (epochs[p.id] < EPOCHS && a.verdict == SEARCH_GO_ON)
            a = tell(&s, p.id, ++epochs[p.id], (double)p.id);
    }
    search_done(&s);
    space_done(&sp);
    assert_int_equal(made, n);
}

static int count_of(const int epochs[TRIALS], int n, int want)
{
    int c = 0;
    for (int i = 0; i < n; i++)
        c += epochs[i] == want;
    return c;
}

static void test_a_third_comes_to_each_rung(void **state)
{
    (void)state;
    int epochs[TRIALS];
    live("halving", 27, epochs);
    assert_int_equal(epochs[0], EPOCHS);
    assert_int_equal(count_of(epochs, 27, 1), 18);
    assert_int_equal(count_of(epochs, 27, 3), 6);
    assert_int_equal(count_of(epochs, 27, 9), 3);
    live("halving", 2, epochs); /* too few for a third of them: the best one is trained to the end all the same */
    assert_int_equal(epochs[0], EPOCHS);
    assert_int_equal(epochs[1], 1);
}

static void test_hyperband_judges_some_later(void **state)
{
    (void)state;
    int epochs[TRIALS];
    live("hyperband", 26, epochs); /* brackets of 17, 6 and 3, or about that */
    assert_int_equal(epochs[0], EPOCHS);
    assert_true(count_of(epochs, 26, 1) >= 9 && count_of(epochs, 26, 1) <= 14);
    assert_true(count_of(epochs, 26, 9) >= 4);
}

static void test_it_says_why(void **state)
{
    (void)state;
    struct space sp = points();
    struct search s = { 0 };
    struct search_cfg cfg = { .epochs = EPOCHS, .min_epochs = 1, .maximise = true, .can_pause = true };
    struct proposal p;
    assert_int_equal(search_new(&s, "grid", "halving", &sp, &cfg, NULL), 0);
    for (uint64_t id = 0; id < 2; id++) {
        assert_int_equal(search_ask(&s, true, &p), 1);
        (void)tell(&s, id, 1, 0.9);
    }
    assert_int_equal(search_ask(&s, true, &p), 1);
    assert_string_equal(tell(&s, 2, 1, 0.871).why, "after 1 epoch: 0.871, rank 3 of 3 there; one in 3 goes on");
    search_done(&s);
    space_done(&sp);
}

static void test_it_survives_memory_running_out(void **state)
{
    (void)state;
    struct space sp = points();
    struct search s = { 0 };
    struct search_cfg cfg = { .epochs = EPOCHS, .min_epochs = 1, .can_pause = true };
    struct proposal p;
    assert_int_equal(search_new(&s, "grid", "halving", &sp, &cfg, NULL), 0);
    for (uint64_t id = 0; id < TRIALS; id++) {
        fault_arm(FAULT_ALLOC, 1);
        int rc = search_ask(&s, true, &p);
        fault_disarm();
        assert_true(rc == 1 || rc == -12);
        if (rc < 0)
            assert_int_equal(search_ask(&s, true, &p), 1);
        assert_int_equal(p.id, id);
    }
    search_done(&s);
    space_done(&sp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halving),
        cmocka_unit_test(test_a_third_comes_to_each_rung),
        cmocka_unit_test(test_hyperband_judges_some_later),
        cmocka_unit_test(test_it_says_why),
        cmocka_unit_test(test_it_survives_memory_running_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
