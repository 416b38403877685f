/* One reading of one thing that is measured: a value, or why there is none. */
#ifndef MONITORING_READING_H
#define MONITORING_READING_H

#include <stdint.h>

enum reading_state {                       /* the numbers are stored (as enum trace_state) and sent */
                     READING_OK,           /* counted all the time */
                     READING_MULTIPLEXED,  /* counted part of the time, the value is scaled by 1 / ratio */
                     READING_NOT_COUNTED,  /* it could be counted, and never ran in this interval */
                     READING_UNSUPPORTED,  /* this machine, or its kernel, does not have it */
                     READING_DENIED,       /* this user may not count it */
                     READING_NO_FD,        /* no descriptor was left for it */
                     READING_ABSENT = 255, /* nobody looked */
};

struct reading {
    double value;  /* NAN unless ok or multiplexed */
    float ratio;   /* running / enabled, 0…1 */
    uint8_t state; /* enum reading_state */
};

/* "ok", "multiplexed", "not_counted", "unsupported", "denied", "no_fd", "absent"; "?" for any other number. */
const char *reading_state_name(enum reading_state s);

#endif
