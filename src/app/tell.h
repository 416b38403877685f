/* What a trial's programs tell of themselves over the socket that PIPETUNE_TELL names: JSON lines of at most 64 KB. Pure; of the
 * libraries it needs libc alone, since the launcher reads them, too (node/tell.h).
 *
 *   program:  {"hello":1}
 *             {"epoch":3,"loss":0.21,"accuracy":0.93}                 epoch 3 is over: every other name is a metric
 *             {"epoch":3,"step":120,"records":128,"seconds":0.04,"loss":0.3}        a training step; "epoch" may be left out
 *             {"checkpoint":"PATH","epoch":3}                         written whole
 *             {"loss":0.21}                                           of the epoch under way, which is over with it
 *   launcher: {"hyper":{…},"epochs":9,"checkpoint":"DIR"|null,"resume":"PATH"|null,"seed":1}     the answer to hello
 *             {"stop":true}                                           the trial is to end at the next epoch's end
 *             {"error":"…"}                                           the line before it was not taken: why
 *
 * Epochs and steps are counted from 1. A metric is a number; one that is none any more ("nan", "inf", "-inf", and NaN, Infinity and
 * -Infinity as Python writes them) is not finite; null is left out. In what is heard of a trial each line stands behind TELL_MARK. */
#ifndef APP_TELL_H
#define APP_TELL_H

#include "app/report.h"
#include "base/buf.h"
#include "base/err.h"

enum { TELL_LINE_MAX = 64 << 10 };

#define TELL_MARK "pipetune told "

/* One line without its newline, which is changed: 1 and a REPORT_EPOCH (whole), REPORT_STEP or REPORT_CHECKPOINT in *out, or 0
 * for a hello. -EINVAL, with what is wrong with it, for a line that is not taken. */
int tell_read(char *line, size_t len, struct app_report *out, struct err *e);

/* Append a line for the program, with its newline. */
void tell_put_stop(struct buf *b);
void tell_put_error(struct buf *b, const char *text);

/* A value as a program writes it ("0.31", "nan", "-inf"): true when all of it is one. */
bool tell_number(const char *text, size_t len, double *out);

#endif
