/* What an MLflow server is told, within what it takes, and what its answers mean. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/mlflow_words.h"
#include "tests/fault.h"

static void expect_json(const struct buf *got, const char *want)
{
    AUTO_JSON json_t *a = json_loads(buf_text(got), JSON_REJECT_DUPLICATES, NULL);
    AUTO_JSON json_t *b = json_loads(want, 0, NULL);
    assert_non_null(b);
    if (!a || !json_equal(a, b))
        fail_msg("got %s, want %s", buf_text(got), want);
}

static void test_requests_are_as_the_server_has_them(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    const struct mlflow_pair tags[] = { { "mlflow.parentRunId", "abc" }, { "a b", "\"x\"\n" } };
    mlflow_put_experiment(&b, "mine");
    expect_json(&b, "{\"name\": \"mine\"}");
    buf_clear(&b);
    mlflow_put_run(&b, "7", "s/1", 1700000000123, tags, 2);
    expect_json(
        &b,
        "{\"experiment_id\": \"7\", \"run_name\": \"s/1\", \"start_time\": 1700000000123, \"tags\":"
        "[{\"key\": \"mlflow.parentRunId\", \"value\": \"abc\"}, {\"key\": \"a b\", \"value\": \"\\\"x\\\"\\n\"}]}");
    buf_clear(&b);
    mlflow_put_search(&b, "7", "pipetune.run", "ab-1");
    expect_json(
        &b, "{\"experiment_ids\": [\"7\"], \"filter\": \"tags.`pipetune.run` = 'ab-1'\", \"run_view_type\": \"ALL\","
            "\"max_results\": 1, \"order_by\": [\"attributes.start_time ASC\"]}");
    buf_clear(&b);
    mlflow_put_status(&b, "r", "FINISHED", 5);
    expect_json(&b, "{\"run_id\": \"r\", \"status\": \"FINISHED\", \"end_time\": 5}");
    buf_clear(&b);
    mlflow_put_status(&b, "r", "RUNNING", 0);
    expect_json(&b, "{\"run_id\": \"r\", \"status\": \"RUNNING\"}");
}

static void test_a_batch_leaves_out_what_is_no_number(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    const struct mlflow_metric metrics[] = { { "loss", NAN, 1, 1 }, { "loss", 0.1, 2, 3 }, { "f1", INFINITY, 1, 1 } };
    const struct mlflow_pair params[] = { { "lr", "0.1" } };
    const struct mlflow_batch batch = { metrics, 3, params, NULL, 1, 0 };
    mlflow_put_batch(&b, "r", &batch);
    expect_json(&b,
                "{\"run_id\": \"r\", \"metrics\": [{\"key\": \"loss\", \"value\": 0.1, \"timestamp\": 2, \"step\": 3}],"
                "\"params\": [{\"key\": \"lr\", \"value\": \"0.1\"}], \"tags\": []}");
}

static void test_keys_are_what_the_server_takes(void **state)
{
    static const struct {
        const char *name, *want;
    } cases[] = {
        { "accuracy", "accuracy" },
        { "val/top-1 acc.", "val/top-1 acc." },
        { "lr:0", "lr_0" },
        { "\xC3\xA9psilon", "__psilon" },
        { "", "_" },
        { "/etc", "_etc" },
        { "a//b", "a__b" },
        { "../x", "___x" },
        { "a/..", "a___" },
        { "a/", "a_" },
        { ".", "_" },
        { "..b", "..b" },
        { "...", "..." },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char key[MLFLOW_KEY_MAX + 1];
        mlflow_key(key, cases[i].name);
        if (strcmp(key, cases[i].want) != 0)
            fail_msg("'%s': got '%s', want '%s'", cases[i].name, key, cases[i].want);
    }
    char longer[400], key[MLFLOW_KEY_MAX + 1];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    mlflow_key(key, longer);
    assert_int_equal(strlen(key), MLFLOW_KEY_MAX);
}

/* However texts are escaped, what is allowed of each kind is one body. */
static void test_the_largest_batch_fits(void **state)
{
    enum { DECISIONS = 50 };
    static struct mlflow_metric metrics[MLFLOW_METRICS_MAX];
    static struct mlflow_pair params[MLFLOW_PARAMS_MAX];
    static char wild[8001], key[301];
    (void)state;
    memset(wild, '\x01', sizeof wild - 1);
    memset(key, 'k', sizeof key - 1);
    for (size_t i = 0; i < MLFLOW_METRICS_MAX; i++)
        metrics[i] = (struct mlflow_metric){ key, -1.2345678901234567e-300, 1700000000123, 1000000 };
    for (size_t i = 0; i < MLFLOW_PARAMS_MAX; i++)
        params[i] = (struct mlflow_pair){ key, wild };
    const struct mlflow_batch values = { metrics, MLFLOW_METRICS_MAX, NULL, NULL, 0, 0 };
    const struct mlflow_batch settings = { metrics, 0, params, NULL, MLFLOW_PARAMS_MAX, 0 };
    const struct mlflow_batch decisions = { metrics, DECISIONS * 10, NULL, params, 0, DECISIONS };
    const struct mlflow_batch *all[] = { &values, &settings, &decisions };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        mlflow_put_batch(&b, "r", all[i]);
        assert_true(!b.failed && b.len < MLFLOW_BODY_MAX);
    }
}

