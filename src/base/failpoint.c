#include "base/failpoint.h"

#ifdef PIPETUNE_FAILPOINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>

void failpoint(const char *name)
{
    static unsigned passes;
    const char *want = getenv("PIPETUNE_FAILPOINT");
    size_t len = strlen(name);
    if (!want || strncmp(want, name, len) != 0 || (want[len] != '\0' && want[len] != ':'))
        return;
    unsigned nth = want[len] == ':' ? (unsigned)strtoul(want + len + 1, NULL, 10) : 1;
    if (++passes >= nth)
        (void)raise(SIGKILL);
}
#else
typedef int failpoint_unused; /* ISO C wants a declaration */
#endif
