#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

static int no_memory_exit;

static void *must_malloc(size_t n)
{
    static const char line[] =
        "pipetune: out of memory: what runs goes on and can be found again by the same command\n";
    void *p = malloc(n);
    if (!p) {
        (void)!write(STDERR_FILENO, line, sizeof line - 1); /* stdio would ask for memory */
        _exit(no_memory_exit);
    }
    return p;
}

void json_must_have_memory(int exit_code)
{
    no_memory_exit = exit_code;
    json_set_alloc_funcs(must_malloc, free);
}

/* A message is one line, and drives no terminal, whatever bytes of a file it quotes. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

/* Blanks what stands behind a // that is in no string, so that lines and columns of errors stay. */
static void blank_comments(char *text, size_t len)
{
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
        else if (text[i] == '\n')
            in_string = false; /* no string goes over a line: jansson says so */
        else if (!in_string && text[i] == '/' && i + 1 < len && text[i + 1] == '/')
            for (; i < len && text[i] != '\n'; i++)
                text[i] = ' ';
    }
}

int json_doc_parse(struct json_doc *out, const char *name, const char *text, size_t len, struct err *e)
{
    json_error_t je;
    struct json_doc d = { .text = malloc(len + 1), .name = strdup(name) };
    if (!d.text || !d.name) {
        json_doc_done(&d);
        return err_sys(e, -ENOMEM, "'%s'", name);
    }
    memcpy(d.text, text, len);
    d.text[len] = '\0';
    blank_comments(d.text, len);
    d.root = json_loadb(d.text, len, JSON_REJECT_DUPLICATES, &je);
    if (d.root) {
        *out = d;
        return 0;
    }
    json_doc_done(&d);
    if (json_error_code(&je) == json_error_out_of_memory)
        return err_sys(e, -ENOMEM, "'%s'", name);
    make_plain(je.text);
    return err_set(e, -EINVAL, "'%s' line %d: %s", name, je.line < 1 ? 1 : je.line, je.text);
}

void json_doc_done(struct json_doc *d)
{
    if (!d)
        return;
    json_decref(d->root);
    free(d->text);
    free(d->name);
    *d = (struct json_doc){ 0 };
}

/* A second walk over a text that jansson has accepted: jansson keeps no positions, and only errors need them. */
struct walk {
    const char *p;
    int line;
};

static void skip_space(struct walk *w)
{
    for (; *w->p == ' ' || *w->p == '\t' || *w->p == '\n' || *w->p == '\r'; w->p++)
        w->line += *w->p == '\n';
}

static void skip_string(struct walk *w)
{
    for (w->p++; *w->p && *w->p != '"'; w->p++)
        if (*w->p == '\\' && w->p[1])
            w->p++;
    if (*w->p)
        w->p++;
}

/* Step over one value; nesting is counted, not recursed into. */
static void skip_value(struct walk *w)
{
    int depth = 0;
    do {
        skip_space(w);
        if (*w->p == '"') {
            skip_string(w);
        } else if (*w->p == '{' || *w->p == '[') {
            depth++;
            w->p++;
        } else if (*w->p == '}' || *w->p == ']') {
            depth--;
            w->p++;
        } else if (*w->p == ',' || *w->p == ':') {
            w->p++;
        } else {
            while (*w->p && !strchr(",:]} \t\r\n", *w->p))
                w->p++;
        }
        skip_space(w);
    } while (depth > 0 && *w->p);
}

/* Go to the member or element `name` of the container at w; false, with w untouched, when there is none. */
static bool enter(struct walk *w, const char *name, size_t len)
{
    struct walk at = *w;
    bool object = *at.p == '{';
    if (!object && *at.p != '[')
        return false;
    at.p++;
    for (size_t index = 0;; index++) {
        skip_space(&at);
        if (!*at.p || *at.p == '}' || *at.p == ']')
            return false;
        bool hit;
        if (object) {
            const char *key = at.p + 1;
            skip_string(&at);
            hit = (size_t)(at.p - 1 - key) == len && memcmp(key, name, len) == 0;
            skip_space(&at);
            at.p++; /* ':' */
            skip_space(&at);
        } else {
            char *end;
            hit = strtoul(name, &end, 10) == index && end == name + len && len > 0;
        }
        if (hit) {
            *w = at;
            return true;
        }
        skip_value(&at);
        if (*at.p == ',')
            at.p++;
    }
}

