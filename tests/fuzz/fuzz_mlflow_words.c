/* An answer of an MLflow server, of any status: a verdict, a line that is fit to be seen, and ids that are fit for a URL. Input: two bytes of
 * status, then the body; the body is a key, too. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/mlflow_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_id(bool found, const char *id)
{
    for (const char *c = id; found && *c; c++)
        check(isalnum((unsigned char)*c) || *c == '-' || *c == '_');
    check(!found || (*id && strlen(id) < MLFLOW_ID_MAX));
}

static void count(void *ctx, int64_t step, int64_t at_ms)
{
    (void)step, (void)at_ms;
    ++*(size_t *)ctx;
}

static void check_body(const json_t *body)
{
    static bool (*const ids[])(const json_t *, char *) = { mlflow_experiment_id, mlflow_run_id, mlflow_found_id };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char id[MLFLOW_ID_MAX] = "";
        check_id(ids[i](body, id), id);
    }
    size_t n = 0;
    check(mlflow_history(body, count, &n) != NULL);
    check(n == json_array_size(json_object_get(body, "metrics")));
}

static void check_key(const char *name)
{
    char key[MLFLOW_KEY_MAX + 1], again[MLFLOW_KEY_MAX + 1];
    mlflow_key(key, name);
    mlflow_key(again, key);
    check(*key && strcmp(key, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mlflow_answer a;
    if (size < 2)
        return 0;
    int status = data[0] * 256 + data[1];
    mlflow_answer(&a, status, (const char *)data + 2, size - 2);
    check(a.kind <= MLFLOW_REFUSED && (a.kind != MLFLOW_DONE || (status >= 200 && status < 300 && a.body)));
    for (const char *c = a.text; *c; c++)
        check((unsigned char)*c >= 32 && *c != 127);
    check_body(a.body);
    mlflow_answer_done(&a);
    char *name = strndup((const char *)data + 2, size - 2);
    check(name != NULL);
    check_key(name);
    free(name);
    return 0;
}
