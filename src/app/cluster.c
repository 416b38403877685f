#include "app/cluster.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

/* --- views ---------------------------------------------------------------------------------------------------------------- */

void cluster_view_done(struct cluster_view *v)
{
    free(v->workers);
    free(v->apps);
    free(v->parts);
    buf_done(&v->next);
    *v = (struct cluster_view){ 0 };
}

/* A list's new element, zeroed. */
static void *more(void **list, size_t *n, size_t *cap, size_t size, size_t most)
{
    void *grown = *n < most ? array_more(*list, *n, cap, size) : NULL;
    if (!grown)
        return NULL;
    *list = grown;
    return memset((char *)grown + size * (*n)++, 0, size);
}

struct cluster_worker *cluster_add_worker(struct cluster_view *v)
{
    void *list = v->workers, *one;
    one = more(&list, &v->n_workers, &v->cap_workers, sizeof *v->workers, CLUSTER_WORKERS_MAX);
    v->workers = list;
    return one;
}

struct cluster_app *cluster_add_app(struct cluster_view *v)
{
    void *list = v->apps, *one;
    one = more(&list, &v->n_apps, &v->cap_apps, sizeof *v->apps, CLUSTER_APPS_MAX);
    v->apps = list;
    return one;
}

struct cluster_part *cluster_add_part(struct cluster_view *v)
{
    void *list = v->parts, *one;
    one = more(&list, &v->n_parts, &v->cap_parts, sizeof *v->parts, CLUSTER_WORKERS_MAX);
    v->parts = list;
    return one;
}

const struct cluster_app *cluster_app_of(const struct cluster_view *v, const char *tag)
{
    const struct cluster_app *over = NULL;
    for (size_t i = 0; i < v->n_apps; i++) {
        if (strcmp(v->apps[i].tag, tag) != 0)
            continue;
        if (v->apps[i].state != CLUSTER_OVER)
            return &v->apps[i];
        over = &v->apps[i];
    }
    return over;
}

/* --- requests and answers ------------------------------------------------------------------------------------------------- */

void cluster_request_done(struct cluster_request *r)
{
    buf_done(&r->url);
    buf_done(&r->body);
    *r = (struct cluster_request){ 0 };
}

int cluster_status(int status, struct err *e)
{
    if (status == 401)
        return err_set(e, -EACCES,
                       "it asks who we are (status 401): put a token that holds into $PIPETUNE_CLUSTER_TOKEN_FILE");
    if (status == 403)
        return err_set(e, -EACCES, "we may not ask it (status 403): the token's account lacks the right");
    return status >= 200 && status < 300 ? 0 : err_set(e, -EPROTO, "status %d", status);
}

void cluster_limit(struct cluster_view *v, const char *name, int cores, double gb)
{
    if (!v->limited || cores < v->left_cores || gb < v->left_gb)
        (void)snprintf(v->limit, sizeof v->limit, "%s", name);
    v->left_cores = !v->limited || cores < v->left_cores ? cores : v->left_cores;
    v->left_gb = !v->limited || gb < v->left_gb ? gb : v->left_gb;
    v->limited = true;
}

int cluster_cores(const json_t *o, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(o, key));
    int most = (int)knob_kinds[KNOB_CORES].max;
    return n < 0 ? 0 : n > most ? most : (int)n;
}

double cluster_mib(const json_t *o, const char *key)
{
    json_int_t mib = json_integer_value(json_object_get(o, key));
    return mib < 0 ? 0 : (double)mib / 1024.0;
}

