/* What meters share: defaults of the configuration, empty readings, texts of small files, what a probe tells. */
#ifndef MONITORING_METER_UTIL_H
#define MONITORING_METER_UTIL_H

#include <stddef.h>
#include <stdint.h>

#include "monitoring/meter.h"

/* The configuration's, or what stands for it. */
const char *meter_sysfs(const struct meter_cfg *cfg);
const char *meter_proc(const struct meter_cfg *cfg);
double meter_max_w(const struct meter_cfg *cfg);
int64_t meter_now_ns(int64_t (*now_ns)(void)); /* NULL: CLOCK_REALTIME */

/* A reading of the machine itself without a value, and without a reason. */
void meter_reading_set(struct meter_reading *out, enum meter_state state, int64_t from_ns, int64_t to_ns);

/* The text of DIR/NAME in `out`, NUL-terminated: its length, or -errno; -EFBIG: it is longer, -EINVAL: it has NULs,
 * -ENAMETOOLONG. Allocates nothing. */
int meter_text(char *out, size_t size, const char *dir, const char *name);

/* Why a meter does not open, and what mends it (NULL: nothing does): `fix` is put behind the explanation of open(), or goes
 * beside it into what a probe says. Both return rc. */
int meter_refused(int rc, struct err *e, const char *fix);
int meter_probed(int rc, const struct err *e, const char *fix, struct buf *detail, struct buf *fixes);

/* What the outlets of a PDU answered, as a probe tells it. 0 when at least one has a value, else -EIO. */
int meter_told(const struct meter_reading *readings, int n, struct buf *detail);

#endif
