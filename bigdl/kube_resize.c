#include "bigdl/kube_resize.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "bigdl/kube.h"

static const char *text_of(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? text : "";
}

static bool is(const json_t *j, const char *key, const char *value)
{
    return strcmp(text_of(j, key), value) == 0;
}

/* --- is it to be had? ------------------------------------------------------------------------------------------------------ */

static bool can(const struct cluster_asked *a, struct cluster_request *out)
{
    out->method = "GET";
    buf_printf(&out->url, "%s/api/v1", a->base);
    return true;
}

/* What the server has of this version, each with what may be done to it: "pods/resize" since 1.33, unless it is switched off. */
static bool says_so(int status, const char *text, size_t len)
{
    AUTO_JSON json_t *root = status == 200 ? json_loadb(text, len, 0, NULL) : NULL;
    const json_t *resource;
    size_t i;
    json_array_foreach(json_object_get(root, "resources"), i,
                       resource) if (is(resource, "name", "pods/resize")) return true;
    return false;
}

/* --- what pods have ------------------------------------------------------------------------------------------------------- */

static bool ask(const struct cluster_asked *a, const char *tag, struct cluster_request *out)
{
    out->method = "GET";
    buf_printf(&out->url, "%s/api/v1/namespaces/%s/pods?labelSelector=" KUBE_LABEL "%%3D%s", a->base, a->space, tag);
    return true;
}

/* Spark's own container is the first; what is put beside it is none of ours. */
static const json_t *container_of(const json_t *pod)
{
    return json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0);
}

static const json_t *told_of(const json_t *pod, const char *name)
{
    const json_t *s;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(pod, "status"), "containerStatuses"), i,
                       s) if (is(s, "name", name)) return s;
    return NULL;
}

/* The limit throttles; where there is none, the request is what it has when others want theirs. */
static int64_t cpus(const json_t *resources, bool *limited)
{
    double limit = kube_quantity(json_object_get(json_object_get(resources, "limits"), "cpu"));
    double n = isnan(limit) ? kube_request(resources, "cpu") : limit;
    *limited = !isnan(limit);
    return n > 0 && n < 1e9 ? (int64_t)round(n * 1000) : -1;
}

/* A condition that an earlier generation of the pod led to says nothing of what was asked for since. */
static bool is_old(const json_t *condition, const json_t *pod)
{
    const json_t *seen = json_object_get(condition, "observedGeneration");
    const json_t *now = json_object_get(json_object_get(pod, "metadata"), "generation");
    return json_is_integer(seen) && json_is_integer(now) && json_integer_value(seen) < json_integer_value(now);
}

static const struct {
    const char *type, *reason; /* NULL: any */
    enum resize_at at;
} conditions[] = {
    { "PodResizePending", "Infeasible", RESIZE_INFEASIBLE },
    { "PodResizePending", "Deferred", RESIZE_DEFERRED },
    { "PodResizePending", NULL, RESIZE_UNDER_WAY },
    { "PodResizeInProgress", NULL, RESIZE_UNDER_WAY }, /* with an error, too, which the kubelet goes on after */
};

static void judge(struct resize_part *p, const json_t *pod)
{
    const json_t *c;
    size_t i;
    p->at = p->wanted == p->has ? RESIZE_IN_FORCE : RESIZE_UNDER_WAY;
    json_array_foreach(json_object_get(json_object_get(pod, "status"), "conditions"), i,
                       c) for (size_t k = 0; k < ARRAY_LEN(conditions); k++)
    {
        if (!is(c, "type", conditions[k].type) || !is(c, "status", "True") || is_old(c, pod) ||
            (conditions[k].reason && !is(c, "reason", conditions[k].reason)))
            continue;
        p->at = conditions[k].at > p->at ? conditions[k].at : p->at;
        (void)snprintf(p->why, sizeof p->why, "%s", text_of(c, "message"));
        break;
    }
}

static int read_pod(struct resize_view *out, const json_t *pod)
{
    const json_t *container = container_of(pod), *told = told_of(pod, text_of(container, "name"));
    bool ends = json_object_get(json_object_get(pod, "metadata"), "deletionTimestamp");
    bool limited;
    if (!is(json_object_get(pod, "status"), "phase", "Running") || ends || !told)
        return 0;
    struct resize_part *p = resize_add(out);
    if (!p)
        return -ENOMEM;
    (void)snprintf(p->name, sizeof p->name, "%s", text_of(json_object_get(pod, "metadata"), "name"));
    (void)snprintf(p->container, sizeof p->container, "%s", text_of(container, "name"));
    p->has = cpus(json_object_get(told, "resources"), &limited);
    p->wanted = cpus(json_object_get(container, "resources"), &p->limited);
    p->restarts = (int)json_integer_value(json_object_get(told, "restartCount"));
    judge(p, pod);
    return 0;
}

static int refused(int status, const char *text, size_t len, int code, struct err *e)
{
    char why[KUBE_WHY_MAX];
    kube_refusal(status, text, len, why);
    return err_set(e, code, "the Kubernetes API server says %s", why);
}

static int read_parts(struct resize_view *out, int status, const char *text, size_t len, struct err *e)
{
    AUTO_JSON json_t *root = NULL;
    const json_t *pod;
    size_t i;
    if (status != 200)
        return refused(status, text, len, status == 401 || status == 403 ? -EACCES : -EPROTO, e);
    const json_t *pods = kube_items(text, len, &root);
    if (!pods)
        return err_set(e, -EINVAL, "the answer is no list of pods of a Kubernetes API server");
    int rc = 0;
    json_array_foreach(pods, i, pod) rc = rc < 0 ? rc : read_pod(out, pod);
    return rc < 0 ? err_sys(e, rc, "the list of pods") : 0;
}

/* --- changing it ----------------------------------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(name);
}

/* Its class of service is fixed when it is made: where request and limit were the same, they stay so. */
static bool change(const struct cluster_asked *a, const struct resize_part *p, int64_t milli,
                   struct cluster_request *out)
{
    if (!is_name(p->name) || !is_name(p->container) || milli < 1)
        return false;
    out->method = "PATCH";
    out->type = "application/strategic-merge-patch+json";
    buf_printf(&out->url, "%s/api/v1/namespaces/%s/pods/%s/resize", a->base, a->space, p->name);
    buf_printf(&out->body,
               "{\"spec\":{\"containers\":[{\"name\":\"%s\",\"resources\":{\"requests\":{\"cpu\":\"%lldm\"}",
               p->container, (long long)milli);
    if (p->limited)
        buf_printf(&out->body, ",\"limits\":{\"cpu\":\"%lldm\"}", (long long)milli);
    buf_puts(&out->body, "}}]}}");
    return true;
}

static int answer(int status, const char *text, size_t len, struct err *e)
{
    if (status >= 200 && status < 300)
        return 0;
    if (status == 404 && !kube_is_gone(text, len))
        return refused(status, text, len, -ENOTSUP, e);
    if (status == 404 || status == 409)
        return refused(status, text, len, -EAGAIN, e);
    bool no =
        status == 403 || status == 400 || status == 422; /* a quota, a role, a limit's range, a class of service */
    return refused(status, text, len, no ? -EACCES : -EPROTO, e);
}

const struct cluster_resize kube_resize = {
    .can = can, .says_so = says_so, .ask = ask, .read = read_parts, .change = change, .answer = answer
};
