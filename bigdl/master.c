#include "bigdl/master.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int master_parse(struct offer *out, const char *text, size_t len, struct err *e)
{
    AUTO_JSON json_t *root = json_loadb(text, len, 0, NULL);
    const json_t *workers = json_object_get(root, "workers");
    if (!json_is_array(workers))
        return err_set(e, -EINVAL, "the answer is not a standalone master's");
    struct offer o = { 0 };
    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *w = json_array_get(workers, i);
        const char *state = json_string_value(json_object_get(w, "state"));
        json_int_t cores = json_integer_value(json_object_get(w, "cores"));
        double gb = (double)json_integer_value(json_object_get(w, "memory")) / 1024.0;
        if (!state || strcmp(state, "ALIVE") != 0 || cores < 1 || cores > 1000000)
            continue;
        o.cores += (int)cores;
        o.memory_gb = gb > o.memory_gb ? gb : o.memory_gb;
    }
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
