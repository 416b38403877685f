/* What `export` hands on, a file each. */
#ifndef CMD_EXPORT_H
#define CMD_EXPORT_H

#include <stdbool.h>
#include <sys/types.h>

#include "store/store.h"

/* Files STUDY.*.csv in `dir`, which is made where it is not there: names and columns stand in docs/handed-on.md. `study_dir`: its folder; `driver`: who holds the
 * study's lock, 0: nobody. The study's rows are read one after the other. What the store and the disk say; -ENOMEM. */
int export_csv(struct store *s, const char *study, const char *study_dir, pid_t driver, const char *dir, struct err *e);

/* To an MLflow server, as live/handing.h says; what was handed on is not sent again. A server that is not there is asked again for so long.
 * Prints what was sent; an exit code, or what handing_open() says. */
struct export_mlflow {
    const char *url, *experiment, *credential_file, *ca_file;
    bool allow_plain;
    bool quiet; /* only what went wrong is told */
    double patience_s;
};
int export_mlflow(const char *store, const char *study, const char *dir, const struct export_mlflow *o, struct err *e);

#endif
