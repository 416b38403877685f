#include "search/search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"

const struct search_ops *const searches[] = { &search_grid, &search_random, NULL };

enum { N_SEARCHES = ARRAY_LEN(searches) - 1 };

static int unknown_search(const char *name, struct err *e)
{
    const char *names[N_SEARCHES];
    AUTO_BUF struct buf list = BUF_INIT;
    for (size_t i = 0; i < N_SEARCHES; i++) {
        names[i] = searches[i]->name;
        buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = suggest_nearest(name, names, N_SEARCHES);
    if (near)
        return err_set(e, -EINVAL, "unknown search '%s'; did you mean '%s'?", name, near);
    return err_set(e, -EINVAL, "unknown search '%s'; there are: %s", name, buf_text(&list));
}

static const struct search_ops *find_search(const char *name)
{
    for (size_t i = 0; i < N_SEARCHES; i++)
        if (strcmp(searches[i]->name, name) == 0)
            return searches[i];
    return NULL;
}

int search_new(struct search *out, const char *name, const struct space *sp, const struct search_cfg *cfg,
               struct err *e)
{
    if (!name)
        name = space_is_listed(sp) ? "grid" : "random";
    const struct search_ops *ops = find_search(name);
    if (!ops)
        return unknown_search(name, e);
    AUTO_FREE void *state = calloc(1, ops->state_size);
    if (!state)
        return err_sys(e, -ENOMEM, "search '%s'", name);
    int rc = ops->init(state, sp, cfg, e);
    if (rc < 0)
        return rc;
    *out = (struct search){ .ops = ops, .state = MOVE_PTR(state) }; /* search_done() frees it */
    return 0;
}

int search_ask(struct search *s, struct proposal *out)
{
    return s->ops->ask(s->state, out);
}

void search_tell(struct search *s, const struct told *t)
{
    s->ops->tell(s->state, t);
}

void search_done(struct search *s)
{
    if (!s || !s->ops)
        return;
    if (s->ops->done)
        s->ops->done(s->state);
    free(s->state);
    *s = (struct search){ 0 };
}
