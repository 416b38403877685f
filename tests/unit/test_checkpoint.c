#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "bigdl/checkpoint.h"

static const struct {
    const char *file;
    enum app_part part;
    int64_t n;
} files[] = {
    { "model.469", APP_PART_MODEL, 469 },
    { "optimMethod-Sequential1a2b.469", APP_PART_STATE, 469 },
    { "optimMethod-my.model.60", APP_PART_STATE, 60 },
    { "optimMethod.60", APP_PART_STATE, 60 },
    { "state.60", APP_PART_STATE, 60 },
    { ".model.469.crc", APP_PART_NEITHER, 0 },
    { "model.469.crc", APP_PART_NEITHER, 0 },
    { "model.469.pb", APP_PART_NEITHER, 0 },
    { "optimMethod-Sequential1a2b", APP_PART_NEITHER, 0 },
    { "optimMethod-Sequential1a2b.469.crc", APP_PART_NEITHER, 0 },
    { "model", APP_PART_NEITHER, 0 },
    { "model.", APP_PART_NEITHER, 0 },
    { "model.0", APP_PART_NEITHER, 0 },
    { "model.-1", APP_PART_NEITHER, 0 },
    { "model.1x", APP_PART_NEITHER, 0 },
    { "model.99999999999999999999", APP_PART_NEITHER, 0 },
    { "", APP_PART_NEITHER, 0 },
};

static void test_checkpoint_knows_its_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int64_t n = 0;
        enum app_part part = checkpoint_classify(files[i].file, &n);
        if (part != files[i].part || n != files[i].n)
            fail_msg("'%s': got %d %lld, want %d %lld", files[i].file, (int)part, (long long)n, (int)files[i].part,
                     (long long)files[i].n);
    }
}

static void test_checkpoint_knows_its_folders(void **state)
{
    (void)state;
    assert_true(checkpoint_is_folder("20261118_120011"));
    assert_false(checkpoint_is_folder("20261118-120011"));
    assert_false(checkpoint_is_folder("20261118_12001"));
    assert_false(checkpoint_is_folder("20261118_1200111"));
    assert_false(checkpoint_is_folder("2026111a_120011"));
    assert_false(checkpoint_is_folder(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoint_knows_its_files),
        cmocka_unit_test(test_checkpoint_knows_its_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
