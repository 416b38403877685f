/* When an attempt's start-up and epochs were, on the driver's clock, from what is stored of them. Pure.
 *
 * The stamps of a driver's log have no zone: what the attempt's own start tells is their distance, and zones differ from UTC by
 * quarters of an hour. */
#ifndef STORE_TIMES_H
#define STORE_TIMES_H

#include <stddef.h>

#include "store/store.h"

/* From the submission to the first training step, in seconds; by the log's stamps where it was not watched. NAN: neither knows.
 * `epochs` are all of the trial, in their order. */
double times_startup_s(const struct store_attempt *a, const struct store_epoch *epochs, size_t n);

/* A stamp of the log that was read just now, on the clock that says `now_ms`. `now_ms` itself for one that is not above 0: there is none. */
double times_on_clock(double stamp_ms, double now_ms);

struct times_epoch {
    const struct store_epoch *row; /* borrowed of `epochs` */
    double start_s, end_s;         /* since the submission; since epoch 1 began when the start-up is not known */
};

/* Those that this attempt trained last, in their order, to `out` (room for n). Returns how many. */
size_t times_epochs(struct times_epoch *out, const struct store_attempt *a, const struct store_epoch *epochs, size_t n);

#endif
