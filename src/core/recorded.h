/* A recorded timeline as a world for simulated runs (core/sim_run.h): an epoch is RECORDED_STEPS equal steps, as long as the recorded one
 * of the setting in force. Pure. */
#ifndef CORE_RECORDED_H
#define CORE_RECORDED_H

#include "core/replay.h"
#include "core/sim_run.h"

enum { RECORDED_STEPS = 100 };

/* The world's ctx. */
struct recorded {
    struct tuner_space space;       /* of the workload: all settings that were recorded of its jobs */
    const struct timeline_job *job; /* the one that runs */
    enum replay_probe probe;
};

/* A timeline tells that a run failed, or has none; never why. */
extern const struct sim_world recorded_world;

/* What the tuner's machine has in replays. */
extern const struct tuner_cfg recorded_tuner;

bool recorded_same_workload(const struct timeline_job *a, const struct timeline_job *b);

/* What these jobs of one workload were recorded at. */
void recorded_space(struct tuner_space *out, const struct timeline_job *jobs, size_t n);

/* The cell of the job that runs; NULL: nothing feasible was recorded there. And back. */
const struct timeline_cell *recorded_cell(const struct recorded *w, struct tuner_setting s);
struct tuner_setting recorded_setting(const struct recorded *w, const struct timeline_cell *c);

#endif
