#include "view/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/own.h"
#include "base/utf8.h"

/* --- filling --- */

static void take_cell(struct table *t, char *text)
{
    char **grown = text ? array_more(t->cells, t->n, &t->cap, sizeof *grown) : NULL;
    if (!grown) {
        free(text);
        t->failed = 1;
        return;
    }
    t->cells = grown;
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
        t->stays[t->columns] = t->columns == 0 || *head == '!';
        head += *head == '!';
        t->right[t->columns] = *head == '>';
        table_cell(t, head + (*head == '>'));
    }
}

void table_done(struct table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free(t->cells[i]);
    for (size_t i = 0; i < t->n_notes; i++)
        free(t->notes[i].text);
    free(t->cells);
    free(t->notes);
    *t = (struct table){ 0 };
}

void table_note(struct table *t, const char *text)
{
    AUTO_BUF struct buf plain = BUF_INIT;
    if (!text || !*text || t->columns == 0)
        return;
    utf8_put_plain(&plain, text, strlen(text), UTF8_ONE_LINE);
    struct table_note *grown = array_more(t->notes, t->n_notes, &t->cap_notes, sizeof *grown);
    t->notes = grown ? grown : t->notes;
    char *own = grown ? buf_take(&plain) : NULL;
    if (own)
        t->notes[t->n_notes++] = (struct table_note){ .row = t->n / t->columns - 1, .text = own };
    else
        t->failed = 1;
}

void table_differs(struct table *t, size_t column)
{
    t->stays[column] = true;
}

const char *table_digits(double x, char out[32])
{
    enum { DIGITS = 4 };
    if (!isfinite(x)) {
        (void)snprintf(out, 32, "-");
        return out;
    }
    bool plain = x == 0 || (fabs(x) >= 1e-4 && fabs(x) < 1e15);
    int before = x == 0 ? 1 : 1 + (int)floor(log10(fabs(x))); /* digits before the point; 0 and less: zeros behind it */
    int len = snprintf(out, 32, plain ? "%.*f" : "%.*g", plain ? before < DIGITS ? DIGITS - before : 0 : DIGITS, x);
    if (!plain || !strchr(out, '.'))
        return out;
    while (out[len - 1] == '0')
        out[--len] = '\0';
    if (out[len - 1] == '.')
        out[--len] = '\0';
    return out;
}

