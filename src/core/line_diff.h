/* Which lines of a text another one has not, and the other way round: the fewest, where the texts are not too long for that. Pure. */
#ifndef CORE_LINE_DIFF_H
#define CORE_LINE_DIFF_H

#include <stddef.h>

#include "base/buf.h"

struct line_diff {
    size_t removed, added; /* lines */
};

/* Appends what differs, a line each: "@@ 12" (of `b`, where it begins), "-old", "+new"; at most `most` of them, and then how many more there are. -ENOMEM:
 * *out is untouched. */
int line_diff(struct line_diff *out, struct buf *text, const char *a, size_t a_len, const char *b, size_t b_len,
              size_t most);

#endif
