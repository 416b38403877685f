/* A stop rule for tests alone, in builds with failpoints: stops each trial after its second epoch, and says what it was told of that. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "search/search.h"

extern const struct stop_ops stop_listen;

enum { HEARD = 2 };

static int listen_init(void *state, const struct search_cfg *cfg, struct err *e)
{
    (void)state, (void)cfg, (void)e;
    return 0;
}

static int listen_tell(void *state, const struct told *t, struct search_answer *out)
{
    (void)state;
    if (t->kind != TOLD_EPOCH || t->epoch != HEARD || t->held)
        return 0;
    out->verdict = SEARCH_STOP;
    size_t n = 0;
    for (size_t i = 0; i < t->n_metrics && n < sizeof out->why; i++)
        n += (size_t)snprintf(out->why + n, sizeof out->why - n, "%s%s %g", i ? ", " : "", t->metrics[i].name,
                              t->metrics[i].value);
    if (n < sizeof out->why)
        (void)snprintf(out->why + n, sizeof out->why - n, "; joules %s",
                       isnan(t->joules) ? "not known"
                       : t->joules > 0  ? "known"
                                        : "0");
    return 0;
}

const struct stop_ops stop_listen = {
    .name = "listen",
    .help = "for tests: says what it was told of the second epoch",
    .version = 1,
    .init = listen_init,
    .tell = listen_tell,
};
