/* Attempts that run: what time it is on the clock that their start was taken from. */
#ifndef STORE_RUNNING_H
#define STORE_RUNNING_H

#include "store/store.h"

/* Now, in milliseconds since 1970; the wall clock's where the attempt's is gone, since the machine was started anew. */
int64_t running_now_ms(const struct store_attempt *a);

#endif
