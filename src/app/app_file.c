#include "app/app_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"
#include "base/utf8.h"

static int no_memory(const struct app_reader *r)
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
static int put_variable(const struct app_reader *r, const char *path, const char *at, struct buf *out)
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
        return json_doc_err(r->doc, path, r->e, -EINVAL,
                            "uses $%s, whose value '%s' is not UTF-8: %s; rename it, or name another", copy, value,
                            r->rules->no_utf8);
    buf_puts(out, value);
    return 1 + brace + n + brace;
}

static int expand(const struct app_reader *r, const char *path, const char *text, char **out)
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
int app_read_scalar(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    char num[NUM_TEXT_MAX];
    if (json_is_string(j))
        return expand(r, path, json_string_value(j), field);
    if (json_is_integer(j))
        (void)snprintf(num, sizeof num, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
    else if (json_is_real(j))
        (void)num_print(json_real_value(j), num);
    else
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a string or a number");
    char *copy = strdup(num);
    if (!copy)
        return no_memory(r);
    *(char **)field = copy;
    return 0;
}

/* ---- members of one value ------------------------------------------------------------------------------------------- */

int app_read_text(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    if (!json_is_string(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a string");
    int rc = expand(r, path, json_string_value(j), field);
    if (rc == 0 && **(char **)field == '\0')
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must not be empty");
    return rc;
}

int app_read_flag(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    if (!json_is_boolean(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be true or false");
    *(bool *)field = json_is_true(j);
    return 0;
}

int app_read_words(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    if (!json_is_array(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be an array of words");
    for (size_t i = 0; i < json_array_size(j); i++) {
        char at[160], *word = NULL;
        (void)snprintf(at, sizeof at, "%s/%zu", path, i);
        int rc = app_read_scalar(r, at, json_array_get(j, i), &word);
        if (rc < 0)
            return rc;
        strv_take(field, word);
    }
    return ((struct strv *)field)->failed ? no_memory(r) : 0;
}

/* "a,b" or ["a", "b"]; empty pieces are dropped, so that "$EXTRA,x" works with an empty EXTRA. */
static int add_list(const struct app_reader *r, const char *path, const json_t *j, struct strv *out)
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

int app_read_list(const struct app_reader *r, const char *path, const json_t *j, void *field)
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

static int one_extra(const struct app_reader *r, const char *path, const char *key, const json_t *value,
                     struct app_extra *out)
{
    if (asprintf(&out->key, "%s%s", key[0] == '-' ? "" : "--", key) < 0) {
        out->key = NULL;
        return no_memory(r);
    }
    return json_is_true(value) ? 0 : app_read_scalar(r, path, value, &out->value);
}

static int extras_of_object(const struct app_reader *r, const char *path, const json_t *j)
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
        int rc = one_extra(r, at, key, value, &r->file->extras[r->file->n_extras++]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int extras_of_array(const struct app_reader *r, const char *path, const json_t *j)
{
    for (size_t i = 0; i < json_array_size(j); i++) {
        char at[64];
        (void)snprintf(at, sizeof at, "%s/%zu", path, i);
        struct app_extra *x = &r->file->extras[r->file->n_extras++];
        x->word = true;
        int rc = app_read_scalar(r, at, json_array_get(j, i), &x->key);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_extras(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    (void)field;
    if (r->file->extras)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "is there twice: 'extra' is another name for 'extras'");
    if (!json_is_object(j) && !json_is_array(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be an object, or an array of words");
    size_t n = json_is_object(j) ? json_object_size(j) : json_array_size(j);
    r->file->extras = calloc(n + 1, sizeof *r->file->extras);
    if (!r->file->extras)
        return no_memory(r);
    return json_is_object(j) ? extras_of_object(r, path, j) : extras_of_array(r, path, j);
}

/* ---- arguments ------------------------------------------------------------------------------------------------------ */

static const char *const roles[] = { "epochs", "checkpoint", "resume", "seed" };

bool app_file_is_role(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if (strcmp(name, roles[i]) == 0)
            return true;
    return false;
}

static bool is_word(const char *at, size_t n, const char *word)
{
    return word && strlen(word) == n && memcmp(at, word, n) == 0;
}

/* Counts the placeholders of a word; another word in braces is a mistake: "{value}" would reach the application as it is. */
static int check_placeholders(const struct app_reader *r, const char *path, const char *word, bool resume, int *found)
{
    const char *const *names = r->rules->resume;
    for (const char *p = strchr(word, '{'); p; p = strchr(p + 1, '{')) {
        size_t n = 0;
        while (is_name(p[1 + n]))
            n++;
        if (p[1 + n] != '}')
            continue; /* JSON, or anything else of the application's own */
        bool known = resume ? is_word(p + 1, n, names[0]) || is_word(p + 1, n, names[1]) : n == 0;
        if (!known && resume)
            return json_doc_err(r->doc, path, r->e, -EINVAL, "has the placeholder %.*s; here it can be {%s}%s%s%s",
                                (int)n + 2, p, names[0], names[1] ? " or {" : "", names[1] ? names[1] : "",
                                names[1] ? "}" : "");
        if (!known)
            return json_doc_err(r->doc, path, r->e, -EINVAL, "has the placeholder %.*s; here it can be {}", (int)n + 2,
                                p);
        ++*found;
    }
    return 0;
}

static int read_words(const struct app_reader *r, const char *path, const json_t *j, struct app_argument *out)
{
    int found = 0;
    bool resume = strcmp(out->name, "resume") == 0;
    size_t n = json_is_array(j) ? json_array_size(j) : 1;
    for (size_t i = 0; i < n; i++) {
        char at[256];
        char *word = NULL;
        (void)snprintf(at, sizeof at, json_is_array(j) ? "%s/%zu" : "%s", path, i);
        int rc = app_read_scalar(r, at, json_is_array(j) ? json_array_get(j, i) : j, &word);
        if (rc < 0)
            return rc;
        strv_take(&out->words, word);
        if (out->words.failed)
            return no_memory(r);
        rc = check_placeholders(r, at, word, resume, &found);
        if (rc < 0)
            return rc;
    }
    if (found > 0 || (n == 0 && r->rules->told))
        return 0;
    const char *const *names = r->rules->resume;
    if (!resume)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "has no {}, so no value would reach the application");
    return json_doc_err(r->doc, path, r->e, -EINVAL, "has no {%s}%s%s%s, so no value would reach the application",
                        names[0], names[1] ? " and {" : "", names[1] ? names[1] : "", names[1] ? "}" : "");
}

static int read_arguments(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    (void)field;
    if (!json_is_object(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL,
                            "must be an object of arrays such as {\"batch_size\": [\"-b\", \"{}\"]}");
    r->file->has_arguments = true;
    r->file->arguments = calloc(json_object_size(j) + 1, sizeof *r->file->arguments);
    if (!r->file->arguments)
        return no_memory(r);
    const char *name;
    json_t *words;
    json_object_foreach((json_t *)j, name, words)
    {
        char at[128];
        (void)snprintf(at, sizeof at, "%s/%s", path, name);
        if (json_is_null(words))
            continue;
        struct app_argument *a = &r->file->arguments[r->file->n_arguments++];
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

/* It was read already, by whoever chose the rules. */
static int read_kind(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    (void)r;
    (void)path;
    (void)j;
    (void)field;
    return 0;
}

static const struct app_member common[] = {
    { "kind", read_kind, 0 },           { "session", app_read_flag, offsetof(struct app_file, session) },
    { "extras", read_extras, 0 },       { "extra", read_extras, 0 },
    { "arguments", read_arguments, 0 },
};

static int unknown_key(const struct app_reader *r, const char *key)
{
    enum { MEMBERS_MAX = 48 };
    const char *names[MEMBERS_MAX + ARRAY_LEN(common)];
    size_t n = 0;
    for (const struct app_member *m = r->rules->members; m->key && n < MEMBERS_MAX; m++)
        names[n++] = m->key;
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        names[n++] = common[i].key;
    const char *near = suggest_nearest(key, names, n);
    if (near)
        return json_doc_err(r->doc, key, r->e, -EINVAL, "is unknown; did you mean '%s'?", near);
    return json_doc_err(r->doc, key, r->e, -EINVAL,
                        "is unknown; the application's own options go into 'extras' or 'arguments'");
}

static int read_key(const struct app_reader *r, void *own, const char *key, const json_t *value)
{
    for (const struct app_member *m = r->rules->members; m->key; m++)
        if (strcmp(m->key, key) == 0)
            return json_is_null(value) ? 0 : m->parse(r, key, value, (char *)own + m->offset);
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        if (strcmp(common[i].key, key) == 0)
            return json_is_null(value) ? 0 : common[i].parse(r, key, value, (char *)r->file + common[i].offset);
    return unknown_key(r, key);
}

int app_file_parse(struct app_file *out, void *own, const struct app_file_rules *rules, const struct json_doc *doc,
                   app_lookup *lookup, void *ctx, struct err *e)
{
    const struct app_reader r = { out, rules, doc, lookup, ctx, e };
    *out = (struct app_file){ .name = strdup(doc->name) };
    if (!out->name)
        return no_memory(&r);
    const char *key;
    json_t *value;
    int rc = 0;
    json_object_foreach(doc->root, key, value)
    {
        rc = rc < 0 ? rc : read_key(&r, own, key, value);
    }
    return rc;
}

void app_file_done(struct app_file *f)
{
    for (size_t i = 0; i < f->n_extras; i++) {
        free(f->extras[i].key);
        free(f->extras[i].value);
    }
    for (size_t i = 0; i < f->n_arguments; i++) {
        free(f->arguments[i].name);
        strv_done(&f->arguments[i].words);
    }
    free(f->extras);
    free(f->arguments);
    free(f->name);
    *f = (struct app_file){ 0 };
}

/* ---- questions ------------------------------------------------------------------------------------------------------ */

/* "hdfs:…", "s3a:…", "file:…": a scheme is letters, digits and +-. before a colon. */
static bool has_scheme(const char *path)
{
    const char *p = path;
    while (is_name(*p) || *p == '+' || *p == '-' || *p == '.')
        p++;
    return p > path && *p == ':';
}

bool app_path_is_local(const char *path)
{
    return !has_scheme(path);
}

int app_resolve_path(const char *key, char **path, app_resolve *resolve, void *ctx, struct err *e)
{
    return *path && !has_scheme(*path) ? resolve(ctx, key, path, e) : 0;
}

const struct app_argument *app_file_argument(const struct app_file *f, const char *name)
{
    for (size_t i = 0; i < f->n_arguments; i++)
        if (strcmp(f->arguments[i].name, name) == 0)
            return &f->arguments[i];
    return NULL;
}

static int index_of_extra(const struct app_file *f, const char *name)
{
    for (size_t i = 0; i < f->n_extras; i++)
        if (!f->extras[i].word && suggest_same(f->extras[i].key, name))
            return (int)i;
    return -1;
}

int app_file_extra(const struct app_file *f, const char *name)
{
    static const char *const epochs[] = { "endTriggerNum", "max_epoch", "epochs" };
    if (strcmp(name, "epochs") != 0)
        return index_of_extra(f, name);
    for (size_t i = 0; i < ARRAY_LEN(epochs); i++) {
        int k = index_of_extra(f, epochs[i]);
        if (k >= 0)
            return k;
    }
    return -1;
}

/* What a hyperparameter could be called: rows of "arguments" that are no roles, or keys of the extras. */
static size_t candidates(const struct app_file *f, const char **names)
{
    size_t n = 0;
    for (size_t i = 0; f->has_arguments && i < f->n_arguments; i++)
        if (!app_file_is_role(f->arguments[i].name))
            names[n++] = f->arguments[i].name;
    for (size_t i = 0; !f->has_arguments && i < f->n_extras; i++)
        if (!f->extras[i].word)
            names[n++] = f->extras[i].key + strspn(f->extras[i].key, "-");
    return n;
}

int app_file_reaches(const struct app_file *f, const char *hyper, struct err *e)
{
    if (app_file_is_role(hyper))
        return err_set(e, -EINVAL, "hyperparameter '%s': PipeTune sets this one itself, from the study", hyper);
    if (f->has_arguments ? app_file_argument(f, hyper) != NULL : app_file_extra(f, hyper) >= 0)
        return 0;
    AUTO_FREE const char **names = calloc(f->n_arguments + f->n_extras + 1, sizeof *names);
    if (!names)
        return err_sys(e, -ENOMEM, "'%s'", f->name);
    size_t n = candidates(f, names);
    const char *near = suggest_nearest(hyper, names, n);
    const char *where = f->has_arguments ? "'arguments'" : "'extras'";
    if (near)
        return err_set(e, -EINVAL,
                       "hyperparameter '%s' reaches nothing in '%s': %s has no such key; did you mean '%s'?", hyper,
                       f->name, where, near);
    return err_set(e, -EINVAL, "hyperparameter '%s' reaches nothing in '%s': add it to %s", hyper, f->name, where);
}
