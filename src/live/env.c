#include "live/env.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/capture.h"
#include "base/io.h"
#include "base/own.h"

enum { NOTED_MAX = 16 << 10 };

static const char *getenv_filled(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* dir/name, absolute; NULL when memory is out. */
static char *absolute_in(const char *dir, const char *name)
{
    AUTO_FREE char *joined = io_join(dir, name);
    return joined ? io_absolute(joined) : NULL;
}

static char *program_dir(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return strdup(".");
    path[n] = '\0';
    return io_dirname(path);
}

/* The first of the candidates below `dir` that holds our conf/; a build lies two folders deep in its tree. */
static char *find_home(const char *dir)
{
    static const char *const places[] = { ".", "../share/pipetune", "../.." };
    if (getenv_filled("PIPETUNE_HOME"))
        return io_absolute(getenv("PIPETUNE_HOME"));
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        AUTO_FREE char *home = absolute_in(dir, places[i]);
        AUTO_FREE char *mark = home ? io_join(home, "conf/log4j2-pipetune.properties") : NULL;
        if (mark && io_exists(mark))
            return MOVE_PTR(home);
    }
    return io_absolute(dir);
}

/* What set-up makes: ./.pipetune/NAME, else the one in our source tree; where neither is, the first. */
static char *set_up_path(const char *home, const char *name)
{
    AUTO_FREE char *below = NULL;
    if (asprintf(&below, ".pipetune/%s", name) < 0) {
        below = NULL;
        return NULL;
    }
    AUTO_FREE char *here = io_absolute(below);
    AUTO_FREE char *there = io_join(home, below);
    if (here && there && !io_exists(here) && io_exists(there))
        return MOVE_PTR(there);
    return MOVE_PTR(here);
}

