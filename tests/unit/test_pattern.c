/* Progress by expressions: what they find, ready-made ones, slow ones, and the texts they cannot do without. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/pattern.h"
#include "base/buf.h"
#include "base/own.h"
#include "tests/fault.h"

/* What was found, as one text: "epoch=3 loss=0.5". */
static char *found_text(const struct pattern_found *f)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (f->epoch >= 0)
        buf_printf(&b, "epoch=%lld ", (long long)f->epoch);
    if (f->step >= 0)
        buf_printf(&b, "step=%lld ", (long long)f->step);
    if (f->epochs >= 0)
        buf_printf(&b, "epochs=%lld ", (long long)f->epochs);
    if (!isnan(f->records))
        buf_printf(&b, "records=%g ", f->records);
    if (!isnan(f->seconds))
        buf_printf(&b, "seconds=%g ", f->seconds);
    for (size_t i = 0; i < f->n_values; i++)
        buf_printf(&b, "%s:%g ", f->values[i].name, f->values[i].value);
    buf_cut(&b, b.len ? b.len - 1 : 0);
    return strdup(buf_text(&b));
}

static void expect(const char *name, struct patterns *p, const char *line, const char *want)
{
    struct pattern_found f;
    AUTO_FREE char *got = patterns_match(p, line, strlen(line), &f) ? found_text(&f) : strdup("nothing");
    if (strcmp(got, want) != 0)
        fail_msg("%s: '%s': got '%s', want '%s'", name, line, got, want);
}

static const struct {
    const char *name, *pattern, *line, *want;
} finds[] = {
    { "the example of the manual", "epoch (?<epoch>\\d+): loss (?<loss>\\S+), accuracy (?<accuracy>\\S+)",
      "12:00 epoch 3: loss 0.25, accuracy 0.9", "epoch=3 accuracy:0.9 loss:0.25" },
    { "all five numbers", "(?<step>\\d+) of (?<epoch>\\d+)/(?<epochs>\\d+): (?<records>\\d+) in (?<seconds>\\S+) s",
      "120 of 3/9: 128 in 0.5 s", "epoch=3 step=120 epochs=9 records=128 seconds=0.5" },
    { "a number that is none is left out", "loss (?<loss>\\S+) acc (?<acc>\\S+)", "loss n/a acc 0.5", "acc:0.5" },
    { "a loss that is not finite any more is told", "loss (?<loss>\\S+)", "loss nan", "loss:nan" },
    { "what belongs to the sentence is no part of it", "loss (?<loss>\\S+) acc (?<acc>\\S+)", "loss 0.5; acc 91%,",
      "acc:91 loss:0.5" },
    { "numbers as C has them are none", "loss (?<loss>\\S+) acc (?<acc>\\S+)", "loss 0x10 acc 1e-3", "acc:0.001" },
    { "an epoch in parts is none", "epoch (?<epoch>\\S+)(?<x>)", "epoch 1.5", "" },
    { "epochs that are counted from 0", "epoch (?<epoch0>\\d+)", "epoch 0", "epoch=1" },
    { "a negative epoch is none", "epoch (?<epoch>\\S+)", "epoch -1", "" },
    { "every pair of a line", "(?<name>\\w+)=(?<value>\\S+)", "a=1 b=2, c=3", "a:1 b:2 c:3" },
    { "names that are printed in two parts", "(?<of>\\w+)/(?<name>\\w+)=(?<value>\\S+)", "valid/loss=1",
      "valid-loss:1" },
    { "one of several groups of a name", "(?J)(?:loss=(?<loss>\\S+)|l (?<loss>\\S+))", "l 2", "loss:2" },
    { "the first of a name stays", "loss=(?<loss>\\S+)", "loss=1 loss=2", "loss:1" },
    { "a group that is empty finds nothing", "x(?<loss>\\d*)", "x", "" },
    { "an expression that finds nothing everywhere comes to its end", "(?<loss>\\d*)", "abc", "" },
    { "bytes that are no UTF-8", "loss (?<loss>\\S+)", "\xff\xfe loss 0.5", "loss:0.5" },
    { "a line with nothing in it", "loss (?<loss>\\S+)", "hello", "nothing" },
};

