#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/opt.h"
#include "base/own.h"
#include "tests/fault.h"

struct target {
    bool dry_run, on;
    int64_t trials, parallel;
    double margin;
    char *name, *mode, *bigdl_conf;
};

#define FIELD(member) offsetof(struct target, member)
static const char *const modes[] = { "slow", "fast", NULL };
static const char *const words_for_none[] = { "auto", NULL };
/* clang-format off */
static const struct opt_row rows[] = {
    { NULL, "dry_run", OPT_FLAG, FIELD(dry_run), NULL, 0, 0, NULL, NULL, "do nothing" },
    { "study", "on", OPT_FLAG, FIELD(on), "true", 0, 0, NULL, NULL, "or off" },
    { "study", "max_trials", OPT_INT, FIELD(trials), "20", 0, 1000, NULL, "N", "at most" },
    { "study", "tie_margin", OPT_REAL, FIELD(margin), "0.01", 0, 1, NULL, "FRACTION", "equal below it" },
    { "study", "parallel", OPT_INT, FIELD(parallel), "auto", 0, 8, words_for_none, "N", "at once" },
    { "study", "name", OPT_TEXT, FIELD(name), NULL, 0, 0, NULL, "NAME", "of the study" },
    { "study", "mode", OPT_CHOICE, FIELD(mode), "slow", 0, 0, modes, "MODE", "of going" },
    { "", "bigdlConf", OPT_TEXT, FIELD(bigdl_conf), NULL, 0, 0, NULL, "FILE", "what is submitted" },
};
/* clang-format on */

static struct opt_set set_of(struct target *t)
{
    return (struct opt_set){ .rows = rows, .n = ARRAY_LEN(rows), .target = t };
}

static int parse(struct target *t, const char *const *args, struct strv *words, struct err *e)
{
    struct opt_set set = set_of(t);
    AUTO_STRV struct strv argv = STRV_INIT;
    strv_add(&argv, "run");
    for (; *args; args++)
        strv_add(&argv, *args);
    return opt_parse((int)argv.n, argv.v, &set, 1, words, e);
}

static void test_presets(void **state)
{
    (void)state;
    struct target t = { 0 };
    struct opt_set set = set_of(&t);
    assert_int_equal(opt_presets(&set, NULL), 0);
    assert_true(t.on && !t.dry_run);
    assert_int_equal(t.trials, 20);
    assert_true(t.margin == 0.01);
    assert_string_equal(t.mode, "slow");
    assert_null(t.name);
    opt_done(&set);
    assert_null(t.mode);
    opt_done(&set);
}

static void test_a_command_line(void **state)
{
    (void)state;
    struct target t = { 0 };
    struct opt_set set = set_of(&t);
    AUTO_STRV struct strv words = STRV_INIT;
    static const char *const args[] = {
        "first",  "--max-trials", "7",         "--tie-margin=0.5", "--name", "--odd",
        "--name", "twice",        "--dry-run", "--mode",           "fast",   "--bigdl-conf=a=b",
        "-",      "--no-on",      "--",        "--name",           "-x",     NULL
    };
    struct err e = { 0 };
    assert_int_equal(opt_presets(&set, &e), 0);
    assert_int_equal(parse(&t, args, &words, &e), 0);
    assert_int_equal(t.trials, 7);
    assert_true(t.margin == 0.5 && t.dry_run && !t.on);
    assert_string_equal(t.name, "twice");
    assert_string_equal(t.mode, "fast");
    assert_string_equal(t.bigdl_conf, "a=b");
    static const char *const want[] = { "first", "-", "--name", "-x" };
    assert_int_equal(words.n, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_string_equal(words.v[i], want[i]);
    opt_done(&set);
}

static const struct {
    const char *name, *args[3], *want;
} wrong[] = {
    { "unknown", { "--max-trial", "3" }, "unknown option '--max-trial': did you mean '--max-trials'?" },
    { "unknown, with a value", { "--max-trial=3" }, "did you mean '--max-trials'?" },
    { "unknown, near nothing", { "--frobnicate" }, "unknown option '--frobnicate': see --help" },
    { "an underscore", { "--max_trials", "3" }, "did you mean '--max-trials'?" },
    { "a short one", { "-n" }, "unknown option '-n'" },
    { "no value", { "--max-trials" }, "option '--max-trials' needs a value: N" },
    { "an empty value", { "--max-trials=" }, "not ''" },
    { "no number",
      { "--max-trials", "many" },
      "option '--max-trials': must be a whole number from 0 to 1000, not 'many'" },
    { "a number and more", { "--max-trials", "3x" }, "not '3x'" },
    { "no whole number", { "--max-trials", "1.5" }, "not '1.5'" },
    { "too large", { "--max-trials", "1001" }, "not '1001'" },
    { "much too large", { "--max-trials", "1e999" }, "not '1e999'" },
    { "negative", { "--tie-margin", "-0.1" }, "must be a number from 0 to 1, not '-0.1'" },
    { "not a number", { "--tie-margin", "nan" }, "not 'nan'" },
    { "the value that has a word, as a number",
      { "--parallel", "0" },
      "option '--parallel': must be a whole number from 1 to 8 or 'auto', not '0'" },
    { "another word for a number", { "--parallel", "automatic" }, "from 1 to 8 or 'auto', not 'automatic'" },
    { "the word for another number", { "--max-trials", "auto" }, "from 0 to 1000, not 'auto'" },
    { "no choice", { "--mode", "quick" }, "option '--mode': must be one of slow, fast, not 'quick'" },
    { "a flag with a value", { "--dry-run=yes" }, "option '--dry-run' takes no value" },
    { "no of what is no flag", { "--no-name" }, "unknown option '--no-name'" },
    { "a word", { "word" }, "unexpected word 'word'" },
};

static void test_a_wrong_command_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct target t = { 0 };
        struct opt_set set = set_of(&t);
        struct err e = { 0 };
        assert_int_equal(opt_presets(&set, &e), 0);
        int rc = parse(&t, wrong[i].args, NULL, &e);
        if (rc != -EINVAL || !strstr(e.text, wrong[i].want))
            fail_msg("%s: got %d, '%s', want '%s'", wrong[i].name, rc, e.text, wrong[i].want);
        assert_true(t.trials == 20 && t.margin == 0.01);
        assert_string_equal(t.mode, "slow");
        opt_done(&set);
    }
}

