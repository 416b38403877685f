/* A port for a process of a gang, and those of all of them in its words: what is to be started knows its peers only when each of them has a port on its
 * own machine.
 *
 * One that was chosen is no other gang's here as long as who chose it lives (base/lease), and of none that the kernel gives away by itself. That
 * it is free of others was seen when it was chosen. */
#ifndef NODE_PORT_H
#define NODE_PORT_H

#include <stddef.h>

#include "base/err.h"
#include "base/lease.h"

enum { PORTS_MAX = 64, PORTS_TEXT_MAX = 6 * PORTS_MAX + 2 };

struct port { /* zeroed: none */
    struct leases *held;
    int number;
};

/* A free one. -EADDRINUSE: there is none; -ENOMEM. */
int port_take(struct port *out, struct err *e);
void port_give_back(struct port *p); /* zeroed is fine */

/* "4001,4002": those of a gang of n. -EINVAL: it is no such list. */
int ports_read(int out[PORTS_MAX], size_t n, const char *text);

/* `text` with {port.K} replaced by ports[K]. Free it; NULL: memory. */
char *ports_fill(const char *text, const int *ports, size_t n);

#endif
