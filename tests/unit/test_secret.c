#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/own.h"
#include "core/secret.h"
#include "tests/fault.h"

static char pin[] = "pin*", db_key[] = "DB-key", tokens[] = "max_tokens", option[] = "--n-tokens";
static char *named_words[] = { pin, db_key, NULL }, *tuned_words[] = { tokens, option, NULL };
static const struct strv named = { .v = named_words, .n = 2 }, tuned = { .v = tuned_words, .n = 2 };
static const struct secret_rules rules = { .named = &named, .tuned = &tuned };

static const struct {
    const char *name;
    bool secret;
} names[] = {
    { "spark.hadoop.fs.s3a.secret.key", true },
    { "spark.hadoop.fs.s3a.access.key", true },
    { "accessKey", true },
    { "AWS_ACCESS_KEY_ID", true },
    { "dbPassword", true },
    { "--api-TOKEN", true },
    { "fs.azure.account.key", false },
    { "spark.ui.enabled", false },
    { "folder", false },
    { "", false },
    { "pinCode", true },
    { "spin", false },
    { "--db_KEY", true },
    { "max_tokens", false },
    { "--max-tokens", false },
    { "--n-tokens", false },
    { "min_tokens", true },
};

static void test_names_of_secrets(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (secret_is(&rules, names[i].name) != names[i].secret)
            fail_msg("'%s': got %d", names[i].name, !names[i].secret);
    static char all[] = "*", *words[] = { all, NULL };
    const struct strv every = { .v = words, .n = 1 };
    const struct secret_rules harsh = { .named = &every, .tuned = &tuned };
    assert_true(secret_is(&harsh, "max_tokens")); /* who names it means it */
    assert_false(secret_is(&(struct secret_rules){ 0 }, "folder"));
}

static const struct {
    const char *text, *want;
} texts[] = {
    { "", "" },
    { "plain", "plain" },
    { "spark.x.password=hunter2", "spark.x.password=***" },
    { "spark.x.password=", "spark.x.password=" },
    { "a=b=c", "a=b=c" },
    { "spark.driver.extraJavaOptions=-Dx=1 -Dstore.password=hunter2 -Dy",
      "spark.driver.extraJavaOptions=-Dx=1 -Dstore.password=*** -Dy" },
    { "jdbc:pg://me:hunter2@h/db", "jdbc:pg://me:***@h/db" },
    { "http://me:a:b@c@h:80/x?y=z http://h:80/a@b", "http://me:***@h:80/x?y=z http://h:80/a@b" },
    { "http://h:8080/json/", "http://h:8080/json/" },
    { "http://me@h", "http://me@h" },
    { "http://h:80 http://me:hunter2@h and http://:x@h", "http://h:80 http://me:***@h and http://:***@h" },
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        secret_put(&rules, texts[i].text, &b);
        assert_string_equal(buf_text(&b), texts[i].want);
    }
}

static void test_commands(void **state)
{
    (void)state;
    static const char *const words[] = {
        "spark-submit", "--conf", "spark.a.token=hunter2", "--password",   "hunter2", "--token", "--flag", "-p=1",
        "--n-tokens",   "64",     "--pin-code=9876",       "--dbPassword", ""
    };
    static const char *const want[] = {
        "spark-submit", "--conf", "spark.a.token=***", "--password",   "***", "--token", "--flag", "-p=1",
        "--n-tokens",   "64",     "--pin-code=***",    "--dbPassword", "***"
    };
    AUTO_STRV struct strv argv = STRV_INIT;
    AUTO_STRV struct strv got = STRV_INIT;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        strv_add(&argv, words[i]);
    secret_put_argv(&rules, &argv, &got);
    assert_int_equal(got.n, ARRAY_LEN(want));
    for (size_t i = 0; i < got.n; i++)
        assert_string_equal(got.v[i], want[i]);
}

