/* Transactions of the loop's store that nobody waits for: a thread of its own begins and commits them, and waits for the disk. What is to
 * be written is handed over as a function that runs on the loop, within the transaction, when its turn has come; when it is on the disk,
 * that comes back as another call. All in the order of their coming; what comes while one is being committed goes into the next one together.
 * After a write that failed there is none any more, by nobody: what comes later may tell of what was lost with it.
 *
 * The connection is shared: a write by the calls of store.h alone waits until nothing of this is under way (store_set_gate()), and a read
 * while the thread is at the disk waits for that. */
#ifndef LIVE_WRITER_H
#define LIVE_WRITER_H

#include <uv.h>

#include "base/err.h"
#include "store/store.h"

struct writer;

struct write {
    /* Its rows, by calls of store.h; never uv_run(). A failure undoes the whole transaction, others' rows too. */
    int (*rows)(void *ctx, struct store *s, struct err *e);
    /* rc 0: they are committed; else `e` says why not. NULL: nobody asks. */
    void (*done)(void *ctx, int rc, const struct err *e);
    void *ctx;
};

/* Keeps loop and store. -ENOMEM, -EAGAIN: no thread. */
int writer_open(struct writer **out, uv_loop_t *loop, struct store *s, struct err *e);

/* Takes all that was handed over to the disk, waits for that, calls nobody back any more but the store's rider; the handle is closed by
 * the loop. NULL is fine. */
void writer_close(struct writer *w);

/* Hands it over; never calls anything from within. Without a writer (NULL), where no loop runs, it is written to `s` and called back at
 * once. -ENOMEM; then nothing was handed over. */
int writer_put(struct writer *w, struct store *s, struct write one, struct err *e);

/* There shall be a transaction soon, if only for the store's rider. */
void writer_want(struct writer *w);

/* Waits until all that was handed over is committed, or is not. Who is to be called back is, later. */
void writer_settle(struct writer *w);

/* The same, and calls them back: from outside of the loop, for who ends. */
void writer_finish(struct writer *w);

#endif
