#include "store/trace_windows.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* What a line is asked for; its keys, which stand behind these, are not.
 *
 *   H 2 POLICY window_s probe_budget tie_margin noise_floor n_hot cores… n_cold memory… (what follows is not looked at)
 *   L trial        s trial t_s hot cold        i trial t_s epoch seconds records
 *   a trial t_s hot cold        b d x trial */
enum { HEAD_MAX = 6 + TUNER_MAX_HOT + TUNER_MAX_COLD, NUMBERS_MAX = 5, TRIAL_MAX = 1 << 30 };

/* A trial as the log has it so far. */
struct trace_watch {
    int trial;
    bool runs;
    bool launched; /* anew, and has not trained since */
    bool anchored; /* the epoch's first stretch began at epoch_from_s */
    bool open;     /* the last stretch may grow */
    int epoch;     /* 0: none yet */
    size_t hot, cold;
    double epoch_from_s;
    size_t last; /* its newest stretch, while `open` */
};

void trace_windows_done(struct trace_windows *w)
{
    if (!w)
        return;
    free(w->list);
    free(w->watches);
    *w = (struct trace_windows){ 0 };
}

/* --- growing --- */

static struct trace_watch *find(const struct trace_windows *w, int trial)
{
    for (size_t i = w->n_watches; i-- > 0;) /* the newest trials are those that run */
        if (w->watches[i].trial == trial)
            return &w->watches[i];
    return NULL;
}

/* The trial's, made when it is new. */
static struct trace_watch *watch(struct trace_windows *w, int trial)
{
    struct trace_watch *t = find(w, trial);
    if (t)
        return t;
    struct trace_watch *grown = array_more(w->watches, w->n_watches, &w->cap_watches, sizeof *grown);
    if (!grown)
        return NULL;
    w->watches = grown;
    t = &grown[w->n_watches++];
    *t = (struct trace_watch){ .trial = trial };
    return t;
}

/* --- entries --- */

/* The epoch is trained again, from its beginning: what an attempt that was cut short has told of it is void. */
static void drop_from(struct trace_windows *w, int trial, int epoch)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].trial != trial || w->list[i].epoch < epoch)
            w->list[kept++] = w->list[i];
    if (kept < w->n) /* they have moved: nobody's last one is where it was */
        for (size_t i = 0; i < w->n_watches; i++)
            w->watches[i].open = false;
    w->n = kept;
}

static bool is_known(const struct trace_windows *w, int trial, int epoch)
{
    for (size_t i = w->n; i-- > 0;)
        if (w->list[i].trial == trial)
            return w->list[i].epoch == epoch; /* epochs of one trial stand in order */
    return false;
}

static void enter_epoch(struct trace_windows *w, struct trace_watch *t, int epoch, double from_s)
{
    if (t->launched)
        drop_from(w, t->trial, epoch);
    t->launched = false;
    t->anchored = !is_known(w, t->trial, epoch); /* else another driver saw it begin, by a clock that we don't know */
    t->epoch_from_s = from_s;
    t->epoch = epoch;
    t->open = false;
}

static bool has_alike(const struct trace_windows *w, size_t hot)
{
    return (hot > 0 && w->cores[hot - 1] == w->cores[hot]) ||
           (hot + 1 < w->n_hot && w->cores[hot + 1] == w->cores[hot]); /* they ascend */
}

