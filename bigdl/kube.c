#include "bigdl/kube.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

static const double GIB = 1024.0 * 1024 * 1024;
static const double MOST = 9223372036854775807.0;

static const char *text_of(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? text : "";
}

static bool is(const json_t *j, const char *key, const char *value)
{
    return strcmp(text_of(j, key), value) == 0;
}

/* --- quantities ------------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *suffix;
    double factor;
} units[] = {
    { "", 1 },        { "n", 1e-9 },    { "u", 1e-6 },    { "m", 1e-3 },    { "k", 1e3 },     { "M", 1e6 },
    { "G", 1e9 },     { "T", 1e12 },    { "P", 1e15 },    { "E", 1e18 },    { "Ki", 0x1p10 }, { "Mi", 0x1p20 },
    { "Gi", 0x1p30 }, { "Ti", 0x1p40 }, { "Pi", 0x1p50 }, { "Ei", 0x1p60 },
};

static double text_quantity(const char *text)
{
    char *end = NULL;
    if (strspn(text, "0123456789.") == 0)
        return NAN; /* strtod() knows signs, names and hexadecimal ones, too */
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return NAN;
    double n = strtod(text, &end);
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(end, units[i].suffix) == 0)
            return n * units[i].factor;
    return NAN;
}

double kube_quantity(const json_t *v)
{
    double n = json_is_string(v) ? text_quantity(json_string_value(v)) : json_is_number(v) ? json_number_value(v) : NAN;
    return n >= 0 && n <= MOST ? n : NAN;
}

double kube_request(const json_t *resources, const char *what)
{
    double asked = kube_quantity(json_object_get(json_object_get(resources, "requests"), what));
    if (isnan(asked))
        asked = kube_quantity(json_object_get(json_object_get(resources, "limits"), what));
    return isnan(asked) ? 0 : asked;
}

const json_t *kube_items(const char *text, size_t len, json_t **out_root)
{
    *out_root = json_loadb(text, len, 0, NULL);
    const json_t *items = json_object_get(*out_root, "items");
    return json_is_array(items) ? items : NULL;
}

static int no_list(const char *of, struct err *e)
{
    return err_set(e, -EINVAL, "the answer is no list of %s of a Kubernetes API server", of);
}

/* By what the next page of the list is asked for, where there is one. */
static int go_on(struct cluster_view *v, const json_t *root, struct err *e)
{
    buf_clear(&v->next);
    buf_puts(&v->next, text_of(json_object_get(root, "metadata"), "continue"));
    return v->next.failed ? err_sys(e, -ENOMEM, "a page of a list") : 0;
}

/* --- nodes ----------------------------------------------------------------------------------------------------------------- */

static bool takes_pods(const struct kube_tolerations *t, const json_t *node)
{
    const json_t *spec = json_object_get(node, "spec"), *condition;
    const json_t *conditions = json_object_get(json_object_get(node, "status"), "conditions");
    size_t i;
    bool ready = false;
    json_array_foreach(conditions, i, condition)
    {
        ready |= is(condition, "type", "Ready") && is(condition, "status", "True");
    }
    return ready && kube_tolerates(t, node) && !json_is_true(json_object_get(spec, "unschedulable"));
}

static int whole(double n)
{
    int most = (int)knob_kinds[KNOB_CORES].max;
    return !(n >= 0) ? 0 : n > most ? most : (int)(n + 1e-6);
}

int kube_read_nodes(struct cluster_view *v, const struct kube_tolerations *t, const char *text, size_t len,
                    struct err *e)
{
    AUTO_JSON json_t *root = NULL;
    const json_t *nodes = kube_items(text, len, &root), *node;
    size_t i;
    if (!nodes)
        return no_list("nodes", e);
    json_array_foreach(nodes, i, node)
    {
        const json_t *has = json_object_get(json_object_get(node, "status"), "allocatable");
        double cpus = kube_quantity(json_object_get(has, "cpu")),
               memory = kube_quantity(json_object_get(has, "memory"));
        if (!takes_pods(t, node) || !(cpus > 0) || !(memory > 0))
            continue;
        struct cluster_worker *w = cluster_add_worker(v);
        if (!w)
            return err_sys(e, -ENOMEM, "the list of nodes");
        (void)snprintf(w->host, sizeof w->host, "%s", text_of(json_object_get(node, "metadata"), "name"));
        w->cores = whole(cpus);
        w->free_cores = w->cores;
        w->free_milli = (int64_t)round(fmin(cpus, 1e9) * 1000);
        w->memory_gb = w->free_gb = memory / GIB;
    }
    int rc = go_on(v, root, e);
    return rc < 0 || v->n_workers > 0 || v->next.len > 0 ? rc : err_set(e, -ENODEV, "no node takes pods now");
}

/* --- what pods have ------------------------------------------------------------------------------------------------------- */

static const json_t *status_of(const json_t *pod, const char *container)
{
    const json_t *s;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(pod, "status"), "containerStatuses"), i, s)
    {
        if (is(s, "name", container))
            return s;
    }
    return NULL;
}

