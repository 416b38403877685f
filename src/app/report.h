/* What the engine hears of an application, whatever it is and however it tells it: one report per line of its output, or per thing
 * that it told. Pure. */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cause; /* app/cause.h */

enum report_kind {
    REPORT_READY,   /* the place has taken it up; text: what it is called there */
    REPORT_GRANTED, /* it got room to work in; text: what that is called; cores */
    REPORT_STEP, /* one training step: epoch (0: the one under way), step (0: the next), records, seconds, loss, learning_rate,
                          values */
    REPORT_EPOCH, /* the training of the epoch under way is over, and its values may still come; or, `whole`, an epoch (0: the one
                          under way, or the next) is over, whether it had steps or not; seconds, records, loss, learning_rate, values */
    REPORT_VALUE,      /* a result of the epoch: text is its name ("Top1Accuracy", "loss", …), value */
    REPORT_CHECKPOINT, /* a checkpoint was written whole; text: its file or folder; epoch, when it was told */
    REPORT_RECOVERY, /* it starts again from a snapshot, which the text names, and its numbers may go backwards; untrained */
    REPORT_MARK,  /* a warm session begins (`begins`) or ends a trial; text: the run's ID */
    REPORT_LOST,  /* some of its room was lost; text: why; cause: what the line itself tells */
    REPORT_CAUSE, /* a line that explains a failure: cause, text */
    REPORT_PAUSE, /* it stood still for `seconds`, for the sake of its runtime; a stamp where the time of day is known */
    REPORT_DATA,  /* the training data is being read */
};

enum { REPORT_TEXT_MAX = 256, REPORT_NAME_MAX = 64, REPORT_VALUES_MAX = 16 };

/* How grave a line says that it is. A stack trace is as grave as the record that it stands below. */
enum report_level {
    LEVEL_NONE, /* it does not say: what a program prints by itself, above all when it dies */
    LEVEL_INFO, /* and below */
    LEVEL_WARN,
    LEVEL_ERROR,
};

struct report_value {
    char name[REPORT_NAME_MAX]; /* valid UTF-8 */
    double value;
};

struct app_report {
    enum report_kind kind;
    int64_t
        stamp_ms; /* when it was, by the clock that the application printed, as if that were UTC; -1: not told. Differences are
                          exact except where its zone changes its offset; a whole-second stamp has stamp_ms % 1000 == 0 */
    bool stamp_coarse;          /* the stamp has no milliseconds */
    int epoch;                  /* from 1; 0: not told */
    int64_t step;               /* counted from the trial's beginning, from 1; 0: not told */
    int64_t records_done;       /* of the epoch, this step included; 0: not told */
    int64_t records_all;        /* of the epoch; 0: not told */
    double wall_s;              /* since it began, by its own clock; NAN: not told */
    double records;             /* trained in this step, or epoch; 0: not told */
    double seconds;             /* REPORT_STEP, REPORT_EPOCH, REPORT_PAUSE: so long it took; NAN: not told */
    double loss;                /* of training; NAN: not told */
    double learning_rate;       /* NAN: not told */
    bool closes_epoch;          /* REPORT_STEP: the epoch's last, and no REPORT_EPOCH follows */
    bool whole;                 /* REPORT_EPOCH: all values of the epoch are with it, or came before it */
    bool begins;                /* REPORT_MARK */
    bool untrained;             /* REPORT_RECOVERY: from nothing, with its counters as they were */
    int cores;                  /* REPORT_GRANTED; 0: not told */
    double value;               /* REPORT_VALUE; an accuracy as a fraction */
    const struct cause *cause;  /* REPORT_CAUSE, REPORT_LOST (NULL: none): a row of the application's table */
    enum report_level level;    /* REPORT_CAUSE */
    bool anew;                  /* REPORT_CAUSE: ordinary output stands between it and the cause before it */
    char text[REPORT_TEXT_MAX]; /* valid UTF-8 on one line, whatever was printed */
    size_t n_values;
    struct report_value
        values[REPORT_VALUES_MAX]; /* REPORT_STEP, REPORT_EPOCH: by name; what is behind n_values is not set */
};

/* Nothing is told yet. Cheap: it is called for every line. */
void app_report_begin(struct app_report *r, enum report_kind kind);

/* Cut where it is too long; what is no UTF-8 becomes '?', control characters become blanks, blanks at the end go. */
void app_report_copy_text(char *out, size_t size, const char *from, const char *to);
void app_report_put_text(struct app_report *r, const char *from, const char *to);

/* False: there are REPORT_VALUES_MAX already, and it is left out. */
bool app_report_add_value(struct app_report *r, const char *name, size_t len, double value);

#endif
