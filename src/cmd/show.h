/* What `show` prints of a study, for `run` too, which ends with it. */
#ifndef CMD_SHOW_H
#define CMD_SHOW_H

#include "store/store.h"

/* On stdout; `dir` is the study's folder. For the driver that holds the study's lock. */
int show_study_json(struct store *s, const char *name, const char *dir, struct err *e);
int show_study_text(struct store *s, const char *name, const char *dir, struct err *e);

#endif
