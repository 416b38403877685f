/* Any bytes as the kernel's ring, from any place in it to any other: reading ends, and all is given back. */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitoring/perf_ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RING = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t ends[2] = { 0 }; /* tail, head */
    size_t page = (size_t)sysconf(_SC_PAGESIZE), head = size < sizeof ends ? size : sizeof ends;
    char *memory = calloc(1, page + RING);
    if (!memory)
        abort();
    struct perf_event_mmap_page *kernels = (void *)memory;
    struct perf_ring r = { .memory = memory, .size = RING };
    if (head)
        memcpy(ends, data, head);
    if (size - head)
        memcpy(memory + page, data + head, size - head < RING ? size - head : RING);
    kernels->data_tail = ends[0];
    kernels->data_head = ends[1];
    struct perf_ring_record got;
    size_t n = 0;
    perf_ring_begin(&r);
    while (perf_ring_next(&r, &got))
        if (++n > RING / sizeof(struct perf_event_header) + 1 || got.kind > PERF_RING_LOST)
            abort();
    perf_ring_end(&r);
    if (kernels->data_tail != ends[1])
        abort();
    free(memory);
    return 0;
}