static void test_texts_are_cut_between_characters(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    static char text[MLFLOW_TAG_MAX + 8];
    memset(text, 'x', MLFLOW_TAG_MAX - 1);
    memcpy(text + MLFLOW_TAG_MAX - 1, "\xC3\xA9", 3);
    const struct mlflow_pair tag = { "t", text };
    mlflow_put_run(&b, "7", "s", 1, &tag, 1);
    AUTO_JSON json_t *j = json_loads(buf_text(&b), 0, NULL);
    json_t *first = json_array_get(json_object_get(j, "tags"), 0);
    assert_int_equal(json_string_length(json_object_get(first, "value")), MLFLOW_TAG_MAX - 1);
}

static void test_what_answers_mean(void **state)
{
    static const struct {
        const char *name;
        int status;
        const char *body;
        enum mlflow_kind kind;
        const char *text;
    } cases[] = {
        { "done", 200, "{}", MLFLOW_DONE, "" },
        { "a page of something else", 200, "<html>", MLFLOW_LATER, "is it an MLflow server?" },
        { "half an answer", 200, "{\"run\":", MLFLOW_LATER, "no JSON" },
        { "there is none", 404, "{\"error_code\":\"RESOURCE_DOES_NOT_EXIST\",\"message\":\"No 'x'\"}", MLFLOW_ABSENT,
          "No 'x'" },
        { "there is one", 400, "{\"error_code\":\"RESOURCE_ALREADY_EXISTS\"}", MLFLOW_THERE,
          "RESOURCE_ALREADY_EXISTS" },
        { "it is wrong", 400, "{\"error_code\":\"INVALID_PARAMETER_VALUE\",\"message\":\"a\\nb\"}", MLFLOW_REFUSED,
          "HTTP 400: a" },
        { "too many", 429, "", MLFLOW_LATER, "HTTP 429" },
        { "broken", 500, "{\"error_code\":\"INTERNAL_ERROR\"}", MLFLOW_LATER, "HTTP 500" },
        { "starting", 503, "no", MLFLOW_LATER, "HTTP 503" },
        { "who are you", 401, "no", MLFLOW_LATER, "HTTP 401" },
        { "you may not", 403, "{\"error_code\":\"PERMISSION_DENIED\"}", MLFLOW_LATER, "HTTP 403" },
        { "no such path", 404, "no", MLFLOW_REFUSED, "HTTP 404" },
        { "busy", 400, "{\"error_code\":\"TEMPORARILY_UNAVAILABLE\"}", MLFLOW_LATER, "HTTP 400" },
        { "moved", 302, "", MLFLOW_REFUSED, "HTTP 302" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct mlflow_answer a;
        mlflow_answer(&a, cases[i].status, cases[i].body, strlen(cases[i].body));
        if (a.kind != cases[i].kind || !strstr(a.text, cases[i].text))
            fail_msg("%s: got %d '%s'", cases[i].name, a.kind, a.text);
        mlflow_answer_done(&a);
    }
}

static void test_ids_are_such_as_may_go_into_a_url(void **state)
{
    static const struct {
        const char *body;
        bool (*read)(const json_t *, char *);
        const char *want; /* NULL: none */
    } cases[] = {
        { "{\"experiment_id\": \"7\"}", mlflow_experiment_id, "7" },
        { "{\"experiment\": {\"experiment_id\": \"12\"}}", mlflow_experiment_id, "12" },
        { "{\"experiment\": {}}", mlflow_experiment_id, NULL },
        { "{\"run\": {\"info\": {\"run_id\": \"0af-3_x\"}}}", mlflow_run_id, "0af-3_x" },
        { "{\"run\": {\"info\": {\"run_id\": \"a&b\"}}}", mlflow_run_id, NULL },
        { "{\"run\": {\"info\": {\"run_id\": 7}}}", mlflow_run_id, NULL },
        { "{\"run\": {\"info\": {\"run_id\": \"\"}}}", mlflow_run_id, NULL },
        { "{\"runs\": [{\"info\": {\"run_id\": \"r\"}}]}", mlflow_found_id, "r" },
        { "{\"runs\": []}", mlflow_found_id, NULL },
        { "{}", mlflow_found_id, NULL },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char id[MLFLOW_ID_MAX] = "";
        AUTO_JSON json_t *body = json_loads(cases[i].body, 0, NULL);
        bool found = cases[i].read(body, id);
        if (found != (cases[i].want != NULL) || (found && strcmp(id, cases[i].want) != 0))
            fail_msg("%s: got %s '%s'", cases[i].body, found ? "one" : "none", id);
    }
}

static void put_point(void *ctx, int64_t step, int64_t at_ms)
{
    buf_printf(ctx, "%lld@%lld ", (long long)step, (long long)at_ms);
}

static void test_a_history_is_read_page_by_page(void **state)
{
    (void)state;
    AUTO_BUF struct buf got = BUF_INIT;
    AUTO_JSON json_t *body =
        json_loads("{\"metrics\": [{\"key\": \"a\", \"value\": 1, \"step\": 3, \"timestamp\": 99},"
                   "{\"step\": \"4\", \"timestamp\": \"1700000000123\"}], \"next_page_token\": \"n\"}",
                   0, NULL);
    assert_string_equal(mlflow_history(body, put_point, &got), "n");
    assert_string_equal(buf_text(&got), "3@99 4@1700000000123 ");
    AUTO_JSON json_t *last = json_loads("{}", 0, NULL);
    assert_string_equal(mlflow_history(last, put_point, &got), "");
}

static void test_a_lack_of_memory_is_seen(void **state)
{
    const struct mlflow_pair tag = { "a", "b" };
    bool failed = true;
    (void)state;
    for (unsigned nth = 1; failed; nth++) {
        AUTO_BUF struct buf b = BUF_INIT;
        assert_true(nth < 32);
        fault_arm(FAULT_ALLOC, nth);
        mlflow_put_run(&b, "7", "s", 1, &tag, 1);
        bool struck = fault_disarm();
        failed = b.failed;
        assert_true(failed == struck);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_as_the_server_has_them),
        cmocka_unit_test(test_a_batch_leaves_out_what_is_no_number),
        cmocka_unit_test(test_keys_are_what_the_server_takes),
        cmocka_unit_test(test_the_largest_batch_fits),
        cmocka_unit_test(test_texts_are_cut_between_characters),
        cmocka_unit_test(test_what_answers_mean),
        cmocka_unit_test(test_ids_are_such_as_may_go_into_a_url),
        cmocka_unit_test(test_a_history_is_read_page_by_page),
        cmocka_unit_test(test_a_lack_of_memory_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
