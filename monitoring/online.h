/* Which CPUs are online, and whether they still are. */
#ifndef MONITORING_ONLINE_H
#define MONITORING_ONLINE_H

#include <stdbool.h>

#include "monitoring/sysfs_pmu.h"

enum { ONLINE_SIZE = 16 << 10 };

struct online {
    int fd;                  /* -1: there is no such file: all CPUs that there are, for ever */
    char known[ONLINE_SIZE]; /* as the file had it */
};

/* Nothing is known yet, so that the first look tells of a change. */
void online_open(struct online *o, const char *sysfs);
void online_close(struct online *o);

/* True: they are not those of the last look, and `out` has those that are. */
bool online_changed(struct online *o, struct sysfs_cpus *out);

/* The next look tells of a change again. */
void online_forget(struct online *o);

#endif
