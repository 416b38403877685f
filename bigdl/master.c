#include "bigdl/master.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* No trial takes more than a knob may ask for, whatever a page says. */
static int whole_cores(const json_t *w, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(w, key));
    int most = (int)knob_kinds[KNOB_CORES].max;
    return n < 0 ? 0 : n > most ? most : (int)n;
}

static double gib(const json_t *w, const char *key)
{
    json_int_t mib = json_integer_value(json_object_get(w, key));
    return mib < 0 ? 0 : (double)mib / 1024.0;
}

static void add_worker(struct offer *o, const json_t *w, bool all)
{
    const char *state = json_string_value(json_object_get(w, "state"));
    struct layout_worker one = { 1, whole_cores(w, all ? "cores" : "coresfree"),
                                 gib(w, all ? "memory" : "memoryfree") };
    if (!state || strcmp(state, "ALIVE") != 0 || one.cores < 1)
        return;
    int room = (int)knob_kinds[KNOB_CORES].max - o->cores;
    o->cores += one.cores < room ? one.cores : room;
    o->memory_gb = one.memory_gb > o->memory_gb ? one.memory_gb : o->memory_gb;
    layout_add(&o->room, one);
}

static struct offer sum_up(const struct offer *like, const json_t *workers, bool all)
{
    struct offer o = *like;
    o.cores = o.room.n_workers = 0;
    o.memory_gb = 0;
    for (size_t i = 0; i < json_array_size(workers); i++)
        add_worker(&o, json_array_get(workers, i), all);
    return o;
}

int master_parse(struct offer *out, const char *text, size_t len, bool all, struct err *e)
{
    AUTO_JSON json_t *root = json_loadb(text, len, 0, NULL);
    const json_t *workers = json_object_get(root, "workers");
    if (!json_is_array(workers))
        return err_set(e, -EINVAL, "the answer is not a standalone master's");
    struct offer o = sum_up(out, workers, all);
    if (o.cores == 0) /* trials wait for what is taken now */
        o = sum_up(out, workers, true);
    if (o.cores == 0)
        return err_set(e, -ENODEV, "no worker is alive");
    *out = o;
    return 0;
}

int master_url(const char *master, char *url, size_t size)
{
    static const char scheme[] = "spark://";
    if (strncmp(master, scheme, sizeof scheme - 1) != 0)
        return -EINVAL;
    const char *host = master + sizeof scheme - 1;
    int len = (int)strcspn(host, ":,/");
    return len > 0 && snprintf(url, size, "http://%.*s:8080/json/", len, host) < (int)size ? 0 : -EINVAL;
}
