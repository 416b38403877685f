/* A session's words on any bytes: no crash, sane messages, and a run that was written is read back by any JSON parser. */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/session.h"
#include "base/json.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strnlen(text, size);
    if ((size_t)(end - p) == size)
        abort();
    for (size_t n; p < end; p += n)
        if (*p < ' ' || *p == 0x7f || (n = utf8_len(p, end)) == 0)
            abort();
}

static void check_message(const struct session_message *m)
{
    check_text(m->app_id, sizeof m->app_id);
    check_text(m->id, sizeof m->id);
    check_text(m->error, sizeof m->error);
    if (m->word != SESSION_HELLO && !session_is_id(m->id, strlen(m->id)))
        abort();
    if (m->word == SESSION_HELLO && (m->protocol < 1 || (m->protocol == SESSION_PROTOCOL && m->pid < 1)))
        abort();
    if (m->word == SESSION_EPOCH && m->epoch < 1)
        abort();
    const char *key;
    json_t *value;
    json_object_foreach(m->metrics, key, value)
    {
        if (!json_is_number(value))
            abort();
    }
}

/* Whatever UTF-8 stands in a path comes out of the line as it went in. */
static void check_run(const char *text)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const struct session_run r = { .id = "1", .epochs = 1, .seed = LLONG_MIN, .checkpoint = text };
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    for (size_t n; p < end; p += n)
        if ((n = utf8_len(p, end)) == 0)
            return;
    session_put_run(&b, &r);
    if (b.failed || b.data[b.len - 1] != '\n' || strlen(b.data) != b.len || strchr(b.data, '\n') != b.data + b.len - 1)
        abort();
    AUTO_JSON json_t *root = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES, NULL);
    const char *back = json_string_value(json_object_get(json_object_get(root, "run"), "checkpoint"));
    if (!back || strcmp(back, text) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct session_message m = { .metrics = NULL };
    struct err e = { 0 };
    int rc = session_parse(&m, (const char *)data, size, &e);
    if (rc == 0)
        check_message(&m);
    else if ((rc != -EINVAL && rc != -ENOMSG) || !e.text[0] || m.metrics)
        abort();
    session_message_done(&m);
    char *text = strndup((const char *)data, size);
    if (text)
        check_run(text);
    free(text);
    return 0;
}
