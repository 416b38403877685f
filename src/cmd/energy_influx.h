/* A study's ledger from an InfluxDB instead of the store: what monitoring/points wrote there. Trials, their attempts and the edges of epochs are
 * the store's; so the figures are the same to the last digit. */
#ifndef CMD_ENERGY_INFLUX_H
#define CMD_ENERGY_INFLUX_H

#include "view/energy_load.h"

/* Each NULL: what the study's config says; without a database there it is "energy". What the config says of credentials, the retention policy
 * and whom to trust is its own server's: by another URL nothing of that is used. */
struct energy_influx_cfg {
    const char *url, *database, *credential_file;
    bool allow_plain; /* a credential may go to another machine over http://; false: as the study's config has it */
};

enum energy_influx_from {
    ENERGY_INFLUX_OWN,    /* pipetune_energy */
    ENERGY_INFLUX_OTHERS, /* pdu_power and pcm_power by the nodes' names: there is nothing of the study's own */
};

/* Of rows that say whose they are, only those of the study's user, and of node 0 of its host, as far as the provenance knows them: others may run
 * a study of this name at the same time. A node is asked for once, by its first name: "localhost" and the host are node 0.
 * energy_load_done() is due also after a failure. Where the server has no CPU times of the study's trials, the store's samples are taken; where
 * it has nothing of the study's own, the store's readings of the nodes' busy CPUs, too. -EINVAL: no
 * URL; what monitoring/influx_query, monitoring/credential and the store say; -ENOMEM. */
int energy_influx_load(struct energy_load *out, struct store *s, const struct store_study *study,
                       const struct energy_influx_cfg *cfg, enum energy_influx_from *out_from, struct err *e);

#endif
