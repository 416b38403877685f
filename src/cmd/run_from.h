/* `run --from STUDY/N`: a trial begun again from what it was: its point, its study's config, its application as that was stored. */
#ifndef CMD_RUN_FROM_H
#define CMD_RUN_FROM_H

#include "base/err.h"

/* Makes the folder STUDY-N.from beside the store with config.json, application.json and source/, whose files are those of then, and tells the config's
 * path (free it): a study called STUDY-N with that one point. `store`: as it was given. -EINVAL: no such trial, or it cannot be begun again: its
 * study has secrets, is older than files are kept, or a file that was not kept is not what it was. */
int run_from(char **out_config, const char *store, const char *word, struct err *e);

#endif
