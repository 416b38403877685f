#include "cmd/diff_study.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "cmd/look.h"
#include "core/config.h"
#include "core/line_diff.h"
#include "store/sources.h"
#include "view/view.h"
#include "view/words.h"

enum { SUM_SHOWN = 12, LINES_MOST = 200 };

/* --- figures --- */

/* Leaves of an object by their place: lists are one value. */
static int put_leaves(json_t *to, const char *prefix, const json_t *in)
{
    const char *key;
    json_t *value;
    int rc = 0;
    json_object_foreach((json_t *)(uintptr_t)in, key, value)
    {
        AUTO_BUF struct buf name = BUF_INIT;
        buf_printf(&name, "%s.%s", prefix, key);
        if (rc == 0 && name.failed)
            rc = -ENOMEM;
        if (rc == 0 && json_is_object(value))
            rc = put_leaves(to, buf_text(&name), value);
        else if (rc == 0)
            rc = json_object_set(to, buf_text(&name), value) < 0 ? -ENOMEM : 0;
    }
    return rc;
}

/* Where the store is, and what the study is called, says nothing of how it was run. */
static int put_config(json_t *to, const struct store_study *study)
{
    static const char *const beside[] = { "store", "application", "bigdlConf", "secrets" };
    AUTO_JSON json_t *config = words_object(study->config);
    AUTO_JSON json_t *application = json_incref((json_t *)(uintptr_t)config_stored_application(config));
    const char *key;
    json_t *value;
    void *next;
    for (size_t i = 0; i < ARRAY_LEN(beside); i++)
        (void)json_object_del(config, beside[i]);
    (void)json_object_del(json_object_get(config, "study"), "name");
    json_object_foreach_safe(config, next, key, value)
    {
        if (value == application)
            (void)json_object_del(config, key);
    }
    int rc = put_leaves(to, "config", config);
    return rc == 0 ? put_leaves(to, "application", application) : rc;
}

static int put_origin(json_t *to, const struct store_study *study)
{
    static const struct {
        const char *name, *key;
    } facts[] = { { "version.pipetune", "pipetune" },   { "version.commit", "commit" },
                  { "version.spark", "spark" },         { "version.java", "java" },
                  { "version.kernel", "kernel" },       { "machine.host", "host" },
                  { "machine.kind", "machine" },        { "machine.cores", "cores" },
                  { "machine.memory_gb", "memory_gb" }, { "machine.user", "user" } };
    AUTO_JSON json_t *provenance = words_object(study->provenance);
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        json_t *value = json_object_get(provenance, facts[i].key);
        if (value && json_object_set(to, facts[i].name, value) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* As its application first named it: where `run --from` has put it (cmd/run_from.h) it is the same file. */
static const char *first_name(const char *name)
{
    static const char put[] = ".from/source/";
    const char *behind = strstr(name, put);
    name = behind ? behind + strlen(put) : name;
    return strncmp(name, "./", 2) == 0 ? name + 2 : name;
}

static int put_sum(void *ctx, const struct store_source *r)
{
    char name[4200], sum[SUM_SHOWN + 1];
    (void)snprintf(name, sizeof name, "code.%s", first_name(r->name));
    (void)snprintf(sum, sizeof sum, "%s", r->sha256);
    return json_object_set_new(ctx, name, json_string(sum)) < 0 ? -ENOMEM : 0;
}

int diff_study_put(json_t *figures, struct store *s, const struct store_study *study, struct err *e)
{
    int rc = put_config(figures, study);
    if (rc == 0)
        rc = put_origin(figures, study);
    return rc == 0 ? store_sources(s, study->id, put_sum, figures, e) : rc;
}

/* --- lines --- */

struct text {
    char *name, sha256[65];
    struct buf bytes;
    bool kept;
};

struct coding {
    struct store *store;
    int64_t b;
    struct text a; /* of the file under way */
    json_t *list;
    struct err *e;
};

static bool is_text(const void *bytes, size_t len)
{
    return len == 0 || !memchr(bytes, '\0', len);
}

static int add_lines(struct coding *c, const struct store_source *b)
{
    AUTO_BUF struct buf lines = BUF_INIT;
    struct line_diff d;
    if (strcmp(first_name(c->a.name), first_name(b->name)) != 0 || strcmp(c->a.sha256, b->sha256) == 0 || !c->a.kept ||
        !b->bytes || !is_text(buf_text(&c->a.bytes), c->a.bytes.len) || !is_text(b->bytes, b->len))
        return 0;
    int rc = line_diff(&d, &lines, buf_text(&c->a.bytes), c->a.bytes.len, b->bytes, b->len, LINES_MOST);
    if (rc < 0)
        return rc;
    json_t *one = json_pack("{s:s, s:I, s:I, s:o}", "name", first_name(b->name), "removed", (json_int_t)d.removed,
                            "added", (json_int_t)d.added, "lines", json_bytes(buf_text(&lines)));
    return json_array_append_new(c->list, one) < 0 ? -ENOMEM : 0;
}

static int look_at_b(void *ctx, const struct store_source *r)
{
    return add_lines(ctx, r);
}

static int look_at_a(void *ctx, const struct store_source *r)
{
    struct coding *c = ctx;
    c->a.name = strdup(r->name);
    (void)snprintf(c->a.sha256, sizeof c->a.sha256, "%s", r->sha256);
    buf_clear(&c->a.bytes);
    buf_put(&c->a.bytes, r->bytes, r->len);
    c->a.kept = r->bytes != NULL;
    int rc = c->a.name && !c->a.bytes.failed ? store_sources(c->store, c->b, look_at_b, c, c->e) : -ENOMEM;
    free(c->a.name);
    return rc;
}

json_t *diff_study_code(struct store *s, const char *a, const char *b, struct err *e)
{
    struct store_study of_a = { 0 }, of_b = { 0 };
    struct coding c = { .store = s, .a.bytes = BUF_INIT, .list = json_array(), .e = e };
    int rc = view_find(s, a, &of_a, e);
    if (rc == 0)
        rc = view_find(s, b, &of_b, e);
    c.b = of_b.id;
    if (rc == 0)
        rc = store_sources(s, of_a.id, look_at_a, &c, e);
    rc = view_explain(rc, e, a);
    store_study_done(&of_a);
    store_study_done(&of_b);
    buf_done(&c.a.bytes);
    if (rc == 0)
        return c.list;
    json_decref(c.list);
    return NULL;
}
