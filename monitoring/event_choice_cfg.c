#include "monitoring/event_choice_cfg.h"

#include <errno.h>
#include <stdio.h>

#include "base/suggest.h"

static int read_name(struct event_choice *c, const struct json_doc *doc, const char *path, const json_t *j,
                     struct err *e)
{
    const char *name = json_is_string(j) ? json_string_value(j) : "";
    int event = event_name_index(name);
    if (event >= 0) {
        c->wanted[event] = true;
        return 0;
    }
    const char *near = suggest_nearest(name, event_names, EVENT_NAMES);
    if (near)
        return json_doc_err(doc, path, e, -EINVAL, "names '%s', which is no event; did you mean '%s'?", name, near);
    return json_doc_err(doc, path, e, -EINVAL, "names '%s', which is no event: `pipetune events` lists all %d", name,
                        (int)EVENT_NAMES);
}

int event_choice_cfg_read(struct event_choice *out, const struct json_doc *doc, struct err *e)
{
    const json_t *events = json_object_get(json_object_get(doc->root, "monitoring"), "events");
    struct event_choice got = { .given = events != NULL };
    int rc = events && !json_is_array(events) ? read_name(&got, doc, "monitoring/events", events, e) : 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(events); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "monitoring/events/%zu", i);
        rc = read_name(&got, doc, path, json_array_get(events, i), e);
    }
    if (rc == 0)
        *out = got;
    return rc;
}
