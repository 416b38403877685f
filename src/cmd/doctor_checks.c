#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <uv.h>

#include "base/capture.h"
#include "base/io.h"
#include "base/own.h"
#include "cmd/doctor.h"
#include "live/provenance.h"
#include "store/fs.h"
#include "store/store.h"

/* The path of a program as the shell would find it, links followed; NULL when it is nowhere. */
static char *find_program(const char *name)
{
    if (strchr(name, '/'))
        return realpath(name, NULL);
    const char *path = getenv("PATH");
    AUTO_FREE char *dirs = strdup(path && *path ? path : "/usr/bin:/bin");
    char *save = NULL;
    for (char *dir = dirs ? strtok_r(dirs, ":", &save) : NULL; dir; dir = strtok_r(NULL, ":", &save)) {
        AUTO_FREE char *file = io_join(dir, name);
        if (file && access(file, X_OK) == 0)
            return realpath(file, NULL);
    }
    return NULL;
}

/* The first line, without control characters. */
static void put_first_line(struct buf *b, const char *text)
{
    for (; *text && *text != '\n'; text++)
        if ((unsigned char)*text >= 0x20)
            buf_putc(b, *text);
}

/* --- the programs --- */

enum doctor_state doctor_java(const struct doctor_place *p, struct doctor_finding *f)
{
    int major;
    struct err e;
    if (env_java_major(&p->env, &major, &e) < 0) {
        buf_puts(&f->detail, e.text);
        buf_puts(&f->fix, "apt-get install openjdk-17-jre-headless, or " DOCTOR_SET_UP ", or set JAVA_HOME");
        return CHECK_MISSING;
    }
    AUTO_FREE char *java = p->env.java_home ? io_join(p->env.java_home, "bin/java") : strdup("java");
    AUTO_FREE char *path = java ? find_program(java) : NULL;
    AUTO_BUF struct buf said = BUF_INIT;
    char *argv[] = { java, "-version", NULL };
    if (java && capture(&said, argv, 20000, &e) >= 0)
        put_first_line(&f->detail, buf_text(&said));
    buf_printf(&f->detail, " at %s", path ? path : "an unknown place");
    if (major == 8 || major == 11 || major == 17)
        return CHECK_OK;
    buf_puts(&f->fix, "Spark 3.5 is made for Java 8, 11 and 17: install openjdk-17-jre-headless, or set JAVA_HOME");
    return CHECK_WARN;
}

enum doctor_state doctor_spark(const struct doctor_place *p, struct doctor_finding *f)
{
    if (access(p->env.spark_submit, X_OK) != 0) {
        buf_printf(&f->detail, "'%s' is not there", p->env.spark_submit);
        buf_puts(&f->fix, DOCTOR_SET_UP ", or set SPARK_HOME");
        return CHECK_MISSING;
    }
    AUTO_FREE char *real = realpath(p->env.spark_submit, NULL);
    AUTO_FREE char *bin = real ? io_dirname(real) : NULL;
    AUTO_FREE char *home = bin ? io_dirname(bin) : NULL;
    const struct env here = { .spark_home = p->env.spark_home ? p->env.spark_home : home };
    char version[32];
    if (env_spark_version(&here, version) < 0) {
        buf_printf(&f->detail, "%s, version unknown", p->env.spark_submit);
        buf_puts(&f->fix, "set SPARK_HOME to the folder that holds Spark's jars/, or " DOCTOR_SET_UP);
        return CHECK_WARN;
    }
    buf_printf(&f->detail, "%s at %s", version, p->env.spark_submit);
    if (strncmp(version, "3.5.", 4) == 0)
        return CHECK_OK;
    buf_puts(&f->fix, "3.5.8 is what PipeTune is tested with: " DOCTOR_SET_UP);
    return CHECK_WARN;
}

enum doctor_state doctor_bigdl(const struct doctor_place *p, struct doctor_finding *f)
{
    static const char *const files[] = { "bigdl-dllib.jar", "bigdl-core.jar", "spark-bigdl.conf" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_FREE char *path = io_join(p->env.bigdl_home, files[i]);
        AUTO_FREE char *real = path ? realpath(path, NULL) : NULL;
        if (!real) {
            buf_clear(&f->detail);
            buf_printf(&f->detail, "no '%s' in '%s'", files[i], p->env.bigdl_home);
            buf_puts(&f->fix, DOCTOR_SET_UP ", or set BIGDL_HOME to a folder that holds it");
            return CHECK_MISSING;
        }
        buf_printf(&f->detail, "%s%s", i ? ", " : "", strrchr(real, '/') + 1); /* their names hold the versions */
    }
    buf_printf(&f->detail, " by %s", p->env.bigdl_home);
    return CHECK_OK;
}

