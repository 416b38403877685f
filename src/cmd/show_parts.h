/* One showing of a study: what show.c found, and the parts that print it. */
#ifndef CMD_SHOW_PARTS_H
#define CMD_SHOW_PARTS_H

#include "app/wait.h"
#include "base/buf.h"
#include "base/json.h"
#include "store/outlook.h"
#include "store/store.h"
#include "view/energy_figure.h"
#include "view/pareto.h"
#include "view/table.h"

struct show {
    struct store *store;
    struct store_study study;
    const char *dir;             /* the study's */
    json_t *config, *provenance; /* NULL: cannot be read */
    pid_t driver;                /* 0: none */
    struct store_summary totals; /* without its texts */
    int trial;                   /* the one that was asked for, 0: all */
    bool json;                   /* what is printed, else text for people */
    struct buf out;
    size_t printed;            /* rows so far */
    int reuses;                /* trials whose job was recognised */
    struct energy_load energy; /* without meters: nothing was read */
    struct outlook *outlook;
    struct pareto pareto; /* of several objectives */
    struct table table;
    json_t *hyper, *system; /* of the first trial: a column for each key */
    struct err *e;
};

/* show.c: 0 or an error; -EPIPE, unexplained: the reader has seen enough. */
int show_flush(struct show *l);
int show_flush_when_full(struct show *l);

const char *show_study_state(const struct show *l);
const char *show_trial_state(const struct show *l, const struct store_trial *t);
double show_seconds(const struct show *l, const struct store_trial *t); /* the attempt under way included */
const char *show_metric(const struct show *l);
const char *show_config_text(const struct show *l, const char *section, const char *key); /* NULL: no such text */
json_t *show_object(const char *text); /* a stored object; an empty one where there is none; new reference */
char *show_log_path(const struct show *l, int trial); /* NULL: memory */

/* show_now.c: what a running trial is at */
struct show_now {
    bool runs;               /* else all below is absent */
    int epoch;               /* under way; 0: none is */
    double part, throughput; /* of it, 0…1; records per second; NAN: not known */
    double cores;            /* CPUs in force; NAN: not known */
    double seconds;          /* of the attempt */
    struct wait wait;        /* before its first step */
};
int show_now(struct show *l, const struct store_trial *t, struct show_now *out);
void show_put_now(struct buf *b, const struct store_trial *t, const struct show_now *n);
json_t *show_now_json(const struct show_now *n); /* null when it does not run; new reference */

/* show_json.c, with all trials or the one that was asked for */
int show_json_study(struct show *l);
int show_json_decisions(struct show *l);

/* show_text.c, for people */
int show_text_study(struct show *l);
int show_text_decisions(struct show *l);

/* show_trial.c, for people */
int show_trial_text(struct show *l);

/* show_repeats.c: what was learnt from earlier studies, and points that were trained again; nothing, null and [] where there is none */
int show_learnt_text(struct show *l);
int show_learnt_json(struct show *l, json_t **out); /* {"studies":[],"trials","trust"} */
int show_repeats_text(struct show *l);
int show_repeats_json(struct show *l, json_t **out); /* [{"trial","n","mean","sd","first","rank","rank_before"}] */

/* show_importance.c: of all trials, for people or as JSON */
int show_importance(struct show *l);

/* show_put.c: pieces of a text for people */
void show_put_plain(struct buf *b, const char *text); /* of logs and programs: one line, no commands to the terminal */
void show_put_scalar(struct buf *b, const json_t *j);
void show_put_short(struct buf *b, const json_t *j);        /* a cell of a table: four digits */
void show_put_members(struct buf *b, const json_t *object); /* "batch_size 1024, learning_rate 0.1" */
/* The same with four digits, and words for what is nested: "verdict known, near (cluster 3, distance 0.5)". What is no object is put
 * alone. */
void show_put_short_members(struct buf *b, const json_t *j);
void show_put_effective(struct buf *b, const json_t *effective, const json_t *requested); /* "2 [16]": given, wanted */
void show_put_system(struct buf *b, const json_t *effective, const json_t *requested);
void show_put_figure(struct buf *b, const char *name, double x); /* "accuracy 0.9914", "loss -" */
void show_put_when(struct buf *b, int64_t ms);

#endif
