/* What is heard of a launch elsewhere, as files of the trial's folder here, in which all that reads the trial finds them:
 *
 *   DIR/heard   what its launcher has in a file of that name: the same bytes at the same offsets
 *   DIR/log     the same, for people, behind what earlier attempts printed; when it has grown past half of what a log may take, it becomes
 *               log.1, as a launcher has it (node/log_files.h). Touched when its log has grown there without anything to be heard
 *   DIR/exit    its note, with the time of its end on this machine's clock */
#ifndef LIVE_MIRROR_H
#define LIVE_MIRROR_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { MIRROR_HEARD_MAX = 256 << 20 }; /* bytes of `heard` that nothing was accounted of: no host fills the disk here */

struct mirror {
    char *dir;
    int heard, log;
    int64_t log_max; /* bytes of DIR/log */
    uint64_t accounted;
};
#define MIRROR_CLOSED                                                                                                  \
    {                                                                                                                  \
        .heard = -1, .log = -1                                                                                         \
    }

/* `from`: bytes of `heard` that are here already. Copies `dir`. -EPERM, -errno. */
int mirror_open(struct mirror *m, const char *dir, int64_t log_mb, uint64_t *out_from, struct err *e);
void mirror_done(struct mirror *m);

/* Bytes of `heard` from `at` on; n 0: its log has grown. -EFBIG: more than MIRROR_HEARD_MAX is not accounted; -errno. */
int mirror_take(struct mirror *m, uint64_t at, const char *bytes, size_t n, struct err *e);

/* Its note; `ago_ms`: how long ago it was written, -1: not known. */
int mirror_end(struct mirror *m, const char *note, int64_t ago_ms, struct err *e);

#endif
