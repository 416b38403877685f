#include "live/profiles.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "clustering/model_json.h"
#include "live/tuning.h"
#include "live/writer.h"
#include "monitoring/features.h"
#include "store/samples.h"
#include "store/times.h"

enum {
    KEPT_MAX = 4096,       /* samples of a trial in memory; the oldest go first */
    STORE_EVERY_MS = 5000, /* one transaction for many samples */
    STEPS_MAX = 65536,     /* that no sample has taken up; then none comes, and the older ones go */
    LOG_LAG_MS = 3000,     /* after which the log is taken to have told all of an interval */
    ANSWER_LAG_MS = 4000,  /* after which a window's last sample does not come any more */
};

/* Of an interval; in the rest there is validation, a checkpoint, or a pause. */
static const double TRAINS = 0.5;

struct entry {
    double t_ms, dt_ms, due_ms; /* due: our clock when it had ended and come */
    int node, epoch;
    char scope[8];
    bool alone, whole; /* whole: one setting was in force all the time */
    bool trains;       /* by the log: in most of it; of the driver's own node */
    struct tuner_setting setting;
    struct reading cells[FEATURES];
};

/* What the log told of a stretch of time: a training step, or a pause of the runtime. */
struct logged {
    double end_ms, seconds, records;
    bool pause;
};

/* A trial that is measured. */
struct measured {
    int trial;
    int64_t id; /* in the store */
    struct entry *list;
    size_t n, cap, stored, completed; /* stored <= completed <= n */
    struct logged *steps;             /* that end after the last interval which was completed */
    size_t n_steps, cap_steps;
    double step_ms;    /* when the newest one ended */
    bool tells_pauses; /* the log has them */
    int epoch;
    struct tuner_setting setting;
    bool has_setting;
    double set_ms; /* when it came into force */
    struct profiles_window asked;
    bool is_asked;
};

/* A profile that is not stored yet. */
struct made {
    int64_t trial; /* in the store */
    int epoch;
    double from_ms, to_ms;
    char *setting, *verdict; /* NULL: none */
    struct buf vector;
};

struct profiles {
    struct study *study;
    struct profile_space space;
    struct profile_sum sum;
    struct measured **trials;
    size_t n, cap;
    int64_t stored_ms, now_ms;
    struct made *made;
    size_t n_made, cap_made;
    bool hurries;       /* these are to be stored at once */
    bool storing;       /* they are handed over, and not in the store yet */
    struct err failure; /* of storing; code 0: none */
};

static void made_done(struct made *m)
{
    free(m->setting);
    free(m->verdict);
    buf_done(&m->vector);
}

/* --- opening --- */

