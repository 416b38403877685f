/* Where a study's figures come from: versions, host, and the hashes of what was run. */
#ifndef LIVE_PROVENANCE_H
#define LIVE_PROVENANCE_H

#include "live/plan.h"

/* New reference; NULL when memory is out. What cannot be found out is null. */
json_t *provenance_json(const struct plan *p);

/* The name of the user who runs this; "" where there is none. */
enum { PROVENANCE_USER_MAX = 64 };
void provenance_user(char out[PROVENANCE_USER_MAX]);

#endif
