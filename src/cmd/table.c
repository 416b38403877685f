#include "cmd/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"

/* --- filling --- */

static void take_cell(struct table *t, char *text)
{
    if (t->n == t->cap && text) {
        size_t cap = t->cap ? 2 * t->cap : 64;
        char **grown = realloc(t->cells, cap * sizeof *grown);
        if (grown) {
            t->cells = grown;
            t->cap = cap;
        }
    }
    if (!text || t->n == t->cap) {
        free(text);
        t->failed = 1;
        return;
    }
    t->cells[t->n++] = text;
}

/* Texts come from logs too: a line stays one line, and nothing in it commands the terminal. */
void table_cell(struct table *t, const char *text)
{
    struct buf plain = BUF_INIT;
    utf8_put_plain(&plain, text ? text : "", text ? strlen(text) : 0, UTF8_ONE_LINE);
    take_cell(t, buf_take(&plain));
}

void table_cellf(struct table *t, const char *fmt, ...)
{
    AUTO_FREE char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    if (text)
        table_cell(t, text);
    else
        take_cell(t, NULL);
}

void table_init(struct table *t, const char *const *heads)
{
    *t = (struct table){ 0 };
    for (; heads[t->columns] && t->columns < TABLE_MAX_COLUMNS; t->columns++) {
        const char *head = heads[t->columns];
        if (*head == '>')
            t->right |= 1u << t->columns;
        table_cell(t, *head == '>' ? head + 1 : head);
    }
}

void table_done(struct table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct table){ 0 };
}

void table_number(struct table *t, double x, int digits)
{
    char text[64];
    if (!isfinite(x)) {
        table_cell(t, "-");
        return;
    }
    int len = snprintf(text, sizeof text, fabs(x) < 1e15 ? "%.*f" : "%.*g", digits, x);
    if (fabs(x) < 1e15 && digits > 0) {
        while (len > 0 && text[len - 1] == '0')
            text[--len] = '\0';
        if (len > 0 && text[len - 1] == '.')
            text[--len] = '\0';
    }
    table_cell(t, text);
}

const char *table_duration(double s, char out[32])
{
    long long seconds = isfinite(s) && fabs(s) < 1e15 ? llround(s) : 0;
    long long minutes = isfinite(s) && fabs(s) < 1e15 ? llround(s / 60) : 0;
    if (!isfinite(s) || fabs(s) >= 1e15)
        (void)snprintf(out, 32, "-");
    else if (s < 59.95) /* what would round to "60.0 s" is a minute */
        (void)snprintf(out, 32, "%.1f s", s);
    else if (seconds < 3600)
        (void)snprintf(out, 32, "%lld m %02lld s", seconds / 60, seconds % 60);
    else
        (void)snprintf(out, 32, "%lld h %02lld m", minutes / 60, minutes % 60);
    return out;
}

void table_seconds(struct table *t, double s)
{
    char text[32];
    table_cell(t, table_duration(s, text));
}

/* --- printing --- */

static void find_widths(const struct table *t, size_t widths[TABLE_MAX_COLUMNS])
{
    for (size_t i = 0; i < t->n; i++) {
        size_t w = utf8_columns(t->cells[i]);
        if (w > widths[i % t->columns])
            widths[i % t->columns] = w;
    }
}

static void put_times(struct buf *b, const char *text, size_t times)
{
    while (times-- > 0)
        buf_puts(b, text);
}

/* Appends the line without blanks at its end, cut when it is too long. */
static void put_line(struct buf *b, const struct buf *line, size_t cut)
{
    const char *text = buf_text(line);
    size_t len = line->len;
    while (len > 0 && text[len - 1] == ' ')
        len--;
    if (cut > 0 && utf8_columns(text) > cut) {
        size_t fits = utf8_bytes(text, cut);
        if (fits < len) {
            buf_put(b, text, utf8_bytes(text, cut - 1));
            buf_puts(b, "…");
            len = 0;
        }
    }
    buf_put(b, text, len);
    buf_putc(b, '\n');
    b->failed |= line->failed;
}

/* `cells` NULL: the line under the heads. */
static void put_row(const struct table *t, char *const *cells, const size_t *widths, struct buf *line)
{
    for (size_t c = 0; c < t->columns; c++) {
        const char *text = cells ? cells[c] : "";
        size_t pad = widths[c] - utf8_columns(text);
        bool right = t->right & (1u << c);
        buf_puts(line, c ? "  " : "");
        if (!cells) {
            put_times(line, "-", widths[c]);
            continue;
        }
        put_times(line, " ", right ? pad : 0);
        buf_puts(line, text);
        put_times(line, " ", right ? 0 : pad);
    }
}

void table_put(const struct table *t, struct buf *b, size_t cut)
{
    size_t widths[TABLE_MAX_COLUMNS] = { 0 };
    AUTO_BUF struct buf line = BUF_INIT;
    b->failed |= t->failed;
    if (t->failed || t->columns == 0)
        return;
    find_widths(t, widths);
    for (size_t at = 0; at + t->columns <= t->n; at += t->columns) {
        buf_clear(&line);
        put_row(t, t->cells + at, widths, &line);
        put_line(b, &line, cut);
        if (at > 0)
            continue;
        buf_clear(&line);
        put_row(t, NULL, widths, &line);
        put_line(b, &line, cut);
    }
}
