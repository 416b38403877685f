/* What `help` prints in more than one form: as text (help.c) and as the manual page (help_man.c). */
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

/* The manual page as man(7) source. Nothing in it depends on the machine or the day: docs/pipetune.1 is a copy of it. */
void help_man(struct buf *b);

#endif
