/* Writing to an InfluxDB over HTTP, by libcurl: one batch in, an answer out. */
#ifndef MONITORING_INFLUX_H
#define MONITORING_INFLUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "monitoring/credential.h"
#include "monitoring/influx_answer.h"
#include "monitoring/line.h"

enum { INFLUX_LINES_MAX = 5000, INFLUX_BODY_MAX = 65536 }; /* lines of a batch; bytes of an answer that are looked at */

/* Where to write. All is copied. */
struct influx_cfg {
    const char *url;                     /* http[s]://HOST[:PORT][/PREFIX], without user and password */
    const char *database;                /* of 1.x; or */
    const char *bucket;                  /* of 2.x */
    const char *retention;               /* policy of 1.x; NULL: the database's own */
    const char *org;                     /* of 2.x; NULL: the token's */
    const struct credential *credential; /* NULL: none. A token of 1.x is sent as it is, too */
    const char *ca_file;                 /* trusted instead of the system's; NULL */
    bool allow_plain;                    /* the credential may go to another machine over http:// */
    bool plain;                          /* not gzipped: for a server on this machine, where nothing is saved by it */
    enum line_precision precision;
    long connect_ms, timeout_ms; /* 0: 5 s, 30 s */
};

/* -EINVAL: not http[s]://HOST[:PORT][/PREFIX] alone; or a `secret` would go to another machine in the clear and nobody allowed it. Looks
 * nothing up. */
int influx_url_check(const char *url, bool secret, bool allow_plain, struct err *e);

/* Is the server, by its name, on this machine? */
bool influx_url_is_here(const char *url);

struct influx; /* one connection, kept alive; of one thread at a time */

/* Looks up and connects nothing. -EINVAL: the URL is none, or neither or both of database and bucket are given. */
int influx_new(struct influx **out, const struct influx_cfg *cfg, struct err *e);
void influx_free(struct influx *x);

/* Writes at most INFLUX_LINES_MAX whole lines. Blocks, for at most three times the time-out, and touches nothing but `x`: for a
 * worker. Redirects are not followed, certificates are verified, no proxy is asked. An absent database of 1.x is created if the
 * server lets us; else the text holds the command. Every fault is an answer; a network's is INFLUX_RETRY. */
void influx_send(struct influx *x, const char *lines, size_t len, uint64_t n_lines, struct influx_answer *out);

/* Bytes of bodies that were sent, as they went over the wire, since influx_new(). */
uint64_t influx_sent_bytes(const struct influx *x);

#endif
