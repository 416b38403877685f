/* What the tuner was told (core/tuner_log.h), gathered into windows: under which setting each trial trained, and how long. Reads
 * the log's numbers alone, without a machine, so that a log which no machine would take any more still tells. Pure.
 *
 * A window here is a stretch of steps under one setting within one epoch: it ends where another setting is in force, where the
 * epoch ends, and where what was measured became void. The step under way when a setting changed belongs to the new one's. */
#ifndef STORE_TRACE_WINDOWS_H
#define STORE_TRACE_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tuner.h"

struct trace_stretch {
    int trial, epoch;
    int hot;                 /* the setting's number among the hot ones */
    bool alike;              /* another one has as many cores */
    double cores, memory_gb; /* of the setting; 1 and 0 where the study has no such knob */
    double from_s;           /* since the epoch's first one began; NAN: another driver had begun to watch it */
    double seconds, records;
};

/* From a zeroed one on. */
struct trace_windows {
    struct trace_stretch *list; /* in the order of the log */
    size_t n, cap;
    struct trace_watch *watches; /* private: the trials, and the settings there are to choose from */
    size_t n_watches, cap_watches;
    double cores[TUNER_MAX_HOT], memory_gb[TUNER_MAX_COLD];
    size_t n_hot, n_cold;
};

/* Takes one line, without its end. What is no entry tells nothing. Steps of an attempt that was cut short are dropped as soon as
 * another one trains their epoch again. 0 or -ENOMEM. */
int trace_windows_line(struct trace_windows *w, const char *line);

void trace_windows_done(struct trace_windows *w);

#endif
