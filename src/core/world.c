#include "core/world.h"

#include <math.h>
#include <stdio.h>

struct world world_draw(struct rng *g)
{
    static const int cores[][6] = { { 4, 8, 16 }, { 2, 4, 8, 16 }, { 1, 2, 4, 8, 16 }, { 4, 16 } };
    static const int memory[][6] = { { 4, 8, 16, 32 }, { 8, 16, 32 }, { 2, 4, 8, 16, 32 }, { 4, 8 } };
    static const int batches[][6] = { { 32, 64, 512, 1024 }, { 64, 256, 1024 }, { 32, 64, 128, 256, 512 } };
    bool few = rng_chance(g, 0.7); /* cores beat many for small batches */
    return (struct world){
        .texts = !rng_chance(g, 0.5),
        .cores = cores[rng_whole(g, 0, 3)],
        .memory = memory[rng_whole(g, 0, 3)],
        .batches = batches[rng_whole(g, 0, 2)],
        .epochs = rng_whole(g, 10, 20),
        .epoch_s = rng_log_between(g, 30, 300),
        .small = few ? rng_between(g, 0, log(2)) : -rng_between(g, 0, log(2)),
        .large = -rng_between(g, 0, log(4)),
        .bend = rng_chance(g, 0.5) ? rng_between(g, 0, 0.3) : 0,
        .batch_effect = rng_log_between(g, 1, 4),
        .memory_effect = rng_between(g, -0.02, 0.02),
        .need_gb = rng_log_between(g, 1.5, 16),
        .need_batch = rng_log_between(g, 1, 4),
        .need_cores = rng_log_between(g, 1, 2),
        .dies_below = rng_between(g, 0.7, 1),
        .starved = rng_log_between(g, 1.5, 15),
        .startup_s = rng_chance(g, 0.7) ? rng_between(g, 300, 900) : rng_log_between(g, 5, 300),
        .cold = rng_between(g, 1, 1.4),
        .run_noise = rng_log_between(g, 0.002, 0.01),
        .epoch_noise = rng_log_between(g, 0.005, 0.03),
        .broken = rng_chance(g, 0.3) ? 0.02 : 0,
    };
}

/* 0: the least of a list, 1: the most, by doublings. */
static double doublings(const int *list, int x)
{
    int most = 0;
    for (const int *i = list; *i; i++)
        most = *i;
    return log((double)x / list[0]) / log((double)most / list[0]);
}

static double need_gb(const struct world *w, int cores, int batch)
{
    return w->need_gb * pow(w->need_batch, doublings(w->batches, batch)) *
           pow(w->need_cores, doublings(w->cores, cores));
}

/* 0: enough, 1: just not out of memory. */
static double missing(const struct world *w, int cores, int memory, int batch)
{
    double need = need_gb(w, cores, batch);
    return memory >= need ? 0 : (1 - memory / need) / (1 - w->dies_below);
}

/* Over one that is just enough; NAN: out of memory. */
static double of_memory(const struct world *w, int cores, int memory, int batch)
{
    if (memory >= need_gb(w, cores, batch))
        return exp(w->memory_effect * doublings(w->memory, memory));
    double short_of = missing(w, cores, memory, batch);
    return short_of > 1 ? NAN : pow(w->starved, short_of);
}

double world_epoch_s(const struct world *w, int cores, int memory, int batch)
{
    double x = doublings(w->cores, cores), b = doublings(w->batches, batch);
    double many = w->small + (w->large - w->small) * b;
    return w->epoch_s * exp(many * x + 4 * w->bend * (x - 0.5) * (x - 0.5)) * pow(w->batch_effect, 1 - b) *
           of_memory(w, cores, memory, batch);
}

/* --- a study of it --- */

static void fill_cells(struct world_study *s, int batch)
{
    for (int h = 0; h < s->space.n_hot; h++) {
        for (int c = 0; c < s->space.n_cold; c++) {
            int cores = (int)s->space.cores[h], memory = (int)s->space.memory[c];
            s->cells[batch][h][c] = (struct world_cell){ world_epoch_s(&s->w, cores, memory, s->batch[batch]),
                                                         missing(&s->w, cores, memory, s->batch[batch]) };
        }
    }
}

