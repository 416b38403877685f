#include "serve/http_work.h"

#include <errno.h>

static void *take(struct http_work *w)
{
    void *job = w->queue[w->from];
    w->from = (w->from + 1) % HTTP_WORK_MAX;
    w->n--;
    return job;
}

static void *serve(void *arg)
{
    struct http_work *w = arg;
    (void)pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->n == 0 && !w->stops)
            (void)pthread_cond_wait(&w->more, &w->lock);
        if (w->n == 0)
            break;
        void *job = take(w);
        void (*what)(void *) = w->stops ? w->leave : w->run;
        (void)pthread_mutex_unlock(&w->lock);
        what(job);
        (void)pthread_mutex_lock(&w->lock);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

int http_work_start(struct http_work *w, void (*run)(void *job), void (*leave)(void *job))
{
    *w = (struct http_work){ .run = run, .leave = leave };
    int rc = pthread_mutex_init(&w->lock, NULL);
    if (rc != 0)
        return -rc;
    rc = pthread_cond_init(&w->more, NULL);
    if (rc == 0) {
        rc = pthread_create(&w->thread, NULL, serve, w);
        w->started = rc == 0;
        if (rc != 0)
            (void)pthread_cond_destroy(&w->more);
    }
    if (rc != 0)
        (void)pthread_mutex_destroy(&w->lock);
    return -rc;
}

bool http_work_add(struct http_work *w, void *job)
{
    (void)pthread_mutex_lock(&w->lock);
    bool takes = !w->stops && w->n < HTTP_WORK_MAX;
    if (takes)
        w->queue[(w->from + w->n++) % HTTP_WORK_MAX] = job;
    (void)pthread_cond_signal(&w->more);
    (void)pthread_mutex_unlock(&w->lock);
    return takes;
}

void http_work_stop(struct http_work *w)
{
    if (!w->started)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->stops = true;
    (void)pthread_cond_signal(&w->more);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_cond_destroy(&w->more);
    (void)pthread_mutex_destroy(&w->lock);
    w->started = false;
}
