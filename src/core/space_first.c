/* Points that people want to be tried before all others: "first" of "study". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/space.h"

enum { FIRST_MAX = 1000 };

int space_point_named(const struct space *s, const json_t *j, struct point *out)
{
    json_t *whole = json_is_object(j) ? json_copy((json_t *)j) : NULL;
    for (size_t i = 0; whole && i < space_n_hyper(s); i++) {
        const struct dim *d = &s->dims[i];
        if (d->kind == DIM_LIST && d->n == 1 && !json_object_get(whole, d->name))
            (void)json_object_set_new(whole, d->name, value_to_json(d->values));
    }
    size_t n = json_object_size(whole);
    int rc = whole ? space_point_parse(s, whole, NULL, out) : -EINVAL;
    struct point admitted = *out;
    if (rc == 0 && !space_admits(s, &admitted))
        rc = -EINVAL;
    for (size_t i = 0; rc == 0 && i < space_n_hyper(s); i++)
        n -= space_active(s, out, i);
    json_decref(whole);
    return rc == 0 && n > 0 ? -EINVAL : rc; /* something is there that is no hyperparameter */
}

static bool is_repeat(const struct space *s)
{
    for (size_t i = 0; i < s->n_first; i++)
        if (memcmp(&s->first[i], &s->first[s->n_first], sizeof *s->first) == 0)
            return true;
    return false;
}

int space_read_first(struct space *s, const struct json_doc *doc, struct err *e)
{
    const json_t *list = json_object_get(json_object_get(doc->root, "study"), "first");
    size_t n = json_array_size(list);
    char path[64] = "study/first";
    if (!list)
        return 0;
    if (!json_is_array(list) || n > FIRST_MAX)
        return json_doc_err(doc, path, e, -EINVAL, "must be a list of points, %d at most: [{\"lr\": 0.1, …}, …]",
                            FIRST_MAX);
    s->first = calloc(n + 1, sizeof *s->first);
    if (!s->first)
        return err_sys(e, -ENOMEM, "'%s'", doc->name);
    for (size_t i = 0; i < n; i++, s->n_first++) {
        (void)snprintf(path, sizeof path, "study/first/%zu", i);
        if (space_point_named(s, json_array_get(list, i), &s->first[i]) < 0)
            return json_doc_err(
                doc, path, e, -EINVAL,
                "is no point of the space: it must name each hyperparameter, with a value that it can have");
        if (is_repeat(s))
            return json_doc_err(doc, path, e, -EINVAL, "repeats another point: write each once");
    }
    return 0;
}
