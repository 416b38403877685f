/* Gangs of any sizes on machines of any sizes: what is found fits, and what is not found does not, whichever way is tried; ports of any text are read as numbers, or
 * not at all. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "core/rooms.h"
#include "node/port.h"
#include "tests/fuzz/text.h"

enum { MACHINES_MAX = 4, WANTS_MAX = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

struct machine {
    int cpus;
    double gb;
};

/* Every way there is. */
static bool fits(struct machine *has, size_t machines, const struct rooms_want *wants, size_t n)
{
    if (n == 0)
        return true;
    for (size_t m = 0; m < machines; m++) {
        if (has[m].cpus < wants->cpus || has[m].gb < wants->memory_gb)
            continue;
        has[m].cpus -= wants->cpus;
        has[m].gb -= wants->memory_gb;
        bool rest = fits(has, machines, wants + 1, n - 1);
        has[m].cpus += wants->cpus;
        has[m].gb += wants->memory_gb;
        if (rest)
            return true;
    }
    return false;
}

static void check_spread(const uint8_t *data, size_t size)
{
    struct rooms r = { 0 };
    struct machine has[MACHINES_MAX];
    struct rooms_want wants[WANTS_MAX];
    size_t machines = size ? 1 + data[0] % MACHINES_MAX : 0, n = 0, out[WANTS_MAX];
    if (machines == 0 || size < 1 + machines)
        return;
    for (size_t m = 0; m < machines; m++) {
        has[m] = (struct machine){ 1 + (data[1 + m] & 15), 1 + (data[1 + m] >> 4) };
        check(rooms_add(&r, has[m].cpus, has[m].gb) == 0);
    }
    for (size_t i = 1 + machines; i < size && n < WANTS_MAX; i++)
        wants[n++] = (struct rooms_want){ data[i] & 15, data[i] >> 4 };
    bool found = rooms_spread(&r, wants, n, ROOMS_NOW, out);
    check(found == fits(has, machines, wants, n));
    check(!found || rooms_spread(&r, wants, n, ROOMS_EVER, (size_t[WANTS_MAX]){ 0 }));
    for (size_t k = 0; found && k < n; k++) {
        check(out[k] < machines);
        has[out[k]].cpus -= wants[k].cpus;
        has[out[k]].gb -= wants[k].memory_gb;
        check(has[out[k]].cpus >= 0 && has[out[k]].gb >= 0);
    }
    rooms_done(&r);
}

static void check_ports(const char *text)
{
    int ports[PORTS_MAX];
    for (size_t n = 1; n <= 3; n++) {
        if (ports_read(ports, n, text) < 0)
            continue;
        for (size_t k = 0; k < n; k++)
            check(ports[k] > 0 && ports[k] < 65536);
        AUTO_FREE char *filled = ports_fill("{port.0}{port.64}{port.99999999999}{port.", ports, n);
        check(filled && strstr(filled, "{port.64}{port.99999999999}{port."));
    }
    for (size_t k = 0; k < PORTS_MAX; k++)
        ports[k] = 65535;
    AUTO_FREE char *filled = ports_fill(text, ports, PORTS_MAX);
    check(filled && !strstr(filled, "{port.0}") && !strstr(filled, "{port.63}"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    check_spread(data, size);
    check_ports(text);
    free(text);
    return 0;
}
