#include "app/roles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"

static int no_memory(const struct app_reader *r)
{
    return err_sys(r->e, -ENOMEM, "'%s'", r->doc->name);
}

void roles_done(struct roles *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].name);
        free(r->v[i].count);
        strv_done(&r->v[i].words);
    }
    free(r->v);
    free(r->tells);
    *r = (struct roles){ 0 };
}

/* --- its members -------------------------------------------------------------------------------------------------------- */

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

static int read_count(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    const char *text = json_string_value(j);
    bool named = text && text[0] == '{' && strlen(text) > 2 && strchr(text, '}') == text + strlen(text) - 1;
    bool number = json_is_integer(j) && json_integer_value(j) >= 1 && json_integer_value(j) <= APP_GANG_MAX;
    if (!named && !number)
        return json_doc_err(r->doc, path, r->e, -EINVAL,
                            "must be a whole number from 1 to %d, or {NAME} of a hyperparameter or a system parameter",
                            APP_GANG_MAX);
    return app_read_scalar(r, path, j, field);
}

static int read_cores(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    enum { CORES_MAX = 4096 };
    if (!json_is_integer(j) || json_integer_value(j) < 0 || json_integer_value(j) > CORES_MAX)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a whole number from 0 to %d", CORES_MAX);
    *(int *)field = (int)json_integer_value(j);
    return 0;
}

static const struct app_member members[] = {
    { "command", app_read_words, offsetof(struct role, words) },
    { "count", read_count, offsetof(struct role, count) },
    { "cores", read_cores, offsetof(struct role, cores) },
    { "arguments", app_read_flag, offsetof(struct role, arguments) },
    { "tf_config", app_read_flag, offsetof(struct role, tf_config) },
};

static int read_member(const struct app_reader *r, const char *path, const char *key, const json_t *j, struct role *out)
{
    const char *names[ARRAY_LEN(members)];
    char at[160];
    (void)snprintf(at, sizeof at, "%s/%s", path, key);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        names[i] = members[i].key;
        if (strcmp(key, members[i].key) == 0)
            return members[i].parse(r, at, j, (char *)out + members[i].offset);
    }
    const char *near = suggest_nearest(key, names, ARRAY_LEN(names));
    return json_doc_err(r->doc, at, r->e, -EINVAL, "is unknown%s%s%s", near ? "; did you mean '" : "",
                        near ? near : ": a role has command, count, cores, arguments and tf_config", near ? "'?" : "");
}

