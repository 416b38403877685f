/* The one printer of real numbers: for files, wires, JSON and command lines, whatever is read again. Pure. (What people read goes
 * through table_digits().) */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include "base/buf.h"

enum { NUM_TEXT_MAX = 32 };

/* The text of the fewest digits that strtod reads back to the same double, in the C locale; "null" for what JSON cannot say (NaN,
 * infinities). Returns `out`. */
const char *num_print(double x, char out[NUM_TEXT_MAX]);

/* Appends it. */
void num_put(struct buf *b, double x);

#endif
