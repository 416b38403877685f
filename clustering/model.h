/* The model: clusters of profiles, and what is known per class of jobs: which setting was best, by measured ratios, and which
 * cannot be had. Pure.
 *
 * Distance of a profile to a cluster: over the features that both have, the mean of the squared differences to the centroid, each
 * in units of the feature's noise and cut at MODEL_CUT of them, so that one wild counter does not decide; the root of that mean.
 * The noise of a feature is how much it varies within clusters, all clusters pooled, with a floor for what differs from one run
 * to the next: features that tell jobs apart weigh as much as they do so.
 *
 * A cluster's own spread is the same figure of its members: what a typical member's distance is. It is shrunk toward the spread of
 * all clusters pooled as if MODEL_POOLED_SAMPLES of those were its members, and widened by how little a centroid of few members
 * is known. It counts as MODEL_SPREAD_MAX at most: differences are cut, so that a cluster twice as loose as the others would
 * take in whatever comes. A verdict goes by the distance in spreads: up to MODEL_KNOWN_SPREADS known, beyond
 * MODEL_UNKNOWN_SPREADS unknown, else ambiguous. Nothing is said of two masks that share fewer than MODEL_MIN_COMMON features, or
 * less than half of either.
 *
 * Clusters are kept as sums that can be added to: a job that arrives moves its centroid by one over the number of its members
 * (MODEL_MEMORY at most, so that a cluster follows a drift), and a profile like none makes a new one. Numbers of clusters are never
 * used again. A cluster may belong to several classes (jobs that differ in nothing the counters see), and a class may have several
 * clusters (its first epoch, its later ones). */
#ifndef CLUSTERING_MODEL_H
#define CLUSTERING_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "clustering/profile.h"

#define MODEL_KNOWN_SPREADS 2.0
#define MODEL_UNKNOWN_SPREADS 4.0
#define MODEL_CUT 6.0
#define MODEL_SPREAD_MAX 1.15
#define MODEL_NOISE_FLOOR 0.05 /* of a log rate: 5 % */
#define MODEL_NOISE_PRIOR 0.2  /* what is taken for noise until it is measured… */

enum {
    MODEL_NOISE_WEIGHT = 4, /* …as if seen so often */
    MODEL_POOLED_SAMPLES = 4,
    MODEL_MIN_COMMON = 12,
    MODEL_MEMORY = 200,
    MODEL_NEAR = 5,
    MODEL_REASON_MAX = 192,
    MODEL_CLUSTERS_MAX = 10000,
    MODEL_CLASSES_MAX = 10000,
    MODEL_ENTRIES_MAX = 10000, /* of one class */
    MODEL_TEXT_MAX = 65536,    /* of one name, key, setting or evidence */
    MODEL_STRENGTH_NEW = 2,
    MODEL_STRENGTH_MAX = 4,
};

/* Whose vectors the centroids are. A raw model was made elsewhere: its vectors are compared as they are, it has no spreads, and it
 * learns nothing. */
enum model_vectors { MODEL_PROFILES, MODEL_RAW };

struct model_feature {
    char *name;             /* NULL only in a raw model */
    enum profile_norm norm; /* profiles only */
    double median, iqr;     /* of the log rates that it was trained on; NAN: it was not trained */
    double noise;           /* derived, see above */
};

struct model_cluster {
    int64_t id;
    uint64_t count; /* members that it was made of */
    double *mean;   /* the centroid; 0 where weight is 0 */
    double *weight; /* members that had this feature, MODEL_MEMORY at most; 0: masked. NULL in a raw model: all */
    double *m2;     /* sum of their squared deviations; NULL in a raw model */
    double spread;  /* derived, see above; NAN in a raw model */
};

struct model_member { /* of a class */
    int64_t cluster;
    uint64_t count; /* profiles of the class that fell into it */
};

/* Settings are JSON objects, {"cores": 2, "memory": 4}, on one line with sorted keys (model_setting() makes them so). */
struct model_entry {
    char *setting, *over; /* compared with this one */
    double log_ratio;     /* of the time of `setting` over that of `over` */
    bool at_least;        /* it was cut: the true ratio is this or more */
    int64_t n;            /* trials that measured it */
    double spread;        /* standard deviation of what they measured; 0 for n = 1 */
};

struct model_bound { /* a setting that cannot be had */
    char *setting, *evidence;
    int64_t n;
};

struct model_class {
    char *key, *family; /* family NULL: none */
    struct model_member *members;
    size_t n_members;
    struct model_entry *entries;
    size_t n_entries;
    struct model_bound *bounds;
    size_t n_bounds;
    char *best;   /* the best setting; NULL: none is known, or it has been retired */
    int strength; /* of `best`: MODEL_STRENGTH_NEW when learnt, 0 when retired */
    int64_t confirmations, weakenings;
    char *study; /* the last trial that it was learnt from; NULL: none */
    int64_t trial;
    int64_t trials; /* that it was learnt from */
};

struct model {
    enum model_vectors vectors;
    struct model_feature *features;
    size_t n;
    struct model_cluster *clusters; /* by their ids, ascending */
    size_t n_clusters;
    int64_t next_id;
    struct model_class *classes; /* in the order in which they were met */
    size_t n_classes;
    double inertia; /* raw: as it was made; NAN: not known */
};

/* An empty model of profiles, without features. */
void model_init(struct model *m);
void model_done(struct model *m);

/* Derives noises and spreads anew, after its parts were set by hand. */
void model_derive(struct model *m);

/* --- recognition --- */

/* The profile in the model's own order of features: those that the model does not have, or has by another normaliser, are left out,
 * those that the profile does not have are masked. -EINVAL: a raw model; -ENOMEM. */
