#include "serve/http_route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/utf8.h"

enum { VALUE_MAX = 16 * 1024 };

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One byte of `text`, which may be written as %41; how many bytes it took, 0: it is none. */
static size_t decode_byte(const char *text, const char *end, bool plus, char *out)
{
    *out = plus && *text == '+' ? ' ' : *text;
    if (*text != '%')
        return 1;
    int high = end - text > 2 ? hex(text[1]) : -1, low = high >= 0 ? hex(text[2]) : -1;
    *out = (char)(high * 16 + low);
    return low >= 0 && *out != '\0' ? 3 : 0;
}

/* NULL with *rc set: -EINVAL or -ENOMEM. */
static char *decode(const char *text, size_t len, bool plus, size_t max, int *rc)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const char *end = text + len;
    *rc = -EINVAL;
    for (size_t took; text < end; text += took) {
        char c;
        took = decode_byte(text, end, plus, &c);
        if (took == 0 || b.len >= max)
            return NULL;
        buf_putc(&b, c);
    }
    if (!utf8_is_valid(buf_text(&b)))
        return NULL;
    char *word = buf_take(&b);
    *rc = word ? 0 : -ENOMEM;
    return word;
}

static bool fits_path(const char *word)
{
    return *word && strcmp(word, ".") != 0 && strcmp(word, "..") != 0 && !strchr(word, '/') && utf8_is_plain(word) &&
           !strpbrk(word, "\n\t");
}

void http_path_done(struct http_path *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->words[i]);
    *p = (struct http_path){ .n = 0 };
}

int http_path_parse(struct http_path *out, const char *text)
{
    struct http_path p = { .n = 0 };
    int rc = *text == '/' ? 0 : -EINVAL;
    for (const char *at = text + 1; rc == 0 && *at;) {
        size_t len = strcspn(at, "/");
        char *word = NULL;
        rc = -EINVAL;
        if (p.n < HTTP_WORDS_MAX)
            word = decode(at, len, false, HTTP_WORD_MAX, &rc);
        if (!word)
            break;
        p.words[p.n++] = word;
        rc = fits_path(word) ? 0 : -EINVAL;
        at += len + (at[len] == '/');
    }
    if (rc == 0)
        *out = p;
    else
        http_path_done(&p);
    return rc;
}

void http_pairs_done(struct http_pairs *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].name);
        free(p->v[i].value);
    }
    p->n = 0;
}

int http_pairs_parse(struct http_pairs *out, const char *text)
{
    int rc = 0;
    out->n = 0;
    for (const char *at = text; rc == 0 && *at;) {
        size_t len = strcspn(at, "&"), name = strcspn(at, "=&");
        const char *value = name < len ? at + name + 1 : at + len;
        if (len > 0 && out->n == HTTP_PAIRS_MAX)
            rc = -EINVAL;
        if (len > 0 && rc == 0) {
            struct http_pair *pair = &out->v[out->n++];
            *pair = (struct http_pair){ NULL, NULL };
            pair->name = decode(at, name, true, HTTP_WORD_MAX, &rc);
            if (pair->name)
                pair->value = decode(value, (size_t)(at + len - value), true, VALUE_MAX, &rc);
        }
        at += len + (at[len] == '&');
    }
    if (rc < 0)
        http_pairs_done(out);
    return rc;
}

const char *http_pairs_get(const struct http_pairs *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i].name, name) == 0)
            return p->v[i].value;
    return NULL;
}

long http_pairs_number(const struct http_pairs *p, const char *name, long min, long max, long otherwise)
{
    const char *text = http_pairs_get(p, name);
    char *end = NULL;
    errno = 0;
    long n = text ? strtol(text, &end, 10) : 0;
    return text && *text && !*end && errno == 0 && n >= min && n <= max ? n : otherwise;
}

bool http_path_is(const struct http_path *p, const char *pattern)
{
    size_t i = 0;
    for (const char *at = pattern; *at;) {
        size_t len = strcspn(at, "/");
        if (i == p->n)
            return false;
        if (len == 1 && *at == '*')
            return true;
        if (!(len == 1 && *at == '?') && (strlen(p->words[i]) != len || strncmp(p->words[i], at, len) != 0))
            return false;
        i++;
        at += len + (at[len] == '/');
    }
    return i == p->n;
}

void http_put_word(struct buf *b, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c < 128 && strchr("-._~@", *c));
        if (plain)
            buf_putc(b, (char)*c);
        else
            buf_printf(b, "%%%02X", *c);
    }
}