static const struct {
    const char *name, *text, *want; /* NULL: it is right */
} sections[] = {
    { "all of them",
      "{ \"study\": { \"on\": false, \"max_trials\": 5, \"tie_margin\": 1, \"name\": \"x\", \"mode\": \"fast\" } }",
      NULL },
    { "a whole number written as a real one", "{ \"study\": { \"max_trials\": 5.0 } }", NULL },
    { "a number that may be a word", "{ \"study\": { \"parallel\": 8 } }", NULL },
    { "the word for a number", "{ \"study\": { \"parallel\": \"auto\" } }", NULL },
    { "the value that has a word, as a number", "{ \"study\": { \"parallel\": 0 } }",
      "'study.parallel' must be a whole number from 1 to 8 or 'auto', not '0'" },
    { "another word for a number", "{ \"study\": { \"parallel\": \"8\" } }",
      "'study.parallel' must be a whole number or \"auto\"" },
    { "no section", "{ }", NULL },
    { "what is left to others", "{ \"study\": { \"other\": [] } }", NULL },
    { "no object", "{\n \"study\": [] }", "'f' line 2: 'study' must be an object" },
    { "unknown", "{ \"study\": {\n \"max_trial\": 5 } }",
      "'f' line 2: 'study.max_trial' is not known: did you mean 'max_trials'?" },
    { "near what others read", "{ \"study\": { \"othr\": 5 } }", "did you mean 'other'?" },
    { "near nothing", "{ \"study\": { \"zzz\": 5 } }", "'study.zzz' is not known: see" },
    { "what is for the command line alone", "{ \"study\": { \"dry_run\": true } }", "'study.dry_run' is not known" },
    { "text for a number", "{ \"study\": { \"max_trials\": \"5\" } }", "'study.max_trials' must be a whole number" },
    { "a number for a text", "{ \"study\": { \"name\": 5 } }", "'study.name' must be a string" },
    { "a number for a flag", "{ \"study\": { \"on\": 1 } }", "'study.on' must be true or false" },
    { "null", "{ \"study\": { \"tie_margin\": null } }", "'study.tie_margin' must be a number" },
    { "out of bounds", "{ \"study\": { \"tie_margin\": 2 } }",
      "'study.tie_margin' must be a number from 0 to 1, not '2'" },
    { "beyond what a double counts", "{ \"study\": { \"max_trials\": 9223372036854775807 } }",
      "must be a whole number from 0 to 1000, not" },
    { "no choice", "{ \"study\": { \"mode\": \"quick\" } }", "'study.mode' must be one of slow, fast, not 'quick'" },
};

static void test_a_section(void **state)
{
    (void)state;
    static const char *const others[] = { "other", NULL };
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        struct target t = { 0 };
        struct opt_set set = set_of(&t);
        AUTO_JSON_DOC struct json_doc d = { 0 };
        struct err e = { 0 };
        assert_int_equal(json_doc_parse(&d, "f", sections[i].text, strlen(sections[i].text), &e), 0);
        int rc = opt_read_section(&set, &d, "study", others, &e);
        if (rc != (sections[i].want ? -EINVAL : 0) || (sections[i].want && !strstr(e.text, sections[i].want)))
            fail_msg("%s: got %d, '%s', want '%s'", sections[i].name, rc, e.text, sections[i].want);
        opt_done(&set);
    }
}

