/* Lines of a driver's log become events, by text alone. Pure: bytes in, events out; works on the log of any unmodified BigDL
 * application (0.x to 2.4, DistriOptimizer and LocalOptimizer), with our log4j2 layout or theirs. */
#ifndef BIGDL_LOG_H
#define BIGDL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bigdl/log_cause.h"

enum log_kind {
    LOG_APP_ID,    /* text: app-… */
    LOG_GRANTED,   /* an executor was granted (standalone), or registered (any cluster, at info); text: its id; cores */
    LOG_ITERATION, /* one training step */
    LOG_EPOCH_END, /* "Epoch finished": wall_s is cumulative since optimize() */
    LOG_METRIC,    /* a validation result: text is its name ("Top1Accuracy", "Loss", …), value */
    LOG_CHECKPOINT, /* a checkpoint was written whole (its last "Save" line); text: its folder */
    LOG_RECOVERY,   /* BigDL starts again from a snapshot ("last snapshot", or "origin model": from nothing; that is the
                       text): epoch and iteration numbers may go backwards */
    LOG_MARK,       /* a warm session's "PIPETUNE trial ID begin" or "… end", alone on its line; text: ID; begins */
    LOG_LOST,       /* an executor was lost; text: why; cause: what the line itself tells */
    LOG_CAUSE,      /* a line that explains a failure: cause, text */
    LOG_PAUSE, /* the JVM stood still to collect garbage, for `seconds` (-Xlog:gc, of Java 8 -verbose:gc); a stamp where it
                       prints the time of day */
    LOG_DATA, /* the training data is being read */
};

enum { LOG_TEXT_MAX = 256 };

/* How grave a line says that it is. A stack trace is as grave as the record that it stands below. */
enum log_level {
    LEVEL_NONE, /* it does not say: what a program prints by itself, above all when it dies */
    LEVEL_INFO, /* and below */
    LEVEL_WARN,
    LEVEL_ERROR,
};

struct log_event {
    enum log_kind kind;
    int64_t stamp_ms;  /* the stamp printed in the log as if it were UTC, -1: the line has none. Differences are exact
                             except where the log's zone changes its offset; a whole-second stamp has stamp_ms % 1000 == 0 */
    bool stamp_coarse; /* the stamp has no milliseconds */
    int epoch;         /* of the head "[Epoch 1 60032/60000][Iteration 469]", 0: none */
    int64_t iteration; /* 0: none */
    int64_t records_done; /* of the head: 60032 */
    int64_t records_all;  /* of the head: 60000 */
    double wall_s;        /* of the head, or of "Epoch finished"; NAN: none */
    double records;       /* LOG_ITERATION: trained in this step */
    double seconds;       /* LOG_ITERATION: "in 0.041 seconds"; LOG_PAUSE */
    double loss;          /* LOG_ITERATION; NAN: none */
    double learning_rate; /* LOG_ITERATION; NAN: not printed */
    bool closes_epoch;    /* LOG_ITERATION of LocalOptimizer, which prints no "Epoch finished": the epoch's last step */
    bool begins;          /* LOG_MARK */
    int cores;            /* LOG_GRANTED; 0: not told */
    double value;         /* LOG_METRIC: accuracy as a fraction, loss as the average loss */
    enum log_cause cause; /* LOG_CAUSE, LOG_LOST */
    enum log_level level; /* LOG_CAUSE */
    bool anew;            /* LOG_CAUSE: ordinary output stands between it and the cause before it */
    char text[LOG_TEXT_MAX]; /* valid UTF-8 on one line, whatever the log holds */
};

/* What the lines before it tell of a line. Begins zeroed. */
struct log_place {
    enum log_level level; /* of the newest record */
    bool ordinary;        /* there was ordinary output since the last cause */
    char said
        [LOG_TEXT_MAX]; /* the newest line that a program printed by itself, and no part of a trace: of one that dies without a
                                cause that we know, its last word; "" */
};

/* One line without its newline (a trailing CR is ignored): 1 and *out filled, or 0 when it says nothing to us. Any bytes are
 * allowed. */
int log_parse_line(struct log_place *place, const char *line, size_t len, struct log_event *out);

/* Texts of which every line that counts holds one (any but LOG_CAUSE), for who passes lines on when there are too many: the
 * i-th, NULL behind the last. *step: the line says that training goes on. */
const char *log_needle(size_t i, bool *step);

/* Splits a stream into lines (log_stream.c). A line longer than LOG_LINE_MAX is parsed from its first LOG_LINE_MAX bytes. */
enum { LOG_LINE_MAX = 65536 };

typedef int log_sink(void *ctx, const struct log_event *ev, uint64_t end); /* end: offset just behind the line */

struct log_stream {
    uint64_t offset; /* of the next byte to be fed */
    char *partial;   /* the beginning of a line whose end has not come yet */
    size_t partial_len, partial_cap;
    bool skipping; /* inside the tail of an over-long line */
    struct log_place place;
};

/* Starts at `offset` of the file, which must be the beginning of a line. */
void log_stream_init(struct log_stream *s, uint64_t offset);
void log_stream_done(struct log_stream *s);

/* Feeds bytes; calls sink for each event. Stops at, and returns, the sink's first non-zero return: s->offset then stands
 * behind the line of that event, and the bytes from there on are to be fed again. -ENOMEM: the bytes from s->offset on are
 * to be fed again. */
int log_stream_feed(struct log_stream *s, const char *bytes, size_t len, log_sink *sink, void *ctx);

/* The file ended: parses what stands in `partial` as a last line. */
int log_stream_end(struct log_stream *s, log_sink *sink, void *ctx);

#endif
