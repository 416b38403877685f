/* Spark's own master: the JSON of its web page says what each worker has free, and which applications there are. It keeps no tags: an
 * application is known by the id that the log tells. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "bigdl/cluster.h"

/* "spark://a:7077,b:7077": each has a page, and one of them is the leader. */
static int bases(const char *master, const char *text, struct strv *out, struct err *e)
{
    const char *at = master + strlen(cluster_standalone.begins);
    (void)text;
    for (;; at++) {
        int len = *at == '[' ? (int)strcspn(at, "]") + 1 : (int)strcspn(at, ":,/");
        if (len == 0 || (*at == '[' && at[len - 1] != ']'))
            return err_set(e, -EINVAL, "'%s' names no host: spark://HOST:PORT is meant", master);
        strv_addf(out, "http://%.*s:8080", len, at);
        at += strcspn(at, ",");
        if (!*at)
            return out->failed ? err_sys(e, -ENOMEM, "'%s'", master) : 0;
    }
}

static bool ask(const struct cluster_asked *a, const struct cluster_view *v, size_t i, struct cluster_request *out)
{
    (void)v;
    if (i > 0)
        return false;
    out->method = "GET";
    buf_printf(&out->url, "%s/json/", a->base);
    return true;
}

static int take_worker(struct cluster_view *v, const json_t *j)
{
    const char *state = json_string_value(json_object_get(j, "state"));
    const char *host = json_string_value(json_object_get(j, "host"));
    if (!state || strcmp(state, "ALIVE") != 0 || cluster_cores(j, "cores") < 1)
        return 0;
    struct cluster_worker *w = cluster_add_worker(v);
    if (!w)
        return -ENOMEM;
    w->cores = cluster_cores(j, "cores");
    w->free_cores = cluster_cores(j, "coresfree");
    w->memory_gb = cluster_mib(j, "memory");
    w->free_gb = cluster_mib(j, "memoryfree");
    (void)snprintf(w->host, sizeof w->host, "%s", host ? host : "");
    return 0;
}

static int take_app(struct cluster_view *v, const struct cluster_asked *a, const json_t *j, bool over)
{
    const char *id = json_string_value(json_object_get(j, "id"));
    const char *state = json_string_value(json_object_get(j, "state"));
    for (size_t i = 0; id && i < a->n_keys; i++) {
        if (!a->keys[i].id || strcmp(a->keys[i].id, id) != 0)
            continue;
        struct cluster_app *app = cluster_add_app(v);
        if (!app)
            return -ENOMEM;
        (void)snprintf(app->tag, sizeof app->tag, "%s", a->keys[i].tag);
        (void)snprintf(app->id, sizeof app->id, "%s", id);
        bool waits = state && strcmp(state, "WAITING") == 0;
        app->state = over ? CLUSTER_OVER : waits ? CLUSTER_WAITS : CLUSTER_RUNS;
        app->parts = app->kills = -1;
        app->cores = cluster_cores(j, "cores");
        if (waits)
            (void)snprintf(app->why, sizeof app->why, "the master has it waiting");
    }
    return 0;
}

static int answer(struct cluster_view *v, const struct cluster_asked *a, size_t i, int status, const char *text,
                  size_t len, struct err *e)
{
    (void)i;
    int rc = cluster_status(status, e);
    if (rc < 0)
        return rc;
    AUTO_JSON json_t *root = json_loadb(text, len, 0, NULL);
    const json_t *workers = json_object_get(root, "workers"), *apps = json_object_get(root, "activeapps"),
                 *over = json_object_get(root, "completedapps"), *j;
    const char *stands = json_string_value(json_object_get(root, "status"));
    size_t k;
    if (!json_is_array(workers))
        return err_set(e, -EINVAL, "the answer is not a standalone master's");
    if (stands && strcmp(stands, "STANDBY") == 0)
        return err_set(e, -EINVAL, "this master stands by, another one leads");
    json_array_foreach(workers, k, j) rc = rc < 0 ? rc : take_worker(v, j);
    json_array_foreach(apps, k, j) rc = rc < 0 ? rc : take_app(v, a, j, false);
    json_array_foreach(over, k, j) rc = rc < 0 ? rc : take_app(v, a, j, true);
    if (rc < 0)
        return err_sys(e, rc, "what the master offers");
    return v->n_workers > 0 ? 0 : err_set(e, -ENODEV, "no worker is alive");
}

/* What people press on its page. */
static bool end(const struct cluster_asked *a, const struct cluster_app *app, struct cluster_request *out)
{
    out->method = "POST";
    out->type = "application/x-www-form-urlencoded";
    buf_printf(&out->url, "%s/app/kill/", a->base);
    buf_puts(&out->body, "terminate=true&id=");
    cluster_put_query(&out->body, app->id);
    return true;
}

static void submit(const struct app_launch *l, int cores_each, struct strv *out)
{
    strv_add(out, "--total-executor-cores");
    strv_addf(out, "%d", l->slots);
    strv_add(out, "--executor-cores");
    strv_addf(out, "%d", cores_each);
}

const struct cluster_row cluster_standalone = {
    .name = "standalone",
    .begins = "spark://",
    .what = "the master",
    .bases = bases,
    .ask = ask,
    .answer = answer,
    .end = end,
    .submit = submit,
};
