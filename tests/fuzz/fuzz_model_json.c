/* Models, models made elsewhere and vectors from any bytes: no crash, no number that is none, and what was read is written and read
 * back the same. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clustering/model_json.h"
#include "clustering/model_sklearn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct model *m)
{
    struct buf first = BUF_INIT, second = BUF_INIT;
    struct model back = { 0 };
    model_json_put(&first, m);
    if (first.failed || model_json_read(&back, "again", first.data, first.len, NULL) < 0)
        abort();
    model_json_put(&second, &back);
    if (second.failed || strcmp(first.data, second.data) != 0)
        abort();
    model_done(&back);
    buf_done(&first);
    buf_done(&second);
}

/* Everything that looks at a model, on a profile that lies on its first cluster. */
static void check_verdict(const struct model *m)
{
    struct profile p = { 0 };
    struct model_verdict v;
    if (m->vectors == MODEL_RAW || m->n_clusters == 0 || profile_init(&p, m->n, NULL) < 0)
        return;
    for (size_t f = 0; f < m->n; f++) {
        p.mask[f] = m->clusters[0].weight[f] > 0;
        p.x[f] = m->clusters[0].mean[f];
    }
    model_verdict(&v, m, &p);
    for (size_t i = 0; i < v.n_near; i++)
        if (!isfinite(v.near[i].distance) || !isfinite(v.near[i].spreads))
            abort();
    if (v.n_near && v.decision != MODEL_KNOWN)
        abort();
    profile_done(&p);
}

static void check_model(struct model *m, int rc, const struct err *e)
{
    if (rc == 0) {
        check_again(m);
        check_verdict(m);
    } else if (rc != -EINVAL || !e->text[0] || m->features) {
        abort();
    }
    model_done(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct model m = { 0 }, foreign = { 0 };
    struct model_vectors_list v = { 0 };
    struct err e = { 0 };
    int rc = model_json_read(&m, "fuzz", text, size, &e);
    check_model(&m, rc, &e);
    rc = model_sklearn_read(&foreign, "fuzz", text, size, &e);
    check_model(&foreign, rc, &e);
    rc = model_sklearn_vectors(&v, 2, size % 2, "fuzz", text, size, &e);
    if (rc < 0 && rc != -EINVAL)
        abort();
    model_sklearn_vectors_done(&v);
    return 0;
}
