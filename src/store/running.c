#include "store/running.h"

#include <string.h>

#include "base/clock.h"
#include "base/proc.h"

static int64_t wall_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t running_now_ms(const struct store_attempt *a)
{
    char boot[PROC_BOOT_ID_SIZE] = "";
    bool known = a->started_boot_ms > 0 && a->boot_id && proc_boot_id(boot) == 0 && strcmp(boot, a->boot_id) == 0;
    return known ? a->started_ms + clock_boot_ms() - a->started_boot_ms : wall_ms();
}
