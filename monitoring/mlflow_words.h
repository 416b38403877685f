/* What an MLflow server is told over its REST interface (3.x), and what it answers. Pure. */
#ifndef MONITORING_MLFLOW_WORDS_H
#define MONITORING_MLFLOW_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

/* What the server takes of one batch, and of texts (cut to that, between characters). */
enum {
    MLFLOW_METRICS_MAX = 1000, /* metrics, parameters and tags together, too */
    MLFLOW_PARAMS_MAX = 100,
    MLFLOW_TAGS_MAX = 100,
    MLFLOW_BODY_MAX = 1000000, /* bytes */
    MLFLOW_KEY_MAX = 250,
    MLFLOW_PARAM_MAX =
        1000, /* less than the server takes: so that a hundred of them fit into a body, however they are escaped */
    MLFLOW_TAG_MAX = 1000,
    MLFLOW_ID_MAX = 257,
    MLFLOW_PAGE_MAX = 25000, /* points of a history at once */
};

/* A point; one that is not finite is never sent. */
struct mlflow_metric {
    const char *key;
    double value;
    int64_t at_ms, step;
};

struct mlflow_pair {
    const char *key, *value;
};

/* At most as many of each as above. */
struct mlflow_batch {
    const struct mlflow_metric *metrics;
    size_t n_metrics;
    const struct mlflow_pair *params, *tags;
    size_t n_params, n_tags;
};

/* A key as the server takes it: of what it does not, each byte becomes '_'. */
void mlflow_key(char out[MLFLOW_KEY_MAX + 1], const char *name);

/* Bodies of requests, appended. */
void mlflow_put_experiment(struct buf *b, const char *name);
void mlflow_put_run(struct buf *b, const char *experiment, const char *name, int64_t start_ms,
                    const struct mlflow_pair *tags, size_t n_tags);
void mlflow_put_search(struct buf *b, const char *experiment, const char *tag, const char *value); /* that run */
void mlflow_put_batch(struct buf *b, const char *run, const struct mlflow_batch *batch);
void mlflow_put_status(struct buf *b, const char *run, const char *status, int64_t end_ms); /* 0: it goes on */

enum mlflow_kind {
    MLFLOW_DONE,
    MLFLOW_LATER,   /* nobody is there, it cannot now, or wants other credentials: the same again later */
    MLFLOW_ABSENT,  /* there is no such thing */
    MLFLOW_THERE,   /* there is one already */
    MLFLOW_REFUSED, /* the same would be refused again */
};

struct mlflow_answer {
    enum mlflow_kind kind;
    json_t *body;   /* owned; NULL: none, or no JSON object */
    char text[256]; /* why it is not done: one line, for people */
};
void mlflow_answer_done(struct mlflow_answer *a);

/* What an answer of this status and body means. */
void mlflow_answer(struct mlflow_answer *out, int status, const char *body, size_t len);

/* Of answers: the id of an experiment, of a run that was made, of the only or oldest run that was found. False: there is none that could be one. */
bool mlflow_experiment_id(const json_t *body, char out[MLFLOW_ID_MAX]);
bool mlflow_run_id(const json_t *body, char out[MLFLOW_ID_MAX]);
bool mlflow_found_id(const json_t *body, char out[MLFLOW_ID_MAX]);

/* Of a page of a metric's history: calls for each point. The token of the next page, "": it was the last; borrowed. */
const char *mlflow_history(const json_t *body, void (*point)(void *ctx, int64_t step, int64_t at_ms), void *ctx);

#endif
