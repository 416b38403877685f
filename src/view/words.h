/* Pieces of texts for people, and what the store keeps as text. */
#ifndef VIEW_WORDS_H
#define VIEW_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "store/store.h"

void words_put_plain(struct buf *b, const char *text); /* of logs and programs: one line, no commands to the terminal */
void words_put_scalar(struct buf *b, const json_t *j);
void words_put_short(struct buf *b, const json_t *j);        /* a cell of a table: four digits */
void words_put_members(struct buf *b, const json_t *object); /* "batch_size 1024, learning_rate 0.1" */
/* The same with four digits, and words for what is nested: "verdict known, near (cluster 3, distance 0.5)". What is no object is put
 * alone. */
void words_put_short_members(struct buf *b, const json_t *j);
void words_put_effective(struct buf *b, const json_t *effective, const json_t *requested); /* "2 [16]": given, wanted */
void words_put_system(struct buf *b, const json_t *effective, const json_t *requested);
void words_put_figure(struct buf *b, const char *name, double x); /* "accuracy 0.9914", "loss -" */
void words_put_when(struct buf *b, int64_t ms);
void words_put_counts(struct buf *b, const struct store_summary *totals); /* "3 done, 1 failed, 2 stopped" */
void words_put_note(struct buf *b, const char *text); /* after "; " where something stands before it */

/* The local time by a strftime() format. False, and `out` untouched, when there is none. */
bool words_time(char out[32], int64_t ms, const char *format);

/* What is stored; new references. */
json_t *words_object(const char *text); /* an empty one where there is none */
json_t *words_json(const char *text);   /* any value; null where there is none */
json_t *
words_text(const char *text); /* null where there is none; what is not UTF-8, as logs may have it, is replaced */
json_t *words_time_or_null(int64_t ms);         /* 0: null */
json_t *words_best(int trial, double accuracy); /* {"trial","accuracy"}; null where `trial` is 0 */

#endif
