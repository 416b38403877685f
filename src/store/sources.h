/* The application's own files as a study began with them, by content: what two studies have alike is kept once. As in store.h: each call is its
 * own transaction unless it stands between store_begin() and store_commit(). */
#ifndef STORE_SOURCES_H
#define STORE_SOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

struct store_source {
    int64_t study;
    const char *name;   /* as the application file names it; of others the path */
    const char *path;   /* where it was, absolute */
    const char *sha256; /* of its content */
    int mode;           /* its permissions */
    const void *bytes;  /* NULL: the content is not kept */
    size_t len;
};

/* -EEXIST: the study has one of that name; -ENOENT: there is no such study. */
int store_source_add(struct store *s, const struct store_source *row, struct err *e);

/* By name. */
int store_sources(struct store *s, int64_t study, int (*row)(void *ctx, const struct store_source *r), void *ctx,
                  struct err *e);

#endif
