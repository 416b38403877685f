#include "live/handover.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "live/energy.h"
#include "live/handing.h"

enum { ROUND_MS = 2000, AGAIN_MS = 1000, AGAIN_MOST_MS = 60000, REQUEST_MS = 10000 };

/* What a worker wants to know of the loop's ledger: asked for in one round, known in a later one. */
struct cost {
    int trial;
    bool known;
    double until_ms; /* the meters have told of what was before */
    double j;
};

struct handover {
    struct handing *handing;
    struct study *study;
    uv_loop_t *loop;
    uv_timer_t wake;
    uv_work_t work;
    void (*note)(void *ctx, const char *text);
    void *ctx;
    uv_mutex_t lock; /* of the costs */
    struct cost *costs;
    size_t n_costs, cap_costs;
    /* of the round under way, or the last one */
    int rc;
    struct err e;
    uint64_t refused;
    int64_t wait_ms;
    bool working, closed, away;
    bool metered; /* there is a ledger */
};

/* --- on the worker --- */

static int cost_of(struct handover *h, int trial, double *out)
{
    for (size_t i = 0; i < h->n_costs; i++) {
        if (h->costs[i].trial != trial)
            continue;
        *out = h->costs[i].j;
        return !h->costs[i].known ? -EAGAIN : isfinite(h->costs[i].j);
    }
    struct cost *grown = array_more(h->costs, h->n_costs, &h->cap_costs, sizeof *grown);
    if (!grown)
        return -EAGAIN;
    h->costs = grown;
    h->costs[h->n_costs++] = (struct cost){ .trial = trial, .until_ms = (double)study_clock_ms(h->study), .j = NAN };
    return -EAGAIN;
}

static int joules(void *ctx, int trial, double *out)
{
    struct handover *h = ctx;
    if (!h->metered)
        return 0;
    uv_mutex_lock(&h->lock);
    int rc = cost_of(h, trial, out);
    uv_mutex_unlock(&h->lock);
    return rc;
}

static void on_work(uv_work_t *work)
{
    struct handover *h = work->data;
    h->rc = handing_round(h->handing, &h->e);
}

/* --- on the loop --- */

static void drop(struct handover *h)
{
    handing_free(h->handing);
    uv_mutex_destroy(&h->lock);
    free(h->costs);
    free(h);
}

static void on_closed(uv_handle_t *handle)
{
    struct handover *h = handle->data;
    h->closed = true;
    if (!h->working)
        drop(h);
}

/* What a trial has cost is known when its meters have told of its end. */
static void reckon(struct handover *h)
{
    struct energy *en = h->study->energy;
    double until_ms = energy_until_ms(en);
    uv_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n_costs; i++) {
        struct cost *c = &h->costs[i];
        if (c->known || until_ms < c->until_ms)
            continue;
        c->j = energy_trial_j(en, c->trial);
        c->known = true;
    }
    uv_mutex_unlock(&h->lock);
}

static void tell(struct handover *h)
{
    char text[640];
    struct handing_counts c = handing_counts(h->handing);
    bool away = h->rc < 0;
    if (away && !h->away) {
        (void)snprintf(text, sizeof text, "%s; what it has not got waits in the store", h->e.text);
        h->note(h->ctx, text);
    } else if (!away && h->away) {
        h->note(h->ctx, "MLflow: it is there again, and has all that waited");
    }
    h->away = away;
    if (c.refused > h->refused) {
        (void)snprintf(text, sizeof text, "MLflow: it refused %llu values or settings: %s",
                       (unsigned long long)(c.refused - h->refused), c.why);
        h->note(h->ctx, text);
    }
    h->refused = c.refused;
}

static void on_wake(uv_timer_t *t);

static void on_worked(uv_work_t *work, int status)
{
    struct handover *h = work->data;
    h->working = false;
    if (h->closed) {
        drop(h);
        return;
    }
    if (status < 0 || uv_is_closing((uv_handle_t *)&h->wake))
        return;
    tell(h);
    h->wait_ms = h->rc == 0 ? ROUND_MS : h->wait_ms == ROUND_MS ? AGAIN_MS : 2 * h->wait_ms;
    h->wait_ms = h->wait_ms > AGAIN_MOST_MS ? AGAIN_MOST_MS : h->wait_ms;
    (void)uv_timer_start(&h->wake, on_wake, (uint64_t)h->wait_ms, 0); /* fails only without a callback */
}

static void on_wake(uv_timer_t *t)
{
    struct handover *h = t->data;
    if (h->metered)
        reckon(h);
    h->work.data = h;
    h->working = true;
    (void)uv_queue_work(h->loop, &h->work, on_work, on_worked); /* likewise */
}

static int open_handing(struct handover *h, struct err *e)
{
    struct handing_cfg cfg = handing_cfg_of(&h->study->plan->cfg);
    cfg.timeout_ms = REQUEST_MS;
    AUTO_FREE char *path = study_store_path(h->study->plan->cfg.store);
    if (!path)
        return err_sys(e, -ENOMEM, "study '%s'", h->study->name);
    return handing_open(&h->handing, &cfg, path, h->study->name, h->study->dir, joules, h, e);
}

static int set_up(struct handover *h, struct err *e)
{
    if (uv_mutex_init(&h->lock) < 0)
        return err_sys(e, -ENOMEM, "study '%s'", h->study->name);
    int rc = open_handing(h, e);
    if (rc < 0)
        uv_mutex_destroy(&h->lock);
    return rc;
}

int handover_open(struct handover **out, struct study *s, uv_loop_t *loop, void (*note)(void *ctx, const char *text),
                  void *ctx, struct err *e)
{
    *out = NULL;
    if (!s->plan->cfg.mlflow_url)
        return 0;
    struct handover *h = calloc(1, sizeof *h);
    if (!h)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    *h = (struct handover){
        .study = s, .loop = loop, .note = note, .ctx = ctx, .wait_ms = ROUND_MS, .metered = s->energy != NULL
    };
    int rc = set_up(h, e);
    if (rc < 0) {
        free(h);
        if (rc == -EBUSY)
            note(ctx, e->text);
        return rc == -EBUSY ? 0 : rc;
    }
    (void)uv_timer_init(loop, &h->wake); /* it cannot fail */
    h->wake.data = h;
    (void)uv_timer_start(&h->wake, on_wake, 0, 0);
    *out = h;
    return 0;
}

bool handover_is_away(const struct handover *h)
{
    return h && h->away;
}

void handover_close(struct handover *h)
{
    if (!h)
        return;
    if (h->working)
        (void)uv_cancel((uv_req_t *)&h->work); /* one that has begun ends by itself */
    uv_close((uv_handle_t *)&h->wake, on_closed);
}
