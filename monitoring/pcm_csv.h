/* The CSV of Intel PCM, as it grows: bytes in, rows out. Pure.
 *
 *     System;;;;…;System;System;…;Socket0;;…;Proc Energy (Joules);;DRAM Energy (Joules);;          groups
 *     Date;Time;EXEC;IPC;…;Proc Energy (Joules);DRAM Energy (Joules);…;SKT0;SKT1;SKT0;SKT1;        columns
 *     2026-11-18;10:29:51.189;0.52;1.10;…;83.61;9.2;…;41.70;41.91;4.6;4.6;                         a row for each interval
 *
 * Two header rows name a column together; a blank group repeats the one before. ';' or ',' separates; with ';' the decimals may come
 * after a comma. The header comes again when PCM is started again, at any place.
 *
 * Energies are joules of the row's interval. Of the processors' there are up to three forms, of which the first that is there counts, so
 * that nothing counts twice; DRAM, which no processor's figure contains, has the same, and is added:
 *     1. group "System", column "Proc Energy (Joules)": all sockets
 *     2. group "Proc Energy (Joules)", columns "SKT…" (or "Socket…"): summed
 *     3. groups "Socket…" (or "SKT…"), column "Proc Energy (Joules)": summed
 * Power planes are parts of a processor and don't count.
 *
 * Date and time are local, without a zone: they are handed on as if they were UTC, and whoever knows the clock places them. */
#ifndef MONITORING_PCM_CSV_H
#define MONITORING_PCM_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { PCM_LINE_MAX = 262144, PCM_PARTS_MAX = 64 };

struct pcm_row {
    int64_t local_ms; /* the end of its interval, read as if it were UTC, since 1970 */
    int step_ms;      /* of that time: 1, or 1000 when it is shown in whole seconds */
    double proc_j;    /* of all processors; NAN: there is no such column, or no number of at least 0 in it */
    double dram_j;    /* 0 where there is no such column; NAN: no number of at least 0 in it */
    double error_j;   /* half of the last digits that are shown, together */
    bool
        fresh; /* where its interval began is not known: the first below a header, or behind a line that was passed over */
};

/* The columns that count. */
struct pcm_part {
    size_t n;
    uint32_t at[PCM_PARTS_MAX]; /* column numbers, from 0, rising */
    int form;                   /* 1, 2, 3; 0: none is there */
};

struct pcm_layout {
    char separator; /* 0: no header has been seen */
    uint32_t columns, date, time;
    struct pcm_part proc, dram;
    size_t sockets; /* how many of them have columns of their own; at least 1 */
};

/* Begins as all zeros. */
struct pcm_csv {
    struct buf text; /* what has come and is not used up, from `used` on */
    size_t used;
    bool skipping;      /* up to the next newline, all belongs to a line that is too long, or was cut in front */
    bool fresh;         /* the next row is */
    struct buf before;  /* the last line that was neither columns nor a row: the groups, if columns come next */
    bool waiting;       /* `before` may still be groups */
    struct buf columns; /* the last line of columns */
    struct pcm_layout layout;
    uint64_t passed_over; /* lines that were neither header nor row: garbled, cut, too long, or somebody else's */
};

void pcm_csv_done(struct pcm_csv *c);

/* More of the text, any piece of it. -ENOMEM: none of it was taken. */
int pcm_csv_put(struct pcm_csv *c, const char *bytes, size_t len);

/* The next row: 1; 0: none, until there is more text (a line without its newline waits); -ENOMEM. A line of more than PCM_LINE_MAX bytes
 * is passed over. */
int pcm_csv_next(struct pcm_csv *c, struct pcm_row *out);

/* What comes now is another text: what is left of a line and the layout are forgotten. */
void pcm_csv_restart(struct pcm_csv *c);

/* What comes now is from further on in the same text: up to the next newline it is dropped, and the next row is fresh. */
void pcm_csv_jump(struct pcm_csv *c);

#endif
