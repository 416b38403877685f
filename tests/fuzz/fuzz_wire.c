/* A line of any bytes: an error that explains itself on one line, or members that can be said again and then read the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/wire.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void say_value(struct buf *b, const struct wire_member *m)
{
    switch (m->kind) {
    case WIRE_NULL: buf_puts(b, "null"); return;
    case WIRE_BOOL: buf_puts(b, m->truth ? "true" : "false"); return;
    case WIRE_NUMBER: num_put(b, m->number); return;
    case WIRE_STRING: wire_put_text(b, m->text); return;
    case WIRE_INTS: wire_put_ints(b, m->ints, m->n_ints); return;
    }
    abort();
}

static void say(struct buf *b, const struct wire *w)
{
    buf_putc(b, '{');
    for (size_t i = 0; i < w->n; i++) {
        if (wire_find(w, w->members[i].key) != &w->members[i])
            abort();
        if (i)
            buf_putc(b, ',');
        wire_put_text(b, w->members[i].key);
        buf_putc(b, ':');
        say_value(b, &w->members[i]);
    }
    buf_putc(b, '}');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wire w;
    struct err e = { 0 };
    char *line = fuzz_text((const char *)data, size);
    int rc = wire_parse(&w, line, size, &e);
    if (rc < 0 && (!e.text[0] || strchr(e.text, '\n') || e.code != rc || w.n))
        abort();
    if (rc == 0) {
        struct buf first = BUF_INIT, second = BUF_INIT;
        say(&first, &w);
        char *again = fuzz_text(buf_text(&first), first.len);
        /* Escapes may make it longer than a line may be; else it must be read. */
        if (wire_parse(&w, again, first.len, &e) < 0) {
            if (first.len <= WIRE_LINE_MAX)
                abort();
        } else {
            say(&second, &w);
            if (strcmp(buf_text(&first), buf_text(&second)) != 0)
                abort();
        }
        free(again);
        buf_done(&first);
        buf_done(&second);
    }
    free(line);
    return 0;
}
