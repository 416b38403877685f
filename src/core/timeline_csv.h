/* Timelines as CSV: `model,dataset,cores,memory_gb,batch,log,epoch,unix_s`, no header. Pure.
 *
 *     lenet,mnist,8,4,512,run-1.log,0,1584380000        the submission
 *     lenet,mnist,8,4,512,run-1.log,1,1584380052.5      the first line of epoch 1
 *     lenet,mnist,8,4,512,run-1.log,2,1584380071
 *     lenet,mnist,8,4,512,run-1.log,end,1584380088      duration(1) = 18.5 s, duration(2) = 17 s
 *
 * The rows of one run share all but the last two columns; runs may be interleaved and their rows in any order. A
 * second epoch 0 begins another run of the same name: then the order of the file counts, or that of time when the file is
 * in none. memory_gb may be empty: not recorded, NAN. */
#ifndef CORE_TIMELINE_CSV_H
#define CORE_TIMELINE_CSV_H

#include "core/csv.h"
#include "core/timeline.h"

/* Fills *out (to be freed by timeline_done) with what can be read, and adds a fault for each broken row: whether those are an
 * error is for the caller to say. -ENOMEM: *out is untouched.
 *
 * complete: ended, with as many epochs as the longest run of its (model, dataset). partial: ended with fewer, or with an epoch
 * missing in between; holds the whole epochs before the cut. failed: ended with none. running: never ended; holds the epochs
 * whose end is known. A missing row is a hole and no fault. */
int timeline_csv_parse(struct timeline *out, const char *text, size_t len, struct csv_faults *faults);

/* Appends the rows of a run that was submitted at `unix_s`. What was not recorded has no row: the submission where the start-up is not known,
 * epochs behind a gap, and all of a run that lacks model, dataset, cores or batch. */
void timeline_csv_put(struct buf *b, const struct timeline_run *run, double unix_s);

#endif
