#include "monitoring/reading.h"

const char *reading_state_name(enum reading_state s)
{
    static const char *const names[] = { "ok", "multiplexed", "not_counted", "unsupported", "denied", "no_fd" };
    if (s == READING_ABSENT)
        return "absent";
    return (unsigned)s < sizeof names / sizeof names[0] ? names[s] : "?";
}
