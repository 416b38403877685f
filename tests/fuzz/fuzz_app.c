/* A BigDL file of any bytes: an error that explains itself, or an application of which argv can be made. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bigdl/app.h"
#include "bigdl/submit.h"

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

static void submit(const struct app *a, const char *hyper, int executors)
{
    const struct submit_hyper h = { hyper, "64" };
    struct submit s = { .app = a,
                        .spark_submit = "spark-submit",
                        .launch = "t",
                        .hypers = &h,
                        .n_hypers = 1,
                        .epochs = 2,
                        .slots = 4,
                        .executors = executors,
                        .memory_gb = NAN,
                        .checkpoint = "/ck",
                        .resume_model = "/m",
                        .resume_state = "/s",
                        .seed = "1" };
    struct strv v = STRV_INIT;
    struct err e = { 0 };
    if (submit_argv(&s, &v, &e) < 0 && !e.text[0])
        abort();
    strv_done(&v);
    if (submit_convert_argv(&s, "c.py", "in", "out", &v, &e) < 0)
        abort();
    strv_done(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { 0 };
    struct json_doc doc = { 0 };
    struct app a = { 0 };
    size_t paths = 0;
    if (json_doc_parse(&doc, "f.json", (const char *)data, size, &e) < 0)
        return 0;
    int rc = app_parse(&a, &doc, lookup, NULL, &e);
    if (rc < 0 && !e.text[0])
        abort();
    if (rc == 0) {
        (void)app_paths(&a, keep, &paths, &e);
        submit(&a, a.n_extras ? a.extras[0].key : "batch_size", 0);
        submit(&a, a.n_arguments ? a.arguments[0].name : "batch_size", 2);
    }
    app_done(&a);
    json_doc_done(&doc);
    return 0;
}
