/* Which hyperparameter mattered in a study. As JSON: {"study","metric","trials","importance":{name: share}}. */
#ifndef VIEW_MATTERS_H
#define VIEW_MATTERS_H

#include "base/strv.h"
#include "core/space.h"
#include "view/view.h"

struct matters {
    const char *study, *metric; /* the view's */
    struct strv names;
    double share[SPACE_MAX_DIMS]; /* of each; together 1 */
    size_t n, trials;
};

/* -EINVAL: the trials tell nothing (says why), or the config cannot be read; -ENOMEM. strv_done(&out->names) is due in any case. */
int matters_of(struct matters *out, const struct view *v, struct err *e);
void matters_put(struct buf *b, const struct matters *m);
json_t *matters_json(const struct matters *m); /* new reference */

#endif
