#include "core/replay.h"

#include <math.h>
#include <stdbool.h>

/* What one trial took, and the cell it ended on (-1: it has no single one). */
struct trial {
    double time_s;
    int cell;
};

/* `d` is the job's start cell, so at least that one is feasible; `last` is the job's trial before, NULL: none. */
typedef struct trial trial_fn(const struct timeline_job *job, const struct replay_options *o, int d,
                              const struct trial *last);

/* --- pieces of the formulas --- */

/* Without a start-up no launch has a price, so none can be chosen: to a policy such a job is like one that nothing ran for. */
int replay_start_cell(const struct timeline_job *job, enum replay_default start)
{
    int found = -1;
    if (!isfinite(job->startup_s))
        return -1;
    for (size_t i = 0; i < job->n_cells; i++) {
        if (!job->cells[i].feasible)
            continue;
        found = (int)i;
        if (start == REPLAY_FIRST)
            break;
    }
    return found;
}

/* fresh(c, n) without the start-up: n epochs from a cold start. */
static double epochs_s(const struct timeline_cell *c, int n)
{
    return c->first_s + (n - 1) * c->steady_s;
}

static double fresh_s(const struct timeline_job *job, int cell, int n)
{
    return job->startup_s + epochs_s(&job->cells[cell], n);
}

/* The probes of a job that starts at cell `d`: the other cores at d's memory, then the other memories at d's cores. */
struct probes {
    const struct timeline_job *job;
    const struct timeline_cell *d;
    size_t next;
    bool memories; /* the second half */
};

/* A trace of cores alone has no memory at all: NAN, which is the same memory then. */
static bool same_memory(const struct timeline_cell *a, const struct timeline_cell *b)
{
    return a->memory_gb == b->memory_gb || (isnan(a->memory_gb) && isnan(b->memory_gb));
}

static bool is_probe(const struct probes *p, const struct timeline_cell *c)
{
    bool cores = c->cores == p->d->cores, memory = same_memory(c, p->d);
    return c->feasible && (p->memories ? cores && !memory : memory && !cores);
}

/* The next probe's cell, -1 after the last. Cells are sorted, so both halves come in ascending order. */
static int next_probe(struct probes *p)
{
    for (;;) {
        while (p->next < p->job->n_cells) {
            size_t i = p->next++;
            if (is_probe(p, &p->job->cells[i]))
                return (int)i;
        }
        if (p->memories)
            return -1;
        p->memories = true;
        p->next = 0;
    }
}

/* --- policies: one trial each --- */

static struct trial v1(const struct timeline_job *job, const struct replay_options *o, enum replay_default which)
{
    int c = replay_start_cell(job, which);
    return (struct trial){ fresh_s(job, c, o->epochs), c };
}

static struct trial v1_first(const struct timeline_job *job, const struct replay_options *o, int d,
                             const struct trial *last)
{
    (void)d, (void)last;
    return v1(job, o, REPLAY_FIRST);
}

static struct trial v1_max(const struct timeline_job *job, const struct replay_options *o, int d,
                           const struct trial *last)
{
    (void)d, (void)last;
    return v1(job, o, REPLAY_LAST);
}

/* The sum over all feasible cells; `cell` is the quickest of them, which a grid search ends on. */
static struct trial grid_of(const struct timeline_job *job, const struct replay_options *o, size_t *out_n)
{
    struct trial all = { .cell = -1 };
    double best = INFINITY;
    for (size_t i = 0; i < job->n_cells; i++) {
        if (!job->cells[i].feasible)
            continue;
        double s = fresh_s(job, (int)i, o->epochs);
        all.time_s += s;
        (*out_n)++;
        if (s < best) {
            best = s;
            all.cell = (int)i;
        }
    }
    return all;
}

static struct trial v2_grid(const struct timeline_job *job, const struct replay_options *o, int d,
                            const struct trial *last)
{
    (void)d, (void)last;
    size_t n = 0;
    return grid_of(job, o, &n);
}

/* What a random setting costs on average; so there is no setting that it ends on. */
static struct trial v2_random(const struct timeline_job *job, const struct replay_options *o, int d,
                              const struct trial *last)
{
    (void)d, (void)last;
    size_t n = 0;
    struct trial all = grid_of(job, o, &n);
    return (struct trial){ all.time_s / (double)n, -1 };
}

/* Each probe is a submission of one epoch; the best one is then submitted for `n` epochs. */
static struct trial submit_probes(const struct timeline_job *job, int d, int n)
{
    struct probes p = { .job = job, .d = &job->cells[d] };
    struct trial t = { fresh_s(job, d, 1), d };
    for (int c; (c = next_probe(&p)) >= 0;) {
        t.time_s += fresh_s(job, c, 1);
        if (job->cells[c].first_s < job->cells[t.cell].first_s)
            t.cell = c;
    }
    t.time_s += fresh_s(job, t.cell, n);
    return t;
}

