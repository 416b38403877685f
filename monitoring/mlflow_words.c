#include "monitoring/mlflow_words.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"

/* --- requests --- */

/* The server takes these, and no path that goes somewhere else than it says. */
static bool is_plain_path(const char *key)
{
    size_t n = strlen(key);
    if (!n || key[0] == '/' || key[n - 1] == '/' || strstr(key, "//"))
        return false;
    for (const char *at = key; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        size_t dots = strspn(at, ".");
        if (dots > 0 && dots <= 2 && (at[dots] == '/' || !at[dots]))
            return false;
    }
    return true;
}

void mlflow_key(char out[MLFLOW_KEY_MAX + 1], const char *name)
{
    size_t n = 0;
    for (; name[n] && n < MLFLOW_KEY_MAX; n++)
        out[n] = isalnum((unsigned char)name[n]) || strchr("_-./ ", name[n]) ? name[n] : '_';
    out[n] = '\0';
    if (!n)
        (void)snprintf(out, MLFLOW_KEY_MAX + 1, "_");
    if (is_plain_path(out))
        return;
    for (size_t i = 0; out[i]; i++)
        if (out[i] == '/' || out[i] == '.')
            out[i] = '_';
}

/* At most so many bytes of it, whole characters. */
static void put_text(struct buf *b, const char *text, size_t most)
{
    size_t n = strnlen(text, most + 1);
    for (n = n > most ? most : n; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80;)
        n--;
    AUTO_FREE char *cut = strndup(text, n);
    b->failed |= !cut;
    json_put_string(b, cut ? cut : "");
}

static void put_member(struct buf *b, const char *before, const char *key, const char *value, size_t most)
{
    buf_puts(b, before);
    json_put_string(b, key);
    buf_puts(b, ": ");
    put_text(b, value, most);
}

static void put_pairs(struct buf *b, const char *name, const struct mlflow_pair *v, size_t n, size_t most)
{
    buf_printf(b, ", \"%s\": [", name);
    for (size_t i = 0; i < n; i++) {
        char key[MLFLOW_KEY_MAX + 1];
        mlflow_key(key, v[i].key);
        buf_puts(b, i ? ", {" : "{");
        put_member(b, "", "key", key, MLFLOW_KEY_MAX);
        put_member(b, ", ", "value", v[i].value, most);
        buf_putc(b, '}');
    }
    buf_putc(b, ']');
}

void mlflow_put_experiment(struct buf *b, const char *name)
{
    put_member(b, "{", "name", name, MLFLOW_TAG_MAX);
    buf_putc(b, '}');
}

void mlflow_put_run(struct buf *b, const char *experiment, const char *name, int64_t start_ms,
                    const struct mlflow_pair *tags, size_t n_tags)
{
    put_member(b, "{", "experiment_id", experiment, MLFLOW_ID_MAX);
    put_member(b, ", ", "run_name", name, MLFLOW_KEY_MAX);
    buf_printf(b, ", \"start_time\": %lld", (long long)start_ms);
    put_pairs(b, "tags", tags, n_tags, MLFLOW_TAG_MAX);
    buf_putc(b, '}');
}

void mlflow_put_search(struct buf *b, const char *experiment, const char *tag, const char *value)
{
    AUTO_BUF struct buf filter = BUF_INIT;
    buf_printf(&filter, "tags.`%s` = '%s'", tag, value);
    buf_puts(b, "{\"experiment_ids\": [");
    json_put_string(b, experiment);
    put_member(b, "], ", "filter", buf_text(&filter), MLFLOW_TAG_MAX);
    buf_puts(b, ", \"run_view_type\": \"ALL\", \"max_results\": 1, \"order_by\": [\"attributes.start_time ASC\"]}");
    b->failed |= filter.failed;
}

static void put_metric(struct buf *b, const struct mlflow_metric *m)
{
    char key[MLFLOW_KEY_MAX + 1], number[NUM_TEXT_MAX];
    mlflow_key(key, m->key);
    put_member(b, "{", "key", key, MLFLOW_KEY_MAX);
    buf_printf(b, ", \"value\": %s, \"timestamp\": %lld, \"step\": %lld}", num_print(m->value, number),
               (long long)m->at_ms, (long long)m->step);
}

void mlflow_put_batch(struct buf *b, const char *run, const struct mlflow_batch *batch)
{
    put_member(b, "{", "run_id", run, MLFLOW_ID_MAX);
    buf_puts(b, ", \"metrics\": [");
    bool any = false;
    for (size_t i = 0; i < batch->n_metrics; i++) {
        if (!isfinite(batch->metrics[i].value))
            continue;
        buf_puts(b, any ? ", " : "");
        put_metric(b, &batch->metrics[i]);
        any = true;
    }
    buf_putc(b, ']');
    put_pairs(b, "params", batch->params, batch->n_params, MLFLOW_PARAM_MAX);
    put_pairs(b, "tags", batch->tags, batch->n_tags, MLFLOW_TAG_MAX);
    buf_putc(b, '}');
}

