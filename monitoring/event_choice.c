#include "monitoring/event_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const bool *event_choice_only(const struct event_choice *c)
{
    return c->given ? c->wanted : NULL;
}

static int find(const char *name, size_t len)
{
    for (int i = 0; i < EVENT_NAMES; i++)
        if (strlen(event_names[i]) == len && memcmp(event_names[i], name, len) == 0)
            return i;
    return -1;
}

int event_choice_read(struct event_choice *out, const char *text)
{
    struct event_choice got = { .given = true };
    for (const char *at = text; *text;) {
        size_t len = strcspn(at, ",");
        int event = find(at, len);
        if (event < 0 || got.wanted[event])
            return -EINVAL;
        got.wanted[event] = true;
        if (at[len] == '\0')
            break;
        at += len + 1; /* a name must follow */
    }
    *out = got;
    return 0;
}

const char *event_choice_text(const struct event_choice *c, char out[EVENT_CHOICE_TEXT_SIZE])
{
    size_t len = 0;
    out[0] = '\0';
    for (int i = 0; i < EVENT_NAMES && c->given; i++)
        if (c->wanted[i])
            len += (size_t)snprintf(out + len, EVENT_CHOICE_TEXT_SIZE - len, "%s%s", len ? "," : "", event_names[i]);
    return c->given ? out : NULL;
}
