#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST = 8 };

void *array_more(void *list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    size_t more = *cap ? 2 * *cap : FIRST;
    void *grown = more <= SIZE_MAX / 2 / size ? realloc(list, more * size) : NULL;
    if (grown)
        *cap = more;
    return grown;
}
