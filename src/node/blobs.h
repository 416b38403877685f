/* Files that drivers have sent, by what is in them: each is sent once, whoever needs it, and a launch's folder is made of them.
 *
 *   ROOT/files/HASH            one, HASH its SHA-256 in 64 hex digits; whole, since it was renamed to that when its sum was right
 *   ROOT/files/HASH.PID.part   one that a helper is being sent
 *
 * A manifest is such a file, too: a line for each file of a folder, "HASH SIZE MODE NAME\n", where MODE is 'x' for a program, 'm' for a file
 * that this launch alone needs and that is moved out of ROOT/files, else '-'; NAME is below the launch's folder and begins with "work/" or
 * "resume/" (base/beneath.h). */
#ifndef NODE_BLOBS_H
#define NODE_BLOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"

enum { BLOBS_MANIFEST_MAX = 1 << 20, BLOBS_FILES_MAX = 4096 };
static const int64_t BLOBS_SIZE_MAX = (int64_t)4 << 30; /* of a file */

struct blobs {                 /* zeroed: nothing is being sent */
    char hash[SHA256_HEX_MAX]; /* of the file that is; "": none */
    int fd;
    int64_t at, size;
    struct sha256 sum;
};
void blobs_done(struct blobs *b, const char *root);

/* 64 of 0-9 a-f */
bool blobs_is_hash(const char *text);

/* Is it here, whole? */
bool blobs_have(const char *root, const char *hash, int64_t size);

/* The file's bytes from `at` on, one call behind the other; `at` 0 begins one, in the place of another that was not sent to its end. 1: it
 * is here now; 0: more is to come. -EINVAL: these are not its next bytes, or its sum is another; -ENOSPC; -errno. */
int blobs_put(struct blobs *b, const char *root, const char *hash, int64_t size, int64_t at, const void *bytes,
              size_t n, struct err *e);

/* A line of a manifest without its end, which is changed. -EINVAL: it is none. */
struct blobs_item {
    char hash[SHA256_HEX_MAX];
    int64_t size;
    char mode;
    const char *name; /* of the line */
};
int blobs_item_read(struct blobs_item *out, char *line, struct err *e);

/* Makes the files of the manifest below the folder `path`. -ENOENT: one was not sent; -EINVAL: it is none; -ENOSPC; -errno. */
int blobs_unpack(const char *root, const char *manifest, const char *path, struct err *e);

/* -ENOSPC: the file system of `path` has fewer than so many bytes left. */
int blobs_room(const char *path, int64_t bytes, struct err *e);

#endif
