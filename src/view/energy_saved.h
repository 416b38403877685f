/* What the settings that trials ended with saved against the default: joules of epochs that were trained under either, by what they took per
 * record. An estimated difference: the same records were not trained twice. */
#ifndef VIEW_ENERGY_SAVED_H
#define VIEW_ENERGY_SAVED_H

#include "view/energy_load.h"

/* Cores and memory; memory_gb NAN: any. */
struct energy_setting {
    double cores, memory_gb;
};

/* "cores=4,memory=8". -EINVAL names the fault. */
int energy_setting_parse(struct energy_setting *out, const char *text, struct err *e);

struct energy_saved {
    double j, error_j;             /* less than 0: it cost more; NAN: not measured */
    double records;                /* that were trained under the settings that trials ended with, and are compared */
    double used_j;                 /* for these */
    struct energy_setting against; /* cores NAN: each class's first */
    const struct meter_ops *meter;
    enum ledger_source source;
};

/* Only epochs that were trained under one setting alone and of which ENERGY_COVERED was read; first epochs are compared with first ones only.
 * `against` NULL: the setting that each class of jobs began with. -ENOMEM; what the store says. */
int energy_saved(struct energy_saved *out, struct store *s, int64_t study, const struct energy_load *l,
                 const struct meter_ops *meter, const struct energy_setting *against, struct err *e);

#endif
