/* By what an SNMP agent is asked: a community, or a user with one password or two. */
#ifndef MONITORING_SNMP_SECRET_H
#define MONITORING_SNMP_SECRET_H

#include "base/err.h"

enum { SNMP_PASSWORD_MIN = 8 }; /* the standard's */

struct snmp_secret {
    char *community;             /* version 2c */
    char *user, *auth, *privacy; /* version 3; privacy NULL: what is said is not encrypted */
};

/* Reads the file as snmp.h says; version 2 without one is the community "public". -EINVAL: no such version, no file for version 3, or
 * not what the version needs; else as credential_read(). The file's text is in no message. */
int snmp_secret_read(struct snmp_secret *out, int version, const char *file, struct err *e);

/* Wipes and frees. */
void snmp_secret_done(struct snmp_secret *s);

#endif
