#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "app/cause.h"
#include "app/lines.h"
#include "base/own.h"
#include "tests/fault.h"

/* ---- reports -------------------------------------------------------------------------------------------------------- */

static void test_a_report_begins_with_nothing_told(void **state)
{
    (void)state;
    struct app_report r;
    memset(&r, 0x55, sizeof r);
    app_report_begin(&r, REPORT_STEP);
    assert_int_equal(r.kind, REPORT_STEP);
    assert_int_equal(r.stamp_ms, -1);
    assert_true(isnan(r.seconds) && isnan(r.loss) && isnan(r.learning_rate) && isnan(r.wall_s));
    assert_int_equal(r.n_values, 0);
    assert_null(r.cause);
    assert_string_equal(r.text, "");
}

static const struct {
    const char *name, *from, *want;
} texts[] = {
    { "a word is itself", "loss", "loss" },
    { "blanks at the end go", "loss \t\r", "loss" },
    { "control characters are blanks", "a\tb\033c", "a b c" },
    { "what is no UTF-8 is told as such", "a\xff\xc3", "a??" },
    { "other letters stay", "größe", "größe" },
    { "what is too long is cut between characters", "1234567é", "1234567" },
};

static void test_texts_are_fit_to_be_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char got[9];
        app_report_copy_text(got, sizeof got, texts[i].from, texts[i].from + strlen(texts[i].from));
        if (strcmp(got, texts[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", texts[i].name, got, texts[i].want);
    }
}

static void test_a_report_has_room_for_so_many_values(void **state)
{
    (void)state;
    struct app_report r;
    app_report_begin(&r, REPORT_EPOCH);
    for (int i = 0; i < REPORT_VALUES_MAX; i++)
        assert_true(app_report_add_value(&r, "accuracy: x", strlen("accuracy"), i));
    assert_false(app_report_add_value(&r, "one more", 8, 1));
    assert_int_equal(r.n_values, REPORT_VALUES_MAX);
    assert_string_equal(r.values[REPORT_VALUES_MAX - 1].name, "accuracy");
    assert_true(r.values[3].value == 3);
}

/* ---- lines ---------------------------------------------------------------------------------------------------------- */

/* Any line but an empty one and "-" is a result of that name. */
static int parse_any(const void *ctx, struct line_place *place, const char *line, size_t len, struct app_report *out)
{
    (void)place;
    app_report_begin(out, REPORT_VALUE);
    app_report_put_text(out, line, line + len);
    out->value = *(const double *)ctx;
    return out->text[0] && strcmp(out->text, "-") != 0;
}

struct heard {
    char all[256];
    int stop_at; /* the n-th report is not taken; 0: all are */
    int n;
};

static int take(void *ctx, const struct app_report *r, uint64_t end)
{
    struct heard *h = ctx;
    if (++h->n == h->stop_at)
        return -EIO;
    size_t len = strlen(h->all);
    (void)snprintf(h->all + len, sizeof h->all - len, "%s=%g@%d ", r->text, r->value, (int)end);
    return 0;
}

static void test_lines_are_the_same_however_they_come(void **state)
{
    (void)state;
    static const char text[] = "one\n-\n\ntwo\nthree";
    const double seven = 7;
    const struct line_reader reader = { parse_any, &seven, NULL };
    for (size_t piece = 1; piece <= sizeof text; piece++) {
        struct lines s;
        struct heard h = { .n = 0 };
        lines_init(&s, &reader, 0);
        for (size_t at = 0; at < strlen(text); at += piece)
            assert_int_equal(lines_feed(&s, text + at, piece < strlen(text) - at ? piece : strlen(text) - at, take, &h),
                             0);
        assert_int_equal(lines_end(&s, take, &h), 0);
        if (strcmp(h.all, "one=7@4 two=7@11 three=7@16 ") != 0)
            fail_msg("in pieces of %zu: got '%s'", piece, h.all);
        lines_done(&s);
    }
}

static void test_a_line_that_was_not_taken_comes_again(void **state)
{
    (void)state;
    const double seven = 7;
    const struct line_reader reader = { parse_any, &seven, NULL };
    struct lines s;
    struct heard h = { .stop_at = 2 };
    lines_init(&s, &reader, 100);
    assert_int_equal(lines_feed(&s, "one\ntwo\nthree\n", 14, take, &h), -EIO);
    assert_int_equal(s.offset, 108); /* behind the line that failed: the caller is to stop */
    lines_done(&s);
}

/* ---- causes --------------------------------------------------------------------------------------------------------- */

static const struct cause rows[] = {
    { "memory",
      VERDICT_INFEASIBLE,
      NULL,
      { "MemoryError", "Killed" },
      .explains = &rows[1],
      .traits = CAUSE_IS_MEMORY },
    { "lost", VERDICT_FAILED, NULL, { "worker lost" }, .unless = "on purpose", .traits = CAUSE_IS_LOSS },
    { "exception", VERDICT_FAILED, NULL, { "Caused by: " }, .traits = CAUSE_IS_VAGUE | CAUSE_IS_ANY },
};
static const char *const anchors[] = { "step ", "done" };
static const struct cause_words words = { rows, ARRAY_LEN(rows), &rows[2], anchors, ARRAY_LEN(anchors) };

static const struct {
    const char *name, *line;
    const struct cause *want;
    enum report_level level;
} lines[] = {
    { "an ordinary line is none", "all is well", NULL, LEVEL_NONE },
    { "its words tell a cause", "it was Killed", &rows[0], LEVEL_NONE },
    { "the most telling one counts", "worker lost: MemoryError", &rows[0], LEVEL_NONE },
    { "a word may say that it is none", "worker lost on purpose", NULL, LEVEL_NONE },
    { "a record tells how grave it is", "ERROR worker lost", &rows[1], LEVEL_ERROR },
    { "an exception of no row is the vague one", "ValueError: 3", &rows[2], LEVEL_NONE },
};

static void test_causes_are_known_by_their_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct line_place place = { .level = LEVEL_NONE };
        struct app_report r;
        const struct cur line = { lines[i].line, lines[i].line + strlen(lines[i].line) };
        app_report_begin(&r, REPORT_DATA);
        struct cause_hits h = cause_find(&words, &line);
        int rc = cause_read(&words, &place, &line, &line, &h, &r);
        if (rc != (lines[i].want != NULL) || r.cause != lines[i].want || (rc && r.level != lines[i].level))
            fail_msg("%s: got %s at level %d", lines[i].name, cause_name(r.cause), (int)r.level);
    }
}

static void test_anchors_are_found_in_the_same_pass(void **state)
{
    (void)state;
    static const char text[] = "now step 3, done";
    const struct cur line = { text, text + strlen(text) };
    struct cause_hits h = cause_find(&words, &line);
    assert_null(h.cause);
    assert_int_equal(h.anchor_row, 0);
    assert_ptr_equal(h.anchor_end, text + strlen("now step "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_report_begins_with_nothing_told),
        cmocka_unit_test(test_texts_are_fit_to_be_shown),
        cmocka_unit_test(test_a_report_has_room_for_so_many_values),
        cmocka_unit_test(test_lines_are_the_same_however_they_come),
        cmocka_unit_test(test_a_line_that_was_not_taken_comes_again),
        cmocka_unit_test(test_causes_are_known_by_their_words),
        cmocka_unit_test(test_anchors_are_found_in_the_same_pass),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
