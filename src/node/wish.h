/* What is wanted of the launches on this machine, and bringing it into force: which processes, how many CPUs, which limits.
 *
 * A launch that holds some of the slots here gets that share of the wanted CPUs, rounded, and at least one: in local mode all slots
 * are here, else its working processes say how many (members.h). Where it has none of them (a driver alone) nothing is narrowed.
 *
 * In local mode the driver leases the CPUs, and names them; else they are leased here. */
#ifndef NODE_WISH_H
#define NODE_WISH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/cpus.h"
#include "node/leased.h"
#include "node/limits.h"
#include "node/members.h"
#include "node/watch.h"

enum { WISH_CORES_MAX = 1 << 20 };

struct wish {
    int cores, slots; /* of the whole launch, over all nodes */
    bool local;
    struct cpus given; /* to take the CPUs from, in this order; n = 0: all that we may use, physical cores first */
    double limits[LIMIT_ROWS]; /* 0: not asked for */
};

struct wish_report { /* what is in force, read back */
    int processes, threads, slots;
    struct mask cpus;
    double limits[LIMIT_ROWS];  /* 0: not asked for */
    char shared[LEASE_WHO_MAX]; /* with whom some of the CPUs are; "": they are its own, or the driver's to know */
};

struct wishes { /* 1 MB, most of it never touched: for the heap */
    struct watch watch;
    struct members members; /* its tags number the wishes */
    struct wish of[MEMBERS_TAGS_MAX];
    int claims[MEMBERS_TAGS_MAX]; /* claim.h; -1, and 0 while nothing was wanted yet */
    struct leased leased;
    char shared[MEMBERS_TAGS_MAX][LEASE_WHO_MAX]; /* as it was reported last */
    struct mask may;                              /* CPUs that we may run on ourselves, when we started */
    struct cpus order;
    const char *sysfs;
};

/* Starts the watchdog. `out` is zeroed but for watch.pipe = -1; it keeps `sysfs`. -errno; wishes_close() is due on failure too. */
int wishes_open(struct wishes *out, const char *sysfs, struct err *e);

/* Gives everything back, also on the way out of an error, and lets the watchdog go. -errno: not all could be. */
int wishes_close(struct wishes *w, struct err *e);

/* Replaces what is wanted for the tag, and brings it into force; another helper that has the tag is told to end first. On failure (-EBUSY:
 * that one does not end; -EINVAL: no CPU of `given` may be used; -ENOSPC: too
 * many; -errno of limits and masks) the tag is as if released. */
int wishes_set(struct wishes *w, const char *tag, const struct wish *wanted, int64_t now_ms, struct wish_report *out,
               struct err *e);

/* Gives back what is in force for the tag; fine when nothing is. -errno: not all could be. */
int wishes_release(struct wishes *w, const char *tag, struct err *e);

/* Is any tag known? */
bool wishes_any(const struct wishes *w);

/* Follows the tag's processes, with nothing wanted of them: they are left as they are. Its number; -ENOSPC: too many; -errno. */
int wishes_watch(struct wishes *w, const char *tag, int64_t now_ms, struct err *e);

/* Is anything wanted of its processes? */
bool wishes_wants(const struct wishes *w, int tag);

/* Looks who came and who went, and with whom CPUs are shared now, and brings what is wanted into force again for those launches. Bit per tag: where there was something
 * to do. -errno: it could not look, or bring into force; `e` says nothing of a process that ended meanwhile. */
int wishes_look(struct wishes *w, int64_t now_ms, uint64_t *out_changed, struct err *e);
int wishes_follow(struct wishes *w, int tag, int64_t now_ms, struct wish_report *out, struct err *e);

#endif
