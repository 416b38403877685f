/* What the commands that look at a store have in common: their option rows, and how a study's figures are told. */
#ifndef CMD_LOOK_H
#define CMD_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/opt.h"

/* Rows of --store and --json for an options struct with `char *store` and `bool json`. */
/* clang-format off */
#define LOOK_STORE_ROW(type) { NULL, "store", OPT_TEXT, offsetof(type, store), NULL, 0, 0, NULL, "FILE", \
                               "the store (default $PIPETUNE_STORE, else ./pipetune.db)" }
#define LOOK_JSON_ROW(type) { NULL, "json", OPT_FLAG, offsetof(type, json), NULL, 0, 0, NULL, NULL, "print JSON" }
/* clang-format on */

/* The state of a study or a trial as it is now. The store cannot know that a driver died; the lock that died with it does:
 * "running" without a driver (0) is "interrupted". */
const char *look_state(const char *stored, pid_t driver);

json_t *look_number(double x);                 /* null when it is NAN: absent is not 0; new reference */
json_t *look_best(int trial, double accuracy); /* {"trial","accuracy"}, null when `trial` is 0; new reference */

/* The local time by a strftime() format. False, and `out` untouched, when there is none. */
bool look_time(char out[32], int64_t ms, const char *format);

#endif