/* As published: the last run counts the four probes among its epochs, although it trains anew. */
static struct trial original(const struct timeline_job *job, const struct replay_options *o, int d,
                             const struct trial *last)
{
    (void)last;
    return submit_probes(job, d, o->epochs > 5 ? o->epochs - 4 : 1);
}

static struct trial orig_fair(const struct timeline_job *job, const struct replay_options *o, int d,
                              const struct trial *last)
{
    (void)last;
    return submit_probes(job, d, o->epochs);
}

/* A probe in epoch `epoch`; where that was not recorded, the mean stands for it. */
static double probe_s(const struct timeline_cell *c, const struct replay_options *o, int epoch)
{
    bool recorded = (size_t)epoch <= c->n_epochs && isfinite(c->epochs[epoch - 1].duration_s);
    return o->probe == REPLAY_RECORDED && recorded ? c->epochs[epoch - 1].duration_s : c->steady_s;
}

static struct trial paper_first(const struct timeline_job *job, const struct replay_options *o, int d)
{
    struct probes p = { .job = job, .d = &job->cells[d] };
    double best = job->cells[d].first_s;
    struct trial t = { fresh_s(job, d, 1), d };
    int epoch = 1; /* run so far */
    for (int c; epoch < o->epochs && (c = next_probe(&p)) >= 0;) {
        double s = probe_s(&job->cells[c], o, ++epoch);
        t.time_s += s;
        if (s < best) {
            best = s;
            t.cell = c;
        }
    }
    t.time_s += (o->epochs - epoch) * job->cells[t.cell].steady_s;
    return t;
}

static struct trial paper(const struct timeline_job *job, const struct replay_options *o, int d,
                          const struct trial *last)
{
    if (!last)
        return paper_first(job, o, d);
    double first = fresh_s(job, d, 1);
    return (struct trial){ first + (o->epochs - 1) * job->cells[last->cell].steady_s, last->cell };
}

static struct trial oracle(const struct timeline_job *job, const struct replay_options *o, int d,
                           const struct trial *last)
{
    (void)last;
    int best = d;
    for (int i = (int)job->n_cells - 1; i >= 0; i--) /* backwards: the earliest of equals wins */
        if (job->cells[i].feasible && epochs_s(&job->cells[i], o->epochs) <= epochs_s(&job->cells[best], o->epochs))
            best = i;
    return (struct trial){ fresh_s(job, best, o->epochs), best };
}

/* --- jobs --- */

static struct replay_outcome run_job(const struct timeline_job *job, const struct replay_options *o, trial_fn *one)
{
    struct replay_outcome out = { .time_s = NAN };
    int d = replay_start_cell(job, o->start);
    if (d < 0)
        return out;
    struct trial t = one(job, o, d, NULL);
    out.time_s = t.time_s;
    for (int r = 1; r < o->repeat; r++) {
        struct trial last = t;
        t = one(job, o, d, &last);
        out.time_s += t.time_s;
    }
    if (t.cell >= 0) {
        out.cores = job->cells[t.cell].cores;
        out.memory_gb = job->cells[t.cell].memory_gb;
    }
    return out;
}

static int run_jobs(const struct timeline_jobs *jobs, const struct replay_options *o, struct replay_outcome *out,
                    trial_fn *one)
{
    for (size_t i = 0; i < jobs->n; i++)
        out[i] = run_job(&jobs->jobs[i], o, one);
    return 0;
}

/* These policies know nothing that passes from job to job: run_NAME() is NAME() for each job by itself. */
#define RUN(NAME)                                                                                                      \
    static int run_##NAME(const struct timeline_jobs *jobs, const struct replay_options *o,                            \
                          struct replay_outcome *out, struct err *e)                                                   \
    {                                                                                                                  \
        (void)e;                                                                                                       \
        return run_jobs(jobs, o, out, NAME);                                                                           \
    }

RUN(v1_first)
RUN(v1_max)
RUN(v2_random)
RUN(v2_grid)
RUN(original)
RUN(orig_fair)
RUN(paper)
RUN(oracle)

const struct replay_policy replay_policies[] = {
    { "v1_first", "always the first feasible setting", run_v1_first },
    { "v1_max", "always the last feasible setting", run_v1_max },
    { "v2_random", "a random setting: the mean over the feasible ones", run_v2_random },
    { "v2_grid", "every feasible setting, one after the other", run_v2_grid },
    { "original", "each probe a submission, the last run shorter by four epochs, as published", run_original },
    { "orig_fair", "each probe a submission, then all epochs at the best", run_orig_fair },
    { "paper", "one probe per epoch inside the first trial", run_paper },
    { "pipetune", "the live tuner", replay_pipetune },
    { "oracle", "the best setting, known beforehand", run_oracle },
    { NULL, NULL, NULL },
};
