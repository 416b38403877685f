/* The state: trials, the log, and where it stood at the newest build; all else is made of these again. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/own.h"
#include "search/thaw_state.h"

static void save_trial(const struct thaw *t, const struct thaw_trial *tr, struct buf *out)
{
    for (size_t i = 0; i < t->space->n_dims; i++)
        pack_f64(out, tr->point.x[i]);
    pack_u64(out, (uint64_t)tr->being | (tr->bad ? 4 : 0));
    pack_u64(out, (uint64_t)tr->epoch);
    pack_f64(out, tr->value);
    pack_u64(out, (uint64_t)tr->epoch_1);
    pack_f64(out, tr->cost_1);
    pack_f64(out, tr->cost);
    pack_f64(out, tr->start);
}

/* Numbers that the space has: else places of lists would be looked for beyond their end. */
bool thaw_is_point(const struct thaw *t, const struct point *p)
{
    for (size_t i = 0; i < t->space->n_dims; i++) {
        const struct dim *d = &t->space->dims[i];
        double x = p->x[i];
        bool listed = d->kind == DIM_LIST || d->kind == DIM_RANGE;
        if (listed ? !(x >= 0 && x < (double)d->n && x == floor(x)) : !(x >= d->min && x <= d->max))
            return false;
    }
    return true;
}

static bool restore_trial(const struct thaw *t, struct thaw_trial *tr, struct unpack *from)
{
    *tr = (struct thaw_trial){ .entry = -1 };
    for (size_t i = 0; i < t->space->n_dims; i++)
        tr->point.x[i] = unpack_f64(from);
    uint64_t being = unpack_u64(from), epoch = unpack_u64(from);
    tr->value = unpack_f64(from);
    uint64_t epoch_1 = unpack_u64(from);
    tr->cost_1 = unpack_f64(from);
    tr->cost = unpack_f64(from);
    tr->start = unpack_f64(from);
    if (from->bad || !thaw_is_point(t, &tr->point) || being > 7 || (being & 3) > THAW_OVER)
        return false;
    if (epoch > (uint64_t)t->cfg.epochs || epoch_1 > epoch || (epoch > 0) != (epoch_1 > 0))
        return false;
    tr->being = (enum thaw_being)(being & 3);
    tr->bad = being & 4;
    tr->epoch = (int)epoch;
    tr->epoch_1 = (int)epoch_1;
    while (tr->step < t->times.n && t->step_epoch[tr->step] <= tr->epoch)
        tr->step++;
    tr->place = unit_of(t->space, &tr->point);
    return true;
}

/* The numbers of `hyper`, in their order. */
static double *hyper_number(const struct thaw *t, struct thaw_hyper *h, size_t i)
{
    size_t n = t->space->n_dims;
    double *const others[] = { &h->shared, &h->own, &h->shared_time, &h->own_time, &h->noise };
    return i < n ? &h->length[i] : i < n + ARRAY_LEN(others) ? others[i - n] : NULL;
}

void thaw_save(const struct thaw *t, struct buf *out)
{
    struct thaw_hyper h = t->hyper;
    pack_u64(out, t->n_trials);
    for (size_t i = 0; i < t->n_trials; i++)
        save_trial(t, &t->trials[i], out);
    pack_u64(out, t->n_log);
    for (size_t i = 0; i < t->n_log; i++) {
        pack_u64(out, t->log[i].trial);
        pack_u64(out, (uint64_t)t->log[i].step);
        pack_f64(out, t->log[i].value);
    }
    pack_u64(out, t->builds);
    pack_u64(out, t->built_log);
    pack_u64(out, t->built_trials);
    for (size_t i = 0; hyper_number(t, &h, i); i++)
        pack_f64(out, *hyper_number(t, &h, i));
}

static int restore_trials(struct thaw *t, struct unpack *from)
{
    for (size_t n = unpack_count(from, 56); n > 0; n--) {
        struct thaw_trial *trials = array_more(t->trials, t->n_trials, &t->cap_trials, sizeof *trials);
        if (!trials)
            return -ENOMEM;
        t->trials = trials;
        if (!restore_trial(t, &t->trials[t->n_trials], from))
            return -EPROTO;
        t->n_bad += t->trials[t->n_trials++].bad;
    }
    return from->bad ? -EPROTO : 0;
}

static int restore_log(struct thaw *t, struct unpack *from)
{
    for (size_t n = unpack_count(from, 24); n > 0; n--) {
        struct thaw_log *log = array_more(t->log, t->n_log, &t->cap_log, sizeof *log);
        if (!log)
            return -ENOMEM;
        t->log = log;
        uint64_t trial = unpack_u64(from), step = unpack_u64(from);
        double value = unpack_f64(from);
        if (trial >= t->n_trials || step >= (uint64_t)t->times.n || isnan(value) || value == -HUGE_VAL)
            return -EPROTO;
        t->log[t->n_log++] = (struct thaw_log){ trial, (int)step, value, NAN };
    }
    return from->bad ? -EPROTO : 0;
}

static int restore_build(struct thaw *t, struct unpack *from)
{
    t->builds = unpack_u64(from);
    t->built_log = unpack_u64(from);
    t->built_trials = unpack_u64(from);
    for (size_t i = 0; hyper_number(t, &t->hyper, i); i++) {
        double x = unpack_f64(from);
        if (!(x >= 1e-3 && x <= 1e3))
            return -EPROTO;
        *hyper_number(t, &t->hyper, i) = x;
    }
    bool ok = !from->bad && t->built_log <= t->n_log && t->built_trials <= t->n_trials;
    for (size_t i = 0; i < t->built_log && ok; i++)
        ok = t->log[i].trial < t->built_trials;
    ok = ok && t->n_log - t->built_log <= THAW_ROWS_MAX - THAW_ROWS_KEPT;
    return ok || t->builds == 0 ? 0 : -EPROTO;
}

int thaw_restore(struct thaw *t, struct unpack *from)
{
    int rc = restore_trials(t, from);
    rc = rc == 0 ? restore_log(t, from) : rc;
    rc = rc == 0 ? restore_build(t, from) : rc;
    if (rc < 0 || t->builds == 0)
        return rc;
    return thaw_build_again(t);
}
