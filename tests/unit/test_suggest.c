#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/suggest.h"

static const char *const known[] = { "cores", "memory", "executors", "frequency", "power_cap", "batch_size", "lr" };

static const struct {
    const char *name, *word, *want;
} cases[] = {
    { "a lost letter", "core", "cores" },
    { "an extra letter", "memmory", "memory" },
    { "a changed letter", "memery", "memory" },
    { "swapped letters count once", "exectuors", "executors" },
    { "two slips in a long name", "freqency ", "frequency" },
    { "case is ignored", "CORES", "cores" },
    { "underscores are ignored", "powercap", "power_cap" },
    { "dashes are ignored", "power-cap", "power_cap" },
    { "case and joiners together", "batchSize", "batch_size" },
    { "a short name must be right", "lt", NULL },
    { "a short name in another case", "LR", "lr" },
    { "something else altogether", "learning_rate", NULL },
    { "nothing", "", NULL },
    { "only joiners", "__", NULL },
    { "a word longer than any name", "memorymemorymemorymemorymemorymemorymemorymemorymemorymemorymemorymemory", NULL },
};

static void test_suggest_finds_the_nearest(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *got = suggest_nearest(cases[i].word, known, ARRAY_LEN(known));
        if (got != cases[i].want && (!got || !cases[i].want || strcmp(got, cases[i].want) != 0))
            fail_msg("%s: '%s': got %s, want %s", cases[i].name, cases[i].word, got ? got : "nothing",
                     cases[i].want ? cases[i].want : "nothing");
    }
}

static void test_equally_near_names_give_the_first(void **state)
{
    (void)state;
    static const char *const twins[] = { "pcm", "pdm" };
    assert_string_equal(suggest_nearest("pxm", twins, 2), "pcm");
    static const char *const commands[] = { "rm", "run" };
    assert_string_equal(suggest_nearest("rum", commands, 2), "run"); /* of as many letters */
    assert_null(suggest_nearest("pcm", twins, 0));
}

static void test_same_but_for_case_and_joiners(void **state)
{
    (void)state;
    assert_true(suggest_same("batch_size", "batchSize"));
    assert_true(suggest_same("_batch-size_", "BATCHSIZE"));
    assert_false(suggest_same("batch_size", "batch_sizes"));
    assert_false(suggest_same("batch", ""));
    assert_true(suggest_same("", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suggest_finds_the_nearest),
        cmocka_unit_test(test_equally_near_names_give_the_first),
        cmocka_unit_test(test_same_but_for_case_and_joiners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
