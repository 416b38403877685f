/* What was learnt: as `pipetune model show --json` tells it. */
#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "serve/page_parts.h"
#include "view/table.h"

enum { DEEP_MAX = 5, ROWS_MAX = 1000, COLUMNS_MAX = 16 };

static void put_value(struct buf *b, const json_t *j, int deep);

static void put_members(struct buf *b, const json_t *j, int deep)
{
    const char *key;
    json_t *value;
    buf_puts(b, "<table><tbody>\n");
    json_object_foreach((json_t *)(uintptr_t)j, key, value)
    {
        buf_puts(b, "<tr><th>");
        svg_escape(b, key);
        buf_puts(b, "</th><td>");
        put_value(b, value, deep - 1);
        buf_puts(b, "</td></tr>\n");
    }
    buf_puts(b, "</tbody></table>\n");
}

/* Objects of a list as rows; the first says the columns. */
static void put_rows(struct buf *b, const json_t *list, int deep)
{
    const char *keys[COLUMNS_MAX], *key;
    size_t n = 0, i;
    json_t *value, *row;
    buf_puts(b, "<div class=\"wide\"><table><thead><tr>");
    json_object_foreach(json_array_get(list, 0), key, value)
    {
        if (n == COLUMNS_MAX)
            break;
        keys[n++] = key;
        buf_puts(b, "<th>");
        svg_escape(b, key);
        buf_puts(b, "</th>");
    }
    buf_puts(b, "</tr></thead><tbody>\n");
    json_array_foreach((json_t *)(uintptr_t)list, i, row)
    {
        if (i == ROWS_MAX)
            break;
        buf_puts(b, "<tr>");
        for (size_t k = 0; k < n; k++) {
            buf_puts(b, "<td>");
            put_value(b, json_object_get(row, keys[k]), deep - 1);
            buf_puts(b, "</td>");
        }
        buf_puts(b, "</tr>\n");
    }
    buf_puts(b, "</tbody></table></div>\n");
}

static void put_words(struct buf *b, const json_t *list, int deep)
{
    size_t i;
    json_t *value;
    json_array_foreach((json_t *)(uintptr_t)list, i, value)
    {
        if (i == ROWS_MAX)
            break;
        buf_puts(b, i ? ", " : "");
        put_value(b, value, deep - 1);
    }
}

static void put_value(struct buf *b, const json_t *j, int deep)
{
    char digits[32];
    if (!j || json_is_null(j))
        buf_puts(b, "<span class=\"absent\">absent</span>");
    else if (json_is_string(j))
        svg_escape(b, json_string_value(j));
    else if (json_is_real(j))
        buf_puts(b, table_digits(json_real_value(j), digits));
    else if (deep == 0)
        buf_puts(b, "…");
    else if (json_is_object(j))
        put_members(b, j, deep);
    else if (json_is_object(json_array_get(j, 0)))
        put_rows(b, j, deep);
    else if (json_is_array(j))
        put_words(b, j, deep);
    else
        json_put(b, j, JSON_STYLE_COMPACT);
}

/* In the thread that may wait: the store is not at hand here. */
void page_model(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    struct http_request ask = { .last_event = NULL };
    struct http_answer said = { 0 };
    struct buf *b = &out->body;
    if (http_path_parse(&ask.path, "/api/model") < 0) {
        page_fail(out, -ENOMEM, &(struct err){ .text = "out of memory" });
        return;
    }
    api_answer(&p->api, &ask, &said);
    http_path_done(&ask.path);
    AUTO_JSON json_t *j = json_loadb(buf_text(&said.body), said.body.len, 0, NULL);
    page_head(p, b, q, &(struct page_about){ .title = "Model", .still = true });
    buf_puts(b, "<h1>Model</h1>\n<p class=\"dim\">What earlier studies taught: clusters of profiles, and the best "
                "settings known "
                "per class of jobs.</p>\n");
    const json_t *why = json_object_get(j, "error");
    if (why)
        svg_escape(b, json_string_value(why));
    else
        put_value(b, j, DEEP_MAX);
    page_foot(b);
    b->failed |= said.body.failed;
    buf_done(&said.body);
}
