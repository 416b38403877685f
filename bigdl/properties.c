#include "bigdl/properties.h"

#include <stdbool.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

/* As java.util.Properties reads it; `stops` are what else would end a name. */
static void put_escaped(struct buf *b, const char *text, const char *stops)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\n')
            buf_puts(b, "\\n");
        else if (*c == '\r')
            buf_puts(b, "\\r");
        else if (*c == '\\' || strchr(stops, *c) || (c == text && *c == ' '))
            buf_printf(b, "\\%c", *c);
        else
            buf_putc(b, *c);
    }
}

void properties_put(const json_t *values, struct buf *out)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)values, name, value)
    {
        const json_t *one = json_is_array(value) ? json_array_get(value, 0) : value;
        AUTO_BUF struct buf text = BUF_INIT;
        if (json_is_string(one))
            buf_puts(&text, json_string_value(one));
        else
            json_put(&text, one, JSON_STYLE_COMPACT);
        put_escaped(out, name, "=:#! \t");
        buf_puts(out, "=");
        put_escaped(out, buf_text(&text), "");
        buf_putc(out, '\n');
        out->failed |= text.failed;
    }
}

static void put_unescaped(struct buf *b, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool escaped = text[i] == '\\' && i + 1 < len;
        char c = text[i + escaped];
        buf_putc(b, escaped && c == 'n' ? '\n' : escaped && c == 'r' ? '\r' : escaped && c == 't' ? '\t' : c);
        i += escaped;
    }
}

/* Bytes of the name that begins there; what is escaped ends none. */
static size_t name_len(const char *line, size_t len)
{
    size_t n = 0;
    while (n < len && !strchr("=: \t\f", line[n]))
        n += line[n] == '\\' && n + 1 < len ? 2 : 1;
    return n;
}

static bool read_line(const char *line, size_t len, const char *name, struct buf *out)
{
    static const char blanks[] = " \t\f";
    AUTO_BUF struct buf found = BUF_INIT;
    size_t at = strspn(line, blanks);
    if (at >= len || line[at] == '#' || line[at] == '!')
        return false;
    size_t n = name_len(line + at, len - at);
    put_unescaped(&found, line + at, n);
    if (strcmp(buf_text(&found), name) != 0)
        return false;
    at += n;
    at += strspn(line + at, blanks);
    at += at < len && (line[at] == '=' || line[at] == ':');
    at += at < len ? strspn(line + at, blanks) : 0;
    while (len > at && strchr(" \t\f\r", line[len - 1]))
        len--;
    buf_clear(out);
    put_unescaped(out, line + at, len > at ? len - at : 0);
    return true;
}

bool properties_find(const char *text, const char *name, struct buf *out)
{
    bool found = false;
    for (size_t len; *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        found |= read_line(text, len, name, out);
    }
    return found;
}
