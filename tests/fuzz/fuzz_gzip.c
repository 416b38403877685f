/* Any bytes as a gzip file: no crash, no more than the limit, and a reason where they are none. */
#include <errno.h>
#include <stdint.h>

#include "base/gzip.h"
#include "base/own.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_BUF struct buf out = BUF_INIT;
    AUTO_FREE char *bytes = fuzz_text(data, size);
    struct err e = { 0 };
    int rc = gzip_unpack(&out, "fuzz", bytes, size, 1 << 20, &e);
    if (rc < 0 ? e.text[0] == '\0' : out.len > 1 << 20)
        abort();
    return 0;
}
