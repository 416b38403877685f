#include "monitoring/line.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/own.h"
#include "base/utf8.h"

int64_t line_stamp(int64_t ns, enum line_precision p)
{
    static const int64_t per[] = { [LINE_NS] = 1, [LINE_US] = 1000, [LINE_MS] = 1000000, [LINE_S] = 1000000000 };
    int64_t whole = ns / per[p];
    return ns % per[p] < 0 ? whole - 1 : whole;
}

/* --- writing --- */

static bool reserved(const char *name)
{
    return *name == '_' || *name == '\0' || strcmp(name, "time") == 0;
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* How many bytes stand for themselves everywhere. */
static size_t plain_run(const char *text)
{
    size_t n = 0;
    while (text[n] && !is_control(text[n]) && text[n] != '\\' && text[n] != ',' && text[n] != '=' && text[n] != ' ')
        n++;
    return n;
}

/* The bytes as they come, those of `special` behind a backslash. */
static void put_escaped(struct buf *to, const char *text, const char *special)
{
    for (;; text++) {
        size_t n = plain_run(text);
        buf_put(to, text, n);
        text += n;
        if (!*text)
            return;
        char c = is_control(*text) ? ' ' : *text == '\\' ? '/' : *text;
        if (strchr(special, c))
            buf_putc(to, '\\');
        buf_putc(to, c);
    }
}

static void put_name(struct buf *to, const char *name, const char *special)
{
    if (reserved(name))
        buf_puts(to, *name == '_' || *name == '\0' ? "x" : "x_");
    put_escaped(to, name, special);
}

struct line line_begin(struct buf *to, const char *measurement, enum line_precision p)
{
    struct line l = { .to = to, .start = to->len, .precision = p };
    /* '#' would begin a comment. */
    if (*measurement == '#')
        buf_putc(to, 'x');
    put_name(to, measurement, ", ");
    return l;
}

void line_tag(struct line *l, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    buf_putc(l->to, ',');
    put_name(l->to, key, ",= ");
    buf_putc(l->to, '=');
    put_escaped(l->to, value, ",= ");
}

static void put_key(struct line *l, const char *key)
{
    buf_putc(l->to, l->fields ? ',' : ' ');
    l->fields = true;
    put_name(l->to, key, ",= ");
    buf_putc(l->to, '=');
}

static void put_whole(struct buf *to, int64_t value)
{
    char text[24], *end = text + sizeof text, *begin = end;
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--begin = (char)('0' + size % 10);
    while (size /= 10);
    if (value < 0)
        *--begin = '-';
    buf_put(to, begin, (size_t)(end - begin));
}

void line_float(struct line *l, const char *key, double value)
{
    if (!isfinite(value))
        return;
    char text[NUM_TEXT_MAX];
    put_key(l, key);
    buf_puts(l->to, num_print(value, text));
    if (!strpbrk(text, ".e"))
        buf_puts(l->to, ".0");
}

void line_int(struct line *l, const char *key, int64_t value)
{
    put_key(l, key);
    put_whole(l->to, value);
    buf_putc(l->to, 'i');
}

void line_bool(struct line *l, const char *key, bool value)
{
    put_key(l, key);
    buf_puts(l->to, value ? "true" : "false");
}

void line_text(struct line *l, const char *key, const char *value)
{
    if (!value)
        return;
    put_key(l, key);
    buf_putc(l->to, '"');
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            buf_putc(l->to, '\\');
        buf_putc(l->to, is_control(*value) ? ' ' : *value);
    }
    buf_putc(l->to, '"');
}

int line_end(struct line *l, int64_t ns)
{
    buf_putc(l->to, ' ');
    put_whole(l->to, line_stamp(ns, l->precision));
    buf_putc(l->to, '\n');
    int rc = l->to->failed ? -ENOMEM : !l->fields ? 0 : l->to->len - l->start > LINE_BYTES_MAX ? -EFBIG : 1;
    if (rc != 1)
        buf_cut(l->to, l->start);
    return rc;
}

/* --- reading: a cursor over the line, and behind it, never ahead of it, the place where unescaped bytes go --- */

struct reader {
    char *at, *end, *begin;
    struct err *e;
};

static int wrong(const struct reader *r, const char *what)
{
    return err_set(r->e, -EINVAL, "not line protocol at byte %td: %s", r->at - r->begin + 1, what);
}

