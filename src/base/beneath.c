#include "base/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"

enum { PART_MAX = 255, DEPTH_MAX = 64, DELETE = 0x7f };

bool beneath_is_name(const char *name)
{
    size_t len = strlen(name), parts = 0;
    if (len == 0 || len > BENEATH_NAME_MAX)
        return false;
    for (const char *p = name;; p++) {
        size_t n = strcspn(p, "/");
        bool dots = (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.');
        if (n == 0 || n > PART_MAX || dots || ++parts > BENEATH_PARTS_MAX)
            return false;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)p[i] < ' ' || p[i] == DELETE)
                return false;
        p += n;
        if (!*p)
            return true;
    }
}

/* Goes down to the folder of the last part, which *last is; makes those on the way where `make`. The descriptor, or -errno. */
static int go_down(int dir, const char *name, bool make, const char **last)
{
    if (!beneath_is_name(name))
        return -EINVAL;
    AUTO_CLOSE int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    for (const char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        char part[PART_MAX + 1];
        (void)snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        if (make && mkdirat(at, part, 0700) < 0 && errno != EEXIST)
            return -errno;
        int next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int why = errno;
        (void)close(at);
        errno = why;
        at = next;
    }
    *last = name;
    return at < 0 ? -errno : MOVE_FD(at);
}

int beneath_open(int dir, const char *name, int flags)
{
    const char *last = NULL;
    int folder = go_down(dir, name, false, &last);
    if (folder < 0)
        return folder;
    /* Not waiting for whoever opens the other end, should it be a pipe. */
    int fd = openat(folder, last, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    int rc = fd < 0 ? -errno : fd;
    (void)close(folder);
    return rc;
}

int beneath_mkdirs(int dir, const char *name)
{
    const char *last = NULL;
    int folder = go_down(dir, name, true, &last);
    if (folder < 0)
        return folder;
    (void)close(folder);
    return 0;
}

static void empty(int dir, int depth)
{
    DIR *d = fdopendir(dir);
    if (!d)
        (void)close(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(dirfd(d), name, 0) == 0)
            continue;
        int fd = depth < DEPTH_MAX ? openat(dirfd(d), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (fd >= 0)
            empty(fd, depth + 1);
        (void)unlinkat(dirfd(d), name, AT_REMOVEDIR);
    }
    if (d)
        (void)closedir(d);
}

void beneath_empty(int dir)
{
    empty(dir, 0);
}
