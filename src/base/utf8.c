#include "base/utf8.h"

#include <string.h>

#include "base/own.h"
#include "base/utf8_ranges.h"

static const char replacement[] = "\xEF\xBF\xBD";

size_t utf8_len(const unsigned char *p, const unsigned char *end)
{
    size_t n = *p < 0x80                 ? 1
               : *p >= 0xc2 && *p < 0xe0 ? 2
               : *p >= 0xe0 && *p < 0xf0 ? 3
               : *p >= 0xf0 && *p < 0xf5 ? 4
                                         : 0;
    if (n == 0 || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
               (*p == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : n;
}

uint32_t utf8_code(const unsigned char *p, size_t len)
{
    uint32_t c = len == 1 ? *p : *p & (0x7fu >> len);
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3fu);
    return c;
}

bool utf8_is_valid(const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    size_t n = 1;
    for (; p < end && n > 0; p += n)
        n = utf8_len(p, end);
    return n > 0;
}

/* --- width --- */

static bool is_in(uint32_t c, const struct utf8_range *ranges, size_t n)
{
    size_t from = 0;
    while (from < n) { /* the one that it is in begins at from…n - 1 */
        size_t middle = from + (n - from) / 2;
        if (c > ranges[middle].last)
            from = middle + 1;
        else if (c < ranges[middle].first)
            n = middle;
        else
            return true;
    }
    return false;
}

static size_t width_of(uint32_t c)
{
    if (c < 0x300) /* what texts mostly are made of */
        return 1;
    if (is_in(c, utf8_zero, ARRAY_LEN(utf8_zero)))
        return 0;
    return is_in(c, utf8_wide, ARRAY_LEN(utf8_wide)) ? 2 : 1;
}

/* One step over the text: the bytes of a character, or one that is none; its columns. */
static size_t step(const char *text, const char *end, size_t *out_columns)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = utf8_len(p, (const unsigned char *)end);
    *out_columns = n > 1 ? width_of(utf8_code(p, n)) : 1;
    return n ? n : 1;
}

size_t utf8_columns(const char *text)
{
    const char *end = text + strlen(text);
    size_t all = 0, columns;
    while (text < end) {
        text += step(text, end, &columns);
        all += columns;
    }
    return all;
}

size_t utf8_bytes(const char *text, size_t columns)
{
    const char *at = text, *end = text + strlen(text);
    size_t width;
    while (at < end) {
        size_t n = step(at, end, &width);
        if (width > columns)
            break;
        columns -= width;
        at += n;
    }
    return (size_t)(at - text);
}

/* --- what is fit to be printed --- */

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

static bool is_format(uint32_t c)
{
    return c >= 0xad && is_in(c, utf8_format, ARRAY_LEN(utf8_format));
}

void utf8_put_plain(struct buf *b, const char *text, size_t len, enum utf8_form form)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    while (p < end) {
        size_t n = utf8_len(p, end);
        uint32_t c = n ? utf8_code(p, n) : 0;
        bool kept = form == UTF8_LINES && (c == '\n' || c == '\t');
        if (n == 0 || is_format(c))
            buf_puts(b, replacement);
        else if (is_control(c) && !kept)
            buf_putc(b, ' ');
        else
            buf_put(b, p, n);
        p += n ? n : 1;
    }
}

/* Outside of strings JSON has no such character but line ends, so that what is met stands in a string. */
void utf8_put_json(struct buf *b, const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    while (p < end) {
        size_t n = utf8_len(p, end);
        uint32_t c = n ? utf8_code(p, n) : 0;
        if (n == 0)
            buf_puts(b, "\\ufffd");
        else if (c > 0xffff && is_format(c))
            buf_printf(b, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
        else if ((is_control(c) && c != '\n') || is_format(c))
            buf_printf(b, "\\u%04x", c);
        else
            buf_put(b, p, n);
        p += n ? n : 1;
    }
}

bool utf8_is_plain(const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    while (p < end) {
        size_t n = utf8_len(p, end);
        uint32_t c = n ? utf8_code(p, n) : 0;
        if (n == 0 || is_control(c) || is_format(c))
            return false;
        p += n;
    }
    return true;
}
