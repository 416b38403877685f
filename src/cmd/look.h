/* What the commands that look at a store have in common: their option rows, and how a study's figures are told. */
#ifndef CMD_LOOK_H
#define CMD_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "store/store.h"
#include "view/table.h"
#include "view/view.h"
#include "view/words.h"

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

/* Cells of a row about a study: what its best trial came to, by the metric that it is judged by (NULL: the usual one), and STUDY/N, which that is. */
void look_best_cells(struct table *t, const char *study, const struct store_summary *totals, const char *metric);

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

#endif
