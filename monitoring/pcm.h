/* The meter row `pcm`: joules of the processors and their memory, as Intel PCM tells them in its CSV (pcm_csv.h).
 *
 * With cfg->file it follows that file as it grows, through restarts of PCM, truncation and replacement; what was in it before counts for
 * nothing. Else it starts `pcm /csv 1` (cfg->program, or "pcm" from PATH) in a process group of its own, ends it in close (TERM, after 2 s
 * KILL: the only wait there is), and starts it anew when it has ended, at most every 10 s of the meter's clock. While it runs, PCM uses
 * counters of the CPUs for itself, which events that are sampled then share with it; and it needs root.
 *
 * One read sums the rows that have come: as a rule one reading, from the time of the row before the first to that of the last, by the
 * rows' own date and time, since how long an interval was counts, not when it was seen. More readings where a row was discarded or an
 * interval is missing (below a header, after a line that could not be read); none when no row has come. A row of 0 J is discarded, as
 * PCM prints them where it can't read the energy (in a virtual machine), and so is one of more than max_w for each processor.
 *
 * Rows carry local time without a zone. Zones differ from UTC by quarters of an hour, and rows are seldom later than that: so the zone is
 * what brings the first row next to our clock, at most 1 min ahead or 14 min behind. It is found anew when a row would be in the
 * future, or before the row before it (summer time begins or ends, PCM runs elsewhere); the interval up to that row is missing.
 *
 * Failed: the program has ended, the file is gone, the CSV has no energies, or nothing has come for three of its intervals and a minute. */
#ifndef MONITORING_PCM_H
#define MONITORING_PCM_H

#include "monitoring/meter.h"

extern const struct meter_ops meter_pcm;

#endif
