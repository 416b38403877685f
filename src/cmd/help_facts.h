/* What no option row says of a command: what it is for, its words, exit codes, environment, files, examples. Rows, so that `help`,
 * the manual pages and a new command's author all have one place for them. */
#ifndef CMD_HELP_FACTS_H
#define CMD_HELP_FACTS_H

#include <stdbool.h>

/* One fact, and on which pages it stands: names of commands between blanks, "pipetune" the page about all of them, "*" each. A text of
 * several sentences has a line for each, as man(7) wants it. */
struct help_fact {
    const char *pages, *tag, *text;
};

/* The kinds of facts, in the order in which a page tells them; ends with a NULL title. */
struct help_kind {
    const char *title;             /* of the manual page: "EXIT STATUS" */
    const char *heading;           /* of `help`: "exit codes" */
    const char *key;               /* of it in JSON: "exits" */
    const struct help_fact *facts; /* ends with NULL pages */
};

extern const struct help_kind help_kinds[];

const char *help_about(const char *page); /* what the command is for; "" where its line of `help` says all */

/* Does it stand on that page? Of facts with one tag only the first that does counts, so that a command's own stand before those of all. */
bool help_is_on(const struct help_fact *facts, const struct help_fact *f, const char *page);

#endif
