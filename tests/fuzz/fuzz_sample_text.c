/* Any text as a sample: an error that explains itself, or cells that are written again and then read the same. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/features.h"
#include "monitoring/sample_text.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct reading *r)
{
    int counted = r->state == READING_OK || r->state == READING_MULTIPLEXED;
    if (counted ? !(isfinite(r->value) && r->value >= 0 && r->ratio > 0 && r->ratio <= 1) : !isnan(r->value))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading v[FEATURES], again[FEATURES];
    struct buf first = BUF_INIT, second = BUF_INIT;
    struct err e = { 0 };
    char *text = fuzz_text(data, size);
    int rc = sample_read(v, FEATURES, text, &e);
    if (rc < 0 && (rc != -22 || !e.text[0]))
        abort();
    if (rc == 0) {
        for (int i = 0; i < FEATURES; i++)
            check(&v[i]);
        sample_put(&first, v, FEATURES);
        if (sample_read(again, FEATURES, buf_text(&first), &e) < 0)
            abort();
        sample_put(&second, again, FEATURES);
        if (strcmp(buf_text(&first), buf_text(&second)) != 0)
            abort();
    }
    buf_done(&first);
    buf_done(&second);
    free(text);
    return 0;
}
