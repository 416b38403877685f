/* What is asked of the driver of a study that runs, and its answer. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include "store/queue.h"

/* Asks, and waits some seconds for the answer, which is r->answer then (owned; free it). `dir`: the study's folder; who asks has filled in study, trial and
 * text. 1: it is done; 0: it waits, for this driver or the next one; -EINVAL: it was refused, and says why; or what the store says. */
int request_ask(struct store *s, const char *dir, struct store_request *r, const char *kind, struct err *e);

#endif
