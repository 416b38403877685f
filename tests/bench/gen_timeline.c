#include "tests/bench/gen_timeline.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/rng.h"
#include "core/timeline_csv.h"
#include "core/world.h"

enum { CORES_MAX = 5, MEMORY_MAX = 4, BATCHES_MAX = 4, MODELS = 8, DATASETS = 6 };

/* How a setting's speed depends on its cores. */
enum shape { SCALES, HURTS, VALLEY, ALIKE, ANY, SHAPES };

struct workload {
    const char *model, *dataset;
    int cores[CORES_MAX], memory[MEMORY_MAX], batches[BATCHES_MAX];
    int n_cores, n_memory, n_batches, epochs;
    enum shape shape;
    double spread;         /* the worst core number over the best */
    double valley;         /* where the best one lies, 0…1 */
    double any[CORES_MAX]; /* exponents of ANY */
    bool small_hurts;      /* more cores are slower for small batches */
    double memory_effect;  /* the least memory over the most; 1: none; below 1: more is slower */
    double epoch_s, startup_s, cold, noise;
    int fits_from; /* memory sizes below this one are too small for the largest batch */
    double missing, broken;
};

struct gen {
    struct rng rng;
    struct buf *out;
    double now_s;
};

struct place { /* of a setting in its workload */
    int core, memory, batch;
};

/* --- drawing --- */

/* n powers of two, ascending, out of the first `room` from `least` on. */
static void ladder(struct gen *g, int *out, int n, int least, int room)
{
    for (int step = 0, left = n; left > 0; step++)
        if (rng_chance(&g->rng, (double)left / (room - step)))
            out[n - left--] = least << step;
}

static struct workload draw(struct gen *g, int index)
{
    static const char *const models[MODELS] = { "lenet",    "vgg",       "resnet",      "lstm",
                                                "cnn-text", "inception", "autoencoder", "mlp" };
    static const char *const datasets[DATASETS] = { "mnist", "fashion", "cifar10", "news20", "imdb", "wiki" };
    struct workload w = {
        .model = models[index % MODELS],
        .dataset = datasets[rng_whole(&g->rng, 0, DATASETS - 1)],
        .n_cores = rng_whole(&g->rng, 2, CORES_MAX),
        .n_memory = rng_whole(&g->rng, 1, MEMORY_MAX),
        .n_batches = rng_whole(&g->rng, 1, BATCHES_MAX),
        .epochs = rng_whole(&g->rng, 2, 30),
        .shape = (enum shape)rng_whole(&g->rng, 0, SHAPES - 1),
        .spread = rng_log_between(&g->rng, 1.05, 15),
        .valley = rng_between(&g->rng, 0.2, 0.8),
        .small_hurts = rng_chance(&g->rng, 0.4),
        .memory_effect = rng_chance(&g->rng, 0.4) ? 1 : rng_log_between(&g->rng, 0.9, 3),
        .epoch_s = rng_log_between(&g->rng, 5, 2000),
        .startup_s = rng_log_between(&g->rng, 45, 800),
        .cold = rng_between(&g->rng, 1, 3),
        .noise = rng_log_between(&g->rng, 0.005, 0.08),
        .missing = rng_chance(&g->rng, 0.5) ? rng_between(&g->rng, 0, 0.2) : 0,
        .broken = rng_chance(&g->rng, 0.5) ? rng_between(&g->rng, 0, 0.1) : 0,
    };
    ladder(g, w.cores, w.n_cores, 1, 6);
    ladder(g, w.memory, w.n_memory, 2, 6);
    ladder(g, w.batches, w.n_batches, 16, 8);
    for (int i = 0; i < w.n_cores; i++)
        w.any[i] = i && rng_chance(&g->rng, 0.3) ? w.any[i - 1] : rng_between(&g->rng, 0, 1); /* some tie */
    w.fits_from = rng_chance(&g->rng, 0.5) ? rng_whole(&g->rng, 0, w.n_memory - 1) : 0;
    return w;
}

