/* A pattern in the first line, what a program printed behind it: no crash, an end, and all that is found within bounds. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/pattern.h"
#include "base/own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct pattern_found *f)
{
    if (f->epoch < -1 || f->step < -1 || f->epochs < -1 || f->records < 0 || f->seconds < 0 ||
        f->n_values > REPORT_VALUES_MAX)
        abort();
    for (size_t i = 0; i < f->n_values; i++)
        if (strnlen(f->values[i].name, REPORT_NAME_MAX) == REPORT_NAME_MAX)
            abort();
}

static void match_lines(struct patterns *p, const char *text, const char *literal)
{
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, "\n");
        struct pattern_found f;
        if (patterns_match(p, at, len, &f)) {
            check(&f);
            if (literal && len <= PATTERN_LINE_MAX && !memmem(at, len, literal, strlen(literal)))
                abort(); /* it was said to be in every such line */
        }
        at += len + (at[len] == '\n');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = strndup((const char *)data, size);
    struct patterns *p = NULL;
    char literal[PATTERN_LITERAL_MAX];
    if (!text)
        return 0;
    char *rest = text + strcspn(text, "\n");
    if (*rest)
        *rest++ = '\0';
    const char *const list[] = { text };
    if (patterns_new(&p, list, 1, NULL) < 0)
        return 0;
    bool known = pattern_literal(text, literal);
    match_lines(p, rest, known ? literal : NULL);
    patterns_free(p);
    return 0;
}
