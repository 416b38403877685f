/* A line of any bytes: an error that explains itself, or a point that, written, reads as the same point and is written the same. The
 * first byte also makes a name and a text of the rest, and whatever they are, the line written of them is read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/line.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* What was written is read again, without its newline. */
static void read_back(const struct buf *b, struct line_point *pt)
{
    struct err e = { 0 };
    check(b->len > 0 && b->data[b->len - 1] == '\n');
    char *line = fuzz_text(b->data, b->len - 1);
    check(line_parse(pt, line, b->len - 1, &e) == 0 && pt->stamped);
    struct buf again = BUF_INIT;
    check(line_put_point(&again, pt, NULL, 0, pt->stamp, LINE_NS) == 1);
    check(again.len == b->len && memcmp(again.data, b->data, b->len) == 0);
    buf_done(&again);
    free(line);
}

static void check_read(const uint8_t *data, size_t size)
{
    static struct line_point pt;
    struct err e = { 0 };
    char *line = fuzz_text(data, size);
    int rc = line_parse(&pt, line, size, &e);
    check(rc == 0 || (rc == -22 && e.text[0] && !strchr(e.text, '\n')));
    struct buf b = BUF_INIT;
    /* Escapes may make it longer than a line may be; two names may become one when a backslash becomes a slash. */
    if (rc == 0 && !memchr(data, '\\', size) && line_put_point(&b, &pt, NULL, 0, pt.stamp, LINE_NS) == 1)
        read_back(&b, &pt);
    buf_done(&b);
    free(line);
}

static void check_written(const uint8_t *data, size_t size)
{
    static struct line_point pt;
    size_t cut = size ? data[0] % size : 0;
    char *name = fuzz_text(data, cut), *text = fuzz_text(data + cut, size - cut);
    struct buf b = BUF_INIT;
    struct line l = line_begin(&b, name, LINE_NS);
    line_tag(&l, text, name);
    line_tag(&l, "plain", text);
    line_text(&l, text, name);
    line_text(&l, "plain", text);
    int rc = line_end(&l, 5);
    check(rc == 1 || (rc == -27 && b.len == 0));
    check(rc != 1 || memchr(b.data, '\n', b.len) == b.data + b.len - 1); /* one line */
    struct err e;
    char *line = fuzz_text(buf_text(&b), b.len ? b.len - 1 : 0);
    /* Bytes that are no UTF-8, and keys that are the same, are the caller's. */
    if (rc == 1 && line_parse(&pt, line, b.len - 1, &e) == 0)
        read_back(&b, &pt);
    free(line);
    buf_done(&b);
    free(name);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_read(data, size);
    check_written(data, size);
    return 0;
}
