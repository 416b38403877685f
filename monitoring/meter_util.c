#include "monitoring/meter_util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define DEFAULT_MAX_W 2000.0

const char *meter_sysfs(const struct meter_cfg *cfg)
{
    return cfg->sysfs ? cfg->sysfs : "/sys";
}

const char *meter_proc(const struct meter_cfg *cfg)
{
    return cfg->proc ? cfg->proc : "/proc";
}

double meter_max_w(const struct meter_cfg *cfg)
{
    return cfg->max_w > 0 ? cfg->max_w : DEFAULT_MAX_W;
}

int64_t meter_now_ns(int64_t (*now_ns)(void))
{
    struct timespec ts;
    if (now_ns)
        return now_ns();
    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail with this clock */
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void meter_reading_set(struct meter_reading *out, enum meter_state state, int64_t from_ns, int64_t to_ns)
{
    memset(out, 0, sizeof *out);
    out->state = state;
    out->from_ms = (double)(from_ns < to_ns ? from_ns : to_ns) / 1e6; /* the clock may have gone back */
    out->to_ms = (double)to_ns / 1e6;
    out->value = NAN;
    out->error = NAN;
}

int meter_text(char *out, size_t size, const char *dir, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t len = io_read_some(fd, out, size);
    if (len < 0 || len == (ssize_t)size)
        return len < 0 ? (int)len : -EFBIG;
    out[len] = '\0';
    return strlen(out) == (size_t)len ? (int)len : -EINVAL;
}

int meter_refused(int rc, struct err *e, const char *fix)
{
    if (rc >= 0 || !e || !fix)
        return rc;
    size_t len = strnlen(e->text, sizeof e->text);
    (void)snprintf(e->text + len, sizeof e->text - len, ": %s", fix);
    return rc;
}

int meter_probed(int rc, const struct err *e, const char *fix, struct buf *detail, struct buf *fixes)
{
    if (rc >= 0)
        return rc;
    buf_puts(detail, e->text);
    if (fix)
        buf_puts(fixes, fix);
    return rc;
}

int meter_told(const struct meter_reading *readings, int n, struct buf *detail)
{
    int rc = -EIO;
    for (int i = 0; i < n; i++) {
        const struct meter_reading *r = &readings[i];
        bool ok = r->state == METER_OK;
        buf_printf(detail, "%s%s%s", i ? ", " : "", r->node, ok ? " " : ": ");
        if (ok)
            buf_printf(detail, "%g W", r->value);
        else
            buf_puts(detail, r->why);
        rc = ok ? 0 : rc;
    }
    return rc;
}
