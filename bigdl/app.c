#include "bigdl/app.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"
#include "base/utf8.h"

/* What every reader below needs. */
struct reader {
    struct app *app;
    const struct json_doc *doc;
    app_lookup *lookup;
    void *ctx;
    struct err *e;
};

static int no_memory(const struct reader *r)
{
    return err_sys(r->e, -ENOMEM, "'%s'", r->doc->name);
}

/* ---- text: $NAME, ${NAME}, $$ --------------------------------------------------------------------------------------- */

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9');
}

/* `at` stands on a dollar sign that begins a name or a brace. Returns how many bytes it was, or a negative errno. */
static int put_variable(const struct reader *r, const char *path, const char *at, struct buf *out)
{
    bool brace = at[1] == '{';
    const char *name = at + 1 + brace;
    int n = 0;
    while (is_name(name[n]))
        n++;
    if (n == 0 || (brace && name[n] != '}'))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "has a '${' without a name and '}'");
    AUTO_FREE char *copy = strndup(name, (size_t)n);
    if (!copy)
        return no_memory(r);
    const char *value = r->lookup ? r->lookup(r->ctx, copy) : NULL;
    if (!value)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "uses $%s, which is not set; export %s, or write the value",
                            copy, copy);
    if (!utf8_is_valid(value))
        return json_doc_err(
            r->doc, path, r->e, -EINVAL,
            "uses $%s, whose value '%s' is not UTF-8: Java would take it for something else; rename it, or "
            "name another",
            copy, value);
    buf_puts(out, value);
    return 1 + brace + n + brace;
}

static int expand(const struct reader *r, const char *path, const char *text, char **out)
{
    AUTO_BUF struct buf b = BUF_INIT;
    while (*text) {
        int n = 1;
        if (text[0] == '$' && text[1] == '$') {
            buf_putc(&b, '$');
            n = 2;
        } else if (text[0] == '$' && (text[1] == '{' || is_name_start(text[1]))) {
            n = put_variable(r, path, text, &b);
            if (n < 0)
                return n;
        } else {
            buf_putc(&b, *text);
        }
        text += n;
    }
    char *got = buf_take(&b);
    if (!got)
        return no_memory(r);
    *out = got;
    return 0;
}

