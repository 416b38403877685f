/* YARN, by the REST of its resource manager: what each node has free, our applications by their tags, which it keeps in lower case, and what
 * our queue leaves us.
 * An application takes a container beside its executors, the application master's, which carries no tag of ours. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "bigdl/cluster.h"

enum { NODES, APPS, STEP, QUEUES }; /* what is asked, in this order */

/* Spark's defaults: spark.executor.memoryOverheadFactor and its least, spark.yarn.am.memory. */
static const double SHARE = 0.1, LEAST_GB = 0.375, AM_GB = 0.5, STEP_GB = 1;

static const char QUEUE[] = "default";

static const char STEP_KEY[] = "yarn.scheduler.minimum-allocation-mb";

/* --- where it is ---------------------------------------------------------------------------------------------------------- */

/* The text between <tag> and </tag> in [from, to), without blanks around it; false: it is not there. */
static bool inside(const char *from, const char *to, const char *tag, const char **out, size_t *out_len)
{
    size_t n = strlen(tag);
    for (const char *at = from; at && at + n + 2 <= to; at = memchr(at + 1, '<', (size_t)(to - at - 1))) {
        if (*at != '<' || strncmp(at + 1, tag, n) != 0 || at[n + 1] != '>')
            continue;
        const char *begin = at + n + 2, *end = memchr(begin, '<', (size_t)(to - begin));
        if (!end)
            return false;
        while (begin < end && strchr(" \t\r\n", *begin))
            begin++;
        while (end > begin && strchr(" \t\r\n", end[-1]))
            end--;
        *out = begin;
        *out_len = (size_t)(end - begin);
        return true;
    }
    return false;
}

/* The file without its comments. */
static int bare(const char *text, struct buf *out)
{
    for (const char *at = text; at && *at;) {
        const char *comment = strstr(at, "<!--");
        buf_put(out, at, comment ? (size_t)(comment - at) : strlen(at));
        at = comment ? strstr(comment + 4, "-->") : NULL;
        at = at ? at + 3 : NULL;
    }
    return out->failed ? -ENOMEM : 0;
}

/* The value of a property of Hadoop's XML; the last one wins. Free it; NULL: it is not there. */
static char *property(const char *text, const char *name)
{
    char *found = NULL;
    for (const char *at = text; (at = strstr(at, "<property>"));) {
        const char *end = strstr(at, "</property>"), *key, *value;
        size_t key_len, value_len;
        if (!end)
            break;
        if (inside(at, end, "name", &key, &key_len) && key_len == strlen(name) && strncmp(key, name, key_len) == 0 &&
            inside(at, end, "value", &value, &value_len) && value_len > 0) {
            free(found);
            found = strndup(value, value_len);
        }
        at = end;
    }
    return found;
}

/* "NAME.ID", or NAME where there are no IDs. */
static char *of_manager(const char *text, const char *name, const char *id)
{
    char key[256];
    (void)snprintf(key, sizeof key, "%s%s%s", name, *id ? "." : "", id);
    return property(text, key);
}

/* One manager's page, by its own key or by its host's name. */
static void put_base(const char *text, const char *id, bool https, struct strv *out)
{
    static const char plain_key[] = "yarn.resourcemanager.webapp.address",
                      https_key[] = "yarn.resourcemanager.webapp.https.address";
    AUTO_FREE char *page = of_manager(text, https ? https_key : plain_key, id);
    AUTO_FREE char *host = of_manager(text, "yarn.resourcemanager.hostname", id);
    const char *scheme = https ? "https" : "http";
    if (page && !strstr(page, "${"))
        strv_addf(out, "%s://%s", scheme, page);
    else if (host)
        strv_addf(out, "%s://%s:%d", scheme, host, https ? 8090 : 8088);
}

