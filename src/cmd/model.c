/* `pipetune model`: what was learnt of jobs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "clustering/model_json.h"
#include "clustering/model_sklearn.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/model_parts.h"

enum { WORDS_MAX = 1000 };

static const char *const format_names[] = { "pipetune", "sklearn", NULL };

static const struct opt_row model_rows[] = {
    LOOK_STORE_ROW(struct model_args),
    { NULL, "model", OPT_TEXT, offsetof(struct model_args, model), NULL, 0, 0, NULL, "FILE",
      "a model in a file (default: the one in the store)" },
    { NULL, "out", OPT_TEXT, offsetof(struct model_args, out), NULL, 0, 0, NULL, "FILE",
      "import, export: what to write, also -o FILE; an old file is replaced" },
    { NULL, "format", OPT_TEXT, offsetof(struct model_args, format), NULL, 0, 0, format_names, "F",
      "import: whose model it is" },
    { NULL, "replace", OPT_FLAG, offsetof(struct model_args, replace), NULL, 0, 0, NULL, NULL,
      "import: in place of the model in the store" },
    { NULL, "cluster", OPT_INT, offsetof(struct model_args, cluster), "-1", -1, 9e15, NULL, "ID",
      "forget: this cluster" },
    { NULL, "all", OPT_FLAG, offsetof(struct model_args, all), NULL, 0, 0, NULL, NULL, "forget: everything" },
    LOOK_JSON_ROW(struct model_args),
};

void cmd_model_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(model_rows, NULL));
}

static int read_text(struct buf *out, const char *path, struct err *e)
{
    int rc = io_read_file(out, path, MODEL_FILE_MAX, e);
    if (rc == -EFBIG)
        e->code = rc = -EINVAL; /* the user's to change, not the machine's */
    return rc;
}

/* --- import --- */

static int read_foreign(struct model *out, const struct model_args *a, const char *path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    bool sklearn = a->format && strcmp(a->format, "sklearn") == 0;
    if (a->format && !sklearn && strcmp(a->format, "pipetune") != 0)
        return err_set(e, -EINVAL, "unknown format '%s': import knows pipetune and sklearn", a->format);
    int rc = read_text(&text, path, e);
    if (rc < 0)
        return rc;
    return (sklearn ? model_sklearn_read : model_json_read)(out, path, buf_text(&text), text.len, e);
}

struct replacement {
    struct model *model; /* moves into the one that is stored, once */
    const struct model_args *args;
};

/* May come again with what another writer stored: the copy goes by the text. */
static int replace(struct model *m, void *ctx, struct err *e)
{
    const struct replacement *r = ctx;
    AUTO_BUF struct buf text = BUF_INIT;
    struct model copy;
    if ((m->n_clusters > 0 || m->n_classes > 0) && !r->args->replace)
        return err_set(e, -EINVAL,
                       "the store has a model already: --replace gives it up, -o FILE writes a file beside it");
    model_json_put(&text, r->model);
    int rc =
        text.failed ? err_sys(e, -ENOMEM, "cannot import") : model_json_read(&copy, "model", text.data, text.len, e);
    if (rc < 0)
        return rc;
    model_done(m);
    *m = copy;
    return 0;
}

static int import(const struct model_args *a, struct err *e)
{
    AUTO_MODEL struct model m = { 0 };
    struct model_args store = *a;
    store.model = NULL;
    int rc = read_foreign(&m, a, a->words->v[0], e);
    if (rc == 0 && !a->out && m.vectors == MODEL_RAW)
        rc = err_set(e, -EINVAL, "model '%s' was made elsewhere and recognises no jobs: give a file for it, -o FILE",
                     a->words->v[0]);
    if (rc == 0 && a->out)
        rc = model_save_file(&m, a->out, e);
    else if (rc == 0)
        rc = model_change(&store, replace, &(struct replacement){ &m, a }, e);
    if (rc < 0)
        return cmd_fail(e);
    if (a->json)
        return cmd_print_json(json_pack("{s:s, s:I, s:I, s:I}", "model", a->out ? a->out : "default", "clusters",
                                        (json_int_t)m.n_clusters, "features", (json_int_t)m.n, "classes",
                                        (json_int_t)m.n_classes));
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%s: %zu clusters of %zu features, %zu classes\n", a->out ? a->out : "default", m.n_clusters, m.n,
               m.n_classes);
    return cmd_print(&b);
}

/* --- export --- */

static int export(const struct model_args *a, struct err *e)
{
    AUTO_MODEL struct model m = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = model_load(&m, a, e);
    if (rc < 0)
        return cmd_fail(e);
    if (a->out)
        return model_save_file(&m, a->out, e) < 0 ? cmd_fail(e) : CMD_OK;
    model_json_put(&text, &m);
    return cmd_print(&text);
}

