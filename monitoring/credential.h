/* Secrets from files: a user's name and password, or a token. */
#ifndef MONITORING_CREDENTIAL_H
#define MONITORING_CREDENTIAL_H

#include "base/err.h"

enum { CREDENTIAL_MAX = 4096 };

/* Either a token, or user and password; all NULL: none. */
struct credential {
    char *user, *password, *token;
};

/* Reads a file of one line, "USER:PASSWORD" or a token. It must be a regular file of this user's that nobody else may read: -EACCES
 * otherwise, and the message holds the command that mends it. -EINVAL: empty, more than a line, or not printable. The file's text is
 * in no message. */
int credential_read(struct credential *out, const char *path, struct err *e);

/* Wipes and frees. */
void credential_done(struct credential *c);

#endif
