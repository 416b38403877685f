#include "monitoring/online.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void online_open(struct online *o, const char *sysfs)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/devices/system/cpu/online", sysfs);
    o->fd = open(path, O_RDONLY | O_CLOEXEC);
    online_forget(o);
}

void online_forget(struct online *o)
{
    o->known[0] = '\0';
}

void online_close(struct online *o)
{
    if (o->fd >= 0)
        (void)close(o->fd);
    o->fd = -1;
}

bool online_changed(struct online *o, struct sysfs_cpus *out)
{
    char text[ONLINE_SIZE];
    ssize_t n = o->fd >= 0 ? pread(o->fd, text, sizeof text - 1, 0) : -1;
    if (n > 0)
        text[n] = '\0';
    else
        (void)snprintf(text, sizeof text, "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
    if (strcmp(text, o->known) == 0 || sysfs_cpus_parse(out, text) < 0)
        return false;
    memcpy(o->known, text, strlen(text) + 1);
    return true;
}
