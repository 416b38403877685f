/* Does the sender's jobs: the server, the spool, the quarantine file. Blocks: for workers, one job of a lane at a time. */
#ifndef MONITORING_SENDER_IO_H
#define MONITORING_SENDER_IO_H

#include <stdint.h>

#include "monitoring/influx.h"
#include "monitoring/sender.h"
#include "monitoring/spool.h"
#include "monitoring/udp.h"

struct sender_io {
    struct influx *influx[SENDER_IN_FLIGHT_MAX]; /* of each lane; or, for one lane alone: */
    struct udp_out *udp; /* nobody answers over UDP: "stored" then means handed to the network */
    struct spool *spool; /* NULL: none */
    const char *
        quarantine; /* file (made with mode 0600) of rejected lines, each behind a comment with the reason, so that it is line
                              * protocol again once they are mended; NULL: they are dropped */
    uint64_t quarantine_max; /* bytes; what would go beyond is dropped. 0: 16 MiB */
};

/* All pointers are borrowed. Nothing but them and the job is touched; by SENDER_SEND, only the lane's own. */
void sender_io_run(const struct sender_io *io, struct sender_job *job);

#endif
