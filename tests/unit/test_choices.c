/* Which settings there are to choose from, in which order, and how they come back as settings. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/choices.h"
#include "tests/fault.h"

static struct space parsed(const char *knobs)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "{\"hyperParameters\": {\"x\": [1]}, \"systemParameters\": {%s}}", knobs);
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space s = { 0 };
    struct err e = { 0 };
    if (json_doc_parse(&doc, "t.conf", buf_text(&b), b.len, &e) < 0 || space_parse(&s, &doc, &e) < 0)
        fail_msg("%s: %s", knobs, e.text);
    return s;
}

static struct setting start_of(const struct space *s, const struct offer *offer, const char *entered)
{
    struct setting set = setting_default(s, offer);
    struct err e = { 0 };
    if (entered && setting_parse(&set, s, &set, entered, &e) < 0)
        fail_msg("%s", e.text);
    return set;
}

/* "cores 4" of each, the start in brackets. */
static void put_settings(struct buf *b, const struct space *s, const struct setting *list, int n, int start, bool hot)
{
    for (int i = 0; i < n; i++) {
        buf_printf(b, "%s%s", i ? ", " : "", i == start ? "[" : "");
        const char *sep = "";
        for (size_t k = 0; k < s->n_knobs; k++) {
            if (s->knobs[k].kind->hot != hot)
                continue;
            buf_printf(b, "%s%s", sep, list[i].v[k].text);
            sep = " ";
        }
        buf_puts(b, i == start ? "]" : "");
    }
}

#define GIVEN "\"cores\": [\"16\", \"8\", \"4\"], \"memory\": [\"8\", \"4\"]"

static const struct {
    const char *name, *knobs;
    struct offer offer;
    const char *entered; /* NULL: the default setting */
    const char *hot, *cold;
} cases[] = {
    { "cheapest first, whatever order they were written in", GIVEN, { 0 }, NULL, "4, 8, [16]", "4, [8]" },
    { "what is cut to the same is one setting", GIVEN, { .cores = 2 }, NULL, "[2]", "4, [8]" },
    { "what is cut to another candidate is one setting with it", GIVEN, { .cores = 8 }, NULL, "4, [8]", "4, [8]" },
    { "memory that is not there is left out", GIVEN, { .cores = 16, .memory_gb = 6 }, NULL, "4, 8, [16]", "[4]" },
    { "the start is kept, though it cannot be had", GIVEN, { .memory_gb = 2 }, NULL, "4, 8, [16]", "[8]" },
    { "the user's own start is one more", GIVEN, { 0 }, "cores=6,memory=5", "4, [6], 8, 16", "4, [5], 8" },
    { "a candidate as the start", GIVEN, { 0 }, "cores=4", "[4], 8, 16", "4, [8]" },
    { "no knobs at all: one of each", "", { .cores = 4 }, NULL, "[]", "[]" },
    { "cores count before another hot knob, wherever they stand",
      "\"frequency\": [2000000, 1000000], \"cores\": [8, 4]",
      { 0 },
      NULL,
      "1000000 4, 2000000 4, 1000000 8, [2000000 8]",
      "[]" },
    { "without cores another hot knob ascends alone",
      "\"power_cap\": [95, 40, 60]",
      { 0 },
      NULL,
      "40, 60, [95]",
      "[]" },
    { "other cold knobs keep the order they were written in",
      "\"spark.x\": [\"zz\", \"aa\"], \"memory\": [8, 4], \"executors\": [2, 1]",
      { 0 },
      NULL,
      "[]",
      "zz 4 2, zz 4 1, aa 4 2, aa 4 1, [zz 8 2], zz 8 1, aa 8 2, aa 8 1" },
    { "a cold start of the user's own comes after what was written",
      "\"executors\": [2, 1]",
      { 0 },
      "executors=3",
      "[]",
      "2, 1, [3]" },
};