/* A name or a tag's value up to one of `stops`, unescaped in place; it ends with a NUL that may stand on the stop, which goes to
 * *stop (NUL at the end of the line). */
static int take_word(struct reader *r, const char *escapable, const char *stops, const char **out, char *stop)
{
    char *word = r->at, *to = r->at;
    while (r->at < r->end && !strchr(stops, *r->at)) {
        if (*r->at == '\\' && r->at + 1 < r->end && strchr(escapable, r->at[1]))
            r->at++;
        else if (strchr(escapable, *r->at))
            return wrong(r, "a comma, an equals sign or a space needs a backslash before it here");
        *to++ = *r->at++;
    }
    *stop = r->at < r->end ? *r->at : '\0';
    if (to == word)
        return wrong(r, "a name or a tag's value is empty");
    *to = '\0';
    *out = word;
    r->at += r->at < r->end;
    return 0;
}

static int take_name(struct reader *r, const char *escapable, const char *stops, const char **out, char *stop)
{
    int rc = take_word(r, escapable, stops, out, stop);
    return rc < 0 ? rc : reserved(*out) ? wrong(r, "a name begins with '_' or is \"time\"") : 0;
}

static int take_tag(struct reader *r, struct line_point *pt, char *stop)
{
    struct line_tag t;
    if (pt->n_tags == LINE_TAGS_MAX)
        return wrong(r, "too many tags");
    int rc = take_name(r, ",= ", "=", &t.key, stop);
    if (rc < 0)
        return rc;
    if (*stop != '=')
        return wrong(r, "a tag has no value");
    rc = take_word(r, ",= ", ", ", &t.value, stop);
    for (size_t i = 0; rc == 0 && i < pt->n_tags; i++)
        if (strcmp(pt->tags[i].key, t.key) == 0)
            rc = wrong(r, "a tag comes twice");
    if (rc == 0)
        pt->tags[pt->n_tags++] = t;
    return rc;
}

static int take_text(struct reader *r, struct line_field *f, char *stop)
{
    char *to = ++r->at;
    f->kind = LINE_TEXT;
    f->text = to;
    for (; r->at < r->end && *r->at != '"'; *to++ = *r->at++)
        if (*r->at == '\\' && r->at + 1 < r->end && (r->at[1] == '"' || r->at[1] == '\\'))
            r->at++;
    if (r->at == r->end)
        return wrong(r, "a string has no end");
    *to = '\0';
    r->at++;
    *stop = *r->at; /* NUL at the end of the line */
    if (*stop != '\0' && *stop != ',' && *stop != ' ')
        return wrong(r, "something follows a string");
    r->at += *stop != '\0';
    return 0;
}

static bool parse_bool(const char *text, bool *out)
{
    static const char *const words[2][5] = { { "f", "F", "false", "False", "FALSE" },
                                             { "t", "T", "true", "True", "TRUE" } };
    for (size_t i = 0; i < 10; i++)
        if (strcmp(text, words[i / 5][i % 5]) == 0) {
            *out = i >= 5;
            return true;
        }
    return false;
}

/* [-]digits, nothing else; strtoll alone would take blanks and a plus. */
static bool parse_whole(const char *text, size_t len, int64_t *out)
{
    size_t sign = *text == '-';
    if (len == sign || strspn(text + sign, "0123456789") < len - sign)
        return false;
    errno = 0;
    char *end;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end == text + len;
}

/* [+-]digits[.digits][e[+-]digits], with a digit on at least one side of the point. */
static bool parse_real(const char *text, double *out)
{
    static const char digits[] = "0123456789";
    const char *p = text + (*text == '-' || *text == '+');
    size_t n = strspn(p, digits);
    p += n;
    if (*p == '.') {
        size_t more = strspn(++p, digits);
        n += more;
        p += more;
    }
    if (n > 0 && (*p == 'e' || *p == 'E')) {
        p++;
        p += *p == '-' || *p == '+';
        n = strspn(p, digits);
        p += n;
    }
    if (n == 0 || *p != '\0')
        return false;
    *out = strtod(text, NULL);
    return isfinite(*out);
}