static void test_a_word_for_a_number_reads_back_as_that_number(void **state)
{
    (void)state;
    static const struct {
        const char *args[2];
        int64_t want;
        const char *json;
    } cases[] = {
        { { NULL }, 0, "\"parallel\": \"auto\"" },
        { { "--parallel=3" }, 3, "\"parallel\": 3" },
        { { "--parallel=auto" }, 0, "\"parallel\": \"auto\"" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct target t = { .parallel = i == 2 ? 7 : 0 };
        struct opt_set set = set_of(&t);
        struct err e = { 0 };
        assert_int_equal(parse(&t, cases[i].args, NULL, &e), 0);
        assert_int_equal(t.parallel, cases[i].want);
        AUTO_JSON json_t *root = json_object();
        AUTO_BUF struct buf b = BUF_INIT;
        assert_int_equal(opt_to_json(&set, root), 0);
        json_put(&b, root, JSON_STYLE_COMPACT);
        if (!strstr(buf_text(&b), cases[i].json))
            fail_msg("case %zu: got %s, want %s", i, buf_text(&b), cases[i].json);
        opt_done(&set);
    }
}

static void test_what_was_written_reads_back(void **state)
{
    (void)state;
    struct target t = { 0 }, back = { 0 };
    struct opt_set set = set_of(&t), again = set_of(&back);
    static const char *const args[] = { "--max-trials=7", "--tie-margin=0.1", "--name=ü \"x\"", "--bigdl-conf=f",
                                        NULL };
    struct err e = { 0 };
    assert_int_equal(opt_presets(&set, &e), 0);
    assert_int_equal(parse(&t, args, NULL, &e), 0);
    AUTO_JSON json_t *root = json_object();
    assert_int_equal(opt_to_json(&set, root), 0);
    assert_null(json_object_get(root, "dry_run"));
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_JSON_DOC struct json_doc d = { 0 };
    static const char *const others[] = { "study", NULL };
    json_put(&b, root, JSON_STYLE_INDENT);
    assert_int_equal(json_doc_parse(&d, "f", b.data, b.len, &e), 0);
    assert_int_equal(opt_read_section(&again, &d, "study", NULL, &e), 0);
    assert_int_equal(opt_read_section(&again, &d, "", others, &e), 0);
    assert_true(back.trials == 7 && back.margin == 0.1 && back.on);
    assert_string_equal(back.name, t.name);
    assert_string_equal(back.bigdl_conf, "f");
    opt_done(&set);
    opt_done(&again);
}

static void test_help(void **state)
{
    (void)state;
    struct target t = { 0 };
    struct opt_set set = set_of(&t);
    AUTO_BUF struct buf b = BUF_INIT;
    opt_help(&b, &set);
    assert_non_null(strstr(buf_text(&b), "  --max-trials N             at most (default 20)\n"));
    assert_non_null(strstr(buf_text(&b), "of going: slow, fast (default slow)\n"));
    assert_non_null(strstr(buf_text(&b), "  --bigdl-conf FILE"));
}

static void test_memory_that_runs_out(void **state)
{
    (void)state;
    static const char *const args[] = { "--name", "x", "--mode=fast", "word", "--name", "y", NULL };
    AUTO_STRV struct strv argv = STRV_INIT;
    strv_add(&argv, "run");
    for (size_t i = 0; args[i]; i++)
        strv_add(&argv, args[i]);
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        assert_true(nth < 64);
        struct target t = { 0 };
        struct opt_set set = set_of(&t);
        AUTO_STRV struct strv words = STRV_INIT;
        struct err e;
        fault_arm(FAULT_ALLOC, nth);
        int rc = opt_presets(&set, &e);
        if (rc == 0)
            rc = opt_parse((int)argv.n, argv.v, &set, 1, &words, &e);
        struck = fault_disarm();
        assert_true(rc == 0 || (struck && rc == -ENOMEM)); /* the list of choices is made for an error alone */
        if (rc == 0) {
            assert_string_equal(t.name, "y");
            assert_string_equal(t.mode, "fast");
            assert_string_equal(words.v[0], "word");
        }
        opt_done(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_a_command_line),
        cmocka_unit_test(test_a_wrong_command_line),
        cmocka_unit_test(test_a_section),
        cmocka_unit_test(test_a_word_for_a_number_reads_back_as_that_number),
        cmocka_unit_test(test_what_was_written_reads_back),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
