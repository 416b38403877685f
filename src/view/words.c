#include "view/words.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "base/utf8.h"
#include "view/table.h"

void words_put_plain(struct buf *b, const char *text)
{
    if (text)
        utf8_put_plain(b, text, strlen(text), UTF8_ONE_LINE);
}

void words_put_scalar(struct buf *b, const json_t *j)
{
    if (json_is_string(j))
        words_put_plain(b, json_string_value(j));
    else if (json_is_real(j))
        num_put(b, json_real_value(j));
    else
        json_put(b, j, JSON_STYLE_COMPACT);
}

void words_put_short(struct buf *b, const json_t *j)
{
    char digits[32];
    if (json_is_real(j))
        buf_puts(b, table_digits(json_real_value(j), digits));
    else
        words_put_scalar(b, j);
}

void words_put_members(struct buf *b, const json_t *object)
{
    const char *key, *sep = "";
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        buf_printf(b, "%s%s ", sep, key);
        words_put_scalar(b, value);
        sep = ", ";
    }
}

static void put_nested(struct buf *b, const json_t *j)
{
    size_t i;
    json_t *value;
    if (json_is_object(j)) {
        buf_putc(b, '(');
        words_put_short_members(b, j);
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
        words_put_short(b, j);
    }
}

void words_put_short_members(struct buf *b, const json_t *j)
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
        words_put_plain(b, key);
        buf_putc(b, ' ');
        put_nested(b, value);
        sep = ", ";
    }
}

void words_put_effective(struct buf *b, const json_t *effective, const json_t *requested)
{
    words_put_scalar(b, effective);
    if (!requested || json_equal(effective, requested))
        return;
    AUTO_BUF struct buf got = BUF_INIT;
    AUTO_BUF struct buf want = BUF_INIT;
    words_put_scalar(&got, effective);
    words_put_scalar(&want, requested);
    if (strcmp(buf_text(&got), buf_text(&want)) != 0)
        buf_printf(b, " [%s]", buf_text(&want));
}

void words_put_system(struct buf *b, const json_t *effective, const json_t *requested)
{
    const char *key, *sep = "";
    json_t *value;
    json_object_foreach((json_t *)effective, key, value)
    {
        buf_printf(b, "%s%s ", sep, key);
        words_put_effective(b, value, json_object_get(requested, key));
        sep = ", ";
    }
}

void words_put_figure(struct buf *b, const char *name, double x)
{
    char digits[32];
    buf_printf(b, "%s %s", name, table_digits(x, digits));
}

void words_put_when(struct buf *b, int64_t ms)
{
    char text[32] = "?";
    (void)words_time(text, ms, "%Y-%m-%d %H:%M:%S"); /* stays "?" */
    buf_puts(b, text);
}

void words_put_counts(struct buf *b, const struct store_summary *totals)
{
    buf_printf(b, "%d done, %d failed", totals->done, totals->failed);
    if (totals->stopped)
        buf_printf(b, ", %d stopped", totals->stopped);
    if (totals->paused)
        buf_printf(b, ", %d paused", totals->paused);
}

void words_put_note(struct buf *b, const char *text)
{
    buf_puts(b, b->len ? "; " : "");
    words_put_plain(b, text);
}

bool words_time(char out[32], int64_t ms, const char *format)
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    if (!localtime_r(&at, &tm))
        return false;
    (void)strftime(out, 32, format, &tm);
    return true;
}

/* --- what is stored --- */

json_t *words_object(const char *text)
{
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    if (json_is_object(j))
        return j;
    json_decref(j);
    return json_object();
}

json_t *words_json(const char *text)
{
    json_t *j = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    return j ? j : json_null();
}

json_t *words_text(const char *text)
{
    return text ? json_bytes(text) : json_null();
}

json_t *words_time_or_null(int64_t ms)
{
    return ms ? json_integer(ms) : json_null();
}

json_t *words_best(int trial, double accuracy)
{
    return trial ? json_pack("{s:i, s:o}", "trial", trial, "accuracy", json_num(accuracy)) : json_null();
}
