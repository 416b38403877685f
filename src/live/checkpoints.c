#include "live/checkpoints.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/ours.h"
#include "base/own.h"

struct checkpoint_told {
    int epoch;
    char *path; /* owned */
};

void checkpoints_done(struct checkpoints *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i].path);
    free(c->v);
    strv_done(&c->replaced);
    *c = (struct checkpoints){ .n = 0 };
}

int checkpoints_add(struct checkpoints *c, int epoch, const char *path)
{
    char *own = strdup(path);
    struct checkpoint_told *grown = own ? array_more(c->v, c->n, &c->cap, sizeof *grown) : NULL;
    if (!grown) {
        free(own);
        return -ENOMEM;
    }
    c->v = grown;
    c->v[c->n++] = (struct checkpoint_told){ epoch, own };
    return 0;
}

static bool is_among(const struct strv *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], path) == 0)
            return true;
    return false;
}

struct older {
    struct checkpoints *told;
    struct strv kept;
    int epoch; /* of the newest that goes; 0: none does */
};

static int find_older(void *ctx, const struct store_checkpoint *row)
{
    enum { KEPT = 2 }; /* of a running trial */
    struct older *o = ctx;
    if (o->kept.n < KEPT) {
        strv_add(&o->kept, row->path);
        return o->kept.failed ? -ENOMEM : 0;
    }
    o->epoch = row->epoch;
    if (!is_among(&o->kept, row->path)) /* who always writes to the same file has not replaced it */
        strv_add(&o->told->replaced, row->path);
    return o->told->replaced.failed ? -ENOMEM : 1;
}

/* It is written again: what stands there now is newer. */
static void keep(struct strv *replaced, const char *path)
{
    for (size_t i = replaced->n; i-- > 0;) {
        if (strcmp(replaced->v[i], path) != 0)
            continue;
        free(replaced->v[i]);
        replaced->v[i] = replaced->v[--replaced->n];
        replaced->v[replaced->n] = NULL;
    }
}

static int put_one(struct checkpoints *c, struct store *s, const struct store_checkpoint *row, struct err *e)
{
    struct older o = { .told = c };
    keep(&c->replaced, row->path);
    int rc = store_checkpoint_put(s, row, e);
    if (rc == 0)
        rc = store_checkpoints(s, row->trial, find_older, &o, e);
    strv_done(&o.kept);
    if (rc == -ENOMEM)
        return err_sys(e, rc, "a checkpoint of epoch %d", row->epoch);
    return rc == 1 ? store_checkpoint_forget(s, row->trial, o.epoch, e) : rc;
}

int checkpoints_put(struct checkpoints *c, struct store *s, int64_t trial, int attempt, struct err *e)
{
    int rc = 0;
    for (; rc == 0 && c->n_put < c->n; c->n_put++) {
        const struct checkpoint_told *t = &c->v[c->n_put];
        const struct store_checkpoint row = { .trial = trial, .epoch = t->epoch, .attempt = attempt, .path = t->path };
        rc = put_one(c, s, &row, e);
    }
    return rc;
}

static bool is_within(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && path[len] == '/' && !strstr(path, "/../");
}

void checkpoints_stored(struct checkpoints *c, const char *dir)
{
    if (c->n_put == 0)
        return;
    for (size_t i = c->n_put; i < c->n; i++)
        keep(&c->replaced, c->v[i].path);
    for (size_t i = 0; i < c->replaced.n; i++) {
        const char *path = c->replaced.v[i];
        if (is_within(path, dir) && ours_is_file(path))
            (void)unlink(path); /* what stays is disk space */
    }
    strv_done(&c->replaced);
    for (size_t i = 0; i < c->n_put; i++)
        free(c->v[i].path);
    c->n -= c->n_put;
    memmove(c->v, c->v + c->n_put, c->n * sizeof *c->v);
    c->n_put = 0;
}