/* --- how long an epoch takes --- */

static double position(int i, int n)
{
    return n > 1 ? (double)i / (n - 1) : 1;
}

/* 0: the best core number, 1: the worst. */
static double core_exponent(const struct workload *w, struct place p)
{
    double x = position(p.core, w->n_cores), b = position(p.batch, w->n_batches);
    switch (w->shape) {
    case SCALES: return w->small_hurts ? b * (1 - x) + (1 - b) * x : 1 - x;
    case HURTS: return x;
    case VALLEY: return fabs(x - w->valley) / fmax(w->valley, 1 - w->valley);
    case ANY: return w->any[p.core];
    default: return 0;
    }
}

/* Over the best setting of the batch; 15 at most. */
static double slowness(const struct workload *w, struct place p)
{
    double y = position(p.memory, w->n_memory);
    double factor = pow(w->spread, core_exponent(w, p)) * pow(w->memory_effect, 1 - y);
    return fmin(factor, 15);
}

/* A larger batch is somewhat quicker, and needs more memory. */
static double steady_s(const struct workload *w, struct place p)
{
    return w->epoch_s * slowness(w, p) * pow(0.85, p.batch);
}

static bool fits(const struct workload *w, struct place p)
{
    return p.memory >= w->fits_from * (p.batch + 1) / w->n_batches;
}

/* --- rows --- */

static void put_row(struct gen *g, const struct workload *w, struct place p, int attempt, const char *epoch)
{
    int cores = w->cores[p.core], memory = w->memory[p.memory], batch = w->batches[p.batch];
    buf_printf(g->out, "%s,%s,%d,%d,%d,%s-%d-%d-%d-%d.log,%s,%.3f\n", w->model, w->dataset, cores, memory, batch,
               w->model, cores, memory, batch, attempt, epoch, g->now_s);
}

/* `epochs` begin; the last one is cut when the run is not whole. */
static void put_run(struct gen *g, const struct workload *w, struct place p, int attempt, int epochs)
{
    char name[16];
    double cold = fmin(3, 1 + (w->cold - 1) * rng_between(&g->rng, 0.7, 1.3));
    put_row(g, w, p, attempt, "0");
    if (epochs > 0)
        g->now_s += w->startup_s * rng_between(&g->rng, 0.9, 1.1);
    for (int k = 1; k <= epochs; k++) {
        (void)snprintf(name, sizeof name, "%d", k);
        put_row(g, w, p, attempt, name);
        double s = steady_s(w, p) * (k == 1 ? cold : 1) * exp(w->noise * rng_normal(&g->rng));
        g->now_s += k == epochs && epochs < w->epochs ? s * rng_unit(&g->rng) : s;
    }
    if (!rng_chance(&g->rng, w->broken / 10)) /* else it was never seen to end */
        put_row(g, w, p, attempt, "end");
    g->now_s += 5;
}

static void put_setting(struct gen *g, const struct workload *w, struct place p)
{
    if (rng_chance(&g->rng, w->missing))
        return;
    bool broken = !fits(w, p) || rng_chance(&g->rng, w->broken);
    int epochs = !broken ? w->epochs : rng_chance(&g->rng, 0.5) ? 0 : rng_whole(&g->rng, 1, w->epochs - 1);
    put_run(g, w, p, 1, epochs);
    if (rng_chance(&g->rng, w->broken / 2)) /* somebody tried again */
        put_run(g, w, p, 2, fits(w, p) ? w->epochs : 0);
}

static void put_workload(struct gen *g, const struct workload *w)
{
    for (struct place p = { 0 }; p.batch < w->n_batches; p.batch++)
        for (p.core = 0; p.core < w->n_cores; p.core++)
            for (p.memory = 0; p.memory < w->n_memory; p.memory++)
                put_setting(g, w, p);
}

