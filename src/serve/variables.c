#include "serve/variables.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "core/secret.h"

enum { NAME_MAX_LEN = 128 };

static const char *const always[] = { "PATH",          "HOME",         "USER",           "LANG",
                                      "LC_ALL",        "TZ",           "TMPDIR",         "SPARK_HOME",
                                      "JAVA_HOME",     "BIGDL_HOME",   "HADOOP_HOME",    "HADOOP_CONF_DIR",
                                      "YARN_CONF_DIR", "KUBECONFIG",   "PYTHONPATH",     "PYTHONHOME",
                                      "VIRTUAL_ENV",   "CONDA_PREFIX", "LD_LIBRARY_PATH" };
static const char *const families[] = { "PIPETUNE_", "PYSPARK_",  "SPARK_", "OMP_",  "GOMP_", "KMP_",
                                        "MKL_",      "OPENBLAS_", "CUDA_",  "NCCL_", "HF_",   "LC_" };
/* Of one process alone. */
static const char *const never[] = { "PIPETUNE_QUEUED", "PIPETUNE_TELL", "PIPETUNE_FAILPOINT", "PIPETUNE_LAUNCH" };

static bool is_of(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static bool is_of_a_family(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return true;
    return false;
}

/* The name behind a '$' as a shell writes it; 0: none begins there. */
static size_t name_at(const char *at, char name[NAME_MAX_LEN])
{
    const char *from = *at == '{' ? at + 1 : at;
    size_t n = 0;
    while (from[n] == '_' || isalpha((unsigned char)from[n]) || (n > 0 && isdigit((unsigned char)from[n])))
        n++;
    if (n == 0 || n >= NAME_MAX_LEN)
        return 0;
    (void)snprintf(name, NAME_MAX_LEN, "%.*s", (int)n, from);
    return n;
}

static bool is_named(const char *text, const char *wanted)
{
    char name[NAME_MAX_LEN];
    for (const char *at = text; (at = strchr(at, '$')); at++)
        if (name_at(at + 1, name) > 0 && strcmp(name, wanted) == 0)
            return true;
    return false;
}

static bool is_secret(const char *name)
{
    const struct secret_rules rules = { 0 };
    return secret_is(&rules, name);
}

static int keep(json_t *out, const char *name, const char *value, bool named, struct strv *left_out)
{
    bool wanted = named || is_of(always, ARRAY_LEN(always), name) || is_of_a_family(name);
    if (!wanted || is_of(never, ARRAY_LEN(never), name))
        return 0;
    if (!is_secret(name))
        return json_object_set_new(out, name, json_bytes(value));
    if (named)
        strv_add(left_out, name);
    return 0;
}

json_t *variables_kept(char *const *env, const char *const *texts, size_t n_texts, struct strv *left_out)
{
    AUTO_JSON json_t *out = json_object();
    int rc = out ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(always); i++)
        rc = json_object_set_new(out, always[i], json_null());
    for (; rc == 0 && *env; env++) {
        const char *equals = strchr(*env, '=');
        AUTO_FREE char *name = equals ? strndup(*env, (size_t)(equals - *env)) : NULL;
        bool named = false;
        for (size_t i = 0; name && i < n_texts; i++)
            named |= is_named(texts[i], name);
        rc = !equals ? 0 : name ? keep(out, name, equals + 1, named, left_out) : -1;
    }
    return rc == 0 && !left_out->failed ? json_incref(out) : NULL;
}
