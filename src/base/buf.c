#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void buf_done(struct buf *b)
{
    if (!b)
        return;
    free(b->data);
    *b = BUF_INIT;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

static bool reserve(struct buf *b, size_t more)
{
    if (b->failed)
        return false;
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return true;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap *= 2;
    char *data = realloc(b->data, cap);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

void buf_put(struct buf *b, const void *bytes, size_t len)
{
    if (!reserve(b, len))
        return;
    if (len)
        memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *text)
{
    buf_put(b, text, strlen(text));
}

void buf_putc(struct buf *b, char c)
{
    buf_put(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && reserve(b, (size_t)n)) {
        (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    } else {
        b->failed = true;
    }
    va_end(again);
}

/* What cannot be seen, or would move what stands beside it, as octal digits: the shells that people type into take them. */
static void put_shell_octal(struct buf *b, const char *text)
{
    buf_puts(b, "$'");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < 0x20 || *c >= 0x7f)
            buf_printf(b, "\\%03o", *c);
        else
            buf_printf(b, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
    }
    buf_putc(b, '\'');
}

void buf_put_shell(struct buf *b, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
    if (*text && text[strspn(text, plain)] == '\0') {
        buf_puts(b, text);
        return;
    }
    if (!utf8_is_plain(text)) {
        put_shell_octal(b, text);
        return;
    }
    buf_putc(b, '\'');
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            buf_puts(b, "'\\''");
        else
            buf_putc(b, *c);
    }
    buf_putc(b, '\'');
}

void buf_cut(struct buf *b, size_t len)
{
    if (len >= b->len)
        return;
    b->len = len;
    b->data[len] = '\0';
}

void buf_shift(struct buf *b, size_t n)
{
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n + 1);
    b->len -= n;
}

const char *buf_text(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
    buf_put(b, "", 0); /* an empty buffer becomes an empty string */
    char *text = b->failed ? NULL : b->data;
    if (!text)
        free(b->data);
    *b = BUF_INIT;
    return text;
}
