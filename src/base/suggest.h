/* "did you mean": the known name that a mistyped word is nearest to. */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* The name with the fewest inserted, lost, changed or swapped letters, ignoring case, underscores and dashes; of equally
 * near ones that of as many letters, else the first. NULL when nothing is near enough: more than a third of the letters differ, or more than three. */
const char *suggest_nearest(const char *word, const char *const *names, size_t n);

/* The same name but for case, underscores and dashes: batch_size and batchSize. */
bool suggest_same(const char *a, const char *b);

#endif
