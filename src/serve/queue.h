/* The queue at work: a driver for each study whose turn it is, as a process of its own, so that a fault in one ends one. Each step is committed
 * before it is acted on: a server that is killed leaves drivers that go on, and the next one finds them by what it had noted, starts those
 * that have died, and keeps the order.
 *
 *     queued --its turn--> running --its driver ends--> done
 *                          running --the server drains--> draining, leaving --> queued
 *     queued, running --it is asked to end--> stopping --> stopped */
#ifndef SERVE_QUEUE_H
#define SERVE_QUEUE_H

#include "store/queue.h"

struct queue;

/* `cpus` that its studies share; 0: all that this process may use. `say` gets a line for people of each thing that happens. 0, -ENOMEM, and what the
 * store says. */
int queue_open(struct queue **out, const char *store_path, int cpus, void (*say)(const char *line), struct err *e);
void queue_close(struct queue *q); /* its drivers go on. NULL is fine */

/* To be called some times a second: hears of drivers that ended and of what was submitted, divides the CPUs, starts who is next. Negative: the
 * store cannot be used any more. */
int queue_tick(struct queue *q, struct err *e);

int queue_look(struct queue *q, struct err *e); /* reads it, and does nothing */

/* Nothing is started any more: studies that run end when their trials have, and are in the queue again. */
int queue_drain(struct queue *q, struct err *e);
int queue_leave(struct queue *q, struct err *e); /* … without waiting for trials, which go on */

bool queue_runs(const struct queue *q);     /* any study has a driver */
bool queue_is_empty(const struct queue *q); /* none has, nor waits */

/* A study that is over is in the queue again, with those who wait: it has more to do. In the caller's transaction. 1; 0: it is not in the
 * queue, or not over. */
int queue_again(struct store *s, const char *study, struct err *e);

#endif