/* The folder on PATH that holds `program`, joined with it; NULL when there is none. */
static char *find_on_path(const char *program)
{
    AUTO_FREE char *dirs = strdup(getenv_filled("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    char *save = NULL;
    for (char *dir = dirs ? strtok_r(dirs, ":", &save) : NULL; dir; dir = strtok_r(NULL, ":", &save)) {
        AUTO_FREE char *path = absolute_in(dir, program);
        if (path && access(path, X_OK) == 0)
            return MOVE_PTR(path);
    }
    return NULL;
}

static int find_spark(struct env *v, const struct config *cfg)
{
    const char *given = cfg->runtime_home ? cfg->runtime_home : getenv_filled("SPARK_HOME");
    v->spark_home = given ? io_absolute(given) : set_up_path(v->home, "spark");
    if (!v->spark_home)
        return -ENOMEM;
    v->spark_submit = io_join(v->spark_home, "bin/spark-submit");
    if (!v->spark_submit || given || io_exists(v->spark_submit))
        return v->spark_submit ? 0 : -ENOMEM;
    char *on_path = find_on_path("spark-submit");
    free(v->spark_home);
    v->spark_home = NULL;
    free(v->spark_submit);
    v->spark_submit = on_path ? on_path : strdup("spark-submit");
    return v->spark_submit ? 0 : -ENOMEM;
}

/* Does this link, made beside the archive, lead to the Java that Spark will start? Another one may not know its options. */
static bool is_our_java(const struct env *v, const char *link)
{
    AUTO_FREE char *found = v->java_home ? io_join(v->java_home, "bin/java") : find_on_path("java");
    AUTO_FREE char *ours = found ? realpath(found, NULL) : NULL;
    AUTO_FREE char *its = realpath(link, NULL);
    return ours && its && strcmp(ours, its) == 0;
}

/* As long as it was made? The JVM checks much of an archive, but dies of one that was cut short in copying. */
static bool has_size(const char *path, const char *size_file)
{
    struct stat st;
    AUTO_BUF struct buf size = BUF_INIT;
    return io_read_file(&size, size_file, 64, NULL) == 0 && stat(path, &st) == 0 && st.st_size > 0 &&
           strtoll(buf_text(&size), NULL, 10) == (long long)st.st_size;
}

/* NULL costs a faster start, and nothing else. */
static char *find_archive(const struct env *v, const char *file, const char *size_file)
{
    AUTO_FREE char *archive = set_up_path(v->home, file);
    AUTO_FREE char *size = set_up_path(v->home, size_file);
    AUTO_FREE char *java = set_up_path(v->home, "classes/java");
    return archive && size && java && has_size(archive, size) && is_our_java(v, java) ? MOVE_PTR(archive) : NULL;
}

/* "SIZE MTIME PATH": is that file still as it was? *out is its path, within `text`. */
static bool is_as_noted(char *text, const char **out)
{
    struct stat st;
    char *end = NULL;
    long long size = strtoll(text, &end, 10), mtime = strtoll(end, &end, 10);
    *out = end + (*end == ' ');
    return stat(*out, &st) == 0 && (long long)st.st_size == size && (long long)st.st_mtime == mtime;
}

/* Classes of other jars would be the wrong ones: those that they are of are noted, Spark's first and then BigDL's. */
static int find_closures(struct env *v)
{
    AUTO_FREE char *jar = set_up_path(v->home, "classes/closures.jar");
    AUTO_FREE char *of = set_up_path(v->home, "classes/closures.of");
    AUTO_BUF struct buf text = BUF_INIT;
    if (!jar || !of)
        return -ENOMEM;
    if (!io_exists(jar) || !v->spark_home || io_read_file(&text, of, NOTED_MAX, NULL) < 0 || text.len == 0)
        return 0;
    const char *sparks, *bigdls;
    char *save = NULL, *first = strtok_r(text.data, "\n", &save), *second = strtok_r(NULL, "\n", &save);
    size_t home = strlen(v->spark_home);
    if (!first || !second || !is_as_noted(first, &sparks) || !is_as_noted(second, &bigdls) ||
        strncmp(sparks, v->spark_home, home) != 0 || sparks[home] != '/')
        return 0;
    v->closures_of = strdup(bigdls);
    v->closures = v->closures_of ? MOVE_PTR(jar) : NULL;
    return v->closures ? 0 : -ENOMEM;
}

/* NULL: pipetune.py is not there. */
static char *find_library(const char *home)
{
    AUTO_FREE char *module = io_join(home, "python/pipetune.py");
    return module && io_exists(module) ? io_join(home, "python") : NULL;
}

int env_find(struct env *out, const struct config *cfg, struct err *e)
{
    struct env v = { 0 };
    AUTO_FREE char *dir = program_dir();
    v.home = dir ? find_home(dir) : NULL;
    if (!v.home || find_spark(&v, cfg) < 0)
        goto nomem;
    const char *java = cfg->java ? cfg->java : getenv_filled("JAVA_HOME");
    v.java_home = java ? io_absolute(java) : NULL;
    v.bigdl_home = getenv_filled("BIGDL_HOME") ? io_absolute(getenv("BIGDL_HOME")) : set_up_path(v.home, "bigdl");
    v.data = getenv_filled("PIPETUNE_DATA") ? io_absolute(getenv("PIPETUNE_DATA")) : set_up_path(v.home, "data");
    const char *python = getenv_filled("PYSPARK_PYTHON"); /* a path or a command: as it is */
    v.python = python ? strdup(python) : set_up_path(v.home, "venv/bin/python");
    v.node = absolute_in(dir, "pipetune-node");
    v.log4j = io_join(v.home, "conf/log4j2-pipetune.properties");
    v.converter = io_join(v.home, "bigdl/apps/convert_checkpoint.py");
    v.library = find_library(v.home);
    if ((java && !v.java_home) || !v.bigdl_home || !v.data || !v.python || !v.node || !v.log4j || !v.converter)
        goto nomem;
    v.classes = find_archive(&v, "classes/python.jsa", "classes/python.size");
    if (find_closures(&v) < 0)
        goto nomem;
    if (v.closures)
        v.session_classes = find_archive(&v, "classes/session.jsa", "classes/session.size");
    if (!python && !io_exists(v.python)) {
        free(v.python);
        v.python = NULL;
    }
    *out = v;
    return 0;
nomem:
    env_done(&v);
    return err_sys(e, -ENOMEM, "looking for Spark");
}

void env_done(struct env *v)
{
    if (!v)
        return;
    char *all[] = { v->home,    v->spark_home,      v->spark_submit, v->java_home,   v->bigdl_home,
                    v->data,    v->python,          v->node,         v->log4j,       v->converter,
                    v->classes, v->session_classes, v->closures,     v->closures_of, v->library };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        free(all[i]);
    *v = (struct env){ 0 };
}

struct app_tools env_tools(const struct env *v)
{
    return (struct app_tools){ .spark_submit = v->spark_submit,
                               .log4j = v->log4j,
                               .python = v->python,
                               .converter = v->converter,
                               .library = v->library,
                               .classes = v->classes,
                               .closures = v->closures,
                               .closures_of = v->closures_of,
                               .session_classes = v->session_classes };
}

enum { PLACES = 4 };

struct place {
    const char *name, *path; /* NULL: nowhere */
};

/* Those that may lie within another one come first. */
static void list_places(const struct env *v, struct place out[PLACES])
{
    out[0] = (struct place){ "SPARK_HOME", v->spark_home };
    out[1] = (struct place){ "BIGDL_HOME", v->bigdl_home };
    out[2] = (struct place){ "PIPETUNE_DATA", v->data };
    out[3] = (struct place){ "PIPETUNE_HOME", v->home };
}

const char *env_lookup(void *ctx, const char *name)
{
    struct place found[PLACES];
    const char *set = getenv(name);
    if (set)
        return set;
    list_places(ctx, found);
    for (size_t i = 0; i < PLACES; i++)
        if (strcmp(found[i].name, name) == 0)
            return found[i].path;
    return NULL;
}

void env_put_portable(const struct env *v, const char *text, struct buf *out)
{
    struct place found[PLACES];
    list_places(v, found);
    for (size_t i = 0; i < PLACES; i++) {
        size_t len = found[i].path ? strlen(found[i].path) : 0;
        if (len == 0 || strncmp(text, found[i].path, len) != 0 || (text[len] != '/' && text[len] != '\0'))
            continue;
        buf_printf(out, "$%s%s", found[i].name, text + len);
        return;
    }
    buf_puts(out, text);
}

/* NULL: it says nothing of it. */
static const char *value_of(const struct strv *env, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], name, len) == 0 && env->v[i][len] == '=')
            return env->v[i] + len + 1;
    return NULL;
}

