#include "app/wait.h"

#include <stdio.h>

const char *wait_text(const struct wait *w, char text[WAIT_TEXT_MAX])
{
    static const char *const words[] = {
        [WAIT_NONE] = "", [WAIT_SESSION] = "the session is coming up", [WAIT_DATA] = "reading the data"
    };
    if (w->kind == WAIT_ROOM)
        (void)snprintf(text, WAIT_TEXT_MAX, "%s: %d of %d core%s granted", w->words->granting, w->cores, w->of,
                       w->of == 1 ? "" : "s");
    else
        (void)snprintf(text, WAIT_TEXT_MAX, "%s", w->kind == WAIT_START ? w->words->starting : words[w->kind]);
    return text;
}

/* Where the log tells of no cores, as some managers do not, parts are counted. */
static bool is_granted(const struct fold *f, int slots, int parts)
{
    return f->granted || f->cores >= slots || (f->cores == 0 && f->parts > 0 && f->parts >= parts);
}

struct wait wait_for(const struct app_words *words, const struct fold *f, int slots, int parts)
{
    struct wait w = { .kind = WAIT_DATA, .cores = f->cores, .of = slots, .words = words };
    if (f->iteration > 0)
        w.kind = WAIT_NONE;
    else if (parts > 0 && f->connected && !is_granted(f, slots, parts))
        w.kind = WAIT_ROOM;
    else if (!f->connected && !f->data)
        w.kind = WAIT_START;
    return w;
}
