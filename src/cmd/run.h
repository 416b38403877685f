/* What `run` does before it runs, for commands that have a study run by others. */
#ifndef CMD_RUN_H
#define CMD_RUN_H

#include "base/err.h"
#include "base/json.h"
#include "cmd/cmd.h"

struct plan;

/* Reads this command line of `run` and checks all that `run` checks before it begins, with its words for what is wrong; `with`, if any, looks at the
 * plan then. Nothing is begun. 0, or a negative errno. `command` names itself in the usage. */
int run_check(const char *command, int argc, char **argv, int (*with)(void *ctx, struct plan *p, struct err *e),
              void *ctx, struct err *e);

/* The words of a command line behind the program's name, for another process; NULL: memory. */
json_t *run_words(int argc, char **argv);

void run_options(struct cmd_rows *out); /* all that `run` takes */

#endif