void gen_timeline_csv(struct buf *b, uint64_t seed)
{
    struct gen g = { .rng = rng_seeded(seed), .out = b, .now_s = 1584380000 };
    int n = rng_whole(&g.rng, 2, 5);
    for (int i = 0; i < n; i++) {
        struct workload w = draw(&g, i);
        put_workload(&g, &w);
    }
}

/* --- grids --- */

struct grid {
    const char *model, *dataset;
    const int *cores, *memory, *batches; /* end with 0 */
    int epochs;
    double epoch_s;   /* of one core, at the largest batch */
    double serial;    /* share of the work that no other core takes over */
    double agree;     /* what agreeing costs per doubling of the cores, over a core's work, at batch 32 */
    double need_gb;   /* with one core and batch 32 */
    double need_more; /* GB per core and 1000 records of the batch */
    double pressure;  /* how much a heap that is just large enough costs */
    double startup_s, cold, noise;
};

static struct grid draw_grid(struct gen *g, int index)
{
    static const char *const models[] = { "lenet", "resnet", "lstm", "autoencoder" };
    static const int cores[][5] = { { 4, 8, 16 }, { 1, 2, 4, 8 }, { 2, 8, 32 } };
    static const int memory[][5] = { { 4, 8, 16, 32 }, { 2, 4, 8 }, { 8, 16, 32, 64 } };
    static const int batches[][7] = { { 32, 64, 128, 256, 512, 1024 }, { 64, 256, 1024 }, { 32, 64, 512, 1024 } };
    return (struct grid){
        .model = models[index % 4],
        .dataset = rng_chance(&g->rng, 0.5) ? "mnist" : "cifar10",
        .cores = cores[rng_whole(&g->rng, 0, 2)],
        .memory = memory[rng_whole(&g->rng, 0, 2)],
        .batches = batches[rng_whole(&g->rng, 0, 2)],
        .epochs = rng_whole(&g->rng, 10, 20),
        .epoch_s = rng_log_between(&g->rng, 40, 2000),
        .serial = rng_between(&g->rng, 0, 0.3),
        .agree = rng_log_between(&g->rng, 0.005, 0.3),
        .need_gb = rng_log_between(&g->rng, 0.5, 4),
        .need_more = rng_log_between(&g->rng, 0.01, 0.5),
        .pressure = rng_log_between(&g->rng, 0.05, 1),
        .startup_s = rng_log_between(&g->rng, 10, 90),
        .cold = rng_between(&g->rng, 1.1, 2),
        .noise = rng_log_between(&g->rng, 0.01, 0.04),
    };
}

/* Of an epoch; NAN: the heap is too small. */
static double grid_s(const struct grid *w, int cores, int memory, int batch)
{
    double need = w->need_gb + w->need_more * cores * batch / 1000.0;
    double work = w->serial + (1 - w->serial) / cores + w->agree * log2(cores) * 32.0 / batch;
    return need > memory ? NAN
                         : w->epoch_s * work * (1 + w->pressure * pow(need / memory, 2)) * pow(1024.0 / batch, 0.1);
}

/* A run whose epochs all take as long, but for noise. */
struct even_run {
    const char *model, *dataset;
    int cores, memory, batch, epochs;
    double startup_s, epoch_s; /* NAN: it fails */
    double cold, noise;
};

static void put_even_row(struct gen *g, const struct even_run *r, const char *epoch)
{
    buf_printf(g->out, "%s,%s,%d,%d,%d,%s-%d-%d-%d.log,%s,%.3f\n", r->model, r->dataset, r->cores, r->memory, r->batch,
               r->model, r->cores, r->memory, r->batch, epoch, g->now_s);
}

