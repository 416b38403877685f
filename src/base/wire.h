/* The lines that the node helper hears and says: one flat JSON object each. Small, because pipetune-node links only libc, and
 * strict, because what comes over the wire decides what becomes of processes.
 *
 *   line    object of members "key": value, ended by a newline that is not part of it; at most WIRE_LINE_MAX bytes
 *   value   string | number | true | false | null | array of whole numbers          (nothing nested)
 *   limits  WIRE_MEMBERS_MAX members, no key twice; WIRE_INTS_MAX numbers in all arrays together, each one an int;
 *           strings are UTF-8 without \u0000 */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { WIRE_LINE_MAX = 64 << 10, WIRE_MEMBERS_MAX = 32, WIRE_INTS_MAX = 4096 };

enum wire_kind { WIRE_NULL, WIRE_BOOL, WIRE_NUMBER, WIRE_STRING, WIRE_INTS };

struct wire_member {
    const char *key;
    enum wire_kind kind;
    bool truth;       /* WIRE_BOOL */
    double number;    /* WIRE_NUMBER; finite */
    const char *text; /* WIRE_STRING */
    const int *ints;  /* WIRE_INTS */
    size_t n_ints;
};

struct wire { /* 18 KB; owns nothing outside of itself */
    struct wire_member members[WIRE_MEMBERS_MAX];
    size_t n;
    int ints[WIRE_INTS_MAX];
    size_t n_ints;
};

/* Reads a line in place: `line` is changed, and out's texts point into it. line[len] is a NUL. On failure (-EINVAL, with what is
 * wrong and where) `out` has no members. */
int wire_parse(struct wire *out, char *line, size_t len, struct err *e);

/* NULL when there is none. A member that is null is there. */
const struct wire_member *wire_find(const struct wire *w, const char *key);

/* Append a value. Bytes of a text that are no UTF-8 become '?', so that what is said is always JSON. */
void wire_put_text(struct buf *b, const char *text);
void wire_put_ints(struct buf *b, const int *v, size_t n);
#endif
