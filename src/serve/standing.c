#include "serve/standing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "live/background.h"
#include "live/study.h"
#include "view/view.h"

static int keep(void *ctx, const struct store_queued *q)
{
    struct standings *s = ctx;
    if (store_queue_is_over(q->state))
        return 0;
    struct standing *grown = array_more(s->v, s->n, &s->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->v = grown;
    s->v[s->n] = (struct standing){ .listed = false };
    int rc = store_queued_copy(&s->v[s->n].row, q);
    s->n += rc == 0;
    return rc;
}

int standings_load(struct standings *out, struct store *s, struct err *e)
{
    int rc = store_queue(s, NULL, keep, out, e);
    return rc == -ENOMEM ? err_sys(e, rc, "cannot read the queue") : rc;
}

void standings_done(struct standings *s)
{
    for (size_t i = 0; i < s->n; i++)
        store_queued_done(&s->v[i].row);
    free(s->v);
    *s = (struct standings){ 0 };
}

struct standing *standings_find(const struct standings *s, const char *study)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].row.study, study) == 0)
            return &s->v[i];
    return NULL;
}

const char *standings_state(const struct standings *s, const char *store_path, const struct store_summary *study)
{
    const struct standing *queued = standings_find(s, study->name);
    bool may_run = queued || strcmp(study->state, "running") == 0;
    AUTO_FREE char *dir = may_run ? study_dir(store_path, study->name) : NULL;
    pid_t driver = dir ? study_driver(dir) : 0;
    if (driver > 0 && background_is(driver, dir))
        return STANDING_BACKGROUND;
    return driver == 0 && queued ? QUEUED : view_state(study->state, driver);
}
