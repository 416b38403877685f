#include "node/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"

enum { FIRST = 20000, LAST = 32767, HIGHEST = 65535 };

/* Below those that the kernel gives to whoever connects, else above them; where that leaves few, the usual ones. */
static void range(int *out_first, int *out_n)
{
    enum { ENOUGH = 1000 };
    int low = LAST + 1, high = HIGHEST;
    AUTO_FCLOSE FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (f && fscanf(f, "%d %d", &low, &high) != 2)
        low = LAST + 1, high = HIGHEST;
    *out_first = low - FIRST >= ENOUGH ? FIRST : HIGHEST - high >= ENOUGH ? high + 1 : FIRST;
    *out_n = low - FIRST >= ENOUGH ? low - FIRST : HIGHEST - high >= ENOUGH ? HIGHEST - high : LAST - FIRST + 1;
}

/* Nobody listens on it, on any address. */
static bool is_free(int number)
{
    int off = 0;
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)number) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number) };
    AUTO_CLOSE int a = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (a >= 0 && setsockopt(a, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
        bind(a, (const struct sockaddr *)(const void *)&six, sizeof six) == 0)
        return true;
    if (a >= 0 && errno == EADDRINUSE)
        return false;
    AUTO_CLOSE int b = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* a machine without IPv6 */
    return b >= 0 && bind(b, (const struct sockaddr *)(const void *)&four, sizeof four) == 0;
}

int port_take(struct port *out, struct err *e)
{
    enum { TRIES = 512 };
    int first, n;
    unsigned at = (unsigned)getpid();
    struct leases *held = leases_new("pipetune-port");
    if (!held)
        return err_sys(e, -ENOMEM, "a port");
    range(&first, &n);
    (void)getrandom(&at, sizeof at, 0); /* else they are tried from another one on */
    for (unsigned i = 0; i < TRIES; i++) {
        int number = first + (int)((at + i) % (unsigned)n);
        if (!leases_hold(held, number))
            continue;
        if (is_free(number)) {
            *out = (struct port){ held, number };
            return 0;
        }
        leases_drop(held, number);
    }
    leases_free(held);
    return err_set(e, -EADDRINUSE, "no free port from %d to %d", first, first + n - 1);
}

void port_give_back(struct port *p)
{
    leases_free(p->held);
    *p = (struct port){ 0 };
}

int ports_read(int out[PORTS_MAX], size_t n, const char *text)
{
    for (size_t i = 0; i < n && i < PORTS_MAX; i++) {
        size_t digits = strspn(text, "0123456789");
        long number = digits > 0 && digits < 6 ? strtol(text, NULL, 10) : 0;
        if (number < 1 || number > HIGHEST || text[digits] != (i + 1 < n ? ',' : '\0'))
            return -EINVAL;
        out[i] = (int)number;
        text += digits + 1;
    }
    return n >= 1 && n <= PORTS_MAX ? 0 : -EINVAL;
}

char *ports_fill(const char *text, const int *ports, size_t n)
{
    static const char name[] = "{port.";
    struct buf b = BUF_INIT;
    while (*text) {
        const char *digits = text + sizeof name - 1;
        size_t len = strncmp(text, name, sizeof name - 1) == 0 ? strspn(digits, "0123456789") : 0;
        unsigned long k = len > 0 && len < 4 && digits[len] == '}' ? strtoul(digits, NULL, 10) : n;
        if (k < n) {
            buf_printf(&b, "%d", ports[k]);
            text = digits + len + 1;
        } else {
            buf_putc(&b, *text++);
        }
    }
    return buf_take(&b);
}