int env_there(const struct env *v, const struct strv *env, struct there *out, struct err *e)
{
    struct place places[PLACES];
    list_places(v, places);
    places[PLACES - 1] = (struct place){ "PYSPARK_PYTHON", v->python }; /* our own files are sent */
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < PLACES; i++) {
        const char *there = value_of(env, places[i].name);
        if (there && places[i].path)
            rc = there_add(out, places[i].path, there, e);
    }
    return rc;
}

bool env_is_everywhere(const struct env *v, const char *path)
{
    static const char ours[] = "$PIPETUNE_HOME";
    AUTO_BUF struct buf b = BUF_INIT;
    env_put_portable(v, path, &b);
    return b.len > 0 && b.data[0] == '$' && strncmp(buf_text(&b), ours, sizeof ours - 1) != 0;
}

size_t env_own_files(const struct env *v, const struct application *a, const char *out[ENV_OWN_MAX])
{
    size_t n = 0;
    if (a->kind->needs & APP_NEEDS_SPARK)
        out[n++] = v->log4j;
    if (a->kind->part)
        out[n++] = v->converter;
    return n;
}

void env_put(const struct application *a, struct strv *to)
{
    if (a->kind->needs & APP_NEEDS_SPARK)
        strv_add(to, "SPARK_LOCAL_IP=127.0.0.1");
}

int env_java_major(const struct env *v, int *out_major, struct err *e)
{
    AUTO_FREE char *java = v->java_home ? io_join(v->java_home, "bin/java") : strdup("java");
    if (!java)
        return err_sys(e, -ENOMEM, "java");
    AUTO_BUF struct buf text = BUF_INIT;
    char *argv[] = { java, "-version", NULL };
    int rc = capture(&text, argv, 20000, e);
    if (rc < 0 || rc == 127)
        return err_set(e, -ENOENT,
                       "no Java: '%s' cannot be run; install openjdk-17-jre-headless, or run ./run-pipetune.sh setup",
                       java);
    const char *version = strstr(buf_text(&text), "version \"");
    long major = version ? strtol(version + strlen("version \""), NULL, 10) : 0;
    if (version && major == 1) /* "1.8.0_392" is Java 8 */
        major = strtol(version + strlen("version \"1."), NULL, 10);
    if (rc != 0 || major <= 0)
        return err_set(e, -ENOENT, "no Java: '%s -version' says nothing of a version; install openjdk-17-jre-headless",
                       java);
    if (major < ENV_JAVA_MIN)
        return err_set(
            e, -EINVAL,
            "Java %ld is too old: Spark 3.5 needs %d, 11 or 17; install openjdk-17-jre-headless, or set JAVA_HOME",
            major, ENV_JAVA_MIN);
    *out_major = (int)major;
    return 0;
}

