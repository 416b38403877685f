/* What the driver and `pipetune-node serve` say to each other: JSON lines on the helper's stdin and stdout, at most
 * NODE_LINE_MAX bytes each. Every request has "id" and "verb", every answer repeats "id" and has "ok". Pure.
 *
 *   {"id":1,"verb":"hello","protocol":1,"clock_ms":R}
 *     {"id":1,"ok":true,"protocol":1,"version":"0.1.0","clock_ms":R2,"uid":1000,"host":"name","features":"a,b","cpus":[0,2,1,3],
 *      "frequency_khz":[min,max]|null,"power_cap_w":[current]|null}
 *   {"id":2,"verb":"lease"}             every 5 s: after 30 s without one the helper gives everything back and ends
 *   {"id":3,"verb":"apply","tag":"T","cores":1,"slots":2,"local":false,"cpus":[0,1],"frequency_khz":N,"power_cap_w":X}
 *     {"id":3,"ok":true,"processes":2,"threads":363,"slots":2,"cpus":[0]}      processes 0: nothing carries the tag there; with
 *                                                                              the limits that are in force, if any was asked for
 *                                                                              "shared":"process 77 of user 1000" while
 *                                                                              others use any of these CPUs
 *     {"id":3,"ok":false,"error":"one line"}                                   an apply that fails gives back what the tag had
 *   {"id":4,"verb":"release","tag":"T"}
 *   {"id":5,"verb":"stop"}              it gives everything back and exits 0
 *   {"id":6,"verb":"sample","tag":"T","interval_ms":1000,"scope":"auto","events":"instructions,cpu-cycles"}     interval 0: no more;
 *                                                                              events: those that are counted, left out: all
 *     {"event":"sample","tag":"T","scope":"system","t_ms":R,"dt_ms":1000.02,"missed":0,"values":"…"}    unasked, each interval:
 *                                                                              when it ended, how long it was; the values of its features,
 *                                                                              as bytes (monitoring/sample_blob.h) in base 64
 *   {"id":7,"verb":"meter","meters":"cpu,rapl","interval_ms":1000,"idle_w":40,"cpu_w":6}     interval 0: no more, and no names then
 *     {"id":7,"ok":true,"opened":"cpu","refused":"rapl: why; …"}               which are read from now on, and which cannot be
 *     {"event":"meter","meter":"cpu","state":"ok","from_ms":R,"to_ms":R2,"value":0.5,"error":0.01,"why":"one line"}    unasked, each
 *                                                                              interval (monitoring/meter.h); the last three optional
 *     {"event":"changed","tag":"T","processes":1,"threads":300,"slots":2,"cpus":[0]}     unasked; with "error" when what was
 *                                                                              wanted could not be brought into force again
 *
 * Launches on other nodes: the verbs launch, go, adopt, tail, signal, say-stop and forget, the events "launch" and "bytes"; their files: have, put,
 * list and read; sessions among them: run, talk and say, the event "words"; as node/serve.h draws them.
 *
 * "features" are the names of what its samples are made of, in their order; a helper of an older version says none, and sends "cells"
 * (monitoring/sample_text.h) instead of "values".
 *
 * A hello may also have "sees", which is equal in two helpers that find the same processes (one machine under two names). */
#ifndef LIVE_NODE_WORDS_H
#define LIVE_NODE_WORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/proc.h"
#include "base/strv.h"
#include "live/nodes.h"

enum { NODE_PROTOCOL = 1, NODE_LINE_MAX = 64 << 10, NODE_TAG_MAX = DESIRED_TAG_MAX };

enum node_verb {
    NODE_HELLO,
    NODE_LEASE,
    NODE_APPLY,
    NODE_RELEASE,
    NODE_STOP,
    NODE_SAMPLE,
    NODE_METER,
    NODE_LAUNCH,
    NODE_GO,
    NODE_ADOPT,
    NODE_TAIL,
    NODE_SIGNAL,
    NODE_FORGET,
    NODE_SAY_STOP,
    NODE_HAVE,
    NODE_PUT,
    NODE_LIST,
    NODE_READ,
    NODE_LOOK,
    NODE_ECHO,
    NODE_CLEAN,
    NODE_RUN,
    NODE_TALK,
    NODE_SAY,
};

