#include "base/strv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strv_done(struct strv *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    *s = STRV_INIT;
}

void strv_take(struct strv *s, char *text)
{
    if (!text || s->failed)
        goto fail;
    if (s->n + 2 > s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 16;
        char **v = realloc(s->v, cap * sizeof *v);
        if (!v)
            goto fail;
        s->v = v;
        s->cap = cap;
    }
    s->v[s->n++] = text;
    s->v[s->n] = NULL;
    return;
fail:
    free(text);
    s->failed = true;
}

void strv_add(struct strv *s, const char *text)
{
    strv_take(s, strdup(text));
}

void strv_addf(struct strv *s, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    strv_take(s, text);
}
