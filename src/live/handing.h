/* A study handed on to an MLflow server: a run for the study, and in it one for each trial, with hyperparameters, every number that was told,
 * settings, decisions and joules. Everything is read of the store, and how far the server has it stands there, too (store/handed.h): it is
 * committed before a request and after its answer. Where that was not to be, the server is asked what it has, so that nothing is sent twice.
 *
 * Blocks on disk and network: for a worker, or a command. One process at a time hands a study on. */
#ifndef LIVE_HANDING_H
#define LIVE_HANDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/config.h"

struct handing_cfg {
    const char *url, *experiment;          /* experiment NULL: "pipetune" */
    const char *credential_file, *ca_file; /* NULL: none */
    bool allow_plain;
    long timeout_ms; /* 0: 30 s for a request */
};
struct handing_cfg handing_cfg_of(const struct config *c); /* url NULL: nothing is handed on */

/* Would handing_open() take address and credential? Asks nobody. -EINVAL, -EACCES, -ENOMEM. */
int handing_check(const struct handing_cfg *cfg, struct err *e);

/* A trial's joules: 1 *out is what it has cost; 0 that is not known, nor will be; -EAGAIN not yet. From the thread of a round. */
typedef int handing_joules(void *ctx, int trial, double *out);

struct handing;

/* `store`: its path; `dir`: the study's folder, where a lock says who hands it on. -EBUSY: another process does; what handing_check() and the store
 * say. Copies the texts, keeps joules and ctx. */
int handing_open(struct handing **out, const struct handing_cfg *cfg, const char *store, const char *study,
                 const char *dir, handing_joules *joules, void *ctx, struct err *e);
void handing_free(struct handing *h); /* NULL is fine */

struct handing_counts {
    uint64_t runs, values, requests;
    uint64_t healed;  /* values that the server had already, as it told */
    uint64_t refused; /* values, settings and runs that it never takes */
    char why[256];    /* the newest of these: the server's words */
};

/* Hands on all that there is. 0: the server has it, or refused it. -EAGAIN: not now; *e says why. Else what the store says. */
int handing_round(struct handing *h, struct err *e);

struct handing_counts handing_counts(const struct handing *h); /* not during a round */

#endif