/* As the scheduler reckons: the most of what is wanted, was granted and is in force. */
static double container_has(const json_t *pod, const json_t *container, const char *what)
{
    const json_t *told = status_of(pod, text_of(container, "name"));
    double wanted = kube_request(json_object_get(container, "resources"), what);
    double granted = kube_quantity(json_object_get(json_object_get(told, "allocatedResources"), what));
    double actual = kube_request(json_object_get(told, "resources"), what);
    return fmax(fmax(wanted, isnan(granted) ? 0 : granted), actual);
}

static double pod_has(const json_t *pod, const char *what)
{
    const json_t *spec = json_object_get(pod, "spec"), *container;
    double sum = 0, first = 0, over = kube_quantity(json_object_get(json_object_get(spec, "overhead"), what));
    size_t i;
    json_array_foreach(json_object_get(spec, "containers"), i, container)
    {
        sum += container_has(pod, container, what);
    }
    json_array_foreach(json_object_get(spec, "initContainers"), i, container)
    {
        first = fmax(first, kube_request(json_object_get(container, "resources"), what));
    }
    return fmax(sum, first) + (isnan(over) ? 0 : over);
}

static bool is_over(const json_t *pod)
{
    const json_t *status = json_object_get(pod, "status");
    return is(status, "phase", "Succeeded") || is(status, "phase", "Failed");
}

static struct cluster_worker *worker_of(struct cluster_view *v, const char *host)
{
    for (size_t i = 0; *host && i < v->n_workers; i++)
        if (strcmp(v->workers[i].host, host) == 0)
            return &v->workers[i];
    return NULL;
}

int kube_take_pods(struct cluster_view *v, const char *text, size_t len, struct err *e)
{
    AUTO_JSON json_t *root = NULL;
    const json_t *pods = kube_items(text, len, &root), *pod;
    size_t i;
    if (!pods)
        return no_list("pods", e);
    json_array_foreach(pods, i, pod)
    {
        struct cluster_worker *w = worker_of(v, text_of(json_object_get(pod, "spec"), "nodeName"));
        if (!w || is_over(pod))
            continue;
        double milli = fmin(pod_has(pod, "cpu"), 1e9) * 1000;
        w->free_milli -= (int64_t)round(milli);
        w->free_cores = whole((double)w->free_milli / 1000);
        w->free_gb = fmax(0, w->free_gb - pod_has(pod, "memory") / GIB);
    }
    return go_on(v, root, e);
}

/* --- ours ------------------------------------------------------------------------------------------------------------------ */

/* NULL: the container has no such variable. */
static const json_t *variable_of(const json_t *container, const char *name)
{
    const json_t *variable;
    size_t i;
    json_array_foreach(json_object_get(container, "env"), i, variable)
    {
        if (is(variable, "name", name))
            return variable;
    }
    return NULL;
}

/* Slots of an executor: its CPUs may have been narrowed. */
static int slots_of(const json_t *pod)
{
    const json_t *container;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(pod, "spec"), "containers"), i, container)
    {
        const json_t *slots = variable_of(container, "SPARK_EXECUTOR_CORES");
        if (slots)
            return whole(text_quantity(text_of(slots, "value")));
    }
    return whole(pod_has(pod, "cpu"));
}

static struct cluster_app *app_of(struct cluster_view *v, const char *tag)
{
    for (size_t i = 0; i < v->n_apps; i++)
        if (strcmp(v->apps[i].tag, tag) == 0)
            return &v->apps[i];
    struct cluster_app *a = cluster_add_app(v);
    if (!a)
        return NULL;
    (void)snprintf(a->tag, sizeof a->tag, "%s", tag);
    a->state = CLUSTER_OVER;
    return a;
}

static void put_why(struct cluster_app *a, const char *why)
{
    (void)snprintf(a->why, sizeof a->why, "%s", why);
}

/* Why it does not run: it has no node, or its container does not start. */
static void read_why(struct cluster_app *a, const json_t *status)
{
    const json_t *c;
    size_t i;
    json_array_foreach(json_object_get(status, "conditions"), i, c)
    {
        if (is(c, "type", "PodScheduled") && is(c, "status", "False"))
            put_why(a, text_of(c, "message"));
    }
    json_array_foreach(json_object_get(status, "containerStatuses"), i, c)
    {
        const json_t *waiting = json_object_get(json_object_get(c, "state"), "waiting");
        if (*text_of(waiting, "message"))
            put_why(a, text_of(waiting, "message"));
    }
}

static int kills_of(const json_t *status)
{
    const json_t *c;
    size_t i;
    int n = 0;
    json_array_foreach(json_object_get(status, "containerStatuses"), i, c)
    {
        n += is(json_object_get(json_object_get(c, "state"), "terminated"), "reason", "OOMKilled");
    }
    return n;
}

