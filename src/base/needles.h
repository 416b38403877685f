/* Many fixed texts looked for in one pass: chained by their first byte, so that most bytes cost one look. */
#ifndef BASE_NEEDLES_H
#define BASE_NEEDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NEEDLES_MAX = 254 };

struct needles {
    const char *text[NEEDLES_MAX];         /* borrowed */
    uint8_t first[256], next[NEEDLES_MAX]; /* index + 1; 0: no more */
    uint8_t n;
};

/* False: there are NEEDLES_MAX already, or the text is empty. `ns` begins zeroed. */
bool needles_add(struct needles *ns, const char *text);

/* Is one of them in these bytes? */
bool needles_in(const struct needles *ns, const char *bytes, size_t len);

#endif
