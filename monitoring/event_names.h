/* The names of the 58 hardware events, in the order of every profile and trace. */
#ifndef MONITORING_EVENT_NAMES_H
#define MONITORING_EVENT_NAMES_H

enum { EVENT_NAMES = 58 };

extern const char *const event_names[EVENT_NAMES];

/* The place of a name, -1: it is none of them. */
int event_name_index(const char *name);

#endif
