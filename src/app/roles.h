/* The roles of a gang: the member "roles" of an application file, for a program of several processes that start and end as one. Pure.
 *
 *   "roles": { "ps":     { "count": 1, "cores": 0, "command": ["python3", "ps.py", "{port}"], "arguments": false },
 *              "worker": { "count": "{workers}", "command": ["python3", "train.py", "{index}", "{peers.worker}"], "tf_config": true } },
 *   "tells": "worker"
 *
 * count      how many: 1 to APP_GANG_MAX in all, or {NAME} of a hyperparameter or a system parameter
 * cores      CPUs of each; left out: as many as the trial's setting says, else 1; 0: none of its own
 * arguments  false: it is given no more words than its command; left out: the file's "extras" and "arguments", too
 * tf_config  whether it finds TF_CONFIG in its environment
 * tells      the role whose first process is heard; left out: the first
 *
 * In "command", and in "extras", "arguments" and "env" of the file, {role}, {index} (from 0), {host}, {port}, {peers.ROLE} (HOST:PORT,… of all of that
 * role) and {count.ROLE} stand for what they say. Ports are chosen on each process's machine when all of them are there: until then {port.K} stands
 * for that of the K-th process of the gang, and its launcher puts the number there (node/exec.h). */
#ifndef APP_ROLES_H
#define APP_ROLES_H

#include "app/app.h"

enum { ROLES_MAX = 16, ROLES_NAME_MAX = 32 };

struct role {
    char *name; /* [A-Za-z0-9_-]{1,ROLES_NAME_MAX} */
    struct strv words;
    char *count; /* as written: a number or {NAME} */
    int cores;   /* -1: not said */
    bool arguments;
    bool tf_config;
};

struct roles {      /* zeroed: none */
    struct role *v; /* owned */
    size_t n;
    char *tells; /* NULL: the first */
};

/* The member "roles": into a struct roles, without its `tells`. */
app_read roles_read;
void roles_done(struct roles *r);

/* Of the whole file: `tells` is a role, and so is what {peers.ROLE} and {count.ROLE} name anywhere in it. -EINVAL with file, line and key. */
int roles_check(const struct roles *r, const struct json_doc *doc, struct err *e);

/* The processes of a launch, by what its point and setting give. -EINVAL: a count names nothing; -ERANGE: it is no count, or they are too many. */
int roles_gang(const struct roles *r, const char *file, const struct app_launch *l, struct app_gang *out,
               struct err *e);

/* What {NAME} stands for in process l->rank of l->gang: appends names, and as many texts. */
void roles_values(const struct roles *r, const struct app_launch *l, struct strv *names, struct strv *texts);

/* Does a count name this hyperparameter? */
bool roles_count_by(const struct roles *r, const char *name);
void roles_counts(const struct roles *r, struct strv *out); /* appends all that counts name */

/* Appends TF_CONFIG=… for process l->rank, where its role wants it. */
void roles_put_env(const struct roles *r, const struct app_launch *l, struct strv *env);

#endif
