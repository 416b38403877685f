#include "core/csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"

int csv_init(struct csv *c, const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    if (!copy)
        return -ENOMEM;
    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    *c = (struct csv){ .text = copy, .next = copy, .end = copy + len };
    if (len >= 3 && memcmp(copy, "\xEF\xBB\xBF", 3) == 0)
        c->next += 3;
    return 0;
}

void csv_done(struct csv *c)
{
    if (!c)
        return;
    free(c->text);
    *c = (struct csv){ 0 };
}

static char *skip_blanks(char *p)
{
    return p + strspn(p, " \t");
}

/* Takes the quotes off in place. Returns what follows the closing one; NULL: there is none. */
static char *unquote(char *p, char **out)
{
    char *to = *out = p + 1;
    for (char *from = p + 1; *from; from++) {
        if (*from == '"' && from[1] != '"') {
            from++;
            *to = '\0';
            return from;
        }
        from += *from == '"';
        *to++ = *from;
    }
    return NULL;
}

/* Takes one field off *rest, which is NULL after the last one. */
static bool take_field(char **rest, char **out)
{
    char *p = skip_blanks(*rest), *behind = p;
    *out = p;
    bool quoted = *p == '"';
    if (quoted) {
        behind = unquote(p, out);
        if (!behind)
            return false;
    }
    char *comma = strchr(behind, ',');
    char *stop = comma ? comma : behind + strlen(behind);
    *rest = comma ? comma + 1 : NULL;
    if (quoted)
        return skip_blanks(behind) == stop;
    while (stop > p && (stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
    *stop = '\0';
    return true;
}

static void split(struct csv *c, char *row)
{
    for (c->n = 0; row; c->n++) {
        if (c->n == CSV_FIELDS_MAX || !take_field(&row, &c->field[c->n])) {
            c->n = 0;
            return;
        }
    }
}

bool csv_next(struct csv *c)
{
    while (c->next < c->end) {
        char *row = c->next;
        char *newline = memchr(row, '\n', (size_t)(c->end - row));
        char *stop = newline ? newline : c->end;
        c->next = newline ? newline + 1 : c->end;
        c->line++;
        bool whole = memchr(row, '\0', (size_t)(stop - row)) == NULL;
        if (stop > row && stop[-1] == '\r')
            stop--;
        *stop = '\0';
        if (whole && *skip_blanks(row) == '\0')
            continue;
        c->n = 0;
        if (whole)
            split(c, row);
        return true;
    }
    return false;
}

bool csv_real(const char *field, double min, double max, double *out)
{
    char *end;
    if (field[strspn(field, "0123456789+-.eE")] != '\0') /* strtod also knows hex, inf and nan */
        return false;
    double x = strtod(field, &end);
    if (end == field || *end != '\0' || !isfinite(x) || x < min || x > max)
        return false;
    *out = x;
    return true;
}

bool csv_int(const char *field, int min, int max, int *out)
{
    double x;
    if (!csv_real(field, min, max, &x) || x != floor(x))
        return false;
    *out = (int)x;
    return true;
}

bool csv_is_name(const char *field)
{
    const unsigned char *p = (const unsigned char *)field, *end = p + strlen(field);
    for (size_t n; p < end; p += n) {
        n = *p < 0x20 || *p == 0x7F ? 0 : utf8_len(p, end);
        if (n == 0)
            return false;
    }
    return true;
}

/* --- writing --- */

/* Blanks before it are skipped by spreadsheets, too; in some languages they take the wide signs for the narrow ones. */
static bool is_formula(const char *text)
{
    static const char *const signs[] = { "=", "+", "-", "@", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20" };
    text += strspn(text, " \t\n");
    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (strncmp(text, signs[i], strlen(signs[i])) == 0)
            return true;
    return false;
}

static bool looks_like_number(const char *text)
{
    char *end;
    if (!*text || text[strspn(text, "0123456789+-.eE")])
        return false;
    (void)strtod(text, &end);
    return *end == '\0';
}

void csv_put_text(struct buf *b, const char *text)
{
    AUTO_BUF struct buf plain = BUF_INIT;
    utf8_put_plain(&plain, text ? text : "", text ? strlen(text) : 0, UTF8_LINES);
    const char *cell = buf_text(&plain);
    bool quoted = strpbrk(cell, ",\"\n");
    buf_puts(b, quoted ? "\"" : "");
    buf_puts(b, is_formula(cell) || looks_like_number(cell) ? "'" : "");
    for (; *cell; cell++) {
        buf_puts(b, *cell == '"' ? "\"" : "");
        buf_putc(b, *cell);
    }
    buf_puts(b, quoted ? "\"" : "");
    b->failed |= plain.failed;
}

void csv_put_number(struct buf *b, double x)
{
    if (isfinite(x))
        num_put(b, x);
}

void csv_put_next(struct buf *b, double x)
{
    buf_putc(b, ',');
    csv_put_number(b, x);
}

/* --- faults --- */

void csv_faults_done(struct csv_faults *f)
{
    if (!f)
        return;
    free(f->faults);
    *f = (struct csv_faults){ 0 };
}

void csv_fault_add(struct csv_faults *f, size_t line, const char *column, const char *what)
{
    struct csv_fault *more = array_more(f->faults, f->n, &f->cap, sizeof *more);
    if (!more) {
        f->failed = true;
        return;
    }
    f->faults = more;
    f->faults[f->n++] = (struct csv_fault){ line, column, what };
}

static int by_line(const void *x, const void *y)
{
    const struct csv_fault *a = x, *b = y;
    return (a->line > b->line) - (a->line < b->line);
}

void csv_faults_sort(struct csv_faults *f)
{
    if (f->n)
        qsort(f->faults, f->n, sizeof *f->faults, by_line);
}

void csv_faults_put(const struct csv_faults *f, const char *prefix, const char *name, struct buf *b)
{
    size_t shown = f->n < CSV_FAULTS_SHOWN ? f->n : CSV_FAULTS_SHOWN;
    for (size_t i = 0; i < shown; i++)
        buf_printf(b, "%s'%s' line %zu: %s %s\n", prefix, name, f->faults[i].line, f->faults[i].column,
                   f->faults[i].what);
    if (f->n > shown)
        buf_printf(b, "%s'%s': and %zu more like these\n", prefix, name, f->n - shown);
}

int csv_faults_err(const struct csv_faults *f, const char *name, struct err *e)
{
    bool one = f->n == 1;
    return err_set(e, -EINVAL,
                   "'%s' has %zu broken row%s, the first in line %zu: mend %s, or use the rest with --lenient", name,
                   f->n, one ? "" : "s", f->faults[0].line, one ? "it" : "them");
}