static void test_pattern_finds(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(finds); i++) {
        struct patterns *p = NULL;
        struct err e = { 0 };
        if (patterns_new(&p, &finds[i].pattern, 1, &e) < 0)
            fail_msg("%s: %s", finds[i].name, e.text);
        expect(finds[i].name, p, finds[i].line, finds[i].want);
        patterns_free(p);
    }
}

/* Lines as these programs print them. */
static const struct {
    const char *set, *line, *want;
} sets[] = {
    { "keras", "Epoch 3/10", "epoch=3 epochs=10" },
    { "keras", "60/60 \xe2\x94\x81\xe2\x94\x81\xe2\x94\x81 1s 2ms/step - accuracy: 0.9107 - loss: 0.3 - val_loss: nan",
      "seconds=1 accuracy:0.9107 loss:0.3 val_loss:nan" },
    { "keras", "1875/1875 [==============================] - 7s 3ms/step - loss: 0.2593 - accuracy: 0.9249",
      "seconds=7 loss:0.2593 accuracy:0.9249" },
    { "keras", "1/60 [..] - loss: 0.9\r60/60 [==] - 7s 3ms/step - loss: 0.2593", "seconds=7 loss:0.2593" },
    { "keras", "30/60 [=====>....] - ETA: 7s - loss: 0.2593", "nothing" },
    { "lightning",
      "Epoch 2: 100%|\xe2\x96\x88\xe2\x96\x88| 60/60 [00:01<00:00, 41.25it/s, v_num=0, train_loss=0.310, val/acc=0.9]",
      "epoch=3 train_loss:0.31 val/acc:0.9" },
    { "lightning", "Epoch 2:  50%|\xe2\x96\x88 | 30/60 [00:01<00:00, 41.25it/s, v_num=0, train_loss=0.310]",
      "nothing" },
    { "xgboost", "[3]\ttrain-merror:0.04250\ttest-merror:0.10880", "epoch=4 train-merror:0.0425 test-merror:0.1088" },
    { "xgboost", "[15:37:29] [2]\ttraining-logloss:0.23527\tvalidation-logloss:0.25377",
      "epoch=3 training-logloss:0.23527 validation-logloss:0.25377" },
    { "xgboost", "[15:37:29] WARNING: 3:7", "nothing" },
    { "lightgbm", "[3]\tvalid_0's multi_error: 0.1241", "epoch=3 valid_0-multi_error:0.1241" },
    { "lightgbm", "[12]\ttraining's auc: 0.99\tvalid_0's multi_logloss: 0.39 + 0.1",
      "epoch=12 training-auc:0.99 valid_0-multi_logloss:0.39" },
    { "lightgbm", "[LightGBM] [Info] Iteration:1, training multi_error : 0.05", "epoch=1 training-multi_error:0.05" },
    { "lightgbm", "[LightGBM] [Warning] No further splits with positive gain, best gain: -inf", "nothing" },
    { "katib", "epoch=3 loss=0.31, accuracy=0.9", "epoch=3 loss:0.31 accuracy:0.9" },
    { "katib", "2020-01-01T00:00:00Z INFO Validation-accuracy = 0.53", "Validation-accuracy:0.53" },
    { "katib", "lr=fast", "nothing" },
};

static void test_pattern_knows_what_others_print(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        struct patterns *p = NULL;
        struct err e = { 0 };
        size_t n = 0;
        const char *const *texts = patterns_named(sets[i].set, &n);
        assert_non_null(texts);
        if (patterns_new(&p, texts, n, &e) < 0)
            fail_msg("%s: %s", sets[i].set, e.text);
        expect(sets[i].set, p, sets[i].line, sets[i].want);
        patterns_free(p);
    }
}

static void test_pattern_names_its_sets(void **state)
{
    (void)state;
    size_t n = 0, count = 0;
    for (const char *name; (name = patterns_name(count)); count++)
        assert_non_null(patterns_named(name, &n));
    assert_int_equal(count, 5);
    assert_null(patterns_named("kreas", &n));
    assert_non_null(patterns_named("xgboost", &n));
    assert_int_equal(n, 1);
}

