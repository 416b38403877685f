/* Where models are: a file, or the store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "clustering/model_json.h"
#include "cmd/model_parts.h"
#include "live/study.h"
#include "store/models.h"

#define DEFAULT_NAME "default"

enum { TRIES_MAX = 1000 };

const char *model_name(const struct model_args *a)
{
    return a->model ? a->model : DEFAULT_NAME;
}

static int model_load_file(struct model *out, const char *path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = io_read_file(&text, path, MODEL_FILE_MAX, e);
    if (rc == -EFBIG)
        e->code = rc = -EINVAL; /* the user's to change, not the machine's */
    return rc < 0 ? rc : model_json_read(out, path, buf_text(&text), text.len, e);
}

int model_save_file(const struct model *m, const char *path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    model_json_put(&text, m);
    if (text.failed)
        return err_sys(e, -ENOMEM, "cannot write '%s'", path);
    return io_write_atomic(path, text.data, text.len, 0666, e);
}

static int read_stored(struct model *out, struct store *s, int64_t *version, struct err *e)
{
    AUTO_FREE char *text = NULL;
    *version = 0;
    int rc = store_model_get(s, DEFAULT_NAME, &text, version, e);
    if (rc == 0)
        model_init(out);
    if (rc <= 0)
        return rc;
    rc = model_json_read(out, "model " DEFAULT_NAME, text, strlen(text), e);
    return rc < 0 ? rc : 1;
}

static int load_stored(struct model *out, const char *path, struct err *e)
{
    struct store *s = NULL;
    int64_t version;
    int rc = store_open(&s, path, STORE_READ, e);
    if (rc == -ENOENT) { /* nothing was run yet: nothing was learnt */
        model_init(out);
        return 0;
    }
    if (rc == 0)
        rc = read_stored(out, s, &version, e);
    store_close(s);
    return rc;
}

int model_load(struct model *out, const struct model_args *a, struct err *e)
{
    if (a->model) {
        int rc = model_load_file(out, a->model, e);
        return rc < 0 ? rc : 1;
    }
    AUTO_FREE char *path = study_store_path(a->store);
    return path ? load_stored(out, path, e) : err_sys(e, -ENOMEM, "cannot find the store");
}

/* --- changing --- */

static int change_file(const char *path, int (*change)(struct model *m, void *ctx, struct err *e), void *ctx,
                       struct err *e)
{
    AUTO_MODEL struct model m = { 0 };
    int rc = 0;
    if (io_exists(path))
        rc = model_load_file(&m, path, e);
    else
        model_init(&m);
    if (rc == 0)
        rc = change(&m, ctx, e);
    return rc < 0 ? rc : model_save_file(&m, path, e);
}

static int change_once(struct store *s, int (*change)(struct model *m, void *ctx, struct err *e), void *ctx,
                       struct err *e)
{
    AUTO_MODEL struct model m = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    int64_t version;
    int rc = read_stored(&m, s, &version, e);
    if (rc >= 0)
        rc = change(&m, ctx, e);
    if (rc < 0)
        return rc;
    model_json_put(&text, &m);
    if (text.failed)
        return err_sys(e, -ENOMEM, "cannot store the model");
    return store_model_put(s, DEFAULT_NAME, text.data, version, NULL, e);
}

int model_change(const struct model_args *a, int (*change)(struct model *m, void *ctx, struct err *e), void *ctx,
                 struct err *e)
{
    if (a->model)
        return change_file(a->model, change, ctx, e);
    AUTO_FREE char *path = study_store_path(a->store);
    if (!path)
        return err_sys(e, -ENOMEM, "cannot find the store");
    struct store *s = NULL;
    int rc = store_open(&s, path, STORE_WRITE, e);
    if (rc < 0)
        return rc;
    rc = -EAGAIN;
    for (int i = 0; rc == -EAGAIN && i < TRIES_MAX; i++)
        rc = change_once(s, change, ctx, e);
    store_close(s);
    return rc;
}