int profiles_open(struct profiles **out, struct study *s, struct err *e)
{
    enum profile_kind kinds[FEATURES];
    for (int i = 0; i < FEATURES; i++)
        kinds[i] = feature_kind(i) == FEATURE_GAUGE ? PROFILE_GAUGE : PROFILE_COUNT;
    struct profiles *p = calloc(1, sizeof *p);
    if (!p)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    p->study = s;
    int rc = profile_space_init(&p->space, feature_names, kinds, FEATURES, e);
    if (rc == 0)
        rc = profile_sum_init(&p->sum, &p->space, e);
    if (rc < 0) {
        profiles_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

static void free_measured(struct measured *m)
{
    free(m->list);
    free(m->steps);
    free(m);
}

void profiles_close(struct profiles *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        free_measured(p->trials[i]);
    free(p->trials);
    for (size_t i = 0; i < p->n_made; i++)
        made_done(&p->made[i]);
    free(p->made);
    profile_sum_done(&p->sum);
    profile_space_done(&p->space);
    free(p);
}

const struct profile_space *profiles_space(const struct profiles *p)
{
    return &p->space;
}

/* --- the trials --- */

static struct measured *find(const struct profiles *p, int trial)
{
    for (size_t i = 0; p && i < p->n; i++)
        if (p->trials[i]->trial == trial)
            return p->trials[i];
    return NULL;
}

static struct measured *get(struct profiles *p, int trial)
{
    struct measured *m = find(p, trial);
    if (m)
        return m;
    struct measured **grown = array_more(p->trials, p->n, &p->cap, sizeof(struct measured *));
    m = grown ? calloc(1, sizeof *m) : NULL;
    if (grown)
        p->trials = grown;
    if (!m)
        return NULL;
    m->trial = trial;
    p->trials[p->n++] = m;
    return m;
}

static void drop(struct profiles *p, const struct measured *m)
{
    size_t i = 0;
    while (p->trials[i] != m)
        i++;
    free_measured(p->trials[i]);
    memmove(&p->trials[i], &p->trials[i + 1], (p->n - i - 1) * sizeof(struct measured *));
    p->n--;
}

void profiles_setting(struct profiles *p, int trial, struct tuner_setting to)
{
    struct measured *m = p ? get(p, trial) : NULL;
    if (!m || (m->has_setting && m->setting.hot == to.hot && m->setting.cold == to.cold))
        return; /* without memory for it nothing is measured either */
    m->setting = to;
    m->has_setting = true;
    m->set_ms = (double)study_clock_ms(p->study);
}

/* --- what comes --- */

static int keep(struct profiles *p, int trial, const struct logged *one, struct measured **out, struct err *e)
{
    struct measured *m = get(p, trial);
    if (m && m->n_steps == STEPS_MAX) {
        m->n_steps /= 2;
        memmove(m->steps, m->steps + m->n_steps, m->n_steps * sizeof *m->steps);
    }
    struct logged *grown = m ? array_more(m->steps, m->n_steps, &m->cap_steps, sizeof *grown) : NULL;
    if (!grown)
        return err_sys(e, -ENOMEM, "trial %d", trial);
    m->steps = grown;
    grown[m->n_steps++] = *one;
    *out = m;
    return 0;
}

int profiles_step(struct profiles *p, int trial, const struct profiles_step *step, struct err *e)
{
    struct measured *m = NULL;
    if (!p)
        return 0;
    double end_ms = times_on_clock(step->end_ms, (double)study_clock_ms(p->study));
    int rc =
        keep(p, trial, &(struct logged){ .end_ms = end_ms, .seconds = step->seconds, .records = step->records }, &m, e);
    if (rc < 0)
        return rc;
    m->step_ms = end_ms;
    m->epoch = step->epoch;
    return 0;
}

int profiles_pause(struct profiles *p, int trial, double end_ms, double seconds, struct err *e)
{
    struct measured *m = find(p, trial);
    if (m)
        m->tells_pauses = true;
    if (!m || m->epoch == 0) /* it does not train yet */
        return 0;
    end_ms = isfinite(end_ms) ? times_on_clock(end_ms, (double)study_clock_ms(p->study)) : m->step_ms;
    return keep(p, trial, &(struct logged){ .end_ms = end_ms, .seconds = seconds, .pause = true }, &m, e);
}

static size_t less(size_t n, size_t by)
{
    return n > by ? n - by : 0;
}

static void make_room(struct measured *m)
{
    const size_t gone = KEPT_MAX / 2; /* stored long ago, unless the store hangs */
    if (m->n < KEPT_MAX)
        return;
    memmove(m->list, m->list + gone, (m->n - gone) * sizeof *m->list);
    m->n -= gone;
    m->stored = less(m->stored, gone);
    m->completed = less(m->completed, gone);
}

int profiles_sampled(struct profiles *p, const struct study_trial *t, const struct nodes_sample *s, bool alone,
                     struct err *e)
{
    struct measured *m = p ? get(p, t->row.number) : NULL;
    if (!p)
        return 0;
    if (m)
        make_room(m);
    struct entry *grown = m ? array_more(m->list, m->n, &m->cap, sizeof *grown) : NULL;
    if (!grown)
        return err_sys(e, -ENOMEM, "trial %d", t->row.number);
    m->list = grown;
    m->id = t->row.id;
    struct entry *x = &m->list[m->n];
    *x = (struct entry){ .t_ms = s->t_ms, .dt_ms = s->dt_ms, .node = (int)s->node, .epoch = m->epoch, .alone = alone };
    x->due_ms = fmin(s->t_ms, (double)study_clock_ms(p->study));
    (void)snprintf(x->scope, sizeof x->scope, "%s", s->scope);
    x->setting = m->setting;
    x->whole = m->has_setting && m->set_ms <= s->t_ms - s->dt_ms;
    memcpy(x->cells, s->v, sizeof x->cells);
    m->n++;
    return 0;
}

/* --- the log's part of a sample --- */

/* Which share of a step lies within an interval. */
static double share(const struct logged *s, double from_ms, double to_ms)
{
    double ms = s->seconds > 0 ? 1000 * s->seconds : 0, begin = s->end_ms - ms;
    if (ms == 0)
        return s->end_ms > from_ms && s->end_ms <= to_ms;
    double within = fmin(s->end_ms, to_ms) - fmax(begin, from_ms);
    return within > 0 ? within / ms : 0;
}

struct taken {
    double steps, records, ms, pauses_s;
};

/* The steps of an interval; those that end in it or before are forgotten. */
static struct taken take_steps(struct measured *m, double from_ms, double to_ms)
{
    struct taken t = { 0 };
    size_t kept = 0;
    for (size_t i = 0; i < m->n_steps; i++) {
        const struct logged *x = &m->steps[i];
        double part = share(x, from_ms, to_ms), seconds = part * x->seconds;
        t.steps += x->pause ? 0 : part;
        t.records += x->pause ? 0 : part * x->records;
        t.ms += x->pause ? 0 : 1000 * seconds;
        t.pauses_s += x->pause ? seconds : 0;
        if (x->end_ms > to_ms)
            m->steps[kept++] = *x;
    }
    m->n_steps = kept;
    return t;
}

/* Of the driver's own node alone: a step is counted once. */
static void complete(struct measured *m, double until_ms)
{
    for (; m->completed < m->n; m->completed++) {
        struct entry *x = &m->list[m->completed];
        if (x->due_ms > until_ms && m->step_ms < x->t_ms) /* the step under way has not been told yet */
            return;
        if (x->node != 0 || m->epoch == 0)
            continue;
        struct taken t = take_steps(m, x->t_ms - x->dt_ms, x->t_ms);
        x->cells[FEATURE_LOG_ITERATIONS] = (struct reading){ .value = t.steps, .ratio = 1, .state = READING_OK };
        x->cells[FEATURE_LOG_RECORDS] = (struct reading){ .value = t.records, .ratio = 1, .state = READING_OK };
        if (m->tells_pauses)
            x->cells[FEATURE_LOG_GC_TIME] = (struct reading){ .value = t.pauses_s, .ratio = 1, .state = READING_OK };
        x->trains = t.steps > 0 && !(t.ms > 0 && t.ms < TRAINS * x->dt_ms);
    }
}

/* --- storing --- */

/* Inside a transaction; if that is not committed, the study ends. */
static int put(struct profiles *p, struct measured *m, struct err *e)
{
    int rc = 0;
    for (; rc == 0 && m->stored < m->completed; m->stored++) {
        const struct entry *x = &m->list[m->stored];
        struct store_sample row = {
            .t_ms = x->t_ms, .dt_ms = x->dt_ms, .node = x->node, .scope = x->scope, .v = x->cells
        };
        rc = store_sample_add(p->study->store, m->id, &row, e);
    }
    return rc;
}

static int put_made(struct store *s, const struct made *m, struct err *e)
{
    struct store_profile row = { .epoch = m->epoch,
                                 .t_from_ms = m->from_ms,
                                 .t_to_ms = m->to_ms,
                                 .setting = m->setting,
                                 .vector = buf_text(&m->vector),
                                 .verdict = m->verdict };
    return store_profile_add(s, m->trial, &row, e);
}

static int put_all(void *ctx, struct store *s, struct err *e)
{
    struct profiles *p = ctx;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n; i++)
        rc = put(p, p->trials[i], e);
    for (size_t i = 0; i < p->n_made; i++) {
        rc = rc == 0 ? put_made(s, &p->made[i], e) : rc;
        made_done(&p->made[i]);
    }
    p->n_made = 0;
    return rc;
}

static void on_stored(void *ctx, int rc, const struct err *e)
{
    struct profiles *p = ctx;
    p->storing = false;
    if (rc < 0)
        p->failure = *e; /* the next tick tells */
}

static int store_all(struct profiles *p, struct err *e)
{
    bool any = p->n_made > 0;
    for (size_t i = 0; i < p->n; i++)
        any |= p->trials[i]->stored < p->trials[i]->completed;
    if (!any || p->storing)
        return 0;
    const struct write one = { .rows = put_all, .done = on_stored, .ctx = p };
    p->hurries = false;
    int rc = writer_put(p->study->writer, p->study->store, one, e);
    p->storing = rc == 0 && p->study->writer;
    return rc;
}

/* --- windows --- */

static void add(struct profiles *p, const struct entry *x)
{
    double value[FEATURES];
    float ratio[FEATURES];
    uint8_t state[FEATURES];
    for (int i = 0; i < FEATURES; i++) {
        value[i] = x->cells[i].value;
        ratio[i] = x->cells[i].ratio;
        state[i] = x->cells[i].state;
    }
    profile_sum_add(&p->sum, &p->space, value, ratio, state, x->dt_ms / 1000);
}

/* 1: it was made; 0: nothing was measured; -ENOMEM. */
static int make(struct profiles *p, struct profile *out, struct err *e)
{
    int rc = profile_make(out, &p->space, &p->sum, e);
    return rc == -ENODATA ? 0 : rc < 0 ? rc : 1;
}

static int answer_one(struct profiles *p, const struct profiles_window *w, profiles_answer *answer, void *ctx,
                      struct err *e)
{
    struct profile made = { 0 };
    int rc = make(p, &made, e);
    if (rc >= 0)
        rc = answer(ctx, w, rc > 0 ? &made : NULL, e);
    profile_done(&made);
    return rc;
}

int profiles_ask(struct profiles *p, const struct profiles_window *w, struct err *e)
{
    struct measured *m = p ? get(p, w->trial) : NULL;
    if (!p)
        return 0;
    if (!m)
        return err_sys(e, -ENOMEM, "trial %d", w->trial);
    m->asked = *w;
    m->is_asked = true;
    return 0;
}

static int make_row(const struct profiles *p, const struct study_trial *t, const struct profiles_window *w,
                    const struct profile *profile, const char *verdict, struct made *out, struct err *e)
{
    const struct tuning *tuning = p->study->tuning;
    struct made m = { .trial = t->row.id, .epoch = w->epoch, .from_ms = w->from_ms, .to_ms = w->to_ms };
    m.setting = tuning ? tuning_setting_text(tuning, w->setting) : NULL;
    m.verdict = verdict ? strdup(verdict) : NULL;
    model_json_put_profile(&m.vector, &p->space, profile);
    if (m.vector.failed || (tuning && !m.setting) || (verdict && !m.verdict)) {
        made_done(&m);
        return err_sys(e, -ENOMEM, "trial %d", w->trial);
    }
    *out = m;
    return 0;
}

int profiles_store(const struct profiles *p, const struct study_trial *t, const struct profiles_window *w,
                   const struct profile *profile, const char *verdict, struct err *e)
{
    struct made m;
    int rc = make_row(p, t, w, profile, verdict, &m, e);
    if (rc < 0)
        return rc;
    rc = put_made(p->study->store, &m, e);
    made_done(&m);
    return rc;
}

int profiles_store_soon(struct profiles *p, const struct study_trial *t, const struct profiles_window *w,
                        const struct profile *profile, const char *verdict, struct err *e)
{
    struct made *grown = array_more(p->made, p->n_made, &p->cap_made, sizeof *grown);
    if (!grown)
        return err_sys(e, -ENOMEM, "trial %d", w->trial);
    p->made = grown;
    int rc = make_row(p, t, w, profile, verdict, &grown[p->n_made], e);
    p->n_made += rc == 0;
    p->hurries = true;
    return rc;
}

/* Half of an interval or more within the window. */
static bool is_within(const struct entry *x, const struct profiles_window *w)
{
    double mid = x->t_ms - x->dt_ms / 2;
    return mid > w->from_ms && mid <= w->to_ms;
}

static int answer_asked(struct profiles *p, struct measured *m, double now_ms, profiles_answer *answer, void *ctx,
                        struct err *e)
{
    const struct entry *newest = m->completed ? &m->list[m->completed - 1] : NULL;
    double lag = ANSWER_LAG_MS + p->study->plan->cfg.interval_s * 1000;
    if (!m->is_asked || ((!newest || newest->t_ms < m->asked.to_ms) && now_ms < m->asked.to_ms + lag))
        return 0;
    m->is_asked = false;
    profile_sum_clear(&p->sum);
    for (size_t i = 0; i < m->completed; i++)
        if (is_within(&m->list[i], &m->asked))
            add(p, &m->list[i]);
    struct profiles_window w = m->asked; /* who is answered may ask again */
    return answer_one(p, &w, answer, ctx, e);
}

int profiles_tick(struct profiles *p, int64_t now_ms, profiles_answer *answer, void *ctx, struct err *e)
{
    bool set_back = p && now_ms < p->now_ms; /* the clock was: what waits for its time has waited long enough */
    int rc = 0;
    for (size_t i = 0; p && rc == 0 && i < p->n; i++) {
        complete(p->trials[i], set_back ? (double)INFINITY : (double)(now_ms - LOG_LAG_MS));
        rc = answer_asked(p, p->trials[i], (double)now_ms, answer, ctx, e);
    }
    if (!p || rc < 0)
        return rc;
    if (p->failure.code < 0)
        return err_set(e, p->failure.code, "%s", p->failure.text);
    p->now_ms = now_ms;
    if (!set_back && !p->hurries && now_ms - p->stored_ms < STORE_EVERY_MS)
        return 0;
    p->stored_ms = now_ms;
    return store_all(p, e);
}

/* --- the end of a trial --- */

/* What is left of a long epoch goes no further than its end; epochs that are shorter than a window make one together. */
static bool continues(const struct measured *m, const struct entry *x, const struct entry *first)
{
    bool is_rest = first > m->list && first[-1].epoch == first->epoch;
    return (x->epoch == first->epoch || !is_rest) && x->setting.hot == first->setting.hot &&
           x->setting.cold == first->setting.cold;
}

static bool can_teach(const struct entry *x)
{
    return x->alone && x->whole && x->epoch > 0 && (x->node != 0 || x->trains);
}

/* Windows as long as the tuner's, or a little less; longer where the samples are. */
static int teach(struct profiles *p, const struct measured *m, profiles_answer *each, void *ctx, struct err *e)
{
    const double window_ms = p->study->plan->cfg.window_seconds * 1000;
    int rc = 0;
    for (size_t i = 0, end; rc == 0 && i < m->completed; i = end) {
        const struct entry *first = &m->list[i];
        double from = first->t_ms - first->dt_ms, to = from;
        profile_sum_clear(&p->sum);
        for (end = i; end < m->completed && can_teach(&m->list[end]) && continues(m, &m->list[end], first) &&
                      to - from < window_ms * 0.8;
             end++) {
            add(p, &m->list[end]);
            to = m->list[end].t_ms;
        }
        struct profiles_window w = { m->trial, from, to, first->epoch, first->setting };
        if (to - from >= window_ms * 0.8)
            rc = answer_one(p, &w, each, ctx, e);
        end = end > i ? end : i + 1;
    }
    return rc;
}

int profiles_end(struct profiles *p, int trial, bool finished, profiles_answer *each, void *ctx, struct err *e)
{
    struct measured *m = find(p, trial);
    if (!m)
        return 0;
    complete(m, INFINITY);
    int rc = put(p, m, e);
    if (rc == 0 && finished)
        rc = teach(p, m, each, ctx, e);
    drop(p, m);
    return rc;
}
