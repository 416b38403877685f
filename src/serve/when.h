/* A time that people write: "18:30" (the next one), "2026-11-20 18:30" (or with T, or with seconds), "+90s", "+30m", "+2h", "+1d". */
#ifndef SERVE_WHEN_H
#define SERVE_WHEN_H

#include <stdint.h>

#include "base/err.h"

/* By this machine's time zone; ms since 1970. -EINVAL: it is none of these. */
int when_parse(const char *text, int64_t now_ms, int64_t *out_ms, struct err *e);

#endif