int env_spark_version(const struct env *v, char out[32])
{
    if (!v->spark_home)
        return -ENOENT;
    AUTO_FREE char *pattern = io_join(v->spark_home, "jars/spark-core_*.jar");
    glob_t found;
    if (!pattern || glob(pattern, 0, NULL, &found) != 0)
        return -ENOENT;
    const char *dash = strrchr(found.gl_pathv[0], '-'); /* …/spark-core_2.12-3.5.8.jar */
    size_t len = dash ? strcspn(dash + 1, "j") : 0;
    if (len > 1 && len < 32)
        (void)snprintf(out, 32, "%.*s", (int)len - 1, dash + 1);
    globfree(&found);
    return len > 1 && len < 32 ? 0 : -ENOENT;
}

char *env_default_properties(const struct env *v)
{
    const char *folder = getenv_filled("SPARK_CONF_DIR");
    AUTO_FREE char *conf = folder ? strdup(folder) : v->spark_home ? io_join(v->spark_home, "conf") : NULL;
    AUTO_FREE char *file = conf ? io_join(conf, "spark-defaults.conf") : NULL;
    return file && io_exists(file) ? MOVE_PTR(file) : NULL;
}

int env_require(const struct env *v, unsigned needs, struct err *e)
{
    if ((needs & APP_NEEDS_SPARK) && !io_exists(v->spark_submit))
        return err_set(e, -ENOENT, "no Spark: '%s' is not there; run ./run-pipetune.sh setup, or set SPARK_HOME",
                       v->spark_submit);
    if (!io_exists(v->node))
        return err_set(e, -ENOENT, "no '%s': it belongs beside this program; run make", v->node);
    if ((needs & APP_NEEDS_SPARK) && !io_exists(v->log4j))
        return err_set(e, -ENOENT, "no '%s': set PIPETUNE_HOME to the folder that holds PipeTune's conf/ and bigdl/",
                       v->log4j);
    int major;
    int rc = needs & APP_NEEDS_JAVA ? env_java_major(v, &major, e) : 0;
    if (rc != -EINVAL)
        return rc;
    /* A Java that is too old is a lack of this machine; -EINVAL would be told as wrong usage. */
    if (e)
        e->code = -ENOENT;
    return -ENOENT;
}

int env_apply(const struct env *v, const struct application *a, struct err *e)
{
    bool one_machine = app_is_one_machine(a);
    if (!(a->kind->needs & APP_NEEDS_SPARK))
        return 0;
    if ((v->java_home && setenv("JAVA_HOME", v->java_home, 1) < 0) ||
        (one_machine && setenv("SPARK_LOCAL_IP", "127.0.0.1", 0) < 0))
        return err_sys(e, -errno, "cannot set the environment");
    return 0;
}

/* A cgroup limit in bytes, 0 when there is none. */
static double cgroup_memory(void)
{
    static const char *const files[] = { "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        double bytes = io_read_file(&b, files[i], 64, NULL) == 0 ? strtod(buf_text(&b), NULL) : 0;
        if (bytes > 0 && bytes < 1e15) /* "max" and the v1 kernel's huge number mean no limit */
            return bytes;
    }
    return 0;
}

struct offer env_offer(void)
{
    struct offer o = { 0 };
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        o.cores = CPU_COUNT(&set);
    if (o.cores < 1)
        o.cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double limit = cgroup_memory();
    o.memory_gb = (limit > 0 && limit < bytes ? limit : bytes) / (1024.0 * 1024.0 * 1024.0);
    return o;
}
