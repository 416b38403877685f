/* A study of the store as a trace. */
#ifndef STORE_EXPORT_H
#define STORE_EXPORT_H

#include "store/store.h"
#include "store/trace.h"

/* Fills an empty trace: one run for each attempt that began to train, trial by trial, and what the policy was told and decided. A
 * trial that took another's result has no attempt, and no run.
 *
 *   model      of a class in the application file its last word, or the one before where that is a verb (Train, Test, Main, Run, App):
 *              …models.lenet.Train is lenet; else the application file's base name without its ending
 *   dataset    the base name of the first extra of the application file that names a folder of data (data, dataset, data path,
 *              data dir, data folder, folder, f, input, input path; whatever their case, dashes and underscores); else ""
 *   system     the effective setting that it ended with; where the policy changed settings while it trained, by its windows
 *   status     complete: its trial was finished by it; failed: it failed, or its setting cannot be had; running; else partial
 *   startup_s  to the first step; by the log's stamps where it was not watched
 *   epochs     those that this attempt trained last; a row without figures stands for one that another attempt trained
 *   windows    of those epochs, from the tuner's log (trace_windows.h). Their settings are the one of the launch with other cores;
 *              where settings differ in hot knobs beside cores, these give way to "hot": the setting's number among the hot ones
 *   results    {"study","trial","attempt","outcome","slots"}, and "session" and "cause" where there are such; outcome null while it runs
 *   samples    what the helpers counted (samples.h) of the trial, in each run the intervals from its attempt's start on, until the
 *              next one's; t_ns since that start, as start_s. The trace's features are those of monitoring/features.h
 *
 * The study's rows are read one after the other: nobody may write them meanwhile. -ENOMEM, -E2BIG (more than a trace may hold),
 * and what the store says. */
int export_study(struct trace *out, struct store *s, const struct store_study *study, struct err *e);

#endif
