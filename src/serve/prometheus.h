/* `GET /metrics`: the store's figures in the text format of Prometheus.
 *
 *     pipetune_studies{state}                  studies
 *     pipetune_trials{study,state}             trials: finished, failed, paused, stopped, other
 *     pipetune_trial_epochs_total{study}       epochs completed
 *     pipetune_energy_joules_total{study}      joules of its trials, by one meter; absent where nothing was read
 *     pipetune_metric{study,name}              the best trial's
 *     pipetune_cpus_leased                     CPUs of this machine that drivers have
 *     pipetune_queue_length{state}             trials that wait, and that run, in studies that have a driver
 *     pipetune_queued_studies{state}           studies that were submitted: those that wait for their turn, and those that have begun
 *     pipetune_driver_cpu_seconds_total{study}, pipetune_driver_resident_bytes{study}
 *     pipetune_server_cpu_seconds_total, pipetune_server_resident_bytes
 *
 * What is absent has no line. */
#ifndef SERVE_PROMETHEUS_H
#define SERVE_PROMETHEUS_H

#include "base/buf.h"
#include "store/store.h"

/* What need not be read again. */
struct prometheus {
    struct prometheus_kept {
        int64_t study, ended_ms;
        double energy_j;
        int64_t epochs;
    } * kept; /* owned: of studies that are over */
    size_t n, cap;
};

void prometheus_done(struct prometheus *p);

/* Joules (NAN: absent) and epochs of a study: what costs, of one that is over once. */
int prometheus_sums(struct prometheus *p, struct store *s, const struct store_study *study, double *out_j,
                    int64_t *out_epochs, struct err *e);

/* `s` NULL: there is no store yet. */
int prometheus_put(struct prometheus *p, struct buf *b, struct store *s, const char *store_path, struct err *e);

/* name{a="1",b="2"} value: pairs of a name and a text, which is escaped, end with NULL. A value that is none puts nothing. */
void prometheus_line(struct buf *b, const char *name, const char *const *labels, double value);

#endif