static int read_ours(struct cluster_view *v, const json_t *pod)
{
    const json_t *meta = json_object_get(pod, "metadata"), *status = json_object_get(pod, "status");
    const json_t *labels = json_object_get(meta, "labels");
    const char *tag = text_of(labels, KUBE_LABEL);
    bool runs = is(status, "phase", "Running");
    if (!*tag || strlen(tag) > CLUSTER_TAG_MAX)
        return 0;
    struct cluster_app *a = app_of(v, tag);
    if (!a)
        return -ENOMEM;
    (void)snprintf(a->id, sizeof a->id, "%s", text_of(labels, "spark-app-selector"));
    a->kills += kills_of(status);
    if (is_over(pod))
        return 0;
    a->state = runs || a->state == CLUSTER_RUNS ? CLUSTER_RUNS : CLUSTER_WAITS;
    if (!runs) {
        read_why(a, status);
        return 0;
    }
    struct cluster_part *part = cluster_add_part(v);
    if (!part)
        return -ENOMEM;
    (void)snprintf(part->tag, sizeof part->tag, "%s", tag);
    (void)snprintf(part->name, sizeof part->name, "%s", text_of(meta, "name"));
    (void)snprintf(part->host, sizeof part->host, "%s", text_of(json_object_get(pod, "spec"), "nodeName"));
    part->cores = slots_of(pod);
    a->parts++;
    a->cores += part->cores;
    return 0;
}

int kube_read_launches(struct cluster_view *v, const char *text, size_t len, struct err *e)
{
    AUTO_JSON json_t *root = NULL;
    const json_t *pods = kube_items(text, len, &root), *pod;
    size_t i;
    if (!pods)
        return no_list("pods", e);
    json_array_foreach(pods, i, pod)
    {
        if (read_ours(v, pod) < 0)
            return err_sys(e, -ENOMEM, "the list of pods");
    }
    return go_on(v, root, e);
}

/* --- quotas ---------------------------------------------------------------------------------------------------------------- */

/* Names of a quota that bind executors, which ask for as much as they may have. */
static const struct {
    const char *name;
    enum { OF_CORES, OF_MEMORY, OF_PODS } of;
} bounds[] = {
    { "cpu", OF_CORES },     { "requests.cpu", OF_CORES },     { "limits.cpu", OF_CORES },
    { "memory", OF_MEMORY }, { "requests.memory", OF_MEMORY }, { "limits.memory", OF_MEMORY },
    { "pods", OF_PODS },     { "count/pods", OF_PODS },
};

/* Executors live until they are ended, and ask for CPUs. Of classes of priority nothing is known here. */
static bool binds(const json_t *quota)
{
    const json_t *spec = json_object_get(quota, "spec"), *scope;
    size_t i;
    json_array_foreach(json_object_get(spec, "scopes"), i, scope)
    {
        const char *name = json_string_value(scope);
        if (!name || (strcmp(name, "NotTerminating") != 0 && strcmp(name, "NotBestEffort") != 0))
            return false;
    }
    return !json_object_get(spec, "scopeSelector");
}

static void read_quota(struct cluster_view *v, const json_t *quota)
{
    const json_t *status = json_object_get(quota, "status");
    const json_t *hard = json_object_get(status, "hard"), *used = json_object_get(status, "used");
    const char *name = text_of(json_object_get(quota, "metadata"), "name");
    const double all = knob_kinds[KNOB_CORES].max;
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        double most = kube_quantity(json_object_get(hard, bounds[i].name));
        double has = kube_quantity(json_object_get(used, bounds[i].name));
        double left = fmax(0, most - (isnan(has) ? 0 : has));
        if (isnan(most))
            continue;
        if (bounds[i].of == OF_CORES)
            cluster_limit(v, name, whole(left), MOST / GIB);
        else if (bounds[i].of == OF_MEMORY)
            cluster_limit(v, name, whole(all), left / GIB);
        else if (left < 1)
            cluster_limit(v, name, 0, 0);
    }
}

int kube_read_quotas(struct cluster_view *v, const char *text, size_t len, struct err *e)
{
    AUTO_JSON json_t *root = NULL;
    const json_t *quotas = kube_items(text, len, &root), *quota;
    size_t i;
    if (!quotas)
        return no_list("quotas", e);
    json_array_foreach(quotas, i, quota)
    {
        if (binds(quota))
            read_quota(v, quota);
    }
    return go_on(v, root, e);
}

/* --- refusals -------------------------------------------------------------------------------------------------------------- */

void kube_refusal(int status, const char *text, size_t len, char out[KUBE_WHY_MAX])
{
    AUTO_JSON json_t *root = json_loadb(text, len, 0, NULL);
    const char *message = text_of(root, "message");
    (void)snprintf(out, KUBE_WHY_MAX, "%d%s%s", status, *message ? ": " : "", message);
    for (char *c = out; (c = strpbrk(c, "\r\n"));)
        *c = ' ';
}

bool kube_is_gone(const char *text, size_t len)
{
    AUTO_JSON json_t *root = json_loadb(text, len, 0, NULL);
    return *text_of(json_object_get(root, "details"), "name") != '\0';
}
