/* Arrays that grow by one element at a time. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/* Room for one more than the `n` elements of `size` bytes that `list` (NULL: none yet) has: the list itself while *cap allows,
 * else a larger one that takes its place. NULL: memory; the list is then as it was, and still the caller's. */
void *array_more(void *list, size_t n, size_t *cap, size_t size);

#endif
