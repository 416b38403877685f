/* Synthetic timelines: several workloads over cores × memory × batches, varied as widely as one can think of. Pure; the same seed
 * gives the same bytes.
 *
 * Of each workload are drawn: 2 to 5 core numbers, 1 to 4 memory sizes, 1 to 4 batches; 2 to 30 epochs of 5 to 2000 s (in the
 * best setting); start-ups of 45 to 800 s; how much slower the first epoch is (1 to 3 ×); noise of 0.5 to 8 %; which setting is
 * best (the first, the last, one in the middle, any, all alike) and how much worse the worst is (up to 15 ×); whether more
 * cores hurt small batches; whether memory matters; what does not fit into memory; what is missing.
 *
 * A grid is more like what people record: every setting of a few core numbers, memory sizes and batches. More cores share the
 * work and have more to agree on, the more so the smaller the batch; a heap that is nearly full collects garbage; one that is too
 * small fails, for every number of cores from some on. Of each workload are drawn: the share that no core takes over, what
 * agreeing costs, how much memory is needed, 10 to 20 epochs of 10 to 300 s, start-ups of 10 to 90 s, noise of 1 to 4 %.
 *
 * A cluster is what was recorded on one of 16 cores, as far as one can draw that. Memory beyond what is needed changes speed by 2 % at most, either
 * way; less than it is up to 15 x slower, then out of memory, and larger batches and more cores need more of it. Few cores mostly beat
 * many for small batches, by up to 2 x, and many beat few for large ones. Start-ups take 5 s to 15 min, and failing in one as long;
 * good settings differ by less than a run from the next one like it. */
#ifndef TESTS_BENCH_GEN_TIMELINE_H
#define TESTS_BENCH_GEN_TIMELINE_H

#include <stdint.h>

#include "base/buf.h"
#include "core/timeline.h"

/* Appends the CSV of core/timeline_csv.h. */
void gen_timeline_csv(struct buf *b, uint64_t seed);
void gen_timeline_grid_csv(struct buf *b, uint64_t seed);
void gen_timeline_cluster_csv(struct buf *b, uint64_t seed);

/* The same, read: to be freed by timeline_done(). -ENOMEM. */
int gen_timeline(struct timeline *out, uint64_t seed);
int gen_timeline_grid(struct timeline *out, uint64_t seed);
int gen_timeline_cluster(struct timeline *out, uint64_t seed);

#endif
