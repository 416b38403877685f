#include "base/failpoint.h"

#ifdef PIPETUNE_FAILPOINTS
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One byte for each that was struck. */
static bool is_spared(void)
{
    enum { MOST = 3 };
    const char *path = getenv("PIPETUNE_FAILPOINT_FEW");
    struct stat st;
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return false;
    bool spared = fstat(fd, &st) == 0 && st.st_size >= MOST;
    if (!spared)
        (void)!write(fd, "x", 1);
    (void)close(fd);
    return spared;
}

void failpoint(const char *name)
{
    static unsigned passes;
    const char *want = getenv("PIPETUNE_FAILPOINT");
    size_t len = strlen(name);
    if (!want || strncmp(want, name, len) != 0 || (want[len] != '\0' && want[len] != ':'))
        return;
    unsigned nth = want[len] == ':' ? (unsigned)strtoul(want + len + 1, NULL, 10) : 1;
    if (++passes >= nth && !is_spared())
        (void)raise(SIGKILL);
}
#else
typedef int failpoint_unused; /* ISO C wants a declaration */
#endif