static int bases(const char *master, const char *text, struct strv *out, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    (void)master;
    if (!text)
        return err_set(e, -EINVAL,
                       "HADOOP_CONF_DIR is not set, or has no yarn-site.xml: point it at Hadoop's configuration");
    if (bare(text, &b) < 0)
        return err_sys(e, -ENOMEM, "yarn-site.xml");
    AUTO_FREE char *policy = property(buf_text(&b), "yarn.http.policy");
    AUTO_FREE char *ids = property(buf_text(&b), "yarn.resourcemanager.ha.rm-ids");
    bool https = policy && strcmp(policy, "HTTPS_ONLY") == 0;
    char *save = NULL;
    for (char *id = ids ? strtok_r(ids, ", \t\r\n", &save) : NULL; id; id = strtok_r(NULL, ", \t\r\n", &save))
        put_base(buf_text(&b), id, https, out);
    if (out->n == 0)
        put_base(buf_text(&b), "", https, out);
    if (out->failed)
        return err_sys(e, -ENOMEM, "yarn-site.xml");
    return out->n > 0 ? 0
                      : err_set(e, -EINVAL,
                                "yarn-site.xml says neither yarn.resourcemanager.webapp.address nor "
                                "yarn.resourcemanager.hostname: add one, or give spark.master_ui");
}

/* --- a look --------------------------------------------------------------------------------------------------------------- */

static void set_step(struct cluster_view *v, double step_gb)
{
    v->takes.step_gb = step_gb;
    const struct layout_takes takes = v->takes;
    v->beside = (struct layout_ask){ 1, 1, layout_takes_gb(&takes, AM_GB) };
}

static void begin(struct cluster_view *v)
{
    v->takes = (struct layout_takes){ SHARE, LEAST_GB, 0 };
    set_step(v, STEP_GB);
}

static bool ask(const struct cluster_asked *a, const struct cluster_view *v, size_t i, struct cluster_request *out)
{
    (void)v;
    out->method = "GET";
    switch (i) {
    case NODES: buf_printf(&out->url, "%s/ws/v1/cluster/nodes?states=RUNNING", a->base); return true;
    case APPS:
        buf_printf(&out->url, "%s/ws/v1/cluster/apps?applicationTags=", a->base);
        for (size_t k = 0; k < a->n_keys; k++) {
            buf_puts(&out->url, k ? "," : "");
            cluster_put_query(&out->url, a->keys[k].tag);
        }
        if (a->n_keys == 0) /* nobody's */
            buf_puts(&out->url, "pipetune-none");
        return true;
    case STEP: buf_printf(&out->url, "%s/conf?format=json&name=%s", a->base, STEP_KEY); return true;
    case QUEUES: buf_printf(&out->url, "%s/ws/v1/cluster/scheduler", a->base); return true;
    default: return false;
    }
}

static int take_nodes(struct cluster_view *v, const json_t *root, struct err *e)
{
    const json_t *nodes = json_object_get(root, "nodes"), *list = json_object_get(nodes, "node"), *j;
    size_t k;
    if (!nodes || (list && !json_is_array(list)))
        return err_set(e, -EINVAL, "the answer is not a resource manager's");
    json_array_foreach(list, k, j)
    {
        const char *host = json_string_value(json_object_get(j, "nodeHostName"));
        const char *state = json_string_value(json_object_get(j, "state"));
        if (state && strcmp(state, "RUNNING") != 0)
            continue;
        struct cluster_worker *w = cluster_add_worker(v);
        if (!w)
            return err_sys(e, -ENOMEM, "the nodes of YARN");
        w->free_cores = cluster_cores(j, "availableVirtualCores");
        w->cores = w->free_cores + cluster_cores(j, "usedVirtualCores");
        w->free_gb = cluster_mib(j, "availMemoryMB");
        w->memory_gb = w->free_gb + cluster_mib(j, "usedMemoryMB");
        (void)snprintf(w->host, sizeof w->host, "%s", host ? host : "");
    }
    return v->n_workers > 0 ? 0 : err_set(e, -ENODEV, "no node of YARN runs");
}

/* Which of our launches has a tag among "a,b"; NULL: none. */
static const char *tag_of(const struct cluster_asked *a, const char *tags)
{
    for (const char *at = tags; at && *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        for (size_t k = 0; k < a->n_keys; k++)
            if (strlen(a->keys[k].tag) == len && strncasecmp(a->keys[k].tag, at, len) == 0)
                return a->keys[k].tag;
        at += len;
    }
    return NULL;
}