/* Requests, appended with their newline. */
void node_words_hello(struct buf *b, uint64_t id, int64_t clock_ms, const struct app_workers *workers);
void node_words_simple(struct buf *b, uint64_t id, enum node_verb verb); /* lease, look, clean, stop */
void node_words_tagged(struct buf *b, uint64_t id, enum node_verb verb,
                       const char *tag); /* release, go, adopt, say-stop, forget, echo */
/* `here`: it is this machine's helper, where want->cpus mean something, and whose CPUs the driver leases itself in local mode. Elsewhere the
 * helper chooses and leases them. */
void node_words_apply(struct buf *b, uint64_t id, const struct desired_want *want, bool here);
void node_words_sample(struct buf *b, uint64_t id, const char *tag, const struct desired_sampling *how);

void node_words_meter(struct buf *b, uint64_t id, const struct nodes_metering *how);

/* What is launched on a node: as node/exec has it, but for its folder and its control, which are the helper's. */
struct node_launch {
    const char *tag;
    int attempt;
    int64_t log_cap;                            /* bytes; 0: as exec has it */
    const char *cpus;                           /* of that machine: "0,2"; NULL: all */
    const struct strv *steps;                   /* counted lists (launcher_put_step()) */
    const struct strv *env;                     /* NAME=VALUE; NULL: none */
    const struct strv *keep_texts, *step_texts; /* of lines that are heard; NULL: none */
    int64_t memory;                             /* bytes; 0: no limit */
    const char *answer; /* what programs are answered that tell of themselves; NULL: they cannot */
    int gang;           /* of so many processes this is one; 0: of none */
    const char *mark;   /* it is a session, and its marks begin with this; NULL: it is none */
    const char *files;  /* the hash of the manifest of what it is given; NULL: nothing */
};
void node_words_launch(struct buf *b, uint64_t id, const struct node_launch *l);
/* A run of a session, `files` as above; what the session says is to be told; what is said to it, at most
 * NODE_SAY_MAX bytes. */
enum { NODE_SAY_MAX = 32 << 10 };
void node_words_run(struct buf *b, uint64_t id, const char *tag, const char *session, const char *files);
void node_words_talk(struct buf *b, uint64_t id, const char *tag, uint64_t credit);
void node_words_say(struct buf *b, uint64_t id, const char *tag, const char *bytes, size_t n);
void node_words_go(struct buf *b, uint64_t id, const char *tag, const char *ports); /* ports NULL: it is of no gang */
void node_words_tail(struct buf *b, uint64_t id, const char *tag, uint64_t from, uint64_t credit, uint64_t accounted);
void node_words_signal(struct buf *b, uint64_t id, const char *tag, bool hard);

/* Files: is it there; bytes of one; what there is of a launch by that name; bytes of it. */
void node_words_have(struct buf *b, uint64_t id, const char *hash, int64_t size);
void node_words_put(struct buf *b, uint64_t id, const char *hash, int64_t size, int64_t from, const void *bytes,
                    size_t n);
void node_words_list(struct buf *b, uint64_t id, const char *tag, const char *name);
void node_words_read_file(struct buf *b, uint64_t id, const char *tag, const char *name, int64_t from, int64_t size);

/* [A-Za-z0-9_-]{1,64} */
bool node_words_is_tag(const char *tag);

/* Names of a-z, 0-9 and '-' with one comma between two, at most METER_NAMES_MAX bytes in all. */
bool meter_are_names(const char *names);

/* Is this one of them? */
bool node_words_has_meter(const char *names, const char *meter, size_t len);

enum node_words_kind {
    NODE_ANSWER,
    NODE_CHANGED,  /* the event */
    NODE_SAMPLED,  /* the event */
    NODE_METERED,  /* the event */
    NODE_LAUNCHED, /* the event */
    NODE_BYTES,    /* the event */
    NODE_SAID,     /* the event "words" */
    NODE_UNKNOWN,  /* an event that a newer helper tells: to be ignored */
};

struct node_words {
    enum node_words_kind kind;
    uint64_t id;                /* NODE_ANSWER */
    bool ok;                    /* NODE_ANSWER */
    char error[256];            /* NODE_ANSWER that is not ok: one plain line, never empty. NODE_CHANGED: "" or one */
    char tag[NODE_TAG_MAX + 1]; /* NODE_CHANGED, NODE_SAMPLED */
    json_t *body;               /* owned */
};

