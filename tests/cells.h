/* Values of a sample as text, as tests write and compare them: monitoring/sample_text.h. */
#ifndef TESTS_CELLS_H
#define TESTS_CELLS_H

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "monitoring/features.h"
#include "monitoring/sample_text.h"

/* Until the next call. */
static inline const struct reading *cells_of(const char *text)
{
    static struct reading v[FEATURES];
    struct err e = { 0 };
    if (sample_text_read(v, FEATURES, text, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        abort();
    }
    return v;
}

/* Without those behind the last that is not absent. */
static inline void cells_put(struct buf *to, const struct reading *v)
{
    size_t n = FEATURES;
    while (n > 0 && v[n - 1].state == READING_ABSENT)
        n--;
    for (size_t i = 0; i < n; i++) {
        buf_puts(to, i ? " " : "");
        if (v[i].state == READING_OK)
            buf_printf(to, "%.17g", v[i].value);
        else if (v[i].state == READING_MULTIPLEXED)
            buf_printf(to, "%.17g/%.9g", v[i].value, (double)v[i].ratio);
        else
            buf_putc(to, v[i].state == READING_ABSENT ? '-' : "nudf"[v[i].state - READING_NOT_COUNTED]);
    }
}

#endif
