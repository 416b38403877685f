#include "base/failpoint.h"

#ifdef PIPETUNE_FAILPOINTS
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
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

/* In one write: others append to it, too. */
static void tell(const char *name)
{
    const char *path = getenv("PIPETUNE_STORY");
    char line[80];
    int n = path ? snprintf(line, sizeof line, "%s\n", name) : 0;
    int fd = n > 0 ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    (void)!write(fd, line, (size_t)n);
    (void)close(fd);
}

void failpoint(const char *name)
{
    static unsigned passes;
    tell(name);
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
