/* Asking an MLflow server, by libcurl: a request, an answer. */
#ifndef MONITORING_MLFLOW_H
#define MONITORING_MLFLOW_H

#include "base/err.h"
#include "monitoring/credential.h"
#include "monitoring/mlflow_words.h"

enum { MLFLOW_ANSWER_MAX = 16 << 20 }; /* bytes that are read of one */

struct mlflow_cfg {
    const char *url;             /* http[s]://HOST[:PORT][/PREFIX] */
    const char *credential_file; /* USER:PASSWORD or a token, mode 0600; NULL: none */
    const char *ca_file;         /* NULL: whom the system trusts */
    bool allow_plain;            /* the credential may go to another machine over http:// */
    long timeout_ms;             /* 0: 30 s */
};

/* -EINVAL: as mlflow_new() says of the url, and of a `secret` that would go to another machine in the clear. Looks nothing up. */
int mlflow_url_check(const char *url, bool secret, bool allow_plain, struct err *e);

struct mlflow; /* of one thread at a time */

/* Connects nothing. -EINVAL: the url; -EACCES and others of credential_read(); -ENOMEM. Copies all. */
int mlflow_new(struct mlflow **out, const struct mlflow_cfg *cfg, struct err *e);
void mlflow_free(struct mlflow *m); /* NULL is fine */

/* Asks by POST where there is a body, else by GET: `path` stands behind ".../api/2.0/mlflow/". Blocks, for the time-out at most. Every fault is an
 * answer; a network's is MLFLOW_LATER. mlflow_answer_done() is due. */
void mlflow_ask(struct mlflow *m, const char *path, const struct buf *body, struct mlflow_answer *out);

/* A path for the experiment of that name. */
void mlflow_put_named_experiment(struct buf *path, const char *name);

/* A path for a page of a metric's history. `token` "": the first. */
void mlflow_put_history(struct buf *path, const char *run, const char *metric, const char *token);

#endif
