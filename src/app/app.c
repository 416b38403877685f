#include "app/app.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"

enum { KINDS_MAX = 16 };

const struct app_kind *app_kind_find(const char *name)
{
    for (const struct app_kind *const *k = app_kinds; *k; k++)
        if (strcmp((*k)->name, name) == 0)
            return *k;
    return NULL;
}

static int unknown_kind(const struct json_doc *doc, const char *name, struct err *e)
{
    const char *names[KINDS_MAX];
    size_t n = 0;
    AUTO_BUF struct buf all = BUF_INIT;
    for (; app_kinds[n] && n < KINDS_MAX; n++) {
        names[n] = app_kinds[n]->name;
        buf_printf(&all, "%s%s", n ? ", " : "", names[n]);
    }
    const char *near = suggest_nearest(name, names, n);
    if (near)
        return json_doc_err(doc, "kind", e, -EINVAL, "is unknown: '%s'; did you mean '%s'?", name, near);
    return json_doc_err(doc, "kind", e, -EINVAL, "is unknown: '%s'; there are %s", name, buf_text(&all));
}

int app_kind_of(const struct app_kind **out, const struct json_doc *doc, struct err *e)
{
    if (!json_is_object(doc->root))
        return err_set(e, -EINVAL, "'%s' line 1: must be a JSON object", doc->name);
    const json_t *kind = json_object_get(doc->root, "kind");
    if (kind && !json_is_string(kind))
        return json_doc_err(doc, "kind", e, -EINVAL, "must be a string");
    const struct app_kind *found = kind ? app_kind_find(json_string_value(kind)) : NULL;
    if (kind && !found)
        return unknown_kind(doc, json_string_value(kind), e);
    for (const struct app_kind *const *k = app_kinds; !found && *k; k++)
        if (((*k)->key && json_object_get(doc->root, (*k)->key)) ||
            ((*k)->other_key && json_object_get(doc->root, (*k)->other_key)))
            found = *k;
    *out = found ? found : app_kinds[0];
    return 0;
}

int app_parse(struct application *out, const struct json_doc *doc, app_lookup *lookup, void *ctx, struct err *e)
{
    struct application a = { 0 };
    int rc = app_kind_of(&a.kind, doc, e);
    if (rc < 0)
        return rc;
    a.own = calloc(1, a.kind->own_size);
    rc = a.own ? app_file_parse(&a.file, a.own, &a.kind->rules, doc, lookup, ctx, e)
               : err_sys(e, -ENOMEM, "'%s'", doc->name);
    if (rc == 0) {
        a.checkpoints = app_file_argument(&a.file, "checkpoint") != NULL;
        a.resumes = app_file_argument(&a.file, "resume") != NULL;
        rc = a.kind->check(&a, doc, e);
    }
    if (rc == 0)
        *out = a;
    else
        app_done(&a);
    return rc;
}

void app_done(struct application *a)
{
    if (!a || !a->kind)
        return;
    if (a->own)
        a->kind->done(a->own);
    free(a->own);
    app_file_done(&a->file);
    *a = (struct application){ 0 };
}

void app_steps_done(struct app_steps *s)
{
    for (size_t i = 0; i < APP_STEPS_MAX; i++)
        strv_done(&s->argv[i]);
    strv_done(&s->env);
    free(s->folder);
    *s = (struct app_steps){ 0 };
}

enum app_part app_part_of(const char *file, int64_t *out_n)
{
    enum app_part part = APP_PART_NEITHER;
    for (const struct app_kind *const *k = app_kinds; *k && part == APP_PART_NEITHER; k++)
        part = (*k)->part ? (*k)->part(file, out_n) : part;
    return part;
}

bool app_is_checkpoint_folder(const char *name)
{
    bool is = false;
    for (const struct app_kind *const *k = app_kinds; *k && !is; k++)
        is = (*k)->is_folder && (*k)->is_folder(name);
    return is;
}

bool app_is_local(const struct application *a)
{
    return !a->kind->is_local || a->kind->is_local(a);
}

bool app_is_one_machine(const struct application *a)
{
    return a->kind->is_one_machine ? a->kind->is_one_machine(a) : app_is_local(a);
}

double app_memory_gb(const struct application *a)
{
    return a->kind->memory_gb ? a->kind->memory_gb(a) : 0;
}

int app_reaches(const struct application *a, const char *hyper, struct err *e)
{
    return a->kind->passes_any && !app_file_is_role(hyper) ? 0 : app_file_reaches(&a->file, hyper, e);
}

bool app_reaches_epochs(const struct application *a)
{
    return a->kind->passes_any || app_file_argument(&a->file, "epochs") || app_file_extra(&a->file, "epochs") >= 0;
}

static void put_path(struct buf *out, const char *key, const char *path)
{
    buf_printf(out, ",\"%s\":", key);
    if (path)
        json_put_string(out, path);
    else
        buf_puts(out, "null");
}

void app_put_answer(const struct app_launch *l, const json_t *hyper, long long seed, struct buf *out)
{
    buf_puts(out, "{\"hyper\":");
    json_put(out, hyper, JSON_STYLE_COMPACT);
    buf_printf(out, ",\"epochs\":%d", l->epochs);
    put_path(out, "checkpoint", l->checkpoint);
    put_path(out, "resume", l->resume_model);
    buf_printf(out, ",\"seed\":%lld}", seed);
}
