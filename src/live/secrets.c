#include "live/secrets.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"

void secrets_done(struct secrets *s)
{
    strv_done(&s->named);
    strv_done(&s->tuned);
    strv_done(&s->values);
    json_decref(s->knobs);
    *s = (struct secrets){ 0 };
}

struct secret_rules secrets_rules(const struct secrets *s)
{
    return (struct secret_rules){ .named = &s->named, .tuned = &s->tuned };
}

static int no_memory(struct err *e)
{
    return err_sys(e, -ENOMEM, "secrets");
}

/* --- reading --- */

static void add_names(struct strv *to, const json_t *names)
{
    if (json_is_string(names))
        strv_add(to, json_string_value(names));
    for (size_t i = 0; i < json_array_size(names); i++)
        strv_add(to, json_string_value(json_array_get(names, i))); /* texts, as config_read() has seen */
}

static int take_knob(struct secrets *s, const struct json_doc *doc, const char *name, json_t *value, struct err *e)
{
    json_t *one = json_is_array(value) && json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    char path[192];
    (void)snprintf(path, sizeof path, "systemParameters/%s", name);
    if (!json_is_string(one) && !json_is_number(one))
        return json_doc_err(doc, path, e, -EINVAL, "is a secret, which is passed and not tuned: give it one value");
    if (!s->knobs && !(s->knobs = json_object()))
        return no_memory(e);
    return json_object_set(s->knobs, name, value) < 0 ? no_memory(e) : 0;
}

int secrets_take(struct secrets *s, struct json_doc *doc, struct err *e)
{
    json_t *system = json_object_get(doc->root, "systemParameters");
    add_names(&s->named, json_object_get(json_object_get(doc->root, "study"), "secrets"));
    const struct secret_rules rules = secrets_rules(s);
    const char *name;
    json_t *value;
    int rc = s->named.failed ? no_memory(e) : 0;
    json_object_foreach(system, name, value)
    {
        if (rc == 0 && space_is_property(name) && secret_is(&rules, name))
            rc = take_knob(s, doc, name, value, e);
    }
    json_object_foreach(s->knobs, name, value)
    {
        (void)json_object_del(system, name);
    }
    if (s->knobs && json_object_size(system) == 0)
        (void)json_object_del(doc->root, "systemParameters");
    return rc;
}

static void add_tuned(struct secrets *s, const struct app_file *app, const char *name)
{
    const struct app_argument *a = app_file_argument(app, name);
    int extra = app_file_extra(app, name);
    strv_add(&s->tuned, name);
    if (a && a->words.n)
        strv_add(&s->tuned, a->words.v[0]);
    if (extra >= 0)
        strv_add(&s->tuned, app->extras[extra].key);
}

int secrets_find(struct secrets *s, const struct app_file *app, const struct space *space, struct err *e)
{
    for (size_t i = 0; i < space->n_dims; i++)
        add_tuned(s, app, space->dims[i].name);
    const struct secret_rules rules = secrets_rules(s);
    for (size_t i = 0; i < app->n_extras; i++) {
        const struct app_extra *x = &app->extras[i];
        bool next = i > 0 && x->word && secret_is(&rules, app->extras[i - 1].key);
        if (x->value && secret_is(&rules, x->key))
            strv_add(&s->values, x->value);
        else if (next)
            strv_add(&s->values, x->key);
    }
    const char *name;
    json_t *value;
    json_object_foreach(s->knobs, name, value)
    {
        const json_t *one = json_is_array(value) ? json_array_get(value, 0) : value;
        if (json_is_string(one))
            strv_add(&s->values, json_string_value(one));
    }
    return s->tuned.failed || s->values.failed ? no_memory(e) : 0;
}

/* --- storing --- */

const char *secrets_salt(const json_t *stored)
{
    return json_string_value(json_object_get(json_object_get(stored, "secrets"), "salt"));
}

static void new_salt(char out[SECRETS_SALT_SIZE])
{
    unsigned char r[(SECRETS_SALT_SIZE - 1) / 2] = { 0 };
    (void)!getrandom(r, sizeof r, 0); /* a few bytes, which it has at once */
    for (size_t i = 0; i < sizeof r; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", r[i]);
}

/* As the user wrote it: with the properties that were taken out. */
static json_t *whole(const struct secrets *s, const json_t *config)
{
    json_t *copy = json_deep_copy(config);
    if (!copy || !s->knobs)
        return copy;
    json_t *system = json_object_get(copy, "systemParameters");
    int rc = system ? 0 : json_object_set_new(copy, "systemParameters", system = json_object());
    if (rc == 0 && json_object_update(system, s->knobs) == 0)
        return copy;
    json_decref(copy);
    return NULL;
}

json_t *secrets_config(const struct secrets *s, const json_t *config, const char *salt)
{
    char fresh[SECRETS_SALT_SIZE];
    const struct secret_rules rules = secrets_rules(s);
    if (!salt)
        new_salt(fresh);
    salt = salt ? salt : fresh;
    AUTO_JSON json_t *all = whole(s, config);
    AUTO_JSON json_t *sums = json_object();
    json_t *to = all && sums ? secret_masked(&rules, all, salt, sums) : NULL;
    if (!to || json_object_size(sums) == 0)
        return to;
    if (json_object_set_new(sums, "salt", json_string(salt)) == 0 && json_object_set(to, "secrets", sums) == 0)
        return to;
    json_decref(to);
    return NULL;
}

char *secrets_text(const struct secrets *s, const struct json_doc *doc)
{
    const struct secret_rules rules = secrets_rules(s);
    AUTO_JSON json_t *sums = json_object();
    AUTO_JSON json_t *all = sums ? whole(s, doc->root) : NULL;
    AUTO_JSON json_t *bare = all ? secret_masked(&rules, all, "", sums) : NULL;
    if (!bare)
        return NULL;
    return json_object_size(sums) == 0 ? strdup(doc->text) : json_text(bare);
}

/* --- passing --- */

static const char file_name[] = "properties";

int secrets_write(const struct secrets *s, const struct application *app, const char *dir, const struct env *env,
                  char **out, struct err *e)
{
    enum { FILE_MAX = 1 << 20 };
    *out = NULL;
    if (!s->knobs)
        return 0;
    AUTO_BUF struct buf text = BUF_INIT;
    const char *base = app->kind->properties_file(app);
    AUTO_FREE char *defaults = base ? strdup(base) : env_default_properties(env);
    AUTO_FREE char *path = io_join(dir, file_name);
    int rc = path && (defaults || !base) ? 0 : no_memory(e);
    if (rc == 0 && defaults)
        rc = io_read_file(&text, defaults, FILE_MAX, e);
    if (rc < 0)
        return rc;
    buf_putc(&text, '\n'); /* its last line may lack it */
    app->kind->put_properties(s->knobs, &text);
    rc = text.failed ? no_memory(e) : io_write_atomic(path, text.data, text.len, 0600, e);
    if (rc == 0)
        *out = MOVE_PTR(path);
    return rc;
}

/* "properties", or "properties.PID.tmp" of one that was killed while it wrote it. */
static bool is_ours(const char *name)
{
    const size_t len = sizeof file_name - 1;
    return strncmp(name, file_name, len) == 0 && (name[len] == '\0' || name[len] == '.');
}

void secrets_forget(const char *dir)
{
    DIR *d = ours_is_dir(dir) ? opendir(dir) : NULL;
    for (const struct dirent *f; d && (f = readdir(d));)
        if (is_ours(f->d_name))
            (void)unlinkat(dirfd(d), f->d_name, 0); /* gc tries again */
    if (d)
        (void)closedir(d);
}