int json_doc_line(const struct json_doc *d, const char *path)
{
    struct walk w = { .p = d->text, .line = 1 };
    skip_space(&w);
    while (*path) {
        size_t len = strcspn(path, "/");
        if (!enter(&w, path, len))
            break;
        path += len + (path[len] == '/');
    }
    return w.line;
}

int json_doc_err(const struct json_doc *d, const char *path, struct err *e, int code, const char *fmt, ...)
{
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap); /* a cut message is still a message */
    va_end(ap);
    char key[256];
    (void)snprintf(key, sizeof key, "%s", path);
    for (char *c = key; *c; c++)
        if (*c == '/')
            *c = '.';
    make_plain(key);
    make_plain(what);
    return err_set(e, code, "'%s' line %d: '%s' %s", d->name, json_doc_line(d, path), key, what);
}

void json_put_string(struct buf *b, const char *text)
{
    buf_putc(b, '"');
    const unsigned char *c = (const unsigned char *)text, *end = c + strlen(text);
    for (size_t n; *c; c += n ? n : 1) {
        n = utf8_len(c, end);
        if (n == 0)
            buf_puts(b, "\\ufffd");
        else if (*c == '"' || *c == '\\')
            buf_printf(b, "\\%c", *c);
        else if (*c == '\n')
            buf_puts(b, "\\n");
        else if (*c == '\t')
            buf_puts(b, "\\t");
        else if (*c < 0x20 || *c == 0x7f)
            buf_printf(b, "\\u%04x", *c);
        else
            buf_put(b, c, n);
    }
    buf_putc(b, '"');
}

json_t *json_bytes(const char *text)
{
    if (utf8_is_valid(text))
        return json_string(text);
    AUTO_BUF struct buf b = BUF_INIT;
    json_put_string(&b, text);
    return b.failed ? NULL : json_loadb(b.data, b.len, JSON_DECODE_ANY, NULL);
}

json_t *json_num(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void put_newline(struct buf *b, enum json_style style, int depth)
{
    if (style == JSON_STYLE_INDENT)
        buf_printf(b, "\n%*s", 2 * depth, "");
}

static void put_value(struct buf *b, const json_t *j, enum json_style style, int depth);

static void put_object(struct buf *b, const json_t *j, enum json_style style, int depth)
{
    const char *sep = "";
    const char *key;
    json_t *value;
    buf_putc(b, '{');
    json_object_foreach((json_t *)j, key, value)
    {
        buf_puts(b, sep);
        sep = style == JSON_STYLE_COMPACT ? ", " : ",";
        put_newline(b, style, depth + 1);
        json_put_string(b, key);
        buf_puts(b, ": ");
        put_value(b, value, style, depth + 1);
    }
    if (*sep)
        put_newline(b, style, depth);
    buf_putc(b, '}');
}

static void put_array(struct buf *b, const json_t *j, enum json_style style, int depth)
{
    buf_putc(b, '[');
    for (size_t i = 0; i < json_array_size(j); i++) {
        buf_puts(b, i == 0 ? "" : style == JSON_STYLE_COMPACT ? ", " : ",");
        put_newline(b, style, depth + 1);
        put_value(b, json_array_get(j, i), style, depth + 1);
    }
    if (json_array_size(j))
        put_newline(b, style, depth);
    buf_putc(b, ']');
}

static void put_value(struct buf *b, const json_t *j, enum json_style style, int depth)
{
    switch (j ? json_typeof(j) : JSON_NULL) {
    case JSON_OBJECT: put_object(b, j, style, depth); break;
    case JSON_ARRAY: put_array(b, j, style, depth); break;
    case JSON_STRING: json_put_string(b, json_string_value(j)); break;
    case JSON_INTEGER: buf_printf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(j)); break;
    case JSON_REAL: num_put(b, json_real_value(j)); break;
    case JSON_TRUE: buf_puts(b, "true"); break;
    case JSON_FALSE: buf_puts(b, "false"); break;
    case JSON_NULL: buf_puts(b, "null"); break;
    }
}

void json_put(struct buf *b, const json_t *j, enum json_style style)
{
    put_value(b, j, style, 0);
}

char *json_text(const json_t *j)
{
    struct buf b = BUF_INIT;
    if (!j)
        return NULL;
    json_put(&b, j, JSON_STYLE_COMPACT);
    return buf_take(&b);
}
