/* Any text as what is shown: nothing of it commands a terminal, no line is wider than it may be, and as a cell of CSV it is one cell
 * of text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"
#include "core/csv.h"
#include "view/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WIDTH = 24 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void try_plain(const char *text, size_t len)
{
    AUTO_BUF struct buf line = BUF_INIT, again = BUF_INIT;
    utf8_put_plain(&line, text, len, UTF8_ONE_LINE);
    check(utf8_is_plain(buf_text(&line)));
    utf8_put_plain(&again, buf_text(&line), line.len, UTF8_ONE_LINE);
    check(strcmp(buf_text(&again), buf_text(&line)) == 0);
    for (size_t columns = 0; columns < 8; columns++) {
        size_t bytes = utf8_bytes(buf_text(&line), columns);
        AUTO_BUF struct buf part = BUF_INIT;
        buf_put(&part, buf_text(&line), bytes);
        check(bytes <= line.len && utf8_columns(buf_text(&part)) <= columns && utf8_is_plain(buf_text(&part)));
    }
}

/* As a string of JSON it means the same with escapes as without, and stays JSON. */
static void try_json(const char *text, size_t len)
{
    AUTO_BUF struct buf plain = BUF_INIT, shown = BUF_INIT;
    AUTO_JSON json_t *string = json_stringn(text, len);
    char *quoted = string && !memchr(text, '\0', len) ? json_text(string) : NULL;
    if (!quoted)
        return;
    utf8_put_json(&shown, quoted, strlen(quoted));
    check(utf8_is_plain(buf_text(&shown)));
    AUTO_JSON json_t *read = json_loadb(shown.data, shown.len, JSON_DECODE_ANY, NULL);
    check(read && json_equal(read, string));
    free(quoted);
}

static void check_lines(const char *text)
{
    for (size_t len; *text; text += len + (text[len] == '\n')) {
        AUTO_BUF struct buf line = BUF_INIT;
        len = strcspn(text, "\n");
        buf_put(&line, text, len);
        check(utf8_columns(buf_text(&line)) <= WIDTH && utf8_is_plain(buf_text(&line)));
    }
}

/* Cells end with NUL; one that begins with # is a note. */
static void try_table(const char *text, size_t len)
{
    static const char *const heads[] = { "a", ">number", "!kept", "text", NULL };
    struct table t;
    AUTO_BUF struct buf b = BUF_INIT;
    table_init(&t, heads);
    for (size_t at = 0; at < len && t.n < 64; at += strlen(text + at) + 1) {
        if (text[at] == '#')
            table_note(&t, text + at + 1);
        else
            table_cell(&t, text + at);
    }
    table_put(&t, &b, WIDTH);
    if (t.n >= 2 * t.columns) /* the heads alone are as wide as they are */
        check_lines(buf_text(&b));
    table_done(&t);
}

static void try_csv(const char *text)
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct csv c;
    csv_put_text(&b, text);
    check(!strpbrk(buf_text(&b), "\r") && !strchr("=+-@", *buf_text(&b) ? *buf_text(&b) : 'x'));
    if (strchr(buf_text(&b), '\n') || csv_init(&c, b.data ? b.data : "", b.len) < 0)
        return; /* what reads here knows one line a row */
    if (csv_next(&c))
        check(c.n == 1);
    csv_done(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    check(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    try_plain(text, size);
    try_json(text, size);
    try_table(text, size);
    try_csv(text);
    free(text);
    return 0;
}
