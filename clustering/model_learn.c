#include <errno.h>

#include "base/own.h"
#include "clustering/model.h"
#include "clustering/model_parts.h"

#define AUTO_PROFILE __attribute__((cleanup(profile_done)))

static int add_to_class(struct model *m, const char *key, const char *family, int64_t cluster, struct err *e)
{
    struct model_class *c = NULL;
    int rc = key ? model_class_get(m, key, family, &c, e) : 0;
    return rc == 0 && c ? model_class_count_in(c, cluster, 1, e) : rc;
}

/* The class comes first: it may fail, what follows may not. */
static int learn_view(struct model *m, const struct profile *view, const char *key, const char *family,
                      int64_t *out_cluster, struct err *e)
{
    struct model_verdict v;
    model_verdict(&v, m, view);
    struct model_cluster *c = v.decision == MODEL_KNOWN ? model_cluster_find(m, v.near[0].cluster) : NULL;
    bool fresh = !c;
    int rc = c ? 0 : model_cluster_add(m, &c, e);
    if (rc == 0)
        rc = add_to_class(m, key, family, c->id, e);
    if (rc < 0) {
        if (fresh && c) {
            model_cluster_drop(m, m->n_clusters - 1);
            m->next_id--;
        }
        return rc;
    }
    model_cluster_absorb(m, c, view);
    *out_cluster = c->id;
    model_derive(m);
    return 0;
}

int model_learn_profile(struct model *m, const struct profile_space *s, const struct profile *p, const char *key,
                        const char *family, int64_t *out_cluster, struct err *e)
{
    size_t measured = profile_measured(p);
    if (measured < MODEL_MIN_COMMON)
        return err_set(e, -ENODATA, "a profile of %zu features cannot be learnt from: %d are needed", measured,
                       MODEL_MIN_COMMON);
    AUTO_PROFILE struct profile view = { 0 };
    int rc = model_extend(m, s, e);
    if (rc == 0)
        rc = model_view(&view, m, s, p, e);
    return rc < 0 ? rc : learn_view(m, &view, key, family, out_cluster, e);
}
