/* The command line of ssh to a node's helper. Host, user and path reach a command line here and a shell there, so each comes
 * from a narrow set of characters. Pure. */
#ifndef LIVE_SSH_H
#define LIVE_SSH_H

#include "base/err.h"
#include "base/strv.h"
#include "live/nodes.h"

/* May ssh be given this node? -EINVAL: the host is none ([A-Za-z0-9._:%-], begins with none of "-.%"), nor the user
 * ([A-Za-z0-9._-], begins with none of "-."), the port or the key's path; the message begins with which: "host 'x' …". */
int ssh_check(const struct node_cfg *cfg, struct err *e);

/* `ssh` is the program; both checks are made again. -EINVAL, -ENOMEM; strv_done(out) is due in any case. */
int ssh_argv(struct strv *out, const char *ssh, const struct node_cfg *cfg, const char *helper, struct err *e);

#endif
