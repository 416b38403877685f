/* Lines of a driver's log become reports, by text alone. Works on the log of any unmodified BigDL application (0.x to 2.4,
 * DistriOptimizer and LocalOptimizer), with our log4j2 layout or theirs. Pure. */
#ifndef BIGDL_LOG_H
#define BIGDL_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "app/lines.h"
#include "bigdl/log_cause.h"

/* REPORT_READY: the id that Spark gives the application. REPORT_GRANTED: an executor was granted (standalone), or registered (any cluster,
 * at info). REPORT_STEP: an iteration; REPORT_EPOCH: "Epoch finished", wall_s is cumulative since optimize(); REPORT_CHECKPOINT: its last
 * "Save" line; REPORT_MARK: a warm session's "PIPETUNE trial ID begin" or "… end", alone on its line; REPORT_PAUSE: the JVM collects
 * garbage (-Xlog:gc, of Java 8 -verbose:gc). */
extern const struct line_reader log_reader;

/* Texts of which every line that counts holds one (any but REPORT_CAUSE), for who passes lines on when there are too many: the
 * i-th, NULL behind the last. *step: the line says that training goes on. */
const char *log_needle(size_t i, bool *step);

#endif
