/* Kubernetes as a cluster: a launch's executors are pods with its tag as a label; what is free is what nodes can give, less what the
 * pods there have, within the quotas of our namespace. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "bigdl/cluster.h"
#include "bigdl/kube.h"
#include "bigdl/kube_resize.h"

#define IN_POD "/var/run/secrets/kubernetes.io/serviceaccount/"

/* "k8s://https://HOST:PORT", "k8s://HOST:PORT" */
static int bases(const char *master, const char *text, struct strv *out, struct err *e)
{
    static const char scheme[] = "k8s://", https[] = "https://", http[] = "http://";
    const char *at = master + sizeof scheme - 1;
    bool plain = strncmp(at, http, sizeof http - 1) == 0, named = plain || strncmp(at, https, sizeof https - 1) == 0;
    const char *host = named ? strstr(at, "//") + 2 : at;
    size_t n = strcspn(host, "/ ,");
    (void)text;
    if (n == 0 || (host[n] != '\0' && strcmp(host + n, "/") != 0))
        return err_set(e, -EINVAL, "master '%s' must be k8s://https://HOST:PORT", master);
    strv_addf(out, "%s%.*s", plain ? http : https, (int)n, host);
    return out->failed ? err_sys(e, -ENOMEM, "master '%s'", master) : 0;
}

/* --- a look ---------------------------------------------------------------------------------------------------------------- */

/* Executors tolerate what their template says. */
static int read_nodes(struct cluster_view *v, const struct cluster_asked *a, const char *text, size_t len,
                      struct err *e)
{
    struct kube_tolerations t = { .n = 0 };
    int rc = a->part ? kube_read_tolerations(&t, a->part, strlen(a->part), e) : 0;
    return rc < 0 ? rc : kube_read_nodes(v, &t, text, len, e);
}

static const struct {
    const char *path; /* with the namespace, where it has one */
    bool in_space;
    int (*take)(struct cluster_view *v, const char *text, size_t len, struct err *e); /* NULL: the nodes */
    const char *what;                                                                 /* for people */
} looks[] = {
    { "/api/v1/nodes", false, NULL, "list nodes" },
    { "/api/v1/pods?fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed", false, kube_take_pods,
      "list the pods of all namespaces" },
    { "/api/v1/namespaces/%s/resourcequotas", true, kube_read_quotas, "list quotas" },
    { "/api/v1/namespaces/%s/pods?labelSelector=" KUBE_LABEL, true, kube_read_launches, "list pods" },
};

static void begin(struct cluster_view *v)
{
    v->takes = (struct layout_takes){ .share = 0.1, .least_gb = 384.0 / 1024 };
}

static bool ask(const struct cluster_asked *a, const struct cluster_view *v, size_t i, struct cluster_request *out)
{
    static const char in_space[] = "/api/v1/namespaces/";
    enum { PAGE = 500 }; /* as many items as kubectl asks for at once */
    if (i >= ARRAY_LEN(looks))
        return false;
    out->method = "GET";
    buf_puts(&out->url, a->base);
    if (looks[i].in_space)
        buf_printf(&out->url, "%s%s%s", in_space, a->space, looks[i].path + sizeof in_space - 1 + 2);
    else
        buf_puts(&out->url, looks[i].path);
    buf_printf(&out->url, "%climit=%d", strchr(looks[i].path, '?') ? '&' : '?', PAGE);
    if (v->next.len == 0)
        return true;
    buf_puts(&out->url, "&continue=");
    cluster_put_query(&out->url, buf_text(&v->next));
    return true;
}

static int answer(struct cluster_view *v, const struct cluster_asked *a, size_t i, int status, const char *text,
                  size_t len, struct err *e)
{
    char why[KUBE_WHY_MAX];
    if (status == 200)
        return looks[i].take ? looks[i].take(v, text, len, e) : read_nodes(v, a, text, len, e);
    kube_refusal(status, text, len, why);
    if (status != 401 && status != 403)
        return err_set(e, -EPROTO, "the Kubernetes API server says %s", why);
    return err_set(e, -EACCES, "the Kubernetes API server does not let us %s (%s): conf/kubernetes has a role that may",
                   looks[i].what, why);
}

static bool end(const struct cluster_asked *a, const struct cluster_app *app, struct cluster_request *out)
{
    out->method = "DELETE";
    buf_printf(&out->url, "%s/api/v1/namespaces/%s/pods?labelSelector=" KUBE_LABEL "%%3D%s", a->base, a->space,
               app->tag);
    return true;
}

/* --- a launch -------------------------------------------------------------------------------------------------------------- */

static void add_conf(struct strv *out, const char *name, int value)
{
    strv_add(out, "--conf");
    strv_addf(out, "%s=%d", name, value);
}

/* The limit is what is narrowed and widened in flight, up to the cores that it begins with. */
static void submit(const struct app_launch *l, int cores_each, struct strv *out)
{
    strv_add(out, "--num-executors");
    strv_addf(out, "%d", l->slots / cores_each);
    strv_add(out, "--executor-cores");
    strv_addf(out, "%d", cores_each);
    add_conf(out, "spark.cores.max", l->slots); /* BigDL asks for it */
    add_conf(out, "spark.kubernetes.executor.limit.cores", cores_each);
    if (!l->launch)
        return;
    strv_add(out, "--conf");
    strv_addf(out, "spark.kubernetes.executor.label." KUBE_LABEL "=%s", l->launch);
}

const struct cluster_row cluster_kubernetes = {
    .name = "kubernetes",
    .begins = "k8s://",
    .what = "the Kubernetes API server",
    .token_file = IN_POD "token",
    .ca_file = IN_POD "ca.crt",
    .space_env = "PIPETUNE_CLUSTER_NAMESPACE",
    .space_file = IN_POD "namespace",
    .space = "default",
    .properties = { "spark.kubernetes.namespace", "spark.kubernetes.authenticate.oauthTokenFile",
                    "spark.kubernetes.authenticate.caCertFile", "spark.kubernetes.executor.podTemplateFile" },
    .bases = bases,
    .begin = begin,
    .ask = ask,
    .answer = answer,
    .end = end,
    .submit = submit,
    .resize = &kube_resize
};
