#include "core/line_diff.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

enum { CELLS_MAX = 4 << 20 }; /* above, what is between the equal beginning and end counts as all different */

struct line {
    const char *at;
    size_t len;
};

struct lines {
    struct line *v; /* owned */
    size_t n;
};

struct work {
    const struct lines *a, *b;
    struct line_diff counts;
    struct buf *text;
    size_t most, told;
    bool in_hunk;
};

static int split(struct lines *out, const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    out->v = calloc(n + 1, sizeof *out->v);
    if (!out->v)
        return -ENOMEM;
    for (const char *at = text, *end = text + len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((stop ? stop : end) - at);
        out->v[out->n++] = (struct line){ at, line };
        at += line + (stop != NULL);
    }
    return 0;
}

static bool same(const struct line *a, const struct line *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

static void put_line(struct work *w, char sign, const struct line *l)
{
    if (w->told++ >= w->most)
        return;
    buf_putc(w->text, sign);
    buf_put(w->text, l->at, l->len);
    buf_putc(w->text, '\n');
}

static void begin_hunk(struct work *w, size_t b)
{
    if (!w->in_hunk && w->told < w->most)
        buf_printf(w->text, "@@ %zu\n", b + 1);
    w->in_hunk = true;
}

static void remove_line(struct work *w, size_t a, size_t b)
{
    begin_hunk(w, b);
    put_line(w, '-', &w->a->v[a]);
    w->counts.removed++;
}

static void add_line(struct work *w, size_t b)
{
    begin_hunk(w, b);
    put_line(w, '+', &w->b->v[b]);
    w->counts.added++;
}

/* How long the longest common run of lines is, from each place on: cells of (na + 1) × (nb + 1), the last row and column 0. */
static uint32_t *table_of(const struct work *w, size_t from, size_t na, size_t nb)
{
    uint32_t *t = calloc((na + 1) * (nb + 1), sizeof *t);
    for (size_t i = na; t && i-- > 0;) {
        for (size_t k = nb; k-- > 0;) {
            uint32_t down = t[(i + 1) * (nb + 1) + k], right = t[i * (nb + 1) + k + 1];
            bool alike = same(&w->a->v[from + i], &w->b->v[from + k]);
            t[i * (nb + 1) + k] = alike ? t[(i + 1) * (nb + 1) + k + 1] + 1 : down > right ? down : right;
        }
    }
    return t;
}

static void walk(struct work *w, const uint32_t *t, size_t from, size_t na, size_t nb)
{
    size_t i = 0, k = 0;
    while (i < na || k < nb) {
        if (i < na && k < nb && same(&w->a->v[from + i], &w->b->v[from + k])) {
            w->in_hunk = false;
            i++, k++;
        } else if (i < na && (k == nb || t[(i + 1) * (nb + 1) + k] >= t[i * (nb + 1) + k + 1])) {
            remove_line(w, from + i++, from + k);
        } else {
            add_line(w, from + k++);
        }
    }
}

static int compare(struct work *w)
{
    size_t from = 0, na = w->a->n, nb = w->b->n;
    while (from < na && from < nb && same(&w->a->v[from], &w->b->v[from]))
        from++;
    while (na > from && nb > from && same(&w->a->v[na - 1], &w->b->v[nb - 1]))
        na--, nb--;
    na -= from, nb -= from;
    if ((na + 1) * (nb + 1) <= CELLS_MAX) {
        AUTO_FREE uint32_t *t = table_of(w, from, na, nb);
        if (!t)
            return -ENOMEM;
        walk(w, t, from, na, nb);
        return 0;
    }
    for (size_t i = 0; i < na; i++)
        remove_line(w, from + i, from);
    for (size_t k = 0; k < nb; k++)
        add_line(w, from + k);
    return 0;
}

int line_diff(struct line_diff *out, struct buf *text, const char *a, size_t a_len, const char *b, size_t b_len,
              size_t most)
{
    AUTO_BUF struct buf told = BUF_INIT;
    struct lines la = { 0 }, lb = { 0 };
    struct work w = { .a = &la, .b = &lb, .text = &told, .most = most };
    int rc = split(&la, a, a_len);
    if (rc == 0)
        rc = split(&lb, b, b_len);
    if (rc == 0)
        rc = compare(&w);
    if (rc == 0 && w.told > most)
        buf_printf(&told, "… and %zu lines more\n", w.told - most);
    if (rc == 0 && told.failed)
        rc = -ENOMEM;
    free(la.v);
    free(lb.v);
    if (rc < 0)
        return rc;
    *out = w.counts;
    buf_put(text, told.data, told.len);
    return 0;
}
