#include "app/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_args.h"
#include "app/pattern.h"
#include "app/progress.h"
#include "app/roles.h"
#include "base/own.h"
#include "base/suggest.h"

struct variable {
    char *name, *text; /* text NULL: to be left as it is */
};

struct command {
    struct strv words;    /* what is run; none: its roles say it */
    struct roles roles;   /* none: it is one process */
    struct strv files;    /* that it needs */
    char *folder;         /* NULL: beside its application file */
    struct variable *env; /* owned; in the order written */
    size_t n_env;
    struct progress *progress;
    bool says_omp, says_unbuffered; /* the user's environment has OMP_WAIT_POLICY, PYTHONUNBUFFERED */
    char *python_path;              /* the user's own PYTHONPATH; NULL: none */
};

/* --- its members -------------------------------------------------------------------------------------------------------- */

static int no_memory(const struct app_reader *r)
{
    return err_sys(r->e, -ENOMEM, "'%s'", r->doc->name);
}

/* What the user's environment says. */
static int look_around(const struct app_reader *r, struct command *c)
{
    if (c->python_path)
        return 0;
    const char *python_path = r->lookup ? r->lookup(r->ctx, "PYTHONPATH") : NULL;
    c->says_omp = r->lookup && r->lookup(r->ctx, "OMP_WAIT_POLICY");
    c->says_unbuffered = r->lookup && r->lookup(r->ctx, "PYTHONUNBUFFERED");
    if (python_path && *python_path && !(c->python_path = strdup(python_path)))
        return no_memory(r);
    return 0;
}

/* The first member of the struct: all of it is at hand. */
static int read_command(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    struct command *c = field;
    int rc = app_read_words(r, path, j, &c->words);
    if (rc < 0)
        return rc;
    if (c->words.n == 0 || !*c->words.v[0])
        return json_doc_err(r->doc, path, r->e, -EINVAL,
                            "must begin with a program, such as [\"python3\", \"train.py\"]");
    return look_around(r, c);
}

/* Likewise. */
static int read_roles(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    struct command *c = field;
    int rc = roles_read(r, path, j, &c->roles);
    return rc < 0 ? rc : look_around(r, c);
}

static int unknown_list(const struct app_reader *r, const char *path, const char *name)
{
    const char *names[PATTERNS_MAX];
    size_t n = 0;
    AUTO_BUF struct buf all = BUF_INIT;
    for (; n < ARRAY_LEN(names) && (names[n] = patterns_name(n)); n++)
        buf_printf(&all, "%s%s", n ? ", " : "", names[n]);
    const char *near = suggest_nearest(name, names, n);
    if (near)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "names '%s', which is no list; did you mean '%s'?", name,
                            near);
    return json_doc_err(r->doc, path, r->e, -EINVAL, "names '%s', which is none of %s; patterns stand in an array",
                        name, buf_text(&all));
}

int command_read_progress(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    struct progress **out = field;
    const char *own[PATTERNS_MAX + 1], *const *texts = own;
    size_t n = 0;
    struct err why;
    if (json_is_string(j)) {
        texts = patterns_named(json_string_value(j), &n);
        if (!texts)
            return unknown_list(r, path, json_string_value(j));
    } else if (!json_is_array(j)) {
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be an array of patterns, or the name of a list");
    }
    for (; texts == own && n < json_array_size(j) && n < ARRAY_LEN(own); n++)
        if (!(own[n] = json_string_value(json_array_get(j, n))))
            return json_doc_err(r->doc, path, r->e, -EINVAL, "must be an array of patterns, each a string");
    int rc = progress_new(out, texts, n, &why);
    return rc < 0 ? json_doc_err(r->doc, path, r->e, rc, "cannot be used: %s", why.text) : 0;
}

static bool is_variable(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *name && !name[strspn(name, plain)] && (*name < '0' || *name > '9');
}

