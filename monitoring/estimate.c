#include "monitoring/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "monitoring/cpu_time.h"
#include "monitoring/meter_util.h"

#define FIX "write {\"name\": \"estimate\", \"idle_w\": 40, \"cpu_w\": 6} with this machine's powers"

struct meter {
    struct meter *cpu; /* one of meter_cpu */
    double idle_w, cpu_w;
};

static bool is_power(double watts)
{
    return isfinite(watts) && watts > 0;
}

static int check(const struct meter_cfg *cfg, struct err *e)
{
    if ((cfg->idle_w == 0 || is_power(cfg->idle_w)) && is_power(cfg->cpu_w))
        return 0;
    return err_set(e, -EINVAL,
                   "the meter 'estimate' needs idle_w, the node's watts when idle, and cpu_w, those of a busy CPU");
}

static void estimate_close(struct meter *m)
{
    if (m)
        meter_cpu.close(m->cpu);
    free(m);
}

static int estimate_open(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    int rc = check(cfg, e);
    if (rc < 0)
        return meter_refused(rc, e, FIX);
    struct meter *m = calloc(1, sizeof *m);
    if (!m)
        return err_sys(e, -ENOMEM, "cannot open the meter estimate");
    rc = meter_cpu.open(&m->cpu, cfg, e);
    if (rc < 0) {
        free(m);
        return rc;
    }
    m->idle_w = cfg->idle_w;
    m->cpu_w = cfg->cpu_w;
    *out = m;
    return 0;
}

static int estimate_probe(const struct meter_cfg *cfg, struct buf *detail, struct buf *fix)
{
    struct err e = { 0 };
    int rc = check(cfg, &e);
    if (rc < 0)
        return meter_probed(rc, &e, FIX, detail, fix);
    buf_printf(detail, "a model: %.4g W, and %.4g W of each busy CPU; ", cfg->idle_w, cfg->cpu_w);
    return meter_cpu.probe(cfg, detail, fix);
}

static int estimate_read(struct meter *m, struct meter_reading *out)
{
    int n = meter_cpu.read(m->cpu, out);
    if (n == 1 && out->state == METER_OK) {
        out->value = m->idle_w * (out->to_ms - out->from_ms) / 1e3 + m->cpu_w * out->value;
        out->error *= m->cpu_w;
    }
    return n;
}

const struct meter_ops meter_estimate = {
    .name = "estimate",
    .help = "joules by a model of CPU time: for a ranking only",
    .kind = METER_ENERGY,
    .local = true,
    .estimated = true,
    .probe = estimate_probe,
    .open = estimate_open,
    .read = estimate_read,
    .close = estimate_close,
};
