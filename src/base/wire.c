#include "base/wire.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

struct reader {
    char *text, *at, *end; /* *end is a NUL, and no NUL is before it: see wire_parse() */
    struct wire *out;
    struct err *e;
};

static int fault(const struct reader *r, const char *what)
{
    return err_set(r->e, -EINVAL, "column %td: %s", r->at - r->text + 1, what);
}

static void skip_blanks(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' || *r->at == '\n')
        r->at++;
}

/* Takes `c` and the blanks behind it. */
static bool take(struct reader *r, char c)
{
    if (*r->at != c)
        return false;
    r->at++;
    skip_blanks(r);
    return true;
}

/* --- strings ------------------------------------------------------------------------------------------------------ */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits behind "\u", or -1. */
static int32_t take_hex4(struct reader *r)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(*r->at);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
        r->at++;
    }
    return value;
}

static size_t encode(char *to, int32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char heads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(heads[n] | c);
    return n;
}

/* Behind "\u". Never writes more than the escape took, so decoding in place is safe. */
static int take_code_point(struct reader *r, char **to)
{
    int32_t c = take_hex4(r);
    if (c < 0)
        return fault(r, "'\\u' needs four hexadecimal digits");
    if (c == 0)
        return fault(r, "'\\u0000' is not allowed");
    if (c >= 0xd800 && c < 0xdc00 && r->at[0] == '\\' && r->at[1] == 'u') {
        r->at += 2;
        int32_t low = take_hex4(r);
        if (low < 0xdc00 || low > 0xdfff)
            return fault(r, "half of a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    if (c >= 0xd800 && c <= 0xdfff)
        return fault(r, "half of a surrogate pair");
    *to += encode(*to, c);
    return 0;
}

/* Behind a backslash. */
static int take_escape(struct reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    char c = *r->at;
    const char *known = c ? strchr(from, c) : NULL;
    if (c != 'u' && !known)
        return fault(r, "an unknown escape");
    r->at++;
    if (!known)
        return take_code_point(r, to);
    *(*to)++ = means[known - from];
    return 0;
}

static int take_plain(struct reader *r, char **to)
{
    const unsigned char *p = (const unsigned char *)r->at;
    if (*p < 0x20)
        return fault(r, r->at == r->end ? "the text is not closed" : "a control character in a text");
    size_t n = utf8_len(p, (const unsigned char *)r->end);
    if (n == 0)
        return fault(r, "not UTF-8");
    memmove(*to, r->at, n);
    *to += n;
    r->at += n;
    return 0;
}

/* At the opening quote. */
static int take_text(struct reader *r, const char **out)
{
    char *start = ++r->at, *to = start;
    while (*r->at != '"') {
        int rc;
        if (*r->at == '\\') {
            r->at++;
            rc = take_escape(r, &to);
        } else {
            rc = take_plain(r, &to);
        }
        if (rc < 0)
            return rc;
    }
    *to = '\0'; /* at most where the closing quote stands */
    *out = start;
    r->at++;
    skip_blanks(r);
    return 0;
}

/* --- the other values --------------------------------------------------------------------------------------------- */

static const char *skip_digits(const char *p)
{
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

/* The end of the number at p, NULL when it is none as JSON writes them: strtod() alone would take "0x1", "inf" and " 1". */
static const char *number_end(const char *p)
{
    p += *p == '-';
    const char *digits = p;
    p = skip_digits(p);
    if (p == digits || (*digits == '0' && p > digits + 1))
        return NULL;
    if (*p == '.') {
        const char *fraction = ++p;
        p = skip_digits(p);
        if (p == fraction)
            return NULL;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        const char *exponent = p;
        p = skip_digits(p);
        if (p == exponent)
            return NULL;
    }
    return p;
}

static int take_number(struct reader *r, double *out)
{
    const char *end = number_end(r->at);
    if (!end)
        return fault(r, "neither a value nor a number");
    double x = strtod(r->at, NULL); /* in the C locale: nobody sets another */
    if (!isfinite(x))
        return fault(r, "a number that is too large");
    *out = x;
    r->at += end - r->at;
    skip_blanks(r);
    return 0;
}

static int take_int(struct reader *r)
{
    double x = 0;
    int rc = take_number(r, &x);
    if (rc < 0)
        return rc;
    if (x < INT_MIN || x > INT_MAX || x != (int)x)
        return fault(r, "arrays hold whole numbers");
    if (r->out->n_ints == WIRE_INTS_MAX)
        return fault(r, "too many numbers in arrays");
    r->out->ints[r->out->n_ints++] = (int)x;
    return 0;
}

/* Behind the bracket. */
static int take_ints(struct reader *r, struct wire_member *m)
{
    size_t first = r->out->n_ints;
    m->ints = r->out->ints + first;
    bool more = !take(r, ']');
    while (more) {
        int rc = take_int(r);
        if (rc < 0)
            return rc;
        more = take(r, ',');
        if (!more && !take(r, ']'))
            return fault(r, "',' or ']' expected");
    }
    m->n_ints = r->out->n_ints - first;
    return 0;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    skip_blanks(r);
    return true;
}

static int take_value(struct reader *r, struct wire_member *m)
{
    if (*r->at == '"') {
        m->kind = WIRE_STRING;
        return take_text(r, &m->text);
    }
    if (*r->at == '{')
        return fault(r, "objects in objects are not allowed");
    if (take(r, '[')) {
        m->kind = WIRE_INTS;
        return take_ints(r, m);
    }
    m->kind = WIRE_NULL;
    if (take_word(r, "null"))
        return 0;
    m->kind = WIRE_BOOL;
    m->truth = take_word(r, "true");
    if (m->truth || take_word(r, "false"))
        return 0;
    m->kind = WIRE_NUMBER;
    return take_number(r, &m->number);
}

/* --- the line ----------------------------------------------------------------------------------------------------- */

static int take_member(struct reader *r)
{
    struct wire_member m = { 0 };
    if (*r->at != '"')
        return fault(r, "a key in quotes expected");
    int rc = take_text(r, &m.key);
    if (rc < 0)
        return rc;
    if (wire_find(r->out, m.key))
        return fault(r, "the same key again");
    if (r->out->n == WIRE_MEMBERS_MAX)
        return fault(r, "too many members");
    if (!take(r, ':'))
        return fault(r, "':' expected");
    rc = take_value(r, &m);
    if (rc == 0)
        r->out->members[r->out->n++] = m;
    return rc;
}

static int take_object(struct reader *r)
{
    skip_blanks(r);
    if (!take(r, '{'))
        return fault(r, "not a JSON object");
    bool more = !take(r, '}');
    while (more) {
        int rc = take_member(r);
        if (rc < 0)
            return rc;
        more = take(r, ',');
        if (!more && !take(r, '}'))
            return fault(r, "',' or '}' expected");
    }
    return r->at == r->end ? 0 : fault(r, "text behind the object");
}

int wire_parse(struct wire *out, char *line, size_t len, struct err *e)
{
    out->n = out->n_ints = 0;
    if (len > WIRE_LINE_MAX)
        return err_set(e, -EINVAL, "a line of more than %d bytes", WIRE_LINE_MAX);
    if (memchr(line, '\0', len))
        return err_set(e, -EINVAL, "a NUL in the line");
    struct reader r = { .text = line, .at = line, .end = line + len, .out = out, .e = e };
    int rc = take_object(&r);
    if (rc < 0)
        out->n = out->n_ints = 0;
    return rc;
}

const struct wire_member *wire_find(const struct wire *w, const char *key)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->members[i].key, key) == 0)
            return &w->members[i];
    return NULL;
}

/* --- out ---------------------------------------------------------------------------------------------------------- */

/* The character at p, as JSON has it; how many bytes of the text it takes. */
static size_t put_character(struct buf *b, const char *p, const char *end)
{
    unsigned char c = (unsigned char)*p;
    size_t n = utf8_len((const unsigned char *)p, (const unsigned char *)end);
    if (c == '"' || c == '\\')
        buf_printf(b, "\\%c", c);
    else if (c < 0x20 || c == 0x7f)
        buf_printf(b, "\\u%04x", c);
    else if (n == 0)
        buf_putc(b, '?');
    else
        buf_put(b, p, n);
    return n ? n : 1;
}

void wire_put_text(struct buf *b, const char *text)
{
    const char *end = text + strlen(text);
    buf_putc(b, '"');
    while (text < end)
        text += put_character(b, text, end);
    buf_putc(b, '"');
}

void wire_put_ints(struct buf *b, const int *v, size_t n)
{
    buf_putc(b, '[');
    for (size_t i = 0; i < n; i++)
        buf_printf(b, "%s%d", i ? "," : "", v[i]);
    buf_putc(b, ']');
}
