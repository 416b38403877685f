/* What `help` prints in more than one form: as text (help.c) and as manual pages (help_man.c). */
#ifndef CMD_HELP_H
#define CMD_HELP_H

#include "base/buf.h"
#include "base/opt.h"

/* A key of the config that is no scalar, and so has no row in config_rows. */
struct help_key {
    const char *key, *help;
};

extern const struct help_key help_wide_keys[]; /* ends with a NULL key */
extern const char help_example[];              /* a config, in whole lines */

const char *help_type(const struct opt_row *row); /* "integer", … */

/* The manual pages as man(7) source, of the program and of one command. Nothing in them depends on the machine or the day: docs/man/ has
 * copies of them. */
struct command;
void help_man(struct buf *b);
void help_man_of(struct buf *b, const struct command *c);

#endif
