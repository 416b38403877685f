/* The queue of studies, and what is asked of those that run. Who submits writes the row of a study, the server what becomes of it, its
 * driver what it could use; each by statements of its own, so that nobody overwrites what others wrote. */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include "store/store.h"

/* What a study of the queue is at. The driver follows RUNNING, DRAINING, LEAVING and STOPPING as it reads them. */
#define QUEUED "queued" /* waits for its turn */
#define QUEUE_RUNNING "running"
#define QUEUE_DRAINING "draining" /* … and is to start nothing more: it is gone on with later */
#define QUEUE_LEAVING "leaving"   /* … nor to wait for its trials */
#define QUEUE_STOPPING "stopping" /* it was asked to end */
#define QUEUE_STOPPED "stopped"
#define QUEUE_DONE "done"

/* A study in the queue; the order of the ids is that of submission. */
struct store_queued {
    int64_t id;
    char *study;
    char *state;
    int priority; /* the greater the sooner */
    bool here;    /* its trials run on this machine's CPUs, which are shared */
    int64_t submitted_ms;
    int64_t at_ms;              /* not before; 0: at once */
    int64_t begun_ms, ended_ms; /* when its driver was started first, and what became of it known; 0: not yet */
    int64_t pid, start_ticks;   /* of its driver; pid 0: none was let go yet */
    char *boot_id;              /* likewise; NULL */
    int starts;                 /* drivers that were started since it last came from the queue, or gained anything */
    int done;                   /* trials that were over when that was counted */
    int share;                  /* CPUs that it has for its trials */
    int most, grain,
        to_go; /* as its driver tells: CPUs that it could use now, of them those of a trial, trials to go; -1: not yet */
    int exit_code; /* -1: not known */
    char *folder, *argv,
        *env; /* where it was submitted; words behind `run`, a JSON array; variables, a JSON object of texts and nulls */
    char *reason; /* why it was started anew, or ended; NULL */
};
void store_queued_done(struct store_queued *row);
int store_queued_copy(struct store_queued *out, const struct store_queued *row);

/* Of the same study one entry is kept: an older one that is over gives way. Sets id; -EEXIST: it is in the queue. */
int store_queue_add(struct store *s, struct store_queued *row, struct err *e);

bool store_queue_is_over(const char *state); /* stopped or done */
bool store_queue_runs(const char *state);    /* it has, or is to have, a driver */

/* In their order; `study` NULL: all. */
int store_queue(struct store *s, const char *study, int (*row)(void *ctx, const struct store_queued *r), void *ctx,
                struct err *e);
int store_queue_find(struct store *s, const char *study, struct store_queued *out, struct err *e); /* 1 found, 0 none */

/* What the server knows of it: not its state, its share, what was submitted, nor what the driver tells. */
int store_queue_put(struct store *s, const struct store_queued *row, struct err *e);
int store_queue_put_share(struct store *s, int64_t id, int cpus, struct err *e);
int store_queue_put_use(struct store *s, int64_t id, int most, int grain, int to_go, struct err *e);

/* From one state to another: 1; 0: it is in none of `from` (a list: "queued running"). */
int store_queue_turn(struct store *s, int64_t id, const char *from, const char *to, struct err *e);

/* --- requests: taken up by a driver, in their order --- */
struct store_request {
    int64_t id;
    char *study;
    int trial;   /* number; 0: of the study */
    char *kind;  /* "stop", "add", "retry" */
    char *text;  /* of "add": the point, a JSON object; NULL */
    char *state; /* "waiting", "done", "refused" */
    char *answer;
    int64_t asked_ms;
};
void store_request_done(struct store_request *row);
int store_request_copy(struct store_request *out, const struct store_request *row);
int store_request_add(struct store *s, struct store_request *row, struct err *e); /* sets id */
int store_request_answer(struct store *s, int64_t id, bool done, const char *answer, struct err *e);
int store_request_find(struct store *s, int64_t id, struct store_request *out, struct err *e); /* 1, 0 */

/* Those of the study that wait. */
int store_requests(struct store *s, const char *study, int (*row)(void *ctx, const struct store_request *r), void *ctx,
                   struct err *e);

/* A number that is another one whenever somebody else has changed the file: cheap to ask. */
int store_changes(struct store *s, int64_t *out, struct err *e);

#endif