/* The first member of the struct: all of it is at hand. */
static int read_env(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    struct command *c = field;
    const char *name;
    json_t *value;
    if (!json_is_object(j))
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be an object of texts");
    c->env = calloc(json_object_size(j) + 1, sizeof *c->env);
    if (!c->env)
        return no_memory(r);
    json_object_foreach((json_t *)j, name, value)
    {
        char at[256];
        (void)snprintf(at, sizeof at, "%s/%s", path, name);
        if (!is_variable(name))
            return json_doc_err(r->doc, at, r->e, -EINVAL, "is no name of a variable");
        struct variable *v = &c->env[c->n_env++];
        v->name = strdup(name);
        if (!v->name)
            return no_memory(r);
        int rc = json_is_null(value) ? 0 : app_read_scalar(r, at, value, &v->text);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int not_yet(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    (void)j;
    (void)field;
    return json_doc_err(r->doc, path, r->e, -EINVAL, "is not understood by this version yet");
}

static const struct app_member members[] = {
    { "command", read_command, 0 },
    { "env", read_env, 0 },
    { "progress", command_read_progress, offsetof(struct command, progress) },
    { "files", app_read_words, offsetof(struct command, files) },
    { "folder", app_read_text, offsetof(struct command, folder) },
    { "roles", read_roles, 0 },
    { "tells", app_read_text, offsetof(struct command, roles) + offsetof(struct roles, tells) },
    { "gpus", not_yet, 0 },
    { "hosts", not_yet, 0 },
    { NULL, NULL, 0 },
};

static int check(struct application *a, const struct json_doc *doc, struct err *e)
{
    struct command *c = a->own;
    if (c->words.n > 0 && c->roles.n > 0)
        return json_doc_err(doc, "roles", e, -EINVAL, "stands beside 'command': each role has its own");
    if (c->roles.tells && c->roles.n == 0)
        return json_doc_err(doc, "tells", e, -EINVAL, "names a role, and there are no 'roles'");
    if (c->words.n == 0 && c->roles.n == 0)
        return json_doc_err(doc, "command", e, -EINVAL,
                            "is missing: what is to be run, such as [\"python3\", \"train.py\"]");
    if (a->file.session)
        return json_doc_err(doc, "session", e, -EINVAL, "must be false: a command has no sessions");
    a->gang = c->roles.n > 0;
    int rc = a->gang ? roles_check(&c->roles, doc, e) : 0;
    if (rc == 0 && !c->progress)
        rc = progress_new(&c->progress, NULL, 0, e);
    if (rc == 0)
        a->reader = progress_reader(c->progress);
    return rc;
}

static void done(void *own)
{
    struct command *c = own;
    for (size_t i = 0; i < c->n_env; i++) {
        free(c->env[i].name);
        free(c->env[i].text);
    }
    free(c->env);
    free(c->folder);
    free(c->python_path);
    strv_done(&c->words);
    roles_done(&c->roles);
    strv_done(&c->files);
    progress_free(c->progress);
}

static int paths(struct application *a, app_resolve *resolve, void *ctx, struct err *e)
{
    struct command *c = a->own;
    int rc = app_resolve_path("folder", &c->folder, resolve, ctx, e);
    for (size_t i = 0; rc == 0 && i < c->files.n; i++)
        rc = app_resolve_path("files", &c->files.v[i], resolve, ctx, e);
    return rc;
}

static void files(const struct application *a, struct strv *out)
{
    const struct command *c = a->own;
    for (size_t i = 0; i < c->files.n; i++)
        strv_add(out, c->files.v[i]);
}

static void identity(const struct application *a, struct strv *out)
{
    const struct command *c = a->own;
    for (size_t i = 0; i < c->words.n; i++)
        strv_add(out, c->words.v[i]);
    for (size_t i = 0; i < c->roles.n; i++)
        for (size_t k = 0; k < c->roles.v[i].words.n; k++)
            strv_add(out, c->roles.v[i].words.v[k]);
}

/* --- a launch ----------------------------------------------------------------------------------------------------------- */

enum { VALUES_MAX = 160 };

/* Its own, where it is one of a gang. */
static const struct strv *words_of(const struct command *c, const struct app_launch *l)
{
    return c->roles.n > 0 ? &c->roles.v[l->gang->v[l->rank].which].words : &c->words;
}

struct values {
    struct app_value v[VALUES_MAX];
    size_t n;
    struct strv names, texts; /* of a gang; those of `v` point there */
    char slots[16];
};

static void values_done(struct values *to)
{
    strv_done(&to->names);
    strv_done(&to->texts);
}
#define AUTO_VALUES __attribute__((cleanup(values_done)))

static void put_value(struct values *to, struct app_value one)
{
    if (to->n < VALUES_MAX)
        to->v[to->n++] = one;
}

/* What {NAME} stands for. Cores may become more while it runs, and threads are made when it begins: so {cores} are its slots. */
static int put_values(const struct application *a, const struct app_launch *l, struct values *to, struct err *e)
{
    const struct command *c = a->own;
    (void)snprintf(to->slots, sizeof to->slots, "%d", l->slots);
    if (l->gang)
        roles_values(&c->roles, l, &to->names, &to->texts);
    if (to->names.failed || to->texts.failed)
        return err_sys(e, -ENOMEM, "the command's words");
    for (size_t i = 0; i < to->names.n; i++)
        put_value(to, (struct app_value){ to->names.v[i], to->texts.v[i] });
    for (size_t i = 0; i < l->n_hypers; i++)
        put_value(to, l->hypers[i]);
    for (size_t i = 0; i < l->n_knobs; i++)
        if (strcmp(l->knobs[i].name, "cores") != 0)
            put_value(to, l->knobs[i]);
    put_value(to, (struct app_value){ "cores", to->slots });
    return 0;
}

static bool names(const char *word, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = word ? strchr(word, '{') : NULL; p; p = strchr(p + 1, '{'))
        if (strncmp(p + 1, name, len) == 0 && p[1 + len] == '}')
            return true;
    return false;
}

/* Does its value reach the program by itself? */
static bool stands_somewhere(const struct application *a, const char *name)
{
    const struct command *c = a->own;
    const struct app_file *f = &a->file;
    bool found = app_file_argument(f, name) || (!f->has_arguments && app_file_extra(f, name) >= 0) ||
                 roles_count_by(&c->roles, name);
    for (size_t i = 0; i < c->words.n; i++)
        found |= names(c->words.v[i], name);
    for (size_t i = 0; i < c->roles.n; i++)
        for (size_t k = 0; k < c->roles.v[i].words.n; k++)
            found |= names(c->roles.v[i].words.v[k], name);
    for (size_t i = 0; i < f->n_extras; i++)
        found |= names(f->extras[i].word ? f->extras[i].key : f->extras[i].value, name);
    for (size_t i = 0; i < c->n_env; i++)
        found |= names(c->env[i].text, name);
    return found;
}

/* A placeholder that nothing fills would reach the program as it is written: "{lr}". */
static int check_filled(const struct application *a, const struct values *values, const char *word, struct err *e)
{
    for (const char *p = word ? strchr(word, '{') : NULL; p; p = strchr(p + 1, '{')) {
        size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        bool known = p[1 + n] != '}' || n == 0; /* the program's own */
        for (size_t i = 0; i < values->n && !known; i++)
            known = strlen(values->v[i].name) == n && strncmp(p + 1, values->v[i].name, n) == 0;
        if (!known)
            return err_set(
                e, -EINVAL,
                "'%s': %.*s stands for nothing: the study has no hyperparameter and no system parameter of that name",
                a->file.name, (int)n + 2, p);
    }
    return 0;
}

static int check_words(const struct application *a, const struct strv *words, const struct values *v, struct err *e)
{
    const struct command *c = a->own;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < words->n; i++)
        rc = check_filled(a, v, words->v[i], e);
    for (size_t i = 0; rc == 0 && i < a->file.n_extras; i++)
        rc = check_filled(a, v, a->file.extras[i].word ? a->file.extras[i].key : a->file.extras[i].value, e);
    for (size_t i = 0; rc == 0 && i < c->n_env; i++)
        rc = check_filled(a, v, c->env[i].text, e);
    return rc;
}