static int read_role(const struct app_reader *r, const char *path, const json_t *j, struct role *out)
{
    const char *key;
    json_t *value;
    int rc = 0;
    if (!json_is_object(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL,
                            "must be an object such as {\"count\": 2, \"command\": [\"python3\", \"train.py\"]}");
    json_object_foreach((json_t *)j, key, value)
    {
        rc = rc < 0 ? rc : read_member(r, path, key, value, out);
    }
    if (rc == 0 && (out->words.n == 0 || !*out->words.v[0]))
        return json_doc_err(r->doc, path, r->e, -EINVAL,
                            "has no command: what is to be run, such as [\"python3\", \"train.py\"]");
    if (rc == 0 && !out->count && !(out->count = strdup("1")))
        return no_memory(r);
    return rc;
}

int roles_read(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    struct roles *out = field;
    const char *name;
    json_t *value;
    if (!json_is_object(j) || json_object_size(j) == 0 || json_object_size(j) > ROLES_MAX)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be an object of 1 to %d roles", ROLES_MAX);
    out->v = calloc(json_object_size(j), sizeof *out->v);
    if (!out->v)
        return no_memory(r);
    json_object_foreach((json_t *)j, name, value)
    {
        char at[128];
        size_t len = strlen(name);
        (void)snprintf(at, sizeof at, "%s/%.*s", path, ROLES_NAME_MAX, name);
        if (len == 0 || len > ROLES_NAME_MAX || name[strspn(name, name_chars)])
            return json_doc_err(r->doc, at, r->e, -EINVAL, "is no name of a role: 1 to %d of A-Z a-z 0-9 _ -",
                                ROLES_NAME_MAX);
        struct role *one = &out->v[out->n++];
        *one = (struct role){ .cores = -1, .arguments = true, .name = strdup(name) };
        int rc = one->name ? read_role(r, at, value, one) : no_memory(r);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- the whole file ------------------------------------------------------------------------------------------------------- */

static int find(const struct roles *r, const char *name, size_t len)
{
    for (size_t i = 0; i < r->n; i++)
        if (strlen(r->v[i].name) == len && strncmp(r->v[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

static void put_names(const struct roles *r, struct buf *out)
{
    for (size_t i = 0; i < r->n; i++)
        buf_printf(out, "%s%s", i ? ", " : "", r->v[i].name);
}

static int check_text(const struct roles *r, const struct json_doc *doc, const char *path, const char *text,
                      struct err *e)
{
    static const char *const kinds[] = { "peers.", "count." };
    for (const char *p = strchr(text, '{'); p; p = strchr(p + 1, '{')) {
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            const char *name = p + 1 + strlen(kinds[i]);
            size_t len = strncmp(p + 1, kinds[i], strlen(kinds[i])) == 0 ? strspn(name, name_chars) : 0;
            if (len == 0 || name[len] != '}' || find(r, name, len) >= 0)
                continue;
            AUTO_BUF struct buf all = BUF_INIT;
            put_names(r, &all);
            return json_doc_err(doc, path, e, -EINVAL, "has {%s%.*s}, and there is no such role: there is %s", kinds[i],
                                (int)len, name, buf_text(&all));
        }
    }
    return 0;
}

static int check_texts(const struct roles *r, const struct json_doc *doc, const char *path, const json_t *j, int depth,
                       struct err *e)
{
    enum { DEPTH_MAX = 4 }; /* roles/NAME/command/0 */
    const char *key;
    json_t *value;
    int rc = json_is_string(j) ? check_text(r, doc, path, json_string_value(j), e) : 0;
    if (depth == DEPTH_MAX)
        return rc;
    char at[256];
    json_object_foreach((json_t *)j, key, value)
    {
        (void)snprintf(at, sizeof at, "%s%s%s", path, *path ? "/" : "", key);
        rc = rc < 0 ? rc : check_texts(r, doc, at, value, depth + 1, e);
    }
    for (size_t i = 0; rc == 0 && i < json_array_size(j); i++) {
        (void)snprintf(at, sizeof at, "%s/%zu", path, i);
        rc = check_texts(r, doc, at, json_array_get(j, i), depth + 1, e);
    }
    return rc;
}

int roles_check(const struct roles *r, const struct json_doc *doc, struct err *e)
{
    if (r->tells && find(r, r->tells, strlen(r->tells)) < 0) {
        AUTO_BUF struct buf all = BUF_INIT;
        put_names(r, &all);
        return json_doc_err(doc, "tells", e, -EINVAL, "names no role: there is %s", buf_text(&all));
    }
    return check_texts(r, doc, "", doc->root, 0, e);
}

/* --- a launch ----------------------------------------------------------------------------------------------------------- */

static const char *value_of(const struct app_launch *l, const char *name, size_t len)
{
    for (size_t i = 0; i < l->n_hypers + l->n_knobs; i++) {
        const struct app_value *v = i < l->n_hypers ? &l->hypers[i] : &l->knobs[i - l->n_hypers];
        if (strlen(v->name) == len && strncmp(v->name, name, len) == 0)
            return v->text;
    }
    return NULL;
}

static int count_of(const struct role *one, const char *file, const struct app_launch *l, int *out, struct err *e)
{
    const char *text = one->count[0] == '{' ? value_of(l, one->count + 1, strlen(one->count) - 2) : one->count;
    if (!text)
        return err_set(
            e, -EINVAL,
            "'%s': roles.%s.count: %s stands for nothing: the study has no hyperparameter and no system parameter of "
            "that name",
            file, one->name, one->count);
    size_t digits = strspn(text, "0123456789");
    long n = digits > 0 && digits < 5 && !text[digits] ? strtol(text, NULL, 10) : 0;
    if (n < 1 || n > APP_GANG_MAX)
        return err_set(e, -ERANGE, "'%s': roles.%s.count is %s: it must be a whole number from 1 to %d", file,
                       one->name, text, APP_GANG_MAX);
    *out = (int)n;
    return 0;
}

int roles_gang(const struct roles *r, const char *file, const struct app_launch *l, struct app_gang *out, struct err *e)
{
    struct app_gang g = { .n = 0 };
    for (size_t i = 0; i < r->n; i++) {
        int n = 0, rc = count_of(&r->v[i], file, l, &n, e);
        if (rc < 0)
            return rc;
        if (g.n + (size_t)n > APP_GANG_MAX)
            return err_set(e, -ERANGE, "'%s': its roles have more than %d processes", file, APP_GANG_MAX);
        if (r->tells ? strcmp(r->tells, r->v[i].name) == 0 : i == 0)
            g.tells = g.n;
        for (int k = 0; k < n; k++)
            g.v[g.n++] = (struct app_rank){ .role = r->v[i].name, .which = i, .index = k, .cores = r->v[i].cores };
    }
    *out = g;
    return 0;
}

/* HOST:{port.K} of process k. */
static void put_address(const struct app_launch *l, size_t k, struct buf *out)
{
    const char *host = l->hosts ? l->hosts[k] : "HOST";
    bool six = strchr(host, ':') != NULL;
    buf_printf(out, "%s%s%s:{port.%zu}", six ? "[" : "", host, six ? "]" : "", k);
}

static void put_peers(const struct app_launch *l, size_t which, const char *between, struct buf *out)
{
    bool any = false;
    for (size_t k = 0; k < l->gang->n; k++) {
        if (l->gang->v[k].which != which)
            continue;
        buf_puts(out, any ? between : "");
        put_address(l, k, out);
        any = true;
    }
}

static int count_in(const struct app_gang *g, size_t which)
{
    int n = 0;
    for (size_t k = 0; k < g->n; k++)
        n += g->v[k].which == which;
    return n;
}

void roles_values(const struct roles *r, const struct app_launch *l, struct strv *names, struct strv *texts)
{
    const struct app_rank *me = &l->gang->v[l->rank];
    static const char *const own[] = { "role", "index", "host", "port" };
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        strv_add(names, own[i]);
    strv_add(texts, me->role);
    strv_addf(texts, "%d", me->index);
    strv_add(texts, l->hosts ? l->hosts[l->rank] : "HOST");
    strv_addf(texts, "{port.%zu}", l->rank);
    for (size_t i = 0; i < r->n; i++) {
        AUTO_BUF struct buf peers = BUF_INIT;
        put_peers(l, i, ",", &peers);
        strv_addf(names, "peers.%s", r->v[i].name);
        strv_take(texts, buf_take(&peers));
        strv_addf(names, "count.%s", r->v[i].name);
        strv_addf(texts, "%d", count_in(l->gang, i));
    }
}

bool roles_count_by(const struct roles *r, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < r->n; i++) {
        const char *count = r->v[i].count;
        if (count[0] == '{' && strlen(count) == len + 2 && strncmp(count + 1, name, len) == 0)
            return true;
    }
    return false;
}

void roles_counts(const struct roles *r, struct strv *out)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].count[0] == '{')
            strv_addf(out, "%.*s", (int)strlen(r->v[i].count) - 2, r->v[i].count + 1);
}

/* {"cluster":{"ps":["h:1"],"worker":["h:2","h:3"]},"task":{"type":"worker","index":1}} */
void roles_put_env(const struct roles *r, const struct app_launch *l, struct strv *env)
{
    const struct app_rank *me = &l->gang->v[l->rank];
    if (!r->v[me->which].tf_config)
        return;
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, "TF_CONFIG={\"cluster\":{");
    for (size_t i = 0; i < r->n; i++) {
        buf_printf(&b, "%s\"%s\":[\"", i ? "," : "", r->v[i].name);
        put_peers(l, i, "\",\"", &b);
        buf_puts(&b, "\"]");
    }
    buf_printf(&b, "},\"task\":{\"type\":\"%s\",\"index\":%d}}", me->role, me->index);
    strv_take(env, buf_take(&b));
}
