/* A small HTTP server on loopback that takes what is written to it, a thread for each connection. Whatever goes wrong in here fails the
 * running test. */
#ifndef TESTS_INTEGRATION_SINK_H
#define TESTS_INTEGRATION_SINK_H

#include <stddef.h>
#include <stdint.h>

struct sink;

#define SINK_BUSY "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

/* Listens, and answers 204 to everything. */
struct sink *sink_new(void);
void sink_free(struct sink *s);
uint16_t sink_port(const struct sink *s);

/* What it answers from now on: a whole answer, borrowed; NULL: 204; "": closes the connection. */
void sink_answer(struct sink *s, const char *answer);

/* No answer to requests from now on before sink_answer() or sink_free(). */
void sink_hold(struct sink *s);

int sink_requests(struct sink *s);
int sink_held(struct sink *s); /* requests that wait for their answer now */

/* The bodies that were answered with 204, unpacked, one after the other; and the head of the newest request. Free it. */
char *sink_lines(struct sink *s);
char *sink_head(struct sink *s);

#endif
