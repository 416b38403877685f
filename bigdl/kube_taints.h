/* Taints of nodes, and what a pod's template says of them. Pure. */
#ifndef BIGDL_KUBE_TAINTS_H
#define BIGDL_KUBE_TAINTS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

enum { KUBE_TOLERATIONS_MAX = 64 };

struct kube_tolerations { /* zeroed: nothing is tolerated */
    struct kube_toleration {
        char key[320], value[64], effect[32]; /* key "": any; effect "": any */
        bool any_value;
    } v[KUBE_TOLERATIONS_MAX];
    size_t n;
};

/* spec.tolerations of a pod, in YAML (JSON is some). One that is for a while only, or whose operator is not known, tolerates nothing. -EINVAL: no YAML, with the
 * line; -E2BIG: they are more than anybody has. */
int kube_read_tolerations(struct kube_tolerations *out, const char *text, size_t len, struct err *e);

/* Does each taint of the node that keeps pods away have one that tolerates it? */
bool kube_tolerates(const struct kube_tolerations *t, const json_t *node);

#endif
