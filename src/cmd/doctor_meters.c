#include "cmd/doctor.h"
#include "monitoring/meters_cfg.h"

enum doctor_state doctor_meter(const struct meter_ops *meter, struct doctor_finding *f)
{
    const struct meter_cfg cfg = { .idle_w = METERS_IDLE_W, .cpu_w = METERS_CPU_W };
    buf_printf(&f->detail, "meter (%s): ", meter->help);
    if (!meter->local) { /* only a config knows whom to ask */
        buf_puts(&f->detail, "not configured");
        return CHECK_OK;
    }
    if (meter->probe(&cfg, &f->detail, &f->fix) < 0 && f->fix.len == 0)
        buf_puts(&f->fix, "none known; other meters do");
    return f->fix.len > 0 ? CHECK_WARN : CHECK_OK;
}
