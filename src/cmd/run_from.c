#include "cmd/run_from.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/json.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/sha256.h"
#include "cmd/look.h"
#include "core/config.h"
#include "live/study.h"
#include "store/sources.h"
#include "view/view.h"
#include "view/words.h"

/* A file of then. */
struct file {
    char *name, *path; /* as it was named, and where it was */
    char *restored;    /* where its content is again; NULL: it was not kept */
    char sha256[SHA256_HEX_MAX];
    bool named; /* the application file says it by that name */
};

struct from {
    const char *word;
    char *store_path, *dir; /* of the study that is made */
    struct store *store;
    struct store_study study;
    struct store_trial trial;
    struct look_name name;
    struct file *files;
    size_t n, cap;
    struct err *e;
};

static void from_done(struct from *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->files[i].name);
        free(f->files[i].path);
        free(f->files[i].restored);
    }
    free(f->files);
    free(f->store_path);
    free(f->dir);
    store_trial_done(&f->trial);
    store_study_done(&f->study);
    look_name_done(&f->name);
    store_close(f->store);
}

static int no_memory(struct from *f)
{
    return err_sys(f->e, -ENOMEM, "'%s'", f->word);
}

/* --- files --- */

/* Below a folder, whatever the name is: "../a//b" is "up/a/b". */
static char *below(const char *dir, const char *name)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, dir);
    for (const char *at = name; *at;) {
        size_t len = strcspn(at, "/");
        if (len == 2 && strncmp(at, "..", 2) == 0)
            buf_puts(&b, "/up");
        else if (len > 0 && !(len == 1 && *at == '.')) {
            buf_putc(&b, '/');
            buf_put(&b, at, len);
        }
        at += len + (at[len] == '/');
    }
    return buf_take(&b);
}

static int write_source(struct from *f, const char *path, const struct store_source *r)
{
    AUTO_FREE char *folder = io_dirname(path);
    int rc = folder ? io_mkdirs(folder, f->e) : no_memory(f);
    return rc == 0 ? io_write_atomic(path, r->bytes, r->len, (mode_t)(r->mode & 0755), f->e) : rc;
}

static int take_source(void *ctx, const struct store_source *r)
{
    struct from *f = ctx;
    struct file *grown = array_more(f->files, f->n, &f->cap, sizeof *grown);
    if (!grown)
        return no_memory(f);
    f->files = grown;
    struct file *one = &f->files[f->n++];
    *one = (struct file){ .name = strdup(r->name), .path = strdup(r->path) };
    (void)snprintf(one->sha256, sizeof one->sha256, "%s", r->sha256);
    AUTO_FREE char *source = io_join(f->dir, "source");
    if (r->bytes)
        one->restored = source ? below(source, r->name) : NULL;
    if (!one->name || !one->path || !source || (r->bytes && !one->restored))
        return no_memory(f);
    return one->restored ? write_source(f, one->restored, r) : 0;
}

static struct file *named(struct from *f, const char *text)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->files[i].name, text) == 0)
            return &f->files[i];
    return NULL;
}

static bool same_folder(const char *a, const char *b)
{
    const char *end_a = strrchr(a, '/'), *end_b = strrchr(b, '/');
    return end_a && end_b && end_a - a == end_b - b && strncmp(a, b, (size_t)(end_a - a)) == 0;
}

/* It is read as it is again: by its name, or since it stands beside one that is. */
static bool is_in_force(const struct from *f, const struct file *one)
{
    for (size_t i = 0; one->restored && i < f->n; i++)
        if (f->files[i].named && f->files[i].restored && same_folder(f->files[i].path, one->path))
            return true;
    return false;
}

/* What is read where it is must be what it was. */
static int check_others(struct from *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct file *one = &f->files[i];
        char now[SHA256_HEX_MAX] = "";
        if (is_in_force(f, one))
            continue;
        if (sha256_file(one->path, now, f->e) < 0 || strcmp(now, one->sha256) != 0)
            return err_set(
                f->e, -EINVAL,
                "'%s' cannot be begun again: '%s' is not what it was (sha256 %.12s…), and its content was not kept; "
                "put it back",
                f->word, one->path, one->sha256);
    }
    return 0;
}

/* --- application and config --- */

/* With the names of restored files in the place of theirs; new reference. */
static json_t *with_restored(struct from *f, json_t *in)
{
    const char *key, *text = json_string_value(in);
    struct file *file = text ? named(f, text) : NULL;
    json_t *value, *out;
    size_t i;
    if (file) {
        file->named = true;
        return json_bytes(file->restored ? file->restored : file->path);
    }
    if (!json_is_array(in) && !json_is_object(in))
        return json_incref(in);
    out = json_is_array(in) ? json_array() : json_object();
    json_array_foreach(in, i, value)(void) json_array_append_new(out, with_restored(f, value));
    if (json_is_object(in))
        json_object_foreach(in, key, value)(void) json_object_set_new(out, key, with_restored(f, value));
    return out; /* jansson ends the program when memory is out */
}

static int write_json(struct from *f, const char *name, const json_t *j)
{
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *path = io_join(f->dir, name);
    json_put(&text, j, JSON_STYLE_INDENT);
    buf_putc(&text, '\n');
    return path && !text.failed ? io_write_atomic(path, text.data, text.len, 0600, f->e) : no_memory(f);
}

/* Null stands for what was not said. */
static void drop_nulls(json_t *in)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(in, next, key, value)
    {
        drop_nulls(value);
        if (json_is_null(value))
            (void)json_object_del(in, key);
    }
}

