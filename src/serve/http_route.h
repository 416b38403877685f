/* What was asked for: the path as words, the query or a form's body as names with values, and which row of a table it is. Pure. */
#ifndef SERVE_HTTP_ROUTE_H
#define SERVE_HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_WORDS_MAX = 8, HTTP_PAIRS_MAX = 128, HTTP_WORD_MAX = 512 };

struct http_path {
    char *words[HTTP_WORDS_MAX]; /* owned, decoded */
    size_t n;
};

struct http_pairs {
    struct http_pair {
        char *name, *value; /* owned, decoded */
    } v[HTTP_PAIRS_MAX];
    size_t n;
};

/* "/study/a%20b" → "study", "a b". -EINVAL: no path, a word that is empty, "." or "..", too long, no UTF-8, or with a control character or a
 * slash in it, or too many; -ENOMEM. Nothing is held after a failure. */
int http_path_parse(struct http_path *out, const char *text);
void http_path_done(struct http_path *p);

/* "a=1&b=x+y": later ones do not replace earlier ones. As above; a value may be empty, and long. */
int http_pairs_parse(struct http_pairs *out, const char *text);
void http_pairs_done(struct http_pairs *p);
const char *http_pairs_get(const struct http_pairs *p, const char *name); /* the first; NULL: none */

/* A whole number from `min` to `max`; `otherwise` where there is none, or it is none. */
long http_pairs_number(const struct http_pairs *p, const char *name, long min, long max, long otherwise);

/* "study/?/log": a word, "?": any; at the end "*": whatever follows, one at least. */
bool http_path_is(const struct http_path *p, const char *pattern);

struct buf;
/* A word of a path or a value of a query, encoded. */
void http_put_word(struct buf *b, const char *text);

#endif
