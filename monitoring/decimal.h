/* Decimal numbers as instruments write them: the value, and the step between two numbers of so many digits. Pure. */
#ifndef MONITORING_DECIMAL_H
#define MONITORING_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

/* All of `text` but blanks at both ends: "-41.5", "+7", ".5", "1.2e+03"; no grouping, no hexadecimal, no names ("nan"). `points` are the
 * characters that may separate the decimals (".", ",."). *out_step is the last digit's worth: 0.1 of "41.5", 1 of "41". False, outputs
 * untouched: it is no such number, has more than 40 characters, or it or its step is beyond what a double holds. */
bool decimal_read(const char *text, size_t len, const char *points, double *out, double *out_step);

#endif
