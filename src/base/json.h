/* JSON in and out, on jansson: errors that name file and line, real numbers as num_print() has them. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"

#define AUTO_JSON __attribute__((cleanup(json_auto_done)))

static inline void json_auto_done(json_t **j)
{
    json_decref(*j);
}

/* To be called once, before any JSON: jansson 2.14 drops bytes, or fails an assertion of its own, when memory runs out, so from
 * then on that ends the program with one line and `exit_code`. Nothing is lost by it: what was committed is committed. */
void json_must_have_memory(int exit_code);

/* A text whose keys can be found again: what an error about a value needs to name its line. */
struct json_doc {
    json_t *root;
    char *text;
    char *name; /* the file's name, as the user gave it */
};

#define AUTO_JSON_DOC __attribute__((cleanup(json_doc_done)))

/* What stands behind // on a line, in no string, is a comment. -EINVAL: not JSON ("'f' line 3: …"; duplicate keys count as an error);
 * -ENOMEM. Copies text and name. */
int json_doc_parse(struct json_doc *out, const char *name, const char *text, size_t len, struct err *e);
void json_doc_done(struct json_doc *d);

/* The 1-based line of the value at `path` ("study/epochs", "extras/2"), or of the deepest part of it that exists. */
int json_doc_line(const struct json_doc *d, const char *path);

/* Explains a fault of the value at `path`: "'conf/x.conf' line 7: 'study.epochs' …". Returns `code`.
 * The message goes on after the quoted key, so it reads "must be between 1 and 9, not 0". */
int json_doc_err(const struct json_doc *d, const char *path, struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

enum json_style { JSON_STYLE_COMPACT, JSON_STYLE_INDENT }; /* one line, or two spaces per level */

/* Appends `j` (NULL prints as null), keys in the order they were added. */
void json_put(struct buf *b, const json_t *j, enum json_style style);

/* `j` on one line, as json_put() prints it; free it. NULL: memory, or `j` is NULL (what made it had none). */
char *json_text(const json_t *j);

/* Appends a JSON string literal. Bytes that are no UTF-8, which a path may have, become U+FFFD. */
void json_put_string(struct buf *b, const char *text);

/* The same as a value: json_string() gives none for such bytes. */
json_t *json_bytes(const char *text);

/* A number, or null for what is none. */
json_t *json_num(double x);

#endif
