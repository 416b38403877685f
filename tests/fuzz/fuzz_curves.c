/* Any bytes as a table of curves: no crash, sane curves, and what is written reads back as the same. */
#include <stdint.h>

#include "base/own.h"
#include "core/curves.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void put(const struct curves *c, struct buf *out)
{
    curves_put_head(out, c->metric, c->maximise, c->epochs, NULL);
    for (size_t i = 0; i < c->n; i++) {
        struct point p = space_point_at(&c->space, i);
        AUTO_JSON json_t *hyper = space_point_json(&c->space, &p);
        check(space_index(&c->space, &p) == i);
        curves_put(out, hyper, &c->v[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct curves c = { 0 }, back = { 0 };
    struct curves_scale scale;
    struct err e = { 0 };
    AUTO_FREE char *text = fuzz_text(data, size);
    if (curves_parse(&c, "fuzz", text, size, &e) < 0) {
        check(e.text[0] != '\0');
        return 0;
    }
    check(c.n > 0 && space_size(&c.space) == c.n && curves_scale(&c, &scale) == 0);
    for (size_t i = 0; i < c.n; i++)
        check(c.v[i].n >= 1 && c.v[i].n <= c.epochs);
    AUTO_BUF struct buf b = BUF_INIT;
    put(&c, &b);
    if (curves_parse(&back, "fuzz", buf_text(&b), b.len, &e) == 0) /* two spellings of a number may become one point */
        check(back.n <= c.n && back.epochs == c.epochs);
    curves_done(&back);
    curves_done(&c);
    return 0;
}