enum doctor_state doctor_python(const struct doctor_place *p, struct doctor_finding *f)
{
    static char code[] =
        "import sys, numpy; print('%d.%d.%d with numpy %s' % (*sys.version_info[:3], numpy.__version__));"
        "sys.exit(not (3, 8) <= sys.version_info < (3, 12))";
    char name[] = "python3";
    char *python = p->env.python ? p->env.python : name;
    char *argv[] = { python, "-c", code, NULL };
    AUTO_BUF struct buf said = BUF_INIT;
    struct err e;
    int rc = capture(&said, argv, 20000, &e);
    if (rc == 0) {
        put_first_line(&f->detail, buf_text(&said));
        buf_printf(&f->detail, " at %s", python);
        return CHECK_OK;
    }
    const char *last = rc < 0 ? e.text : strstr(buf_text(&said), "Error:");
    buf_printf(&f->detail, "'%s' cannot serve Spark's Python applications: ", python);
    put_first_line(&f->detail, last ? last : buf_text(&said));
    buf_puts(&f->fix, DOCTOR_SET_UP " (Python applications and resumed trials need Python 3.8 to 3.11 with numpy < 2)");
    return CHECK_WARN;
}

/* --- our own files, and the data --- */

enum doctor_state doctor_node(const struct doctor_place *p, struct doctor_finding *f)
{
    char *argv[] = { p->env.node, "version", NULL };
    AUTO_BUF struct buf said = BUF_INIT;
    struct err e = { 0 };
    int rc = capture(&said, argv, 10000, &e);
    if (rc == 0) {
        put_first_line(&f->detail, buf_text(&said));
        buf_printf(&f->detail, " at %s", p->env.node);
        return CHECK_OK;
    }
    buf_printf(&f->detail, "'%s' does not run", p->env.node);
    buf_puts(&f->fix, "run make; it belongs beside pipetune");
    return CHECK_MISSING;
}

enum doctor_state doctor_conf(const struct doctor_place *p, struct doctor_finding *f)
{
    const char *const files[] = { p->env.log4j, p->env.converter };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (access(files[i], R_OK) == 0)
            continue;
        buf_printf(&f->detail, "'%s' cannot be read", files[i]);
        buf_puts(&f->fix, "set PIPETUNE_HOME to the folder that holds PipeTune's conf/ and bigdl/");
        return CHECK_MISSING;
    }
    buf_printf(&f->detail, "conf/ and bigdl/ in %s", p->env.home);
    return CHECK_OK;
}

static bool has_data_set(const struct doctor_place *p, const char *name)
{
    static const char *const files[] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                         "t10k-labels-idx1-ubyte" };
    AUTO_FREE char *dir = io_join(p->env.data, name);
    for (size_t i = 0; dir && i < ARRAY_LEN(files); i++) {
        AUTO_FREE char *path = io_join(dir, files[i]);
        struct stat st;
        if (!path || stat(path, &st) < 0 || st.st_size < 16)
            return false;
    }
    return dir != NULL;
}

/* The shipped examples train on one of the two. A trial on the user's own data needs neither, but that cannot be seen
 * here. */
enum doctor_state doctor_data(const struct doctor_place *p, struct doctor_finding *f)
{
    bool mnist = has_data_set(p, "mnist"), fashion = has_data_set(p, "fashion-mnist");
    if (mnist && fashion) {
        buf_printf(&f->detail, "MNIST and Fashion-MNIST in %s", p->env.data);
        return CHECK_OK;
    }
    if (!mnist && !fashion)
        buf_printf(&f->detail, "neither MNIST nor Fashion-MNIST in '%s'", p->env.data);
    else
        buf_printf(&f->detail, "no %s in '%s'", mnist ? "Fashion-MNIST" : "MNIST", p->env.data);
    buf_puts(&f->fix, DOCTOR_SET_UP ", or set PIPETUNE_DATA to the folder that holds mnist/ and fashion-mnist/");
    return mnist || fashion ? CHECK_WARN : CHECK_MISSING;
}

