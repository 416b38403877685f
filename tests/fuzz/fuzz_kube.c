/* Answers of any bytes are room on workers, launches and verdicts within bounds, or one line that says why not. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bigdl/kube.h"
#include "bigdl/kube_resize.h"
#include "bigdl/properties.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_rc(int rc, const struct err *e)
{
    check(rc == 0 || (rc < 0 && e->text[0] && !strchr(e->text, '\n')));
}

static void check_view(const struct cluster_view *v)
{
    for (size_t i = 0; i < v->n_workers; i++) {
        const struct cluster_worker *w = &v->workers[i];
        check(w->cores >= 0 && w->free_cores >= 0 && w->free_cores <= w->cores && w->memory_gb > 0 && w->free_gb >= 0 &&
              w->free_gb <= w->memory_gb && isfinite(w->memory_gb));
    }
    for (size_t i = 0; i < v->n_apps; i++)
        check(v->apps[i].tag[0] && v->apps[i].parts >= 0 && v->apps[i].kills >= 0);
    check(!v->limited || (v->left_cores >= 0 && v->left_gb >= 0));
}

/* A template may hold anything, too. */
static int read_nodes(struct cluster_view *v, const char *text, size_t size, struct err *e)
{
    struct kube_tolerations t = { .n = 0 };
    struct err why = { 0 };
    int rc = kube_read_tolerations(&t, text, size, &why);
    check(rc == 0 || why.text[0]);
    check(t.n <= KUBE_TOLERATIONS_MAX && (rc == 0 || t.n == 0));
    return kube_read_nodes(v, &t, text, size, e);
}

static void check_look(const char *text, size_t size)
{
    static int (*const reads[])(struct cluster_view * v, const char *text, size_t len,
                                struct err *e) = { read_nodes, kube_take_pods, kube_read_quotas, kube_read_launches };
    struct cluster_view v = { 0 };
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        struct err e = { 0 };
        check_rc(reads[i](&v, text, size, &e), &e);
        check_view(&v);
    }
    cluster_view_done(&v);
}

static void check_resize(const char *text, size_t size)
{
    struct resize_view v = { 0 };
    struct err e = { 0 };
    char why[CLUSTER_WHY_MAX];
    int cores = -1;
    check_rc(kube_resize.read(&v, 200, text, size, &e), &e);
    (void)resize_judge(&v, 3, 1000, &cores, why);
    check(cores >= 0);
    for (size_t i = 0; i < v.n; i++) {
        struct cluster_request r = { 0 };
        const struct cluster_asked a = { .base = "https://h", .space = "s" };
        if (kube_resize.change(&a, &v.parts[i], resize_share(&v, 3), &r))
            check(strchr(buf_text(&r.url) + 8, '?') == NULL);
        cluster_request_done(&r);
    }
    resize_view_done(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char why[KUBE_WHY_MAX];
    struct err e = { 0 };
    struct buf value = BUF_INIT;
    if (properties_find(text, "spark.a", &value)) /* a properties file, too, may hold anything */
        check(value.len <= size);
    buf_done(&value);
    check_look(text, size);
    check_resize(text, size);
    kube_refusal(403, text, size, why);
    check(strlen(why) < KUBE_WHY_MAX && !strchr(why, '\n'));
    check_rc(kube_resize.answer(404, text, size, &e), &e);
    free(text);
    return 0;
}
