#include "node/cpus.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"

enum { BITS = 8 * (int)sizeof(unsigned long), LIST_MAX = 16 << 10 };

void mask_add(struct mask *m, int cpu)
{
    if (cpu >= 0 && cpu < CPUS_MAX)
        m->w[cpu / BITS] |= 1UL << (cpu % BITS);
}

bool mask_has(const struct mask *m, int cpu)
{
    return cpu >= 0 && cpu < CPUS_MAX && (m->w[cpu / BITS] >> (cpu % BITS) & 1);
}

bool mask_is(const struct mask *a, const struct mask *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void mask_join(struct mask *to, const struct mask *more)
{
    for (int i = 0; i < CPUS_WORDS; i++)
        to->w[i] |= more->w[i];
}

struct mask mask_of(const int *cpus, int n)
{
    struct mask m = { 0 };
    for (int i = 0; i < n; i++)
        mask_add(&m, cpus[i]);
    return m;
}

void mask_list(const struct mask *m, struct cpus *out)
{
    out->n = 0;
    for (int cpu = 0; cpu < CPUS_MAX; cpu++)
        if (mask_has(m, cpu))
            out->v[out->n++] = cpu;
}

int mask_read(int tid, struct mask *out)
{
    struct mask m = { 0 };
    if (sched_getaffinity(tid, sizeof m, (cpu_set_t *)(void *)m.w) < 0)
        return -errno;
    *out = m;
    return 0;
}

struct mask mask_parse(const char *text)
{
    struct mask m = { 0 };
    for (;;) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (end == text)
            return m;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++)
            mask_add(&m, (int)(cpu < 0 ? -1 : cpu));
        if (*end != ',')
            return m;
        text = end + 1;
    }
}

/* How many CPUs that we may use come before this one on its core. */
static int rank_of(const char *sysfs, const struct mask *may, int cpu)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/thread_siblings_list", sysfs, cpu);
    AUTO_BUF struct buf text = BUF_INIT;
    if (io_read_file(&text, path, LIST_MAX, NULL) < 0)
        return 0;
    struct mask core = mask_parse(buf_text(&text));
    int rank = 0;
    for (int other = 0; other < cpu; other++)
        rank += mask_has(&core, other) && mask_has(may, other);
    return rank;
}

void cpus_order(const char *sysfs, const struct mask *may, struct cpus *out)
{
    struct cpus all;
    int rank[CPUS_MAX], highest = 0;
    mask_list(may, &all);
    for (int i = 0; i < all.n; i++) {
        rank[i] = rank_of(sysfs, may, all.v[i]);
        highest = rank[i] > highest ? rank[i] : highest;
    }
    out->n = 0;
    for (int r = 0; r <= highest; r++)
        for (int i = 0; i < all.n; i++)
            if (rank[i] == r)
                out->v[out->n++] = all.v[i];
}
