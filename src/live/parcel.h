/* What is given to a launch on another host, file by file: named by their contents, so that no host is sent one twice (node/blobs.h). */
#ifndef LIVE_PARCEL_H
#define LIVE_PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/strv.h"

struct parcel_item {
    char *path; /* here; NULL: the manifest */
    char *name; /* there: below the launch's folder */
    char hash[SHA256_HEX_MAX];
    int64_t size;
    char mode; /* as a manifest has it */
};

struct parcel { /* zeroed: empty */
    struct parcel_item *v;
    size_t n, cap;
    struct buf manifest;
    char hash[SHA256_HEX_MAX]; /* of the manifest, once it is sealed */
};
void parcel_done(struct parcel *p);

/* Adds a file, or all that is in a folder, under this name, and reads it for its sum. Links to files are files; folders are not entered by a
 * link. `moved`: it is of use to one launch alone. -E2BIG: more files than a manifest may have; -EINVAL: its name cannot be sent; -errno. */
int parcel_add(struct parcel *p, const char *path, const char *name, bool moved, struct err *e);

/* The same as in another one, whose sums are known. -ENOMEM. */
int parcel_add_all(struct parcel *p, const struct parcel *of, struct err *e);

/* The files of an application: those that it names, and of its words those that are files below the folder in which it works, each by its
 * name below that folder, or else its last. */
int parcel_add_app(struct parcel *p, const char *folder, const struct strv *files, const struct strv *words,
                   struct err *e);

/* It is complete: its manifest is made. */
int parcel_seal(struct parcel *p, struct err *e);

/* Reads at most `n` bytes of an item; fewer at its end, or -errno. */
int64_t parcel_read(const struct parcel *p, const struct parcel_item *it, int64_t from, void *to, size_t n);

/* The items, with the manifest behind the last: NULL behind that. */
const struct parcel_item *parcel_at(const struct parcel *p, size_t i, struct parcel_item *manifest);

#endif
