/* `model train TRACE…` */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/model_parts.h"
#include "cmd/model_profiles.h"
#include "store/trace.h"

enum { SEED = 1 };

struct lessons {
    struct trace *traces;
    size_t n;
    struct model_profiles profiles;
    const struct strv *names; /* of the traces */
    size_t taken, classes, clusters;
};

static void lessons_done(struct lessons *l)
{
    for (size_t i = 0; i < l->n; i++)
        trace_done(&l->traces[i]);
    free(l->traces);
    model_profiles_done(&l->profiles);
}

static int read_traces(struct lessons *l, struct err *e)
{
    l->traces = calloc(l->names->n, sizeof *l->traces);
    if (!l->traces)
        return err_sys(e, -ENOMEM, "cannot train");
    for (size_t i = 0; i < l->names->n; i++) {
        int rc = trace_read(&l->traces[i], l->names->v[i], e);
        if (rc == -EPROTO) /* a file that is no trace is the user's to change, not the machine's */
            e->code = rc = -EINVAL;
        if (rc < 0)
            return rc;
        l->n++;
    }
    return model_profiles_init(&l->profiles, l->traces, l->n, e);
}

/* A model that has clusters goes on with one profile at a time. */
static int learn_profiles(struct model *m, const struct model_profiles *p, const struct model_sample *samples,
                          struct err *e)
{
    if (m->n_clusters == 0)
        return model_train(m, &p->space, samples, p->n, SEED, e);
    int taken = 0;
    for (size_t i = 0; i < p->n; i++) {
        int64_t cluster;
        int rc = model_learn_profile(m, &p->space, samples[i].profile, samples[i].key, samples[i].family, &cluster, e);
        if (rc < 0 && rc != -ENODATA) /* too few features: left out, as model_train() does */
            return rc;
        taken += rc == 0;
    }
    return taken;
}

static int learn(struct model *m, void *ctx, struct err *e)
{
    struct lessons *l = ctx;
    AUTO_FREE struct model_sample *samples = model_profiles_samples(&l->profiles);
    int rc = samples ? learn_profiles(m, &l->profiles, samples, e) : err_sys(e, -ENOMEM, "cannot train");
    l->taken = rc < 0 ? 0 : (size_t)rc;
    for (size_t i = 0; rc >= 0 && i < l->n; i++) {
        AUTO_FREE char *name = trace_name(l->names->v[i], strlen(l->names->v[i])); /* a path need be no UTF-8 */
        rc = name ? model_profiles_teach(m, &l->traces[i], name, e) : err_sys(e, -ENOMEM, "cannot train");
    }
    l->classes = m->n_classes;
    l->clusters = m->n_clusters;
    return rc < 0 ? rc : 0;
}

static int say_trained(const struct model_args *a, const struct lessons *l)
{
    if (a->json)
        return cmd_print_json(json_pack("{s:s, s:I, s:I, s:I, s:I}", "model", model_name(a), "profiles",
                                        (json_int_t)l->profiles.n, "taken", (json_int_t)l->taken, "clusters",
                                        (json_int_t)l->clusters, "classes", (json_int_t)l->classes));
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%s: %zu windows, %zu of them with enough features; now %zu clusters and %zu classes\n",
               model_name(a), l->profiles.n, l->taken, l->clusters, l->classes);
    return cmd_print(&b);
}

int model_train_traces(const struct model_args *a, struct err *e)
{
    struct lessons l = { .names = a->words };
    int rc = read_traces(&l, e);
    if (rc == 0)
        rc = model_change(a, learn, &l, e);
    int code = rc < 0 ? cmd_fail(e) : say_trained(a, &l);
    lessons_done(&l);
    return code;
}
