/* Answers of a Kubernetes API server, as JSON: quantities, nodes with what is free on them, quotas, and why something was refused. Pure. */
#ifndef BIGDL_KUBE_H
#define BIGDL_KUBE_H

#include <jansson.h>

#include "bigdl/cluster.h"
#include "bigdl/kube_taints.h"

/* Of a launch's executors: its value is the launch's tag. */
#define KUBE_LABEL "pipetune-launch"

/* "500m" is 0.5, "1Gi" 1073741824, "2" or 2 are 2. NAN: none, or not one that counts things: negative, or beyond 2^63. */
double kube_quantity(const json_t *v);

/* What a container's resources (its spec's, or those that its status tells) say of "cpu" or "memory": "requests", else "limits";
 * 0: neither. */
double kube_request(const json_t *resources, const char *what);

/* A list's items, from an answer; NULL: it is none. Borrowed from *out_root, a new reference. */
const json_t *kube_items(const char *text, size_t len, json_t **out_root);

/* Each reads one page of a list, and leaves in v->next by what the next one is asked for. */

/* Nodes that take pods which tolerate that as workers, all of them free. -EINVAL: not a list of nodes; -ENODEV: none takes pods, by the last page; -ENOMEM. */
int kube_read_nodes(struct cluster_view *v, const struct kube_tolerations *t, const char *text, size_t len,
                    struct err *e);

/* What these pods have of the workers is not free. -EINVAL: not a list of pods. */
int kube_take_pods(struct cluster_view *v, const char *text, size_t len, struct err *e);

/* Launches of ours and their executors. -EINVAL, -ENOMEM. */
int kube_read_launches(struct cluster_view *v, const char *text, size_t len, struct err *e);

/* The tightest of the quotas. -EINVAL. */
int kube_read_quotas(struct cluster_view *v, const char *text, size_t len, struct err *e);

/* Why the server refused, by the Status that it answers: "403: pods … is forbidden: exceeded quota: …", in one line. */
enum { KUBE_WHY_MAX = 256 };
void kube_refusal(int status, const char *text, size_t len, char out[KUBE_WHY_MAX]);

/* Of a 404: is it one thing that is gone, and not what the server knows nothing of? */
bool kube_is_gone(const char *text, size_t len);

#endif
