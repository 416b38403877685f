/* What the commands that look at a store have in common: their option rows, and how a study's figures are told. */
#ifndef CMD_LOOK_H
#define CMD_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "cmd/table.h"
#include "store/store.h"

/* Rows of --store and --json for an options struct with `char *store` and `bool json`. */
/* clang-format off */
#define LOOK_STORE_ROW(type) { NULL, "store", OPT_TEXT, offsetof(type, store), NULL, 0, 0, NULL, "FILE", \
                               "the store (default $PIPETUNE_STORE, else ./pipetune.db)" }
#define LOOK_JSON_ROW(type) { NULL, "json", OPT_FLAG, offsetof(type, json), NULL, 0, 0, NULL, NULL, "print JSON" }
/* clang-format on */

/* The options of commands that have no others. */
struct look_options {
    char *store;
    bool json;
};

extern const struct opt_row look_rows[2];
void look_options(struct cmd_rows *out);

/* A store that is there, to write to; one that is not is not made: -ENOENT. */
int look_open_to_write(struct store **out, const char *path, struct err *e);

/* The state of a study or a trial as it is now. The store cannot know that a driver died; the lock that died with it does:
 * "running" without a driver (0) is "interrupted". */
const char *look_state(const char *stored, pid_t driver);

/* Null when there is none; what is not UTF-8, as logs may have it, is replaced; new reference. */
json_t *look_text(const char *text);
json_t *look_best(int trial, double accuracy); /* {"trial","accuracy"}, null when `trial` is 0; new reference */

/* Cells of a row about a study: the accuracy of its best trial, and STUDY/N, which that is. */
/* "3 done, 1 failed", and where there are any, ", 2 stopped, 1 paused". */
void look_put_counts(struct buf *out, const struct store_summary *totals);

void look_best_cells(struct table *t, const char *study, const struct store_summary *totals);

/* The best value of all was told by a trial that was not trained to its end, and so is not the best trial: finished ones are preferred. As JSON
 * {"trial","epoch","value"} into `out` as `best_seen`, and as a line "STUDY/7 had 0.913 after 12 of 50 epochs, and was stopped: …". Nothing is put
 * where the best trial told it. 0, -ENOMEM, and what the store says. */
int look_add_seen(json_t *out, struct store *s, const struct store_study *study, int best, struct err *e);
int look_put_seen(struct buf *out, struct store *s, const struct store_study *study, int best, struct err *e);

json_t *look_object(const char *text); /* a stored object; an empty one where there is none; new reference */

/* The trial's time. It is summed up when an attempt ends; the one under way is added here. */
double look_seconds(struct store *s, const struct store_trial *t, pid_t driver);

/* Adds the attempts under way to the study's seconds. */
int look_add_running(struct store *s, int64_t study, pid_t driver, struct store_summary *totals, struct err *e);

/* The study of that name, to be freed by store_study_done(). -EINVAL: there is none; says which there are. */
int look_find(struct store *s, const char *name, struct store_study *out, struct err *e);

/* Its line of `ls`, without the texts (NULL). All zero when there is none. */
int look_totals(struct store *s, const char *name, struct store_summary *out, struct err *e);

/* What a word of the command line names: a study, or STUDY/N, one of its trials. */
struct look_name {
    char *study; /* owned */
    int trial;   /* 0: none is named */
};

#define AUTO_LOOK __attribute__((cleanup(look_name_done)))

/* Splits it; whether they exist is for others to say. -EINVAL: there is nothing before the slash, or no number from 1 behind it;
 * -ENOMEM. look_name_done() frees. */
int look_name(struct look_name *out, const char *word, struct err *e);
void look_name_done(struct look_name *n);

/* Splits it and finds both; *out is to be freed by store_study_done() also after a failure. -EINVAL: there is none; says which there are. */
int look_name_find(struct look_name *out_name, struct store *s, const char *word, struct store_study *out,
                   struct err *e);

/* A trial's number from a word of the command line, 1…trials. -EINVAL. */
int look_trial(const char *word, const char *study, int trials, int *out, struct err *e);

/* For commands that are about whole studies. -EINVAL: the word names a trial; `instead`: what is for trials. */
int look_whole(const char *word, const char *instead, struct err *e);

/* Says that there is no such trial, and which is the last. -EINVAL. */
int look_no_trial(const char *study, long trial, int trials, struct err *e);

/* What an error of a callback that explained nothing is told as: "cannot …: out of memory". Returns rc. */
int look_explain(int rc, struct err *e, const char *study);

/* The local time by a strftime() format. False, and `out` untouched, when there is none. */
bool look_time(char out[32], int64_t ms, const char *format);

#endif
