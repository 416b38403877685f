/* What an InfluxDB's answer to a write means. Pure; 1.x, 2.x and what resembles them are told apart by their words alone. */
#ifndef MONITORING_INFLUX_ANSWER_H
#define MONITORING_INFLUX_ANSWER_H

#include <stddef.h>
#include <stdint.h>

enum influx_kind {
    INFLUX_DELIVERED, /* all lines are there */
    INFLUX_PARTIAL,   /* all but `dropped` lines are there; sending them again would drop them again */
    INFLUX_RETRY,     /* none is known to be there; the same lines again, later */
    INFLUX_HALVE,     /* too large: the same lines in smaller parts */
    INFLUX_REJECT,    /* none is there, and at least one line is why */
    INFLUX_PAUSE,     /* nothing will be taken until somebody mends what `reason` says */
};

enum influx_reason {
    INFLUX_NO_REASON,
    INFLUX_UNAUTHORIZED, /* 401, 407 */
    INFLUX_FORBIDDEN,    /* 402, 403 */
    INFLUX_NO_DATABASE,  /* the database or the bucket is absent */
    INFLUX_NO_RETENTION, /* the retention policy is absent */
    INFLUX_NO_API,       /* 404, 405: this server has no such path; 1.x instead of 2.x, perhaps */
    INFLUX_REDIRECTED,   /* 3xx: not followed */
    INFLUX_STRANGER,     /* an answer that no InfluxDB gives */
    INFLUX_TLS,          /* the server's certificate is not trusted (not by an answer: monitoring/influx) */
    INFLUX_REASONS
};

enum {
    INFLUX_WAIT_MAX_MS = 600000, /* the most that Retry-After is believed */
    INFLUX_WAIT_VAGUE_MS = 10000 /* for one that cannot be read */
};

struct influx_answer {
    enum influx_kind kind;
    enum influx_reason reason; /* of INFLUX_PAUSE */
    uint64_t dropped;          /* of INFLUX_PARTIAL, at most the lines that were sent */
    int64_t wait_ms;           /* of INFLUX_RETRY: what the server asks for, -1 when it does not */
    char text[256];            /* why, on one line without control characters: the status, and the server's words */
};

/* An answer as it came. */
struct influx_reply {
    long status;
    const char *retry_after, *date; /* headers; NULL: there is none */
    const char *body;               /* any bytes */
    size_t body_len;
    uint64_t lines; /* that were sent */
    int64_t now_s;  /* since 1970; what a Retry-After with a date is counted from when `date` cannot be read */
};

void influx_answer(struct influx_answer *out, const struct influx_reply *r);

/* How long a Retry-After asks to wait: seconds or an HTTP date, at least 0, capped; -1 for NULL. */
int64_t influx_retry_after(const char *value, const char *date, int64_t now_s);

/* Did a 1.x /query do what it was asked? A status of 200 may hold an error. 0, or -EPROTO with the server's words in `text`. */
int influx_query_done(long status, const char *body, size_t len, char *text, size_t room);

/* In words: "no such database". */
const char *influx_reason_name(enum influx_reason r);

#endif
