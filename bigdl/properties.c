#include "bigdl/properties.h"

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
