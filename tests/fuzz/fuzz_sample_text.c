/* Any text as a sample: an error that explains itself, or cells that have values they can have. */
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
    struct reading v[FEATURES];
    struct err e = { 0 };
    char *text = fuzz_text(data, size);
    int rc = sample_text_read(v, FEATURES, text, &e);
    if (rc < 0 && (rc != -22 || !e.text[0]))
        abort();
    for (int i = 0; rc == 0 && i < FEATURES; i++)
        check(&v[i]);
    free(text);
    return 0;
}
