#include "app/session.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"

bool session_is_id(const char *text, size_t len)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    for (size_t i = 0; i < len; i++)
        if (!text[i] || !strchr(plain, text[i]))
            return false;
    return len > 0 && len <= SESSION_ID_MAX;
}

/* ---- to the session ------------------------------------------------------------------------------------------------- */

static void put_text_or_null(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, ",\"%s\":", key);
    if (text)
        json_put_string(out, text);
    else
        buf_puts(out, "null");
}

void session_put_run(struct buf *out, const struct session_run *r)
{
    buf_puts(out, "{\"run\":{\"id\":");
    json_put_string(out, r->id);
    buf_puts(out, ",\"hyper\":");
    if (r->hyper)
        json_put(out, r->hyper, JSON_STYLE_COMPACT);
    else
        buf_puts(out, "{}");
    buf_printf(out, ",\"epochs\":%d,\"seed\":%lld", r->epochs, r->seed);
    put_text_or_null(out, "checkpoint", r->checkpoint);
    put_text_or_null(out, "model", r->model);
    put_text_or_null(out, "state", r->state);
    buf_puts(out, "}}\n");
}

void session_put_end(struct buf *out, const char *id, int epoch)
{
    buf_puts(out, "{\"end\":{\"id\":");
    json_put_string(out, id);
    buf_printf(out, ",\"epoch\":%d}}\n", epoch);
}

void session_put_stop(struct buf *out)
{
    buf_puts(out, "{\"stop\":{}}\n");
}

/* ---- from the session ----------------------------------------------------------------------------------------------- */

/* A whole number between the bounds. */
static int get_integer(const json_t *body, const char *key, long long min, long long max, long long *out, struct err *e)
{
    const json_t *j = json_object_get(body, key);
    if (!json_is_integer(j) || json_integer_value(j) < min || json_integer_value(j) > max)
        return err_set(e, -EINVAL, "'%s' is no whole number from %lld to %lld", key, min, max);
    *out = json_integer_value(j);
    return 0;
}

/* A trial's name. */
static int get_id(const json_t *body, const char *key, char out[SESSION_ID_MAX + 1], struct err *e)
{
    const json_t *j = json_object_get(body, key);
    const char *text = json_string_value(j);
    size_t len = json_string_length(j);
    if (!text || !session_is_id(text, len))
        return err_set(e, -EINVAL, "'%s' names no trial", key);
    memcpy(out, text, len + 1);
    return 0;
}

/* As much of the text as fits, whole characters and none that leaves the line. */
static void put_line(char *out, size_t size, const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    size_t len = 0;
    while (p < end) {
        size_t n = utf8_len(p, end);
        n = n ? n : 1; /* jansson lets only UTF-8 through */
        if (len + n >= size)
            break;
        memcpy(out + len, p, n);
        if (*p < ' ' || *p == 0x7f)
            out[len] = ' ';
        len += n;
        p += n;
    }
    out[len] = '\0';
}

static int parse_hello(struct session_message *m, const json_t *body, struct err *e)
{
    long long n = 0;
    int rc = get_integer(body, "protocol", 1, INT_MAX, &n, e);
    m->protocol = (int)n;
    if (rc < 0 || !session_speaks(m->protocol))
        return rc;
    rc = get_integer(body, "pid", 1, INT_MAX, &n, e);
    m->pid = (long)n;
    if (rc < 0)
        return rc;
    const char *app_id = json_string_value(json_object_get(body, "app_id"));
    if (!app_id)
        return err_set(e, -EINVAL, "'app_id' is no text");
    put_line(m->app_id, sizeof m->app_id, app_id);
    const json_t *busy = json_object_get(body, "busy");
    return !busy || json_is_null(busy) ? 0 : get_id(body, "busy", m->id, e);
}

static int parse_epoch(struct session_message *m, const json_t *body, struct err *e)
{
    long long n = 0;
    int rc = get_id(body, "id", m->id, e);
    if (rc == 0)
        rc = get_integer(body, "epoch", 1, INT_MAX, &n, e);
    if (rc < 0)
        return rc;
    m->epoch = (int)n;
    json_t *metrics = json_object_get(body, "metrics");
    if (!metrics || json_is_null(metrics))
        return 0;
    if (!json_is_object(metrics))
        return err_set(e, -EINVAL, "'metrics' is no object");
    const char *name;
    const json_t *value;
    json_object_foreach(metrics, name, value)
    {
        if (!json_is_number(value))
            return err_set(e, -EINVAL, "a metric is no number");
    }
    m->metrics = json_incref(metrics);
    return 0;
}

static int parse_done(struct session_message *m, const json_t *body, struct err *e)
{
    int rc = get_id(body, "id", m->id, e);
    if (rc < 0)
        return rc;
    const json_t *ok = json_object_get(body, "ok");
    if (!json_is_boolean(ok))
        return err_set(e, -EINVAL, "'ok' is neither true nor false");
    m->ok = json_is_true(ok);
    const json_t *error = json_object_get(body, "error");
    if (error && !json_is_null(error) && !json_is_string(error))
        return err_set(e, -EINVAL, "'error' is no text");
    if (!m->ok)
        put_line(m->error, sizeof m->error, json_is_string(error) ? json_string_value(error) : "");
    return 0;
}

static const struct {
    const char *name;
    int (*parse)(struct session_message *m, const json_t *body, struct err *e);
} words[] = {
    [SESSION_HELLO] = { "hello", parse_hello },
    [SESSION_EPOCH] = { "epoch", parse_epoch },
    [SESSION_DONE] = { "done", parse_done },
};

static int parse_message(struct session_message *m, const json_t *root, struct err *e)
{
    if (!json_is_object(root))
        return err_set(e, -EINVAL, "no object");
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const json_t *body = json_object_get(root, words[i].name);
        if (!body)
            continue;
        if (!json_is_object(body))
            return err_set(e, -EINVAL, "'%s' is no object", words[i].name);
        m->word = (enum session_word)i;
        int rc = words[i].parse(m, body, e);
        return rc < 0 ? err_prefix(e, "'%s'", words[i].name) : 0;
    }
    return err_set(e, -ENOMSG, "an unknown word");
}

int session_parse(struct session_message *out, const char *line, size_t len, struct err *e)
{
    if (len >= SESSION_LINE_MAX)
        return err_set(e, -EINVAL, "a line of %zu bytes: at most %d are allowed", len, SESSION_LINE_MAX);
    json_error_t je;
    AUTO_JSON json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &je);
    if (!root && json_error_code(&je) == json_error_out_of_memory)
        return err_sys(e, -ENOMEM, "a message");
    if (!root)
        return err_set(e, -EINVAL, "no JSON");
    struct session_message m = { .metrics = NULL };
    int rc = parse_message(&m, root, e);
    if (rc == 0)
        *out = m;
    else
        session_message_done(&m);
    return rc;
}

void session_message_done(struct session_message *m)
{
    if (!m)
        return;
    json_decref(m->metrics);
    m->metrics = NULL;
}