/* One line without its newline. -EPROTO: neither an answer nor an event; nothing is to be freed then. */
int node_words_read(struct node_words *out, const char *line, size_t len, struct err *e);
void node_words_done(struct node_words *w);

/* What an answered hello says of the node. */
struct node_hello {
    int protocol; /* when it is another than ours, the rest is not read */
    char version[32], host[64];
    char sees[96]; /* whose processes it finds: equal in two helpers of one machine; "" when it does not tell */
    int64_t clock_ms;
    int *cpus; /* owned; physical cores first */
    int n_cpus;
    struct feature_list features; /* of its samples; none: it does not name them */
    char root
        [512]; /* below which launches lie, absolute; "": it has no place for them, or is of a version that says none */
    bool sessions;    /* it knows them */
    double memory_gb; /* of the machine; 0: not told */
};

/* -EPROTO: the helper refused (its reason), or the answer has not what a hello has; -ENOMEM. */
int node_hello_read(struct node_hello *out, const struct node_words *w, struct err *e);
void node_hello_done(struct node_hello *h);

/* What a node has of a launch: of an answered apply, or a NODE_CHANGED. -EPROTO: it has not what it must have. */
int node_seen_read(struct desired_seen *out, const struct node_words *w, struct err *e);

/* What a NODE_SAMPLED tells, with texts of `w`. -EPROTO: it has not what it must have; -EINVAL: its values are not those of these
 * features; -ENOMEM. */
int node_sample_read(struct nodes_sample *out, const struct feature_list *features, const struct node_words *w,
                     struct err *e);

/* What a NODE_METERED tells, with the meter's name of `w`. -EPROTO: it has not what it must have. */
int node_reading_read(struct nodes_reading *out, const struct node_words *w, struct err *e);

/* The next of the meters that an answered NODE_METER refuses: its name in `meter`, why as one plain line in `why`. `*at` is 0 at first.
 * False: there is none (any more), or what follows has not this form. */
struct node_refused {
    char meter[METER_NAMES_MAX + 1], why[256];
};
bool node_refused_next(struct node_refused *out, const struct node_words *w, size_t *at);

enum node_launch_state {
    NODE_LAUNCH_READY, /* it waits for its go, and its launcher has just said so */
    NODE_LAUNCH_BUSY,
    NODE_LAUNCH_REFUSED,
    NODE_LAUNCH_GONE,
    NODE_LAUNCH_NONE, /* from here on as answered to an adopt */
    NODE_LAUNCH_WAITING,
    NODE_LAUNCH_RUNNING,
    NODE_LAUNCH_ENDED,
    NODE_LAUNCH_CUT,
};

/* What a NODE_LAUNCHED or an answered adopt tells of a launch. */
struct node_launch_told {
    enum node_launch_state state;
    char boot_id[PROC_BOOT_ID_SIZE]; /* READY and RUNNING, and what follows */
    int64_t pid;
    uint64_t start_ticks;
    int64_t port;   /* READY of one of a gang; else 0 */
    uint64_t heard; /* bytes of what is heard of it; where it is not told, 0 */
    char why[256];  /* BUSY, REFUSED: one plain line */
    char exit[512]; /* ENDED: its note (node/exec.h) … */
    int64_t ago_ms; /* … and how long ago that was; -1: not told */
};

/* -EPROTO: it has not what it must have. */
int node_launch_read(struct node_launch_told *out, const struct node_words *w, struct err *e);

/* What a NODE_BYTES tells: bytes from `*at` on, appended. -EPROTO; -ENOMEM. */
int node_bytes_read(uint64_t *at, struct buf *out, const struct node_words *w, struct err *e);

/* What a NODE_SAID tells: bytes, appended, or why no more come; "". -EPROTO; -ENOMEM. */
int node_said_read(struct buf *out, char why[128], const struct node_words *w, struct err *e);

/* An answered NODE_HAVE or NODE_PUT: is it there, whole? -EPROTO. */
int node_there_read(bool *out, const struct node_words *w, struct err *e);

/* The bytes of an answered NODE_LIST ("files") or NODE_READ ("data"), appended. -EPROTO; -ENOMEM. */
int node_file_read(struct buf *out, const struct node_words *w, const char *key, struct err *e);

/* Foreign bytes as one plain line: what is no printable character becomes '?', what is too long ends in "…". `size` is 4 or
 * more. Returns `out`. */
char *node_words_plain(char *out, size_t size, const char *text, size_t len);

#endif
