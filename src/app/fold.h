/* The reports of one attempt become its epochs: what was told, added up. Pure. */
#ifndef APP_FOLD_H
#define APP_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "app/cause.h"
#include "app/report.h"

enum { FOLD_REPORTED_MAX = 8 };

struct fold_epoch {
    int epoch;              /* as the application numbers it */
    int64_t iterations;     /* in this epoch; 0: it was told of as a whole */
    int64_t last_iteration; /* counted from the trial's beginning */
    double records;
    double train_loss;        /* of the last iteration */
    double accuracy;          /* Top1Accuracy, else the first result whose name holds "accuracy"; NAN: none printed */
    double loss;              /* the validation's; NAN: none printed */
    double metric;            /* the study's metric; NAN: not printed */
    double learning_rate;     /* NAN: not printed */
    double seconds;           /* first iteration's begin to the epoch's last line, validation and checkpoint included */
    int64_t start_ms, end_ms; /* stamps of reports; -1: there are none */
    size_t n_values;          /* all that was told of the epoch by name, as it was named; the newest of a name */
    struct report_value values[REPORT_VALUES_MAX];
};

/* A cause that was named, and where. */
struct fold_seen {
    const struct cause *cause; /* NULL: none */
    uint64_t end;              /* of its line */
    char text[REPORT_TEXT_MAX];
};

struct fold {
    char metric[REPORT_NAME_MAX];
    /* what a watcher shows */
    int64_t iteration;
    int64_t records_done, records_all;
    double throughput; /* records per second of the newest iteration */
    bool connected;
    bool granted;     /* it trains, or did when it was left */
    bool data;        /* the training data is being read */
    int parts, cores; /* granted; cores 0: not told */
    char app_id[64];  /* what its place calls it */
    int recoveries;
    int starved; /* parts that its place has killed for want of memory, which may replace them for ever */
    char reported[FOLD_REPORTED_MAX][REPORT_NAME_MAX]; /* names of validation results so far, the first of them */
    int n_reported;
    bool has_metric; /* the study's was among them */
    bool has_loss;   /* steps tell that of training */
    /* the log up to here is in the epochs given out so far: where a later reader goes on */
    uint64_t safe_offset;
    int last_epoch; /* that was given out; who goes on with an epoch sets it to the one before */
    /* private */
    struct fold_epoch now;
    bool open;    /* `now` has begun */
    bool guessed; /* its number was not told */
    bool pending; /* its training is over, its results may still come */
    uint64_t last_end;
    int64_t since_ms; /* the newest stamp before the epoch; -1: none */
    /* since the last step of training, the most telling each: of what a program printed by itself when it died last, of what was
     * logged as an error, and of anything that may explain another cause */
    struct fold_seen died, error, hint;
};

/* `metric`: "accuracy", "loss", or the name of a validation result. `offset`: where the log is read from. */
void fold_init(struct fold *f, const char *metric, uint64_t offset);

/* Takes one report, whose line ends at `end`: 1 when it completes an epoch, given in *out; else 0. */
int fold_report(struct fold *f, const struct app_report *r, uint64_t end, struct fold_epoch *out);

/* A figure of the epoch *x that came by another way than reports: it counts as if they had told it. `x` NULL: of one that is not known yet,
 * only that there is such a figure. */
void fold_tell(struct fold *f, struct fold_epoch *x, const char *name, double value);

/* The log has ended: 1 when an epoch was only waiting for results, given in *out; else 0. */
int fold_end(struct fold *f, struct fold_epoch *out);

/* Why it ended, when the log ends at `end`: what it died of, else an error that was logged, and neither unless near the end; a warning
 * is no cause. NULL: the log does not say. */
const struct fold_seen *fold_cause(const struct fold *f, uint64_t end);

/* The epoch under way, 0 when none has begun. */
static inline int fold_epoch_now(const struct fold *f)
{
    return f->open ? f->now.epoch : 0;
}

#endif
