/* A list of names, a line's end, and a sample in base 64: an error that explains itself, or values that are written again and then read
 * the same; and base 64 that is read is what would be written. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "monitoring/sample_blob.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void use_values(const struct feature_list *list, const struct buf *blob)
{
    struct reading v[FEATURES], again[FEATURES];
    struct feature_list ours;
    struct buf names = BUF_INIT, second = BUF_INIT;
    struct err e = { 0 };
    int rc = sample_blob_read(v, list, blob->data, blob->len, &e);
    check(rc == 0 || (rc == -22 && e.text[0]));
    feature_list_put(&names);
    check(feature_list_read(&ours, buf_text(&names), &e) == 0 && ours.n == FEATURES);
    if (rc == 0) {
        for (int i = 0; i < FEATURES; i++) {
            bool counted = v[i].state == READING_OK || v[i].state == READING_MULTIPLEXED;
            check(counted ? isfinite(v[i].value) && v[i].value >= 0 && v[i].ratio > 0 && v[i].ratio <= 1
                          : isnan(v[i].value));
        }
        sample_blob_put(&second, v, FEATURES);
        check(sample_blob_read(again, &ours, second.data, second.len, &e) == 0);
        for (int i = 0; i < FEATURES; i++)
            check(v[i].state == again[i].state && (isnan(v[i].value) || v[i].value == again[i].value) &&
                  (isnan(v[i].value) || v[i].ratio == again[i].ratio));
    }
    buf_done(&names);
    buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *line = strchr(text, '\n');
    struct feature_list list = { .n = 0 };
    struct buf blob = BUF_INIT, again = BUF_INIT;
    struct err e = { 0 };
    if (line)
        *line = '\0';
    int rc = feature_list_read(&list, text, &e);
    check(rc == 0 ? list.n > 0 : rc == -22 && e.text[0]);
    if (line && base64_read(&blob, line + 1) == 0) {
        base64_put(&again, blob.data, blob.len);
        check(strcmp(buf_text(&again), line + 1) == 0);
        use_values(&list, &blob);
    }
    buf_done(&blob);
    buf_done(&again);
    free(text);
    return 0;
}
