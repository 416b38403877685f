/* The words of the socket that trials tell of themselves over. */
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

#include "app/tell.h"
#include "base/own.h"

static const char *kind_name(enum report_kind k)
{
    return k == REPORT_EPOCH ? "epoch" : k == REPORT_STEP ? "step" : k == REPORT_CHECKPOINT ? "checkpoint" : "other";
}

/* What a line is read as: "epoch 3 loss:0.21", "hello", or why it is not taken. */
static char *read_as(const char *text)
{
    AUTO_FREE char *line = strdup(text);
    AUTO_BUF struct buf b = BUF_INIT;
    struct app_report r;
    struct err e = { 0 };
    int rc = tell_read(line, strlen(line), &r, &e);
    if (rc < 0) {
        assert_int_equal(rc, -EINVAL);
        buf_printf(&b, "refused: %s", e.text);
    } else if (rc == 0) {
        buf_puts(&b, "hello");
    } else {
        buf_printf(&b, "%s %d", kind_name(r.kind), r.epoch);
        if (r.step > 0)
            buf_printf(&b, " step=%lld", (long long)r.step);
        if (r.records > 0)
            buf_printf(&b, " records=%g", r.records);
        if (r.seconds > 0)
            buf_printf(&b, " seconds=%g", r.seconds);
        if (r.text[0])
            buf_printf(&b, " %s", r.text);
        for (size_t i = 0; i < r.n_values; i++)
            buf_printf(&b, " %s:%g", r.values[i].name, r.values[i].value);
    }
    return buf_take(&b);
}

static const struct {
    const char *name, *line, *want;
} cases[] = {
    { "an epoch", "{\"epoch\":3,\"loss\":0.21,\"accuracy\":0.93}", "epoch 3 loss:0.21 accuracy:0.93" },
    { "an epoch without figures", "{\"epoch\":3}", "epoch 3" },
    { "a step", "{\"step\":120,\"records\":128,\"seconds\":0.5,\"loss\":0.3}",
      "step 0 step=120 records=128 seconds=0.5 loss:0.3" },
    { "a step of an epoch", "{\"epoch\":2,\"step\":7}", "step 2 step=7" },
    { "a checkpoint", "{\"checkpoint\":\"a/b c\",\"epoch\":3}", "checkpoint 3 a/b c" },
    { "a checkpoint of an epoch that is not said", "{\"checkpoint\":\"x\"}", "checkpoint 0 x" },
    { "figures of the epoch under way", "{\"loss\":0.21}", "epoch 0 loss:0.21" },
    { "a greeting", "{\"hello\":1}", "hello" },
    { "a greeting of a later protocol", "{\"hello\":2,\"as\":\"x\"}", "hello" },
    { "what is null is not told", "{\"epoch\":1,\"loss\":null,\"step\":null,\"checkpoint\":null}", "epoch 1" },
    { "NaN as Python has it", "{\"epoch\": 1, \"loss\": NaN, \"a\": -Infinity, \"b\": Infinity}",
      "epoch 1 loss:nan a:-inf b:inf" },
    { "NaN as a text", "{\"loss\":\"nan\",\"a\":\"-inf\",\"b\":\"Infinity\",\"c\":\"0.5\"}",
      "epoch 0 loss:nan a:-inf b:inf c:0.5" },
    { "NaN in a name stays", "{\"NaN\":1,\"a\\\"NaN\":2}", "epoch 0 NaN:1 a\"NaN:2" },
    { "a metric that is no number", "{\"epoch\":1,\"loss\":\"low\"}",
      "refused: 'loss' is no number, and a metric is one" },
    { "a metric that is a truth", "{\"loss\":true}", "refused: 'loss' is no number, and a metric is one" },
    { "a metric that is a list", "{\"loss\":[1,2]}", "refused: 'loss' is no number, and a metric is one" },
    { "epoch 0", "{\"epoch\":0,\"loss\":1}", "refused: 'epoch' is no whole number from 1 to 2147483647" },
    { "half an epoch", "{\"epoch\":1.5}", "refused: 'epoch' is no whole number from 1 to 2147483647" },
    { "records below 0", "{\"step\":1,\"records\":-1}", "refused: 'records' is no number from 0" },
    { "nothing", "{}", "refused: it tells nothing: no epoch, no step, no metric, no checkpoint" },
    { "no object", "3", "refused: column 1: not a JSON object" },
    { "no JSON", "loss=3", "refused: column 1: not a JSON object" },
    { "a path that is none", "{\"checkpoint\":3}", "refused: 'checkpoint' is no path of 1 to 255 bytes" },
    { "a path that leaves the line", "{\"checkpoint\":\"a\\nb\"}",
      "refused: 'checkpoint' is no plain path: a control character, or a blank at its end" },
    { "a metric without a name", "{\"\":3}", "refused: '' is no name of 1 to 63 bytes" },
};

static void test_tell_reads(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *got = read_as(cases[i].line);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, got, cases[i].want);
    }
}

static void test_tell_has_limits(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, "{\"epoch\":1");
    for (int i = 0; i <= REPORT_VALUES_MAX; i++)
        buf_printf(&b, ",\"m%d\":%d", i, i);
    buf_putc(&b, '}');
    AUTO_FREE char *many = read_as(buf_text(&b));
    assert_string_equal(many, "refused: more than 16 metrics in one line");
    buf_clear(&b);
    buf_puts(&b, "{\"epoch\":1}");
    while (b.len <= TELL_LINE_MAX)
        buf_putc(&b, ' ');
    AUTO_FREE char *longer = read_as(buf_text(&b));
    assert_string_equal(longer, "refused: a line of more than 65536 bytes");
}

static void test_tell_answers(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    tell_put_stop(&b);
    tell_put_error(&b, "no \"such\"\nthing");
    assert_string_equal(buf_text(&b), "{\"stop\":true}\n{\"error\":\"no \\\"such\\\"\\u000athing\"}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tell_reads),
        cmocka_unit_test(test_tell_has_limits),
        cmocka_unit_test(test_tell_answers),
    };
    return cmocka_run_group_tests_name("tell", tests, NULL, NULL);
}