/* The effective config has all of its keys, used or not: whether trials were jobs of Slurm is in what was written. */
static bool was_on_slurm(const struct from *f)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    AUTO_JSON json_t *provenance = words_object(f->study.provenance);
    const char *text = json_string_value(json_object_get(provenance, "config"));
    struct err ignored;
    return text && json_doc_parse(&doc, "config", text, strlen(text), &ignored) == 0 &&
           json_object_get(json_object_get(doc.root, "places"), "slurm");
}

static void pin(json_t *config, const char *section, const char *values_text)
{
    AUTO_JSON json_t *values = words_object(values_text);
    json_t *out = json_object();
    const char *key;
    json_t *value;
    json_object_foreach(values, key, value)(void) json_object_set_new(out, key, json_pack("[O]", value));
    (void)json_object_set_new(config, section, out);
}

/* The one point, for as many epochs, by the seed that it had: there is nothing to search. */
static void narrow(const struct from *f, json_t *config)
{
    static const char *const gone[] = { "search", "budget", "bigdlConf", "parameters" };
    static const char *const of_study[] = { "constraints", "first",       "target", "max_trials",
                                            "repeats",     "repeat_best", "secrets" };
    json_t *study = json_object_get(config, "study");
    const char *policy = json_string_value(json_object_get(json_object_get(config, "tuning"), "policy"));
    AUTO_BUF struct buf name = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(gone); i++)
        (void)json_object_del(config, gone[i]);
    for (size_t i = 0; i < ARRAY_LEN(of_study); i++)
        (void)json_object_del(study, of_study[i]);
    buf_printf(&name, "%s-%d", f->study.name, f->trial.number);
    (void)json_object_set_new(study, "name", json_bytes(buf_text(&name)));
    (void)json_object_set_new(study, "epochs", json_integer(f->trial.epochs));
    (void)json_object_set_new(study, "seed", json_integer((json_int_t)f->study.seed + f->trial.repeat));
    pin(config, "hyperParameters", f->trial.hyper);
    if (policy && strcmp(policy, "v2") == 0 && f->trial.requested) /* where settings were searched with them */
        pin(config, "systemParameters", f->trial.requested);
    json_t *places = json_object_get(config, "places"), *slurm = json_object_get(places, "slurm");
    if (!was_on_slurm(f) && !json_is_string(json_object_get(slurm, "partition")))
        (void)json_object_del(places, "slurm");
    (void)json_object_set_new(config, "store", json_bytes(f->store_path));
    drop_nulls(config);
}

static int write_config(struct from *f)
{
    AUTO_JSON json_t *config = words_object(f->study.config);
    AUTO_JSON json_t *stored = json_incref((json_t *)(uintptr_t)config_stored_application(config));
    AUTO_FREE char *path = io_join(f->dir, "application.json");
    const char *key;
    json_t *value;
    void *next;
    if (json_object_get(config, "secrets"))
        return err_set(f->e, -EINVAL, "'%s' cannot be begun again: its study has secrets, which are not in the store",
                       f->word);
    if (!stored || !path)
        return err_set(f->e, -EINVAL, "'%s' cannot be begun again: its study's application file is not in the store",
                       f->word);
    json_object_foreach_safe(config, next, key, value)
    {
        if (value == stored)
            (void)json_object_del(config, key);
    }
    narrow(f, config);
    (void)json_object_set_new(config, "application", json_bytes(path));
    AUTO_JSON json_t *application = with_restored(f, stored);
    int rc = check_others(f);
    if (rc == 0)
        rc = write_json(f, "application.json", application);
    return rc == 0 ? write_json(f, "config.json", config) : rc;
}

/* --- finding it --- */

static int keep_trial(void *ctx, const struct store_trial *t)
{
    return store_trial_copy(ctx, t);
}

static int find(struct from *f)
{
    int rc = store_open(&f->store, f->store_path, STORE_READ, f->e);
    if (rc == 0)
        rc = look_name_find(&f->name, f->store, f->word, &f->study, f->e);
    if (rc == 0 && !f->name.trial)
        rc = err_set(f->e, -EINVAL, "option '--from' is about a trial: say STUDY/N, as in %s/1", f->word);
    if (rc == 0)
        rc = store_trials(f->store, f->study.id, f->name.trial, keep_trial, &f->trial, f->e);
    return view_explain(rc, f->e, f->word);
}

static int make_folder(struct from *f)
{
    AUTO_FREE char *beside = io_dirname(f->store_path);
    AUTO_BUF struct buf name = BUF_INIT;
    buf_printf(&name, "%s-%d.from", f->study.name, f->trial.number);
    f->dir = beside && !name.failed ? io_join(beside, buf_text(&name)) : NULL;
    return f->dir ? ours_dir(f->dir, f->e) : no_memory(f);
}

int run_from(char **out_config, const char *store, const char *word, struct err *e)
{
    struct from f = { .word = word, .store_path = study_store_path(store), .e = e };
    int rc = f.store_path ? find(&f) : no_memory(&f);
    if (rc == 0)
        rc = make_folder(&f);
    if (rc == 0)
        rc = store_sources(f.store, f.study.id, take_source, &f, e);
    if (rc == 0)
        rc = write_config(&f);
    if (rc == 0 && !(*out_config = io_join(f.dir, "config.json")))
        rc = no_memory(&f);
    from_done(&f);
    return rc;
}