static bool says(const struct command *c, const char *variable)
{
    for (size_t i = 0; i < c->n_env; i++)
        if (strcmp(c->env[i].name, variable) == 0)
            return true;
    return false;
}

/* Threads of OpenMP that spin while they wait make a program many times slower when it shares its CPUs or has fewer of them for a while.
 * No variable of one runtime is needed beside the standard's: by `passive` GNU's has GOMP_SPINCOUNT 0, Intel's and LLVM's
 * KMP_BLOCKTIME 0, and where these are set they win. OpenBLAS's own threads yield, which costs nothing measurable. And what Python prints would come when it has ended. */
static void put_env(const struct command *c, const struct app_launch *l, const struct values *v, struct strv *out)
{
    if (!c->says_omp && !says(c, "OMP_WAIT_POLICY"))
        strv_add(out, "OMP_WAIT_POLICY=passive");
    if (!c->says_unbuffered && !says(c, "PYTHONUNBUFFERED"))
        strv_add(out, "PYTHONUNBUFFERED=1");
    if (l->tools->library && !says(c, "PYTHONPATH"))
        strv_addf(out, "PYTHONPATH=%s%s%s", c->python_path ? c->python_path : "", c->python_path ? ":" : "",
                  l->tools->library);
    for (size_t i = 0; i < c->n_env; i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        buf_printf(&b, "%s=%s", c->env[i].name, c->env[i].text ? c->env[i].text : "");
        if (c->env[i].text)
            app_fill(out, buf_text(&b), v->v, v->n);
    }
}