/* A string (expanded) or a number, as text. */
static int read_scalar(const struct reader *r, const char *path, const json_t *j, char **out)
{
    char num[NUM_TEXT_MAX];
    if (json_is_string(j))
        return expand(r, path, json_string_value(j), out);
    if (json_is_integer(j))
        (void)snprintf(num, sizeof num, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
    else if (json_is_real(j))
        (void)num_print(json_real_value(j), num);
    else
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a string or a number");
    char *copy = strdup(num);
    if (!copy)
        return no_memory(r);
    *out = copy;
    return 0;
}

/* ---- members of one value ------------------------------------------------------------------------------------------- */

static int read_text(const struct reader *r, const char *path, const json_t *j, void *field)
{
    if (!json_is_string(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a string");
    int rc = expand(r, path, json_string_value(j), field);
    if (rc == 0 && **(char **)field == '\0')
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must not be empty");
    return rc;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_local_master(const char *m)
{
    return strcmp(m, "local") == 0 || (starts(m, "local[") && m[strlen(m) - 1] == ']');
}

static int read_master(const struct reader *r, const char *path, const json_t *j, void *field)
{
    int rc = read_text(r, path, j, field);
    const char *m = rc == 0 ? *(char **)field : "";
    if (rc < 0 || is_local_master(m) || starts(m, "spark://") || strcmp(m, "yarn") == 0 || starts(m, "k8s://"))
        return rc;
    return json_doc_err(r->doc, path, r->e, -EINVAL, "must be local[*], spark://HOST:PORT, yarn or k8s://URL, not '%s'",
                        m);
}

/* Spark's sizes: digits and a unit; a number alone is GiB, as everywhere in our files. */
static int read_memory(const struct reader *r, const char *path, const json_t *j, void *field)
{
    char *text = NULL;
    int rc = read_scalar(r, path, j, &text);
    if (rc < 0)
        return rc;
    *(char **)field = text;
    size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits;
    if (digits == 0 || digits > 12 || strspn(text, "0") == digits ||
        (*unit && (!strchr("kmgtKMGT", *unit) || (unit[1] && strcasecmp(unit + 1, "b") != 0))))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a size such as \"8g\" or \"512m\", not '%s'", text);
    if (*unit)
        return 0;
    char *with_unit = NULL;
    if (asprintf(&with_unit, "%sg", text) < 0)
        return no_memory(r);
    free(text);
    *(char **)field = with_unit;
    return 0;
}

static int read_cores(const struct reader *r, const char *path, const json_t *j, void *field)
{
    AUTO_FREE char *text = NULL;
    int rc = read_scalar(r, path, j, &text);
    if (rc < 0)
        return rc;
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 1 || n > 4096)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a whole number between 1 and 4096, not '%s'", text);
    *(int *)field = (int)n;
    return 0;
}

static int read_flag(const struct reader *r, const char *path, const json_t *j, void *field)
{
    if (!json_is_boolean(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be true or false");
    *(bool *)field = json_is_true(j);
    return 0;
}

/* "a,b" or ["a", "b"]; empty pieces are dropped, so that "$EXTRA,x" works with an empty EXTRA. */
static int add_list(const struct reader *r, const char *path, const json_t *j, struct strv *out)
{
    AUTO_FREE char *text = NULL;
    if (!json_is_string(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a string, or an array of strings");
    int rc = expand(r, path, json_string_value(j), &text);
    if (rc < 0)
        return rc;
    for (const char *p = text; *p; p += *p == ',') {
        int n = (int)strcspn(p, ",");
        if (n > 0)
            strv_addf(out, "%.*s", n, p);
        p += n;
    }
    return out->failed ? no_memory(r) : 0;
}

static int read_list(const struct reader *r, const char *path, const json_t *j, void *field)
{
    if (!json_is_array(j))
        return add_list(r, path, j, field);
    for (size_t i = 0; i < json_array_size(j); i++) {
        char at[64];
        (void)snprintf(at, sizeof at, "%s/%zu", path, i);
        int rc = add_list(r, at, json_array_get(j, i), field);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- extras --------------------------------------------------------------------------------------------------------- */

static int one_extra(const struct reader *r, const char *path, const char *key, const json_t *value,
                     struct app_extra *out)
{
    if (asprintf(&out->key, "%s%s", key[0] == '-' ? "" : "--", key) < 0) {
        out->key = NULL;
        return no_memory(r);
    }
    return json_is_true(value) ? 0 : read_scalar(r, path, value, &out->value);
}

static int extras_of_object(const struct reader *r, const char *path, const json_t *j)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)j, key, value)
    {
        char at[256];
        (void)snprintf(at, sizeof at, "%s/%s", path, key);
        if (key[0] == '\0')
            return json_doc_err(r->doc, at, r->e, -EINVAL, "has an empty key");
        if (json_is_false(value) || json_is_null(value))
            continue;
        int rc = one_extra(r, at, key, value, &r->app->extras[r->app->n_extras++]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int extras_of_array(const struct reader *r, const char *path, const json_t *j)
{
    for (size_t i = 0; i < json_array_size(j); i++) {
        char at[64];
        (void)snprintf(at, sizeof at, "%s/%zu", path, i);
        struct app_extra *x = &r->app->extras[r->app->n_extras++];
        x->word = true;
        int rc = read_scalar(r, at, json_array_get(j, i), &x->key);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_extras(const struct reader *r, const char *path, const json_t *j, void *field)
{
    (void)field;
    if (r->app->extras)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "is there twice: 'extra' is another name for 'extras'");
    if (!json_is_object(j) && !json_is_array(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be an object, or an array of words");
    size_t n = json_is_object(j) ? json_object_size(j) : json_array_size(j);
    r->app->extras = calloc(n + 1, sizeof *r->app->extras);
    if (!r->app->extras)
        return no_memory(r);
    return json_is_object(j) ? extras_of_object(r, path, j) : extras_of_array(r, path, j);
}

/* ---- arguments ------------------------------------------------------------------------------------------------------ */

static const char *const roles[] = { "epochs", "checkpoint", "resume", "seed" };

static bool is_role(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if (strcmp(name, roles[i]) == 0)
            return true;
    return false;
}

/* Counts the placeholders of a word; another word in braces is a mistake: "{value}" would reach the application as it is. */
static int check_placeholders(const struct reader *r, const char *path, const char *word, bool resume, int *found)
{
    for (const char *p = strchr(word, '{'); p; p = strchr(p + 1, '{')) {
        size_t n = 0;
        while (is_name(p[1 + n]))
            n++;
        if (p[1 + n] != '}')
            continue; /* JSON, or anything else of the application's own */
        bool known = resume ? (n == 5 && (starts(p, "{model}") || starts(p, "{state}"))) : n == 0;
        if (!known)
            return json_doc_err(r->doc, path, r->e, -EINVAL, "has the placeholder %.*s; here it can be %s", (int)n + 2,
                                p, resume ? "{model} or {state}" : "{}");
        ++*found;
    }
    return 0;
}

static int read_words(const struct reader *r, const char *path, const json_t *j, struct app_argument *out)
{
    int found = 0;
    bool resume = strcmp(out->name, "resume") == 0;
    size_t n = json_is_array(j) ? json_array_size(j) : 1;
    for (size_t i = 0; i < n; i++) {
        char at[256];
        char *word = NULL;
        (void)snprintf(at, sizeof at, json_is_array(j) ? "%s/%zu" : "%s", path, i);
        int rc = read_scalar(r, at, json_is_array(j) ? json_array_get(j, i) : j, &word);
        if (rc < 0)
            return rc;
        strv_take(&out->words, word);
        if (out->words.failed)
            return no_memory(r);
        rc = check_placeholders(r, at, word, resume, &found);
        if (rc < 0)
            return rc;
    }
    if (found == 0)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "has no %s, so no value would reach the application",
                            resume ? "{model} and {state}" : "{}");
    return 0;
}

static int read_arguments(const struct reader *r, const char *path, const json_t *j, void *field)
{
    (void)field;
    if (!json_is_object(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL,
                            "must be an object of arrays such as {\"batch_size\": [\"-b\", \"{}\"]}");
    r->app->has_arguments = true;
    r->app->arguments = calloc(json_object_size(j) + 1, sizeof *r->app->arguments);
    if (!r->app->arguments)
        return no_memory(r);
    const char *name;
    json_t *words;
    json_object_foreach((json_t *)j, name, words)
    {
        char at[128];
        (void)snprintf(at, sizeof at, "%s/%s", path, name);
        if (json_is_null(words))
            continue;
        struct app_argument *a = &r->app->arguments[r->app->n_arguments++];
        a->name = strdup(name);
        if (!a->name)
            return no_memory(r);
        int rc = read_words(r, at, words, a);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- the file ------------------------------------------------------------------------------------------------------- */

typedef int read_member(const struct reader *r, const char *path, const json_t *j, void *field);

static const struct member {
    const char *key;
    read_member *parse;
    size_t offset;
} members[] = {
    { "master", read_master, offsetof(struct app, master) },
    { "driver_memory", read_memory, offsetof(struct app, driver_memory) },
    { "executor_memory", read_memory, offsetof(struct app, executor_memory) },
    { "total_executor_cores", read_cores, offsetof(struct app, total_executor_cores) },
    { "executor_cores", read_cores, offsetof(struct app, executor_cores) },
    { "py_files", read_list, offsetof(struct app, py_files) },
    { "jars", read_list, offsetof(struct app, jars) },
    { "properties_file", read_text, offsetof(struct app, properties_file) },
    { "conf", read_text, offsetof(struct app, conf) },
    { "class", read_text, offsetof(struct app, class_name) },
    { "python", read_text, offsetof(struct app, python) },
    { "session", read_flag, offsetof(struct app, session) },
    { "extras", read_extras, 0 },
    { "extra", read_extras, 0 },
    { "arguments", read_arguments, 0 },
};

static int unknown_key(const struct reader *r, const char *key)
{
    const char *names[ARRAY_LEN(members)];
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        names[i] = members[i].key;
    const char *near = suggest_nearest(key, names, ARRAY_LEN(members));
    if (near)
        return json_doc_err(r->doc, key, r->e, -EINVAL, "is unknown; did you mean '%s'?", near);
    return json_doc_err(r->doc, key, r->e, -EINVAL,
                        "is unknown; the application's own options go into 'extras' or 'arguments'");
}

static int read_key(const struct reader *r, const char *key, const json_t *value)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (strcmp(members[i].key, key) == 0)
            return json_is_null(value) ? 0 : members[i].parse(r, key, value, (char *)r->app + members[i].offset);
    return unknown_key(r, key);
}

static bool ends_with(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

bool app_is_python(const struct app *a)
{
    return a->class_name == NULL;
}

/* What only shows when the whole file is read. */
static int check_whole(const struct reader *r)
{
    const struct app *a = r->app;
    if (!a->conf)
        return json_doc_err(r->doc, "conf", r->e, -EINVAL, "is missing: the application, a .py file or a jar");
    if (a->class_name && ends_with(a->conf, ".py"))
        return json_doc_err(r->doc, "class", r->e, -EINVAL, "does not go with the Python application '%s'", a->conf);
    if (!a->class_name && ends_with(a->conf, ".jar"))
        return json_doc_err(r->doc, "conf", r->e, -EINVAL, "is a jar, so 'class' must name what to run in it");
    return 0;
}

static int read_file(const struct reader *r)
{
    if (!json_is_object(r->doc->root))
        return err_set(r->e, -EINVAL, "'%s' line 1: must be a JSON object", r->doc->name);
    r->app->file = strdup(r->doc->name);
    if (!r->app->file)
        return no_memory(r);
    const char *key;
    json_t *value;
    json_object_foreach(r->doc->root, key, value)
    {
        int rc = read_key(r, key, value);
        if (rc < 0)
            return rc;
    }
    if (!r->app->master && !(r->app->master = strdup("local[*]")))
        return no_memory(r);
    return check_whole(r);
}

int app_parse(struct app *out, const struct json_doc *doc, app_lookup *lookup, void *ctx, struct err *e)
{
    struct app a = { 0 };
    struct reader r = { .app = &a, .doc = doc, .lookup = lookup, .ctx = ctx, .e = e };
    int rc = read_file(&r);
    if (rc < 0) {
        app_done(&a);
        return rc;
    }
    *out = a;
    return 0;
}

void app_done(struct app *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n_extras; i++) {
        free(a->extras[i].key);
        free(a->extras[i].value);
    }
    for (size_t i = 0; i < a->n_arguments; i++) {
        free(a->arguments[i].name);
        strv_done(&a->arguments[i].words);
    }
    free(a->extras);
    free(a->arguments);
    strv_done(&a->py_files);
    strv_done(&a->jars);
    char *texts[] = { a->file, a->master,     a->driver_memory, a->executor_memory, a->properties_file,
                      a->conf, a->class_name, a->python };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    *a = (struct app){ 0 };
}

/* ---- questions ------------------------------------------------------------------------------------------------------ */

typedef int resolve_path(void *ctx, const char *key, char **path, struct err *e);

/* "hdfs:…", "s3a:…", "file:…": a scheme is letters, digits and +-. before a colon. */
static bool has_scheme(const char *path)
{
    const char *p = path;
    while (is_name(*p) || *p == '+' || *p == '-' || *p == '.')
        p++;
    return p > path && *p == ':';
}

static int resolve_one(const char *key, char **path, resolve_path *resolve, void *ctx, struct err *e)
{
    return *path && !has_scheme(*path) ? resolve(ctx, key, path, e) : 0;
}

static int resolve_all(const char *key, struct strv *paths, resolve_path *resolve, void *ctx, struct err *e)
{
    for (size_t i = 0; i < paths->n; i++) {
        int rc = resolve_one(key, &paths->v[i], resolve, ctx, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int app_paths(struct app *a, resolve_path *resolve, void *ctx, struct err *e)
{
    int rc = resolve_one("conf", &a->conf, resolve, ctx, e);
    if (rc == 0)
        rc = resolve_all("jars", &a->jars, resolve, ctx, e);
    if (rc == 0)
        rc = resolve_all("py_files", &a->py_files, resolve, ctx, e);
    if (rc == 0)
        rc = resolve_one("properties_file", &a->properties_file, resolve, ctx, e);
    if (rc == 0 && a->python && strchr(a->python, '/')) /* else a command, which is looked for on PATH */
        rc = resolve_one("python", &a->python, resolve, ctx, e);
    return rc;
}

double app_memory_gb(const char *text)
{
    static const char units[] = "kmgt";
    char *end = NULL;
    double n = text ? strtod(text, &end) : 1;
    const char *unit = text && *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
    return unit ? ldexp(n, 10 * ((int)(unit - units) - 2)) : n;
}

bool app_is_local(const struct app *a)
{
    return is_local_master(a->master);
}

bool app_is_one_machine(const struct app *a)
{
    return app_is_local(a) || strncmp(a->master, "spark://127.", 12) == 0 ||
           strncmp(a->master, "spark://localhost", 17) == 0;
}

const struct app_argument *app_argument(const struct app *a, const char *name)
{
    for (size_t i = 0; i < a->n_arguments; i++)
        if (strcmp(a->arguments[i].name, name) == 0)
            return &a->arguments[i];
    return NULL;
}

static int index_of_extra(const struct app *a, const char *name)
{
    for (size_t i = 0; i < a->n_extras; i++)
        if (!a->extras[i].word && suggest_same(a->extras[i].key, name))
            return (int)i;
    return -1;
}

int app_extra_index(const struct app *a, const char *name)
{
    static const char *const epochs[] = { "endTriggerNum", "max_epoch", "epochs" };
    if (strcmp(name, "epochs") != 0)
        return index_of_extra(a, name);
    for (size_t i = 0; i < ARRAY_LEN(epochs); i++) {
        int k = index_of_extra(a, epochs[i]);
        if (k >= 0)
            return k;
    }
    return -1;
}

/* What a hyperparameter could be called: rows of "arguments" that are no roles, or keys of the extras. */
static size_t candidates(const struct app *a, const char **names)
{
    size_t n = 0;
    for (size_t i = 0; a->has_arguments && i < a->n_arguments; i++)
        if (!is_role(a->arguments[i].name))
            names[n++] = a->arguments[i].name;
    for (size_t i = 0; !a->has_arguments && i < a->n_extras; i++)
        if (!a->extras[i].word)
            names[n++] = a->extras[i].key + strspn(a->extras[i].key, "-");
    return n;
}

int app_reaches(const struct app *a, const char *hyper, struct err *e)
{
    if (is_role(hyper))
        return err_set(e, -EINVAL, "hyperparameter '%s': PipeTune sets this one itself, from the study", hyper);
    if (a->has_arguments ? app_argument(a, hyper) != NULL : app_extra_index(a, hyper) >= 0)
        return 0;
    AUTO_FREE const char **names = calloc(a->n_arguments + a->n_extras + 1, sizeof *names);
    if (!names)
        return err_sys(e, -ENOMEM, "'%s'", a->file);
    size_t n = candidates(a, names);
    const char *near = suggest_nearest(hyper, names, n);
    const char *where = a->has_arguments ? "'arguments'" : "'extras'";
    if (near)
        return err_set(e, -EINVAL,
                       "hyperparameter '%s' reaches nothing in '%s': %s has no such key; did you mean '%s'?", hyper,
                       a->file, where, near);
    return err_set(e, -EINVAL, "hyperparameter '%s' reaches nothing in '%s': add it to %s", hyper, a->file, where);
}
