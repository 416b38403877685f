/* A study for other programs: each verb is a row of the table below. */
#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"
#include "cmd/cmd.h"
#include "cmd/export.h"
#include "cmd/look.h"
#include "live/study.h"

struct export_options {
    char *store;
};

static const struct opt_row export_rows[] = {
    LOOK_STORE_ROW(struct export_options),
};

void cmd_export_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(export_rows, NULL));
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

static const struct verb {
    const char *name, *usage, *trials; /* what is for one trial instead */
    size_t words;
    int (*run)(const struct exporting *x);
} verbs[] = {
    { "csv", "pipetune export csv STUDY DIR", "'pipetune trace export'", 3, to_csv },
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
        return err_set(x->e, -EINVAL, "'export %s' takes %zu words: %s", v->name, v->words - 1, v->usage);
    int rc = look_whole(x->words->v[1], v->trials, x->e);
    return rc < 0 ? rc : v->run(x);
}

int cmd_export(int argc, char **argv)
{
    struct export_options o = { 0 };
    struct opt_set set = OPT_SET(export_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
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
