/* A page of any bytes is what a trial can be offered, or one line that says why not. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bigdl/master.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_offer(const struct offer *o)
{
    check(o->cores >= 1 && o->cores <= (int)knob_kinds[KNOB_CORES].max);
    check(isfinite(o->memory_gb) && o->memory_gb >= 0);
    check(o->room.n_workers >= 1 && o->room.n_workers <= LAYOUT_WORKERS_MAX);
    for (int i = 0; i < o->room.n_workers; i++) {
        const struct layout_worker *w = &o->room.workers[i];
        check(w->count >= 1 && w->cores >= 1 && w->memory_gb >= 0 && w->memory_gb <= o->memory_gb);
    }
    int most = layout_most(&o->room, o->cores, 0, 0, 1);
    check(most == 0 || layout_divide(&o->room, most, 0, 0, 1) >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *page = malloc(size + !size); /* of exact size but for malloc(0) */
    char url[64], *master = strndup((const char *)data, size);
    check(page && master);
    memcpy(page, data, size);
    for (int all = 0; all <= 1; all++) {
        struct offer o = { .cores = -1 };
        struct err e = { 0 };
        int rc = master_parse(&o, page, size, all, &e);
        if (rc == 0) {
            check_offer(&o);
            continue;
        }
        check((rc == -EINVAL || rc == -ENODEV) && o.cores == -1 && e.text[0] && !strchr(e.text, '\n'));
    }
    if (master_url(master, url, sizeof url) == 0)
        check(strlen(url) < sizeof url && strncmp(url, "http://", 7) == 0);
    free(page);
    free(master);
    return 0;
}