static enum cluster_state state_of(const char *state)
{
    static const char *const over[] = { "FINISHED", "FAILED", "KILLED" };
    for (size_t i = 0; state && i < ARRAY_LEN(over); i++)
        if (strcmp(state, over[i]) == 0)
            return CLUSTER_OVER;
    return state && strcmp(state, "RUNNING") == 0 ? CLUSTER_RUNS : CLUSTER_WAITS;
}

/* The first line, and what is more than blanks. */
static void put_why(char out[CLUSTER_WHY_MAX], const char *text)
{
    size_t n = 0;
    for (; text && *text && *text != '\n' && n + 1 < CLUSTER_WHY_MAX / 2; text++)
        if ((unsigned char)*text >= ' ' && (unsigned char)*text < 0x7f &&
            !(*text == ' ' && (n == 0 || out[n - 1] == ' ')))
            out[n++] = *text;
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

static int take_apps(struct cluster_view *v, const struct cluster_asked *a, const json_t *root, struct err *e)
{
    const json_t *list = json_object_get(json_object_get(root, "apps"), "app"), *j;
    size_t k;
    if (!json_object_get(root, "apps"))
        return err_set(e, -EINVAL, "the answer is not a resource manager's");
    json_array_foreach(list, k, j)
    {
        const char *id = json_string_value(json_object_get(j, "id"));
        const char *tag = tag_of(a, json_string_value(json_object_get(j, "applicationTags")));
        struct cluster_app *app = id && tag ? cluster_add_app(v) : NULL;
        if (!id || !tag)
            continue;
        if (!app)
            return err_sys(e, -ENOMEM, "the applications of YARN");
        (void)snprintf(app->tag, sizeof app->tag, "%s", tag);
        (void)snprintf(app->id, sizeof app->id, "%s", id);
        app->state = state_of(json_string_value(json_object_get(j, "state")));
        int containers = cluster_cores(j, "runningContainers"), cores = cluster_cores(j, "allocatedVCores");
        app->parts = containers > 0 ? containers - 1 : 0; /* the master's own came first */
        app->cores = cores > 0 ? cores - 1 : 0;
        app->kills = -1;
        if (app->state == CLUSTER_WAITS)
            put_why(app->why, json_string_value(json_object_get(j, "diagnostics")));
    }
    return 0;
}

static void take_step(struct cluster_view *v, const json_t *root)
{
    const json_t *p = json_object_get(root, "property");
    const char *key = json_string_value(json_object_get(p, "key"));
    const char *value = json_string_value(json_object_get(p, "value"));
    long mib = key && value && strcmp(key, STEP_KEY) == 0 ? strtol(value, NULL, 10) : 0;
    if (mib > 0 && mib <= 1 << 20)
        set_step(v, (double)mib / 1024);
}

/* --- queues --- */

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

/* "root.a.b" by its last name, by its path, or by its path without the root, as applications may name it. Some managers tell no
 * paths. */
static bool is_queue(const json_t *q, const char *name)
{
    static const char root[] = "root.";
    const char *path = text_of(q, "queuePath"), *last = strrchr(name, '.');
    bool bare = strncmp(path, root, strlen(root)) == 0 && strcmp(path + strlen(root), name) == 0;
    name = *path || !last ? name : last + 1;
    return bare || strcmp(path, name) == 0 || strcmp(text_of(q, "queueName"), name) == 0;
}

static const json_t *find_queue(const json_t *of, const char *name, int depth)
{
    enum { DEPTH_MAX = 16 };
    const json_t *q, *found = NULL;
    size_t k;
    json_array_foreach(json_object_get(json_object_get(of, "queues"), "queue"), k, q)
    {
        if (is_queue(q, name))
            return q;
        if (depth < DEPTH_MAX && (found = find_queue(q, name, depth + 1)))
            return found;
    }
    return NULL;
}

/* … with a name in a list of objects that have it under `key`; NULL: there is none. */
static const json_t *named(const json_t *list, const char *key, const char *name)
{
    const json_t *j;
    size_t k;
    json_array_foreach(list, k, j) if (name && strcmp(text_of(j, key), name) == 0) return j;
    return NULL;
}

/* What is left of so many times `most`, of which so much is used. Where that is not told nothing binds. */
static void keep_within(struct cluster_view *v, const char *name, const json_t *most, double times, const json_t *used)
{
    double gb = times * cluster_mib(most, "memory"), cores = times * cluster_cores(most, "vCores");
    if (!(gb > 0) || !(cores > 0))
        return;
    cores -= cluster_cores(used, "vCores");
    gb -= cluster_mib(used, "memory");
    cluster_limit(v, name, cores > 0 ? (int)cores : 0, gb > 0 ? gb : 0);
}

/* A queue may grow so far, and a user has so many times its share of it. Schedulers other than the one by capacities say none of this, and
 * bind by what they grant. */
static void take_queues(struct cluster_view *v, const struct cluster_asked *a, const json_t *root)
{
    const json_t *info = json_object_get(json_object_get(root, "scheduler"), "schedulerInfo");
    const char *name = a->space ? a->space : QUEUE;
    const json_t *q = find_queue(info, name, 0);
    const json_t *shares = json_object_get(json_object_get(q, "capacities"), "queueCapacitiesByPartition");
    const json_t *share = named(shares, "partitionName", ""); /* of nodes without a label */
    const json_t *me = named(json_object_get(json_object_get(q, "users"), "user"), "username", a->user);
    double factor = json_number_value(json_object_get(q, "userLimitFactor"));
    keep_within(v, name, json_object_get(share, "effectiveMaxResource"), 1, json_object_get(q, "resourcesUsed"));
    keep_within(v, name, json_object_get(share, "effectiveMinResource"), factor, json_object_get(me, "resourcesUsed"));
}

static int answer(struct cluster_view *v, const struct cluster_asked *a, size_t i, int status, const char *text,
                  size_t len, struct err *e)
{
    bool told = i == NODES || i == APPS || status == 200; /* who may not see the others has the default */
    int rc = told ? cluster_status(status, e) : 0;
    if (rc < 0)
        return rc;
    AUTO_JSON json_t *root = json_loadb(text, len, 0, NULL);
    if (i == STEP)
        take_step(v, root);
    if (i == QUEUES)
        take_queues(v, a, root);
    return i == NODES ? take_nodes(v, root, e) : i == APPS ? take_apps(v, a, root, e) : 0;
}

static bool end(const struct cluster_asked *a, const struct cluster_app *app, struct cluster_request *out)
{
    out->method = "PUT";
    out->type = "application/json";
    buf_printf(&out->url, "%s/ws/v1/cluster/apps/", a->base);
    cluster_put_query(&out->url, app->id);
    buf_puts(&out->url, "/state");
    if (a->user) {
        buf_puts(&out->url, "?user.name=");
        cluster_put_query(&out->url, a->user);
    }
    buf_puts(&out->body, "{\"state\":\"KILLED\"}");
    return true;
}

/* --- a launch --------------------------------------------------------------------------------------------------------------- */

static void submit(const struct app_launch *l, int cores_each, struct strv *out)
{
    strv_add(out, "--num-executors");
    strv_addf(out, "%d", l->slots / cores_each);
    strv_add(out, "--executor-cores");
    strv_addf(out, "%d", cores_each);
    if (!l->launch)
        return;
    strv_add(out, "--conf"); /* the application's own name wins over one that is given */
    strv_addf(out, "spark.yarn.tags=%s", l->launch);
}

const struct cluster_row cluster_yarn = {
    .name = "yarn",
    .begins = "yarn",
    .whole = true,
    .what = "YARN's resource manager",
    .folder_env = "HADOOP_CONF_DIR",
    .file = "yarn-site.xml",
    .space = QUEUE,
    .properties = { .space = "spark.yarn.queue" },
    .bases = bases,
    .begin = begin,
    .ask = ask,
    .answer = answer,
    .end = end,
    .submit = submit,
};
