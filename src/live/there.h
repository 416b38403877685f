/* Paths of this machine as a host has them: where its own software lies elsewhere, and what was sent to it. Pure. */
#ifndef LIVE_THERE_H
#define LIVE_THERE_H

#include <stddef.h>

#include "app/app.h"
#include "base/err.h"

struct there { /* zeroed: all is where it is here */
    struct there_path {
        char *here, *there;
    } * v;
    size_t n, cap;
};
void there_done(struct there *t);

/* This file or folder, and what is below it, is there at that path. What was added first counts. -ENOMEM. */
int there_add(struct there *t, const char *here, const char *there, struct err *e);

/* The word with each path that it begins with, or that stands in it behind one of "=:, ", as it is there: of those that fit the longest. */
void there_put(const struct there *t, const char *word, struct buf *out);

/* All words of the steps. -ENOMEM. */
int there_steps(const struct there *t, struct app_steps *steps, struct err *e);

#endif
