#include "live/learnt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/model_json.h"
#include "store/models.h"

struct learnt {
    struct store *store;
    char *name;
    struct model model;
    int64_t version; /* of what was read or written last; 0: there was none */
};

/* As it is stored. */
static int load(struct learnt *m, struct err *e)
{
    AUTO_FREE char *text = NULL;
    struct model fresh;
    int64_t version = 0;
    int rc = store_model_get(m->store, m->name, &text, &version, e);
    if (rc < 0)
        return rc;
    model_init(&fresh);
    if (rc > 0)
        rc = model_json_read(&fresh, m->name, text, strlen(text), e);
    if (rc < 0) {
        model_done(&fresh);
        return rc == -EINVAL ? -EPROTO : rc;
    }
    model_done(&m->model);
    m->model = fresh;
    m->version = text ? version : 0;
    return 0;
}

int learnt_open(struct learnt **out, struct store *store, const char *name, struct err *e)
{
    struct learnt *m = calloc(1, sizeof *m);
    if (!m || !(m->name = strdup(name))) {
        free(m);
        return err_sys(e, -ENOMEM, "model '%s'", name);
    }
    m->store = store;
    model_init(&m->model);
    int rc = load(m, e);
    if (rc < 0) {
        learnt_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

void learnt_close(struct learnt *m)
{
    if (!m)
        return;
    model_done(&m->model);
    free(m->name);
    free(m);
}

const struct model *learnt_model(const struct learnt *m)
{
    return &m->model;
}

/* Nobody writes between reading and putting it back: the transaction that stands around us holds the lock. */
int learnt_change(struct learnt *m, int (*change)(void *ctx, struct model *model, struct err *e), void *ctx,
                  struct err *e)
{
    int rc = load(m, e);
    if (rc == 0)
        rc = change(ctx, &m->model, e);
    if (rc < 0)
        return rc;
    AUTO_BUF struct buf text = BUF_INIT;
    model_json_put(&text, &m->model);
    if (text.failed)
        return err_sys(e, -ENOMEM, "model '%s'", m->name);
    return store_model_put(m->store, m->name, buf_text(&text), m->version, &m->version, e);
}