static void test_pattern_says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *want;
    } faults[] = {
        { "epoch (?<epoch>\\d+", "pattern 'epoch (?<epoch>\\d+' at 18: missing closing parenthesis" },
        { "loss", "pattern 'loss' has no named group, such as (?<loss>\\S+)" },
    };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        const char *const list[] = { "(?<a>x)", faults[i].pattern };
        struct patterns *p = NULL;
        struct err e = { 0 };
        assert_int_equal(patterns_new(&p, list, 2, &e), -EINVAL);
        assert_string_equal(e.text, faults[i].want);
        assert_null(p);
    }
    const char *many[PATTERNS_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = "(?<a>x)";
    struct patterns *p = NULL;
    struct err e = { 0 };
    assert_int_equal(patterns_new(&p, many, ARRAY_LEN(many), &e), -EINVAL);
    assert_int_equal(patterns_new(&p, many, PATTERNS_MAX, &e), 0);
    patterns_free(p);
}

static void test_pattern_that_is_too_slow_is_told_once_and_dropped(void **state)
{
    (void)state;
    const char *const list[] = { "^(?:(?:a+)+)+(?<slow>\\d)$", "loss=(?<loss>\\S+)" };
    struct patterns *p = NULL;
    struct err e = { 0 };
    assert_int_equal(patterns_new(&p, list, 2, &e), 0);
    char line[4096];
    memset(line, 'a', sizeof line);
    struct pattern_found f;
    expect("before", p, "aa1", "slow:1");
    assert_null(patterns_dropped(p));
    assert_false(patterns_match(p, line, sizeof line, &f));
    assert_string_equal(patterns_dropped(p), list[0]);
    assert_null(patterns_dropped(p));
    expect("after", p, "aa1", "nothing");
    expect("after", p, "loss=0.5", "loss:0.5");
    patterns_free(p);
}

static void test_pattern_knows_a_text_that_it_needs(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *want; /* NULL: none */
    } rows[] = {
        { "epoch (?<epoch>\\d+): loss (?<loss>\\S+), accuracy (?<accuracy>\\S+)", ", accuracy " },
        { "loss=(?<loss>.*)", "loss=" },
        { "^\\[(?<epoch>\\d+)\\]\\tx", "[" },
        { "colou?r (?<x>.)", "colo" },
        { "ab*c{2,3}de+f(?<x>.)", "de" },
        { "(?:abc)?(?<x>.)z", "z" },
        { "(?<x>a|bcd)z", "z" },
        { "a[]bc|]d(?<x>.)", "a" },
        { "a[[:alpha:]]bcd(?<x>.)", "bcd" },
        { "abc{x|y(?<x>.)", NULL },
        { "abc|d(?<x>.)", NULL },
        { "(?i)loss (?<x>.)", NULL },
        { "(?:(?i)a)loss (?<x>.)", NULL },
        { "\\Qloss\\E (?<x>.)", NULL },
        { "(?<x>.)", NULL },
        { "a.c\\.de(?<x>.)", "c.de" },
        { "(?#a)loss(?<x>.)", NULL },
        { "(?=loss)(?<x>.)y", "y" },
        { "", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[PATTERN_LITERAL_MAX] = "";
        bool known = pattern_literal(rows[i].pattern, got);
        if (known != (rows[i].want != NULL) || (known && strcmp(got, rows[i].want) != 0))
            fail_msg("'%s': got '%s', want '%s'", rows[i].pattern, known ? got : "none",
                     rows[i].want ? rows[i].want : "none");
    }
}

static void test_pattern_survives_a_lack_of_memory(void **state)
{
    (void)state;
    const char *const list[] = { "a=(?<a>\\d)", "b=(?<b>\\d)" };
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct patterns *p = NULL;
        struct err e = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = patterns_new(&p, list, 2, &e);
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
        patterns_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern_finds),
        cmocka_unit_test(test_pattern_knows_what_others_print),
        cmocka_unit_test(test_pattern_names_its_sets),
        cmocka_unit_test(test_pattern_says_what_is_wrong),
        cmocka_unit_test(test_pattern_that_is_too_slow_is_told_once_and_dropped),
        cmocka_unit_test(test_pattern_knows_a_text_that_it_needs),
        cmocka_unit_test(test_pattern_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
