/* A config of any bytes: an error that explains itself on one line, or a config and a space whose every point can be told. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_told(int rc, const struct err *e)
{
    if (rc < 0 && (!e->text[0] || strchr(e->text, '\n') || e->code != rc))
        abort();
}

/* Lines of values that are there and of values that are not; the document's text is a block of exact size, so that ASan
 * sees a byte read behind it. */
static void look_up(const struct json_doc *d)
{
    static const char *const paths[] = { "",  "study/epochs", "hyperParameters/batch_size/0", "nodes/1/host",
                                         "/", "study//x",     "99999999999999999999",         "a/b/c/d/e/f" };
    int last = 1;
    for (const char *c = d->text; *c; c++)
        last += *c == '\n';
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        int line = json_doc_line(d, paths[i]);
        if (line < 1 || line > last)
            abort();
    }
    const char *key;
    json_t *value;
    json_object_foreach(d->root, key, value)
    {
        int line = json_doc_line(d, key);
        if (line < 1 || line > last)
            abort();
    }
}

static void use_space(const struct space *s)
{
    uint64_t n = space_size(s);
    char hash[17];
    space_hash(s, hash);
    if (n == 0 || strlen(hash) != 16)
        abort();
    const uint64_t some[] = { 0, n / 2, n - 1 };
    for (size_t i = 0; space_is_listed(s) && n < UINT64_MAX && i < 3; i++) {
        struct point p = space_point_at(s, some[i]);
        json_t *j = space_point_json(s, &p);
        struct buf b = BUF_INIT;
        json_put(&b, j, JSON_STYLE_COMPACT);
        json_t *back = json_loads(buf_text(&b), 0, NULL);
        if (!back || json_object_size(back) != json_object_size(j))
            abort();
        json_decref(back);
        json_decref(j);
        buf_done(&b);
    }
}

/* What is stored and read back is the same config. */
static void store_and_compare(struct config *c, const struct json_doc *d)
{
    json_t *now = config_effective(c, d, json_null());
    struct buf text = BUF_INIT, keys = BUF_INIT;
    json_put(&text, now, JSON_STYLE_COMPACT);
    json_t *stored = json_loads(buf_text(&text), 0, NULL);
    if (!stored || config_diff(stored, now, &keys) != 0)
        abort();
    json_decref(stored);
    json_decref(now);
    buf_done(&text);
    buf_done(&keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { 0 };
    struct json_doc doc = { 0 };
    struct config c = { 0 };
    struct space s = { 0 };
    struct opt_set set = config_opts(&c);
    int rc = json_doc_parse(&doc, "c.conf", (const char *)data, size, &e);
    expect_told(rc, &e);
    if (rc < 0 || opt_presets(&set, &e) < 0)
        return 0;
    look_up(&doc);
    rc = config_read(&c, &doc, &e);
    expect_told(rc, &e);
    if (rc == 0)
        store_and_compare(&c, &doc);
    rc = json_is_object(doc.root) ? space_parse(&s, &doc, &e) : -1;
    if (rc == 0)
        use_space(&s);
    else if (json_is_object(doc.root))
        expect_told(rc, &e);
    space_done(&s);
    config_done(&c);
    json_doc_done(&doc);
    return 0;
}
