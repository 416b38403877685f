/* Any text as each file of /proc that is read: refused with the output untouched, or numbers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/procs_text.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNTOUCHED = 0x5a };

static int is_untouched(const void *what, size_t size)
{
    const unsigned char *p = what;
    for (size_t i = 0; i < size; i++)
        if (p[i] != UNTOUCHED)
            return 0;
    return 1;
}

#define TRY(type, parse)                                                                                               \
    do {                                                                                                               \
        struct type out;                                                                                               \
        memset(&out, UNTOUCHED, sizeof out);                                                                           \
        int rc = parse(&out, text);                                                                                    \
        if (rc != 0 && (rc != -22 || !is_untouched(&out, sizeof out)))                                                 \
            abort();                                                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    TRY(procs_stat, procs_text_stat);
    TRY(procs_schedstat, procs_text_schedstat);
    TRY(procs_io, procs_text_io);
    free(text);
    return 0;
}
