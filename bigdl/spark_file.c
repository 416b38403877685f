#include "bigdl/spark_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

static int no_memory(const struct app_reader *r)
{
    return err_sys(r->e, -ENOMEM, "'%s'", r->doc->name);
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_local_master(const char *m)
{
    return strcmp(m, "local") == 0 || (starts(m, "local[") && m[strlen(m) - 1] == ']');
}

int spark_file_read_master(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    int rc = app_read_text(r, path, j, field);
    const char *m = rc == 0 ? *(char **)field : "";
    if (rc < 0 || is_local_master(m) || starts(m, "spark://") || strcmp(m, "yarn") == 0 || starts(m, "k8s://"))
        return rc;
    return json_doc_err(r->doc, path, r->e, -EINVAL, "must be local[*], spark://HOST:PORT, yarn or k8s://URL, not '%s'",
                        m);
}

/* Spark's sizes: digits and a unit; a number alone is GiB, as everywhere in our files. */
int spark_file_read_memory(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    char *text = NULL;
    int rc = app_read_scalar(r, path, j, &text);
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

int spark_file_read_cores(const struct app_reader *r, const char *path, const json_t *j, void *field)
{
    AUTO_FREE char *text = NULL;
    int rc = app_read_scalar(r, path, j, &text);
    if (rc < 0)
        return rc;
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 1 || n > 4096)
        return json_doc_err(r->doc, path, r->e, -EINVAL, "must be a whole number between 1 and 4096, not '%s'", text);
    *(int *)field = (int)n;
    return 0;
}

static bool ends_with(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

bool spark_file_is_python(const struct spark_file *f)
{
    return f->class_name == NULL;
}

int spark_file_check(struct spark_file *f, const struct json_doc *doc, struct err *e)
{
    if (!f->master && !(f->master = strdup("local[*]")))
        return err_sys(e, -ENOMEM, "'%s'", doc->name);
    if (!f->conf)
        return json_doc_err(doc, "conf", e, -EINVAL, "is missing: the application, a .py file or a jar");
    if (f->class_name && ends_with(f->conf, ".py"))
        return json_doc_err(doc, "class", e, -EINVAL, "does not go with the Python application '%s'", f->conf);
    if (!f->class_name && ends_with(f->conf, ".jar"))
        return json_doc_err(doc, "conf", e, -EINVAL, "is a jar, so 'class' must name what to run in it");
    return 0;
}

void spark_file_done(struct spark_file *f)
{
    strv_done(&f->py_files);
    strv_done(&f->jars);
    char *texts[] = { f->master, f->driver_memory, f->executor_memory, f->properties_file,
                      f->conf,   f->class_name,    f->python };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    *f = (struct spark_file){ 0 };
}

/* ---- questions ------------------------------------------------------------------------------------------------------ */

static int resolve_all(const char *key, struct strv *paths, app_resolve *resolve, void *ctx, struct err *e)
{
    for (size_t i = 0; i < paths->n; i++) {
        int rc = app_resolve_path(key, &paths->v[i], resolve, ctx, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int spark_file_paths(struct spark_file *f, app_resolve *resolve, void *ctx, struct err *e)
{
    int rc = app_resolve_path("conf", &f->conf, resolve, ctx, e);
    if (rc == 0)
        rc = resolve_all("jars", &f->jars, resolve, ctx, e);
    if (rc == 0)
        rc = resolve_all("py_files", &f->py_files, resolve, ctx, e);
    if (rc == 0)
        rc = app_resolve_path("properties_file", &f->properties_file, resolve, ctx, e);
    if (rc == 0 && f->python && strchr(f->python, '/')) /* else a command, which is looked for on PATH */
        rc = app_resolve_path("python", &f->python, resolve, ctx, e);
    return rc;
}

double spark_file_memory_gb(const char *text)
{
    static const char units[] = "kmgt";
    char *end = NULL;
    double n = text ? strtod(text, &end) : 1;
    const char *unit = text && *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
    return unit ? ldexp(n, 10 * ((int)(unit - units) - 2)) : n;
}

bool spark_file_is_local(const struct spark_file *f)
{
    return is_local_master(f->master);
}

bool spark_file_is_one_machine(const struct spark_file *f)
{
    return spark_file_is_local(f) || strncmp(f->master, "spark://127.", 12) == 0 ||
           strncmp(f->master, "spark://localhost", 17) == 0;
}