void world_study(struct world_study *out, uint64_t seed)
{
    struct rng g = rng_seeded(seed);
    *out = (struct world_study){ .w = world_draw(&g), .crowded = rng_between(&g, 0, 0.15) };
    struct tuner_space *s = &out->space;
    for (const int *c = out->w.cores; *c; c++)
        s->cores[s->n_hot++] = *c;
    for (const int *m = out->w.memory; *m; m++)
        s->memory[s->n_cold++] = *m;
    (void)snprintf(out->family, sizeof out->family, "world %llu", (unsigned long long)(seed % 1000000000));
    for (const int *b = out->w.batches; *b; b++) {
        (void)snprintf(out->class[out->n_batches], sizeof *out->class, "%s/%d", out->family, *b);
        out->batch[out->n_batches] = *b;
        fill_cells(out, out->n_batches++);
    }
}

struct sim_job world_job(const struct world_study *s, int number)
{
    int at = (number - 1) % s->n_batches, cold = 0;
    while (cold + 1 < s->space.n_cold && s->space.memory[cold] < need_gb(&s->w, s->w.cores[0], s->batch[at]))
        cold++;
    return (struct sim_job){ .trial = number,
                             .class_key = s->class[at],
                             .family_key = s->family,
                             .epochs = s->w.epochs,
                             .steps = WORLD_STEPS,
                             .start = { 0, cold } };
}

/* --- what a run is told of it --- */

static const struct world_cell *cell_of(const struct world_study *s, const struct sim_run *r, struct tuner_setting at)
{
    return &s->cells[(r->job.trial - 1) % s->n_batches][at.hot][at.cold];
}

static bool has(void *ctx, const struct sim_run *r, struct tuner_setting at)
{
    return !isnan(cell_of(ctx, r, at)->epoch_s);
}

/* Warming up takes about a third of an epoch; the first one is w.cold times as long as those that follow. */
static double step_s(void *ctx, const struct sim_run *r)
{
    static const double PACE = 3;
    const struct world_study *s = ctx;
    double trained = r->epoch - r->first + (double)r->step / r->job.steps; /* epochs of this launch */
    double mean = (1 - exp(-PACE)) / PACE;                                 /* of exp(-PACE x) over an epoch */
    double warm = 1 + (s->w.cold - 1) * exp(-PACE * trained) / (r->whole ? 1 : mean);
    return cell_of(s, r, r->at)->epoch_s / WORLD_STEPS * warm * exp(s->crowded * r->beside + r->bias);
}

static double startup_s(void *ctx, struct sim_run *r)
{
    const struct world_study *s = ctx;
    r->bias = s->w.run_noise * rng_normal(&r->rng);
    r->wander = rng_normal(&r->rng);
    return s->w.startup_s * rng_between(&r->rng, 0.9, 1.1);
}

/* Steps remember the one before them: a mean over an epoch of them then varies as w.epoch_noise says. */
static double noise(void *ctx, struct sim_run *r, int steps)
{
    static const double KEPT = 0.9;
    const struct world_study *s = ctx;
    double of_step = s->w.epoch_noise * sqrt(WORLD_STEPS * (1 - KEPT) / (1 + KEPT));
    if (steps > 1)
        return exp(s->w.epoch_noise * rng_normal(&r->rng));
    r->wander = KEPT * r->wander + sqrt(1 - KEPT * KEPT) * rng_normal(&r->rng);
    return exp(of_step * r->wander);
}

/* Some are killed; and where there is hardly enough memory a launch may run out of it in its first epoch. */
static double dies_s(void *ctx, struct sim_run *r, enum outcome *out_why)
{
    const struct world_study *s = ctx;
    const struct world_cell *c = cell_of(s, r, r->at);
    double when = c->epoch_s * rng_unit(&r->rng);
    bool starves = rng_chance(&r->rng, c->missing);
    bool killed = rng_chance(&r->rng, s->w.broken);
    *out_why = starves ? OUTCOME_REFUSED : OUTCOME_KILLED;
    return starves ? when : killed ? when * s->w.epochs : INFINITY;
}

const struct sim_world world_calls = {
    .has = has, .step_s = step_s, .startup_s = startup_s, .noise = noise, .dies_s = dies_s, .whole_epochs = true
};
