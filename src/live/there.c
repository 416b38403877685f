#include "live/there.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

void there_done(struct there *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].here);
        free(t->v[i].there);
    }
    free(t->v);
    *t = (struct there){ 0 };
}

int there_add(struct there *t, const char *here, const char *there, struct err *e)
{
    struct there_path *grown = array_more(t->v, t->n, &t->cap, sizeof *grown);
    struct there_path p = { strdup(here), strdup(there) };
    t->v = grown ? grown : t->v;
    if (grown && p.here && p.there) {
        t->v[t->n++] = p;
        return 0;
    }
    free(p.here);
    free(p.there);
    return err_sys(e, -ENOMEM, "'%s'", here);
}

static const struct there_path *find(const struct there *t, const char *at)
{
    const struct there_path *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < t->n; i++) {
        size_t len = strlen(t->v[i].here);
        if (len > longest && strncmp(at, t->v[i].here, len) == 0 && strchr("/:, ", at[len])) { /* or its end */
            best = &t->v[i];
            longest = len;
        }
    }
    return best;
}

void there_put(const struct there *t, const char *word, struct buf *out)
{
    for (const char *at = word; *at;) {
        bool begins = at == word || strchr("=:, ", at[-1]);
        const struct there_path *p = begins ? find(t, at) : NULL;
        if (p)
            buf_puts(out, p->there);
        else
            buf_putc(out, *at);
        at += p ? strlen(p->here) : 1;
    }
}

int there_steps(const struct there *t, struct app_steps *steps, struct err *e)
{
    for (size_t i = 0; t->n > 0 && i < steps->n; i++) {
        AUTO_STRV struct strv moved = STRV_INIT;
        for (size_t k = 0; k < steps->argv[i].n; k++) {
            AUTO_BUF struct buf b = BUF_INIT;
            there_put(t, steps->argv[i].v[k], &b);
            moved.failed |= b.failed;
            strv_add(&moved, buf_text(&b));
        }
        if (moved.failed)
            return err_sys(e, -ENOMEM, "the words of a launch elsewhere");
        strv_done(&steps->argv[i]);
        steps->argv[i] = moved;
        moved = STRV_INIT;
    }
    return 0;
}
