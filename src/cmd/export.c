/* A study for other programs: each verb is a row of the table below. */
#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"
#include "cmd/cmd.h"
#include "cmd/export.h"
#include "cmd/look.h"
#include "live/study.h"
#include "view/view.h"
#include "view/words.h"

struct export_options {
    char *store, *url, *experiment, *credential_file, *ca_file;
    bool allow_plain_http;
    double patience;
};

#define FIELD(name) offsetof(struct export_options, name)

static const struct opt_row export_rows[] = {
    LOOK_STORE_ROW(struct export_options),
    { NULL, "url", OPT_TEXT, FIELD(url), NULL, 0, 0, NULL, "URL",
      "mlflow: of the server (default: the study's config's)" },
    { NULL, "experiment", OPT_TEXT, FIELD(experiment), NULL, 0, 0, NULL, "NAME",
      "mlflow: in which its runs are (default: pipetune)" },
    { NULL, "credential_file", OPT_TEXT, FIELD(credential_file), NULL, 0, 0, NULL, "FILE",
      "mlflow: USER:PASSWORD or a token; mode 0600" },
    { NULL, "ca_file", OPT_TEXT, FIELD(ca_file), NULL, 0, 0, NULL, "FILE",
      "mlflow: trusted instead of the system's certificates" },
    { NULL, "allow_plain_http", OPT_FLAG, FIELD(allow_plain_http), NULL, 0, 0, NULL, NULL,
      "mlflow: the credential may go to another machine over http://" },
    { NULL, "patience", OPT_REAL, FIELD(patience), "60", 0, 1e6, NULL, "SECONDS",
      "mlflow: a server that is not there is asked again for so long" },
};

void cmd_export_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(export_rows, NULL));
}

static const char *text_or(const char *given, const json_t *config, const char *key)
{
    return given ? given : json_string_value(json_object_get(config, key));
}

/* What a verb works on. */
struct exporting {
    const struct export_options *o;
    const struct strv *words; /* the verb first */
    const char *path;         /* the store's */
    struct err *e;
};

static int to_csv(const struct exporting *x)
{
    AUTO_FREE char *dir = study_dir(x->path, x->words->v[1]);
    struct store *s = NULL;
    int rc = dir ? store_open(&s, x->path, STORE_READ, x->e) : err_sys(x->e, -ENOMEM, "study '%s'", x->words->v[1]);
    if (rc == 0)
        rc = export_csv(s, x->words->v[1], dir, study_driver(dir), x->words->v[2], x->e);
    store_close(s);
    return rc;
}

/* The config's server, unless another one is named: what the config says of credentials is its own server's. */
static int to_mlflow(const struct exporting *x)
{
    const char *name = x->words->v[1];
    AUTO_FREE char *dir = study_dir(x->path, name);
    struct store_study study = { 0 };
    struct store *s = NULL;
    int rc = dir ? store_open(&s, x->path, STORE_READ, x->e) : err_sys(x->e, -ENOMEM, "study '%s'", name);
    if (rc == 0)
        rc = view_find(s, name, &study, x->e);
    store_close(s);
    AUTO_JSON json_t *config = words_object(study.config);
    const json_t *own = json_object_get(config, "mlflow");
    const char *url = json_string_value(json_object_get(own, "url"));
    const bool is_own = !x->o->url || (url && strcmp(url, x->o->url) == 0);
    own = is_own ? own : NULL;
    struct export_mlflow o = { .url = x->o->url ? x->o->url : url,
                               .experiment = text_or(x->o->experiment, own, "experiment"),
                               .credential_file = text_or(x->o->credential_file, own, "credential_file"),
                               .ca_file = text_or(x->o->ca_file, own, "ca_file"),
                               .allow_plain =
                                   x->o->allow_plain_http || json_is_true(json_object_get(own, "allow_plain_http")),
                               .patience_s = x->o->patience };
    if (rc == 0 && !o.url)
        rc = err_set(x->e, -EINVAL, "to which server? say --url http://HOST[:PORT]; the study's config names none");
    if (rc == 0)
        rc = export_mlflow(x->path, name, dir, &o, x->e);
    store_study_done(&study);
    return rc;
}

static const struct verb {
    const char *name, *usage, *trials; /* what is for one trial instead */
    size_t words;
    int (*run)(const struct exporting *x);
} verbs[] = {
    { "csv", "pipetune export csv STUDY DIR", "'pipetune trace export'", 3, to_csv },
    { "mlflow", "pipetune export mlflow STUDY --url URL", "'pipetune export mlflow STUDY'", 2, to_mlflow },
};

static const struct verb *find_verb(const char *name, struct err *e)
{
    const char *names[ARRAY_LEN(verbs)];
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        names[i] = verbs[i].name;
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    const char *near = suggest_nearest(name, names, ARRAY_LEN(names));
    (void)err_set(e, -EINVAL, "unknown export '%s': %s%s%s see 'pipetune help export'", name,
                  near ? "did you mean '" : "", near ? near : "", near ? "'?" : "");
    return NULL;
}

static int run(const struct exporting *x)
{
    if (x->words->n == 0)
        return err_set(x->e, -EINVAL, "export what? say %s", verbs[0].usage);
    const struct verb *v = find_verb(x->words->v[0], x->e);
    if (!v)
        return -EINVAL;
    if (x->words->n != v->words)
        return err_set(x->e, -EINVAL, "'export %s' takes %zu word%s: %s", v->name, v->words - 1,
                       v->words == 2 ? "" : "s", v->usage);
    int rc = look_whole(x->words->v[1], v->trials, x->e);
    return rc < 0 ? rc : v->run(x);
}

int cmd_export(int argc, char **argv)
{
    struct export_options o = { 0 };
    struct opt_set set = OPT_SET(export_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err preset;
    int code;
    if (opt_presets(&set, &preset) < 0)
        return cmd_fail(&preset);
    if (!cmd_options("export", argc, argv, &set, 1, &words, SIZE_MAX, &code)) {
        struct err e = { 0 };
        AUTO_FREE char *path = study_store_path(o.store);
        struct exporting x = { &o, &words, path, &e };
        int rc = path ? run(&x) : err_sys(&e, -ENOMEM, "cannot export");
        code = rc < 0 ? cmd_fail(&e) : rc;
    }
    opt_done(&set);
    return code;
}
