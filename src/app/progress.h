/* What is heard of an application that is known by patterns and by what it tells (app/pattern.h, app/tell.h), line by line as the launcher
 * writes it (node/log.h): a stamp, and then what was printed, or what was told behind TELL_MARK. Pure. */
#ifndef APP_PROGRESS_H
#define APP_PROGRESS_H

#include "app/cause.h"
#include "app/lines.h"
#include "base/err.h"

struct progress;

/* A line with values ends its epoch, whether it names that epoch or an earlier line did ("Epoch 3/10"); one with a step is a step. As
 * patterns_new(). */
int progress_new(struct progress **out, const char *const *patterns, size_t n, struct err *e);
void progress_free(struct progress *p); /* NULL is fine */

/* Steps over the launcher's stamp; -1: the line has none. */
int64_t progress_stamp(struct cur *line);

/* Reads its lines. It must outlive whoever has it. */
struct line_reader progress_reader(const struct progress *p);

/* Texts of which every line that is to be read holds one, besides causes: the i-th, NULL behind the last. *all: there is none for some
 * pattern, and every line may count. */
const char *progress_needle(const struct progress *p, size_t i);
bool progress_hears_all(const struct progress *p);

#endif
