/* What models are trained from: the samples of recorded runs, cut into windows, as profiles; and what the runs' times say of the
 * settings. */
#ifndef CMD_MODEL_PROFILES_H
#define CMD_MODEL_PROFILES_H

#include "base/buf.h"
#include "base/strv.h"
#include "clustering/model.h"
#include "store/trace.h"

#define MODEL_WINDOW_S 3.0

struct model_window {
    struct profile profile;
    size_t run;      /* counted over all traces */
    int epoch;       /* 0: the run has no epochs with times */
    size_t class_at; /* in keys and families */
    const char *job; /* the run's model; the trace's */
};

struct model_profiles {
    struct strv names; /* of the features of all traces */
    struct profile_space space;
    struct strv keys, families; /* of classes, as model_profiles_key() has them */
    struct model_window *list;
    size_t n, cap;
};

/* Windows of MODEL_WINDOW_S within one epoch each, from its beginning; in a run whose epochs have no times, over all samples. The
 * intervals of several nodes add up. A window that is cut by an epoch's end is none. The traces must live as long.
 * -EINVAL: hyper is no JSON object; -ENOMEM. */
int model_profiles_init(struct model_profiles *out, const struct trace *traces, size_t n, struct err *e);
void model_profiles_done(struct model_profiles *p);

/* The class of a run of this trace: the one that its trial was launched as, so that what is learnt is recalled when such a job comes
 * again; where no policy's log says which, its model, its dataset, and what of its hyperparameters begins with "batch". Appends.
 * -EINVAL, -ENOMEM. */
int model_profiles_key(struct buf *key, struct buf *family, const struct trace *t, const struct trace_run *r,
                       struct err *e);

/* The samples that model_train() takes, in the order of the list; to be freed. NULL: memory. */
struct model_sample *model_profiles_samples(const struct model_profiles *p);

/* Tells the model what the traces' times say of settings, class by class: ratios of the time per record (per epoch where records
 * are not known), within a run where it has windows of several settings, else between runs; failed runs as settings that cannot be
 * had. `study` is the evidence. Returns how many classes were told of; -EINVAL, -ENOSPC, -ENOMEM. */
int model_profiles_teach(struct model *m, const struct trace *t, const char *study, struct err *e);

#endif
