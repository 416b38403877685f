/* Conditions that people write in a config: "batch_size % cores == 0", "optimizer != 'sgd' || momentum > 0". Numbers and texts; what is
 * compared with something of the other kind, or cannot be computed, does not hold. Pure.
 *
 *   or     a || b    a or b           compare  == (or =) != < <= > >=; a ~ b: b is a part of the text a, whatever its case
 *   and    a && b    a and b          sum      + -    product  * / %
 *   not    !a        not a            minus    -a     brackets ( )
 *   name   of what the caller knows; one with other than letters, digits, '_' and '.' stands between backticks
 *   text   "adam" or 'adam'           functions  min(a, b) max(a, b) abs(a) log(a) sqrt(a) floor(a) */
#ifndef CORE_EXPR_H
#define CORE_EXPR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strv.h"

struct expr;

/* A number, or (text not NULL) a text, which is borrowed. A list is a text with one of its elements to a line: it equals what one of them
 * equals, and what is a part of one is a part of it. */
struct expr_value {
    double number;
    const char *text;
    bool is_list;
};

/* What a name stands for. */
typedef struct expr_value expr_read(void *ctx, size_t name);

/* `names`: those there are. -EINVAL: what is wrong, and where ("at 'lr)': …"); -ENOMEM. */
int expr_parse(struct expr **out, const char *text, const char *const *names, size_t n_names, struct err *e);
/* The same, where a name that is none of them may be one that is known later: it is added to `others`, once, and counts on from n_names. */
int expr_parse_open(struct expr **out, const char *text, const char *const *names, size_t n_names, struct strv *others,
                    struct err *e);
void expr_free(struct expr *x); /* NULL is fine */

bool expr_uses(const struct expr *x, size_t name);
bool expr_holds(const struct expr *x, expr_read *value_of, void *ctx);

/* How a name goes on, while time does. */
enum expr_trend { EXPR_STAYS, EXPR_RISES, EXPR_FALLS, EXPR_VARIES };

/* Where it does not hold, will it never hold again? `trend_of` has one of each name. False: that cannot be told. */
bool expr_only_falls(const struct expr *x, const enum expr_trend *trend_of);

#endif