void cluster_put_query(struct buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.~";
    for (; *text; text++) {
        if (strchr(plain, *text))
            buf_putc(out, *text);
        else
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

/* --- what follows of it --------------------------------------------------------------------------------------------------- */

/* What of the launch is not shown yet: a cluster that tells of no parts tells of cores. */
static struct layout_ask promised(const struct cluster_view *v, const struct cluster_launch *l, bool *out_begun)
{
    const struct cluster_app *a = cluster_app_of(v, l->key.tag);
    struct layout_ask left = l->ask;
    *out_begun = a && (a->parts > 0 || a->state == CLUSTER_RUNS);
    if (a && a->parts >= 0)
        left.parts -= a->parts;
    else if (a && a->cores > 0 && l->ask.cores > 0)
        left.parts -= a->cores / l->ask.cores;
    if (l->granted && !a && !l->key.id) /* it cannot be known there, but is among what is taken */
        left.parts = 0;
    *out_begun |= l->granted;
    return left;
}

/* A quota leaves that much, on whatever workers. */
static void keep_to_limit(const struct cluster_view *v, int cores, double gb, struct layout_room *r)
{
    struct layout_room all = *r;
    r->n_workers = 0;
    for (int i = 0; i < all.n_workers && v->limited; i++) {
        struct layout_worker w = all.workers[i];
        for (; w.count > 0 && cores > 0; w.count--) {
            struct layout_worker one = { 1, w.cores < cores ? w.cores : cores, w.memory_gb < gb ? w.memory_gb : gb };
            cores -= one.cores;
            gb -= one.memory_gb;
            layout_add(r, one);
        }
    }
    if (!v->limited)
        *r = all;
}

void cluster_room(const struct cluster_view *v, const struct cluster_launch *launches, size_t n, bool all,
                  struct layout_room *out)
{
    struct layout_room r = { .takes = v->takes, .beside = v->beside, .full = true };
    for (size_t i = 0; i < v->n_workers; i++) {
        const struct cluster_worker *w = &v->workers[i];
        struct layout_worker one = { 1, all ? w->cores : w->free_cores, all ? w->memory_gb : w->free_gb };
        if (one.cores > 0)
            layout_add(&r, one);
    }
    if (!all)
        keep_to_limit(v, v->left_cores, v->left_gb, &r);
    for (size_t i = 0; i < n; i++) {
        bool begun;
        struct layout_ask left = promised(v, &launches[i], &begun);
        if (!begun)
            (void)layout_take_beside(&r);
        if (left.parts > 0)
            (void)layout_take(&r, left);
    }
    (void)layout_take_beside(&r); /* of the one more */
    *out = r;
}

void cluster_put_free(const struct cluster_view *v, char out[CLUSTER_WHY_MAX])
{
    const struct cluster_worker *most = NULL;
    int cores = 0, all = 0;
    for (size_t i = 0; i < v->n_workers; i++) {
        const struct cluster_worker *w = &v->workers[i];
        cores += w->free_cores;
        all += w->cores;
        if (!most || w->free_cores > most->free_cores)
            most = w;
    }
    (void)snprintf(out, CLUSTER_WHY_MAX, "%d of its %d cores are free", cores, all);
    if (most && cores > 0) {
        size_t len = strlen(out);
        (void)snprintf(out + len, CLUSTER_WHY_MAX - len, ", at most %d on a worker, with %.1f GiB", most->free_cores,
                       floor(most->free_gb * 10) / 10);
    }
    if (v->limited && v->left_cores < cores) {
        size_t len = strlen(out);
        (void)snprintf(out + len, CLUSTER_WHY_MAX - len, "; '%.100s' leaves %d", v->limit, v->left_cores);
    }
}

void cluster_why(const struct cluster_view *v, const struct cluster_launch *l, char out[CLUSTER_WHY_MAX])
{
    const struct cluster_app *a = cluster_app_of(v, l->key.tag);
    char is_free[CLUSTER_WHY_MAX];
    cluster_put_free(v, is_free);
    if (a && a->why[0])
        (void)snprintf(out, CLUSTER_WHY_MAX, "%.150s; %.100s", a->why, is_free);
    else if (v->limited && v->left_cores < l->ask.cores)
        (void)snprintf(out, CLUSTER_WHY_MAX, "'%.100s' leaves %d cores", v->limit, v->left_cores);
    else
        (void)snprintf(out, CLUSTER_WHY_MAX, "%s", is_free);
}