static void assert_choices(size_t i)
{
    struct space s = parsed(cases[i].knobs);
    struct setting start = start_of(&s, &cases[i].offer, cases[i].entered);
    static struct choices c;
    struct err e = { 0 };
    if (choices_make(&c, &s, &cases[i].offer, &start, &e) < 0)
        fail_msg("%s: %s", cases[i].name, e.text);
    AUTO_BUF struct buf hot = BUF_INIT;
    AUTO_BUF struct buf cold = BUF_INIT;
    put_settings(&hot, &s, c.hot, c.n_hot, c.start.hot, true);
    put_settings(&cold, &s, c.cold, c.n_cold, c.start.cold, false);
    if (strcmp(buf_text(&hot), cases[i].hot) != 0 || strcmp(buf_text(&cold), cases[i].cold) != 0)
        fail_msg("%s: got hot %s and cold %s, want %s and %s", cases[i].name, buf_text(&hot), buf_text(&cold),
                 cases[i].hot, cases[i].cold);
    space_done(&s);
}

static void test_what_there_is_to_choose_from(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_choices(i);
}

static void test_a_pair_of_indices_is_a_setting(void **state)
{
    (void)state;
    struct space s = parsed(GIVEN ", \"spark.x\": [\"a\", \"b\"]");
    const struct offer offer = { .cores = 12 };
    struct setting start = start_of(&s, &offer, NULL);
    static struct choices c;
    struct err e = { 0 };
    assert_int_equal(choices_make(&c, &s, &offer, &start, &e), 0);
    static const char want[] = "{\"cores\": 4, \"memory\": 4, \"spark.x\": \"b\"}"
                               "{\"cores\": 4, \"memory\": 8, \"spark.x\": \"a\"}"
                               "{\"cores\": 12, \"memory\": 8, \"spark.x\": \"a\"}";
    const struct tuner_setting at[] = { { 0, 1 }, { 0, 2 }, c.start };
    AUTO_BUF struct buf got = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        struct setting set = choices_setting(&c, &s, at[i]);
        AUTO_JSON json_t *j = setting_json(&s, &set);
        json_put(&got, j, JSON_STYLE_COMPACT);
    }
    assert_string_equal(buf_text(&got), want);
    space_done(&s);
}

static void test_the_tuner_is_told_cores_and_memory(void **state)
{
    (void)state;
    static const struct {
        const char *knobs;
        struct tuner_space want;
    } spaces[] = {
        { GIVEN, { .n_hot = 3, .n_cold = 2, .cores = { 4, 8, 12 }, .memory = { 4, 8 } } },
        /* Only ratios of cores count, and these are one. */
        { "\"frequency\": [200000, 100000], \"executors\": [2, 1]",
          { .n_hot = 2, .n_cold = 2, .cores = { 1, 1 }, .memory = { 0, 0 }, .other = { 0, 1 } } },
        /* A ladder of memory for each choice of what has no order. */
        { "\"spark.x\": [\"zz\", \"aa\"], \"memory\": [8, 4]",
          { .n_hot = 1, .n_cold = 4, .cores = { 1 }, .memory = { 4, 4, 8, 8 }, .other = { 0, 1, 0, 1 } } },
        { "", { .n_hot = 1, .n_cold = 1, .cores = { 1 }, .memory = { 0 } } },
    };
    const struct offer offer = { .cores = 12 };
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        struct space s = parsed(spaces[i].knobs);
        struct setting start = start_of(&s, &offer, NULL);
        static struct choices c;
        assert_int_equal(choices_make(&c, &s, &offer, &start, NULL), 0);
        struct tuner_space got = choices_tuner_space(&c, &s);
        assert_memory_equal(&got, &spaces[i].want, sizeof got);
        space_done(&s);
    }
}

static void test_more_memory_is_a_step_up_its_own_ladder(void **state)
{
    (void)state;
    struct space s = parsed("\"memory\": [2, 4, 8], \"executors\": [2, 1]"), none = parsed("\"executors\": [2, 1]");
    const struct offer offer = { 0 };
    struct setting start = start_of(&s, &offer, NULL);
    static struct choices c;
    assert_int_equal(choices_make(&c, &s, &offer, &start, NULL), 0);
    static const int more[] = { 2, 3, 4, 5, -1, -1 };
    assert_int_equal(c.n_cold, (int)ARRAY_LEN(more));
    for (int i = 0; i < c.n_cold; i++)
        assert_int_equal(choices_more_memory(&c, &s, i), more[i]);
    start = start_of(&none, &offer, NULL);
    assert_int_equal(choices_make(&c, &none, &offer, &start, NULL), 0);
    assert_int_equal(choices_more_memory(&c, &none, 0), -1);
    space_done(&s);
    space_done(&none);
}

