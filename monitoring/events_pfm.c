#include <errno.h>
#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/events_parts.h"

int event_pfm_begin(void)
{
    return pfm_initialize() == PFM_SUCCESS ? 0 : -ENOSYS;
}

void event_pfm_end(void)
{
    pfm_terminate();
}

int event_pfm_encode(const char *name, struct event_attr *out)
{
    char full[64];
    int n = snprintf(full, sizeof full, "perf::%s", name);
    if (n < 0 || (size_t)n >= sizeof full || strpbrk(name, ":,/"))
        return -ENOENT;
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    char *text = NULL;
    pfm_perf_encode_arg_t arg = { .attr = &attr, .fstr = &text, .size = sizeof arg };
    /* Both levels: with PLM3 alone it would leave the kernel's part out. */
    int rc = pfm_get_os_event_encoding(full, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg);
    free(text); /* malloc'ed by libpfm */
    if (rc != PFM_SUCCESS)
        return -ENOENT;
    *out = (struct event_attr){ attr.type, attr.config, attr.config1, attr.config2, true };
    return 0;
}