static void put_words(const struct application *a, const struct app_launch *l, const struct values *v, struct strv *out)
{
    const struct strv *words = words_of(a->own, l);
    AUTO_STRV struct strv own = STRV_INIT;
    for (size_t i = 0; i < words->n; i++)
        app_fill(out, words->v[i], v->v, v->n);
    if (l->gang && !((const struct command *)a->own)->roles.v[l->gang->v[l->rank].which].arguments)
        return;
    app_put_arguments(a, l, &own);
    for (size_t i = 0; i < own.n; i++)
        app_fill(out, own.v[i], v->v, v->n);
    for (size_t i = 0; i < l->n_hypers; i++)
        if (!stands_somewhere(a, l->hypers[i].name))
            strv_addf(out, "--%s=%s", l->hypers[i].name, l->hypers[i].text);
    out->failed |= own.failed;
}

static char *folder_beside(const char *file)
{
    const char *slash = strrchr(file, '/');
    if (!slash)
        return strdup(".");
    return slash == file ? strdup("/") : strndup(file, (size_t)(slash - file));
}

static char *folder(const struct application *a)
{
    const struct command *c = a->own;
    return c->folder ? strdup(c->folder) : folder_beside(a->file.name);
}

static int gang(const struct application *a, const struct app_launch *l, struct app_gang *out, struct err *e)
{
    return roles_gang(&((const struct command *)a->own)->roles, a->file.name, l, out, e);
}

static void counts(const struct application *a, struct strv *out)
{
    roles_counts(&((const struct command *)a->own)->roles, out);
}

/* One process; of a gang that is not told which, the one that is heard. */
static int steps(const struct application *a, const struct app_launch *asked, struct app_steps *out, struct err *e)
{
    const struct command *c = a->own;
    AUTO_VALUES struct values values = { .n = 0 };
    struct app_launch l = *asked;
    struct app_gang whole;
    int rc = c->roles.n > 0 && !l.gang ? gang(a, &l, &whole, e) : 0;
    if (rc == 0 && c->roles.n > 0 && !l.gang) {
        l.gang = &whole;
        l.rank = whole.tells;
    }
    if (rc == 0)
        rc = put_values(a, &l, &values, e);
    if (rc == 0)
        rc = check_words(a, words_of(c, &l), &values, e);
    if (rc < 0)
        return rc;
    struct strv *argv = &out->argv[out->n++];
    put_words(a, &l, &values, argv);
    put_env(c, &l, &values, &out->env);
    if (l.gang)
        roles_put_env(&c->roles, &l, &out->env);
    out->folder = folder(a);
    return argv->failed || out->env.failed || !out->folder ? err_sys(e, -ENOMEM, "the command's words") : 0;
}

/* --- what it prints ------------------------------------------------------------------------------------------------------- */

static const char *needle(const struct application *a, size_t i, bool *step)
{
    const struct progress *p = ((const struct command *)a->own)->progress;
    *step = !progress_hears_all(p);
    if (progress_hears_all(p))
        return i == 0 ? "\n" : NULL; /* in every line */
    return progress_needle(p, i);
}

const struct app_kind command_kind = {
    .name = "command",
    .file_word = "application file",
    .key = "command",
    .other_key = "roles",
    .rules = { .members = members,
               .resume = { "checkpoint", NULL },
               .no_utf8 = "what is stored could not be shown",
               .told = true },
    .own_size = sizeof(struct command),
    .check = check,
    .done = done,
    .paths = paths,
    .files = files,
    .folder = folder,
    .identity = identity,
    .passes_any = true,
    .steps = steps,
    .gang = gang,
    .counts = counts,
    .needle = needle,
    .stamped = true, /* by the launcher */
    .tells = true,
    .memory = APP_MEMORY_LIMIT,
    .held = true,
    .words = { .program = "the command",
               .starting = "starting",
               .not_granted = "no room was granted",
               .lost = "it lost its room before the first checkpoint" },
};