static enum doctor_state store_missing(struct doctor_finding *f, const char *text)
{
    buf_puts(&f->detail, text);
    buf_puts(&f->fix, "name a file on a local disk by --store or PIPETUNE_STORE");
    return CHECK_MISSING;
}

static void put_free_space(const struct doctor_place *p, const char *dir, struct buf *b)
{
    struct statvfs v;
    char type[FS_TYPE_MAX];
    if (fs_type(dir, type, NULL) == 0)
        buf_printf(b, " on %s", type);
    if (statvfs(dir, &v) == 0)
        buf_printf(b, ", %.1f GiB free", (double)v.f_bavail * (double)v.f_frsize / (1024.0 * 1024.0 * 1024.0));
    buf_puts(b, io_exists(p->store) ? "" : ", not begun yet");
}

enum doctor_state doctor_store(const struct doctor_place *p, struct doctor_finding *f)
{
    struct err e = { 0 };
    AUTO_FREE char *dir = io_dirname(p->store);
    const char *network = NULL;
    if (!dir || fs_network(dir, &network, &e) < 0)
        return store_missing(f, dir ? e.text : "out of memory");
    char text[PATH_MAX + 128];
    (void)snprintf(text, sizeof text, "'%s' is on a network file system (%s)", p->store, network ? network : "");
    if (network)
        return store_missing(f, text);
    (void)snprintf(text, sizeof text, "'%s' cannot be written", access(dir, W_OK) != 0 ? dir : p->store);
    if (access(dir, W_OK) != 0 || (io_exists(p->store) && access(p->store, W_OK) != 0))
        return store_missing(f, text);
    struct store *s = NULL;
    int rc = store_open(&s, p->store, STORE_READ, &e);
    store_close(s);
    if (rc < 0 && rc != -ENOENT)
        return store_missing(f, e.text);
    buf_printf(&f->detail, "%s", p->store);
    put_free_space(p, dir, &f->detail);
    return CHECK_OK;
}

/* --- the machine --- */

enum doctor_state doctor_libraries(const struct doctor_place *p, struct doctor_finding *f)
{
    (void)p; /* linked, so they are there; their versions tell what is theirs in a report */
    buf_printf(&f->detail, "libuv %s, jansson %s, SQLite %s, curl %s", uv_version_string(), jansson_version_str(),
               sqlite3_libversion(), curl_version_info(CURLVERSION_NOW)->version);
    return CHECK_OK;
}

enum doctor_state doctor_machine(const struct doctor_place *p, struct doctor_finding *f)
{
    buf_printf(&f->detail, "%d CPU%s and %.1f GiB of memory for a trial", p->offer.cores,
               p->offer.cores == 1 ? "" : "s", p->offer.memory_gb);
    if (p->offer.memory_gb >= 3)
        return CHECK_OK;
    buf_puts(&f->fix, "the shipped examples give their JVM 2 GiB: lower driver_memory in the BigDL file");
    return CHECK_WARN;
}

/* Spark asks for the address of the host's own name, and fails when there is none. */
enum doctor_state doctor_host(const struct doctor_place *p, struct doctor_finding *f)
{
    (void)p;
    char name[256] = "";
    (void)gethostname(name, sizeof name - 1); /* an empty name does not resolve either */
    const char *ip = getenv("SPARK_LOCAL_IP");
    struct addrinfo *found = NULL;
    int rc = ip && *ip ? 0 : getaddrinfo(name, NULL, NULL, &found);
    if (found)
        freeaddrinfo(found);
    if (rc == 0) {
        buf_printf(&f->detail, ip && *ip ? "SPARK_LOCAL_IP is %s" : "'%s' resolves", ip && *ip ? ip : name);
        return CHECK_OK;
    }
    buf_printf(&f->detail, "the host's own name '%s' does not resolve (%s): Spark may not start", name,
               gai_strerror(rc));
    buf_printf(&f->fix, "export SPARK_LOCAL_IP=127.0.0.1, or add '127.0.1.1 %s' to /etc/hosts", name);
    return CHECK_WARN;
}
