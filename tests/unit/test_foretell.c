/* What a dry run says that a trial is launched with: the policy's answer while nothing has been learnt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "live/foretell.h"
#include "tests/fault.h"

static const char bigdl[] =
    "{ \"master\": \"%s\", \"conf\": \"/a/app.py\", \"total_executor_cores\": 4, \"executor_cores\": 4,\n"
    "  \"arguments\": { \"batch_size\": [\"-b\", \"{}\"], \"epochs\": [\"-e\", \"{}\"] } }\n";

static const char config[] = "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"s\", \"parallel\": %s },\n"
                             "  \"tuning\": { \"policy\": \"%s\" }, \"systemParameters\": { %s },\n"
                             "  \"hyperParameters\": { \"batch_size\": [64, 128] } }\n";

#define ALL "\"cores\": [4, 1], \"memory\": [1, 2], \"executors\": [1, 2], \"spark.x\": [\"b\", \"c\", \"a\"]"

static const struct {
    const char *name, *policy, *master, *parallel, *knobs, *entered;
    uint64_t trials;
    const char *want;
} cases[] = {
    { "memory is a ladder, the others begin with what was written first", "pipetune", "spark://x:1", "1", ALL, NULL, 9,
      "{\"cores\": 4, \"memory\": 2, \"executors\": 1, \"spark.x\": \"b\"}" },
    { "a memory that was entered is kept to", "pipetune", "spark://x:1", "1", ALL, "memory=1", 9,
      "{\"cores\": 4, \"memory\": 1, \"executors\": 1, \"spark.x\": \"b\"}" },
    { "other values that were entered, too", "pipetune", "spark://x:1", "1", ALL, "spark.x=a,executors=2", 9,
      "{\"cores\": 4, \"memory\": 2, \"executors\": 2, \"spark.x\": \"a\"}" },
    { "while enough trials wait to be packed memory has a price", "pipetune", "local[*]", "\"auto\"",
      "\"cores\": [4, 1], \"memory\": [1, 2]", NULL, 9, "{\"cores\": 4, \"memory\": 1}" },
    { "… but not of the last one", "pipetune", "local[*]", "\"auto\"", "\"cores\": [4, 1], \"memory\": [1, 2]", NULL, 1,
      "{\"cores\": 4, \"memory\": 2}" },
    { "… nor where trials run one after the other", "pipetune", "local[*]", "1",
      "\"cores\": [4, 1], \"memory\": [1, 2]", NULL, 9, "{\"cores\": 4, \"memory\": 2}" },
    { "what never changes is launched as it is written", "v1", "spark://x:1", "1", ALL, NULL, 9,
      "{\"cores\": 4, \"memory\": 1, \"executors\": 1, \"spark.x\": \"b\"}" },
    { "the published policy begins with the default", "paper", "spark://x:1", "1", ALL, NULL, 9,
      "{\"cores\": 4, \"memory\": 1, \"executors\": 1, \"spark.x\": \"b\"}" },
};

static int nothing(void *ctx, struct config *cfg, struct err *e)
{
    (void)ctx, (void)cfg, (void)e;
    return 0;
}

static void write_in(const char *dir, const char *name, const char *text)
{
    AUTO_FREE char *path = io_join(dir, name);
    assert_int_equal(io_write_atomic(path, text, strlen(text), 0666, NULL), 0);
}

static void forget(const char *dir, const char *name)
{
    AUTO_FREE char *path = io_join(dir, name);
    (void)unlink(path);
}

static void load(struct plan *p, size_t i)
{
    struct err e = { 0 };
    char dir[] = "/tmp/pipetune-foretell-XXXXXX";
    assert_non_null(mkdtemp(dir));
    AUTO_FREE char *app = NULL;
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&app, bigdl, cases[i].master) > 0);
    assert_true(asprintf(&text, config, cases[i].parallel, cases[i].policy, cases[i].knobs) > 0);
    write_in(dir, "bigdl.json", app);
    write_in(dir, "c.conf", text);
    AUTO_FREE char *path = io_join(dir, "c.conf");
    int rc = plan_load(p, path, cases[i].entered, nothing, NULL, &e);
    forget(dir, "bigdl.json");
    forget(dir, "c.conf");
    assert_int_equal(rmdir(dir), 0);
    if (rc < 0)
        fail_msg("%s: %s", cases[i].name, e.text);
    p->offer = (struct offer){ .cores = 4, .memory_gb = 8 };
    assert_int_equal(choices_make(&p->choices, &p->space, &p->offer, &p->requested, &e), 0);
}

static void test_what_a_trial_will_be_launched_with(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct plan p;
        struct setting got;
        struct err e = { 0 };
        const struct point pt = { .x = { 0 } };
        load(&p, i);
        assert_int_equal(foretell_setting(&p, &pt, cases[i].trials, &got, &e), 0);
        AUTO_JSON json_t *j = setting_json(&p.space, &got);
        AUTO_FREE char *text = json_text(j);
        if (strcmp(text, cases[i].want) != 0)
            fail_msg("%s: got %s, want %s", cases[i].name, text, cases[i].want);
        plan_done(&p);
    }
}

static void test_nothing_is_left_whatever_allocation_fails(void **state)
{
    (void)state;
    struct plan p;
    load(&p, 0);
    int rc = -1;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct setting got;
        struct err e = { 0 };
        const struct point pt = { .x = { 0 } };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = foretell_setting(&p, &pt, 9, &got, &e);
        (void)fault_disarm();
        assert_true(rc == 0 || e.code == rc);
    }
    plan_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_trial_will_be_launched_with),
        cmocka_unit_test(test_nothing_is_left_whatever_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