static int take_value(struct reader *r, struct line_field *f, char *stop)
{
    if (r->at < r->end && *r->at == '"')
        return take_text(r, f, stop);
    char *word = r->at;
    size_t len = strcspn(word, ", ");
    r->at += len;
    *stop = *r->at;
    *r->at = '\0';
    r->at += *stop != '\0';
    if (parse_bool(word, &f->truth))
        f->kind = LINE_BOOL;
    else if (len > 1 && word[len - 1] == 'i' && parse_whole(word, len - 1, &f->whole))
        f->kind = LINE_INT;
    else if (parse_real(word, &f->real))
        f->kind = LINE_FLOAT;
    else
        return wrong(r, "a field's value is no number that fits, no boolean and no string");
    return 0;
}

static int take_field(struct reader *r, struct line_point *pt, char *stop)
{
    struct line_field f = { 0 };
    if (pt->n_fields == LINE_FIELDS_MAX)
        return wrong(r, "too many fields");
    int rc = take_name(r, ",= ", "=", &f.key, stop);
    if (rc < 0)
        return rc;
    if (*stop != '=')
        return wrong(r, "a field has no value");
    rc = take_value(r, &f, stop);
    for (size_t i = 0; rc == 0 && i < pt->n_fields; i++)
        if (strcmp(pt->fields[i].key, f.key) == 0)
            rc = wrong(r, "a field comes twice");
    if (rc == 0)
        pt->fields[pt->n_fields++] = f;
    return rc;
}

static int check_bytes(const struct reader *r)
{
    if ((size_t)(r->end - r->begin) >= LINE_BYTES_MAX)
        return wrong(r, "the line is too long");
    struct reader at = *r;
    for (size_t n; at.at < r->end; at.at += n) {
        n = utf8_len((const unsigned char *)at.at, (const unsigned char *)r->end);
        if (n == 0 || is_control(*at.at))
            return wrong(&at, "control characters and bytes that are no UTF-8 are not taken");
    }
    return 0;
}

int line_parse(struct line_point *out, char *text, size_t len, struct err *e)
{
    struct reader r = { .at = text, .end = text + len, .begin = text, .e = e };
    out->n_tags = out->n_fields = 0;
    out->stamped = false;
    out->stamp = 0;
    char stop = '\0';
    int rc = check_bytes(&r);
    if (rc == 0 && *text == '#')
        rc = wrong(&r, "a comment is no point");
    if (rc == 0)
        rc = take_name(&r, ", ", ", ", &out->measurement, &stop);
    while (rc == 0 && stop == ',')
        rc = take_tag(&r, out, &stop);
    if (rc == 0 && stop != ' ')
        rc = wrong(&r, "there is no field");
    do
        rc = rc < 0 ? rc : take_field(&r, out, &stop);
    while (rc == 0 && stop == ',');
    if (rc < 0 || stop == '\0')
        return rc;
    out->stamped = parse_whole(r.at, (size_t)(r.end - r.at), &out->stamp);
    return out->stamped ? 0 : wrong(&r, "the time stamp is no whole number that fits");
}

/* --- a point that was read, written --- */

static void put_tags(struct line *l, const struct line_point *pt, const struct line_tag *more, size_t n)
{
    for (size_t i = 0; i < pt->n_tags; i++) {
        bool ours = false;
        for (size_t k = 0; k < n && !ours; k++)
            ours = strcmp(more[k].key, pt->tags[i].key) == 0;
        if (!ours)
            line_tag(l, pt->tags[i].key, pt->tags[i].value);
    }
    for (size_t k = 0; k < n; k++)
        line_tag(l, more[k].key, more[k].value);
}

int line_put_point(struct buf *to, const struct line_point *pt, const struct line_tag *more, size_t n, int64_t ns,
                   enum line_precision p)
{
    struct line l = line_begin(to, pt->measurement, p);
    put_tags(&l, pt, more, n);
    for (size_t i = 0; i < pt->n_fields; i++) {
        const struct line_field *f = &pt->fields[i];
        switch (f->kind) {
        case LINE_FLOAT: line_float(&l, f->key, f->real); break;
        case LINE_INT: line_int(&l, f->key, f->whole); break;
        case LINE_BOOL: line_bool(&l, f->key, f->truth); break;
        case LINE_TEXT: line_text(&l, f->key, f->text); break;
        }
    }
    return line_end(&l, ns);
}