void mlflow_put_status(struct buf *b, const char *run, const char *status, int64_t end_ms)
{
    put_member(b, "{", "run_id", run, MLFLOW_ID_MAX);
    put_member(b, ", ", "status", status, MLFLOW_KEY_MAX);
    if (end_ms)
        buf_printf(b, ", \"end_time\": %lld", (long long)end_ms);
    buf_putc(b, '}');
}

/* --- answers --- */

void mlflow_answer_done(struct mlflow_answer *a)
{
    json_decref(a->body);
    a->body = NULL;
}

static enum mlflow_kind kind_of(int status, const char *code)
{
    static const struct {
        const char *code;
        enum mlflow_kind kind;
    } codes[] = {
        { "RESOURCE_DOES_NOT_EXIST", MLFLOW_ABSENT }, { "RESOURCE_ALREADY_EXISTS", MLFLOW_THERE },
        { "TEMPORARILY_UNAVAILABLE", MLFLOW_LATER },  { "REQUEST_LIMIT_EXCEEDED", MLFLOW_LATER },
        { "DEADLINE_EXCEEDED", MLFLOW_LATER },
    };
    if (status >= 200 && status < 300)
        return MLFLOW_DONE;
    for (size_t i = 0; code && i < ARRAY_LEN(codes); i++)
        if (strcmp(code, codes[i].code) == 0)
            return codes[i].kind;
    bool may_be_mended = status == 401 || status == 403 || status == 408 || status == 429;
    return status >= 500 || may_be_mended ? MLFLOW_LATER : MLFLOW_REFUSED;
}

void mlflow_answer(struct mlflow_answer *out, int status, const char *body, size_t len)
{
    json_t *j = json_loadb(body, len, 0, NULL);
    if (!json_is_object(j)) {
        json_decref(j);
        j = NULL;
    }
    const char *code = json_string_value(json_object_get(j, "error_code"));
    const char *message = json_string_value(json_object_get(j, "message"));
    *out = (struct mlflow_answer){ .kind = kind_of(status, code), .body = j };
    if (out->kind == MLFLOW_DONE && !j) { /* a proxy's page, or half an answer */
        out->kind = MLFLOW_LATER;
        (void)snprintf(out->text, sizeof out->text, "its answer is no JSON object: is it an MLflow server?");
        return;
    }
    AUTO_BUF struct buf line = BUF_INIT;
    const char *why = message ? message : code ? code : "";
    utf8_put_plain(&line, why, strlen(why), UTF8_ONE_LINE);
    (void)snprintf(out->text, sizeof out->text, "HTTP %d%s%.200s", status, line.len ? ": " : "", buf_text(&line));
}

/* An id goes into URLs and bodies: only what one can be made of. */
static bool take_id(char out[MLFLOW_ID_MAX], const json_t *j)
{
    const char *text = json_string_value(j);
    size_t n = text ? strlen(text) : 0;
    if (n == 0 || n >= MLFLOW_ID_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')
            return false;
    memcpy(out, text, n + 1);
    return true;
}

bool mlflow_experiment_id(const json_t *body, char out[MLFLOW_ID_MAX])
{
    const json_t *in = json_object_get(body, "experiment");
    return take_id(out, json_object_get(in ? in : body, "experiment_id"));
}

static bool id_of_run(const json_t *run, char out[MLFLOW_ID_MAX])
{
    return take_id(out, json_object_get(json_object_get(run, "info"), "run_id"));
}

bool mlflow_run_id(const json_t *body, char out[MLFLOW_ID_MAX])
{
    return id_of_run(json_object_get(body, "run"), out);
}

bool mlflow_found_id(const json_t *body, char out[MLFLOW_ID_MAX])
{
    return id_of_run(json_array_get(json_object_get(body, "runs"), 0), out);
}

/* Servers write 64 bits as a number, or, as protocol buffers have it, as a text. */
static int64_t whole(const json_t *j)
{
    const char *text = json_string_value(j);
    return text ? strtoll(text, NULL, 10) : (int64_t)json_integer_value(j);
}

const char *mlflow_history(const json_t *body, void (*point)(void *ctx, int64_t step, int64_t at_ms), void *ctx)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(body, "metrics"), i, one)
        point(ctx, whole(json_object_get(one, "step")), whole(json_object_get(one, "timestamp")));
    const char *token = json_string_value(json_object_get(body, "next_page_token"));
    return token ? token : "";
}
