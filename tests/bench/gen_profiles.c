#include "tests/bench/gen_profiles.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "core/rng.h"
#include "monitoring/features.h"

#define JOB_SD 0.6       /* of a feature's log level between jobs, where jobs differ in it */
#define JOB_SAME_SD 0.05 /* where they don't */
#define JOB_SHARE 0.6    /* of the features in which they do */
#define BATCH_SD 0.08    /* per doubling */
#define RUN_SD 0.05
#define FIRST_EPOCH_SD 0.15
#define SECOND_SD 0.1
#define SLICE_SD                                                                                                       \
    1.2 /* of one slice of a multiplexed counter; a second has SLICES of them, of which it gets its share */
#define SLICES 250.0
#define BURST_CHANCE 0.01
#define BURST 1.0

struct level {
    double x[FEATURES];
};

static double normal(struct rng *r)
{
    double u = 1 - rng_unit(r), v = rng_unit(r);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static void shift(struct level *l, struct rng *r, double sd)
{
    for (int f = 0; f < FEATURES; f++)
        l->x[f] += sd * normal(r);
}

/* What is usual for a feature: log of a rate per instruction, or per CPU-second. */
static double usual(int f)
{
    return f < FEATURE_SOFTWARE ? -2.0 - (f * 7) % 5 : 3.0 + f % 4;
}

static struct level job_level(uint64_t seed, unsigned job)
{
    struct rng r = rng_seeded(rng_mix(seed) + job);
    struct level l;
    for (int f = 0; f < FEATURES; f++)
        l.x[f] = usual(f) + (rng_unit(&r) < JOB_SHARE ? JOB_SD : JOB_SAME_SD) * normal(&r);
    return l;
}

/* A machine of these may count, and not watch whole CPUs. */
static bool is_counted(const struct gen_profiles *g, int f)
{
    if (f >= FEATURE_CODE)
        return false;
    bool tsx = strncmp(feature_names[f], "cpu/tx-", 7) == 0 || strncmp(feature_names[f], "cpu/el-", 7) == 0;
    return f >= FEATURE_SOFTWARE || (g->counters && !tsx);
}

static bool is_fixed(int f) /* has a counter of its own */
{
    return strcmp(feature_names[f], "instructions") == 0 || strcmp(feature_names[f], "cpu-cycles") == 0;
}

static double busy(const struct level *l)
{
    return 0.5 + 1.5 / (1 + exp(-l->x[FEATURE_PROC_CPU_TIME]));
}

/* CPU time of one second: the job's work, and what the JVM does for itself, now more, now less, whatever it runs. */
struct spent {
    double cpu_s, work_s, compile_s, collect_s;
};

static struct spent spend(const struct level *l, struct rng *r)
{
    struct spent s = { .work_s = busy(l) * exp(0.03 * normal(r)) };
    s.compile_s = 0.15 * s.work_s * exp(0.4 * normal(r));
    s.collect_s = 0.03 * s.work_s * exp(0.1 * normal(r));
    s.cpu_s = s.work_s + s.compile_s + s.collect_s;
    return s;
}

static void put_cell(const struct gen_profiles *g, struct trace_samples *s, size_t row, int f, const struct level *l,
                     const struct spent *spent, struct rng *r)
{
    size_t cell = row * FEATURES + (size_t)f;
    double second = l->x[f] + SECOND_SD * normal(r) + (rng_unit(r) < BURST_CHANCE ? BURST : 0);
    bool hardware = f < FEATURE_SOFTWARE, mux = hardware && !is_fixed(f);
    double ratio = mux ? g->ratio * (0.7 + 0.6 * rng_unit(r)) : 1, instructions = 2e9 * spent->cpu_s;
    double value = exp(second) * (hardware ? instructions : spent->work_s);
    if (is_fixed(f))
        value = instructions * exp(0.1 * second);
    if (feature_kind(f) == FEATURE_GAUGE)
        value = exp(l->x[f] + 0.02 * normal(r));
    if (f == FEATURE_PROC_CPU_TIME)
        value = spent->cpu_s;
    if (f == FEATURE_JVM_COMPILE_TIME)
        value = spent->compile_s;
    if (f == FEATURE_JVM_COLLECT_TIME)
        value = spent->collect_s;
    if (mux)
        value *= exp(SLICE_SD / sqrt(SLICES * ratio) * normal(r));
    s->value[cell] = value;
    s->ratio[cell] = (float)ratio;
    s->state[cell] = mux ? TRACE_MULTIPLEXED : TRACE_OK;
}

static void put_second(const struct gen_profiles *g, struct trace_samples *s, size_t row, const struct level *l,
                       struct rng *r)
{
    struct spent spent = spend(l, r);
    s->t_ns[row] = (int64_t)(row + 1) * 1000000000;
    for (int f = 0; f < FEATURES; f++) {
        if (is_counted(g, f))
            put_cell(g, s, row, f, l, &spent, r);
        else
            s->state[row * FEATURES + (size_t)f] = TRACE_UNSUPPORTED;
    }
}

static int fill_run(struct trace_run *run, const struct gen_profiles *g, unsigned job, unsigned batch, struct level l,
                    struct rng *r)
{
    char text[64];
    size_t seconds = (size_t)g->epochs * g->epoch_s;
    (void)snprintf(text, sizeof text, "job%02u", job);
    run->model = strdup(text);
    run->dataset = strdup("synthetic");
    (void)snprintf(text, sizeof text, "{\"batch_size\":%u}", 64U << batch);
    run->hyper = strdup(text);
    run->system = strdup("{\"cores\":2}");
    run->status = RUN_COMPLETE;
    run->epochs = calloc(g->epochs, sizeof *run->epochs);
    if (!run->model || !run->dataset || !run->hyper || !run->system || !run->epochs ||
        trace_samples_init(&run->samples, seconds, FEATURES) < 0)
        return -ENOMEM;
    struct level first = l;
    shift(&first, r, FIRST_EPOCH_SD);
    for (unsigned k = 0; k < g->epochs; k++) {
        run->epochs[k] = trace_no_epoch();
        run->epochs[k].start_s = k * g->epoch_s;
        run->epochs[k].duration_s = g->epoch_s;
        run->n_epochs++;
    }
    for (size_t i = 0; i < seconds; i++)
        put_second(g, &run->samples, i, i < g->epoch_s ? &first : &l, r);
    return 0;
}

int gen_profiles(struct trace *out, const struct gen_profiles *g)
{
    struct rng r = rng_seeded(g->seed);
    int rc = 0;
    for (int f = 0; f < FEATURES; f++)
        strv_add(&out->features, feature_names[f]);
    rc = out->features.failed ? -ENOMEM : 0;
    for (unsigned job = 0; rc == 0 && job < g->jobs; job++) {
        struct level of_job = job_level(g->seed, job), step = { { 0 } };
        shift(&step, &r, BATCH_SD);
        for (unsigned i = 0; rc == 0 && i < g->batches * g->runs; i++) {
            struct level l = of_job;
            for (int f = 0; f < FEATURES; f++)
                l.x[f] += step.x[f] * (i / g->runs);
            shift(&l, &r, RUN_SD);
            struct trace_run *run = trace_add(out);
            rc = run ? fill_run(run, g, job, i / g->runs, l, &r) : -ENOMEM;
        }
    }
    return rc;
}
