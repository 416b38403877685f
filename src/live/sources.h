/* The application's own files as a study begins with them, by content, so that what changed between two studies can be told, and one of them
 * begun again. Its own are: files that the application file names, in whatever member; those whose sums are kept (app.h, files()); and of a Python
 * program the other .py files in its folder. Their content is kept up to SOURCES_FILE_MAX each and SOURCES_ALL_MAX together; beyond that (to SOURCES_SUM_MAX), and of what
 * only its owner may read, or a file of properties (they may be secrets), only the sum is. */
#ifndef LIVE_SOURCES_H
#define LIVE_SOURCES_H

#include "live/plan.h"
#include "store/sources.h"

enum { SOURCES_FILE_MAX = 1 << 20, SOURCES_ALL_MAX = 16 << 20, SOURCES_MOST = 256, SOURCES_SUM_MAX = 64 << 20 };

struct source {
    char *name, *path; /* owned; as store_source */
    char sha256[65];   /* "": not known; it is not kept */
    int mode;
    void *bytes; /* owned; NULL: not kept */
    size_t len;
};

struct sources {
    struct source *v;
    size_t n, cap;
    size_t bytes; /* of content */
    bool secret;  /* private: what is named now may be one */
};

/* What cannot be read is left out. -ENOMEM, unexplained. */
int sources_collect(struct sources *out, const struct plan *p);
void sources_done(struct sources *s);

/* In the caller's transaction. */
int sources_keep(const struct sources *s, struct store *store, int64_t study, struct err *e);

#endif
