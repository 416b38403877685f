/* What a fuzz target is given, as text. */
#ifndef TESTS_FUZZ_TEXT_H
#define TESTS_FUZZ_TEXT_H

#include <stdlib.h>
#include <string.h>

/* A block of exact size, so that ASan sees a byte read behind its NUL. free() it. */
static inline char *fuzz_text(const void *bytes, size_t n)
{
    char *text = malloc(n + 1);
    if (!text)
        abort();
    if (n)
        memcpy(text, bytes, n);
    text[n] = '\0';
    return text;
}

#endif
