#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "cmd/look.h"
#include "cmd/show_parts.h"

void show_put_plain(struct buf *b, const char *text)
{
    if (text)
        utf8_put_plain(b, text, strlen(text), UTF8_ONE_LINE);
}

void show_put_scalar(struct buf *b, const json_t *j)
{
    if (json_is_string(j))
        show_put_plain(b, json_string_value(j));
    else if (json_is_real(j))
        num_put(b, json_real_value(j));
    else
        json_put(b, j, JSON_STYLE_COMPACT);
}

void show_put_short(struct buf *b, const json_t *j)
{
    char digits[32];
    if (json_is_real(j))
        buf_puts(b, table_digits(json_real_value(j), digits));
    else
        show_put_scalar(b, j);
}

void show_put_members(struct buf *b, const json_t *object)
{
    const char *key, *sep = "";
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        buf_printf(b, "%s%s ", sep, key);
        show_put_scalar(b, value);
        sep = ", ";
    }
}

static void put_nested(struct buf *b, const json_t *j)
{
    size_t i;
    json_t *value;
    if (json_is_object(j)) {
        buf_putc(b, '(');
        show_put_short_members(b, j);
        buf_putc(b, ')');
    } else if (json_array_size(j) > 0) {
        json_array_foreach((json_t *)j, i, value)
        {
            buf_puts(b, i ? " " : "");
            put_nested(b, value);
        }
    } else if (!j || json_is_null(j) || json_is_array(j)) {
        buf_putc(b, '-');
    } else {
        show_put_short(b, j);
    }
}

void show_put_short_members(struct buf *b, const json_t *j)
{
    const char *key, *sep = "";
    json_t *value;
    if (!json_is_object(j)) {
        put_nested(b, j);
        return;
    }
    json_object_foreach((json_t *)j, key, value)
    {
        buf_puts(b, sep);
        show_put_plain(b, key);
        buf_putc(b, ' ');
        put_nested(b, value);
        sep = ", ";
    }
}

void show_put_effective(struct buf *b, const json_t *effective, const json_t *requested)
{
    show_put_scalar(b, effective);
    if (!requested || json_equal(effective, requested))
        return;
    AUTO_BUF struct buf got = BUF_INIT;
    AUTO_BUF struct buf want = BUF_INIT;
    show_put_scalar(&got, effective);
    show_put_scalar(&want, requested);
    if (strcmp(buf_text(&got), buf_text(&want)) != 0)
        buf_printf(b, " [%s]", buf_text(&want));
}

void show_put_system(struct buf *b, const json_t *effective, const json_t *requested)
{
    const char *key, *sep = "";
    json_t *value;
    json_object_foreach((json_t *)effective, key, value)
    {
        buf_printf(b, "%s%s ", sep, key);
        show_put_effective(b, value, json_object_get(requested, key));
        sep = ", ";
    }
}

void show_put_figure(struct buf *b, const char *name, double x)
{
    char digits[32];
    buf_printf(b, "%s %s", name, table_digits(x, digits));
}

void show_put_when(struct buf *b, int64_t ms)
{
    char text[32] = "?";
    (void)look_time(text, ms, "%Y-%m-%d %H:%M:%S"); /* stays "?" */
    buf_puts(b, text);
}
