/* `ls --where`: the trials of all studies for which a condition holds. */
#ifndef CMD_LS_WHERE_H
#define CMD_LS_WHERE_H

#include "cmd/cmd.h"
#include "store/store.h"

enum ls_form { LS_TABLE, LS_NAMES, LS_JSON };

/* `path`: the store's. Prints, and returns the exit code. */
int ls_where(const char *path, const char *condition, enum ls_form form);

#endif