static int begin_stretch(struct trace_windows *w, struct trace_watch *t, double from_s)
{
    struct trace_stretch *grown = array_more(w->list, w->n, &w->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    w->list = grown;
    t->last = w->n++;
    t->open = true;
    grown[t->last] = (struct trace_stretch){ .trial = t->trial,
                                             .epoch = t->epoch,
                                             .hot = (int)t->hot,
                                             .alike = has_alike(w, t->hot),
                                             .cores = w->cores[t->hot],
                                             .memory_gb = w->memory_gb[t->cold],
                                             .from_s = t->anchored ? from_s - t->epoch_from_s : (double)NAN };
    return 0;
}

static int take_steps(struct trace_windows *w, struct trace_watch *t, const double v[NUMBERS_MAX])
{
    double t_s = v[1], seconds = v[3], records = v[4];
    if (!t || !t->runs || !(v[2] >= 1 && v[2] <= TRIAL_MAX))
        return 0;
    int epoch = (int)v[2];
    if (t->launched || epoch != t->epoch)
        enter_epoch(w, t, epoch, t_s - seconds);
    int rc = t->open ? 0 : begin_stretch(w, t, t_s - seconds);
    if (rc < 0)
        return rc;
    w->list[t->last].seconds += seconds;
    w->list[t->last].records += records;
    return 0;
}

/* False: there is no such setting. */
static bool take_setting(const struct trace_windows *w, struct trace_watch *t, double hot, double cold)
{
    if (!(hot >= 0 && hot < (double)w->n_hot && cold >= 0 && cold < (double)w->n_cold))
        return false;
    t->open &= (size_t)hot == t->hot && (size_t)cold == t->cold;
    t->hot = (size_t)hot;
    t->cold = (size_t)cold;
    return true;
}

static int start(struct trace_windows *w, int trial, const double v[NUMBERS_MAX])
{
    struct trace_watch *t = watch(w, trial);
    if (!t)
        return -ENOMEM;
    t->open = false;
    t->epoch = 0; /* whichever comes, it is looked at anew */
    t->runs = take_setting(w, t, v[2], v[3]);
    return 0;
}

static int launch(struct trace_windows *w, int trial)
{
    struct trace_watch *t = watch(w, trial);
    if (!t)
        return -ENOMEM;
    t->launched = true;
    return 0;
}

/* --- lines --- */

/* The numbers from here on, at most `max`; stops at what is none. */
static size_t numbers(const char *at, double *out, size_t max)
{
    size_t n = 0;
    for (char *end; n < max; at = end) {
        out[n] = strtod(at, &end);
        if (end == at)
            break;
        n++;
    }
    return n;
}

/* A list with its count before it; returns what stands behind, NULL when it is none. */
static const double *take_list(const double *at, const double *end, size_t max, double *out, size_t *out_n)
{
    if (at >= end || !(*at >= 1 && *at <= (double)max) || end - at <= (ptrdiff_t)*at)
        return NULL;
    *out_n = (size_t)*at++;
    memcpy(out, at, *out_n * sizeof *out);
    return at + *out_n;
}

/* A new machine, for another choice of settings: nobody is watched any more. */
static void take_head(struct trace_windows *w, const char *at)
{
    double v[HEAD_MAX];
    for (int words = 0; words < 2; words++) { /* version, policy */
        at += strspn(at, " ");
        at += strcspn(at, " ");
    }
    const double *end = v + numbers(at, v, HEAD_MAX);
    for (size_t i = 0; i < w->n_watches; i++)
        w->watches[i].runs = false;
    w->n_hot = w->n_cold = 0;
    const double *cold = end - v > 4 ? take_list(v + 4, end, TUNER_MAX_HOT, w->cores, &w->n_hot) : NULL;
    if (!cold || !take_list(cold, end, TUNER_MAX_COLD, w->memory_gb, &w->n_cold))
        w->n_hot = w->n_cold = 0;
}

int trace_windows_line(struct trace_windows *w, const char *line)
{
    double v[NUMBERS_MAX] = { 0 };
    if (line[0] == 'H')
        return take_head(w, line + 1), 0;
    size_t n = line[0] ? numbers(line + 1, v, NUMBERS_MAX) : 0;
    if (n == 0 || !(v[0] >= 0 && v[0] <= TRIAL_MAX))
        return 0;
    int trial = (int)v[0];
    struct trace_watch *t = find(w, trial);
    switch (line[0]) {
    case 'L': return launch(w, trial);
    case 's': return n >= 4 ? start(w, trial, v) : 0;
    case 'i': return n == 5 ? take_steps(w, t, v) : 0;
    case 'a':
    case 'g':
        if (t && n == 4)
            (void)take_setting(w, t, v[2], v[3]); /* one that does not exist is not in force */
        return 0;
    case 'b':
        if (t)
            t->open = false;
        return 0;
    case 'd':
    case 'x':
        if (t)
            t->runs = false;
        return 0;
    default: return 0;
    }
}