static void test_cores_that_a_launch_alone_changes_are_cold(void **state)
{
    (void)state;
    struct space s = parsed("\"memory\": [2, 4], \"cores\": [4, 1]");
    for (size_t i = 0; i < s.n_knobs; i++)
        s.knobs[i].launched = s.knobs[i].kind->id == KNOB_CORES;
    const struct offer offer = { 0 };
    struct setting start = start_of(&s, &offer, NULL);
    static struct choices c;
    assert_int_equal(choices_make(&c, &s, &offer, &start, NULL), 0);
    assert_true(c.n_hot == 1 && c.n_cold == 4);
    struct setting set = choices_setting(&c, &s, c.start);
    assert_true(setting_number(&s, &set, KNOB_CORES, 0) == 4 && setting_number(&s, &set, KNOB_MEMORY, 0) == 2);
    int more = choices_more_memory(&c, &s, c.start.cold); /* with as many cores */
    assert_true(more >= 0);
    set = choices_setting(&c, &s, (struct tuner_setting){ 0, more });
    assert_true(setting_number(&s, &set, KNOB_CORES, 0) == 4 && setting_number(&s, &set, KNOB_MEMORY, 0) == 4);
    space_done(&s);
}

static void test_how_many_fit_into_some_cores(void **state)
{
    (void)state;
    static const struct {
        const char *knobs;
        double cores;
        int want;
    } within[] = {
        { GIVEN, 16, 3 },
        { GIVEN, 15.5, 2 },
        { GIVEN, 8, 2 },
        { GIVEN, 7, 1 },
        { GIVEN, 4, 1 },
        { GIVEN, 1, 1 }, /* the smallest always */
        { "\"cores\": [8, 4], \"frequency\": [200000, 100000]", 4, 2 },
        { "\"frequency\": [300000, 200000, 100000]", 1, 3 }, /* none of them needs cores */
        { "", 1, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(within); i++) {
        struct space s = parsed(within[i].knobs);
        const struct offer none = { 0 };
        struct setting start = start_of(&s, &none, NULL);
        static struct choices c;
        assert_int_equal(choices_make(&c, &s, &none, &start, NULL), 0);
        int got = choices_hot_within(&c, &s, within[i].cores);
        if (got != within[i].want)
            fail_msg("%s within %g: got %d, want %d", within[i].knobs, within[i].cores, got, within[i].want);
        space_done(&s);
    }
}

/* --- more than there is room for --- */

static void put_list(struct buf *b, const char *name, int n)
{
    buf_printf(b, "%s\"%s\": [", b->len ? ", " : "", name);
    const char *unit = strcmp(name, "frequency") == 0 ? "00000" : "";
    for (int i = n; i >= 1; i--)
        buf_printf(b, "%d%s%s", i, unit, i > 1 ? ", " : "]");
}

static int differences(const struct space *s, const struct setting *a, const struct setting *b)
{
    int n = 0;
    for (size_t i = 0; i < s->n_knobs; i++)
        n += !value_equal(&a->v[i], &b->v[i]);
    return n;
}

static void test_of_too_many_those_near_the_start_are_kept(void **state)
{
    (void)state;
    AUTO_BUF struct buf knobs = BUF_INIT;
    put_list(&knobs, "cores", 12);
    put_list(&knobs, "frequency", 8);
    put_list(&knobs, "power_cap", 9); /* 864 combinations, 1 + 11 + 7 + 8 near the start */
    struct space s = parsed(buf_text(&knobs));
    const struct offer none = { 0 };
    struct setting start = start_of(&s, &none, NULL);
    static struct choices c;
    assert_int_equal(choices_make(&c, &s, &none, &start, NULL), 0);
    assert_int_equal(c.n_hot, TUNER_MAX_HOT);
    assert_int_equal(c.n_cold, 1);
    int near = 0;
    for (int i = 0; i < c.n_hot; i++) {
        near += differences(&s, &c.hot[i], &start) <= 1;
        for (int k = 0; k < i; k++)
            assert_int_not_equal(differences(&s, &c.hot[i], &c.hot[k]), 0); /* each once */
        double cores = setting_number(&s, &c.hot[i], KNOB_CORES, 0);
        assert_true(i == 0 || cores >= setting_number(&s, &c.hot[i - 1], KNOB_CORES, 0));
    }
    assert_int_equal(near, 1 + 11 + 7 + 8);
    assert_int_equal(differences(&s, &c.hot[c.start.hot], &start), 0);
    space_done(&s);
}

/* Sixteen knobs have more combinations than could ever be counted through. */
static void test_a_huge_space_is_no_trouble(void **state)
{
    (void)state;
    AUTO_BUF struct buf knobs = BUF_INIT;
    for (int i = 0; i < SPACE_MAX_KNOBS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "spark.k%d", i);
        put_list(&knobs, name, 2);
    }
    struct space s = parsed(buf_text(&knobs));
    const struct offer none = { 0 };
    struct setting start = start_of(&s, &none, NULL);
    static struct choices c;
    assert_int_equal(choices_make(&c, &s, &none, &start, NULL), 0);
    assert_int_equal(c.n_cold, TUNER_MAX_COLD);
    assert_int_equal(differences(&s, &c.cold[c.start.cold], &start), 0);
    space_done(&s);
}

