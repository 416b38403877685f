/* The one table of what there is to tell of a trial: its key in JSON, its head elsewhere, where it comes from. Each form of output is a list of
 * columns, in their order; printers walk it (put.h). */
#ifndef VIEW_COLUMNS_H
#define VIEW_COLUMNS_H

#include "view/view.h"

enum cell_kind {
    CELL_ABSENT, /* told as that: null, an empty cell, "-" */
    CELL_NONE,   /* not even its key is told */
    CELL_NUMBER,
    CELL_INTEGER,
    CELL_TEXT,
    CELL_JSON,
};

struct cell {
    enum cell_kind kind;
    double number;
    int64_t integer;
    const char *text; /* the view's, or `own` */
    char own[64];
    json_t *json; /* owned: cell_done() */
};

enum column_from {
    FROM_INT,    /* a field of struct view_trial */
    FROM_NUMBER, /* … where 0 is none: the number of another trial */
    FROM_REAL,
    FROM_TEXT,
    FROM_OBJECT, /* … a text that is a JSON object */
    FROM_CALL,   /* reckoned */
};

struct column {
    const char *key, *head; /* in JSON; in CSV, NULL: the same */
    const char *label;      /* for people; NULL: the same as in JSON; "": the study's metric */
    enum column_from from;
    size_t offset;
    int (*call)(struct view *v, struct view_trial *t, struct cell *out, struct err *e);
    bool (*is_told)(const struct view *v); /* NULL: always */
    const char *unit;                      /* "s": people read it as a duration; NULL */
    bool is_text;                          /* it stands at the left of its column */
    bool stays;                            /* a column of tables even if all have the same in it */
    bool spread;                           /* an object: each of its members is a column, "HEAD.MEMBER" */
};

/* The end of each is NULL. */
extern const struct column *const columns_show[];     /* show --json, of all trials */
extern const struct column *const columns_show_one[]; /* … of one: its commands, and what it told at each step */
extern const struct column *const columns_report_json[];
extern const struct column *const columns_report_csv[];
extern const struct column *const columns_table[]; /* show, on a terminal */
extern const struct column *const columns_page[];  /* a page's table */
extern const struct column *const columns_diff[];  /* what two trials are held against each other by */

/* cell_done() is due also after a failure. 0, -ENOMEM, and what the store says. */
int column_cell(const struct column *c, struct view *v, struct view_trial *t, struct cell *out, struct err *e);
void cell_done(struct cell *x);

bool column_is_told(const struct column *c, const struct view *v);
const char *column_label(const struct column *c, const struct view *v);

#endif