static void put_even_run(struct gen *g, const struct even_run *r)
{
    char name[16];
    put_even_row(g, r, "0");
    g->now_s += r->startup_s * rng_between(&g->rng, 0.9, 1.1);
    for (int k = 1; !isnan(r->epoch_s) && k <= r->epochs; k++) {
        (void)snprintf(name, sizeof name, "%d", k);
        put_even_row(g, r, name);
        g->now_s += r->epoch_s * (k == 1 ? r->cold : 1) * exp(r->noise * rng_normal(&g->rng));
    }
    put_even_row(g, r, "end");
    g->now_s += 5;
}

static void put_grid_run(struct gen *g, const struct grid *w, int cores, int memory, int batch)
{
    double noise =
        exp(w->noise * rng_normal(&g->rng)); /* a run is quicker or slower as a whole, and each of its epochs is */
    put_even_run(g, &(struct even_run){ .model = w->model,
                                        .dataset = w->dataset,
                                        .cores = cores,
                                        .memory = memory,
                                        .batch = batch,
                                        .epochs = w->epochs,
                                        .startup_s = w->startup_s,
                                        .epoch_s = grid_s(w, cores, memory, batch) * noise,
                                        .cold = w->cold,
                                        .noise = w->noise });
}

void gen_timeline_grid_csv(struct buf *b, uint64_t seed)
{
    struct gen g = { .rng = rng_seeded(seed), .out = b, .now_s = 1584380000 };
    int n = rng_whole(&g.rng, 1, 4);
    for (int i = 0; i < n; i++) {
        struct grid w = draw_grid(&g, i);
        for (const int *batch = w.batches; *batch; batch++)
            for (const int *cores = w.cores; *cores; cores++)
                for (const int *memory = w.memory; *memory; memory++)
                    put_grid_run(&g, &w, *cores, *memory, *batch);
    }
}

/* --- recorded ones --- */

static void put_cluster_run(struct gen *g, const char *model, const struct world *w, int cores, int memory, int batch)
{
    double s = rng_chance(&g->rng, w->broken)
                   ? NAN
                   : world_epoch_s(w, cores, memory, batch) * exp(w->run_noise * rng_normal(&g->rng));
    put_even_run(g, &(struct even_run){ .model = model,
                                        .dataset = w->texts ? "news20" : "mnist",
                                        .cores = cores,
                                        .memory = memory,
                                        .batch = batch,
                                        .epochs = w->epochs,
                                        .startup_s = w->startup_s,
                                        .epoch_s = s,
                                        .cold = w->cold,
                                        .noise = w->epoch_noise });
}

void gen_timeline_cluster_csv(struct buf *b, uint64_t seed)
{
    static const char *const models[] = { "lenet", "resnet", "lstm", "autoencoder" };
    struct gen g = { .rng = rng_seeded(seed), .out = b, .now_s = 1584380000 };
    int n = rng_whole(&g.rng, 1, 4);
    for (int i = 0; i < n; i++) {
        struct world w = world_draw(&g.rng);
        for (const int *batch = w.batches; *batch; batch++)
            for (const int *cores = w.cores; *cores; cores++)
                for (const int *memory = w.memory; *memory; memory++)
                    put_cluster_run(&g, models[i % 4], &w, *cores, *memory, *batch);
    }
}

/* --- read --- */

static int make(struct timeline *out, uint64_t seed, void (*csv)(struct buf *b, uint64_t seed))
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct csv_faults faults = { 0 };
    csv(&b, seed);
    int rc = b.failed ? -ENOMEM : timeline_csv_parse(out, buf_text(&b), b.len, &faults);
    if (rc == 0 && faults.n) {
        timeline_done(out);
        rc = -EINVAL; /* a fault of ours */
    }
    csv_faults_done(&faults);
    return rc;
}

int gen_timeline(struct timeline *out, uint64_t seed)
{
    return make(out, seed, gen_timeline_csv);
}

int gen_timeline_grid(struct timeline *out, uint64_t seed)
{
    return make(out, seed, gen_timeline_grid_csv);
}

int gen_timeline_cluster(struct timeline *out, uint64_t seed)
{
    return make(out, seed, gen_timeline_cluster_csv);
}
