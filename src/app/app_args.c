#include "app/app_args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"

void app_fill(struct strv *out, const char *word, const struct app_value *values, size_t n)
{
    AUTO_BUF struct buf b = BUF_INIT;
    while (*word) {
        size_t used = 0;
        for (size_t i = 0; i < n && *word == '{'; i++) {
            size_t len = strlen(values[i].name);
            if (strncmp(word + 1, values[i].name, len) != 0 || word[1 + len] != '}')
                continue;
            buf_puts(&b, values[i].text);
            used = len + 2;
            break;
        }
        if (used == 0)
            buf_putc(&b, *word);
        word += used ? used : 1;
    }
    strv_take(out, buf_take(&b));
}

static void put_argument(struct strv *out, const struct app_argument *a, const struct app_value *values, size_t n)
{
    for (size_t i = 0; a && i < a->words.n; i++)
        app_fill(out, a->words.v[i], values, n);
}

static void put_role(struct strv *out, const struct app_file *f, const char *name, const char *text)
{
    const struct app_value v = { "", text };
    if (text)
        put_argument(out, app_file_argument(f, name), &v, 1);
}

static const char *hyper_text(const struct app_launch *l, const char *name)
{
    for (size_t i = 0; i < l->n_hypers; i++)
        if (strcmp(l->hypers[i].name, name) == 0)
            return l->hypers[i].text;
    return NULL;
}

/* Will "arguments" give this option, so that the extras' own is only its default? */
static bool is_given(const struct app_file *f, const struct app_launch *l, const char *key)
{
    for (size_t i = 0; i < f->n_arguments; i++) {
        const struct app_argument *a = &f->arguments[i];
        bool used = hyper_text(l, a->name) || strcmp(a->name, "epochs") == 0 ||
                    (strcmp(a->name, "checkpoint") == 0 && l->checkpoint) ||
                    (strcmp(a->name, "seed") == 0 && l->seed) || (strcmp(a->name, "resume") == 0 && l->resume_model);
        if (used && key[0] == '-' && a->words.n > 0 && strcmp(a->words.v[0], key) == 0)
            return true;
    }
    return false;
}

/* The value of extras[i]: its own, or without "arguments" that of the hyperparameter or role it stands for. */
static const char *extra_value(const struct app_file *f, const struct app_launch *l, size_t i, const char *epochs)
{
    const struct app_value fixed[] = { { "epochs", epochs }, { "checkpoint", l->checkpoint }, { "seed", l->seed } };
    if (f->has_arguments)
        return f->extras[i].value;
    for (size_t k = 0; k < l->n_hypers; k++)
        if (app_file_extra(f, l->hypers[k].name) == (int)i)
            return l->hypers[k].text;
    for (size_t k = 0; k < ARRAY_LEN(fixed); k++)
        if (fixed[k].text && app_file_extra(f, fixed[k].name) == (int)i)
            return fixed[k].text;
    return f->extras[i].value;
}

static void put_extras(struct strv *out, const struct app_file *f, const struct app_launch *l, const char *epochs)
{
    for (size_t i = 0; i < f->n_extras; i++) {
        const struct app_extra *x = &f->extras[i];
        if (!x->word && f->has_arguments && is_given(f, l, x->key))
            continue;
        strv_add(out, x->key);
        const char *value = extra_value(f, l, i, epochs);
        if (value)
            strv_add(out, value);
    }
}

/* What is the same for every trial. */
static void put_fixed_extras(struct strv *out, const struct app_file *f)
{
    for (size_t i = 0; i < f->n_extras; i++) {
        strv_add(out, f->extras[i].key);
        if (f->extras[i].value)
            strv_add(out, f->extras[i].value);
    }
}

int app_check_launch(const struct application *a, const struct app_launch *l, struct err *e)
{
    const struct app_file *f = &a->file;
    if (l->session || a->kind->passes_any)
        return 0;
    for (size_t i = 0; i < l->n_hypers; i++) {
        int rc = app_file_reaches(f, l->hypers[i].name, e);
        if (rc < 0)
            return rc;
    }
    if (f->has_arguments ? app_file_argument(f, "epochs") != NULL : app_file_extra(f, "epochs") >= 0)
        return 0;
    return err_set(e, -EINVAL, "the number of epochs reaches nothing in '%s': add %s", f->name,
                   f->has_arguments ? "\"epochs\" to 'arguments'" : "'endTriggerNum' or 'max_epoch' to 'extras'");
}

void app_put_arguments(const struct application *a, const struct app_launch *l, struct strv *out)
{
    const struct app_file *f = &a->file;
    const char *const *resume = a->kind->rules.resume;
    char epochs[16];
    (void)snprintf(epochs, sizeof epochs, "%d", l->epochs);
    if (l->session) {
        put_fixed_extras(out, f);
        return;
    }
    put_extras(out, f, l, epochs);
    for (size_t i = 0; i < l->n_hypers; i++)
        put_role(out, f, l->hypers[i].name, l->hypers[i].text);
    put_role(out, f, "epochs", epochs);
    put_role(out, f, "checkpoint", l->checkpoint);
    if (l->resume_model && (l->resume_state || !resume[1])) {
        const struct app_value v[] = { { resume[0], l->resume_model }, { resume[1], l->resume_state } };
        put_argument(out, app_file_argument(f, "resume"), v, resume[1] ? 2 : 1);
    }
    put_role(out, f, "seed", l->seed);
}
