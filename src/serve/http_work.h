/* A thread that does what it is given, in order. */
#ifndef SERVE_HTTP_WORK_H
#define SERVE_HTTP_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { HTTP_WORK_MAX = 16 };

struct http_work {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    void *queue[HTTP_WORK_MAX]; /* a ring */
    size_t from, n;
    bool stops, started;
    void (*run)(void *job);
    void (*leave)(void *job); /* what is left when it stops */
};

int http_work_start(struct http_work *w, void (*run)(void *job), void (*leave)(void *job)); /* 0 or -errno */
bool http_work_add(struct http_work *w, void *job); /* false: it is full, or stops */
void http_work_stop(struct http_work *w);           /* zeroed is fine; ends what runs, leaves the rest */

#endif
