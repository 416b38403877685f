/* A cgroup of a launch's own, so that its memory has a limit: what runs in it is counted together, and when it would take more the kernel
 * kills in it, and nowhere else. It is made beside what the launcher is in, where that is allowed:
 *
 *   v1  /sys/fs/cgroup/memory/OWN/pipetune-TAG, OWN by the line of /proc/self/cgroup that names `memory`
 *   v2  /sys/fs/cgroup/OWN/pipetune-TAG where OWN hands `memory` on (cgroup.subtree_control), else in the folder above, which is told to
 *       hand it on where it does not: a cgroup with processes in it cannot
 *
 * Swap is no way out of it. A launcher holds a lock on its cgroup's folder, which dies with it: who makes the next one in the same place
 * removes those that nobody holds and nothing runs in. */
#ifndef NODE_CGROUP_H
#define NODE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CGROUP_PATH_SIZE = 4096 };

struct cgroup {
    int fd; /* of its folder, locked; -1: there is none */
    bool unified;
    char path[CGROUP_PATH_SIZE];
};
#define CGROUP_NONE                                                                                                    \
    (struct cgroup)                                                                                                    \
    {                                                                                                                  \
        .fd = -1                                                                                                       \
    }

/* `proc` and `root` are "/proc" and "/sys/fs/cgroup", or what stands for them; *out is CGROUP_NONE. -ENOENT: there is no hierarchy with
 * memory, or it is not handed on; -errno: it must not be made there. */
int cgroup_open(struct cgroup *out, const char *proc, const char *root, const char *tag, uint64_t limit, struct err *e);

/* The caller goes into it, with what it starts from then on. 0 or -errno. Safe between fork() and exec(). */
int cgroup_enter(const struct cgroup *c);

/* How many processes the kernel has killed in it for want of memory. False: there is none, or it does not count. */
bool cgroup_kills(const struct cgroup *c, uint64_t *out);

/* Removes it; one in which something still runs stays for the next launcher. */
void cgroup_close(struct cgroup *c);

/* What the kernel's texts say. Pure. */

/* /proc/PID/cgroup: the path of the hierarchy that counts memory, *len bytes of `text`, and whether that is the unified one. NULL: none. */
const char *cgroup_of(const char *text, size_t *len, bool *unified);

/* memory.oom_control, memory.events: false where it does not say. */
bool cgroup_kills_of(const char *text, uint64_t *out);

#endif
