#include "base/needles.h"

#include <string.h>

bool needles_add(struct needles *ns, const char *text)
{
    if (ns->n == NEEDLES_MAX || *text == '\0')
        return false;
    uint8_t *head = &ns->first[(unsigned char)*text];
    ns->text[ns->n] = text;
    ns->next[ns->n] = *head;
    *head = ++ns->n;
    return true;
}

bool needles_in(const struct needles *ns, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len; at++)
        for (uint8_t i = ns->first[(unsigned char)bytes[at]]; i != 0; i = ns->next[i - 1]) {
            size_t n = strlen(ns->text[i - 1]);
            if (n <= len - at && memcmp(bytes + at, ns->text[i - 1], n) == 0)
                return true;
        }
    return false;
}
