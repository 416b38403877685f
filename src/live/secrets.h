/* A study's secrets (core/secret.h): what of its config and its commands may be stored and shown, and how the application is given its own. */
#ifndef LIVE_SECRETS_H
#define LIVE_SECRETS_H

#include "app/app.h"
#include "base/json.h"
#include "base/strv.h"
#include "core/secret.h"
#include "core/space.h"
#include "live/env.h"

enum { SECRETS_SALT_SIZE = 17 };

struct secrets {
    struct strv named;  /* study.secrets */
    struct strv tuned;  /* names and options of hyperparameters */
    struct strv values; /* of the application's own, for texts that may repeat them */
    json_t *knobs;      /* properties of systemParameters, as written; NULL: none */
};

void secrets_done(struct secrets *s);

/* Reads study.secrets, and takes the properties that are secrets out of the document's systemParameters: they are passed, and never
 * tuned. -EINVAL: one has several values; -ENOMEM. */
int secrets_take(struct secrets *s, struct json_doc *doc, struct err *e);

/* What is tuned is no secret; what else goes to the application may be. -ENOMEM. */
int secrets_find(struct secrets *s, const struct app_file *app, const struct space *space, struct err *e);

struct secret_rules secrets_rules(const struct secrets *s);

/* For the store: the config, with what was taken from it, secrets as "***", and below "secrets" the salt and the sum of each. One without
 * secrets is the same. `salt` is the stored config's, NULL: a new one. New reference; NULL: memory. */
json_t *secrets_config(const struct secrets *s, const json_t *config, const char *salt);

/* The salt of a stored config; NULL: it has none. */
const char *secrets_salt(const json_t *stored);

/* The text of a document as it was written, or, where there are secrets in it, as JSON without them. Free it; NULL: memory. */
char *secrets_text(const struct secrets *s, const struct json_doc *doc);

/* Writes DIR/properties, 0600: the text of the application's own file of properties, or of the defaults of its runtime, which a file of
 * properties replaces, and the secrets after it. *out is its path, to be freed; NULL: there are none. -errno. */
int secrets_write(const struct secrets *s, const struct application *app, const char *dir, const struct env *env,
                  char **out, struct err *e);

/* The launch that was to read it is over: DIR/properties goes, and what a process that was killed wrote of it. What cannot be removed
 * stays, until tidy_launches() comes by. */
void secrets_forget(const char *dir);

#endif
