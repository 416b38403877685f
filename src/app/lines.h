/* What an application prints, as it grows: bytes become lines, and lines, by the application's own reader, reports. Pure. */
#ifndef APP_LINES_H
#define APP_LINES_H

#include "app/report.h"

/* What the lines before it tell of a line. Begins zeroed. */
struct line_place {
    enum report_level level; /* of the newest record */
    bool ordinary;           /* there was ordinary output since the last cause */
    char said
        [REPORT_TEXT_MAX]; /* the newest line that a program printed by itself, and no part of a trace: of one that dies without a
                                   cause that we know, its last word; "" */
    int epoch;             /* that a line has told, for readers whose later lines leave it out; 0: none */
};

/* How an application's lines are read. `parse` gets one line without its newline (a trailing CR is to be ignored), of at most LINES_BYTES_MAX
 * bytes, any of which are allowed: 1 and *out filled, or 0 when it says nothing to us. */
struct line_reader {
    int (*parse)(const void *ctx, struct line_place *place, const char *line, size_t len, struct app_report *out);
    const void *ctx; /* borrowed: the application's own */
    const char *(*dropped)(
        const void *ctx); /* what it looked for and has given up, told once; NULL: nothing, or it gives up nothing */
};

/* A line longer than this is read from its first bytes. */
enum { LINES_BYTES_MAX = 65536 };

typedef int report_sink(void *ctx, const struct app_report *r, uint64_t end); /* end: offset just behind the line */

struct lines {
    struct line_reader reader;
    uint64_t offset; /* of the next byte to be fed */
    char *partial;   /* the beginning of a line whose end has not come yet */
    size_t partial_len, partial_cap;
    bool skipping; /* inside the tail of an over-long line */
    struct line_place place;
};

/* Starts at `offset` of what is printed, which must be the beginning of a line. */
void lines_init(struct lines *s, const struct line_reader *reader, uint64_t offset);
void lines_done(struct lines *s);

/* Feeds bytes; calls sink for each report. Stops at, and returns, the sink's first non-zero return: s->offset then stands
 * behind the line of that report, and the bytes from there on are to be fed again. -ENOMEM: the bytes from s->offset on are
 * to be fed again. */
int lines_feed(struct lines *s, const char *bytes, size_t len, report_sink *sink, void *ctx);

/* What the reader has given up looking for since the last call; NULL: nothing. */
const char *lines_dropped(const struct lines *s);

/* It ended: reads what stands in `partial` as a last line. */
int lines_end(struct lines *s, report_sink *sink, void *ctx);

#endif
