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

struct said {
    uint64_t id;
    int epoch;
    double value;
};

/* The last one is answered. */
static const struct {
    const char *name;
    bool maximise;
    int min_epochs;
    struct said said[9];
    bool stops;
} cases[] = {
    { "the worst of four is stopped", true, 1, { { 0, 1, 5 }, { 1, 1, 6 }, { 2, 1, 7 }, { 3, 1, 4 } }, true },
    { "what equals the median goes on", true, 1, { { 0, 1, 5 }, { 1, 1, 6 }, { 2, 1, 7 }, { 3, 1, 6 } }, false },
    { "two others are too few", true, 1, { { 0, 1, 5 }, { 1, 1, 6 }, { 3, 1, 4 } }, false },
    { "of a loss the greatest is the worst", false, 1, { { 0, 1, 5 }, { 1, 1, 6 }, { 2, 1, 7 }, { 3, 1, 8 } }, true },
    { "and the smallest goes on", false, 1, { { 0, 1, 5 }, { 1, 1, 6 }, { 2, 1, 7 }, { 3, 1, 4 } }, false },
    { "nothing is stopped before min_epochs", true, 2, { { 0, 1, 5 }, { 1, 1, 6 }, { 2, 1, 7 }, { 3, 1, 4 } }, false },
    { "others at other epochs say nothing", true, 1, { { 0, 1, 5 }, { 1, 2, 6 }, { 2, 2, 7 }, { 3, 2, 4 } }, false },
    { "its best epoch counts, not its last",
      true,
      1,
      { { 0, 2, 5 }, { 1, 2, 6 }, { 2, 2, 7 }, { 3, 1, 8 }, { 3, 2, 1 } },
      false },
    { "an epoch that is told again counts once",
      true,
      1,
      { { 0, 1, 5 }, { 1, 1, 6 }, { 0, 1, 5 }, { 1, 1, 6 }, { 3, 1, 4 } },
      false },
    { "the last epoch is not stopped", true, 1, { { 0, 4, 5 }, { 1, 4, 6 }, { 2, 4, 7 }, { 3, 4, 4 } }, false },
    { "one without a value goes on", true, 1, { { 0, 1, 5 }, { 1, 1, 6 }, { 2, 1, 7 }, { 3, 1, NAN } }, false },
};

static struct search_answer tell(struct search *s, struct said d)
{
    struct search_answer a = { .verdict = SEARCH_PAUSE };
    struct told t = { .id = d.id, .kind = TOLD_EPOCH, .epoch = d.epoch, .value = d.value };
    assert_int_equal(search_tell(s, &t, &a), 0);
    return a;
}

static struct space one_dim(void)
{
    static const char text[] = "{\"hyperParameters\": {\"x\": [1, 2, 3, 4, 5, 6]}}";
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space sp = { 0 };
    assert_int_equal(json_doc_parse(&doc, "t.conf", text, strlen(text), NULL), 0);
    assert_int_equal(space_parse(&sp, &doc, NULL), 0);
    return sp;
}

static void test_the_median_stops(void **state)
{
    (void)state;
    struct space sp = one_dim();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct search_cfg cfg = { .epochs = 4, .min_epochs = cases[i].min_epochs, .maximise = cases[i].maximise };
        struct search s = { 0 };
        struct search_answer a = { .verdict = SEARCH_GO_ON };
        assert_int_equal(search_new(&s, "grid", "median", &sp, &cfg, NULL), 0);
        for (size_t k = 0; cases[i].said[k].epoch; k++)
            a = tell(&s, cases[i].said[k]);
        if ((a.verdict == SEARCH_STOP) != cases[i].stops)
            fail_msg("%s: got %d, '%s'", cases[i].name, (int)a.verdict, a.why);
        search_done(&s);
    }
    space_done(&sp);
}

static void test_it_says_why(void **state)
{
    (void)state;
    struct space sp = one_dim();
    struct search s = { 0 };
    struct search_cfg cfg = { .epochs = 4, .min_epochs = 1, .maximise = true };
    assert_int_equal(search_new(&s, "grid", "median", &sp, &cfg, NULL), 0);
    for (uint64_t id = 0; id < 4; id++)
        (void)tell(&s, (struct said){ id, 2, 0.9 + 0.02 * (double)id });
    assert_string_equal(tell(&s, (struct said){ 4, 2, 0.871 }).why,
                        "after 2 epochs: 0.871, the median of 4 others was 0.93 there");
    search_done(&s);
    space_done(&sp);
}

static void test_it_survives_memory_running_out(void **state)
{
    (void)state;
    struct space sp = one_dim();
    struct search s = { 0 };
    struct search_cfg cfg = { .epochs = 100, .min_epochs = 1, .maximise = true };
    struct search_answer a;
    assert_int_equal(search_new(&s, "grid", "median", &sp, &cfg, NULL), 0);
    for (int epoch = 1; epoch < 100; epoch++) {
        struct told t = { .id = (uint64_t)epoch % 4, .kind = TOLD_EPOCH, .epoch = epoch / 4 + 1, .value = epoch };
        fault_arm(FAULT_ALLOC, 1 + (unsigned)epoch % 2);
        int rc = search_tell(&s, &t, &a);
        fault_disarm();
        assert_true(rc == 0 || rc == -12);
        assert_int_equal(search_tell(&s, &t, &a), 0); /* told again */
    }
    search_done(&s);
    space_done(&sp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_median_stops),
        cmocka_unit_test(test_it_says_why),
        cmocka_unit_test(test_it_survives_memory_running_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
