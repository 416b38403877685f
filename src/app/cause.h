/* Why an application failed: the causes, what they mean for a trial, and the words by which each is known in what it printed. Each kind
 * of application has a table of its own. Pure. */
#ifndef APP_CAUSE_H
#define APP_CAUSE_H

#include "app/cur.h"
#include "app/lines.h"

/* What a cause means for the trial: see enum outcome in core/sched.h, which the driver maps it to. */
enum cause_verdict { VERDICT_FAILED, VERDICT_INFEASIBLE, VERDICT_ENVIRONMENT };

/* What the engine asks of a cause, besides. */
enum cause_trait {
    CAUSE_IS_VAGUE = 1,  /* that something failed, but not what */
    CAUSE_IS_ANY = 2,    /* any exception: who was told of it otherwise knows it better */
    CAUSE_IS_MEMORY = 4, /* too little memory: with more of it, it may run */
    CAUSE_IS_LOSS = 8,   /* of some of its room: may be another one each time */
};

enum { CAUSE_NEEDLES_MAX = 10 };

/* One row: those of a table stand in an array, the most telling first. Of those that ended an application together (app/fold.h) the lowest
 * row wins, and of equal ones the first line. */
struct cause {
    const char *name; /* "out_of_memory": stored, so it is stable */
    enum cause_verdict verdict;
    const char *fix; /* one clause for the user: "raise memory, or lower the batch"; may be NULL */
    const char *needles[CAUSE_NEEDLES_MAX]; /* any of these in a line */
    const char *unless;                     /* … but not with this one */
    const struct cause *
        explains; /* the row of the same table that this one tells the reason of, even where it was only warned of it */
    unsigned traits; /* enum cause_trait */
};

/* "none" for NULL. */
const char *cause_name(const struct cause *c);

/* Texts that lines are looked through for, all in one pass. */
struct cause_words {
    const struct cause *rows; /* at most CAUSE_ROWS_MAX */
    size_t n;
    const struct cause *exception; /* one of them, for an exception that has no row of its own; NULL: it is none */
    const char *const *anchors;    /* other texts, of which lines are known that are no causes */
    size_t n_anchors;
};

struct cause_hits {
    const struct cause *cause; /* NULL: none */
    const char *cause_at;
    const char *anchor; /* the first of them in the line, and where it ends; NULL: none */
    const char *anchor_end;
    size_t anchor_row;
};

struct cause_hits cause_find(const struct cause_words *w, const struct cur *line);

/* The level that a record's first words say: " WARN Utils: …", " [main] ERROR …", " - WARNING - …", "WARNING:root:…". */
enum report_level cause_level_of(struct cur c, int words);

/* Reads a line that is nothing else: 1 and a REPORT_CAUSE in *out (begun; with the line's stamp), or 0, and what it is for the lines after it
 * is noted in *place. `rest`: the line behind its stamp, or the line; place->level is that of a stamped line. */
int cause_read(const struct cause_words *w, struct line_place *place, const struct cur *line, const struct cur *rest,
               const struct cause_hits *h, struct app_report *out);

#endif
