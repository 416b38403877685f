/* Secrets by the names they go by, and configs and commands without them. Pure.
 *
 * A name is a secret's when it tells so ("secret", "password", "token" or "access.key" anywhere in it, in any case), or when the
 * user says so: names, in which '*' stands for anything. What is tuned is none by its name alone: max_tokens is a common hyperparameter. */
#ifndef CORE_SECRET_H
#define CORE_SECRET_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/strv.h"

#define SECRET_MASK "***"

struct secret_rules {
    const struct strv *named; /* the user's; NULL: none */
    const struct strv *tuned; /* names, and options, of hyperparameters; NULL: none */
};

/* Case, '-' and '_' make no difference where the user's names and those of hyperparameters are compared, nor do leading dashes. */
bool secret_is(const struct secret_rules *r, const char *name);

/* The text, with "***" for what stands behind NAME= when that name is a secret's, in each of its words, and for the password of an URL. */
void secret_put(const struct secret_rules *r, const char *text, struct buf *out);

/* The words of a command so, and "***" for the word behind an option that is a secret's. */
void secret_put_argv(const struct secret_rules *r, const struct strv *argv, struct strv *out);

/* A copy in which secrets are "***": members of such a name, and lists of words as above. `hashes` (an object, or NULL) gets the sum of
 * each one with the salt, by its path ("….extras.password"). New reference; NULL: memory. */
json_t *secret_masked(const struct secret_rules *r, const json_t *j, const char *salt, json_t *hashes);

/* The text without these values, wherever they stand; those of less than SECRET_VALUE_MIN characters could be anything and stay. NULL:
 * memory. */
enum { SECRET_VALUE_MIN = 4 };
char *secret_hide(const struct strv *values, const char *text);

#endif
