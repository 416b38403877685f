/* The heat maps of a study: what was sampled of the best trial, by its start-up and epochs, and of each class while it trained. */
#ifndef VIEW_HEATS_H
#define VIEW_HEATS_H

#include "base/strv.h"
#include "view/heat.h"
#include "view/view.h"

/* One with the names of its columns. */
struct heats_map {
    struct heat map; /* no cells: there is none */
    struct strv cols;
    int trial; /* whose, 0: of classes */
};

struct heats {
    struct heats_map best, by_class;
    char unread[256]; /* why a sample could not be read; "": all were */
};

/* heats_done() is due also after a failure. -ENOMEM, and what the store says. */
int heats_load(struct heats *out, struct view *v, struct err *e);
void heats_done(struct heats *h);

#endif
