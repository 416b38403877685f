/* The roles of an application file, of any bytes: refused with a reason, or a gang of which each process has words, ports among its peers', and a TF_CONFIG that
 * is JSON and names it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "base/own.h"
#include "node/port.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static const char *lookup(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return NULL;
}

static void check_tf_config(const char *text, const struct app_rank *me)
{
    AUTO_JSON json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *task = json_object_get(j, "task"), *cluster = json_object_get(j, "cluster");
    check(j && strcmp(json_string_value(json_object_get(task, "type")), me->role) == 0);
    check(json_integer_value(json_object_get(task, "index")) == me->index);
    check((size_t)me->index < json_array_size(json_object_get(cluster, me->role)));
}

/* All that is its own in a word is a number of a port. */
static void check_word(const char *word, const int *ports, size_t n)
{
    AUTO_FREE char *filled = ports_fill(word, ports, n);
    check(filled && strlen(filled) <= strlen(word) + 8 * strlen(word));
    for (size_t k = 0; k < n; k++) {
        char mark[32];
        (void)snprintf(mark, sizeof mark, "{port.%zu}", k);
        check(!strstr(filled, mark));
    }
}

static void check_rank(const struct application *a, const struct app_launch *l, const int *ports)
{
    static const char tf[] = "TF_CONFIG=", ours[] = "TF_CONFIG={\"cluster\":{\""; /* the file may have one of its own */
    AUTO_STEPS struct app_steps steps = { 0 };
    struct err e = { 0 };
    if (a->kind->steps(a, l, &steps, &e) < 0) {
        check(e.text[0]);
        return;
    }
    check(steps.n == 1 && steps.argv[0].n > 0);
    for (size_t i = 0; i < steps.argv[0].n; i++)
        check_word(steps.argv[0].v[i], ports, l->gang->n);
    for (size_t i = 0; i < steps.env.n; i++)
        if (strncmp(steps.env.v[i], ours, strlen(ours)) == 0)
            check_tf_config(steps.env.v[i] + strlen(tf), &l->gang->v[l->rank]);
}

static void check_gang(const struct application *a)
{
    const struct app_value hypers[] = { { "n", "2" }, { "lr", "0.1" } }, knobs[] = { { "roles.worker", "3" } };
    const struct app_tools tools = { .spark_submit = "spark-submit" };
    struct app_launch l = { .tools = &tools,
                            .hypers = hypers,
                            .n_hypers = ARRAY_LEN(hypers),
                            .knobs = knobs,
                            .n_knobs = ARRAY_LEN(knobs),
                            .epochs = 2,
                            .slots = 1,
                            .memory_gb = NAN };
    struct app_gang g = { .n = 0 };
    struct err e = { 0 };
    const char *hosts[APP_GANG_MAX];
    int ports[APP_GANG_MAX];
    AUTO_STRV struct strv counts = STRV_INIT;
    a->kind->counts(a, &counts);
    if (a->kind->gang(a, &l, &g, &e) < 0) {
        check(e.text[0] && g.n == 0);
        return;
    }
    check(g.n <= APP_GANG_MAX && (g.n == 0 || g.tells < g.n));
    for (size_t k = 0; k < g.n; k++) {
        hosts[k] = k % 2 ? "::1" : "h";
        ports[k] = 40000 + (int)k;
    }
    l.gang = &g;
    l.hosts = hosts;
    for (l.rank = 0; l.rank < g.n; l.rank++)
        check_rank(a, &l, ports);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char before[] = "{ \"kind\": \"command\", \"roles\": ";
    AUTO_BUF struct buf text = BUF_INIT;
    struct err e = { 0 };
    struct json_doc doc = { 0 };
    struct application a = { 0 };
    buf_puts(&text, before);
    buf_put(&text, (const char *)data, size);
    buf_puts(&text, " }");
    check(!text.failed);
    if (json_doc_parse(&doc, "f.json", text.data, text.len, &e) < 0)
        return 0;
    int rc = app_parse(&a, &doc, lookup, NULL, &e);
    check(rc == 0 || e.text[0]);
    if (rc == 0 && a.gang)
        check_gang(&a);
    app_done(&a);
    json_doc_done(&doc);
    return 0;
}
