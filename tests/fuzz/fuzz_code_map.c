/* Any text as /proc/PID/maps: every address is then somewhere or nowhere, and the same one for the same text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/code_map.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t addresses[] = { 0, 1, 0x401000, 0x7f0000000000, UINT64_MAX };
    struct code_map m = { 0 }, again = { 0 };
    char *text = fuzz_text(data, size);
    if (code_map_parse(&m, text) != 0 || code_map_parse(&again, text) != 0)
        abort();
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        int at = code_map_find(&m, addresses[i]);
        if (at < CODE_NOWHERE || at >= CODE_PLACES || at != code_map_find(&again, addresses[i]))
            abort();
    }
    code_map_done(&m);
    code_map_done(&again);
    free(text);
    return 0;
}
