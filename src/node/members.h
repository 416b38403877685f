/* Which processes belong to which launch: those of our own uid that carry its tag (base/proc.h), and all their descendants. A
 * process once known to belong does so for life. Left out are pipetune-node's own (the launcher does no work).
 *
 * Looking is cheap enough for twice a second: one pass over the names in /proc says who is new, by pid and inode (a pid that is
 * used again has another inode), and only the new are read: their arguments and environment. Since fork comes before exec, a
 * process is read again at each look while it is young, and every OLD_MS after. */
#ifndef NODE_MEMBERS_H
#define NODE_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { MEMBERS_TAGS_MAX = 64, MEMBERS_TAG_LEN = 64, MEMBERS_NO_TAG = -1 };

struct member { /* one process; ours, or anyone's that was looked at and is none of ours */
    pid_t pid, parent;
    ino_t inode;
    uint64_t start;
    int64_t first_ms, looked_ms;
    int tag;     /* index, or MEMBERS_NO_TAG */
    bool counts; /* alive, of our uid, and not ourselves */
    bool ours;   /* pipetune-node itself: belongs, and is left alone */
    int cores;   /* of one that works: how many slots it has; 0 for any other */
};

/* Which processes of a launch work, as the driver says of its application: those with a word in their command line that begins and ends so,
 * and the word behind `option` is how many slots each has. Zeroed: all of a launch's processes work. */
struct members_worker {
    char begins[MEMBERS_TAG_LEN + 1], ends[MEMBERS_TAG_LEN + 1], option[MEMBERS_TAG_LEN + 1];
};

struct members {
    struct members_worker worker;
    struct member *v; /* sorted by pid; owned */
    size_t n;
    char tags[MEMBERS_TAGS_MAX][MEMBERS_TAG_LEN + 1]; /* "" is free */
    uint64_t changed; /* bit per tag: a process of it came, went, or began to work; for the reader to clear */
};

void members_done(struct members *m);

/* 1 to 64 of A-Z a-z 0-9 _ - */
bool members_tag_is_valid(const char *tag);

/* The index of a tag, known or new (its processes are found by the next look); -ENOSPC: too many at once. */
int members_add_tag(struct members *m, const char *tag);
int members_find_tag(const struct members *m, const char *tag); /* or MEMBERS_NO_TAG */
void members_drop_tag(struct members *m, int tag);

/* Brings the list up to date. `now_ms` only goes forward. -errno: the list is as it was. */
int members_look(struct members *m, int64_t now_ms, struct err *e);

/* Does it do work under this tag? */
static inline bool members_has(const struct member *p, int tag)
{
    return p->tag == tag && !p->ours;
}

/* Reads "BEGINS*ENDS", each 1 to 64 of A-Z a-z 0-9 . _ $ -, and an option's name of the same. -EINVAL: it is nothing of the kind. */
int members_worker_words(struct members_worker *out, const char *pattern);
int members_worker_option(struct members_worker *out, const char *option);

/* The slots of a process with these arguments, NUL-separated as in /proc/PID/cmdline; 0 when it does not work. Pure, as is the next. */
int members_worker_cores(const struct members_worker *w, const char *args, size_t len);
bool members_args_are_ours(const char *args, size_t len);

#endif
