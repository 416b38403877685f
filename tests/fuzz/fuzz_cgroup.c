/* Any text as what the kernel says of cgroups: a path that lies within the text's line, a count, or nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "node/cgroup.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text((const char *)data, size);
    size_t len = 0;
    bool unified = false;
    uint64_t kills = 0;
    const char *path = cgroup_of(text, &len, &unified);
    if (path && (path < text || *path != '/' || path + len > text + strlen(text) || memchr(path, '\n', len)))
        abort();
    (void)cgroup_kills_of(text, &kills);
    free(text);
    return 0;
}