static void test_too_many_near_the_start_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        int n_first, n_second;
        const char *want; /* NULL: they fit */
    } lists[] = {
        { "cores", "frequency", 32, 1, NULL },
        { "cores", "frequency", 33, 1, "'systemParameters.cores' has too many values: at most 32" },
        { "cores", "frequency", 20, 14, "'systemParameters.frequency' has too many values" },
        { "memory", "executors", 33, 1, "'systemParameters.memory' has too many values" },
        { "cores", "memory", 32, 32, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        AUTO_BUF struct buf knobs = BUF_INIT;
        put_list(&knobs, lists[i].first, lists[i].n_first);
        put_list(&knobs, lists[i].second, lists[i].n_second);
        struct space s = parsed(buf_text(&knobs));
        const struct offer none = { 0 };
        struct setting start = start_of(&s, &none, NULL);
        static struct choices c;
        c.n_hot = -7;
        struct err e = { 0 };
        int rc = choices_make(&c, &s, &none, &start, &e);
        if (rc != (lists[i].want ? -E2BIG : 0) || (lists[i].want && !strstr(e.text, lists[i].want)))
            fail_msg("case %zu: got %d '%s'", i, rc, e.text);
        assert_true(!lists[i].want || c.n_hot == -7); /* untouched */
        space_done(&s);
    }
    /* Values that the machine makes one of are one. */
    AUTO_BUF struct buf knobs = BUF_INIT;
    put_list(&knobs, "cores", 500);
    struct space s = parsed(buf_text(&knobs));
    const struct offer two = { .cores = 2 };
    struct setting start = start_of(&s, &two, NULL);
    static struct choices c;
    assert_int_equal(choices_make(&c, &s, &two, &start, NULL), 0);
    assert_int_equal(c.n_hot, 2);
    space_done(&s);
}

static void test_memory_that_runs_out(void **state)
{
    (void)state;
    struct space s = parsed(GIVEN);
    const struct offer none = { 0 };
    struct setting start = start_of(&s, &none, NULL);
    static struct choices c;
    int rc = -ENOMEM;
    unsigned nth = 1;
    for (; rc < 0; nth++) {
        assert_true(nth < 16);
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        rc = choices_make(&c, &s, &none, &start, &e);
        bool struck = fault_disarm();
        assert_int_equal(rc, struck ? -ENOMEM : 0);
        assert_int_equal(e.code, rc);
    }
    assert_int_equal(nth, 5); /* three to fail */
    space_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_there_is_to_choose_from),
        cmocka_unit_test(test_a_pair_of_indices_is_a_setting),
        cmocka_unit_test(test_the_tuner_is_told_cores_and_memory),
        cmocka_unit_test(test_more_memory_is_a_step_up_its_own_ladder),
        cmocka_unit_test(test_cores_that_a_launch_alone_changes_are_cold),
        cmocka_unit_test(test_how_many_fit_into_some_cores),
        cmocka_unit_test(test_of_too_many_those_near_the_start_are_kept),
        cmocka_unit_test(test_a_huge_space_is_no_trouble),
        cmocka_unit_test(test_too_many_near_the_start_are_refused_by_name),
        cmocka_unit_test(test_memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
