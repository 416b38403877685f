/* How a Kubernetes API server is asked to resize the pods of a launch in place, and what it says of that. Pure. */
#ifndef BIGDL_KUBE_RESIZE_H
#define BIGDL_KUBE_RESIZE_H

#include "app/resize.h"

extern const struct cluster_resize kube_resize;

#endif
