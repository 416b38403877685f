/* Any text as a line of a manifest, and as what a host says of a file: a name that is taken stays below its folder. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "live/courier.h"
#include "node/blobs.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void stays_below(const char *name)
{
    if (*name == '/' || strcmp(name, "..") == 0 || strncmp(name, "../", 3) == 0 || strstr(name, "/../") ||
        strchr(name, '\n') || (strlen(name) > 2 && strcmp(name + strlen(name) - 3, "/..") == 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text((const char *)data, size);
    int64_t bytes = 0;
    struct blobs_item item;
    const char *name = courier_entry(text, &bytes);
    if (name) {
        stays_below(name);
        if (bytes < 0 || bytes > COURIER_MAX)
            abort();
    }
    if (blobs_item_read(&item, text, NULL) == 0) {
        stays_below(item.name);
        if (item.size < 0 || !blobs_is_hash(item.hash))
            abort();
    }
    free(text);
    return 0;
}
