/* The application file: what files of all kinds have, and how a kind reads what is its own. Pure. */
#ifndef APP_APP_FILE_H
#define APP_APP_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/strv.h"

/* One row of "arguments": what stands for a role or a hyperparameter on the command line, e.g. {"-b", "{}"}. Roles with a
 * fixed meaning: "epochs", "checkpoint", "resume", "seed"; every other name is a hyperparameter. */
struct app_argument {
    char *name;
    struct strv words;
};

struct app_extra {
    char *key;   /* as it stands in argv: "--batchSize", "-b" */
    char *value; /* NULL: the key stands alone (true) */
    bool word;   /* an element of an array: no key, so no hyperparameter reaches it */
};

struct app_file {
    char *name;               /* the file's own */
    bool session;             /* it can serve several trials */
    struct app_extra *extras; /* in the order written */
    size_t n_extras;
    struct app_argument *arguments;
    size_t n_arguments;
    bool has_arguments; /* "arguments" was there: it alone decides where hyperparameters go */
};

/* The value of $NAME, or NULL when there is none. */
typedef const char *app_lookup(void *ctx, const char *name);

/* What every reader of a member needs. */
struct app_reader {
    struct app_file *file;
    const struct app_file_rules *rules;
    const struct json_doc *doc;
    app_lookup *lookup;
    void *ctx;
    struct err *e;
};

/* Reads the member at `path` of the document into `field`; a fault names file, line and path. */
typedef int app_read(const struct app_reader *r, const char *path, const json_t *j, void *field);

struct app_member {
    const char *key;
    app_read *parse;
    size_t offset; /* of the field, in the kind's own struct */
};

/* What a kind adds. */
struct app_file_rules {
    const struct app_member *members; /* ends with a row without a key */
    const char *resume[2]; /* placeholders in the words of "resume": {"model", "state"}, or {"checkpoint", NULL} */
    bool told;             /* an argument of no words is told otherwise (app/tell.h), and no fault */
    const char *no_utf8;   /* why a value must be UTF-8, behind a colon: "Java would take it for something else" */
};

/* Fields are a char *, a char *, a struct strv, a bool. $NAME and ${NAME} expand in all of them ($$ is a dollar sign). */
app_read app_read_text;   /* a string, not empty */
app_read app_read_scalar; /* a string or a number, as text */
app_read
    app_read_list; /* "a,b" or ["a", "b"]; empty pieces are dropped, so that "$EXTRA,x" works with an empty EXTRA */
app_read app_read_flag;
app_read app_read_words; /* an array of strings and numbers: a struct strv */

/* Reads the document: members of all files ("kind", "session", "extras", which may be called "extra", "arguments") into *out, the kind's into
 * `own`. $NAME expands through `lookup`; an unknown variable, key ("did you mean"), type or placeholder is -EINVAL with file, line and key.
 * Extras: an object (a key that begins with '-' is used as it is, others get "--"; true: the key alone; false and null: left out), or an
 * array of words. -ENOMEM. After a failure *out is to be freed, too, and what stands in `own`. */
int app_file_parse(struct app_file *out, void *own, const struct app_file_rules *rules, const struct json_doc *doc,
                   app_lookup *lookup, void *ctx, struct err *e);
void app_file_done(struct app_file *f);

/* May it be a local path? Not with a scheme such as hdfs: or s3a:. */
bool app_path_is_local(const char *path);

/* Calls `resolve` for a path that is local; it may replace the string (free the old, put a new one). Its return; 0 for another path,
 * or NULL. */
typedef int app_resolve(void *ctx, const char *key, char **path, struct err *e);
int app_resolve_path(const char *key, char **path, app_resolve *resolve, void *ctx, struct err *e);

const struct app_argument *app_file_argument(const struct app_file *f, const char *name); /* NULL when there is none */

/* The extra that a hyperparameter (or "epochs") sets when there are no "arguments": same name, whatever its case,
 * underscores and dashes (batch_size sets batchSize); "epochs" is endTriggerNum, max_epoch or epochs. -1: none. */
int app_file_extra(const struct app_file *f, const char *name);

bool app_file_is_role(const char *name);

/* Does a hyperparameter of this name reach the application? -EINVAL when not: names the file, the hyperparameter, and what
 * could be meant. "epochs", "checkpoint", "resume" and "seed" are no hyperparameters: -EINVAL as well. */
int app_file_reaches(const struct app_file *f, const char *hyper, struct err *e);

#endif
