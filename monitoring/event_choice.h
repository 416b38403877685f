/* Which of the 58 events (event_names.h) are to be counted, and how that is said to pipetune-node: their names with one comma between
 * two ("instructions,cpu/tx-start/"), "" for none of them. Pure. */
#ifndef MONITORING_EVENT_CHOICE_H
#define MONITORING_EVENT_CHOICE_H

#include <stdbool.h>

#include "monitoring/event_names.h"

enum { EVENT_CHOICE_TEXT_SIZE = 1024 }; /* of all names, their commas and a NUL */

struct event_choice { /* zeroed: nobody chose, so all are counted */
    bool given;
    bool wanted[EVENT_NAMES]; /* when it is given */
};

/* c->wanted, or NULL: all of them. */
const bool *event_choice_only(const struct event_choice *c);

/* Names in any order, none twice. -EINVAL. */
int event_choice_read(struct event_choice *out, const char *text);

/* The names in their order. Returns `out`, or NULL: nobody chose. */
const char *event_choice_text(const struct event_choice *c, char out[EVENT_CHOICE_TEXT_SIZE]);

#endif
