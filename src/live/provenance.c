#include "live/provenance.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"

#ifndef PIPETUNE_COMMIT
#define PIPETUNE_COMMIT ""
#endif

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_bytes(text) : json_null();
}

static int add_hash(json_t *to, const char *path)
{
    char hex[SHA256_HEX_MAX];
    bool known = sha256_file(path, hex, NULL) == 0;
    return json_object_set_new(to, path, known ? json_string(hex) : json_null());
}

static json_t *hashes(const struct plan *p)
{
    AUTO_STRV struct strv files = STRV_INIT;
    p->app.kind->files(&p->app, &files);
    json_t *j = files.failed ? NULL : json_object();
    int rc = 0;
    for (size_t i = 0; j && rc == 0 && i < files.n; i++)
        rc = add_hash(j, files.v[i]);
    if (rc == 0)
        return j;
    json_decref(j);
    return NULL;
}

void provenance_user(char out[PROVENANCE_USER_MAX])
{
    char room[4096];
    struct passwd pw, *found = NULL;
    bool known = getpwuid_r(geteuid(), &pw, room, sizeof room, &found) == 0 && found;
    (void)snprintf(out, PROVENANCE_USER_MAX, "%s", known ? pw.pw_name : "");
}

json_t *provenance_json(const struct plan *p)
{
    const struct secret_rules rules = secrets_rules(&p->secrets);
    AUTO_FREE char *config = secrets_text(&p->secrets, &p->doc);
    AUTO_JSON json_t *application = secret_masked(&rules, p->app_doc.root, "", NULL);
    if (!config || !application)
        return NULL;
    struct utsname host = { 0 };
    char user[PROVENANCE_USER_MAX];
    provenance_user(user);
    (void)uname(&host); /* fails for bad pointers only */
    char spark[32] = "";
    if (p->app.kind->needs & APP_NEEDS_SPARK)
        (void)env_spark_version(&p->env, spark); /* absent stays null */
    int java = 0;
    if (p->app.kind->needs & APP_NEEDS_JAVA)
        (void)env_java_major(&p->env, &java, NULL);
    return json_pack("{s:s, s:o, s:s, s:o, s:s, s:s, s:i, s:f, s:o, s:o, s:o, s:s, s:O, s:o}", "pipetune",
                     PIPETUNE_VERSION, "commit", text_or_null(PIPETUNE_COMMIT), "host", host.nodename, "user",
                     text_or_null(user), "kernel", host.release, "machine", host.machine, "cores", p->offer.cores,
                     "memory_gb", p->offer.memory_gb, "java", java ? json_integer(java) : json_null(), "spark",
                     text_or_null(spark), "config_file", json_bytes(p->doc.name), "config", config, "bigdl",
                     application, "sha256", hashes(p));
}