/* --- predict --- */

static int print_predictions(const json_t *list)
{
    AUTO_BUF struct buf b = BUF_INIT;
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        buf_printf(&b, "%zu: cluster ", i);
        json_put(&b, json_object_get(one, "cluster"), JSON_STYLE_COMPACT);
        buf_puts(&b, ", squared distance ");
        json_put(&b, json_object_get(one, "squared_distance"), JSON_STYLE_COMPACT);
        buf_printf(&b, ", %s\n", json_string_value(json_object_get(one, "decision")));
    }
    return cmd_print(&b);
}

static int predict_list(json_t **out, const struct model_args *a, struct err *e)
{
    AUTO_MODEL struct model m = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    struct model_vectors_list v = { 0 };
    const char *path = a->words->v[0];
    int rc = model_load(&m, a, e);
    if (rc >= 0)
        rc = read_text(&text, path, e);
    if (rc >= 0)
        rc = model_sklearn_vectors(&v, m.n, m.vectors == MODEL_PROFILES, path, buf_text(&text), text.len, e);
    if (rc >= 0)
        rc = model_sklearn_predict(out, &m, &v, e);
    model_sklearn_vectors_done(&v);
    return rc;
}

static int predict(const struct model_args *a, struct err *e)
{
    AUTO_JSON json_t *list = NULL;
    if (predict_list(&list, a, e) < 0)
        return cmd_fail(e);
    return a->json ? cmd_print_json(json_incref(list)) : print_predictions(list);
}

/* --- forget --- */

static int forget_some(struct model *m, void *ctx, struct err *e)
{
    const struct model_args *a = ctx;
    int rc = 0;
    if (a->all)
        model_forget_all(m);
    else if (a->cluster >= 0)
        rc = model_forget_cluster(m, a->cluster, e);
    else
        rc = model_forget_class(m, a->words->v[0], e);
    if (rc == -ENOENT)
        e->code = rc = -EINVAL; /* a word of the command line */
    return rc;
}

static int forget(const struct model_args *a, struct err *e)
{
    int said = (a->words->n > 0) + a->all + (a->cluster >= 0);
    int rc = said == 1 ? 0 : err_set(e, -EINVAL, "model forget wants one of CLASS, --cluster ID and --all");
    if (rc == 0)
        rc = model_change(a, forget_some, (void *)(uintptr_t)a, e);
    return rc < 0 ? cmd_fail(e) : CMD_OK;
}

/* --- */

static const struct verb {
    const char *name;
    int (*run)(const struct model_args *a, struct err *e); /* returns the exit code */
    size_t least, most;                                    /* words that follow */
    const char *usage;
} verbs[] = {
    { "ls", model_ls, 0, 0, "[--json]" },
    { "show", model_show, 0, 0, "[--model FILE] [--json]" },
    { "explain", model_explain, 1, 1, "TRIAL | STUDY/TRIAL [--json]" },
    { "train", model_train_traces, 1, WORDS_MAX, "TRACE… [--model FILE]" },
    { "import", import, 1, 1, "FILE [--format sklearn] [-o MODEL.json | --replace]" },
    { "export", export, 0, 0, "[-o FILE]" },
    { "predict", predict, 1, 1, "VECTORS.json [--model FILE] [--json]" },
    { "forget", forget, 0, 1, "CLASS | --cluster ID | --all" },
};

static int run_verb(struct model_args *a, struct strv *words, struct err *e)
{
    const char *word = words->n > 0 ? words->v[0] : "";
    const struct verb *v = NULL;
    for (size_t i = 0; i < ARRAY_LEN(verbs) && !v; i++)
        v = strcmp(word, verbs[i].name) == 0 ? &verbs[i] : NULL;
    if (!v) {
        (void)err_set(e, -EINVAL, "no verb '%s': say model ls, show, explain, train, import, export, predict or forget",
                      word);
        return cmd_fail(e);
    }
    const struct strv rest = { .v = words->v + 1, .n = words->n - 1 };
    if (rest.n < v->least || rest.n > v->most) {
        (void)err_set(e, -EINVAL, "wrong number of words: pipetune model %s %s", v->name, v->usage);
        return cmd_fail(e);
    }
    a->words = &rest;
    return v->run(a, e);
}

int cmd_model(int argc, char **argv)
{
    struct model_args a = { 0 };
    struct opt_set opts = OPT_SET(model_rows, &a);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e = { 0 };
    int code;
    cmd_lengthen_out(argc, argv);
    if (opt_presets(&opts, &e) < 0)
        code = cmd_fail(&e);
    else if (!cmd_options("model", argc, argv, &opts, 1, &words, WORDS_MAX + 1, &code))
        code = run_verb(&a, &words, &e);
    opt_done(&opts);
    return code;
}