int model_view(struct profile *out, const struct model *m, const struct profile_space *s, const struct profile *p,
               struct err *e);

enum model_decision { MODEL_KNOWN, MODEL_AMBIGUOUS, MODEL_UNKNOWN, MODEL_REFUSED };

/* "known", "ambiguous", "unknown", "refused". */
const char *model_decision_name(enum model_decision d);

struct model_distance {
    int64_t cluster;
    double distance; /* as above, NAN: too little in common */
    double spreads;  /* distance in spreads of the cluster; NAN as well in a raw model */
    size_t common;   /* features that both have */
};

struct model_verdict {
    enum model_decision decision;
    struct model_distance near[MODEL_NEAR]; /* by spreads, ascending */
    size_t n_near;                          /* 0: nothing to compare with; else near[0] is the verdict's cluster */
    size_t measured;                        /* features of the profile */
    char reason[MODEL_REASON_MAX];
};

/* A profile in the model's order (model_view). */
void model_verdict(struct model_verdict *out, const struct model *m, const struct profile *view);

/* Of one cluster. In a raw model distance is the root of the sum, not of the mean, of squared differences. */
struct model_distance model_distance_to(const struct model *m, const struct model_cluster *c,
                                        const struct profile *view);

/* A raw vector of m->n numbers: the place of the nearest centroid in m->clusters, the lowest of equals, and the square of its
 * distance. Sums run in long double over true differences, and of two that are nearly equal each feature is compared by itself, so
 * that a large value hides no small one. -1: there is no cluster. */
int model_nearest(const struct model *m, const double *x, double *out_squared);

/* What each feature adds to the squared distance to this cluster, as a share of it (0…1, together 1); NAN where it is not common.
 * *out_difference (NULL: not asked for): the difference in noises, with its sign, uncut. */
void model_contributions(const struct model *m, const struct model_cluster *c, const struct profile *view, double *out,
                         double *out_difference);

/* --- learning --- */

/* Makes sure that the model has all the space's features; new ones come last. What it knows of one by another normaliser is
 * forgotten: an older version made it. -EINVAL: a raw model, or too many; -ENOMEM: nothing has changed. */
int model_extend(struct model *m, const struct profile_space *s, struct err *e);

/* One more profile: a known one joins its cluster, any other founds one, so that the next like it is known. `key` is its class (made when new), NULL: not known. *out_cluster: where it went.
 * -ENODATA: it has too few features to be compared with anything; -ENOSPC: the model is full; -EINVAL; -ENOMEM. Nothing is learnt
 * then. */
int model_learn_profile(struct model *m, const struct profile_space *s, const struct profile *p, const char *key,
                        const char *family, int64_t *out_cluster, struct err *e);

/* A profile to train from. */
struct model_sample {
    const struct profile *profile;
    const char *key, *family; /* of its class; NULL: not known */
};

/* Clusters all these profiles at once, in a model that has no cluster yet: robustly scaled (median, interquartile range), k-means
 * within each class (profiles without a key count as one), and clusters nearer to each other than their members are become one.
 * Profiles with fewer than MODEL_MIN_COMMON features are left out. Returns how many were taken; -EINVAL; -ENOSPC, -ENOMEM: the model
 * may have half of it, and is good for model_done() alone. */
int model_train(struct model *m, const struct profile_space *s, const struct model_sample *samples, size_t n,
                uint64_t seed, struct err *e);

/* --- classes --- */

struct model_class *model_class_find(const struct model *m, const char *key); /* NULL: never met */

/* The class that has most profiles in this cluster, of those with a best setting; without any such, of all. NULL: none. */
struct model_class *model_class_of_cluster(const struct model *m, int64_t cluster);

/* How many profiles of the class are in the cluster. */
uint64_t model_class_count(const struct model_class *c, int64_t cluster);

struct model_cluster *model_cluster_find(const struct model *m, int64_t id); /* NULL: none */

/* A JSON object of scalars in the form that settings are kept in, to be freed. -EINVAL: none; -ENOMEM. */
int model_setting(char **out, const char *text, struct err *e);

/* What one trial showed. Settings are JSON objects in any form. */
struct model_lesson {
    const char *key, *family; /* family NULL: none */
    const char *best;         /* NULL: none was found */
    const struct model_entry *entries;
    size_t n_entries; /* `n` and `spread` of each count: 1 and 0 for what was measured now */
    const struct model_bound *bounds;
    size_t n_bounds;
    const char *study; /* the trial is evidence, and counted; NULL: there is none */
    int64_t trial;
};

/* Adds it to its class, made when new. Ratios of the same two settings are averaged; one that is only a lower bound says nothing
 * where it was measured. A best setting that differs from the one known, or was retired, begins with MODEL_STRENGTH_NEW.
 * -EINVAL: a setting is none, a number is; -ENOSPC: full; -ENOMEM. On failure the class may know a part of it. */
int model_learn_class(struct model *m, const struct model_lesson *l, struct err *e);

/* A recalled best setting proved good: its strength grows by one, to MODEL_STRENGTH_MAX. -ENOENT: no such class. */
int model_confirm(struct model *m, const char *key, struct err *e);

/* It proved worse than the default: its strength falls by one. At 0 it retires: the class keeps what cannot be had, but forgets
 * which setting was best and how settings compare; the next trial searches anew. Returns 1 when it has just retired, else 0;
 * -ENOENT. */
int model_weaken(struct model *m, const char *key, struct err *e);

/* A class, with the clusters that belong to it alone; a cluster, which also leaves its classes; everything but the features.
 * -ENOENT: there is none. */
int model_forget_class(struct model *m, const char *key, struct err *e);
int model_forget_cluster(struct model *m, int64_t id, struct err *e);
void model_forget_all(struct model *m);

#endif
