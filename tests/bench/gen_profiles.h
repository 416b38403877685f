/* Synthetic samples of training jobs, as a trace: what perf and /proc would have counted at 1 Hz of jobs with several batch sizes and
 * runs each. A job has its own level of most features, a batch size moves some of them a little, a run and its first epoch a little
 * more; every second has noise of its own, and a multiplexed counter that of the part of the second it ran in. */
#ifndef TESTS_BENCH_GEN_PROFILES_H
#define TESTS_BENCH_GEN_PROFILES_H

#include <stdbool.h>
#include <stdint.h>

#include "store/trace.h"

struct gen_profiles {
    unsigned jobs, batches, runs; /* runs of each batch */
    unsigned epochs, epoch_s;
    bool counters; /* the hardware's, multiplexed; else only software events and /proc, as in a VM without any */
    double ratio;  /* running / enabled of a multiplexed counter, about */
    uint64_t seed;
};

/* Fills an empty trace. -ENOMEM. */
int gen_profiles(struct trace *out, const struct gen_profiles *g);

#endif
