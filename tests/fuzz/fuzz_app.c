/* An application file of any bytes: an error that explains itself, or an application of which argv can be made. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *lookup(void *ctx, const char *name)
{
    (void)ctx;
    return name[0] == 'X' ? NULL : "value";
}

static int keep(void *ctx, const char *key, char **path, struct err *e)
{
    (void)key;
    (void)e;
    *(size_t *)ctx += strlen(*path);
    return 0;
}

static void submit_gang(const struct application *a, struct app_launch l)
{
    struct app_gang g = { .n = 0 };
    struct err e = { 0 };
    const char *hosts[APP_GANG_MAX];
    if (a->kind->gang && a->kind->gang(a, &l, &g, &e) < 0 && !e.text[0])
        abort();
    for (size_t i = 0; i < g.n; i++)
        hosts[i] = "::1";
    l.gang = &g;
    l.hosts = hosts;
    for (l.rank = 0; l.rank < g.n; l.rank += 1 + g.n / 4) {
        AUTO_STEPS struct app_steps steps = { 0 };
        if (a->kind->steps(a, &l, &steps, &e) < 0 && !e.text[0])
            abort();
    }
}

static void submit(const struct application *a, const char *hyper, int parts)
{
    const struct app_value h = { hyper, "64" };
    const struct app_tools tools = { .spark_submit = "spark-submit", .converter = "c.py" };
    struct app_launch l = { .tools = &tools,
                            .launch = "t",
                            .hypers = &h,
                            .n_hypers = 1,
                            .epochs = 2,
                            .slots = 4,
                            .parts = parts,
                            .memory_gb = NAN,
                            .checkpoint = "/ck",
                            .resume_model = "/m",
                            .resume_state = "/s",
                            .converted = "/m2",
                            .seed = "1" };
    AUTO_STEPS struct app_steps steps = { 0 };
    struct err e = { 0 };
    if (a->kind->steps(a, &l, &steps, &e) < 0 && !e.text[0])
        abort();
    submit_gang(a, l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { 0 };
    struct json_doc doc = { 0 };
    struct application a = { 0 };
    size_t paths = 0;
    if (json_doc_parse(&doc, "f.json", (const char *)data, size, &e) < 0)
        return 0;
    int rc = app_parse(&a, &doc, lookup, NULL, &e);
    if (rc < 0 && !e.text[0])
        abort();
    if (rc == 0) {
        (void)a.kind->paths(&a, keep, &paths, &e);
        submit(&a, a.file.n_extras ? a.file.extras[0].key : "batch_size", 0);
        submit(&a, a.file.n_arguments ? a.file.arguments[0].name : "batch_size", 2);
    }
    app_done(&a);
    json_doc_done(&doc);
    return 0;
}
