/* What `export` hands on, a file each. */
#ifndef CMD_EXPORT_H
#define CMD_EXPORT_H

#include <sys/types.h>

#include "store/store.h"

/* Files STUDY.*.csv in `dir`, which is made where it is not there: names and columns stand in docs/handed-on.md. `study_dir`: its folder; `driver`: who holds the
 * study's lock, 0: nobody. The study's rows are read one after the other. What the store and the disk say; -ENOMEM. */
int export_csv(struct store *s, const char *study, const char *study_dir, pid_t driver, const char *dir, struct err *e);

#endif
