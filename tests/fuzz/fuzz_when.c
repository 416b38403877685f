/* Times of any bytes: refused with a reason, or a moment. */
#include <stdint.h>
#include <stdlib.h>

#include "serve/when.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct err e = { 0 };
    int64_t at = 0;
    if (when_parse(text, 1795168800000, &at, &e) < 0 && !e.text[0])
        abort();
    free(text);
    return 0;
}
