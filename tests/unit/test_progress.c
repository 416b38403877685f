/* Lines of applications that are known by patterns and by what they tell, as the launcher writes them. */
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

#include "app/fold.h"
#include "app/pattern.h"
#include "app/progress.h"
#include "base/buf.h"
#include "base/own.h"

struct heard {
    struct fold fold;
    struct buf epochs; /* "3: loss=0.5 (1.5 s) " */
    const struct cause *cause;
};

static int hear(void *ctx, const struct app_report *r, uint64_t end)
{
    struct heard *h = ctx;
    struct fold_epoch e;
    if (r->kind == REPORT_CAUSE)
        h->cause = r->cause;
    if (fold_report(&h->fold, r, end, &e)) {
        buf_printf(&h->epochs, "%d:", e.epoch);
        for (size_t i = 0; i < e.n_values; i++)
            buf_printf(&h->epochs, " %s=%g", e.values[i].name, e.values[i].value);
        buf_printf(&h->epochs, " (%lld steps, %g s); ", (long long)e.iterations, e.seconds);
    }
    return 0;
}

static void read_all(struct heard *h, const char *metric, const struct progress *p, const char *text)
{
    struct lines lines;
    struct line_reader reader = progress_reader(p);
    fold_init(&h->fold, metric, 0);
    lines_init(&lines, &reader, 0);
    assert_int_equal(lines_feed(&lines, text, strlen(text), hear, h), 0);
    lines_done(&lines);
}

#define T "170000000"

static const struct {
    const char *name, *patterns[3], *metric, *text, *epochs, *cause;
} cases[] = {
    { "a line an epoch",
      { "epoch (?<epoch>\\d+): loss (?<loss>\\S+), accuracy (?<accuracy>\\S+)" },
      "accuracy",
      T "1000 begin\n" T "2000 epoch 1: loss 0.5, accuracy 0.9\n" T "4500 epoch 2: loss 0.25, accuracy nan\n",
      "1: accuracy=0.9 loss=0.5 (0 steps, nan s); 2: accuracy=nan loss=0.25 (0 steps, 2.5 s); ",
      NULL },
    { "an epoch that is named before its figures, which come in parts",
      { "^epoch (?<epoch>\\d+)", "^(?<name>\\w+)=(?<value>\\S+)" },
      "accuracy",
      T "1000 epoch 1\n" T "1500 loss=0.5\n" T "2000 accuracy=0.5\n" T "2000 epoch 2\n" T "3500 loss=0.25\n" T
        "4000 accuracy=0.75\n",
      "1: loss=0.5 accuracy=0.5 (0 steps, nan s); 2: loss=0.25 accuracy=0.75 (0 steps, 2 s); ",
      NULL },
    { "what is told",
      { NULL },
      "accuracy",
      T "1000 pipetune told {\"step\":1,\"loss\":0.9}\n" T
        "2000 pipetune told {\"epoch\":1,\"loss\":0.5,\"accuracy\":0.5}\n" T "2500 printed\n" T
        "4000 pipetune told {\"epoch\":2,\"accuracy\":0.75}\n",
      "1: loss=0.5 accuracy=0.5 (1 steps, nan s); 2: accuracy=0.75 (0 steps, 2 s); ",
      NULL },
    { "what is told and printed counts once",
      { "epoch (?<epoch>\\d+): accuracy (?<accuracy>\\S+)" },
      "accuracy",
      T "1000 pipetune told {\"epoch\":1,\"accuracy\":0.5}\n" T "1000 epoch 1: accuracy 0.5\n" T
        "2000 pipetune told {\"epoch\":2,\"accuracy\":0.75}\n" T "2000 epoch 2: accuracy 0.75\n",
      "1: accuracy=0.5 (0 steps, nan s); 2: accuracy=0.75 (0 steps, 1 s); ",
      NULL },
    { "a metric that is not there is waited for until the next epoch",
      { "epoch (?<epoch>\\d+): loss (?<loss>\\S+)" },
      "accuracy",
      T "1000 epoch 1: loss 0.5\n" T "2000 epoch 2: loss 0.25\n",
      "1: loss=0.5 (0 steps, nan s); ",
      NULL },
    { "why it ended",
      { NULL },
      "loss",
      T "1000 Traceback (most recent call last):\n" T "1000   File \"x.py\", line 1\n" T
        "1000 ModuleNotFoundError: No module named 'sklearn'\n",
      "",
      "module_missing" },
    { "lines without a stamp, and what is no line of ours",
      { "loss (?<loss>\\S+)" },
      "loss",
      "loss 0.5\n12 loss 0.25\r\npipetune told {\"nonsense\n\n",
      "1: loss=0.5 (0 steps, nan s); 2: loss=0.25 (0 steps, nan s); ",
      NULL },
};

static void test_progress_is_heard(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct progress *p = NULL;
        struct heard h = { .epochs = BUF_INIT };
        size_t n = 0;
        while (cases[i].patterns[n])
            n++;
        assert_int_equal(progress_new(&p, cases[i].patterns, n, NULL), 0);
        read_all(&h, cases[i].metric, p, cases[i].text);
        if (strcmp(buf_text(&h.epochs), cases[i].epochs) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, buf_text(&h.epochs), cases[i].epochs);
        const char *cause = h.cause ? cause_name(h.cause) : NULL;
        if ((cause != NULL) != (cases[i].cause != NULL) || (cause && strcmp(cause, cases[i].cause) != 0))
            fail_msg("%s: got cause %s", cases[i].name, cause ? cause : "none");
        buf_done(&h.epochs);
        progress_free(p);
    }
}

static void test_progress_knows_which_lines_it_needs(void **state)
{
    (void)state;
    const char *const list[] = { "epoch (?<epoch>\\d+)", "loss=(?<loss>\\S+)" };
    struct progress *p = NULL;
    assert_int_equal(progress_new(&p, list, 2, NULL), 0);
    assert_string_equal(progress_needle(p, 0), "epoch ");
    assert_string_equal(progress_needle(p, 1), "loss=");
    assert_null(progress_needle(p, 2));
    assert_false(progress_hears_all(p));
    struct line_reader reader = progress_reader(p);
    assert_null(reader.dropped(reader.ctx));
    progress_free(p);
    const char *const any[] = { "(?<x>\\d+)" };
    assert_int_equal(progress_new(&p, any, 1, NULL), 0);
    assert_true(progress_hears_all(p));
    progress_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress_is_heard),
        cmocka_unit_test(test_progress_knows_which_lines_it_needs),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
