/* What a launch waits for before its first step. Pure. */
#ifndef APP_WAIT_H
#define APP_WAIT_H

#include "app/app.h"
#include "app/fold.h"

enum wait_kind {
    WAIT_NONE, /* it trains */
    WAIT_START,
    WAIT_ROOM, /* some of its cores have not been granted */
    WAIT_SESSION,
    WAIT_DATA,
};

struct wait {
    enum wait_kind kind;
    int cores, of; /* WAIT_ROOM: granted, and asked for */
    const struct app_words *words;
};

enum { WAIT_TEXT_MAX = 80 };

/* "waiting for …: 0 of 2 cores granted" */
const char *wait_text(const struct wait *w, char text[WAIT_TEXT_MAX]);

/* By what a launch's log has said, and what was asked for: slots, in so many parts; 0: none are granted, as on this machine alone. */
struct wait wait_for(const struct app_words *words, const struct fold *f, int slots, int parts);

#endif
