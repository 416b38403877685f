#include "live/nodes_cfg.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "live/ssh.h"

/* NULL: memory. */
static char *key_path(const char *key, const char *config_file)
{
    const char *home = strncmp(key, "~/", 2) == 0 ? getenv("HOME") : NULL;
    if (home)
        return io_join(home, key + 2);
    if (io_exists(key))
        return io_absolute(key);
    AUTO_FREE char *dir = io_dirname(config_file);
    AUTO_FREE char *beside = dir ? io_join(dir, key) : NULL;
    return beside ? io_absolute(io_exists(beside) ? beside : key) : NULL;
}

/* Copies a text of the entry; one that is not there stays NULL. */
static int copy_text(char **out, const json_t *entry, const char *key)
{
    const json_t *j = json_object_get(entry, key);
    if (!json_is_string(j))
        return 0;
    *out = strdup(json_string_value(j));
    return *out ? 0 : -ENOMEM;
}

static int read_key(struct node_cfg *out, const json_t *entry, const char *config_file)
{
    const char *key = json_string_value(json_object_get(entry, "key"));
    if (!key)
        return 0;
    out->key = *key ? key_path(key, config_file) : strdup(""); /* ssh_check() refuses an empty one */
    return out->key ? 0 : -ENOMEM;
}

/* -EINVAL for a port that is none; ssh_check() says the rest. */
static int read_port(struct node_cfg *out, const json_t *entry)
{
    const json_t *port = json_object_get(entry, "port");
    json_int_t value = port ? json_integer_value(port) : 1;
    if (value < 1 || value > INT_MAX)
        return -EINVAL;
    out->port = port ? (int)value : 0;
    return 0;
}

static int read_env(struct node_cfg *out, const json_t *entry)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(entry, "env"), name, value)
        strv_addf(&out->env, "%s=%s", name, json_string_value(value));
    return out->env.failed ? -ENOMEM : 0;
}

static int read_entry(struct node_cfg *out, const struct json_doc *doc, const json_t *entry)
{
    if (json_is_string(entry)) {
        out->host = strdup(json_string_value(entry));
        return out->host ? 0 : -ENOMEM;
    }
    int rc = copy_text(&out->host, entry, "host");
    if (rc == 0)
        rc = copy_text(&out->user, entry, "user");
    if (rc == 0)
        rc = copy_text(&out->address, entry, "address");
    if (rc == 0)
        rc = read_key(out, entry, doc->name);
    if (rc == 0)
        rc = read_env(out, entry);
    return rc < 0 ? rc : read_port(out, entry);
}

static int check_entry(const struct node_cfg *cfg, const struct json_doc *doc, size_t i, struct err *e)
{
    char path[32];
    struct err why = { 0 };
    (void)snprintf(path, sizeof path, "nodes/%zu", i);
    if (!cfg->host)
        return json_doc_err(doc, path, e, -EINVAL, "must be a host name or an object with 'host'");
    if (ssh_check(cfg, &why) < 0)
        return json_doc_err(doc, path, e, -EINVAL, "cannot be reached by ssh: %s", why.text);
    return 0;
}

int nodes_cfg_read(struct node_cfg **out, size_t *out_n, const struct json_doc *doc, struct err *e)
{
    const json_t *list = json_object_get(doc->root, "nodes");
    size_t n = json_array_size(list);
    struct node_cfg *cfg = calloc(n ? n : 1, sizeof *cfg);
    int rc = cfg ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && rc == 0; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "nodes/%zu/port", i);
        rc = read_entry(&cfg[i], doc, json_array_get(list, i));
        if (rc == -EINVAL)
            (void)json_doc_err(doc, path, e, rc, "must be between 1 and 65535");
        if (rc == 0)
            rc = check_entry(&cfg[i], doc, i, e);
    }
    if (rc == -ENOMEM)
        (void)err_sys(e, rc, "'%s': nodes", doc->name);
    if (rc < 0) {
        nodes_cfg_free(cfg, n);
        return rc;
    }
    *out = cfg;
    *out_n = n;
    return 0;
}

void nodes_cfg_free(struct node_cfg *cfg, size_t n)
{
    for (size_t i = 0; cfg && i < n; i++) {
        free(cfg[i].host);
        free(cfg[i].user);
        free(cfg[i].key);
        free(cfg[i].address);
        strv_done(&cfg[i].env);
    }
    free(cfg);
}

int nodes_cfg_find(const struct node_cfg *cfg, size_t n, const char *name)
{
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1); /* a machine without a name is still "localhost" */
    if (strcmp(name, "localhost") == 0 || strcmp(name, host) == 0)
        return 0; /* whatever the config calls it: of two helpers of this machine its own is the one that stays */
    for (size_t i = 0; i < n; i++)
        if (cfg[i].host && strcmp(cfg[i].host, name) == 0)
            return (int)i + 1;
    return -1;
}