void table_number(struct table *t, double x)
{
    char text[32];
    table_cell(t, table_digits(x, text));
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

/* --- lines that fit --- */

size_t table_width(void)
{
    enum { LEAST = 20, MOST = 10000, NONE = 100 };
    const char *given = getenv("COLUMNS");
    char *end;
    unsigned long n = given ? strtoul(given, &end, 10) : 0;
    struct winsize w;
    if (n == 0 || *end)
        n = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : NONE;
    return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

/* What is put piece by piece, each on the next line when this one has no room for it. */
struct flow {
    struct buf *b;
    size_t width, indent, at; /* at: columns on this line */
    bool fresh;               /* it ends with a blank, or has nothing yet */
};

static struct flow flow_begin(struct buf *b, size_t indent, size_t width)
{
    const char *last = b->len ? memrchr(b->data, '\n', b->len) : NULL;
    struct flow f = { .b = b,
                      .width = width ? width : table_width(),
                      .indent = indent,
                      .at = utf8_columns(last ? last + 1 : buf_text(b)) };
    f.indent = f.indent + 2 > f.width ? 0 : f.indent;
    f.fresh = f.at == 0 || b->data[b->len - 1] == ' ';
    return f;
}

static void put_blanks(struct flow *f, size_t n)
{
    f->at += n;
    while (n-- > 0)
        buf_putc(f->b, ' ');
}

static void flow_break(struct flow *f)
{
    buf_putc(f->b, '\n');
    f->at = 0;
    f->fresh = true;
    put_blanks(f, f->indent);
}

/* A word that no line is wide enough for is cut into pieces. */
static void flow_word(struct flow *f, const char *word, size_t len, size_t gap)
{
    AUTO_BUF struct buf own = BUF_INIT;
    buf_put(&own, word, len);
    const char *rest = buf_text(&own);
    gap = f->fresh ? 0 : gap;
    if ((!f->fresh || f->at > f->indent) && f->at + gap + utf8_columns(rest) > f->width)
        flow_break(f);
    else
        put_blanks(f, gap);
    for (size_t fits; f->at + utf8_columns(rest) > f->width; rest += fits) {
        fits = utf8_bytes(rest, f->width - f->at);
        fits = fits ? fits : utf8_bytes(rest, 2); /* one letter, however narrow it is */
        buf_put(f->b, rest, fits);
        flow_break(f);
    }
    buf_puts(f->b, rest);
    f->at += utf8_columns(rest);
    f->fresh = false;
    f->b->failed |= own.failed;
}

static void flow_words(struct flow *f, const char *text, size_t gap)
{
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t len = strcspn(text, " ");
        flow_word(f, text, len, gap);
        gap = 1;
        text += len;
    }
}

/* A piece stays together as long as a line has room for it. */
static void flow_piece(struct flow *f, const char *text, size_t gap)
{
    if (utf8_columns(text) + f->indent <= f->width)
        flow_word(f, text, strlen(text), gap);
    else
        flow_words(f, text, gap);
}

static void flow_text(struct buf *b, const char *text, size_t indent, size_t width)
{
    struct flow f = flow_begin(b, indent, width);
    flow_words(&f, text, 0);
}

void table_put_wrapped(struct buf *b, const char *text, size_t indent, size_t width)
{
    flow_text(b, text, indent, width);
    buf_putc(b, '\n');
}

void table_put_lines(struct buf *b, const char *text, size_t width)
{
    width = width ? width : table_width();
    for (size_t len; *text; text += len + (text[len] == '\n')) {
        AUTO_BUF struct buf line = BUF_INIT;
        len = strcspn(text, "\n");
        buf_put(&line, text, len);
        if (utf8_columns(buf_text(&line)) > width)
            table_put_wrapped(b, buf_text(&line), 2, width);
        else
            buf_printf(b, "%s\n", buf_text(&line));
        b->failed |= line.failed;
    }
}

/* --- printing --- */

struct layout {
    const struct table *t;
    struct buf *b;
    size_t width, rows, note; /* rows without the heads; the next note */
    bool above[TABLE_MAX_COLUMNS];
    size_t widths[TABLE_MAX_COLUMNS];
};

static const char *cell_at(const struct layout *l, size_t row, size_t column)
{
    return l->t->cells[row * l->t->columns + column];
}

/* Of one row everything is the same, and that is no reason to tear it apart. */
static bool is_above(const struct layout *l, size_t column)
{
    if (l->rows < 2 || l->t->stays[column])
        return false;
    for (size_t row = 2; row <= l->rows; row++)
        if (strcmp(cell_at(l, row, column), cell_at(l, 1, column)) != 0)
            return false;
    return true;
}

static struct layout layout_of(const struct table *t, struct buf *b, size_t width)
{
    struct layout l = { .t = t, .b = b, .width = width ? width : table_width(), .rows = t->n / t->columns - 1 };
    for (size_t c = 0; c < t->columns; c++) {
        l.above[c] = is_above(&l, c);
        for (size_t row = 0; row <= l.rows; row++) {
            size_t columns = utf8_columns(cell_at(&l, row, c));
            l.widths[c] = columns > l.widths[c] ? columns : l.widths[c];
        }
    }
    return l;
}

/* "head value"; nothing of an empty cell. */
static void put_named(struct flow *f, const struct layout *l, size_t row, size_t column)
{
    AUTO_BUF struct buf piece = BUF_INIT;
    if (!*cell_at(l, row, column))
        return;
    buf_printf(&piece, "%s %s", cell_at(l, 0, column), cell_at(l, row, column));
    flow_piece(f, buf_text(&piece), 2);
    f->b->failed |= piece.failed;
}

static void put_above(const struct layout *l)
{
    struct flow f = flow_begin(l->b, 2, l->width);
    bool any = false;
    for (size_t c = 0; c < l->t->columns; c++) {
        const char *cell = cell_at(l, 1, c);
        if (!l->above[c] || !*cell || strcmp(cell, "-") == 0) /* what no row has needs no words */
            continue;
        if (!any)
            flow_words(&f, "the same in all rows:", 0);
        any = true;
        put_named(&f, l, 1, c);
    }
    buf_puts(l->b, any ? "\n\n" : "");
}

static void put_notes(struct layout *l, size_t row)
{
    for (; l->note < l->t->n_notes && l->t->notes[l->note].row == row; l->note++) {
        buf_puts(l->b, "  ");
        table_put_wrapped(l->b, l->t->notes[l->note].text, 2, l->width);
    }
}

static void put_times(struct buf *b, const char *text, size_t times)
{
    while (times-- > 0)
        buf_puts(b, text);
}

/* `rule`: the line under the heads. No blanks stand at its end. The last column may be broken. */
static void put_line(const struct layout *l, size_t row, bool rule)
{
    AUTO_BUF struct buf line = BUF_INIT;
    size_t at = 0;
    for (size_t c = 0; c < l->t->columns; c++) {
        const char *text = rule ? "" : cell_at(l, row, c);
        size_t columns = utf8_columns(text), pad = columns < l->widths[c] ? l->widths[c] - columns : 0;
        if (l->above[c])
            continue;
        buf_puts(&line, c ? "  " : "");
        at += c ? 2 : 0;
        put_times(&line, rule ? "-" : " ", rule || l->t->right[c] ? pad : 0);
        if (columns > l->widths[c]) {
            flow_text(&line, text, at, l->width);
            break;
        }
        buf_puts(&line, text);
        put_times(&line, " ", rule || l->t->right[c] ? 0 : pad);
        at += l->widths[c];
    }
    while (line.len > 0 && line.data[line.len - 1] == ' ')
        buf_cut(&line, line.len - 1);
    buf_printf(l->b, "%s\n", buf_text(&line));
    l->b->failed |= line.failed;
}

static void put_lines(struct layout *l)
{
    put_line(l, 0, false);
    put_line(l, 0, true);
    for (size_t row = 1; row <= l->rows; row++) {
        put_line(l, row, false);
        put_notes(l, row);
    }
}

static void put_blocks(struct layout *l)
{
    for (size_t row = 1; row <= l->rows; row++) {
        struct flow f = flow_begin(l->b, 2, l->width);
        if (l->t->right[0]) /* a number alone says little */
            put_named(&f, l, row, 0);
        else
            flow_piece(&f, cell_at(l, row, 0), 0);
        for (size_t c = 1; c < l->t->columns; c++)
            if (!l->above[c])
                put_named(&f, l, row, c);
        buf_putc(l->b, '\n');
        put_notes(l, row);
    }
}

/* False: it is too wide, even where the last column's texts are broken. */
static bool make_fit(struct layout *l)
{
    enum { LEAST = 24 }; /* what is narrower reads worse than a block */
    size_t wide = 0, last = 0;
    for (size_t c = 0; c < l->t->columns; c++) {
        wide += l->above[c] ? 0 : l->widths[c] + (c ? 2 : 0);
        last = l->above[c] ? last : c;
    }
    if (wide <= l->width)
        return true;
    size_t before = wide - l->widths[last];
    if (l->t->right[last] || before + LEAST > l->width)
        return false;
    l->widths[last] = l->width - before;
    return true;
}

void table_put(const struct table *t, struct buf *b, size_t width)
{
    b->failed |= t->failed;
    if (t->failed || t->columns == 0)
        return;
    struct layout l = layout_of(t, b, width);
    bool fits = make_fit(&l);
    put_above(&l);
    if (fits || l.rows == 0)
        put_lines(&l);
    else
        put_blocks(&l);
}