#define CONFIG                                                                                                         \
    "{\"hyperParameters\":{\"max_tokens\":[64,128]},\"systemParameters\":{\"spark.a.password\":[\"hunter2\"]},"        \
    "\"bigdl\":{\"extras\":{\"dbPassword\":\"hunter2\",\"pin\":9876,\"token\":true,\"user\":\"me\"},"                  \
    "\"words\":[\"--password\",\"hunter2\",\"--token=x\",\"y\"],\"master_ui\":\"http://me:hunter2@h\"}}"
#define BARE                                                                                                           \
    "{\"hyperParameters\":{\"max_tokens\":[64,128]},\"systemParameters\":{\"spark.a.password\":[\"***\"]},"            \
    "\"bigdl\":{\"extras\":{\"dbPassword\":\"***\",\"pin\":\"***\",\"token\":true,\"user\":\"me\"},"                   \
    "\"words\":[\"--password\",\"***\",\"--token=***\",\"y\"],\"master_ui\":\"http://me:***@h\"}}"

static void test_a_config(void **state)
{
    (void)state;
    static const char *const paths[] = { "systemParameters.spark.a.password.0",
                                         "bigdl.extras.dbPassword",
                                         "bigdl.extras.pin",
                                         "bigdl.words.1",
                                         "bigdl.words.2",
                                         "bigdl.master_ui" };
    AUTO_JSON json_t *j = json_loads(CONFIG, 0, NULL);
    AUTO_JSON json_t *want = json_loads(BARE, 0, NULL);
    AUTO_JSON json_t *sums = json_object();
    AUTO_JSON json_t *others = json_object();
    AUTO_JSON json_t *got = secret_masked(&rules, j, "salt", sums);
    AUTO_JSON json_t *same = secret_masked(&rules, j, "pepper", others);
    assert_true(json_equal(got, want));
    assert_true(json_equal(same, want));
    assert_int_equal(json_object_size(sums), ARRAY_LEN(paths));
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        const char *sum = json_string_value(json_object_get(sums, paths[i]));
        if (!sum || strlen(sum) != 32 || strcmp(sum, json_string_value(json_object_get(others, paths[i]))) == 0)
            fail_msg("%s: %s", paths[i], sum ? sum : "none");
    }
    json_object_set_new(json_object_get(json_object_get(j, "bigdl"), "extras"), "dbPassword", json_string("hunter3"));
    AUTO_JSON json_t *changed = json_object();
    AUTO_JSON json_t *again = secret_masked(&rules, j, "salt", changed);
    assert_true(json_equal(again, want));
    assert_string_not_equal(json_string_value(json_object_get(sums, paths[1])),
                            json_string_value(json_object_get(changed, paths[1])));
    assert_string_equal(json_string_value(json_object_get(sums, paths[2])),
                        json_string_value(json_object_get(changed, paths[2])));
}

static void test_values_are_hidden_wherever_they_stand(void **state)
{
    (void)state;
    static char a[] = "hunter2", b[] = "hunter2-long", c[] = "64", *words[] = { a, b, c, NULL };
    const struct strv values = { .v = words, .n = 3 };
    AUTO_FREE char *got = secret_hide(&values, "error: --password hunter2-long, hunter2: bad; 64 of 64");
    assert_string_equal(got, "error: --password ***, ***: bad; 64 of 64");
    AUTO_FREE char *none = secret_hide(&values, "");
    assert_string_equal(none, "");
}

static void test_memory_that_runs_out(void **state)
{
    (void)state;
    AUTO_JSON json_t *j = json_loads(CONFIG, 0, NULL);
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        assert_true(nth < 256);
        AUTO_JSON json_t *sums = json_object();
        fault_arm(FAULT_ALLOC, nth);
        AUTO_JSON json_t *got = secret_masked(&rules, j, "salt", sums);
        struck = fault_disarm();
        assert_true(got || struck);
        AUTO_FREE char *text = got ? json_dumps(got, 0) : NULL;
        assert_true(!text || !strstr(text, "hunter2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_secrets),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_a_config),
        cmocka_unit_test(test_memory_that_runs_out),
        cmocka_unit_test(test_values_are_hidden_wherever_they_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
